//! The state of the cluster on disk.
//!
//! Guarantees: no answered write is lost when the process ends, however it ends. A power cut loses at most the last
//! `PERIOD`, on a disk that writes when it is told to. Only the owner can read the files. Two processes never share a
//! directory. A directory that cannot be read or written is reported before anything starts.
//!
//! Every change is appended to a log before it is answered (`log`). The state of earlier versions of this program, one JSON
//! document, is read and replaced by a log.

mod log;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use apiserver::{ApiServer, Changes, Journal, RestoreError};
use serde_json::Value;
use tracing::warn;

use self::log::{Log, ReadError};

/// How often the log is written to the disk, and compacted if it has become long.
const PERIOD: Duration = Duration::from_secs(1);

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
    /// The log cannot be read.
    #[error("--data-dir: {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: ReadError,
    },
    /// The document of an earlier version cannot be read.
    #[error("--data-dir: {} is not a state of this program: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// The saved state cannot be restored.
    #[error("--data-dir: {}: {source}", path.display())]
    Restore {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: RestoreError,
    },
}

/// A directory that this process has locked while the value lives.
#[derive(Debug)]
pub struct DataDir {
    log: PathBuf,
    /// The document of earlier versions.
    document: PathBuf,
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
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&lock_path);
        let lock = lock.map_err(|source| error("write", &lock_path, source))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { log: path.join("state.log"), document: path.join("state.json"), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(DataDirError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => Err(error("lock", &lock_path, source)),
        }
    }

    /// The path of the log.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Restores the last state, and returns whether there is one.
    ///
    /// # Errors
    /// When it cannot be read or restored.
    pub fn restore(&self, server: &ApiServer) -> Result<bool, DataDirError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| DataDirError::Restore { path, source }
        };
        match log::read(&self.log) {
            Ok(contents) => {
                if let Some(offset) = contents.torn {
                    let path = self.log.display();
                    warn!(%path, offset, "dropped an incomplete change at the end of the log, which was never answered");
                }
                server.load(contents.state).map_err(failed(&self.log))?;
                Ok(true)
            }
            Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => match self.document()? {
                Some(document) => server.restore(&document).map(|()| true).map_err(failed(&self.document)),
                None => Ok(false),
            },
            Err(source) => Err(DataDirError::Unreadable { path: self.log.clone(), source }),
        }
    }

    /// Saves the state of a server, and from then on each of its changes.
    ///
    /// # Errors
    /// When a file cannot be written. The saved state is then the one of before, or the server's.
    pub fn record(&self, server: &ApiServer) -> Result<Saving, DataDirError> {
        let mut log = None;
        let begin = |state: &Changes| -> io::Result<Box<dyn Journal>> {
            Ok(Box::new(log.insert(Log::begin(&self.log, state)?).clone()))
        };
        server.record(begin).map_err(|source| error("write", &self.log, source))?;
        match fs::remove_file(&self.document) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(error("remove", &self.document, source)),
            _ => Ok(Saving { log, server: server.clone() }),
        }
    }

    /// The state as earlier versions saved it.
    fn document(&self) -> Result<Option<Value>, DataDirError> {
        let text = match fs::read(&self.document) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(error("read", &self.document, source)),
        };
        let malformed = |source| DataDirError::Malformed { path: self.document.clone(), source };
        serde_json::from_slice(&text).map(Some).map_err(malformed)
    }
}

/// Keeps a server's log on the disk, and short.
pub struct Saving {
    log: Option<Log>,
    server: ApiServer,
}

impl Saving {
    /// Of a server whose state is discarded.
    pub fn none(server: &ApiServer) -> Self {
        Self { log: None, server: server.clone() }
    }

    /// Writes the log to the disk and compacts it, forever. Expires Events, also while there are no requests.
    pub async fn run(&self) {
        let mut has_failed = false;
        loop {
            tokio::time::sleep(PERIOD).await;
            self.server.expire();
            let Some(log) = self.log.clone() else { continue };
            let server = self.server.clone();
            // Writing to a disk may block.
            let written = tokio::task::spawn_blocking(move || {
                log.sync()?;
                if log.is_long() { log.compact(|| server.state()) } else { Ok(()) }
            });
            let failure = written.await.map_err(io::Error::other).flatten().err();
            if let Some(error) = failure.as_ref().filter(|_| !has_failed) {
                warn!(%error, "cannot write the state of the cluster to the disk; trying again");
            }
            has_failed = failure.is_some();
        }
    }

    /// Writes the log to the disk. Blocks meanwhile.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(&self, data_dir: &DataDir) -> Result<(), DataDirError> {
        self.log.as_ref().map_or(Ok(()), Log::sync).map_err(|source| error("write", &data_dir.log, source))
    }
}

fn error(operation: &'static str, path: &Path, source: io::Error) -> DataDirError {
    DataDirError::Io { operation, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
