//! Validation of the tutorial's CronJobs beyond their schema.
//!
//! Guarantees: a schedule is rejected exactly if the controller could not parse it, since both use the same parser. All errors
//! are reported at once, with their fields and in Kubernetes' words. An object that is being deleted is always accepted. Pure.

use apimachinery::field::{FieldError, invalid_field, required_field};
use apimachinery::status::{Qualified, invalid};
use schedule::{Schedule, Zone};
use serde_json::Value;

use super::review::{Operation, Request, Verdict};
use crate::api::crd::MAX_NAME_LENGTH;
use crate::api::tutorial_v1::RESOURCE;

/// Validates a CronJob on create and update. Matches the tutorial's `validateCronJob`.
pub fn validate_cron_job(request: &Request) -> Verdict {
    let object = &request.object;
    let judged = matches!(request.operation, Operation::Create | Operation::Update);
    // The last update of a deleted object removes its finalizers; if it were rejected, the object would stay forever.
    if !judged || object["metadata"]["deletionTimestamp"].is_string() {
        return Verdict::Allowed;
    }
    let faults: Vec<FieldError> =
        name_fault(object).into_iter().chain(schedule_fault(object)).chain(limit_faults(object)).collect();
    if faults.is_empty() {
        return Verdict::Allowed;
    }
    let kind = Qualified { group: RESOURCE.group.to_owned(), name: RESOURCE.kind.to_owned() };
    Verdict::Denied(invalid(&kind, object["metadata"]["name"].as_str().unwrap_or_default(), &faults))
}

fn name_fault(object: &Value) -> Option<FieldError> {
    let name = &object["metadata"]["name"];
    let too_long = name.as_str().is_some_and(|name| name.len() > MAX_NAME_LENGTH);
    too_long
        .then(|| invalid_field("metadata.name", name, &format!("must be no more than {MAX_NAME_LENGTH} characters")))
}

fn schedule_fault(object: &Value) -> Option<FieldError> {
    let field = "spec.schedule";
    let schedule = &object["spec"]["schedule"];
    let Some(text) = schedule.as_str() else { return Some(required_field(field, "")) };
    // Whether a schedule is valid does not depend on its zone.
    let fault = Schedule::parse_standard(text, Zone::UTC).err()?;
    Some(invalid_field(field, schedule, &fault.to_string()))
}

/// The history limits that are no 32-bit integers. Before v1.36 the API server does not check the format in a schema, and the
/// tutorial's webhook fails to decode such an object.
fn limit_faults(object: &Value) -> impl Iterator<Item = FieldError> + '_ {
    let limits = ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
    let limits = limits.into_iter().map(|name| (format!("spec.{name}"), &object["spec"][name]));
    let fits = |limit: &Value| limit.as_i64().is_some_and(|limit| i32::try_from(limit).is_ok());
    let wrong = limits.filter(move |(_, limit)| limit.is_number() && !fits(limit));
    wrong.map(|(field, limit)| invalid_field(&field, limit, "must be of type integer with format int32"))
}
