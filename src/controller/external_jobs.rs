//! Detects another controller that starts Jobs of the same CronJobs.
//!
//! Guarantees: a Job counts only if another running controller must have made it:
//! - Its slot came due more than [`MARGIN`] after this process began its work, or after the CronJob was handed over. A
//!   predecessor, or a request long on its way, cannot have made it.
//! - It existed before this process sent its first request for that slot, so it does not come from a request whose
//!   answer was lost.
//! - Its scheduled time is that slot. Slots of one minute share a Job name, so the Job of an earlier one may have it.
//!
//! Each Job counts once. A Job that the other controller tries to start later is not seen: the API server refuses it.
//!
//! Such Jobs do no harm, since each slot has one Job name, but two controllers send every request twice.

use std::sync::OnceLock;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use tokio::time::Instant;

/// How much later than the start of the work a slot must be: clocks differ, and a watch may lag.
pub const MARGIN: TimeDelta = TimeDelta::seconds(30);

/// The minimum time between two Warnings.
pub const TOLD_EVERY: Duration = Duration::from_secs(600);

/// When this process began to work, and when the last Warning was recorded.
#[derive(Debug, Default)]
pub struct ExternalJobs {
    since: OnceLock<DateTime<Utc>>,
    told: Mutex<Told>,
}

/// The newest slot of a CronJob that is accounted for.
#[derive(Debug, Clone, Copy)]
pub struct Account {
    slot: DateTime<Utc>,
    /// Whether a Job that already exists when this slot's create is sent belongs to another controller.
    is_first_try: bool,
}

#[derive(Debug, Default)]
struct Told {
    last: Option<Instant>,
    since_then: u64,
}

impl Account {
    /// The account of a CronJob that is handed over to this process now. Its last Jobs may come from the other
    /// controller.
    pub fn handed_over(now: DateTime<Utc>) -> Self {
        Self { slot: now + MARGIN, is_first_try: false }
    }

    /// A request to create the Job of `slot` is about to be sent.
    pub fn creating(account: &mut Option<Self>, slot: DateTime<Utc>) {
        match account {
            Some(known) if known.slot > slot => {}
            Some(known) if known.slot == slot => known.is_first_try = false,
            _ => *account = Some(Self { slot, is_first_try: true }),
        }
    }
}

impl ExternalJobs {
    /// Records when this process began to reconcile.
    pub fn begin(&self, now: DateTime<Utc>) {
        let _ = self.since.set(now);
    }

    /// The watch shows a new Job of `slot`. Returns whether another controller made it.
    pub fn appeared(&self, account: &mut Option<Account>, slot: DateTime<Utc>) -> bool {
        let is_news = self.is_in_our_time(slot) && account.is_none_or(|known| known.slot < slot);
        if is_news {
            *account = Some(Account { slot, is_first_try: false });
        }
        is_news
    }

    /// The Job of `slot` existed when this process tried to create it. Returns whether another controller made it.
    pub fn already_there(&self, account: &mut Option<Account>, slot: DateTime<Utc>) -> bool {
        let Some(known) = account else { return false };
        let is_news = self.is_in_our_time(slot) && known.slot == slot && known.is_first_try;
        known.is_first_try = false;
        is_news
    }

    /// Counts one Job of another controller. Returns how many there were since the last Warning, if the next one is
    /// due.
    pub fn tell(&self) -> Option<u64> {
        let mut told = self.told.lock();
        told.since_then += 1;
        if told.last.is_some_and(|last| last.elapsed() < TOLD_EVERY) {
            return None;
        }
        told.last = Some(Instant::now());
        Some(std::mem::take(&mut told.since_then))
    }

    /// Whether no predecessor can have made the Job of `slot`.
    pub fn is_in_our_time(&self, slot: DateTime<Utc>) -> bool {
        self.since.get().is_some_and(|since| *since + MARGIN < slot)
    }
}

#[cfg(test)]
mod tests;
