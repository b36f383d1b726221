//! What there is to be known of a CronJob, read from a cluster.
//!
//! Guarantees: three reads (the CronJob, the children of its namespace, the Warnings about it) and never a write; Events that
//! may not be read are told of and harm nothing; a Job that cannot be read is left out.

use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::Request;
use kube::Client;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Facts;
use crate::api::batch_v1::{CronJob, Job};
use crate::api::{ControllerKind, DecodeError, Interner, Manage, Object as _};
use crate::cli::CliError;
use crate::client::connect_for_person;
use crate::controller::control::with_causes;

/// Which object, and in which cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Of which kind it is.
    pub controller_kind: ControllerKind,
    /// Its namespace; without it, the context's.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// The kubeconfig file; without it, kubectl's.
    pub kubeconfig: Option<PathBuf>,
    /// The context; without it, the current one.
    pub context: Option<String>,
}

/// Why it cannot be explained.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such object.
    #[error("there is no {kind} {name} in namespace {namespace}")]
    NotFound {
        /// What was looked for.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Where it was looked for.
        namespace: String,
    },
    /// Its kind is not served.
    #[error("the cluster serves no {kind} of {api_version}")]
    NoKind {
        /// What was looked for.
        kind: &'static str,
        /// Its group and version.
        api_version: String,
    },
    /// The server refuses, or does not answer.
    #[error("read {what}: {cause}")]
    Request {
        /// What was read.
        what: String,
        /// What the server said, or why it said nothing.
        cause: String,
    },
    /// The answer is not what it should be.
    #[error("read {what}: {cause}")]
    Decode {
        /// What was read.
        what: String,
        /// What is wrong with the answer.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A Warning about the object, as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// When it was said last.
    pub time: DateTime<Utc>,
    /// How often.
    pub count: u64,
    /// The reason, a word in camel case.
    pub reason: String,
    /// The text.
    pub message: String,
}

/// Reads what is known from the cluster that `target` names.
///
/// # Errors
/// When there is no way to it, or no such object.
pub async fn connect_and_read(target: &Target) -> Result<Facts, CliError> {
    let (client, namespace) = connect_for_person(target.kubeconfig.as_deref(), target.context.as_deref()).await?;
    let namespace = target.namespace.as_deref().unwrap_or(&namespace);
    Ok(read(&client, target.controller_kind, namespace, &target.name).await?)
}

/// Reads what is known of one object.
///
/// # Errors
/// When there is no such object, or it or its children cannot be read.
pub async fn read(
    client: &Client,
    controller_kind: ControllerKind,
    namespace: &str,
    name: &str,
) -> Result<Facts, ReadError> {
    let interner = Interner::default();
    let kind = controller_kind.parent.kind;
    let what = format!("{kind} {namespace}/{name}");
    let path = format!("{}/{name}", controller_kind.parent.path(Some(namespace)));
    let text = get(client, &path).await.map_err(|cause| match cause {
        kube::Error::Api(status) if status.code == 404 => {
            // Where there is no such kind, the answer names no object.
            if status.details.is_some_and(|details| details.name == name) {
                ReadError::NotFound { kind, name: name.to_owned(), namespace: namespace.to_owned() }
            } else {
                ReadError::NoKind { kind, api_version: controller_kind.parent.api_version() }
            }
        }
        cause => ReadError::Request { what: what.clone(), cause: words(&cause) },
    })?;
    let decoded = |error: DecodeError| ReadError::Decode { what: what.clone(), cause: Box::new(error) };
    let mut cron_job = CronJob::decode(&text, &interner).map_err(decoded)?;
    let handed_over = Manage::Annotated.takes(&mut cron_job);
    let cron_job = Arc::new(cron_job);
    let jobs = list(client, &controller_kind.child.path(Some(namespace)), "").await?;
    let jobs = jobs.iter().filter_map(|raw| Job::decode(raw.get(), &interner).ok()).map(Arc::new).collect();
    let about = format!("&fieldSelector=involvedObject.uid={},type=Warning", cron_job.uid);
    let warnings = list(client, &format!("/api/v1/namespaces/{namespace}/events"), &about).await;
    let warnings = warnings.map(said).map_err(|error| error.to_string());
    Ok(Facts { cron_job, handed_over, jobs, warnings })
}

async fn get(client: &Client, path: &str) -> Result<String, kube::Error> {
    let request = Request::get(path).header(http::header::ACCEPT, "application/json").body(Vec::new());
    client.request_text(request.map_err(kube::Error::HttpError)?).await
}

/// What went wrong, for a person: the server's own words where there are some.
fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => with_causes(error),
    }
}

/// So many at a time, as kubectl asks for them.
const PAGE: u32 = 500;

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(default)]
    items: Option<Vec<Box<RawValue>>>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    continue_token: String,
}

async fn list(client: &Client, path: &str, query: &str) -> Result<Vec<Box<RawValue>>, ReadError> {
    let mut items = Vec::new();
    let mut continue_token = String::new();
    loop {
        // Tokens are base64 for URLs.
        let uri = format!("{path}?limit={PAGE}{query}&continue={continue_token}");
        let text = get(client, &uri).await;
        let text = text.map_err(|cause| ReadError::Request { what: path.to_owned(), cause: words(&cause) })?;
        let page: Page = serde_json::from_str(&text)
            .map_err(|cause| ReadError::Decode { what: path.to_owned(), cause: Box::new(cause) })?;
        items.extend(page.items.into_iter().flatten());
        continue_token = page.metadata.continue_token;
        if continue_token.is_empty() {
            return Ok(items);
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Warning {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    count: u64,
    #[serde(default)]
    last_timestamp: Option<DateTime<Utc>>,
    #[serde(default)]
    event_time: Option<DateTime<Utc>>,
}

/// The Warnings, the newest first.
fn said(items: Vec<Box<RawValue>>) -> Vec<Said> {
    let read = |raw: Box<RawValue>| serde_json::from_str::<Warning>(raw.get()).ok();
    let said = |event: Warning| {
        let time = event.last_timestamp.or(event.event_time)?;
        Some(Said { time, count: event.count.max(1), reason: event.reason, message: event.message })
    };
    let mut warnings: Vec<Said> = items.into_iter().filter_map(read).filter_map(said).collect();
    warnings.sort_by_key(|warning| std::cmp::Reverse(warning.time));
    warnings
}
