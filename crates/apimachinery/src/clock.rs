//! Wall-clock time as an interface.
//!
//! Guarantees: the wall clock is read only through [`Clock`]. Pure modules do not use this trait and take `now` as an argument.
//! Under `tokio::time::pause` a [`TestClock`] advances with tokio's timers, so a simulated day takes no real time.
//!
//! The machine's clock can be stepped without notice, so code that sleeps until a wall time must recheck it at intervals. A
//! clock that reports its steps ([`Clock::steps`]) needs no such check.

#[cfg(target_os = "linux")]
mod timer;

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// A source of the current time in UTC. Matches the `now func() time.Time` field of upstream's `ControllerV2`.
pub trait Clock: Debug + Send + Sync + 'static {
    /// The current wall-clock time.
    fn now(&self) -> DateTime<Utc>;

    /// Changes whenever the clock is stepped, that is, deviates from tokio's time. `None` if the clock does not report steps.
    fn steps(&self) -> Option<watch::Receiver<()>> {
        None
    }

    /// How long the machine has been suspended so far, as far as that can be known. tokio's time stands still meanwhile; what
    /// ends by the time of others, such as a lease, does not.
    fn suspended(&self) -> Duration {
        Duration::ZERO
    }

    /// Sleeps until `deadline`, and never ends earlier. Without an implementation of its own it uses tokio's timers, which
    /// follow a paused time. They count in milliseconds and end up to two of them late.
    ///
    /// # Panics
    /// When it is polled outside a tokio runtime that has I/O and time.
    fn sleep_until(&self, deadline: Instant) -> Sleep {
        Box::pin(tokio::time::sleep_until(deadline))
    }
}

/// A sleep until an instant.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A clock with shared ownership.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock. On Linux it sleeps by a timer of the kernel, not by tokio's, so it does not follow a paused time.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    #[cfg(target_os = "linux")]
    fn suspended(&self) -> Duration {
        timer::suspended()
    }

    #[cfg(target_os = "linux")]
    fn sleep_until(&self, deadline: Instant) -> Sleep {
        Box::pin(timer::sleep_until(deadline))
    }
}

/// A clock for tests: it starts at a given time, runs with tokio's (pausable) time, and can be stepped.
#[derive(Debug)]
pub struct TestClock {
    started: Instant,
    base: Mutex<DateTime<Utc>>,
    suspended: Mutex<Duration>,
    /// `None` if the clock does not report steps.
    steps: Option<watch::Sender<()>>,
}

impl TestClock {
    /// A clock that shows `base` now. Must be called inside a tokio runtime if time is to be paused.
    pub fn new(base: DateTime<Utc>) -> Arc<Self> {
        Arc::new(Self { steps: Some(watch::Sender::new(())), ..Self::starting_at(base) })
    }

    /// Like [`TestClock::new`], but without reported steps, like the machine's clock.
    pub fn silent(base: DateTime<Utc>) -> Arc<Self> {
        Arc::new(Self::starting_at(base))
    }

    fn starting_at(base: DateTime<Utc>) -> Self {
        Self { started: Instant::now(), base: Mutex::new(base), suspended: Mutex::default(), steps: None }
    }

    /// Suspends the machine: the world goes on for so long, while tokio's time stands still.
    pub fn suspend(&self, time: Duration) {
        *self.suspended.lock() += time;
        self.step(TimeDelta::from_std(time).unwrap_or(TimeDelta::MAX));
    }

    /// Steps the wall clock while no time passes, as NTP or an operator does.
    pub fn step(&self, by: TimeDelta) {
        *self.base.lock() += by;
        if let Some(steps) = &self.steps {
            steps.send_replace(());
        }
    }
}

impl Clock for TestClock {
    fn now(&self) -> DateTime<Utc> {
        let elapsed = TimeDelta::from_std(self.started.elapsed()).unwrap_or(TimeDelta::MAX);
        *self.base.lock() + elapsed
    }

    fn suspended(&self) -> Duration {
        *self.suspended.lock()
    }

    fn steps(&self) -> Option<watch::Receiver<()>> {
        self.steps.as_ref().map(watch::Sender::subscribe)
    }
}
