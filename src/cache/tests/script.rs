//! An API server with scripted answers, and a handler that records its calls.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures::stream;
use http::{Request, Response, Uri};
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::BoxError;

use crate::api::batch_v1::Job;
use crate::api::{Object, ResourceKind};
use crate::cache::{MalformedObject, Observer, ReflectorError, ResourceEventHandler};

/// A piece of a streamed answer. After the last piece the server closes the connection normally.
#[derive(Clone, Debug)]
pub enum Part {
    /// One line, with its end.
    Line(String),
    /// Bytes as they are.
    Raw(Vec<u8>),
    /// Nothing for a while.
    Pause(Duration),
    /// The connection breaks.
    Break,
    /// Nothing more, for ever.
    Stay,
}

/// The answer to one request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A success with this body.
    Page(String),
    /// A success with a body in pieces.
    Watch(Vec<Part>),
    /// A refusal: status code and body.
    Refused(u16, String),
    /// The connection fails.
    NoConnection,
    /// No response at all, not even headers.
    NoAnswer,
}

/// The server: the answers for each path in order; after the last one, silent watches.
#[derive(Default)]
pub struct Script {
    replies: Mutex<HashMap<String, VecDeque<Reply>>>,
    requests: Mutex<Vec<(Instant, String)>>,
}

impl Script {
    pub fn new<'a>(replies: impl IntoIterator<Item = (&'a str, Vec<Reply>)>) -> Arc<Self> {
        let replies = replies.into_iter().map(|(path, replies)| (path.to_owned(), replies.into())).collect();
        Arc::new(Self { replies: Mutex::new(replies), ..Self::default() })
    }

    pub fn client(self: &Arc<Self>) -> Client {
        let script = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let script = Arc::clone(&script);
            async move { script.answer(request.uri().clone()).await }
        });
        Client::new(service, "default")
    }

    /// The requests in short, without their times.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().iter().map(|(_, request)| request.clone()).collect()
    }

    /// The time between each request and the one before.
    pub fn gaps(&self) -> Vec<Duration> {
        self.requests.lock().windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
    }

    async fn answer(&self, uri: Uri) -> Result<Response<Body>, BoxError> {
        self.requests.lock().push((Instant::now(), shorten(uri.query().unwrap_or_default())));
        let reply = self.replies.lock().get_mut(uri.path()).and_then(VecDeque::pop_front);
        Ok(match reply.unwrap_or_else(|| Reply::Watch(vec![Part::Stay])) {
            Reply::Page(body) => Response::new(Body::from(body)),
            Reply::Watch(parts) => Response::new(stream_of(parts)),
            Reply::Refused(code, body) => Response::builder().status(code).body(Body::from(body))?,
            Reply::NoConnection => return Err("connection refused".into()),
            Reply::NoAnswer => std::future::pending::<Result<Response<Body>, Infallible>>().await?,
        })
    }
}

fn stream_of(parts: Vec<Part>) -> Body {
    Body::from_stream(stream::unfold(VecDeque::from(parts), |mut parts| async move {
        loop {
            let bytes = match parts.pop_front()? {
                Part::Line(line) => Ok((line + "\n").into_bytes()),
                Part::Raw(bytes) => Ok(bytes),
                Part::Break => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
                Part::Pause(pause) => {
                    sleep(pause).await;
                    continue;
                }
                Part::Stay => std::future::pending().await,
            };
            return Some((bytes, parts));
        }
    }))
}

/// `stream`, `list`, `list all`, `list next=token` or `watch 17`; any other query is unchanged.
fn shorten(query: &str) -> String {
    const STREAM: &str = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let (query, timeout) = query.rsplit_once("&timeoutSeconds=").unwrap_or((query, "300"));
    assert!((300..600).contains(&timeout.parse::<u32>().unwrap()), "timeoutSeconds={timeout}");
    let between = |start, end| query.strip_prefix(start).and_then(|rest: &str| rest.strip_suffix(end));
    if query == STREAM {
        "stream".to_owned()
    } else if let Some(from) = between("watch=1&resourceVersion=", "&allowWatchBookmarks=true") {
        format!("watch {from}")
    } else if let Some(token) = between("limit=500&continue=", "") {
        format!("list next={token}")
    } else {
        match query {
            "limit=500" => "list".to_owned(),
            "limit=1" => "newest".to_owned(),
            "" => "list all".to_owned(),
            _ => query.to_owned(),
        }
    }
}

/// Records its calls.
#[derive(Default)]
pub struct Recorder {
    log: Mutex<Vec<String>>,
}

impl Recorder {
    pub fn log(&self) -> Vec<String> {
        self.log.lock().clone()
    }

    fn note(&self, text: String) {
        self.log.lock().push(text);
    }
}

pub fn show(job: &Job) -> String {
    format!("{}@{}", job.name, job.resource_version)
}

impl ResourceEventHandler<Job> for Recorder {
    fn on_add(&self, job: &Arc<Job>, is_in_initial_list: bool) {
        self.note(format!("{} {}", if is_in_initial_list { "initial" } else { "add" }, show(job)));
    }

    fn on_update(&self, old: &Arc<Job>, new: &Arc<Job>) {
        self.note(format!("update {} to {}", show(old), new.resource_version));
    }

    fn on_delete(&self, last: &Arc<Job>, final_state_unknown: bool) {
        self.note(format!("{} {}", if final_state_unknown { "lost" } else { "delete" }, show(last)));
    }

    fn on_malformed(&self, object: &MalformedObject) {
        let MalformedObject { namespace, name, resource_version, .. } = object;
        self.note(format!("malformed {namespace}/{name}@{resource_version}"));
    }

    fn on_relisted(&self) {
        self.note("relisted".to_owned());
    }
}

impl Observer for Recorder {
    fn handler_panicked(&self, resource: ResourceKind) {
        self.note(format!("a handler of {} panicked", resource.kind));
    }

    fn failed(&self, resource: ResourceKind, error: &ReflectorError) {
        assert_eq!(resource, Job::RESOURCE);
        self.note(error.to_string());
    }
}

pub fn job_of(namespace: &str, name: &str, uid: &str, resource_version: u64, owner: Option<&str>) -> Value {
    let owners = owner
        .map(|uid| json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": uid, "controller": true}]));
    json!({
        "metadata": {
            "namespace": namespace, "name": name, "uid": uid, "resourceVersion": resource_version.to_string(),
            "ownerReferences": owners,
        },
        "status": {},
    })
}

/// A Job in namespace `a` whose UID is its name.
pub fn job(name: &str, resource_version: u64) -> Value {
    job_of("a", name, name, resource_version, None)
}

/// A Job that cannot be decoded.
pub fn bad(name: &str, resource_version: u64) -> Value {
    let mut job = job(name, resource_version);
    job["status"]["startTime"] = json!(7);
    job
}

pub fn page(items: &[Value], resource_version: u64, next: &str) -> Reply {
    let metadata = json!({"resourceVersion": resource_version.to_string(), "continue": next});
    Reply::Page(json!({"kind": "JobList", "metadata": metadata, "items": items}).to_string())
}

fn event(kind: &str, object: &Value) -> Part {
    Part::Line(json!({"type": kind, "object": object}).to_string())
}

pub fn added(object: &Value) -> Part {
    event("ADDED", object)
}

pub fn modified(object: &Value) -> Part {
    event("MODIFIED", object)
}

pub fn deleted(object: &Value) -> Part {
    event("DELETED", object)
}

pub fn bookmark(resource_version: u64) -> Part {
    event("BOOKMARK", &json!({"metadata": {"resourceVersion": resource_version.to_string()}}))
}

/// The bookmark that ends the initial events.
pub fn end(resource_version: u64) -> Part {
    let annotations = json!({"k8s.io/initial-events-end": "true"});
    let metadata = json!({"resourceVersion": resource_version.to_string(), "annotations": annotations});
    event("BOOKMARK", &json!({ "metadata": metadata }))
}

pub fn status(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "code": code, "reason": reason, "message": "so it is"})
}

pub fn error(code: u16, reason: &str) -> Part {
    event("ERROR", &status(code, reason))
}

pub fn refused(code: u16, reason: &str) -> Reply {
    Reply::Refused(code, status(code, reason).to_string())
}

/// As the client shows it, whether the server asked in a header or in a Status.
pub fn refused_for(seconds: u32, code: u16) -> Reply {
    Reply::Refused(code, json!({ "details": { "retryAfterSeconds": seconds } }).to_string())
}

pub fn pause(seconds: u64) -> Part {
    Part::Pause(Duration::from_secs(seconds))
}
