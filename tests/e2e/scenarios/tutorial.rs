//! The other kinds: `manifests/tutorial-self-signed` on a real API server, with the controller's self-signed certificate.

use std::sync::Arc;

use apimachinery::clock::SystemClock;
use cronjob_controller::api::policy::SPREAD;
use http::Method;
use serde_json::{Value, json};

use testkit::controller_kinds::{self, API_EXAMPLES, CRON_JOBS, PODS, TestCluster, example, tutorial};
use testkit::driver::{
    CRON_JOBS as NATIVE, DEPLOYMENTS, JOBS, Namespace, Resource, SOON, cron_job, eventually, request, rfc3339,
    sleep_until, upcoming_minute,
};
use testkit::fixture::account::{NAME, account_kubeconfig, kubectl_apply};
use testkit::fixture::control_plane::free_port;
use testkit::fixture::controller::{Controller, Running};
use testkit::world::{self, World, deployment_args};

pub const SYSTEM: &str = "cronjob-tutorial-system";
const CONFIGURATIONS: [&str; 2] = [
    "mutatingwebhookconfigurations/cronjob-controller-mutating-webhook",
    "validatingwebhookconfigurations/cronjob-controller-validating-webhook",
];

pub async fn admission(world: Arc<World>) -> String {
    let admin = world.plane.admin();
    kubectl_apply(&world.plane.admin_kubeconfig(), "manifests/tutorial-self-signed", &[]).unwrap();
    let ports = [free_port(), free_port()];
    call_by_url(&admin, ports[0], "tutorial").await;
    // Two replicas at once, as the Deployment has, with its arguments and its account.
    let replicas = futures::future::join_all(ports.map(|port| start(&world, port, &[]))).await;

    let ns = world.namespace("tutorial").await;
    let probe = tutorial("probe", &json!({ "suspend": true }));
    eventually("the API server reaches the webhooks", SOON, || async {
        request(&admin, Method::POST, &ns.path(CRON_JOBS, ""), Some(&probe)).await.ok()
    })
    .await;
    let minor = world.plane.minor();
    let cluster = TestCluster { client: admin.clone(), clock: Arc::new(SystemClock), namespace: ns.clone(), minor };
    controller_kinds::defaults(&cluster).await;
    let refused = controller_kinds::refusals(&cluster).await;
    controller_kinds::columns(&cluster).await;
    kubectl_apply(
        &world.plane.admin_kubeconfig(),
        "manifests/samples/tutorial",
        &["--dry-run=server", "--namespace=tutorial"],
    )
    .unwrap();
    let lived = controller_kinds::live(&cluster).await;

    // Neither a deletion nor a status change calls a webhook whose server is gone.
    for replica in replicas {
        replica.kill();
    }
    ns.patch_status(CRON_JOBS, "minimal", &json!({ "lastScheduleTime": "2026-01-01T00:00:00Z" })).await;
    ns.delete(CRON_JOBS, "minimal").await;
    assert!(ns.get(CRON_JOBS, "minimal").await.is_none());

    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let requests = world.plane.audit(&format!("system:serviceaccount:{SYSTEM}:{NAME}"));
    let forbidden = world::refused(&requests);
    assert!(!requests.is_empty() && forbidden.is_empty(), "the account's rights do not cover {forbidden:?}");
    format!("{refused} refusals, {lived} lives")
}

/// All three kinds run a minute together. The test acts as kubelet and Job controller.
pub async fn side_by_side(world: Arc<World>) -> String {
    let admin = world.plane.admin();
    let ports = apply_afresh(&world, 1, "side-by-side").await;
    // The previous leader may have been killed.
    let ours = start(&world, ports[0], &["--leader-elect=false"]).await;
    let args = ["-v=1", "--leader-elect=false"].map(str::to_owned);
    let kubeconfig = world.plane.admin_kubeconfig();
    let in_tree = Controller::InTree.start(&world.plane, "beside", &kubeconfig, &args, &[]).await.unwrap();

    let ns = world.namespace("side-by-side").await;
    let slot = upcoming_minute().await;
    let none = json!({ "successfulJobsHistoryLimit": 0 });
    let every_minute = |mut object: Value| {
        object["spec"]["schedule"] = json!("* * * * *");
        object
    };
    let mut sample = every_minute(tutorial("sample", &none));
    // An offset of zero; the record of decided slots is in its status.
    sample["metadata"]["annotations"][SPREAD] = json!("1s");
    eventually("the API server reaches the webhooks", SOON, || async {
        request(&admin, Method::POST, &ns.path(CRON_JOBS, ""), Some(&sample)).await.ok()
    })
    .await;
    ns.create(API_EXAMPLES, &every_minute(example("pods", &json!({ "successfulJobHistoryLimit": 0 })))).await;
    ns.create(NATIVE, &cron_job("native", "* * * * *", &none)).await;

    sleep_until(slot, chrono::TimeDelta::zero()).await;
    let seconds = slot.timestamp();
    let (own_job, own_pod) = (format!("sample-{seconds}"), format!("pods-{seconds}"));
    let (job, skew) = eventually("the tutorial's Job", SOON, || async {
        Some((ns.get(JOBS, &own_job).await?, chrono::Utc::now() - slot))
    })
    .await;
    assert_eq!(job["metadata"]["annotations"]["batch.tutorial.kubebuilder.io/scheduled-at"], rfc3339(slot));
    assert_eq!(job["metadata"]["ownerReferences"][0]["apiVersion"], "batch.tutorial.kubebuilder.io/v1");
    let pod = eventually("the ApiExample's Pod", SOON, || ns.get(PODS, &own_pod)).await;
    assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "ApiExample");
    let native_job = ns.job("native", slot).await["metadata"]["name"].as_str().unwrap().to_owned();
    let active = [(CRON_JOBS, "sample", &own_job), (API_EXAMPLES, "pods", &own_pod), (NATIVE, "native", &native_job)];
    for (resource, name, child) in active {
        status(&ns, resource, name, &format!("{child} is active"), |status| status["active"][0]["name"] == **child)
            .await;
    }

    ns.complete_job(&native_job).await;
    status(&ns, NATIVE, "native", "ended", |status| status["active"].is_null()).await;
    eventually("the in-tree controller prunes its Job", SOON, || async {
        ns.get(JOBS, &native_job).await.is_none().then_some(())
    })
    .await;
    assert_eq!(ns.job_names().await, [own_job.as_str()], "and leaves the other's alone");
    ns.complete_job(&own_job).await;
    ns.patch_status(PODS, &own_pod, &json!({ "phase": "Succeeded" })).await;
    for (parents, name, children, child) in
        [(CRON_JOBS, "sample", JOBS, &own_job), (API_EXAMPLES, "pods", PODS, &own_pod)]
    {
        let is_over = |status: &Value| status["active"].is_null() && status["lastScheduleTime"] == rfc3339(slot);
        let status = status(&ns, parents, name, "ended", is_over).await;
        assert_eq!(status["conditions"].is_null(), parents == API_EXAMPLES, "{status}");
        assert_eq!(status["countedFrom"].is_string(), parents == CRON_JOBS, "{status}");
        eventually("what ended is pruned", SOON, || async { ns.get(children, child).await.is_none().then_some(()) })
            .await;
    }

    // No work goes on while the next scenario has the control plane to itself.
    ours.kill();
    in_tree.kill();
    let requests = world.plane.audit(&format!("system:serviceaccount:{SYSTEM}:{NAME}"));
    let forbidden = world::refused(&requests);
    assert!(forbidden.is_empty(), "the account's rights do not cover {forbidden:?}");
    let is_here = |event: &&Value| event["verb"] == "delete" && event["objectRef"]["namespace"] == ns.name;
    let deletions = requests.iter().filter(is_here);
    let mut deleted: Vec<&str> = deletions.filter_map(|event| event["objectRef"]["name"].as_str()).collect();
    deleted.sort_unstable();
    assert_eq!(deleted, [own_pod, own_job]);
    format!("the Job was seen {} ms after the minute", skew.num_milliseconds())
}

/// Waits until the status of an object of any of the kinds satisfies `judge`.
async fn status(ns: &Namespace, of: Resource, name: &str, what: &str, judge: impl Fn(&Value) -> bool) -> Value {
    eventually(format!("status of {name}: {what}"), SOON, || async {
        let status = ns.get(of, name).await?["status"].take();
        judge(&status).then_some(status)
    })
    .await
}

/// Applies the overlay, whatever other scenarios have left, and returns ports for webhooks. The API server calls the
/// first for objects in `namespace`.
pub async fn apply_afresh(world: &World, ports: usize, namespace: &str) -> Vec<u16> {
    let admin = world.plane.admin();
    for configuration in CONFIGURATIONS {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{configuration}");
        // Another scenario left it behind, with the address of a stopped replica.
        let _ = request(&admin, Method::DELETE, &path, None).await;
    }
    kubectl_apply(&world.plane.admin_kubeconfig(), "manifests/tutorial-self-signed", &[]).unwrap();
    let ports: Vec<u16> = (0..ports).map(|_| free_port()).collect();
    call_by_url(&admin, ports[0], namespace).await;
    ports
}

/// Makes the API server call the first replica, which is not a Pod behind a Service here, for objects in one namespace:
/// other scenarios have webhooks of their own.
async fn call_by_url(admin: &kube::Client, port: u16, namespace: &str) {
    for configuration in CONFIGURATIONS {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{configuration}");
        let mut object = request(admin, Method::GET, &path, None).await.unwrap();
        for webhook in object["webhooks"].as_array_mut().unwrap() {
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
            webhook["clientConfig"] = json!({ "url": format!("https://127.0.0.1:{port}{path}") });
            webhook["namespaceSelector"] = json!({ "matchLabels": { "kubernetes.io/metadata.name": namespace } });
        }
        request(admin, Method::PUT, &path, Some(&object)).await.unwrap();
    }
}

pub async fn start(world: &World, port: u16, more: &[&str]) -> Running {
    let name = format!("tutorial-{port}");
    let kubeconfig = account_kubeconfig(&world.plane, SYSTEM, NAME, &name).await.unwrap();
    let system = Namespace::existing(world.plane.admin(), SYSTEM);
    let deployment = system.get(DEPLOYMENTS, NAME).await.unwrap();
    let mut args = deployment_args(&deployment, SYSTEM);
    // One machine, and no Pod's namespace.
    args.extend(["--metrics-bind-address=0", "--health-probe-bind-address=0"].map(str::to_owned));
    args.push(format!("--webhook-namespace={SYSTEM}"));
    args.push(format!("--webhook-port={port}"));
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    Controller::Ours.start(&world.plane, &name, &kubeconfig, &args, &[]).await.unwrap()
}
