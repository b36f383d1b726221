//! The background task that correlates events and writes them.
//!
//! Guarantees: at most `max_in_flight` requests are in flight, at most one of them for any one object, each bounded by
//! `request_timeout`. While the process is busy with more urgent work, no request begins for `busy_patience`; from then on
//! one at a time. An event that fails temporarily waits for its next try without a request slot. Only later events about the
//! same object wait behind it, for at most `max_tries` tries `retry_delay` apart (just over two minutes by default, twice as
//! long if no try is answered). Events of other objects pass it. In an outage the task holds `max_pending` events and accepts
//! no more; then the recorder's queue fills up and drops. On cancellation every held event gets one more try, all within
//! `drain_timeout`; the rest is dropped and counted. Matches `recordToSink` in client-go's `tools/record/event.go`, which
//! writes one event at a time and delays all others while it retries.

use std::fmt;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::lanes::{Lanes, Write};
use super::recorder::Discarded;
use super::sink::{Disposition, EventSink, SinkError, SinkFault};
use super::{Config, Correlator, Event, discard};

/// How often delayed events check whether the process is still busy.
const GLANCE: Duration = Duration::from_millis(20);

/// The other half of a [`Recorder`](super::Recorder): owns the correlator and every waiting event.
pub struct EventSinkTask {
    config: Config,
    incoming: mpsc::Receiver<Event>,
    /// Whether `incoming` may still yield events.
    open: bool,
    correlator: Correlator,
    lanes: Lanes,
    discarded: Discarded,
    random: StdRng,
    busy: Box<dyn Fn() -> bool + Send + Sync>,
    /// Since when writable events have waited for the process to be less busy.
    yielding_since: Option<Instant>,
    /// Set once shutdown began: when the task must have stopped.
    deadline: Option<Instant>,
    /// How many events were dropped since then.
    abandoned: usize,
}

impl EventSinkTask {
    pub(super) fn new(config: Config, incoming: mpsc::Receiver<Event>, discarded: Discarded) -> Self {
        Self {
            correlator: Correlator::new(&config.correlator),
            random: StdRng::seed_from_u64(config.seed.unwrap_or_else(rand::random)),
            config,
            incoming,
            busy: Box::new(|| false),
            yielding_since: None,
            open: true,
            lanes: Lanes::default(),
            discarded,
            deadline: None,
            abandoned: 0,
        }
    }

    /// Delays events while `busy` returns true. It is called after every request and event, and every 20 ms while events
    /// wait.
    #[must_use]
    pub fn yielding_to(mut self, busy: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.busy = Box::new(busy);
        self
    }

    /// How many requests may be in flight now.
    fn limit(&mut self) -> usize {
        let waits = self.lanes.has_ready() && self.deadline.is_none() && (self.busy)();
        if !waits {
            self.yielding_since = None;
            return self.config.max_in_flight.max(1);
        }
        let since = *self.yielding_since.get_or_insert_with(Instant::now);
        usize::from(since.elapsed() >= self.config.busy_patience)
    }

    /// When to check again whether the process is busy.
    fn next_glance(&self) -> Option<Instant> {
        self.yielding_since.map(|_| Instant::now() + GLANCE)
    }

    /// Writes events to `sink` until `cancel` is cancelled or every recorder is dropped, then for at most `drain_timeout`
    /// more. Returns how many events it dropped since then.
    ///
    /// Cancel it last, after every task that records events has stopped.
    pub async fn run<S: EventSink>(mut self, sink: S, cancel: CancellationToken) -> usize {
        let mut in_flight = FuturesUnordered::new();
        loop {
            while in_flight.len() < self.limit()
                && let Some(write) = self.lanes.next(self.config.max_in_flight)
            {
                in_flight.push(attempt(&sink, write, self.config.request_timeout));
            }
            if !self.open && self.lanes.pending() == 0 {
                break;
            }
            tokio::select! {
                biased;
                () = cancel.cancelled(), if self.deadline.is_none() => self.begin_drain(),
                () = at(self.deadline) => break,
                Some((mut write, result, took)) = in_flight.next() => {
                    self.lanes.answered(&mut write, took);
                    self.settle(write, result);
                }
                () = at(self.lanes.next_wake()) => self.lanes.wake(Instant::now()),
                () = at(self.next_glance()) => {}
                event = self.incoming.recv(), if self.open && self.lanes.pending() < self.config.max_pending.max(1) => {
                    match event {
                        Some(event) => self.accept(event),
                        None => self.closed(),
                    }
                }
            }
        }
        drop(in_flight);
        self.abandon()
    }

    /// Decides what happens to a recorded event.
    fn accept(&mut self, event: Event) {
        match self.correlator.correlate(event) {
            Some(event) => self.lanes.push(Write::new(event)),
            None => (self.discarded)(discard::SPAM_FILTER),
        }
    }

    /// Handles the end of the input: no more events follow.
    fn closed(&mut self) {
        self.open = false;
        self.begin_drain();
    }

    fn begin_drain(&mut self) {
        if self.deadline.is_none() {
            self.deadline = Some(Instant::now() + self.config.drain_timeout);
            self.incoming.close();
            self.lanes.wake_all();
        }
    }

    /// Handles the result of one try.
    fn settle(&mut self, mut write: Write, result: Result<(), SinkError>) {
        let Err(error) = result else {
            return self.lanes.done(&write.object);
        };
        write.tries += 1;
        match error.disposition() {
            // An earlier try succeeded and only its response was lost.
            Disposition::AlreadyExists if write.tries > 1 => self.lanes.done(&write.object),
            Disposition::Retry { not_before } if write.tries < self.config.max_tries && self.deadline.is_none() => {
                tracing::debug!(%error, tries = write.tries, "Unable to write event (may retry after sleeping)");
                let until = Instant::now() + self.pause(write.tries, not_before);
                self.lanes.sleep(write, until);
            }
            Disposition::Retry { .. } => {
                if self.deadline.is_some() {
                    // One log line at the end covers all of them.
                    self.abandoned += 1;
                    tracing::debug!(%error, "Unable to write event (shutting down)");
                } else {
                    tracing::warn!(%error, tries = write.tries, "Unable to write event (retry limit exceeded!)");
                }
                self.discard(&write, discard::GAVE_UP);
            }
            Disposition::AlreadyExists | Disposition::NotFound | Disposition::Refused => {
                if error.is_namespace_terminating() {
                    tracing::debug!(%error, "Server rejected event (will not retry!)");
                } else {
                    tracing::warn!(%error, "Server rejected event (will not retry!)");
                }
                self.discard(&write, discard::REFUSED);
            }
        }
    }

    /// How long to wait after failed try number `tries`.
    fn pause(&mut self, tries: u32, not_before: Duration) -> Duration {
        let own = self.config.retry_delay;
        let own = if tries == 1 { own.mul_f64(self.random.random()) } else { own };
        own.max(not_before.min(self.config.max_retry_after))
    }

    fn discard(&mut self, write: &Write, reason: &'static str) {
        (self.discarded)(reason);
        self.lanes.done(&write.object);
    }

    /// Counts the events that are left when time is up; logs and returns how many were dropped in all.
    fn abandon(mut self) -> usize {
        self.incoming.close();
        let mut left = self.lanes.pending();
        while self.incoming.try_recv().is_ok() {
            left += 1;
        }
        for _ in 0..left {
            (self.discarded)(discard::GAVE_UP);
        }
        let abandoned = self.abandoned + left;
        if abandoned > 0 {
            tracing::warn!(events = abandoned, "Gave up on events that could not be written at shutdown");
        }
        abandoned
    }
}

/// One try, and how long it took: a patch for an event with a higher count, a create for a new one or one whose Event is gone.
/// Matches the first half of `recordEvent` in client-go's `tools/record/event.go`.
async fn attempt<S: EventSink>(sink: &S, write: Write, limit: Duration) -> (Write, Result<(), SinkError>, Duration) {
    let (event, began) = (&write.event, Instant::now());
    let mut result = Ok(());
    let mut create = event.count <= 1;
    if !create {
        result = bounded("patch", event, limit, sink.patch(event)).await;
        create = result.as_ref().is_err_and(|error| error.disposition() == Disposition::NotFound);
    }
    if create {
        result = bounded("create", event, limit, sink.create(event)).await;
    }
    (write, result, began.elapsed())
}

async fn bounded(
    operation: &'static str,
    event: &Event,
    limit: Duration,
    request: impl Future<Output = Result<(), SinkError>>,
) -> Result<(), SinkError> {
    let late = |_| Err(SinkError::new(operation, event, SinkFault::Timeout(limit)));
    timeout(limit, request).await.unwrap_or_else(late)
}

/// Waits until `instant`; for ever without one.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

impl fmt::Debug for EventSinkTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSinkTask").field("pending", &self.lanes.pending()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
