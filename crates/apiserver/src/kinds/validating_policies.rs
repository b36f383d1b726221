//! What a `ValidatingAdmissionPolicy` has to be for the API server to take it.
//!
//! Guarantees: fields are validated in upstream's order and words, but for its compiler's: of an expression only that it is there.
//! Matches k8s.io/kubernetes `pkg/apis/admissionregistration/validation/validation.go`, `validateValidatingAdmissionPolicySpec`, but for
//! the names of resources in `resourceRules`.

use apimachinery::field::FieldError;
use serde_json::Value;

use super::extensions::condition_errors;
use super::fields::{invalid, list, one_of_if_set, require, required, text};
use super::pod_spec::selectors;
use crate::cel::RESERVED;

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const NO_EXPRESSION: &str = "expression is not specified";
const NOTHING: &str = "validations or auditAnnotations must contain at least one item";

/// What is wrong with the specification of a policy.
pub(super) fn errors(policy: &Value) -> Vec<FieldError> {
    let (spec, mut errors) = (&policy["spec"], Vec::new());
    one_of_if_set(&mut errors, spec, "spec", "failurePolicy", &["Fail", "Ignore"]);
    if !spec["paramKind"].is_null() {
        for field in ["apiVersion", "kind"] {
            require(&mut errors, &spec["paramKind"], "spec.paramKind", field);
        }
    }
    let matched = &spec["matchConstraints"];
    if matched.is_null() {
        errors.push(required("spec.matchConstraints", ""));
    } else {
        let parent = "spec.matchConstraints";
        one_of_if_set(&mut errors, matched, parent, "matchPolicy", &["Equivalent", "Exact"]);
        for selector in ["namespaceSelector", "objectSelector"] {
            selectors::validate(&matched[selector], &format!("{parent}.{selector}"), &mut errors);
        }
        if list(matched, "resourceRules").is_empty() {
            errors.push(required(format!("{parent}.resourceRules"), ""));
        }
    }
    condition_errors(spec, "spec.matchConditions", &mut errors);
    for (index, variable) in list(spec, "variables").iter().enumerate() {
        variable_errors(variable, &format!("spec.variables[{index}]"), &mut errors);
    }
    if list(spec, "validations").is_empty() && list(spec, "auditAnnotations").is_empty() {
        errors.extend(["validations", "auditAnnotations"].map(|field| required(format!("spec.{field}"), NOTHING)));
    }
    for (index, validation) in list(spec, "validations").iter().enumerate() {
        validation_errors(validation, &format!("spec.validations[{index}]"), &mut errors);
    }
    errors
}

/// Matches `validateVariable`.
fn variable_errors(variable: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let name = text(variable, "name");
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.trim().is_empty() {
        errors.push(required(format!("{at}.name"), "name is not specified"));
    } else if !name.chars().all(is_part) || name.starts_with(|c: char| c.is_ascii_digit()) || RESERVED.contains(&name) {
        errors.push(invalid(format!("{at}.name"), name, "must be a valid CEL identifier"));
    }
    if text(variable, "expression").trim().is_empty() {
        errors.push(required(format!("{at}.expression"), NO_EXPRESSION));
    }
}

/// Matches `validateValidation`.
fn validation_errors(validation: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if text(validation, "expression").trim().is_empty() {
        errors.push(required(format!("{at}.expression"), NO_EXPRESSION));
    }
    for field in ["messageExpression", "message"] {
        let words = text(validation, field);
        let problem = if !words.is_empty() && words.trim().is_empty() {
            "must be non-empty if specified"
        } else if field == "message" && words.trim().contains(['\n', '\r']) {
            "must not contain line breaks"
        } else {
            continue;
        };
        errors.push(invalid(format!("{at}.{field}"), words, problem));
    }
    one_of_if_set(errors, validation, at, "reason", &REASONS);
}

#[cfg(test)]
mod tests;
