#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU8, Ordering};

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, Body, Config};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use schedule::Zone;
use serde_json::{Value, json};
use testkit::driver::request;
use tower::Service as _;

use super::*;
use crate::api::ObjectName;
use crate::cli::cluster::create;
use crate::cli::explain::Urgency;
use crate::client::on_service;
use crate::options::PROGRAM;
use crate::ui::model::{Board, Shell};

/// What the way to the API server does.
const PASS: u8 = 0;
const HANG: u8 = 1;
const UNAUTHORIZED: u8 = 2;
const FORBIDDEN: u8 = 3;
const NO_EVENTS: u8 = 4;
const SILENT: u8 = 5;
const NO_CLUSTER: u8 = 6;

struct World {
    source: Arc<Source>,
    board: Arc<Board>,
    way: Arc<AtomicU8>,
    server: ApiServer,
}

fn status(code: u16, reason: &str) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason, "code": code,
        "message": format!("{reason}: this user may not do that"),
    });
    Response::builder()
        .status(code)
        .header("content-type", "application/json")
        .body(Full::from(status.to_string()).boxed_unsync())
        .unwrap()
}

/// A watch that is accepted, and tells nothing.
fn silent() -> Response<Body> {
    let frames = futures::stream::pending::<Result<http_body::Frame<axum::body::Bytes>, std::convert::Infallible>>();
    let body = http_body_util::StreamBody::new(frames);
    Response::builder().header("content-type", "application/json").body(body.boxed_unsync()).unwrap()
}

/// A page of a cluster, to which the way is this at first.
fn world(first: u8) -> World {
    let clock = TestClock::new("2026-11-19T03:00:00Z".parse().unwrap());
    let server = ApiServer::new(Config::builtin(clock.clone()));
    let way = Arc::new(AtomicU8::new(first));
    let (service, mode) = (server.into_service(), Arc::clone(&way));
    let client = on_service(tower::service_fn(move |request: Request<kube::client::Body>| {
        let (mut service, mode) = (service.clone(), mode.load(Ordering::Relaxed));
        async move {
            let is_event = request.uri().path().ends_with("/events");
            let query = request.uri().query().unwrap_or_default();
            match mode {
                HANG => std::future::pending::<Result<Response<Body>, std::convert::Infallible>>().await,
                UNAUTHORIZED => Ok(status(401, "Unauthorized")),
                FORBIDDEN if request.uri().path().starts_with("/apis/batch") => Ok(status(403, "Forbidden")),
                SILENT if query.contains("sendInitialEvents") => Ok(status(422, "Invalid")),
                SILENT if query.contains("watch=1") => Ok(silent()),
                NO_CLUSTER if ["/leases", "/namespaces"].iter().any(|end| request.uri().path().ends_with(end)) => {
                    Ok(status(403, "Forbidden"))
                }
                NO_EVENTS if is_event => Ok(status(403, "Forbidden")),
                _ => service.call(request).await,
            }
        }
    }));
    let (source, informers) = Source::of_cluster(client, None, &"".into());
    let shell = Shell { program: PROGRAM, flags: String::new() };
    let board = Board::new(Arc::clone(&source), Zone::UTC, "".into(), clock.clone(), shell);
    tokio::spawn(informers.run(Arc::clone(&source), clock, CancellationToken::new()));
    World { source, board, way, server }
}

impl World {
    async fn add(&self, name: &str) {
        let template = json!({"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}}});
        let object: Value = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": "* * * * *", "jobTemplate": template},
        });
        let body = object.to_string().into_bytes();
        create(&self.server.client(), "/apis/batch/v1/namespaces/default/cronjobs", body, "create").await.unwrap();
    }

    /// Starts the Job of a slot.
    async fn start(&self, name: &str, slot: DateTime<Utc>) {
        let (client, jobs) = (self.server.client(), "/apis/batch/v1/namespaces/default/jobs");
        let path = format!("/apis/batch/v1/namespaces/default/cronjobs/{name}");
        let cron_job = request(&client, Method::GET, &path, None).await.unwrap();
        let job_name = format!("{name}-{}", slot.timestamp() / 60);
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": job_name, "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot},
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": cron_job["metadata"]["uid"],
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": cron_job["spec"]["jobTemplate"]["spec"],
        });
        request(&client, Method::POST, jobs, Some(&job)).await.unwrap();
        let status = json!({"status": {"startTime": slot, "active": 1, "ready": 1, "uncountedTerminatedPods": {}}});
        request(&client, Method::PATCH, &format!("{jobs}/{job_name}/status"), Some(&status)).await.unwrap();
    }

    async fn pass(&self, seconds: u64) {
        for _ in 0..seconds * 4 {
            sleep(Duration::from_millis(250)).await;
            self.board.refresh();
        }
    }

    fn urgency(&self, name: &str) -> Option<Urgency> {
        self.board.model().rows.get(&ObjectName::new("default", name)).map(|row| row.urgency)
    }
}

/// Nothing starts the Jobs, so that a page which goes on says soon that they are overdue.
#[tokio::test(start_paused = true)]
async fn states_stand_still_within_five_seconds_of_a_lost_connection_and_go_on_when_it_is_back() {
    let world = world(PASS);
    world.add("minutely").await;
    world.pass(3).await;
    assert_eq!((world.urgency("minutely"), world.source.outage()), (Some(Urgency::Fine), None));
    world.way.store(HANG, Ordering::Relaxed);
    world.pass(5).await;
    let outage = world.source.outage().unwrap();
    assert_eq!(outage.why, "The API server does not answer within 2 s.");
    let version = world.board.model().version;
    // Shorter than the shortest watch: one that ended meanwhile would wait half a minute for its successor's headers.
    world.pass(240).await;
    assert_eq!(world.source.outage(), Some(outage.clone()), "its date stays");
    assert_eq!((world.board.now(), world.urgency("minutely")), (outage.since, Some(Urgency::Fine)));
    assert_eq!(world.board.model().version, version);
    world.add("new").await;
    world.way.store(PASS, Ordering::Relaxed);
    world.pass(10).await;
    assert_eq!(world.source.outage(), None);
    let both = [world.urgency("minutely"), world.urgency("new")];
    assert_eq!(both, [Some(Urgency::Overdue), Some(Urgency::Fine)], "what it missed is read");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_cannot_be_read_is_not_an_empty_one() {
    let rows = [
        (HANG, "The API server does not answer within 2 s."),
        (
            UNAUTHORIZED,
            "The API server does not know these credentials (401): Unauthorized: this user may not do that. Log in again",
        ),
        (FORBIDDEN, "The cronjobs may not be read with these rights (403): Forbidden: this user may not do that."),
    ];
    for (way, why) in rows {
        let world = world(way);
        world.pass(5).await;
        let outage = world.source.outage().map(|outage| outage.why).unwrap_or_default();
        assert!(outage.starts_with(why), "{way}: {outage:?}");
        assert!(!world.source.has_synced() && world.urgency("none").is_none(), "{way}");
        world.way.store(PASS, Ordering::Relaxed);
        // Lists are tried again after half a minute at most.
        world.pass(120).await;
        assert_eq!((world.source.outage(), world.source.has_synced()), (None, true), "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn rights_that_end_later_are_an_outage_and_those_for_events_are_not() {
    let world = world(NO_EVENTS);
    world.add("minutely").await;
    world.pass(5).await;
    assert_eq!((world.source.outage(), world.urgency("minutely")), (None, Some(Urgency::Fine)));
    let events = "The events may not be read with these rights (403): Forbidden: this user may not do that.";
    assert_eq!(world.source.unread_events().as_deref(), Some(events));
    assert_eq!(world.source.trouble(), [events]);
    world.way.store(UNAUTHORIZED, Ordering::Relaxed);
    world.pass(5).await;
    assert!(world.source.outage().unwrap().why.contains("(401)"));
    assert_eq!(world.urgency("minutely"), Some(Urgency::Fine));
}

/// The Jobs are started each minute, which a watch that is silent does not tell. It falls silent at any second of a minute.
#[tokio::test(start_paused = true)]
async fn nothing_is_overdue_while_a_watch_is_silent_and_what_is_overdue_is_said() {
    for second in [0, 20, 40] {
        let world = world(UNAUTHORIZED);
        world.add("minutely").await;
        world.way.store(SILENT, Ordering::Relaxed);
        // Lists are tried again after half a minute at most.
        world.pass(60 + second).await;
        let begin = world.board.now();
        let mut looks = 0;
        for minute in 1..=4 {
            let slot = begin + TimeDelta::minutes(minute) - TimeDelta::seconds(begin.timestamp() % 60);
            while world.board.now() < slot {
                world.pass(1).await;
                looks += 1;
                let (now, state) = (world.board.now(), world.urgency("minutely"));
                assert_eq!(
                    state,
                    Some(Urgency::Fine),
                    "silent from second {second}, at {now}: {:?} {:?}",
                    world.source.outage(),
                    world.source.trouble()
                );
            }
            world.start("minutely", slot).await;
        }
        assert!(looks > 180, "{looks}");
        // From here on, nothing starts them.
        world.pass(130).await;
        let found = (world.urgency("minutely"), world.source.outage());
        assert_eq!(found, (Some(Urgency::Overdue), None), "silent from second {second}");
    }
}

#[tokio::test(start_paused = true)]
async fn rights_that_are_missing_for_leases_and_namespaces_are_said() {
    let world = world(NO_CLUSTER);
    world.add("minutely").await;
    world.pass(5).await;
    let why = "Forbidden: this user may not do that.";
    assert_eq!(
        world.source.trouble(),
        [
            format!(
                "Leases cannot be read, so it does not show whether a controller runs: read /apis/coordination.k8s.io/v1/leases: {why}"
            ),
            format!("Namespaces cannot be read, so freezes of them do not show: read /api/v1/namespaces: {why}"),
        ]
    );
    assert!(world.source.lease_finder().is_none());
    assert_eq!((world.source.outage(), world.urgency("minutely")), (None, Some(Urgency::Fine)));
    world.way.store(PASS, Ordering::Relaxed);
    world.pass(12).await;
    assert_eq!(world.source.trouble(), [""; 0]);
    assert!(world.source.lease_finder().is_some());
}
