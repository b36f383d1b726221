//! How a process ends, on the embedded server and paused time.
#![allow(clippy::unwrap_used)]

use axum::body::Bytes;
use http::Request;
use serde_json::json;

use super::*;
use crate::apiserver::{self, ApiServer, kinds};
use crate::clock::TestClock;

#[tokio::test(start_paused = true)]
async fn the_last_event_is_written_before_the_lease_is_given_up() {
    let clock: SharedClock = TestClock::new("2026-11-20T18:20:59Z".parse().unwrap());
    let server = ApiServer::new(apiserver::Config::new(Arc::clone(&clock), kinds::builtin()));
    let container = json!({"name": "main", "image": "example.com/none"});
    let template = json!({"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}});
    let cron_job = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "minutely"},
        "spec": {"schedule": "* * * * *", "jobTemplate": template},
    });
    let request =
        Request::post("/apis/batch/v1/namespaces/default/cronjobs").header("content-type", "application/json");
    let answer = server.handle(request.body(Bytes::from(cron_job.to_string())).unwrap()).await;
    assert!(answer.status().is_success());

    let seconds = Duration::from_secs;
    let config = Config {
        leader_election: Some(LeaderElectionConfig {
            namespace: "kube-system".into(),
            name: "cronjob-controller".into(),
            lease_duration: seconds(15),
            renew_deadline: seconds(10),
            retry_period: seconds(2),
        }),
        ..Config::embedded(1.try_into().unwrap())
    };
    let stop = CancellationToken::new();
    let replica = Replica { client: server.client(), clock, identity: "me".into(), seed: 1, onlooker: None };
    let ended = tokio::spawn({
        let stop = stop.clone();
        async move { run_replica(&config, replica, stop).await }
    });
    let order_of = |collection: &str| {
        let changes = server.changes_after(0);
        changes.iter().rev().find(|change| change.collection == collection).map(|change| change.revision)
    };
    // The Job is there, and the controller has yet to tell of it.
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
