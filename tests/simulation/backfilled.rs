//! What a backfill starts, beside what docs/backfill.md promises.
//!
//! Guarantees: each slot that it starts is one of its time and was decided when it was planned, and no Job was ever created for it:
//! neither by a controller nor by a person, nor by this backfill or one before it, however often the command was killed. As many of
//! its Jobs are unfinished as were asked for. Under `max-concurrent`, as many of all kinds, and none takes the place of a regular run.
//! None starts after the CronJob was suspended, deleted or changed to Replace. No replica prunes its Jobs before it ends. A backfill that
//! is under way is continued and not begun anew, and the slot that it begins is taken off its list in the same write.
//!
//! Excused and counted is what the document says leaves no trace: a Job that a third party deleted, other than that of
//! `lastScheduleTime`, or the last one before a kill; settings by which Jobs go, and history limits, that were changed between the Job and the plan; and a record
//! that clients cannot read. What a killed process had sent is judged by its slot alone, since its place may be taken meanwhile.

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::Uid;
use cronjob_controller::api::backfill::Record;
use cronjob_controller::api::manage::{MANAGED_ANNOTATION, SUSPEND_ANNOTATION};
use cronjob_controller::api::policy::BACKFILL;
use serde_json::Value;

use crate::backfill::Backfill;
use crate::calm::limits_of;
use crate::disguise::{READS_AS, disguised};
use crate::invariants::{Invariants, Sent};
use crate::model::{Cron, Job, Model, Version, owner_of, slot_of, text};
use crate::scenario::{Action, Millis, Scenario};
use crate::waiting::decided_by_status;

/// How old what the command knows may be when its create arrives: it reads the CronJob and looks at its Jobs, and then writes its
/// progress, more than once if the status changes meanwhile.
const SEEN_WITHIN: Millis = 500;

/// How long before a slot its place is left free, and how long after it.
const KEPT_FREE: (TimeDelta, TimeDelta) = (TimeDelta::seconds(5), TimeDelta::seconds(20));

impl Version {
    /// The backfill that the record says is under way.
    pub fn backfill_under_way(&self) -> Option<String> {
        self.backfill()?["id"].as_str().map(str::to_owned)
    }

    /// What the record says of it.
    pub fn backfill(&self) -> Option<Value> {
        let record = self.object["metadata"]["annotations"][BACKFILL].as_str()?;
        let mut record: Value = serde_json::from_str(record).ok()?;
        let is_own = record["uid"] == *text(&self.object, "uid");
        is_own.then(|| record["current"].take())
    }

    /// Whether Jobs go for other reasons than that newer ones push them out.
    fn loses_jobs(&self) -> bool {
        let is_zero = |field: &str| self.spec()[field] == 0;
        self.policy() == "Replace"
            || self.rescues_after().is_some()
            || self.pauses_after().is_some()
            || limits_of(self.controller_kind()).into_iter().any(is_zero)
    }

    /// Whether it is suspended for whoever runs it, as clients read it.
    fn is_suspended_for_commands(&self) -> bool {
        let shown = disguised(&self.object)["spec"]["suspend"] == true;
        let annotations = &self.object["metadata"]["annotations"];
        shown && (annotations[MANAGED_ANNOTATION] != "true" || annotations[SUSPEND_ANNOTATION] == "true")
    }

    /// Whether it keeps fewer Jobs than `other`.
    fn keeps_fewer(&self, other: &Self) -> bool {
        let limit = |version: &Self, field: &str| version.spec()[field].as_u64().unwrap_or(u64::MAX);
        limits_of(self.controller_kind()).into_iter().any(|field| limit(self, field) < limit(other, field))
    }
}

impl Cron {
    /// The versions by which a backfill may have been planned: the last one without its record, and those that there were since it
    /// was called.
    fn planned(&self, id: &str) -> Option<&[Version]> {
        let first = self.versions.iter().position(|version| version.backfill_under_way().as_deref() == Some(id))?;
        let called = self.versions[first].at.saturating_sub(SEEN_WITHIN);
        let known = self.versions.partition_point(|version| version.at <= called).saturating_sub(1);
        self.versions.get(known.min(first.checked_sub(1)?)..first)
    }

    /// The versions that there were at any time between.
    pub fn between(&self, from: Millis, to: Millis) -> &[Version] {
        let end = self.versions.partition_point(|version| version.at <= to);
        let start = self.versions.partition_point(|version| version.at <= from).saturating_sub(1);
        &self.versions[start.min(end)..end]
    }

    /// Why a Job left no trace that the version `asked` still has, if docs/backfill.md says so: a third party deleted it, and it was
    /// not that of `lastScheduleTime`, or one that had pushed it out; or a setting by which Jobs go was removed since, or a history limit raised.
    pub fn traceless(&self, model: &Model, job: &Job, asked: &Version) -> Option<&'static str> {
        let is_newest = asked.last_schedule_time() == job.slot;
        if job.is_removed_by_others() {
            return (!is_newest).then_some("removed by others");
        }
        let uid = job.owner.as_ref().map_or("", |(uid, _)| uid);
        let pushed = |other: &Job| other.finished == job.finished && other.created > job.created;
        if model.all_jobs_of(uid).any(|other| pushed(other) && other.is_removed_by_others()) {
            return Some("pushed out by one that others removed");
        }
        // docs/reliability.md: a leader whose clock is ahead starts slots early, and a run is taken to start after its slot.
        if job.creation < job.slot {
            return Some("started early, by a clock ahead");
        }
        let versions = self.between(job.created, asked.at);
        if asked.loses_jobs() {
            return None;
        }
        if versions.iter().any(Version::loses_jobs) {
            return Some("a setting by which Jobs go was removed");
        }
        versions.iter().any(|version| version.keeps_fewer(asked)).then_some("a history limit was raised")
    }
}

/// A start.
struct Start<'a> {
    model: &'a Model,
    scenario: &'a Scenario,
    uid: &'a str,
    cron: &'a Cron,
    /// The versions by which it may have been planned.
    planned: &'a [Version],
    /// The versions that the command may have read before it.
    versions: &'a [Version],
    id: &'a str,
    slot: DateTime<Utc>,
    job: &'a Value,
    sent: &'a Sent,
}

impl Start<'_> {
    /// Those of its CronJob.
    fn backfills(&self) -> impl Iterator<Item = &Backfill> {
        self.scenario.edits.iter().filter_map(|edit| match &edit.action {
            Action::Backfill(backfill) if self.scenario.cron_jobs[edit.cron_job].name == self.cron.name => {
                Some(backfill)
            }
            _ => None,
        })
    }

    /// What the document says of the slot.
    fn wrong_slot(&self) -> Option<String> {
        if !self.planned.iter().any(|version| version.has_slot(self.slot)) {
            return Some("which is no slot of the schedule that was planned".to_owned());
        }
        let decided =
            self.planned.iter().filter_map(|version| decided_by_status(version, self.scenario.wall(version.at))).max();
        (decided < Some(self.slot)).then(|| format!("which no controller had decided: {decided:?}"))
    }

    /// Why it had to stop before.
    fn is_forbidden(&self) -> Option<&'static str> {
        let all = |is: fn(&Version) -> bool| self.versions.iter().all(is);
        let shown = |version: &Version| version.is_suspended_for_commands();
        match () {
            () if all(|version| version.policy() == "Replace") => Some("though Replace"),
            () if self.versions.iter().all(shown) => Some("though suspended"),
            () if all(|version| !version.object["metadata"]["deletionTimestamp"].is_null()) => Some("though deleted"),
            () => None,
        }
    }

    /// Its unfinished Jobs, beside this one.
    fn beside_too_many(&self) -> Option<String> {
        let most = self.backfills().map(|backfill| backfill.max_active).max()?;
        let others = self.model.jobs_of(self.uid).filter(|job| job.uid != text(self.job, "uid"));
        let own = others.filter(|job| job.backfill.as_deref() == Some(self.id) && job.is_unfinished());
        let number = own.count();
        (number >= most).then(|| format!("beside {number} of its own, though --max-active is {most}"))
    }

    /// Under `max-concurrent`, all unfinished Jobs that the command must have seen.
    fn beyond_the_limit(&self, most: usize) -> Option<String> {
        // Its own are known by their answers.
        let is_own = |job: &Job| job.backfill.as_deref() == Some(self.id);
        let behind = SEEN_WITHIN + self.backfills().map(|backfill| backfill.watch.is_behind()).max().unwrap_or(0);
        let is_seen = |job: &Job| is_own(job) || job.created + behind < self.sent.at;
        let is_known = |job: &&Job| job.uid != text(self.job, "uid") && is_seen(job);
        let others = self.model.jobs_of(self.uid).filter(is_known).filter(|job| job.is_unfinished());
        let number = others.count();
        (number >= most).then(|| format!("beside {number} unfinished ones, though max-concurrent is {most}"))
    }

    /// Under `max-concurrent`, a regular run that is due or about to be has the place. One that cannot start any more has none.
    fn before_a_regular_run(&self) -> Option<String> {
        let version = self.versions.last()?;
        let (schedule, slack) = (version.schedule()?, TimeDelta::seconds(1));
        let now = self.sent.clock;
        // The command goes by its own clock, or by the server's where that is another, which says whole seconds.
        let server = self.scenario.wall(self.sent.at) + TimeDelta::milliseconds(self.scenario.server_skew);
        let (earlier, later) = (now.min(server - slack), now.max(server));
        let ends = version.deadline().map_or(KEPT_FREE.1, |deadline| TimeDelta::seconds(deadline).min(KEPT_FREE.1));
        let first = later - version.offset() - ends + slack;
        let last = earlier - version.offset() + KEPT_FREE.0 - slack;
        let slots = std::iter::successors(schedule.next_after(first), |slot| schedule.next_after(*slot));
        let newest = slots.take_while(|slot| *slot <= last).last()?;
        let is_open = self.versions.iter().all(|version| decided_by_status(version, now) < Some(newest));
        let name = version.controller_kind().child_name(&self.cron.name, newest);
        let mut named = self.model.all_jobs_of(self.uid).filter(|job| job.name == name);
        (is_open && named.next().is_none()).then(|| format!("before the regular run of {newest}, which goes first"))
    }

    /// Why a Job of the slot before this one left no trace, if the document says so.
    fn excuse(&self, first: &Job) -> Option<&'static str> {
        let is_hidden = |version: &Version| !version.object["metadata"]["annotations"][READS_AS].is_null();
        if self.cron.between(first.created, self.sent.at).iter().any(is_hidden) {
            return Some("clients read another CronJob");
        }
        if first.backfill.as_deref() == Some(self.id) && first.is_removed_by_others() && self.is_late(first.created) {
            return Some("its own, removed by others while another create was on its way");
        }
        if first.backfill.as_deref() == Some(self.id) && first.is_removed_by_others() && self.is_taken_over(first) {
            return Some("the last one before a kill, removed by others");
        }
        // Its record tells what an earlier backfill started.
        let planned = self.planned.last()?;
        self.cron.traceless(self.model, first, planned).filter(|_| first.backfill.is_none())
    }

    /// Whether its create was sent before that.
    fn is_late(&self, at: Millis) -> bool {
        self.sent.at < at
    }

    /// Whether another process has taken the backfill over since the Job was created, and found its slot to be the last one begun.
    fn is_taken_over(&self, first: &Job) -> bool {
        let begun = |record: &Value| record["begun"]["slot"].as_str().and_then(|slot| slot.parse().ok());
        let since: Vec<Value> =
            self.cron.between(first.created, self.sent.at).iter().filter_map(Version::backfill).collect();
        since.iter().all(|record| begun(record) == Some(self.slot))
            && since.iter().any(|record| record["holder"] != since[0]["holder"])
    }
}

impl Invariants {
    /// A backfill created a Job.
    pub fn backfilled(&mut self, model: &Model, job: &Value, sent: &Sent, at: Millis, scenario: &Scenario) {
        let name = format!("{}/{}", text(job, "namespace"), text(job, "name"));
        let (owner, id) = (owner_of(job), job["metadata"]["labels"][BACKFILL].as_str());
        let (Some((uid, _)), Some(slot), Some(id)) = (owner, slot_of(job), id) else {
            return self.violated("27", at, format!("backfill created {name} without owner, slot or label"));
        };
        let Some(cron) = model.crons.get(&uid) else { return };
        let Some(planned) = cron.planned(id) else {
            return self.violated("27", at, format!("backfill created {name} without a record of it"));
        };
        let versions = cron.between(sent.at.saturating_sub(SEEN_WITHIN), sent.at);
        let start = Start { model, scenario, uid: &uid, cron, planned, versions, id, slot, job, sent };
        self.coverage.count("judged", "slot that a backfill started");
        let mut wrong: Vec<String> = start.wrong_slot().into_iter().collect();
        let is_of_slot = |other: &&Job| other.slot == Some(slot) || other.name == text(job, "name");
        let before = model.all_jobs_of(&uid).filter(is_of_slot).filter(|other| other.uid != text(job, "uid"));
        for first in before {
            match start.excuse(first) {
                Some(why) => self.coverage.count("excused", &format!("backfill of a slot that had run: {why}")),
                None => wrong.push(format!(
                    "which had one, {} by {}, gone by {:?} at {:?}",
                    first.uid, first.author, first.deleted_by, first.deleted
                )),
            }
        }
        if !sent.is_late(at) {
            wrong.extend(start.is_forbidden().map(str::to_owned));
            wrong.extend(start.beside_too_many());
            let limits: Option<Vec<usize>> = versions.iter().map(Version::max_concurrent).collect();
            if let Some(most) = limits.and_then(|limits| limits.into_iter().max()) {
                self.coverage.count("judged", "slot that a backfill started under max-concurrent");
                wrong.extend(start.beyond_the_limit(most));
                wrong.extend(start.before_a_regular_run());
            }
        }
        for what in wrong {
            self.violated("27", at, format!("backfill created {name} for {slot}, {what}"));
        }
    }

    /// A backfill writes its record. One that is under way is continued and no other is begun, and the slot that it begins is not
    /// among those that are left.
    pub fn backfill_recorded(&mut self, before: &Value, after: &Value, at: Millis) {
        let record = |object: &Value| {
            let value = object["metadata"]["annotations"][BACKFILL].as_str()?;
            Record::read(value, &Uid::new(text(object, "uid")))?.current
        };
        let Some(now) = record(after) else { return };
        self.coverage.count("judged", "record of a backfill");
        let name = format!("{}/{}", text(after, "namespace"), text(after, "name"));
        if let Some(earlier) = record(before).filter(|earlier| earlier.id != now.id) {
            let what = format!("backfill {} of {name} is begun while {} is under way", now.id, earlier.id);
            self.violated("27", at, what);
        }
        if let Some(begun) = now.begun.filter(|begun| now.left.contains(&begun.slot)) {
            self.violated("27", at, format!("backfill of {name} begins {}, which stays on its list", begun.slot));
        }
    }

    /// A replica prunes a Job; `before` is the deleted object. Those of a backfill that is under way are kept.
    pub fn prunes_during_backfill(&mut self, model: &Model, before: &Value, uid: &str, sent: &Sent, at: Millis) {
        let Some(id) = before["metadata"]["labels"][BACKFILL].as_str() else { return };
        let (Some(cron), Some(view)) = (model.crons.get(uid), &sent.view) else { return };
        self.coverage.count("judged", "Job of a backfill that is pruned");
        let is_under_way = |version: &Version| version.backfill_under_way().as_deref() == Some(id);
        if !is_under_way(cron.newest()) {
            return;
        }
        if cron.since(view.revision).iter().all(is_under_way) {
            let name = format!("{}/{}", text(before, "namespace"), text(before, "name"));
            return self.violated("27", at, format!("{} prunes {name} while its backfill is under way", sent.author));
        }
        self.coverage.count("excused", "Job of a backfill pruned: its record unseen yet");
    }
}
