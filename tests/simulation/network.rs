//! The network between a replica and the server, with all faults of requests.
//!
//! Guarantee: a request is committed within [`COMMIT_WITHIN`] of its sending or never, even if its answer is lost. A
//! create of a Job that slow admission delays is committed within its `?timeout=` and [`CREATE_WITHIN`] after its receipt or
//! never, even if its client has gone. It is received within [`IN_SOCKET`].

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use cronjob_controller::client;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tower::BoxError;

use crate::call::{Call, Kind};
use crate::disguise::disguise_body;
use crate::faults::{Fault, FaultKind as F, has_slow_admission};
use crate::feed::{self, SimBody};
use crate::invariants::Sent;
use crate::model::{Author, owner_of};
use crate::recovery::{GIVEN_UP_WITHIN, UNANSWERED};
use crate::scenario::Millis;
use crate::sim::{COMMIT_WITHIN, CREATE_WITHIN, IN_SOCKET, LEASE, Sim, State};
use crate::view::Shown;

/// One replica's connection to the server.
#[derive(Clone)]
pub struct Network {
    pub sim: Arc<Sim>,
    pub replica: usize,
    pub incarnation: u32,
    pub identity: String,
}

/// The outcome of a request.
#[derive(Debug)]
struct Fate {
    before: Millis,
    is_committed: bool,
    after: Millis,
    reply: Reply,
    /// Its author crashes, before the commit or after.
    crash: Option<bool>,
    /// A list is answered as of this revision.
    stale: Option<u64>,
    /// The connection breaks at once, while the server continues.
    breaks_early: bool,
}

#[derive(Debug)]
enum Reply {
    True,
    Status(u16, &'static str, Option<u32>),
    /// With this message.
    Refused(u16, &'static str, &'static str),
    Broken(&'static str),
    Never,
    Panic,
}

/// In kube-apiserver's words.
const DENIED: Reply = Reply::Refused(403, "Forbidden", "admission webhook \"jobs.example.com\" denied the request: no");
const FAILED_TO_CALL: Reply = Reply::Refused(
    500,
    "InternalError",
    "Internal error occurred: failed calling webhook \"jobs.example.com\": failed to call webhook: context deadline exceeded",
);
const TIMED_OUT: Reply = Reply::Refused(
    504,
    "Timeout",
    "Timeout: request did not complete within requested timeout - context deadline exceeded",
);

/// What the server calls a refusal of that code, and why. Only a create can exceed a quota.
fn wording(code: u16, is_of_quota: bool) -> (&'static str, &'static str) {
    match code {
        403 if is_of_quota => {
            ("Forbidden", "jobs.batch is forbidden: exceeded quota: few, requested: count/jobs.batch=1")
        }
        403 => ("Forbidden", "the request is forbidden: User \"controller\" cannot do that in the namespace"),
        404 => ("NotFound", "namespaces \"the-one\" not found"),
        409 => ("Conflict", "Operation cannot be fulfilled on resourcequotas \"few\": the object has been modified"),
        422 => ("Invalid", "the object is invalid: spec: Invalid value: no"),
        _ => ("InternalError", "an error on the server has prevented the request from succeeding"),
    }
}

/// The answer.
enum Answer {
    Response(Response<SimBody>),
    Broken(&'static str),
    Never,
    Panic,
}

impl Network {
    /// A client on this connection.
    pub fn client(self) -> Client {
        client::on_service(self)
    }

    /// Records that a request is sent, and decides its outcome.
    fn send(&self, call: &Call) -> (Sent, Fate) {
        let at = self.sim.now();
        let mut state = self.sim.state.lock();
        let state = &mut *state;
        let author = Author::Replica(self.replica, self.incarnation);
        let mut fate = state.fate(self.replica, call, at, &self.sim);
        state.press(call, &mut fate);
        let failure = match fate.reply {
            Reply::Status(code, ..) | Reply::Refused(code, ..) => Some((code, at + fate.before)),
            Reply::Broken(_) => Some((UNANSWERED, at + fate.before + fate.after)),
            Reply::Never => Some((UNANSWERED, at + call.timeout().unwrap_or(CREATE_WITHIN) + GIVEN_UP_WITHIN)),
            Reply::True | Reply::Panic => None,
        };
        if let Some((code, then)) = failure.filter(|_| !call.watch) {
            let is_webhook_away = matches!(fate.reply, Reply::Refused(500, ..));
            state.invariants.recovery.refused(&self.sim.scenario, call, code, is_webhook_away, then);
        }
        let replica = &state.replicas[self.replica];
        let clock = apimachinery::clock::Clock::now(&*replica.clock);
        let view = state.cron_job_of(self.replica, call).map(|view| view.before(at));
        let namespace = state.replicas[self.replica].view.namespace(&call.namespace, at);
        let view = view.map(|view| view.in_namespace(namespace));
        let sent = Sent { author, identity: self.identity.clone(), at, clock, view };
        if call.is_fenced() {
            state.journal.note(at, format_args!("{author} sends {call}"));
            state.invariants.sent(&state.model, call, &sent, replica.deadline, &replica.view);
            if let Some((uid, _)) = call.is_create_of_job().then(|| owner_of(&call.json())).flatten() {
                state.invariants.tries(&state.model, &self.sim.scenario, call, &uid, &sent);
            }
        } else if !call.is_write() && !call.name.is_empty() {
            let what = match call.kind {
                Kind::CronJobs => "look up CronJob",
                Kind::Jobs => "look up Job",
                _ => "",
            };
            if !what.is_empty() {
                state.invariants.coverage.count("plan", what);
                state.journal.note(at, format_args!("{author} sends {call}"));
            }
        }
        (sent, fate)
    }

    async fn deliver(self, call: Call, sent: Sent, fate: Fate, answer: oneshot::Sender<Answer>) {
        let mut answer = Some(answer);
        if fate.crash == Some(false) {
            return self.sim.crash(self.replica, self.incarnation, "crash before a commit");
        }
        if let Reply::Broken(why) = fate.reply
            && fate.breaks_early
            && let Some(answer) = answer.take()
        {
            let _ = answer.send(Answer::Broken(why));
        }
        sleep(Duration::from_millis(fate.before)).await;
        let is_down = {
            let mut state = self.sim.state.lock();
            state.has_left(&call);
            if fate.is_committed && call.is_create_of_job() && answer.as_ref().is_none_or(oneshot::Sender::is_closed) {
                state.invariants.coverage.count("late", "create committed after its client gave up");
            }
            state.server_is_down || state.is_lost(&sent)
        };
        let reply = if is_down {
            Answer::Broken("connection refused")
        } else {
            let response = if fate.is_committed { Some(self.commit(&call, &sent, fate.stale)) } else { None };
            match (fate.reply, response) {
                (Reply::True, Some(response)) => Answer::Response(response),
                (Reply::Status(code, reason, retry_after), _) => Answer::Response(refusal(code, reason, retry_after)),
                (Reply::Refused(code, reason, message), _) => Answer::Response(refusal_of(code, reason, message, None)),
                (Reply::Broken(why), _) => Answer::Broken(why),
                (Reply::Never, _) | (Reply::True, None) => Answer::Never,
                (Reply::Panic, _) => Answer::Panic,
            }
        };
        if fate.crash == Some(true) {
            return self.sim.crash(self.replica, self.incarnation, "crash after a commit");
        }
        sleep(Duration::from_millis(fate.after)).await;
        if let Some(answer) = answer {
            let _ = answer.send(reply);
        }
    }

    fn commit(&self, call: &Call, sent: &Sent, stale: Option<u64>) -> Response<SimBody> {
        if call.watch {
            return feed::open(self, call, sent, stale);
        }
        let call = match stale {
            Some(revision) if !call.query().contains("continue=") => {
                &call.with_query(&format!("{}&resourceVersion={revision}&resourceVersionMatch=Exact", call.query()))
            }
            _ => call,
        };
        whole(self.sim.commit(sent, call))
    }

    /// Applies the effects of an answer that has reached the replica.
    fn arrived(&self, call: &Call, sent: &Sent, response: &Response<SimBody>) {
        if !response.status().is_success() {
            return;
        }
        let mut state = self.sim.state.lock();
        let replica = &mut state.replicas[self.replica];
        if replica.incarnation != self.incarnation {
            return;
        }
        if call.kind == Kind::Jobs && call.method == Method::POST {
            let name = call.json()["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let jobs = state.model.jobs.values_mut();
            let made =
                jobs.filter(|job| job.author == sent.author && job.name == name && job.namespace == call.namespace);
            made.for_each(|job| job.answered = true);
            return;
        }
        if call.kind == Kind::Leases && call.is_write() {
            let lease = call.json();
            let slept = self.sim.scenario.stood_still(sent.at, self.sim.now());
            let is_own = lease["spec"]["holderIdentity"] == self.identity.as_str();
            replica.deadline = is_own.then_some(sent.at + LEASE.1 * 1000 - slept);
        }
    }
}

impl State {
    fn fate(&mut self, replica: usize, call: &Call, at: Millis, sim: &Sim) -> Fate {
        let (before, after) = (self.rng.range(0, 4), self.rng.range(0, 4));
        let mut fate = Fate {
            before,
            is_committed: true,
            after,
            reply: Reply::True,
            crash: None,
            stale: None,
            breaks_early: false,
        };
        if call.is_list()
            && let Some(fault) = self.suffers(F::StaleList, replica)
        {
            let then = at.saturating_sub(fault.amount * 1000);
            fate.stale = self.revisions.iter().rev().find(|(at, _)| *at <= then).map(|(_, revision)| *revision);
            if fate.stale.is_some() {
                self.struck(F::StaleList);
            }
        }
        if call.watch {
            if call.is_list() && self.suffers(F::NoStreaming, replica).is_some() {
                self.struck(F::NoStreaming);
                (fate.is_committed, fate.reply) = (false, Reply::Status(422, "Invalid", None));
            }
            return fate;
        }
        if call.is_fenced() {
            if let Some((left, after)) = &mut self.replicas[replica].crash {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    fate.crash = Some(*after);
                    let kind = if *after { F::CrashAfter } else { F::CrashBefore };
                    self.struck(kind);
                    return fate;
                }
            }
            if self.is_poisoned(call, sim) {
                self.struck(F::Poison);
                fate.is_committed = self.rng.percent(50);
                fate.reply = Reply::Panic;
                return fate;
            }
        }
        self.strike(replica, call, &mut fate);
        if let Some((kind, code, number)) = self.refusal(replica, call, sim) {
            self.struck(kind);
            let (reason, message) =
                wording(code, kind == F::CreateRefused && (sim.scenario.seed + number / 2).is_multiple_of(2));
            (fate.is_committed, fate.reply) = (false, Reply::Refused(code, reason, message));
        }
        fate
    }

    /// The refusal of one verb that lasts for minutes, with its code and the fault's number.
    fn refusal(&self, replica: usize, call: &Call, sim: &Sim) -> Option<(F, u16, u64)> {
        let kind = match (call.kind, &call.method) {
            (Kind::CronJobs, _) if call.status && call.is_write() => F::StatusRefused,
            (Kind::Jobs, &Method::POST) => F::CreateRefused,
            (Kind::Jobs, &Method::DELETE) => F::DeleteRefused,
            (Kind::Leases, _) if call.is_write() => F::LeaseRefused,
            (Kind::CronJobs | Kind::Jobs, &Method::GET) if !call.name.is_empty() => F::ReadRefused,
            _ => return None,
        };
        if kind == F::LeaseRefused {
            return self.suffers(kind, replica).map(|fault| (kind, fault.refusal().0, fault.number));
        }
        let concerns = |fault: &&Fault| {
            let place = fault.refusal().1;
            fault.kind == kind
                && fault.namespace == Some(&*call.namespace)
                && place.is_none_or(|place| {
                    call.concerns(&sim.scenario.cron_jobs[place % sim.scenario.cron_jobs.len()].name)
                })
        };
        let fault = self.faults.values().map(|(fault, _)| fault).find(concerns)?;
        Some((kind, fault.refusal().0, fault.number))
    }

    fn strike(&mut self, replica: usize, call: &Call, fate: &mut Fate) {
        let failures: [(F, bool, Reply); 12] = [
            (F::DropRequest, false, Reply::Broken("connection reset before the request was read")),
            (F::DropReply, true, Reply::Broken("connection reset before the answer came")),
            (F::Timeout, false, Reply::Never),
            (F::TimeoutCommitted, true, Reply::Never),
            (F::ConnectionError, false, Reply::Broken("connection refused")),
            (F::Conflict, false, Reply::Status(409, "Conflict", None)),
            (F::TooMany, false, Reply::Status(429, "TooManyRequests", None)),
            (F::TooManyRetryAfter, false, Reply::Status(429, "TooManyRequests", Some(3))),
            (F::Internal, false, Reply::Status(500, "InternalError", None)),
            (F::Unavailable, false, Reply::Status(503, "ServiceUnavailable", None)),
            (F::Forbidden, false, Reply::Status(403, "Forbidden", None)),
            (F::Invalid, false, Reply::Status(422, "Invalid", None)),
        ];
        if self.strikes(F::Delay, replica).is_some() {
            self.struck(F::Delay);
            fate.before = self.rng.range(0, COMMIT_WITHIN);
            fate.after = self.rng.range(0, 6_000);
        }
        for (kind, is_committed, reply) in failures {
            // Refusals of a write's content make no sense for other requests.
            let is_about_content = matches!(kind, F::Conflict | F::Forbidden | F::Invalid);
            if is_about_content && (!call.is_write() || call.kind == Kind::Leases) {
                continue;
            }
            if self.strikes(kind, replica).is_some() {
                self.struck(kind);
                (fate.is_committed, fate.reply) = (is_committed, reply);
                return;
            }
        }
    }

    /// The effect of load and of the namespace's admission on a request that the server has received.
    fn press(&mut self, call: &Call, fate: &mut Fate) {
        if call.watch || fate.crash == Some(false) {
            return;
        }
        let of_creates = if call.is_create_of_job() { call.namespace.as_str() } else { "" };
        let in_flight = self.in_flight.entry(of_creates.to_owned()).or_default();
        *in_flight += 1;
        let beside = *in_flight;
        let limit = match (call.is_create_of_job(), call.is_write()) {
            (true, _) if has_slow_admission() => call.timeout().unwrap_or(CREATE_WITHIN).min(CREATE_WITHIN),
            (_, true) => COMMIT_WITHIN - 1,
            (_, false) => 10_000,
        };
        if let Some(each) = self.load(F::ServerLoad).map(|fault| fault.amount) {
            let all: u64 = self.in_flight.values().sum();
            if all > 1 {
                self.struck(F::ServerLoad);
            }
            fate.before = (fate.before + all * each).min(limit);
        }
        if call.is_create_of_job() && fate.is_committed && !matches!(fate.reply, Reply::Panic) {
            self.admit(call, fate, beside, limit);
        }
    }

    /// The effect of the namespace's admission on a create, one of `beside`, that the server cuts off after `limit`.
    fn admit(&mut self, call: &Call, fate: &mut Fate, beside: u64, limit: Millis) {
        let amount = |state: &Self, kind| state.admission(kind, &call.namespace).map(|fault| fault.amount);
        let refuse = |fate: &mut Fate, reply: Reply| {
            fate.is_committed = false;
            if matches!(fate.reply, Reply::True) {
                fate.reply = reply;
            }
        };
        if let Some(way) = amount(self, F::AdmissionDenies) {
            self.struck(F::AdmissionDenies);
            return refuse(fate, if way == 0 { DENIED } else { FAILED_TO_CALL });
        }
        if let Some(way) = amount(self, F::AdmissionSilent) {
            self.struck(F::AdmissionSilent);
            // The webhook's own limit, or that of the request.
            fate.before = (if way == 0 { 10_000 } else { 30_000 }).min(call.timeout().unwrap_or(CREATE_WITHIN));
            return refuse(fate, FAILED_TO_CALL);
        }
        let mut slow = 0;
        if let Some(long) = amount(self, F::AdmissionSlow) {
            self.struck(F::AdmissionSlow);
            slow += long - self.rng.range(0, 4_000);
        }
        if let Some(each) = amount(self, F::AdmissionLoad) {
            self.struck(F::AdmissionLoad);
            slow += beside * each;
        }
        fate.before += slow;
        if fate.before >= limit {
            self.invariants.coverage.count("late", "create cut off by the server");
            fate.before = limit;
            return refuse(fate, TIMED_OUT);
        }
        if slow > 0 && self.rng.percent(25) {
            self.invariants.coverage.count("late", "create held in a socket");
            fate.before += self.rng.range(0, IN_SOCKET);
        }
        fate.breaks_early = slow > 0 && self.rng.percent(50);
        if let Some(share) = amount(self, F::CreateHeld)
            && self.rng.percent(share)
        {
            self.struck(F::CreateHeld);
            fate.before = self.rng.range(fate.before, limit + IN_SOCKET);
            (fate.reply, fate.breaks_early) = (Reply::Broken("connection reset while the server works"), true);
        }
    }

    /// The server has finished a request.
    fn has_left(&mut self, call: &Call) {
        let of_creates = if call.is_create_of_job() { call.namespace.as_str() } else { "" };
        if let Some(in_flight) = self.in_flight.get_mut(of_creates).filter(|_| !call.watch) {
            *in_flight = in_flight.saturating_sub(1);
        }
    }

    fn is_poisoned(&self, call: &Call, sim: &Sim) -> bool {
        let mut poisoned = self.faults.values().map(|(fault, _)| fault).filter(|fault| fault.kind == F::Poison);
        poisoned.any(|fault| {
            let victim = &sim.scenario.cron_jobs[usize::try_from(fault.amount).unwrap() % sim.scenario.cron_jobs.len()];
            call.namespace == victim.namespace && call.concerns(&victim.name)
        })
    }

    pub fn struck(&mut self, kind: F) {
        self.invariants.coverage.count("fault", kind.name());
    }

    /// The CronJob of a request, as the replica has been shown it.
    fn cron_job_of(&self, replica: usize, call: &Call) -> Option<crate::view::Delivered> {
        if !call.is_fenced() {
            return None;
        }
        let name = match call.kind {
            Kind::CronJobs => call.name.clone(),
            Kind::Jobs if call.name.is_empty() => owner_of(&call.json())?.1,
            _ => {
                let job = |job: &&crate::model::Job| job.namespace == call.namespace && job.name == call.name;
                let jobs = self.model.jobs.values().filter(job);
                jobs.filter(|job| job.deleted.is_none()).find_map(|job| job.owner.clone())?.1
            }
        };
        self.replicas[replica].view.cron_jobs.get(&(call.namespace.clone(), name)).cloned()
    }
}

impl tower::Service<Request<kube::client::Body>> for Network {
    type Response = Response<SimBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<SimBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let call = Call::read(request, self.sim.scenario.controller_kind);
        // Sent by a process that has crashed since.
        if self.sim.state.lock().replicas[self.replica].incarnation != self.incarnation {
            return Box::pin(std::future::pending());
        }
        let (sent, fate) = self.send(&call);
        let (answer, answered) = oneshot::channel();
        // The request arrives even if its sender is gone by then.
        tokio::spawn(self.clone().deliver(call.clone(), sent.clone(), fate, answer));
        let network = self.clone();
        Box::pin(async move {
            match answered.await {
                Ok(Answer::Response(response)) => {
                    network.arrived(&call, &sent, &response);
                    let response = network.note_read(&call, response);
                    Ok(response)
                }
                Ok(Answer::Broken(why)) => Err(why.into()),
                Ok(Answer::Panic) => panic!("poisoned key"),
                Ok(Answer::Never) | Err(_) => std::future::pending().await,
            }
        })
    }
}

impl Network {
    /// Records the content of a list, or of a live read.
    fn note_read(&self, call: &Call, response: Response<SimBody>) -> Response<SimBody> {
        if call.kind != Kind::CronJobs || call.is_write() || call.watch || !response.status().is_success() {
            return response;
        }
        #[derive(serde::Deserialize)]
        struct List {
            items: Vec<Shown>,
        }
        let (parts, body) = response.into_parts();
        let bytes = body.collect().now_or_never().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
        let at = self.sim.now();
        let view = &mut self.sim.state.lock().replicas[self.replica].view;
        if !call.is_list() {
            let _ = serde_json::from_slice::<Shown>(&bytes).map(|object| view.read(&object, at));
        } else if let Ok(list) = serde_json::from_slice::<List>(&bytes) {
            view.listed(list.items, at);
        }
        Response::from_parts(parts, full(bytes))
    }
}

/// An answer other than a watch, as clients read it.
pub fn whole(response: Response<apiserver::Body>) -> Response<SimBody> {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().now_or_never().expect("an answer is whole").unwrap_or_else(|never| match never {});
    Response::from_parts(parts, full(disguise_body(bytes.to_bytes())))
}

pub fn full(bytes: Bytes) -> SimBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

pub fn refusal(code: u16, reason: &str, retry_after: Option<u32>) -> Response<SimBody> {
    refusal_of(code, reason, &format!("the simulation says {reason}"), retry_after)
}

fn refusal_of(code: u16, reason: &str, message: &str, retry_after: Option<u32>) -> Response<SimBody> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    let mut response = Response::builder().status(code).header("content-type", "application/json");
    if let Some(seconds) = retry_after {
        response = response.header("retry-after", seconds);
    }
    response.body(full(status.to_string().into())).unwrap()
}
