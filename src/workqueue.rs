//! A queue of keys that supports the following features, in the words of client-go's `util/workqueue/doc.go`:
//! - Fair: items processed in the order in which they are added.
//! - Stingy: a single item will not be processed multiple times concurrently, and if an item is added multiple times before it
//!   can be processed, it will only be processed once.
//! - Multiple consumers and producers. In particular, it is allowed for an item to be reenqueued while it is being processed.
//! - Shutdown notifications.
//!
//! It is client-go's `TypedRateLimitingInterface`, made of the same parts, and independent of Kubernetes:
//!
//! | here | client-go |
//! | --- | --- |
//! | `queue` | `queue.go`: which keys are dirty, and which are being processed |
//! | `order` | `Queue` in `queue.go`, with its four methods: touch, push, len, pop |
//! | `delaying` | `delaying_queue.go` |
//! | [`rate_limiter`], [`WorkQueue::add_rate_limited`] | `default_rate_limiters.go`, `rate_limiting_queue.go` |
//! | `metrics` | `metrics.go` |
//!
//! What it guarantees beyond client-go:
//!
//! | about | guarantee |
//! | --- | --- |
//! | keys | A key that was added before shutdown is handed out, also when a [`WorkQueue::get`] is dropped at any point. |
//! | workers | None sleeps while a key may be handed out. Producers never wait. |
//! | timers | [`WorkQueue::add_after`] uses the monotonic clock, as client-go does, and serves backoff. |
//! | | [`WorkQueue::add_at`] uses the wall clock and serves schedules: it is never early by that clock. |
//! | | Of several timers of a kind for one key the soonest counts. No instant and no delay is too far away. |
//! | clock steps | Noticed within [`WALL_SLICE`], and so is a sleep of the machine; at once if the clock reports its steps. |
//! | | Set back by more than [`SET_BACK`]: every key with a wall timer is ready, as that clock may have run ahead. |
//! | priorities | A key whose wall time has come goes before all others, and its retries come next. |
//! | | Keys that have been ready for [`STARVATION_LIMIT`] get every second turn, however many others come. |
//! | gate | Keys of low priority wait while the server is overloaded ([`WorkQueue::pause_low_priority`]), |
//! | | and while keys that are due are processed ([`Config::pause_at_due`]): for [`STARVATION_LIMIT`] at most. |
//! | groups | Groups of keys ([`Config::group`]) take turns. |
//! | | With a limit ([`WorkQueue::set_limit`]), those that are answered slowly share at most half of it (`shares`). |
//! | | A key that may be handed out never waits for one that may not. |
//! | backoff | Failures of different kinds are counted apart ([`rate_limiter`]). |
//! | shutdown | It also drops all timers. With drain, it waits until every key that was handed out is done. |
//! | cost | One task keeps all timers. It wakes for what comes next, and once per slice for a silent wall clock. |
//! | tests | No thread, no global state, no clock but tokio's and the configured one: deterministic on paused time. |

mod delaying;
mod fifo;
mod gate;
mod metrics;
mod order;
mod queue;
pub mod rate_limiter;
mod shares;

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
pub use self::metrics::{Membership, QueueGroup};
use self::metrics::{Snapshot, Source, Stats};
pub use self::order::{Priority, STARVATION_LIMIT};
use self::queue::Queue;
use self::rate_limiter::ItemExponentialFailure;
pub use self::shares::UNANSWERED;
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
    fn must_look_sooner(&mut self) -> bool {
        let Some(next) = self.queue.order().next_advance().map(Instant::from) else { return false };
        let is_sooner = self.looks_at.is_none_or(|planned| next < planned);
        if is_sooner {
            self.looks_at = Some(next);
        }
        is_sooner
    }
}

/// When a key is added.
#[derive(Clone, Copy)]
enum When {
    After(Duration),
    At(DateTime<Utc>),
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
        let ready = self.shared.state.lock().queue.add(key, priority, now());
        self.wake(ready, false);
    }

    /// Adds `key` after `delay` on the monotonic clock; at once if it is zero. An earlier timer of this kind for the key
    /// stays in place of this one.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_later(key, When::After(delay), true, Some(Priority::Low));
    }

    /// Adds `key` when the wall clock reaches `at`, or when that clock is set back meanwhile; at once if `at` has passed. An
    /// earlier timer of this kind for the key stays in place of this one. The priority is high.
    pub fn add_at(&self, key: K, at: DateTime<Utc>) {
        self.add_later(key, When::At(at), true, Some(Priority::High));
    }

    /// Like [`WorkQueue::add_at`], for a key that is requeued anyway: metrics count both as one retry.
    pub fn add_at_uncounted(&self, key: K, at: DateTime<Utc>) {
        self.add_later(key, When::At(at), false, Some(Priority::High));
    }

    /// Counts a failure of `key` and adds it after the delay that the rate limiter returns, and so does this. The priority is
    /// [`Priority::Retry`] if the key is being processed and was handed out with that priority or a higher one.
    pub fn add_rate_limited(&self, key: K) -> Duration {
        self.add_rate_limited_within(key, Duration::ZERO, Duration::MAX)
    }

    /// Like [`WorkQueue::add_rate_limited`], with a delay of `at_most`, but no less than `at_least`: for failures that do not
    /// depend on the key, such as an outage, and for a server that says how long to wait. Failures with the same `at_most`
    /// are counted together, and make no failure with another one wait longer.
    pub fn add_rate_limited_within(&self, key: K, at_least: Duration, at_most: Duration) -> Duration {
        let delay = self.shared.rate_limiter.lock().when(&key, at_most).max(at_least);
        self.add_later(key, When::After(delay), true, None);
        delay
    }

    /// Pauses keys of low priority for `time`, [`STARVATION_LIMIT`] at most, because the API server or a client is
    /// overloaded. Keys of higher priority pass, and so does a key that has waited for [`STARVATION_LIMIT`].
    pub fn pause_low_priority(&self, time: Duration) {
        let rearms = {
            let mut state = self.shared.state.lock();
            state.queue.order().gate().close(time, now());
            state.must_look_sooner()
        };
        self.wake(false, rearms);
    }

    /// Limits how many keys, at least one, are processed at a time; initially there is no limit. Processing that has begun
    /// continues.
    pub fn set_limit(&self, limit: usize) {
        self.let_leave(|queue| queue.order().set_limit(limit));
    }

    /// Limits how many keys of a group, at least one, are processed at a time; `None`: only the limit of the queue applies.
    pub fn set_group_limit(&self, group: &str, limit: Option<usize>) {
        self.let_leave(|queue| queue.order().set_group_limit(group, limit));
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
            // It may have been the last one for which the gate is closed.
            (ready, is_over, state.queue.order().gate().is_closed() && state.must_look_sooner())
        };
        self.wake(ready, rearms);
        if drained {
            self.shared.drained.notify_waiters();
        }
    }

    /// What the processing of `key` takes shows nothing about how fast its group is answered: all are refused. Does nothing for a key
    /// that is not being processed.
    pub fn disregard(&self, key: &K) {
        self.shared.state.lock().queue.disregard(key);
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

    /// Adds `key` now if its time has come; otherwise gives it a timer. Metrics count a retry if `counts`. Without a priority it
    /// has that of a retry.
    fn add_later(&self, key: K, when: When, counts: bool, priority: Option<Priority>) {
        let now = now();
        let is_due = match when {
            When::After(delay) => delay.is_zero(),
            When::At(at) => at <= self.shared.clock.now(),
        };
        let mut state = self.shared.state.lock();
        if state.queue.shutting_down() {
            return;
        }
        if counts {
            state.queue.count_retry();
        }
        let priority = priority.unwrap_or_else(|| state.queue.retry_priority(&key));
        let (ready, soonest) = match when {
            _ if is_due => (state.queue.add(key, priority, now), false),
            When::After(delay) => (false, state.delays.add_after(key, priority, delay, now)),
            When::At(at) => (false, state.delays.add_at(key, at)),
        };
        drop(state);
        self.wake(ready, soonest);
    }

    /// Makes a change after which more keys may leave.
    fn let_leave(&self, change: impl FnOnce(&mut Queue<K>)) {
        let has_ready = {
            let queue = &mut self.shared.state.lock().queue;
            change(queue);
            queue.has_ready()
        };
        self.wake(has_ready, false);
    }

    /// Wakes a worker, the timer task, or both. The state's lock is released, or the woken task would wait for it at once.
    fn wake(&self, worker: bool, timer_task: bool) {
        if worker {
            self.shared.ready.notify_one();
        }
        if timer_task {
            self.shared.rearm.notify_one();
        }
    }

    /// Without waiting: a key, the end of the queue, or nothing yet.
    #[allow(clippy::option_option)]
    fn try_get(&self) -> Option<Option<K>> {
        let (answer, wakes, rearms) = {
            let state = &mut *self.shared.state.lock();
            match state.queue.get(now) {
                // The worker wakes the next one.
                Some(key) => (Some(Some(key)), state.queue.has_ready(), false),
                None if state.queue.shutting_down() => (Some(None), false, false),
                None => (None, false, state.must_look_sooner()),
            }
        };
        self.wake(wakes, rearms);
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
        let next = {
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
                queue.order().gate().close_for_due(self.pause_at_due, now);
            }
            ready += usize::from(queue.order().advance(now));
            let soonest =
                [delays.next_look(now, wall, slice), queue.order().next_advance()].into_iter().flatten().min();
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
            next
        };
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
        let stats = queue.stats().cloned().unwrap_or_else(Stats::new);
        Snapshot { stats, depth: queue.depth(), running: queue.running(now()) }
    }

    fn is_busy(&self) -> bool {
        self.state.lock().queue.is_busy(now())
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
