//! The metrics of the process, with kube-controller-manager's names.
//!
//! Guarantees:
//! - Every series that kube-controller-manager also has keeps its name, type, help text, label names and bucket bounds,
//!   including the digits of each `le`. To Prometheus a bound with other digits is another series, and dashboards and alerts
//!   for the in-tree controller must continue to work.
//! - Nothing is global. Each group of metrics is created by registering it with a registry that the caller owns. So two
//!   controllers can run in one process, and a test sees only its own metrics.
//! - A histogram is written from one snapshot: its `+Inf` bucket always equals its `_count`, and buckets never decrease, also
//!   while observations race with the scrape.
//! - Series that upstream does not have use names of their own and never change the meaning of an upstream name.

pub mod exposition;
pub mod family;
pub mod process;

use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts};

pub use exposition::{CONTENT_TYPE, encode};
pub use process::ProcessCollector;
/// The registry that metrics are registered with and [`encode`]d from.
pub use prometheus::Registry;

/// Bucket bounds, in seconds, of the durations of requests, as in upstream's
/// `component-base/metrics/prometheus/restclient/metrics.go`.
const REQUEST_SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// Bucket bounds, in seconds, of the finer histogram of the creation skew: dense around one second and below, where
/// upstream's histogram has a single bucket.
const SKEW_SECONDS: [f64; 15] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0];

/// How a Job can end: the values of the label `result`.
pub const RESULTS: [&str; 2] = ["succeeded", "failed"];

/// Bucket bounds, in seconds, of how long a Job takes: from a second to a day.
const RUN_SECONDS: [f64; 13] =
    [1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0, 86_400.0];

/// Bucket bounds, in seconds, of the time to the start of a Job. `startTime` has whole seconds.
const START_SECONDS: [f64; 11] = [1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3_600.0];

/// Why a group of metrics could not be registered.
#[derive(Debug, thiserror::Error)]
#[error("register metric {metric}: {source}")]
pub struct MetricsError {
    /// The name of the first metric that was refused.
    pub metric: String,
    /// The error of the registry or the metric's constructor.
    #[source]
    pub source: prometheus::Error,
}

impl MetricsError {
    /// An error about the metric of that name.
    pub fn new(metric: &str, source: prometheus::Error) -> Self {
        Self { metric: metric.to_owned(), source }
    }
}

/// `count` bucket bounds: the first is `start`, and each further one is the one before times `factor`.
///
/// Multiplied step by step like upstream's `prometheus.ExponentialBuckets`. The rounding of each step is visible in the `le`
/// labels (`9.999999999999999e-06`), and a power would round differently.
pub fn exponential_buckets(start: f64, factor: f64, count: usize) -> Vec<f64> {
    std::iter::successors(Some(start), |bound| Some(bound * factor)).take(count).collect()
}

/// The controller's own metrics, with the prefix `cronjob_controller_`.
#[derive(Debug, Clone)]
pub struct ControllerMetrics {
    /// Seconds from a slot to the creation of its Job; upstream's histogram
    /// (`pkg/controller/cronjob/metrics/metrics.go`).
    pub job_creation_skew_duration: Histogram,
    /// Seconds from a slot to the server's response by this process's clock, in finer buckets, under a separate name.
    pub job_creation_skew: Histogram,
    /// Seconds that a Job took which ended, by `result`.
    pub job_run_duration: HistogramVec,
    /// Seconds from when a slot was due to the start of its Job by the Job controller.
    pub cronjob_start_delay: Histogram,
    /// Seconds from when a slot was due until the status of its Job had the first ready Pod.
    pub cronjob_pod_delay: Histogram,
    /// Syncs that panicked, were caught and backed off.
    pub sync_panics_total: IntCounter,
    /// Objects from the API server that could not be decoded and were left out, by `kind`.
    pub malformed_objects_total: IntCounterVec,
    /// Jobs that another controller created for CronJobs of this process.
    pub external_jobs_total: IntCounter,
    /// Events that were not written, by `reason`.
    pub events_discarded_total: IntCounterVec,
    /// Other instances that this one should not have beside it, by `reason`.
    pub instance_conflicts: IntGaugeVec,
}

impl ControllerMetrics {
    /// Records that a Job took so long.
    pub fn job_ended(&self, has_succeeded: bool, seconds: f64) {
        let [succeeded, failed] = RESULTS;
        self.job_run_duration.with_label_values(&[if has_succeeded { succeeded } else { failed }]).observe(seconds);
    }

    /// Makes the metrics and registers them with `registry`.
    ///
    /// # Errors
    /// When one of the names is taken in `registry`.
    pub fn register(registry: &Registry) -> Result<Self, MetricsError> {
        Ok(Self {
            job_creation_skew_duration: histogram(
                registry,
                "cronjob_controller_job_creation_skew_duration_seconds",
                "[STABLE] Time between when a cronjob is scheduled to be run, and when the corresponding job is created",
                exponential_buckets(1.0, 2.0, 10),
            )?,
            job_creation_skew: histogram(
                registry,
                "cronjob_controller_job_creation_skew_seconds",
                "[ALPHA] Time between when a cronjob is due and the creation of its job, in buckets finer than a second.",
                SKEW_SECONDS.to_vec(),
            )?,
            job_run_duration: {
                let name = "cronjob_controller_job_run_duration_seconds";
                let help =
                    "[ALPHA] How long the jobs of cronjobs took that ended, from start to end, partitioned by result.";
                let opts = HistogramOpts::new(name, help).buckets(RUN_SECONDS.to_vec());
                let durations = add(registry, name, HistogramVec::new(opts, &["result"]))?;
                for result in RESULTS {
                    durations.with_label_values(&[result]);
                }
                durations
            },
            cronjob_start_delay: histogram(
                registry,
                "cronjob_controller_cronjob_start_delay_seconds",
                "[ALPHA] Time between when a cronjob is due and when the job controller started its job.",
                START_SECONDS.to_vec(),
            )?,
            cronjob_pod_delay: histogram(
                registry,
                "cronjob_controller_cronjob_pod_delay_seconds",
                "[ALPHA] Time between when a cronjob is due and when the status of its job shows the first ready pod.",
                START_SECONDS.to_vec(),
            )?,
            sync_panics_total: {
                let name = "cronjob_controller_sync_panics_total";
                let help = "[ALPHA] Number of syncs that panicked, were caught and will be retried.";
                add(registry, name, IntCounter::new(name, help))?
            },
            malformed_objects_total: counter_vec(
                registry,
                "cronjob_controller_malformed_objects_total",
                "[ALPHA] Number of objects that could not be decoded and were left out, partitioned by kind.",
                &["kind"],
            )?,
            external_jobs_total: {
                let name = "cronjob_controller_external_jobs_total";
                let help = "[ALPHA] Number of jobs that another controller created for slots of cronjobs that this one works on.";
                add(registry, name, IntCounter::new(name, help))?
            },
            events_discarded_total: counter_vec(
                registry,
                "cronjob_controller_events_discarded_total",
                "[ALPHA] Number of events that were not written, partitioned by the reason for discarding them.",
                &["reason"],
            )?,
            instance_conflicts: {
                let name = "cronjob_controller_instance_conflicts";
                let help = "[ALPHA] Number of other instances that work on the same cronjobs (namespaces), or that hold the lease \
                            of this one and work elsewhere (lease).";
                add(registry, name, IntGaugeVec::new(Opts::new(name, help), &["reason"]))?
            },
        })
    }
}

/// Registers `cronjob_controller_time_zone_data_info`, which is always 1. Its label is the version of the IANA time zone
/// database that schedules use.
///
/// # Errors
/// When the name is taken in `registry`.
pub fn register_time_zone_data(registry: &Registry, version: &str) -> Result<(), MetricsError> {
    let name = "cronjob_controller_time_zone_data_info";
    let help = "[ALPHA] The version of the IANA time zone database by which schedules run.";
    let info = add(registry, name, IntGaugeVec::new(Opts::new(name, help), &["version"]))?;
    info.with_label_values(&[version]).set(1);
    Ok(())
}

/// Metrics of the requests to the API server, with upstream's names
/// (`component-base/metrics/prometheus/restclient/metrics.go`).
#[derive(Debug, Clone)]
pub struct RestClientMetrics {
    requests_total: IntCounterVec,
    request_duration: HistogramVec,
    rate_limiter_duration: HistogramVec,
}

impl RestClientMetrics {
    /// Makes the metrics and registers them with `registry`.
    ///
    /// # Errors
    /// When one of the names is taken in `registry`.
    pub fn register(registry: &Registry) -> Result<Self, MetricsError> {
        Ok(Self {
            requests_total: counter_vec(
                registry,
                "rest_client_requests_total",
                "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.",
                &["code", "method", "host"],
            )?,
            request_duration: histogram_vec(
                registry,
                "rest_client_request_duration_seconds",
                "[ALPHA] Request latency in seconds. Broken down by verb, and host.",
            )?,
            rate_limiter_duration: histogram_vec(
                registry,
                "rest_client_rate_limiter_duration_seconds",
                "[ALPHA] Client side rate limiter latency in seconds. Broken down by verb, and host.",
            )?,
        })
    }

    /// Counts one finished request. `code` is the HTTP status, or `<error>` (client-go's word) when there was no
    /// answer; `method` the HTTP method; `host` the server's host and port.
    pub fn increment_requests(&self, code: &str, method: &str, host: &str) {
        self.requests_total.with_label_values(&[code, method, host]).inc();
    }

    /// Records how long the server took to answer a request. `verb` is the HTTP method.
    pub fn observe_request_duration(&self, verb: &str, host: &str, took: Duration) {
        self.request_duration.with_label_values(&[verb, host]).observe(took.as_secs_f64());
    }

    /// Records how long a request waited for this process's rate limiter.
    pub fn observe_rate_limiter_duration(&self, verb: &str, host: &str, waited: Duration) {
        self.rate_limiter_duration.with_label_values(&[verb, host]).observe(waited.as_secs_f64());
    }
}

/// Metrics of leader election, with upstream's names
/// (`component-base/metrics/prometheus/clientgo/leaderelection/metrics.go`).
#[derive(Debug, Clone)]
pub struct LeaderElectionMetrics {
    master_status: IntGaugeVec,
    slowpath_total: IntCounterVec,
}

impl LeaderElectionMetrics {
    /// Makes the metrics and registers them with `registry`.
    ///
    /// # Errors
    /// When one of the names is taken in `registry`.
    pub fn register(registry: &Registry) -> Result<Self, MetricsError> {
        let name = "leader_election_master_status";
        let help = "[ALPHA] Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 \
                    indicates master. 'name' is the string used to identify the lease. Please make sure to group by name.";
        Ok(Self {
            master_status: add(registry, name, IntGaugeVec::new(Opts::new(name, help), &["name"]))?,
            slowpath_total: counter_vec(
                registry,
                "leader_election_slowpath_total",
                "[ALPHA] Total number of slow path exercised in renewing leader leases. 'name' is the string used to \
                 identify the lease. Please make sure to group by name.",
                &["name"],
            )?,
        })
    }

    /// This process leads with the lease `name`.
    pub fn on(&self, name: &str) {
        self.master_status.with_label_values(&[name]).set(1);
    }

    /// This process does not lead with the lease `name`.
    pub fn off(&self, name: &str) {
        self.master_status.with_label_values(&[name]).set(0);
    }

    /// A renewal of the lease `name` had to read it first.
    pub fn slowpath_exercised(&self, name: &str) {
        self.slowpath_total.with_label_values(&[name]).inc();
    }
}

/// Registers a clone of a new metric; an error names the metric.
pub(crate) fn add<M>(registry: &Registry, name: &str, made: prometheus::Result<M>) -> Result<M, MetricsError>
where
    M: Collector + Clone + 'static,
{
    let metric = made.map_err(|source| MetricsError::new(name, source))?;
    registry.register(Box::new(metric.clone())).map_err(|source| MetricsError::new(name, source))?;
    Ok(metric)
}

pub(crate) fn histogram(
    registry: &Registry,
    name: &str,
    help: &str,
    buckets: Vec<f64>,
) -> Result<Histogram, MetricsError> {
    add(registry, name, Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets)))
}

fn histogram_vec(registry: &Registry, name: &str, help: &str) -> Result<HistogramVec, MetricsError> {
    let opts = HistogramOpts::new(name, help).buckets(REQUEST_SECONDS.to_vec());
    add(registry, name, HistogramVec::new(opts, &["verb", "host"]))
}

pub(crate) fn counter_vec(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntCounterVec, MetricsError> {
    add(registry, name, IntCounterVec::new(Opts::new(name, help), labels))
}
