//! Health endpoints with the texts of Kubernetes.
//!
//! Guarantees: the output is byte for byte that of the apiserver's healthz package. A root endpoint fails when any of
//! its checks fails, and does not show the reason, because it is public. The path of a single check shows it. A check
//! that panics counts as failed, with no other effect.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use apimachinery::quoting::quote;
use axum::Router;
use axum::extract::{Path, Query};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, Uri};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::budgets::LogLimit;
use super::endpoints::{not_found, plain_text};

/// A named check. It runs on each request, on the thread that serves it, and must not block.
#[derive(Clone)]
pub struct HealthCheck {
    /// The name in the verbose output, in `?exclude=` and in the path below the root.
    pub name: String,
    /// `Err` holds the reason. It is logged, and shown on the path of this one check.
    pub check: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl HealthCheck {
    /// A check with this name.
    pub fn new(name: &str, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { name: name.to_owned(), check: Arc::new(check) }
    }

    /// The check that always passes. Matches `PingHealthz` in k8s.io/apiserver's pkg/server/healthz/healthz.go.
    pub fn ping() -> Self {
        Self::new("ping", || Ok(()))
    }

    /// Fails until the caches hold a complete list. Matches `NewInformerSyncHealthz` in k8s.io/apiserver's
    /// pkg/server/healthz/healthz.go.
    pub fn informer_sync(has_synced: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self::new(
            "informer-sync",
            move || {
                if has_synced() { Ok(()) } else { Err("informers have not synced yet".to_owned()) }
            },
        )
    }

    /// Fails once `stop` is cancelled. Matches `NewShutdownHealthz` in k8s.io/apiserver's
    /// pkg/server/healthz/healthz.go.
    pub fn shutdown(stop: &CancellationToken) -> Self {
        let stop = stop.clone();
        Self::new(
            "shutdown",
            move || {
                if stop.is_cancelled() { Err("process is shutting down".to_owned()) } else { Ok(()) }
            },
        )
    }

    fn run(&self) -> Result<(), String> {
        catch_unwind(AssertUnwindSafe(|| (self.check)())).unwrap_or_else(|_| Err("the check panicked".to_owned()))
    }
}

impl fmt::Debug for HealthCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HealthCheck").field("name", &self.name).finish_non_exhaustive()
    }
}

/// `/{name}` and `/{name}/{check}`. Without any check there is still `ping`. Matches `InstallPathHandler` in
/// k8s.io/apiserver's pkg/server/healthz/healthz.go.
pub(super) fn routes(name: &'static str, mut checks: Vec<HealthCheck>) -> Router {
    if checks.is_empty() {
        checks.push(HealthCheck::ping());
    }
    let checks: Arc<[HealthCheck]> = checks.into();
    let single = checks.clone();
    let log = Arc::new(LogLimit::default());
    Router::new()
        .route(&format!("/{name}"), get(move |uri: Uri| async move { root(name, &checks, &uri, &log) }))
        .route(&format!("/{name}/{{check}}"), get(move |Path(check): Path<String>| async move { one(&single, &check) }))
}

fn root(name: &str, checks: &[HealthCheck], uri: &Uri, log: &LogLimit) -> Response {
    let Query(query) = Query::<Vec<(String, String)>>::try_from_uri(uri).unwrap_or_default();
    let (status, body) = report(name, checks, &query, log);
    plain_text(status, body)
}

/// Matches `handleRootHealth` in k8s.io/apiserver's pkg/server/healthz/healthz.go.
fn report(name: &str, checks: &[HealthCheck], query: &[(String, String)], log: &LogLimit) -> (StatusCode, String) {
    let excluded: BTreeSet<&str> = query.iter().filter(|(key, _)| key == "exclude").map(|(_, v)| v.as_str()).collect();
    let verbose = query.iter().any(|(key, _)| key == "verbose");
    let mut unknown = excluded.clone();
    let mut lines = String::new();
    let mut failures = Vec::new();
    for check in checks {
        let check_name = check.name.as_str();
        let line = if excluded.contains(check_name) {
            unknown.remove(check_name);
            format!("[+]{check_name} excluded: ok\n")
        } else if let Err(reason) = check.run() {
            failures.push(format!("{check_name}: {reason}"));
            format!("[-]{check_name} failed: reason withheld\n")
        } else {
            format!("[+]{check_name} ok\n")
        };
        lines.push_str(&line);
    }
    if !unknown.is_empty() {
        let names: Vec<_> = unknown.iter().map(|name| quote(name)).collect();
        // Writing into a String cannot fail.
        let _ = writeln!(lines, "warn: some health checks cannot be excluded: no matches for {}", names.join(","));
    }
    if !failures.is_empty() {
        if let Some(suppressed) = log.admit(Instant::now()) {
            info!(endpoint = name, failures = failures.join("; "), suppressed, "health check failed");
        }
        return (StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{name} check failed\n"));
    }
    let body = if verbose { format!("{lines}{name} check passed\n") } else { "ok".to_owned() };
    (StatusCode::OK, body)
}

/// Matches `adaptCheckToHandler` in k8s.io/apiserver's pkg/server/healthz/healthz.go.
fn one(checks: &[HealthCheck], name: &str) -> Response {
    let Some(check) = checks.iter().find(|check| check.name == name) else { return not_found().into_response() };
    match check.run() {
        Ok(()) => plain_text(StatusCode::OK, "ok".to_owned()),
        Err(reason) => plain_text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n")),
    }
}
