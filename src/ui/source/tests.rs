#![allow(clippy::unwrap_used)]

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, Config};
use serde_json::json;

use super::*;
use crate::cli::cluster::create;

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
