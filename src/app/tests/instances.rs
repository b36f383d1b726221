//! Several instances of the controller on one server, each with a lease and namespaces of its own.

use std::collections::BTreeMap;

use super::leases::{LEASES, ask, seconds};
use super::*;
use crate::metrics::encode;

/// An instance that runs.
struct Instance {
    registry: Registry,
    stop: CancellationToken,
    ended: JoinHandle<Result<(), AppError>>,
}

impl Instance {
    fn start(server: &ApiServer, clock: &SharedClock, identity: &str, lease: &str, namespaces: &[&str]) -> Self {
        let mut config = config(vec![ControllerKind::CronJob]);
        config.namespaces = namespaces.iter().map(|name| (*name).to_owned()).collect();
        config.leader_election.as_mut().unwrap().name = lease.to_owned();
        let registry = Registry::new();
        let context = ControllerContext::new(&config, &server.client(), &registry, clock, 1, None).unwrap();
        let (settings, rng) = (config.leader_election.as_ref().unwrap(), StdRng::seed_from_u64(1));
        let candidate = context.candidate(settings, server.client(), &registry, identity.to_owned(), rng).unwrap();
        let (context, stop) = (Arc::new(context), CancellationToken::new());
        let work = Work::new(&context, Some(candidate)).unwrap();
        let ended = tokio::spawn({
            let stop = stop.clone();
            async move { context.run_to_end(work, Vec::new(), stop).await }
        });
        Self { registry, stop, ended }
    }

    /// How many instances work in the same namespaces, and how many hold its lease and work in others.
    fn conflicts(&self) -> [u32; 2] {
        let text = encode(&self.registry);
        ["namespaces", "lease"].map(|reason| {
            let series = format!("cronjob_controller_instance_conflicts{{reason=\"{reason}\"}} ");
            text.lines().find_map(|line| line.strip_prefix(&*series)).map_or(99, |number| number.parse().unwrap())
        })
    }

    async fn end(self) {
        self.stop.cancel();
        self.ended.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn instances_whose_namespaces_overlap_notice_each_other_and_no_slot_runs_twice() {
    let clock: SharedClock = TestClock::new("2026-11-20T18:20:50Z".parse().unwrap());
    let server = server(&clock);
    for name in ["a", "b"] {
        create_named(&server, ControllerKind::CronJob, name).await;
    }
    let start = |identity, lease, namespaces: &[&str]| Instance::start(&server, &clock, identity, lease, namespaces);
    // As an older version left it, which said nothing.
    let released = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "one", "annotations": {"note": "kept"}}, "spec": {"holderIdentity": ""},
    });
    ask(&server, "POST", LEASES, &released).await;
    let one = start("1", "one", &["default", "shop"]);
    let apart = start("2", "apart", &["bank"]);
    tokio::time::sleep(seconds(60)).await;
    assert_eq!([one.conflicts(), apart.conflicts()], [[0, 0]; 2], "each has its own namespaces");
    for (lease, namespaces, note) in [("one", "default,shop", json!("kept")), ("apart", "bank", json!(null))] {
        let said =
            ask(&server, "GET", &format!("{LEASES}/{lease}"), &json!(null)).await["metadata"]["annotations"].take();
        let said = ["controllers", "namespaces"].map(|name| said[format!("cronjob-controller.dev/{name}")].clone());
        assert_eq!(said, [json!("cronjob"), json!(namespaces)], "{lease}");
        let kept = ask(&server, "GET", &format!("{LEASES}/{lease}"), &json!(null)).await;
        assert_eq!(kept["metadata"]["annotations"]["note"], note, "{lease}");
    }

    let all = start("3", "all", &[]);
    let waits = start("4", "apart", &["shop"]);
    tokio::time::sleep(seconds(60)).await;
    let seen = [&one, &apart, &all, &waits].map(Instance::conflicts);
    assert_eq!(seen, [[1, 0], [1, 0], [2, 0], [2, 1]], "and one waits for the lease of another");
    all.end().await;
    waits.end().await;
    tokio::time::sleep(seconds(60)).await;
    assert_eq!([one.conflicts(), apart.conflicts()], [[0, 0]; 2], "they are alone again");
    one.end().await;
    apart.end().await;

    let mut jobs: BTreeMap<String, usize> = BTreeMap::new();
    let changes = server.changes_after(0);
    for change in changes.iter().filter(|change| change.collection == "jobs.batch" && change.kind == ChangeKind::Added)
    {
        *jobs.entry(change.object["metadata"]["name"].to_string()).or_default() += 1;
    }
    let is_single = jobs.values().all(|number| *number == 1);
    assert!((6..=8).contains(&jobs.len()) && is_single, "{jobs:?}");
}

#[tokio::test(start_paused = true)]
async fn instance_that_may_not_list_leases_works() {
    let clock: SharedClock = TestClock::new("2026-11-20T18:20:50Z".parse().unwrap());
    let server = server(&clock);
    create(&server, ControllerKind::CronJob).await;
    let inner = server.clone().into_service();
    let client = client::on_service(tower::service_fn(move |request: Request<kube::client::Body>| {
        let inner = inner.clone();
        async move {
            if request.method() == http::Method::GET && request.uri().path().ends_with("/leases") {
                return Err(tower::BoxError::from("refused"));
            }
            tower::ServiceExt::oneshot(inner, request).await.map_err(tower::BoxError::from)
        }
    }));
    let replica = Replica { client, clock, identity: "me".into(), seed: 1, observer: None };
    let (config, stop) = (config(vec![ControllerKind::CronJob]), CancellationToken::new());
    let ended = tokio::spawn({
        let stop = stop.clone();
        async move { run_replica(&config, replica, stop).await }
    });
    tokio::time::sleep(seconds(200)).await;
    stop.cancel();
    ended.await.unwrap().unwrap();
    let created = server
        .changes_after(0)
        .iter()
        .filter(|change| change.collection == "jobs.batch" && change.kind == ChangeKind::Added)
        .count();
    assert_eq!(created, 4, "a Job each minute");
}

/// Its RoleBinding may be gone with the namespace: after a restart that one waits, and no other.
#[tokio::test(start_paused = true)]
async fn instance_works_in_the_namespaces_that_it_may_read() {
    // (what may not be listed in the other namespace, for how long, the Jobs there by then)
    for (sentence, resource, until, there) in [
        ("its CronJobs", "/namespaces/bank/cronjobs", 500, 0),
        ("its Jobs", "/namespaces/bank/jobs", 500, 0),
        ("its Jobs, at first", "/namespaces/bank/jobs", 60, 3),
    ] {
        let clock: SharedClock = TestClock::new("2026-11-20T18:20:50Z".parse().unwrap());
        let server = server(&clock);
        ask(&server, "POST", "/api/v1/namespaces", &json!({"metadata": {"name": "bank"}})).await;
        for namespace in ["default", "bank"] {
            let container = json!({"name": "main", "image": "example.com/none"});
            let pod = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
            let cron_job = json!({
                "metadata": {"name": "a"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": pod}}},
            });
            ask(&server, "POST", &format!("/apis/batch/v1/namespaces/{namespace}/cronjobs"), &cron_job).await;
        }
        let (inner, began) = (server.clone().into_service(), tokio::time::Instant::now());
        let client = client::on_service(tower::service_fn(move |request: Request<kube::client::Body>| {
            let inner = inner.clone();
            async move {
                let is_list = request.method() == http::Method::GET && request.uri().path().ends_with(resource);
                if is_list && began.elapsed() < seconds(until) {
                    let status = json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden"});
                    let body = http_body_util::Full::new(Bytes::from(status.to_string()));
                    return Ok(http::Response::builder()
                        .status(403)
                        .body(http_body_util::BodyExt::boxed_unsync(body))?);
                }
                tower::ServiceExt::oneshot(inner, request).await.map_err(tower::BoxError::from)
            }
        }));
        let replica = Replica { client, clock, identity: "me".into(), seed: 1, observer: None };
        let (mut config, stop) = (config(vec![ControllerKind::CronJob]), CancellationToken::new());
        config.namespaces = ["default", "bank"].map(str::to_owned).to_vec();
        let ended = tokio::spawn({
            let stop = stop.clone();
            async move { run_replica(&config, replica, stop).await }
        });
        tokio::time::sleep(seconds(190)).await;
        stop.cancel();
        ended.await.unwrap().unwrap();
        let created = |namespace: &str| {
            let changes = server.changes_after(0);
            let added = changes.iter().filter(|change| change.kind == ChangeKind::Added);
            let jobs = added.filter(|change| change.collection == "jobs.batch");
            jobs.filter(|change| change.object["metadata"]["namespace"] == namespace).count()
        };
        assert_eq!(["default", "bank"].map(created), [3, there], "{sentence}");
    }
}
