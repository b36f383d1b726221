//! Freezes Namespaces, and thaws them.
//!
//! Guarantees: only the annotations `not-before` and `reason` of the Namespaces are changed, each by one request. A thaw sets
//! `not-before` to the cluster's present second, so that no older slot starts. What a freeze holds is counted by the controller's own
//! search. CronJobs that the in-tree controller runs are named as not held. Pure, except for [`set_frozen`].

use std::collections::HashMap;

use apimachinery::clock::Clock;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use kube::Client;
use schedule::Zone;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::CliError;
use super::cluster::{self, ControllerFlags, Scope};
use super::explain::read::{ReadError, get, list, read_leases, words};
use super::explain::{InCharge, MANY, some_of};
use super::migrate::escaped;
use super::next::cron_jobs::{Given, slots_after};
use super::output::{Report, count, moment};
use super::restrictions::why;
use crate::api::batch_v1::CronJob;
use crate::api::policy::{EXCLUDE, NOT_BEFORE, REASON, Restriction};
use crate::api::{ControllerKind, Interner, Namespace, Object as _, ResourceKind};

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
        /// Why; `None` removes an earlier reason.
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
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Frozen {
    namespace: String,
    /// The sentence about the Namespace.
    summary: String,
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
    first: Option<DateTime<Utc>>,
}

/// What happens to a Namespace.
#[derive(Debug)]
struct Plan {
    summary: String,
    /// The patch; `None` if nothing changes.
    change: Option<Value>,
    failed: bool,
}

impl Outcome {
    /// Whether all Namespaces are as they should be.
    pub fn is_good(&self) -> bool {
        !self.namespaces.iter().any(|frozen| frozen.failed)
    }
}

impl Request {
    /// What happens to a Namespace at `now`.
    fn plan(&self, namespace: &Namespace, flags: &ControllerFlags, now: DateTime<Utc>) -> Plan {
        let name = &namespace.object_name().name;
        let restriction = namespace.restriction.as_deref();
        let before = restriction.and_then(|restriction| restriction.frozen_until(now));
        let would = |done: &str, would: &str| if self.dry_run { would.to_owned() } else { done.to_owned() };
        match &self.change {
            Change::Freeze { until, reason } => {
                let until = until.time(now, flags.zone);
                if until <= now {
                    let summary = format!("Namespace {name} is not changed: {} has passed.", moment(flags.zone, until));
                    return Plan { summary, change: None, failed: true };
                }
                let verb = would("is", "would be");
                let why = why(reason.as_deref());
                let was = before.filter(|before| *before != until);
                let was = was.map(|was| format!(" Before, it was frozen until {}.", moment(flags.zone, was)));
                let until_text = moment(flags.zone, until);
                Plan {
                    summary: format!(
                        "Namespace {name} {verb} frozen until {until_text}{why}.{}",
                        was.unwrap_or_default()
                    ),
                    change: Some(annotations(until, reason.as_deref())),
                    failed: false,
                }
            }
            Change::Thaw if before.is_none() && restriction.is_none_or(|restriction| restriction.error().is_none()) => {
                let excluded = restriction.map(Restriction::excluded).filter(|excluded| !excluded.is_empty());
                let excluded = excluded.map(|excluded| format!(" {EXCLUDE} ({excluded}) goes on to hold."));
                let summary = format!("Namespace {name} is not frozen.{}", excluded.unwrap_or_default());
                Plan { summary, change: None, failed: false }
            }
            Change::Thaw => {
                let verb = would("is", "would be");
                // What cannot be read may be dates, which stay with their reason.
                let is_freeze_alone = restriction
                    .is_some_and(|restriction| restriction.error().is_none() && restriction.excluded().is_empty());
                let kept =
                    restriction.and_then(|restriction| restriction.reason.as_deref()).filter(|_| !is_freeze_alone);
                Plan {
                    summary: format!(
                        "Namespace {name} {verb} thawed: no run that was due before now starts. Leave {NOT_BEFORE} until each \
                         CronJob has run: without it, the newest run that the freeze held starts."
                    ),
                    change: Some(annotations(whole_second(now), kept)),
                    failed: false,
                }
            }
        }
    }

    /// The CronJobs of a Namespace, and what is held of them from `now` on.
    fn frozen(
        &self,
        plan: &Plan,
        namespace: &str,
        cron_jobs: &[(CronJob, InCharge)],
        flags: &ControllerFlags,
        now: DateTime<Utc>,
    ) -> Frozen {
        let names = |in_charge| {
            let meant = cron_jobs.iter().filter(move |(_, found)| *found == in_charge);
            meant.map(|(cron_job, _)| cron_job.name.name.to_string()).collect()
        };
        let until = match &self.change {
            Change::Freeze { until, .. } => until.time(now, flags.zone),
            Change::Thaw => now,
        };
        let runs = |cron_job: &CronJob| {
            let start = cron_job.nominal(now);
            let is_on = !cron_job.spec.suspend && !cron_job.deleting;
            let slots = slots_after(cron_job, flags.zone, start, now).take_while(|slot| *slot < until).take(MANY + 1);
            let slots: Vec<DateTime<Utc>> = if is_on { slots.collect() } else { Vec::new() };
            let first = slots.first().map(|slot| cron_job.due(*slot));
            Held { name: cron_job.name.name.to_string(), runs: slots.len(), first }
        };
        let ours = cron_jobs.iter().filter(|(_, in_charge)| !matches!(in_charge, InCharge::InTree | InCharge::Unknown));
        Frozen {
            namespace: namespace.to_owned(),
            summary: plan.summary.clone(),
            is_freeze: matches!(self.change, Change::Freeze { .. }),
            failed: plan.failed,
            held: if plan.change.is_some() { ours.map(|(cron_job, _)| runs(cron_job)).collect() } else { Vec::new() },
            not_held: names(InCharge::InTree),
            not_known: names(InCharge::Unknown),
        }
    }
}

/// The first whole second at or after an instant: slots have whole seconds.
fn whole_second(now: DateTime<Utc>) -> DateTime<Utc> {
    let whole = DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now);
    if whole < now { whole + TimeDelta::seconds(1) } else { whole }
}

fn annotations(not_before: DateTime<Utc>, reason: Option<&str>) -> Value {
    let not_before = not_before.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    json!({ "metadata": { "annotations": { NOT_BEFORE: not_before, REASON: reason } } })
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
    let now = cluster::latest_now(&client, clock).await;
    set_frozen_with(&client, scope.controller_kind, namespace.as_deref(), request, flags, now).await
}

async fn set_frozen_with(
    client: &Client,
    controller_kind: ControllerKind,
    namespace: Option<&str>,
    request: &Request,
    flags: &ControllerFlags,
    now: DateTime<Utc>,
) -> Result<Outcome, CliError> {
    let found = read_namespaces(client, namespace, request.selector.as_deref()).await?;
    let cron_jobs = read_cron_jobs(client, controller_kind, namespace, flags).await?;
    let begun = Instant::now();
    let change = async |found: Namespace| {
        // Runs that came due since the first one are held, too.
        let now = now + begun.elapsed();
        let name = &*found.object_name().name;
        let plan = request.plan(&found, flags, now);
        let cron_jobs = cron_jobs.get(name).map(Vec::as_slice).unwrap_or_default();
        let mut frozen = request.frozen(&plan, name, cron_jobs, flags, now);
        if let Some(change) = plan.change.as_ref().filter(|_| !request.dry_run) {
            let path = format!("{}/{name}?fieldManager=cronjob-controller-cli", ResourceKind::NAMESPACE.path(None));
            match cluster::try_patch(client, &path, change).await {
                Err(error) => {
                    frozen.summary = format!("Namespace {name} is not changed: {}", words(&error));
                    frozen.failed = true;
                }
                Ok(now) => frozen.find_error(&now),
            }
        }
        frozen
    };
    let what = if matches!(request.change, Change::Thaw) { "thawed" } else { "frozen" };
    let namespaces = cluster::change_all(what, found, change).await;
    Ok(Outcome { dry_run: request.dry_run, namespaces })
}

/// The CronJobs by namespace, without what their Namespaces say now.
async fn read_cron_jobs(
    client: &Client,
    controller_kind: ControllerKind,
    namespace: Option<&str>,
    flags: &ControllerFlags,
) -> Result<HashMap<String, Vec<(CronJob, InCharge)>>, ReadError> {
    let (interner, leases) = (Interner::default(), read_leases(client).await);
    let mut by_namespace: HashMap<String, Vec<(CronJob, InCharge)>> = HashMap::new();
    for raw in list(client, &controller_kind.parent.path(namespace), "").await? {
        let listed = InCharge::of_listed(raw.get(), controller_kind, &interner, &leases, flags);
        let Some((cron_job, in_charge)) = listed else { continue };
        by_namespace.entry(cron_job.name.namespace.to_string()).or_default().push((cron_job, in_charge));
    }
    Ok(by_namespace)
}

/// The Namespace of that name, or those with these labels, or all.
async fn read_namespaces(
    client: &Client,
    name: Option<&str>,
    selector: Option<&str>,
) -> Result<Vec<Namespace>, ReadError> {
    let path = ResourceKind::NAMESPACE.path(None);
    let decode = |text: &str| {
        let what = path.clone();
        Namespace::decode(text, &Interner::default())
            .map_err(|cause| ReadError::Decode { what, cause: Box::new(cause) })
    };
    if let Some(name) = name {
        let path = format!("{path}/{name}");
        let text = get(client, &path).await;
        let text = text.map_err(|error| ReadError::Request { what: path, cause: words(&error) })?;
        return Ok(vec![decode(&text)?]);
    }
    let selector = selector.map(|selector| format!("&labelSelector={}", escaped(selector))).unwrap_or_default();
    list(client, &path, &selector).await?.iter().map(|text| decode(text.get())).collect()
}

impl Report for Outcome {
    fn lines(&self) -> Vec<String> {
        if self.namespaces.is_empty() {
            return vec!["There is no such Namespace.".to_owned()];
        }
        self.namespaces.iter().flat_map(|frozen| frozen.lines(self.dry_run)).collect()
    }
}

impl Frozen {
    /// Says if a Namespace that was changed has another annotation that cannot be read, and holds everything.
    fn find_error(&mut self, json: &str) {
        let restriction =
            Namespace::decode(json, &Interner::default()).ok().and_then(|namespace| namespace.restriction);
        if let Some(error) = restriction.as_ref().and_then(|restriction| restriction.error()) {
            let name = &self.namespace;
            self.summary =
                format!("Namespace {name} is changed, and no run of its CronJobs starts until this is mended: {error}");
            self.failed = true;
        }
    }

    fn lines(&self, dry_run: bool) -> Vec<String> {
        let mut lines = vec![self.summary.clone()];
        if self.failed {
            return lines;
        }
        let named = |names: &[String]| some_of(names.iter().cloned(), names.len());
        let late: Vec<&Held> = self.held.iter().filter(|held| held.runs > 0).collect();
        if !self.held.is_empty() && late.is_empty() && self.is_freeze {
            lines.push(format!("No run of its {} is due until then.", count(self.held.len(), "CronJob")));
        }
        if !late.is_empty() {
            let verb = if dry_run { "would be held" } else { "are held" };
            let text = |held: &&Held| {
                let runs = if held.runs > MANY { format!("more than {MANY} runs") } else { count(held.runs, "run") };
                let first = held
                    .first
                    .map(|first| format!(", the first of {}", first.to_rfc3339_opts(SecondsFormat::Secs, true)));
                format!("  {}: {runs}{}", held.name, first.unwrap_or_default())
            };
            let all = count(self.held.len(), "CronJob");
            lines.push(format!("Of {all}, these runs {verb}:"));
            lines.extend(late.iter().map(text));
        }
        if !self.is_freeze {
            return lines;
        }
        if !self.not_held.is_empty() {
            lines.push(format!("Not held, because the in-tree controller runs them: {}.", named(&self.not_held)));
        }
        if !self.not_known.is_empty() {
            lines.push(format!(
                "Held only if this controller runs them, which nothing shows: {}.",
                named(&self.not_known)
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests;
