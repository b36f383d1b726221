//! Warnings about the times of a schedule.
//!
//! Guarantee: errors are not repeated as warnings. For an unreadable schedule or zone there are no warnings here. Pure.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::missed::is_never_due;
use schedule::{Schedule, Timing, Zone};
use serde_json::Value;

use super::{Code, Fault, Rules, policies};
use crate::api::ControllerKind;
use crate::api::policy::{Policy, PolicyReading, SCHEDULE};
use crate::cli::clock_changes::{Effect, clocks, effects, runs_in_every_hour};
use crate::cli::next::cron_jobs::annotation;
use crate::cli::output::count;
use crate::cli::restrictions::Restrictions;

/// How far ahead clock changes are searched: over at least one spring and one autumn, whatever the weekday.
const AHEAD: TimeDelta = TimeDelta::days(2 * 365);

/// An object with a readable schedule.
pub(super) struct Timed {
    controller_kind: ControllerKind,
    /// `spec.schedule`, in its zone.
    own: Schedule,
    /// The schedule of the slots: with the policies, if they can be read.
    pub schedule: Schedule,
    /// What its annotations say.
    pub policies: Option<PolicyReading>,
    /// Whether it is suspended.
    pub suspended: bool,
    /// `spec.startingDeadlineSeconds`.
    deadline: Option<i64>,
}

impl Timed {
    /// Reads the schedule as the controller does, by these rules, in a Namespace of which `restrictions` tell.
    pub fn of(
        controller_kind: ControllerKind,
        object: &Value,
        rules: &Rules,
        restrictions: &Restrictions,
    ) -> Option<Self> {
        let Rules { zone, seed, .. } = rules;
        let spec = &object["spec"];
        let text = spec["schedule"].as_str()?;
        let timing = Timing::parse(text, spec["timeZone"].as_str(), *zone);
        timing.time_zone.ok()?;
        let (own, policies) = (timing.schedule.ok()?, policies::of(controller_kind, object, seed));
        let policies = match restrictions.of(&policies::key(object).namespace) {
            Some(restriction) => Some(PolicyReading::restricted(policies.map(Arc::new).as_ref(), restriction, text)),
            None => policies,
        };
        let policy = policies.as_ref().and_then(|policies| policies.policy.as_ref().ok());
        let schedule = policy.map_or(&own, |policy| policy.schedule(&own)).clone();
        let deadline = spec["startingDeadlineSeconds"].as_i64();
        Some(Self { controller_kind, own, schedule, policies, deadline, suspended: spec["suspend"] == true })
    }

    /// How long after its slots it starts.
    pub fn offset(&self) -> TimeDelta {
        self.policies.as_ref().map_or(TimeDelta::zero(), PolicyReading::offset)
    }

    /// Whether annotations that cannot be read, of its own or of its Namespace, hold it.
    pub fn is_held(&self) -> bool {
        self.policies.as_ref().is_some_and(|policies| policies.policy.is_err())
    }

    /// Whether `spec.schedule` alone decides the slots.
    pub fn is_plain(&self) -> bool {
        self.schedule == self.own
    }

    /// Whether its kind has policies.
    pub fn has_policies(&self) -> bool {
        self.controller_kind.counted_from.is_some()
    }

    /// How many unfinished Jobs its annotations allow.
    pub fn max_concurrent(&self) -> Option<usize> {
        self.policies.as_ref()?.policy.as_ref().ok()?.limits().max_concurrent
    }

    /// Whether its annotations delete a Job that hangs where it blocks a run.
    pub fn deletes_stuck_jobs(&self) -> bool {
        let policy = self.policies.as_ref().and_then(|policies| policies.policy.as_ref().ok());
        policy.is_some_and(|policy| policy.limits().deletes_after().is_some())
    }

    /// Whether its deadline has passed whenever a run is due.
    pub fn is_never_due(&self) -> bool {
        is_never_due(&self.schedule, self.deadline)
    }

    /// All warnings about its times.
    pub fn judge(&self, now: DateTime<Utc>) -> Vec<Fault> {
        let field = "spec.schedule";
        let mut faults: Vec<Fault> =
            self.policies.iter().flat_map(|policies| policies::judge(policies, &self.own, now)).collect();
        // The server refuses one below 0.
        if self.is_never_due() && self.deadline.is_none_or(|deadline| deadline >= 0) {
            let message = if self.schedule.interval().is_some() {
                "it never fires: it is shorter than the interval of @every, whose runs then always count from the deadline"
            } else {
                "it never fires: this deadline has passed whenever a run is due"
            };
            faults.push(Fault::warning(Code::NeverFires, "spec.startingDeadlineSeconds", message));
        }
        let Some(first) = self.schedule.next_after(now) else {
            faults.push(self.never_fires(now));
            return faults;
        };
        let unit = self.controller_kind.seconds_in_name;
        if self.schedule.next_after(first).is_some_and(|second| (second - first).num_seconds() < unit) {
            let message = format!(
                "runs within {unit} seconds share a {}'s name: only the first of them starts",
                self.controller_kind.child.kind
            );
            faults.push(Fault::warning(Code::SharedName, field, message));
        }
        let policy = self.policies.as_ref().and_then(|policies| policies.policy.as_ref().ok());
        if policy.is_some_and(Policy::is_once_a_time) {
            return faults;
        }
        let effects = effects(&self.schedule, now, now + AHEAD);
        let odd: Vec<Effect> =
            effects.into_iter().filter(|effect| !runs_in_every_hour(&self.schedule, effect.change)).collect();
        let zone = self.schedule.zone().unwrap_or_default();
        faults.extend([true, false].into_iter().filter_map(|is_skip| {
            let alike: Vec<&Effect> = odd.iter().filter(|effect| effect.is_skip() == is_skip).collect();
            Some(Fault::warning(Code::ClockChange, field, sentence(alike.first()?, alike.len(), zone)))
        }));
        faults
    }

    /// That it has no run, at the field or the annotation that is the reason.
    fn never_fires(&self, now: DateTime<Utc>) -> Fault {
        let (field, reason) = match self.schedule.nominal(now).next().and_then(|nominal| nominal.left_out) {
            Some(left_out) => (policies::field(annotation(left_out)), "no time is left"),
            None if self.own.next_after(now).is_some() => (policies::field(SCHEDULE), "it matches no time"),
            None => ("spec.schedule".to_owned(), "it matches no time"),
        };
        let message =
            format!("it never fires: {reason} in the next five years (to suspend a CronJob, use spec.suspend)");
        Fault::warning(Code::NeverFires, field, message)
    }
}

/// Describes the first of several clock changes, and states their number.
fn sentence(effect: &Effect, changes: usize, zone: Zone) -> String {
    let (old, new) = clocks(effect.change);
    let (first, last) = (effect.times[0], effect.times[effect.times.len() - 1]);
    let runs = match effect.times.len() {
        1 => format!("the run of {}", first.format("%a %F %H:%M")),
        number => format!("{number} runs from {} to {}", first.format("%a %F %H:%M"), last.format("%H:%M")),
    };
    let (what, how) = match (effect.is_skip(), effect.times.len()) {
        (true, 1) => ("is skipped", "go from"),
        (true, _) => ("are skipped", "go from"),
        (false, 1) => ("runs twice", "go back from"),
        (false, _) => ("run twice", "go back from"),
    };
    let more = if changes > 1 { format!(" ({} within two years)", count(changes, "such day")) } else { String::new() };
    let (old, new) = (old.format("%H:%M"), new.format("%H:%M"));
    format!("{runs} {what}: the clocks of {zone} {how} {old} to {new}{more}")
}
