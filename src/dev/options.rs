//! The command line of `dev`.
//!
//! Guarantees: the syntax is that of the controller's own flags (see `options`). Every error is one sentence with the flag, the
//! value and what is allowed; all errors are reported at once. Parsing touches neither disk nor network.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{ArgAction, Parser};

use crate::options::go_syntax::{parse_duration, parse_float, parse_int};
use crate::options::resolve::{Faults, path};
use crate::options::{ControllerKind, LogFormat, UsageError, controllers, flags};

/// The most that --speed can be: an hour takes a second.
const FASTEST: i64 = 3600;

/// The parsed command line of `dev`.
#[derive(Debug, Clone, PartialEq)]
pub struct DevConfig {
    /// Files and directories with manifests; empty for the embedded samples.
    pub filenames: Vec<PathBuf>,
    /// The loopback port of the API server; 0 for a free one.
    pub port: u16,
    /// The path of the kubeconfig; `None` for a file that is removed on exit.
    pub kubeconfig: Option<PathBuf>,
    /// How long a simulated container runs, unless its Pod says otherwise.
    pub job_duration: Duration,
    /// The probability from 0 to 1 with which a simulated container fails, unless its Pod says otherwise.
    pub job_failure_rate: f64,
    /// The directory of the cluster's state; `None` discards the state on exit.
    pub data_dir: Option<PathBuf>,
    /// The cluster's time at the start; `None` for the machine's.
    pub at: Option<DateTime<Utc>>,
    /// How fast the cluster's time runs: 1 as fast as the machine's.
    pub speed: u32,
    /// Whether the controllers run in this process.
    pub controller: bool,
    /// The controllers, whose kinds the cluster serves from the start.
    pub controllers: Vec<ControllerKind>,
    /// klog's verbosity, 0 to 10.
    pub verbosity: u8,
    /// The format of log lines.
    pub logging_format: LogFormat,
}

/// A request by command line.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Run a cluster.
    Run(Box<DevConfig>),
    /// Print the help text.
    Help(String),
}

/// The text of every flag; see `resolve` for its meaning.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "cronjob-controller dev",
    about = "Runs an in-memory Kubernetes API server, the CronJob controller and simulated Jobs in this process.",
    long_about = "Runs an in-memory Kubernetes API server, the CronJob controller and simulated Jobs in this process.\n\n\
        The API server listens on 127.0.0.1 only and requires the token of its kubeconfig. Containers do not really run: each\n\
        takes --job-duration and then succeeds. Annotations on a Job, or on its Pod template, change that:\n  \
        cronjob-controller.dev/duration: 45s    how long the container runs\n  \
        cronjob-controller.dev/outcome: fail    it fails (or: succeed)",
    override_usage = "cronjob-controller dev [flags]"
)]
struct RawFlags {
    /// A manifest (YAML or JSON), a directory of them, or - for stdin, to apply to a new cluster, which is one without a state
    /// in --data-dir; may be repeated and takes commas [default: samples for the controllers]
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-", action = ArgAction::Append, verbatim_doc_comment)]
    filename: Vec<String>,

    /// The port of the API server on 127.0.0.1. 0 takes a free one.
    #[arg(long, value_name = "INT", default_value = "0")]
    port: String,

    /// Where to write the kubeconfig. Removed at the end [default: a new file for this run]
    #[arg(long, value_name = "FILE", default_value = "")]
    kubeconfig: String,

    /// How long a simulated container runs.
    #[arg(long, value_name = "DURATION", default_value = "3s")]
    job_duration: String,

    /// How often a simulated container fails, from 0 (never) to 1 (always).
    #[arg(long, value_name = "FLOAT", default_value = "0")]
    job_failure_rate: String,

    /// A directory in which the cluster's state survives a restart [default: the state is discarded]
    #[arg(long, value_name = "DIR", default_value = "")]
    data_dir: String,

    /// The cluster's time at the start, such as 2027-03-27T22:00:00Z; not with --data-dir [default: now]
    #[arg(long, value_name = "TIME", default_value = "")]
    at: String,

    /// How fast the cluster's time runs. With 600, a night takes a minute. Not with --data-dir
    #[arg(long, value_name = "INT", default_value = "1")]
    speed: String,

    /// Run the controllers in this process. With false, only the API server runs, for a controller process of your own.
    #[arg(long, value_name = "BOOL", default_value = "true")]
    controller: String,

    /// The controllers: cronjob (batch/v1 CronJobs), tutorial (the CronJobs of the kubebuilder book), apiexample; "-name"
    /// turns one off and "*" all others on. Their CustomResourceDefinitions exist from the start, and dev answers the webhooks
    /// of tutorial, whatever Service a configuration names. May be repeated and takes commas
    #[arg(long, value_name = "STRINGS", action = ArgAction::Append, default_value = "cronjob", verbatim_doc_comment)]
    controllers: Vec<String>,

    /// The format of log lines: "text" or "json".
    #[arg(long, value_name = "STRING", default_value = "text")]
    logging_format: String,

    /// How much to log: 0 (what an operator needs) to 10 (everything).
    #[arg(short, long, value_name = "LEVEL", default_value = "0")]
    v: String,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    help: bool,
}

/// The flags as clap knows them.
pub(crate) fn command() -> clap::Command {
    flags::command::<RawFlags>()
}

/// Parses the arguments of `dev`; `args` begins with the program's name.
pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Request, UsageError> {
    let mut command = command();
    let raw: RawFlags = flags::matches(&mut command, args)?;
    if raw.help {
        return Ok(Request::Help(command.render_long_help().to_string()));
    }
    resolve(&raw).map(|config| Request::Run(Box::new(config)))
}

fn resolve(raw: &RawFlags) -> Result<DevConfig, UsageError> {
    let mut faults = Faults::default();
    let filenames = filenames(&raw.filename, &mut faults);
    let port = faults.read("port", &raw.port, "a port from 1 to 65535, or 0 for a free one", |text| {
        u16::try_from(parse_int(text)?).ok()
    });
    let job_duration =
        faults.read("job-duration", &raw.job_duration, "a duration such as 3s, 1m30s or 0", duration_from);
    let job_failure_rate =
        faults.read("job-failure-rate", &raw.job_failure_rate, "a number from 0 to 1, such as 0.2", |text| {
            parse_float(text).filter(|rate| (0.0..=1.0).contains(rate))
        });
    let at = Some(raw.at.as_str()).filter(|at| !at.is_empty()).and_then(|at| {
        faults.read("at", at, "a time such as 2027-03-27T22:00:00Z", |text| text.parse::<DateTime<Utc>>().ok())
    });
    let speed = faults.whole("speed", &raw.speed, 1..=FASTEST);
    if !raw.data_dir.is_empty() && (at.is_some() || speed.is_some_and(|speed| speed > 1)) {
        faults.add("data-dir", &raw.data_dir, "a cluster without --at and --speed, whose time goes on after a restart");
    }
    let controller = faults.boolean("controller", &raw.controller);
    let controllers = controllers::resolve(&raw.controllers, &mut faults);
    let logging_format = faults.read("logging-format", &raw.logging_format, "text or json", LogFormat::parse);
    let verbosity = faults.whole("v", &raw.v, 0..=10);
    faults.into_result()?;
    // Any invalid flag returned an error before, so placeholder values never leave this function.
    Ok(DevConfig {
        filenames,
        port: port.unwrap_or_default(),
        kubeconfig: path(&raw.kubeconfig),
        job_duration: job_duration.unwrap_or_default(),
        job_failure_rate: job_failure_rate.unwrap_or_default(),
        data_dir: path(&raw.data_dir),
        at,
        speed: speed.unwrap_or(1),
        controller: controller.unwrap_or(true),
        controllers,
        verbosity: verbosity.unwrap_or_default(),
        logging_format: logging_format.unwrap_or_default(),
    })
}

/// Parses a non-negative duration in Go's syntax, as flags and annotations use it.
pub(super) fn duration_from(text: &str) -> Option<Duration> {
    parse_duration(text).and_then(|nanos| u64::try_from(nanos).ok()).map(Duration::from_nanos)
}

fn filenames(lists: &[String], faults: &mut Faults) -> Vec<PathBuf> {
    let names: Vec<&str> = lists.iter().flat_map(|list| list.split(',')).collect();
    if names.contains(&"") {
        faults.add("filename", "", "the path of a file or of a directory");
    }
    names.into_iter().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests;
