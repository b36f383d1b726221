//! One request, as the network sees it.

use std::fmt;

use axum::body::Bytes;
use cronjob_controller::api::ControllerKind;
use futures::FutureExt as _;
use http::request::Parts;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::Value;

/// The kind of a request's object: a Pod counts as a Job, since a slot may start either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    CronJobs,
    Jobs,
    Leases,
    Events,
    Namespaces,
    Other,
}

/// A request with its body.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    pub uri: String,
    pub content_type: Option<http::HeaderValue>,
    pub body: Bytes,
    pub kind: Kind,
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
    /// The name of the Job that it creates; empty for any other request.
    pub created_job: String,
    pub status: bool,
    pub watch: bool,
}

impl Call {
    pub fn new(parts: &Parts, body: Bytes) -> Self {
        Self::of(parts.method.clone(), parts.uri.to_string(), parts.headers.get("content-type").cloned(), body)
    }

    /// A request of a client in a world of that kind.
    pub fn read(request: Request<kube::client::Body>, controller_kind: ControllerKind) -> Self {
        let (parts, body) = request.into_parts();
        let bytes = body.collect().now_or_never().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
        Self::new(&parts, bytes).in_world_of(controller_kind)
    }

    /// A request of the simulated world itself; a patch is a merge patch.
    pub fn world(method: Method, uri: impl Into<String>, body: &Value) -> Self {
        let content_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        Self::of(method, uri.into(), Some(http::HeaderValue::from_static(content_type)), bytes.into())
    }

    fn of(method: Method, uri: String, content_type: Option<http::HeaderValue>, body: Bytes) -> Self {
        let (path, query) = uri.split_once('?').unwrap_or((&uri, ""));
        let mut parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let namespace = match parts.iter().position(|part| *part == "namespaces") {
            Some(at) if parts.len() > at + 2 => {
                let namespace = parts[at + 1].to_owned();
                parts.drain(at..at + 2);
                namespace
            }
            _ => String::new(),
        };
        let root = if parts[0] == "api" { 2 } else { 3 };
        let part = |at: usize| parts.get(root + at).copied().unwrap_or_default();
        let kind = match part(0) {
            "cronjobs" | "apiexamples" => Kind::CronJobs,
            "jobs" | "pods" => Kind::Jobs,
            "leases" => Kind::Leases,
            "events" => Kind::Events,
            "namespaces" => Kind::Namespaces,
            _ => Kind::Other,
        };
        let (name, status) = (part(1).to_owned(), part(2) == "status");
        let watch = query.contains("watch=1") || query.contains("watch=true");
        let created_job = String::new();
        let mut call = Self { kind, namespace, name, created_job, status, watch, method, uri, content_type, body };
        if call.is_create_of_job() {
            call.created_job = call.json()["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        }
        call
    }

    /// Group and version.
    pub fn api_version(&self) -> String {
        self.uri.split('/').skip(2).take(2).collect::<Vec<_>>().join("/")
    }

    /// The same in a world of that controller kind, where other CronJobs are ignored.
    fn in_world_of(self, controller_kind: ControllerKind) -> Self {
        let is_foreign = self.kind == Kind::CronJobs && self.api_version() != controller_kind.parent.api_version();
        Self { kind: if is_foreign { Kind::Other } else { self.kind }, ..self }
    }

    /// The same with another query.
    pub fn with_query(&self, query: &str) -> Self {
        let path = self.uri.split('?').next().unwrap_or_default();
        Self { uri: format!("{path}?{query}"), ..self.clone() }
    }

    pub fn query(&self) -> &str {
        self.uri.split_once('?').map_or("", |(_, query)| query)
    }

    pub fn is_write(&self) -> bool {
        self.method != Method::GET
    }

    /// A write that only a leader may send.
    pub fn is_fenced(&self) -> bool {
        self.is_write() && matches!(self.kind, Kind::CronJobs | Kind::Jobs)
    }

    pub fn is_create_of_job(&self) -> bool {
        self.kind == Kind::Jobs && self.method == Method::POST
    }

    /// Whether it names that CronJob, or a Job of it.
    pub fn concerns(&self, cron_job: &str) -> bool {
        let is_of =
            |name: &str| name == cron_job || name.strip_prefix(cron_job).is_some_and(|rest| rest.starts_with('-'));
        is_of(&self.name) || is_of(&self.created_job)
    }

    /// The longest time in milliseconds that the server takes, by the query's `timeout`.
    pub fn timeout(&self) -> Option<u64> {
        let text = self.query().split('&').find_map(|pair| pair.strip_prefix("timeout="))?;
        let (mut milliseconds, mut rest) = (0.0, text);
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let (number, unit_and_more) = rest.split_at(digits);
            let unit = unit_and_more.find(|c: char| c.is_ascii_digit()).unwrap_or(unit_and_more.len());
            let (unit, more) = unit_and_more.split_at(unit);
            let scale = match unit {
                "h" => 3_600_000.0,
                "m" => 60_000.0,
                "s" => 1_000.0,
                "ms" => 1.0,
                _ => panic!("kube-apiserver refuses {text}"),
            };
            milliseconds += number.parse::<f64>().expect("a number") * scale;
            rest = more;
        }
        Some(milliseconds as u64)
    }

    pub fn is_list(&self) -> bool {
        !self.is_write() && self.name.is_empty() && (!self.watch || self.query().contains("sendInitialEvents=true"))
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn request(&self) -> Request<Bytes> {
        let mut request = Request::builder().method(self.method.clone()).uri(&self.uri);
        request = request.header("accept", "application/json");
        if let Some(content_type) = &self.content_type {
            request = request.header("content-type", content_type);
        }
        request.body(self.body.clone()).unwrap()
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = if self.status { "/status" } else { "" };
        write!(f, "{} {:?} {}/{}{}{status}", self.method, self.kind, self.namespace, self.name, self.created_job)
    }
}
