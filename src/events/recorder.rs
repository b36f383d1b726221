//! The recorder: the only part of this module that the firing path calls.
//!
//! Guarantees: `event` takes a place in a bounded queue, or counts the event as dropped if the queue is full, and returns. No
//! two events of one recorder have the same time in their names, even if the clock stands still (as in a simulation) or steps
//! back. The API server would refuse a second event of the same name as existing already.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use apimachinery::clock::SharedClock;
use chrono::{DateTime, Utc};
use tokio::sync::mpsc;

use super::{CorrelatorOptions, Event, EventRecorder, EventSinkTask, EventType, ObjectReference, discard};

/// Counts the events that are not written, by reason (one of [`discard`]).
pub(super) type Discarded = Arc<dyn Fn(&'static str) + Send + Sync>;

/// The settings of the recorder and its task. The defaults are client-go's where client-go has the setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `source.component` and `reportingComponent`.
    pub component: &'static str,
    /// How many recorded events may wait for correlation. Further ones are dropped.
    pub max_queued: usize,
    /// How many correlated events may wait to be written or tried again. Beyond that, `max_queued` fills up.
    pub max_pending: usize,
    /// How many requests may be in flight.
    pub max_in_flight: usize,
    /// How long events may be delayed by more urgent work.
    pub busy_patience: Duration,
    /// The maximum number of tries for one event.
    pub max_tries: u32,
    /// The delay before the second and each later try. The first delay is a random part of it, so that retries spread out.
    pub retry_delay: Duration,
    /// The longest pause that the server can ask for.
    pub max_retry_after: Duration,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// How long the task goes on writing after shutdown began.
    pub drain_timeout: Duration,
    /// The seed of the random delays, for repeatable runs. `None`: from the operating system.
    pub seed: Option<u64>,
    /// The correlator's settings.
    pub correlator: CorrelatorOptions,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            component: "cronjob-controller",
            max_queued: 1000,
            max_pending: 1000,
            max_in_flight: 3,
            busy_patience: Duration::from_secs(5),
            max_tries: 12,
            retry_delay: Duration::from_secs(10),
            max_retry_after: Duration::from_secs(60),
            request_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(2),
            seed: None,
            correlator: CorrelatorOptions::default(),
        }
    }
}

/// The real [`EventRecorder`]. Cheap to clone; all clones feed one task.
///
/// Matches `recorderImpl` in client-go's `tools/record/event.go` and the long queue of its broadcaster.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

struct Shared {
    component: &'static str,
    clock: SharedClock,
    queue: mpsc::Sender<Event>,
    discarded: Discarded,
    last_nanos: AtomicI64,
    dropped: AtomicU64,
}

impl Recorder {
    /// A recorder and the task that writes its events; spawn [`EventSinkTask::run`].
    ///
    /// `discarded` is called for each event that will not be written, with the reason (one of [`discard`]). Both `event` and
    /// the task call it, so it must not block.
    pub fn new(
        config: Config,
        clock: SharedClock,
        discarded: impl Fn(&'static str) + Send + Sync + 'static,
    ) -> (Self, EventSinkTask) {
        let discarded: Discarded = Arc::new(discarded);
        let (queue, incoming) = mpsc::channel(config.max_queued.max(1));
        let shared = Shared {
            component: config.component,
            clock,
            queue,
            discarded: discarded.clone(),
            last_nanos: AtomicI64::new(i64::MIN),
            dropped: AtomicU64::new(0),
        };
        (Self { shared: Arc::new(shared) }, EventSinkTask::new(config, incoming, discarded))
    }
}

impl Shared {
    /// `now` in nanoseconds since 1970, or the first later number that is unused.
    fn unique_nanos(&self, now: DateTime<Utc>) -> i64 {
        // Outside the range of the number (before 1677, after 2262) the name does not contain the time.
        let nanos = now.timestamp_nanos_opt().unwrap_or(0);
        let after = |last: i64| nanos.max(last.saturating_add(1));
        let last = self.last_nanos.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
        last.map_or_else(after, after)
    }

    fn dropped(&self, event: &Event, error: mpsc::error::TrySendError<()>) {
        let (reason, why) = match error {
            mpsc::error::TrySendError::Full(()) => (discard::QUEUE_FULL, "too many queued events"),
            mpsc::error::TrySendError::Closed(()) => (discard::GAVE_UP, "the recorder is shut down"),
        };
        (self.discarded)(reason);
        // An unreachable API server fills the queue; one line for each event would then fill the log.
        let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
        if dropped.is_power_of_two() {
            tracing::warn!(
                namespace = &*event.namespace,
                object = &*event.involved_object.name,
                reason = event.reason,
                dropped,
                "Unable to record event: {why}"
            );
        }
    }
}

impl EventRecorder for Recorder {
    fn event(&self, regarding: &ObjectReference, type_: EventType, reason: &'static str, message: String) {
        let now = self.shared.clock.now();
        let nanos = self.shared.unique_nanos(now);
        let event = Event::new(regarding, type_, reason, message, self.shared.component, now, nanos);
        tracing::debug!(
            namespace = &*regarding.namespace,
            object = &*regarding.name,
            kind = &*regarding.kind,
            r#type = type_.as_str(),
            reason,
            message = event.message,
            "Event occurred"
        );
        match self.shared.queue.try_reserve() {
            Ok(slot) => slot.send(event),
            Err(error) => self.shared.dropped(&event, error),
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("component", &self.shared.component).finish_non_exhaustive()
    }
}
