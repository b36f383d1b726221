//! The annotations of a Namespace that a freeze or a thaw writes.
//!
//! Guarantee: no other annotation is changed. Pure.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Map, Value, json};

use crate::api::policy::{NOT_BEFORE, REASON, Restriction};
use crate::api::{Interner, Namespace, Object as _};

/// The first whole second at or after an instant: slots have whole seconds.
pub(super) fn whole_second(now: DateTime<Utc>) -> DateTime<Utc> {
    let whole = DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now);
    if whole < now { whole + TimeDelta::seconds(1) } else { whole }
}

/// The text of an object with the annotations of a merge patch.
pub(super) fn changed(text: &str, change: &Value) -> String {
    let mut object: Value = serde_json::from_str(text).unwrap_or_default();
    for (name, value) in change["metadata"]["annotations"].as_object().into_iter().flatten() {
        object["metadata"]["annotations"][name] = value.clone();
    }
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|_, value| !value.is_null());
    }
    object.to_string()
}

pub(super) fn restriction(text: &str) -> Option<Arc<Restriction>> {
    Namespace::decode(text, &Interner::default()).ok()?.restriction
}

/// The annotations that are written; one that is null is removed.
pub(super) fn annotations(not_before: DateTime<Utc>, reason: Option<&str>) -> Map<String, Value> {
    let not_before = not_before.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    Map::from_iter([(NOT_BEFORE.to_owned(), not_before.into()), (REASON.to_owned(), reason.into())])
}

pub(super) fn patch(annotations: &Map<String, Value>) -> Value {
    json!({ "metadata": { "annotations": annotations } })
}
