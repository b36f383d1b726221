//! The embedded API server on loopback with all kinds, and kubectl against it.

use std::path::{Path, PathBuf};
use std::process::Command;

use apimachinery::clock::SharedClock;
use apiserver::{ApiServer, Config, discovery, kinds};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A server of all kinds that holds no objects.
pub fn server(clock: SharedClock) -> ApiServer {
    ApiServer::new(Config { discovery: Some(discovery::respond), ..Config::new(clock, kinds::all()) })
}

/// Whether kubectl's line for an object applied a second time reports it as unchanged. Some objects never count as unchanged,
/// also on the real server: they have a list with defaults in its items, or a field that is always replaced.
pub fn is_unchanged(line: &str) -> bool {
    let is_written_anew = ["poddisruptionbudget.", "mutatingwebhookconfiguration.", "validatingwebhookconfiguration."];
    line.ends_with(" unchanged")
        || (line.ends_with(" configured") && is_written_anew.iter().any(|kind| line.starts_with(kind)))
}

/// A server that listens while this value lives.
pub struct Served {
    directory: TempDir,
    kubeconfig: PathBuf,
    _ends: DropGuard,
}

impl Served {
    pub async fn start(server: ApiServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let ends = CancellationToken::new();
        tokio::spawn(server.serve(listener, ends.clone()));
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = directory.path().join("kubeconfig");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\nusers: []\n\
             clusters: [{{name: x, cluster: {{server: \"http://{addr}\"}}}}]\ncontexts: [{{name: x, context: {{cluster: x}}}}]\n"
        );
        std::fs::write(&kubeconfig, text).unwrap();
        Self { directory, kubeconfig, _ends: ends.drop_guard() }
    }

    /// The path of a kubeconfig for it.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Runs kubectl; returns whether it succeeded, and its output. Paths are relative to the repository.
    pub async fn kubectl(&self, args: &[&str]) -> (bool, String) {
        let mut command = Command::new("kubectl");
        command.args(args).env("KUBECONFIG", &self.kubeconfig).env("HOME", self.directory.path());
        command.current_dir(crate::repository());
        // On another thread, since this one may be the server's.
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    }

    /// Runs kubectl; returns the non-empty lines of its output, one per object.
    pub async fn each(&self, args: &[&str]) -> Vec<String> {
        let (went_well, said) = self.kubectl(args).await;
        assert!(went_well, "kubectl {}: {said}", args.join(" "));
        said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}
