//! The manifests: built from the code where they are generated, and each directory by kubectl where there is one.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cronjob_controller::api::crd;

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests")
}

#[test]
fn the_definitions_are_those_that_make_manifests_writes() {
    let bases = manifests().join("crd/bases");
    let files = crd::files().unwrap();
    for (name, yaml) in &files {
        let stored = fs::read_to_string(bases.join(name)).unwrap_or_default();
        assert!(stored == *yaml, "manifests/crd/bases/{name} is stale; run make manifests");
    }
    assert_eq!(fs::read_dir(&bases).unwrap().count(), files.len(), "a file too many in {}", bases.display());
}

/// Every directory below that holds a kustomization.
fn kustomizations(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            kustomizations(&path, found);
        } else if path.ends_with("kustomization.yaml") {
            found.push(directory.to_owned());
        }
    }
    found.sort();
}

#[test]
fn every_directory_of_the_manifests_can_be_built() {
    let kubectl = |args: &[&str]| Command::new("kubectl").args(args).env("KUBECONFIG", "/dev/null").output();
    if !kubectl(&["version", "--client"]).is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no kubectl");
        return;
    }
    let mut directories = Vec::new();
    kustomizations(&manifests(), &mut directories);
    assert!(directories.len() >= 12, "{directories:?}");
    for directory in directories {
        let built = kubectl(&["kustomize", directory.to_str().unwrap()]).unwrap();
        assert!(built.status.success(), "{}: {}", directory.display(), String::from_utf8_lossy(&built.stderr));
        let text = String::from_utf8(built.stdout).unwrap();
        for document in text.split("\n---\n") {
            let object: serde_json::Value = serde_yaml_ng::from_str(document).unwrap();
            assert!(object["kind"].is_string(), "{}: {document}", directory.display());
        }
    }
}

#[test]
fn every_manifest_is_part_of_a_kustomization() {
    let mut directories = Vec::new();
    kustomizations(&manifests(), &mut directories);
    for directory in directories {
        let kustomization = fs::read_to_string(directory.join("kustomization.yaml")).unwrap();
        let files = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        for file in files.filter(|file| !file.ends_with("kustomization.yaml")) {
            let name = file.file_name().unwrap().to_str().unwrap();
            assert!(kustomization.contains(&format!(" {name}")), "{} is forgotten", file.display());
        }
    }
}
