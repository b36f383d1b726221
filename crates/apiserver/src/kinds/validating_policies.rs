//! What a `ValidatingAdmissionPolicy` has to be for the API server to take it.
//!
//! Guarantees: fields are validated in upstream's order and words, but for its compiler's: of an expression only that it is there.
//! Matches k8s.io/kubernetes `pkg/apis/admissionregistration/validation/validation.go`, `validateValidatingAdmissionPolicySpec`, but for
//! the names of resources in `resourceRules`.

use apimachinery::field::FieldError;
use serde_json::Value;

use super::extensions::condition_errors;
use super::fields::{invalid, list, not_supported, required, text};
use super::pod_spec::selectors;

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const NO_EXPRESSION: &str = "expression is not specified";
const NOTHING: &str = "validations or auditAnnotations must contain at least one item";
/// What is no name in the Common Expression Language.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// What is wrong with the specification of a policy.
pub(super) fn errors(policy: &Value) -> Vec<FieldError> {
    let (spec, mut errors) = (&policy["spec"], Vec::new());
    let supported = |field: &str, value: &Value, values: &[&str], errors: &mut Vec<FieldError>| {
        if value.as_str().is_some_and(|value| !values.contains(&value)) {
            errors.push(not_supported(field, value.clone(), values));
        }
    };
    supported("spec.failurePolicy", &spec["failurePolicy"], &["Fail", "Ignore"], &mut errors);
    for field in ["apiVersion", "kind"] {
        if !spec["paramKind"].is_null() && text(&spec["paramKind"], field).is_empty() {
            errors.push(required(format!("spec.paramKind.{field}"), ""));
        }
    }
    let matched = &spec["matchConstraints"];
    if matched.is_null() {
        errors.push(required("spec.matchConstraints", ""));
    } else {
        let at = |field: &str| format!("spec.matchConstraints.{field}");
        supported(&at("matchPolicy"), &matched["matchPolicy"], &["Equivalent", "Exact"], &mut errors);
        for selector in ["namespaceSelector", "objectSelector"] {
            selectors::validate(&matched[selector], &at(selector), &mut errors);
        }
        if list(matched, "resourceRules").is_empty() {
            errors.push(required(at("resourceRules"), ""));
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
        let at = format!("spec.validations[{index}]");
        validation_errors(validation, &at, &mut errors);
        supported(&format!("{at}.reason"), &validation["reason"], &REASONS, &mut errors);
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
}

#[cfg(test)]
mod tests;
