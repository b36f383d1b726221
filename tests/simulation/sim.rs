//! One world: the server, the replicas, and all records about both.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use apimachinery::clock::{Clock, SharedClock, TestClock};
use apiserver::{ApiServer, Body, ChangeKind, kinds};
use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::policy::NOT_BEFORE;
use cronjob_controller::api::{EventType, crd};
use cronjob_controller::app::ReplicaObserver;
use cronjob_controller::controller::Controller;
use cronjob_controller::controller::control::RealControl;
use cronjob_controller::events::ObjectReference;
use cronjob_controller::sim::Process;
use futures::FutureExt as _;
use http::Response;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agenda::Act;
use crate::backfill;
use crate::call::{Call, Kind};
use crate::faults::{Fault, FaultKind};
use crate::invariants::{Invariants, Sent};
use crate::job_world::{self, LINGERS, Step};
use crate::journal::Journal;
use crate::limits::is_held;
use crate::model::{self, Author, Model, owner_of, text};
use crate::restore::Backup;
use crate::rng::Rng;
use crate::scenario::{LEASE_NAME, Millis, SECOND, Scenario};
use crate::view::View;

/// A request is committed within this time of its sending, or never; except creates of Jobs where admission is slow.
pub const COMMIT_WITHIN: Millis = 900;
/// A create without another limit is committed within this time of its receipt, or never. Matches kube-apiserver's
/// `requestTimeoutUpperBound`.
pub const CREATE_WITHIN: Millis = 34_000;
/// How long a request may lie in a socket before its receipt, from which the limit of a create counts.
pub const IN_SOCKET: Millis = 2_000;
/// The times of the lease; a write is abandoned after 0.8 of the difference of the first two.
pub const LEASE: (u64, u64, u64) = (15, 10, 2);

/// A running world.
pub struct Sim {
    pub scenario: Scenario,
    pub server: ApiServer,
    began: Instant,
    /// The true time, which all clocks show but for their errors.
    pub clock: Arc<TestClock>,
    pub state: Mutex<State>,
    pub changed: Notify,
}

/// The mutable state.
pub struct State {
    pub journal: Journal,
    pub invariants: Invariants,
    pub model: Model,
    pub replicas: Vec<Replica>,
    /// The active faults, by number, each with its own random sequence.
    pub faults: BTreeMap<u64, (Fault, Rng)>,
    /// The scheduled events, by time and then in the order of scheduling.
    pub agenda: BTreeMap<(Millis, u64), Act>,
    decided: u64,
    /// The CronJobs to release when their next Jobs are started: their index in the scenario, and the time after which
    /// they are handed over again.
    pub wanted_back: BTreeMap<(String, String), (usize, Option<Millis>)>,
    /// The processes of each backfill, by the number of its edit in the scenario.
    pub backfills: BTreeMap<usize, backfill::Processes>,
    /// The last backup of etcd, and when it was restored.
    pub backup: Option<Backup>,
    pub restored: Option<Millis>,
    /// The server's revision by time.
    pub revisions: VecDeque<(Millis, u64)>,
    /// The revision up to which the model shows the server's changes.
    pub seen: u64,
    pub rng: Rng,
    pub server_is_down: bool,
    /// The requests that the server has and has not answered, by namespace for creates of Jobs, all others under no
    /// name.
    pub in_flight: BTreeMap<String, u64>,
    pub writes: u64,
    /// Since when the world is in its final state, so that every write needs a cause.
    pub settled_since: Option<Millis>,
}

/// One replica's place in the world.
pub struct Replica {
    pub incarnation: u32,
    pub process: Process,
    pub clock: Arc<SkewedClock>,
    pub task: Option<AbortHandle>,
    pub stop: CancellationToken,
    pub controller: Weak<Controller<RealControl>>,
    /// Until when it may write according to the lease that it knows it holds.
    pub deadline: Option<Millis>,
    /// What its watches have shown.
    pub view: View,
    /// Cuts all its watches.
    pub cut: CancellationToken,
    /// When it started, and when it last opened a watch of CronJobs and of Jobs.
    pub started: Millis,
    pub watched: [Option<Millis>; 2],
    /// When it crashes: at which of its next writes, and whether after the commit.
    pub crash: Option<(u64, bool)>,
}

/// The world's clock, and this replica's clock error.
#[derive(Debug)]
pub struct SkewedClock {
    clock: Arc<TestClock>,
    skew: Mutex<TimeDelta>,
}

impl SkewedClock {
    pub fn set(&self, milliseconds: i64) {
        *self.skew.lock() = TimeDelta::milliseconds(milliseconds);
    }

    pub fn step(&self, milliseconds: i64) {
        *self.skew.lock() += TimeDelta::milliseconds(milliseconds);
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> DateTime<Utc> {
        self.clock.now() + *self.skew.lock()
    }

    fn suspended(&self) -> Duration {
        self.clock.suspended()
    }
}

impl Sim {
    /// A world before it starts. Must be called inside a runtime whose time is paused.
    pub fn new(scenario: Scenario, is_journal_kept: bool) -> Arc<Self> {
        let clock = TestClock::new(scenario.start);
        let skewed = |milliseconds| {
            Arc::new(SkewedClock { clock: clock.clone(), skew: Mutex::new(TimeDelta::milliseconds(milliseconds)) })
        };
        let shared: SharedClock = skewed(scenario.server_skew);
        let mut resources = kinds::builtin();
        resources.extend(crd::all().iter().map(|definition| kinds::custom(definition).unwrap()));
        let mut config = apiserver::Config::new(shared, resources);
        config.seed = scenario.seed;
        // No check looks at Events on the server, and the runs of recorded seeds stay as they were.
        config.event_ttl = None;
        let server = ApiServer::new(config);
        let place = |number: usize| Replica {
            incarnation: 0,
            process: Process::default(),
            clock: skewed(scenario.skews[number]),
            task: None,
            stop: CancellationToken::new(),
            controller: Weak::new(),
            deadline: None,
            view: View::default(),
            cut: CancellationToken::new(),
            started: 0,
            watched: [None; 2],
            crash: None,
        };
        let state = State {
            journal: Journal::new(is_journal_kept),
            invariants: Invariants::new(&scenario),
            model: Model::default(),
            replicas: (0..scenario.replicas).map(place).collect(),
            faults: BTreeMap::new(),
            agenda: BTreeMap::new(),
            decided: 0,
            wanted_back: BTreeMap::new(),
            backfills: BTreeMap::new(),
            backup: None,
            restored: None,
            revisions: VecDeque::new(),
            seen: server.revision(),
            rng: Rng::fork(scenario.seed, "network"),
            server_is_down: false,
            in_flight: BTreeMap::new(),
            writes: 0,
            settled_since: None,
        };
        Arc::new(Self {
            server,
            began: Instant::now(),
            clock,
            state: Mutex::new(state),
            changed: Notify::new(),
            scenario,
        })
    }

    pub fn now(&self) -> Millis {
        u64::try_from(self.began.elapsed().as_millis()).unwrap()
    }

    pub fn instant(&self, at: Millis) -> Instant {
        self.began + Duration::from_millis(at)
    }

    /// The true time at `at`.
    pub fn wall(&self, at: Millis) -> DateTime<Utc> {
        self.scenario.wall(at)
    }

    /// Schedules an event.
    pub fn plan(&self, at: Millis, act: Act) {
        self.state.lock().plan(at, act);
        self.changed.notify_one();
    }

    /// Executes a request, and checks its effects.
    pub fn commit(&self, sent: &Sent, call: &Call) -> Response<Body> {
        let at = self.now();
        let mut state = self.state.lock();
        self.take_in(&mut state, None, at);
        let answer = self.server.handle(call.request()).now_or_never().expect("the server never waits");
        let changes = self.take_in(&mut state, Some(sent), at);
        if call.is_write() && call.kind != Kind::Events {
            state.committed(call, sent, answer.status().as_u16(), changes, at);
        }
        self.changed.notify_one();
        answer
    }

    /// A request of the world itself; returns the status code.
    pub fn act(&self, call: &Call) -> u16 {
        let at = self.now();
        let (author, identity) = (Author::World, String::new());
        let sent = Sent { author, identity, at, clock: self.wall(at), view: None };
        self.commit(&sent, call).status().as_u16()
    }

    /// Records what was committed since the last call: by `sent`, or by the garbage collector itself.
    pub fn take_in(&self, state: &mut State, sent: Option<&Sent>, at: Millis) -> usize {
        let revision = self.server.revision();
        if revision == state.seen {
            return 0;
        }
        let changes = self.server.changes_after(state.seen);
        state.seen = revision;
        state.revisions.push_back((at, revision));
        if state.revisions.len() > 4096 {
            state.revisions.pop_front();
        }
        // The collector is the author of what follows from a write; a Pod's deletion is two changes of one object.
        let written = changes.first().map(|change| text(&change.object, "uid").to_owned());
        for change in &changes {
            let author = sent.filter(|_| written.as_deref() == Some(text(&change.object, "uid")));
            state.changed(change, author, at, &self.scenario);
        }
        changes.len()
    }

    /// A replica crashes, and restarts after a while.
    pub fn crash(&self, number: usize, incarnation: u32, why: &str) {
        let at = self.now();
        let mut state = self.state.lock();
        let State { replicas, journal, rng, .. } = &mut *state;
        let replica = &mut replicas[number];
        if replica.incarnation != incarnation {
            return;
        }
        journal.note(at, format_args!("r{number}.{incarnation} ends: {why}"));
        replica.process.kill();
        if let Some(task) = replica.task.take() {
            task.abort();
        }
        replica.incarnation += 1;
        replica.controller = Weak::new();
        replica.deadline = None;
        replica.crash = None;
        let back = at + rng.range(200, 12_000);
        state.plan(back, Act::Start(number));
        drop(state);
        self.changed.notify_one();
    }
}

impl Replica {
    pub fn cut_watches(&mut self) {
        std::mem::take(&mut self.cut).cancel();
    }
}

impl State {
    pub fn plan(&mut self, at: Millis, act: Act) {
        self.decided += 1;
        self.agenda.insert((at, self.decided), act);
    }

    /// The amount of an active fault of that kind on this replica; for faults of requests, decided at random.
    pub fn strikes(&mut self, kind: FaultKind, replica: usize) -> Option<u64> {
        let (fault, rng) =
            self.faults.values_mut().find(|(fault, _)| fault.kind == kind && fault.replica == replica)?;
        rng.percent(fault.amount).then_some(fault.amount)
    }

    /// The active fault of that kind on this replica.
    pub fn suffers(&self, kind: FaultKind, replica: usize) -> Option<&Fault> {
        self.faults.values().map(|(fault, _)| fault).find(|fault| fault.kind == kind && fault.replica == replica)
    }

    /// The active faults of the admission of Jobs in that namespace, by kind.
    pub fn admission(&self, kind: FaultKind, namespace: &str) -> Option<&Fault> {
        let mut faults = self.faults.values().map(|(fault, _)| fault);
        faults.find(|fault| fault.kind == kind && fault.namespace == Some(namespace))
    }

    /// The server's load of that kind.
    pub fn load(&self, kind: FaultKind) -> Option<&Fault> {
        self.faults.values().map(|(fault, _)| fault).find(|fault| fault.kind == kind)
    }

    fn changed(&mut self, change: &apiserver::Committed, sent: Option<&Sent>, at: Millis, scenario: &Scenario) {
        let author = sent.map_or(Author::Collector, |sent| sent.author);
        let Self { model, invariants, journal, .. } = self;
        let object = &change.object;
        let by_replica = sent.filter(|sent| matches!(sent.author, Author::Replica(..)));
        let sent_by = |author: Author| sent.filter(|sent| sent.author == author);
        match change.collection.as_str() {
            "cronjobs.batch" | "cronjobs.batch.tutorial.kubebuilder.io" | "apiexamples.myapp.my.domain" => {
                match (change.kind, by_replica, &change.previous) {
                    (ChangeKind::Deleted, ..) => model.cron_job_deleted(object, at),
                    (_, Some(sent), Some(before)) => {
                        model.cron_job_written(object, at);
                        invariants.status_written(model, before, object, sent, at);
                    }
                    _ => model.cron_job_written(object, at),
                }
                if let (Some(_), Some(before)) = (sent_by(Author::Backfill), &change.previous) {
                    invariants.backfill_recorded(before, object, at);
                }
                if by_replica.is_none() {
                    model.stir(text(object, "uid"), at);
                }
                journal.note(at, format_args!("{author} -> {:?} {}", change.kind, Line::cron_job(object)));
            }
            "jobs.batch" | "pods" => {
                if by_replica.is_none() || change.kind == ChangeKind::Added {
                    let owners =
                        [Some(object), change.previous.as_ref()].into_iter().flatten().filter_map(|job| owner_of(job));
                    owners.for_each(|(owner, _)| model.stir(&owner, at));
                }
                match (change.kind, by_replica, &change.previous) {
                    (ChangeKind::Added, sent, _) => {
                        model.job_created(object, author, at);
                        if let Some(sent) = sent {
                            invariants.coverage.count("plan", "create");
                            invariants.created(model, object, sent, at);
                            invariants.started_within_limits(model, object, sent, at);
                            invariants.started_as_the_namespace_allows(model, object, sent, at);
                            invariants.started_in_order(model, object, sent, at, scenario);
                            invariants.started_in_time(model, object, at, scenario);
                        }
                        if let Some(sent) = by_replica.or(sent_by(Author::World)) {
                            invariants.starts_again(model, object, sent, at);
                        }
                        if let Some(sent) = sent_by(Author::Backfill) {
                            invariants.backfilled(model, object, sent, at, scenario);
                        }
                        let uid = text(object, "uid").to_owned();
                        self.plan(at, Act::JobBegins(uid));
                        if sent.is_some() {
                            self.take_back_whose_job_it_is(object, at);
                        }
                    }
                    (ChangeKind::Modified, sent, before) => {
                        if let (Some(sent), Some(before)) = (sent, before) {
                            invariants.marked(model, before, object, sent, at);
                        }
                        model.job_changed(object, author, at);
                        let is_deleting = |job: &Value| !job["metadata"]["deletionTimestamp"].is_null();
                        let was_deleting = before.as_ref().is_some_and(|before| is_deleting(before));
                        if is_held(object) && is_deleting(object) && !was_deleting {
                            self.invariants.coverage.count("fault", LINGERS);
                            let uid = text(object, "uid");
                            let stays = job_world::lingering(scenario.seed, uid);
                            self.plan(at + stays, Act::Job(uid.to_owned(), Step::Release));
                        }
                    }
                    (ChangeKind::Deleted, sent, before) => {
                        if let (Some(sent), Some(before)) = (sent, before) {
                            invariants.deleted(model, before, sent, at);
                        }
                        model.job_deleted(text(object, "uid"), author, at);
                    }
                }
                self.journal.note(at, format_args!("{author} -> {:?} {}", change.kind, Line::job(object)));
            }
            "namespaces" => {
                model.namespace_written(object, at);
                let bound = &object["metadata"]["annotations"][NOT_BEFORE];
                journal
                    .note(at, format_args!("{author} -> {:?} Namespace {} {bound}", change.kind, text(object, "name")));
            }
            "leases.coordination.k8s.io" => {
                let holder = object["spec"]["holderIdentity"].as_str().unwrap_or_default();
                if text(object, "name") == LEASE_NAME {
                    let open = &object["metadata"]["annotations"]["cronjob-controller.dev/open-creates"];
                    let open =
                        open.as_str().and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(0) * SECOND;
                    // Creates that are bounded by a lease may be committed as long as it would have lasted without its deletion.
                    let ends = match model.creates_end.get(holder).filter(|_| change.kind == ChangeKind::Deleted) {
                        Some(known) => known - open + open.max(LEASE.0 * SECOND),
                        None => at + open,
                    };
                    model.creates_end.insert(holder.to_owned(), ends);
                    if holder != model.holder {
                        if !holder.is_empty() && !model.holder.is_empty() {
                            invariants.coverage.count("world", "lease taken over after its end");
                        }
                        journal.note(at, format_args!("{author} -> the lease is held by {holder:?}"));
                        model.holder = holder.to_owned();
                        model.held_since = Some(at);
                    }
                }
            }
            _ => {}
        }
    }

    /// While the answer is on its way, or that of the status write which follows.
    fn take_back_whose_job_it_is(&mut self, job: &Value, at: Millis) {
        let Some((_, owner)) = owner_of(job) else { return };
        let wanted = self.wanted_back.remove(&(text(job, "namespace").to_owned(), owner));
        let Some((place, again)) = wanted else { return };
        let at = at + self.rng.range(0, 4);
        self.plan(at, Act::Hand { place, is_taken_back: true });
        if let Some(again) = again {
            self.plan(at + again, Act::Hand { place, is_taken_back: false });
        }
    }

    /// A write was answered with `code`, after this many changes.
    fn committed(&mut self, call: &Call, sent: &Sent, code: u16, changes: usize, at: Millis) {
        let Author::Replica(..) = sent.author else { return };
        if call.kind == Kind::Leases {
            return;
        }
        self.writes += 1;
        let coverage = &mut self.invariants.coverage;
        match (code, call.kind) {
            (409, Kind::Jobs) if call.name.is_empty() => coverage.count("plan", "create: name taken"),
            (409, Kind::CronJobs) => coverage.count("plan", "status: conflict"),
            _ => {}
        }
        if self.settled_since.is_some() {
            self.invariants.has_cause(&mut self.model, call, sent, at);
        }
        if changes == 0 {
            self.journal.note(at, format_args!("{} -> {call}: {code}", sent.author));
            if (200..300).contains(&code)
                && !self.invariants.is_excused_deletion(&self.model, call, sent)
                && !self.invariants.is_record_of_hidden_one(&self.model, call)
            {
                self.invariants.violated("9", at, format!("{} wrote {call}, which changed nothing", sent.author));
            }
            return;
        }
        let holder = &self.model.holder;
        if !holder.is_empty() && *holder != sent.identity {
            // It was checked when it was sent; from here on its effects are checked.
            let announced = self.model.creates_end.get(&sent.identity).copied().unwrap_or_default();
            if call.is_create_of_job() && at <= announced {
                return self.invariants.coverage.count("late", "create committed while another holds the lease");
            }
            let text = format!("{} committed {call} while {holder} holds the lease", sent.author);
            self.invariants.violated("7", at, text);
        }
    }
}

/// An object in one line.
struct Line<'a> {
    object: &'a Value,
    is_job: bool,
}

impl<'a> Line<'a> {
    fn cron_job(object: &'a Value) -> Self {
        Self { object, is_job: false }
    }

    fn job(object: &'a Value) -> Self {
        Self { object, is_job: true }
    }
}

impl std::fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let object = self.object;
        let (namespace, name, uid) = (text(object, "namespace"), text(object, "name"), text(object, "uid"));
        let revision = text(object, "resourceVersion");
        write!(f, "{namespace}/{name} {}@{revision}", &uid[..uid.len().min(4)])?;
        if self.is_job {
            let owner = model::owner_of(object).map(|(uid, _)| uid).unwrap_or_default();
            let end = if object["metadata"]["deletionTimestamp"].is_null() { "" } else { " terminating" };
            return write!(f, " of {} {:?}{end}", &owner[..owner.len().min(4)], model::condition(object));
        }
        let (spec, status) = (&object["spec"], &object["status"]);
        let active = status["active"].as_array().map_or(0, Vec::len);
        write!(f, " [{}", spec["schedule"].as_str().unwrap_or_default())?;
        if let Some(zone) = spec["timeZone"].as_str() {
            write!(f, " {zone}")?;
        }
        write!(f, " {}", spec["concurrencyPolicy"].as_str().unwrap_or_default())?;
        if spec["suspend"] == true {
            f.write_str(" suspended")?;
        }
        write!(f, "] last {} active {active}", status["lastScheduleTime"].as_str().unwrap_or("never"))
    }
}

/// Receives what a replica passes to its recorder.
pub struct Ear {
    pub sim: Weak<Sim>,
    pub replica: usize,
    pub incarnation: u32,
}

impl ReplicaObserver for Ear {
    fn built(&self, controller: Weak<Controller<RealControl>>) {
        let Some(sim) = self.sim.upgrade() else { return };
        let at = sim.now();
        let mut state = sim.state.lock();
        let State { replicas, journal, .. } = &mut *state;
        journal.note(at, format_args!("r{}.{} begins", self.replica, self.incarnation));
        replicas[self.replica].controller = controller;
    }

    fn event(&self, regarding: &ObjectReference, _: EventType, reason: &'static str, message: &str) {
        let Some(sim) = self.sim.upgrade() else { return };
        let at = sim.now();
        let mut state = sim.state.lock();
        state.invariants.coverage.count("reason", reason);
        let who = format_args!("r{}.{} says {reason} of {}: {message}", self.replica, self.incarnation, regarding.name);
        state.journal.note(at, who);
        if reason == "UnexpectedJob" {
            let by = Author::Replica(self.replica, self.incarnation);
            let State { invariants, model, .. } = &mut *state;
            invariants.unexpected(model, &regarding.uid, message, by, at);
        }
        if reason == "PassedOver" {
            let by = Author::Replica(self.replica, self.incarnation);
            let State { invariants, model, replicas, .. } = &mut *state;
            let when = (replicas[self.replica].clock.now(), at);
            invariants.passed_over(model, &sim.scenario, (&regarding.uid, message), by, when);
        }
        if let Some(cron) = state.model.crons.get_mut(&*regarding.uid) {
            cron.reasons.insert(reason, at);
        }
    }
}
