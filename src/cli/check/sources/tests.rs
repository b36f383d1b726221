#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

use super::*;

#[test]
fn unreadable_file_of_a_directory_is_reported_and_the_others_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    // A file that is there and that no user can read.
    std::os::unix::fs::symlink("/proc/self/mem", path("a.yaml")).unwrap();
    std::fs::write(path("b.yaml"), b"\xff\xfeb\0:\0 \x001\0\n\0").unwrap();
    let all = [directory.path().to_owned()];
    let (sources, unreadable) = read_each(&all, false).unwrap();
    let texts: Vec<&str> = sources.iter().map(|source| source.text.as_str()).collect();
    assert_eq!(texts, ["b: 1\n"]);
    let files: Vec<(String, String)> = unreadable.into_iter().map(|file| (file.file, file.error.reason())).collect();
    assert_eq!(files, [(path_text(&path("a.yaml")), "Input/output error (os error 5)".to_owned())]);
    for named in [path("a.yaml"), path("none.yaml")] {
        assert!(read_each(&[named], false).unwrap_err().to_string().contains(": cannot be read: "));
    }
    assert!(read(&all, false).unwrap_err().to_string().contains("a.yaml: cannot be read: "));
}
