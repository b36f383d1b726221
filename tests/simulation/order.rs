//! In what order the Jobs of a CronJob start, whichever replica leads.
//!
//! A new leader goes on where the last one stopped: it knows the status as of its lease, since it reads a CronJob before
//! it starts a Job, and the Jobs that its watch has shown.

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::Manage;
use serde_json::Value;

use crate::disguise::{READS_AS, disguised};
use crate::invariants::{Invariants, Sent};
use crate::limits::{LONGEST_SYNC, SHOWN_WITHIN};
use crate::model::{Cron, Job, Model, SHARED, Version, owner_of, slot_of, text};
use crate::policies::counted_from;
use crate::scenario::{Millis, Scenario};
use crate::waiting::{self, IN_TIME};

/// The create of a Job: its CronJob, and what its author knew.
struct Start<'a> {
    model: &'a Model,
    scenario: &'a Scenario,
    uid: &'a str,
    cron: &'a Cron,
    /// The versions that the author may have used.
    versions: &'a [Version],
    /// The newest version that it is sure to have known.
    known: &'a Version,
    /// Since when it leads, if it still does.
    leads_since: Option<Millis>,
    sent: &'a Sent,
    slot: DateTime<Utc>,
}

impl<'a> Start<'a> {
    fn of(model: &'a Model, scenario: &'a Scenario, uid: &'a str, slot: DateTime<Utc>, sent: &'a Sent) -> Option<Self> {
        let cron = model.crons.get(uid)?;
        let versions = cron.since(sent.view.as_ref()?.revision);
        let holds = model.holder == sent.identity;
        let leads_since = model.held_since.filter(|since| holds && *since <= sent.at);
        let at_lease = leads_since.and_then(|since| cron.versions.iter().rev().find(|version| version.at <= since));
        let shown = versions.first()?;
        let known = at_lease.filter(|version| version.revision > shown.revision).unwrap_or(shown);
        Some(Self { model, scenario, uid, cron, versions, known, leads_since, sent, slot })
    }

    /// Whether every version that the author may have used says so.
    fn all(&self, holds: impl Fn(&Version) -> bool) -> bool {
        self.versions.iter().all(holds)
    }

    /// What the author's clock showed at a time, if no clock is ever stepped.
    fn author_time(&self, at: Millis) -> Option<DateTime<Utc>> {
        self.scenario.clocks_differ()?;
        let before = i64::try_from(self.sent.at).ok()? - i64::try_from(at).ok()?;
        Some(self.sent.clock - TimeDelta::milliseconds(before))
    }

    /// The slot was decided when its author could know it, and no one removed the record that its author may have seen go.
    fn decided(&self) -> Option<(&'static str, String)> {
        let until = |version: &Version| version.decided_until(self.sent.clock).filter(|decided| *decided >= self.slot);
        let mut later = self.versions.iter().filter(|version| version.revision > self.known.revision);
        if let Some(decided) = until(self.known)
            && later.all(|version| until(version).is_some())
        {
            return Some(("15", format!("which was decided until {decided}")));
        }
        let last = self.known.last_schedule_time().filter(|last| *last >= self.slot)?;
        Some(("19", format!("though lastScheduleTime was {last}")))
    }

    /// With `backlog`: its author had started a newer one, or had seen the Job of one for long enough.
    fn after_a_newer_one(&self) -> Option<(&'static str, String)> {
        if !self.all(|version| version.backlog().is_some()) {
            return None;
        }
        let is_own = |job: &&Job| job.author == self.sent.author && job.answered;
        let is_shown = |job: &&Job| {
            let sight = job.sight(self.sent.author);
            job.backfill.is_none()
                && job.deleted.is_none()
                && sight.is_some_and(|sight| sight.at + LONGEST_SYNC < self.sent.at)
        };
        let known = self.model.all_jobs_of(self.uid).filter(|job| is_own(job) || is_shown(job));
        let newer = known.filter_map(|job| job.slot).find(|other| *other > self.slot)?;
        Some(("19", format!("after the one for {newer}, though slots wait in order")))
    }

    /// With `backlog`: an older slot waited and will never start. For a while after an edit, that slot may have been
    /// decided by a record that is written later.
    fn past_a_waiting_one(&self) -> Option<(&'static str, String)> {
        let since = self.cron.edited();
        let is_edited = since > self.cron.versions.first()?.at && since + SHOWN_WITHIN > self.sent.at;
        let has_queue = |version: &Version| version.backlog() > Some(0) && version.pauses_after().is_none();
        if is_edited || self.scenario.clocks_differ().is_none() || !self.all(has_queue) {
            return None;
        }
        let others = self.model.slots_of(self.uid).filter(|other| *other != self.slot);
        let last = waiting::decided_by_status(self.cron.newest(), self.sent.clock).max(others.max())?;
        let oldest = |version: &Version| version.waiting(last, self.sent.clock).pop_front();
        let first = oldest(self.versions.first()?).filter(|first| *first < self.slot)?;
        let waits = self.all(|version| oldest(version) == Some(first));
        let is_used = waiting::is_name_used(self.model, self.cron, first);
        (waits && !is_used).then(|| ("19", format!("before the one for {first}, which waited")))
    }

    /// With `backlog: 0`: it is too late for a slot that came due under this leader, was not tried before, and for which no Job was
    /// deleted.
    fn late_without_a_queue(&self, tried: Option<Millis>, replaced: Option<Millis>) -> Option<(&'static str, String)> {
        // A sync decides by the time of its beginning.
        let limit = IN_TIME + TimeDelta::milliseconds(i64::try_from(LONGEST_SYNC).unwrap());
        let due = self.versions.iter().map(|version| version.due(self.slot)).max()?;
        // A slot that a pause held starts once that ends, as the newest one of many missed.
        let counts = |version: &Version| version.backlog() == Some(0) && version.pauses_after().is_none();
        let is_late = self.sent.clock - due > limit && self.all(counts);
        // In the calm, clocks were set right, by less than a minute.
        let led = self.author_time(self.leads_since? + LONGEST_SYNC)? < due;
        let was_tried = tried.is_some_and(|tried| tried < self.sent.at)
            || replaced.and_then(|at| self.author_time(at)).is_some_and(|time| time >= due);
        let holds = |version: &Version| version.is_suspended() || version.schedule().is_none();
        let versions = self.cron.versions.windows(2).filter(|pair| holds(&pair[0]));
        // A suspension is no run, nor is a version that cannot be read, so the slot starts after it.
        let mut suspensions = versions.map(|pair| self.author_time(pair[1].at));
        if suspensions.any(|end| end > Some(due)) {
            return None;
        }
        let late = (self.sent.clock - due).num_seconds();
        (is_late && led && !was_tried).then(|| ("19", format!("{late} s late, though none waits")))
    }

    /// The slot was due before a change of the timing policies that the author had seen, or with `after-change: wait` before
    /// any change of its times.
    fn before_a_change(&self) -> Option<(&'static str, String)> {
        let differ = self.scenario.clocks_differ().filter(|differ| *differ < TimeDelta::minutes(1))?;
        let waits = self.all(Version::waits_after_change);
        let other = waits.then(|| self.cron.changed_after_a_record(self.versions[0].revision)).flatten();
        let resumed = waits.then(|| self.cron.resumed_after_a_record(self.versions[0].revision)).flatten();
        let changed = self.retimed().max(other).max(resumed)?;
        let changed = self.scenario.wall(changed);
        let due = self.versions.iter().map(|version| version.due(self.slot)).max()?;
        // The server notes whole seconds.
        let is_early = due < changed - differ - TimeDelta::seconds(1);
        is_early.then(|| ("14", format!("due {due}, changed {changed}")))
    }

    /// When its timing policies were changed. An edit that removes them and leaves no record is known to a leader that had
    /// seen them, and to no later one.
    fn retimed(&self) -> Option<Millis> {
        let changed = self.cron.retimed(self.versions[0].revision)?;
        let place = self.cron.versions.iter().position(|version| version.at >= changed)?;
        let (after, before) = (&self.cron.versions[place], self.cron.versions.get(place.checked_sub(1)?)?);
        // Once it has another schedule, or reads so, a slot may be due between its record and the change.
        let schedule = |version: &Version| disguised(&version.object)["spec"]["schedule"].clone();
        if after.is_every() && !self.all(|version| schedule(version) == schedule(after)) {
            return None;
        }
        if !after.timing_annotations().is_empty() || counted_from(&after.object).is_some() {
            return Some(changed);
        }
        let old = before.timing_annotations();
        let is_old = |version: &&Version| version.timing_annotations() == old;
        let since = self.cron.versions[..place].iter().rev().take_while(is_old).last()?.at;
        // What one shows that another controller manages may be missing in the view of this one.
        let is_managed = self.scenario.manage == Manage::All || !before.is_taken_back() && !after.is_taken_back();
        let is_known = is_managed && self.leads_since? < changed && since + SHOWN_WITHIN < changed;
        is_known.then_some(changed)
    }
}

impl Cron {
    /// When the version of `revision` came to have its schedule, zone, timing policies and suspension, if a controller had
    /// recorded that it had others before, and it has waited after changes ever since.
    fn changed_after_a_record(&self, revision: u64) -> Option<Millis> {
        let known = &self.versions[..self.versions.partition_point(|version| version.revision <= revision)];
        let is_plain = known.iter().all(|version| version.object["metadata"]["annotations"][READS_AS].is_null());
        let facts = |version: &Version| {
            let spec = disguised(&version.object)["spec"].clone();
            (spec["schedule"].clone(), spec["timeZone"].clone(), version.timing_annotations(), version.is_suspended())
        };
        let newest = facts(known.last()?);
        let since = known.iter().rposition(|version| facts(version) != newest)? + 1;
        let before = facts(&known[since - 1]);
        let first = known[..since].iter().rposition(|version| facts(version) != before).map_or(0, |place| place + 1);
        let record = |version: &Version| counted_from(&version.object).map(str::to_owned);
        let (old, new) = (record(&known[first]), record(&known[since - 1]));
        // Once it is given back, a record may still come of what was seen before.
        let last = &known[since - 1];
        let is_managed = last.object["metadata"]["annotations"][SHARED].is_null() || !last.is_taken_back();
        let is_recorded = is_managed && new.is_some() && new != old;
        let waits = known[since..].iter().all(Version::waits_after_change);
        (is_plain && is_recorded && waits).then(|| known[since].at)
    }
}

impl Cron {
    /// When the version of `revision` was resumed, if it has waited after changes ever since it was suspended, and had a record of that
    /// generation then. Whether or not a controller saw the suspension, it then knows of it by the generation.
    fn resumed_after_a_record(&self, revision: u64) -> Option<Millis> {
        let known = &self.versions[..self.versions.partition_point(|version| version.revision <= revision)];
        let annotations = |version: &Version| version.object["metadata"]["annotations"].clone();
        let is_plain =
            |version: &Version| annotations(version)[READS_AS].is_null() && annotations(version)[SHARED].is_null();
        let last = known.iter().rposition(Version::is_suspended)?;
        let resumed = known.get(last + 1)?;
        let place = known[..last].iter().rposition(|version| !version.is_suspended())?;
        let before = &known[place];
        let generation = |version: &Version| version.object["metadata"]["generation"].as_i64();
        let waits = |version: &Version| is_plain(version) && version.waits_after_change();
        // Written by a controller which had seen the last edit and the policy, whatever it says.
        let is_written = |at: usize| {
            let seen = known[at].at.saturating_sub(SHOWN_WITHIN);
            let first = known[..at].partition_point(|version| version.at <= seen).checked_sub(1);
            let is_like = |version: &Version| waits(version) && generation(version) == generation(before);
            let record = |at: usize| counted_from(&known[at].object);
            record(at).is_some()
                && record(at) != record(at - 1)
                && first.is_some_and(|first| known[first..=at].iter().all(is_like))
        };
        let is_recorded = (1..=place).any(is_written);
        (is_recorded && known[place..].iter().all(waits)).then_some(resumed.at)
    }
}

impl Invariants {
    /// A Job was created by a replica: whether its slot was its CronJob's next.
    pub fn started_in_order(&mut self, model: &Model, job: &Value, sent: &Sent, at: Millis, scenario: &Scenario) {
        let (Some((uid, _)), Some(slot)) = (owner_of(job), slot_of(job)) else { return };
        let Some(start) = Start::of(model, scenario, &uid, slot, sent) else { return };
        let (tried, replaced) = (self.tried.get(&(uid.clone(), slot)).copied(), self.replaced.get(&uid).copied());
        if scenario.clocks_differ().is_some_and(|differ| differ < TimeDelta::minutes(1)) && start.retimed().is_some() {
            self.coverage.count("judged", "slot after a change of the timing policies");
        }
        let wrong = [
            start.decided(),
            start.after_a_newer_one(),
            start.past_a_waiting_one(),
            start.late_without_a_queue(tried, replaced),
            start.before_a_change(),
        ];
        let is_led_on = start.leads_since.is_some_and(|since| start.cron.versions[0].at < since);
        if is_led_on && start.all(|version| version.backlog() > Some(0)) {
            self.coverage.count("judged", "order of a backlog after a change of leader");
        }
        let own = text(job, "uid");
        for (invariant, what) in wrong.into_iter().flatten() {
            if model.jobs_of(&uid).any(|other| other.uid != own && self.is_excused_beside(model, other)) {
                continue;
            }
            let name = format!("{}/{}", text(job, "namespace"), text(job, "name"));
            self.violated(invariant, at, format!("{} created {name} for {slot}, {what}", sent.author));
        }
    }
}
