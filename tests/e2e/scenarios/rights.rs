//! Compares the rights of each account in the manifests with its requests in the audit log. A controller is driven
//! until it has made every kind of request that it ever makes. Then it must have used every grant, and no request may
//! have been refused.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::TimeDelta;
use futures::future::join_all;
use http::Request;
use kube::config::Config;
use serde_json::{Value, json};
use testkit::controller_kinds;
use testkit::driver::{
    CRON_JOBS, DEPLOYMENTS, EVENTS, Namespace, Resource, cron_job, eventually, hourly_at, minutes_ago, rfc3339,
};
use testkit::fixture::account::{NAME, SYSTEM_NAMESPACE, account_kubeconfig, kubectl_apply};
use testkit::fixture::controller::{Controller, Running};
use testkit::world::{World, deployment_args, refused};

use super::failures::Electorate;
use super::tutorial;
use crate::rights::{Grant, granted, unused};

/// A lease that survives a machine pause of some seconds; it is released, so the test need not wait for its expiry.
const ELECTION: [&str; 4] = [
    "--leader-elect=true",
    "--leader-elect-lease-duration=20s",
    "--leader-elect-renew-deadline=15s",
    "--leader-elect-retry-period=1s",
];

/// The namespace of `manifests/single-namespace`.
const TEAM: &str = "team-a";
const SECRETS: Resource = Resource("api/v1", "secrets");
/// The previous leader may have been killed, with a lease of the default duration; the machine may be busy.
const LONGEST_WAIT: Duration = Duration::from_secs(40);

/// The defaults of a server before Kubernetes 1.34, on which lists are paged.
const NO_STREAMING_LISTS: &str = "WatchList=false";

/// A kind that a controller reconciles, and a CronJob of it.
struct Kind {
    parents: Resource,
    make: fn(&str, &Value) -> Value,
}

const NATIVE: [Kind; 1] = [Kind { parents: CRON_JOBS, make: |name, spec| cron_job(name, "@daily", spec) }];
const TUTORIAL: [Kind; 2] = [
    Kind { parents: controller_kinds::CRON_JOBS, make: controller_kinds::tutorial },
    Kind { parents: controller_kinds::API_EXAMPLES, make: controller_kinds::example },
];

/// One account of the manifests.
struct Account {
    /// The names of the ServiceAccount and of the controller.
    namespace: &'static str,
    lease: &'static str,
    kinds: &'static [Kind],
    /// With webhooks: the port that the API server calls, and another one.
    ports: Vec<u16>,
}

/// The index of one of two replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    First,
    Second,
}

pub async fn compared(world: Arc<World>) -> String {
    let batch = |namespace| Account { namespace, lease: NAME, kinds: &NATIVE, ports: Vec::new() };
    let (whole, team) = (batch(SYSTEM_NAMESPACE), batch(TEAM));
    let ports = tutorial::apply_afresh(&world, 2, "every-right-tutorial").await;
    owners_are_known(&world).await;
    let lease = "80807133.tutorial.kubebuilder.io";
    let beside = Account { namespace: tutorial::SYSTEM, lease, kinds: &TUTORIAL, ports };
    let native = async {
        // In sequence: the first account's controller works in all namespaces.
        whole_cluster(&world, &whole).await;
        let ns = world.namespace(TEAM).await;
        kubectl_apply(&world.plane.admin_kubeconfig(), "manifests/single-namespace", &[]).unwrap();
        stop(team.hand_over(&world, &ns).await).await;
    };
    let other = async {
        let ns = world.namespace("every-right-tutorial").await;
        stop(beside.hand_over(&world, &ns).await).await;
    };
    futures::join!(native, other);

    world.plane.kill_api_server();
    world.plane.start_api_server_with(NO_STREAMING_LISTS).await.unwrap();
    let accounts = [whole, team, beside];
    for account in &accounts {
        stop(account.start(&world, Turn::First).await).await;
    }
    world.plane.kill_api_server();
    world.plane.start_api_server().await.unwrap();

    let counts = join_all(accounts.iter().map(|account| account.compare(&world))).await;
    format!("{counts:?} rights")
}

/// Waits until the API server knows the tutorial's kinds as owners. It looks for new kinds every 30 s, and until then
/// refuses references that block the deletion of their objects.
async fn owners_are_known(world: &World) {
    let owner = json!({
        "apiVersion": "batch.tutorial.kubebuilder.io/v1", "kind": "CronJob", "name": "x", "uid": "x", "blockOwnerDeletion": true,
    });
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x", "ownerReferences": [owner]},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/none"}],
        }}},
    });
    let account = format!("system:serviceaccount:{}:{NAME}", tutorial::SYSTEM);
    let admin = world.plane.admin();
    eventually("the API server knows the tutorial's kinds", LONGEST_WAIT, || async {
        let request = Request::post("/apis/batch/v1/namespaces/default/jobs?dryRun=All")
            .header("Content-Type", "application/json")
            .header("Impersonate-User", &account)
            .body(job.to_string().into_bytes().into())
            .unwrap();
        admin.send(request).await.unwrap().status().is_success().then_some(())
    })
    .await;
}

/// `manifests/default`.
async fn whole_cluster(world: &World, account: &Account) {
    let admin = world.plane.admin_kubeconfig();
    kubectl_apply(&admin, "manifests/default", &[]).unwrap();
    let first = account.start(world, Turn::First).await;
    show_certificate(first.port).await;
    stop(first).await;

    stop(account.hand_over(world, &world.namespace("every-right").await).await).await;
}

impl Account {
    /// One replica leads, another stands by. The first stops, and the second cannot trust its cache of the first's
    /// work. It replaces a child and records twice that one is still running. Returns the second.
    async fn hand_over(&self, world: &World, ns: &Namespace) -> Running {
        let lease = Electorate { lease: self.system(world), name: self.lease };
        let before = lease.holder().await;
        let first = self.start(world, Turn::First).await;
        let leader = lease.next_holder(before.as_ref(), LONGEST_WAIT).await;
        let second = self.start(world, Turn::Second).await;
        for kind in self.kinds {
            for policy in ["Replace", "Forbid"] {
                create_suspended(ns, kind, policy).await;
            }
        }
        stop(first).await;
        lease.next_holder(Some(&leader), LONGEST_WAIT).await;
        join_all(
            self.kinds.iter().map(|kind| async { futures::join!(replace(ns, kind.parents), forbid(ns, kind.parents)) }),
        )
        .await;
        second
    }

    async fn start(&self, world: &World, turn: Turn) -> Running {
        let [called, other] = self.ports[..] else { return self.start_as_deployed(world, turn).await };
        if turn == Turn::First {
            return tutorial::start(world, other, &ELECTION).await;
        }
        // A certificate of unknown lifetime is replaced.
        let spoilt = json!({ "metadata": { "annotations": { "cronjob-controller/renew-at": null } } });
        self.system(world).patch(SECRETS, "cronjob-controller-webhook-cert", &spoilt).await;
        tutorial::start(world, called, &ELECTION).await
    }

    /// A controller with the arguments of the Deployment.
    async fn start_as_deployed(&self, world: &World, turn: Turn) -> Running {
        let name = format!("rights-{}-{turn:?}", self.namespace);
        let deployment = self.system(world).get(DEPLOYMENTS, NAME).await.unwrap();
        let mut args = deployment_args(&deployment, self.namespace);
        args.extend(ELECTION.map(str::to_owned));
        let kubeconfig = account_kubeconfig(&world.plane, self.namespace, NAME, &name).await.unwrap();
        Controller::Ours.start(&world.plane, &name, &kubeconfig, &args, &[]).await.unwrap()
    }

    fn system(&self, world: &World) -> Namespace {
        Namespace::existing(world.plane.admin(), self.namespace)
    }

    /// Checks both directions; returns the number of rights.
    async fn compare(&self, world: &World) -> usize {
        // The audit log is written after the answer.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let namespace = self.namespace;
        let requests = world.plane.audit(&format!("system:serviceaccount:{namespace}:{NAME}"));
        let grants = granted(&world.plane.admin(), namespace, NAME).await;
        assert!(!grants.is_empty(), "nothing is bound to the account in {namespace}");
        let refused = refused(&requests);
        assert!(refused.is_empty(), "the rights of the account in {namespace} do not cover {refused:?}");
        let unused: Vec<&Grant> =
            unused(&grants, &requests).into_iter().filter(|grant| !is_never_sent(grant)).collect();
        assert!(unused.is_empty(), "rights of the account in {namespace} that it never used: {unused:#?}");
        grants.len()
    }
}

/// A client presents a certificate: the controller has to learn which CA the API server trusts.
async fn show_certificate(port: u16) {
    let made = rcgen::generate_simple_self_signed(vec!["somebody".to_owned()]).unwrap();
    let mut config = Config::new(format!("https://127.0.0.1:{port}").parse().unwrap());
    config.accept_invalid_certs = true;
    config.auth_info.client_certificate_data = Some(BASE64_STANDARD.encode(made.cert.pem()));
    config.auth_info.client_key_data = Some(BASE64_STANDARD.encode(made.signing_key.serialize_pem()).into());
    let client = kube::Client::try_from(config).unwrap();
    client
        .request_text(Request::get("/metrics").body(Vec::new()).unwrap())
        .await
        .expect_err("no CA that the client trusts signed it");
}

async fn stop(controller: Running) {
    let status = controller.terminate(Duration::from_secs(10)).await.unwrap();
    assert!(status.success(), "SIGTERM: {status}");
}

/// A CronJob that is overdue as soon as it is resumed, named after its policy.
async fn create_suspended(ns: &Namespace, kind: &Kind, policy: &str) {
    let slot = minutes_ago(10);
    let spec = json!({ "schedule": hourly_at(slot), "concurrencyPolicy": policy, "suspend": true });
    let name = policy.to_lowercase();
    let object = (kind.make)(&name, &spec);
    // The API server may not see its webhook yet.
    eventually(format!("{} {name}", kind.parents.1), LONGEST_WAIT, || ns.try_create(kind.parents, &object)).await;
    let last = rfc3339(slot - TimeDelta::hours(1));
    ns.patch_status(kind.parents, &name, &json!({ "lastScheduleTime": last })).await;
}

/// Lets the CronJob start its first child, whose name this returns, and then makes a second slot due.
async fn two_slots(ns: &Namespace, parents: Resource, name: &str) -> String {
    ns.patch(parents, name, &json!({ "spec": { "suspend": false } })).await;
    let first =
        eventually(format!("{} {name} has a child", parents.1), LONGEST_WAIT, || active(ns, parents, name)).await;
    let schedule = hourly_at(minutes_ago(3));
    ns.patch(parents, name, &json!({ "spec": { "suspend": true, "schedule": schedule } })).await;
    ns.patch(parents, name, &json!({ "spec": { "suspend": false } })).await;
    first
}

async fn active(ns: &Namespace, parents: Resource, name: &str) -> Option<String> {
    ns.get(parents, name).await?["status"]["active"][0]["name"].as_str().map(ToOwned::to_owned)
}

async fn replace(ns: &Namespace, parents: Resource) {
    let first = two_slots(ns, parents, "replace").await;
    eventually(format!("{} replace has another child", parents.1), LONGEST_WAIT, || async {
        active(ns, parents, "replace").await.filter(|child| *child != first)
    })
    .await;
}

async fn forbid(ns: &Namespace, parents: Resource) {
    two_slots(ns, parents, "forbid").await;
    let api_version = parents.0.trim_start_matches("apis/");
    eventually(format!("{} forbid is told twice", parents.1), LONGEST_WAIT, || async {
        // Every change of it triggers a sync, with the same result.
        let poke = json!({ "metadata": { "annotations": { "poked": chrono::Utc::now().to_rfc3339() } } });
        ns.patch(parents, "forbid", &poke).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let told = |event: &Value| {
            let about = &event["involvedObject"];
            event["reason"] == "JobAlreadyActive"
                && about["name"] == "forbid"
                && about["apiVersion"] == api_version
                && event["count"].as_u64() > Some(1)
        };
        ns.list(EVENTS).await.iter().any(told).then_some(())
    })
    .await;
}

/// Required by an admission plugin where an owner reference blocks the owner's deletion.
fn is_never_sent(grant: &Grant) -> bool {
    grant.verb == "update" && grant.resource.ends_with("/finalizers")
}
