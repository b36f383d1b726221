//! What `explain` says about the annotations that decide when a CronJob runs, and about its time zone.
//!
//! Guarantee: each annotation that has a part in it is named, and each that leaves out a slot before the next run. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Schedule;

use super::{Case, MANY, State};
use crate::api::policy::{DST, EXCLUDE, NOT_AFTER, NOT_BEFORE, Policy, SCHEDULE, SLOT_IN_POD, SPREAD};
use crate::cli::next::cron_jobs::annotation;
use crate::cli::output::stretch;
use crate::cli::restrictions::why;

impl Case<'_> {
    /// The schedule as it was written: the lines of the annotation if it has any, else `spec.schedule`.
    pub(super) fn written_schedule(&self) -> &str {
        let lines = self.cron_job.policy().ok().flatten().and_then(Policy::lines);
        lines.unwrap_or_else(|| self.cron_job.spec.recurrence.schedule())
    }

    /// That it runs in the controller's zone, because it names none.
    pub(super) fn assumed_zone(&self) -> Option<String> {
        let cron_job = self.cron_job;
        let has_zone = cron_job.spec.recurrence.time_zone().is_some() || cron_job.timing(self.local).zone_in_schedule;
        self.schedule().and_then(Schedule::zone).filter(|_| !has_zone)?;
        let missing = if cron_job.controller_kind.has_time_zone { "spec.timeZone" } else { "TZ= in the schedule" };
        Some(format!(
            "No {missing}: it runs in the controller's time zone, assumed to be {} (--time-zone).",
            self.local
        ))
    }

    /// A sentence for each annotation that has a part in when it runs, and one for the slots that they leave out.
    pub(super) fn timing_notes(&self, state: State) -> Vec<String> {
        let Ok(Some(policy)) = self.cron_job.policy() else { return Vec::new() };
        let mut notes = Vec::new();
        if policy.lines().is_some() {
            let own = self.cron_job.spec.recurrence.schedule();
            notes.push(format!("Its schedule is that of {SCHEDULE}, which replaces spec.schedule ({own})."));
        }
        let offset = self.cron_job.offset();
        if offset > TimeDelta::zero() {
            notes.push(format!("Each run starts {} after its time ({SPREAD}).", stretch(offset)));
        }
        if policy.is_once_a_time() {
            notes.push(format!(
                "When the clocks change, each time of the schedule runs once, unless it has all 24 hours ({DST})."
            ));
        }
        if !policy.exclusions().is_empty() {
            let of_namespace = match self
                .cron_job
                .restriction()
                .filter(|restriction| !restriction.excluded().is_empty())
            {
                Some(restriction) => {
                    format!(", of the Namespace too: {}{},", restriction.excluded(), why(restriction.reason.as_deref()))
                }
                None => String::new(),
            };
            notes.push(format!("The dates in {EXCLUDE}{of_namespace} have no slots."));
        }
        let (start, end) = policy.bounds();
        let start = start.filter(|start| *start > self.now);
        if policy.limits().slot_in_pod {
            notes.push(format!("Its Pods get their slot in annotations ({SLOT_IN_POD})."));
        }
        let of_namespace = self.cron_job.restriction().and_then(|restriction| restriction.not_before());
        let whose = |start| if of_namespace == Some(start) { " of the Namespace" } else { "" };
        notes.extend(
            start.map(|start| format!("No slot is before {} ({NOT_BEFORE}{}).", self.moment(start), whose(start))),
        );
        notes.extend(end.map(|end| format!("No slot is after {} ({NOT_AFTER}).", self.moment(end))));
        if !matches!(state, State::Suspended | State::BeingDeleted) {
            notes.extend(self.left_out());
        }
        notes
    }

    /// Which slots before the next run are left out. The slots of an `@every` depend on the last run, and nothing is said.
    fn left_out(&self) -> Option<String> {
        let schedule = self.schedule().filter(|schedule| schedule.interval().is_none())?;
        let now = self.cron_job.nominal(self.now);
        let next = schedule.next_after(now);
        let before = schedule.nominal(now).take_while(|nominal| next.is_none_or(|next| nominal.slot < next));
        let left_out = before.take(MANY + 1).filter_map(|nominal| Some((nominal.slot, annotation(nominal.left_out?))));
        let (slots, mut annotations): (Vec<DateTime<Utc>>, Vec<&str>) = left_out.unzip();
        let (first, last) = (self.moment(*slots.first()?), self.moment(*slots.last()?));
        annotations.sort_unstable();
        annotations.dedup();
        let annotations = annotations.join(" and ");
        Some(match slots.len() {
            1 => format!("The slot of {first} is left out by {annotations}."),
            number if number > MANY => format!("More than {MANY} slots from {first} on are left out by {annotations}."),
            number => format!("{number} slots from {first} to {last} are left out by {annotations}."),
        })
    }
}
