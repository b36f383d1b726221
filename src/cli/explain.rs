//! Explains why a CronJob did or did not run, and what it will do next.
//!
//! Guarantees: an explanation follows from the decisions of `reconcile` and from the Warnings that a controller has
//! recorded. `reconcile` is called as the controller calls it, at the time that is passed in (`rehearsal`). Where the
//! next run depends on an earlier event (a Job ends, a user resumes the CronJob), that case is rehearsed, too. Pure,
//! except for [`read`].

mod due;
mod failing;
mod held;
pub mod in_charge;
mod jobs;
pub mod lease;
mod next_run;
mod pile;
pub mod read;
pub(in crate::cli) mod rehearsal;
mod remedy;
mod since;
pub mod state;
mod text;
mod timing;
pub(crate) mod watched;

use std::sync::Arc;

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};
use schedule::{Schedule, Zone};
use serde::Serialize;

use super::hints;
use super::output::{count, moment};
use super::restrictions::Freeze;
use super::unfinished::Unfinished;
#[cfg(feature = "ui")]
use crate::api::ObjectName;
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob, FinishedCondition, Job, WaitsFor};
use crate::api::manage::MANAGED_ANNOTATION;
use crate::api::policy::PolicyError;
use crate::cli::next::cron_jobs::never_due;
use crate::controller::plan::{Failure, Outcome, Skip, Verdict};
#[cfg(feature = "dev")]
use crate::dev::view::{Condition, Tone};
pub use failing::NoSuccess;
pub(super) use failing::{CLOCKS_DIFFER, LostRuns};
use held::first_of;
pub(super) use held::{AS_SOON, Resumed, Resumption, holds_every_run, resumed, some_of};
pub use in_charge::InCharge;
pub(super) use jobs::DROPPED;
pub use read::Facts;
use read::Said;
use rehearsal::Rehearsal;
#[cfg(feature = "ui")]
pub(crate) use remedy::Remedy;
pub use remedy::Shell;
pub(crate) use remedy::cluster_flags;
pub use state::{State, Urgency};

/// An explanation.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub(crate) kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Which controller runs it.
    pub(crate) controller: InCharge,
    pub(crate) state: State,
    /// Who runs it, and the answer in one or two sentences.
    pub(crate) summary: String,
    /// The answer alone.
    #[serde(skip)]
    #[cfg_attr(not(feature = "ui"), allow(dead_code, reason = "the page shows it"))]
    pub(crate) why: String,
    /// Who runs it.
    #[serde(skip)]
    #[cfg_attr(not(feature = "ui"), expect(dead_code, reason = "only the page shows it apart"))]
    pub(crate) who: String,
    /// Its state by its schedule and what holds it, whatever its last runs did.
    #[serde(skip)]
    pub(crate) by_schedule: State,
    /// Since when it has had no success, if its last run that ended failed, or if its runs do not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) no_success: Option<NoSuccess>,
    /// The lines of the annotation that replaces `spec.schedule`, on one line; else `spec.schedule`.
    pub(crate) schedule: String,
    /// The zone of the schedule; `None` for `@every` and for an unreadable zone.
    pub(crate) time_zone: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_run: Option<LastRun>,
    /// The newest run that was not started by the schedule, if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    unscheduled_run: Option<LastRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_successful_time: Option<DateTime<FixedOffset>>,
    /// The Job of the last run that ended, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_failed_job: Option<String>,
    pub(crate) active: Vec<Active>,
    /// What keeps the first of them from ending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unfinished: Option<Unfinished>,
    /// The freeze of its Namespace, if it has that state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) freeze: Option<Freeze>,
    /// Why the last run that ended failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<super::failure::Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_run: Option<NextRun>,
    /// Further remarks.
    notes: Vec<String>,
    /// The Warnings that a controller recorded, newest first.
    pub(crate) warnings: Vec<Said>,
    /// When the oldest run that has not started, or was missed, became due, its delay of `spread` included.
    #[serde(skip)]
    pub(crate) due_since: Option<DateTime<Utc>>,
    /// When the run became due that starts next, late; `None` if all that were due start no more.
    #[serde(skip)]
    pub(crate) late_since: Option<DateTime<Utc>>,
    /// The Job that a sync would create, whether or not another object has its name.
    #[serde(skip)]
    wanted: Option<String>,
    /// Whether it never runs because of its deadline.
    #[serde(skip)]
    passes_deadline: bool,
    /// Whether what cannot be read is an annotation of its Namespace.
    #[serde(skip)]
    is_namespaces_fault: bool,
    /// What lets a run end, if each is deleted before that.
    #[serde(skip)]
    lets_end: &'static str,
    /// How many of the running Jobs that block a run have to end for it to start; `None` if it does not start then.
    #[serde(skip)]
    starts_when_gone: Option<usize>,
    /// Whether it is left to the in-tree controller, of which no lease shows that it runs.
    #[serde(skip)]
    pub(crate) is_left_alone: bool,
    /// The state that holds it once a user no longer stops it.
    #[serde(skip)]
    held_also: Option<State>,
    /// What a row of a table says in its state, in the words of the answer.
    #[serde(skip)]
    headline: Option<String>,
    /// The lease of its controller, if no process has held it for some time.
    #[serde(skip)]
    pub(crate) abandoned_lease: Option<String>,
    /// What kubectl calls its kind, and the kind of what it starts.
    #[serde(skip)]
    resource: String,
    #[serde(skip)]
    noun: &'static str,
    #[serde(skip)]
    now: DateTime<Utc>,
    /// How its commands begin and end.
    #[serde(skip)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LastRun {
    pub time: DateTime<FixedOffset>,
    pub job: String,
    /// Whether the Job still exists.
    #[serde(skip)]
    pub exists: bool,
    /// Whether a backfill started it.
    #[serde(skip)]
    of_backfill: bool,
    pub outcome: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Active {
    pub name: String,
    since: DateTime<FixedOffset>,
    /// Whether it only waits to be started.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    awaits_start: bool,
    /// Whether a backfill started it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    of_backfill: bool,
    /// Whether it is being deleted.
    #[serde(skip)]
    deleting: bool,
    /// The patch of the template because of which it waits.
    #[serde(skip)]
    patch: Option<&'static str>,
    /// What it waits for, if it does not run.
    #[serde(skip)]
    waits_for: Option<WaitsFor>,
    #[serde(skip)]
    doing: String,
    #[serde(skip)]
    in_short: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NextRun {
    pub time: DateTime<FixedOffset>,
    /// The effect of the next run if nothing changes until then.
    pub effect: String,
}

/// A run that is due for this long counts as late, not as about to start.
pub(super) const LATE_AFTER: TimeDelta = TimeDelta::seconds(60);
/// Counting of runs stops here.
pub(super) const MANY: usize = 100;
/// The largest number of Warnings in an explanation.
const MAX_WARNINGS: usize = 5;

/// Explains a CronJob at `now`. `local` is the zone of the controller, in which schedules without one run.
pub fn explain(facts: &Facts, local: Zone, now: DateTime<Utc>) -> Explanation {
    Case::new(facts, local, now).explain()
}

/// The state of a CronJob with these Jobs, of which its own controller is in charge.
#[cfg(feature = "dev")]
pub fn judge(cron_job: &Arc<CronJob>, jobs: Vec<Arc<Job>>, local: Zone, now: DateTime<Utc>) -> Condition {
    let facts = Facts::of(Arc::clone(cron_job), InCharge::Own, jobs);
    let told = explain(&facts, local, now);
    let (state, is_held) = (told.state, told.next_run.is_some() && told.next_start().is_none());
    let tone = match state.urgency() {
        Urgency::Fine => Tone::Fine,
        Urgency::Stopped => Tone::Stopped,
        _ => Tone::Bad,
    };
    Condition { rank: state.urgency() as u8, label: state.label(), tone, is_held }
}

/// A CronJob that is being explained.
pub(crate) struct Case<'a> {
    facts: &'a Facts,
    cron_job: &'a Arc<CronJob>,
    local: Zone,
    /// The zone of the times in the answer.
    pub(crate) zone: Zone,
    now: DateTime<Utc>,
    /// The result of a sync now.
    sync: Rehearsal,
}

impl<'a> Case<'a> {
    pub(crate) fn new(facts: &'a Facts, local: Zone, now: DateTime<Utc>) -> Self {
        let cron_job = &facts.cron_job;
        let sync = Rehearsal::of(cron_job, &facts.jobs, local, now);
        let zone = cron_job.zone(local);
        Self { facts, cron_job, local, zone, now, sync }
    }

    /// The explanation.
    pub(crate) fn explain(&self) -> Explanation {
        let (by_schedule, why) = self.verdict();
        let (state, why) = match by_schedule {
            State::Starting | State::Waiting | State::Blocked | State::SlotsUnknown => {
                self.by_results(by_schedule, why)
            }
            State::RunStuck | State::Paused | State::Missed if self.is_failing() => {
                (by_schedule, format!("{}. {why}", self.no_success().words(self.now)))
            }
            _ => (by_schedule, why),
        };
        let (cron_job, controller) = (&self.cron_job, self.facts.in_charge);
        let who = controller.sentence(self.cron_job, self.facts.lease.as_ref(), self.now);
        let at = |t: DateTime<Utc>| self.zone.at(t);
        let abandoned = self.facts.lease.as_ref().filter(|lease| lease.is_abandoned(self.now));
        let is_blocked = matches!(by_schedule, State::Blocked | State::RunStuck);
        let free = is_blocked.then(|| self.when_free()).flatten();
        let active = |job: &&Arc<Job>| Active {
            name: job.name.name.to_string(),
            since: at(job.began()),
            awaits_start: job.awaits_start(),
            deleting: job.deleting,
            patch: self.patch_of_template(job),
            of_backfill: job.of_backfill,
            waits_for: job.waits_for(),
            doing: self.doing(job),
            in_short: self.doing_in_short(job),
        };
        Explanation {
            kind: cron_job.controller_kind.parent.kind,
            namespace: cron_job.name.namespace.to_string(),
            name: cron_job.name.name.to_string(),
            controller,
            state,
            by_schedule,
            no_success: (state.urgency() == Urgency::Failed || state.urgency() < Urgency::Fine && self.is_failing())
                .then(|| self.no_success()),
            summary: format!("{who} {why}"),
            who,
            why,
            schedule: self.written_schedule().to_owned(),
            time_zone: self.cron_job.own_zone(self.local).map(Zone::name),
            last_run: self.last_run(),
            unscheduled_run: self.unscheduled_run(),
            last_successful_time: cron_job.status.last_successful_time.map(at),
            last_failed_job: self.last_failure().map(|job| job.name.name.to_string()),
            active: if is_blocked { self.blockers() } else { self.running() }.iter().map(active).collect(),
            unfinished: None,
            freeze: (state == State::Frozen).then(|| Freeze::of(cron_job, self.zone, self.now)).flatten(),
            failure: None,
            next_run: self.next_run(state),
            notes: self.notes(state),
            warnings: self.warnings(state),
            due_since: self.due_since(),
            late_since: self.late_since(by_schedule, free),
            wanted: self.sync.start.as_ref().map(|(name, _)| name.name.to_string()),
            passes_deadline: state == State::NeverFires && self.never_due().is_some(),
            is_namespaces_fault: matches!(cron_job.policy(), Err(PolicyError::Namespace(_))),
            lets_end: remedy::lets_end(self.frees_stuck() && !self.replaces()),
            starts_when_gone: free.map(|_| self.too_many()),
            is_left_alone: self.is_left_alone(),
            held_also: self.held_also(state).map(|(state, _)| state),
            headline: self.headline(state),
            abandoned_lease: abandoned.map(|lease| lease.name.clone()),
            resource: resource(cron_job),
            noun: self.noun(),
            now: self.now,
            shell: Shell::default(),
        }
    }

    /// Whether it is left to the in-tree controller, of which no lease shows that it runs.
    fn is_left_alone(&self) -> bool {
        let lease = self.facts.lease.as_ref();
        self.facts.in_charge == InCharge::InTree && lease.is_some_and(|lease| !lease.is_in_tree())
    }

    /// The name of the Job that a sync would create now, whether or not another object has it.
    #[cfg(feature = "ui")]
    pub(crate) fn wanted(&self) -> Option<&ObjectName> {
        self.sync.start.as_ref().map(|(name, _)| name)
    }

    /// Why its deadline keeps it from ever running.
    fn never_due(&self) -> Option<&'static str> {
        never_due(self.schedule()?, self.cron_job.spec.starting_deadline_seconds)
    }

    pub(crate) fn schedule(&self) -> Option<&Schedule> {
        self.cron_job.schedule(self.local)
    }

    /// The schedule without what the Namespace leaves out.
    pub(crate) fn own_schedule(&self) -> Option<&Schedule> {
        self.cron_job.own_schedule(self.local)
    }

    fn noun(&self) -> &'static str {
        self.cron_job.controller_kind.child.kind
    }

    fn moment(&self, t: DateTime<Utc>) -> String {
        moment(self.zone, t)
    }

    /// Rehearses a sync of a changed CronJob with the given Jobs.
    fn rehearse(&self, change: impl FnOnce(&mut CronJob), jobs: &[Arc<Job>], at: DateTime<Utc>) -> Rehearsal {
        let mut cron_job = CronJob::clone(self.cron_job);
        change(&mut cron_job);
        Rehearsal::of(&Arc::new(cron_job), jobs, self.local, at)
    }

    /// The Jobs of the CronJob.
    fn children(&self) -> impl Iterator<Item = &'a Arc<Job>> + use<'a> {
        self.facts.children()
    }

    /// The newest slot that was started, even if the status does not have it yet.
    pub(crate) fn last_slot(&self) -> Option<DateTime<Utc>> {
        self.facts.last_slot()
    }

    fn waiting(&self) -> (State, String) {
        if let Some(text) = self.unstarted() {
            return (State::NotStarted, format!("{text} The next run is not due yet."));
        }
        let text = if self.unscheduled_run().is_some() {
            "It has not run by its schedule yet and waits for its first run."
        } else if self.last_slot().is_none() {
            "It has not run yet and waits for its first run."
        } else {
            "It runs on schedule and waits for the next run."
        };
        (State::Waiting, text.to_owned())
    }

    /// The newest slot that was started or decided, else the creation.
    fn last_decided(&self) -> DateTime<Utc> {
        let last = self.last_slot().unwrap_or(self.cron_job.creation_timestamp);
        self.cron_job.decided_until(&self.cron_job.status, self.now).map_or(last, |decided| decided.max(last))
    }

    fn verdict(&self) -> (State, String) {
        let cron_job = self.cron_job;
        let spec = &cron_job.spec;
        if cron_job.deleting {
            return (State::BeingDeleted, "It is being deleted: no further run starts.".to_owned());
        }
        let slots_unknown = self.slots_unknown();
        if self.sync.event("UnknownTimeZone").is_some() && slots_unknown.is_none() {
            let zone = spec.recurrence.time_zone().unwrap_or_default();
            return (State::UnknownTimeZone, format!("It does not run: spec.timeZone {zone:?} is not a time zone."));
        }
        if spec.suspend {
            return (State::Suspended, self.suspended());
        }
        if let Some(text) = slots_unknown {
            return (State::SlotsUnknown, text);
        }
        if self.facts.in_charge == InCharge::NotManaged {
            let text = "No run starts until it is taken back, or a controller runs with --manage=annotated.";
            return (State::NoController, text.to_owned());
        }
        if let Err(error) = &cron_job.timing(self.local).schedule {
            let schedule = spec.recurrence.schedule();
            let refusal = format!("It does not run: spec.schedule {schedule:?} cannot be read: {error}");
            return (State::UnparseableSchedule, format!("{}.", hints::with(refusal, schedule)));
        }
        if let Err(error) = cron_job.policy() {
            return (State::BadPolicy, format!("It does not run: {error}."));
        }
        if let Some(text) = self.frozen() {
            return (State::Frozen, text);
        }
        if let Some(text) = self.never_due() {
            return (State::NeverFires, text.to_owned());
        }
        match &self.sync.settlement.outcome {
            Outcome::Failed(Failure::Template(message)) => {
                return (State::BadTemplate, format!("A run is due and cannot start: {message}."));
            }
            Outcome::Done if self.sync.starts().is_none() => {
                return (State::NeverFires, self.without_slots().to_owned());
            }
            _ => {}
        }
        if self.sync.event("Paused").is_some() {
            return (State::Paused, self.paused());
        }
        match self.sync.settlement.verdict {
            Verdict::Skipped(Skip::Forbid(_)) => self.blocked(held::FORBIDS),
            Verdict::Skipped(Skip::MaxConcurrent(_)) => self.blocked(&self.at_limit()),
            Verdict::Skipped(Skip::Replacing(_)) => self.blocked(held::REPLACES),
            Verdict::Skipped(Skip::PassedOver(slot)) => (State::Waiting, self.passed_over(slot)),
            Verdict::Skipped(Skip::NameTaken(slot)) => (State::NameTaken, self.name_taken(slot)),
            Verdict::Skipped(Skip::Deadline(slot)) => self.too_late(slot),
            Verdict::Started { slot, .. } => self.due(slot),
            Verdict::Skipped(Skip::Paused(_) | Skip::Suspended | Skip::Invalid)
            | Verdict::Open
            | Verdict::NothingDue => self.waiting(),
        }
    }

    /// That this program does not know the zone of a CronJob of the in-tree controller, which reads other zone files.
    fn slots_unknown(&self) -> Option<String> {
        let zone = self.cron_job.spec.recurrence.time_zone()?;
        let is_unknown = self.cron_job.timing(self.local).time_zone.is_err();
        (is_unknown && self.facts.in_charge == InCharge::InTree)
            .then(|| format!("Its slots are not known here, because spec.timeZone {zone:?} is not."))
    }

    /// That there is no next run.
    fn without_slots(&self) -> &'static str {
        let own = self.cron_job.policies.as_ref();
        if own.is_some_and(|own| own.has_timing() || self.cron_job.restriction().is_some()) {
            "It does not run: its schedule and its policies leave no time in the next five years."
        } else {
            "It never runs: the schedule matches no time in the next five years."
        }
    }

    /// Running Jobs block the run, because of `rule`.
    fn blocked(&self, rule: &str) -> (State, String) {
        let noun = self.noun();
        let blockers = self.blockers();
        let named = |job: &Arc<Job>| format!("{noun} {} {}", jobs::named(job), self.doing(job));
        let why = if blockers.is_empty() {
            format!("status.active names a running {noun}")
        } else {
            first_of(&blockers, named)
        };
        let ended_now =
            if blockers.len() > 1 { format!("these {noun}s ended now") } else { format!("that {noun} ended now") };
        let then = match self.when_free() {
            Some(slot) => format!(
                " If {ended_now}, the run of {} would start {}{}.",
                self.moment(slot),
                self.at_once(),
                self.deadline_of(slot)
            ),
            None => String::new(),
        };
        let missed = self.skipped_and_waiting().map(|missed| format!(" {missed}")).unwrap_or_default();
        match self.stuck_since() {
            Some(stuck) => {
                (State::RunStuck, format!("{stuck} It blocks the next run: {why}, and {rule}.{missed}{then}"))
            }
            None => (State::Blocked, format!("It is blocked: {why}, and {rule}.{missed}{then}")),
        }
    }

    /// The slot that would start if all running Jobs ended now, and those that are being deleted were gone.
    fn when_free(&self) -> Option<DateTime<Utc>> {
        let end = |job: &Arc<Job>| match job.is_child_of(self.cron_job) {
            true if job.deleting => None,
            true => Some(over(job)),
            false => Some(Arc::clone(job)),
        };
        let ended: Vec<Arc<Job>> = self.facts.jobs.iter().filter_map(end).collect();
        self.rehearse(|_| {}, &ended, self.now).starts().map(|(_, slot)| *slot)
    }

    fn deadline_of(&self, slot: DateTime<Utc>) -> String {
        let seconds = self.cron_job.spec.starting_deadline_seconds.and_then(TimeDelta::try_seconds);
        let end = seconds.and_then(|seconds| self.cron_job.due(slot).checked_add_signed(seconds));
        end.map(|end| format!(" (until {}, its startingDeadlineSeconds)", self.moment(end))).unwrap_or_default()
    }

    fn name_taken(&self, slot: DateTime<Utc>) -> String {
        let (noun, name) = (self.noun(), self.cron_job.controller_kind.child_name(&self.cron_job.name.name, slot));
        let slot = self.moment(slot);
        format!("The run of {slot} cannot start: {noun} {name} exists already and has another owner.")
    }

    /// The Job that was started for a slot, if it still exists.
    pub(crate) fn job_of(&self, slot: DateTime<Utc>) -> Option<&Arc<Job>> {
        let name = self.cron_job.controller_kind.child_name(&self.cron_job.name.name, slot);
        self.children().find(|job| *job.name.name == *name)
    }

    fn notes(&self, state: State) -> Vec<String> {
        let mut notes = Vec::new();
        if self.facts.in_charge == InCharge::HandedOver {
            notes.push(format!(
                "It is handed over ({MANAGED_ANNOTATION}): this describes a controller with --manage=annotated."
            ));
        }
        notes.extend(self.timing_notes(state));
        if state != State::BeingDeleted {
            notes.extend(self.passed_over_by_change());
        }
        if !matches!(state, State::Suspended | State::BeingDeleted) {
            notes.extend(self.stuck());
        }
        notes.extend(self.assumed_zone());
        if self.sync.event("TooManyMissedTimes").is_some() && state != State::Blocked {
            notes.push(format!("More than {MANY} runs were missed; only the newest starts late. spec.startingDeadlineSeconds limits how late."));
        }
        if self.cron_job.spec.concurrency_policy == ConcurrencyPolicy::Unknown {
            notes.push("spec.concurrencyPolicy has an unknown value; it is treated as Allow.".to_owned());
        }
        notes.extend(self.other_events());
        if self.sync.pruned > 0 {
            let finished = format!("finished {}", self.noun());
            notes.push(format!("By the history limits, {} will be deleted.", count(self.sync.pruned, &finished)));
        }
        notes.extend(self.facts.abandoned(self.now).filter(|_| state != State::Overdue));
        if let Err(error) = &self.facts.warnings {
            notes.push(format!("The Warnings about it cannot be read: {error}"));
        }
        if let Some(error) = &self.facts.leases_unread {
            notes.push(leases_unread(error));
        }
        if let Some(error) = &self.facts.namespace_unread {
            notes.push(format!("Its Namespace cannot be read, so a freeze of it does not show: {error}"));
        }
        notes
    }
}

/// That the leases of controllers are not known.
pub(crate) fn leases_unread(error: &str) -> String {
    format!("Leases cannot be read, so it does not show whether a controller runs: {error}")
}

/// What kubectl calls the kind: with its group where another group has the same name.
fn resource(cron_job: &CronJob) -> String {
    let kind = cron_job.controller_kind.parent;
    let singular = kind.kind.to_ascii_lowercase();
    if kind.group == "batch" { singular } else { format!("{singular}.{}", kind.group) }
}

/// The same Job, finished.
fn over(job: &Arc<Job>) -> Arc<Job> {
    Arc::new(Job { finished: job.finished.or(Some(FinishedCondition::Failed)), ..Job::clone(job) })
}

#[cfg(test)]
pub(crate) mod tests;
