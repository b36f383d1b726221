//! Restrictions of Namespaces, from the API server to the Jobs that do not start.
#![allow(clippy::unwrap_used)]

use apiserver::{ApiServer, kinds};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::api::{ControllerKind, Interner};
use crate::cache::{Delta, Informer, Operation, ServerStatus};
use crate::client;
use crate::controller::control::RealControl;
use crate::controller::tests::objects::{merged, time};
use crate::controller::tests::support::{CRON_JOBS, NAMESPACE, World, cron_job, request};
use crate::controller::tests::wire::{Ask, Fate, Orders, Verb, Wire};
use crate::leader_election::Gate;

const START: &str = "2026-03-02T09:59:30Z";
const SLOT_OF_TEN: &str = "c-29540760";

fn annotated(annotations: &[(&str, Option<&str>)]) -> Value {
    let entries = annotations.iter().map(|(name, value)| (format!("cronjob-controller.dev/{name}"), json!(value)));
    json!({ "metadata": { "annotations": entries.collect::<serde_json::Map<_, _>>() } })
}

/// Changes the annotations of the Namespace `default`, and does not wait for the watch.
async fn annotate(world: &World, annotations: &[(&str, Option<&str>)]) {
    world.request("PATCH", "/api/v1/namespaces/default", &annotated(annotations)).await.unwrap();
}

async fn freeze(world: &World, until: &str) {
    annotate(world, &[("not-before", Some(until)), ("reason", Some("release week"))]).await;
}

fn reads(world: &World) -> usize {
    world.wire.count(Verb::Get, "namespaces")
}

#[tokio::test(start_paused = true)]
async fn freeze_holds_each_kind_and_the_first_slot_after_it_starts() {
    for kind in [ControllerKind::CronJob, ControllerKind::Tutorial, ControllerKind::ApiExample] {
        let world = World::of(kind, START, |_| None).await;
        world.create_cron_job("c", json!({})).await;
        freeze(&world, "2026-03-02T10:03:00Z").await;
        world.catch_up().await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:02:59Z").await;
        assert_eq!(world.children().await.len(), 0, "{kind:?}: in the freeze");
        assert_eq!(world.reasons().await, ["Frozen"], "{kind:?}");
        assert_eq!(world.controller.unattended(), [], "{kind:?}");
        world.pass_until("2026-03-02T10:03:30Z").await;
        stop.cancel();
        let children = world.seen();
        let slots: Vec<_> = children.iter().map(|child| child.scheduled_timestamp.unwrap()).collect();
        assert_eq!(slots, [time("2026-03-02T10:03:00Z")], "{kind:?}: after it");
        assert_eq!(reads(&world), 0, "{kind:?}: the watch shows the Namespace");
    }
}

/// How a freeze ends, and the minutes whose slots start until 10:05.
type End<'a> = (&'a str, &'a [(&'a str, Option<&'a str>)], &'a [&'a str]);

#[tokio::test(start_paused = true)]
async fn end_of_a_freeze_at_half_past_two_minutes() {
    let rows: [End<'_>; 3] = [
        ("a thaw starts nothing old", &[("not-before", Some("2026-03-02T10:02:30Z"))], &["10:03", "10:04"]),
        ("a removal is like a resume", &[("not-before", None)], &["10:02", "10:03", "10:04"]),
        ("a bound that cannot be read holds on", &[("not-before", Some("now"))], &[]),
    ];
    for (sentence, end, want) in rows {
        let world = World::new(START).await;
        world.create_cron_job("c", json!({})).await;
        freeze(&world, "2027-01-01T00:00:00Z").await;
        world.catch_up().await;
        let stop = world.work(2);
        world.pass_until("2026-03-02T10:02:30Z").await;
        annotate(&world, end).await;
        world.pass_until("2026-03-02T10:04:59Z").await;
        stop.cancel();
        let minute =
            |job: &Arc<crate::api::batch_v1::Job>| job.scheduled_timestamp.unwrap().format("%H:%M").to_string();
        assert_eq!(world.seen().iter().map(minute).collect::<Vec<_>>(), want, "{sentence}");
        let is_told = world.reasons().await.contains(&"InvalidPolicy".to_owned());
        assert_eq!(is_told, want.is_empty(), "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn namespace_that_the_watch_does_not_show_is_read() {
    let world = World::new(START).await;
    world.wire.silence("namespaces");
    let frozen = annotated(&[("not-before", Some("2026-03-02T12:00:00Z"))]);
    for (name, patch) in [("new", json!({})), ("frozen", frozen)] {
        let mut object = patch;
        object["apiVersion"] = "v1".into();
        object["kind"] = "Namespace".into();
        object["metadata"]["name"] = name.into();
        world.request("POST", "/api/v1/namespaces", &object).await.unwrap();
        world.request("POST", &CRON_JOBS.replace(NAMESPACE, name), &cron_job("c", json!({}))).await.unwrap();
    }
    world.catch_up().await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:01:30Z").await;
    stop.cancel();
    let started: Vec<_> = world.seen().iter().map(|job| job.name.namespace.to_string()).collect();
    assert_eq!((started, reads(&world)), (vec!["new".to_owned(); 2], 2), "each is read once");
}

#[tokio::test(start_paused = true)]
async fn namespace_that_cannot_be_read_holds_its_cron_jobs() {
    let world = World::new(START).await;
    world.wire.silence("namespaces");
    let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "new" } });
    world.request("POST", "/api/v1/namespaces", &object).await.unwrap();
    world.request("POST", &CRON_JOBS.replace(NAMESPACE, "new"), &cron_job("c", json!({}))).await.unwrap();
    world.wire.judge(|ask| {
        if ask.is(Verb::Get, "namespaces") { Fate::Refused(503, "ServiceUnavailable") } else { Fate::Pass }
    });
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:00:30Z").await;
    assert_eq!(world.seen_names(), [""; 0]);
    world.wire.calm();
    world.pass_until("2026-03-02T10:00:45Z").await;
    stop.cancel();
    assert_eq!(world.seen_names(), [SLOT_OF_TEN]);
}

/// The API server does not accept such objects today. Nothing of them that matters to CronJobs may be guessed.
#[tokio::test(start_paused = true)]
async fn namespace_that_cannot_be_decoded_holds_its_cron_jobs_and_no_others_until_it_can() {
    let text = json!({ "not-before": "2026-03-02T12:00:00Z" });
    let rows = [
        ("a restriction is no text", json!({ "annotations": { "cronjob-controller.dev/not-before": 5 } }), true),
        ("the annotations are a text", json!({ "annotations": "cronjob-controller.dev/not-before" }), true),
        ("the annotations are a list", json!({ "annotations": [text] }), true),
        ("its creation has no time", json!({ "creationTimestamp": 5 }), true),
        ("another annotation is no text", json!({ "annotations": { "example.com/not-before": 5 } }), false),
        ("a label is no text", json!({ "labels": { "example.com/not-before": 5 } }), false),
    ];
    for (sentence, metadata, is_held) in rows {
        let world = World::new(START).await;
        world.request("POST", "/api/v1/namespaces", &json!({ "metadata": { "name": "other" } })).await.unwrap();
        world.request("POST", &CRON_JOBS.replace(NAMESPACE, "other"), &cron_job("c", json!({}))).await.unwrap();
        world.create_cron_job("c", json!({})).await;
        let readable = world.request("GET", "/api/v1/namespaces/default", &Value::Null).await.unwrap();
        world.smuggle("namespaces", "default", json!({ "metadata": metadata })).await;
        let stop = world.work(2);
        let started = || {
            let mut started: Vec<_> = world.seen().iter().map(|job| job.name.to_string()).collect();
            started.sort_unstable();
            started
        };
        world.pass_until("2026-03-02T10:00:20Z").await;
        let both = ["default/c-29540760", "other/c-29540760"];
        assert_eq!(started(), both[usize::from(is_held)..], "{sentence}");
        let metadata = &readable["metadata"];
        let mended = json!({
            "annotations": null, "labels": metadata["labels"], "creationTimestamp": metadata["creationTimestamp"],
        });
        world.smuggle("namespaces", "default", json!({ "metadata": mended })).await;
        world.pass_until("2026-03-02T10:00:40Z").await;
        stop.cancel();
        assert_eq!(started(), both, "{sentence}: once it can be read");
    }
}

#[tokio::test(start_paused = true)]
async fn freeze_that_comes_between_decision_and_create_counts() {
    let world = World::new(START).await;
    world.create_cron_job("c", json!({ "concurrencyPolicy": "Replace" })).await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:00:30Z").await;
    assert_eq!(world.seen_names(), [SLOT_OF_TEN]);
    // The Job of 10:00 is deleted for that of 10:01, which the freeze keeps from starting.
    world.wire.answer_late(Verb::Delete, "jobs", Duration::from_secs(3));
    world.pass_until("2026-03-02T10:01:01Z").await;
    freeze(&world, "2026-03-02T10:05:00Z").await;
    world.pass_until("2026-03-02T10:04:00Z").await;
    stop.cancel();
    assert_eq!(world.wire.count(Verb::Delete, "jobs"), 1);
    assert_eq!(world.seen_names(), [SLOT_OF_TEN]);
}

#[tokio::test(start_paused = true)]
async fn doubted_namespace_is_read_once_before_a_create() {
    let world = World::new(START).await;
    for name in ["c", "d"] {
        world.create_cron_job(name, json!({})).await;
    }
    world.wire.silence("namespaces");
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:00:30Z").await;
    assert_eq!((world.seen().len(), reads(&world)), (2, 0));
    freeze(&world, "2026-03-02T10:05:00Z").await;
    world.controller.doubt_caches();
    world.pass_until("2026-03-02T10:02:30Z").await;
    assert_eq!((world.seen().len(), reads(&world)), (2, 1), "the freeze is seen by a read");
    world.pass_until("2026-03-02T10:06:30Z").await;
    stop.cancel();
    assert_eq!((world.seen().len(), reads(&world)), (6, 1), "10:05 and 10:06 start");
}

#[tokio::test(start_paused = true)]
async fn series_of_a_cron_job_show_its_first_slot_after_the_freeze() {
    let world = World::new(START).await;
    world.create_cron_job("c", json!({})).await;
    freeze(&world, "2026-03-02T12:00:00Z").await;
    world.catch_up().await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:30:00Z").await;
    stop.cancel();
    let families = world.registry.gather();
    let next = families.iter().find(|family| family.name().ends_with("next_schedule_timestamp_seconds")).unwrap();
    let value = next.get_metric()[0].get_gauge().get_value();
    assert_eq!(format!("{value:.0}"), time("2026-03-02T12:00:00Z").timestamp().to_string());
}

/// A server, and a client that some requests are refused to.
fn refusing(is_refused: impl Fn(&Ask) -> bool + Send + 'static) -> (ApiServer, kube::Client, Arc<RealControl>) {
    let clock = apimachinery::clock::TestClock::new(time(START));
    let server = ApiServer::new(apiserver::Config::new(clock, kinds::builtin()));
    let wire = Wire::new();
    wire.judge(move |ask| Orders::from(if is_refused(ask) { Fate::Refused(403, "Forbidden") } else { Fate::Pass }));
    let client = client::on_service(wire.around(server.into_service()));
    let gate = Arc::new(Gate::unconditional());
    let control = RealControl::new(ControllerKind::CronJob, client.clone(), gate);
    (server, client, Arc::new(control))
}

/// An informer of Namespaces that keeps its observer's view.
fn informed(client: kube::Client) -> (Arc<Namespaces>, tokio::task::JoinHandle<()>) {
    let mut informer = Informer::<Namespace>::new(client, &[], 1);
    let namespaces = Namespaces::watched(informer.store());
    informer.add_event_handler(Arc::clone(&namespaces) as _);
    informer.set_observer(Arc::clone(&namespaces) as _);
    (namespaces, tokio::spawn(informer.run(CancellationToken::new())))
}

/// For so long the list of Namespaces is refused, in seconds, that of CronJobs and Jobs takes so long, and whether the freezes
/// are off when a minute has passed since then, or were before.
#[tokio::test(start_paused = true)]
async fn refusal_of_namespaces_counts_while_other_objects_are_shown_and_until_they_are_listed() {
    let rows = [
        ("without the right none counts, and none is waited for", u64::MAX, 0, [true, true]),
        ("a server that has just started knows the role soon", 1, 0, [false, false]),
        ("one that refuses everything for long is no reason", 40, 45, [false, false]),
        ("the right is given later", 20, 0, [true, false]),
    ];
    for (sentence, refused, others, want) in rows {
        let begin = Instant::now();
        let is_refused = move |ask: &Ask| ask.resource == "namespaces" && begin.elapsed().as_secs() < refused;
        let (_server, client, _) = refusing(is_refused);
        let (namespaces, running) = informed(client);
        assert!(!namespaces.have_synced(), "{sentence}");
        tokio::time::sleep(Duration::from_secs(others)).await;
        assert!(!namespaces.is_off(), "{sentence}");
        tokio::time::timeout(Duration::from_secs(60), namespaces.synced()).await.unwrap();
        let at_first = namespaces.is_off();
        let waits_for_none = !namespaces.is_to_be_read(&"default".into(), true);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!([at_first, namespaces.is_off()], want, "{sentence}");
        assert_eq!(waits_for_none, at_first || namespaces.epoch() == 0, "{sentence}");
        running.abort();
    }
}

/// Counts the calls of a handler.
#[derive(Default)]
struct Calls(parking_lot::Mutex<Vec<&'static str>>);

impl ResourceEventHandler<Namespace> for Calls {
    fn on_add(&self, _: &Arc<Namespace>, is_in_initial_list: bool) {
        self.0.lock().push(if is_in_initial_list { "listed" } else { "added" });
    }
    fn on_update(&self, old: &Arc<Namespace>, new: &Arc<Namespace>) {
        if old.restriction != new.restriction {
            self.0.lock().push("updated");
        }
    }
    fn on_delete(&self, _: &Arc<Namespace>, _: bool) {}
}

#[tokio::test(start_paused = true)]
async fn namespaces_of_a_process_with_some_are_read_again_and_again() {
    let (server, _, control) =
        refusing(|ask| ask.resource == "namespaces" && (ask.verb != Verb::Get || ask.name == "closed"));
    let send = async |method: &str, path: &str, body: Value| {
        let request =
            http::Request::builder().method(method).uri(path).header("content-type", "application/merge-patch+json");
        let answer = server.handle(request.body(axum::body::Bytes::from(body.to_string())).unwrap()).await;
        assert!(answer.status().is_success(), "{method} {path}: {}", answer.status());
    };
    let names = ["default", "closed", "later"].map(Arc::<str>::from);
    let namespaces = Namespaces::polled(names.clone());
    let calls = Arc::new(Calls::default());
    let handlers: [Arc<dyn ResourceEventHandler<Namespace>>; 2] =
        [Arc::clone(&namespaces) as _, Arc::clone(&calls) as _];
    namespaces.others_listed.get_or_init(Instant::now);
    namespaces.poll(&*control, &handlers).await;
    assert!(!namespaces.have_synced(), "one is refused for the first time");
    tokio::time::sleep(LONGEST_START).await;
    namespaces.poll(&*control, &handlers).await;
    assert!(namespaces.have_synced(), "one does not exist, and one is refused");
    assert!(!namespaces.is_to_be_read(&names[1], true), "it is not waited for");
    assert_eq!(namespaces.restriction(&names[0]), None);
    send("PATCH", "/api/v1/namespaces/default", annotated(&[("not-before", Some("2027-01-01T00:00:00Z"))])).await;
    namespaces.poll(&*control, &handlers).await;
    assert!(namespaces.restriction(&names[0]).is_some());
    assert!(namespaces.is_to_be_read(&names[2], false), "one that has come since is read before a decision");
    assert_eq!(*calls.0.lock(), ["listed", "updated"]);
}

/// What happens after `shop` was read and was frozen, whether the freeze still holds after further polls, and what the handlers hear.
#[tokio::test(start_paused = true)]
async fn poll_keeps_what_was_read_and_tells_of_every_change() {
    let rows: [(&str, &[&str], bool, &[&str]); 5] = [
        ("nothing has changed", &[], true, &[]),
        ("the right is lost for a while", &["right lost"], true, &[]),
        ("it was created anew without a freeze", &["deleted", "finalized", "created"], false, &["updated"]),
        ("a sync has read its end first", &["thawed", "read by a sync"], false, &["updated"]),
        (
            "a sync has read a freeze, which has ended since",
            &["thawed", "polled", "frozen again", "read by a sync", "thawed"],
            false,
            &["updated", "updated"],
        ),
    ];
    for (sentence, steps, is_frozen, want) in rows {
        let closed = Arc::new(AtomicBool::new(false));
        let judge = Arc::clone(&closed);
        let (server, _, control) = refusing(move |_| judge.load(Ordering::Relaxed));
        let send = async |method: &str, path: &str, body: Value| {
            let path = format!("/api/v1/namespaces{path}");
            let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
            let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
            let answer = server.handle(request.body(axum::body::Bytes::from(body.to_string())).unwrap()).await;
            assert!(answer.status().is_success(), "{sentence}: {method}: {}", answer.status());
        };
        let until = |time: Option<&str>| send("PATCH", "/shop", annotated(&[("not-before", time)]));
        let new = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
        send("POST", "", new.clone()).await;
        until(Some("2027-01-01T00:00:00Z")).await;
        let name: Arc<str> = "shop".into();
        let namespaces = Namespaces::polled([Arc::clone(&name)]);
        let calls = Arc::new(Calls::default());
        let handlers: [Arc<dyn ResourceEventHandler<Namespace>>; 2] =
            [Arc::clone(&namespaces) as _, Arc::clone(&calls) as _];
        namespaces.others_listed.get_or_init(Instant::now);
        namespaces.poll(&*control, &handlers).await;
        calls.0.lock().clear();
        for step in steps {
            match *step {
                "deleted" => send("DELETE", "/shop", json!({})).await,
                // What the namespace controller does once nothing is in it.
                "finalized" => {
                    let emptied = json!({ "metadata": { "name": "shop" }, "spec": { "finalizers": [] } });
                    send("PUT", "/shop/finalize", emptied).await;
                }
                "created" => send("POST", "", new.clone()).await,
                "thawed" => until(None).await,
                "frozen again" => until(Some("2027-02-01T00:00:00Z")).await,
                "read by a sync" => {
                    let read = control.get_namespace(&name).await.unwrap();
                    namespaces.learn(&name, 1, read);
                }
                "polled" => namespaces.poll(&*control, &handlers).await,
                "right lost" => closed.store(true, Ordering::Relaxed),
                step => panic!("no step {step}"),
            }
        }
        for _ in 0..3 {
            namespaces.poll(&*control, &handlers).await;
            tokio::time::sleep(LONGEST_START).await;
        }
        assert_eq!(namespaces.restriction(&name).is_some(), is_frozen, "{sentence}");
        assert_eq!(*calls.0.lock(), want, "{sentence}");
    }
}

/// What happens to a process with `--namespaces=shop`. The Namespace is frozen at first.
enum Polled {
    /// It reads the Namespace, as every few seconds.
    Poll,
    /// A sync sends a read of it.
    Asked,
    /// The last such read is answered.
    Answered,
    /// The CronJobs and Jobs are listed.
    Listed,
    /// The caches are doubted.
    Doubt,
    /// So many milliseconds pass.
    Wait(u64),
    Thaw,
    Delete,
    /// It is created, without a freeze.
    Create,
    /// Reads are refused, or not answered, or answered again.
    Refuse,
    Away,
    Answer,
}

/// Whether a freeze holds, whether a sync reads the Namespace to decide and before it creates a Job, and whether the process knows
/// what it has to know.
type Known = (bool, [bool; 2], bool);

async fn after_polls(steps: &[Polled]) -> Known {
    let fate = Arc::new(parking_lot::Mutex::new(Fate::Pass));
    let clock = apimachinery::clock::TestClock::new(time(START));
    let server = ApiServer::new(apiserver::Config::new(clock, kinds::builtin()));
    let wire = Wire::new();
    let judge = Arc::clone(&fate);
    wire.judge(move |_| *judge.lock());
    let client = client::on_service(wire.around(server.into_service()));
    let control = RealControl::new(ControllerKind::CronJob, client, Arc::new(Gate::unconditional()));
    let send = async |method: &str, path: &str, body: &Value| {
        request(&server, method, &format!("/api/v1/namespaces{path}"), body).await.unwrap();
    };
    let new = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
    send("POST", "", &new).await;
    send("PATCH", "/shop", &annotated(&[("not-before", Some("2027-01-01T00:00:00Z"))])).await;
    let name: Arc<str> = "shop".into();
    let (namespaces, mut asked) = (Namespaces::polled([Arc::clone(&name)]), None);
    for step in steps {
        match step {
            Polled::Poll => namespaces.poll(&control, &[]).await,
            Polled::Asked => asked = Some((namespaces.epoch(), control.get_namespace(&name).await.unwrap())),
            Polled::Answered => {
                let (epoch, read) = asked.take().unwrap();
                namespaces.learn(&name, epoch, read);
            }
            Polled::Listed => {
                namespaces.others_listed.get_or_init(Instant::now);
            }
            Polled::Doubt => namespaces.doubt(),
            Polled::Wait(milliseconds) => tokio::time::sleep(Duration::from_millis(*milliseconds)).await,
            Polled::Thaw => send("PATCH", "/shop", &annotated(&[("not-before", None)])).await,
            Polled::Delete => {
                send("DELETE", "/shop", &Value::Null).await;
                // What the namespace controller does once nothing is in it.
                let emptied = json!({ "metadata": { "name": "shop" }, "spec": { "finalizers": [] } });
                send("PUT", "/shop/finalize", &emptied).await;
            }
            Polled::Create => send("POST", "", &new).await,
            Polled::Refuse => *fate.lock() = Fate::Refused(403, "Forbidden"),
            Polled::Away => *fate.lock() = Fate::Refused(503, "ServiceUnavailable"),
            Polled::Answer => *fate.lock() = Fate::Pass,
        }
    }
    let is_read = [false, true].map(|doubted| namespaces.is_to_be_read(&name, doubted));
    (namespaces.restriction(&name).is_some(), is_read, namespaces.have_synced())
}

#[tokio::test(start_paused = true)]
async fn polled_namespace_without_a_read_is_unrestricted_once_it_was_refused_for_a_second() {
    use Polled::*;

    /// Nothing is known, and it has to be read.
    const UNKNOWN: Known = (false, [true, true], false);
    /// It counts as one without a restriction.
    const FREE: Known = (false, [false, false], true);
    const FROZEN: Known = (true, [false, false], true);
    /// It is read again before a Job is created.
    const DOUBTED: Known = (true, [false, true], true);
    /// The process has known it, or that it does not exist.
    const NEW: Known = (false, [true, true], true);
    let rows: [(&str, &[Polled], Known); 32] = [
        ("nothing", &[Listed, Wait(60_000)], UNKNOWN),
        ("read", &[Poll], FROZEN),
        ("read by a sync", &[Asked, Answered], (true, [false, false], false)),
        ("the server is away", &[Listed, Away, Poll, Wait(60_000), Poll], UNKNOWN),
        ("refused, before CronJobs are listed", &[Refuse, Poll, Wait(60_000), Poll], UNKNOWN),
        ("refused once, long after they were listed", &[Listed, Wait(60_000), Refuse, Poll], UNKNOWN),
        ("refused for long, and they have just been listed", &[Refuse, Poll, Wait(60_000), Listed, Poll], UNKNOWN),
        ("and a second later", &[Refuse, Poll, Wait(60_000), Listed, Poll, Wait(1_000), Poll], FREE),
        ("refused twice within a second", &[Listed, Refuse, Poll, Wait(999), Poll], UNKNOWN),
        ("refused twice", &[Listed, Refuse, Poll, Wait(1_000), Poll], FREE),
        ("refused for a second, and not asked again", &[Listed, Refuse, Poll, Wait(1_000)], UNKNOWN),
        ("away between two refusals", &[Listed, Refuse, Poll, Away, Wait(1_000), Poll, Refuse, Poll], FREE),
        ("refused twice, then doubted", &[Listed, Refuse, Poll, Wait(1_000), Poll, Doubt], FREE),
        ("doubted, then refused twice", &[Listed, Doubt, Refuse, Poll, Wait(1_000), Poll], FREE),
        ("refused twice, then away", &[Listed, Refuse, Poll, Wait(1_000), Poll, Away, Wait(60_000), Poll], FREE),
        ("refused twice, then read", &[Listed, Refuse, Poll, Wait(1_000), Poll, Answer, Poll], FROZEN),
        (
            "refused twice, then read, then doubted",
            &[Listed, Refuse, Poll, Wait(1_000), Poll, Answer, Poll, Doubt],
            DOUBTED,
        ),
        (
            "refused twice, then read, then refused for long",
            &[Listed, Refuse, Poll, Wait(1_000), Poll, Answer, Poll, Refuse, Poll, Wait(60_000), Poll],
            FROZEN,
        ),
        ("read, then refused for long", &[Listed, Poll, Refuse, Poll, Wait(60_000), Poll], FROZEN),
        (
            "read, then refused for long, then doubted",
            &[Listed, Poll, Refuse, Poll, Wait(60_000), Poll, Doubt],
            DOUBTED,
        ),
        (
            "read, then doubted, then refused for long",
            &[Listed, Poll, Doubt, Refuse, Poll, Wait(60_000), Poll],
            DOUBTED,
        ),
        ("read, then doubted, then read", &[Poll, Doubt, Poll], FROZEN),
        (
            "refused, then read by a sync, then refused",
            &[Listed, Refuse, Poll, Answer, Asked, Answered, Refuse, Wait(1_000), Poll],
            FROZEN,
        ),
        ("a read that was sent before a doubt is answered", &[Poll, Asked, Doubt, Answered], DOUBTED),
        ("the same after a later read", &[Poll, Asked, Doubt, Poll, Answered], FROZEN),
        ("a read that was sent before a thaw is answered after it was read", &[Asked, Thaw, Poll, Answered], FREE),
        ("read, then deleted", &[Poll, Delete, Poll], NEW),
        ("read, then deleted and created between two reads", &[Poll, Delete, Create, Poll], FREE),
        (
            "read, then deleted and created, and refused since",
            &[Listed, Poll, Delete, Create, Refuse, Poll, Wait(60_000), Poll],
            FROZEN,
        ),
        (
            "read, then found deleted, created and refused once",
            &[Listed, Poll, Delete, Poll, Create, Wait(60_000), Refuse, Poll],
            NEW,
        ),
        (
            "refused twice, found deleted, created and refused once",
            &[Listed, Refuse, Poll, Wait(1_000), Poll, Answer, Delete, Poll, Create, Wait(60_000), Refuse, Poll],
            NEW,
        ),
        (
            "refused twice, found deleted, created and refused twice",
            &[Listed, Refuse, Poll, Wait(1_000), Poll, Answer, Delete, Poll, Create, Refuse, Poll, Wait(1_000), Poll],
            FREE,
        ),
    ];
    for (sentence, steps, want) in rows {
        assert_eq!(after_polls(steps).await, want, "{sentence}");
    }
}

/// What happens in a process that watches all Namespaces. Versions are numbers.
enum Watched {
    /// The watch shows this version, with or without a freeze.
    Shown(u64, bool),
    /// The watch shows that it is gone.
    Gone,
    /// A sync reads this version.
    Read(u64, bool),
    /// The caches are doubted.
    Doubt,
    /// The CronJobs and Jobs are listed.
    Listed,
    /// A list of the Namespaces is refused.
    Refused,
    Wait(u64),
}

#[tokio::test(start_paused = true)]
async fn read_of_a_watched_namespace_is_kept_until_the_watch_shows_it_or_that_it_is_gone() {
    use Watched::*;

    type Row<'a> = (&'a str, &'a [Watched], (bool, [bool; 2]), bool);

    const UNKNOWN: (bool, [bool; 2]) = (false, [true, true]);
    const FREE: (bool, [bool; 2]) = (false, [false, false]);
    const FROZEN: (bool, [bool; 2]) = (true, [false, false]);
    let rows: [Row<'_>; 23] = [
        ("nothing", &[], UNKNOWN, false),
        ("shown", &[Shown(5, true)], FROZEN, false),
        ("read", &[Read(5, true)], FROZEN, true),
        ("read, then shown in an earlier version", &[Read(5, true), Shown(4, false)], FROZEN, true),
        ("read, then shown in that version", &[Read(5, true), Shown(5, true)], FROZEN, false),
        ("read, then shown in a later version", &[Read(5, true), Shown(6, false)], FREE, false),
        ("shown, then read in an earlier version", &[Shown(5, true), Read(4, false)], FROZEN, true),
        ("read twice, the earlier version last", &[Read(5, true), Read(4, false)], FROZEN, true),
        ("shown, then doubted", &[Shown(5, true), Doubt], (true, [false, true]), false),
        ("doubted, then shown", &[Doubt, Shown(5, true)], (true, [false, true]), false),
        ("shown, doubted and read", &[Shown(5, true), Doubt, Read(6, false)], FREE, true),
        (
            "shown, doubted, read and doubted",
            &[Shown(5, true), Doubt, Read(5, true), Doubt],
            (true, [false, true]),
            true,
        ),
        ("read, then doubted", &[Read(5, true), Doubt], (true, [false, true]), true),
        (
            "doubted, read, and shown in a later version",
            &[Shown(4, false), Doubt, Read(5, false), Shown(6, true)],
            FROZEN,
            true,
        ),
        ("shown, then gone", &[Shown(4, true), Gone], UNKNOWN, false),
        ("shown, read in a later version, then gone", &[Shown(4, true), Read(5, true), Gone], UNKNOWN, false),
        ("gone, and created without a freeze", &[Shown(4, true), Gone, Shown(9, false)], FREE, false),
        (
            "doubted, read, gone and created: the read of the earlier one confirms nothing",
            &[Doubt, Shown(4, true), Read(5, true), Gone, Shown(9, false)],
            (false, [false, true]),
            false,
        ),
        ("refused, before CronJobs are listed", &[Refused, Wait(60), Refused], UNKNOWN, false),
        ("refused as they have just been listed", &[Refused, Wait(60), Listed, Refused], UNKNOWN, false),
        ("refused a second after they were listed", &[Listed, Wait(1), Refused], FREE, false),
        ("refused, then doubted", &[Listed, Wait(1), Refused, Doubt], FREE, false),
        (
            "refused, then shown and doubted",
            &[Listed, Wait(1), Refused, Shown(5, true), Doubt],
            (true, [false, true]),
            false,
        ),
    ];
    let at = |version: u64, frozen: bool| {
        let not_before = frozen.then_some("2027-01-01T00:00:00Z");
        let metadata = json!({ "metadata": { "name": "shop", "uid": "u", "resourceVersion": version.to_string() } });
        let object = merged(metadata, annotated(&[("not-before", not_before)]));
        Namespace::decode(&object.to_string(), &Interner::default()).unwrap()
    };
    let name: Arc<str> = "shop".into();
    for (sentence, steps, want, is_kept) in rows {
        let store = Arc::new(Store::<Namespace>::new([None]));
        let namespaces = Namespaces::watched(Arc::clone(&store));
        for step in steps {
            let deltas = match *step {
                Shown(version, frozen) => store.upsert(at(version, frozen)),
                Gone => store.delete(&Namespace::key(&name), None).into_iter().collect(),
                _ => Vec::new(),
            };
            for delta in deltas {
                match delta {
                    Delta::Added(new) => namespaces.on_add(&new, false),
                    Delta::Updated { old, new } => namespaces.on_update(&old, &new),
                    Delta::Deleted { last, .. } => namespaces.on_delete(&last, false),
                }
            }
            match *step {
                Shown(..) | Gone => {}
                Read(version, frozen) => namespaces.learn(&name, namespaces.epoch(), Arc::new(at(version, frozen))),
                Doubt => namespaces.doubt(),
                Listed => {
                    namespaces.others_listed.get_or_init(Instant::now);
                }
                Refused => {
                    let status = ServerStatus { code: 403, ..ServerStatus::default() };
                    let error = ReflectorError {
                        operation: Operation::List,
                        resource: "/api/v1/namespaces".to_owned(),
                        cause: Cause::Status(status),
                    };
                    namespaces.failed(ResourceKind::NAMESPACE, &error);
                }
                Wait(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
            }
        }
        let is_read = [false, true].map(|doubted| namespaces.is_to_be_read(&name, doubted));
        assert_eq!((namespaces.restriction(&name).is_some(), is_read), want, "{sentence}");
        assert_eq!(!namespaces.read.is_empty(), is_kept, "{sentence}: what is kept");
    }
}

/// `doubted` is one of several controllers of a process that share their Namespaces.
#[tokio::test(start_paused = true)]
async fn doubt_of_any_controller_is_settled_by_a_read_after_it() {
    let (_server, _, control) = refusing(|_| false);
    let (name, namespaces) = (Arc::<str>::from("default"), Namespaces::watched(Arc::new(Store::new([]))));
    for round in 0..3 {
        let read = control.get_namespace(&name).await.unwrap();
        namespaces.learn(&name, namespaces.epoch(), read);
        assert!(!namespaces.is_to_be_read(&name, true), "round {round}: it was read since");
        namespaces.doubt();
        assert!(namespaces.is_to_be_read(&name, true), "round {round}: another doubt");
        assert!(!namespaces.is_to_be_read(&name, false), "round {round}: a decision takes what is known");
    }
}

#[tokio::test(start_paused = true)]
async fn namespace_that_may_be_watched_and_not_got_holds_nothing() {
    let world = World::new(START).await;
    world.create_cron_job("c", json!({})).await;
    world.catch_up().await;
    world.wire.judge(|ask| {
        Orders::from(if ask.is(Verb::Get, "namespaces") { Fate::Refused(403, "Forbidden") } else { Fate::Pass })
    });
    world.controller.doubt_caches();
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:00:30Z").await;
    stop.cancel();
    assert_eq!(world.seen_names(), [SLOT_OF_TEN]);
}

/// All rights on Namespaces are taken while it runs; then one comes with a CronJob.
#[tokio::test(start_paused = true)]
async fn namespace_that_is_new_after_the_rights_were_taken_holds_nothing() {
    let world = World::new(START).await;
    world.create_cron_job("c", json!({})).await;
    world.catch_up().await;
    world.wire.judge(|ask| {
        Orders::from(if ask.resource == "namespaces" && ask.verb != Verb::Create {
            Fate::Refused(403, "Forbidden")
        } else {
            Fate::Pass
        })
    });
    world.wire.cut_watches();
    let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "new" } });
    world.request("POST", "/api/v1/namespaces", &object).await.unwrap();
    world.request("POST", &CRON_JOBS.replace(NAMESPACE, "new"), &cron_job("c", json!({}))).await.unwrap();
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:00:40Z").await;
    stop.cancel();
    assert_eq!(world.seen_names(), [SLOT_OF_TEN; 2]);
}

#[tokio::test(start_paused = true)]
async fn freeze_that_is_removed_is_no_missed_slot_and_another_reason_is_no_news() {
    let world = World::new(START).await;
    world.create_cron_job("c", json!({})).await;
    freeze(&world, "2026-03-02T12:00:00Z").await;
    world.catch_up().await;
    let stop = world.work(2);
    world.pass_until("2026-03-02T10:20:10Z").await;
    annotate(&world, &[("reason", Some("another"))]).await;
    world.pass_until("2026-03-02T10:20:20Z").await;
    assert_eq!(world.reasons().await, ["Frozen"]);
    annotate(&world, &[("not-before", None)]).await;
    world.pass_until("2026-03-02T10:20:40Z").await;
    stop.cancel();
    let of = |suffix: &str| {
        let families = world.registry.gather();
        let family = families.iter().find(|family| family.name().ends_with(suffix)).unwrap();
        family.get_metric().iter().map(|metric| metric.get_counter().get_value()).sum::<f64>().to_string()
    };
    assert_eq!((world.seen().len(), of("cronjob_missed_total")), (1, "0".to_owned()));
}
