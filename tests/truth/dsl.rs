//! The language of the script: scenarios of named steps, each a request, a watch or a condition to wait for.
//!
//! In paths and bodies `${ns}` is the scenario's own namespace. `${id:/pointer}` is a value from this server's answer
//! to an earlier step that is marked with [`Request::id`].

use serde_json::{Value, json};

/// Steps that run in sequence in a namespace of their own.
pub struct Scenario {
    /// Also the namespace, with the prefix `t-`.
    pub name: &'static str,
    /// Whether no other scenario may run at the same time.
    pub alone: bool,
    pub steps: Vec<Step>,
}

/// One step.
pub enum Step {
    /// Sends a request; the answer is recorded under the sentence.
    Ask(String, Request),
    /// Opens a watch, whose body continues, and proceeds once it is answered.
    Open(&'static str, Request),
    /// Waits for the end of an opened watch; the answer is recorded under the sentence.
    Close(String, &'static str),
    /// Sends requests in parallel. Their order is undefined, so the statuses and messages of the answers are recorded
    /// sorted.
    Race(String, Vec<Request>),
    /// The server forgets its history.
    Compact,
}

/// The condition of a polled answer.
#[derive(Clone)]
pub enum Until {
    Status(u16),
    /// The value at the pointer; null if absent.
    Is(&'static str, Value),
}

/// The part of the answer's body that is compared.
#[derive(Clone, Copy)]
pub enum Compare {
    All,
    /// The body reduced by a function, where the real server returns more than the embedded one.
    Part(fn(Value) -> Value),
}

/// One request.
#[derive(Clone)]
pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Option<String>,
    pub id: Option<&'static str>,
    pub until: Option<Until>,
    pub compare: Compare,
}

pub const JSON_PATCH: &str = "application/json-patch+json";
pub const MERGE: &str = "application/merge-patch+json";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub const APPLY: &str = "application/apply-patch+yaml";
pub const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
pub const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
pub const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

impl Request {
    fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: None,
            id: None,
            until: None,
            compare: Compare::All,
        }
    }

    fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    /// Replaces a default header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.retain(|(existing, _)| *existing != name);
        self.headers.push((name, value.into()));
        self
    }

    pub fn accept(self, value: &str) -> Self {
        self.header("accept", value)
    }

    pub fn body(mut self, text: impl Into<String>) -> Self {
        self.body = Some(text.into());
        self
    }

    /// Names the answer for later steps.
    pub fn id(mut self, id: &'static str) -> Self {
        self.id = Some(id);
        self
    }

    /// Repeats the request until the answer has this status.
    pub fn until_status(mut self, status: u16) -> Self {
        self.until = Some(Until::Status(status));
        self
    }

    /// Repeats the request until the answer has this value.
    pub fn until(mut self, pointer: &'static str, value: Value) -> Self {
        self.until = Some(Until::Is(pointer, value));
        self
    }

    pub fn part(mut self, part: fn(Value) -> Value) -> Self {
        self.compare = Compare::Part(part);
        self
    }

    /// Records the answer under `sentence`.
    pub fn named(self, sentence: impl Into<String>) -> Step {
        Step::Ask(sentence.into(), self)
    }

    /// Continues in the background under `name`.
    pub fn open(self, name: &'static str) -> Step {
        Step::Open(name, self)
    }
}

pub fn get(path: impl Into<String>) -> Request {
    Request::new("GET", path)
}

pub fn delete(path: impl Into<String>) -> Request {
    Request::new("DELETE", path)
}

/// A DELETE with DeleteOptions.
pub fn delete_with(path: impl Into<String>, options: &Value) -> Request {
    let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
    merge(&mut body, options);
    Request::new("DELETE", path).json(&body)
}

pub fn post(path: impl Into<String>, body: &Value) -> Request {
    Request::new("POST", path).json(body)
}

pub fn put(path: impl Into<String>, body: &Value) -> Request {
    Request::new("PUT", path).json(body)
}

pub fn patch(kind: &'static str, path: impl Into<String>, body: &Value) -> Request {
    Request::new("PATCH", path).header("content-type", kind).body(body.to_string())
}

pub fn request(method: &'static str, path: impl Into<String>) -> Request {
    Request::new(method, path)
}

/// A watch that ends by itself after a second. `query` without the leading `?`.
pub fn watch(path: &str, query: &str) -> Request {
    let more = if query.is_empty() { String::new() } else { format!("&{query}") };
    get(format!("{path}?watch=1&timeoutSeconds=1{more}"))
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().expect("options are an object") {
        into[key.as_str()] = value.clone();
    }
}

/// Changes of a JSON value, as method calls on it.
pub trait With: Sized {
    /// Sets the value at a pointer, creating the objects on the path.
    fn with(self, pointer: &str, value: Value) -> Self;
    /// Removes the value at a pointer.
    fn without(self, pointer: &str) -> Self;
}

impl With for Value {
    fn with(mut self, pointer: &str, value: Value) -> Self {
        let mut at = &mut self;
        for part in pointer.split('/').skip(1) {
            let part = part.replace("~1", "/");
            at = match at {
                Value::Array(items) => {
                    let index: usize = part.parse().expect("an index into a list");
                    if index == items.len() {
                        items.push(Value::Null);
                    }
                    &mut items[index]
                }
                other => &mut other[part],
            };
        }
        *at = value;
        self
    }

    fn without(mut self, pointer: &str) -> Self {
        let (parent, last) = pointer.rsplit_once('/').expect("a pointer");
        if let Some(Value::Object(map)) = self.pointer_mut(parent) {
            map.remove(last);
        }
        self
    }
}

pub const CRONJOBS: &str = "/apis/batch/v1/namespaces/${ns}/cronjobs";
pub const JOBS: &str = "/apis/batch/v1/namespaces/${ns}/jobs";
pub const PODS: &str = "/api/v1/namespaces/${ns}/pods";
pub const EVENTS: &str = "/api/v1/namespaces/${ns}/events";
pub const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/${ns}/leases";
pub const NAMESPACES: &str = "/api/v1/namespaces";

pub fn pod_spec(restart: &str) -> Value {
    json!({"restartPolicy": restart, "containers": [{"name": "c", "image": "busybox", "command": ["true"]}]})
}

/// The shortest valid CronJob.
pub fn cronjob(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": pod_spec("OnFailure")}}}},
    })
}

/// The shortest valid Job.
pub fn job(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {"spec": pod_spec("Never")}},
    })
}

/// The shortest valid Pod.
pub fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod_spec("Always")})
}

pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

pub fn lease(name: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "2020-01-01T00:00:00.123456Z",
                 "renewTime": "2020-01-01T00:00:01.000000Z", "leaseTransitions": 0},
    })
}

pub fn event(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "type": "Normal", "reason": "SuccessfulCreate",
        "message": "Created job a-1", "count": 1, "source": {"component": "cronjob-controller"},
        "firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-01T00:00:00Z",
        "involvedObject": {"kind": "CronJob", "namespace": "${ns}", "name": "a", "apiVersion": "batch/v1",
                           "uid": "00000000-0000-0000-0000-000000000001"},
    })
}

/// An owner reference to the answer `id`.
pub fn owned_by(api_version: &str, kind: &str, name: &str, id: &str, block: bool) -> Value {
    json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": format!("${{{id}:/metadata/uid}}"),
            "controller": true, "blockOwnerDeletion": block}])
}
