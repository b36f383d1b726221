//! The state of the cluster on disk.
//!
//! Guarantees: the file is always a whole snapshot, the old or the new, since a new one takes the place of the old by a
//! rename; only its owner may read it; two processes never share a directory; one that cannot be read or written is
//! said before anything starts.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Why a state cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// The system refuses.
    #[error("--data-dir: cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process keeps its state there.
    #[error("--data-dir: {} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// The file is not a state.
    #[error("--data-dir: {} is not a state of this program: {cause}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: String,
    },
}

/// A directory that is this process's own while the value lives.
#[derive(Debug)]
pub struct DataDir {
    state: PathBuf,
    /// Holds the lock.
    _lock: File,
}

impl DataDir {
    /// Makes the directory where there is none, and takes it.
    ///
    /// # Errors
    /// When it cannot be made or written, or another process has it.
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

    /// The file of the state.
    pub fn state_path(&self) -> &Path {
        &self.state
    }

    /// The state that was last saved, if there is one.
    ///
    /// # Errors
    /// When there is a file that cannot be read.
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

    /// Puts a state in the place of the last one. Blocks for as long as the disk takes.
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
    fn a_state_is_found_again() {
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
    fn what_is_in_the_way_is_said_in_one_sentence() {
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
