//! The schedule of events: faults begin and end, users edit, Jobs run, replicas start.

use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::{Clock as _, SharedClock};
use cronjob_controller::api::Manage;
use cronjob_controller::app::{self, Replica};
use cronjob_controller::options::{Config, LeaderElectionConfig};
use cronjob_controller::sim::Process;
use http::Method;
use serde_json::Value;
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;

use crate::backfill;
use crate::call::Call;
use crate::faults::{Fault, FaultKind as F};
use crate::freezes;
use crate::in_tree;
use crate::job_world;
use crate::network::Network;
use crate::outage::{AGAIN, BACK, SOON};
use crate::people;
use crate::restore::Restore;
use crate::rivals;
use crate::rng::hash;
use crate::scenario::{LEASE_NAME, Millis, SECOND, Scenario};
use crate::sequences::TAKEOVER;
use crate::sim::{Ear, LEASE, Replica as Place, Sim};
use crate::view::View;

/// One scheduled event.
#[derive(Clone, Debug)]
pub enum Act {
    /// A replica starts.
    Start(usize),
    /// A fault of the scenario begins, by its index.
    Begin(usize),
    /// A fault ends, by its number.
    End(u64),
    /// A CronJob of the scenario is created, by its index.
    Create(usize),
    /// An edit of the scenario, by its index.
    Edit(usize),
    /// A change of the namespace that is frozen, by its index.
    Namespace(usize),
    /// A CronJob is released, or handed over again.
    Hand { place: usize, is_taken_back: bool },
    /// A CronJob is given back to the in-tree controller, which looks at it at once.
    GiveBack(usize),
    /// A CronJob is handed over again by the in-tree controller.
    HandOver(usize),
    /// A Job's course is decided.
    JobBegins(String),
    /// An operator calls `backfill`, as that edit of the scenario says.
    Backfill(usize),
    /// A step of a Job's course.
    Job(String, job_world::Step),
    /// The in-tree controller syncs, and again after a while.
    InTree,
    /// The in-tree controller syncs once.
    InTreeSync,
    /// A replica's clock is set by so many milliseconds.
    SetClock(usize, i64),
    /// What an outage of the server, or a restore, left behind is judged.
    JudgeOutage(&'static str),
    /// Whether each replica watches again after an outage of the server that began and ended then is judged.
    JudgeWatches(Millis, Millis),
    /// An operator saves etcd.
    BackUp,
    /// An operator restores etcd.
    Restore(Restore),
    /// Everything stands still.
    StandStill,
    /// No faults from now on.
    Calm,
}

impl Sim {
    /// Lets the world run until `end`.
    pub async fn run_until(self: &Arc<Self>, end: Millis) {
        loop {
            let due = {
                let mut state = self.state.lock();
                let now = self.now();
                match state.agenda.first_key_value() {
                    Some(((at, _), _)) if *at <= now.min(end) => state.agenda.pop_first().map(|(_, act)| act),
                    _ => None,
                }
            };
            if let Some(act) = due {
                self.perform(act);
                continue;
            }
            self.look();
            if self.now() >= end {
                return;
            }
            let next = self.state.lock().agenda.first_key_value().map_or(end, |((at, _), _)| (*at).min(end));
            let _ = timeout_at(self.instant(next), self.changed.notified()).await;
        }
    }

    /// Schedules all events of the scenario.
    pub fn prepare(&self) {
        let scenario = &self.scenario;
        let mut state = self.state.lock();
        for number in 0..scenario.replicas {
            state.plan(number as u64 * 150, Act::Start(number));
        }
        for (place, (at, _)) in scenario.namespace_edits.iter().enumerate() {
            state.plan(*at, Act::Namespace(place));
        }
        for (place, cron_job) in scenario.cron_jobs.iter().enumerate() {
            state.plan(cron_job.at, Act::Create(place));
        }
        for (place, edit) in scenario.edits.iter().enumerate() {
            state.plan(edit.at, Act::Edit(place));
        }
        for (place, fault) in scenario.faults.iter().enumerate() {
            state.plan(fault.at, Act::Begin(place));
            state.plan(fault.until, Act::End(fault.number));
        }
        if scenario.faults.iter().any(|fault| TAKEOVER.contains(&fault.number)) {
            state.invariants.coverage.count("world", "leader that goes while a watch is silent");
        }
        if scenario.manage == Manage::Annotated {
            state.plan(0, Act::InTree);
        } else if let Some(switch) = scenario.switch {
            state.plan(switch.on, Act::InTree);
            let how = if switch.is_beside { "beside" } else { "after" };
            state
                .invariants
                .coverage
                .count("world", &format!("cluster switched to the in-tree controller and back, {how} it"));
        }
        if let Some((from, until)) = scenario.outage() {
            state.plan(until + AGAIN, Act::JudgeWatches(from, until));
            state.plan(until + BACK, Act::JudgeOutage("an outage of the server"));
            if let Some(what) = scenario.comes_back_to() {
                state.plan(until + SOON, Act::JudgeOutage(what));
            }
        }
        if let Some(restore) = scenario.restore {
            state.plan(restore.backup, Act::BackUp);
            state.plan(restore.at, Act::Restore(restore));
            state.plan(restore.judged(), Act::JudgeOutage("a restore of etcd"));
        }
        if let Some(still) = scenario.standstill {
            state.plan(still.at, Act::StandStill);
        }
        state.plan(scenario.active, Act::Calm);
    }

    fn perform(self: &Arc<Self>, act: Act) {
        let at = self.now();
        match act {
            Act::Start(number) => self.start(number),
            Act::Begin(place) => {
                let fault = &self.scenario.faults[place];
                self.begin(fault);
                match fault.kind {
                    F::LeaseDeleted => self.delete_lease_of_the_dead(),
                    F::Outage if fault.amount == 0 => self.crash_now(fault.replica),
                    _ => {}
                }
            }
            Act::End(number) => self.end(number),
            Act::Create(place) => people::create(self, place, at),
            Act::Namespace(place) => freezes::change(self, place),
            Act::Edit(place) => people::edit(self, place, at),
            Act::Hand { place, is_taken_back } => people::hand(self, place, is_taken_back),
            Act::GiveBack(place) => {
                people::give(self, place, true);
                let soon = self.state.lock().rng.range(0, 8);
                self.plan(at + soon, Act::InTreeSync);
            }
            Act::HandOver(place) => people::give(self, place, false),
            Act::Backfill(edit) => backfill::call(self, edit, at),
            Act::JobBegins(uid) => job_world::begins(self, &uid, at),
            Act::Job(uid, step) => job_world::step(self, &uid, step, at),
            Act::InTree => in_tree::look(self, at),
            Act::InTreeSync => in_tree::sync_all(self, at),
            Act::SetClock(number, by) if at < self.scenario.active => self.state.lock().replicas[number].clock.step(by),
            Act::SetClock(..) => {}
            Act::JudgeOutage(what) => self.judge_outage(what),
            Act::JudgeWatches(from, until) => self.judge_watches(from, until),
            Act::BackUp => self.back_up(),
            Act::Restore(restore) => self.restore_etcd(restore),
            Act::StandStill => self.stand_still(),
            Act::Calm => self.calm(),
        }
    }

    /// Ends a replica.
    pub fn crash_now(&self, number: usize) {
        let incarnation = self.state.lock().replicas[number].incarnation;
        self.crash(number, incarnation, "stopped");
    }

    /// An operator deletes the lease if its holder no longer runs.
    fn delete_lease_of_the_dead(&self) {
        let is_dead = {
            let mut state = self.state.lock();
            let runs = |(number, replica): (usize, &Place)| {
                replica.task.as_ref().map(|_| format!("r{number}.{}", replica.incarnation))
            };
            let alive: Vec<String> = state.replicas.iter().enumerate().filter_map(runs).collect();
            let holder = &state.model.holder;
            let is_dead = !holder.is_empty() && !alive.contains(holder);
            if is_dead {
                state.struck(F::LeaseDeleted);
            }
            is_dead
        };
        if is_dead {
            let path = format!("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE_NAME}");
            self.act(&Call::world(Method::DELETE, path, &Value::Null));
        }
    }

    fn start(self: &Arc<Self>, number: usize) {
        let at = self.now();
        let mut state = self.state.lock();
        let state = &mut *state;
        if let Some(until) = state.suffers(F::Outage, number).map(|fault| fault.until) {
            let back = until + state.rng.range(1, 5 * SECOND);
            return state.plan(back, Act::Start(number));
        }
        let replica = &mut state.replicas[number];
        if replica.task.is_some() {
            return;
        }
        let incarnation = replica.incarnation;
        let identity = format!("r{number}.{incarnation}");
        state.journal.note(at, format_args!("{identity} starts"));
        replica.process = Process::default();
        replica.view = View::default();
        (replica.started, replica.watched) = (at, [None; 2]);
        replica.deadline = None;
        replica.stop = CancellationToken::new();
        let network = Network { sim: Arc::clone(self), replica: number, incarnation, identity: identity.clone() };
        let clock: SharedClock = replica.clock.clone();
        let ear = Ear { sim: Arc::downgrade(self), replica: number, incarnation };
        let parts = Replica {
            client: network.client(),
            clock,
            seed: self.scenario.seed ^ hash(&identity),
            identity,
            observer: Some(Arc::new(ear)),
        };
        let (stop, sim) = (replica.stop.clone(), Arc::downgrade(self));
        let (process, config) = (replica.process.clone(), config(&self.scenario));
        let run = process.bind(async move { app::run_replica(&config, parts, stop).await });
        let task = tokio::spawn(async move {
            let result = run.await;
            if let Some(sim) = sim.upgrade() {
                let why = result.map_or_else(|error| error.to_string(), |()| "told to".to_owned());
                sim.crash(number, incarnation, &why);
            }
        });
        replica.task = Some(task.abort_handle());
    }

    fn begin(&self, fault: &Fault) {
        let at = self.now();
        let seconds = (fault.until.saturating_sub(at)) / SECOND;
        let mut state = self.state.lock();
        let state = &mut *state;
        state.journal.note(
            at,
            format_args!("    *** {} for r{} ({}) for {seconds} s", fault.kind.name(), fault.replica, fault.amount),
        );
        state.faults.insert(
            fault.number,
            (fault.clone(), crate::rng::Rng::fork(self.scenario.seed, &format!("fault {}", fault.number))),
        );
        let replica = &mut state.replicas[fault.replica];
        let mut struck = true;
        match fault.kind {
            F::CrashBefore | F::CrashAfter => {
                replica.crash = Some((fault.amount, fault.kind == F::CrashAfter));
                struck = false;
            }
            F::Restart => replica.stop.cancel(),
            F::Outage if fault.amount > 0 => replica.stop.cancel(),
            F::Outage => {}
            F::Freeze | F::Sleep => replica.process.freeze(),
            F::WatchCut => replica.cut_watches(),
            F::ServerRestart => {
                state.server_is_down = true;
                state.replicas.iter_mut().for_each(|replica| replica.cut_watches());
            }
            F::Compaction => self.server.compact(),
            // A replica has to list what it misses, and finds that the server only serves pages.
            F::NoStreaming => {
                self.server.compact();
                replica.cut_watches();
                struck = false;
            }
            F::ClockStep => replica.clock.step(fault.clock_step()),
            _ => struck = false,
        }
        if struck {
            state.struck(fault.kind);
        }
    }

    fn end(&self, number: u64) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some((fault, _)) = state.faults.remove(&number) else { return };
        state.journal.note(self.now(), format_args!("    *** end of {}", fault.kind.name()));
        let goes_on = [F::Freeze, F::Sleep].iter().any(|kind| state.suffers(*kind, fault.replica).is_some());
        let is_down = state.faults.values().any(|(other, _)| other.kind == F::ServerRestart);
        let replica = &mut state.replicas[fault.replica];
        match fault.kind {
            F::CrashBefore | F::CrashAfter => replica.crash = None,
            F::Freeze if !goes_on => replica.process.thaw(),
            F::Sleep => {
                if !goes_on {
                    replica.process.thaw();
                }
                let ahead = i64::try_from(fault.amount * SECOND).unwrap();
                replica.clock.step(ahead);
                let corrected = self.now() + state.rng.range(SECOND, 30 * SECOND);
                state.plan(corrected, Act::SetClock(fault.replica, -ahead));
            }
            F::ServerRestart => state.server_is_down = is_down,
            _ => {}
        }
    }

    /// From now on there are no faults, and all clocks are right.
    fn calm(&self) {
        let numbers: Vec<u64> = self.state.lock().faults.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.end(number));
        let state = self.state.lock();
        state.replicas.iter().for_each(|replica| replica.clock.set(0));
    }

    /// The invariants of every moment, checked after each commit or event: the leader has a timer or a queue entry for
    /// every CronJob that has a next slot.
    fn look(&self) {
        let at = self.now();
        let mut state = self.state.lock();
        let state = &mut *state;
        rivals::warnings().iter().for_each(|warning| state.invariants.warned(&state.model, warning, at));
        for (number, replica) in state.replicas.iter().enumerate() {
            if let Some(controller) = replica.controller.upgrade() {
                let who = (number, replica.incarnation);
                state.invariants.external_jobs(&state.model, who, controller.external_jobs(), at);
            }
            let working = replica.controller.upgrade().filter(|_| replica.process.is_running());
            let working = working.filter(|controller| !controller.queue().shutting_down());
            for name in working.into_iter().flat_map(|controller| controller.unattended()) {
                // A live read may already have shown what the watch has not: that there is nothing to wait for.
                let cron = state.model.cron_named(&name.namespace, &name.name);
                if cron.is_none_or(|cron| !cron.newest().is_schedulable(replica.clock.now())) {
                    continue;
                }
                let text =
                    format!("r{number}.{} neither waits for {name} nor has it in its queue", replica.incarnation);
                state.invariants.violated("10", at, text);
            }
        }
    }
}

fn config(scenario: &Scenario) -> Config {
    let seconds = Duration::from_secs;
    // Few, so that syncs compete. Beside noisy namespaces as many as the default, since half of a few workers is almost
    // none.
    let syncs = if scenario.is_calm_elsewhere() { 64 } else { 5 };
    Config {
        leader_election: Some(LeaderElectionConfig {
            namespace: "kube-system".into(),
            name: LEASE_NAME.into(),
            lease_duration: seconds(LEASE.0),
            renew_deadline: seconds(LEASE.1),
            retry_period: seconds(LEASE.2),
        }),
        controllers: vec![scenario.controller_kind],
        manage: scenario.manage,
        ..Config::embedded(syncs.try_into().unwrap())
    }
}
