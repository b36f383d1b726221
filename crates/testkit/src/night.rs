//! A shop's 40 CronJobs at twelve past three in the morning, after a night of failures.
//!
//! Guarantees: every object is created at its time on the API server's clock, which then shows [`NOW`]. The Jobs are those that the
//! history limits would have left, and the Events those of the last hour, as a cluster keeps them.

use apimachinery::clock::{Clock as _, TestClock};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::driver::request;

/// The time of the fixture: 03:12 in Berlin.
pub const NOW: &str = "2026-11-28T02:12:00Z";
/// The number of CronJobs.
pub const CRON_JOBS: usize = 40;
/// When the CronJobs were created.
const CREATED: &str = "2026-10-05T09:00:00Z";

/// A CronJob and its Jobs.
#[derive(Default)]
struct Row {
    /// Namespace and name.
    name: &'static str,
    schedule: &'static str,
    /// Fields of its spec.
    spec: Value,
    /// Policies, without their prefix.
    policies: &'static [(&'static str, &'static str)],
    /// The oldest slot of which a Job still exists, or did not start, and the minutes to the next one.
    first: &'static str,
    step: i64,
    /// Its slots from there, each a letter: s succeeded, l succeeded and started four minutes late, f failed, r runs, . has no Job.
    slots: &'static str,
    /// For how many seconds its Jobs run.
    takes: i64,
    /// When a run last succeeded, if no letter says it.
    succeeded: Option<&'static str>,
}

/// One that succeeds each time.
fn fine(name: &'static str, schedule: &'static str, first: &'static str, step: i64, slots: &'static str) -> Row {
    Row { name, schedule, spec: json!({}), first, step, slots, takes: 45, ..Row::default() }
}

/// One that runs at four in the morning.
fn at_four(name: &'static str) -> Row {
    fine(name, "0 4 * * *", "2026-11-26T03:00:00Z", 24 * 60, "ss")
}

fn rows() -> Vec<Row> {
    let at_four = [
        "payments/reconcile-ledger",
        "payments/dunning-letters",
        "shop/mail-digest",
        "shop/thumbnails",
        "shop/sitemap",
        "shop/loyalty-points",
        "shop/vouchers",
        "data/train-ranking",
        "data/etl-orders",
        "data/snapshot",
        "ops/backup-db",
    ]
    .map(at_four);
    stories().into_iter().chain(others()).chain(at_four).collect()
}

/// Those of which something is to be told.
fn stories() -> Vec<Row> {
    vec![
        Row {
            name: "payments/charge-cards",
            schedule: "*/15 * * * *",
            spec: json!({"failedJobsHistoryLimit": 12}),
            first: "2026-11-27T23:15:00Z",
            step: 15,
            slots: "ffffffffffff",
            takes: 20,
            succeeded: Some("2026-11-27T16:00:20Z"),
            ..Row::default()
        },
        fine("payments/payouts", "0 * * * *", "2026-11-27T21:00:00Z", 60, "sss"),
        fine("payments/invoices", "0 * * * *", "2026-11-27T21:00:00Z", 60, "sss"),
        fine("payments/settle", "20 * * * *", "2026-11-27T20:20:00Z", 60, "ss.sss"),
        Row {
            spec: json!({"concurrencyPolicy": "Forbid"}),
            takes: 600,
            ..fine("shop/rebuild-search-index", "*/30 * * * *", "2026-11-27T21:00:00Z", 30, "ssr")
        },
        Row {
            spec: json!({"failedJobsHistoryLimit": 3}),
            policies: &[("pause-after-failures", "3")],
            succeeded: Some("2026-11-27T23:00:40Z"),
            ..fine("shop/send-reminders", "*/20 * * * *", "2026-11-27T23:20:00Z", 20, "fff")
        },
        Row {
            spec: json!({"concurrencyPolicy": "Replace"}),
            succeeded: Some("2026-11-20T09:05:10Z"),
            ..fine("shop/refresh-prices", "*/5 * * * *", "2026-11-28T02:10:00Z", 5, "r")
        },
        Row {
            spec: json!({"concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 600}),
            takes: 9_000,
            ..fine("shop/import-catalog", "0 * * * *", "2026-11-27T22:00:00Z", 60, "s..")
        },
        Row {
            spec: json!({"concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 300}),
            takes: 4_200,
            ..fine("shop/sync-stock", "30 * * * *", "2026-11-27T19:30:00Z", 60, "s.s.s.r")
        },
        Row {
            succeeded: Some("2026-11-27T01:20:00Z"),
            ..fine("data/export-orders", "0 2 * * *", "2026-11-28T01:00:00Z", 24 * 60, "f")
        },
        fine("data/aggregate-clicks", "40 * * * *", "2026-11-27T22:40:00Z", 60, "llll"),
        Row { takes: 5_700, ..fine("data/etl-sessions", "0 1 * * *", "2026-11-28T00:00:00Z", 24 * 60, "s") },
        Row { slots: "", ..fine("ops/rotate-certs", "0 0 31 2 *", CREATED, 1, "") },
        Row {
            spec: json!({"suspend": true}),
            ..fine("shop/retired-export", "0 * * * *", "2026-11-02T09:00:00Z", 60, "s")
        },
        Row {
            policies: &[("spread", "30m"), ("dst", "once"), ("exclude", "Sun,12-25")],
            ..fine("shop/nightly-report", "30 2 * * *", "2026-11-26T01:30:00Z", 24 * 60, "sss")
        },
    ]
}

/// Those that are fine.
fn others() -> Vec<Row> {
    vec![
        fine("payments/fraud-scores", "*/10 * * * *", "2026-11-28T01:20:00Z", 10, "ssssss"),
        fine("payments/tax-export", "30 3 * * *", "2026-11-26T02:30:00Z", 24 * 60, "ss"),
        fine("shop/warm-cache", "*/5 * * * *", "2026-11-28T02:00:00Z", 5, "sss"),
        fine("shop/stock-alerts", "*/15 * * * *", "2026-11-28T01:30:00Z", 15, "sss"),
        fine("shop/price-feed", "0 * * * *", "2026-11-28T00:00:00Z", 60, "sss"),
        fine("shop/abandoned-carts", "15 * * * *", "2026-11-27T23:15:00Z", 60, "sss"),
        fine("shop/reviews-sync", "45 * * * *", "2026-11-27T23:45:00Z", 60, "sss"),
        fine("data/compact-tables", "0 4 * * 0", "2026-11-15T03:00:00Z", 7 * 24 * 60, "ss"),
        fine("data/feature-store", "*/30 * * * *", "2026-11-28T01:00:00Z", 30, "sss"),
        fine("ops/prune-images", "0 3 * * *", "2026-11-26T02:00:00Z", 24 * 60, "sss"),
        fine("ops/check-dns", "*/10 * * * *", "2026-11-28T01:50:00Z", 10, "sss"),
        fine("ops/report-costs", "0 6 * * 1", "2026-11-16T05:00:00Z", 7 * 24 * 60, "ss"),
        fine("ops/cleanup-uploads", "50 * * * *", "2026-11-27T23:50:00Z", 60, "sss"),
        fine("ops/heartbeat", "* * * * *", "2026-11-28T02:09:00Z", 1, "sss"),
    ]
}

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Fills an API server whose clock is `clock`, which shows [`NOW`] in the end.
pub async fn play(client: &Client, clock: &TestClock) {
    let night = Night { client, clock };
    for namespace in ["payments", "shop", "data", "ops", "kube-system"] {
        night.try_post(CREATED, "/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
    }
    let lease = json!({
        "metadata": {"name": "cronjob-controller", "namespace": "kube-system"},
        // So long that a test of some minutes does not see it expire.
        "spec": {"holderIdentity": "cronjob-controller-0", "leaseDurationSeconds": 7_200, "renewTime": "2026-11-28T02:11:58.000000Z"},
    });
    night.post(NOW, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", &lease).await;
    let rows = rows();
    assert_eq!(rows.len(), CRON_JOBS);
    for row in &rows {
        night.cron_job(row).await;
    }
    night.set(NOW);
}

struct Night<'a> {
    client: &'a Client,
    clock: &'a TestClock,
}

impl Night<'_> {
    fn set(&self, at: &str) {
        self.clock.step(instant(at) - self.clock.now());
    }

    async fn send(&self, at: &str, method: Method, path: &str, body: &Value) -> Result<Value, String> {
        self.set(at);
        request(self.client, method, path, Some(body)).await
    }

    async fn post(&self, at: &str, path: &str, body: &Value) -> Value {
        self.send(at, Method::POST, path, body).await.unwrap_or_else(|error| panic!("{error}: {body}"))
    }

    /// Creates what may exist.
    async fn try_post(&self, at: &str, path: &str, body: &Value) {
        let _ = self.send(at, Method::POST, path, body).await;
    }

    async fn patch(&self, at: &str, path: &str, body: &Value) {
        self.send(at, Method::PATCH, path, body).await.unwrap_or_else(|error| panic!("{error}: {body}"));
    }

    async fn cron_job(&self, row: &Row) {
        let (namespace, name) = row.name.split_once('/').unwrap();
        let image =
            format!("registry.example/{}:7.{}", if namespace == "data" { "spark" } else { namespace }, row.takes % 3);
        let annotations: serde_json::Map<String, Value> = row
            .policies
            .iter()
            .map(|(key, value)| (["cronjob-controller.dev/", key].concat(), (*value).into()))
            .collect();
        let container = json!({"name": "run", "image": image});
        let mut spec = json!({
            "schedule": row.schedule, "timeZone": "Europe/Berlin", "successfulJobsHistoryLimit": 6,
            "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}},
        });
        for (field, value) in row.spec.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        let team = match namespace {
            "payments" => "checkout",
            "shop" => "storefront",
            other => other,
        };
        let object = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "spec": spec,
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations, "labels": {"team": team}},
        });
        let created = self.post(CREATED, &format!("/apis/batch/v1/namespaces/{namespace}/cronjobs"), &object).await;
        let first = instant(if row.slots.is_empty() { CREATED } else { row.first });
        let (mut active, mut last, mut succeeded) = (Vec::new(), None, row.succeeded.map(instant));
        for (number, letter) in row.slots.chars().enumerate().filter(|(_, letter)| *letter != '.') {
            let slot = first + TimeDelta::minutes(row.step) * i32::try_from(number).unwrap();
            let job = self.job(&created, row, slot, letter).await;
            last = Some(slot);
            match letter {
                'r' => active.push(json!({
                    "apiVersion": "batch/v1", "kind": "Job", "namespace": namespace, "name": job["metadata"]["name"],
                    "uid": job["metadata"]["uid"],
                })),
                's' | 'l' => succeeded = Some(slot + TimeDelta::seconds(row.takes)),
                _ => {}
            }
        }
        let mut status = json!({"active": active});
        for (field, value) in [("lastScheduleTime", last), ("lastSuccessfulTime", succeeded)] {
            if let Some(value) = value {
                status[field] = time(value).into();
            }
        }
        let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs/{name}/status");
        let at = last.map_or(CREATED.to_owned(), |last| time(last + TimeDelta::seconds(1)));
        self.patch(&at, &path, &json!({"status": status})).await;
        if name == "payouts" || name == "invoices" {
            let message = "Error creating job: admission webhook \"guard.payments.example\" denied the request: quota service unreachable";
            self.event(&created, "2026-11-28T02:10:00Z", "Warning", "FailedCreate", message).await;
        }
    }

    /// The Job of a slot with its end, its Pod if it failed, and its Events.
    async fn job(&self, cron_job: &Value, row: &Row, slot: DateTime<Utc>, letter: char) -> Value {
        let metadata = &cron_job["metadata"];
        let (namespace, owner) = (metadata["namespace"].as_str().unwrap(), metadata["name"].as_str().unwrap());
        let name = format!("{owner}-{}", slot.timestamp() / 60);
        let started = slot + if letter == 'l' { TimeDelta::minutes(4) } else { TimeDelta::zero() };
        let object = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": name, "namespace": namespace,
                "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": time(slot)},
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "CronJob", "name": owner, "uid": metadata["uid"], "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": cron_job["spec"]["jobTemplate"]["spec"],
        });
        let jobs = format!("/apis/batch/v1/namespaces/{namespace}/jobs");
        let job = self.post(&time(started), &jobs, &object).await;
        let ended = started + TimeDelta::seconds(row.takes);
        let condition = |kind: &str, reason: &str, message: &str| {
            json!({
                "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": time(ended),
                "lastProbeTime": time(ended),
            })
        };
        let status = match letter {
            'r' => json!({"startTime": time(started), "active": 1, "ready": 1, "uncountedTerminatedPods": {}}),
            'f' => {
                let why = "Job has reached the specified backoff limit";
                let conditions = ["FailureTarget", "Failed"].map(|kind| condition(kind, "BackoffLimitExceeded", why));
                json!({"startTime": time(started), "failed": 1, "conditions": conditions, "uncountedTerminatedPods": {}})
            }
            _ => {
                let conditions =
                    ["SuccessCriteriaMet", "Complete"].map(|kind| condition(kind, "CompletionsReached", ""));
                json!({
                    "startTime": time(started), "completionTime": time(ended), "succeeded": 1, "conditions": conditions,
                    "uncountedTerminatedPods": {},
                })
            }
        };
        let at = if letter == 'r' { started } else { ended };
        self.patch(&time(at), &format!("{jobs}/{name}/status"), &json!({"status": status})).await;
        if letter == 'f' {
            self.failed_pod(&job, owner, ended).await;
        }
        if instant(NOW) - started < TimeDelta::hours(1) {
            self.event(cron_job, &time(started), "Normal", "SuccessfulCreate", &format!("Created job {name}")).await;
        }
        job
    }

    async fn failed_pod(&self, job: &Value, owner: &str, ended: DateTime<Utc>) {
        let metadata = &job["metadata"];
        let (namespace, name) = (metadata["namespace"].as_str().unwrap(), metadata["name"].as_str().unwrap());
        let (reason, code) = if owner == "export-orders" { ("OOMKilled", 137) } else { ("Error", 1) };
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("{name}-x7k2p"), "namespace": namespace,
                "labels": {"batch.kubernetes.io/job-name": name, "job-name": name, "batch.kubernetes.io/controller-uid": metadata["uid"]},
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": metadata["uid"], "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": job["spec"]["template"]["spec"],
        });
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        let at = time(ended);
        let created = self.post(&at, &pods, &pod).await;
        let container = json!({
            "name": "run", "image": pod["spec"]["containers"][0]["image"], "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": code, "reason": reason, "finishedAt": at, "startedAt": at}},
        });
        let status = json!({"phase": "Failed", "containerStatuses": [container]});
        let name = created["metadata"]["name"].as_str().unwrap();
        self.patch(&at, &format!("{pods}/{name}/status"), &json!({"status": status})).await;
    }

    async fn event(&self, about: &Value, at: &str, kind: &str, reason: &str, message: &str) {
        let metadata = &about["metadata"];
        let (namespace, name) = (metadata["namespace"].as_str().unwrap(), metadata["name"].as_str().unwrap());
        let number = instant(at).timestamp();
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "type": kind, "reason": reason, "message": message, "count": 1,
            "metadata": {"name": format!("{name}.{reason}.{number}").to_lowercase(), "namespace": namespace},
            "involvedObject": {
                "apiVersion": "batch/v1", "kind": "CronJob", "name": name, "namespace": namespace, "uid": metadata["uid"],
            },
            "firstTimestamp": at, "lastTimestamp": at, "source": {"component": "cronjob-controller"},
        });
        self.post(at, &format!("/api/v1/namespaces/{namespace}/events"), &event).await;
    }
}
