//! The slots of a CronJob with its policies.
//!
//! Guarantees: without a policy annotation, everything here is as in upstream: the schedule is the spec's, a slot is due
//! at its own time, and slots count from the last one or from the creation. The record of decided slots depends on the
//! object and its status, and on `now` only where the object does not say when it was changed.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::missed::{self, Observed};
use schedule::{Evaluation, Schedule, Zone};

use super::{CronJob, CronJobStatus};
use crate::api::policy::{self, Counted, CountedFrom, Fingerprint, Limits, Policy, PolicyError, PolicyReading};

impl CronJob {
    /// The policy; `None` without one, and an error if an annotation cannot be read.
    pub fn policy(&self) -> Result<Option<&Policy>, &PolicyError> {
        self.policies.as_ref().map(|policies| policies.policy.as_ref()).transpose()
    }

    /// The schedule of the slots: the spec's, as the policy changes it. `None` if either cannot be read.
    pub fn schedule(&self, local: Zone) -> Option<&Schedule> {
        self.schedule_by(self.policies.as_ref(), local)
    }

    /// [`Self::schedule`] without what the Namespace leaves out.
    pub fn own_schedule(&self, local: Zone) -> Option<&Schedule> {
        self.schedule_by(self.own_policies(), local)
    }

    fn schedule_by<'a>(&'a self, policies: Option<&'a Arc<PolicyReading>>, local: Zone) -> Option<&'a Schedule> {
        let own = self.timing(local).schedule.as_ref().ok()?;
        let policy = policies.map(|policies| policies.policy.as_ref()).transpose().ok()?;
        Some(policy.map_or(own, |policy| policy.schedule(own)))
    }

    /// How long after its slot a Job may start.
    pub fn offset(&self) -> TimeDelta {
        self.policies.as_ref().map_or(TimeDelta::zero(), |policies| policies.offset())
    }

    /// When the Job of a slot may start.
    pub fn due(&self, slot: DateTime<Utc>) -> DateTime<Utc> {
        policy::due(slot, self.offset())
    }

    /// The newest time whose slot may have started at `now`.
    pub fn nominal(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        policy::nominal(now, self.offset())
    }

    /// When the next slot after `now` is due.
    pub fn next_due(&self, local: Zone, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let observed = self.observed(&self.status, now);
        let schedule = Evaluation::of(self.schedule(local)?);
        let slot = missed::next_requeue_time(&observed, self.nominal(now), &schedule, None)?;
        Some(self.due(slot))
    }

    /// How many Jobs run, which slots wait, and when nothing starts.
    pub fn limits(&self) -> Limits {
        self.policy().ok().flatten().map(|policy| *policy.limits()).unwrap_or_default()
    }

    /// Whether `other` has the same timing annotations.
    pub fn same_timing_policies(&self, other: &Self) -> bool {
        match (&self.policies, &other.policies) {
            (Some(own), Some(theirs)) => own.has_timing_of(theirs),
            (own, theirs) => own.iter().chain(theirs).all(|policies| !policies.has_timing()),
        }
    }

    /// Whether `other` has the same policies.
    pub fn same_policies(&self, other: &Self) -> bool {
        let has_same_limits = match (&self.policies, &other.policies) {
            (Some(own), Some(theirs)) => own.has_limits_of(theirs),
            // Policies that cannot be read hold a CronJob, and one without any is not held.
            (own, theirs) => own
                .iter()
                .chain(theirs)
                .all(|policies| policies.policy.as_ref().is_ok_and(|policy| *policy.limits() == Limits::default())),
        };
        has_same_limits && self.same_timing_policies(other)
    }

    /// The starting point for counting missed starts: the newest slot that is started or decided according to `status`.
    pub fn observed(&self, status: &CronJobStatus, now: DateTime<Utc>) -> Observed {
        let decided = self.decided_until(status, now);
        let later = |time: DateTime<Utc>| decided.map_or(time, |decided| decided.max(time));
        Observed {
            creation: later(self.creation_timestamp),
            last_schedule: status.last_schedule_time.map(later),
            starting_deadline_seconds: self.spec.starting_deadline_seconds,
        }
    }

    /// The time up to which all slots are decided, whether or not they were started; `None` without such a record.
    pub fn decided_until(&self, status: &CronJobStatus, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        status.counted_from.as_ref()?.decided_until(&self.uid, now)
    }

    /// The record of decided slots that `status` has to hold at `now`. `None` if it holds that one already, or if the
    /// CronJob needs none. After a change of a timing annotation, and with `after-change: wait` after any change of the
    /// fingerprint, no slot that was due before the change is started. A change is judged once the policies can be read.
    pub fn recount(&self, status: &CronJobStatus, local: Zone, now: DateTime<Utc>) -> Option<CountedFrom> {
        let policies = self.policies.as_deref()?;
        let current = self.fingerprint();
        let (generation, edits) = (self.counted_generation(), policies.edits());
        let judge = |known: &CountedFrom| known.judge(&current, generation, now);
        let counted = status.counted_from.as_deref().map_or(Counted::Absent, judge);
        let waits = self.limits().waits_after_change;
        let edit = edits.last.unwrap_or(now).min(now);
        let passed_at = |edit| self.passed_at(edit, status, local, now);
        let time = match counted {
            Counted::Unchanged(_) => return None,
            // Whether `after-change` is wait is not known.
            Counted::Changed { .. } if policies.policy.is_err() => return None,
            Counted::Absent if !policies.has_timing() && !waits => return None,
            Counted::Changed { time, .. } if !waits => time,
            Counted::Outdated(time) => time,
            // Whatever was undone was done until then.
            Counted::Undone(time) => passed_at(edits.last_of_slots.unwrap_or(now).min(now)).max(time),
            // An annotation resumes one that was handed over, and its removal leaves no time.
            Counted::Changed { zone_removed, resumed, .. } if zone_removed || resumed && self.handover.managed => {
                passed_at(now)
            }
            Counted::Retimed { removed: true } => passed_at(now),
            Counted::Changed { .. } | Counted::Retimed { .. } | Counted::Absent => passed_at(edit),
        };
        Some(CountedFrom::new(time, current, generation))
    }

    /// The record of decided slots that is gone after an edit from `old` at `now`, as it would have to be now. The object alone
    /// does not show that it had one. `None` if it has one, if its policies ask for a new one anyway, or if nothing that
    /// the old one said is of use.
    pub fn recount_removed(&self, old: &Self, local: Zone, now: DateTime<Utc>) -> Option<CountedFrom> {
        let has_timing = |cron_job: &Self| cron_job.policies.as_ref().is_some_and(|policies| policies.has_timing());
        if self.uid != old.uid || has_timing(self) || self.status.counted_from.is_some() {
            return None;
        }
        let record = old.status.counted_from.as_deref();
        let is_retimed =
            |record: &CountedFrom| matches!(record.judge(&self.fingerprint(), None, now), Counted::Retimed { .. });
        if has_timing(old) || record.is_some_and(is_retimed) {
            return Some(self.counted_at(self.passed_at(now, &self.status, local, now)));
        }
        if self.limits().waits_after_change {
            return None;
        }
        let started = self.status.last_schedule_time.unwrap_or(self.creation_timestamp);
        let decided = old.decided_until(&old.status, now).filter(|decided| *decided > started)?;
        Some(self.counted_at(decided))
    }

    /// The record with which the slots up to `slot` are decided.
    pub fn counted_at(&self, slot: DateTime<Utc>) -> CountedFrom {
        CountedFrom::new(slot, self.fingerprint(), self.counted_generation())
    }

    /// The generation, if no slot may start that is older than an edit that was undone.
    fn counted_generation(&self) -> Option<i64> {
        self.policies.as_ref()?.edits().generation.filter(|_| self.limits().waits_after_change)
    }

    fn fingerprint(&self) -> Fingerprint {
        let recurrence = &self.spec.recurrence;
        let (schedule, zone) = (recurrence.schedule(), recurrence.time_zone());
        Fingerprint::new(&self.uid, schedule, zone, self.spec.suspend, self.policies.as_deref())
    }

    /// The time up to which slots are passed over because of a change of the policies at `edit`.
    fn passed_at(&self, edit: DateTime<Utc>, status: &CronJobStatus, local: Zone, now: DateTime<Utc>) -> DateTime<Utc> {
        let observed = self.observed(status, now);
        let last = observed.last_schedule.unwrap_or(observed.creation);
        // A policy that cannot be read counts, too: an edit of the spec alone may make it one that can.
        let passed = self.nominal(edit).max(last);
        // The starts of an `@every` are counted from here, and keep their times.
        let own = self.timing(local).schedule.as_ref().ok();
        let interval = own.and_then(Schedule::interval).map_or(0, |interval| interval.num_seconds());
        let part = (passed - last).num_seconds().checked_rem(interval).unwrap_or_default();
        passed.checked_sub_signed(TimeDelta::try_seconds(part).unwrap_or_default()).unwrap_or(passed)
    }
}
