//! What this controller would have done about each slot of one CronJob, beside what the controller in charge did.
//!
//! Guarantees: a slot is judged on the objects as they were before the Jobs that are compared with it. Each slot has one
//! [`Finding`] at a time, and every change of it is returned, so that the sums of a report follow. The newest [`KEPT`] slots are
//! kept, and older ones only in the sums. What was not watched without a gap is not compared. Pure; `now` is an argument.

mod early;
mod sentences;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;

use self::sentences::{is_slot, missed, moment, no_slot, not_here, twice};
use super::in_tree::InTree;
use crate::api::Uid;
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob, Job};
use crate::cli::explain::lease::SKEW;
use crate::cli::output::stretch;
use crate::controller::plan::{Skip, Verdict};

/// How many slots of a CronJob are kept.
const KEPT: usize = 16;
/// The most slots that are counted as not seen at once.
const MOST_UNSEEN: usize = 100;
/// A slot without a Job for so long is missed. The in-tree controller at its default flags needs two minutes for a thousand Jobs.
pub(super) const MISSED_AFTER: TimeDelta = TimeDelta::minutes(3);
/// A Job that this controller would have started no longer than this before the next slot would still have run then.
const STILL_RUNS: TimeDelta = TimeDelta::seconds(5);
/// No controller creates a Job earlier before its slot; a user who may write Jobs must not fill what is kept with slots to come.
const MOST_EARLY: TimeDelta = TimeDelta::days(1);
/// So long before its slot a Job may be created by a clock that is a little ahead.
const EARLY: TimeDelta = TimeDelta::seconds(5);
/// A slot that was judged at most so long after it was due was judged in time, which says how late this controller would be.
const IN_TIME: TimeDelta = TimeDelta::seconds(1);

/// A Job as it was seen first.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    /// The Job.
    pub job: Arc<Job>,
    /// When the watch showed it.
    pub at: DateTime<Utc>,
}

/// What the comparison of a slot says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// Both controllers start it, or neither does.
    Same,
    /// The controller in charge did not start it; why that is wrong.
    Missed(String),
    /// It has more than one Job; which.
    Twice(String),
    /// The controller in charge started it, or its Job ran beside another, and this controller would not have done so; why.
    Differs(String),
    /// The in-tree controller did otherwise, as docs/divergences.md says; how.
    Listed(String),
    /// It was not watched without a gap, or the CronJob was changed in between.
    NotSeen,
}

/// A change of the finding about a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The CronJob's UID.
    pub uid: Uid,
    /// The slot.
    pub slot: DateTime<Utc>,
    /// When its Job may start.
    pub due: DateTime<Utc>,
    /// What was found before.
    pub before: Option<Finding>,
    /// What is found now.
    pub after: Option<Finding>,
    /// Whether what was found before was counted apart.
    pub was_apart: bool,
    /// Whether the controller in charge does not read all annotations of the CronJob, so that what is found now is counted apart.
    pub is_apart: bool,
    /// How late the controller in charge created its Job, in the change that finds it.
    pub late: Option<TimeDelta>,
    /// How late this controller was ready to send its create, in the change that says so first.
    pub own: Option<TimeDelta>,
}

/// What this controller does about a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ours {
    /// It sends a create at this time.
    Starts(DateTime<Utc>),
    /// It does not start it, for now or for good.
    Not(Skip),
}

#[derive(Clone, Debug, Default)]
struct Slot {
    due: DateTime<Utc>,
    ours: Option<Ours>,
    /// Since when it could start, if this controller decided to wait before.
    waited_until: Option<DateTime<Utc>>,
    /// The Job that the controller in charge created for it first.
    theirs: Option<Arc<Job>>,
    finding: Option<Finding>,
    /// Whether the finding is counted apart.
    is_apart: bool,
}

impl Slot {
    /// Whether this controller would have started it, and no Job of it was seen.
    fn is_open(&self) -> bool {
        self.finding.is_none() && self.theirs.is_none() && matches!(self.ours, Some(Ours::Starts(_)))
    }
}

/// What is known of one CronJob's slots.
#[derive(Debug)]
pub(super) struct Track {
    /// The CronJob's UID.
    pub uid: Uid,
    /// Slots up to this time are not compared.
    baseline: DateTime<Utc>,
    /// The newest slot about which something was decided.
    judged: DateTime<Utc>,
    /// The newest slot that had a Job.
    started: Option<DateTime<Utc>>,
    slots: BTreeMap<DateTime<Utc>, Slot>,
    /// The Jobs that came a little before their slots, which are not due yet.
    early: Vec<Sight>,
    /// The newest Job that began beside another under Forbid.
    beside: Option<Uid>,
    /// What the in-tree controller knows, if it is in charge.
    pub in_tree: InTree,
    /// Whether the controller in charge does not read all annotations of the CronJob.
    pub is_apart: bool,
    changes: Vec<Change>,
}

impl Track {
    /// Compares the slots of `cron_job` after `since`. `jobs` are its Jobs, none of which is compared.
    pub fn new(cron_job: &CronJob, jobs: &[Arc<Job>], since: DateTime<Utc>) -> Self {
        let baseline = cron_job.nominal(since);
        let mut track = Self {
            uid: cron_job.uid.clone(),
            baseline,
            judged: baseline,
            started: cron_job.status.last_schedule_time,
            slots: BTreeMap::new(),
            early: Vec::new(),
            beside: None,
            in_tree: InTree::default(),
            is_apart: false,
            changes: Vec::new(),
        };
        for (slot, job) in jobs.iter().filter_map(|job| Some((slot_for(job)?, job))) {
            let known = track.slots.entry(slot).or_default();
            known.due = cron_job.due(slot);
            known.theirs.get_or_insert_with(|| Arc::clone(job));
            track.started = track.started.max(job.slot_of(cron_job));
        }
        track.forget_old_slots();
        track
    }

    /// The CronJob and its Jobs as they were before `new` and the Jobs that came early, and before a status that tells of a slot that is not judged yet.
    pub fn before(
        &self,
        cron_job: &Arc<CronJob>,
        mut jobs: Vec<Arc<Job>>,
        new: &[Sight],
    ) -> (Arc<CronJob>, Vec<Arc<Job>>) {
        let new = || new.iter().chain(&self.early);
        jobs.retain(|job| !new().any(|sight| sight.job.uid == job.uid));
        let last = cron_job.status.last_schedule_time;
        let is_told = |slot: DateTime<Utc>| last >= Some(slot);
        let is_ahead =
            last > Some(self.judged.max(self.baseline)) || new().any(|sight| slot_for(&sight.job).is_some_and(is_told));
        let is_active = new().any(|sight| cron_job.status.in_active_list(&sight.job.uid));
        if !is_ahead && !is_active {
            return (Arc::clone(cron_job), jobs);
        }
        let mut earlier = CronJob::clone(cron_job);
        if is_ahead {
            earlier.status.last_schedule_time = last.min(self.started);
        }
        for sight in new() {
            earlier.status.delete_from_active_list(&sight.job.uid);
        }
        (Arc::new(earlier), jobs)
    }

    /// Takes what `decide` says of the newest due slot at `now`. Returns whether it says for the first time that the slot starts. What it
    /// is said of may have held since `ready`, because this process was slow.
    pub fn judge(
        &mut self,
        verdict: Verdict,
        cron_job: &CronJob,
        zone: Zone,
        [ready, now]: [DateTime<Utc>; 2],
    ) -> bool {
        let (slot, ours) = match verdict {
            Verdict::Started { slot, .. } => (slot, Ours::Starts(now)),
            Verdict::Skipped(skip) => match skip.slot() {
                Some(slot) => (slot, Ours::Not(skip)),
                None => return false,
            },
            Verdict::Open | Verdict::NothingDue => return false,
        };
        if slot <= self.baseline {
            return false;
        }
        if matches!(verdict, Verdict::Skipped(Skip::NameTaken(_))) {
            self.in_tree.meets_taken_name();
        }
        if slot > self.judged {
            self.count_unseen(slot, cron_job, zone);
            self.judged = slot;
        }
        let due = cron_job.due(slot);
        let known = self.slots.entry(slot).or_insert_with(|| Slot { due, ..Slot::default() });
        if known.theirs.is_some() || known.finding == Some(Finding::NotSeen) {
            return false;
        }
        let starts = matches!((known.ours, ours), (None | Some(Ours::Not(_)), Ours::Starts(_)));
        match (known.ours, ours) {
            // It would have started before; whether the controller in charge still can is seen by its Job.
            (Some(Ours::Starts(_)), _) => {}
            (None | Some(Ours::Not(_)), Ours::Starts(at)) => {
                let own = (at - due <= IN_TIME).then_some(at - due);
                known.waited_until = known.ours.map(|_| ready.max(due));
                known.ours = Some(ours);
                self.change(slot, None, None, own);
            }
            (_, Ours::Not(_)) => {
                known.ours = Some(ours);
                self.find(slot, Finding::Same);
            }
        }
        self.forget_old_slots();
        starts
    }

    /// Takes a Job that was seen for the first time. `running` are the other unfinished Jobs of slots.
    pub fn see(&mut self, sight: &Sight, running: &[&Arc<Job>], cron_job: &CronJob, zone: Zone, now: DateTime<Utc>) {
        let job = &sight.job;
        let Some(slot) = slot_for(job).filter(|slot| *slot - now < MOST_EARLY) else { return };
        let is_named_for_it = job.slot_of(cron_job).is_some();
        let others: Vec<&Arc<Job>> = running
            .iter()
            .filter(|other| other.uid != job.uid && other.creation_timestamp <= job.creation_timestamp)
            .copied()
            .collect();
        if let Some(first) = self.slots.get(&slot).and_then(|known| known.theirs.clone()) {
            if first.uid != job.uid {
                let listed = self.in_tree.starts_again(slot, &first, job, sight.at).map(Finding::Listed);
                self.find(slot, listed.unwrap_or_else(|| Finding::Twice(twice(&first, job))));
            }
        } else if slot > self.baseline || self.slots.contains_key(&slot) {
            let due = cron_job.due(slot);
            let known = self.slots.entry(slot).or_insert_with(|| Slot { due, ..Slot::default() });
            known.theirs = Some(Arc::clone(job));
            if known.finding != Some(Finding::NotSeen) {
                let early = due - sight.at;
                let starts = match known.ours {
                    Some(ours) => matches!(ours, Ours::Starts(_)),
                    None => !cron_job.spec.suspend && is_slot(slot, cron_job, zone),
                };
                let (finding, late) = match known.ours {
                    _ if starts && early > EARLY => {
                        let early = stretch(early);
                        (Finding::Differs(format!("Job {} was created {early} before it was due", job.name.name)), None)
                    }
                    Some(Ours::Starts(_)) => {
                        let late = sight.at - known.waited_until.unwrap_or(due);
                        (Finding::Same, Some(late.max(TimeDelta::zero())))
                    }
                    Some(Ours::Not(skip)) => {
                        let is_forbid = matches!(skip, Skip::Forbid(_));
                        let listed = self.in_tree.overlooks(job, &others).filter(|_| is_forbid).map(Finding::Listed);
                        (listed.unwrap_or_else(|| Finding::Differs(not_here(job, skip, cron_job))), None)
                    }
                    None => (Finding::Differs(no_slot(job, slot, cron_job, zone)), None),
                };
                self.find_with(slot, finding, late);
            }
        }
        if is_named_for_it {
            self.started = self.started.max(Some(slot));
        }
        self.judged = self.judged.max(slot.min(cron_job.nominal(now + SKEW)));
        self.overtake(slot, cron_job);
        self.in_tree.goes_on();
        let forbids =
            cron_job.spec.concurrency_policy == ConcurrencyPolicy::Forbid && cron_job.limits().max_concurrent.is_none();
        if forbids && job.finished.is_none() {
            self.run_beside(slot, job, &others);
        }
        self.forget_old_slots();
    }

    /// Takes what `decide` says with `new`, which was seen now. An open slot does not start because of a Job that existed when it was
    /// judged and that the watch had yet to show, or that this controller would have started just before.
    pub fn judge_again(&mut self, verdict: Verdict, new: &[Sight]) {
        let Verdict::Skipped(skip) = verdict else { return };
        let Some(slot) = skip.slot() else { return };
        let Some(known) = self.slots.get(&slot).filter(|known| known.is_open()) else { return };
        let Some(Ours::Starts(at)) = known.ours else { return };
        let would_run = |job: &Job| {
            let of_job = slot_for(job).and_then(|slot| self.slots.get(&slot)).and_then(|known| known.ours);
            matches!(of_job, Some(Ours::Starts(before)) if at - before <= STILL_RUNS)
        };
        if new.iter().any(|sight| sight.job.creation_timestamp <= at || would_run(&sight.job)) {
            if let Some(known) = self.slots.get_mut(&slot) {
                known.ours = Some(Ours::Not(skip));
            }
            self.find(slot, Finding::Same);
        }
    }

    /// Finds two running Jobs under Forbid that were there before anything was seen. Those that run beside each other when the CronJob
    /// is changed may have begun under another policy.
    pub fn look_for_overlap(&mut self, running: &[&Arc<Job>], cron_job: &CronJob, is_changed: bool) {
        let forbids =
            cron_job.spec.concurrency_policy == ConcurrencyPolicy::Forbid && cron_job.limits().max_concurrent.is_none();
        let newest = running.iter().max_by_key(|job| (job.creation_timestamp, slot_for(job)));
        let Some(newest) = newest.filter(|_| forbids && running.len() > 1) else { return };
        if is_changed {
            self.beside = Some(newest.uid.clone());
        }
        let others: Vec<&Arc<Job>> = running.iter().filter(|other| other.uid != newest.uid).copied().collect();
        if let Some(slot) = slot_for(newest) {
            self.run_beside(slot, newest, &others);
        }
    }

    /// Under Forbid, `job` began while `others` ran, if there are any.
    fn run_beside(&mut self, slot: DateTime<Utc>, job: &Job, others: &[&Arc<Job>]) {
        let Some(other) = others.first() else { return };
        if self.beside.replace(job.uid.clone()).as_ref() == Some(&job.uid) {
            return;
        }
        let broken = || {
            let (job, other) = (&job.name.name, &other.name.name);
            format!("Forbid broken: Job {job} began while Job {other} ran, and concurrencyPolicy is Forbid")
        };
        let listed = self.in_tree.overlooks(job, others).map(Finding::Listed);
        let finding = listed.unwrap_or_else(|| Finding::Differs(broken()));
        // Two Jobs for one slot are the worse finding.
        if !matches!(self.slots.get(&slot).and_then(|known| known.finding.as_ref()), Some(Finding::Twice(_))) {
            self.find(slot, finding);
        }
    }

    /// Finds the slots that are missed at `now`. `last` is the newest slot that the status tells of.
    pub fn pass(&mut self, last: Option<DateTime<Utc>>, now: DateTime<Utc>) {
        let open = self.slots.iter().filter(|(_, known)| known.is_open());
        let late: Vec<_> = open
            .filter_map(|(slot, known)| match known.ours {
                Some(Ours::Starts(at)) if now - at >= MISSED_AFTER => Some((*slot, at)),
                _ => None,
            })
            .collect();
        for (slot, at) in late {
            let within = stretch(now - at);
            // A status of a time to come tells nothing of what ran.
            let finding = match last.filter(|last| *last >= slot) {
                Some(last) if last > now + SKEW => Finding::NotSeen,
                Some(_) => {
                    missed(format!("the status tells of it, and no Job was seen within {within}"), self.in_tree.waits())
                }
                None => missed(format!("no Job was created for it within {within}"), self.in_tree.waits()),
            };
            self.find(slot, finding);
        }
    }

    /// When [`pass`](Self::pass) may find the next slot that is missed, or the slot of a Job that came early is due.
    pub fn next_look(&self, cron_job: &CronJob) -> Option<DateTime<Utc>> {
        let open = self.slots.values().filter(|known| known.is_open());
        let at = open.filter_map(|known| if let Some(Ours::Starts(at)) = known.ours { Some(at) } else { None });
        let early = self.early.iter().filter_map(|sight| slot_for(&sight.job)).map(|slot| cron_job.due(slot));
        at.map(|at| at + MISSED_AFTER).chain(early).min()
    }

    /// Whether a slot has no Job yet, or a Job waits for its slot.
    pub fn awaits(&self) -> bool {
        self.open() > 0 || !self.early.is_empty()
    }

    /// The number of slots that this controller would have started, and that have no Job yet.
    pub fn open(&self) -> usize {
        self.slots.values().filter(|known| known.is_open()).count()
    }

    /// Compares nothing up to `until`: the watch had a gap, or the CronJob was changed, which was as `before` until then.
    pub fn skip_until(&mut self, until: DateTime<Utc>, before: &CronJob, cron_job: &CronJob, zone: Zone) {
        let due = before.nominal(until);
        if due > self.judged {
            // The slots up to `until` itself, too.
            self.count_unseen(due + TimeDelta::nanoseconds(1), before, zone);
        }
        let until = cron_job.nominal(until);
        self.lose_open();
        self.baseline = self.baseline.max(until);
        self.judged = self.judged.max(until);
        self.in_tree.goes_on();
        self.started = self.started.max(cron_job.status.last_schedule_time);
        self.forget_old_slots();
    }

    /// Whether slots before `time` are compared.
    pub fn is_before(&self, time: DateTime<Utc>) -> bool {
        self.baseline < time
    }

    /// Compares the slots without a Job no longer.
    pub fn lose_open(&mut self) {
        let open: Vec<_> = self.slots.iter().filter(|(_, known)| known.is_open()).map(|(slot, _)| *slot).collect();
        for slot in open {
            self.find(slot, Finding::NotSeen);
        }
    }

    /// Compares the slots no longer that were due after `since` and count as missed or differing: by what this was judged is in doubt.
    pub fn doubt(&mut self, since: DateTime<Utc>) {
        let is_doubted = |known: &Slot| {
            known.due > since
                && matches!(known.finding, Some(Finding::Missed(_) | Finding::Differs(_) | Finding::Listed(_)))
        };
        let doubted = self.slots.iter().filter(|(_, known)| is_doubted(known)).map(|(slot, _)| *slot);
        for slot in doubted.collect::<Vec<_>>() {
            self.find(slot, Finding::NotSeen);
        }
    }

    /// The newest slot that had a Job.
    pub fn started(&self) -> Option<DateTime<Utc>> {
        self.started
    }

    /// The changes since the last call.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    fn find(&mut self, slot: DateTime<Utc>, finding: Finding) {
        self.find_with(slot, finding, None);
    }

    fn find_with(&mut self, slot: DateTime<Utc>, finding: Finding, late: Option<TimeDelta>) {
        let known = self.slots.get(&slot).and_then(|known| known.finding.as_ref());
        if known != Some(&finding) || late.is_some() {
            self.change(slot, Some(finding), late, None);
        }
    }

    /// Replaces the finding about a slot.
    fn change(&mut self, slot: DateTime<Utc>, after: Option<Finding>, late: Option<TimeDelta>, own: Option<TimeDelta>) {
        let known = self.slots.entry(slot).or_insert_with(|| Slot { due: slot, ..Slot::default() });
        let (before, was_apart) = (std::mem::replace(&mut known.finding, after.clone()), known.is_apart);
        known.is_apart = self.is_apart;
        let (uid, due, is_apart) = (self.uid.clone(), known.due, self.is_apart);
        self.changes.push(Change { uid, slot, due, before, after, was_apart, is_apart, late, own });
    }

    /// The slots before `newer`, which has its Job, will not have theirs.
    pub fn overtake(&mut self, newer: DateTime<Utc>, cron_job: &CronJob) {
        let number = |slot| cron_job.controller_kind.number_of(slot);
        let is_without = |known: &Slot| {
            known.is_open() || known.theirs.is_none() && matches!(known.finding, Some(Finding::Missed(_)))
        };
        let without = self.slots.range(..newer).filter(|(_, known)| is_without(known)).map(|(slot, _)| *slot);
        for slot in without.collect::<Vec<_>>() {
            let is_open = self.slots.get(&slot).is_some_and(Slot::is_open);
            if number(slot) == number(newer) {
                // Slots of one minute share a name, and one Job.
                if is_open {
                    self.find(slot, Finding::NotSeen);
                }
                continue;
            }
            let last = self.slots.range(..slot).rev().find(|(_, known)| known.theirs.is_some()).map(|(last, _)| *last);
            // Until then it could have been started.
            let until = cron_job.due(newer) - TimeDelta::seconds(1);
            let waits = self.in_tree.waits().filter(|_| is_open);
            let cause = waits.or_else(|| self.in_tree.loses(slot, last, until));
            if is_open || cause.is_some() {
                self.find(slot, missed(format!("no Job was created for it before that of {}", moment(newer)), cause));
            }
        }
    }

    /// Counts the slots between the last one that was judged and `until`.
    fn count_unseen(&mut self, until: DateTime<Utc>, cron_job: &CronJob, zone: Zone) {
        // The slots of an interval depend on those that were started.
        let schedule =
            cron_job.schedule(zone).filter(|schedule| schedule.interval().is_none() && !cron_job.spec.suspend);
        let Some(schedule) = schedule else { return };
        let slots = std::iter::successors(schedule.next_after(self.judged), |slot| schedule.next_after(*slot));
        for slot in slots.take_while(|slot| *slot < until).take(MOST_UNSEEN).collect::<Vec<_>>() {
            if let Entry::Vacant(unseen) = self.slots.entry(slot) {
                unseen.insert(Slot { due: cron_job.due(slot), ..Slot::default() });
                self.find(slot, Finding::NotSeen);
            }
        }
    }

    fn forget_old_slots(&mut self) {
        while self.slots.len() > KEPT {
            if self.slots.first_key_value().is_some_and(|(_, known)| known.is_open()) {
                let why = "no Job was created for it before later slots were due".to_owned();
                if let Some(slot) = self.slots.keys().next().copied() {
                    self.find(slot, Finding::Missed(why));
                }
            }
            self.slots.pop_first();
        }
    }
}

/// The slot for which a controller created the Job, whatever its name; `None` for a manual Job and for one of a backfill.
pub(super) fn slot_for(job: &Job) -> Option<DateTime<Utc>> {
    job.scheduled_timestamp.filter(|_| !job.of_backfill)
}

#[cfg(test)]
mod tests;
