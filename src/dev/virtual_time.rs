//! Time that begins when the user says, and runs as fast as the user says, for `dev --at --speed`.
//!
//! Guarantees: on this runtime all timers expire in their order, each at its own instant however fast time runs, and between
//! two timers time jumps. Every few milliseconds of real time it waits for the real clock. A cluster that needs longer for its
//! work slows its time down, and time never hurries afterwards. The clock is the same on every thread.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use apimachinery::clock::{Clock, SharedClock};
use chrono::{DateTime, TimeDelta, Utc};
use tokio::runtime::{Builder, EnterGuard, Handle};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

/// How much real time passes until virtual time waits for it again.
const STEP: Duration = Duration::from_millis(5);

/// A runtime with a time of its own, on a thread of its own.
pub struct VirtualTime {
    clock: Arc<VirtualClock>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl VirtualTime {
    /// Starts at `at`, and runs at `speed` times the speed of real time.
    ///
    /// # Errors
    /// When the system has no thread or no more files for it.
    pub fn start(at: DateTime<Utc>, speed: u32) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build()?;
        let clock = Arc::new(VirtualClock::new(at, runtime.handle().clone()));
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("virtual-time".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    // A sender that is gone has stopped, too.
                    _ = stopped => {}
                    () = pass(speed) => {}
                }
            });
        })?;
        Ok(Self { clock, stop: Some(stop), thread: Some(thread) })
    }

    /// The clock of this time.
    pub fn clock(&self) -> SharedClock {
        Arc::clone(&self.clock) as SharedClock
    }

    /// While the guard lives, what this thread spawns runs in this time.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.clock.runtime.enter()
    }
}

impl Drop for VirtualTime {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Lets virtual time pass. Time jumps to the next timer when nothing else is to do, except during the blocking sleep.
async fn pass(speed: u32) {
    let mut next = real_now();
    loop {
        tokio::time::sleep(STEP * speed).await;
        next += STEP;
        let ahead = next.saturating_duration_since(real_now());
        if ahead.is_zero() {
            next = real_now();
            // The other tasks get their turn.
            tokio::task::yield_now().await;
        } else {
            let _ = tokio::task::spawn_blocking(move || sleep(ahead)).await;
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "tokio's time is what is paced here")]
fn real_now() -> std::time::Instant {
    std::time::Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "the thread has nothing else to do")]
fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

/// The wall clock of a runtime with a time of its own.
#[derive(Debug)]
struct VirtualClock {
    at: DateTime<Utc>,
    started: Instant,
    runtime: Handle,
    /// Never written: this clock follows the runtime's time.
    steps: watch::Sender<()>,
}

impl VirtualClock {
    fn new(at: DateTime<Utc>, runtime: Handle) -> Self {
        let entered = runtime.enter();
        let started = Instant::now();
        drop(entered);
        Self { at, started, runtime, steps: watch::Sender::new(()) }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> DateTime<Utc> {
        // Tokio's time is that of the runtime of the current thread.
        let _entered = self.runtime.enter();
        let elapsed = TimeDelta::from_std(self.started.elapsed()).unwrap_or(TimeDelta::MAX);
        self.at.checked_add_signed(elapsed).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    fn steps(&self) -> Option<watch::Receiver<()>> {
        Some(self.steps.subscribe())
    }
}

#[cfg(test)]
mod tests;
