//! The scenario of one world: CronJobs, the users' edits, and faults, all from one seed.
//!
//! A scenario is data, so that a failing one can be shrunk by removing parts.

use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use cronjob_controller::api::job_template::LONGEST_KEPT;
use cronjob_controller::api::policy::{NOT_AFTER, NOT_BEFORE};
use cronjob_controller::api::{ControllerKind, Manage};

use crate::backfill::Backfill;
use crate::calm::SETTLED_WITHIN;
use crate::faults::{Fault, FaultKind, has_slow_admission, is_everywhere};
use crate::freezes::{self, FREEZING};
use crate::in_tree::Switch;
use crate::limits;
use crate::policies::{self, Annotations};
use crate::restore::Restore;
use crate::rng::Rng;
use crate::standstill::Standstill;

/// Virtual milliseconds since the start of the world.
pub type Millis = u64;

pub const SECOND: Millis = 1000;
pub const MINUTE: Millis = 60 * SECOND;

/// A world.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub start: DateTime<Utc>,
    pub replicas: usize,
    /// The kind of the CronJobs: batch/v1's, the tutorial's, or ApiExamples.
    pub controller_kind: ControllerKind,
    /// Whether the CronJobs have to be handed over.
    pub manage: Manage,
    /// How long faults occur.
    pub active: Millis,
    /// Each replica's clock error until then, in milliseconds.
    pub skews: Vec<i64>,
    /// The API server's clock error, in milliseconds. It stays.
    pub server_skew: i64,
    pub cron_jobs: Vec<CronJob>,
    pub edits: Vec<Edit>,
    pub faults: Vec<Fault>,
    /// The changes of the namespace that is frozen and thawed.
    pub namespace_edits: Vec<(Millis, freezes::Change)>,
    /// Whether etcd is restored from a backup.
    pub restore: Option<Restore>,
    /// Whether everything stands still for a while.
    pub standstill: Option<Standstill>,
    /// Whether the in-tree controller runs in place of the replicas for a while.
    pub switch: Option<Switch>,
}

/// One CronJob as it is first created.
#[derive(Clone, Debug)]
pub struct CronJob {
    pub namespace: &'static str,
    pub name: String,
    pub at: Millis,
    pub spec: Spec,
    /// Its policies.
    pub policies: Annotations,
}

/// The part of a spec that decisions depend on.
#[derive(Clone, Debug)]
pub struct Spec {
    pub schedule: String,
    pub zone: Option<&'static str>,
    pub policy: &'static str,
    pub limits: (Option<u64>, Option<u64>),
    pub deadline: Option<u64>,
    pub suspend: bool,
    /// The course of its Jobs, in the template's labels.
    pub fate: &'static str,
    /// How many bytes of arguments its template has.
    pub arguments: usize,
}

impl Spec {
    /// With Jobs that end soon, under any concurrency policy.
    pub fn quick(rng: &mut Rng, schedule: &str) -> Self {
        Self {
            schedule: schedule.to_owned(),
            zone: None,
            policy: *rng.pick(&["Allow", "Forbid", "Replace"]),
            limits: (Some(3), Some(1)),
            deadline: None,
            suspend: false,
            fate: "quick",
            arguments: 0,
        }
    }
}

/// A user's edit.
#[derive(Clone, Debug)]
pub struct Edit {
    pub at: Millis,
    /// The number of the CronJob in the scenario.
    pub cron_job: usize,
    pub action: Action,
}

#[derive(Clone, Debug)]
pub enum Action {
    Schedule(String, Option<&'static str>),
    Policy(&'static str),
    Limits(u64, u64),
    Deadline(Option<u64>),
    /// Changes its timing policies.
    Timing(Annotations),
    /// Changes its other policies.
    Limited(Annotations),
    Suspend(bool),
    /// Releases it at the moment in which its next Job is started, and hands it over again after this time, if given.
    TakeBack(Option<Millis>),
    /// Gives it back to the in-tree controller, which starts its Jobs until it is handed over again after this time.
    GiveBack(Millis),
    /// A GitOps tool applies its manifest again.
    Revert,
    Template(u64),
    /// Gives its template so many bytes of arguments.
    Arguments(usize),
    Delete,
    /// Deletes it, and recreates it after this time.
    Recreate(Millis),
    /// `kubectl create job --from`.
    ManualJob,
    /// A Job of another owner with the name of a slot this many minutes ahead.
    ForeignJob(i64),
    /// Deletes its newest Job.
    DeleteJob,
    /// Deletes its failed Jobs, which ends a pause.
    DeleteFailures,
    /// Calls `backfill`.
    Backfill(Backfill),
    /// Clients read this instead of the schedule: an invalid value that old API servers accepted.
    ReadsAs(&'static str),
}

/// The zones, and instants with special clock changes in them.
const MOMENTS: [&str; 16] = [
    "2026-03-29T01:00:00Z",
    "2026-10-25T01:00:00Z",
    "2026-03-08T07:00:00Z",
    "2026-11-01T06:00:00Z",
    "2026-10-03T15:30:00Z",
    "2027-04-03T15:00:00Z",
    "2026-04-04T14:00:00Z",
    "2027-01-01T00:00:00Z",
    "2026-12-31T11:00:00Z",
    "2028-02-29T00:00:00Z",
    "2027-03-01T00:00:00Z",
    "2026-04-30T23:00:00Z",
    "2026-06-15T12:00:00Z",
    "2026-09-06T04:00:00Z",
    "2026-09-27T03:45:00Z",
    "2027-07-04T17:00:00Z",
];

const ZONES: [&str; 8] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Asia/Kathmandu",
    "America/Santiago",
    "Pacific/Kiritimati",
    "Etc/UTC",
];

pub const NAMESPACES: [&str; 3] = ["default", "team-blue", "team-two"];

/// A namespace without CronJobs, whose Jobs name those of others as their owners.
pub const ELSEWHERE: &str = "elsewhere";

/// The namespaces with admission faults in worlds without other faults.
const NOISY: [&str; 10] =
    ["noisy-a", "noisy-b", "noisy-c", "noisy-d", "noisy-e", "noisy-f", "noisy-g", "noisy-h", "noisy-i", "noisy-j"];

impl Scenario {
    /// The scenario of a seed.
    pub fn generate(seed: u64) -> Self {
        let mut rng = Rng::fork(seed, "scenario");
        let moment: DateTime<Utc> = rng.pick(&MOMENTS).parse().unwrap();
        let before = i64::try_from(rng.range(30, 16 * 60)).unwrap();
        let start = moment - TimeDelta::seconds(before);
        let active = rng.range(14, 22) * MINUTE;
        let replicas = if rng.percent(40) { 3 } else { 2 };
        let count = if rng.percent(4) { rng.range(25, 41) } else { rng.range(5, 11) };
        let controller_kind = *Rng::fork(seed, "controller_kind").pick(&ControllerKind::ALL);
        let is_shared = controller_kind.is_in_tree && Rng::fork(seed, "manage").percent(40);
        let mut scenario = Self {
            seed,
            start,
            replicas,
            controller_kind,
            manage: if is_shared { Manage::Annotated } else { Manage::All },
            active,
            skews: (0..replicas).map(|_| skew(&mut rng)).collect(),
            server_skew: server_skew(&mut Rng::fork(seed, "server's clock")),
            cron_jobs: Vec::new(),
            edits: Vec::new(),
            faults: Vec::new(),
            namespace_edits: Vec::new(),
            restore: None,
            standstill: None,
            switch: None,
        };
        for number in 0..count {
            let at = if rng.percent(70) { rng.range(0, 5 * SECOND) } else { rng.range(0, active / 2) };
            let namespace = *rng.pick(&NAMESPACES);
            let spec = spec(&mut rng, start, scenario.controller_kind);
            scenario.cron_jobs.push(CronJob::new(namespace, number, at, spec));
        }
        for _ in 0..rng.range(3, 3 + 2 * count.min(12)) {
            let cron_job = usize::try_from(rng.range(0, count)).unwrap();
            let at = rng.range(20 * SECOND, active);
            let now = start + TimeDelta::milliseconds(i64::try_from(at).unwrap());
            let action = action(&mut rng, now, scenario.controller_kind);
            if let Action::ReadsAs(_) = action {
                // A user repairs it.
                let back = spec_schedule(&mut rng, start, scenario.controller_kind);
                scenario.edits.push(Edit { at: active, cron_job, action: Action::Schedule(back.0, back.1) });
            }
            scenario.edits.push(Edit { at, cron_job, action });
        }
        if is_shared {
            scenario.change_hands(&mut Rng::fork(seed, "hands"));
            scenario.give_back(&mut Rng::fork(seed, "in-tree"));
        }
        for number in 0..rng.range(5, 15) {
            scenario.faults.push(Fault::generate(&mut rng, number, &scenario, active));
        }
        // From separate sequences: the rest of the world stays the same.
        let is_noisy = Rng::fork(seed, "noisy").percent(10) && !is_everywhere("TAKEOVER") || is_everywhere("NOISY");
        if has_slow_admission() && is_noisy {
            scenario.become_noisy(&mut Rng::fork(seed, "noise"));
        } else {
            scenario.press(&mut Rng::fork(seed, "pressure"));
            scenario.refuse(&mut Rng::fork(seed, "refusals"));
            scenario.adopt_policies(&mut Rng::fork(seed, "policies"));
            scenario.adopt_limits(&mut Rng::fork(seed, "limits"));
            scenario.bound(&mut Rng::fork(seed, "bounds"));
            scenario.lengthen(&mut Rng::fork(seed, "long templates"));
            scenario.add_sequences();
            scenario.freeze(&mut Rng::fork(seed, "freezes"));
        }
        scenario.edits.sort_by_key(|edit| edit.at);
        scenario.faults.sort_by_key(|fault| fault.at);
        scenario
    }

    /// Gives CronJobs with other policies bounds, which few have otherwise.
    fn bound(&mut self, rng: &mut Rng) {
        let start = self.start;
        for cron_job in self.cron_jobs.iter_mut().filter(|cron_job| !cron_job.policies.is_empty()) {
            for name in [NOT_BEFORE, NOT_AFTER] {
                if rng.percent(15) {
                    cron_job.policies.entry(name).or_insert_with(|| Some(policies::value(rng, name, start)));
                }
            }
        }
    }

    /// Gives some CronJobs templates about as long as the longest that is kept, or longer.
    fn lengthen(&mut self, rng: &mut Rng) {
        if rng.percent(70) {
            return;
        }
        let length =
            |rng: &mut Rng| *rng.pick(&[LONGEST_KEPT - 400, LONGEST_KEPT - 200, LONGEST_KEPT, LONGEST_KEPT + 6000]);
        for place in 0..self.cron_jobs.len() {
            if rng.percent(20) {
                self.cron_jobs[place].spec.arguments = length(rng);
            }
            if rng.percent(20) {
                let arguments = if rng.percent(40) { 0 } else { length(rng) };
                let at = rng.range(20 * SECOND, self.active);
                self.edits.push(Edit { at, cron_job: place, action: Action::Arguments(arguments) });
            }
        }
    }

    /// Gives CronJobs timing policies, and users edits of them.
    fn adopt_policies(&mut self, rng: &mut Rng) {
        if self.controller_kind.counted_from.is_none() || rng.percent(60) {
            return;
        }
        let (start, active) = (self.start, self.active);
        for (number, cron_job) in self.cron_jobs.iter_mut().enumerate() {
            if rng.percent(70) {
                cron_job.policies = policies::draw(rng, start);
            }
            for _ in 0..rng.weighted(&[(60, 0), (25, 1), (15, 3)]) {
                let (at, change) = (rng.range(20 * SECOND, active), policies::change(rng, start));
                self.edits.push(Edit { at, cron_job: number, action: Action::Timing(change) });
            }
        }
    }

    /// Gives CronJobs the policies that choose no slots, and users edits of them.
    fn adopt_limits(&mut self, rng: &mut Rng) {
        if self.controller_kind.counted_from.is_none() || rng.percent(40) {
            return;
        }
        for (number, cron_job) in self.cron_jobs.iter_mut().enumerate() {
            if rng.percent(70) {
                cron_job.policies.extend(limits::draw(rng));
                if rng.percent(75) {
                    limits::fit(rng, cron_job);
                }
                if is_everywhere("LATE") {
                    limits::leave_late_ones_out(rng, cron_job);
                }
            }
            for _ in 0..rng.weighted(&[(60, 0), (25, 1), (15, 3)]) {
                let (at, change) = (rng.range(20 * SECOND, self.active), limits::change(rng));
                self.edits.push(Edit { at, cron_job: number, action: Action::Limited(change) });
            }
            // Also after the last fault: what a policy holds is then judged.
            if rng.percent(40) {
                let at = rng.range(self.active, self.active + SETTLED_WITHIN + MINUTE);
                let action = rng.weighted(&[(60, Action::DeleteFailures), (40, Action::ManualJob)]);
                self.edits.push(Edit { at, cron_job: number, action });
            }
        }
    }

    /// How far two replicas' clocks may differ; `None` if one of them is stepped.
    pub fn clocks_differ(&self) -> Option<TimeDelta> {
        let steps = |fault: &Fault| matches!(fault.kind, FaultKind::ClockStep | FaultKind::Sleep);
        let is_stepped = self.faults.iter().any(steps) || self.standstill.is_some();
        let (first, last) = (self.skews.iter().min()?.min(&0), self.skews.iter().max()?.max(&0));
        let (first, last) = (first.min(&self.server_skew), last.max(&self.server_skew));
        (!is_stepped).then(|| TimeDelta::milliseconds(last - first))
    }

    /// Adds faults of admission, and load.
    fn press(&mut self, rng: &mut Rng) {
        if rng.percent(30) {
            return;
        }
        for number in 0..rng.range(1, 5) {
            let namespace = *rng.pick(&NAMESPACES);
            self.faults.push(Fault::pressure(rng, 100 + number, namespace, self.active));
        }
    }

    /// Of the CronJobs of a namespace, this percentage keeps fewer than so many Jobs of each kind as their history.
    pub fn keep_little(&mut self, rng: &mut Rng, namespace: &str, percentage: u64, fewer_than: u64) {
        for cron_job in self.cron_jobs.iter_mut().filter(|cron_job| cron_job.namespace == namespace) {
            if rng.percent(percentage) {
                cron_job.spec.limits = (Some(rng.range(0, fewer_than)), Some(rng.range(0, fewer_than)));
            }
        }
    }

    /// Adds refusals of all statuses of a namespace, where some CronJobs keep no history.
    fn refuse(&mut self, rng: &mut Rng) {
        if rng.percent(70) && !is_everywhere("STATUSES") {
            return;
        }
        let namespace = *rng.pick(&NAMESPACES);
        self.keep_little(rng, namespace, 50, 2);
        // Some of their Jobs end long before the next slot, so that one which is pruned leaves the newest slot without a trace.
        for cron_job in self.cron_jobs.iter_mut().filter(|cron_job| cron_job.namespace == namespace) {
            if cron_job.spec.limits.0 == Some(0) && rng.percent(60) {
                cron_job.spec.schedule = (*rng.pick(&["*/3 * * * *", "*/4 * * * *"])).to_owned();
                cron_job.spec.fate = "quick";
            }
        }
        let refusals = Fault::refusals(rng, 200, namespace, self);
        self.faults.extend(refusals);
    }

    /// Makes it a world whose only faults concern the admission of Jobs in some namespaces, which have many CronJobs; in half of
    /// them the server is overloaded once, for seconds. The slots of the other namespaces start in time.
    fn become_noisy(&mut self, rng: &mut Rng) {
        self.skews = vec![0; self.replicas];
        self.server_skew = 0;
        self.edits.clear();
        self.faults.clear();
        self.cron_jobs.clear();
        let noisy = usize::try_from(*rng.pick(&[1, 3, 10])).unwrap();
        for number in 0..rng.range(20, 41) {
            let namespace = *rng.pick(&NOISY[..noisy]);
            let spec = Spec::quick(rng, "* * * * *");
            self.cron_jobs.push(CronJob::new(namespace, number, rng.range(0, SECOND), spec));
        }
        for number in 100..100 + rng.range(2, 7) {
            let (namespace, schedule) = (*rng.pick(&NAMESPACES), *rng.pick(&["* * * * *", "*/2 * * * *"]));
            let spec = Spec::quick(rng, schedule);
            self.cron_jobs.push(CronJob::new(namespace, number, rng.range(0, SECOND), spec));
        }
        let kinds: Vec<_> = FaultKind::pressure().into_iter().filter(|(_, kind)| kind.is_of_a_namespace()).collect();
        for (number, namespace) in NOISY[..noisy].iter().enumerate() {
            let kind = rng.weighted(&kinds);
            let amount = Fault::amount_of_pressure(rng, kind);
            let (number, at) = (100 + number as u64, rng.range(0, 90 * SECOND));
            let namespace = Some(*namespace);
            self.faults.push(Fault { number, at, until: self.active, replica: 0, namespace, kind, amount });
        }
        let mut rng = Rng::fork(self.seed, "overload");
        if rng.percent(50) {
            return;
        }
        // Around a slot, so that creates hang then; shorter than a lease.
        let minute = rng.range(3, self.active / MINUTE - 1);
        let start = u64::try_from(self.start.timestamp_millis()).unwrap();
        let slot = minute * MINUTE + (MINUTE - start % MINUTE) % MINUTE;
        let (at, until) = (slot - rng.range(0, 3 * SECOND), slot + rng.range(SECOND, 4 * SECOND));
        for replica in 0..self.replicas {
            let number = 120 + replica as u64;
            let kind = FaultKind::TooMany;
            self.faults.push(Fault { number, at, until, replica, namespace: None, kind, amount: 100 });
        }
    }

    /// Whether the only faults concern the admission of Jobs in some namespaces.
    pub fn is_calm_elsewhere(&self) -> bool {
        let is_calm = self.skews.iter().all(|skew| *skew == 0) && !self.faults.is_empty();
        let is_noise = |fault: &Fault| fault.kind.is_of_a_namespace() || fault.kind == FaultKind::TooMany;
        is_calm && self.faults.iter().all(is_noise) && self.faults.iter().any(|fault| fault.kind.is_of_a_namespace())
    }

    /// Whether the admission of Jobs in that namespace ever has a fault.
    pub fn is_noisy(&self, namespace: &str) -> bool {
        self.faults.iter().any(|fault| fault.namespace == Some(namespace))
    }

    fn change_hands(&mut self, rng: &mut Rng) {
        let active = self.active;
        for cron_job in 0..self.cron_jobs.len() {
            if rng.percent(60) {
                let (soon, late) = (rng.range(1, 3 * SECOND), rng.range(3 * SECOND, 90 * SECOND));
                let again = rng.weighted(&[(50, None), (25, Some(soon)), (25, Some(late))]);
                // Some after the last fault: then no controller has an excuse.
                let (amid, after) = (rng.range(20 * SECOND, active), rng.range(active, active + 2 * MINUTE));
                let at = rng.weighted(&[(50, amid), (50, after)]);
                self.edits.push(Edit { at, cron_job, action: Action::TakeBack(again) });
            }
            // A user who released one usually hands it over again, so that its final state can be checked.
            if rng.percent(60) {
                self.edits.push(Edit { at: active, cron_job, action: Action::Suspend(false) });
            }
        }
    }

    /// Users give CronJobs back to the in-tree controller for a while.
    fn give_back(&mut self, rng: &mut Rng) {
        for cron_job in 0..self.cron_jobs.len() {
            if rng.percent(25) {
                // Some are handed over for the first time.
                let (first, later) =
                    (self.cron_jobs[cron_job].at + 1, rng.range(20 * SECOND, self.active - 2 * MINUTE));
                let at = rng.weighted(&[(20, first), (80, later)]);
                let again = rng.range(10 * SECOND, 200 * SECOND);
                self.edits.push(Edit { at, cron_job, action: Action::GiveBack(again) });
            }
        }
    }

    /// The same world without faults.
    pub fn without_faults(&self) -> Self {
        Self { faults: Vec::new(), skews: vec![0; self.replicas], restore: None, switch: None, ..self.clone() }
    }

    /// Whether a CronJob's slots do not depend on when its Jobs start, and no other object takes their names.
    pub fn is_steady(&self, place: usize) -> bool {
        // Without a record of decided slots, those before the last edit are passed over.
        let has_policies = !self.cron_jobs[place].policies.is_empty();
        let is_upset = |edit: &Edit| {
            use Action::{ForeignJob, GiveBack, Limited, ReadsAs, Schedule, Timing};
            let upsets =
                matches!(edit.action, Schedule(..) | Timing(_) | Limited(_) | ReadsAs(_) | ForeignJob(_) | GiveBack(_));
            edit.cron_job == place && (upsets || has_policies)
        };
        // What was edited between a backup and the restore from it is as it was.
        let is_restored = self.restore.is_some();
        let is_every = self.cron_jobs[place].spec.schedule.starts_with("@every");
        let is_freezing = self.cron_jobs[place].namespace == FREEZING;
        // The in-tree controller starts what a policy leaves out.
        let is_switched = self.switch.is_some() && has_policies;
        !is_restored && !is_switched && !is_every && !is_freezing && !self.edits.iter().any(is_upset)
    }
}

impl CronJob {
    pub fn new(namespace: &'static str, number: u64, at: Millis, spec: Spec) -> Self {
        Self { namespace, name: format!("c{number}"), at, spec, policies: Annotations::new() }
    }
}

/// The name of the lease.
pub const LEASE_NAME: &str = "cronjob-controller";

fn skew(rng: &mut Rng) -> i64 {
    let milliseconds = i64::try_from(rng.range(0, 3000)).unwrap() - 1500;
    rng.weighted(&[(50, 0), (35, milliseconds), (15, milliseconds * 30)])
}

fn spec(rng: &mut Rng, start: DateTime<Utc>, controller_kind: ControllerKind) -> Spec {
    let (schedule, zone) = spec_schedule(rng, start, controller_kind);
    let limit = |rng: &mut Rng| rng.weighted(&[(15, Some(0)), (30, Some(1)), (35, Some(3)), (10, Some(7)), (10, None)]);
    Spec {
        schedule,
        zone,
        policy: rng.weighted(&[(34, "Allow"), (36, "Forbid"), (30, "Replace")]),
        limits: (limit(rng), limit(rng)),
        deadline: rng.weighted(&[(60, None), (10, Some(3)), (15, Some(15)), (10, Some(60)), (5, Some(600))]),
        suspend: rng.percent(5),
        fate: rng.weighted(&[
            (40, "mixed"),
            (20, "quick"),
            (10, "slow"),
            (10, "fails"),
            (10, "hangs"),
            (10, "vanishes"),
        ]),
        arguments: 0,
    }
}

/// In most worlds none.
fn server_skew(rng: &mut Rng) -> i64 {
    let milliseconds = i64::try_from(rng.range(0, 8000)).unwrap() - 4000;
    rng.weighted(&[(70, 0), (30, milliseconds)])
}

fn spec_schedule(
    rng: &mut Rng,
    start: DateTime<Utc>,
    controller_kind: ControllerKind,
) -> (String, Option<&'static str>) {
    let (minute, hour) = (start.minute(), start.hour());
    let list = {
        let minutes: Vec<String> = (0..6).map(|_| ((u64::from(minute) + rng.range(1, 30)) % 60).to_string()).collect();
        format!("{} * * * *", minutes.join(","))
    };
    let every = format!("@every {}", rng.pick(&["10s", "20s", "45s", "1m", "90s", "2m30s", "1h"]));
    // Sixty slots of one name are one Job; with a name for each, they would dominate the running time.
    let often = if controller_kind.seconds_in_name == 1 { "@every 5s" } else { "@every 1s" };
    let near = format!("{} {},{} * * *", (minute + 5) % 60, hour, (hour + 1) % 24);
    let schedule = rng.weighted(&[
        (36, "* * * * *".to_owned()),
        (14, "*/2 * * * *".to_owned()),
        (8, "*/5 * * * *".to_owned()),
        (10, list),
        (12, every),
        (6, near),
        (4, "*/3 0-3,20-23 * * *".to_owned()),
        (2, "@hourly".to_owned()),
        (2, "@midnight".to_owned()),
        (2, "*/4 * 28-31,1 * *".to_owned()),
        (2, "59 23 31 2 *".to_owned()),
        (1, often.to_owned()),
        (1, "0 0 29 2 *".to_owned()),
    ]);
    let zone = if rng.percent(35) { Some(*rng.pick(&ZONES)) } else { None };
    (schedule, zone)
}

pub fn action(rng: &mut Rng, now: DateTime<Utc>, controller_kind: ControllerKind) -> Action {
    let (schedule, zone) = spec_schedule(rng, now, controller_kind);
    let kinds = [
        (14, Action::Schedule(schedule, zone)),
        (10, Action::Policy(*rng.pick(&["Allow", "Forbid", "Replace"]))),
        (8, Action::Limits(rng.range(0, 4), rng.range(0, 3))),
        (5, Action::Deadline(*rng.pick(&[None, Some(2), Some(20), Some(100)]))),
        (12, Action::Suspend(true)),
        (12, Action::Suspend(false)),
        (5, Action::Template(rng.range(0, 1000))),
        (5, Action::Delete),
        (9, Action::Recreate(rng.range(0, 4) * 700)),
        (7, Action::ManualJob),
        (7, Action::ForeignJob(i64::try_from(rng.range(1, 4)).unwrap())),
        (8, Action::DeleteJob),
        (5, Action::ReadsAs(*rng.pick(&READS_AS))),
    ];
    rng.weighted(&kinds)
}

/// The text that a client reads instead of the true object: values that today's validation refuses, and invalid types.
pub const READS_AS: [&str; 6] = ["unparseable", "zone-inside", "unknown-zone", "number", "no-spec", "nil-fields"];
