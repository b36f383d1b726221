//! Namespaces.
//!
//! Guarantees: a namespace has its name as a label and the `kubernetes` finalizer, and is Active until it is deleted. Matches
//! k8s.io/kubernetes `pkg/registry/core/namespace/strategy.go` and core/v1 `SetDefaults_Namespace`.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::fields::{child, copy, list, text};
use super::{Kind, age, columns};
use crate::registry::{Column, NameRule};

pub(super) struct Namespaces;

const FINALIZER: &str = "kubernetes";

impl Kind for Namespaces {
    const ROOT: &'static str = "core.v1.Namespace";
    const COLUMNS: &'static [Column] = &columns::NAMESPACES;
    const NAME_RULE: NameRule = NameRule::Label;

    fn set_defaults(&self, object: &mut Value) {
        label(object);
        if text(object, "status.phase").is_empty() {
            child(object, "status")["phase"] = "Active".into();
        }
    }

    fn prepare_for_create(&self, object: &mut Value) {
        object["status"] = json!({"phase": "Active"});
        let mut finalizers = list(object, "spec.finalizers").to_vec();
        if !finalizers.iter().any(|name| name == FINALIZER) {
            finalizers.push(FINALIZER.into());
        }
        child(object, "spec")["finalizers"] = finalizers.into();
        // A generated name is known only here.
        label(object);
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        copy(child(object, "spec"), &old["spec"], "finalizers");
        copy(object, old, "status");
    }

    fn cells(&self, object: &Value, now: DateTime<Utc>) -> Vec<Value> {
        vec![object["metadata"]["name"].clone(), text(object, "status.phase").into(), age(object, now)]
    }

    fn selectable_fields(&self, object: &Value) -> Vec<(&'static str, String)> {
        // `name` is an upstream mistake, kept for old clients.
        vec![
            ("status.phase", text(object, "status.phase").to_owned()),
            ("name", text(object, "metadata.name").to_owned()),
        ]
    }
}

fn label(namespace: &mut Value) {
    let name = text(namespace, "metadata.name").to_owned();
    if !name.is_empty() {
        child(child(namespace, "metadata"), "labels")["kubernetes.io/metadata.name"] = name.into();
    }
}
