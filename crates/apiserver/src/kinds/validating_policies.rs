//! What a `ValidatingAdmissionPolicy` has to be for the API server to take it.
//!
//! Guarantees: fields are validated in upstream's order and words, but for its compiler's: of an expression only that it is there.
//! Matches k8s.io/kubernetes `pkg/apis/admissionregistration/validation/validation.go`, `validateValidatingAdmissionPolicySpec`, but for
//! the names of resources in `resourceRules`.

use apimachinery::field::FieldError;
use serde_json::Value;

use super::extensions::condition_errors;
use super::fields::{duplicate, invalid, invalid_json, list, not_supported, one_of_if_set, require, required, text};
use super::pod_spec::selectors;
use crate::cel::RESERVED;

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const DENY_AND_WARN: &str = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                             response and headers serves no purpose)";
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
        named_rules_errors(matched, parent, &mut errors);
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

/// What is wrong with the specification of a binding. Matches `validateValidatingAdmissionPolicyBindingSpec`.
pub(super) fn binding_errors(binding: &Value) -> Vec<FieldError> {
    let (spec, mut errors) = (&binding["spec"], Vec::new());
    let reference = &spec["paramRef"];
    if !reference.is_null() {
        if text(reference, "name").is_empty() && reference["selector"].is_null() {
            errors.push(required("spec.paramRef", "one of name or selector must be specified"));
        }
        require(&mut errors, reference, "spec.paramRef", "parameterNotFoundAction");
        one_of_if_set(&mut errors, reference, "spec.paramRef", "parameterNotFoundAction", &["Deny", "Allow"]);
    }
    one_of_if_set(&mut errors, &spec["matchResources"], "spec.matchResources", "matchPolicy", &["Equivalent", "Exact"]);
    named_rules_errors(&spec["matchResources"], "spec.matchResources", &mut errors);
    let (at, actions) = ("spec.validationActions", list(spec, "validationActions"));
    for (index, action) in actions.iter().enumerate() {
        errors.extend(one_of(action, &format!("{at}[{index}]"), &ACTIONS));
        if actions[..index].contains(action) {
            errors.push(duplicate(format!("{at}[{index}]"), action.clone()));
        }
    }
    if ["Deny", "Warn"].iter().all(|both| actions.iter().any(|action| action == both)) {
        errors.push(invalid_json(at, actions, DENY_AND_WARN));
    }
    if actions.is_empty() {
        errors.push(required(at, "at least one validation action is required"));
    }
    errors
}

/// Matches the end of `validateMatchResources`.
fn named_rules_errors(matched: &Value, parent: &str, errors: &mut Vec<FieldError>) {
    for field in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in list(matched, field).iter().enumerate() {
            rule_errors(rule, &format!("{parent}.{field}[{index}]"), errors);
        }
    }
}

/// Matches `validateRuleWithOperations`, but for what it says of subresources beside a wildcard.
pub(super) fn rule_errors(rule: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for (field, others) in
        [("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions"), ("resources", "")]
    {
        let (values, at) = (list(rule, field), format!("{at}.{field}"));
        if values.is_empty() {
            errors.push(required(&*at, ""));
        }
        if !others.is_empty() && values.len() > 1 && values.iter().any(|value| value == "*") {
            errors.push(invalid_json(&*at, values, &format!("if '*' is present, must not specify other {others}")));
        }
        for (index, value) in values.iter().enumerate() {
            let at = format!("{at}[{index}]");
            if field == "operations" {
                errors.extend(one_of(value, &at, &OPERATIONS));
            } else if field != "apiGroups" && value == "" {
                errors.push(required(at, ""));
            }
        }
    }
    one_of_if_set(errors, rule, at, "scope", &["*", "Cluster", "Namespaced"]);
}

/// An error unless a value is one of these.
fn one_of(value: &Value, at: &str, supported: &[&str]) -> Option<FieldError> {
    let is_supported = supported.iter().any(|known| value == known);
    (!is_supported).then(|| not_supported(at, value.clone(), supported))
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
