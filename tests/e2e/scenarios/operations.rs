//! Scenarios about operating the controller: its endpoints, and the rights in the manifests.

use std::sync::Arc;

use chrono::TimeDelta;
use http::Method;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::json;

use testkit::driver::{
    CRON_JOBS, DEPLOYMENTS, EVENTS, JOBS, LEASES, Resource, SOON, cron_job, eventually, hourly_at, minutes_ago, request,
};
use testkit::fixture::account::{NAME, SYSTEM_NAMESPACE, kubectl_apply};
use testkit::fixture::controller::Controller;
use testkit::world::World;

const QUOTAS: Resource = Resource("api/v1", "resourcequotas");

pub async fn observes(world: Arc<World>) -> String {
    let ns = world.namespace("observed").await;
    let slot = minutes_ago(10);
    ns.create_overdue(&cron_job("seen", &hourly_at(slot), &json!({})), slot - TimeDelta::hours(1)).await;
    ns.job("seen", slot).await;
    let controller = world.shared();
    let metrics = controller.get("/metrics").await.unwrap();
    for line in [
        "# TYPE workqueue_depth gauge",
        "workqueue_depth{name=\"cronjob\"} ",
        "workqueue_adds_total{name=\"cronjob\"} ",
        "workqueue_queue_duration_seconds_bucket{name=\"cronjob\",le=\"1e-08\"} ",
        "workqueue_work_duration_seconds_count{name=\"cronjob\"} ",
        "workqueue_retries_total{name=\"cronjob\"} ",
        "# TYPE cronjob_controller_job_creation_skew_duration_seconds histogram",
        "cronjob_controller_job_creation_skew_duration_seconds_bucket{le=\"1\"} ",
        "cronjob_controller_job_creation_skew_duration_seconds_count ",
        "rest_client_requests_total{",
    ] {
        assert!(metrics.lines().any(|found| found.starts_with(line)), "no line of /metrics starts with {line}");
    }
    let count = metrics
        .lines()
        .find_map(|line| line.strip_prefix("cronjob_controller_job_creation_skew_duration_seconds_count "))
        .and_then(|value| value.parse::<f64>().ok());
    assert!(count.is_some_and(|count| count >= 1.0), "no creation was measured: {count:?}");
    controller.get("/configz").await.unwrap();
    if world.controller == Controller::Ours {
        assert!(controller.get("/version").await.unwrap().contains("gitVersion"));
        for path in ["/healthz", "/livez", "/readyz"] {
            assert_eq!(controller.get(path).await.unwrap(), "ok", "{path}");
        }
        let verbose = controller.get("/readyz?verbose").await.unwrap();
        assert!(verbose.contains("[+]"), "{verbose}");
    }
    format!("{} lines of metrics", metrics.lines().count())
}

pub async fn rights(world: Arc<World>) -> String {
    let client = world.plane.admin();
    let user = format!("system:serviceaccount:{SYSTEM_NAMESPACE}:{NAME}");
    let table = [
        ("batch", "cronjobs", "", "watch", true),
        ("batch", "cronjobs", "status", "patch", true),
        ("batch", "cronjobs", "finalizers", "update", true),
        ("batch", "jobs", "", "create", true),
        ("batch", "jobs", "", "delete", true),
        ("", "events", "", "create", true),
        ("batch", "cronjobs", "", "create", false),
        ("batch", "cronjobs", "", "update", false),
        ("batch", "cronjobs", "", "patch", false),
        ("batch", "cronjobs", "", "delete", false),
        ("batch", "jobs", "", "update", false),
        ("batch", "jobs", "", "deletecollection", false),
        ("batch", "jobs", "status", "patch", false),
        ("", "pods", "", "create", false),
        ("", "pods", "", "list", false),
        ("", "secrets", "", "get", false),
        ("", "events", "", "list", false),
        ("", "namespaces", "", "list", true),
        ("", "namespaces", "", "patch", false),
        ("coordination.k8s.io", "leases", "", "update", false),
        ("rbac.authorization.k8s.io", "clusterroles", "", "bind", false),
    ];
    for (group, resource, subresource, verb, expected) in table {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": ["system:serviceaccounts", "system:authenticated"], "resourceAttributes": {
                "namespace": "default", "group": group, "resource": resource, "subresource": subresource, "verb": verb,
            }},
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = request(&client, Method::POST, path, Some(&review)).await.unwrap();
        assert_eq!(answer["status"]["allowed"], expected, "may {verb} {group}/{resource}/{subresource}");
    }
    // The account's kubeconfig is complete: its token is valid, and its certificate authority is the server's.
    request(&account_client(&world).await, Method::GET, "/apis/batch/v1/cronjobs", None).await.unwrap();
    format!("{} reviews", table.len())
}

pub async fn manifests(world: Arc<World>) -> String {
    kubectl_apply(&world.plane.admin_kubeconfig(), "manifests/samples", &["--dry-run=server"]).unwrap();
    // No controller creates the Deployment's Pods here; the test creates one as its ReplicaSet would.
    let system = world.system();
    let template = system.get(DEPLOYMENTS, NAME).await.unwrap()["spec"]["template"].clone();
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asked-for", "labels": template["metadata"]["labels"]},
        "spec": template["spec"],
    });
    let ask = async |namespace: &str| {
        let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
        request(&world.plane.admin(), Method::POST, &path, Some(&pod)).await
    };
    // Like some clusters, this API server requires a quota for Pods of that priority.
    let elsewhere = ask("default").await.expect_err("no quota there");
    assert!(elsewhere.contains("insufficient quota to match these scopes"), "{elsewhere}");
    // kube-controller-manager, which would compute the quota's usage, does not run here.
    let counted = json!({"hard": {"pods": "20"}, "used": {"pods": "0"}});
    system.patch_status(QUOTAS, "cronjob-controller-critical-pods", &counted).await;
    eventually("a Pod of the Deployment is let in", SOON, || async { ask(SYSTEM_NAMESPACE).await.ok() }).await;
    let namespace = format!("/api/v1/namespaces/{SYSTEM_NAMESPACE}");
    let namespace = request(&world.plane.admin(), Method::GET, &namespace, None).await.unwrap();
    assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    String::new()
}

/// No other scenario has such a large CronJob, so the policy may apply to all namespaces.
pub async fn size_policy(world: Arc<World>) -> String {
    let kubeconfig = world.plane.admin_kubeconfig();
    let ns = world.namespace("sized").await;
    let admin = world.plane.admin();
    kubectl_apply(&kubeconfig, "manifests/samples/policy", &[]).unwrap();
    let create = async |name: &str, schedule: &str, characters: usize| {
        let container = json!({"name": "main", "image": "example.com/none", "args": ["x".repeat(characters)]});
        let template = json!({"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}});
        let spec = json!({"suspend": true, "jobTemplate": template});
        let object = cron_job(name, schedule, &spec);
        let path = format!("{}?dryRun=All", ns.path(CRON_JOBS, ""));
        request(&admin, Method::POST, &path, Some(&object)).await.err().unwrap_or_default()
    };
    eventually("the policy to hold", SOON, || async {
        create("large", "0 0 * * *", 20_000).await.contains("at most 16384 characters").then_some(())
    })
    .await;
    let long = format!("{}0 * * * *", "0,".repeat(600));
    assert!(create("long", &long, 10).await.contains("at most 1024 characters"));
    assert_eq!(create("small", "0 0 * * *", 16_000).await, "");
    String::new()
}

/// The API server reports in each answer the FlowSchema of its request.
pub async fn priority(world: Arc<World>) -> String {
    let account = account_client(&world).await;
    let admin = world.plane.admin();
    let ns = world.namespace("queued").await;
    let system = world.system();
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "x"}, "involvedObject": {"namespace": "queued"}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/none"}],
    }}}});
    let table = [
        (Method::GET, "/apis/batch/v1/cronjobs".to_owned(), None, "cronjob-controller"),
        (Method::POST, ns.path(JOBS, ""), Some(job), "cronjob-controller"),
        (Method::GET, system.path(LEASES, NAME), None, "cronjob-controller-leader-election"),
        (Method::POST, ns.path(EVENTS, ""), Some(event), "service-accounts"),
    ];
    for (method, path, body, schema) in table {
        let schema_path = format!("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/{schema}");
        let expected = request(&admin, Method::GET, &schema_path, None).await.unwrap();
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        eventually(format!("{method} {path} is put under {schema}"), SOON, || async {
            let request = http::Request::builder()
                .method(&method)
                .uri(format!("{path}?dryRun=All"))
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(body.clone().into());
            let answer = account.send(request.unwrap()).await.unwrap();
            let seen = answer.headers().get("x-kubernetes-pf-flowschema-uid")?.to_str().ok()?;
            (expected["metadata"]["uid"] == seen).then_some(())
        })
        .await;
    }
    let level = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/cronjob-controller";
    let schema = request(&admin, Method::GET, level, None).await.unwrap();
    let conditions = schema["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|one| one["type"] == "Dangling" && one["status"] == "False"), "{conditions:?}");
    String::new()
}

/// A client with the account's own token, from a kubeconfig that names the server's certificate authority.
async fn account_client(world: &World) -> kube::Client {
    let options = KubeConfigOptions::default();
    let kubeconfig = Kubeconfig::read_from(&world.account).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    kube::Client::try_from(config).unwrap()
}
