//! Validation errors of fields.
//!
//! Guarantee: a constructor returns the text that `field.Error.ErrorBody()` of k8s.io/apimachinery `pkg/util/validation/field`
//! prints for the same kind of error and the same value.

use serde_json::Value;

use crate::quoting::quote;

/// The kind of a field error. Matches apimachinery `field.ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// `FieldValueRequired`.
    Required,
    /// `FieldValueInvalid`.
    Invalid,
    /// `FieldValueNotSupported`.
    NotSupported,
    /// `FieldValueForbidden`.
    Forbidden,
    /// `FieldValueTooLong`.
    TooLong,
    /// `FieldValueDuplicate`.
    Duplicate,
    /// `FieldValueNotFound`.
    NotFound,
    /// `FieldValueTooMany`.
    TooMany,
    /// `FieldValueTypeInvalid`.
    TypeInvalid,
}

/// One field error, a cause of the Status of an Invalid answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldError {
    /// The kind of error.
    pub kind: FieldErrorKind,
    /// The path of the field, such as `spec.schedule` or `spec.template.spec.containers[0].image`.
    pub field: String,
    /// The message of the cause, as `field.Error.ErrorBody()` prints it: `Invalid value: "x": …`.
    pub body: String,
}

impl FieldErrorKind {
    /// The `reason` of the cause in a Status. Matches `field.ErrorType`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }
}

/// The error for a field with an invalid value. Matches `field.Invalid`.
pub fn invalid_field(field: impl Into<String>, value: &Value, detail: &str) -> FieldError {
    let value = match value {
        Value::String(text) => quote(text),
        other => other.to_string(),
    };
    FieldError { kind: FieldErrorKind::Invalid, field: field.into(), body: format!("Invalid value: {value}: {detail}") }
}

/// The error for a field that must not have this value. Matches `field.Forbidden`.
pub fn forbidden_field(field: impl Into<String>, detail: &str) -> FieldError {
    FieldError { kind: FieldErrorKind::Forbidden, field: field.into(), body: format!("Forbidden: {detail}") }
}

/// How the error for a missing field begins.
pub const REQUIRED: &str = "Required value";

/// The error for a missing field. Matches `field.Required`.
pub fn required_field(field: impl Into<String>, detail: &str) -> FieldError {
    let body = if detail.is_empty() { REQUIRED.to_owned() } else { format!("{REQUIRED}: {detail}") };
    FieldError { kind: FieldErrorKind::Required, field: field.into(), body }
}

/// The error for a field that must have one of some values. Matches `field.NotSupported`.
pub fn unsupported_field(field: impl Into<String>, value: &Value, supported: &[&str]) -> FieldError {
    let value = match value {
        Value::String(text) => quote(text),
        other => other.to_string(),
    };
    let supported: Vec<String> = supported.iter().map(|text| quote(text)).collect();
    FieldError {
        kind: FieldErrorKind::NotSupported,
        field: field.into(),
        body: format!("Unsupported value: {value}: supported values: {}", supported.join(", ")),
    }
}
