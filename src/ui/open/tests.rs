#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;

use super::*;

const LINK: &str = "http://127.0.0.1:9000/#token=0123";

#[test]
fn file_is_readable_by_its_owner_only_and_removed_at_the_end() {
    let parent = tempfile::tempdir().unwrap();
    let redirect = Redirect::write(parent.path(), LINK).unwrap();
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&redirect.directory), mode(&redirect.file())), (0o700, 0o600));
    assert!(fs::read_to_string(redirect.file()).unwrap().contains(&format!("0; url={LINK}\"")));
    let other = Redirect::write(parent.path(), LINK).unwrap();
    assert_ne!(redirect.directory, other.directory);
    drop((redirect, other));
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn directory_that_cannot_be_made_is_named() {
    let parent = tempfile::tempdir().unwrap();
    let error = Redirect::write(&parent.path().join("none"), LINK).unwrap_err().to_string();
    assert!(error.contains("none/cronjob-controller-ui-") && error.contains("No such file"), "{error}");
}
