//! What `explain` says where a suspension or a policy holds a run or passes it over.
//!
//! Guarantee: the annotation to change is named. Pure.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use schedule::missed::newest_start;
use schedule::{Evaluation, Zone};

use super::rehearsal::Rehearsal;
use super::{Case, Facts, InCharge, MANY, MAX_WARNINGS, State};
use crate::api::ObjectName;
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob, Job};
use crate::api::policy::{
    AFTER_CHANGE, BACKLOG, COUNTED_FROM, MAX_CONCURRENT, PAUSE_AFTER_FAILURES, STUCK_AFTER, StuckAfter,
};
use crate::cli::output::{named, stretch};
use crate::cli::restrictions::why;
use crate::controller::plan::{Skip, Verdict};
use crate::controller::reconcile::{is_too_late, old_at};
use crate::options::PROGRAM;

/// Why a run waits for the earlier one.
pub(super) const FORBIDS: &str = "concurrencyPolicy is Forbid";
/// Why a run waits for the Job that it replaces.
pub(super) const REPLACES: &str =
    "a run starts when the one that it replaces is gone (cronjob-controller.dev/replace-waits)";

/// When a run starts that nothing but the lack of a controller holds.
pub(in crate::cli) const AS_SOON: &str = "as soon as a controller runs";

/// The Events that other sentences of an explanation stand for.
const TOLD: [&str; 14] = [
    "UnknownTimeZone",
    "UnparseableSchedule",
    "InvalidSchedule",
    "InvalidPolicy",
    "JobAlreadyActive",
    "Paused",
    "PassedOver",
    "RunStuck",
    "TooManyMissedTimes",
    "SuccessfulCreate",
    "SuccessfulDelete",
    "FailedCreate",
    "Frozen",
    // A controller with --manage=annotated records none.
    "HandedOver",
];

/// The largest number of running Jobs that a sentence, or a cell of a table, names.
const MAX_NAMED: usize = 10;

/// The first Jobs by name, and how many more there are.
pub(super) fn first_of(jobs: &[&Arc<Job>], name: impl Fn(&Arc<Job>) -> String) -> String {
    some_of(jobs.iter().map(|job| name(job)), jobs.len())
}

/// The first `MAX_NAMED` of `count` names, and how many more there are.
pub(in crate::cli) fn some_of(names: impl Iterator<Item = String>, count: usize) -> String {
    named(names, MAX_NAMED, count)
}

/// What a suspended CronJob does when it is resumed. Times are for people.
pub(in crate::cli) enum Resumption {
    /// It starts this run, which came due in the suspension, at once.
    Starts(String),
    /// It waits for this run.
    Waits(String),
    /// It does not run.
    Never,
}

/// What a resumption does.
pub(in crate::cli) struct Resumed {
    /// What holds the CronJob nevertheless, in sentences.
    pub held: Option<String>,
    /// The running Jobs that are deleted.
    pub deleted: Vec<ObjectName>,
    /// What the CronJob does.
    pub then: Resumption,
    /// How many due runs are passed over, where more than [`MANY`] count as one more.
    pub passed_over: usize,
}

/// What follows if the suspended CronJob is resumed at `now`.
pub(in crate::cli) fn resumed(facts: &Facts, local: Zone, now: DateTime<Utc>) -> Resumed {
    let due = Case::new(facts, local, now).slots_since_the_last().take(MANY + 2).count();
    let mut cron_job = CronJob::clone(&facts.cron_job);
    resume(&mut cron_job, now);
    let resumed = Facts::of(Arc::new(cron_job), facts.in_charge, facts.jobs.clone());
    let case = Case::new(&resumed, local, now);
    let (state, why) = case.verdict();
    let runs = matches!(state, State::Waiting | State::Starting | State::Overdue | State::Missed | State::BeingDeleted);
    let then = case.what_follows(&case.sync);
    let passed_over = due.saturating_sub(usize::from(matches!(then, Resumption::Starts(_)))).min(MANY + 1);
    Resumed { held: (!runs).then_some(why), deleted: case.sync.replaced, then, passed_over }
}

/// The state that keeps each run of a CronJob from starting under the controller of these facts, and its words; `None` if it runs, or only
/// waits for a running Job. Of a suspended one, what holds it once it is resumed.
pub(in crate::cli) fn holds_every_run(facts: &Facts, local: Zone, now: DateTime<Utc>) -> Option<(State, String)> {
    let case = Case::new(facts, local, now);
    let (state, why) = match case.verdict() {
        (State::Suspended, _) => case.held_also(State::Suspended)?,
        verdict => verdict,
    };
    let holds = matches!(
        state,
        State::UnknownTimeZone
            | State::UnparseableSchedule
            | State::BadPolicy
            | State::Frozen
            | State::NeverFires
            | State::Paused
            | State::BadTemplate
    );
    holds.then_some((state, why))
}

/// Makes it what it is after a resume at `now`, an edit that the object does not show yet.
fn resume(cron_job: &mut CronJob, now: DateTime<Utc>) {
    cron_job.spec.suspend = false;
    if cron_job.limits().waits_after_change {
        cron_job.status.counted_from = Some(Box::new(cron_job.counted_at(cron_job.nominal(now))));
    }
}

impl Facts {
    /// That no Lease shows that a controller runs the CronJob at `now`, in a sentence; `None` if one does, or Leases cannot be read.
    pub(in crate::cli) fn without_leader(&self, now: DateTime<Utc>) -> Option<String> {
        match &self.lease {
            _ if self.leases_unread.is_some() => None,
            _ if self.in_charge == InCharge::NoInstance => {
                Some(format!("No instance of {PROGRAM} works in its namespace."))
            }
            None => Some("No Lease shows that a controller runs.".to_owned()),
            Some(_) => self.abandoned(now),
        }
    }

    /// That its controller no longer renews its lease, in a sentence.
    pub(super) fn abandoned(&self, now: DateTime<Utc>) -> Option<String> {
        let lease = self.lease.as_ref().filter(|lease| lease.is_abandoned(now))?;
        Some(format!("No run starts until a controller is running: {}.", lease.state(now)))
    }
}

impl Case<'_> {
    /// When a run starts that nothing else holds.
    pub(super) fn at_once(&self) -> &'static str {
        let is_alone = self.facts.in_charge == InCharge::NoInstance || self.facts.abandoned(self.now).is_some();
        if is_alone { AS_SOON } else { "at once" }
    }

    /// The state, and its words, that holds a CronJob also once its suspension has ended, or the freeze of its Namespace.
    pub(super) fn held_also(&self, stopped: State) -> Option<(State, String)> {
        let mut cron_job = Arc::clone(self.cron_job);
        match stopped {
            State::Suspended => resume(Arc::make_mut(&mut cron_job), self.now),
            State::Frozen => cron_job = cron_job.in_its_namespace(None),
            _ => return None,
        }
        let free = Facts::of(cron_job, self.facts.in_charge, self.facts.jobs.clone());
        let (state, why) = Case::new(&free, self.local, self.now).verdict();
        let holds = match state {
            State::Waiting
            | State::Starting
            | State::Overdue
            | State::Missed
            | State::BeingDeleted
            | State::SlotsUnknown => false,
            // A thaw ends the slots because of which it has that state.
            State::Blocked | State::RunStuck | State::NameTaken => stopped == State::Suspended,
            _ => true,
        };
        holds.then_some((state, why))
    }

    pub(super) fn suspended(&self) -> String {
        let by = self.cron_job.handover.suspended_by();
        if self.facts.in_charge == InCharge::NotManaged {
            return format!("It is suspended, too ({by}).");
        }
        if let Some(why) = self.slots_unknown() {
            return format!("It does not run: it is suspended ({by}). {why}");
        }
        if let Some((_, why)) = self.held_also(State::Suspended) {
            return format!(
                "It does not run: it is suspended ({by}). If it were resumed now, it would not start either. {why}"
            );
        }
        let resumed = self.rehearse(|cron_job| resume(cron_job, self.now), &self.facts.jobs, self.now);
        let then = match self.what_follows(&resumed) {
            Resumption::Starts(slot) => format!("the run of {slot} would start {}", self.at_once()),
            Resumption::Waits(next) => format!("it would run at {next}"),
            Resumption::Never => "it would not run either".to_owned(),
        };
        format!("It does not run: it is suspended ({by}). If it were resumed now, {then}.")
    }

    /// The Events that a sync would write now and that nothing else tells of.
    pub(super) fn other_events(&self) -> impl Iterator<Item = String> {
        let events = self.sync.settlement.events.iter().filter(|event| !TOLD.contains(&event.reason));
        events.map(|event| format!("A sync would write the Event {}: {}.", event.reason, event.message))
    }

    /// What the freeze of the Namespace says; `None` without one.
    pub(super) fn frozen(&self) -> Option<String> {
        let restriction = self.cron_job.restriction()?;
        let until = self.moment(restriction.frozen_until(self.now)?);
        let also = self.held_also(State::Frozen);
        let also =
            also.map(|(_, why)| format!(" Nothing would start without the freeze either. {why}")).unwrap_or_default();
        let why = why(restriction.reason.as_deref());
        Some(format!("It does not run: its Namespace is frozen until {until}{why}.{also}"))
    }

    /// What a resumed CronJob does, of which that is the sync.
    fn what_follows(&self, resumed: &Rehearsal) -> Resumption {
        match (resumed.starts(), resumed.settlement.outcome.requeue_at()) {
            (Some((_, slot)), _) => Resumption::Starts(self.moment(*slot)),
            (None, Some(next)) => Resumption::Waits(self.moment(next)),
            (None, None) => Resumption::Never,
        }
    }

    /// Why unfinished Jobs block a run.
    pub(super) fn at_limit(&self) -> String {
        let limit = self.cron_job.limits().max_concurrent.unwrap_or_default();
        format!("{MAX_CONCURRENT} is {limit}")
    }

    /// A Job that ran when a slot came and until its deadline passed, if that kept the slot from starting, and by which rule.
    pub(super) fn kept_until_too_late(&self, slot: DateTime<Utc>) -> Option<(String, String)> {
        let (cron_job, limit) = (self.cron_job, self.cron_job.limits().max_concurrent);
        let rule = match limit {
            Some(_) => self.at_limit(),
            None => (cron_job.spec.concurrency_policy == ConcurrencyPolicy::Forbid).then(|| FORBIDS.to_owned())?,
        };
        let (due, seconds) = (cron_job.due(slot), cron_job.spec.starting_deadline_seconds?);
        let end = due.checked_add_signed(TimeDelta::try_seconds(seconds)?)?;
        let ran = |job: &&Arc<Job>| {
            let is_over = job.finished.is_some() && job.ended().is_none_or(|ended| ended < end);
            job.creation_timestamp <= due && !is_over && (limit.is_some() || !job.of_backfill)
        };
        let blockers: Vec<&Arc<Job>> = self.children().filter(ran).collect();
        let is_blocked = blockers.len() >= limit.unwrap_or(1);
        blockers.first().filter(|_| is_blocked).map(|job| (job.name.name.to_string(), rule))
    }

    pub(super) fn paused(&self) -> String {
        let (noun, limit) = (self.noun(), self.cron_job.limits().pause_after_failures.unwrap_or_default());
        let what =
            if limit == 1 { format!("the last {noun} failed") } else { format!("the last {limit} {noun}s failed") };
        format!(
            "It is paused: {what} ({PAUSE_AFTER_FAILURES}). It goes on when a {noun} succeeds, also one made with kubectl \
             create job --from, or when the failed ones are deleted."
        )
    }

    pub(super) fn passed_over(&self, slot: DateTime<Utc>) -> String {
        let slot = self.moment(slot);
        format!(
            "The run of {slot} was passed over: runs kept it from starting for 60 s ({BACKLOG}). It waits for the next run."
        )
    }

    /// The newest run that a change passed over, until a later one starts.
    pub(super) fn passed_over_by_change(&self) -> Option<String> {
        let (cron_job, settlement) = (self.cron_job, &self.sync.settlement);
        if matches!(settlement.verdict, Verdict::Skipped(Skip::PassedOver(_) | Skip::Paused(_))) {
            return None;
        }
        // The record as a sync leaves it: that of the latest change may not be written yet.
        let status = settlement.status.as_ref().map_or(&cron_job.status, |write| &write.status);
        let until = cron_job.decided_until(status, self.now)?;
        let last = self.last_slot().unwrap_or(cron_job.creation_timestamp);
        let slot = newest_start(&Evaluation::of(self.schedule()?), last, until)?;
        if is_too_late(slot, cron_job.spec.starting_deadline_seconds, until) {
            return None;
        }
        let limits = cron_job.limits();
        let is_of_another_policy = limits.backlog == Some(0) || limits.pause_after_failures.is_some();
        let why = match (limits.waits_after_change, is_of_another_policy) {
            (_, true) => format!("a change or a policy decided so ({COUNTED_FROM})"),
            (true, false) => format!("it was due before the last edit or resume ({AFTER_CHANGE} is wait)"),
            (false, false) => "it was due before an annotation was changed that decides when it runs".to_owned(),
        };
        Some(format!(
            "The run of {} was passed over: {why}. Slots after {} count.",
            self.moment(slot),
            self.moment(until)
        ))
    }

    /// When each Job that can block a run counts as stuck, and what is done about it; the oldest first.
    pub(super) fn stuck(&self) -> Vec<String> {
        let (cron_job, limits) = (self.cron_job, self.cron_job.limits());
        let counts_all = limits.max_concurrent.is_some();
        let is_limited = counts_all || cron_job.spec.concurrency_policy == ConcurrencyPolicy::Forbid;
        let Some(policy) = limits.stuck_after.filter(|_| is_limited) else { return Vec::new() };
        let can_block = |job: &&&Job| counts_all || cron_job.status.in_active_list(&job.uid);
        let running = self.running();
        let jobs = running.iter().map(|job| &***job);
        jobs.filter(|job| can_block(&job)).filter_map(|job| self.stuck_job(job, policy)).take(MAX_WARNINGS).collect()
    }

    /// That a Job which blocks a run has been stuck for some time.
    pub(super) fn stuck_since(&self) -> Option<String> {
        let StuckAfter { age, .. } = self.cron_job.limits().stuck_after?;
        let counts_all = self.cron_job.limits().max_concurrent.is_some();
        let can_block = |job: &&Arc<Job>| counts_all || self.cron_job.status.in_active_list(&job.uid);
        let blocking = self.running().into_iter().filter(can_block);
        let stuck = blocking.filter_map(|job| Some((old_at(job, age)?, job)));
        let (since, job) = stuck.min_by_key(|(since, _)| *since).filter(|(since, _)| *since <= self.now)?;
        let late = stretch(self.now - since);
        Some(format!("{} {} is over its {STUCK_AFTER} by {late}.", self.noun(), job.name.name))
    }

    /// `None` for a Job that is never stuck.
    fn stuck_job(&self, job: &Job, StuckAfter { age, delete }: StuckAfter) -> Option<String> {
        let since = old_at(job, age)?;
        let (job_name, at) = (format!("{} {}", self.noun(), job.name.name), self.moment(since));
        if since > self.now {
            let then =
                if delete { "it is deleted then if it blocks a run" } else { "a Warning says so if it blocks a run" };
            return Some(format!("{job_name} counts as stuck from {at} on ({STUCK_AFTER}): {then}."));
        }
        // While so many linger, none is deleted, and all of them block.
        let others_linger = self.sync.event("StuckRunsLinger").is_some();
        let then = match (delete, job.deleting) {
            (false, _) => "a Warning RunStuck says so once an hour while it blocks a run",
            (true, true) if others_linger => "it was deleted and still exists",
            (true, true) => "it was deleted and still exists, and does not block a run",
            (true, false) if others_linger => "it is not deleted while others that were deleted still exist",
            (true, false) => "it is deleted when it blocks a run",
        };
        Some(format!("{job_name} counts as stuck since {at} ({STUCK_AFTER}): {then}."))
    }

    /// When the next run is due, or a waiting one starts.
    pub(super) fn next_due(&self) -> Option<DateTime<Utc>> {
        let limits = self.cron_job.limits();
        let next = self.sync.settlement.outcome.requeue_at()?.max(self.now);
        // The controller also comes back to look at a Job that will be stuck by then, or at a slot whose time to start ends.
        let comes_back =
            limits.stuck_after.is_some_and(|stuck| !stuck.delete) || limits.replace_waits || limits.backlog == Some(0);
        let due = || Some(self.cron_job.due(self.schedule()?.next_after(self.cron_job.nominal(self.now))?));
        if comes_back { due() } else { Some(next) }
    }
}
