//! Which runs are due, and since when.
//!
//! Guarantees: a run counts as overdue only where a sync would start it now, so nothing of the CronJob itself holds it. One counts as
//! missed only if no Job kept it from starting, and no later edit is known that may have brought it. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Evaluation;
use schedule::missed::newest_starts;

use super::read::Said;
use super::{Case, LATE_AFTER, MANY, State};
use crate::api::batch_v1::ConcurrencyPolicy;
use crate::cli::output::{count, stretch};
use crate::controller::plan::{Skip, Verdict};
use crate::options::PROGRAM;

impl Case<'_> {
    /// How many runs were skipped since the last one that started, and how many wait for running Jobs to end: a sentence.
    pub(super) fn skipped_and_waiting(&self) -> Option<String> {
        let due = self.slots_since_the_last().take(MANY + 1).count();
        let waiting = self.newest_due(self.most_that_wait()).len().min(due);
        let waits = if waiting == 1 { "waits" } else { "wait" };
        match (due - waiting, waiting) {
            (0, 0) => None,
            (0, waiting) => Some(format!("{} {waits}.", count(waiting, "run"))),
            (skipped, waiting) => {
                let number = if due > MANY { format!("More than {}", MANY - waiting) } else { skipped.to_string() };
                let runs = if skipped == 1 { "run was" } else { "runs were" };
                let rest = if waiting > 0 { format!(", and {waiting} {waits}") } else { String::new() };
                Some(format!("{number} {runs} skipped since{rest}."))
            }
        }
    }

    /// The slots that are due since the last one that started.
    pub(super) fn slots_since_the_last(&self) -> impl Iterator<Item = DateTime<Utc>> {
        let schedule = self.schedule();
        let (from, now) = (self.last_decided(), self.cron_job.nominal(self.now));
        let next = move |t: DateTime<Utc>| schedule.and_then(|schedule| schedule.next_after(t));
        std::iter::successors(next(from), move |t| next(*t)).take_while(move |t| *t <= now)
    }

    /// The slots that are due and whose Jobs start as soon as they can, oldest first: a freeze that begins now ends them.
    pub(in crate::cli) fn waiting_slots(&self) -> Vec<DateTime<Utc>> {
        match self.verdict().0 {
            State::Starting | State::Overdue => self.newest_due(1),
            state => self.slots_that_wait(state),
        }
    }

    /// The slots that start when other Jobs have ended, oldest first, in this state by its schedule.
    pub(in crate::cli) fn slots_that_wait(&self, by_schedule: State) -> Vec<DateTime<Utc>> {
        match by_schedule {
            State::Blocked | State::RunStuck => self.newest_due(self.most_that_wait()),
            _ => Vec::new(),
        }
    }

    /// The slots that start when something else than other Jobs holds them no more, oldest first, in this state by its schedule.
    pub(in crate::cli) fn slots_that_are_held(&self, by_schedule: State) -> Vec<DateTime<Utc>> {
        match by_schedule {
            // With `after-change: wait`, the record of decided slots has each slot of a pause.
            State::Paused | State::NameTaken | State::BadTemplate => self.newest_due(self.most_that_wait()),
            _ => Vec::new(),
        }
    }

    /// How many slots wait while a run blocks them. With a backlog of none, the newest one does for a minute.
    pub(in crate::cli) fn most_that_wait(&self) -> usize {
        self.cron_job.limits().backlog.unwrap_or(1).max(1)
    }

    /// The newest slots that are due and within their deadline, oldest first.
    pub(super) fn newest_due(&self, most: usize) -> Vec<DateTime<Utc>> {
        let (from, until) = (self.last_decided(), self.cron_job.nominal(self.now));
        let deadline = self.cron_job.spec.starting_deadline_seconds.and_then(TimeDelta::try_seconds);
        let from = deadline.and_then(|deadline| until.checked_sub_signed(deadline)).map_or(from, |end| end.max(from));
        self.schedule().map(|it| newest_starts(&Evaluation::of(it), from, until, most).into()).unwrap_or_default()
    }

    /// When the oldest run became due that could start, or is blocked, or was missed.
    pub(super) fn due_since(&self) -> Option<DateTime<Utc>> {
        let oldest = match self.sync.settlement.verdict {
            Verdict::Started { slot, .. } => self.startable(slot).first().copied(),
            Verdict::Skipped(Skip::Forbid(_) | Skip::NameTaken(_) | Skip::MaxConcurrent(_) | Skip::Replacing(_)) => {
                self.slots_since_the_last().next()
            }
            Verdict::Skipped(Skip::Deadline(slot)) if self.kept_until_too_late(slot).is_none() => {
                self.missed().first().copied()
            }
            _ => None,
        };
        oldest.map(|slot| self.cron_job.due(slot))
    }

    /// When the run became due that starts next, late. Of a blocked CronJob it is `free`, the slot that starts once its Jobs have ended:
    /// those before it are skipped.
    pub(super) fn late_since(&self, by_schedule: State, free: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
        match by_schedule {
            State::Blocked | State::RunStuck => free.map(|slot| self.cron_job.due(slot)),
            State::Missed => None,
            _ => self.due_since(),
        }
    }

    /// The run was not started before its deadline.
    pub(super) fn too_late(&self, slot: DateTime<Utc>) -> (State, String) {
        let seconds = self.cron_job.spec.starting_deadline_seconds.unwrap_or_default();
        let within = format!("within {seconds} s (spec.startingDeadlineSeconds)");
        let (noun, at, then) = (self.noun(), self.moment(slot), "It waits for the next run.");
        if let Some((job, rule)) = self.kept_until_too_late(slot) {
            let why = format!("{noun} {job} ran, {rule}, and it did not end {within}");
            return (State::Waiting, format!("The run of {at} was skipped: {why}. {then}"));
        }
        let missed = self.missed();
        let what = match missed.as_slice() {
            [] => {
                let why = "and its schedule, its zone or its suspension has been written since";
                return (State::Waiting, format!("The run of {at} did not start {within}, {why}. {then}"));
            }
            [first, .., _] => {
                let number = if missed.len() > MANY { format!("more than {MANY}") } else { missed.len().to_string() };
                format!("The last {number} runs were missed, those of {} to {at}: none started", self.moment(*first))
            }
            _ => format!("The run of {at} was missed: it did not start"),
        };
        let since = missed.first().map(|slot| self.cron_job.due(*slot));
        let refused = since.and_then(|since| self.facts.refused_since(since)).map(Said::refusal);
        let refused =
            refused.map(|refusal| format!(" The API server refuses the {noun}: {refusal}.")).unwrap_or_default();
        (State::Missed, format!("{what} {within}.{refused} {then}"))
    }

    /// The newest runs that were not started before their deadline, oldest first, back to one that a Job kept from starting, or to
    /// an edit: a suspension or another schedule may have been in its place before.
    fn missed(&self) -> Vec<DateTime<Utc>> {
        let (from, until) = (self.last_decided(), self.cron_job.nominal(self.now));
        let slots = self.schedule().map(|it| newest_starts(&Evaluation::of(it), from, until, MANY + 1));
        let newest = slots.into_iter().flatten().rev();
        let is_edited_since = |slot| self.facts.edited.last.is_some_and(|edited| edited >= self.cron_job.due(slot));
        let is_missed = |slot: &DateTime<Utc>| !is_edited_since(*slot) && self.kept_until_too_late(*slot).is_none();
        let mut missed: Vec<_> = newest.take_while(is_missed).collect();
        missed.reverse();
        missed
    }

    /// A run that a sync would start now.
    pub(super) fn due(&self, slot: DateTime<Utc>) -> (State, String) {
        let due: Vec<DateTime<Utc>> = self.startable(slot);
        let (oldest, late) = (self.moment(due[0]), self.now - self.cron_job.due(due[0]));
        let (noun, slot) = (self.noun(), self.moment(slot));
        let lease = self.facts.lease.as_ref();
        let refused = self.facts.refused_since(self.cron_job.due(due[0])).map(Said::refusal);
        if late <= LATE_AFTER && refused.is_none() && !lease.is_some_and(|lease| lease.is_abandoned(self.now)) {
            return (State::Starting, format!("The run of {slot} is due and about to start."));
        }
        let what = match due.len() {
            1 => format!("The run of {slot} has been due for {} and could start", stretch(late)),
            number => {
                let number = if number > MANY { format!("More than {MANY}") } else { number.to_string() };
                let since = stretch(late);
                format!(
                    "{number} runs have not started, the first of them, of {oldest}, for {since}; that of {slot} could start"
                )
            }
        };
        let why = match (lease, refused) {
            (Some(lease), _) if lease.is_expired(self.now) => lease.state(self.now),
            (_, Some(refusal)) => format!("the API server refuses the {noun}: {refusal}"),
            (Some(_), None) if self.is_left_alone() => {
                format!("{PROGRAM} runs only what is handed over, and no lease shows that the in-tree controller runs")
            }
            (Some(lease), None) => {
                let state = lease.state(self.now);
                format!(
                    "{state}, so the API server refuses the {noun}, or this controller does not work on the CronJob"
                )
            }
            (None, None) => format!("no controller works on it, or the API server refuses the {noun}"),
        };
        (State::Overdue, format!("{what}, but its {noun} does not exist: {why}."))
    }

    /// The slots, oldest first, that were due and could start without being started, up to `newest`, which is one of them.
    fn startable(&self, newest: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let spec = &self.cron_job.spec;
        let forbids =
            spec.concurrency_policy == ConcurrencyPolicy::Forbid || self.cron_job.limits().max_concurrent.is_some();
        let nominal = |time: DateTime<Utc>| self.cron_job.nominal(time);
        let deadline =
            spec.starting_deadline_seconds.and_then(TimeDelta::try_seconds).map(|limit| nominal(self.now) - limit);
        let freed = self.children().filter(|_| forbids).filter_map(|job| job.ended()).max().map(nominal);
        // Under Forbid an earlier run blocks; the end of one that is gone is not known.
        let unknown = |slot| self.job_of(slot).is_none_or(|job| job.ended().is_none());
        if forbids && self.last_slot().is_some_and(unknown) {
            return vec![newest];
        }
        let from = self.last_decided();
        let from = [freed, deadline].into_iter().flatten().fold(from, DateTime::max);
        let Some(schedule) = self.schedule() else { return vec![newest] };
        let slots = std::iter::successors(schedule.next_after(from), |t| schedule.next_after(*t));
        let mut slots: Vec<DateTime<Utc>> = slots.take_while(|slot| *slot < newest).take(MANY).collect();
        slots.push(newest);
        slots
    }
}
