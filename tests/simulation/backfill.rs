//! An operator starts the slots of a past time with `backfill`, which is killed and called again.
//!
//! The command's own code runs, on a connection without faults, beside replicas that have theirs. It is killed at one of its
//! writes: before it is sent, after it was committed, or so that the server carries it out later. [`backfilled`](crate::backfilled)
//! judges what it starts.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::api::Manage;
use cronjob_controller::api::policy::{MAX_CONCURRENT, REPLACE_WAITS};
use cronjob_controller::cli::backfill::plan::Question;
use cronjob_controller::cli::backfill::{Request, backfill_with};
use cronjob_controller::cli::next::cron_jobs::Given;
use cronjob_controller::cli::output::Format;
use cronjob_controller::client;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream;
use http::Response;
use http_body_util::{BodyExt as _, StreamBody};
use schedule::local_zone;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{Instant, sleep, timeout_at};
use tower::BoxError;

use crate::agenda::Act;
use crate::call::Call;
use crate::faults::is_everywhere;
use crate::feed::SimBody;
use crate::invariants::Sent;
use crate::model::{Author, Job};
use crate::network::{refusal, whole};
use crate::rng::Rng;
use crate::scenario::{Action, Edit, MINUTE, Millis, SECOND, Scenario};
use crate::sim::Sim;

/// How long each request takes, and each answer. Which requests a watch needs is not known beforehand, so that a random time
/// would make a world another one each time.
const ON_ITS_WAY: Duration = Duration::from_millis(2);

/// For how long nothing may happen to a backfill that waits for nothing: longer than its watch of Jobs is late or silent.
const HANGS: Millis = 4 * MINUTE;

/// A backfill of one CronJob.
#[derive(Clone, Debug)]
pub struct Backfill {
    /// The time whose slots it starts, in minutes since it is first called.
    pub minutes: (i64, i64),
    pub max_active: usize,
    pub processes: Vec<Process>,
    pub watch: Watch,
}

/// What the watch of Jobs suffers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    /// By how much each change is late.
    late: Millis,
    /// After how long it is cut each time, and whether its history is gone then, so that all Jobs are listed again.
    cut: Option<(Millis, bool)>,
}

impl Watch {
    fn generate(rng: &mut Rng) -> Self {
        let late = rng.weighted(&[(50, 0), (25, 400), (15, 5 * SECOND), (10, 40 * SECOND)]);
        let after = rng.range(3, 60) * SECOND;
        let is_relisted = rng.percent(50);
        Self { late, cut: rng.percent(50).then_some((after, is_relisted)) }
    }

    /// How long what it shows may be old: a cut one is opened again after a wait.
    pub fn is_behind(&self) -> Millis {
        self.late + if self.cut.is_some() { 10 * SECOND } else { 0 }
    }
}

/// One process of the command.
#[derive(Clone, Debug)]
pub struct Process {
    /// At which of its writes it is killed.
    pub killed: Option<(u64, Kill)>,
    /// When the next one is called: so long after its end, or after its call if that is still to come.
    pub next: (Millis, Option<Millis>),
}

/// Where a write is when its sender is killed.
#[derive(Clone, Copy, Debug)]
pub enum Kill {
    Unsent,
    Committed,
    /// The server carries it out after this time, as long as its `?timeout=` allows that.
    UnderWay(Millis),
}

/// The processes of one backfill.
#[derive(Debug, Default)]
pub struct Processes {
    started: usize,
    /// The newest one, and how many writes it has sent.
    pub task: Option<AbortHandle>,
    writes: u64,
    /// Whether the call after it is scheduled.
    is_next_called: bool,
    /// Whether the server has forgotten where its watch was cut.
    is_expired: bool,
}

impl Scenario {
    /// In few worlds, an operator backfills one of the CronJobs.
    pub fn backfill(&mut self, rng: &mut Rng) {
        // The in-tree controller knows no backfill, and prunes its Jobs.
        let has_policies = self.controller_kind.counted_from.is_some() && self.manage == Manage::All;
        // In some, many short Jobs of it wait for their places under a limit.
        let is_crowded = has_policies && Rng::fork(self.seed, "crowded backfill").percent(5);
        if rng.percent(84) && !is_crowded && !is_everywhere("BACKFILL") {
            return;
        }
        let place = usize::try_from(rng.range(0, self.cron_jobs.len() as u64)).unwrap();
        let is_fit = rng.percent(85) || is_crowded;
        let cron_job = &mut self.cron_jobs[place];
        if is_fit {
            // Otherwise most are refused, or have nothing to start.
            let spec = &mut cron_job.spec;
            spec.schedule = (*rng.pick(&["* * * * *", "* * * * *", "*/2 * * * *"])).to_owned();
            spec.policy = *rng.pick(&["Allow", "Forbid"]);
            spec.limits = (Some(rng.range(2, 9)), Some(rng.range(1, 6)));
            spec.fate = *rng.pick(&["mixed", "quick", "slow", "fails"]);
            cron_job.policies.remove(REPLACE_WAITS);
            if has_policies && rng.percent(45) {
                cron_job.policies.insert(MAX_CONCURRENT, Some(rng.range(1, 4).to_string()));
            }
        }
        if is_crowded {
            cron_job.policies.insert(MAX_CONCURRENT, Some(rng.range(1, 3).to_string()));
            (cron_job.spec.schedule, cron_job.spec.fate) = ("* * * * *".to_owned(), "quick");
        }
        let at = rng.range(2 * MINUTE, self.active + MINUTE);
        if is_fit && at > 6 * MINUTE {
            // Some of its slots do not run.
            let suspended = rng.range(MINUTE, at - 4 * MINUTE);
            let resumed = suspended + rng.range(90, 200) * SECOND;
            for (at, is) in [(suspended, true), (resumed, false)] {
                self.edits.push(Edit { at, cron_job: place, action: Action::Suspend(is) });
            }
        }
        let first = -i64::try_from(rng.range(5, 40)).unwrap();
        let last = 1 - i64::try_from(rng.range(0, 4)).unwrap();
        let mut processes = Vec::new();
        for _ in 0..rng.range(1, 6) {
            let way = Kill::UnderWay(rng.range(1, 34) * SECOND);
            let kill = rng.weighted(&[(30, Kill::Unsent), (30, Kill::Committed), (40, way)]);
            let killed = rng.percent(75).then(|| (rng.range(1, 8), kill));
            let beside = rng.percent(20).then(|| rng.range(1, 90) * SECOND);
            processes.push(Process { killed, next: (*rng.pick(&[100, SECOND, 10 * SECOND, 50 * SECOND]), beside) });
        }
        let max_active = if is_crowded { 5 } else { *rng.pick(&[1, 1, 2, 5]) };
        let watch = Watch::generate(&mut Rng::fork(self.seed, "watch of a backfill"));
        let action = Action::Backfill(Backfill { minutes: (first, last), max_active, processes, watch });
        self.edits.push(Edit { at, cron_job: place, action });
        self.meddle_beside(&mut Rng::fork(self.seed, "people beside a backfill"), at, place);
    }

    /// In some of these worlds, people do several things with that CronJob meanwhile.
    fn meddle_beside(&mut self, rng: &mut Rng, mut at: Millis, cron_job: usize) {
        if rng.percent(50) {
            return;
        }
        let has_policies = !self.cron_jobs[cron_job].policies.is_empty();
        for _ in 0..rng.range(1, 6) {
            at += *rng.pick(&[0, 3, 10, 200, 2 * SECOND, 20 * SECOND, 70 * SECOND]);
            let action = self.deed(rng, has_policies);
            self.edits.push(Edit { at, cron_job, action });
        }
    }
}

/// Calls the command of that edit of the scenario.
pub fn call(sim: &Arc<Sim>, edit: usize, at: Millis) {
    let Edit { cron_job, action: Action::Backfill(backfill), .. } = &sim.scenario.edits[edit] else { return };
    let cron_job = &sim.scenario.cron_jobs[*cron_job];
    let kind = sim.scenario.controller_kind;
    let (process, is_other) = {
        let mut state = sim.state.lock();
        let state = &mut *state;
        let processes = state.backfills.entry(edit).or_default();
        let process = processes.started;
        processes.started += 1;
        (processes.writes, processes.is_next_called) = (0, false);
        let is_other = processes.task.take().is_some_and(|task| !task.is_finished());
        let next = backfill.processes.get(process).and_then(|process| process.next.1);
        if let Some(after) = next {
            processes.is_next_called = true;
            state.plan(at + after, Act::Backfill(edit));
        }
        let what = if process == 0 { "backfill called" } else { "backfill called again" };
        state.invariants.coverage.count("world", what);
        state.journal.note(at, format_args!("backfill of {} is called", cron_job.name));
        (process, is_other)
    };
    if is_other {
        sim.state.lock().invariants.coverage.count("world", "backfill called beside itself");
    }
    let (name, watch) = (cron_job.name.clone(), backfill.watch);
    let operator = Operator { sim: Arc::clone(sim), edit, process, name, watch };
    let minute = |minutes: i64| {
        let time = sim.wall(sim.scenario.edits[edit].at) + TimeDelta::minutes(minutes);
        time - TimeDelta::seconds(time.timestamp() % 60) - TimeDelta::nanoseconds(time.timestamp_subsec_nanos().into())
    };
    let question = Question {
        from: Given::Instant(minute(backfill.minutes.0)),
        to: Given::Instant(minute(backfill.minutes.1)),
        zone: local_zone().0,
        seed: "".into(),
        max_active: backfill.max_active,
        again: false,
        rerun: false,
    };
    let request = Request { question, dry_run: false, format: Format::Json };
    let (client, clock) = (client::on_service(operator.clone()), Arc::clone(&sim.clock));
    let (namespace, name) = (cron_job.namespace, cron_job.name.clone());
    let task = spawn_local(async move {
        let mut print = |_: &_| true;
        let answer = backfill_with(&client, kind, (namespace, &name), &request, &*clock, &mut print, &mut |_| {}).await;
        let (end, text) = match answer {
            Ok(_) => ("backfill ended", String::new()),
            Err(error) => ("backfill refused or stopped", error.to_string()),
        };
        operator.ends(end, &text);
    });
    sim.state.lock().backfills.entry(edit).or_default().task = Some(task.abort_handle());
}

/// The backfills that hang: nothing that they may wait for runs, and nothing has happened to their Jobs for minutes.
pub fn hanging(sim: &Sim) -> Vec<String> {
    let (at, mut state) = (sim.now(), sim.state.lock());
    let state = &mut *state;
    let mut found = Vec::new();
    for (edit, processes) in &state.backfills {
        if processes.task.as_ref().is_none_or(AbortHandle::is_finished) {
            continue;
        }
        let cron_job = &sim.scenario.cron_jobs[sim.scenario.edits[*edit].cron_job];
        let uid = state.model.names.get(&(cron_job.namespace.to_owned(), cron_job.name.clone()));
        let Some((uid, cron)) = uid.and_then(|uid| state.model.crons.get_key_value(uid)) else { continue };
        let Some(id) = cron.newest().backfill_under_way() else { continue };
        let (own, others): (Vec<&Job>, Vec<&Job>) =
            state.model.all_jobs_of(uid).partition(|job| job.backfill.as_ref() == Some(&id));
        let waits = own.iter().any(|job| job.is_unfinished())
            || cron.newest().max_concurrent().is_some() && others.iter().any(|job| job.is_unfinished());
        let last = own.iter().flat_map(|job| [Some(job.created), job.ended, job.deleted]).flatten().max().unwrap_or(0);
        state.invariants.coverage.count("judged", "backfill under way at the end");
        let written = cron.versions.windows(2).filter(|pair| pair[0].backfill() != pair[1].backfill());
        let last = written.map(|pair| pair[1].at).max().unwrap_or(0).max(last);
        if !waits && last + HANGS < at {
            found.push(format!("backfill {id} of {} hangs since {last} ms", cron_job.name));
        }
    }
    found
}

/// One process of the command, and its connection.
#[derive(Clone)]
struct Operator {
    sim: Arc<Sim>,
    edit: usize,
    process: usize,
    name: String,
    watch: Watch,
}

impl Operator {
    fn ends(&self, end: &str, text: &str) {
        let (at, mut state) = (self.sim.now(), self.sim.state.lock());
        state.invariants.coverage.count("world", end);
        state.journal.note(at, format_args!("{end} ({}): {text}", self.name));
        let state = &mut *state;
        let processes = state.backfills.entry(self.edit).or_default();
        let Action::Backfill(backfill) = &self.sim.scenario.edits[self.edit].action else { return };
        let is_newest = processes.started == self.process + 1;
        if let Some(process) = backfill.processes.get(self.process).filter(|_| is_newest && !processes.is_next_called) {
            processes.is_next_called = true;
            state.plan(at + process.next.0, Act::Backfill(self.edit));
            self.sim.changed.notify_one();
        }
    }

    /// Whether the process is killed at its next write, and where that is then. Only the newest one is.
    fn is_killed(&self, call: &Call) -> Option<Kill> {
        let Action::Backfill(backfill) = &self.sim.scenario.edits[self.edit].action else { return None };
        let mut state = self.sim.state.lock();
        let processes = state.backfills.entry(self.edit).or_default();
        if !call.is_write() || processes.started != self.process + 1 {
            return None;
        }
        processes.writes += 1;
        let (number, kill) = backfill.processes.get(self.process)?.killed?;
        if processes.writes != number {
            return None;
        }
        if let Some(task) = processes.task.take() {
            task.abort();
        }
        let text = match kill {
            Kill::Unsent => "backfill killed before a write",
            Kill::Committed => "backfill killed after a write",
            Kill::UnderWay(_) => "backfill killed during a write",
        };
        drop(state);
        self.ends(text, &call.to_string());
        Some(kill)
    }

    fn commit(&self, call: &Call, sent: &Sent) -> Response<SimBody> {
        if call.watch && !call.is_list() {
            let mut state = self.sim.state.lock();
            if std::mem::take(&mut state.backfills.entry(self.edit).or_default().is_expired) {
                return refusal(410, "Expired", None);
            }
        }
        let response = self.sim.commit(sent, call);
        if !call.watch || !response.status().is_success() {
            return whole(response);
        }
        let Watch { late, cut } = self.watch;
        let (sim, edit, opened) = (Arc::clone(&self.sim), self.edit, Instant::now());
        let frames = stream::unfold((response.into_body(), sim), move |(mut body, sim)| async move {
            let next = async {
                let frame = body.frame().await?;
                sleep(Duration::from_millis(late)).await;
                Some(frame.map_err(|never| match never {}))
            };
            let Some((after, is_relisted)) = cut else { return next.await.map(|frame| (frame, (body, sim))) };
            let Ok(frame) = timeout_at(opened + Duration::from_millis(after + late), next).await else {
                let mut state = sim.state.lock();
                state.invariants.coverage.count("world", "watch of a backfill cut");
                state.backfills.entry(edit).or_default().is_expired |= is_relisted;
                return None;
            };
            frame.map(|frame| (frame, (body, sim)))
        });
        let (parts, ()) = Response::new(()).into_parts();
        Response::from_parts(parts, StreamBody::new(frames).boxed_unsync())
    }

    async fn send(self, call: Call) -> Response<SimBody> {
        let at = self.sim.now();
        let clock: DateTime<Utc> = self.sim.wall(at);
        let sent = Sent { author: Author::Backfill, identity: String::new(), at, clock, view: None };
        let Some(kill) = self.is_killed(&call) else {
            sleep(ON_ITS_WAY).await;
            let response = self.commit(&call, &sent);
            sleep(ON_ITS_WAY).await;
            return response;
        };
        match kill {
            Kill::Unsent => {}
            Kill::Committed => drop(self.commit(&call, &sent)),
            Kill::UnderWay(after) => {
                let after = after.min(call.timeout().unwrap_or(Millis::MAX));
                tokio::spawn(async move {
                    sleep(Duration::from_millis(after)).await;
                    if !self.sim.state.lock().is_lost(&sent) {
                        drop(self.commit(&call, &sent));
                    }
                });
            }
        }
        std::future::pending().await
    }
}

impl tower::Service<http::Request<kube::client::Body>> for Operator {
    type Response = Response<SimBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<SimBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<kube::client::Body>) -> Self::Future {
        let call = Call::read(request, self.sim.scenario.controller_kind);
        Box::pin(self.clone().send(call).map(Ok))
    }
}
