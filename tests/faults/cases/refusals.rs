//! Admission that refuses Jobs for a while: all of them, or those beyond a number.
//!
//! A ValidatingAdmissionPolicy represents every intentional denial, since the controller sees the same answer (a 4xx
//! about this object) from a webhook that denies. An unreachable webhook differs: 500.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use http::Method;
use serde_json::{Value, json};
use testkit::burst::Burst;
use testkit::driver::{EVENTS, JOBS, Namespace, Resource, eventually, request, sleep_until, upcoming_minute};
use testkit::world::World;

use super::seconds;
use crate::luck::Luck;

/// The number of each kind: with a deadline that passes while Jobs are refused, and without.
const BURST: usize = 150;
/// How long Jobs are refused after their slot.
const REFUSED: TimeDelta = TimeDelta::seconds(20);
const HURRY: u32 = 10;
/// A key that was refused for 20 s waits up to 41 s for its next try, as with upstream.
const LONGEST_WAIT: Duration = Duration::from_secs(90);

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const QUOTAS: Resource = Resource("api/v1", "resourcequotas");

pub async fn policy(world: Arc<World>, _: Luck) -> String {
    let admin = world.plane.admin();
    let rules = json!([
        {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]},
    ]);
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "refusal"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "false", "message": "no Jobs for now"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "refusal"},
        "spec": {"policyName": "refusal", "validationActions": ["Deny"]},
    });
    request(&admin, Method::POST, POLICIES, Some(&policy)).await.unwrap();
    request(&admin, Method::POST, BINDINGS, Some(&binding)).await.unwrap();
    let lift = async {
        request(&admin, Method::DELETE, &format!("{BINDINGS}/refusal"), None).await.unwrap();
    };
    refused_by_admission(&world, "no Jobs for now", lift).await
}

pub async fn webhook(world: Arc<World>, _: Luck) -> String {
    let admin = world.plane.admin();
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "refusal"},
        "webhooks": [{
            "name": "refusal.example.com",
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            // No server listens there.
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}],
        }],
    });
    request(&admin, Method::POST, WEBHOOKS, Some(&webhook)).await.unwrap();
    let lift = async {
        request(&admin, Method::DELETE, &format!("{WEBHOOKS}/refusal"), None).await.unwrap();
    };
    refused_by_admission(&world, "failed calling webhook", lift).await
}

/// Refuses all Jobs. Waits for the start and for the end of the refusals, since the API server applies its own
/// configuration within a second or so.
async fn refused_by_admission(world: &World, words: &str, lift: impl Future<Output = ()>) -> String {
    let probe = world.namespace("probe").await;
    eventually("Jobs to be refused", Duration::from_secs(30), || async { probe_job(world, &probe).await.err() }).await;
    let lift = async {
        lift.await;
        eventually("Jobs to be admitted", Duration::from_secs(30), || async { probe_job(world, &probe).await.ok() })
            .await;
    };
    refused(world, words, 0, |_| async {}, lift).await
}

/// Requests a Job in a dry run.
async fn probe_job(world: &World, ns: &Namespace) -> Result<Value, String> {
    let container = json!({"name": "main", "image": "example.com/none"});
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "probe"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    });
    let path = format!("{}?dryRun=All", ns.path(JOBS, ""));
    request(&world.plane.admin(), Method::POST, &path, Some(&job)).await
}

pub async fn quota(world: Arc<World>, _: Luck) -> String {
    let room = BURST / 3;
    let put = |ns: Namespace| async move {
        let quota = json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "jobs"},
            "spec": {"hard": {"count/jobs.batch": room.to_string()}},
        });
        ns.create(QUOTAS, &quota).await;
        // The controller that would write this does not run here; admission updates it from there.
        let status = json!({"hard": {"count/jobs.batch": room.to_string()}, "used": {"count/jobs.batch": "0"}});
        ns.patch_status(QUOTAS, "jobs", &status).await;
    };
    let lift = async {
        let ns = Namespace::existing(world.plane.admin(), "patient");
        let hard = json!({"hard": {"count/jobs.batch": BURST.to_string()}});
        ns.patch(QUOTAS, "jobs", &json!({"spec": hard})).await;
        ns.patch_status(QUOTAS, "jobs", &hard).await;
    };
    refused(&world, "exceeded quota", room, put, lift).await
}

/// CronJobs with and without a deadline become due while only `room` Jobs of each are admitted; 20 s later all are.
async fn refused<F: Future<Output = ()>>(
    world: &World,
    words: &str,
    room: usize,
    put: impl Fn(Namespace) -> F,
    lift: impl Future<Output = ()>,
) -> String {
    let controller = world.start_controller("refused", &[]).await.unwrap();
    let slot = upcoming_minute().await;
    let hurried = Burst::at_minute(world, "hurried", BURST, slot, &json!({"startingDeadlineSeconds": HURRY})).await;
    put(hurried.ns.clone()).await;
    let patient = Burst::at_minute(world, "patient", BURST, slot, &json!({"startingDeadlineSeconds": 3600})).await;
    put(patient.ns.clone()).await;
    assert!(Utc::now() < slot, "the obstacle came too late; the machine is busy");
    sleep_until(slot, REFUSED).await;
    assert_eq!((hurried.seen(), patient.seen()), (room, room), "Jobs while they are refused");
    let told = told(&patient.ns, words).await;
    assert_eq!(told, BURST - room, "owners with an Event FailedCreate that says {words}");

    lift.await;
    let lifted = Instant::now();
    patient.settled(LONGEST_WAIT).await;
    let took = lifted.elapsed();
    assert_eq!(hurried.seen(), room, "Jobs of CronJobs whose deadline had passed");
    controller.kill();
    format!("{told} of {BURST} owners told; the last Job {} after the end; none after its deadline", seconds(took))
}

/// The number of CronJobs with a Warning FailedCreate that contains this text.
async fn told(ns: &Namespace, words: &str) -> usize {
    let mut owners: Vec<String> = ns
        .list(EVENTS)
        .await
        .iter()
        .filter(|event| event["type"] == "Warning" && event["reason"] == "FailedCreate")
        .filter(|event| event["message"].as_str().is_some_and(|message| message.contains(words)))
        .filter(|event| event["involvedObject"]["kind"] == "CronJob")
        .filter_map(|event| event["involvedObject"]["name"].as_str().map(ToOwned::to_owned))
        .collect();
    owners.sort();
    owners.dedup();
    owners.len()
}
