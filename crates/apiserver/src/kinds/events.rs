//! Events of core/v1.
//!
//! Guarantees: the namespace alone is validated in old-style events, all fields in new-style ones (with eventTime).
//! Matches k8s.io/kubernetes `pkg/apis/core/validation/events.go`, `legacyValidateEvent`, and
//! `pkg/registry/core/event/strategy.go`.

use apimachinery::field::FieldError;
use apimachinery::names::label_key_errors;
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::fields::{at, each_message, invalid, number, required, subdomain_errors, text};
use super::{Kind, columns, time};
use crate::registry::{Column, NameRule};

pub(super) struct Events;

impl Kind for Events {
    const ROOT: &'static str = "core.v1.Event";
    const COLUMNS: &'static [Column] = &columns::EVENTS;
    const NAME_RULE: NameRule = NameRule::PathSegment;
    const ALLOW_CREATE_ON_UPDATE: bool = true;

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        validate(object)
    }

    fn validate_update(&self, object: &Value, _old: &Value) -> Vec<FieldError> {
        validate(object)
    }

    fn cells(&self, object: &Value, now: DateTime<Utc>) -> Vec<Value> {
        let since = |path: &str| time::since(at(object, path).as_str(), now);
        let or = |path: &str, other: &str| if at(object, path).is_null() { other.to_owned() } else { since(path) };
        let first = or("firstTimestamp", &since("eventTime"));
        let series = !object["series"].is_null();
        let last = if series { since("series.lastObservedTime") } else { or("lastTimestamp", &first) };
        let count = number(object, if series { "series.count" } else { "count" }).unwrap_or(0);
        let (kind, name) = (text(object, "involvedObject.kind").to_lowercase(), text(object, "involvedObject.name"));
        vec![
            last.into(),
            text(object, "type").into(),
            text(object, "reason").into(),
            if name.is_empty() { kind } else { format!("{kind}/{name}") }.into(),
            text(object, "involvedObject.fieldPath").into(),
            source_cell(object).into(),
            text(object, "message").trim().into(),
            first.into(),
            if count == 0 && !series { 1 } else { count }.into(),
            object["metadata"]["name"].clone(),
        ]
    }

    fn selectable_fields(&self, object: &Value) -> Vec<(&'static str, String)> {
        let mut fields: Vec<(&'static str, String)> = [
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "type",
        ]
        .into_iter()
        .map(|path| (path, text(object, path).to_owned()))
        .collect();
        let source = [text(object, "source.component"), text(object, "reportingComponent")];
        let source = source.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        fields.push(("source", source.to_owned()));
        fields
    }
}

/// Matches `formatEventSource`.
fn source_cell(event: &Value) -> String {
    let first = |one: &str, other: &str| {
        let value = text(event, one);
        if value.is_empty() { text(event, other).to_owned() } else { value.to_owned() }
    };
    let (component, host) =
        (first("source.component", "reportingComponent"), first("source.host", "reportingInstance"));
    if host.is_empty() { component } else { format!("{component}, {host}") }
}

fn validate(event: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (namespace, involved) = (text(event, "metadata.namespace"), text(event, "involvedObject.namespace"));
    let old_style = event["eventTime"].is_null();
    let mismatch = match (old_style, involved.is_empty()) {
        (true, true) => !namespace.is_empty() && namespace != "default",
        (true, false) => namespace != involved,
        (false, true) => namespace != "default" && namespace != "kube-system",
        (false, false) => false,
    };
    if mismatch {
        errors.push(invalid("involvedObject.namespace", involved, "does not match event.namespace"));
    }
    if !old_style {
        validate_new_style(event, &mut errors);
    }
    errors.extend(each_message("namespace", namespace, subdomain_errors(namespace)));
    errors
}

fn validate_new_style(event: &Value, errors: &mut Vec<FieldError>) {
    let mut judge = |name: &str, most: usize, needed: bool| {
        let length = text(event, name).len();
        if needed && length == 0 {
            errors.push(required(name, ""));
        }
        if length > most {
            errors.push(invalid(name, "", &format!("can have at most {most} characters")));
        }
        if name == "reportingComponent" {
            let value = text(event, name);
            errors.extend(each_message(name, value, label_key_errors(value)));
        }
    };
    judge("reportingComponent", usize::MAX, true);
    judge("reportingInstance", 128, true);
    judge("action", 128, true);
    judge("reason", 128, true);
    judge("message", 1024, false);
}
