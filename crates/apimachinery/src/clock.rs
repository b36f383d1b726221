//! Wall-clock time as a port.
//!
//! Guarantees: nothing in this crate reads the wall clock except through [`Clock`]; the pure modules do not
//! even see this trait and take `now` as an argument. Under `tokio::time::pause` a [`TestClock`] advances in
//! step with tokio's timers, so a simulated day costs no wall time.
//!
//! The machine's clock is stepped without a word, so whoever sleeps until a wall time must look at it now and then. A
//! clock whose steps are told ([`Clock::steps`]) need not be looked at.

use std::fmt::Debug;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// Answers "what time is it" in UTC. Matches the `now func() time.Time` field of upstream's `ControllerV2`.
pub trait Clock: Debug + Send + Sync + 'static {
    /// The current wall-clock time.
    fn now(&self) -> DateTime<Utc>;

    /// Changes whenever the clock is stepped, that is, ceases to run with tokio's time. `None`: nobody is told.
    fn steps(&self) -> Option<watch::Receiver<()>> {
        None
    }
}

/// A clock that can be handed to many owners.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// A clock that starts where the test says, runs with tokio's (pausable) time, and can be stepped.
#[derive(Debug)]
pub struct TestClock {
    started: Instant,
    base: Mutex<DateTime<Utc>>,
    /// `None` if the steps are not told.
    steps: Option<watch::Sender<()>>,
}

impl TestClock {
    /// A clock that shows `base` now. Must be called inside a tokio runtime if time is to be paused.
    pub fn new(base: DateTime<Utc>) -> Arc<Self> {
        Arc::new(Self { started: Instant::now(), base: Mutex::new(base), steps: Some(watch::Sender::new(())) })
    }

    /// As [`TestClock::new`], but stepped without a word, as the machine's clock is.
    pub fn silent(base: DateTime<Utc>) -> Arc<Self> {
        Arc::new(Self { started: Instant::now(), base: Mutex::new(base), steps: None })
    }

    /// Steps the wall clock without any time passing, as NTP or an operator does.
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

    fn steps(&self) -> Option<watch::Receiver<()>> {
        self.steps.as_ref().map(watch::Sender::subscribe)
    }
}
