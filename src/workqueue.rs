//! client-go's workqueue: rate limiting, delaying, fair. Independent of Kubernetes.
//!
//! Guarantees: those of upstream's `util/workqueue/doc.go`, and more:
//! - Fair: keys of one priority and group are handed out in the order in which they became ready.
//! - Three priorities: a key whose wall time has come ([`WorkQueue::add_at`]) goes before all others, and its retries come
//!   next. A key that was passed over for [`STARVATION_LIMIT`] is starved; starved keys get every second turn. So a key of
//!   lower priority waits for at most that time, and then for twice as many turns as there are keys before it.
//! - Fair between groups ([`Config::group`]): groups with ready keys of one priority take turns. With a limit
//!   ([`WorkQueue::set_limit`]), groups whose keys take a second or longer share at most half of it. Groups that have yet to
//!   show that they are faster share half of the rest (`groups`). A key that may be handed out never waits for one that may
//!   not.
//! - Stingy: a key that is added several times before it is processed is processed once. One that is added while it is being
//!   processed is processed once more afterwards. No two workers ever have the same key.
//! - No key is lost: a key that was added before shutdown is handed out, also when a worker's [`WorkQueue::get`] is dropped
//!   at any point.
//! - Any number of producers and consumers. Producers never wait. No worker sleeps while a key may be handed out.
//! - Shutdown accepts no new keys, drops all timers, hands out what is ready, then [`WorkQueue::get`] returns `None`. With
//!   drain, it also waits until every key that was handed out is done.
//! - A delayed key is never ready before its time. Of several timers of the same kind for one key, the soonest counts.
//!   [`WorkQueue::add_after`] uses the monotonic clock and serves backoff. [`WorkQueue::add_at`] uses the wall clock and
//!   serves schedules. Wall timers are checked again within [`WALL_SLICE`] when that clock is stepped or the machine has
//!   slept, or at once if the clock reports its steps. No instant and no delay is too far away.
//! - When the wall clock is set back by more than [`SET_BACK`], every key with a wall timer is ready at once: its time may
//!   have been computed from a clock that ran ahead.
//! - One task keeps all timers. Without timers it does not wake, and a worker wakes it only for a sooner time than that at
//!   which it looks anyway. With monotonic timers only, it wakes for them alone. With wall timers it wakes once per slice to
//!   look at a clock that does not report its steps.
//! - Keys of low priority can be paused, for a time ([`WorkQueue::pause_low_priority`]) or while keys whose wall time has come
//!   are being processed and shortly after ([`Config::pause_at_due`]), but no key for longer than [`STARVATION_LIMIT`].
//! - No thread, no global state, no clock but tokio's and the configured one: on paused time and with a clock of a test, the
//!   queue is deterministic.

mod delaying;
mod groups;
mod metrics;
mod queue;
pub mod rate_limiter;

use std::fmt;
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::SharedClock;
use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use self::delaying::{Delays, LONGEST_DELAY};
pub use self::delaying::{SET_BACK, Scheduled, WALL_SLICE};
pub use self::groups::UNANSWERED;
pub use self::metrics::{Membership, QueueGroup};
use self::metrics::{Snapshot, Source, Stats};
use self::queue::Queue;
pub use self::queue::{Priority, STARVATION_LIMIT};
use self::rate_limiter::ItemExponentialFailure;
use crate::sim;

/// A type that can be a key. Keys are cloned occasionally; cloning should be cheap (`Arc<str>`).
pub trait Key: Clone + Eq + Hash + Send + Sync + 'static {}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Key for K {}

/// How many due timers are delivered before the timer task releases the lock and yields: with a hundred thousand keys due at
/// one instant, the first must not wait for the last.
const BATCH: usize = 256;

/// The settings of a queue.
#[derive(Debug)]
pub struct Config<K> {
    /// The queue's name, for log lines.
    pub name: String,
    /// The wall clock of [`WorkQueue::add_at`].
    pub clock: SharedClock,
    /// The name of a key's group; the empty name is a valid group.
    pub group: fn(&K) -> &str,
    /// How long at most keys of low priority are paused once the wall time of others has come. The pause ends a few
    /// milliseconds after those are done, so that what is due does not share the API server with what can wait.
    pub pause_at_due: Duration,
}

impl<K: Key> Config<K> {
    /// All keys belong to one group, and none is paused when others are due.
    pub fn new(name: impl Into<String>, clock: SharedClock) -> Self {
        Self { name: name.into(), clock, group: |_| "", pause_at_due: Duration::ZERO }
    }

    /// Divides the keys into groups that share the workers fairly.
    #[must_use]
    pub fn grouped_by(self, group: fn(&K) -> &str) -> Self {
        Self { group, ..self }
    }

    /// Pauses low priority for that long at most while keys whose wall time has come are being processed.
    #[must_use]
    pub fn pausing_at_due(self, pause_at_due: Duration) -> Self {
        Self { pause_at_due, ..self }
    }
}

/// A handle on a queue; clones share it. When the last handle is dropped its timer task ends.
pub struct WorkQueue<K> {
    shared: Arc<Shared<K>>,
    timer_task: Arc<AbortOnDropHandle<()>>,
}

struct Shared<K> {
    name: String,
    clock: SharedClock,
    pause_at_due: Duration,
    rate_limiter: Mutex<ItemExponentialFailure<K>>,
    state: Mutex<State<K>>,
    /// A key became ready, or shutdown began: workers check the queue.
    ready: Notify,
    /// Shutdown began or the last key was done: tasks that wait for the drain check again.
    drained: Notify,
    /// A timer became the soonest, the end of a pause or a look at slow groups came closer, or shutdown began: the timer task
    /// checks again.
    rearm: Notify,
}

struct State<K> {
    queue: Queue<K>,
    delays: Delays<K>,
    /// When the timer task looks next, unless it is woken before.
    looks_at: Option<Instant>,
}

impl<K: Key> State<K> {
    /// Whether the timer task must be woken, because it would look at the queue too late. True once for each such time.
    fn must_look_sooner(&mut self, now: std::time::Instant) -> bool {
        let Some(next) = self.queue.next_look(now).map(Instant::from) else { return false };
        let is_sooner = self.looks_at.is_none_or(|planned| next < planned);
        if is_sooner {
            self.looks_at = Some(next);
        }
        is_sooner
    }
}

/// What the timer task does next.
enum Next {
    /// More timers are due: go on after yielding.
    Yield,
    /// Sleep until that time, or until woken.
    Sleep(Instant),
    /// There is nothing to look at later: sleep until woken.
    Idle,
    /// The queue is shut down.
    End,
}

impl<K: Key> WorkQueue<K> {
    /// An empty queue and its timer task.
    ///
    /// # Panics
    /// Outside a tokio runtime whose time driver is on. On Linux the system's clock needs the runtime's I/O driver, too:
    /// without it the timer task panics.
    pub fn new(config: Config<K>) -> Self {
        let shared = Arc::new(Shared {
            name: config.name,
            clock: config.clock,
            pause_at_due: config.pause_at_due,
            rate_limiter: Mutex::default(),
            state: Mutex::new(State { queue: Queue::new(config.group), delays: Delays::new(), looks_at: None }),
            ready: Notify::new(),
            drained: Notify::new(),
            rearm: Notify::new(),
        });
        let timer_task = tokio::spawn(sim::bind(Arc::clone(&shared).keep_timers()));
        Self { shared, timer_task: Arc::new(AbortOnDropHandle::new(timer_task)) }
    }

    /// The source of this queue's metrics; counting starts now.
    fn counted(&self) -> Arc<dyn Source> {
        self.shared.state.lock().queue.keep_stats();
        Arc::<Shared<K>>::clone(&self.shared)
    }

    /// Makes `key` ready now; if it is being processed, when it is done. Does nothing if the key is ready already or shutdown
    /// began. Timers of the key stay.
    pub fn add(&self, key: K) {
        self.add_with(key, Priority::Low);
    }

    /// As [`WorkQueue::add`], but with this priority.
    pub fn add_with(&self, key: K, priority: Priority) {
        let now = now();
        if self.shared.state.lock().queue.add(key, priority, now) {
            self.shared.ready.notify_one();
        }
    }

    /// Adds `key` after `delay` on the monotonic clock; at once if it is zero. An earlier timer of this kind for the key
    /// stays in place of this one.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_after_with(key, delay, |_, _| Priority::Low);
    }

    fn add_after_with(&self, key: K, delay: Duration, priority: impl FnOnce(&Queue<K>, &K) -> Priority) {
        let now = now();
        self.add_later(key, delay.is_zero(), now, true, priority, |delays, key, priority| {
            delays.add_after(key, priority, delay, now)
        });
    }

    /// Adds `key` when the wall clock reaches `at`, or when that clock is set back meanwhile; at once if `at` has passed. An
    /// earlier timer of this kind for the key stays in place of this one. The priority is high.
    pub fn add_at(&self, key: K, at: DateTime<Utc>) {
        self.add_at_with(key, at, true);
    }

    /// Like [`WorkQueue::add_at`], for a key that is requeued anyway: metrics count both as one retry.
    pub fn add_at_uncounted(&self, key: K, at: DateTime<Utc>) {
        self.add_at_with(key, at, false);
    }

    fn add_at_with(&self, key: K, at: DateTime<Utc>, counts: bool) {
        let due = at <= self.shared.clock.now();
        self.add_later(key, due, now(), counts, |_, _| Priority::High, |delays, key, _| delays.add_at(key, at));
    }

    /// Counts a failure of `key` and adds it after the delay that the rate limiter returns. The priority is
    /// [`Priority::Retry`] if the key is being processed and was handed out with that priority or a higher one.
    pub fn add_rate_limited(&self, key: K) {
        self.add_rate_limited_within(key, Duration::ZERO, Duration::MAX);
    }

    /// Like [`WorkQueue::add_rate_limited`], with a delay of `at_most`, but no less than `at_least`: for failures that do not
    /// depend on the key, such as an outage, and for a server that says how long to wait. Failures with the same `at_most`
    /// are counted together, and make no failure with another one wait longer.
    pub fn add_rate_limited_within(&self, key: K, at_least: Duration, at_most: Duration) {
        let delay = self.shared.rate_limiter.lock().when(&key, at_most).max(at_least);
        self.add_after_with(key, delay, Queue::retry_priority);
    }

    /// Pauses keys of low priority for `time`, [`STARVATION_LIMIT`] at most, because the API server or a client is
    /// overloaded. Keys of higher priority pass, and so does a key that has waited for [`STARVATION_LIMIT`].
    pub fn pause_low_priority(&self, time: Duration) {
        let rearms = {
            let mut state = self.shared.state.lock();
            state.queue.pause_low_priority(time, now());
            state.must_look_sooner(now())
        };
        if rearms {
            self.shared.rearm.notify_one();
        }
    }

    /// Limits how many keys, at least one, are processed at a time; initially there is no limit. Processing that has begun
    /// continues.
    pub fn set_limit(&self, limit: usize) {
        if self.shared.state.lock().queue.set_limit(limit) {
            self.shared.ready.notify_one();
        }
    }

    /// Limits how many keys of a group, at least one, are processed at a time; `None`: only the limit of the queue applies.
    pub fn set_group_limit(&self, group: &str, limit: Option<usize>) {
        if self.shared.state.lock().queue.set_group_limit(group, limit) {
            self.shared.ready.notify_one();
        }
    }

    /// Removes the timers of `key`, of both kinds. A ready key stays ready.
    pub fn remove_timers(&self, key: &K) {
        self.shared.state.lock().delays.remove(key);
    }

    /// Whether any key waits for a worker, or is paused: less urgent work on the same server should wait. Keys whose groups
    /// have reached their own limit do not count.
    pub fn is_busy(&self) -> bool {
        self.shared.is_busy()
    }

    /// Makes the rate limiter forget the failures of `key`. The worker must still call [`WorkQueue::done`].
    pub fn forget(&self, key: &K) {
        self.shared.rate_limiter.lock().forget(key);
    }

    /// How many failures of `key` the rate limiter remembers.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.shared.rate_limiter.lock().num_requeues(key)
    }

    /// Waits for a key to process; the worker must then call [`WorkQueue::done`] with it. `None`: shutdown began and no key
    /// is ready, so the worker should end.
    ///
    /// Cancel safe: when the future is dropped before it is ready, no key is lost and the wake-up goes to another worker.
    /// Yields to the runtime regularly, even when keys are always ready.
    pub async fn get(&self) -> Option<K> {
        tokio::task::coop::consume_budget().await;
        if let Some(answer) = self.try_get() {
            return answer;
        }
        loop {
            let mut woken = pin!(self.shared.ready.notified());
            // Registers before looking, so that a key that becomes ready after the look wakes this worker.
            woken.as_mut().enable();
            if let Some(answer) = self.try_get() {
                return answer;
            }
            woken.await;
        }
    }

    /// Ends the processing of `key`. If it was added meanwhile it is ready again. Does nothing for a key that is not
    /// being processed.
    pub fn done(&self, key: &K) {
        let (ready, drained, rearms) = {
            let state = &mut *self.shared.state.lock();
            let ready = state.queue.done(key, now);
            let is_over = state.queue.shutting_down() && state.queue.drained();
            (ready, is_over, state.queue.is_urgent_done() && state.must_look_sooner(now()))
        };
        if rearms {
            self.shared.rearm.notify_one();
        }
        if ready {
            self.shared.ready.notify_one();
        }
        if drained {
            self.shared.drained.notify_waiters();
        }
    }

    /// Begins shutdown: accepts no new keys and drops timers; ready keys are still handed out. Ends the wait of
    /// [`WorkQueue::shut_down_with_drain`].
    pub fn shut_down(&self) {
        self.begin_shutdown(false);
    }

    /// Begins shutdown and waits until every key that was ready or being processed is done. Workers must go on calling
    /// [`WorkQueue::get`] and [`WorkQueue::done`]. [`WorkQueue::shut_down`] ends the wait early.
    pub async fn shut_down_with_drain(&self) {
        self.begin_shutdown(true);
        loop {
            let mut woken = pin!(self.shared.drained.notified());
            woken.as_mut().enable();
            if self.shared.state.lock().queue.drained() {
                return;
            }
            woken.await;
        }
    }

    /// Whether shutdown began.
    pub fn shutting_down(&self) -> bool {
        self.shared.state.lock().queue.shutting_down()
    }

    /// How many keys are ready. For information only: the number may be outdated when it is read.
    pub fn len(&self) -> usize {
        self.shared.state.lock().queue.len()
    }

    /// How many keys are being processed.
    pub fn processing(&self) -> usize {
        self.shared.state.lock().queue.processing()
    }

    /// Whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many timers wait; a key with one of each kind counts twice.
    pub fn waiting(&self) -> usize {
        self.shared.state.lock().delays.len()
    }

    /// The timers of `key`, if it has any.
    pub fn scheduled_for(&self, key: &K) -> Option<Scheduled> {
        self.shared.state.lock().delays.scheduled_for(key)
    }

    /// The soonest wall timer, and how many keys, counted up to `at_most`, come due within `window` from it.
    pub fn upcoming(&self, window: TimeDelta, at_most: usize) -> Option<(DateTime<Utc>, usize)> {
        self.shared.state.lock().delays.upcoming(window, at_most)
    }

    /// Whether `key` is to be processed without waiting for any timer: it is ready, or was added again while being
    /// processed.
    pub fn is_dirty(&self, key: &K) -> bool {
        self.shared.state.lock().queue.is_dirty(key)
    }

    /// Whether a worker has `key`.
    pub fn is_processing(&self, key: &K) -> bool {
        self.shared.state.lock().queue.is_processing(key)
    }

    /// Adds `key` now if it is `due`; otherwise gives it a timer by `schedule`, which returns whether that timer is the
    /// soonest. Metrics count a retry if `counts`.
    fn add_later(
        &self,
        key: K,
        due: bool,
        now: std::time::Instant,
        counts: bool,
        priority: impl FnOnce(&Queue<K>, &K) -> Priority,
        schedule: impl FnOnce(&mut Delays<K>, K, Priority) -> bool,
    ) {
        let mut state = self.shared.state.lock();
        if state.queue.shutting_down() {
            return;
        }
        if counts {
            state.queue.count_retry();
        }
        let priority = priority(&state.queue, &key);
        let (ready, soonest) = if due {
            (state.queue.add(key, priority, now), false)
        } else {
            (false, schedule(&mut state.delays, key, priority))
        };
        drop(state);
        if ready {
            self.shared.ready.notify_one();
        }
        if soonest {
            self.shared.rearm.notify_one();
        }
    }

    /// Without waiting: a key, the end of the queue, or nothing yet.
    #[allow(clippy::option_option)]
    fn try_get(&self) -> Option<Option<K>> {
        let (answer, wakes, rearms) = {
            let state = &mut *self.shared.state.lock();
            match state.queue.get(now) {
                // If that key was starved, another worker should look for the next one, and its starvation has another time.
                Some((key, priority)) => {
                    let is_paused = priority == Priority::Low && state.queue.has_pause();
                    (Some(Some(key)), state.queue.is_waited_for(), is_paused && state.must_look_sooner(now()))
                }
                None if state.queue.shutting_down() => (Some(None), false, false),
                None => (None, false, state.must_look_sooner(now())),
            }
        };
        if wakes {
            self.shared.ready.notify_one();
        }
        if rearms {
            self.shared.rearm.notify_one();
        }
        answer
    }

    fn begin_shutdown(&self, draining: bool) {
        {
            let mut state = self.shared.state.lock();
            state.queue.shut_down(draining);
            state.delays.clear();
        }
        self.shared.ready.notify_waiters();
        self.shared.drained.notify_waiters();
        self.shared.rearm.notify_one();
    }
}

impl<K: Key> Shared<K> {
    /// The timer task: makes due keys ready, then sleeps until the next timer.
    async fn keep_timers(self: Arc<Self>) {
        let mut steps = self.clock.steps();
        let slice = if steps.is_some() { LONGEST_DELAY } else { WALL_SLICE };
        loop {
            match self.deliver(slice) {
                Next::Yield => tokio::task::yield_now().await,
                // Every wake-up leads to the same: check again.
                Next::Sleep(until) => tokio::select! {
                    biased;
                    () = self.clock.sleep_until(until) => {}
                    () = self.rearm.notified() => {}
                    () = stepped(steps.as_mut()) => {}
                },
                Next::Idle => self.rearm.notified().await,
                Next::End => return,
            }
        }
    }

    /// Makes up to [`BATCH`] due keys ready.
    fn deliver(&self, slice: Duration) -> Next {
        let (now, wall) = (now(), self.clock.now());
        let mut ready = 0;
        let (next, released) = {
            let State { queue, delays, looks_at } = &mut *self.state.lock();
            delays.look(now, wall);
            let mut left = BATCH;
            let mut is_due = false;
            while left > 0 {
                let Some((key, priority)) = delays.pop_due(now, wall) else { break };
                ready += usize::from(queue.add(key, priority, now));
                is_due |= priority == Priority::High;
                left -= 1;
            }
            if is_due && !self.pause_at_due.is_zero() {
                queue.pause_for_urgent(self.pause_at_due, now);
            }
            ready += usize::from(queue.advance(now));
            let soonest = [delays.next_look(now, wall, slice), queue.next_look(now)].into_iter().flatten().min();
            let next = match soonest {
                _ if queue.shutting_down() => Next::End,
                None => Next::Idle,
                Some(_) if left == 0 => Next::Yield,
                Some(at) => Next::Sleep(at.into()),
            };
            *looks_at = match next {
                Next::Yield => Some(now.into()),
                Next::Sleep(at) => Some(at),
                Next::Idle | Next::End => None,
            };
            (next, queue.release(now))
        };
        if released {
            self.ready.notify_waiters();
        }
        // After the lock is released; otherwise the woken workers would wait for it at once.
        for _ in 0..ready {
            self.ready.notify_one();
        }
        next
    }
}

impl<K: Key> Source for Shared<K> {
    fn snapshot(&self) -> Snapshot {
        let queue = &self.state.lock().queue;
        let now = now();
        let running = queue.processing_since().map(|since| now.saturating_duration_since(since)).collect();
        let stats = queue.stats().cloned().unwrap_or_else(Stats::new);
        Snapshot { stats, depth: queue.depth(), running }
    }

    fn is_busy(&self) -> bool {
        let queue = &self.state.lock().queue;
        queue.is_busy() || queue.is_low_paused(now())
    }
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), timer_task: Arc::clone(&self.timer_task) }
    }
}

impl<K> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// Waits for a step of the wall clock; for ever with a clock that does not report its steps.
async fn stepped(steps: Option<&mut watch::Receiver<()>>) {
    let told = match steps {
        Some(steps) => steps.changed().await.is_ok(),
        None => false,
    };
    if !told {
        std::future::pending::<()>().await;
    }
}

/// The runtime's monotonic time; the paused one under paused time.
fn now() -> std::time::Instant {
    Instant::now().into_std()
}

#[cfg(test)]
mod tests;
