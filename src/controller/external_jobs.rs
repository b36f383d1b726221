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
mod tests {
    use super::*;
    use crate::controller::tests::objects::time;

    fn at(clock: &str) -> DateTime<Utc> {
        time(&format!("2026-03-02T{clock}Z"))
    }

    enum Step {
        Begin(&'static str),
        HandedOver(&'static str),
        Creating(&'static str),
        Appeared(&'static str, bool),
        AlreadyThere(&'static str, bool),
        Forget,
    }

    #[test]
    fn job_is_external_if_only_another_controller_can_have_created_it() {
        use Step::{AlreadyThere, Appeared, Begin, Creating, Forget, HandedOver};
        let began = || Begin("10:00:00");
        let table: Vec<(&str, Vec<Step>)> = vec![
            ("who does not work knows nothing", vec![Appeared("10:05:00", false)]),
            ("a Job that this process did not request", vec![began(), Appeared("10:01:00", true)]),
            ("it counts once", vec![began(), Appeared("10:01:00", true), Appeared("10:01:00", false)]),
            ("so does each", vec![began(), Appeared("10:01:00", true), Appeared("10:02:00", true)]),
            ("a predecessor's", vec![began(), Appeared("09:59:00", false), Appeared("10:00:00", false)]),
            ("a predecessor's whose clock was ahead", vec![began(), Appeared("10:00:30", false)]),
            ("our own", vec![began(), Creating("10:01:00"), Appeared("10:01:00", false)]),
            (
                "our own of a slot before, shown late",
                vec![began(), Creating("10:01:00"), Creating("10:02:00"), Appeared("10:01:00", false)],
            ),
            (
                "there before our first request, shown afterwards",
                vec![began(), Creating("10:01:00"), AlreadyThere("10:01:00", true), Appeared("10:01:00", false)],
            ),
            (
                "shown between the decision and the request",
                vec![began(), Appeared("10:01:00", true), Creating("10:01:00"), AlreadyThere("10:01:00", false)],
            ),
            (
                "there at the second request: the first may have made it",
                vec![began(), Creating("10:01:00"), Creating("10:01:00"), AlreadyThere("10:01:00", false)],
            ),
            (
                "there at the first request, of a predecessor's slot",
                vec![began(), Creating("10:00:00"), AlreadyThere("10:00:00", false)],
            ),
            (
                "the one before's, of a CronJob that was handed over",
                vec![began(), HandedOver("10:04:50"), Appeared("10:05:00", false), Appeared("10:06:00", true)],
            ),
            (
                "there at the first request for one that was handed over",
                vec![began(), HandedOver("10:04:50"), Creating("10:05:00"), AlreadyThere("10:05:00", false)],
            ),
            ("a new CronJob of the same name", vec![began(), Creating("10:05:00"), Forget, Appeared("10:05:00", true)]),
        ];
        for (sentence, steps) in table {
            let (foreign, mut account) = (ExternalJobs::default(), None);
            for step in steps {
                match step {
                    Begin(now) => foreign.begin(at(now)),
                    HandedOver(now) => account = Some(Account::handed_over(at(now))),
                    Creating(slot) => Account::creating(&mut account, at(slot)),
                    Appeared(slot, want) => {
                        assert_eq!(foreign.appeared(&mut account, at(slot)), want, "{sentence}: {slot}");
                    }
                    AlreadyThere(slot, want) => {
                        assert_eq!(foreign.already_there(&mut account, at(slot)), want, "{sentence}: {slot}");
                    }
                    Forget => account = None,
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_one_warning_in_ten_minutes_and_it_says_how_many_there_were() {
        let foreign = ExternalJobs::default();
        assert_eq!([foreign.tell(), foreign.tell(), foreign.tell()], [Some(1), None, None]);
        tokio::time::advance(TOLD_EVERY).await;
        assert_eq!([foreign.tell(), foreign.tell()], [Some(3), None]);
    }
}
