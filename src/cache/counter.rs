//! A number that tasks wait for.
//!
//! Guarantees: a task that waits sees every change that meets its condition and is not undone before it looks. Tasks are woken in the
//! order in which they began to wait, so that a simulated world repeats. Receivers of a watch channel are woken in random order.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// A number, and the tasks that wait for it to change.
#[derive(Debug, Default)]
pub(super) struct Counter {
    value: AtomicU64,
    changed: Notify,
}

impl Counter {
    pub(super) fn new(value: u64) -> Self {
        Self { value: AtomicU64::new(value), changed: Notify::new() }
    }

    pub(super) fn get(&self) -> u64 {
        self.value.load(Ordering::SeqCst)
    }

    /// Adds one, and returns the new value.
    pub(super) fn increment(&self) -> u64 {
        let value = self.value.fetch_add(1, Ordering::SeqCst) + 1;
        self.changed.notify_waiters();
        value
    }

    /// Subtracts one, down to zero.
    pub(super) fn decrement(&self) {
        let _ = self.value.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |value| value.checked_sub(1));
        self.changed.notify_waiters();
    }

    /// Raises it to `value`, if it is lower.
    pub(super) fn raise(&self, value: u64) {
        self.value.fetch_max(value, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Waits for a value that meets the condition, and returns it.
    pub(super) async fn wait_for(&self, is_met: impl Fn(u64) -> bool) -> u64 {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Registers before it reads, so that a change after the read wakes this task.
            changed.as_mut().enable();
            let value = self.get();
            if is_met(value) {
                return value;
            }
            changed.await;
        }
    }
}
