//! What the commands about the CronJobs of a cluster share: where to look, all facts at once, and writes.
//!
//! Guarantees: the facts about any number of CronJobs take five lists (CronJobs, children, Events, Leases, Namespaces), each in
//! pages; a single Namespace is got.
//! A CronJob that cannot be decoded is left out and counted. A write is one request, and its error is the server's message.

pub(crate) mod clock;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use apimachinery::causes::with_causes;
use apimachinery::clock::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use futures::stream::{self, StreamExt as _};
use http::Request;
use kube::Client;
use schedule::Zone;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::CliError;
use super::explain::read::{ReadError, Said, Target, get, lease_of, leases_or_why, list, said, words};
use super::explain::{Facts, InCharge, leases_unread};
use super::output;
use super::restrictions::{Restrictions, unread};
use crate::api::batch_v1::{CronJob, Job, slots_edited};
use crate::api::policy::PolicyOptions;
use crate::api::{ControllerKind, DecodeError, Interner, Object as _, Uid};
use crate::client::{connect_for_person, connect_to_read};

/// How many objects a command changes at the same time.
const AT_A_TIME: usize = 8;
/// So many CronJobs that cannot be decoded are named.
const NAMED: usize = 10;
/// How far the machine's clock may be from what the server says, in whole seconds, and count as the same.
pub(crate) const SAME_TIME: TimeDelta = TimeDelta::seconds(2);

/// The flags of the controller on which its decisions depend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerFlags {
    /// Its time zone, in which a schedule without one runs.
    pub zone: Zone,
    /// Its `--spread-seed`.
    pub seed: Arc<str>,
}

impl ControllerFlags {
    /// Gives a CronJob that was just decoded the policies that it has in the controller.
    pub fn apply(&self, cron_job: &mut CronJob) {
        PolicyOptions { enabled: true, seed: Arc::clone(&self.seed) }.apply(cron_job);
    }
}

/// The namespaces to look in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// That of the context.
    OfContext,
    /// This one.
    One(String),
    /// All of them.
    All,
}

/// CronJobs and their cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Their kind.
    pub controller_kind: ControllerKind,
    /// Their namespaces.
    pub namespaces: Namespaces,
    /// The name, if only one is meant.
    pub name: Option<String>,
    /// The kubeconfig file; without it, kubectl's.
    pub kubeconfig: Option<PathBuf>,
    /// The context; without it, the current one.
    pub context: Option<String>,
}

impl From<Target> for Scope {
    fn from(target: Target) -> Self {
        let Target { controller_kind, namespace, name, kubeconfig, context } = target;
        let namespaces = namespace.map_or(Namespaces::OfContext, Namespaces::One);
        Self { controller_kind, namespaces, name: Some(name), kubeconfig, context }
    }
}

impl Scope {
    /// A client of the cluster, and the namespace; `None` for all.
    ///
    /// # Errors
    /// When the kubeconfig cannot be used.
    pub async fn connect(&self) -> Result<(Client, Option<String>), CliError> {
        let (client, of_context) = connect_for_person(self.kubeconfig.as_deref(), self.context.as_deref()).await?;
        Ok((client, self.namespace(of_context)))
    }

    /// The same, with a client that cannot write.
    ///
    /// # Errors
    /// When the kubeconfig cannot be used.
    pub async fn connect_to_read(&self) -> Result<(Client, Option<String>), CliError> {
        let (client, of_context) = connect_to_read(self.kubeconfig.as_deref(), self.context.as_deref()).await?;
        Ok((client, self.namespace(of_context)))
    }

    fn namespace(&self, of_context: String) -> Option<String> {
        match &self.namespaces {
            Namespaces::OfContext => Some(of_context),
            Namespaces::One(namespace) => Some(namespace.clone()),
            Namespaces::All => None,
        }
    }
}

/// The cluster's time: what the API server says, where the machine's clock differs from it. A cluster of `dev` can have a time of
/// its own.
pub async fn now(client: &Client, clock: &dyn Clock) -> DateTime<Utc> {
    let theirs = clock::date(client).await.ok().flatten();
    let own = clock.now();
    theirs.filter(|theirs| theirs.signed_duration_since(own).abs() > SAME_TIME).unwrap_or(own)
}

/// The latest time that the cluster may have: of the server's second, which has begun, the end.
pub async fn latest_now(client: &Client, clock: &dyn Clock) -> DateTime<Utc> {
    let theirs = clock::date(client).await.ok().flatten().map(|second| second + TimeDelta::seconds(1));
    let own = clock.now();
    match theirs {
        Some(theirs) if (own - theirs).abs() > SAME_TIME + TimeDelta::seconds(1) => theirs,
        theirs => theirs.map_or(own, |theirs| theirs.max(own)),
    }
}

/// What is known about a CronJob.
#[derive(Debug)]
pub struct Known {
    /// As for one that is explained alone; of the Jobs, its own and those with names like theirs.
    pub facts: Facts,
    /// All Events about it, newest first; none if they cannot be read.
    pub events: Vec<Said>,
}

/// Why what the Namespaces of these CronJobs say could not be read.
pub(super) fn namespaces_unread(known: &[Known]) -> Option<String> {
    known.iter().find_map(|known| known.facts.namespace_unread.clone())
}

/// What is not known of all CronJobs, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// Why what their Namespaces say could not be read.
    #[serde(rename = "namespacesUnread", skip_serializing_if = "Option::is_none")]
    namespaces: Option<String>,
    /// Why the Events about them could not be read.
    #[serde(rename = "eventsUnread", skip_serializing_if = "Option::is_none")]
    events: Option<String>,
    /// Why the leases of controllers could not be read.
    #[serde(rename = "leasesUnread", skip_serializing_if = "Option::is_none")]
    leases: Option<String>,
    /// The CronJobs that cannot be decoded, each with the reason.
    #[serde(rename = "notDecoded", skip_serializing_if = "Vec::is_empty")]
    not_decoded: Vec<String>,
}

impl Unread {
    /// What these CronJobs lack.
    pub fn of(known: &[Known], not_decoded: Vec<String>) -> Self {
        let first = |of: fn(&Known) -> Option<&String>| known.iter().find_map(of).cloned();
        Self {
            namespaces: namespaces_unread(known),
            events: first(|known| known.facts.warnings.as_ref().err()),
            leases: first(|known| known.facts.leases_unread.as_ref()),
            not_decoded,
        }
    }

    /// A sentence for each.
    pub fn lines(&self) -> Vec<String> {
        let events = |error: &String| {
            format!("Events cannot be read, so neither refusals nor runs whose Jobs are gone show: {error}")
        };
        let namespaces = self.namespaces.as_deref().map(unread);
        let leases = self.leases.as_deref().map(leases_unread);
        let not_decoded = (!self.not_decoded.is_empty()).then(|| {
            let number = self.not_decoded.len();
            let which = output::named(self.not_decoded.iter().cloned(), NAMED, number);
            format!("{} cannot be decoded here, and left out: {which}", output::count(number, "CronJob"))
        });
        namespaces.into_iter().chain(self.events.as_ref().map(events)).chain(leases).chain(not_decoded).collect()
    }
}

#[derive(Deserialize)]
struct Event {
    #[serde(default, rename = "type")]
    type_: String,
    #[serde(default, rename = "involvedObject")]
    involved: Involved,
}

#[derive(Default, Deserialize)]
struct Involved {
    uid: Option<Uid>,
}

/// Reads all CronJobs of a namespace, or of the cluster, with what concerns them. A `name` selects one of them, and
/// `flags` are those of their controller. Also those that cannot be decoded, each with the reason.
///
/// # Errors
/// When the CronJobs or their children cannot be read, or there is no CronJob of that name.
pub async fn read_all(
    client: &Client,
    controller_kind: ControllerKind,
    namespace: Option<&str>,
    name: Option<&str>,
    flags: &ControllerFlags,
) -> Result<(Vec<Known>, Vec<String>), ReadError> {
    let interner = Interner::default();
    let selector = name.map(|name| format!("&fieldSelector=metadata.name={name}")).unwrap_or_default();
    let cron_jobs = list(client, &controller_kind.parent.path(namespace), &selector).await?;
    if let Some(name) = name.filter(|_| cron_jobs.is_empty()) {
        let (kind, api_version) = (controller_kind.parent.kind, controller_kind.parent.api_version());
        let namespace = namespace.unwrap_or_default().to_owned();
        return Err(ReadError::NotFound { kind, api_version, name: name.to_owned(), namespace });
    }
    let jobs = list(client, &controller_kind.child.path(namespace), "").await?;
    let jobs = by_owner(jobs.iter().filter_map(|raw| Job::decode(raw.get(), &interner).ok()));
    let events =
        namespace.map_or_else(|| "/api/v1/events".to_owned(), |one| format!("/api/v1/namespaces/{one}/events"));
    let about = format!("&fieldSelector=involvedObject.kind={}", controller_kind.parent.kind);
    let (events, unread) = match list(client, &events, &about).await {
        Ok(events) => (by_object(events), None),
        Err(error) => (HashMap::new(), Some(error.to_string())),
    };
    let (leases, leases_unread) = leases_or_why(client).await;
    let restrictions = Restrictions::read(client, namespace).await;
    let known = |raw: Box<RawValue>| {
        let listed = InCharge::of_listed(raw.get(), controller_kind, &interner, &leases, flags);
        let (cron_job, in_charge) = listed.map_err(|error| undecoded(raw.get(), &error))?;
        let key = (cron_job.name.namespace.to_string(), cron_job.name.name.to_string());
        let (all, warnings) = events.get(&cron_job.uid).cloned().unwrap_or_default();
        let in_charge = in_charge.warned(&cron_job, &leases, &warnings);
        let warnings = unread.clone().map_or(Ok(warnings), Err);
        let lease = lease_of(&leases, &cron_job, in_charge);
        let jobs = jobs.get(&key).cloned().unwrap_or_default();
        let cron_job = Arc::new(restrictions.restricted(cron_job, in_charge));
        let namespace_unread = restrictions.unread.clone();
        let leases_unread = leases_unread.clone();
        let edited = slots_edited(raw.get());
        let facts = Facts { lease, leases_unread, namespace_unread, edited, ..Facts::of(cron_job, in_charge, jobs) };
        let facts = facts.with_events(&all, warnings).with_backfills(raw.get());
        Ok::<_, String>(Known { facts, events: all })
    };
    let (mut all, mut not_decoded) = (Vec::new(), Vec::new());
    for raw in cron_jobs {
        match known(raw) {
            Ok(known) => all.push(known),
            Err(text) => not_decoded.push(text),
        }
    }
    Ok((all, not_decoded))
}

/// The name of a CronJob that cannot be decoded, and the reason.
pub(super) fn undecoded(json: &str, error: &DecodeError) -> String {
    let object: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let part = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    format!("{}/{}: {}", part("namespace"), part("name"), with_causes(error))
}

/// The Jobs by namespace and name of the CronJob that owns them, or would by their name.
pub(super) fn by_owner(jobs: impl Iterator<Item = Job>) -> HashMap<(String, String), Vec<Arc<Job>>> {
    let mut by_owner: HashMap<(String, String), Vec<Arc<Job>>> = HashMap::new();
    for job in jobs.map(Arc::new) {
        let named = job.name.name.rsplit_once('-').map(|(owner, _)| owner.to_owned());
        let owner = job.controller.as_ref().map(|owner| owner.name.to_string());
        for name in owner.iter().chain(named.iter().filter(|named| owner.as_ref() != Some(*named))) {
            by_owner.entry((job.name.namespace.to_string(), name.clone())).or_default().push(Arc::clone(&job));
        }
    }
    by_owner
}

/// All Events of an object, and the Warnings among them.
type AllAndWarnings<E> = (Vec<E>, Vec<E>);

/// The Events by the object that they are about.
pub(super) fn by_object(events: Vec<Box<RawValue>>) -> HashMap<Uid, AllAndWarnings<Said>> {
    let mut by_object: HashMap<Uid, AllAndWarnings<Box<RawValue>>> = HashMap::new();
    for raw in events {
        let Ok(Event { type_, involved: Involved { uid: Some(uid) } }) = serde_json::from_str(raw.get()) else {
            continue;
        };
        let (all, warnings) = by_object.entry(uid).or_default();
        warnings.extend((type_ == "Warning").then(|| raw.clone()));
        all.push(raw);
    }
    by_object.into_iter().map(|(uid, (all, warnings))| (uid, (said(all), said(warnings)))).collect()
}

/// Why a write failed.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {cause}")]
pub struct WriteError {
    /// What was to be done, and to which object.
    pub what: String,
    /// The server's message, or why there is no answer.
    pub cause: String,
}

/// Creates an object in a collection.
///
/// # Errors
/// As the server says; `what` is what was to be done.
pub async fn create(client: &Client, collection: &str, body: Vec<u8>, what: &str) -> Result<String, WriteError> {
    try_create(client, collection, body).await.map_err(failed(what))
}

/// Changes an object by a merge patch.
///
/// # Errors
/// As the server says; `what` is what was to be done.
pub async fn merge_patch(
    client: &Client,
    path: &str,
    change: &serde_json::Value,
    what: &str,
) -> Result<String, WriteError> {
    try_patch(client, path, change).await.map_err(failed(what))
}

/// How often [`patch_as_read`] is tried, each time with what was read before.
pub(super) const ATTEMPTS: usize = 5;

/// Why it was not done.
pub(super) const CHANGES: &str = "it changed each time between the read and the write";

/// Changes a CronJob by a merge patch, in the version that was read. Returns false, and has changed nothing, if there is a newer one.
///
/// # Errors
/// As the server says; `what` is what was to be done.
pub(super) async fn patch_as_read(
    client: &Client,
    cron_job: &CronJob,
    mut change: serde_json::Value,
    what: &str,
) -> Result<bool, WriteError> {
    let parent = cron_job.controller_kind.parent;
    let (collection, name) = (parent.path(Some(&cron_job.name.namespace)), &cron_job.name.name);
    // The controller's own name would make an edit of its user look like a record of the controller.
    let path = format!("{collection}/{name}?fieldManager=cronjob-controller-cli");
    change["metadata"]["resourceVersion"] = cron_job.resource_version.to_string().into();
    match try_patch(client, &path, &change).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(cause) => Err(failed(what)(cause)),
    }
}

/// Changes objects, eight at a time, and returns what came of each in their order. On a terminal, a line says how many are done.
pub(super) async fn change_all<T, R>(what: &str, all: Vec<T>, change: impl AsyncFn(T) -> R) -> Vec<R> {
    let total = all.len();
    let mut changes = stream::iter(all).map(|object| change(object)).buffered(AT_A_TIME);
    let mut done = Vec::with_capacity(total);
    while let Some(changed) = changes.next().await {
        done.push(changed);
        if total > AT_A_TIME {
            output::progress(&format!("{what}: {} of {total}", done.len()));
        }
    }
    if total > AT_A_TIME {
        output::progress("");
    }
    done
}

fn failed(what: &str) -> impl FnOnce(kube::Error) -> WriteError {
    move |cause| WriteError { what: what.to_owned(), cause: words(&cause) }
}

/// [`create`], where the cause of an error matters.
pub(super) async fn try_create(client: &Client, collection: &str, body: Vec<u8>) -> Result<String, kube::Error> {
    send(client, Request::post(collection).header(http::header::CONTENT_TYPE, "application/json"), body).await
}

/// [`merge_patch`], where the cause of an error matters.
pub(super) async fn try_patch(client: &Client, path: &str, change: &serde_json::Value) -> Result<String, kube::Error> {
    let request = Request::patch(path).header(http::header::CONTENT_TYPE, "application/merge-patch+json");
    send(client, request, change.to_string().into_bytes()).await
}

/// Deletes an object in the background, if it still has that UID.
pub(super) async fn delete(client: &Client, path: &str, uid: &Uid) -> Result<(), kube::Error> {
    let options = serde_json::json!({"propagationPolicy": "Background", "preconditions": {"uid": uid}});
    let request = Request::delete(path).header(http::header::CONTENT_TYPE, "application/json");
    send(client, request, options.to_string().into_bytes()).await.map(|_| ())
}

async fn send(client: &Client, request: http::request::Builder, body: Vec<u8>) -> Result<String, kube::Error> {
    let request = request.header(http::header::ACCEPT, "application/json").body(body);
    client.request_text(request.map_err(kube::Error::HttpError)?).await
}

/// Reads one object as text.
///
/// # Errors
/// As the server says.
pub async fn read_text(client: &Client, path: &str) -> Result<String, ReadError> {
    get(client, path).await.map_err(|cause| ReadError::Request { what: path.to_owned(), cause: words(&cause) })
}

#[cfg(test)]
mod tests;
