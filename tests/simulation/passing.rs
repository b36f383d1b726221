//! With `backlog: 0`, a slot is passed over because runs kept it from starting, and for no other reason.
//!
//! Guarantees: of a slot that a replica says it passed over, Jobs of the CronJob were unfinished, or lingered, one after the other
//! from when it was due until it could start in time no more. While faults other than refusals are about, the replica may have
//! believed that of one that had ended a few minutes before. And the replica had deleted none of them for that slot.
//!
//! Not judged: where a clock is stepped, after an edit, each `@every`, and a slot whose name another Job has. What is said of
//! a CronJob is said once an hour.

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Evaluation;
use schedule::missed::newest_start;

use crate::invariants::Invariants;
use crate::model::{Author, Job, Model, Version};
use crate::scenario::{Millis, Scenario};
use crate::waiting::{self, IN_TIME};

/// How long a change may be on its way.
const SLACK: TimeDelta = TimeDelta::seconds(5);

/// For how long a watch may show a Job as it was: until its silence is found, and it has begun anew.
const STALE: TimeDelta = TimeDelta::seconds(240);

/// How the Event begins.
const MESSAGE: &str = "Passed over a run that other runs kept from starting for";

impl Invariants {
    /// A replica says that it passed over the newest slot that is due by its clock.
    pub fn passed_over(
        &mut self,
        model: &Model,
        scenario: &Scenario,
        (uid, message): (&str, &str),
        by: Author,
        (clock, at): (DateTime<Utc>, Millis),
    ) {
        let Some(cron) = model.crons.get(uid).filter(|_| message.starts_with(MESSAGE)) else { return };
        let version = cron.newest();
        let Some(schedule) = version.schedule().filter(|schedule| schedule.interval().is_none()) else { return };
        let nominal = clock - version.offset();
        let newest = newest_start(&Evaluation::of(&schedule), nominal - TimeDelta::days(1), nominal);
        let is_late = |slot: &DateTime<Utc>| nominal - *slot > IN_TIME;
        let Some(slot) = newest.filter(is_late).filter(|slot| !waiting::is_name_used(model, cron, *slot)) else {
            return;
        };
        // By the replica's clock.
        let time = |then: Millis| clock - TimeDelta::milliseconds(i64::try_from(at.saturating_sub(then)).unwrap());
        let due = version.due(slot);
        // The record of decided slots may change.
        let facts = |version: &Version| (version.spec().clone(), version.timing_annotations(), version.limits());
        let edited = cron.unchanged_since(|a, b| facts(a) == facts(b));
        let is_same = version.backlog() == Some(0) && version.pauses_after().is_none();
        if scenario.clocks_differ().is_none() || !is_same || time(edited) + SLACK > due {
            return;
        }
        self.coverage.count("judged", "slot passed over for a run");
        let run = |job: &Job| {
            let gone = job.deleted;
            let end = if version.replace_waits() { gone } else { job.ended.into_iter().chain(gone).min() };
            (time(job.created), end.map_or(DateTime::<Utc>::MAX_UTC, time))
        };
        let mut runs: Vec<_> = model.all_jobs_of(uid).map(run).collect();
        runs.sort_unstable();
        let kept = if scenario.is_disturbed(at) {
            runs.iter().any(|(from, to)| *from <= due + SLACK && *to > due - STALE)
        } else {
            // Until when one followed the other.
            let until =
                runs.iter().fold(due, |until, (from, to)| if *from - SLACK <= until { until.max(*to) } else { until });
            until > due + IN_TIME - SLACK
        };
        let name = format!("{}/{}", cron.namespace, cron.name);
        if !kept {
            self.violated("25", at, format!("{by} passes over {slot} of {name}, and no run kept it"));
            return;
        }
        // A deletion that was sent for an earlier slot counts for that one.
        let is_for_it = |job: &&Job| job.marked.is_some_and(|(at, author)| author == by && time(at) > due + SLACK);
        let was_unfinished = |job: &&Job| job.ended.is_none_or(|end| job.marked.is_some_and(|(at, _)| at <= end));
        if let Some(job) = model.all_jobs_of(uid).filter(is_for_it).find(was_unfinished) {
            let text = format!("{by} passes over {slot} of {name}, for which it deleted {}", job.name);
            self.violated("25", at, text);
        }
    }
}
