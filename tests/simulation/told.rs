//! What `explain --since` says of slots, beside what happened.
//!
//! Guarantee: at the end of each world, a slot that it calls missed or skipped has no Job in the whole history, whoever made it.
//!
//! Excused and counted is what leaves no trace by docs/backfill.md, to which docs/kubectl-plugin.md refers: a Job that a third party
//! deleted, other than that of `lastScheduleTime`, and settings by which Jobs go, or history limits, that were changed since. What is
//! said of a CronJob whose readers see another one, or whose schedule was changed since the slot, may concern the other schedule.

use std::sync::Arc;
use std::task::{Context, Poll};

use cronjob_controller::cli::cluster::{ControllerFlags, Known, read_all};
use cronjob_controller::cli::options::cluster::Since;
use cronjob_controller::cli::slots::slots;
use cronjob_controller::client;
use futures::future::{Ready, ready};
use http::{Request, Response};
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

impl tower::Service<Request<kube::client::Body>> for Reader {
    type Response = Response<SimBody>;
    type Error = BoxError;
    type Future = Ready<Result<Response<SimBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
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
        Ok(known) => known,
        Err(error) => return vec![format!("explain --since cannot read: {error}")],
    };
    let now = sim.wall(sim.now());
    let told = slots(&known, flags.zone, Since::Ago(now - sim.scenario.start), now);
    let told = serde_json::to_value(told).expect("it is printed as JSON");
    let mut state = sim.state.lock();
    let state = &mut *state;
    let mut found = Vec::new();
    for (known, told) in known.iter().zip(told["cronJobs"].as_array().into_iter().flatten()) {
        let object = &known.facts.cron_job;
        let Some((uid, cron)) = state.model.crons.get_key_value(&*object.uid.to_string()) else { continue };
        for entry in told["slots"].as_array().into_iter().flatten() {
            let fate = entry["fate"].as_str().unwrap_or_default();
            if !matches!(fate, "missed" | "skipped") {
                continue;
            }
            for slot in of_entry(known, &flags, entry) {
                state.invariants.coverage.count("judged", &format!("slot told as {fate}"));
                let Some(first) = state.model.fires_of(uid, slot).next() else { continue };
                match excuse(&state.model, cron, first) {
                    Some(why) => state.invariants.coverage.count("excused", &format!("told as {fate}: {why}")),
                    None => found.push(format!(
                        "{}/{}: explain --since calls {slot} {fate}, because {}, and it had {} by {} at {} ms, gone by {:?} at {:?}",
                        cron.namespace, cron.name, entry["why"], first.name, first.author, first.created, first.deleted_by, first.deleted
                    )),
                }
            }
        }
    }
    found
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
    if cron.versions.iter().any(|version| !version.object["metadata"]["annotations"][READS_AS].is_null()) {
        return Some("clients read another CronJob");
    }
    let timing = |version: &Version| (version.spec()["schedule"].clone(), version.timing_annotations());
    if cron.between(first.created, newest.at).iter().any(|version| timing(version) != timing(newest)) {
        return Some("its schedule was changed since");
    }
    cron.traceless(model, first, newest)
}
