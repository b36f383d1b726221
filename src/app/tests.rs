//! How a process runs and ends, on the embedded server and paused time.
#![allow(clippy::unwrap_used)]

mod hang;
mod instances;
mod leases;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, ChangeKind, kinds};
use axum::body::Bytes;
use http::Request;
use serde_json::json;

use super::*;
use crate::api::crd;

#[tokio::test(start_paused = true)]
async fn the_last_event_is_written_before_the_lease_is_given_up() {
    let clock: SharedClock = TestClock::new("2026-11-20T18:20:59Z".parse().unwrap());
    let server = server(&clock);
    create(&server, ControllerKind::CronJob).await;
    let config = config(vec![ControllerKind::CronJob]);
    let stop = CancellationToken::new();
    let replica = Replica { client: server.client(), clock, identity: "me".into(), seed: 1, observer: None };
    let ended = tokio::spawn({
        let stop = stop.clone();
        async move { run_replica(&config, replica, stop).await }
    });
    let order_of = |collection: &str| {
        let changes = server.changes_after(0);
        changes.iter().rev().find(|change| change.collection == collection).map(|change| change.revision)
    };
    // The Job exists, and the controller has yet to record its Event.
    while order_of("jobs.batch").is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.cancel();
    ended.await.unwrap().unwrap();

    let told =
        |change: &apiserver::Committed| change.collection == "events" && change.object["reason"] == "SuccessfulCreate";
    assert!(server.changes_after(0).iter().any(told), "the Job's Event is missing");
    assert!(
        order_of("events") < order_of("leases.coordination.k8s.io"),
        "an Event was written after the lease was given up"
    );
}

#[tokio::test(start_paused = true)]
async fn the_controllers_that_are_on_work_under_one_lease_and_the_others_do_not() {
    let on = [ControllerKind::Tutorial, ControllerKind::ApiExample];
    let clock: SharedClock = TestClock::new("2026-11-20T18:20:50Z".parse().unwrap());
    let server = server(&clock);
    for controller_kind in ControllerKind::ALL {
        create(&server, controller_kind).await;
    }
    let stop = CancellationToken::new();
    let replica = Replica { client: server.client(), clock, identity: "me".into(), seed: 1, observer: None };
    let ended = tokio::spawn({
        let (config, stop) = (config(on.to_vec()), stop.clone());
        async move { run_replica(&config, replica, stop).await }
    });
    tokio::time::sleep(Duration::from_secs(15)).await;
    stop.cancel();
    ended.await.unwrap().unwrap();

    let added = |collection: &str| {
        let changes = server.changes_after(0).into_iter();
        let added = changes.filter(|change| change.collection == collection && change.kind == ChangeKind::Added);
        added.map(|change| change.object["metadata"]["ownerReferences"][0]["apiVersion"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(added("jobs.batch"), ["batch.tutorial.kubebuilder.io/v1"]);
    assert_eq!(added("pods"), ["myapp.my.domain/v1alpha1"]);
    assert_eq!(added("leases.coordination.k8s.io").len(), 1);
}

/// What happens to the creates of Jobs.
#[derive(Clone, Copy, Debug)]
enum Creates {
    /// No answer ever comes.
    Swallowed,
    /// The connection breaks.
    Broken,
    /// The server answers after this many seconds.
    Slow(u64),
}

/// A client of the server, in which `first` precedes each create of a Job.
fn client_with<F>(server: &ApiServer, first: impl Fn() -> F + Clone + Send + 'static) -> kube::Client
where
    F: Future<Output = Result<(), tower::BoxError>> + Send,
{
    let inner = server.clone().into_service();
    client::on_service(tower::service_fn(move |request: Request<kube::client::Body>| {
        let (inner, first) = (inner.clone(), first.clone());
        async move {
            if request.method() == http::Method::POST && request.uri().path().ends_with("/jobs") {
                first().await?;
            }
            tower::ServiceExt::oneshot(inner, request).await.map_err(tower::BoxError::from)
        }
    }))
}

/// Runs a replica whose creates of Jobs meet this and stops it two seconds after the slot. Returns how it ended, and who
/// holds the lease a minute later.
async fn ended_in_a_create(creates: Creates) -> (Result<(), AppError>, String) {
    let clock: SharedClock = TestClock::new("2026-11-20T18:20:50Z".parse().unwrap());
    let server = server(&clock);
    create(&server, ControllerKind::CronJob).await;
    let client = client_with(&server, move || async move {
        match creates {
            Creates::Swallowed => std::future::pending().await,
            Creates::Broken => return Err(tower::BoxError::from("connection reset")),
            Creates::Slow(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        }
        Ok(())
    });
    let stop = CancellationToken::new();
    let replica = Replica { client, clock, identity: "me".into(), seed: 1, observer: None };
    let ended = tokio::spawn({
        let (config, stop) = (config(vec![ControllerKind::CronJob]), stop.clone());
        async move { run_replica(&config, replica, stop).await }
    });
    tokio::time::sleep(Duration::from_secs(12)).await;
    stop.cancel();
    let result = ended.await.unwrap();
    let changes = server.changes_after(0);
    let lease = changes.iter().rev().find(|change| change.collection == "leases.coordination.k8s.io").unwrap();
    (result, lease.object["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_given_up_only_after_every_create_has_ended() {
    let (result, holder) = ended_in_a_create(Creates::Slow(6)).await;
    assert!(result.is_ok() && holder.is_empty(), "waited for, then released: {result:?}, {holder}");
    // The server's limit for the request was the lease's end less the time until its receipt, and five more seconds have passed: it
    // creates nothing any more.
    let sent = tokio::time::Instant::now() + Duration::from_secs(10);
    let (result, holder) = ended_in_a_create(Creates::Swallowed).await;
    assert!(result.is_ok() && holder.is_empty(), "given up, then released: {result:?}, {holder}");
    assert!(sent.elapsed() > Duration::from_secs(13), "released after {:?}", sent.elapsed());
    let (result, holder) = ended_in_a_create(Creates::Broken).await;
    assert!(result.is_ok() && holder == "me", "no answer that says anything: left to run out: {result:?}, {holder}");
}

fn server(clock: &SharedClock) -> ApiServer {
    let mut resources = kinds::builtin();
    resources.extend(crd::all().iter().map(|definition| kinds::custom(definition).unwrap()));
    ApiServer::new(apiserver::Config::new(Arc::clone(clock), resources))
}

#[tokio::test(start_paused = true)]
async fn jobs_that_are_due_at_once_are_created_before_any_status_is_written() {
    let clock: SharedClock = TestClock::new("2026-11-20T18:20:50Z".parse().unwrap());
    let server = server(&clock);
    let names = ["a", "b", "c", "d"];
    for name in names {
        create_named(&server, ControllerKind::CronJob, name).await;
    }
    // There are more workers than CronJobs, so all creates are sent at once. Each takes ten milliseconds more than the one before.
    let sent = Arc::new(AtomicU64::new(0));
    let client = client_with(&server, move || {
        let number = sent.fetch_add(1, Ordering::Relaxed);
        async move {
            tokio::time::sleep(Duration::from_millis(10 * number)).await;
            Ok(())
        }
    });
    let before = server.changes_after(0).len();
    let stop = CancellationToken::new();
    let replica = Replica { client, clock, identity: "me".into(), seed: 1, observer: None };
    let ended = tokio::spawn({
        let config =
            Config { concurrent_cronjob_syncs: 64.try_into().unwrap(), ..config(vec![ControllerKind::CronJob]) };
        let stop = stop.clone();
        async move { run_replica(&config, replica, stop).await }
    });
    tokio::time::sleep(Duration::from_secs(15)).await;
    stop.cancel();
    ended.await.unwrap().unwrap();
    let changes = server.changes_after(0).into_iter().skip(before).map(|change| change.collection);
    let written: Vec<_> = changes.filter(|to| ["jobs.batch", "cronjobs.batch"].contains(&to.as_str())).collect();
    assert_eq!(written, [["jobs.batch"; 4], ["cronjobs.batch"; 4]].concat());
}

/// Creates a CronJob that runs every minute.
async fn create(server: &ApiServer, controller_kind: ControllerKind) {
    create_named(server, controller_kind, "minutely").await;
}

async fn create_named(server: &ApiServer, controller_kind: ControllerKind, name: &str) {
    let container = json!({"name": "main", "image": "example.com/none"});
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    let template = if controller_kind == ControllerKind::ApiExample { pod } else { json!({"spec": {"template": pod}}) };
    let object = json!({
        "apiVersion": controller_kind.parent.api_version(), "kind": controller_kind.parent.kind, "metadata": {"name": name},
        "spec": {"schedule": "* * * * *", "jobTemplate": template},
    });
    let request =
        Request::post(controller_kind.parent.path(Some("default"))).header("content-type", "application/json");
    let answer = server.handle(request.body(Bytes::from(object.to_string())).unwrap()).await;
    assert!(answer.status().is_success());
}

fn config(controllers: Vec<ControllerKind>) -> Config {
    let seconds = Duration::from_secs;
    Config {
        controllers,
        leader_election: Some(LeaderElectionConfig {
            namespace: "kube-system".into(),
            name: "cronjob-controller".into(),
            lease_duration: seconds(15),
            renew_deadline: seconds(10),
            retry_period: seconds(2),
        }),
        ..Config::embedded(1.try_into().unwrap())
    }
}
