//! What is judged of the tutorial's CronJobs beyond their schema.
//!
//! Guarantees: a schedule is refused exactly where the controller could not read it, by the same parser; every fault is
//! named with its field, all at once, in Kubernetes' own words. An object on its way out is never held up. Pure.

use apimachinery::field::{FieldError, invalid_field, required_field};
use apimachinery::status::{Qualified, invalid};
use schedule::{Schedule, Zone};
use serde_json::Value;

use super::review::{Operation, Request, Verdict};
use crate::api::crd::MAX_NAME_LENGTH;
use crate::api::tutorial_v1::RESOURCE;

/// Judges a CronJob that is created or changed. Matches the tutorial's `validateCronJob`.
pub fn validate_cron_job(request: &Request) -> Verdict {
    let object = &request.object;
    let judged = matches!(request.operation, Operation::Create | Operation::Update);
    // The last change of a deleted object takes its finalizers away: refused, it would stay for ever.
    if !judged || object["metadata"]["deletionTimestamp"].is_string() {
        return Verdict::Allowed;
    }
    let faults: Vec<FieldError> = name_fault(object).into_iter().chain(schedule_fault(object)).collect();
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
    // Whether a text is a schedule does not depend on the zone that it is read in.
    let fault = Schedule::parse_standard(text, Zone::UTC).err()?;
    Some(invalid_field(field, schedule, &fault.to_string()))
}
