//! Counts how often each event happened.

use std::collections::BTreeMap;

use cronjob_controller::api::policy::{LIMITS, TIMING};

use crate::faults::{FaultKind, has_slow_admission, is_everywhere};
use crate::job_world::LINGERS;
use crate::outage::WATCHES;
use crate::pairs;
use crate::punctual::EVERY;

/// Counters by group and name.
#[derive(Clone, Debug, Default)]
pub struct Coverage(BTreeMap<(&'static str, String), u64>);

/// The events required in a run of many seeds, besides every kind of fault. `MissSchedule` is not among them. The
/// search for the due slot begins where the starting deadline ends, here as upstream, so it never finds a slot that is
/// too late. Slots that are too late are counted as passed over.
const REQUIRED: [(&str, &[&str]); 10] = [
    ("total", &["seeds of cronjob", "seeds of tutorial", "seeds of apiexample"]),
    (
        "judged",
        &[
            "start in a namespace with freezes, of which it had seen all",
            "start in a namespace with freezes, of which it had not seen all",
            "write once all was settled",
            "newest slot as without faults",
            "run of one taken back",
            "slot after a change of the timing policies",
            "order of a backlog after a change of leader",
            "slot that started after Jobs at a time held it",
            "slot that started after a Job to be replaced held it",
            "slot in the calm",
            "slot under a policy with a deadline",
            "CronJob after an outage of the server",
            "CronJob after an outage that every replica saw",
            "CronJob after an outage in which a replica restarted beside another",
            WATCHES,
            "slot that a backfill started",
            "Job of a backfill that is pruned",
            "slot told as missed",
            "slot told as skipped",
            "slot told as suspended",
            "slot told as frozen",
            "slot told as waits",
            "slot told as didNotRun",
            EVERY,
        ],
    ),
    ("measured", &["attempt after a refusal"]),
    ("fault", &[LINGERS]),
    ("policy", &["Allow", "Forbid", "Replace"]),
    ("timing", &TIMING),
    ("limit", &LIMITS),
    (
        "plan",
        &[
            "rescue",
            "replace and wait",
            "look up CronJob",
            "look up Job",
            "create",
            "create: name taken",
            "create: earlier slots passed over for their deadline",
            "create: earlier slots passed over for this one",
            "replace",
            "prune",
            "status",
            "status: conflict",
            "record of decided slots",
            "adopt",
        ],
    ),
    (
        "reason",
        &[
            "SuccessfulCreate",
            "SawCompletedJob",
            "SuccessfulDelete",
            "MissingJob",
            "UnexpectedJob",
            "JobAlreadyActive",
            "TooManyMissedTimes",
            "FailedCreate",
            "FailedDelete",
            "FailedGet",
            "UnknownTimeZone",
            "UnparseableSchedule",
            "UnParseableCronJobSchedule",
            "UnsupportedSchedule",
            "InvalidSchedule",
            "InvalidPolicy",
            "UnknownPolicy",
            "PassedOver",
            "Paused",
            "Frozen",
            "RunStuck",
            "MalformedObject",
            "LeaderElection",
        ],
    ),
    (
        "world",
        &[
            "schedule changed",
            "policy changed",
            "limits changed",
            "deadline changed",
            "timing policies changed",
            "timing policies and their record removed",
            "other policies changed",
            "suspended",
            "resumed",
            "template changed",
            "length of the template changed",
            "deleted",
            "recreated",
            "manual Job",
            "reverted",
            "foreign Job",
            "Job deleted by hand",
            "failed Jobs deleted by hand",
            "Job finished",
            "Job failed",
            "Job gone after its TTL",
            "reads otherwise",
            "in-tree controller writes",
            "taken back in the very moment",
            "handed over again",
            "given back by a manifest that says suspend: false",
            "given back to the in-tree controller",
            "handed over again by it",
            "in-tree controller starts a Job",
            "namespace created frozen",
            "namespace frozen",
            "namespace thawed",
            "freeze of a namespace removed",
            "bound of a namespace spoilt",
            "backfill called",
            "backfill called again",
            "backfill ended",
            "backfill refused or stopped",
        ],
    ),
];

/// Additional events required in worlds with slow admission.
const REQUIRED_OF_SLOW_ADMISSION: [(&str, &[&str]); 2] = [
    ("late", &["create committed after its client gave up", "create cut off by the server", "create held in a socket"]),
    (
        "judged",
        &["slot of a calm namespace beside a noisy one", "slot of a calm namespace that was due in an overload"],
    ),
];

/// Too rare for a run of some hundred seeds, and required of one of [`VERY_MANY`].
const RARE: [(&str, &[&str]); 3] = [
    ("late", &["create committed while another holds the lease"]),
    (
        "judged",
        &[
            "slot that started after failures held it",
            "Jobs counted as another controller's",
            "slot that a backfill started under max-concurrent",
            "slot that started again after a restore",
            "CronJob after a restore of etcd",
        ],
    ),
    (
        "world",
        &[
            "backfill killed before a write",
            "backfill killed after a write",
            "backfill killed during a write",
            "backfill called beside itself",
            "watch of a backfill cut",
            "etcd restored from a backup",
            "leader that goes while a watch is silent",
            "lease taken over after its end",
            "cluster switched to the in-tree controller and back, beside it",
            "cluster switched to the in-tree controller and back, after it",
            "machine asleep with everything on it",
            "not-before set after a restore",
            "slot that a restore forgot",
        ],
    ),
];

/// The number of seeds that must show every rare event, too.
const VERY_MANY: u64 = 1000;

impl Coverage {
    pub fn count(&mut self, group: &'static str, name: &str) {
        self.add(group, name, 1);
    }

    pub fn add(&mut self, group: &'static str, name: &str, by: u64) {
        if let Some(count) = self.0.get_mut(&(group, name.to_owned())) {
            *count += by;
        } else {
            self.0.insert((group, name.to_owned()), by);
        }
    }

    pub fn max(&mut self, group: &'static str, name: &str, value: u64) {
        let known = self.0.entry((group, name.to_owned())).or_default();
        *known = (*known).max(value);
    }

    /// Adds another run's counts; the group `greatest` takes the maximum.
    pub fn merge(&mut self, other: &Self) {
        for ((group, name), count) in &other.0 {
            if *group == "greatest" { self.max(group, name, *count) } else { self.add(group, name, *count) }
        }
    }

    pub fn get(&self, group: &'static str, name: &str) -> u64 {
        self.0.get(&(group, name.to_owned())).copied().unwrap_or(0)
    }

    pub fn sum(&self, group: &'static str) -> u64 {
        self.0.iter().filter(|((known, _), _)| *known == group).map(|(_, count)| count).sum()
    }

    /// The events that did not happen, of those required of so many seeds.
    pub fn missing(&self, seeds: u64) -> Vec<String> {
        let kinds = FaultKind::ALL.iter().copied().chain(FaultKind::pressure());
        let faults = kinds.map(|(_, kind)| ("fault", kind.name()));
        let later: &[_] = if has_slow_admission() { &REQUIRED_OF_SLOW_ADMISSION } else { &[] };
        let rare: &[_] = if seeds >= VERY_MANY { &RARE } else { &[] };
        let others = REQUIRED
            .iter()
            .chain(later)
            .chain(rare)
            .flat_map(|(group, names)| names.iter().map(|name| (*group, *name)));
        // A world with a takeover has no noisy namespaces.
        let is_calm = |(_, name): &(&str, &str)| name.contains("calm namespace");
        let others = others.filter(|event| !is_everywhere("TAKEOVER") || !is_calm(event));
        let pairs = pairs::allowed();
        let pairs = pairs.iter().map(|name| ("pair", name.as_str()));
        faults
            .chain(others)
            .chain(pairs)
            .filter(|(group, name)| self.get(group, name) == 0)
            .map(|(g, n)| format!("{g}: {n}"))
            .collect()
    }

    pub fn print(&self) {
        let mut last = "";
        for ((group, name), count) in &self.0 {
            if *group != last {
                println!("{group}");
                last = group;
            }
            println!("  {count:>10}  {name}");
        }
    }
}
