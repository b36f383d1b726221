//! Validation of label selectors.
//!
//! Guarantees: matches k8s.io/apimachinery `pkg/apis/meta/v1/validation`, `ValidateLabelSelector`.

use apimachinery::field::FieldError;
use apimachinery::names::{label_key_errors, label_value_errors};
use serde_json::Value;

use super::validate_labels;
use crate::kinds::fields::{each_message, forbidden, invalid_json, list, required, text};

/// Validates a selector, which may be absent.
pub(in crate::kinds) fn validate(selector: &Value, path: &str, errors: &mut Vec<FieldError>) {
    errors.extend(validate_labels(&selector["matchLabels"], &format!("{path}.matchLabels")));
    for (index, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let at = format!("{path}.matchExpressions[{index}]");
        let values = list(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(required(format!("{at}.values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(forbidden(format!("{at}.values"), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(invalid_json(format!("{at}.operator"), other, "not a valid selector operator")),
        }
        let key = text(expression, "key");
        errors.extend(each_message(&format!("{at}.key"), key, label_key_errors(key)));
        for (n, value) in values.iter().filter_map(Value::as_str).enumerate() {
            errors.extend(each_message(&format!("{at}.values[{n}]"), value, label_value_errors(value)));
        }
    }
}
