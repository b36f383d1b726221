//! What `explain --since` and `backfill --dry-run` say of slots, beside what happened.
//!
//! Guarantee: at the end of each world, a slot that they say was missed, skipped, suspended or frozen, waits, or did not run, has no Job in the whole history,
//! whoever made it.
//!
//! Excused and counted is what leaves no trace by docs/backfill.md, to which docs/kubectl-plugin.md refers: a Job that a third party
//! deleted, other than that of `lastScheduleTime`, and settings by which Jobs go, or history limits, that were changed since. What is
//! said of a CronJob whose readers see another one, or whose schedule was changed since the slot, may concern the other schedule.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};

use cronjob_controller::cli::backfill::plan::Question;
use cronjob_controller::cli::backfill::{Request, backfill_with};
use cronjob_controller::cli::cluster::{ControllerFlags, Known, read_all};
use cronjob_controller::cli::next::cron_jobs::Given;
use cronjob_controller::cli::options::cluster::Since;
use cronjob_controller::cli::output::Format;
use cronjob_controller::cli::slots::slots;
use cronjob_controller::client;
use cronjob_controller::terminal::PlainText;
use futures::future::{Ready, ready};
use http::Response;
use kube::Client;
use schedule::local_zone;
use serde_json::Value;
use tower::BoxError;

use crate::call::Call;
use crate::disguise::READS_AS;
use crate::feed::SimBody;
use crate::invariants::Sent;
use crate::model::{Author, Cron, Job, Model, Version};
use crate::network::whole;
use crate::sim::Sim;

/// A connection of a person who only reads.
#[derive(Clone)]
struct Reader(Arc<Sim>);

impl tower::Service<http::Request<kube::client::Body>> for Reader {
    type Response = Response<SimBody>;
    type Error = BoxError;
    type Future = Ready<Result<Response<SimBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<kube::client::Body>) -> Self::Future {
        let (parts, _) = request.into_parts();
        let call = Call::new(&parts, axum::body::Bytes::new());
        assert!(!call.is_write() && !call.watch, "it only reads: {call}");
        let at = self.0.now();
        let sent = Sent { author: Author::World, identity: String::new(), at, clock: self.0.wall(at), view: None };
        ready(Ok(whole(self.0.commit(&sent, &call))))
    }
}

/// What is wrong in what `explain --since` says now of all slots since the world began.
pub async fn wrong(sim: &Arc<Sim>) -> Vec<String> {
    let (client, kind) = (client::on_service(Reader(Arc::clone(sim))), sim.scenario.controller_kind);
    let flags = ControllerFlags { zone: local_zone().0, ..ControllerFlags::default() };
    let known = match read_all(&client, kind, None, None, &flags).await {
        Ok((known, _)) => known,
        Err(error) => return vec![format!("explain --since cannot read: {error}")],
    };
    let mut plans = BTreeMap::new();
    for known in &known {
        plans.insert(known.facts.cron_job.uid.to_string(), plan(sim, &client, known).await);
    }
    let now = sim.wall(sim.now());
    let told = slots(&known, flags.zone, Since::Ago(now - sim.scenario.start), now);
    let told = serde_json::to_value(told).expect("it is printed as JSON");
    let mut state = sim.state.lock();
    let state = &mut *state;
    let mut found = Vec::new();
    for (known, told) in known.iter().zip(told["cronJobs"].as_array().into_iter().flatten()) {
        let object = &known.facts.cron_job;
        let Some((uid, cron)) = state.model.crons.get_key_value(&*object.uid.to_string()) else { continue };
        let planned = plans.get(&**uid).into_iter().flatten();
        let entries = told["slots"].as_array().into_iter().flatten().map(|entry| (&entry["fate"], entry));
        for (fate, entry) in entries.chain(planned.map(|entry| (&entry["known"], entry))) {
            let fate = fate.as_str().unwrap_or_default();
            if !matches!(fate, "missed" | "skipped" | "suspended" | "frozen" | "waits" | "didNotRun") {
                continue;
            }
            for slot in of_entry(known, &flags, entry) {
                state.invariants.coverage.count("judged", &format!("slot told as {fate}"));
                let Some(first) = state.model.fires_of(uid, slot).next() else { continue };
                match excuse(&state.model, cron, first) {
                    Some(why) => state.invariants.coverage.count("excused", &format!("told as {fate}: {why}")),
                    None => found.push(format!(
                        "{}/{}: {slot} is called {fate}, because {}, and it had {} by {} at {} ms, gone by {:?} at {:?}",
                        cron.namespace, cron.name, entry["why"], first.name, first.author, first.created, first.deleted_by, first.deleted
                    )),
                }
            }
        }
    }
    found
}

/// What `backfill --dry-run` says of all slots since the world began.
async fn plan(sim: &Arc<Sim>, client: &Client, known: &Known) -> Vec<Value> {
    let (from, to) = (Given::Instant(sim.scenario.start), Given::Instant(sim.wall(sim.now())));
    let zone = local_zone().0;
    let question = Question { from, to, zone, seed: "".into(), max_active: 1, again: false, rerun: false };
    let request = Request { question, dry_run: true, format: Format::Json };
    let name = &known.facts.cron_job.name;
    let mut plan = Vec::new();
    let mut print = |text: &PlainText| {
        let lines = serde_json::Deserializer::from_slice(text.as_bytes()).into_iter::<Value>().map_while(Result::ok);
        plan.extend(lines.flat_map(|line| line["slots"].as_array().cloned().unwrap_or_default()));
        true
    };
    // A CronJob that cannot be backfilled has no plan.
    let (kind, place) = (sim.scenario.controller_kind, (&*name.namespace, &*name.name));
    let _ = backfill_with(client, kind, place, &request, &*sim.clock, &mut print, &mut |_| {}).await;
    plan
}

/// The slots of an entry.
fn of_entry(known: &Known, flags: &ControllerFlags, entry: &Value) -> Vec<chrono::DateTime<chrono::Utc>> {
    let time = |field: &str| {
        let text = entry[field].as_str().expect("a time");
        chrono::DateTime::parse_from_rfc3339(text).expect("a time").to_utc()
    };
    let (from, to) = (time("from"), time("to"));
    let Some(schedule) = known.facts.cron_job.schedule(flags.zone) else { return Vec::new() };
    std::iter::successors(Some(from), |slot| schedule.next_after(*slot)).take_while(|slot| *slot <= to).collect()
}

/// Why the Job of a slot left no trace, if the documents say so.
fn excuse(model: &Model, cron: &Cron, first: &Job) -> Option<&'static str> {
    let newest = cron.newest();
    let reads_otherwise = |version: &Version| !version.object["metadata"]["annotations"][READS_AS].is_null();
    if cron.between(first.created, newest.at).iter().any(reads_otherwise) {
        return Some("clients read another CronJob");
    }
    let timing = |version: &Version| (version.spec()["schedule"].clone(), version.timing_annotations());
    if cron.between(first.created, newest.at).iter().any(|version| timing(version) != timing(newest)) {
        return Some("its schedule was changed since");
    }
    cron.traceless(model, first, newest)
}
