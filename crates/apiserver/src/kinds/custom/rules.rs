//! The CEL rules of a schema.
//!
//! Guarantees: a rule that fails is an error in the words of kube-apiserver. A rule that is not judged (`cel`) is no error, and is named
//! with the reason. Rules about a change are applied to changes alone. Pure.
//!
//! Matches k8s.io/apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go`.

use apimachinery::field::FieldError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::schema::Schema;
use crate::cel::{Answer, Budget, Expression, Scope};
use crate::kinds::fields::{duplicate, forbidden, invalid, invalid_unshown, required};
use crate::policies::{message, short};

const OLD: &str = "oldSelf";

/// A CEL rule.
#[derive(Debug, Deserialize)]
#[serde(from = "RawRule")]
pub(super) struct Rule {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: String,
    /// The path of the field that an error names, below the value.
    field: String,
    /// Whether there may be no old value.
    is_old_optional: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRule {
    rule: String,
    #[serde(default)]
    message: String,
    message_expression: Option<String>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    field_path: String,
    #[serde(default)]
    optional_old_self: bool,
}

impl From<RawRule> for Rule {
    fn from(raw: RawRule) -> Self {
        Self {
            expression: Expression::read(&raw.rule),
            message: raw.message.trim().to_owned(),
            message_expression: raw.message_expression.as_deref().map(Expression::read),
            reason: raw.reason,
            field: raw.field_path,
            is_old_optional: raw.optional_old_self,
        }
    }
}

/// What rules say of an object.
#[derive(Default)]
pub(super) struct Judged {
    pub errors: Vec<FieldError>,
    /// The rules that are not judged, and why.
    pub unknown: Vec<String>,
    budget: Budget,
}

impl Rule {
    /// As it is written.
    pub(super) fn text(&self) -> &str {
        self.expression.text()
    }

    /// Why it is never judged.
    pub(super) fn fault(&self) -> Option<String> {
        if self.is_old_optional {
            return Some("an optional oldSelf is not evaluated here".to_owned());
        }
        self.expression.fault().map(ToString::to_string)
    }

    fn error(&self, value: &Value, path: &str, detail: &str) -> FieldError {
        let path = format!("{path}{}", self.field);
        let path = if path.is_empty() { "<nil>" } else { path.trim_start_matches('.') };
        match self.reason.as_str() {
            "FieldValueRequired" => required(path, detail),
            "FieldValueForbidden" => forbidden(path, detail),
            "FieldValueDuplicate" => duplicate(path, value.clone()),
            _ if value.is_object() || value.is_array() => invalid_unshown(path, detail),
            _ => invalid(path, value.clone(), detail),
        }
    }
}

/// Applies the rules of a schema to a value at `path` that replaces another one.
pub(super) fn apply(
    rules: &[Rule],
    schema: &Schema,
    (value, old): (&Value, Option<&Value>),
    path: &str,
    judged: &mut Judged,
) {
    let scope = Scope::default().with("self", value, Some(schema));
    let scope = match old {
        Some(old) => scope.with(OLD, old, Some(schema)),
        None => scope,
    };
    for rule in rules {
        if rule.fault().is_some() || (rule.expression.names(OLD) && old.is_none()) {
            continue;
        }
        match rule.expression.evaluate(&scope, &mut judged.budget) {
            Ok(Answer::Bool(true)) => {}
            Ok(Answer::Bool(false)) => {
                let otherwise = format!("failed rule: {}", rule.text().trim());
                let made = rule.message_expression.as_ref();
                let detail = message(made, &rule.message, &otherwise, &scope, &mut judged.budget);
                judged.errors.push(rule.error(value, path, &detail));
            }
            Ok(_) => judged.unknown.push(unknown(path, rule, "its result is no truth value")),
            Err(why) => judged.unknown.push(unknown(path, rule, &why.to_string())),
        }
    }
}

fn unknown(path: &str, rule: &Rule, why: &str) -> String {
    let at = if path.is_empty() { String::new() } else { format!("{path}: ") };
    format!("{at}the CEL rule {} is not judged by this server: {why}", json!(short(rule.text())))
}
