//! The parsers under test, and what must hold for every input.

use std::convert::Infallible;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use allocation_counter::measure;
use apimachinery::clock::TestClock;
use apiserver::{ApiServer, Config};
use axum::body::{Body, Bytes};
use chrono::{DateTime, Utc};
use cronjob_controller::api::batch_v1::{CronJob, Job};
use cronjob_controller::api::job_template::job_from_template;
use cronjob_controller::api::policy::{self, PolicyReading};
use cronjob_controller::api::{Interner, Object};
use cronjob_controller::cache::Informer;
use cronjob_controller::cli::dispatch;
use cronjob_controller::dev::manifests;
use cronjob_controller::options::Environment;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use schedule::missed::{self, Observed};
use schedule::{Evaluation, Schedule, Zone};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Runs `read` on an input of `length` bytes. It may use `per_byte` bytes of memory for each of them, plus a constant, and
/// allocate that much `turns` times in all: work that grows faster than its input also allocates more.
fn bounded(length: usize, per_byte: usize, anyway: usize, turns: usize, read: impl FnOnce()) {
    let used = measure(read);
    let allowed = (length * per_byte + anyway) as u64;
    assert!(used.bytes_max <= allowed, "{} bytes at once for {length}, and {allowed} are allowed", used.bytes_max);
    let allowed = allowed * turns as u64;
    assert!(used.bytes_total <= allowed, "{} bytes in all for {length}, and {allowed} are allowed", used.bytes_total);
}

fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// The most steps of one search for a text of a length, and of a whole evaluation. A line of the shortest kind has nine bytes,
/// and a walk over a clock change fewer than two hundred steps.
fn most_steps(length: usize) -> (usize, usize) {
    (500 + 30 * length.min(2_000), 20_000 + 1_500 * length.min(600))
}

/// A schedule: every search moves forward and ends, from any start, after steps that grow with the length of the text at most.
pub fn schedule(input: &[u8]) {
    let text = text(input);
    bounded(text.len(), 32, 64 * 1024, 3, || {
        if let Ok(schedule) = Schedule::parse_standard(&text, Zone::UTC) {
            search(&schedule, text.len());
        }
    });
}

fn search(schedule: &Schedule, length: usize) {
    let (of_search, of_evaluation) = most_steps(length);
    let starts = [
        "0001-01-01T00:00:00Z",
        "2011-12-29T09:59:59Z",
        "2026-03-29T00:59:59.5Z",
        "2026-10-25T00:30:00Z",
        "9999-12-31T23:59:59Z",
    ];
    for start in starts.map(time) {
        black_box(schedule.next(start));
        let evaluation = Evaluation::of(schedule);
        evaluation.next_after(start);
        let steps = evaluation.steps_taken() as usize;
        assert!(steps <= of_search, "{steps} steps after {start} for {length} bytes");
        let mut last = start;
        for _ in 0..3 {
            let Some(next) = schedule.next_after(last) else { break };
            assert!(next > last, "{next} after {last}");
            last = next;
        }
        for starting_deadline_seconds in [None, Some(0), Some(i64::MAX)] {
            let observed = Observed { creation: start, last_schedule: None, starting_deadline_seconds };
            let now = time("2026-11-21T12:00:00Z");
            let steps = missed::steps_of_evaluation(&observed, now, schedule) as usize;
            assert!(steps <= of_evaluation, "{steps} steps since {start} for {length} bytes");
            if let Ok((Some(slot), _)) = missed::next_schedule_time(&observed, now, &Evaluation::of(schedule)) {
                assert!(slot <= now && (slot > start || start > now), "{slot} is due at {now}, after {start}");
            }
            black_box(missed::next_requeue_time(&observed, now, &Evaluation::of(schedule), None));
        }
    }
}

/// The value of each policy annotation: what it makes of a schedule is searched as a schedule is.
pub fn policies(input: &[u8]) {
    let text = text(input);
    let own = Schedule::parse_standard("TZ=Europe/Berlin 30 2 * * *", Zone::UTC).unwrap();
    search(&own, 10);
    for annotation in policy::ANNOTATIONS {
        bounded(text.len(), 128, 64 * 1024, 3, || {
            let reading = PolicyReading::of([(annotation.name, &*text), (policy::DST, "once")], "30 2 * * *");
            let Some(Ok(policy)) = reading.map(|reading| reading.policy) else { return };
            search(policy.schedule(&own), text.len());
        });
    }
}

/// The fields of a Job that was made from a template.
#[derive(Deserialize)]
struct Made {
    metadata: MadeMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MadeMetadata {
    owner_references: Vec<MadeReference>,
}

#[derive(Deserialize)]
struct MadeReference {
    controller: bool,
}

/// A CronJob, a Job: a readable one has a schedule that can be evaluated and a template that makes a Job.
pub fn object(input: &[u8]) {
    let text = text(input);
    let (slot, interner) = (time("2026-11-21T12:00:00Z"), Interner::default());
    bounded(text.len(), 24, 64 * 1024, 3, || {
        if let Ok(cron_job) = CronJob::decode(&text, &interner) {
            black_box(cron_job.timing(Zone::UTC));
            if let Ok(body) = job_from_template(&cron_job, slot, Zone::UTC, None, None) {
                // Without values nested more deeply than serde_json allows.
                let job: Made = serde_json::from_slice(&body).unwrap();
                assert!(job.metadata.owner_references[0].controller);
            }
        }
        black_box(Job::decode(&text, &interner).is_ok());
    });
}

/// A server that answers every list and every watch with the input and serves only first pages: the informer keeps
/// asking, but not without a wait.
pub fn watch(input: &[u8]) {
    let asked = Arc::new(AtomicUsize::new(0));
    bounded(input.len(), 24, 512 * 1024, 6, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(follow::<CronJob>(input, &asked));
        runtime.block_on(follow::<Job>(input, &asked));
    });
    let asked = asked.load(Ordering::Relaxed);
    // Two informers, which ask a server that is away every 0.4 s at most.
    assert!((2..600).contains(&asked), "{asked} requests in two minutes");
}

async fn follow<T: Object>(input: &[u8], asked: &Arc<AtomicUsize>) {
    let (answer, asked) = (Bytes::copy_from_slice(input), Arc::clone(asked));
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        asked.fetch_add(1, Ordering::Relaxed);
        let mut answer = Response::new(Body::from(answer.clone()));
        if request.uri().query().is_some_and(|query| query.contains("continue=")) {
            *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        }
        async move { Ok::<_, Infallible>(answer) }
    });
    let informer = Informer::<T>::new(Client::new(service, "default"), &[], 0);
    let store = informer.store();
    let end = CancellationToken::new();
    tokio::join!(informer.run(end.clone()), async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        end.cancel();
    });
    assert!(store.list().iter().all(|object| !object.object_name().name.is_empty()));
}

const PATCHES: [&str; 4] = [
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
];

/// A patch of a CronJob and of its status, of every kind, and a create, in JSON and YAML. The server refuses or applies
/// it, and stays consistent: the object reads the same afterwards.
pub fn patch(input: &[u8]) {
    const COLLECTION: &str = "/apis/batch/v1/namespaces/default/cronjobs";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let talk = async {
        let server = ApiServer::new(Config::builtin(TestClock::new(time("2026-11-21T12:00:00Z"))));
        let first = include_bytes!("corpus/objects/cron_job.json");
        let (created, _) = ask(&server, "POST", COLLECTION, "application/json", first).await;
        assert_eq!(created, StatusCode::CREATED);
        let path = &format!("{COLLECTION}/hello");
        let identity = |object: &Value| [&object["metadata"]["name"], &object["metadata"]["uid"]].map(Value::clone);
        let before = identity(&ask(&server, "GET", path, "", b"").await.1);
        for kind in PATCHES {
            for subresource in ["", "/status"] {
                let path = &format!("{path}{subresource}?fieldManager=fuzz");
                ask(&server, "PATCH", path, kind, input).await;
            }
            let (status, after) = ask(&server, "GET", path, "", b"").await;
            assert_eq!((status, identity(&after)), (StatusCode::OK, before.clone()), "{kind}: {after}");
        }
        for kind in ["application/json", "application/yaml"] {
            ask(&server, "POST", COLLECTION, kind, input).await;
        }
    };
    bounded(input.len(), 1024, 8 * 1024 * 1024, 3, || runtime.block_on(talk));
}

/// Sends a request; the server's answer must be an object.
async fn ask(server: &ApiServer, method: &str, path: &str, kind: &str, body: &[u8]) -> (StatusCode, Value) {
    let request = Request::builder().method(method).uri(path).header("Content-Type", kind);
    let response = server.handle(request.body(Bytes::copy_from_slice(body)).unwrap()).await;
    let status = response.status();
    let answer = response.into_body().collect().await.unwrap().to_bytes();
    let object: Value = serde_json::from_slice(&answer).unwrap();
    assert!(object["kind"].is_string(), "{method} {path} as {kind}: {status} {object}");
    (status, object)
}

/// Outside a Pod.
struct Nowhere;

impl Environment for Nowhere {
    fn pod_namespace(&self) -> Option<String> {
        None
    }
}

/// A command line, one argument per line: it is parsed, or every fault is a sentence.
pub fn flags(input: &[u8]) {
    let text = text(input);
    bounded(text.len(), 128, 1024 * 1024, 3, || {
        if let Err(error) = dispatch::parse(std::iter::once("cronjob-controller").chain(text.lines()), &Nowhere) {
            assert!(!error.sentences().is_empty() && error.sentences().iter().all(|sentence| !sentence.is_empty()));
        }
    });
}

/// A file of manifests: each object that is read has the fields that a request needs. Alias expansion is bounded.
pub fn manifest(input: &[u8]) {
    let text = text(input);
    bounded(text.len(), 256, 32 * 1024 * 1024, 3, || {
        for manifest in manifests::parse("input.yaml", &text).unwrap_or_default() {
            assert!(manifest.object["metadata"]["name"].is_string(), "{manifest:?}");
        }
    });
}
