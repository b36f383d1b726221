//! Reads the facts about a CronJob from a cluster.
//!
//! Guarantees: five reads (the CronJob, the children of its namespace, the Warnings about it, the leases, the Namespace) and no
//! writes; the same again every two seconds while a run is awaited. A running Job and one that failed are read last, each with its
//! Pods.
//! Unreadable Events, leases and Pods are reported in the explanation, and none of them is a failure. A Job that cannot be decoded is
//! left out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::causes::with_causes;
use apimachinery::clock::Clock;
use apimachinery::steps;
use chrono::{DateTime, Utc};
use http::Request;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::in_charge::InCharge;
use super::lease::{ControllerLease, Leases};
use super::{Explanation, Shell, Urgency, cluster_flags, explain};
use crate::api::batch_v1::{CronJob, FinishedCondition, Job, SlotsEdited, slots_edited};
use crate::api::manage::Standing;
use crate::api::{ControllerKind, DecodeError, Interner, Manage, Object as _};
use crate::cache::{PAGE_SIZE, page_size};
use crate::cli::CliError;
use crate::cli::backfill::covered;
use crate::cli::cluster::{self, ControllerFlags};
use crate::cli::failure::Failure;
use crate::cli::kubectl::Program;
use crate::cli::restrictions::{Restrictions, unread};
use crate::cli::unfinished;
use crate::client::{DeadlineError, connect_for_person};
use crate::events::CorrelatorOptions;

/// How often [`await_run`] reads.
const PERIOD: Duration = Duration::from_secs(2);

/// What was read about a CronJob.
#[derive(Debug)]
pub struct Facts {
    /// The CronJob.
    pub cron_job: Arc<CronJob>,
    /// Which controller runs it; its fields are as that controller sees them.
    pub in_charge: InCharge,
    /// All Jobs (or Pods) of its namespace.
    pub jobs: Vec<Arc<Job>>,
    /// The Warnings about it, newest first, or why they could not be read.
    pub warnings: Result<Vec<Said>, String>,
    /// What Events tell of its Jobs, newest first.
    pub told: Vec<ToldRun>,
    /// Whether Events of its Jobs may not have been written, because there were too many.
    pub may_lack_events: bool,
    /// The times of slots that backfills covered, first and last.
    pub backfilled: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    /// The lease of its controller; `None` if there is none or it could not be read.
    pub lease: Option<ControllerLease>,
    /// The `--manage` of the instance of this controller that works in its namespace, if its lease says it.
    pub manage: Option<Manage>,
    /// Why the leases could not be read.
    pub leases_unread: Option<String>,
    /// Why its Namespace could not be read; what that says is part of the CronJob otherwise.
    pub namespace_unread: Option<String>,
    /// When its schedule, zone or suspension was written last, if that is known.
    pub edited: SlotsEdited,
}

impl Facts {
    /// Of a CronJob whose Events, Lease and Namespace do not matter.
    pub fn of(cron_job: Arc<CronJob>, in_charge: InCharge, jobs: Vec<Arc<Job>>) -> Self {
        Self {
            cron_job,
            in_charge,
            jobs,
            warnings: Ok(Vec::new()),
            told: Vec::new(),
            may_lack_events: false,
            backfilled: Vec::new(),
            lease: None,
            manage: None,
            leases_unread: None,
            namespace_unread: None,
            edited: SlotsEdited::default(),
        }
    }

    /// The same with all Events about it, newest first, and the Warnings among them.
    #[must_use]
    pub(crate) fn with_events(self, all: &[Said], warnings: Result<Vec<Said>, String>) -> Self {
        let number = |said: &[Said]| said.iter().map(|said| said.count).fold(0, u64::saturating_add);
        let others = number(all).saturating_sub(warnings.as_deref().map_or(0, number));
        let most = u64::from(CorrelatorOptions::default().spam_burst);
        Self { told: told_runs(all), may_lack_events: others >= most, warnings, ..self }
    }

    /// The same with the backfills that the object's text names.
    #[must_use]
    pub(in crate::cli) fn with_backfills(self, text: &str) -> Self {
        Self { backfilled: covered(text, &self.cron_job.uid), ..self }
    }

    /// The newest Warning since then that says that the API server refused a Job.
    pub(crate) fn refused_since(&self, since: DateTime<Utc>) -> Option<&Said> {
        let is_refusal = |said: &&Said| said.reason == "FailedCreate" && said.time >= since;
        self.warnings.iter().flatten().filter(is_refusal).max_by_key(|said| said.time)
    }

    /// Who runs the CronJob, and whether it is suspended.
    pub(in crate::cli) fn standing(&self) -> Standing {
        Standing::of(&self.cron_job, self.in_charge.is_handed_over())
    }

    /// The Jobs of the CronJob.
    pub(in crate::cli) fn children(&self) -> impl Iterator<Item = &Arc<Job>> {
        steps::each(self.jobs.iter()).filter(|job| job.is_child_of(&self.cron_job))
    }

    /// The newest slot that was started, even if the status does not have it yet.
    pub(super) fn last_slot(&self) -> Option<DateTime<Utc>> {
        self.children()
            .filter_map(|job| job.slot_of(&self.cron_job))
            .chain(self.cron_job.status.last_schedule_time)
            .max()
    }
}

/// The object and its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its kind.
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

/// Why the facts cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such object.
    #[error(
        "there is no {kind} {name} in namespace {namespace}, looking at {api_version}; --controller chooses another kind"
    )]
    NotFound {
        /// The kind of the object.
        kind: &'static str,
        /// Its group and version.
        api_version: String,
        /// Its name.
        name: String,
        /// The namespace.
        namespace: String,
    },
    /// The server does not serve the kind.
    #[error("the cluster serves no {kind} of {api_version}")]
    NoKind {
        /// The kind of the object.
        kind: &'static str,
        /// Its group and version.
        api_version: String,
    },
    /// The server refused the request, or did not answer.
    #[error("read {what}: {cause}")]
    Request {
        /// The object or list that was read.
        what: String,
        /// The server's message, or why there is no answer.
        cause: String,
    },
    /// The answer cannot be decoded.
    #[error("read {what}: {cause}")]
    Decode {
        /// The object or list that was read.
        what: String,
        /// The decoder's error.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A Warning about the object, as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// The time of its last occurrence.
    pub time: DateTime<Utc>,
    /// The number of occurrences.
    pub count: u64,
    /// The reason in camel case.
    pub reason: String,
    /// The text.
    pub message: String,
}

impl Said {
    /// Why the API server refused a Job, without the words of every such Event.
    pub(crate) fn refusal(&self) -> &str {
        let text = self.message.strip_prefix("Error creating job: ").unwrap_or(&self.message);
        text.trim().trim_end_matches('.')
    }
}

/// What an Event says of a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldRun {
    /// The name of the Job.
    pub job: String,
    /// What happened to it.
    pub what: Told,
    /// When a controller did or saw it.
    pub at: DateTime<Utc>,
}

/// What happened to a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// A controller created it.
    Created,
    /// It ended.
    Ended(FinishedCondition),
    /// A controller deleted it, whether or not it had ended.
    Deleted,
    /// It was gone before a controller saw it end.
    Missing,
}

/// What these Events tell of Jobs, in their order.
pub(crate) fn told_runs(events: &[Said]) -> Vec<ToldRun> {
    let read = |said: &Said| {
        let last_word = || Some(said.message.rsplit_once(' ')?.1);
        let (job, what) = match said.reason.as_str() {
            "SawCompletedJob" => end_of(&said.message).map(|(job, end)| (job, Told::Ended(end)))?,
            "SuccessfulCreate" => (last_word()?, Told::Created),
            "SuccessfulDelete" => (last_word()?, Told::Deleted),
            "MissingJob" => (last_word()?, Told::Missing),
            _ => return None,
        };
        Some(ToldRun { job: job.to_owned(), what, at: said.time })
    };
    events.iter().filter_map(read).collect()
}

/// The Job of which an Event says that it ended, and how: `Saw completed job: NAME, condition: Complete`.
pub(crate) fn end_of(message: &str) -> Option<(&str, FinishedCondition)> {
    let (_, rest) = message.split_once("completed ")?;
    let (name, condition) = rest.split_once(": ")?.1.split_once(", condition: ")?;
    let known = [FinishedCondition::Complete, FinishedCondition::Failed];
    Some((name, known.into_iter().find(|known| known.as_str() == condition)?))
}

/// Explains the CronJob that `target` names in its cluster; `flags` are those of the controller. With a limit, waits so long at
/// most until another run starts. Also returns whether there was nothing to wait for, or the run started.
///
/// # Errors
/// When the cluster cannot be reached, or the object does not exist.
pub async fn connect_and_explain(
    target: &Target,
    limit: Option<Duration>,
    flags: &ControllerFlags,
    clock: &dyn Clock,
) -> Result<(Explanation, bool), CliError> {
    let (client, namespace) = connect_for_person(target.kubeconfig.as_deref(), target.context.as_deref()).await?;
    let namespace = target.namespace.as_deref().unwrap_or(&namespace);
    let look = async || read(&client, target.controller_kind, namespace, &target.name, flags).await;
    let (facts, is_good) = match limit {
        None => (look().await?, true),
        Some(limit) => await_run(look, limit).await?,
    };
    let mut explanation = explain(&facts, flags.zone, cluster::now(&client, clock).await);
    explanation.shell = Shell {
        program: Program::of(&std::env::args_os().next().unwrap_or_default()).said(),
        flags: cluster_flags(target.kubeconfig.as_deref(), target.context.as_deref()),
    };
    explanation.read_unfinished(&client, target.controller_kind).await;
    explanation.read_failure(&client, target.controller_kind).await;
    Ok((explanation, is_good))
}

impl Explanation {
    /// Reads what keeps the first of its running Jobs from ending. That its Pods cannot be read is said where it matters.
    pub(crate) async fn read_unfinished(&mut self, client: &Client, controller_kind: ControllerKind) {
        if let Some(job) = self.active.first() {
            let found = unfinished::read(client, controller_kind, &self.namespace, &job.name, Some(self.now)).await;
            let matters = self.by_schedule.urgency() != Urgency::Fine || self.state.urgency() != Urgency::Fine;
            let found = found.filter(|found| matters || !found.is_unread);
            self.unfinished = found.map(|found| found.with_flags(&self.shell.flags));
        }
    }
}

impl Explanation {
    /// Reads why the last run that ended failed, if it did.
    pub(crate) async fn read_failure(&mut self, client: &Client, controller_kind: ControllerKind) {
        if let Some(job) = &self.last_failed_job {
            self.failure = Failure::read(client, controller_kind, &self.namespace, job).await;
        }
    }
}

/// Looks again and again until a run has started since the first look, for `limit` at most. Returns what was seen last, and
/// whether one has.
pub(super) async fn await_run(
    look: impl AsyncFn() -> Result<Facts, ReadError>,
    limit: Duration,
) -> Result<(Facts, bool), ReadError> {
    let first = look().await?.last_slot();
    let started = tokio::time::timeout(limit, async {
        loop {
            tokio::time::sleep(PERIOD).await;
            let facts = look().await?;
            if facts.last_slot() > first {
                return Ok(facts);
            }
        }
    });
    match started.await {
        Ok(facts) => Ok((facts?, true)),
        Err(_) => Ok((look().await?, false)),
    }
}

/// Reads one object alone from the cluster that `target` names, and says who runs it and what time it is there; `flags` are those
/// of the controller.
///
/// # Errors
/// When the cluster cannot be reached, or the object does not exist.
pub async fn connect_and_read_cron_job(
    target: &Target,
    flags: &ControllerFlags,
    clock: &dyn Clock,
) -> Result<(CronJob, String, DateTime<Utc>), CliError> {
    let (client, namespace) = connect_for_person(target.kubeconfig.as_deref(), target.context.as_deref()).await?;
    let namespace = target.namespace.as_deref().unwrap_or(&namespace);
    let now = cluster::now(&client, clock).await;
    let (cron_job, sentence) = read_alone(&client, target.controller_kind, namespace, &target.name, flags, now).await?;
    Ok((cron_job, sentence, now))
}

/// The same over a client at `now`.
pub(in crate::cli) async fn read_alone(
    client: &Client,
    controller_kind: ControllerKind,
    namespace: &str,
    name: &str,
    flags: &ControllerFlags,
    now: DateTime<Utc>,
) -> Result<(CronJob, String), ReadError> {
    let (mut cron_job, text) = read_cron_job(client, controller_kind, namespace, name).await?;
    let (in_charge, lease) = find_in_charge(client, &mut cron_job, &text, flags).await;
    let restrictions = Restrictions::read(client, Some(namespace)).await;
    let cron_job = restrictions.restricted(cron_job, in_charge);
    let mut sentence = in_charge.sentence(&cron_job, lease.as_ref(), now);
    if let Some(error) = &restrictions.unread {
        sentence = format!("{sentence} {}", unread(error));
    }
    Ok((cron_job, sentence))
}

/// Reads the facts about one object; `flags` are those of its controller.
///
/// # Errors
/// When there is no such object, or it or its children cannot be read.
pub async fn read(
    client: &Client,
    controller_kind: ControllerKind,
    namespace: &str,
    name: &str,
    flags: &ControllerFlags,
) -> Result<Facts, ReadError> {
    let interner = Interner::default();
    let (mut cron_job, text) = read_cron_job(client, controller_kind, namespace, name).await?;
    let jobs = list(client, &controller_kind.child.path(Some(namespace)), "").await?;
    let jobs = jobs.iter().filter_map(|raw| Job::decode(raw.get(), &interner).ok()).map(Arc::new).collect();
    let about = format!("&fieldSelector=involvedObject.uid={}", cron_job.uid);
    let events = list(client, &format!("/api/v1/namespaces/{namespace}/events"), &about).await;
    let (all, warnings) = match events {
        Ok(events) => {
            let (all, warnings) = cluster::by_object(events).remove(&cron_job.uid).unwrap_or_default();
            (all, Ok(warnings))
        }
        Err(error) => (Vec::new(), Err(error.to_string())),
    };
    let (leases, leases_unread) = leases_or_why(client).await;
    let in_charge = InCharge::take(&mut cron_job, &text, &leases, flags);
    let in_charge = in_charge.warned(&cron_job, &leases, warnings.as_deref().unwrap_or_default());
    let lease = lease_of(&leases, &cron_job, in_charge);
    let restrictions = Restrictions::read(client, Some(namespace)).await;
    let cron_job = Arc::new(restrictions.restricted(cron_job, in_charge));
    let namespace_unread = restrictions.unread;
    let edited = slots_edited(&text);
    let manage = leases.manage(controller_kind, namespace);
    let facts =
        Facts { lease, manage, leases_unread, namespace_unread, edited, ..Facts::of(cron_job, in_charge, jobs) };
    Ok(facts.with_events(&all, warnings).with_backfills(&text))
}

/// Which controller runs the CronJob, just decoded from `json`, and its lease. Afterwards it reads as that controller reads it.
pub(in crate::cli) async fn find_in_charge(
    client: &Client,
    cron_job: &mut CronJob,
    json: &str,
    flags: &ControllerFlags,
) -> (InCharge, Option<ControllerLease>) {
    let leases = read_leases(client).await;
    let in_charge = InCharge::take(cron_job, json, &leases, flags);
    let lease = lease_of(&leases, cron_job, in_charge);
    (in_charge, lease)
}

/// The leases of controllers; none if they cannot be read.
pub(crate) async fn read_leases(client: &Client) -> Leases {
    leases_or_why(client).await.0
}

/// The same, and why they cannot be read.
pub(crate) async fn leases_or_why(client: &Client) -> (Leases, Option<String>) {
    match list_leases(client).await {
        Ok(leases) => (leases, None),
        Err(error) => (Leases::default(), Some(error.to_string())),
    }
}

/// The leases of controllers.
///
/// # Errors
/// When they cannot be read.
pub(crate) async fn list_leases(client: &Client) -> Result<Leases, ReadError> {
    // Every node has a lease in a namespace of its own.
    let leases =
        list(client, "/apis/coordination.k8s.io/v1/leases", "&fieldSelector=metadata.namespace!=kube-node-lease");
    let leases: Vec<Lease> = leases.await?.into_iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
    Ok(Leases::of(&leases))
}

/// The lease of the controller that runs a CronJob.
pub(crate) fn lease_of(leases: &Leases, cron_job: &CronJob, in_charge: InCharge) -> Option<ControllerLease> {
    lease_at(leases, cron_job.controller_kind, &cron_job.name.namespace, in_charge)
}

/// The lease of the controller that runs CronJobs of a namespace.
pub(crate) fn lease_at(
    leases: &Leases,
    controller_kind: ControllerKind,
    namespace: &str,
    in_charge: InCharge,
) -> Option<ControllerLease> {
    match in_charge {
        InCharge::InTree => leases.in_tree(),
        _ => leases.controller(controller_kind, namespace, in_charge.is_handed_over()),
    }
}

/// Reads one object, and its text.
pub(in crate::cli) async fn read_cron_job(
    client: &Client,
    controller_kind: ControllerKind,
    namespace: &str,
    name: &str,
) -> Result<(CronJob, String), ReadError> {
    let kind = controller_kind.parent.kind;
    let what = format!("{kind} {namespace}/{name}");
    let path = format!("{}/{name}", controller_kind.parent.path(Some(namespace)));
    let text = get(client, &path).await.map_err(|cause| match cause {
        kube::Error::Api(status) if status.code == 404 => {
            let api_version = controller_kind.parent.api_version();
            // If the kind is not served, the answer names no object.
            if status.details.is_some_and(|details| details.name == name) {
                ReadError::NotFound { kind, api_version, name: name.to_owned(), namespace: namespace.to_owned() }
            } else {
                ReadError::NoKind { kind, api_version }
            }
        }
        cause => ReadError::Request { what: what.clone(), cause: words(&cause) },
    })?;
    let decoded = |error: DecodeError| ReadError::Decode { what: what.clone(), cause: Box::new(error) };
    let cron_job = CronJob::decode(&text, &Interner::default()).map_err(decoded)?;
    Ok((cron_job, text))
}

pub(crate) async fn get(client: &Client, path: &str) -> Result<String, kube::Error> {
    let request = Request::get(path).header(http::header::ACCEPT, "application/json").body(Vec::new());
    client.request_text(request.map_err(kube::Error::HttpError)?).await
}

/// The error for people: the server's own message where there is one.
pub(crate) fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => with_causes(error),
    }
}

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

/// All pages of a list. A page is as long as those of the controller, so that long objects do not fill an answer.
pub(crate) async fn list(client: &Client, path: &str, query: &str) -> Result<Vec<Box<RawValue>>, ReadError> {
    let mut items = Vec::new();
    let mut continue_token = String::new();
    let mut limit = PAGE_SIZE;
    loop {
        // Continue tokens are base64 for URLs.
        let uri = format!("{path}?limit={limit}{query}&continue={continue_token}");
        let text = match get(client, &uri).await {
            // Longer objects than those of the page before.
            Err(error) if limit > 1 && DeadlineError::of(&error) == Some(DeadlineError::Length) => {
                limit = (limit / 8).max(1);
                continue;
            }
            Err(error) => return Err(ReadError::Request { what: path.to_owned(), cause: words(&error) }),
            Ok(text) => text,
        };
        let page: Page = serde_json::from_str(&text)
            .map_err(|cause| ReadError::Decode { what: path.to_owned(), cause: Box::new(cause) })?;
        let page_items = page.items.unwrap_or_default();
        limit = page_size(page_items.len(), text.len());
        items.extend(page_items);
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

/// The Events, newest first.
pub(crate) fn said(items: Vec<Box<RawValue>>) -> Vec<Said> {
    let read = |raw: Box<RawValue>| serde_json::from_str::<Warning>(raw.get()).ok();
    let said = |event: Warning| {
        let time = event.last_timestamp.or(event.event_time)?;
        Some(Said { time, count: event.count.max(1), reason: event.reason, message: event.message })
    };
    let mut warnings: Vec<Said> = items.into_iter().filter_map(read).filter_map(said).collect();
    warnings.sort_by_key(|warning| std::cmp::Reverse(warning.time));
    warnings
}

#[cfg(test)]
mod tests;
