#![allow(clippy::unwrap_used)]

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, Config};
use serde_json::json;

use super::*;
use crate::cli::cluster::create;
use crate::client;
use crate::controller::tests::wire::{Fate, Wire};

/// The status of a CronJob that has never run says nothing.
#[tokio::test(start_paused = true)]
async fn leases_say_which_controller_runs_a_cron_job_and_whether_its_policies_count() {
    let clock = TestClock::new("2026-11-19T03:00:00Z".parse().unwrap());
    let client = ApiServer::new(Config::builtin(clock.clone())).client();
    let template = json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
    }}}});
    let cron_job = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "new", "annotations": {"cronjob-controller.dev/exclude": "Sun"}},
        "spec": {"schedule": "0 2 * * *", "jobTemplate": template},
    });
    let post = async |collection: &str, object: &Value| {
        create(&client, collection, object.to_string().into_bytes(), "create").await.unwrap();
    };
    post("/apis/batch/v1/namespaces/default/cronjobs", &cron_job).await;
    let lease = async |name: &str, renewed: &str| {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
            "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": renewed},
        });
        post("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", &lease).await;
    };
    lease("kube-controller-manager", "2026-11-19T02:00:00.000000Z").await;
    let (source, informers) = Source::of_cluster(client.clone(), None, &"".into());
    let cancel = CancellationToken::new();
    let running = tokio::spawn(informers.run(Arc::clone(&source), clock, cancel.clone()));
    let seen = async || {
        tokio::time::sleep(LEASE_PERIOD + Duration::from_secs(1)).await;
        let name = ObjectName::new("default", "new");
        let watched = source.cron_jobs.get(&name).unwrap();
        let (in_charge, cron_job) = source.seen(&watched);
        let known = source.known(&watched, Zone::UTC, "2026-11-19T03:00:00Z".parse().unwrap());
        assert_eq!(known.facts.in_charge, in_charge);
        (in_charge, cron_job.policies.is_some(), source.changes.take().contains(&name))
    };
    assert_eq!(seen().await, (InCharge::InTree, false, true), "only kube-controller-manager runs");
    assert_eq!(seen().await, (InCharge::InTree, false, false), "nothing has changed");
    lease("cronjob-controller", "2026-11-19T03:00:00.000000Z").await;
    assert_eq!(seen().await, (InCharge::Own, true, true), "this one holds a lease, and the other does not any more");
    cancel.cancel();
    running.await.unwrap();
}

/// Otherwise a frozen CronJob would look overdue for as long.
#[tokio::test(start_paused = true)]
async fn freeze_lasts_while_namespaces_cannot_be_read() {
    let clock = TestClock::new("2026-11-19T03:00:00Z".parse().unwrap());
    let server = ApiServer::new(Config::builtin(clock.clone()));
    let frozen = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "shop", "annotations": {"cronjob-controller.dev/not-before": "2026-11-20T03:00:00Z"},
    }});
    create(&server.client(), "/api/v1/namespaces", frozen.to_string().into_bytes(), "create").await.unwrap();
    let wire = Wire::new();
    let client = client::on_service(wire.around(server.into_service()));
    let (source, informers) = Source::of_cluster(client, None, &"".into());
    let cancel = CancellationToken::new();
    let running = tokio::spawn(informers.run(Arc::clone(&source), clock, cancel.clone()));
    for (sentence, refused) in
        [("read", None), ("throttled", Some(429)), ("forbidden", Some(403)), ("read again", None)]
    {
        wire.judge(move |ask| match refused {
            Some(code) if ask.resource == "namespaces" => Fate::Refused(code, "Refused"),
            _ => Fate::Pass,
        });
        tokio::time::sleep(LEASE_PERIOD + Duration::from_secs(1)).await;
        let restrictions = source.restrictions.read();
        assert!(restrictions.of("shop").is_some(), "{sentence}");
        assert_eq!(restrictions.unread.is_some(), refused.is_some(), "{sentence}");
    }
    cancel.cancel();
    running.await.unwrap();
}
