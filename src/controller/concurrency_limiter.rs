//! Limits how many syncs run at a time, in total and per namespace.
//!
//! Guarantees: pure; the time is an argument. Every limit is between one and the number of workers. Congestion halves a
//! limit; success raises it. Below the last point of congestion, each success raises it by one; above, by its
//! reciprocal, so by one per round trip. This is TCP's slow start and congestion avoidance, modelled on Netflix's
//! concurrency-limits. Only syncs that began after the last decrease count. So a limit is halved at most once per round
//! trip, and a request that was given up is never repeated at the same width.
//!
//! - A namespace's limit falls when one of its own requests times out, and when latency grows with the number of its
//!   requests in flight. A constant latency, however long, is not congestion.
//! - The total limit falls when the API server reports overload (429, 503). It also falls when most of the active
//!   namespaces, with at least three active, had a timeout while no create was answered promptly. It then falls to half
//!   of the workers and no further, because the next namespace may be answered; a lower one stays.
//!
//! A namespace has an entry while it has a sync in flight or a limit, or had one within [`MEMORY`]. Its limit goes with the first
//! sync that ends [`MEMORY`] after the last congestion.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A latency below this is not congestion, and an answer within this time is prompt.
const LONG: Duration = Duration::from_secs(1);

/// How long a namespace's lowest latency serves as the reference for later samples.
const REFERENCE_AGE: Duration = Duration::from_secs(60);

/// The share of the growth in flight by which latency must grow to count as congestion.
const GRADIENT: f64 = 0.75;

/// How long a namespace is remembered after its last sync, and a limit after the last congestion.
const MEMORY: Duration = Duration::from_secs(600);

/// A shorter sync sent no request.
const LEAST_EVIDENCE: Duration = Duration::from_millis(1);

/// How a sync ended, as far as it matters for congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// It left the status of the Job that it created to a later sync: its latency includes admission.
    Created,
    /// It succeeded.
    Succeeded,
    /// A request of the namespace was not answered in time.
    Congested,
    /// The API server reported overload.
    Overloaded,
    /// It failed for another reason.
    Neutral,
}

/// A running sync.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    at: Instant,
    /// How many syncs of its namespace were running at that time, including this one.
    in_flight: usize,
}

/// Changed limits.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// The total limit.
    pub(super) total: Option<usize>,
    /// The limits of namespaces; `None` means no limit below the total.
    pub(super) namespaces: Vec<(Arc<str>, Option<usize>)>,
}

/// The concurrency limits of one controller.
#[derive(Debug)]
pub(super) struct ConcurrencyLimiter {
    workers: usize,
    total: AdaptiveLimit,
    in_flight: usize,
    namespaces: HashMap<Arc<str>, Namespace>,
    /// The number of namespaces at which old ones are dropped.
    sweep_at: usize,
    /// The latest start of a sync whose create was answered promptly.
    prompt: Option<Instant>,
}

#[derive(Debug, Default)]
struct Namespace {
    in_flight: usize,
    limit: Option<AdaptiveLimit>,
    /// The lowest recent latency.
    reference: Option<Sample>,
    /// When its last sync ended, and whether it was congested.
    last: Option<(Instant, bool)>,
}

/// A create's latency and how many syncs of its namespace were in flight.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Instant,
    in_flight: usize,
    latency: Duration,
}

/// A limit with additive increase and multiplicative decrease.
#[derive(Debug, Clone, Copy)]
struct AdaptiveLimit {
    now: f64,
    /// Below this, each success raises the limit by one.
    threshold: f64,
    decreased: Option<Instant>,
    /// Whether it has grown since it was decreased.
    has_grown: bool,
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
impl AdaptiveLimit {
    fn new(workers: usize) -> Self {
        Self { now: workers as f64, threshold: workers as f64, decreased: None, has_grown: true }
    }

    fn get(&self) -> usize {
        self.now as usize
    }

    /// Whether a sync that began at `began` counts for the current limit.
    fn concerns(&self, began: Instant) -> bool {
        self.decreased.is_none_or(|decreased| began >= decreased)
    }

    /// Whether the last congestion is too long ago to say anything.
    fn is_old(&self, now: Instant) -> bool {
        self.decreased.is_some_and(|decreased| decreased + MEMORY <= now)
    }

    fn increase(&mut self, workers: usize) {
        let step = if self.now < self.threshold { 1.0 } else { self.now.recip() };
        self.now = (self.now + step).min(workers as f64);
        self.has_grown = true;
    }

    /// Sets the limit to half of `width`, which caused congestion.
    fn decrease(&mut self, width: f64, now: Instant) {
        self.now = (width / 2.0).max(1.0);
        // Without a success since the last decrease, the point of congestion is unknown.
        if std::mem::take(&mut self.has_grown) {
            self.threshold = self.now;
        }
        self.decreased = Some(now);
    }

    /// Raises the limit to at least `least`.
    fn raise_to(&mut self, least: usize) {
        self.now = self.now.max(least as f64);
        self.threshold = self.threshold.max(self.now);
    }

    fn decrease_to_half_of(&mut self, in_flight: usize, now: Instant) {
        self.decrease(self.now.min(in_flight as f64), now);
    }
}

impl ConcurrencyLimiter {
    /// A limiter without limits.
    pub(super) fn new() -> Self {
        let workers = usize::MAX;
        Self {
            workers,
            total: AdaptiveLimit::new(workers),
            in_flight: 0,
            namespaces: HashMap::new(),
            sweep_at: 64,
            prompt: None,
        }
    }

    /// Sets the number of workers and resets the total limit.
    pub(super) fn set_workers(&mut self, workers: usize) {
        self.workers = workers;
        self.total = AdaptiveLimit::new(workers);
    }

    /// Records that a sync of `namespace` begins.
    pub(super) fn begin(&mut self, namespace: &Arc<str>, now: Instant) -> Begun {
        self.in_flight += 1;
        let entry = self.namespaces.entry(Arc::clone(namespace)).or_default();
        entry.in_flight += 1;
        Begun { at: now, in_flight: entry.in_flight }
    }

    /// Records that a sync of `namespace` ended, and returns the limits that changed.
    pub(super) fn end(&mut self, namespace: &Arc<str>, begun: Begun, signal: Signal, now: Instant) -> Changes {
        let mut changes = Changes::default();
        let before = self.total.get();
        let took = now.saturating_duration_since(begun.at);
        self.judge(namespace, begun, signal, now, &mut changes);
        self.in_flight -= 1;
        if let Some(entry) = self.namespaces.get_mut(namespace) {
            entry.in_flight -= 1;
            entry.last = Some((now, signal == Signal::Congested));
            if entry.limit.is_some_and(|limit| limit.is_old(now)) {
                entry.limit = None;
                changes.namespaces.push((Arc::clone(namespace), None));
            }
        }
        if signal == Signal::Created && took < LONG {
            self.prompt = self.prompt.max(Some(begun.at));
        }
        if self.namespaces.len() >= self.sweep_at {
            self.sweep(now, &mut changes);
        }
        changes.total = Some(self.total.get()).filter(|after| *after != before);
        changes
    }

    fn judge(&mut self, namespace: &Arc<str>, begun: Begun, signal: Signal, now: Instant, changes: &mut Changes) {
        let took = now.saturating_duration_since(begun.at);
        let workers = self.workers;
        match signal {
            Signal::Succeeded if took < LEAST_EVIDENCE => {}
            Signal::Overloaded if self.total.concerns(begun.at) => self.total.decrease(self.total.now, now),
            Signal::Neutral | Signal::Overloaded => {}
            Signal::Congested => {
                self.decrease(namespace, begun, now, changes);
                if self.total.concerns(begun.at) && self.is_congested(namespace, begun.at) {
                    let floor = self.total.get().min(workers / 2);
                    self.total.decrease_to_half_of(self.in_flight, now);
                    self.total.raise_to(floor);
                }
            }
            Signal::Created | Signal::Succeeded => {
                let Some(entry) = self.namespaces.get_mut(namespace) else { return };
                let sample = Sample { at: now, in_flight: begun.in_flight, latency: took };
                if signal == Signal::Created && entry.latency_grows_with_requests(sample) {
                    if self.decrease(namespace, begun, now, changes) {
                        self.namespaces.entry(Arc::clone(namespace)).or_default().reference = Some(sample);
                    }
                    return;
                }
                if self.total.concerns(begun.at) {
                    self.total.increase(workers);
                }
                let Some(limit) = entry.limit.as_mut().filter(|limit| limit.concerns(begun.at)) else { return };
                let before = limit.get();
                limit.increase(workers);
                let after = limit.get();
                if after >= workers {
                    entry.limit = None;
                }
                if after != before || entry.limit.is_none() {
                    changes.namespaces.push((Arc::clone(namespace), entry.limit.map(|limit| limit.get())));
                }
            }
        }
    }

    /// Halves a namespace's limit, unless the sync began before the last decrease.
    fn decrease(&mut self, namespace: &Arc<str>, begun: Begun, now: Instant, changes: &mut Changes) -> bool {
        let Some(entry) = self.namespaces.get_mut(namespace) else { return false };
        let in_flight = entry.in_flight;
        let limit = entry.limit.get_or_insert_with(|| AdaptiveLimit::new(self.workers));
        let concerns = limit.concerns(begun.at);
        if concerns {
            limit.decrease_to_half_of(in_flight, now);
            changes.namespaces.push((Arc::clone(namespace), Some(limit.get())));
        }
        concerns
    }

    /// Whether most namespaces active since `began` had a timeout, as `namespace` did, and none got a prompt answer.
    fn is_congested(&self, namespace: &Arc<str>, began: Instant) -> bool {
        if self.prompt.is_some_and(|prompt| prompt >= began) {
            return false;
        }
        let (mut active, mut congested) = (0, 0);
        for (name, entry) in &self.namespaces {
            let last = entry.last.filter(|(ended, _)| *ended >= began);
            active += usize::from(entry.in_flight > 0 || last.is_some());
            congested += usize::from(name == namespace || last.is_some_and(|(_, congested)| congested));
        }
        active >= 3 && congested * 2 > active
    }

    /// Drops namespaces that have been inactive for [`MEMORY`].
    fn sweep(&mut self, now: Instant, changes: &mut Changes) {
        let is_old = |then: Instant| then + MEMORY <= now;
        self.namespaces.retain(|name, entry| {
            let is_needed = entry.in_flight > 0 || entry.last.is_none_or(|(ended, _)| !is_old(ended));
            if !is_needed && entry.limit.is_some() {
                changes.namespaces.push((Arc::clone(name), None));
            }
            is_needed
        });
        self.sweep_at = (2 * self.namespaces.len()).max(64);
    }
}

impl Namespace {
    /// Records a sample. Returns whether its latency is long and has grown with the number in flight.
    #[allow(clippy::cast_precision_loss)]
    fn latency_grows_with_requests(&mut self, sample: Sample) -> bool {
        let known = self.reference.filter(|known| known.at + REFERENCE_AGE > sample.at);
        let Some(known) = known.filter(|known| known.latency <= sample.latency) else {
            self.reference = Some(sample);
            return false;
        };
        if sample.latency < LONG || sample.in_flight < 2 * known.in_flight {
            return false;
        }
        let more = sample.in_flight as f64 / known.in_flight as f64;
        let longer = sample.latency.as_secs_f64() / known.latency.as_secs_f64().max(f64::MIN_POSITIVE);
        longer >= GRADIENT * more
    }
}

#[cfg(test)]
mod tests;
