//! Objects whose author filled one field with as much as the API server takes.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// What etcd takes in one request, less the rest of the object.
const OBJECT: usize = 1_500_000;
/// What the API server takes as names and values of annotations together.
const ANNOTATIONS: usize = 256 << 10;
const PREFIX: &str = "cronjob-controller.dev/";

/// Which record an object is read into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    CronJob,
    Job,
}

/// One way to fill an object.
pub struct Filling {
    pub record: Record,
    /// The field, and with what.
    pub name: &'static str,
    /// The most bytes that a record may take in the cache.
    pub most: usize,
    /// The object of that number.
    pub object: fn(usize) -> Value,
}

/// All of them.
pub const FILLINGS: [Filling; 36] = [
    cron_job("nothing", 1_024, |n| plain(n)),
    cron_job("names of 63 and 52 bytes", 1_024, |n| {
        with(plain(n), "/metadata", json!({ "namespace": text(63, n), "name": text(52, n) }))
    }),
    cron_job("labels", 1_024, |n| with(plain(n), "/metadata", json!({ "labels": map("", OBJECT) }))),
    cron_job("finalizers", 1_024, |n| with(plain(n), "/metadata", json!({ "finalizers": list(OBJECT) }))),
    cron_job("ownerReferences", 1_024, |n| with(plain(n), "/metadata", json!({ "ownerReferences": owners() }))),
    cron_job("managedFields", 1_024, |n| {
        with(annotated(n, &[("spread", "1m")]), "/metadata", json!({ "managedFields": managers() }))
    }),
    cron_job("annotations of others", 1_024, |n| {
        with(plain(n), "/metadata", json!({ "annotations": map("", ANNOTATIONS) }))
    }),
    cron_job("unknown policies, short names", 2 << 10, |n| {
        with(plain(n), "/metadata", json!({ "annotations": map(PREFIX, ANNOTATIONS) }))
    }),
    cron_job("unknown policies, names of 86 bytes", 3 << 10, |n| {
        let prefix = format!("{PREFIX}{:0>57}", n);
        with(plain(n), "/metadata", json!({ "annotations": map(&prefix, ANNOTATIONS) }))
    }),
    cron_job("policy `schedule`, @at to 16 KiB", 64 << 10, |n| annotated(n, &[("schedule", &times(16 << 10, n))])),
    cron_job("policy `schedule`, 64 lines", 32 << 10, |n| annotated(n, &[("schedule", &lines(n))])),
    cron_job("policy `schedule`, 256 KiB", 2 << 10, |n| annotated(n, &[("schedule", &times(ANNOTATIONS - 64, n))])),
    cron_job("policy `exclude`, dates to 4 KiB", 16 << 10, |n| annotated(n, &[("exclude", &dates(4 << 10, n))])),
    cron_job("policy `exclude`, 256 KiB", 2 << 10, |n| annotated(n, &[("exclude", &dates(ANNOTATIONS - 64, n))])),
    cron_job("policy `stuck-after`, 256 KiB", 2 << 10, |n| {
        annotated(n, &[("stuck-after", &text(ANNOTATIONS - 64, n))])
    }),
    cron_job("`counted-from`", 1_024, |n| annotated(n, &[("counted-from", &counted_from(ANNOTATIONS - 64, n))])),
    cron_job("`counted-from`, UID", 1_024, |n| {
        annotated(n, &[("counted-from", &counted_from_uid(ANNOTATIONS - 64, n))])
    }),
    cron_job("`backfill`, `next-run`, `last-failure`", 1_024, |n| {
        let value = text(ANNOTATIONS / 4, n);
        annotated(n, &[("backfill", &value), ("next-run", &value), ("last-failure", &value)])
    }),
    cron_job("`spec.schedule`, 1,024 bytes", 4 << 10, |n| {
        with(plain(n), "/spec", json!({ "schedule": schedule(1_024, n) }))
    }),
    cron_job("`spec.schedule`", 2 << 10, |n| with(plain(n), "/spec", json!({ "schedule": schedule(OBJECT, n) }))),
    cron_job("`spec.schedule`, blanks", 2 << 10, |n| {
        with(plain(n), "/spec", json!({ "schedule": format!("{} *{:OBJECT$}* * *", n % 60, "") }))
    }),
    cron_job("`spec.schedule`, not a schedule", 32 << 10, |n| {
        with(plain(n), "/spec", json!({ "schedule": format!("{n}{}", " x".repeat(OBJECT / 2)) }))
    }),
    cron_job("`spec.timeZone`", 2 << 10, |n| {
        with(plain(n), "/spec", json!({ "timeZone": format!("Europe/{}Berlin", "./".repeat(OBJECT / 2)) }))
    }),
    cron_job("`spec.timeZone`, no zone", 2 << 10, |n| with(plain(n), "/spec", json!({ "timeZone": text(OBJECT, n) }))),
    cron_job("`spec.jobTemplate`, 16 KiB", 18 << 10, |n| {
        with(plain(n), "/spec", json!({ "jobTemplate": template(16_000, n) }))
    }),
    cron_job("`spec.jobTemplate`", 1_024, |n| with(plain(n), "/spec", json!({ "jobTemplate": template(OBJECT, n) }))),
    cron_job("`status.active`, empty references", 264 << 10, |n| {
        with(plain(n), "", json!({ "status": { "active": vec![json!({}); OBJECT / 3] } }))
    }),
    cron_job("`status.active`, references to Jobs", 264 << 10, |n| {
        with(plain(n), "", json!({ "status": { "active": references(n) } }))
    }),
    cron_job("`status.active`, one long name", 1_024, |n| {
        with(plain(n), "", json!({ "status": { "active": [{ "name": text(OBJECT, n), "uid": "u" }] } }))
    }),
    cron_job("`status.conditions` of a custom kind", 20 << 10, |n| tutorial(n, json!({ "conditions": conditions() }))),
    cron_job("`status.countedFrom` of a custom kind", 1_024, |n| {
        tutorial(n, json!({ "countedFrom": counted_from(OBJECT, n) }))
    }),
    cron_job("all within their limits", 192 << 10, all),
    job("nothing", 1_024, |n| plain_job(n)),
    job("labels, finalizers, annotations", 1_024, |n| {
        let metadata = json!({ "labels": map("", OBJECT / 3), "finalizers": list(OBJECT / 3), "annotations": map(PREFIX, ANNOTATIONS) });
        with(plain_job(n), "/metadata", metadata)
    }),
    job("`ownerReferences`, one long name", 1_024, |n| {
        let mut object = plain_job(n);
        object["metadata"]["ownerReferences"][0]["name"] = text(OBJECT, n).into();
        object
    }),
    job("spec and status", 1_024, |n| {
        let status = json!({ "conditions": conditions(), "uncountedTerminatedPods": { "failed": list(OBJECT / 2) } });
        with(plain_job(n), "", json!({ "spec": { "template": template(OBJECT / 2, n) }, "status": status }))
    }),
];

const fn cron_job(name: &'static str, most: usize, object: fn(usize) -> Value) -> Filling {
    Filling { record: Record::CronJob, name, most, object }
}

const fn job(name: &'static str, most: usize, object: fn(usize) -> Value) -> Filling {
    Filling { record: Record::Job, name, most, object }
}

fn uid(n: usize) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

fn plain(n: usize) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {
            "name": format!("c{n}"), "namespace": "team", "uid": uid(n), "resourceVersion": n.to_string(),
            "creationTimestamp": "2026-01-05T09:12:31Z",
        },
        "spec": { "schedule": format!("{} * * * *", n % 60), "jobTemplate": template(0, n) },
    })
}

fn tutorial(n: usize, status: Value) -> Value {
    let kind = json!({ "apiVersion": "batch.tutorial.kubebuilder.io/v1", "kind": "CronJob", "status": status });
    with(plain(n), "", kind)
}

fn plain_job(n: usize) -> Value {
    let owner = json!({ "apiVersion": "batch/v1", "kind": "CronJob", "name": format!("c{n}"), "uid": uid(n), "controller": true });
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": format!("c{n}-29000000"), "namespace": "team", "uid": format!("10000000-0000-4000-8000-{n:012}"),
            "resourceVersion": n.to_string(), "creationTimestamp": "2026-01-05T09:12:31Z", "ownerReferences": [owner],
        },
    })
}

fn annotated(n: usize, policies: &[(&str, &str)]) -> Value {
    let annotations: Value = policies
        .iter()
        .map(|(key, value)| (format!("{PREFIX}{key}"), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    with(plain(n), "/metadata", json!({ "annotations": annotations }))
}

/// Everything at once that is kept as it is.
fn all(n: usize) -> Value {
    let mut object = annotated(n, &[("schedule", &times(16 << 10, n)), ("exclude", &dates(4 << 10, n))]);
    for (name, value) in map(PREFIX, ANNOTATIONS - (24 << 10)).as_object().into_iter().flatten() {
        object["metadata"]["annotations"][name] = value.clone();
    }
    with(object, "/spec", json!({ "schedule": schedule(1_024, n), "jobTemplate": template(16_000, n) }))
}

/// The object with more fields at a pointer.
fn with(mut object: Value, pointer: &str, fields: Value) -> Value {
    let place = object.pointer_mut(pointer).expect("a place");
    for (name, value) in fields.as_object().into_iter().flatten() {
        place[name] = value.clone();
    }
    object
}

/// A text of that length for an object.
fn text(length: usize, n: usize) -> String {
    format!("{n:0>length$}")
}

/// A map of short texts that has that many bytes.
fn map(prefix: &str, bytes: usize) -> Value {
    let name = |i: usize| format!("{prefix}{i:06}");
    (0..bytes / (prefix.len() + 7)).map(|i| (name(i), json!("1"))).collect::<serde_json::Map<_, _>>().into()
}

fn list(bytes: usize) -> Value {
    (0..bytes / 16).map(|i| format!("example.com/{i:06}")).collect::<Vec<_>>().into()
}

fn owners() -> Value {
    let owner = |i: usize| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": format!("o{i}"), "uid": uid(i), "controller": i == 0 });
    (0..OBJECT / 100).map(owner).collect::<Vec<_>>().into()
}

fn managers() -> Value {
    let manager = |i: usize| json!({ "manager": format!("m{i}"), "operation": "Update", "time": "2026-01-05T09:12:31Z", "fieldsV1": {} });
    (0..OBJECT / 90).map(manager).collect::<Vec<_>>().into()
}

/// Lines of `@at`, each of another time.
fn times(bytes: usize, n: usize) -> String {
    let line = |i: usize| {
        format!("@at {}-{:02}-{:02}T{:02}:{:02}", 2030 + n % 60, i / 28 % 12 + 1, i % 28 + 1, i / 336 % 24, i / 8064)
    };
    (0..bytes / 21).map(line).collect::<Vec<_>>().join(";")
}

/// As many lines of five fields as are allowed, each with all days that there are.
fn lines(n: usize) -> String {
    let days: Vec<_> = (1..=31).map(|day| format!("{day}W")).chain((1..=25).map(|day| format!("L-{day}"))).collect();
    (0..64).map(|i| format!("{} {} {} * *", (n + i) % 60, i % 24, days.join(","))).collect::<Vec<_>>().join(";")
}

/// Dates that are apart.
fn dates(bytes: usize, n: usize) -> String {
    let date = |i: usize| format!("{:04}-{:02}-{:02}", 2030 + (n + i / 168) % 7_000, i / 14 % 12 + 1, i % 14 * 2 + 1);
    (0..(bytes + 1) / 11).map(date).collect::<Vec<_>>().join(",")
}

fn counted_from(bytes: usize, n: usize) -> String {
    format!("2026-01-05T09:12:31Z v9:{}", text(bytes - 24, n))
}

fn counted_from_uid(bytes: usize, n: usize) -> String {
    format!("2026-01-05T09:12:31Z v1:{}:0123456789abcdef", text(bytes - 41, n))
}

/// A valid schedule of that length.
fn schedule(bytes: usize, n: usize) -> String {
    let mut text = format!("{} {}", n % 60, n / 60 % 24);
    while text.len() + 8 < bytes {
        let _ = write!(text, ",{}", (n + text.len()) % 24);
    }
    text + " * * *"
}

fn template(bytes: usize, n: usize) -> Value {
    let container = json!({ "name": "c", "image": "busybox", "args": [text(bytes, n)] });
    json!({ "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [container] } } } })
}

fn references(n: usize) -> Value {
    let reference = |i: usize| {
        json!({
            "kind": "Job", "namespace": "team", "name": format!("c{n}-{}", 29_000_000 + i), "uid": uid(i),
            "apiVersion": "batch/v1", "resourceVersion": "1234567",
        })
    };
    (0..OBJECT / 150).map(reference).collect::<Vec<_>>().into()
}

fn conditions() -> Value {
    let condition = |i: usize| json!({ "type": format!("T{i}"), "status": "True", "lastTransitionTime": "2026-01-05T09:12:31Z", "reason": "R", "message": "m".repeat(100) });
    (0..OBJECT / 2 / 200).map(condition).collect::<Vec<_>>().into()
}
