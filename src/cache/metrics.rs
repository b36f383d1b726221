//! The metrics of informers: whether their view is current.
//!
//! Guarantees: the age of a view is computed at scrape time. For one controller and resource it is the age of the stalest
//! part of all informers. An informer that has ended is no longer counted. Counters begin at 0 when the informer does, so
//! that their first increment is visible.
//!
//! client-go had such metrics (`tools/cache/reflector_metrics.go`), which kube-controller-manager does not fill.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use apimachinery::clock::SharedClock;
use chrono::{DateTime, TimeDelta};
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{IntCounter, IntCounterVec, Registry};

use super::{Informer, Observer, Operation, ReflectorError, Store};
use crate::api::{Object, ResourceKind};
use crate::metrics::family::{count, family, label, sample};
use crate::metrics::{MetricsError, add, counter_vec};

/// The metrics of all informers of a process. Clones share them.
#[derive(Clone)]
pub struct CacheMetrics {
    views: Views,
    lists_total: IntCounterVec,
    failures_total: IntCounterVec,
    handler_panics_total: IntCounter,
}

type Views = Arc<Mutex<Vec<(Labels, Weak<dyn View>)>>>;

/// Controller and resource.
type Labels = (&'static str, &'static str);

/// A store's view, for any type of object.
trait View: Send + Sync {
    fn age(&self) -> Option<Duration>;
    fn malformed(&self) -> usize;
}

impl<T: Object> View for Store<T> {
    fn age(&self) -> Option<Duration> {
        Self::age(self)
    }

    fn malformed(&self) -> usize {
        Self::malformed(self)
    }
}

const LABELS: [&str; 2] = ["controller", "resource"];

impl CacheMetrics {
    /// Makes the metrics and registers them with `registry`.
    ///
    /// # Errors
    /// When one of the names is taken in `registry`.
    pub fn register(registry: &Registry, clock: SharedClock) -> Result<Self, MetricsError> {
        let views = Views::default();
        let collector = ViewCollector::new(Arc::clone(&views), clock)?;
        registry
            .register(Box::new(collector))
            .map_err(|source| MetricsError::new("cronjob_controller_watch_*", source))?;
        let panics = "cronjob_controller_handler_panics_total";
        Ok(Self {
            views,
            lists_total: counter_vec(
                registry,
                "cronjob_controller_lists_total",
                "[ALPHA] Number of complete lists: the first one, and one after each gap in the watch.",
                &LABELS,
            )?,
            failures_total: counter_vec(
                registry,
                "cronjob_controller_list_watch_failures_total",
                "[ALPHA] Number of lists and watches that failed, by operation.",
                &[LABELS[0], LABELS[1], "operation"],
            )?,
            handler_panics_total: add(
                registry,
                panics,
                IntCounter::new(panics, "[ALPHA] Number of event handlers that panicked and were caught."),
            )?,
        })
    }

    /// Creates one series of each labelled metric that exists before any informer does, for the generated reference.
    pub fn touch(&self) {
        self.lists_total.with_label_values(&LABELS);
        self.failures_total.with_label_values(&[LABELS[0], LABELS[1], "operation"]);
    }

    /// Counts `informer` as one of `controller`.
    pub fn watch<T: Object>(&self, controller: &'static str, informer: &mut Informer<T>) {
        let resource = informer.resource.plural;
        let labels = [controller, resource];
        self.lists_total.with_label_values(&labels);
        for operation in [Operation::StreamingList, Operation::List, Operation::Watch] {
            self.failures_total.with_label_values(&[controller, resource, operation.as_str()]);
        }
        informer.set_observer(Arc::new(Counting { controller, metrics: self.clone() }));
        let store = Arc::downgrade(&informer.store);
        let mut views = self.views.lock();
        views.retain(|(_, view)| view.strong_count() > 0);
        views.push(((controller, resource), store));
    }
}

/// Counts what the reflectors of one controller report.
struct Counting {
    controller: &'static str,
    metrics: CacheMetrics,
}

impl Observer for Counting {
    fn handler_panicked(&self, _resource: ResourceKind) {
        self.metrics.handler_panics_total.inc();
    }

    fn failed(&self, resource: ResourceKind, error: &ReflectorError) {
        let labels = [self.controller, resource.plural, error.operation.as_str()];
        self.metrics.failures_total.with_label_values(&labels).inc();
    }

    fn listed(&self, resource: ResourceKind) {
        self.metrics.lists_total.with_label_values(&[self.controller, resource.plural]).inc();
    }
}

/// The metrics that have a series for each informer, without informers, for the generated reference.
///
/// # Errors
/// When a name or help text is malformed.
pub fn collector(clock: SharedClock) -> Result<Box<dyn Collector>, MetricsError> {
    Ok(Box::new(ViewCollector::new(Views::default(), clock)?))
}

/// Collects the state of the stores.
struct ViewCollector {
    views: Views,
    clock: SharedClock,
    last_event: Desc,
    malformed: Desc,
}

impl ViewCollector {
    fn new(views: Views, clock: SharedClock) -> Result<Self, MetricsError> {
        let desc = |name: &str, help: &str| {
            let labels = LABELS.map(ToOwned::to_owned).to_vec();
            Desc::new(name.to_owned(), format!("[ALPHA] {help}"), labels, HashMap::new())
                .map_err(|source| MetricsError::new(name, source))
        };
        Ok(Self {
            views,
            clock,
            last_event: desc(
                "cronjob_controller_watch_last_event_timestamp_seconds",
                "When the API server last showed a change, a bookmark or a list, in seconds since the epoch.",
            )?,
            malformed: desc(
                "cronjob_controller_malformed_objects",
                "Number of objects that exist and cannot be read, and so are not acted on.",
            )?,
        })
    }
}

impl Collector for ViewCollector {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.last_event, &self.malformed]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut by_labels: BTreeMap<Labels, (Duration, usize)> = BTreeMap::new();
        for (labels, view) in self.views.lock().iter() {
            let Some(view) = view.upgrade() else { continue };
            let (age, malformed) = by_labels.entry(*labels).or_default();
            *age = view.age().unwrap_or_default().max(*age);
            *malformed += view.malformed();
        }
        let now = self.clock.now() - DateTime::UNIX_EPOCH;
        let shown = |show: &dyn Fn(Duration, usize) -> f64| -> Vec<Metric> {
            let one = |(labels, (age, malformed)): (&Labels, &(Duration, usize))| {
                sample(MetricType::GAUGE, pairs(*labels), show(*age, *malformed))
            };
            by_labels.iter().map(one).collect()
        };
        let last_event = shown(&|age, _| (now - TimeDelta::from_std(age).unwrap_or_default()).as_seconds_f64());
        let malformed = shown(&|_, malformed| count(malformed as u64));
        vec![
            family(&self.last_event, MetricType::GAUGE, last_event),
            family(&self.malformed, MetricType::GAUGE, malformed),
        ]
    }
}

fn pairs((controller, resource): Labels) -> Vec<LabelPair> {
    vec![label(LABELS[0], controller), label(LABELS[1], resource)]
}
