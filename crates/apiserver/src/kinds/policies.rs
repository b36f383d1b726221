//! The policies of a Job: pod failure policy, success policy and pod replacement policy.
//!
//! Guarantees: rules are validated in upstream's order and words. Matches k8s.io/kubernetes
//! `pkg/apis/batch/validation/validation.go`, `validatePodFailurePolicy`, `validateSuccessPolicy`,
//! `validatePodReplacementPolicy` and `validateIndexesFormat`.

use std::collections::BTreeSet;

use apimachinery::field::FieldError;
use apimachinery::names::label_key_errors;
use apimachinery::quoting::quote;
use serde_json::Value;

use super::fields::{
    duplicate, each_message, invalid, invalid_unshown, list, nonnegative, not_supported, number, required, text,
    too_many,
};

const MOST_RULES: usize = 20;
const MOST_EXIT_CODES: usize = 255;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];

/// Validates `podFailurePolicy` at `path`.
pub(super) fn validate_failure(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if spec["podFailurePolicy"].is_null() {
        return;
    }
    let rules = list(spec, "podFailurePolicy.rules");
    if rules.len() > MOST_RULES {
        errors.push(too_many(format!("{path}.rules"), rules.len(), MOST_RULES));
    }
    let pods = &spec["template"]["spec"];
    let names: BTreeSet<&str> =
        list(pods, "containers").iter().chain(list(pods, "initContainers")).map(|c| text(c, "name")).collect();
    for (index, rule) in rules.iter().enumerate() {
        let at = format!("{path}.rules[{index}]");
        match text(rule, "action") {
            "" => errors.push(required(format!("{at}.action"), &format!("valid values: [{}]", quoted(&ACTIONS)))),
            "FailIndex" if spec["backoffLimitPerIndex"].is_null() => {
                let detail = "requires the backoffLimitPerIndex to be set";
                errors.push(invalid(format!("{at}.action"), "FailIndex", detail));
            }
            action if !ACTIONS.contains(&action) => {
                errors.push(not_supported(format!("{at}.action"), action, &ACTIONS));
            }
            _ => {}
        }
        let (codes, conditions) = (&rule["onExitCodes"], list(rule, "onPodConditions"));
        if !codes.is_null() {
            validate_exit_codes(codes, &names, &format!("{at}.onExitCodes"), errors);
        }
        validate_conditions(conditions, &format!("{at}.onPodConditions"), errors);
        match (codes.is_null(), conditions.is_empty()) {
            (false, false) => {
                let detail = "specifying both OnExitCodes and OnPodConditions is not supported";
                errors.push(invalid_unshown(at, detail));
            }
            (true, true) => {
                let detail = "specifying one of OnExitCodes and OnPodConditions is required";
                errors.push(invalid_unshown(at, detail));
            }
            _ => {}
        }
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(" ")
}

fn validate_conditions(conditions: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let statuses = ["False", "True", "Unknown"];
    if conditions.len() > MOST_RULES {
        errors.push(too_many(path, conditions.len(), MOST_RULES));
    }
    for (index, pattern) in conditions.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let type_ = text(pattern, "type");
        errors.extend(each_message(&format!("{at}.type"), type_, label_key_errors(type_)));
        match text(pattern, "status") {
            "" => errors.push(required(format!("{at}.status"), &format!("valid values: [{}]", quoted(&statuses)))),
            status if !statuses.contains(&status) => {
                errors.push(not_supported(format!("{at}.status"), status, &statuses));
            }
            _ => {}
        }
    }
}

fn validate_exit_codes(codes: &Value, names: &BTreeSet<&str>, path: &str, errors: &mut Vec<FieldError>) {
    let operators = ["In", "NotIn"];
    let operator = text(codes, "operator");
    if operator.is_empty() {
        errors.push(required(format!("{path}.operator"), &format!("valid values: [{}]", quoted(&operators))));
    } else if !operators.contains(&operator) {
        errors.push(not_supported(format!("{path}.operator"), operator, &operators));
    }
    if let Some(name) = codes["containerName"].as_str().filter(|name| !names.contains(name)) {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.push(invalid(format!("{path}.containerName"), name, detail));
    }
    let field = format!("{path}.values");
    let values: Vec<i64> = list(codes, "values").iter().filter_map(Value::as_i64).collect();
    if values.is_empty() {
        errors.push(invalid(field.as_str(), codes["values"].clone(), "at least one value is required"));
    } else if values.len() > MOST_EXIT_CODES {
        errors.push(too_many(field.as_str(), values.len(), MOST_EXIT_CODES));
    }
    let mut seen = BTreeSet::new();
    for (index, value) in values.iter().enumerate() {
        if operator == "In" && *value == 0 {
            errors.push(invalid(format!("{field}[{index}]"), 0, "must not be 0 for the In operator"));
        }
        if !seen.insert(value) {
            errors.push(duplicate(format!("{field}[{index}]"), *value));
        }
    }
    if !values.is_sorted() {
        errors.push(invalid(field, codes["values"].clone(), "must be ordered"));
    }
}

/// Validates `podReplacementPolicy` at `path`.
pub(super) fn validate_replacement(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(policy) = spec["podReplacementPolicy"].as_str() else { return };
    let all = ["Failed", "TerminatingOrFailed"];
    let supported = if spec["podFailurePolicy"].is_null() { &all[..] } else { &all[..1] };
    if !supported.contains(&policy) {
        errors.push(not_supported(path, policy, supported));
    }
}

/// Validates `successPolicy` of an indexed Job at `path`.
pub(super) fn validate_success(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let rules = list(spec, "successPolicy.rules");
    let completions = number(spec, "completions").unwrap_or(0);
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(required(format!("{path}.rules"), detail));
    }
    if rules.len() > MOST_RULES {
        errors.push(too_many(format!("{path}.rules"), rules.len(), MOST_RULES));
    }
    for (index, rule) in rules.iter().enumerate() {
        let at = format!("{path}.rules[{index}]");
        let (count, indexes) = (number(rule, "succeededCount"), rule["succeededIndexes"].as_str());
        if count.is_none() && indexes.is_none() {
            errors.push(required(at.as_str(), "at least one of succeededCount or succeededIndexes must be specified"));
        }
        let mut total = 0;
        if let Some(indexes) = indexes {
            match count_indexes(indexes, completions) {
                Ok(found) => total = found,
                Err(error) => {
                    let detail = format!("error parsing succeededIndexes: {error}");
                    errors.push(invalid(format!("{at}.succeededIndexes"), indexes, &detail));
                }
            }
        }
        let Some(count) = count else { continue };
        nonnegative(errors, rule, &at, "succeededCount");
        let mut too_many = |most: i64, what: &str| {
            if count > most {
                let detail = format!("must be less than or equal to {most} (the number of {what})");
                errors.push(invalid(format!("{at}.succeededCount"), count, &detail));
            }
        };
        too_many(completions, "specified completions");
        if indexes.is_some() {
            too_many(total, "indexes in the specified succeededIndexes field");
        }
    }
}

/// The number of indexes in a text such as `0-3,5`.
pub(super) fn count_indexes(indexes: &str, completions: i64) -> Result<i64, String> {
    let mut last = None;
    let mut total = 0;
    for interval in indexes.split(',').filter(|_| !indexes.is_empty()) {
        let (first, end) = parse_interval(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn parse_interval(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let index = |text: &str| match text.parse::<i64>() {
        Err(_) => Err(format!("cannot convert string to integer for index: {}", quote(text))),
        Ok(index) if index >= completions => Err(format!("too large index: {}", quote(text))),
        Ok(index) => Ok(index),
    };
    match interval.split('-').collect::<Vec<_>>()[..] {
        [only] => index(only).map(|index| (index, index)),
        [first, end] => {
            let (first, end) = (index(first)?, index(end)?);
            if first >= end {
                return Err(format!("non-increasing order, previous: {first}, current: {end}"));
            }
            Ok((first, end))
        }
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
            quote(interval)
        )),
    }
}
