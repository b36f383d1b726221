//! How many syncs run at a time: in all, and of each namespace.
//!
//! Guarantees: pure; the time comes as an argument. No limit is more than there are workers nor less than one. Congestion
//! halves a limit, success raises it: by one below the last point of congestion, by its reciprocal above, so that one round
//! trip raises it by one (TCP's slow start and congestion avoidance; the model is Netflix's concurrency-limits). Only
//! outcomes of syncs that began after the last decrease count, so a limit is halved at most once per round trip and what
//! was given up is never repeated at the same width.
//!
//! - A namespace's limit falls when a request of its own is not answered in time, and when latency grows with the number of
//!   its requests in flight. A constant latency, however long, is no congestion.
//! - The limit for all falls when the API server says that it is overloaded (429, 503), and when most of the namespaces, three
//!   at least, were not answered in time while no other namespace was: then to half of the workers and no further, since
//!   a namespace that is about to come may be answered.
//!
//! A namespace has an entry while it has a sync in flight or a limit, or had one within [`MEMORY`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A latency below this is not taken for congestion, and an answer within this time for a prompt one.
const LONG: Duration = Duration::from_secs(1);

/// How long the lowest latency of a namespace is the one that others are compared with.
const REFERENCE_AGE: Duration = Duration::from_secs(60);

/// How much of the growth in flight the latency must show to be congestion.
const GRADIENT: f64 = 0.75;

/// How long a namespace without syncs is remembered, and a limit after the last congestion.
const MEMORY: Duration = Duration::from_secs(600);

/// A sync that ends sooner asked no server.
const LEAST_EVIDENCE: Duration = Duration::from_millis(1);

/// How a sync ended, as far as it tells about congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// It created a Job: its latency is one of admission.
    Created,
    /// It ended well.
    Succeeded,
    /// A request of the namespace was not answered in time.
    Congested,
    /// The API server said that it is overloaded.
    Overloaded,
    /// It failed for another reason.
    Neutral,
}

/// A sync that has begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    at: Instant,
    /// How many syncs of its namespace ran then, itself included.
    in_flight: usize,
}

/// What became of the limits.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// The limit for all.
    pub(super) total: Option<usize>,
    /// The limits of namespaces; `None` is as many as of all.
    pub(super) namespaces: Vec<(Arc<str>, Option<usize>)>,
}

/// The limits.
#[derive(Debug)]
pub(super) struct ConcurrencyLimiter {
    workers: usize,
    total: Limit,
    in_flight: usize,
    namespaces: HashMap<Arc<str>, Namespace>,
    /// With so many namespaces the old ones are forgotten.
    sweep_at: usize,
    /// When the last sync began whose create was answered promptly.
    prompt: Option<Instant>,
}

#[derive(Debug, Default)]
struct Namespace {
    in_flight: usize,
    limit: Option<Limit>,
    /// The lowest latency of late.
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

/// Additive increase, multiplicative decrease.
#[derive(Debug, Clone, Copy)]
struct Limit {
    now: f64,
    /// Up to here it grows by one with each success.
    threshold: f64,
    decreased: Option<Instant>,
    /// It has grown since it was decreased.
    has_grown: bool,
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
impl Limit {
    fn new(workers: usize) -> Self {
        Self { now: workers as f64, threshold: workers as f64, decreased: None, has_grown: true }
    }

    fn get(&self) -> usize {
        self.now as usize
    }

    /// Whether a sync that began then says something about the limit as it is.
    fn concerns(&self, began: Instant) -> bool {
        self.decreased.is_none_or(|decreased| began >= decreased)
    }

    fn increase(&mut self, workers: usize) {
        let step = if self.now < self.threshold { 1.0 } else { self.now.recip() };
        self.now = (self.now + step).min(workers as f64);
        self.has_grown = true;
    }

    /// Half of `width`, which was too much.
    fn decrease(&mut self, width: f64, now: Instant) {
        self.now = (width / 2.0).max(1.0);
        // Where nothing has succeeded since the last time nothing is known of where congestion begins.
        if std::mem::take(&mut self.has_grown) {
            self.threshold = self.now;
        }
        self.decreased = Some(now);
    }

    /// No less than this, whatever it was decreased to.
    fn raise_to(&mut self, least: usize) {
        self.now = self.now.max(least as f64);
        self.threshold = self.threshold.max(self.now);
    }

    fn decrease_to_half_of(&mut self, in_flight: usize, now: Instant) {
        self.decrease(self.now.min(in_flight as f64), now);
    }
}

impl ConcurrencyLimiter {
    /// Limits that allow everything.
    pub(super) fn new() -> Self {
        let workers = usize::MAX;
        Self {
            workers,
            total: Limit::new(workers),
            in_flight: 0,
            namespaces: HashMap::new(),
            sweep_at: 64,
            prompt: None,
        }
    }

    /// From now on there are so many workers, and no other limit for all.
    pub(super) fn set_workers(&mut self, workers: usize) {
        self.workers = workers;
        self.total = Limit::new(workers);
    }

    /// A sync of `namespace` begins.
    pub(super) fn begin(&mut self, namespace: &Arc<str>, now: Instant) -> Begun {
        self.in_flight += 1;
        let entry = self.namespaces.entry(Arc::clone(namespace)).or_default();
        entry.in_flight += 1;
        Begun { at: now, in_flight: entry.in_flight }
    }

    /// A sync of `namespace` has ended.
    pub(super) fn end(&mut self, namespace: &Arc<str>, begun: Begun, signal: Signal, now: Instant) -> Changes {
        let mut changes = Changes::default();
        let before = self.total.get();
        let took = now.saturating_duration_since(begun.at);
        self.judge(namespace, begun, signal, now, &mut changes);
        self.in_flight -= 1;
        if let Some(entry) = self.namespaces.get_mut(namespace) {
            entry.in_flight -= 1;
            entry.last = Some((now, signal == Signal::Congested));
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
                    self.total.decrease_to_half_of(self.in_flight, now);
                    self.total.raise_to(workers / 2);
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
                if after != before {
                    changes.namespaces.push((Arc::clone(namespace), entry.limit.map(|limit| limit.get())));
                }
            }
        }
    }

    /// Halves a namespace's limit, unless the sync began before the last time.
    fn decrease(&mut self, namespace: &Arc<str>, begun: Begun, now: Instant, changes: &mut Changes) -> bool {
        let Some(entry) = self.namespaces.get_mut(namespace) else { return false };
        let in_flight = entry.in_flight;
        let limit = entry.limit.get_or_insert_with(|| Limit::new(self.workers));
        let concerns = limit.concerns(begun.at);
        if concerns {
            limit.decrease_to_half_of(in_flight, now);
            changes.namespaces.push((Arc::clone(namespace), Some(limit.get())));
        }
        concerns
    }

    /// Whether most of the namespaces that were active since `began` were not answered in time, `namespace` included, and none
    /// was answered promptly.
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

    /// Forgets the namespaces that have been quiet for long.
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
    /// Takes a sample into account. True if its latency is long, and has grown with the number in flight.
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
