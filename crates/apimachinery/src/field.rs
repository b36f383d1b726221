//! Refused fields of an object.
//!
//! Guarantee: a constructor gives the text that `field.Error.ErrorBody()` of k8s.io/apimachinery `pkg/util/validation/field`
//! prints for the same kind of error and the same value.

use serde_json::Value;

use crate::quoting::quote;

/// Why a field is refused. Matches apimachinery `field.ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// One refused field, from which the server makes the Status of an Invalid answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Why.
    pub kind: FieldErrorKind,
    /// Which, as `spec.schedule` or `spec.template.spec.containers[0].image`.
    pub field: String,
    /// The whole text of the cause, as `field.Error.ErrorBody()` prints it: `Invalid value: "x": …`.
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

/// A field that is refused, with the value that it has. Matches `field.Invalid`.
pub fn invalid_field(field: impl Into<String>, value: &Value, detail: &str) -> FieldError {
    let value = match value {
        Value::String(text) => quote(text),
        other => other.to_string(),
    };
    FieldError { kind: FieldErrorKind::Invalid, field: field.into(), body: format!("Invalid value: {value}: {detail}") }
}

/// A field that must not be set so. Matches `field.Forbidden`.
pub fn forbidden_field(field: impl Into<String>, detail: &str) -> FieldError {
    FieldError { kind: FieldErrorKind::Forbidden, field: field.into(), body: format!("Forbidden: {detail}") }
}

/// A field that is missing. Matches `field.Required`.
pub fn required_field(field: impl Into<String>, detail: &str) -> FieldError {
    let body = if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
    FieldError { kind: FieldErrorKind::Required, field: field.into(), body }
}

/// A field that must have one of some values. Matches `field.NotSupported`.
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
