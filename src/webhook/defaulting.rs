//! The defaults of the tutorial's CronJobs.
//!
//! Guarantees: only missing fields are set. Fields that are set, even if invalid, are left to validation. Defaulting an object
//! twice changes nothing. Pure.

use serde_json::{Value, json};

use super::review::{Operation, Request, Verdict};

/// The patch that gives a CronJob its defaults: `Allow`, not suspended, three successful Jobs kept and one failed Job. Matches
/// the tutorial's `Default`, which treats an empty policy as missing.
pub fn default_cron_job(request: &Request) -> Verdict {
    let spec = match request.operation {
        Operation::Create | Operation::Update => request.object.get("spec").and_then(Value::as_object),
        Operation::Delete | Operation::Connect => None,
    };
    // Without a spec, validation by the schema reports the error.
    let Some(spec) = spec else { return Verdict::Allowed };
    let defaults = [
        ("concurrencyPolicy", json!("Allow")),
        ("suspend", json!(false)),
        ("successfulJobsHistoryLimit", json!(3)),
        ("failedJobsHistoryLimit", json!(1)),
    ];
    let is_missing = |field: &str| match spec.get(field) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => field == "concurrencyPolicy" && text.is_empty(),
        Some(_) => false,
    };
    let operations: Vec<Value> = defaults
        .into_iter()
        .filter(|(field, _)| is_missing(field))
        .map(|(field, value)| json!({ "op": "add", "path": format!("/spec/{field}"), "value": value }))
        .collect();
    if operations.is_empty() { Verdict::Allowed } else { Verdict::Patched(operations) }
}
