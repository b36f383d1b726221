//! Random histories of a server that compacts, disconnects, falls silent and lies. In the end the store equals the server's
//! objects, and the handlers' deltas add up to the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures::channel::mpsc;
use futures::stream;
use http::{Request, Response, Uri};
use kube::Client;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use super::script::{job_of, status};
use crate::api::batch_v1::Job;
use crate::api::{Object, ObjectName};
use crate::cache::{Informer, ResourceEventHandler, Store};

const OWNERS: [Option<&str>; 3] = [None, Some("p"), Some("q")];

/// One step of a history.
#[derive(Clone, Debug)]
enum Step {
    /// Creates or changes the object; some changes cannot be decoded.
    Write {
        name: u8,
        owner: usize,
        readable: bool,
    },
    Delete {
        name: u8,
    },
    /// Deletes and creates again, so that only the UID shows it.
    Recreate {
        name: u8,
    },
    /// Compacts the history.
    Compact,
    /// Sends bookmarks, unless they are lost.
    Bookmark,
    /// Ends all watches: normally, by a break, inside an event, by an ERROR, or by invalid text.
    Disconnect(u8),
    /// Open watches receive nothing from now on, and stay open.
    Mute,
    /// Makes the next request fail.
    Fault(Fault),
    /// Time passes.
    Pause(u64),
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Code(u16),
    NoConnection,
    NoAnswer,
    /// The answer breaks off after this many bytes.
    Cut(usize),
}

#[derive(Clone, Debug)]
struct Behaviour {
    streaming_lists: bool,
    /// The server's own limit for a page.
    page: usize,
    /// Whether an expired resource version is reported by an ERROR event instead of an HTTP status.
    expired_as_event: bool,
    namespaces: usize,
}

#[derive(Clone)]
struct Stored {
    json: Value,
    readable: bool,
}

struct Watcher {
    lines: mpsc::UnboundedSender<Result<String, std::io::Error>>,
    namespace: Option<String>,
    muted: bool,
}

struct Model {
    behaviour: Behaviour,
    version: u64,
    uids: u64,
    objects: BTreeMap<(String, String), Stored>,
    /// Every state that a continue token may still ask for.
    snapshots: BTreeMap<u64, BTreeMap<(String, String), Stored>>,
    history: Vec<(u64, &'static str, Value)>,
    compacted: u64,
    watchers: Vec<Watcher>,
    faults: Vec<Fault>,
    requests: usize,
}

type Server = Arc<Mutex<Model>>;

impl Model {
    fn new(behaviour: Behaviour) -> Self {
        Self {
            behaviour,
            version: 100,
            uids: 0,
            objects: BTreeMap::new(),
            snapshots: BTreeMap::from([(100, BTreeMap::new())]),
            history: Vec::new(),
            compacted: 0,
            watchers: Vec::new(),
            faults: Vec::new(),
            requests: 0,
        }
    }

    fn key(name: u8) -> (String, String) {
        (["a", "b"][usize::from(name % 2)].to_owned(), format!("n{name}"))
    }

    fn write(&mut self, name: u8, owner: Option<&str>, readable: bool) {
        let key = Self::key(name);
        self.version += 1;
        let known = self.objects.get(&key).map(|stored| stored.json["metadata"]["uid"].as_str().unwrap().to_owned());
        let kind = if known.is_some() { "MODIFIED" } else { "ADDED" };
        let uid = known.unwrap_or_else(|| {
            self.uids += 1;
            format!("uid-{}", self.uids)
        });
        let mut json = job_of(&key.0, &key.1, &uid, self.version, owner);
        if !readable {
            json["status"]["startTime"] = json!(7);
        }
        self.objects.insert(key, Stored { json: json.clone(), readable });
        self.publish(kind, json);
    }

    fn delete(&mut self, name: u8) {
        if let Some(mut stored) = self.objects.remove(&Self::key(name)) {
            self.version += 1;
            stored.json["metadata"]["resourceVersion"] = json!(self.version.to_string());
            self.publish("DELETED", stored.json);
        }
    }

    fn publish(&mut self, kind: &'static str, json: Value) {
        let line = event(kind, &json);
        for watcher in self.watchers.iter().filter(|watcher| !watcher.muted) {
            if in_scope(watcher.namespace.as_deref(), &json) {
                let _ = watcher.lines.unbounded_send(Ok(line.clone()));
            }
        }
        self.history.push((self.version, kind, json));
        self.snapshots.insert(self.version, self.objects.clone());
    }

    fn bookmark(&self) {
        let line = bookmark(self.version, false);
        for watcher in self.watchers.iter().filter(|watcher| !watcher.muted) {
            let _ = watcher.lines.unbounded_send(Ok(line.clone()));
        }
    }

    fn disconnect(&mut self, how: u8) {
        for watcher in self.watchers.drain(..) {
            let last = match how % 5 {
                0 => continue,
                1 => Err(std::io::ErrorKind::ConnectionReset.into()),
                2 => Ok("{\"type\":\"MODIFIED\",\"obj".to_owned()),
                3 => Ok(event("ERROR", &status(500, "InternalError"))),
                _ => Ok("}{\n".to_owned()),
            };
            let _ = watcher.lines.unbounded_send(last);
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Write { name, owner, readable } => self.write(name, OWNERS[owner], readable),
            Step::Delete { name } => self.delete(name),
            Step::Recreate { name } => {
                self.delete(name);
                self.write(name, None, true);
            }
            Step::Compact => {
                self.compacted = self.version;
                self.snapshots.retain(|version, _| *version >= self.version);
            }
            Step::Bookmark => self.bookmark(),
            Step::Disconnect(how) => self.disconnect(how),
            Step::Mute => self.watchers.iter_mut().for_each(|watcher| watcher.muted = true),
            Step::Fault(fault) => self.faults.push(fault),
            Step::Pause(_) => {}
        }
    }

    /// A complete answer, or the lines of a watch.
    fn answer(&mut self, uri: &Uri) -> Response<Body> {
        let namespace = uri.path().strip_prefix("/apis/batch/v1/namespaces/");
        let namespace = namespace.and_then(|rest| rest.strip_suffix("/jobs")).map(str::to_owned);
        let query: BTreeMap<&str, &str> =
            uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('=')).collect();
        match (query.get("watch"), query.get("sendInitialEvents")) {
            (None, _) => self.list(namespace.as_deref(), &query),
            (_, Some(_)) if !self.behaviour.streaming_lists => refuse(422, "Invalid"),
            (_, Some(_)) => {
                let objects = self.objects.values().filter(|stored| in_scope(namespace.as_deref(), &stored.json));
                let mut lines: Vec<_> = objects.map(|stored| event("ADDED", &stored.json)).collect();
                lines.push(bookmark(self.version, true));
                self.watch(namespace, lines)
            }
            (_, None) => {
                let from: u64 = query["resourceVersion"].parse().unwrap();
                if from < self.compacted && self.behaviour.expired_as_event {
                    return Response::new(Body::from(event("ERROR", &status(410, "Expired"))));
                } else if from < self.compacted {
                    return refuse(410, "Expired");
                }
                let news = self
                    .history
                    .iter()
                    .filter(|(version, _, json)| *version > from && in_scope(namespace.as_deref(), json));
                let lines = news.map(|(_, kind, json)| event(kind, json)).collect();
                self.watch(namespace, lines)
            }
        }
    }

    fn watch(&mut self, namespace: Option<String>, lines: Vec<String>) -> Response<Body> {
        let (sender, receiver) = mpsc::unbounded();
        for line in lines {
            let _ = sender.unbounded_send(Ok(line));
        }
        self.watchers.push(Watcher { lines: sender, namespace, muted: false });
        Response::new(Body::from_stream(receiver))
    }

    fn list(&self, namespace: Option<&str>, query: &BTreeMap<&str, &str>) -> Response<Body> {
        let (version, start) = match query.get("continue") {
            None => (self.version, 0),
            Some(token) => {
                let (version, start) = token.split_once('-').unwrap();
                (version.parse().unwrap(), start.parse().unwrap())
            }
        };
        let Some(snapshot) = self.snapshots.get(&version) else { return refuse(410, "Expired") };
        let page = query.get("limit").map_or(usize::MAX, |_| self.behaviour.page);
        let all: Vec<_> =
            snapshot.values().map(|stored| &stored.json).filter(|json| in_scope(namespace, json)).collect();
        let items: Vec<_> = all.iter().skip(start).take(page).collect();
        let next = start + items.len();
        let token = if next < all.len() { format!("{version}-{next}") } else { String::new() };
        let metadata = json!({"resourceVersion": version.to_string(), "continue": token});
        Response::new(Body::from(json!({"metadata": metadata, "items": items}).to_string()))
    }
}

fn in_scope(namespace: Option<&str>, json: &Value) -> bool {
    namespace.is_none_or(|own| json["metadata"]["namespace"] == own)
}

fn event(kind: &str, json: &Value) -> String {
    json!({"type": kind, "object": json}).to_string() + "\n"
}

fn bookmark(version: u64, ends: bool) -> String {
    let annotations = ends.then(|| json!({"k8s.io/initial-events-end": "true"}));
    event("BOOKMARK", &json!({"metadata": {"resourceVersion": version.to_string(), "annotations": annotations}}))
}

fn refuse(code: u16, reason: &str) -> Response<Body> {
    Response::builder().status(code).body(Body::from(status(code, reason).to_string())).unwrap()
}

async fn serve(server: Server, uri: Uri) -> Result<Response<Body>, BoxError> {
    let fault = {
        let mut model = server.lock();
        model.requests += 1;
        model.faults.pop()
    };
    match fault {
        None => {
            // Lists and history take a moment, in which objects may change.
            sleep(Duration::from_millis(50)).await;
            Ok(server.lock().answer(&uri))
        }
        Some(Fault::Code(code)) => Ok(refuse(code, "")),
        Some(Fault::NoConnection) => Err("connection refused".into()),
        Some(Fault::NoAnswer) => std::future::pending().await,
        Some(Fault::Cut(bytes)) => {
            let answer = server.lock().answer(&uri);
            if uri.query().unwrap_or_default().contains("watch=1") {
                server.lock().watchers.pop();
            }
            let all = axum::body::to_bytes(answer.into_body(), usize::MAX).await?;
            let cut = Ok::<_, std::io::Error>(all.slice(..bytes.min(all.len())));
            let broken = Err(std::io::ErrorKind::ConnectionReset.into());
            Ok(Response::new(Body::from_stream(stream::iter([cut, broken]))))
        }
    }
}

/// Adds up the deltas and checks their order: only an existing object is changed or deleted.
#[derive(Default)]
struct Fold {
    view: Mutex<BTreeMap<ObjectName, Arc<Job>>>,
    offences: Mutex<Vec<String>>,
}

impl Fold {
    fn expect(&self, holds: bool, what: &str, job: &Job) {
        if !holds {
            self.offences.lock().push(format!("{what} {job:?}"));
        }
    }
}

impl ResourceEventHandler<Job> for Fold {
    fn on_add(&self, job: &Arc<Job>, _: bool) {
        let before = self.view.lock().insert(job.name.clone(), Arc::clone(job));
        self.expect(before.is_none(), "added twice", job);
    }

    fn on_update(&self, old: &Arc<Job>, new: &Arc<Job>) {
        let before = self.view.lock().insert(new.name.clone(), Arc::clone(new));
        self.expect(before.is_some_and(|before| Arc::ptr_eq(&before, old)), "updated from what was not there", new);
        self.expect(old.uid == new.uid && old.resource_version != new.resource_version, "no update", new);
    }

    fn on_delete(&self, last: &Arc<Job>, _: bool) {
        let before = self.view.lock().remove(last.object_name());
        self.expect(before.is_some_and(|before| before.uid == last.uid), "deleted what was not there", last);
    }
}

fn step() -> impl Strategy<Value = Step> {
    let fault = prop_oneof![
        prop_oneof![Just(500), Just(429), Just(503), Just(410), Just(400), Just(404)].prop_map(Fault::Code),
        Just(Fault::NoConnection),
        Just(Fault::NoAnswer),
        (0_usize..900).prop_map(Fault::Cut),
    ];
    prop_oneof![
        12 => (0..6_u8, 0..3_usize, prop::bool::weighted(0.85))
            .prop_map(|(name, owner, readable)| Step::Write { name, owner, readable }),
        4 => (0..6_u8).prop_map(|name| Step::Delete { name }),
        2 => (0..6_u8).prop_map(|name| Step::Recreate { name }),
        2 => Just(Step::Compact),
        2 => Just(Step::Bookmark),
        4 => (0..5_u8).prop_map(Step::Disconnect),
        1 => Just(Step::Mute),
        2 => fault.prop_map(Step::Fault),
        4 => (1..400_000_u64).prop_map(Step::Pause),
        6 => (1..2_000_u64).prop_map(Step::Pause),
    ]
}

fn behaviour() -> impl Strategy<Value = Behaviour> {
    (any::<bool>(), 1..4_usize, any::<bool>(), 0..3_usize).prop_map(
        |(streaming_lists, page, expired_as_event, namespaces)| Behaviour {
            streaming_lists,
            page,
            expired_as_event,
            namespaces,
        },
    )
}

async fn live_through(behaviour: Behaviour, steps: Vec<Step>, seed: u64) -> Result<(), TestCaseError> {
    let namespaces: Vec<String> = ["a", "b"][..behaviour.namespaces].iter().map(ToString::to_string).collect();
    let server: Server = Arc::new(Mutex::new(Model::new(behaviour)));
    let service = {
        let server = Arc::clone(&server);
        tower::service_fn(move |request: Request<kube::client::Body>| serve(Arc::clone(&server), request.uri().clone()))
    };
    let mut informer = Informer::<Job>::new(Client::new(service, "default"), &namespaces, seed);
    let fold = Arc::new(Fold::default());
    informer.add_event_handler(Arc::clone(&fold) as Arc<dyn ResourceEventHandler<Job>>);
    let (store, cancel) = (informer.store(), CancellationToken::new());
    let running = tokio::spawn(informer.run(cancel.clone()));
    for step in steps {
        if let Step::Pause(millis) = step {
            sleep(Duration::from_millis(millis)).await;
        }
        server.lock().take(&step);
    }
    // The server works again, except for muted watches: half an hour is enough for everything.
    server.lock().faults.clear();
    for minute in 0..30 {
        sleep(Duration::from_secs(60)).await;
        let mut model = server.lock();
        model.bookmark();
        if minute == 20 {
            model.requests = 0;
        }
    }
    let quiet_requests = server.lock().requests;
    cancel.cancel();
    running.await.unwrap();
    judge(&server.lock(), &namespaces, &store, &fold)?;
    prop_assert!(quiet_requests <= 2 * namespaces.len().max(1) * 2, "{quiet_requests} requests in ten quiet minutes");
    Ok(())
}

fn judge(model: &Model, namespaces: &[String], store: &Store<Job>, fold: &Fold) -> Result<(), TestCaseError> {
    let watched = |stored: &&Stored| {
        let namespace = &stored.json["metadata"]["namespace"];
        namespaces.is_empty() || namespaces.iter().any(|own| namespace == own)
    };
    let expected: Vec<String> = model
        .objects
        .values()
        .filter(watched)
        .filter(|stored| stored.readable)
        .map(|stored| {
            let metadata = &stored.json["metadata"];
            let owner = &metadata["ownerReferences"][0]["uid"];
            let text = |field: &str| metadata[field].as_str().unwrap().to_owned();
            let name = format!("{}/{}", text("namespace"), text("name"));
            format!("{name} {} {} {}", text("uid"), text("resourceVersion"), owner.as_str().unwrap_or_default())
        })
        .collect();
    let show = |job: &Job| {
        let owner = job.controller_uid().map(ToString::to_string).unwrap_or_default();
        format!("{} {} {} {owner}", job.name, job.uid, job.resource_version)
    };
    let stored = store.list();
    prop_assert_eq!(&stored.iter().map(|job| show(job)).collect::<Vec<_>>(), &expected, "store and server differ");
    let told: Vec<String> = fold.view.lock().values().map(|job| show(job)).collect();
    prop_assert_eq!(&told, &expected, "what handlers were told and the server differ");
    prop_assert!(fold.offences.lock().is_empty(), "{:#?}", fold.offences.lock());
    for owner in OWNERS.into_iter().flatten() {
        let mut children = store.by_controller(&owner.into());
        children.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let children: Vec<String> = children.iter().map(|job| show(job)).collect();
        let ends = format!(" {owner}");
        let owned: Vec<String> = expected.iter().filter(|line| line.ends_with(&ends)).cloned().collect();
        prop_assert_eq!(children, owned, "the index and the server differ");
    }
    prop_assert!(store.has_synced());
    let newest = model.version.to_string();
    for namespace in namespaces.iter().map(String::as_str).chain(namespaces.is_empty().then_some("any")) {
        prop_assert_eq!(store.last_resource_version(namespace), Some(newest.clone()), "after a bookmark a minute");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn store_and_handlers_converge_to_the_servers_state(
        behaviour in behaviour(),
        steps in prop::collection::vec(step(), 1..80),
        seed in any::<u64>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(live_through(behaviour, steps, seed))?;
    }
}
