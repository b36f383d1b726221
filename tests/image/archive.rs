//! An OCI archive: the image's files, its entrypoint and its user.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// An image of one platform, unpacked.
pub struct Image {
    /// The layers' files, as in the image's root, in a directory of this test's own.
    layers: Vec<PathBuf>,
    config: Value,
    archive_size: u64,
    /// Keeps the layers' directory.
    _directory: TempDir,
}

impl Image {
    /// Reads the first image of the archive.
    pub fn read(archive: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        tar(&["-xf", archive.to_str().unwrap(), "-C", directory.path().to_str().unwrap()]);
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap();
            directory.path().join("blobs").join(digest.replace(':', "/"))
        };
        let index = json(&directory.path().join("index.json"));
        let manifest = json(&blob(&index["manifests"][0]));
        let config = json(&blob(&manifest["config"]));
        let layers = manifest["layers"].as_array().unwrap().iter().map(blob).collect();
        let archive_size = fs::metadata(archive).unwrap().len();
        Self { layers, config: config["config"].clone(), archive_size, _directory: directory }
    }

    /// Panics unless the image holds exactly a binary that every user may run and no user may write, and its licences,
    /// and has a numeric user.
    pub fn holds_the_binary_and_its_licences(&self) {
        let listed: Vec<String> = self.layers.iter().map(|layer| tar(&["-tvf", layer.to_str().unwrap()])).collect();
        let listed = listed.concat();
        let mut files: Vec<_> = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        files.sort_by_key(|words| words[5]);
        let files: Vec<_> = files.iter().map(|words| (words[0], words[1], words[5])).collect();
        let expected = [
            ("-rw-r--r--", "0/0", "LICENSE"),
            ("-rw-r--r--", "0/0", "THIRD_PARTY_LICENSES"),
            ("-rwxr-xr-x", "0/0", "cronjob-controller"),
        ];
        assert_eq!(files, expected, "{listed}");
        assert_eq!(self.entrypoint(), "/cronjob-controller");
        assert_eq!(self.user(), "65532:65532");
    }

    /// Unpacks the layers into `root`.
    pub fn unpack(&self, root: &Path) {
        for layer in &self.layers {
            tar(&["-xf", layer.to_str().unwrap(), "-C", root.to_str().unwrap()]);
        }
    }

    /// The user and the group.
    pub fn user(&self) -> &str {
        self.config["User"].as_str().unwrap()
    }

    /// The program, which gets all arguments.
    pub fn entrypoint(&self) -> &str {
        let words = self.config["Entrypoint"].as_array().unwrap();
        assert_eq!(words.len(), 1, "{words:?}");
        words[0].as_str().unwrap()
    }

    /// The sizes of the files and the archive, in a sentence.
    pub fn sizes(&self) -> String {
        let root = tempfile::tempdir().unwrap();
        self.unpack(root.path());
        let files = fs::read_dir(root.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
        let [files, archive] = [files, self.archive_size].map(|bytes: u64| bytes.div_ceil(100_000));
        format!("{}.{} MB unpacked, {}.{} MB to pull", files / 10, files % 10, archive / 10, archive % 10)
    }
}

fn json(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// Runs tar, which detects compression itself; returns its output.
fn tar(args: &[&str]) -> String {
    let output = Command::new("tar").args(args).output().unwrap();
    assert!(output.status.success(), "tar {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
