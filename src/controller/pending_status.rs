//! The pending status of a CronJob: edits that its status lacks for Jobs that this process started or may have started,
//! or because a status write failed.
//!
//! Guarantees: it does not grow beyond the size of the CronJob's status. If the process dies, losing it does no harm:
//! the next leader finds the Jobs by name and owner.

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

use super::observation::PendingCreate;
use super::status::Edits;
use crate::api::batch_v1::CronJob;
use crate::client::{LONGEST_WRITE, SERVER_MARGIN};

/// How long after it was begun a create may be committed, even if its sender died.
pub use crate::leader_election::LONGEST_CREATE;

const _: () = assert!(LONGEST_CREATE.as_secs() == LONGEST_WRITE.as_secs() + SERVER_MARGIN.as_secs());

/// The pending status of one CronJob.
#[derive(Debug, Default)]
pub struct PendingStatus {
    /// The edits to write.
    pub edits: Edits,
    /// The last create that was sent, while its result is not known. For a CronJob shared with another controller, it
    /// is kept until the status lists it.
    pub begun: Option<BegunCreate>,
    /// Until when a create may be committed other than those for `begun`: one for an earlier slot, or one beside that which made the
    /// slot's Job. The Job's name keeps it from starting the slot once more, so that no Job is deleted, and the lease is held.
    others: Option<Instant>,
}

/// A create that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BegunCreate {
    /// The slot.
    pub slot: DateTime<Utc>,
    /// How many creates for the slot have no known result.
    open: usize,
    /// Whether a create of another process, or of another slot with the same name, may have made its Job.
    beside: bool,
    /// Until when those of them may be committed that were sent before the last one.
    earlier: Option<Instant>,
    /// Until when any of them may be committed.
    may_commit_until: Option<Instant>,
}

impl BegunCreate {
    /// The create as an observation holds it; `None` if its result is known.
    pub fn pending(&self) -> Option<PendingCreate> {
        let left = self.may_commit_until?.saturating_duration_since(Instant::now());
        let wait = TimeDelta::from_std(left).ok().filter(|left| !left.is_zero());
        Some(PendingCreate { slot: self.slot, wait, is_repeated: self.is_repeated() })
    }

    /// Whether its Job, once it is there, may be another create's.
    fn is_repeated(&self) -> bool {
        self.open > 1 || self.beside
    }
}

impl PendingStatus {
    /// A create of the Job for `slot` is about to be sent. With `beside`, another process, or one for another slot, may make a Job of
    /// that name, too.
    pub fn begin(&mut self, slot: DateTime<Utc>, beside: bool) {
        let before = self.last_may_commit_until();
        let repeated = self.begun.filter(|begun| begun.slot == slot);
        let (earlier, other) = if repeated.is_some() { (before, None) } else { (None, before) };
        self.others = self.others.max(other);
        let (open, beside) = repeated.map_or((1, beside), |begun| (begun.open + 1, begun.beside || beside));
        let may_commit_until = Some(Instant::now() + LONGEST_CREATE);
        self.begun = Some(BegunCreate { slot, open, beside, earlier, may_commit_until });
    }

    /// The last create succeeded. With `keeps`, it is remembered until the status lists it.
    pub fn created(&mut self, keeps: bool) {
        let Some(begun) = self.begun else { return };
        self.others = self.others.max(begun.earlier);
        self.begun = keeps.then_some(BegunCreate { open: 0, earlier: None, may_commit_until: None, ..begun });
    }

    /// The last create was refused or not sent. The result of an earlier create for the same slot stays unknown.
    pub fn refused(&mut self, keeps: bool) {
        let before = self.begun.map(|begun| BegunCreate {
            open: begun.open.saturating_sub(1),
            earlier: begun.earlier.filter(|_| begun.open > 2),
            may_commit_until: begun.earlier,
            ..begun
        });
        self.begun = before.filter(|begun| keeps || begun.may_commit_until.is_some());
    }

    /// A Job of another owner has the name for `slot`, so that no create for it is committed. Its deletion would take
    /// that protection away, as that of an own Job does.
    pub fn name_taken(&mut self, slot: DateTime<Utc>) {
        self.begun = self.begun.filter(|begun| begun.slot != slot);
    }

    /// The last create has no answer and may be committed until `end`.
    pub fn unanswered(&mut self, end: Instant) {
        if let Some(begun) = &mut self.begun {
            begun.may_commit_until = begun.earlier.max(Some(end));
        }
    }

    fn last_may_commit_until(&self) -> Option<Instant> {
        self.begun?.may_commit_until
    }

    /// Until when any create with an unknown result may be committed.
    pub fn may_commit_until(&self) -> Option<Instant> {
        self.last_may_commit_until().max(self.others)
    }

    /// How much longer a create may be committed for which nothing is asked any more.
    pub fn others_wait(&self) -> Option<TimeDelta> {
        let left = self.others?.saturating_duration_since(Instant::now());
        TimeDelta::from_std(left).ok().filter(|left| !left.is_zero())
    }

    /// Whether the status lacks an edit, or the last create may still be committed.
    pub fn is_open(&self) -> bool {
        !self.edits.is_empty() || self.last_may_commit_until().is_some_and(|end| Instant::now() < end)
    }

    /// The status in `cron_job` was written.
    pub fn recorded(&mut self, cron_job: &CronJob) {
        let newest = cron_job.status.last_schedule_time;
        let Some(begun) = self.begun.take_if(|begun| Some(begun.slot) <= newest) else { return };
        // The only create for the slot has made its Job.
        let is_known = Some(begun.slot) == newest && !begun.is_repeated();
        if !is_known {
            self.others = self.others.max(begun.may_commit_until);
        }
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        let is_over = self.others.is_none_or(|end| end <= Instant::now());
        self.edits.is_empty() && self.begun.is_none() && is_over
    }
}

#[cfg(test)]
mod tests;
