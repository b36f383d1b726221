//! What became of a slot of which no Job is known.
//!
//! Guarantees: a slot waits only while a sync would start it once the Jobs before it have ended; it is skipped once it starts no
//! longer, and the reason is named. It is missed only if nothing of the CronJob or its Namespace kept it from starting, and suspended
//! only if the suspension was written before. What holds a CronJob now is not said of slots before that began. Pure.

use std::sync::Arc;

use apimachinery::steps;
use chrono::{DateTime, TimeDelta, Utc};

use super::{Fate, History, refusals};
use crate::api::batch_v1::{ConcurrencyPolicy, FinishedCondition};
use crate::api::policy::{BACKLOG, EXCLUDE, MAX_CONCURRENT, PAUSE_AFTER_FAILURES, REPLACE_WAITS};
use crate::cli::explain::{CLOCKS_DIFFER, Case, DROPPED, Facts, State};
use crate::cli::output::count;
use crate::controller::plan::Skip;
use crate::controller::reconcile::IN_TIME;

/// What became of a slot, why it did not start, and the same in words.
type Told = (Fate, Option<Skip>, String);

impl History<'_> {
    /// What became of a slot of which no Job is known.
    pub(super) fn fate_of(&self, slot: DateTime<Utc>) -> Told {
        let is_later = self.traces.last_slot.is_none_or(|last| slot > last);
        let is_kept = self.kept_since.is_some_and(|since| slot > since);
        if let Some(told) = self.too_late(slot) {
            return told;
        }
        let is_suspended = is_later && self.explanation.by_schedule == State::Suspended;
        if is_suspended && !self.is_decided(slot) && self.is_in_suspension(slot) {
            let why = format!("it is suspended now ({})", self.known.facts.cron_job.handover.suspended_by());
            return (Fate::Suspended, Some(Skip::Suspended), why);
        }
        if let Some(told) = self.frozen(slot, is_later || is_kept) {
            return told;
        }
        if self.traces.says_passed_over(slot) {
            let why = "a change of the CronJob passed it over";
            return if is_later || is_kept {
                (Fate::Skipped, Some(Skip::PassedOver(slot)), why.to_owned())
            } else {
                // A backfill may have started it since, which no Event tells of.
                (Fate::Unknown, None, format!("{why}; the Job of a backfill, if there was one, no longer exists"))
            };
        }
        if let Some(why) = self.excluded(slot).filter(|_| is_later || is_kept) {
            return (Fate::Skipped, Some(Skip::PassedOver(slot)), why);
        }
        let now = self.due_now(slot).or_else(|| self.waits(slot)).or_else(|| self.held(slot)).filter(|_| is_later);
        if let Some(told) = now.or_else(|| self.refused(slot, is_later || is_kept)) {
            return told;
        }
        if let Some(told) = self.blocked_at(slot, is_later, is_kept) {
            return told;
        }
        if let Some(told) = self.name_taken(slot) {
            return told;
        }
        if let Some(told) = self.was_paused(slot, is_later, is_kept) {
            return told;
        }
        if is_later {
            return self.not_started(slot);
        }
        if is_kept && self.may_have_been_blocked(slot) {
            return (Fate::Unknown, None, "a Job that no longer exists may have kept it from starting".to_owned());
        }
        if is_kept {
            return self.missed(slot, None, "no controller started it before a later run");
        }
        let why = if self.known.facts.cron_job.spec.concurrency_policy == ConcurrencyPolicy::Replace {
            "its Job, if there was one, was deleted at the latest when a later run started: concurrencyPolicy is Replace"
        } else {
            "its Job, if there was one, no longer exists, and no Event tells of it"
        };
        (Fate::Unknown, None, self.or_dropped(why))
    }

    /// The words of what no Event tells, and why none may.
    pub(super) fn or_dropped(&self, why: &str) -> String {
        if self.known.facts.may_lack_events { format!("{why}; {DROPPED}") } else { why.to_owned() }
    }

    /// When the slot after this one is due.
    fn next_due(&self, slot: DateTime<Utc>) -> Option<DateTime<Utc>> {
        Some(self.known.facts.cron_job.due(self.case.schedule()?.next_after(slot)?))
    }

    /// A slot of which an Event says that the API server refused its Job. Where later Jobs may be gone, an Event would tell of its
    /// start, if all are there.
    fn refused(&self, slot: DateTime<Utc>, is_certain: bool) -> Option<Told> {
        let said = self.traces.refusals.of_slot(slot, || self.next_due(slot))?;
        let kind = self.known.facts.cron_job.controller_kind.child.kind;
        let (is_taken, words) = (said.message.ends_with("already exists"), said.refusal());
        if !is_taken && !refusals::is_answer(&said.message) {
            let why = format!("a create of its {kind} failed: {words}; nothing tells whether it started later");
            return Some((Fate::Unknown, None, why));
        }
        let why = format!("the API server refused its {kind}: {words}");
        if is_taken {
            return Some((Fate::Missed, Some(Skip::NameTaken(slot)), why));
        }
        Some(if is_certain || self.traces.tell_all_since(said.time) {
            (Fate::Missed, None, why)
        } else {
            (Fate::Unknown, None, format!("{why}; nothing tells whether it started later"))
        })
    }

    /// A slot that came in a pause that is over, of which an Event tells.
    fn was_paused(&self, slot: DateTime<Utc>, is_later: bool, is_kept: bool) -> Option<Told> {
        let is_over = !(is_later && self.explanation.by_schedule == State::Paused);
        let since = self.traces.paused_since(slot).filter(|_| is_over)?;
        let is_certain = is_later || is_kept || self.traces.tell_all_since(since);
        let why = || format!("failed runs held it, of which an Event tells ({PAUSE_AFTER_FAILURES})");
        is_certain.then(|| (Fate::Skipped, Some(Skip::Paused(slot)), why()))
    }

    /// A slot that starts when what holds it has ended, and is no running Job.
    fn held(&self, slot: DateTime<Utc>) -> Option<Told> {
        self.held_from.filter(|from| slot >= *from)?;
        let cron_job = &self.known.facts.cron_job;
        Some(match self.explanation.by_schedule {
            State::Paused => {
                let limit = cron_job.limits().pause_after_failures.unwrap_or_default();
                let failed = format!("{} failed before ({PAUSE_AFTER_FAILURES} is {limit})", count(limit, "Job"));
                (Fate::Held, Some(Skip::Paused(slot)), format!("it is held until a run succeeds: {failed}"))
            }
            State::NameTaken => {
                let kind = cron_job.controller_kind;
                let (noun, name) = (kind.child.kind, kind.child_name(&cron_job.name.name, slot));
                let why = format!("it is held until {noun} {name} is gone, which has another owner");
                (Fate::Held, Some(Skip::NameTaken(slot)), why)
            }
            state => (Fate::Held, Some(Skip::Invalid), format!("it is held until that is mended: {}", state.label())),
        })
    }

    /// Whether a slot came in the suspension that there is now.
    fn is_in_suspension(&self, slot: DateTime<Utc>) -> bool {
        let facts = &self.known.facts;
        facts.edited.suspension.is_some_and(|written| facts.cron_job.due(slot) > written)
    }

    /// A slot that no controller started, unless something that is over may have kept it from starting.
    fn missed(&self, slot: DateTime<Utc>, skip: Option<Skip>, why: &str) -> Told {
        let facts = &self.known.facts;
        let due = facts.cron_job.due(slot);
        if facts.edited.suspension.is_some_and(|written| due <= written) {
            let by = facts.cron_job.handover.suspended_by();
            return (Fate::Unknown, None, format!("{why}, or it was suspended: {by} may have been changed since"));
        }
        let restriction = facts.cron_job.restriction().filter(|restriction| restriction.frozen_since().is_none());
        let is_thawed = restriction.and_then(|restriction| restriction.not_before()).is_some_and(|end| slot < end);
        let is_frozen_later = |seen| due < seen && !self.traces.has_begun_between(due, seen);
        if is_thawed && self.traces.frozen_at.is_some_and(is_frozen_later) {
            return (
                Fate::Unknown,
                None,
                format!("{why}, or its Namespace was frozen already, of which an Event tells"),
            );
        }
        if self.traces.held_until.is_some_and(|until| due <= until) {
            return (
                Fate::Unknown,
                None,
                format!("{why}, or a pause or an invalid value held it, of which an Event tells"),
            );
        }
        (Fate::Missed, skip, why.to_owned())
    }

    /// A slot whose name the Job of another owner had when it was due.
    fn name_taken(&self, slot: DateTime<Utc>) -> Option<Told> {
        let cron_job = &self.known.facts.cron_job;
        let due = cron_job.due(slot).checked_add_signed(CLOCKS_DIFFER)?;
        let name = self.traces.taken_by(slot, due)?;
        let why = format!("{} {name} existed already and has another owner", cron_job.controller_kind.child.kind);
        Some((Fate::Missed, Some(Skip::NameTaken(slot)), why))
    }

    /// Whether a Job that is gone may have run when a slot came: as long as the longest that is known, if it was the last one to go.
    fn may_have_been_blocked(&self, slot: DateTime<Utc>) -> bool {
        let cron_job = &self.known.facts.cron_job;
        let blocks =
            cron_job.spec.concurrency_policy == ConcurrencyPolicy::Forbid || cron_job.limits().max_concurrent.is_some();
        blocks && self.kept_since.zip(self.traces.longest).is_some_and(|(since, ran)| slot <= since + ran)
    }

    /// The slot if an Event says that its deadline passed: Jobs kept it from starting, or no controller started it.
    fn too_late(&self, slot: DateTime<Utc>) -> Option<Told> {
        if !self.traces.says_missed(slot) {
            return None;
        }
        let cron_job = &self.known.facts.cron_job;
        let seconds = cron_job.spec.starting_deadline_seconds.and_then(TimeDelta::try_seconds).unwrap_or_default();
        let end = cron_job.due(slot).checked_add_signed(seconds)?;
        if let Some((skip, blocker, rule)) = self.blocker(slot, end) {
            return Some((Fate::Skipped, Some(skip), until_deadline(&blocker, &rule)));
        }
        if let Some((Fate::Missed, _, why)) = self.refused(slot, true) {
            return Some((Fate::Missed, Some(Skip::Deadline(slot)), why));
        }
        let why = "it could not start before its startingDeadlineSeconds had passed";
        Some(self.missed(slot, Some(Skip::Deadline(slot)), why))
    }

    /// Whether a change or a policy has decided that a slot does not start.
    fn is_decided(&self, slot: DateTime<Utc>) -> bool {
        let cron_job = &self.known.facts.cron_job;
        cron_job.decided_until(&cron_job.status, self.now) >= Some(slot)
    }

    /// Whether a slot has no Job because of a freeze. When one that is over began, only an Event says. A backfill may have started it since.
    fn frozen(&self, slot: DateTime<Utc>, is_certain: bool) -> Option<Told> {
        let cron_job = &self.known.facts.cron_job;
        let restriction = cron_job.restriction()?;
        restriction.not_before().filter(|end| slot < *end)?;
        let since = restriction.frozen_since().map(|since| self.traces.frozen_at.map_or(since, |seen| seen.min(since)));
        let is_since = |since| cron_job.due(slot) >= since || is_certain && self.waited_at(slot, since);
        let is_told = self.traces.frozen_at.is_some_and(|seen| self.traces.tell_all_since(seen));
        let is_in_it = match (since, self.traces.frozen_at) {
            (Some(since), _) => is_since(since),
            (None, seen) => (is_certain || self.traces.none_ended || is_told) && seen.is_none_or(is_since),
        };
        let why = "its Namespace was frozen before it started";
        let is_covered = || self.known.facts.backfilled.iter().any(|(from, to)| (*from..=*to).contains(&slot));
        is_in_it.then(|| {
            if is_certain || since.is_some() || !is_covered() {
                return (Fate::Frozen, None, why.to_owned());
            }
            let since = "a backfill covered it since, and its Job, if there was one, no longer exists";
            (Fate::Unknown, None, format!("{why}; {since}"))
        })
    }

    /// Whether a slot that had come still waited for a running Job when its Namespace was frozen.
    fn waited_at(&self, slot: DateTime<Utc>, frozen: DateTime<Utc>) -> bool {
        let cron_job = &self.known.facts.cron_job;
        let own = cron_job.spec.starting_deadline_seconds.and_then(TimeDelta::try_seconds);
        let briefly = Some(IN_TIME).filter(|_| cron_job.limits().backlog == Some(0));
        let is_in_time = |wait: TimeDelta| frozen - cron_job.due(slot) <= wait;
        let Some(schedule) = self.case.own_schedule() else { return false };
        let later = std::iter::successors(schedule.next_after(slot), |slot| schedule.next_after(*slot));
        let (most, nominal) = (self.case.most_that_wait(), cron_job.nominal(frozen));
        own.is_none_or(is_in_time)
            && briefly.is_none_or(is_in_time)
            && self.blocker(slot, frozen).is_some()
            && steps::each(later.take_while(|later| *later <= nominal)).take(most).count() < most
    }

    /// Why a slot of the CronJob is none on the dates of its Namespace, as that is now.
    fn excluded(&self, slot: DateTime<Utc>) -> Option<String> {
        let restriction = self.known.facts.cron_job.restriction()?;
        let own = self.case.own_schedule()?;
        let dates = self.case.schedule().filter(|_| !restriction.excluded().is_empty())?;
        let before = slot - TimeDelta::seconds(1);
        let is_before = restriction.not_before().is_some_and(|end| slot < end);
        let is_left_out = !is_before && own.next_after(before) == Some(slot) && dates.next_after(before) != Some(slot);
        is_left_out.then(|| format!("its Namespace leaves it out ({EXCLUDE})"))
    }

    /// A slot that a sync could start now.
    fn due_now(&self, slot: DateTime<Utc>) -> Option<Told> {
        let since = self.explanation.due_since.unwrap_or(DateTime::<Utc>::MIN_UTC);
        let why = match self.explanation.by_schedule {
            State::Starting => "it is about to start",
            State::Overdue => match self.known.facts.refused_since(since) {
                Some(refusal) => &format!("the API server refuses its Job: {}", refusal.refusal()),
                None => "no controller has started it; explain with the name says more",
            },
            _ => return None,
        };
        (self.known.facts.cron_job.due(slot) >= since && !self.is_decided(slot))
            .then(|| (Fate::Due, None, why.to_owned()))
    }

    /// A slot that starts when other Jobs have ended.
    fn waits(&self, slot: DateTime<Utc>) -> Option<Told> {
        self.waits_from.filter(|from| slot >= *from)?;
        let blocker = self.explanation.active.first().map_or_else(|| "a Job".to_owned(), |job| job.name.clone());
        let rule = match self.known.facts.cron_job.limits().backlog {
            Some(backlog) if backlog > 0 => format!("{BACKLOG} is {backlog}"),
            _ => self.rule().1,
        };
        Some((Fate::Waits, None, format!("it waits until {blocker} has ended ({rule})")))
    }

    /// By which rule running Jobs keep a slot from starting.
    fn rule(&self) -> (fn(DateTime<Utc>) -> Skip, String) {
        let limits = self.known.facts.cron_job.limits();
        match limits.max_concurrent {
            Some(limit) => (Skip::MaxConcurrent, format!("{MAX_CONCURRENT} is {limit}")),
            None if limits.replace_waits => (Skip::Replacing, format!("{REPLACE_WAITS} is true")),
            None => (Skip::Forbid, "concurrencyPolicy is Forbid".to_owned()),
        }
    }

    /// What kept a slot from starting when it came due and until a time: why in a word, which Jobs, and the rule.
    fn blocker(&self, slot: DateTime<Utc>, until: DateTime<Utc>) -> Option<(Skip, String, String)> {
        let cron_job = &self.known.facts.cron_job;
        let due = cron_job.due(slot);
        let (skip, rule) = self.rule();
        let blocker = match cron_job.limits().max_concurrent {
            Some(limit) => {
                let is_full = |time| self.traces.running_at(time) >= limit;
                (is_full(due) && is_full(until)).then(|| count(limit, "Job"))?
            }
            None if cron_job.spec.concurrency_policy != ConcurrencyPolicy::Forbid => return None,
            None => self.traces.running_from(due, until)?.to_owned(),
        };
        Some((skip(slot), blocker, rule))
    }

    /// A slot for which as many Jobs ran as may.
    fn blocked_at(&self, slot: DateTime<Utc>, is_later: bool, is_kept: bool) -> Option<Told> {
        let cron_job = &self.known.facts.cron_job;
        let limits = cron_job.limits();
        // One that may be gone started late, unless it was blocked until the next slot came and did not wait any longer.
        let waits = limits.backlog > Some(0);
        let after = || self.case.schedule().filter(|_| !waits).and_then(|schedule| schedule.next_after(slot));
        let next = || cron_job.due(after()?).checked_add_signed(CLOCKS_DIFFER);
        let is_known = is_later || is_kept;
        let until = if is_known || limits.max_concurrent.is_some() {
            Some(cron_job.due(slot)).filter(|_| is_known)
        } else {
            next()
        };
        let (skip, blocker, rule) = self.blocker(slot, until?)?;
        // With a backlog it was passed over once a later one has started.
        Some(match limits.backlog {
            Some(backlog) if !is_later || self.waits_from.is_some() => {
                let why = format!("{blocker} ran, and {rule}; {BACKLOG} is {backlog}");
                (Fate::Skipped, Some(Skip::PassedOver(slot)), why)
            }
            _ if is_later && self.is_past_deadline(slot) => {
                (Fate::Skipped, Some(skip), until_deadline(&blocker, &rule))
            }
            _ => (Fate::Skipped, Some(skip), format!("{blocker} ran, and {rule}")),
        })
    }

    fn is_past_deadline(&self, slot: DateTime<Utc>) -> bool {
        let cron_job = &self.known.facts.cron_job;
        let seconds = cron_job.spec.starting_deadline_seconds.and_then(TimeDelta::try_seconds);
        seconds.is_some_and(|seconds| self.now - cron_job.due(slot) > seconds)
    }

    /// A slot after the last one that was started, which starts no more.
    fn not_started(&self, slot: DateTime<Utc>) -> Told {
        if self.is_decided(slot) {
            let why = "a change of the CronJob passed it over, or a policy did".to_owned();
            return (Fate::Skipped, Some(Skip::PassedOver(slot)), why);
        }
        match self.explanation.by_schedule {
            State::Blocked | State::RunStuck => {
                let (skip, rule) = self.rule();
                (Fate::Skipped, Some(skip(slot)), format!("a running Job blocks it, and {rule}"))
            }
            State::Suspended => {
                let by = self.known.facts.cron_job.handover.suspended_by();
                (Fate::Unknown, None, format!("it is suspended now ({by}), and nothing says whether it was then"))
            }
            State::Paused => self.paused(slot),
            State::NameTaken => self.missed(slot, None, "it did not start before a later slot came"),
            State::Frozen => self.before_the_freeze(slot),
            State::NoController => self.missed(slot, None, "no controller runs the CronJob"),
            State::SlotsUnknown => (Fate::Unknown, None, "its time zone is not known here".to_owned()),
            State::Waiting | State::NotStarted | State::Overdue | State::Missed | State::Starting => {
                if self.is_past_deadline(slot) {
                    let why = "it did not start before its startingDeadlineSeconds had passed";
                    self.missed(slot, Some(Skip::Deadline(slot)), why)
                } else {
                    self.missed(slot, None, "no controller started it before a later slot came")
                }
            }
            state => self.cannot_run(slot, state),
        }
    }

    /// A slot that came while the last Jobs had failed, as many as may.
    fn paused(&self, slot: DateTime<Utc>) -> Told {
        let facts = &self.known.facts;
        let limit = facts.cron_job.limits().pause_after_failures.unwrap_or_default();
        let why = format!("{} failed before ({PAUSE_AFTER_FAILURES} is {limit})", count(limit, "Job"));
        let failed = facts.children().filter(|job| job.finished == Some(FinishedCondition::Failed));
        if failed.filter_map(|job| job.ended()).max() > Some(facts.cron_job.due(slot)) {
            let why = "it is paused now, and a Job failed after it came, so that it may not have been then".to_owned();
            return (Fate::Unknown, None, why);
        }
        (Fate::Skipped, Some(Skip::Paused(slot)), why)
    }

    /// A slot that no longer waited when its Namespace was frozen.
    fn before_the_freeze(&self, slot: DateTime<Utc>) -> Told {
        match *self.before_freeze.get_or_init(|| self.state_before_the_freeze()) {
            State::Paused => self.paused(slot),
            state @ (State::BadTemplate | State::NeverFires) => self.cannot_run(slot, state),
            _ if self.known.facts.cron_job.limits().pause_after_failures.is_some() => {
                let why = format!("{PAUSE_AFTER_FAILURES} may have kept it from starting, or no controller started it");
                (Fate::Unknown, None, why)
            }
            _ => self.missed(slot, None, "no controller started it before its Namespace was frozen"),
        }
    }

    fn state_before_the_freeze(&self) -> State {
        let facts = &self.known.facts;
        let since = facts.cron_job.restriction().and_then(|restriction| restriction.frozen_since());
        let cron_job = Arc::clone(&facts.cron_job).in_its_namespace(None);
        let free = Facts::of(cron_job, facts.in_charge, facts.jobs.clone());
        Case::new(&free, self.local, since.unwrap_or(self.now)).explain().by_schedule
    }

    /// A slot of a CronJob that cannot run now. What was written since may be the cause, and then that was not so when it came.
    fn cannot_run(&self, slot: DateTime<Utc>, state: State) -> Told {
        let facts = &self.known.facts;
        let cron_job = &facts.cron_job;
        // One that has an invalid value itself has no slots, so that of its Namespace is invalid.
        if let (State::BadPolicy, Err(error)) = (state, cron_job.policy()) {
            return (Fate::Skipped, Some(Skip::Invalid), error.to_string());
        }
        let edited = cron_job.policies.as_ref().and_then(|policies| policies.edits().last).max(facts.edited.last);
        let why = format!("it cannot run: {}", state.label());
        if state == State::BeingDeleted || edited > Some(cron_job.due(slot)) {
            return (Fate::Unknown, None, format!("{why}; nothing says whether that was so when it came"));
        }
        (Fate::Skipped, Some(Skip::Invalid), why)
    }
}

pub(super) fn until_deadline(blocker: &str, rule: &str) -> String {
    format!("{blocker} ran until its startingDeadlineSeconds had passed, and {rule}")
}
