//! The state of the cluster on disk.
//!
//! Guarantees: the file is always a complete snapshot, the old or the new one, because a rename replaces it. Only its owner can
//! read it. Two processes never share a directory. A directory that cannot be read or written is reported before anything
//! starts.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Why the state cannot be saved or loaded.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// The system returned an error.
    #[error("--data-dir: cannot {operation} {}: {source}", path.display())]
    Io {
        /// The operation.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process uses the directory.
    #[error("--data-dir: {} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// The file is not a state of this program.
    #[error("--data-dir: {} is not a state of this program: {cause}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
}

/// A directory that this process has locked while the value lives.
#[derive(Debug)]
pub struct DataDir {
    state: PathBuf,
    /// The locked file.
    _lock: File,
}

impl DataDir {
    /// Creates the directory if necessary, and locks it.
    ///
    /// # Errors
    /// When it cannot be created or written, or another process has locked it.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|source| error("create the directory", path, source))?;
        let lock_path = path.join("lock");
        let lock = private().open(&lock_path).map_err(|source| error("write", &lock_path, source))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { state: path.join("state.json"), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(DataDirError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => Err(error("lock", &lock_path, source)),
        }
    }

    /// The path of the state file.
    pub fn state_path(&self) -> &Path {
        &self.state
    }

    /// The last saved state, if there is one.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub fn load(&self) -> Result<Option<Value>, DataDirError> {
        let text = match fs::read(&self.state) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(error("read", &self.state, source)),
        };
        let malformed =
            |e: serde_json::Error| DataDirError::Malformed { path: self.state.clone(), cause: e.to_string() };
        serde_json::from_slice(&text).map(Some).map_err(malformed)
    }

    /// Replaces the saved state. Blocks while the disk is written.
    ///
    /// # Errors
    /// When it cannot be written; the last state then stays.
    pub fn save(&self, state: &Value) -> Result<(), DataDirError> {
        let fresh = self.state.with_extension("json.new");
        let written = private().truncate(true).open(&fresh).and_then(|mut file| {
            file.write_all(state.to_string().as_bytes())?;
            file.sync_data()
        });
        written.map_err(|source| error("write", &fresh, source))?;
        fs::rename(&fresh, &self.state).map_err(|source| error("replace", &self.state, source))
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options
}

fn error(operation: &'static str, path: &Path, source: io::Error) -> DataDirError {
    DataDirError::Io { operation, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn saved_state_is_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b");
        let data = DataDir::open(&path).unwrap();
        assert_eq!(data.load().unwrap(), None);
        for state in [json!({ "a": 1 }), json!({})] {
            data.save(&state).unwrap();
            assert_eq!(data.load().unwrap(), Some(state), "the whole file is replaced");
        }
        drop(data);
        assert_eq!(DataDir::open(&path).unwrap().load().unwrap(), Some(json!({})));
    }

    #[test]
    fn unusable_data_directory_is_reported_in_one_sentence() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("d");
        let data = DataDir::open(&path).unwrap();
        let in_use = DataDir::open(&path).unwrap_err().to_string();
        assert!(in_use.starts_with("--data-dir: ") && in_use.ends_with("is in use by another process"), "{in_use}");
        fs::write(data.state_path(), "{").unwrap();
        let malformed = data.load().unwrap_err().to_string();
        assert!(malformed.contains("state.json is not a state of this program: EOF"), "{malformed}");
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let no_directory = DataDir::open(&file.join("x")).unwrap_err().to_string();
        assert!(no_directory.contains("cannot create the directory"), "{no_directory}");
    }
}
