#![allow(clippy::unwrap_used)]

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn access() -> Access {
    let (certificate, token) = ("PEM\n".to_owned(), "0123".to_owned());
    Access { addr: "127.0.0.1:4321".parse().unwrap(), certificate, token }
}

#[test]
fn kubeconfig_is_readable_by_its_owner_only_and_removed_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("k");
    let written = Kubeconfig::write(path.clone(), &access()).unwrap();
    assert_eq!(fs::metadata(written.path()).unwrap().permissions().mode() & 0o777, 0o600);
    let read = kube::config::Kubeconfig::read_from(&path).unwrap();
    assert_eq!(read.current_context.as_deref(), Some("cronjob-controller-dev"));
    let cluster = read.clusters[0].cluster.clone().unwrap();
    assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:4321"));
    assert_eq!(cluster.certificate_authority_data.as_deref(), Some("UEVNCg=="));
    assert!(fs::read_to_string(&path).unwrap().contains("  user:\n    token: 0123\n"));
    let again = Kubeconfig::write(path.clone(), &access()).unwrap();
    drop(again);
    assert!(!path.exists());
}

#[test]
fn file_that_dev_did_not_write_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    fs::write(&path, "apiVersion: v1\n").unwrap();
    let link = directory.path().join("link");
    symlink(directory.path().join("nowhere"), &link).unwrap();
    for (path, want) in [
        (path.clone(), "exists and was not written by this program; name another file"),
        (link, "File exists"),
        (directory.path().join("no/such/directory"), "No such file or directory"),
    ] {
        let error = Kubeconfig::write(path, &access()).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "apiVersion: v1\n");
}

#[test]
fn the_default_is_in_the_users_own_directory_if_there_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let own = default_path(Some(directory.path().to_owned()), Path::new("/t"), 7);
    assert_eq!(own, directory.path().join("cronjob-controller-dev-7.kubeconfig"));
    for missing in [None, Some(directory.path().join("none"))] {
        assert_eq!(default_path(missing, Path::new("/t"), 7), Path::new("/t/cronjob-controller-dev-7.kubeconfig"));
    }
}
