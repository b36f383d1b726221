//! A server of three invented kinds, and helpers for requests.

use std::sync::Arc;

use apimachinery::clock::TestClock;
use axum::body::Bytes;
use chrono::{DateTime, Utc};
use futures::StreamExt;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::{ApiServer, Body, Column, Config, FieldError, NameRule, Resource, Strategy, discovery, kinds};

/// A kind with `spec.parts` (merged by name), `spec.size` (checked) and a status.
struct Widgets;

fn known(object: &Value) -> Vec<String> {
    let fields = ["name", "parts", "size", "finalizers"];
    let spec = object["spec"].as_object().into_iter().flatten();
    spec.filter(|(key, _)| !fields.contains(&key.as_str())).map(|(key, _)| format!("spec.{key}")).collect()
}

impl Strategy for Widgets {
    fn normalize(&self, object: &mut Value) -> Result<Vec<String>, String> {
        if object["spec"]["size"].is_string() {
            return Err("json: cannot unmarshal string into Go struct field WidgetSpec.spec.size of type int32".into());
        }
        let unknown = known(object);
        for path in &unknown {
            object["spec"].as_object_mut().unwrap().remove(path.strip_prefix("spec.").unwrap());
        }
        for part in ["spec", "status"] {
            if object[part].is_null() {
                object[part] = json!({});
            }
        }
        let drop_nulls = |map: &mut serde_json::Map<String, Value>| map.retain(|_, value| !value.is_null());
        object["metadata"].as_object_mut().map(drop_nulls);
        Ok(unknown)
    }

    fn set_defaults(&self, object: &mut Value) {
        if object["spec"]["size"].is_null() {
            object["spec"]["size"] = json!(1);
        }
    }

    fn prepare_for_create(&self, object: &mut Value) {
        object["status"] = json!({});
        object["metadata"]["generation"] = json!(1);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let size = object["spec"]["size"].as_i64().unwrap_or_default();
        let bad = size < 0;
        bad.then(|| apimachinery::field::invalid_field("spec.size", &json!(size), "must not be negative"))
            .into_iter()
            .collect()
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        object["status"] = old["status"].clone();
        if object["spec"] != old["spec"] {
            object["metadata"]["generation"] = json!(old["metadata"]["generation"].as_i64().unwrap() + 1);
        }
    }

    fn validate_update(&self, object: &Value, _: &Value) -> Vec<FieldError> {
        self.validate_create(object)
    }

    fn prepare_for_status_update(&self, object: &mut Value, old: &Value) {
        object["spec"] = old["spec"].clone();
    }

    fn columns(&self) -> Vec<Column> {
        let (name, type_, format) = ("Name".into(), "string".into(), "name".into());
        vec![Column { name, type_, format, priority: 0, description: "The name.".into() }]
    }

    fn cells(&self, object: &Value, _: DateTime<Utc>) -> Vec<Value> {
        vec![object["metadata"]["name"].clone()]
    }

    fn selectable_fields(&self, object: &Value) -> Vec<(&'static str, String)> {
        vec![("spec.size", object["spec"]["size"].to_string())]
    }

    fn patch_merge_key(&self, path: &[&str]) -> Option<&'static str> {
        (path == ["spec", "parts"]).then_some("name")
    }

    fn schema(&self) -> Value {
        json!({})
    }
}

/// Namespaces with the minimum that the server needs.
struct Namespaces;

impl Strategy for Namespaces {
    fn normalize(&self, _: &mut Value) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }
    fn prepare_for_create(&self, object: &mut Value) {
        object["status"] = json!({"phase": "Active"});
        object["spec"] = json!({"finalizers": ["kubernetes"]});
    }
    fn validate_create(&self, _: &Value) -> Vec<FieldError> {
        Vec::new()
    }
    fn prepare_for_update(&self, _: &mut Value, _: &Value) {}
    fn validate_update(&self, _: &Value, _: &Value) -> Vec<FieldError> {
        Vec::new()
    }
    fn prepare_for_status_update(&self, _: &mut Value, _: &Value) {}
    fn columns(&self) -> Vec<Column> {
        Vec::new()
    }
    fn cells(&self, _: &Value, _: DateTime<Utc>) -> Vec<Value> {
        Vec::new()
    }
    fn name_rule(&self) -> NameRule {
        NameRule::Label
    }
    fn returns_deleted_object(&self) -> bool {
        true
    }
    fn schema(&self) -> Value {
        json!({})
    }
}

fn resource(group: &str, kind: &str, plural: &str, namespaced: bool, strategy: Arc<dyn Strategy>) -> Resource {
    Resource {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        plural: plural.into(),
        singular: kind.to_lowercase(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced,
        has_status: true,
        strategy,
    }
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub code: u16,
    pub body: Value,
    pub warnings: Vec<String>,
}

impl Reply {
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }

    /// Fails with the whole answer if the code differs.
    pub fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.body);
        self.body
    }
}

pub struct Server {
    pub api: ApiServer,
}

pub const WIDGETS: &str = "/apis/test/v1/namespaces/default/widgets";

/// The path of a widget.
pub fn at(name: &str) -> String {
    format!("{WIDGETS}/{name}")
}
pub const MERGE: &str = "application/merge-patch+json";
pub const APPLY: &str = "application/apply-patch+yaml";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub const JSON_PATCH: &str = "application/json-patch+json";

impl Server {
    pub fn new() -> Self {
        Self::with_history(1000)
    }

    /// A server with the real server's kinds and the namespace `default`.
    pub async fn with_kinds() -> Self {
        let discovery = Some(discovery::respond as _);
        let server = Self::of(|clock| Config { discovery, ..Config::new(clock, kinds::all()) });
        let default = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
        server.post("/api/v1/namespaces", &default).await;
        server
    }

    pub fn with_history(history: usize) -> Self {
        let resources = vec![
            resource("", "Namespace", "namespaces", false, Arc::new(Namespaces)),
            resource("test", "Widget", "widgets", true, Arc::new(Widgets)),
        ];
        Self::of(|clock| Config { history, ..Config::new(clock, resources) })
    }

    fn of(config: impl FnOnce(Arc<TestClock>) -> Config) -> Self {
        let clock = TestClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        Self { api: ApiServer::new(config(clock)) }
    }

    pub async fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> http::Response<Body> {
        let mut request = Request::builder().method(method).uri(path).header("user-agent", "tester/1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.api.handle(request.body(Bytes::from(body.to_owned())).unwrap()).await
    }

    pub async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let response = self.raw(method, path, headers, body).await;
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter().map(|w| w.to_str().unwrap().to_owned()).collect();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Reply { code, body, warnings }
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, &[], &body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Reply {
        self.ask("PUT", path, &[], &body.to_string()).await
    }

    pub async fn patch(&self, path: &str, content_type: &str, body: &Value) -> Reply {
        self.ask("PATCH", path, &[("content-type", content_type)], &body.to_string()).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.ask("DELETE", path, &[], "").await
    }

    /// The events of a watch until it ends, as (type, name, resourceVersion).
    pub async fn watch(&self, path: &str) -> Vec<Value> {
        let response = self.raw("GET", path, &[], "").await;
        assert_eq!(response.status(), 200);
        let mut stream = response.into_body().into_data_stream();
        let mut text = String::new();
        while let Some(chunk) = stream.next().await {
            text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub fn widget(name: &str) -> Value {
    json!({"apiVersion": "test/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}})
}

/// A widget that another one owns.
pub fn owned(name: &str, owner: &Value, block: bool) -> Value {
    let mut object = widget(name);
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "test/v1", "kind": "Widget", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": block,
    }]);
    object
}
