//! The paths of the serving endpoints.
//!
//! Guarantees: each path answers GET and HEAD only (405 otherwise), and unknown paths answer 404. A source of metrics
//! that panics costs one answer 500. No endpoint changes the state of the program or reads a body: a request with a
//! body is refused.

use std::sync::{Arc, Weak};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};
use http_body::Body as _;
use schedule::TIME_ZONE_DATA;
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tracing::error;

use super::health::{self, HealthCheck};

/// The data that the endpoints serve. Cloned for each listener.
#[derive(Clone)]
pub struct Endpoints {
    /// The checks of `/healthz`.
    pub healthz: Vec<HealthCheck>,
    /// The checks of `/livez`: a failure makes the kubelet restart the process.
    pub livez: Vec<HealthCheck>,
    /// The checks of `/readyz`: a failure means "not ready yet".
    pub readyz: Vec<HealthCheck>,
    /// Writes all metrics in the Prometheus text format, version 0.0.4.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// The whole answer of `/configz`: an object whose key names the configuration, for example
    /// `{"cronjobcontroller.config": {…}}`.
    pub configz: serde_json::Value,
    /// The answer of `/version`.
    pub version: VersionInfo,
}

/// Which endpoints a listener serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All of them.
    All,
    /// `/metrics`.
    MetricsOnly,
    /// `/healthz`, `/livez`, `/readyz` and their checks.
    HealthOnly,
}

/// The version of this build. Matches `Info` in k8s.io/apimachinery's pkg/version/types.go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // The names are upstream's and say it all.
pub struct VersionInfo {
    pub major: String,
    pub minor: String,
    pub git_version: String,
    pub git_commit: String,
    pub git_tree_state: String,
    pub build_date: String,
    /// Always empty: this is not a Go program. Kept because readers of the upstream type expect the key.
    pub go_version: String,
    pub compiler: String,
    /// `os/architecture` in Go's names.
    pub platform: String,
    /// The version of the IANA time zone database that schedules use. Not in the upstream type.
    pub time_zone_data: String,
}

impl VersionInfo {
    /// This build. Commit, date and compiler come from the environment of the build (`GIT_COMMIT`, `GIT_TREE_STATE`,
    /// `BUILD_DATE`, `RUSTC_VERSION`) and are empty, or just `rustc`, without it.
    pub fn current() -> Self {
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "x86" => "386",
            other => other,
        };
        Self {
            major: env!("CARGO_PKG_VERSION_MAJOR").to_owned(),
            minor: env!("CARGO_PKG_VERSION_MINOR").to_owned(),
            git_version: format!("v{}", env!("CARGO_PKG_VERSION")),
            git_commit: option_env!("GIT_COMMIT").unwrap_or_default().to_owned(),
            git_tree_state: option_env!("GIT_TREE_STATE").unwrap_or_default().to_owned(),
            build_date: option_env!("BUILD_DATE").unwrap_or_default().to_owned(),
            go_version: String::new(),
            compiler: option_env!("RUSTC_VERSION").unwrap_or("rustc").to_owned(),
            platform: format!("{}/{arch}", std::env::consts::OS),
            time_zone_data: TIME_ZONE_DATA.to_owned(),
        }
    }
}

/// The router of one listener.
pub fn router(endpoints: Endpoints, which: Which) -> Router {
    let Endpoints { healthz, livez, readyz, metrics, configz, version } = endpoints;
    let mut router = Router::new();
    if which != Which::MetricsOnly {
        for (name, checks) in [("healthz", healthz), ("livez", livez), ("readyz", readyz)] {
            router = router.merge(health::routes(name, checks));
        }
    }
    if which != Which::HealthOnly {
        let texts = Arc::default();
        router = router.route("/metrics", get(move || show_metrics(metrics, texts)));
    }
    if which == Which::All {
        let configz = configz.to_string();
        router = router
            .route("/configz", get(move || async move { with_type("application/json", configz) }))
            .route("/version", get(move || async move { axum::Json(version) }));
    }
    router.fallback(async || not_found()).layer(from_fn(without_body))
}

/// Refuses a body, which no endpoint reads. The refusal is sent before the body is read, so its size does not matter.
async fn without_body(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    plain_text(StatusCode::PAYLOAD_TOO_LARGE, "requests have no body here\n".to_owned())
}

/// How many texts of the metrics may be in memory. A client that does not read keeps one for as long as it is connected; while so
/// many are kept, further clients get the newest of them.
const MOST_TEXTS: usize = 8;

/// A text of the metrics, shared between the answers that it is sent in.
struct Text(Arc<String>);

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Renders the metrics on a separate thread: with series for each of thousands of CronJobs it takes a fifth of a
/// second, and must not delay reconciliation. Scrapes run one at a time, so that they never use more than one core. `texts` are
/// those that are being sent, the newest last.
async fn show_metrics(
    metrics: Arc<dyn Fn() -> String + Send + Sync>,
    texts: Arc<Mutex<Vec<Weak<String>>>>,
) -> Response {
    let mut texts = texts.lock_owned().await;
    // A client that disconnects meanwhile does not free the lock earlier.
    let gather = move || {
        texts.retain(|text| text.strong_count() > 0);
        let newest = texts.last().filter(|_| texts.len() >= MOST_TEXTS).and_then(Weak::upgrade);
        newest.unwrap_or_else(|| {
            let text = Arc::new(metrics());
            texts.push(Arc::downgrade(&text));
            text
        })
    };
    match spawn_blocking(gather).await {
        Ok(text) => with_type("text/plain; version=0.0.4; charset=utf-8", Bytes::from_owner(Text(text))),
        Err(error) => {
            error!(%error, "gathering the metrics panicked");
            plain_text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal server error: gathering the metrics panicked\n".to_owned(),
            )
        }
    }
}

fn with_type(content_type: &'static str, body: impl Into<Body>) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static(content_type))], body.into()).into_response()
}

/// Text that no browser may interpret as anything else, as Go's `http.Error` sends it.
pub(crate) fn plain_text(status: StatusCode, body: String) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (status, headers, body).into_response()
}

pub(crate) fn not_found() -> Response {
    plain_text(StatusCode::NOT_FOUND, "404 page not found\n".to_owned())
}
