//! `dev`: a cluster in this process, for users who have none.
//!
//! Guarantees: the cluster is ready in well under a second. The server listens on loopback only. Only clients with the
//! kubeconfig's token have access, and a page in a browser cannot read that token (`guard`). An obstacle (a port, a path, a
//! manifest) is reported in one sentence, and then nothing is left behind. On exit the kubeconfig is removed and, with
//! `--data-dir`, the state is on disk.
//!
//! Modules: `cluster` combines server, controllers and simulation, without sockets and with any clock. `job_controller` and
//! `kubelet` simulate; `webhooks` stands in for Services. `view`, `live_terminal` and `output` show the cluster. `manifests`, `kubeconfig` and
//! `data_dir` use the disk. `virtual_time` runs the cluster at another time than now. `guard` checks requests before they reach the server.

pub mod cluster;
pub mod data_dir;
pub(crate) mod guard;
pub mod job_controller;
pub mod kubeconfig;
pub mod kubelet;
mod lease;
pub mod live_terminal;
pub mod manifests;
pub mod objects;
pub mod options;
pub mod output;
pub mod requests;
mod show;
pub mod view;
mod virtual_time;
pub mod webhooks;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::{Clock as _, SharedClock, SystemClock};
use apiserver::ApiServer;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::cluster::{Cluster, ClusterError};
use self::data_dir::{DataDir, DataDirError, Saving};
use self::kubeconfig::{Access, Kubeconfig, KubeconfigError};
use self::manifests::{Manifest, ManifestError};
use self::options::DevConfig;
use self::output::Output;
use self::view::Judge;
use self::virtual_time::VirtualTime;
use crate::api::batch_v1::CronJob;
use crate::api::policy::PolicyOptions;
use crate::api::{ControllerKind, ResourceKind};
use crate::cache::Informer;
use crate::server::{ServerError, Tls, TlsParameters, TlsSource, bind};
use crate::terminal::shell_word;

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
    /// The port cannot be used.
    #[error("--port: {0}")]
    Listen(#[from] ServerError),
    /// The kubeconfig cannot be written.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The output cannot be written.
    #[error("the output cannot be written: {0}")]
    Output(#[source] std::io::Error),
    /// There is no thread for another time than the machine's.
    #[error("--at, --speed: {0}")]
    VirtualTime(#[source] std::io::Error),
    /// A part of the cluster failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// A page in a browser: its newest link, which may be replaced, and the work that serves it.
pub type Page = (watch::Receiver<String>, BoxFuture<'static, ()>);

/// Starts a page on a cluster with this kubeconfig, until the token is cancelled.
pub type StartPage =
    fn(Client, PathBuf, SharedClock, CancellationToken) -> BoxFuture<'static, Result<Page, ServerError>>;

/// Runs a cluster until `stop`. Messages go to `output`, with a live view if `live`, in which `judge` says the state of a CronJob, and
/// with a page if there is one to start.
///
/// # Errors
/// One sentence with the cause.
pub fn run(
    config: DevConfig,
    output: Output,
    live: bool,
    start_page: Option<StartPage>,
    judge: Judge,
    stop: CancellationToken,
) -> BoxFuture<'static, Result<(), DevError>> {
    // Boxed, so that it is compiled here, once, and not again in the binary.
    run_cluster(config, output, live, start_page, judge, stop).boxed()
}

async fn run_cluster(
    config: DevConfig,
    output: Output,
    live: bool,
    start_page: Option<StartPage>,
    judge: Judge,
    stop: CancellationToken,
) -> Result<(), DevError> {
    let virtual_time = virtual_time(&config)?;
    let clock = virtual_time.as_ref().map_or_else(|| Arc::new(SystemClock) as SharedClock, VirtualTime::clock);
    let manifests = match config.filenames.as_slice() {
        [] => manifests::samples(&config.controllers)?,
        files => manifests::load(files)?,
    };
    let data_dir = config.data_dir.as_deref().map(DataDir::open).transpose()?;
    let bound = bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), config.port)).await?.for_dev();
    let addr = bound.local_addr();
    let tls = loopback_certificate()?;
    let access = Access { addr, certificate: tls.certificate_pem().unwrap_or_default(), token: guard::token() };

    let seed: u64 = rand::random();
    let server = cluster::api_server(Arc::clone(&clock), seed);
    let running: &[_] = if config.controller { &config.controllers } else { &[] };
    server.set_webhook_caller(webhooks::caller(running));
    let is_found = data_dir.as_ref().map_or(Ok(false), |data_dir| data_dir.restore(&server))?;
    let kubeconfig = Kubeconfig::write(kubeconfig_path(&config), &access)?;
    if !apply(&server, &config.controllers, manifests, is_found).await? && !config.filenames.is_empty() {
        output.say("The files of -f are not applied, because --data-dir has a state already; use kubectl apply -f.");
    }

    lease::hold(&server, running, &clock).await?;

    // Manifests that cannot be applied leave no state behind.
    let saving = data_dir.as_ref().map_or_else(|| Ok(Saving::none(&server)), |data_dir| data_dir.record(&server))?;

    let ends = CancellationToken::new();
    let listening = tokio::spawn(bound.serve_https(tls, guard::router(&server, &access.token), ends.clone()));
    let cron_jobs = cron_jobs(&server, &config.controllers, seed.wrapping_add(4));
    let stores = cron_jobs.iter().map(Informer::store).collect();
    let news = Arc::new(show::News::new(Arc::clone(&clock), output.clone(), live, stores));
    let settings = kubelet::Settings { duration: config.job_duration, failure_rate: config.job_failure_rate, seed };
    let cluster_config = cluster::Config { clock: Arc::clone(&clock), seed, settings, controllers: running.to_vec() };
    // Requests from outside and the view stay on this runtime, so that their timeouts are real.
    let entered = virtual_time.as_ref().map(VirtualTime::enter);
    let mut cluster = Cluster::start(&server, &cluster_config, vec![Arc::clone(&news) as _]);
    drop(entered);
    let shown = show::Show {
        cron_jobs,
        jobs: Informer::new(server.client(), &[], seed.wrapping_add(5)),
        namespaces: Informer::new(server.client(), &[], seed.wrapping_add(6)),
        judge,
        news,
        header: header(addr, kubeconfig.path(), running),
        links: serve_page(start_page, server.client(), kubeconfig.path(), &clock, &ends).await?,
        clock,
        output: output.clone(),
    };
    // A view that has ended leaves its terminal to the messages of the end.
    let view_ends = ends.child_token();
    let shown = tokio::spawn(shown.run(live, view_ends.clone(), stop.clone()));

    let failure = tokio::select! {
        () = stop.cancelled() => None,
        failure = cluster.failure() => Some(failure),
        () = saving.run() => None,
        () = output.failed() => None,
    };
    view_ends.cancel();
    let _ = shown.await;
    let stopped = cluster.stop().await;
    ends.cancel();
    let _ = tokio::time::timeout(DRAIN, listening).await;
    if let Some(data_dir) = &data_dir {
        saving.finish(data_dir)?;
        output.say(&format!("The state is kept in {}.", data_dir.log_path().display()));
    }
    drop(kubeconfig);
    match (failure, output.take_failure()) {
        (Some(failure), _) => Err(failure.into()),
        (None, Some(error)) => Err(DevError::Output(error)),
        (None, None) => stopped.map_err(DevError::from),
    }
}

/// A certificate of its own for the addresses of this machine.
fn loopback_certificate() -> Result<Tls, DevError> {
    let hosts = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    Ok(Tls::load(TlsSource::SelfSigned { hosts }, &TlsParameters::default())?)
}

/// The CronJobs of each kind that starts Jobs, as the controller reads them.
fn cron_jobs(server: &ApiServer, controllers: &[ControllerKind], seed: u64) -> Vec<Informer<CronJob>> {
    let of_jobs = controllers.iter().filter(|controller_kind| controller_kind.child.kind == "Job");
    let informer = |controller_kind: &ControllerKind| {
        let policies = PolicyOptions::default();
        let informer = Informer::new(server.client(), &[], seed).of_resource(controller_kind.parent);
        informer.selecting(move |cron_job: &mut CronJob| {
            policies.apply(cron_job);
            true
        })
    };
    of_jobs.map(informer).collect()
}

/// Serves the page until `ends`, and returns its links.
async fn serve_page(
    start: Option<StartPage>,
    client: Client,
    kubeconfig: &Path,
    clock: &SharedClock,
    ends: &CancellationToken,
) -> Result<Option<watch::Receiver<String>>, DevError> {
    let Some(start) = start else { return Ok(None) };
    let (links, work) = start(client, kubeconfig.to_owned(), Arc::clone(clock), ends.clone()).await?;
    tokio::spawn(work);
    Ok(Some(links))
}

/// Applies the kinds of the controllers and, in a new cluster, the manifests; returns whether those were applied.
async fn apply(
    server: &ApiServer,
    controllers: &[ControllerKind],
    manifests: Vec<Manifest>,
    is_found: bool,
) -> Result<bool, ManifestError> {
    manifests::apply(server, manifests::definitions(controllers), false).await?;
    // A user has changed and deleted objects in an earlier run: those stay as they are.
    if !is_found {
        manifests::apply(server, manifests, true).await?;
    }
    Ok(!is_found)
}

/// The time of `--at` and `--speed`; `None` for the machine's.
fn virtual_time(config: &DevConfig) -> Result<Option<VirtualTime>, DevError> {
    let (at, speed) = match (config.at, config.speed) {
        (None, 1) => return Ok(None),
        (at, speed) => (at.unwrap_or_else(|| SystemClock.now()), speed),
    };
    VirtualTime::start(at, speed).map(Some).map_err(DevError::VirtualTime)
}

fn kubeconfig_path(config: &DevConfig) -> PathBuf {
    config.kubeconfig.clone().unwrap_or_else(|| {
        let runtime_dir = std::env::var_os("XDG_RUNTIME_DIR").map(Into::into);
        kubeconfig::default_path(runtime_dir, &std::env::temp_dir(), std::process::id())
    })
}

fn header(addr: SocketAddr, kubeconfig: &Path, running: &[ControllerKind]) -> show::Header {
    let path = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
    // The kinds whose controllers run, as kubectl names them.
    let parents: Vec<String> = running.iter().map(|controller_kind| resource_name(controller_kind.parent)).collect();
    let parents = if parents.is_empty() { vec!["cronjobs".to_owned()] } else { parents };
    let controllers = running.iter().map(|controller_kind| controller_kind.name).collect::<Vec<_>>().join(", ");
    show::Header {
        controllers: if running.is_empty() {
            "no controller".to_owned()
        } else {
            format!("controllers: {controllers}")
        },
        title: format!("Kubernetes API on https://{addr}, for this machine only"),
        commands: [
            format!("export KUBECONFIG={}", shell_word(&path.to_string_lossy())),
            format!("kubectl get {},jobs,pods", parents.join(",")),
        ],
    }
}

/// A resource as kubectl's command line has it: with its group where another group has the same name.
fn resource_name(kind: ResourceKind) -> String {
    if kind.group == "batch" { kind.plural.to_owned() } else { format!("{}.{}", kind.plural, kind.group) }
}

#[cfg(test)]
mod tests;
