//! Optional metrics of each CronJob.
//!
//! Guarantees:
//! - A CronJob has series while a controller of this process reconciles it. They end when the CronJob or the controller
//!   is gone.
//! - A standby exports no series. Two replicas export the same series only while one takes over from the other.
//! - At most the configured number of CronJobs have series, and a metric counts the others. One namespace cannot take
//!   all series (`SeriesQuota`).
//! - Values that depend on time are computed at scrape time; nothing runs in between.
//!
//! Nothing is decided here: syncs report their decisions, and `CronJobStats` counts them.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use apimachinery::clock::SharedClock;
use chrono::{DateTime, TimeDelta, Utc};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use parking_lot::Mutex;
use prometheus::Registry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{LabelPair, MetricFamily, MetricType};
use schedule::Zone;

use super::cron_job_stats::CronJobStats;
use super::cron_job_stats::runs::Unfinished;
use super::messages::RUN_STUCK;
use super::namespaces::Namespaces;
use super::observation::Observation;
use super::plan::{Settlement, Verdict};
use crate::api::batch_v1::CronJob;
use crate::api::{ControllerKind, ObjectName};
use crate::cache::Store;
use crate::metrics::family::{self, count};
use crate::metrics::{MetricsError, RESULTS};

/// The statistics of the CronJobs of all controllers of a process. Clones share them.
#[derive(Clone)]
pub struct CronJobMetrics {
    places: Arc<Mutex<SeriesQuota>>,
    controllers: Arc<Mutex<Vec<Weak<CronJobStatsSet>>>>,
}

/// The statistics of the CronJobs of one controller.
pub struct CronJobStatsSet {
    controller_kind: ControllerKind,
    cron_jobs: Arc<Store<CronJob>>,
    namespaces: Option<Arc<Namespaces>>,
    clock: SharedClock,
    local_zone: Zone,
    places: Arc<Mutex<SeriesQuota>>,
    entries: DashMap<ObjectName, Tracked>,
    /// Whether the controller has started to reconcile.
    works: AtomicBool,
}

struct Tracked {
    stats: CronJobStats,
    _held: SeriesPermit,
}

/// Which CronJobs have series: each needs a place. Pure.
///
/// The last quarter of the places is for namespaces that hold less than an eighth of all. A namespace with more
/// CronJobs than places thus leaves some to other namespaces; if it is the only one, it has three quarters.
#[derive(Debug)]
struct SeriesQuota {
    limit: usize,
    held: usize,
    by_namespace: HashMap<Arc<str>, usize>,
}

impl SeriesQuota {
    fn new(limit: usize) -> Self {
        Self { limit, held: 0, by_namespace: HashMap::new() }
    }

    /// Takes a place for a CronJob of the namespace. Returns whether one was available.
    fn take(&mut self, namespace: &Arc<str>) -> bool {
        let own = self.by_namespace.get(namespace).copied().unwrap_or_default();
        let free = self.limit - self.held;
        let is_granted = free > self.limit / 4 || (free > 0 && own < self.limit.div_ceil(8));
        if is_granted {
            self.held += 1;
            *self.by_namespace.entry(Arc::clone(namespace)).or_default() += 1;
        }
        is_granted
    }

    fn give_back(&mut self, namespace: &Arc<str>) {
        self.held = self.held.saturating_sub(1);
        if let Some(own) = self.by_namespace.get_mut(namespace) {
            *own -= 1;
            if *own == 0 {
                self.by_namespace.remove(namespace);
            }
        }
    }
}

/// A place, released on drop.
struct SeriesPermit {
    places: Arc<Mutex<SeriesQuota>>,
    namespace: Arc<str>,
}

impl SeriesPermit {
    fn take(places: &Arc<Mutex<SeriesQuota>>, namespace: &Arc<str>) -> Option<Self> {
        let is_granted = places.lock().take(namespace);
        is_granted.then(|| Self { places: Arc::clone(places), namespace: Arc::clone(namespace) })
    }
}

impl Drop for SeriesPermit {
    fn drop(&mut self) {
        self.places.lock().give_back(&self.namespace);
    }
}

impl CronJobMetrics {
    /// Registers the series of at most `limit` CronJobs with `registry`.
    ///
    /// Fails if `registry` already has a metric of the same name.
    pub fn register(registry: &Registry, limit: NonZeroUsize) -> Result<Self, MetricsError> {
        let places = Arc::new(Mutex::new(SeriesQuota::new(limit.get())));
        let this = Self { places, controllers: Arc::default() };
        let collector = CronJobCollector { controllers: Arc::clone(&this.controllers), descs: descs()? };
        registry.register(Box::new(collector)).map_err(|source| MetricsError::new(PREFIX, source))?;
        Ok(this)
    }

    /// Adds a controller of `controller_kind`, which reports its decisions about `cron_jobs` to the result. Dropping
    /// the result ends its series.
    pub fn join(
        &self,
        controller_kind: ControllerKind,
        cron_jobs: Arc<Store<CronJob>>,
        namespaces: Option<Arc<Namespaces>>,
        clock: SharedClock,
        local_zone: Zone,
    ) -> Arc<CronJobStatsSet> {
        let (places, entries, works) = (Arc::clone(&self.places), DashMap::new(), AtomicBool::new(false));
        let stats_set = Arc::new(CronJobStatsSet {
            controller_kind,
            cron_jobs,
            namespaces,
            clock,
            local_zone,
            places,
            entries,
            works,
        });
        let mut controllers = self.controllers.lock();
        controllers.retain(|controller| controller.strong_count() > 0);
        controllers.push(Arc::downgrade(&stats_set));
        stats_set
    }
}

impl CronJobStatsSet {
    /// Records the end of a sync that judged the slots up to `judged`.
    pub fn decided(&self, observation: &Observation, settlement: &Settlement, judged: DateTime<Utc>) {
        self.works.store(true, Ordering::Relaxed);
        let (cron_job, now) = (&observation.cron_job, self.clock.now());
        let mut place = match self.entries.entry(cron_job.name.clone()) {
            Entry::Occupied(mut place) => {
                if place.get().stats.uid == cron_job.uid {
                    place.get_mut().stats.ended(&settlement.ended_runs(cron_job), now);
                } else {
                    place.get_mut().stats = opened(observation, settlement, now);
                }
                place.into_ref()
            }
            Entry::Vacant(vacant) => {
                let Some(held) = SeriesPermit::take(&self.places, &cron_job.name.namespace) else { return };
                vacant.insert(Tracked { stats: opened(observation, settlement, now), _held: held })
            }
        };
        place.stats.runs.unfinished = Unfinished::of(observation.children(), now);
        if let Some(slot) = settlement.passed_over {
            place.stats.passed_over(cron_job, self.local_zone, slot);
        }
        place.stats.decided(cron_job, self.local_zone, settlement.verdict, judged, now);
        place.stats.is_stuck = settlement.memo.recent_events.iter().any(|event| event.reason == RUN_STUCK);
        // Without a decision, a request before the create failed.
        let is_still = place.stats.is_refused && settlement.verdict == Verdict::Open;
        place.stats.is_refused = settlement.is_refused.unwrap_or(is_still);
    }

    /// Records an edit as soon as the watch shows it.
    pub fn edited(&self, old: &CronJob, new: &CronJob) {
        if old.spec.suspend == new.spec.suspend && old.same_timing(new) {
            return;
        }
        if let Some(mut place) = self.entries.get_mut(&new.name).filter(|place| place.stats.uid == new.uid) {
            place.stats.edited(old, new, self.local_zone, self.clock.now());
        }
    }

    /// Records that the CronJob's Namespace no longer says what is in `restricted`.
    pub fn restriction_ended(&self, restricted: &CronJob) {
        let uid = &restricted.uid;
        if let Some(mut place) = self.entries.get_mut(&restricted.name).filter(|place| place.stats.uid == *uid) {
            place.stats.restriction_ended(restricted, self.local_zone, self.clock.now());
        }
    }

    /// Records that a Job was started, and that its first Pod was ready, so long after its slot was due.
    pub fn job_started(&self, cron_job: &CronJob, to_start: Option<TimeDelta>, to_pod: Option<TimeDelta>) {
        if let Some(mut place) = self.entries.get_mut(&cron_job.name).filter(|place| place.stats.uid == cron_job.uid) {
            let runs = &mut place.stats.runs;
            (runs.last_start_delay, runs.last_pod_delay) =
                (to_start.or(runs.last_start_delay), to_pod.or(runs.last_pod_delay));
        }
    }

    /// Drops the statistics of a deleted CronJob.
    pub fn forget(&self, name: &ObjectName) {
        self.entries.remove(name);
    }

    /// How many reconciled CronJobs have no series.
    fn omitted(&self) -> usize {
        if !self.works.load(Ordering::Relaxed) {
            return 0;
        }
        self.cron_jobs.len().saturating_sub(self.entries.len())
    }

    /// Calls `show` with each existing CronJob and its current statistics. No search of a schedule keeps a worker from them.
    fn each(&self, mut show: impl FnMut(Shown<'_>)) {
        let now = self.clock.now();
        let names: Vec<_> = self.entries.iter().map(|place| place.key().clone()).collect();
        for name in names {
            let known = self.entries.get(&name).map(|place| place.stats.clone());
            let Some((cron_job, known)) = self.cron_jobs.get(&name).zip(known) else { continue };
            if known.uid != cron_job.uid {
                continue;
            }
            let mut stats = known;
            if cron_job.spec.suspend {
                let known = stats.clone();
                stats.suspended(&cron_job, self.local_zone, now);
                // What a sync has recorded meanwhile stays; the next scrape counts again.
                if let Some(mut place) = self.entries.get_mut(&name).filter(|place| place.stats == known) {
                    place.stats.clone_from(&stats);
                }
            }
            let cron_job = match &self.namespaces {
                Some(namespaces) => namespaces.restricted(cron_job),
                None => cron_job,
            };
            let next = stats.next_slot(&cron_job, self.local_zone);
            show(Shown { controller: self.controller_kind.name, cron_job: &cron_job, stats: &stats, next, now });
        }
    }
}

/// The statistics after the first sync of a CronJob. What ended since the last controller counted is counted here.
fn opened(observation: &Observation, settlement: &Settlement, now: DateTime<Utc>) -> CronJobStats {
    let mut stats = CronJobStats::open(&observation.cron_job, &observation.jobs, now);
    for job in settlement.ended_runs(&observation.cron_job) {
        stats.runs.count(job, now);
    }
    stats
}

/// The data of one CronJob for a scrape.
struct Shown<'a> {
    controller: &'static str,
    cron_job: &'a CronJob,
    stats: &'a CronJobStats,
    next: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
}

const PREFIX: &str = "cronjob_controller_cronjob_";

/// Receives one sample: its reason or result, if the family has such a label, and its value.
type Take<'a> = dyn FnMut(Option<Label>, Value) + 'a;

/// A label and its value.
type Label = (&'static str, &'static str);

/// The value of a sample.
#[derive(Clone, Copy, Debug)]
enum Value {
    Number(f64),
    /// A summary without quantiles.
    Summary {
        sum: f64,
        count: u64,
    },
}

/// One metric family: the suffix of its name, type, help, and its samples for a CronJob, by a label if there are
/// several.
struct Family {
    name: &'static str,
    kind: MetricType,
    help: &'static str,
    samples: fn(&Shown<'_>, &mut Take<'_>),
}

const FAMILIES: [Family; 21] = [
    Family {
        name: "fires_total",
        kind: MetricType::COUNTER,
        help: "Number of jobs started.",
        samples: |shown, sample| number(count(shown.stats.fires), sample),
    },
    Family {
        name: "missed_total",
        kind: MetricType::COUNTER,
        help: "Number of slots that were not started and that no other metric has a reason for: no controller was there, \
               or the API server refused.",
        samples: |shown, sample| number(count(shown.stats.missed), sample),
    },
    Family {
        name: "skipped_total",
        kind: MetricType::COUNTER,
        help: "Number of slots that were skipped, by reason.",
        samples: |shown, sample| {
            // The others have policies.
            let always = ["deadline", "forbid", "invalid", "name_taken", "suspended"].map(|reason| (reason, 0));
            let mut by_reason = BTreeMap::from(always);
            by_reason.extend(shown.stats.skipped.iter());
            for (reason, slots) in by_reason {
                sample(Some(("reason", reason)), Value::Number(count(slots)));
            }
        },
    },
    Family {
        name: "forbidden_in_a_row",
        kind: MetricType::GAUGE,
        help: "Number of slots since the last start that were skipped because an earlier job runs.",
        samples: |shown, sample| number(count(shown.stats.forbidden_in_a_row), sample),
    },
    Family {
        name: "failures_in_a_row",
        kind: MetricType::GAUGE,
        help: "Number of jobs of slots that failed since the last one of a slot that succeeded. Jobs made by hand neither count \
               nor reset it.",
        samples: |shown, sample| number(count(shown.stats.failures_in_a_row), sample),
    },
    Family {
        name: "runs_total",
        kind: MetricType::COUNTER,
        help: "Number of jobs that ended, by result. Not of those that were deleted before, made by hand, or of a backfill.",
        samples: |shown, sample| {
            let runs = &shown.stats.runs;
            for (result, number) in RESULTS.into_iter().zip([runs.succeeded, runs.failed]) {
                sample(Some(("result", result)), Value::Number(count(number)));
            }
        },
    },
    Family {
        name: "run_duration_seconds",
        kind: MetricType::SUMMARY,
        help: "How long the jobs took that ended, from start to end.",
        samples: |shown, sample| {
            let runs = &shown.stats.runs;
            sample(None, Value::Summary { sum: runs.seconds, count: runs.ended() });
        },
    },
    Family {
        name: "last_run_duration_seconds",
        kind: MetricType::GAUGE,
        help: "How long the last job took that ended.",
        samples: |shown, sample| number_if(shown.stats.runs.last.map(TimeDelta::as_seconds_f64), sample),
    },
    Family {
        name: "run_duration_median_seconds",
        kind: MetricType::GAUGE,
        help: "The median of how long the last 15 jobs took that succeeded. From three such jobs on.",
        samples: |shown, sample| number_if(shown.stats.runs.median().map(f64::from), sample),
    },
    Family {
        name: "running_seconds",
        kind: MetricType::GAUGE,
        help: "For how long the oldest job of a slot has run that has not ended.",
        samples: |shown, sample| number_if(shown.since(shown.stats.runs.unfinished.runs_since), sample),
    },
    Family {
        name: "active",
        kind: MetricType::GAUGE,
        help: "Number of jobs that have not ended, those of a backfill excepted.",
        samples: |shown, sample| number(count(shown.stats.runs.unfinished.count as u64), sample),
    },
    Family {
        name: "active_grown_in_a_row",
        kind: MetricType::GAUGE,
        help: "Number of starts in a row at each of which more jobs had not ended than at the start before.",
        samples: |shown, sample| number(count(shown.stats.runs.grown_in_a_row), sample),
    },
    Family {
        name: "last_start_delay_seconds",
        kind: MetricType::GAUGE,
        help: "From when its slot was due, to when the job controller started the job that it started last.",
        samples: |shown, sample| {
            number_if(shown.stats.runs.last_start_delay.map(TimeDelta::as_seconds_f64), sample);
        },
    },
    Family {
        name: "last_pod_delay_seconds",
        kind: MetricType::GAUGE,
        help: "From when its slot was due, to when the status of a job showed the first ready pod, of the last such job.",
        samples: |shown, sample| number_if(shown.stats.runs.last_pod_delay.map(TimeDelta::as_seconds_f64), sample),
    },
    Family {
        name: "unstarted_seconds",
        kind: MetricType::GAUGE,
        help: "For how long the oldest job has existed that the job controller has not started and that is not suspended.",
        samples: |shown, sample| number_if(shown.since(shown.stats.runs.unfinished.unstarted_since), sample),
    },
    Family {
        name: "last_success_timestamp_seconds",
        kind: MetricType::GAUGE,
        help: "When a job last succeeded, in seconds since the epoch.",
        samples: |shown, sample| number_if(shown.stats.last_success.map(since_epoch), sample),
    },
    Family {
        name: "seconds_since_last_success",
        kind: MetricType::GAUGE,
        help: "How long ago a job last succeeded.",
        samples: |shown, sample| {
            number_if(shown.stats.last_success.map(|at| (shown.now - at).as_seconds_f64()), sample);
        },
    },
    Family {
        name: "next_schedule_timestamp_seconds",
        kind: MetricType::GAUGE,
        help: "When the earliest slot is due, with its spread, that was neither started nor skipped, in seconds since the \
               epoch; in the past, it is overdue.",
        samples: |shown, sample| number_if(shown.next.map(since_epoch), sample),
    },
    Family {
        name: "create_refused",
        kind: MetricType::GAUGE,
        help: "1 while the API server refuses to create the job of the next slot, as for a quota or an admission policy; \
               else 0.",
        samples: |shown, sample| number(f64::from(u8::from(shown.stats.is_refused)), sample),
    },
    Family {
        name: "stuck",
        kind: MetricType::GAUGE,
        help: "1 while a job that has run for longer than cronjob-controller.dev/stuck-after blocks a slot; else 0. Only of \
               cronjobs with that annotation.",
        samples: |shown, sample| {
            if shown.cron_job.limits().stuck_after.is_some() {
                number(f64::from(u8::from(shown.stats.is_stuck)), sample);
            }
        },
    },
    Family {
        name: "last_skew_seconds",
        kind: MetricType::GAUGE,
        help: "From when the last slot that was started was due to the creation of its job.",
        samples: |shown, sample| number_if(shown.stats.last_skew.map(TimeDelta::as_seconds_f64), sample),
    },
];

fn since_epoch(at: DateTime<Utc>) -> f64 {
    (at - DateTime::UNIX_EPOCH).as_seconds_f64()
}

fn number(value: f64, sample: &mut Take<'_>) {
    sample(None, Value::Number(value));
}

fn number_if(value: Option<f64>, sample: &mut Take<'_>) {
    if let Some(value) = value {
        number(value, sample);
    }
}

impl Shown<'_> {
    /// How many seconds ago that was.
    fn since(&self, time: Option<DateTime<Utc>>) -> Option<f64> {
        time.map(|time| (self.now - time).as_seconds_f64().max(0.0))
    }
}

struct Descs {
    /// In the order of [`FAMILIES`].
    families: Vec<Desc>,
    omitted: Desc,
}

fn descs() -> Result<Descs, MetricsError> {
    let desc = |name: &str, help: &str, labels: &[&str]| {
        let labels = labels.iter().map(ToString::to_string).collect();
        let (name, help) = (format!("{PREFIX}{name}"), format!("[ALPHA] {help}"));
        Desc::new(name.clone(), help, labels, HashMap::new()).map_err(|source| MetricsError::new(&name, source))
    };
    let labels = ["controller", "name", "namespace"];
    let families = FAMILIES.iter().map(|family| desc(family.name, family.help, &labels));
    Ok(Descs {
        families: families.collect::<Result<_, _>>()?,
        omitted: desc("metrics_omitted", "Number of cronjobs that have no metrics because others have them.", &[])?,
    })
}

/// A collector of these metrics without any CronJob, for the generated reference.
///
/// Fails if a name or help text is malformed.
pub fn collector() -> Result<Box<dyn Collector>, MetricsError> {
    Ok(Box::new(CronJobCollector { controllers: Arc::default(), descs: descs()? }))
}

/// Collects the statistics of all controllers.
struct CronJobCollector {
    controllers: Arc<Mutex<Vec<Weak<CronJobStatsSet>>>>,
    descs: Descs,
}

impl Collector for CronJobCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.families.iter().chain([&self.descs.omitted]).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let controllers: Vec<_> = self.controllers.lock().iter().filter_map(Weak::upgrade).collect();
        let mut samples = FAMILIES.map(|_| Vec::new());
        for controller in &controllers {
            controller.each(|shown| {
                for (family, samples) in FAMILIES.iter().zip(&mut samples) {
                    (family.samples)(&shown, &mut |label, value| {
                        let labels = labels(&shown, label);
                        samples.push(match value {
                            Value::Number(value) => family::sample(family.kind, labels, value),
                            Value::Summary { sum, count } => family::summary(labels, sum, count),
                        });
                    });
                }
            });
        }
        let omitted: usize = controllers.iter().map(|controller| controller.omitted()).sum();
        let families = FAMILIES.iter().zip(&self.descs.families).zip(samples);
        let families = families.map(|((family, desc), samples)| family::family(desc, family.kind, samples));
        families.chain([family::gauge(&self.descs.omitted, count(omitted as u64))]).collect()
    }
}

/// The labels, sorted by name.
fn labels(shown: &Shown<'_>, label: Option<Label>) -> Vec<LabelPair> {
    let name = &shown.cron_job.name;
    let pairs = [("controller", shown.controller), ("name", &*name.name), ("namespace", &*name.namespace)];
    let pairs = pairs.into_iter().chain(label);
    pairs.map(|(name, value)| family::label(name, value)).collect()
}

#[cfg(test)]
mod tests;
