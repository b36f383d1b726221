//! `dev`: a cluster in this process, for users who have none.
//!
//! Guarantees: the cluster is ready in well under a second. The server listens on loopback only. Only clients with the
//! kubeconfig's token have access, and a page in a browser cannot read that token (`guard`). An obstacle (a port, a path, a
//! manifest) is reported in one sentence, and then nothing is left behind. On exit the kubeconfig is removed and, with
//! `--data-dir`, the state is on disk.
//!
//! Modules: `cluster` combines server, controllers and simulation, without sockets and with any clock. `job_controller` and
//! `kubelet` simulate; `webhooks` stands in for Services. `view` and `output` show the cluster. `manifests`, `kubeconfig` and
//! `data_dir` use the disk. `guard` checks requests before they reach the server.

pub mod cluster;
pub mod data_dir;
mod guard;
pub mod job_controller;
pub mod kubeconfig;
pub mod kubelet;
pub mod manifests;
pub mod objects;
pub mod options;
pub mod output;
pub mod requests;
mod show;
pub mod view;
pub mod webhooks;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::{SharedClock, SystemClock};
use apiserver::{ApiServer, RestoreError};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::cluster::{Cluster, ClusterError};
use self::data_dir::{DataDir, DataDirError};
use self::kubeconfig::{Access, Kubeconfig, KubeconfigError};
use self::manifests::ManifestError;
use self::options::DevConfig;
use self::output::Output;
use crate::api::ControllerKind;
use crate::cache::Informer;
use crate::server::{ServerError, Tls, TlsParameters, TlsSource, bind};

/// How often the state is checked, and saved if it has changed.
const SAVE_PERIOD: Duration = Duration::from_secs(1);
/// The time limit for open connections on exit.
const DRAIN: Duration = Duration::from_secs(2);

/// Why `dev` could not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum DevError {
    /// A manifest cannot be applied.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The state cannot be saved.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The saved state cannot be restored.
    #[error("--data-dir: {path}: {source}")]
    Restore {
        /// The file of the state.
        path: String,
        /// The cause.
        source: RestoreError,
    },
    /// The port cannot be used.
    #[error("--port: {0}")]
    Listen(#[from] ServerError),
    /// The kubeconfig cannot be written.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The output cannot be written.
    #[error("the output cannot be written: {0}")]
    Output(#[source] std::io::Error),
    /// A part of the cluster failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// Runs a cluster until `stop`. Messages go to `output`, with a live view if `live`.
///
/// # Errors
/// One sentence with the cause.
pub fn run(
    config: DevConfig,
    output: Output,
    live: bool,
    stop: CancellationToken,
) -> BoxFuture<'static, Result<(), DevError>> {
    // Boxed, so that it is compiled here, once, and not again in the binary.
    run_cluster(config, output, live, stop).boxed()
}

async fn run_cluster(config: DevConfig, output: Output, live: bool, stop: CancellationToken) -> Result<(), DevError> {
    let clock: SharedClock = Arc::new(SystemClock);
    let manifests = match config.filenames.as_slice() {
        [] => manifests::samples(&config.controllers)?,
        files => manifests::load(files)?,
    };
    let data_dir = config.data_dir.as_deref().map(DataDir::open).transpose()?.map(Arc::new);
    let bound = bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), config.port)).await?.for_dev();
    let addr = bound.local_addr();
    let hosts = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let tls = Tls::load(TlsSource::SelfSigned { hosts }, &TlsParameters::default())?;
    let certificate = tls.certificate_pem().unwrap_or_default();
    let access = Access { addr, certificate, token: guard::token() };

    let seed: u64 = rand::random();
    let server = cluster::api_server(Arc::clone(&clock), seed);
    let running = if config.controller { config.controllers.as_slice() } else { &[] };
    server.set_webhook_caller(webhooks::caller(running));
    let is_new = !data_dir.as_deref().map(|data_dir| restore(&server, data_dir)).transpose()?.unwrap_or_default();
    let kubeconfig = Kubeconfig::write(kubeconfig_path(&config), &access)?;
    manifests::apply(&server, manifests::definitions(&config.controllers), false).await?;
    // A user has changed and deleted objects in an earlier run: those stay as they are.
    if is_new {
        manifests::apply(&server, manifests, true).await?;
    } else if !config.filenames.is_empty() {
        output.say("The files of -f are not applied, because --data-dir has a state already; use kubectl apply -f.");
    }

    let ends = CancellationToken::new();
    let listening = tokio::spawn(bound.serve_https(tls, guard::router(&server, &access.token), ends.clone()));
    let news = Arc::new(show::News::new(Arc::clone(&clock), output.clone(), live));
    let simulated = kubelet::Settings { duration: config.job_duration, failure_rate: config.job_failure_rate, seed };
    let cluster_config =
        cluster::Config { clock: Arc::clone(&clock), seed, settings: simulated, controllers: running.to_vec() };
    let mut cluster = Cluster::start(&server, &cluster_config, vec![Arc::clone(&news) as _]);
    let of_jobs = config.controllers.iter().filter(|controller_kind| controller_kind.child.kind == "Job");
    let informer = |controller_kind: &ControllerKind| {
        Informer::new(server.client(), &[], seed.wrapping_add(4)).of_resource(controller_kind.parent)
    };
    let shown = show::Show {
        cron_jobs: of_jobs.map(informer).collect(),
        jobs: Arc::clone(&cluster.jobs),
        news,
        clock,
        output: output.clone(),
        header: header(addr, kubeconfig.path()),
    };
    let shown = tokio::spawn(shown.run(live, ends.clone()));

    let failure = tokio::select! {
        () = stop.cancelled() => None,
        failure = cluster.failure() => Some(failure),
        () = keep_saved(&server, data_dir.as_ref()) => None,
        () = output.failed() => None,
    };
    let stopped = cluster.stop().await;
    ends.cancel();
    let _ = shown.await;
    let _ = tokio::time::timeout(DRAIN, listening).await;
    if let Some(data_dir) = &data_dir {
        data_dir.save(&server.snapshot())?;
        output.say(&format!("The state is kept in {}.", data_dir.state_path().display()));
    }
    drop(kubeconfig);
    match (failure, output.take_failure()) {
        (Some(failure), _) => Err(failure.into()),
        (None, Some(error)) => Err(DevError::Output(error)),
        (None, None) => stopped.map_err(DevError::from),
    }
}

/// Restores the saved state, and returns whether there is one.
fn restore(server: &ApiServer, data_dir: &DataDir) -> Result<bool, DevError> {
    let Some(state) = data_dir.load()? else { return Ok(false) };
    let path = || data_dir.state_path().display().to_string();
    server.restore(&state).map(|()| true).map_err(|source| DevError::Restore { path: path(), source })
}

fn kubeconfig_path(config: &DevConfig) -> std::path::PathBuf {
    config.kubeconfig.clone().unwrap_or_else(|| {
        let runtime_dir = std::env::var_os("XDG_RUNTIME_DIR").map(Into::into);
        kubeconfig::default_path(runtime_dir, &std::env::temp_dir(), std::process::id())
    })
}

fn header(addr: SocketAddr, kubeconfig: &Path) -> [String; 2] {
    let path = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
    [
        format!("Kubernetes API on https://{addr}, for this machine only. In another terminal:"),
        format!("  export KUBECONFIG={}; kubectl get cronjobs,jobs,pods", shell_word(&path.to_string_lossy())),
    ]
}

/// Quotes `text` as one shell word.
fn shell_word(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Saves the state whenever it has changed, forever.
async fn keep_saved(server: &ApiServer, data_dir: Option<&Arc<DataDir>>) {
    let Some(data_dir) = data_dir else { return std::future::pending().await };
    let (mut saved, mut complained) = (Value::Null, false);
    loop {
        tokio::time::sleep(SAVE_PERIOD).await;
        let state = server.snapshot();
        let revision = state["revision"].clone();
        if revision == saved {
            continue;
        }
        let to = Arc::clone(data_dir);
        // Writing to disk may block.
        match tokio::task::spawn_blocking(move || to.save(&state)).await {
            Ok(Ok(())) => (saved, complained) = (revision, false),
            Ok(Err(error)) if !complained => {
                warn!(%error, "cannot save the state of the cluster; trying again");
                complained = true;
            }
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
