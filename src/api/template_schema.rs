//! The schemas of Job and Pod templates in the CustomResourceDefinitions.
//!
//! Guarantees: a field that is not named here is kept, so that a template may use fields of newer clusters. A field
//! that is named here has the type that Kubernetes gives it. These types exist for their schemas alone: nothing is
//! decoded into them, since that would drop fields. Nothing below a template is described. `kubectl explain job.spec`
//! and `kubectl explain pod.spec` do that, and the schema has to fit into the annotation in which `kubectl apply` keeps
//! a copy.
#![allow(missing_docs, reason = "a comment would become a description, and the fields are those of k8s.io/api")]

use std::collections::BTreeMap;

use schemars::JsonSchema;

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct TemplateMeta {
    pub labels: Option<BTreeMap<String, String>>,
    pub annotations: Option<BTreeMap<String, String>>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct JobTemplate {
    pub metadata: Option<TemplateMeta>,
    pub spec: JobSpec,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct JobSpec {
    #[schemars(range(min = 0))]
    pub parallelism: Option<i32>,
    #[schemars(range(min = 0))]
    pub completions: Option<i32>,
    pub completion_mode: Option<String>,
    #[schemars(range(min = 0))]
    pub active_deadline_seconds: Option<i64>,
    #[schemars(range(min = 0))]
    pub backoff_limit: Option<i32>,
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
    pub suspend: Option<bool>,
    pub template: PodTemplate,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct PodTemplate {
    pub metadata: Option<TemplateMeta>,
    pub spec: PodSpec,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct PodSpec {
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub init_containers: Option<Vec<Container>>,
    #[schemars(length(min = 1), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub containers: Vec<Container>,
    #[schemars(range(min = 0))]
    pub active_deadline_seconds: Option<i64>,
    pub node_selector: Option<BTreeMap<String, String>>,
    pub restart_policy: Option<String>,
    pub service_account_name: Option<String>,
    #[schemars(range(min = 0))]
    pub termination_grace_period_seconds: Option<i64>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct Container {
    pub name: String,
    pub image: Option<String>,
    pub command: Option<Vec<String>>,
    pub args: Option<Vec<String>>,
    pub working_dir: Option<String>,
}
