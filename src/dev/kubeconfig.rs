//! The kubeconfig for the server in this process, with its bearer token.
//!
//! Guarantees: only its owner can read it. A file that another program wrote is never overwritten, and links are not followed.
//! The file is removed when the value is dropped, and by [`remove_all`] at an end of the process that drops nothing.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use parking_lot::Mutex;

/// The first line of every kubeconfig that this program writes.
const MARK: &str = "# Written by `cronjob-controller dev`, which removes it when it ends.\n";

/// Why a kubeconfig cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// The file exists and another program wrote it.
    #[error("--kubeconfig: {} exists and was not written by this program; name another file", .0.display())]
    Foreign(PathBuf),
    /// The system returned an error.
    #[error("cannot write the kubeconfig {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The server's address and the client's credentials. client-go sends a token over HTTPS only.
#[derive(Debug, Clone)]
pub struct Access {
    /// The address that the server listens on.
    pub addr: SocketAddr,
    /// The serving certificate as PEM.
    pub certificate: String,
    /// The bearer token, without characters that are special in YAML.
    pub token: String,
}

/// A kubeconfig on disk that exists while this value lives.
#[derive(Debug)]
pub struct Kubeconfig {
    path: PathBuf,
}

impl Kubeconfig {
    /// Writes a kubeconfig for this server to `path`.
    ///
    /// # Errors
    /// When another program wrote the file, or it cannot be written.
    pub fn write(path: PathBuf, access: &Access) -> Result<Self, KubeconfigError> {
        match fs::read_to_string(&path) {
            // Left behind by a killed process.
            Ok(text) if text.starts_with(MARK) => fs::remove_file(&path),
            Ok(_) => return Err(KubeconfigError::Foreign(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(KubeconfigError::Foreign(path)),
            Err(error) => Err(error),
        }
        .and_then(|()| {
            // Until the file is in the list, the process does not end by `remove_all`.
            let mut written = WRITTEN.lock();
            create(&path, &text(access)).map(|()| written.push(path.clone()))
        })
        .map_err(|source| KubeconfigError::Write { path: path.clone(), source })?;
        Ok(Self { path })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        remove(&self.path);
        WRITTEN.lock().retain(|path| *path != self.path);
    }
}

/// The kubeconfigs that exist.
static WRITTEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes every kubeconfig of this process, and lets it write no other: for an end that drops no values.
pub fn remove_all() {
    let written = WRITTEN.lock();
    written.iter().for_each(|path| remove(path));
    std::mem::forget(written);
}

/// Removes a kubeconfig. It may be gone or replaced; both are fine.
fn remove(path: &Path) {
    if fs::read_to_string(path).is_ok_and(|text| text.starts_with(MARK)) {
        let _ = fs::remove_file(path);
    }
}

fn create(path: &Path, text: &str) -> io::Result<()> {
    // Creates a new file, so that neither a link nor an older file's mode has an effect.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// The default path: in the user's runtime directory, else in the directory for temporary files.
pub fn default_path(runtime_dir: Option<PathBuf>, temp_dir: &Path, process: u32) -> PathBuf {
    let directory = runtime_dir.filter(|directory| directory.is_dir()).unwrap_or_else(|| temp_dir.to_owned());
    directory.join(format!("cronjob-controller-dev-{process}.kubeconfig"))
}

fn text(Access { addr, certificate, token }: &Access) -> String {
    const NAME: &str = super::requests::MANAGER;
    let certificate = BASE64.encode(certificate);
    format!(
        "{MARK}apiVersion: v1\nkind: Config\nclusters:\n- name: {NAME}\n  cluster:\n    server: https://{addr}\n    \
         certificate-authority-data: {certificate}\nusers:\n- name: {NAME}\n  user:\n    token: {token}\ncontexts:\n\
         - name: {NAME}\n  context:\n    cluster: {NAME}\n    user: {NAME}\n    namespace: default\n\
         current-context: {NAME}\n"
    )
}

#[cfg(test)]
mod tests;
