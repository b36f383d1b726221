//! Each pair of policies under each concurrency policy: what the specification forbids, and otherwise what each does beside
//! the other.

use super::limits::{CREATED, Ran, ended, running, sync};
use super::policies::{OFFSET, annotated};
use super::*;
use crate::api::policy::{
    AFTER_CHANGE, BACKLOG, COUNTED_FROM, DST, EXCLUDE, LIMITS, MAX_CONCURRENT, NOT_AFTER, NOT_BEFORE,
    PAUSE_AFTER_FAILURES, REPLACE_WAITS, SCHEDULE, SLOT_IN_POD, SPREAD, STUCK_AFTER, TIMING,
};

const CRON: &str = "0 * * * *";
pub(super) const EVERY: &str = "@every 1h";
const FIRST: &str = "2026-03-02T11:00:00Z";
const LAST: &str = "2026-03-03T01:00:00Z";

const POLICIES: [(&str, &str); 14] = [
    (SPREAD, "30m"),
    (DST, "once"),
    (EXCLUDE, "Mon"),
    (NOT_BEFORE, FIRST),
    (NOT_AFTER, LAST),
    (SCHEDULE, "30 * * * *"),
    (MAX_CONCURRENT, "1"),
    (BACKLOG, "0"),
    (BACKLOG, "2"),
    (REPLACE_WAITS, "true"),
    (AFTER_CHANGE, "wait"),
    (STUCK_AFTER, "30m"),
    (PAUSE_AFTER_FAILURES, "1"),
    (SLOT_IN_POD, "true"),
];

#[test]
fn every_policy_is_paired() {
    for name in TIMING.into_iter().chain(LIMITS) {
        assert!(POLICIES.iter().any(|(known, _)| *known == name), "{name}");
    }
}

/// Two policies, or one twice, on a CronJob.
pub(super) struct Case {
    pub(super) policies: Vec<(&'static str, &'static str)>,
    pub(super) schedule: &'static str,
    pub(super) concurrency: &'static str,
}

impl Case {
    pub(super) fn has(&self, name: &str) -> bool {
        self.policies.iter().any(|(known, _)| *known == name)
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.policies.contains(&(name, value))
    }

    /// What the specification forbids.
    pub(super) fn is_forbidden(&self) -> bool {
        let replaces = self.concurrency == "Replace";
        let needs_calendar = [SCHEDULE, DST, EXCLUDE, BACKLOG, AFTER_CHANGE].iter().any(|name| self.has(name));
        (self.schedule == EVERY && needs_calendar)
            || (self.has(MAX_CONCURRENT) && replaces)
            || (self.is(BACKLOG, "2") && self.concurrency != "Forbid" && !self.has(MAX_CONCURRENT))
            || (self.has(REPLACE_WAITS) && (!replaces || self.has(STUCK_AFTER)))
    }

    /// The slots after 09:00, minute by minute.
    pub(super) fn slots(&self) -> Vec<DateTime<Utc>> {
        let minute = if self.has(SCHEDULE) { 30 } else { 0 };
        let minutes = (1..18 * 60).map(|minutes| time("2026-03-02T09:00:00Z") + TimeDelta::minutes(minutes));
        let is_slot = |slot: &DateTime<Utc>| {
            (slot.timestamp() / 60) % 60 == minute
                && !(self.has(EXCLUDE) && *slot < time("2026-03-03T00:00:00Z"))
                && !(self.has(NOT_BEFORE) && *slot < time(FIRST))
                && !(self.has(NOT_AFTER) && *slot > time(LAST))
        };
        minutes.filter(is_slot).collect()
    }

    pub(super) fn due(&self, slot: DateTime<Utc>) -> DateTime<Utc> {
        if self.has(SPREAD) { slot + OFFSET } else { slot }
    }

    pub(super) fn cron_job(&self, last: DateTime<Utc>) -> Arc<CronJob> {
        let spec = json!({ "schedule": self.schedule, "concurrencyPolicy": self.concurrency });
        annotated(&self.policies, CREATED, json!({ "spec": spec, "status": { "lastScheduleTime": last } }))
    }

    /// The CronJob was suspended when its record was written, and resumed at `edit`.
    fn resumed(&self, edit: DateTime<Utc>) -> Arc<CronJob> {
        let spec = json!({ "schedule": self.schedule, "concurrencyPolicy": self.concurrency });
        let suspended = json!({ "spec": merged(spec.clone(), json!({ "suspend": true })) });
        let record = annotated(&self.policies, CREATED, suspended).counted_at(time(CREATED)).to_string();
        let mut annotations = self.policies.clone();
        annotations.push((COUNTED_FROM, &record));
        annotated(&annotations, &edit.to_rfc3339(), json!({ "spec": spec }))
    }

    /// Runs a sync after the slot of 09:00.
    fn sync(&self, jobs: &[&Arc<Job>], now: DateTime<Utc>) -> Ran {
        sync(&self.cron_job(time("2026-03-02T09:00:00Z")), jobs, &now.to_rfc3339())
    }
}

pub(super) fn cases() -> impl Iterator<Item = Case> {
    let pairs = (0..POLICIES.len()).flat_map(|one| (one..POLICIES.len()).map(move |two| (one, two)));
    let different = pairs.filter(|(one, two)| one == two || POLICIES[*one].0 != POLICIES[*two].0);
    let settings = || ["Allow", "Forbid", "Replace"].into_iter().flat_map(|each| [(each, CRON), (each, EVERY)]);
    different.flat_map(move |(one, two)| {
        settings().map(move |(concurrency, schedule)| {
            let policies = if one == two { vec![POLICIES[one]] } else { vec![POLICIES[one], POLICIES[two]] };
            Case { policies, schedule, concurrency }
        })
    })
}

/// The first slots of the timing policies start when they are due, one after the other, and none after the last.
fn starts_its_slots(case: &Case, name: &str) {
    let slots = case.slots();
    let mut last = time("2026-03-02T09:00:00Z");
    for slot in slots.iter().copied().take(2) {
        let cron_job = case.cron_job(last);
        let early = sync(&cron_job, &[], &(case.due(slot) - TimeDelta::seconds(1)).to_rfc3339());
        assert_eq!((early.started.len(), requeued_at(early.end())), (0, Some(case.due(slot))), "{name}");
        assert_eq!(sync(&cron_job, &[], &case.due(slot).to_rfc3339()).started, [slot], "{name}");
        last = slot;
    }
    last = *slots.last().unwrap();
    let after = case.due(last) + TimeDelta::hours(1);
    let started = sync(&case.cron_job(last), &[], &after.to_rfc3339()).started;
    assert_eq!(started.is_empty(), case.has(NOT_AFTER), "{name}: after the last");
}

/// What an unfinished Job does to a due slot, and its end.
fn is_limited(case: &Case, name: &str) {
    let slot = case.slots()[0];
    let (start, due) = ("2026-03-02T09:00:00Z", case.due(slot));
    let ran = case.sync(&[&running("report-29540700", start)], due);
    let held = match case.concurrency {
        _ if case.has(MAX_CONCURRENT) => Some("max_concurrent"),
        "Forbid" => Some("forbid"),
        "Replace" if case.has(REPLACE_WAITS) => Some("replacing"),
        _ => None,
    };
    let is_deleted = case.concurrency == "Replace";
    assert_eq!((ran.skip(), ran.started.is_empty()), (held, held.is_some()), "{name}: beside a Job");
    assert_eq!(ran.deleted.len(), usize::from(is_deleted), "{name}: beside a Job");
    let told = reasons(ran.end());
    assert_eq!(told.contains(&"JobAlreadyActive"), held.is_some(), "{name}: {told:?}");
    assert_eq!(told.contains(&"RunStuck"), held.is_some() && case.has(STUCK_AFTER), "{name}: {told:?}");
    let after = due + TimeDelta::seconds(20);
    let done = case.sync(&[&ended("report-29540700", start, "Complete")], after);
    assert_eq!(done.started, [slot], "{name}: after its end");
    let failed = case.sync(&[&ended("report-29540700", "2026-03-02T09:00:01Z", "Failed")], after);
    let is_paused = case.has(PAUSE_AFTER_FAILURES);
    assert_eq!(
        (failed.skip(), failed.started.is_empty()),
        (is_paused.then_some("paused"), is_paused),
        "{name}: failed"
    );
}

/// Which of two slots starts that came due meanwhile, and whether one starts after a resume.
fn waits_or_not(case: &Case, name: &str) {
    let (first, second) = (case.slots()[0], case.slots()[1]);
    let both = case.sync(&[], case.due(second)).started;
    assert_eq!(both, [if case.is(BACKLOG, "2") { first } else { second }], "{name}: two are due");
    let resume = case.due(first) + TimeDelta::seconds(1);
    let ran = sync(&case.resumed(resume), &[], &(resume + TimeDelta::seconds(1)).to_rfc3339());
    let is_passed_over = case.has(AFTER_CHANGE);
    assert_eq!(ran.started, if is_passed_over { vec![] } else { vec![first] }, "{name}: resumed");
    assert_eq!(reasons(ran.end()).contains(&"PassedOver"), is_passed_over, "{name}: resumed");
}

#[test]
fn each_pair_of_policies_is_refused_or_does_what_both_say() {
    let (mut refused, mut allowed) = (0, 0);
    for case in cases() {
        let name = format!("{:?} {} {}", case.policies, case.schedule, case.concurrency);
        if case.is_forbidden() {
            let ran = case.sync(&[], time("2026-03-03T02:30:00Z"));
            assert_eq!((reasons(ran.end()), ran.started.len()), (vec!["InvalidPolicy"], 0), "{name}");
            refused += 1;
            continue;
        }
        starts_its_slots(&case, &name);
        is_limited(&case, &name);
        waits_or_not(&case, &name);
        allowed += 1;
    }
    // All 14 alone, and all pairs but that of the two values of `backlog`.
    assert_eq!(refused + allowed, (14 + 14 * 13 / 2 - 1) * 6);
    assert!(refused > 200 && allowed > 200, "{refused} refused, {allowed} allowed");
}
