//! The kubeconfig for the server in this process, with its bearer token.
//!
//! Guarantees: only its owner can read it. A file that another program wrote is never overwritten, and links are not followed.
//! The file is removed when the value is dropped.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

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
        .and_then(|()| create(&path, &text(access)))
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
        // The file may be gone or replaced; both are fine.
        if fs::read_to_string(&self.path).is_ok_and(|text| text.starts_with(MARK)) {
            let _ = fs::remove_file(&self.path);
        }
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
mod tests {
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
}
