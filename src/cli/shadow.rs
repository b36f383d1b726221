//! `shadow`: what this controller would do, beside what the controller in charge does.
//!
//! Guarantees: nothing is written to the cluster. The client refuses every request that is no read before it is sent. What this controller would do
//! is the decision of `reconcile`, at the time at which the slot is due, on the real objects. What the controller in charge did is what the
//! watch shows. Memory is bounded: of each CronJob the newest slots are kept, and every list and histogram has a limit.
//!
//! `compare`, `in_tree` and `status` find, `lateness` and `report` sum up, all of them pure. `watch` feeds them with what `sights`
//! collects, `refusals` reads Events, and `eyes` says when it is blind.

mod compare;
mod eyes;
mod file;
mod in_tree;
mod lateness;
pub mod metrics;
mod refusals;
pub mod report;
mod sights;
mod stalls;
mod status;
mod watch;
pub mod what_if;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::{SharedClock, SystemClock};
use chrono::TimeDelta;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::info;

use self::file::ReportFile;
use self::metrics::ShadowMetrics;
use self::report::Report;
use self::watch::Shadow;
use self::what_if::WhatIf;
use super::cluster::clock::clock_of;
use super::cluster::{ControllerFlags, Scope};
use super::output::{Format, count, render, stretch};
use super::{Answer, CliError};
use crate::metrics::{MetricsError, Registry, encode};
use crate::server::{Endpoints, HealthCheck, ServerError, VersionInfo, Which, bind, router};
use crate::terminal::PlainText;

/// How often the log tells of the sums, where there is no terminal.
const LOGGED: u32 = 60;
/// The width of the progress bar.
const BAR: usize = 20;

/// The parsed command line.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowConfig {
    /// Which CronJobs.
    pub scope: Scope,
    /// The flags of this controller.
    pub flags: ControllerFlags,
    /// For how long; `None` until a signal.
    pub lasts: Option<Duration>,
    /// The format of the report.
    pub format: Format,
    /// Where the metrics are served.
    pub metrics: Option<SocketAddr>,
    /// The policies that are supposed.
    pub what_if: WhatIf,
    /// Where the report so far is written.
    pub report: Option<PathBuf>,
}

/// Replaces the line of a terminal that shows the progress.
pub type Live = Box<dyn FnMut(&PlainText) + Send>;

/// Why a shadow cannot watch.
#[derive(Debug, thiserror::Error)]
pub enum ShadowError {
    /// The cluster cannot be reached.
    #[error(transparent)]
    Cli(#[from] CliError),
    /// The user may not list CronJobs or Jobs.
    #[error("CronJobs and Jobs cannot be watched: {0}")]
    Refused(String),
    /// The address of the metrics cannot be used.
    #[error("--metrics-bind-address: {0}")]
    Listen(#[from] ServerError),
    /// A metric cannot be registered.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
}

/// How far a shadow is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    passed: TimeDelta,
    total: Option<TimeDelta>,
    is_synced: bool,
    cron_jobs: usize,
    slots: u64,
    agreement: Option<f64>,
    missed: usize,
    twice: usize,
    differs: usize,
    late: f64,
    trouble: Option<String>,
}

/// Watches until the time is over, or until `stop`, and returns the report, which is good if nothing differs. Without `live`, the
/// log tells of the progress once a minute.
///
/// # Errors
/// See [`ShadowError`].
pub fn run(
    config: ShadowConfig,
    live: Option<Live>,
    stop: CancellationToken,
) -> BoxFuture<'static, Result<Answer, ShadowError>> {
    // Boxed, so that it is compiled here, once, and not again in the binary.
    watch(config, live, stop).boxed()
}

async fn watch(config: ShadowConfig, mut live: Option<Live>, stop: CancellationToken) -> Result<Answer, ShadowError> {
    let ShadowConfig { scope, flags, lasts, format, metrics, what_if, report } = config;
    let (client, namespace) = scope.connect_to_read().await?;
    let registry = Registry::new();
    let (bound, shown) = match metrics {
        None => (None, None),
        Some(address) => (Some(bind(address).await?), Some(ShadowMetrics::register(&registry)?)),
    };
    let served = CancellationToken::new();
    let _served = served.clone().drop_guard();
    if let Some(bound) = bound {
        info!(address = %bound.local_addr(), "serving the metrics");
        tokio::spawn(bound.serve_http(router(endpoints(registry), Which::All), served));
    }
    let own: SharedClock = Arc::new(SystemClock);
    let Some(clock) = stop.run_until_cancelled(clock_of(&client, Arc::clone(&own))).await else {
        return Ok(answer(&Report::of_nothing(own.now()), true, format));
    };
    let clock = clock.map_err(CliError::from)?;
    let lasts = lasts.map(|lasts| TimeDelta::from_std(lasts).unwrap_or(TimeDelta::MAX));
    let mut shadow = Shadow::start(&client, namespace.as_deref(), flags, clock, shown, what_if);
    shadow.file = report.map(ReportFile::new);
    let mut looks = 0;
    let mut show = |progress: &Progress| {
        if let Some(live) = &mut live {
            live(&PlainText::lines([progress.line()]));
        } else if progress.says_something() {
            if looks % LOGGED == 0 {
                progress.log();
            }
            looks += 1;
        }
    };
    let (report, is_good) = shadow.run(lasts, &stop, &mut show).await?;
    if let Some(live) = &mut live {
        live(&PlainText::default());
    }
    Ok(answer(&report, is_good, format))
}

/// What is printed. With `-o json` it is one line.
fn answer(report: &Report, is_good: bool, format: Format) -> Answer {
    let text = if format == Format::Json { PlainText::json(report, true) } else { render(report, format) };
    Answer { text, is_good }
}

impl Progress {
    /// The progress bar, and the sums so far.
    fn line(&self) -> String {
        let trouble = self.trouble.as_ref().map(|trouble| format!("  {trouble}")).unwrap_or_default();
        if !self.is_synced {
            return format!("reading CronJobs and Jobs{trouble}");
        }
        let bar = match self.total {
            None => stretch(self.passed),
            Some(total) => {
                let [passed, whole] = [self.passed, total].map(|time| time.num_milliseconds().max(0).unsigned_abs());
                let done = (passed * BAR as u64).checked_div(whole).and_then(|done| usize::try_from(done).ok());
                let done = done.unwrap_or_default().min(BAR);
                let rest = if self.passed >= total { ", waiting for Jobs".to_owned() } else { String::new() };
                let (full, empty) = ("=".repeat(done), " ".repeat(BAR - done));
                format!("[{full}{empty}] {} of {}{rest}", stretch(self.passed.min(total)), stretch(total))
            }
        };
        let Self { slots, missed, twice, differs, late, .. } = self;
        let same = self.agreement.map(|share| format!(", {share:.2} % the same")).unwrap_or_default();
        format!(
            "{bar}  {}, {slots} slots{same}, late p99 {late} s, missed {missed}, twice {twice}, differs {differs}{trouble}",
            count(self.cron_jobs, "CronJob")
        )
    }

    /// Whether its numbers are of a cluster that was read, or it says why that was not.
    fn says_something(&self) -> bool {
        self.is_synced || self.trouble.is_some()
    }

    fn log(&self) {
        let Self { cron_jobs, slots, agreement, missed, twice, differs, late, trouble, .. } = self;
        let trouble = trouble.as_deref().unwrap_or_default();
        info!(cron_jobs, slots, agreement, late_p99 = late, missed, twice, differs, trouble, "shadow");
    }
}

fn endpoints(registry: Registry) -> Endpoints {
    let checks = vec![HealthCheck::ping()];
    Endpoints {
        healthz: checks.clone(),
        livez: checks.clone(),
        readyz: checks,
        metrics: Arc::new(move || encode(&registry)),
        configz: json!({}),
        version: VersionInfo::current(),
    }
}

#[cfg(test)]
mod tests;
