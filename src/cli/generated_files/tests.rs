#![allow(clippy::unwrap_used)]

use std::os::unix::fs::symlink;

use super::*;

#[test]
fn file_is_written_in_place_of_a_regular_one_only() {
    let directory = tempfile::tempdir().unwrap();
    let (path, others) = (directory.path().join("d"), directory.path().join("others"));
    fs::create_dir(&path).unwrap();
    let write = || super::write(&path, &[("a.1".to_owned(), "new".to_owned())]).map_err(|error| error.to_string());
    let file = path.join("a.1");
    let refused = |why: &str| Err(format!("write {}: {why}", file.display()));
    assert_eq!(write(), Ok(()), "there is none yet");
    assert_eq!((write(), fs::read_to_string(&file).unwrap()), (Ok(()), "new".to_owned()), "there is one");

    fs::write(&others, "precious").unwrap();
    fs::remove_file(&file).unwrap();
    fs::hard_link(&others, &file).unwrap();
    assert_eq!((write(), fs::read_to_string(&file).unwrap()), (Ok(()), "new".to_owned()), "a hard link is replaced");

    for (sentence, target) in [("to a file", others.clone()), ("to nothing", directory.path().join("none"))] {
        fs::remove_file(&file).unwrap();
        symlink(&target, &file).unwrap();
        assert_eq!(write(), refused("it is a symbolic link"), "{sentence}");
        assert!(fs::symlink_metadata(&file).unwrap().is_symlink(), "{sentence}: the link stays");
    }
    assert!(!directory.path().join("none").exists());
    assert_eq!(fs::read_to_string(&others).unwrap(), "precious");

    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(write(), refused("it is not a regular file"), "a directory");
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1, "no draft is left");
}

#[test]
fn directory_without_room_for_a_file_is_an_error_that_names_it() {
    let error = write(Path::new("/nowhere"), &[("a.1".to_owned(), String::new())]).unwrap_err().to_string();
    assert!(error.starts_with("write /nowhere/a.1: "), "{error}");
}
