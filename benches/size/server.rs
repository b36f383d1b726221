//! A fake API server in a separate process: the requests that the controller needs, at almost no cost.
//!
//! Guarantees: objects are generated when they are listed, so a hundred thousand CronJobs need no memory and a list is
//! as fast as the network. A controller's writes are kept and sent to the watches in order, as by a real server. There
//! is no validation, there are no other kinds, and watches cannot resume: the measured controller needs none of these.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::broadcast;

use crate::objects::{self, Metadata, NAMESPACES, World};

/// The approximate number of bytes sent at once.
const BATCH: usize = 64 << 10;
/// Resource versions up to here belong to the initial objects; later ones are counted up.
const WORLD_VERSION: u64 = 10_000_000;

struct Server {
    world: World,
    state: Mutex<Changes>,
    cron_jobs: broadcast::Sender<Bytes>,
    jobs: broadcast::Sender<Bytes>,
    /// Nothing changes them.
    namespaces: broadcast::Sender<Bytes>,
}

#[derive(Default)]
struct Changes {
    version: u64,
    created: HashSet<String>,
    /// Resource version and status of the CronJobs whose status was written.
    statuses: HashMap<usize, (u64, String)>,
    skews_us: Vec<i64>,
    last_status_us: i64,
    events: usize,
}

/// Serves `world` until the process is killed; prints the port.
pub async fn run(world: World) -> std::io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", listener.local_addr()?.port());
    let server = Arc::new(Server {
        world,
        state: Mutex::new(Changes { version: WORLD_VERSION, ..Changes::default() }),
        cron_jobs: broadcast::channel(1 << 16).0,
        jobs: broadcast::channel(1 << 16).0,
        namespaces: broadcast::channel(1).0,
    });
    axum::serve(tcp_nodelay(listener), Router::new().fallback(answer).with_state(server)).await
}

fn tcp_nodelay(
    listener: TcpListener,
) -> impl axum::serve::Listener<Addr = std::net::SocketAddr, Io = tokio::net::TcpStream> {
    use axum::serve::ListenerExt as _;
    listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    })
}

async fn answer(State(server): State<Arc<Server>>, method: Method, uri: Uri, body: Bytes) -> Response {
    let path = uri.path();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match (method.as_str(), parts.as_slice()) {
        ("GET", ["apis", "batch", "v1", plural @ ("cronjobs" | "jobs")] | ["api", "v1", plural @ "namespaces"]) => {
            server.watch(plural, uri.query().unwrap_or_default())
        }
        ("GET", ["api", "v1", "namespaces", name]) => server.get_namespace(name),
        ("POST", ["apis", "batch", "v1", "namespaces", _, "jobs"]) => server.create_job(&body),
        ("PATCH", ["apis", "batch", "v1", "namespaces", _, "cronjobs", name, "status"]) => {
            server.patch_status(name, &body)
        }
        ("GET", ["apis", "batch", "v1", "namespaces", _, "cronjobs", name]) => server.get_cron_job(name),
        ("POST", [.., "events"]) => {
            server.state.lock().events += 1;
            json_response(StatusCode::CREATED, body.into())
        }
        ("GET", ["stats"]) => server.stats(),
        _ => refuse(StatusCode::NOT_FOUND, "NotFound"),
    }
}

impl Server {
    fn watch(self: Arc<Self>, plural: &str, query: &str) -> Response {
        if !query.contains("watch=1") {
            return refuse(StatusCode::BAD_REQUEST, "BadRequest");
        }
        let (kind, channel, count) = match plural {
            "jobs" => ("Job", &self.jobs, self.world.jobs()),
            "cronjobs" => ("CronJob", &self.cron_jobs, self.world.cron_jobs),
            _ => ("Namespace", &self.namespaces, NAMESPACES),
        };
        let changes = channel.subscribe();
        let initial = if query.contains("sendInitialEvents=true") {
            self.initial_events(kind, count).left_stream()
        } else {
            stream::empty().right_stream()
        };
        let changes = stream::unfold(changes, |mut changes| async { Some((changes.recv().await.ok()?, changes)) });
        let lines = initial.chain(changes).map(Ok::<_, Infallible>);
        json_response(StatusCode::OK, Body::from_stream(lines))
    }

    fn initial_events(
        self: &Arc<Self>,
        kind: &'static str,
        count: usize,
    ) -> impl stream::Stream<Item = Bytes> + Send + use<> {
        let server = Arc::clone(self);
        stream::iter((0..=count).step_by(BATCH / 3000)).map(move |from| {
            let mut text = String::with_capacity(BATCH + BATCH / 4);
            for number in from..(from + BATCH / 3000).min(count) {
                let version = 1000 + number as u64;
                let object = match kind {
                    "Job" => server.world.job(number, version),
                    "CronJob" => server.world.cron_job(number, version, None),
                    _ => server.world.namespace(number),
                };
                text.push_str(&line("ADDED", &object));
            }
            if from + BATCH / 3000 > count {
                let api_version = if kind == "Namespace" { "v1" } else { "batch/v1" };
                let bookmark = json!({ "kind": kind, "apiVersion": api_version, "metadata": {
                    "resourceVersion": WORLD_VERSION.to_string(),
                    "annotations": { "k8s.io/initial-events-end": "true" },
                }});
                text.push_str(&line("BOOKMARK", &bookmark.to_string()));
            }
            Bytes::from(text)
        })
    }

    fn create_job(&self, body: &[u8]) -> Response {
        let Ok(asked) = serde_json::from_slice::<NewJob<'_>>(body) else {
            return refuse(StatusCode::BAD_REQUEST, "BadRequest");
        };
        let now = Utc::now();
        let mut state = self.state.lock();
        let (namespace, name) = (asked.metadata.namespace, asked.metadata.name);
        if !state.created.insert(format!("{namespace}/{name}")) {
            return refuse(StatusCode::CONFLICT, "AlreadyExists");
        }
        state.version += 1;
        state.skews_us.push(self.after_due(now));
        let metadata = Metadata {
            name,
            namespace,
            uid: &objects::uid(3, state.created.len()),
            resource_version: state.version,
            created: &objects::time(now),
            annotations: asked.metadata.annotations.get(),
            labels: asked.metadata.labels.get(),
            owners: asked.metadata.owner_references.get(),
        };
        let text = objects::job(&metadata, asked.spec.get(), "{}");
        let _ = self.jobs.send(line("ADDED", &text).into());
        drop(state);
        json_response(StatusCode::CREATED, text.into())
    }

    fn patch_status(&self, name: &str, body: &[u8]) -> Response {
        let Some(number) = self.world.number(name) else { return refuse(StatusCode::NOT_FOUND, "NotFound") };
        let Ok(patch) = serde_json::from_slice::<Value>(body) else {
            return refuse(StatusCode::BAD_REQUEST, "BadRequest");
        };
        let now = Utc::now();
        let mut state = self.state.lock();
        let known = state.statuses.get(&number).map_or(1000 + number as u64, |(version, _)| *version);
        if patch["metadata"]["resourceVersion"] != json!(known.to_string()) {
            return refuse(StatusCode::CONFLICT, "Conflict");
        }
        state.version += 1;
        let status = patch["status"].to_string();
        let text = self.world.cron_job(number, state.version, Some(&status));
        let version = state.version;
        state.statuses.insert(number, (version, status));
        state.last_status_us = self.after_due(now);
        let _ = self.cron_jobs.send(line("MODIFIED", &text).into());
        drop(state);
        json_response(StatusCode::OK, text.into())
    }

    fn get_cron_job(&self, name: &str) -> Response {
        let Some(number) = self.world.number(name) else { return refuse(StatusCode::NOT_FOUND, "NotFound") };
        let state = self.state.lock();
        let (version, status) =
            state.statuses.get(&number).map_or((1000 + number as u64, None), |(v, s)| (*v, Some(s.as_str())));
        json_response(StatusCode::OK, self.world.cron_job(number, version, status).into())
    }

    fn get_namespace(&self, name: &str) -> Response {
        let number = name.strip_prefix("team-").and_then(|number| number.parse().ok());
        let Some(number) = number.filter(|number| *number < NAMESPACES) else {
            return refuse(StatusCode::NOT_FOUND, "NotFound");
        };
        json_response(StatusCode::OK, self.world.namespace(number).into())
    }

    fn stats(&self) -> Response {
        let state = self.state.lock();
        let seen = json!({
            "skews_us": state.skews_us, "statuses": state.statuses.len(), "events": state.events,
            "last_status_us": state.last_status_us,
        });
        json_response(StatusCode::OK, seen.to_string().into())
    }

    fn after_due(&self, now: DateTime<Utc>) -> i64 {
        (now - self.world.due).num_microseconds().unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct NewJob<'a> {
    #[serde(borrow)]
    metadata: NewMetadata<'a>,
    #[serde(borrow)]
    spec: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewMetadata<'a> {
    name: &'a str,
    namespace: &'a str,
    #[serde(borrow)]
    labels: &'a RawValue,
    #[serde(borrow)]
    annotations: &'a RawValue,
    #[serde(borrow)]
    owner_references: &'a RawValue,
}

fn line(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn json_response(code: StatusCode, body: Body) -> Response {
    (code, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn refuse(code: StatusCode, reason: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(), "reason": reason,
        "message": reason,
    });
    json_response(code, status.to_string().into())
}
