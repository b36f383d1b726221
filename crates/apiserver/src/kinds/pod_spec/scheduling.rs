//! Validation of what decides where a Pod runs.
//!
//! Guarantees: see [`super`]. Matches `validateAffinity`, `ValidateTolerations` and `validateTopologySpreadConstraints` of
//! k8s.io/kubernetes `pkg/apis/core/validation/validation.go`.

use std::collections::{BTreeMap, BTreeSet};

use apimachinery::field::FieldError;
use apimachinery::names::{label_key_errors, label_value_errors};
use serde_json::Value;

use super::selectors;
use crate::kinds::fields::{
    dns_label_errors, duplicate, each_message, forbidden, invalid, invalid_json, list, not_supported, number,
    one_of_if_set, required, subdomain_errors, text,
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Validates `affinity`.
pub(super) fn affinity(affinity: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let nodes = &affinity["nodeAffinity"];
    let at = format!("{path}.nodeAffinity");
    if !nodes[REQUIRED].is_null() {
        let at = format!("{at}.{REQUIRED}.nodeSelectorTerms");
        let terms = list(&nodes[REQUIRED], "nodeSelectorTerms");
        if terms.is_empty() {
            errors.push(required(at.as_str(), "must have at least one node selector term"));
        }
        for (index, term) in terms.iter().enumerate() {
            node_term(term, true, &format!("{at}[{index}]"), errors);
        }
    }
    for (index, term) in list(nodes, PREFERRED).iter().enumerate() {
        let at = format!("{at}.{PREFERRED}[{index}]");
        weight(term, &at, errors);
        // Values that are no labels only cause warnings here.
        node_term(&term["preference"], false, &format!("{at}.preference"), errors);
    }
    for name in ["podAffinity", "podAntiAffinity"] {
        let (pods, at) = (&affinity[name], format!("{path}.{name}"));
        for (index, term) in list(pods, REQUIRED).iter().enumerate() {
            pod_term(term, &format!("{at}.{REQUIRED}[{index}]"), errors);
        }
        for (index, term) in list(pods, PREFERRED).iter().enumerate() {
            let at = format!("{at}.{PREFERRED}[{index}]");
            weight(term, &at, errors);
            pod_term(&term["podAffinityTerm"], &format!("{at}.podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let weight = number(term, "weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.push(invalid(format!("{at}.weight"), weight, "must be in the range 1-100"));
    }
}

fn node_term(term: &Value, judges_values: bool, path: &str, errors: &mut Vec<FieldError>) {
    for (index, requirement) in list(term, "matchExpressions").iter().enumerate() {
        node_requirement(requirement, judges_values, &format!("{path}.matchExpressions[{index}]"), errors);
    }
    for (index, requirement) in list(term, "matchFields").iter().enumerate() {
        field_requirement(requirement, &format!("{path}.matchFields[{index}]"), errors);
    }
}

/// Matches `ValidateNodeSelectorRequirement`.
fn node_requirement(requirement: &Value, judges_values: bool, at: &str, errors: &mut Vec<FieldError>) {
    let values = list(requirement, "values");
    let field = format!("{at}.values");
    match text(requirement, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            errors.push(required(field.as_str(), "must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(forbidden(field.as_str(), detail));
        }
        "Gt" | "Lt" if values.len() != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(required(field.as_str(), detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => errors.push(invalid_json(format!("{at}.operator"), other, "not a valid selector operator")),
    }
    let key = text(requirement, "key");
    errors.extend(each_message(&format!("{at}.key"), key, label_key_errors(key)));
    for (n, value) in values.iter().filter_map(Value::as_str).enumerate().filter(|_| judges_values) {
        errors.extend(each_message(&format!("{field}[{n}]"), value, label_value_errors(value)));
    }
}

/// Matches `ValidateNodeFieldSelectorRequirement`.
fn field_requirement(requirement: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let values = list(requirement, "values");
    match text(requirement, "operator") {
        "In" | "NotIn" if values.len() != 1 => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(required(format!("{at}.values"), detail));
        }
        "In" | "NotIn" => {}
        other => errors.push(invalid_json(format!("{at}.operator"), other, "not a valid selector operator")),
    }
    let key = text(requirement, "key");
    if key != "metadata.name" {
        errors.push(invalid(format!("{at}.key"), key, "not a valid field selector key"));
        return;
    }
    for (n, value) in values.iter().filter_map(Value::as_str).enumerate() {
        errors.extend(each_message(&format!("{at}.values[{n}]"), value, subdomain_errors(value)));
    }
}

/// Matches `validatePodAffinityTerm`.
fn pod_term(term: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for name in ["labelSelector", "namespaceSelector"] {
        selectors::validate(&term[name], &format!("{at}.{name}"), errors);
    }
    for namespace in list(term, "namespaces").iter().filter_map(Value::as_str) {
        errors.extend(each_message(&format!("{at}.namespace"), namespace, dns_label_errors(namespace)));
    }
    label_keys(term, at, errors);
    let key = text(term, "topologyKey");
    let field = format!("{at}.topologyKey");
    if key.is_empty() {
        errors.push(required(field.as_str(), "can not be empty"));
    }
    errors.extend(each_message(&field, key, label_key_errors(key)));
}

/// Matches `ValidateMatchLabelKeysAndMismatchLabelKeys`.
fn label_keys(term: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let selector = &term["labelSelector"];
    let keys = |name: &str| list(term, name).iter().filter_map(Value::as_str).collect::<Vec<_>>();
    for name in ["matchLabelKeys", "mismatchLabelKeys"] {
        let (keys, field) = (keys(name), format!("{at}.{name}"));
        if selector.is_null() && !keys.is_empty() {
            errors.push(forbidden(field, "must not be specified when labelSelector is not set"));
            continue;
        }
        for (index, key) in keys.into_iter().enumerate() {
            errors.extend(each_message(&format!("{field}[{index}]"), key, label_key_errors(key)));
        }
    }
    let (matched, mismatched) = (keys("matchLabelKeys"), keys("mismatchLabelKeys"));
    let indices: BTreeMap<&str, usize> = matched.iter().enumerate().map(|(index, key)| (*key, index)).collect();
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let mut selected: BTreeSet<&str> = labels.map(|(key, _)| key.as_str()).collect();
    for expression in list(selector, "matchExpressions") {
        let key = text(expression, "key");
        if let Some(index) = indices.get(key).filter(|_| selected.contains(key)) {
            // Upstream's path has the index and not the list.
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.push(invalid(format!("{at}[{index}]"), key, detail));
        }
        selected.insert(key);
    }
    let mismatched: BTreeSet<&str> = mismatched.into_iter().collect();
    for (index, key) in matched.into_iter().enumerate().filter(|(_, key)| mismatched.contains(key)) {
        let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
        errors.push(invalid(format!("{at}.matchLabelKeys[{index}]"), key, detail));
    }
}

/// Matches `ValidateTolerations`.
pub(super) fn tolerations(tolerations: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    for (index, toleration) in tolerations.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        if !key.is_empty() {
            errors.extend(each_message(&format!("{at}.key"), key, label_key_errors(key)));
        }
        let field = format!("{at}.operator");
        if key.is_empty() && operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(invalid_json(field.as_str(), operator, detail));
        }
        if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(invalid_json(format!("{at}.effect"), effect, detail));
        }
        match operator {
            "Equal" | "" => {
                let wrong = label_value_errors(value);
                if !wrong.is_empty() {
                    errors.push(invalid(field, value, &wrong.join(";")));
                }
            }
            "Exists" if value.is_empty() => {}
            "Exists" => errors.push(invalid(field, value, "value must be empty when `operator` is 'Exists'")),
            // The gate of these two is off.
            "Lt" | "Gt" => errors.push(not_supported(field, operator, &["Equal", "Exists", "Lt", "Gt"])),
            other => errors.push(not_supported(field, other, &["Equal", "Exists"])),
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !effect.is_empty() && !effects.contains(&effect) {
            errors.push(not_supported(format!("{at}.effect"), effect, &effects));
        }
    }
}

/// Validates `topologySpreadConstraints`.
pub(super) fn spread(constraints: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let key_of = |constraint: &'_ Value| {
        (text(constraint, "topologyKey").to_owned(), text(constraint, "whenUnsatisfiable").to_owned())
    };
    let mut remaining: BTreeMap<(String, String), usize> = BTreeMap::new();
    for constraint in constraints {
        *remaining.entry(key_of(constraint)).or_default() += 1;
    }
    for (index, constraint) in constraints.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let (key, action) = key_of(constraint);
        positive(constraint["maxSkew"].as_i64().unwrap_or(0), &format!("{at}.maxSkew"), errors);
        if key.is_empty() {
            errors.push(required(format!("{at}.topologyKey"), "can not be empty"));
        }
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        if !actions.contains(&action.as_str()) {
            errors.push(not_supported(format!("{at}.whenUnsatisfiable"), action.as_str(), &actions));
        }
        let shown = format!("{{{key}, {action}}}");
        if let Some(others) = remaining.get_mut(&(key, action.clone())) {
            *others -= 1;
            if *others > 0 {
                errors.push(duplicate(format!("{at}.{{topologyKey, whenUnsatisfiable}}"), shown));
            }
        }
        if let Some(domains) = number(constraint, "minDomains") {
            let field = format!("{at}.minDomains");
            positive(domains, &field, errors);
            if action != "DoNotSchedule" {
                let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.push(invalid(field, domains, &detail));
            }
        }
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            one_of_if_set(errors, constraint, &at, name, &["Honor", "Ignore"]);
        }
        label_keys(constraint, &at, errors);
        selectors::validate(&constraint["labelSelector"], &format!("{at}.labelSelector"), errors);
    }
}

/// Matches `ValidatePositiveField`.
fn positive(number: i64, field: &str, errors: &mut Vec<FieldError>) {
    if number <= 0 {
        errors.push(invalid(field, number, "must be greater than zero"));
    }
}
