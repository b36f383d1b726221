//! Objects for the controller's tests.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::api::batch_v1::{CronJob, Job};
use crate::api::{Interner, Object};

/// An instant in RFC 3339.
pub fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// A minute of the day on which `cron_job` last fired, such as "10:00".
pub fn at(clock: &str) -> DateTime<Utc> {
    time(&format!("2026-03-02T{clock}:00Z"))
}

/// Merges `patch` into `base`, as a JSON merge patch.
#[allow(clippy::needless_pass_by_value, reason = "a patch is written where it is merged")]
pub fn merge(base: &mut Value, patch: Value) {
    apiserver::merge_patch(base, &patch);
}

/// `base` with `patch` merged into it.
pub fn merged(mut base: Value, patch: Value) -> Value {
    merge(&mut base, patch);
    base
}

/// The hourly CronJob `ns/report`, last fired at nine, with `patch` merged into it.
pub fn cron_job(patch: Value) -> Arc<CronJob> {
    let object = json!({
        "metadata": {
            "name": "report", "namespace": "ns", "uid": "own-uid", "resourceVersion": "7",
            "creationTimestamp": "2026-03-02T08:30:00Z",
        },
        "spec": { "schedule": "0 * * * *", "jobTemplate": { "spec": {} } },
        "status": { "lastScheduleTime": "2026-03-02T09:00:00Z" },
    });
    Arc::new(CronJob::decode(&merged(object, patch).to_string(), &Interner::default()).unwrap())
}

/// A Job of that CronJob, with `patch` merged into it.
pub fn job(name: &str, uid: &str, patch: Value) -> Arc<Job> {
    let object = json!({ "metadata": {
        "name": name, "namespace": "ns", "uid": uid, "resourceVersion": "3", "creationTimestamp": "2026-03-02T08:30:00Z",
        "ownerReferences": [controlled_by("report", "own-uid")],
    } });
    Arc::new(Job::decode(&merged(object, patch).to_string(), &Interner::default()).unwrap())
}

/// The owner reference of a Job that a CronJob controls.
pub fn controlled_by(name: &str, uid: &str) -> Value {
    json!({ "apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": uid, "controller": true })
}
