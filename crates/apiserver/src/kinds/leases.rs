//! Leases of coordination.k8s.io/v1.
//!
//! Guarantees: matches k8s.io/kubernetes `pkg/apis/coordination/validation/validation.go`, `ValidateLeaseSpec`, and
//! `pkg/registry/coordination/lease/strategy.go` with coordinated leader election off, as it is by default.

use apimachinery::field::FieldError;
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::fields::{child, forbidden, invalid, number, text};
use super::{Kind, age, columns};
use crate::registry::Column;

pub(super) struct Leases;

impl Kind for Leases {
    const ROOT: &'static str = "coordination.v1.Lease";
    const COLUMNS: &'static [Column] = &columns::LEASES;
    const ALLOW_UNCONDITIONAL_UPDATE: bool = false;
    const ALLOW_CREATE_ON_UPDATE: bool = true;

    fn prepare_for_create(&self, object: &mut Value) {
        drop_disabled(object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        validate(&object["spec"])
    }

    fn prepare_for_update(&self, object: &mut Value, _old: &Value) {
        drop_disabled(object);
    }

    fn validate_update(&self, object: &Value, _old: &Value) -> Vec<FieldError> {
        validate(&object["spec"])
    }

    fn cells(&self, object: &Value, now: DateTime<Utc>) -> Vec<Value> {
        vec![object["metadata"]["name"].clone(), text(object, "spec.holderIdentity").into(), age(object, now)]
    }
}

fn drop_disabled(lease: &mut Value) {
    if let Some(spec) = child(lease, "spec").as_object_mut() {
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
}

fn validate(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(seconds) = number(spec, "leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        errors.push(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
    }
    if let Some(count) = number(spec, "leaseTransitions").filter(|count| *count < 0) {
        errors.push(invalid("spec.leaseTransitions", count, "must be greater than or equal to 0"));
    }
    if !text(spec, "preferredHolder").is_empty() && text(spec, "strategy").is_empty() {
        errors.push(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"));
    }
    errors
}
