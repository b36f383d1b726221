//! The command line: kube-controller-manager's flags, parsed and validated.
//!
//! Guarantees: [`parse`] is pure: [`Environment`] supplies what it needs from the process. A [`Config`] that it returns
//! is complete and consistent, so that no other code validates a flag again. All faults are reported at once, each as
//! one sentence that names the flag, the value and the allowed values.
//!
//! Names, meanings and syntax are those of kube-controller-manager (`cmd/kube-controller-manager/app/options`,
//! `component-base/config/options`, `spf13/pflag`). Where a default differs, the constant here says why.

mod configz;
pub(crate) mod controllers;
pub(crate) mod flags;
pub(crate) mod go_syntax;
pub(crate) mod resolve;
mod secure;
#[cfg(test)]
mod tests;
mod webhook;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use schedule::{Zone, local_zone};

pub use self::secure::{AuthenticationConfig, AuthorizationConfig, ClientCaConfig, SecureServing};
pub use self::webhook::{SelfSignedWebhook, WebhookCertificate, WebhookConfig};
pub use crate::api::Publish;
pub use crate::api::policy::PolicyOptions;
pub use crate::api::{ControllerKind, Manage};

/// The program's name, in every message on stderr and in the user agent.
pub const PROGRAM: &str = "cronjob-controller";

/// The default of `--concurrent-cronjob-syncs`. With upstream's 5, a burst queues up behind five round trips. A worker
/// here is a task that mostly waits for the API server and costs a few kilobytes. From 16 to 64 workers, a burst of
/// 2,000 takes about as long, and with 128 it takes longer (`make bench-burst BURST_ARGS=--sweep`). The default is the
/// largest of the equal values, because a distant API server needs more.
const DEFAULT_CONCURRENT_CRONJOB_SYNCS: &str = "64";

/// Where the Lease lives when the process does not run in a Pod.
const DEFAULT_LEASE_NAMESPACE: &str = "kube-system";

/// The command that the controller's command line requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Run the controller.
    Run(Box<Config>),
    /// Print this text, the help, to stdout and exit with 0.
    Help(String),
    /// Print this line, name and version, to stdout and exit with 0.
    Version(String),
}

/// Everything that the command line configures.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The kubeconfig file; `None` without the flag.
    pub kubeconfig: Option<PathBuf>,
    /// The API server's address, which overrides the kubeconfig's.
    pub master: Option<String>,
    /// The controllers that run, at least one, in order.
    pub controllers: Vec<ControllerKind>,
    /// Which batch/v1 CronJobs the controller manages.
    pub manage: Manage,
    /// Whether policy annotations count, and the seed of their offsets.
    pub policies: PolicyOptions,
    /// Which annotations are written about each CronJob.
    pub publish: Publish,
    /// The number of workers.
    pub concurrent_cronjob_syncs: NonZeroUsize,
    /// The client-side limit on requests; `None` is no limit.
    pub kube_api: Option<RateLimit>,
    /// Leader election; `None` is off.
    pub leader_election: Option<LeaderElectionConfig>,
    /// The HTTPS listener; `None` is off.
    pub secure: Option<SecureServing>,
    /// The plain listener for metrics; `None` is off.
    pub metrics_addr: Option<SocketAddr>,
    /// The plain listener for health checks; `None` is off.
    pub health_addr: Option<SocketAddr>,
    /// The admission webhooks; `None` is off.
    pub webhook: Option<WebhookConfig>,
    /// The namespaces to work in, sorted and unique; empty means all.
    pub namespaces: Vec<String>,
    /// The largest number of CronJobs with metrics of their own; `None` is none.
    pub cronjob_metrics: Option<NonZeroUsize>,
    /// klog's verbosity, 0 to 10.
    pub verbosity: u8,
    /// The format of log lines.
    pub logging_format: LogFormat,
}

impl Config {
    /// The configuration of a controller inside another process, which has its own client: no listeners, no leader
    /// election, all namespaces.
    pub fn embedded(concurrent_cronjob_syncs: NonZeroUsize) -> Self {
        Self {
            kubeconfig: None,
            master: None,
            controllers: vec![ControllerKind::CronJob],
            manage: Manage::All,
            policies: PolicyOptions::default(),
            publish: Publish::default(),
            concurrent_cronjob_syncs,
            kube_api: None,
            leader_election: None,
            secure: None,
            metrics_addr: None,
            health_addr: None,
            webhook: None,
            namespaces: Vec::new(),
            cronjob_metrics: None,
            verbosity: 0,
            logging_format: LogFormat::Text,
        }
    }

    /// Which objects of that kind the controller manages: all of them where kube-controller-manager has no such
    /// controller.
    pub fn manage_of(&self, controller_kind: ControllerKind) -> Manage {
        if controller_kind.is_in_tree { self.manage } else { Manage::All }
    }
}

/// A token bucket: `burst` requests at once, refilled with `qps` a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    /// Requests per second; finite and above zero.
    pub qps: f64,
    /// The bucket's size in requests.
    pub burst: NonZeroU32,
}

/// The flags of leader election. `lease_duration > renew_deadline > 1.2 * retry_period > 0` holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderElectionConfig {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease, and the prefix of the names of several.
    pub name: String,
    /// How long other candidates wait after the last renewal they saw.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it stops leading.
    pub renew_deadline: Duration,
    /// The time between two attempts.
    pub retry_period: Duration,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl LogFormat {
    /// Reads the value of `--logging-format`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// An invalid command line. Displays as one sentence per line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .sentences.join("\n"))]
pub struct UsageError {
    sentences: Vec<String>,
}

impl UsageError {
    /// An error with a single fault.
    pub(crate) fn one(sentence: String) -> Self {
        Self { sentences: vec![sentence] }
    }

    /// One sentence per fault, in the order of the flags in `--help`.
    pub fn sentences(&self) -> &[String] {
        &self.sentences
    }
}

/// What the flags' defaults need from the process.
pub trait Environment {
    /// The namespace of the Pod in which the process runs; `None` outside a Pod.
    fn pod_namespace(&self) -> Option<String>;

    /// Whether the process runs in a Pod, which has a service account's configuration.
    fn is_in_cluster(&self) -> bool {
        false
    }

    /// The process's time zone.
    fn local_zone(&self) -> Zone {
        local_zone().0
    }

    /// The directory for temporary files.
    fn temp_dir(&self) -> PathBuf {
        std::env::temp_dir()
    }
}

/// The real process: the variable `POD_NAMESPACE` (the downward API), else the service account's own namespace file.
/// Matches the order of client-go's `inClusterClientConfig.Namespace`.
#[derive(Debug, Default, Clone, Copy)]
pub struct ProcessEnvironment;

const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

impl Environment for ProcessEnvironment {
    fn pod_namespace(&self) -> Option<String> {
        std::env::var("POD_NAMESPACE")
            .ok()
            .or_else(|| std::fs::read_to_string(NAMESPACE_FILE).ok())
            .map(|text| text.trim().to_owned())
            .filter(|namespace| !namespace.is_empty())
    }

    /// The variable that every Pod has.
    fn is_in_cluster(&self) -> bool {
        std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
    }
}

/// Parses the controller's command line; `args` begins with the program's name, as [`std::env::args_os`] does.
///
/// `--help` takes precedence over `--version`, and both over the validation of values, as upstream.
///
/// # Errors
/// Every fault of the command line, one sentence each. Exit with 2.
pub fn parse<I, S>(args: I, env: &dyn Environment) -> Result<Command, UsageError>
where
    I: IntoIterator<Item = S>,
    S: Into<OsString>,
{
    let raw = flags::read(args.into_iter().map(Into::into))?;
    if raw.help {
        return Ok(Command::Help(flags::help()));
    }
    if resolve::version_asked(&raw)? {
        return Ok(Command::Version(version_line()));
    }
    resolve::resolve(&raw, env).map(|config| Command::Run(Box::new(config)))
}

/// Name and version.
pub(crate) fn version_line() -> String {
    format!("{PROGRAM} v{}", env!("CARGO_PKG_VERSION"))
}
