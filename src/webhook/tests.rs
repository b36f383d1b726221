//! Tests of the webhooks' answers, their endpoints, and certificate maintenance.
#![allow(clippy::unwrap_used)]

mod authority;
mod http;
mod sockets;
mod tls;
mod verdicts;

use serde_json::{Value, json};

/// An AdmissionReview as the API server sends it.
fn review(operation: &str, object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": { "group": "batch.tutorial.kubebuilder.io", "version": "v1", "kind": "CronJob" },
            "resource": { "group": "batch.tutorial.kubebuilder.io", "version": "v1", "resource": "cronjobs" },
            "name": "report",
            "namespace": "default",
            "operation": operation,
            "userInfo": { "username": "admin" },
            "object": object,
            "oldObject": null,
            "dryRun": false,
            "options": null,
        },
    })
}

fn cron_job(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "batch.tutorial.kubebuilder.io/v1",
        "kind": "CronJob",
        "metadata": { "name": name, "namespace": "default" },
        "spec": spec,
    })
}
