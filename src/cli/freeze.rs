//! Freezes Namespaces, and thaws them.
//!
//! Guarantees: only the annotations `not-before` and `reason` of the Namespaces are changed, each by one request, to the version that
//! was judged. A freeze ends no other one sooner, and what it replaces is said. A thaw sets `not-before` to the cluster's second at its
//! write, so that no older slot starts. What a freeze holds is counted by the controller's own search, for the CronJobs of every kind
//! that the cluster serves. CronJobs that the in-tree controller runs are named as not held. Pure, except for [`set_frozen`].

mod written;

use std::collections::HashMap;
use std::sync::Arc;

use apimachinery::clock::Clock;
use apimachinery::quoting::quote;
use chrono::{DateTime, FixedOffset, TimeDelta, Utc};
use kube::Client;
use schedule::Zone;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::CliError;
use super::cluster::{self, ATTEMPTS, ControllerFlags, Scope, by_owner};
use super::explain::read::{ReadError, get, list, read_leases, words};
use super::explain::{Case, Facts, InCharge, MANY, State, some_of};
use super::migrate::escaped;
use super::next::cron_jobs::{Given, slots_after};
use super::output::{MOMENT, Report, count, moment};
use super::restrictions::why;
use crate::api::batch_v1::{CronJob, Job};
use crate::api::policy::{EXCLUDE, NOT_BEFORE, PolicyError, REASON, Restriction};
use crate::api::{ControllerKind, DecodeError, Interner, Namespace, Object as _, ResourceKind};
use written::{annotations, changed, patch, restriction, whole_second};

/// The end of a freeze.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Until {
    /// A time, in the controller's zone if it has none.
    At(Given),
    /// So long after now.
    In(TimeDelta),
}

impl Until {
    fn time(self, now: DateTime<Utc>, zone: Zone) -> DateTime<Utc> {
        match self {
            Self::At(time) => time.in_zone(zone).unwrap_or(now),
            Self::In(duration) => whole_second(now.checked_add_signed(duration).unwrap_or(DateTime::<Utc>::MAX_UTC)),
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// To freeze.
    Freeze {
        /// Until when.
        until: Until,
        /// Why; `None` keeps the reason of a freeze that is on, and of dates.
        reason: Option<String>,
    },
    /// To end a freeze.
    Thaw,
}

/// The arguments of `freeze` and `thaw`.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What is to be done.
    pub change: Change,
    /// A label selector of Namespaces. Without one, that of the scope, or all.
    pub selector: Option<String>,
    /// Whether nothing is written.
    pub dry_run: bool,
}

/// What was done, or would be.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    dry_run: bool,
    namespaces: Vec<Frozen>,
    #[serde(skip)]
    selector: Option<String>,
    /// The CronJobs that are not counted, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_read: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Frozen {
    namespace: String,
    /// The sentence about the Namespace.
    summary: String,
    /// A sentence about what was there and could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<String>,
    #[serde(skip)]
    is_freeze: bool,
    /// Whether its annotations are not as they should be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
    /// Those whose runs a freeze holds.
    held: Vec<Held>,
    /// Those that it does not hold, because the in-tree controller runs them.
    not_held: Vec<String>,
    /// Those of which nothing says which controller runs them.
    not_known: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Held {
    name: String,
    /// How many runs do not start; more than 100 count as 101.
    runs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<DateTime<FixedOffset>>,
    /// Its state, if nothing of it starts without a freeze either.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<&'static str>,
}

/// What happens to a Namespace.
#[derive(Debug)]
struct Plan {
    summary: String,
    /// A sentence about what was there and could not be read.
    replaced: Option<String>,
    /// The patch; `None` if nothing changes.
    change: Option<Value>,
    failed: bool,
}

impl Outcome {
    /// Whether there are such Namespaces, and all of them are as they should be.
    pub fn is_good(&self) -> bool {
        !self.namespaces.is_empty() && !self.namespaces.iter().any(|frozen| frozen.failed)
    }
}

/// A Namespace as it was read.
struct Found {
    namespace: Namespace,
    text: String,
}

impl Found {
    fn read(text: &str) -> Result<Self, DecodeError> {
        Ok(Self { namespace: Namespace::decode(text, &Interner::default())?, text: text.to_owned() })
    }

    fn name(&self) -> &str {
        &self.namespace.object_name().name
    }

    /// What it says beside its bound.
    fn dates(&self) -> Option<Arc<Restriction>> {
        self.without(NOT_BEFORE)
    }

    /// Its bound.
    fn bound(&self) -> Option<Arc<Restriction>> {
        self.without(EXCLUDE)
    }

    fn without(&self, annotation: &str) -> Option<Arc<Restriction>> {
        restriction(&changed(&self.text, &patch(&Map::from_iter([(annotation.to_owned(), Value::Null)]))))
    }

    fn reason(&self) -> Option<&str> {
        self.namespace.restriction.as_ref()?.reason.as_deref()
    }
}

/// The CronJobs of some Namespaces.
struct CronJobs {
    /// The kind whose CronJobs have their names alone.
    kind: ControllerKind,
    by_namespace: HashMap<String, Vec<Facts>>,
    /// What could not be read, and why.
    not_read: Vec<String>,
}

impl CronJobs {
    fn name(&self, cron_job: &CronJob) -> String {
        let ResourceKind { kind, group, .. } = cron_job.controller_kind.parent;
        let name = &cron_job.name.name;
        if cron_job.controller_kind == self.kind { name.to_string() } else { format!("{kind}.{group}/{name}") }
    }
}

impl Request {
    /// What happens to a Namespace at `now`.
    fn plan(&self, found: &Found, flags: &ControllerFlags, now: DateTime<Utc>) -> Plan {
        let name = found.name();
        let restriction = found.namespace.restriction.as_deref();
        let bound = found.bound();
        let before = bound.as_ref().and_then(|bound| bound.frozen_until(now));
        let replaced = bound.as_ref().and_then(|bound| bound.error());
        let was = |error: &PolicyError| format!("{}: {}", error.annotation(), quote(error.value()));
        let replaced =
            replaced.map(|error| format!("Before, all its CronJobs were held by what cannot be read: {}.", was(error)));
        let would = |done: &str, would: &str| if self.dry_run { would.to_owned() } else { done.to_owned() };
        match &self.change {
            Change::Freeze { until, reason } => {
                let until = until.time(now, flags.zone);
                self.freeze(found, flags.zone, now, (until, reason.as_deref()), (before, replaced))
            }
            Change::Thaw if before.is_none() && restriction.is_none_or(|restriction| restriction.error().is_none()) => {
                let summary = format!("Namespace {name} is not frozen.{}", goes_on(found.dates().as_deref()));
                Plan { summary, replaced: None, change: None, failed: false }
            }
            Change::Thaw => {
                let verb = would("is", "would be");
                let (dates, mut annotations) = (found.dates(), annotations(whole_second(now), None));
                if dates.is_some() {
                    // Dates stay, with their reason.
                    annotations.remove(REASON);
                }
                Plan {
                    summary: format!(
                        "Namespace {name} {verb} thawed: no run that was due before now starts. Leave {NOT_BEFORE} until each \
                         CronJob has run: without it, the newest frozen run starts.{}",
                        goes_on(dates.as_deref())
                    ),
                    replaced,
                    change: Some(patch(&annotations)),
                    failed: false,
                }
            }
        }
    }

    /// What a freeze until a time, for a reason, does to a Namespace that is frozen until `before`.
    fn freeze(
        &self,
        found: &Found,
        zone: Zone,
        now: DateTime<Utc>,
        (until, reason): (DateTime<Utc>, Option<&str>),
        (before, replaced): (Option<DateTime<Utc>>, Option<String>),
    ) -> Plan {
        let (name, old) = (found.name(), found.reason());
        let unchanged = |cause: String| {
            let summary = format!("Namespace {name} is not changed: {cause}");
            Plan { summary, replaced: None, change: None, failed: true }
        };
        let until_text = moment(zone, until);
        if until <= now {
            return unchanged(format!("{until_text} has passed."));
        }
        if let Some(before) = before.filter(|before| *before > until) {
            let before = format!("it is already frozen until {}{}", moment(zone, before), why(old));
            return unchanged(format!("{before}. Thaw it first to end that sooner."));
        }
        let is_on = before.is_some() || replaced.is_some() || found.dates().is_some();
        let is_kept = reason.is_none() && is_on;
        let is_other = old.is_some() && !is_kept && reason != old;
        let was = match before {
            Some(before) if before != until || is_other => {
                format!(" Before, it was frozen until {}{}.", moment(zone, before), why(old.filter(|_| is_other)))
            }
            None if is_other && is_on => format!(" Before, it had this reason{}.", why(old)),
            _ => String::new(),
        };
        let mut annotations = annotations(until, reason);
        if is_kept {
            annotations.remove(REASON);
        }
        let verb = if self.dry_run { "would be" } else { "is" };
        let why = why(reason.or(old.filter(|_| is_kept)));
        let summary = format!("Namespace {name} {verb} frozen until {until_text}{why}.{was}");
        Plan { summary, replaced, change: Some(patch(&annotations)), failed: false }
    }

    /// The CronJobs of a Namespace, and what is held of them from `now` on.
    fn frozen(
        &self,
        plan: &Plan,
        found: &Found,
        all: &CronJobs,
        flags: &ControllerFlags,
        now: DateTime<Utc>,
    ) -> Frozen {
        let cron_jobs = all.by_namespace.get(found.name()).map(Vec::as_slice).unwrap_or_default();
        let names = |in_charge| {
            let meant = cron_jobs.iter().filter(move |facts| facts.in_charge == in_charge);
            meant.map(|facts| all.name(&facts.cron_job)).collect()
        };
        let is_freeze = matches!(self.change, Change::Freeze { .. });
        let until = match &self.change {
            Change::Freeze { until, .. } => until.time(now, flags.zone),
            Change::Thaw => now,
        };
        let restriction = found.namespace.restriction.as_ref();
        // What its dates leave out does not run after a freeze either.
        let dates = found.dates().filter(|dates| dates.error().is_none());
        let runs = |facts: &Facts| {
            let unfrozen = Arc::clone(&facts.cron_job).in_its_namespace(dates.as_ref());
            let start = unfrozen.nominal(now);
            let is_run = facts.in_charge != InCharge::NotManaged;
            let is_on = is_run && !unfrozen.spec.suspend && !unfrozen.deleting;
            let later = slots_after(&unfrozen, flags.zone, start, now).take_while(|slot| *slot < until);
            let idle = idle(facts, dates.as_ref(), flags.zone, now);
            let waiting = if is_freeze { waiting(facts, restriction, flags.zone, now) } else { Vec::new() };
            let slots = waiting.into_iter().chain(later).take(MANY + 1);
            let slots: Vec<DateTime<Utc>> = if is_on && idle.is_none() { slots.collect() } else { Vec::new() };
            let first = slots.first().map(|slot| flags.zone.at(unfrozen.due(*slot)));
            Held { name: all.name(&unfrozen), runs: slots.len(), first, idle }
        };
        let ours = cron_jobs
            .iter()
            .filter(|facts| !matches!(facts.in_charge, InCharge::InTree | InCharge::Unknown | InCharge::NoInstance));
        Frozen {
            namespace: found.name().to_owned(),
            summary: plan.summary.clone(),
            replaced: plan.replaced.clone(),
            is_freeze,
            failed: plan.failed,
            held: if plan.change.is_some() { ours.map(runs).collect() } else { Vec::new() },
            not_held: names(InCharge::InTree),
            not_known: [names(InCharge::Unknown), names(InCharge::NoInstance)].concat(),
        }
    }
}

/// That dates go on to hold, after a sentence.
fn goes_on(dates: Option<&Restriction>) -> String {
    let excluded = dates.map(Restriction::excluded).filter(|excluded| !excluded.is_empty());
    excluded.map(|excluded| format!(" {EXCLUDE} ({excluded}) goes on to hold.")).unwrap_or_default()
}

/// The state of a CronJob of which nothing starts, in a Namespace with this restriction, until its runs or its template are mended.
fn idle(facts: &Facts, dates: Option<&Arc<Restriction>>, zone: Zone, now: DateTime<Utc>) -> Option<&'static str> {
    let cron_job = Arc::clone(&facts.cron_job).in_its_namespace(dates);
    let free = Facts::of(cron_job, facts.in_charge, facts.jobs.clone());
    let told = Case::new(&free, zone, now).explain();
    matches!(told.by_schedule, State::Paused | State::BadTemplate).then(|| told.by_schedule.label())
}

/// The slots that wait now, in a Namespace with this restriction.
fn waiting(
    facts: &Facts,
    restriction: Option<&Arc<Restriction>>,
    zone: Zone,
    now: DateTime<Utc>,
) -> Vec<DateTime<Utc>> {
    let cron_job = Arc::clone(&facts.cron_job).in_its_namespace(restriction);
    Case::new(&Facts::of(cron_job, facts.in_charge, facts.jobs.clone()), zone, now).waiting_slots()
}

/// Freezes or thaws the Namespaces of `scope`; `flags` are those of the controller.
///
/// # Errors
/// When the Namespaces or their CronJobs cannot be read. A Namespace that cannot be changed is part of the answer.
pub async fn set_frozen(
    scope: &Scope,
    request: &Request,
    flags: &ControllerFlags,
    clock: &dyn Clock,
) -> Result<Outcome, CliError> {
    let (client, namespace) = scope.connect().await?;
    let began = Instant::now();
    let now = (cluster::latest_now(&client, clock).await, began);
    set_frozen_with(&client, scope.controller_kind, namespace.as_deref(), request, flags, now).await
}

/// The same over a client. It was `now` at the instant `at`.
async fn set_frozen_with(
    client: &Client,
    controller_kind: ControllerKind,
    namespace: Option<&str>,
    request: &Request,
    flags: &ControllerFlags,
    (now, at): (DateTime<Utc>, Instant),
) -> Result<Outcome, CliError> {
    let found = read_namespaces(client, namespace, request.selector.as_deref()).await?;
    let cron_jobs = read_cron_jobs(client, controller_kind, namespace, &request.change, flags).await?;
    let change = async |mut found: Found| {
        let name = found.name().to_owned();
        let path = format!("{}/{name}?fieldManager=cronjob-controller-cli", ResourceKind::NAMESPACE.path(None));
        let mut attempts = 1;
        loop {
            // The lists, and the writes before this one, take time, in which slots come. A freeze ends at one time everywhere.
            let now = match request.change {
                Change::Thaw => now + at.elapsed(),
                Change::Freeze { .. } => now,
            };
            let plan = request.plan(&found, flags, now);
            let mut frozen = request.frozen(&plan, &found, &cron_jobs, flags, now);
            let Some(mut change) = plan.change else { return frozen };
            if request.dry_run {
                frozen.find_error(&changed(&found.text, &change), true);
                return frozen;
            }
            change["metadata"]["resourceVersion"] = found.namespace.resource_version().to_string().into();
            match cluster::try_patch(client, &path, &change).await {
                Ok(now) => {
                    frozen.find_error(&now, false);
                    return frozen;
                }
                Err(kube::Error::Api(status)) if status.code == 409 && attempts < ATTEMPTS => attempts += 1,
                Err(error) => return frozen.unchanged(&words(&error)),
            }
            found = match read_namespace(client, &name).await {
                Ok(newer) => newer,
                Err(error) => return frozen.unchanged(&error.to_string()),
            };
        }
    };
    let what = if matches!(request.change, Change::Thaw) { "thawed" } else { "frozen" };
    let namespaces = cluster::change_all(what, found, change).await;
    let (dry_run, selector) = (request.dry_run, request.selector.clone());
    Ok(Outcome { dry_run, namespaces, selector, not_read: cron_jobs.not_read })
}

/// The CronJobs of every kind that the cluster serves, with their Jobs if they may be frozen, without what their Namespaces say now.
/// Those of `kind` must be readable.
async fn read_cron_jobs(
    client: &Client,
    kind: ControllerKind,
    namespace: Option<&str>,
    change: &Change,
    flags: &ControllerFlags,
) -> Result<CronJobs, ReadError> {
    let leases = read_leases(client).await;
    let mut found = CronJobs { kind, by_namespace: HashMap::new(), not_read: Vec::new() };
    for each in ControllerKind::ALL {
        let path = each.parent.path(namespace);
        let first = if each == kind { Ok(String::new()) } else { get(client, &format!("{path}?limit=1")).await };
        match first {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            // RBAC refuses before the API server looks whether it serves the kind.
            Err(kube::Error::Api(status)) if status.code == 403 && !is_served(client, each).await => continue,
            Err(error) => {
                found.not_read.push(format!("{}.{}: {}", each.parent.kind, each.parent.group, words(&error)));
                continue;
            }
        }
        let cron_jobs = list(client, &path, "").await?;
        // A thaw starts nothing that was due before, whatever runs.
        let jobs = match change {
            Change::Freeze { .. } if !cron_jobs.is_empty() => list(client, &each.child.path(namespace), "").await?,
            _ => Vec::new(),
        };
        let interner = Interner::default();
        let jobs = by_owner(jobs.iter().filter_map(|raw| Job::decode(raw.get(), &interner).ok()));
        for raw in cron_jobs {
            let listed = InCharge::of_listed(raw.get(), each, &interner, &leases, flags);
            let Ok((cron_job, in_charge)) = listed else { continue };
            let namespace = cron_job.name.namespace.to_string();
            let jobs = jobs.get(&(namespace.clone(), cron_job.name.name.to_string())).cloned().unwrap_or_default();
            let facts = Facts::of(Arc::new(cron_job), in_charge, jobs);
            found.by_namespace.entry(namespace).or_default().push(facts);
        }
    }
    Ok(found)
}

/// Whether the API server serves a kind; one of which it says nothing counts as served.
async fn is_served(client: &Client, kind: ControllerKind) -> bool {
    #[derive(Deserialize)]
    struct Resources {
        resources: Vec<Resource>,
    }
    #[derive(Deserialize)]
    struct Resource {
        name: String,
    }
    match get(client, &format!("/apis/{}", kind.parent.api_version())).await {
        Ok(text) => serde_json::from_str::<Resources>(&text)
            .map_or(true, |found| found.resources.iter().any(|resource| resource.name == kind.parent.plural)),
        Err(kube::Error::Api(status)) => status.code != 404,
        Err(_) => true,
    }
}

/// The Namespace of that name, or those with these labels, or all.
async fn read_namespaces(client: &Client, name: Option<&str>, selector: Option<&str>) -> Result<Vec<Found>, ReadError> {
    if let Some(name) = name {
        return Ok(vec![read_namespace(client, name).await?]);
    }
    let selector = selector.map(|selector| format!("&labelSelector={}", escaped(selector))).unwrap_or_default();
    let found = list(client, &ResourceKind::NAMESPACE.path(None), &selector).await?;
    found.iter().map(|text| found_in(text.get())).collect()
}

async fn read_namespace(client: &Client, name: &str) -> Result<Found, ReadError> {
    let path = format!("{}/{name}", ResourceKind::NAMESPACE.path(None));
    let text = get(client, &path).await;
    found_in(&text.map_err(|error| ReadError::Request { what: path, cause: words(&error) })?)
}

fn found_in(text: &str) -> Result<Found, ReadError> {
    let what = ResourceKind::NAMESPACE.path(None);
    Found::read(text).map_err(|cause| ReadError::Decode { what, cause: Box::new(cause) })
}

impl Report for Outcome {
    fn lines(&self) -> Vec<String> {
        if self.namespaces.is_empty() {
            let selected = self.selector.as_ref().map(|selector| format!("No Namespace matches {selector}."));
            return vec![selected.unwrap_or_else(|| "There is no Namespace.".to_owned())];
        }
        let mut lines: Vec<String> = self.namespaces.iter().flat_map(|frozen| frozen.lines(self.dry_run)).collect();
        lines.extend(self.not_read.iter().map(|kind| format!("Not counted, because it cannot be read: {kind}")));
        lines
    }
}

impl Frozen {
    /// The same, for a Namespace that could not be changed.
    fn unchanged(self, cause: &str) -> Self {
        let summary = format!("Namespace {} is not changed: {cause}", self.namespace);
        Self { summary, failed: true, ..self }
    }

    /// Says if a Namespace that was changed has another annotation that cannot be read, and holds everything.
    fn find_error(&mut self, json: &str, dry_run: bool) {
        if let Some(error) = restriction(json).as_ref().and_then(|restriction| restriction.error()) {
            let name = &self.namespace;
            let [is, starts] = if dry_run { ["would be", "would start"] } else { ["is", "starts"] };
            self.summary = format!(
                "Namespace {name} {is} changed, and no run of its CronJobs {starts} until this is mended: {error}"
            );
            self.failed = true;
        }
    }

    fn lines(&self, dry_run: bool) -> Vec<String> {
        let mut lines = vec![self.summary.clone()];
        lines.extend(self.replaced.iter().cloned());
        if self.failed {
            return lines;
        }
        let named = |names: &[String]| some_of(names.iter().cloned(), names.len());
        let late: Vec<&Held> = self.held.iter().filter(|held| held.runs > 0).collect();
        let idle = self.held.iter().filter_map(|held| Some(format!("{} ({})", held.name, held.idle?)));
        let idle: Vec<String> = idle.collect();
        if self.held.len() > idle.len() && late.is_empty() && self.is_freeze {
            lines.push(format!("No run of its {} is due until then.", count(self.held.len(), "CronJob")));
        }
        if !late.is_empty() {
            let verb = match (self.is_freeze, dry_run) {
                (true, true) => "would be frozen",
                (true, false) => "are frozen",
                (false, true) => "would not start",
                (false, false) => "do not start",
            };
            let text = |held: &&Held| {
                let runs = if held.runs > MANY { format!("more than {MANY} runs") } else { count(held.runs, "run") };
                let first = held.first.map(|first| format!(", the first of {}", first.format(MOMENT)));
                format!("  {}: {runs}{}", held.name, first.unwrap_or_default())
            };
            let all = count(self.held.len(), "CronJob");
            lines.push(format!("Of {all}, these runs {verb}:"));
            lines.extend(late.iter().map(text));
        }
        if !self.is_freeze {
            return lines;
        }
        if !idle.is_empty() {
            lines.push(format!("Nothing starts without a freeze either: {}.", named(&idle)));
        }
        if !self.not_held.is_empty() {
            lines.push(format!("Not frozen, because the in-tree controller runs them: {}.", named(&self.not_held)));
        }
        if !self.not_known.is_empty() {
            lines.push(format!(
                "Frozen only if this controller runs them, which nothing shows: {}.",
                named(&self.not_known)
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests;
