//! Objects whose author filled one field with as much as the API server takes.

use serde_json::{Value, json};

/// What etcd takes in one request, less the rest of the object.
const OBJECT: usize = 1_500_000;
/// What the API server takes as names and values of annotations together.
const ANNOTATIONS: usize = 256 << 10;
/// Twelve digits that a reader replaces by those of each object's number.
pub const SERIAL: &str = "700000000007";
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
    /// The object whose texts have [`SERIAL`] where each object has a number of its own.
    pub object: fn() -> Value,
}

/// All of them.
pub const FILLINGS: [Filling; 36] = [
    cron_job("nothing", 2 << 10, plain),
    cron_job("names of 63 and 52 bytes", 2 << 10, || {
        with(plain(), "/metadata", json!({ "namespace": text(63), "name": text(52) }))
    }),
    cron_job("labels", 2 << 10, || with(plain(), "/metadata", json!({ "labels": labels(OBJECT) }))),
    cron_job("finalizers", 2 << 10, || with(plain(), "/metadata", json!({ "finalizers": list(OBJECT) }))),
    cron_job("ownerReferences", 2 << 10, || with(plain(), "/metadata", json!({ "ownerReferences": owners() }))),
    cron_job("managedFields", 2 << 10, || {
        with(annotated(&[("spread", "1m")]), "/metadata", json!({ "managedFields": managers() }))
    }),
    cron_job("annotations of others", 2 << 10, || {
        with(plain(), "/metadata", json!({ "annotations": labels(ANNOTATIONS) }))
    }),
    cron_job("unknown policies, short names", 2 << 10, || {
        with(plain(), "/metadata", json!({ "annotations": map(PREFIX, ANNOTATIONS) }))
    }),
    cron_job("unknown policies, names of 86 bytes", 3 << 10, || {
        let prefix = format!("{PREFIX}{}", text(57));
        with(plain(), "/metadata", json!({ "annotations": map(&prefix, ANNOTATIONS) }))
    }),
    cron_job("policy `schedule`, @at to 16 KiB", 64 << 10, || annotated(&[("schedule", &times(16 << 10))])),
    cron_job("policy `schedule`, 64 lines", 34 << 10, || annotated(&[("schedule", &lines())])),
    cron_job("policy `schedule`, 256 KiB", 4 << 10, || annotated(&[("schedule", &times(ANNOTATIONS - 64))])),
    cron_job("policy `exclude`, dates to 4 KiB", 16 << 10, || annotated(&[("exclude", &dates(4 << 10))])),
    cron_job("policy `exclude`, 256 KiB", 2 << 10, || annotated(&[("exclude", &dates(ANNOTATIONS - 64))])),
    cron_job("policy `stuck-after`, 256 KiB", 2 << 10, || annotated(&[("stuck-after", &text(ANNOTATIONS - 64))])),
    cron_job("`counted-from`", 2 << 10, || annotated(&[("counted-from", &counted_from(ANNOTATIONS - 64))])),
    cron_job("`counted-from`, UID", 2 << 10, || annotated(&[("counted-from", &counted_from_uid(ANNOTATIONS - 64))])),
    cron_job("`backfill`, `next-run`, `last-failure`", 2 << 10, || {
        let value = text(ANNOTATIONS / 4);
        annotated(&[("backfill", &value), ("next-run", &value), ("last-failure", &value)])
    }),
    cron_job("`spec.schedule`, 1,024 bytes", 4 << 10, || {
        with(plain(), "/spec", json!({ "schedule": schedule(1_024) }))
    }),
    cron_job("`spec.schedule`", 2 << 10, || with(plain(), "/spec", json!({ "schedule": schedule(OBJECT) }))),
    cron_job("`spec.schedule`, blanks", 2 << 10, || {
        with(plain(), "/spec", json!({ "schedule": format!("5,59/{SERIAL} *{}* * *", " ".repeat(OBJECT)) }))
    }),
    cron_job("`spec.schedule`, not a schedule", 32 << 10, || {
        with(plain(), "/spec", json!({ "schedule": format!("{SERIAL}{}", " x".repeat(OBJECT / 2)) }))
    }),
    cron_job("`spec.timeZone`", 2 << 10, || {
        with(plain(), "/spec", json!({ "timeZone": format!("Europe/{}Berlin", "./".repeat(OBJECT / 2)) }))
    }),
    cron_job("`spec.timeZone`, no zone", 2 << 10, || with(plain(), "/spec", json!({ "timeZone": text(OBJECT) }))),
    cron_job("`spec.jobTemplate`, 16 KiB", 18 << 10, || {
        with(plain(), "/spec", json!({ "jobTemplate": template(16_000) }))
    }),
    cron_job("`spec.jobTemplate`", 2 << 10, || with(plain(), "/spec", json!({ "jobTemplate": template(OBJECT) }))),
    cron_job("`status.active`, empty references", 288 << 10, || {
        with(plain(), "", json!({ "status": { "active": vec![json!({}); OBJECT / 3] } }))
    }),
    cron_job("`status.active`, references to Jobs", 288 << 10, || {
        with(plain(), "", json!({ "status": { "active": references() } }))
    }),
    cron_job("`status.active`, one long name", 2 << 10, || {
        with(plain(), "", json!({ "status": { "active": [{ "name": text(OBJECT), "uid": "u" }] } }))
    }),
    cron_job("`status.conditions` of a custom kind", 20 << 10, || tutorial(json!({ "conditions": conditions() }))),
    cron_job("`status.countedFrom` of a custom kind", 2 << 10, || {
        tutorial(json!({ "countedFrom": counted_from(OBJECT) }))
    }),
    cron_job("all within their limits", 192 << 10, all),
    job("nothing", 2 << 10, plain_job),
    job("labels, finalizers, annotations", 2 << 10, || {
        let metadata = json!({ "labels": labels(OBJECT / 3), "finalizers": list(OBJECT / 3), "annotations": map(PREFIX, ANNOTATIONS) });
        with(plain_job(), "/metadata", metadata)
    }),
    job("`ownerReferences`, one long name", 2 << 10, || {
        let mut object = plain_job();
        object["metadata"]["ownerReferences"][0]["name"] = text(OBJECT).into();
        object
    }),
    job("spec and status", 2 << 10, || {
        let status = json!({ "conditions": conditions(), "uncountedTerminatedPods": { "failed": list(OBJECT / 2) } });
        with(plain_job(), "", json!({ "spec": { "template": template(OBJECT / 2) }, "status": status }))
    }),
];

const fn cron_job(name: &'static str, most: usize, object: fn() -> Value) -> Filling {
    Filling { record: Record::CronJob, name, most, object }
}

const fn job(name: &'static str, most: usize, object: fn() -> Value) -> Filling {
    Filling { record: Record::Job, name, most, object }
}

fn uid(serial: &str) -> String {
    format!("00000000-0000-4000-8000-{serial}")
}

fn plain() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {
            "name": format!("c{SERIAL}"), "namespace": "team", "uid": uid(SERIAL), "resourceVersion": SERIAL,
            "creationTimestamp": "2026-01-05T09:12:31Z",
        },
        "spec": { "schedule": "5 * * * *", "jobTemplate": template(12) },
    })
}

fn tutorial(status: Value) -> Value {
    let kind = json!({ "apiVersion": "batch.tutorial.kubebuilder.io/v1", "kind": "CronJob", "status": status });
    with(plain(), "", kind)
}

fn plain_job() -> Value {
    let owner = json!({ "apiVersion": "batch/v1", "kind": "CronJob", "name": format!("c{SERIAL}"), "uid": uid(SERIAL), "controller": true });
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": format!("c{SERIAL}-29000000"), "namespace": "team", "uid": format!("10000000-0000-4000-8000-{SERIAL}"),
            "resourceVersion": SERIAL, "creationTimestamp": "2026-01-05T09:12:31Z", "ownerReferences": [owner],
        },
    })
}

fn annotated(policies: &[(&str, &str)]) -> Value {
    let annotations: Value = policies
        .iter()
        .map(|(key, value)| (format!("{PREFIX}{key}"), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    with(plain(), "/metadata", json!({ "annotations": annotations }))
}

/// Everything at once that is kept as it is.
fn all() -> Value {
    let mut object = annotated(&[("schedule", &times(16 << 10)), ("exclude", &dates(4 << 10))]);
    for (name, value) in map(PREFIX, ANNOTATIONS - (24 << 10)).as_object().into_iter().flatten() {
        object["metadata"]["annotations"][name] = value.clone();
    }
    with(object, "/spec", json!({ "schedule": schedule(1_024), "jobTemplate": template(16_000) }))
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
fn text(length: usize) -> String {
    format!("{SERIAL}{}", "0".repeat(length - SERIAL.len()))
}

/// A map of that many bytes, with short names after a prefix.
fn map(prefix: &str, bytes: usize) -> Value {
    let name = |i: usize| format!("{prefix}{i:05}");
    (0..bytes / (prefix.len() + 6)).map(|i| (name(i), json!("1"))).collect::<serde_json::Map<_, _>>().into()
}

/// A map of that many bytes, with names and values as long as those of labels.
fn labels(bytes: usize) -> Value {
    (0..bytes / 132).map(|i| (format!("{i:063}"), json!(text(63)))).collect::<serde_json::Map<_, _>>().into()
}

fn list(bytes: usize) -> Value {
    (0..bytes / 66).map(|i| format!("{i:063}")).collect::<Vec<_>>().into()
}

fn owners() -> Value {
    let owner = |i: usize| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": format!("o{i}"), "uid": uid(&format!("{i:012}")), "controller": i == 0 });
    (0..OBJECT / 120).map(owner).collect::<Vec<_>>().into()
}

fn managers() -> Value {
    let manager = |i: usize| json!({ "manager": format!("m{i}"), "operation": "Update", "time": "2026-01-05T09:12:31Z", "fieldsV1": {} });
    (0..OBJECT / 90).map(manager).collect::<Vec<_>>().into()
}

/// Lines of `@at`, each of another time.
fn times(bytes: usize) -> String {
    let line =
        |i: usize| format!("@at {}-{:02}-{:02}T{:02}:{:02}", 2030, i / 28 % 12 + 1, i % 28 + 1, i / 336 % 24, i / 8064);
    (0..bytes / 21).map(line).collect::<Vec<_>>().join(";")
}

/// As many lines of five fields as are allowed, each with all days that there are.
fn lines() -> String {
    let days: Vec<_> = (1..=31).map(|day| format!("{day}W")).chain((1..=25).map(|day| format!("L-{day}"))).collect();
    (0..64).map(|i| format!("{} {} {} * *", i % 60, i % 24, days.join(","))).collect::<Vec<_>>().join(";")
}

/// Dates that are apart.
fn dates(bytes: usize) -> String {
    let date = |i: usize| format!("{:04}-{:02}-{:02}", 2030 + i / 168, i / 14 % 12 + 1, i % 14 * 2 + 1);
    (0..(bytes + 1) / 11).map(date).collect::<Vec<_>>().join(",")
}

fn counted_from(bytes: usize) -> String {
    format!("2026-01-05T09:12:31Z v9:{}", text(bytes - 24))
}

fn counted_from_uid(bytes: usize) -> String {
    format!("2026-01-05T09:12:31Z v1:{}:0123456789abcdef", text(bytes - 41))
}

/// A valid schedule of that length.
fn schedule(bytes: usize) -> String {
    let end = format!("59/{SERIAL} * * * *");
    format!("{}{end}", "5,".repeat((bytes - end.len()) / 2))
}

fn template(bytes: usize) -> Value {
    let container = json!({ "name": "c", "image": "busybox", "args": [text(bytes)] });
    json!({ "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [container] } } } })
}

fn references() -> Value {
    let reference = |i: usize| {
        json!({
            "kind": "Job", "namespace": "team", "name": format!("c{SERIAL}-{}", 29_000_000 + i), "uid": uid(&format!("{i:012}")),
            "apiVersion": "batch/v1", "resourceVersion": "1234567",
        })
    };
    (0..OBJECT / 180).map(reference).collect::<Vec<_>>().into()
}

fn conditions() -> Value {
    let condition = |i: usize| json!({ "type": format!("T{i}"), "status": "True", "lastTransitionTime": "2026-01-05T09:12:31Z", "reason": "R", "message": "m".repeat(100) });
    (0..OBJECT / 2 / 200).map(condition).collect::<Vec<_>>().into()
}
