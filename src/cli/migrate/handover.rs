//! Hands CronJobs over to this controller, and takes them back: `migrate handover` and `migrate takeback`.
//!
//! Guarantees: for each CronJob one write changes the annotations and `spec.suspend` together, so that exactly one controller runs
//! it at every moment. A suspended CronJob stays suspended, and one that runs goes on. The in-tree controller gets none with the time of
//! a next run that it would not keep. Nothing is handed to a controller with
//! `--manage=all`, as far as its writes show that flag, and no CronJob in a time zone that this controller does not know. What keeps
//! the CronJob from running under its new controller is said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apimachinery::clock::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use schedule::Zone;
use serde_json::Value;

use super::changes::{self, Changed, Changes, Listed, Outcome, Plan, Selection};
use super::read::{Seen, seen};
use super::{LEASES, Object, controllers, old_slots, read_if_allowed};
use crate::api::batch_v1::CronJob;
use crate::api::manage::{MANAGED_ANNOTATION, SUSPEND_ANNOTATION, Standing};
use crate::api::policy::NEXT_RUN;
use crate::api::{ControllerKind, ObjectName};
use crate::cli::CliError;
use crate::cli::cluster::{self, ControllerFlags, Scope, WriteError};
use crate::cli::explain::in_charge::without_policies;
use crate::cli::explain::lease::{ControllerLease, Leases};
use crate::cli::explain::read::{ReadError, lease_at, list};
use crate::cli::explain::rehearsal::Rehearsal;
use crate::cli::explain::{Facts, InCharge, holds_every_run};
use crate::cli::output::moment;
use crate::cli::restrictions::{Restrictions, unread};
use crate::options::PROGRAM;

/// A slot that is due for so long has no controller that starts it.
const LATE: TimeDelta = TimeDelta::seconds(10);

/// Why nothing is handed to a controller with `--manage=all`.
const NOBODY: &str = "no controller would run what is handed over";

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To this controller.
    Handover,
    /// To the in-tree controller.
    Takeback,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which way.
    pub direction: Direction,
    /// Which CronJobs.
    pub which: Selection,
    /// Whether nothing is written.
    pub dry_run: bool,
}

impl Listed for Seen {
    fn cron_job(&self) -> &CronJob {
        &self.cron_job
    }
}

impl Direction {
    const fn command(self) -> &'static str {
        match self {
            Self::Handover => "handover",
            Self::Takeback => "takeback",
        }
    }

    const fn done(self) -> &'static str {
        match self {
            Self::Handover => "handed over",
            Self::Takeback => "taken back",
        }
    }

    fn wanted(self, before: Standing) -> Standing {
        match self {
            Self::Handover => before.handed_over(),
            Self::Takeback => before.taken_back(),
        }
    }

    /// What a change means for the controllers, or why there is none. `others` is the controller of what is not handed over, and `held`
    /// why no run starts under the controller that has it then.
    fn effect(self, before: Standing, dry_run: bool, others: InCharge, held: Option<&str>) -> String {
        let is_suspended = before.is_suspended();
        let is = if dry_run { "would be" } else { "is" };
        let effect = match (self, self.wanted(before) == before) {
            (Self::Handover, true) if is_suspended => {
                format!("is handed over already, and suspended ({SUSPEND_ANNOTATION}).")
            }
            (Self::Handover, true) => "is handed over already.".to_owned(),
            (Self::Takeback, true) => return "is not handed over.".to_owned(),
            (Self::Handover, _) if is_suspended => {
                format!("{is} handed over, and stays suspended, by {SUSPEND_ANNOTATION}.")
            }
            (Self::Handover, _) if before.handover.suspend => {
                format!(
                    "{is} handed over, and not suspended: its annotation {SUSPEND_ANNOTATION}, which had no effect, {is} removed."
                )
            }
            (Self::Handover, _) if held.is_some() => {
                format!("{is} handed over, and the in-tree controller starts no more of its runs.")
            }
            (Self::Handover, _) => {
                format!("{is} handed over: a controller with --manage=annotated runs it, and not the in-tree one.")
            }
            (Self::Takeback, _) if !before.is_handed_over() => {
                let then = if is_suspended { "it stays suspended" } else { "it is not handed over" };
                return format!("{is} freed of {MANAGED_ANNOTATION} and {SUSPEND_ANNOTATION}; {then}.");
            }
            (Self::Takeback, _) if is_suspended => format!("{is} taken back, and stays suspended, by spec.suspend."),
            (Self::Takeback, _) => {
                let whose = if others == InCharge::Own { PROGRAM } else { "the in-tree controller" };
                if held.is_some() {
                    format!("{is} taken back by {whose}.")
                } else {
                    format!("{is} taken back: {whose} runs it.")
                }
            }
        };
        match held {
            Some(why) if is_suspended => {
                format!("{effect} If it were resumed then, it would not start either. {why}")
            }
            Some(why) => format!("{effect} {why}"),
            None => effect,
        }
    }
}

/// Hands over, or takes back, what `request` names in `scope`. `flags` are those of this controller.
///
/// # Errors
/// When the CronJobs or the Jobs cannot be read, or one of the names is unknown.
pub async fn hand_over(
    scope: &Scope,
    request: &Request,
    flags: &ControllerFlags,
    clock: &dyn Clock,
) -> Result<Changes, CliError> {
    let (client, namespace) = scope.connect().await?;
    let now = cluster::now(&client, clock).await;
    hand_over_with(&client, namespace.as_deref(), request, flags, now).await
}

pub(super) async fn hand_over_with(
    client: &Client,
    namespace: Option<&str>,
    request: &Request,
    flags: &ControllerFlags,
    now: DateTime<Utc>,
) -> Result<Changes, CliError> {
    let (kind, Request { direction, which, dry_run }) = (ControllerKind::CronJob, request);
    let selector = which.query();
    let jobs = list(client, &kind.child.path(namespace), "").await?;
    let jobs: Vec<&str> = jobs.iter().map(|raw| raw.get()).collect();
    let restrictions = Restrictions::read(client, namespace).await;
    let look = async |selector: &str| {
        let cron_jobs = list(client, &kind.parent.path(namespace), selector).await?;
        Ok::<_, ReadError>(seen(cron_jobs.iter().map(|raw| raw.get()), &jobs, flags, &restrictions))
    };
    let (mut all, undecoded) = look(&selector).await?;
    let leases: Option<Vec<Lease>> = read_if_allowed(client, LEASES).await.ok();
    let known = leases.as_deref().map(Leases::of);
    let others = if selector.is_empty() { None } else { Some(look("").await?.0) };
    let manages_all = managed_by_all(&all, others.as_deref(), known.as_ref(), now);
    which.choose(&mut all, kind, namespace)?;
    let all_of = |seen: &Seen| manages_all.get(&*seen.cron_job.name.namespace);
    let is_handover = *direction == Direction::Handover;
    if let Some(evidence) =
        all.first().and_then(all_of).filter(|_| is_handover && all.iter().all(|it| all_of(it).is_some()))
    {
        let what = "hand CronJobs over".to_owned();
        let cause = format!("{evidence}: {NOBODY}. Start {PROGRAM} with --manage=annotated first");
        return Err(WriteError { what, cause }.into());
    }
    let change_one = async |seen: Seen| {
        let evidence = all_of(&seen);
        if let Some(evidence) = evidence.filter(|_| is_handover && !seen.handed_over) {
            let object = Object::of(&seen.cron_job);
            let message = format!("{object} is not handed over: {evidence}: {NOBODY}.");
            return Changed::failed(object, message);
        }
        let others = if evidence.is_some() { InCharge::Own } else { InCharge::InTree };
        let next = if is_handover { InCharge::HandedOver } else { others };
        let lease = known.as_ref().map(|leases| lease_at(leases, kind, &seen.cron_job.name.namespace, next));
        let leads = lease.is_none_or(|lease| lease.is_some_and(|lease| !lease.is_expired(now)));
        let next = Next { others, leads };
        change(client, seen, (*direction, *dry_run), next, flags, now).await
    };
    let (changed, mut remarks) = which.change_all(direction.done(), all, undecoded, namespace, change_one).await;
    remarks.extend(restrictions.unread.as_deref().map(unread));
    if *direction == Direction::Handover {
        let namespaces = changed.iter().filter_map(|changed| changed.object.namespace.as_deref());
        remarks.extend(leases.and_then(|leases| nothing_runs(&leases, namespaces.collect(), now)));
    }
    Ok(Changes {
        command: direction.command(),
        done: direction.done().to_owned(),
        dry_run: *dry_run,
        cron_jobs: changed,
        remarks,
    })
}

/// The namespaces in which this controller manages all CronJobs, as far as is known, each with what shows that. `read` are the CronJobs
/// in question, and `others` all, if those are not all.
fn managed_by_all(
    read: &[Seen],
    others: Option<&[Seen]>,
    leases: Option<&Leases>,
    now: DateTime<Utc>,
) -> BTreeMap<String, String> {
    let (none, all) = (Leases::default(), others.unwrap_or(read));
    let namespaces: BTreeSet<&str> = read.iter().map(|seen| &*seen.cron_job.name.namespace).collect();
    let evidence = |namespace: &str| controllers::manages_all(all, leases.unwrap_or(&none), namespace, now);
    namespaces.into_iter().filter_map(|namespace| Some((namespace.to_owned(), evidence(namespace)?))).collect()
}

/// The controllers to which CronJobs go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    /// The controller of what is not handed over.
    pub others: InCharge,
    /// Whether the controller that gets the CronJob runs, unless Leases cannot be read.
    pub leads: bool,
}

pub(super) async fn change(
    client: &Client,
    seen: Seen,
    (direction, dry_run): (Direction, bool),
    next: Next,
    flags: &ControllerFlags,
    now: DateTime<Utc>,
) -> Changed {
    let object = Object::of(&seen.cron_job);
    let what = format!("{} {object}", if direction == Direction::Handover { "hand over" } else { "take back" });
    let Next { others, .. } = next;
    let plan = |seen: &Seen| {
        let before = seen.standing();
        let wanted = direction.wanted(before);
        let is_changed = before != wanted;
        if is_changed && direction == Direction::Handover && seen.cron_job.timing(flags.zone).time_zone.is_err() {
            return refused(object.clone(), &seen.cron_job);
        }
        let held = held(seen, direction, others, flags.zone, now);
        let message = format!("{object} {}", direction.effect(before, dry_run, others, held.as_deref()));
        let outcome = if is_changed { Outcome::Changed } else { Outcome::Unchanged };
        let starts = match direction {
            _ if before.is_handed_over() == wanted.is_handed_over() || before.is_suspended() => None,
            Direction::Handover => starts_here(seen, next, flags.zone, now),
            Direction::Takeback if others == InCharge::Own => starts_here(seen, next, flags.zone, now),
            Direction::Takeback => starts_in_tree(seen, next, flags.zone, now),
        };
        let changed = Changed { object: object.clone(), outcome, suspended: before.is_suspended(), message, starts };
        let mut patch = before.patch(wanted);
        // In-tree does not keep it up to date.
        let published = seen.cron_job.status.published.as_ref();
        let has_next_run = published.is_some_and(|published| published.next_run.is_some());
        if direction == Direction::Takeback && others == InCharge::InTree && has_next_run {
            patch["metadata"]["annotations"][NEXT_RUN] = Value::Null;
        }
        Plan { patch: is_changed.then_some(patch), changed }
    };
    changes::change(client, seen, &what, dry_run, plan, |before, text| newer(before, text, flags)).await
}

/// The CronJob stays with the in-tree controller, which may know its zone: this one would never run it.
fn refused(object: Object, cron_job: &CronJob) -> Plan {
    let zone = cron_job.spec.recurrence.time_zone().unwrap_or_default();
    let message = format!(
        "{object} is not handed over: {PROGRAM} does not know its spec.timeZone {zone:?}, and would never run it."
    );
    Plan { patch: None, changed: Changed::failed(object, message) }
}

/// Why no run of the CronJob starts under the controller that has it then.
fn held(seen: &Seen, direction: Direction, others: InCharge, local: Zone, now: DateTime<Utc>) -> Option<String> {
    let next = if direction == Direction::Handover { InCharge::HandedOver } else { others };
    let mut cron_job = Arc::clone(&seen.cron_job);
    if next == InCharge::InTree {
        without_policies(Arc::make_mut(&mut cron_job));
        cron_job = cron_job.in_its_namespace(None);
    }
    let facts = Facts::of(cron_job, next, seen.jobs.clone());
    holds_every_run(&facts, local, now).map(|(_, why)| why)
}

/// The CronJob as it is now, with the Jobs and the Namespace that were read before.
fn newer(before: &Seen, text: &str, flags: &ControllerFlags) -> Result<Seen, String> {
    let (found, undecoded) = seen([text].into_iter(), &[], flags, &Restrictions::default());
    let newer =
        found.into_iter().next().ok_or_else(|| undecoded.into_iter().map(|(_, cause)| cause).collect::<String>())?;
    let cron_job = Arc::clone(&newer.cron_job).in_its_namespace(before.cron_job.restriction());
    Ok(Seen { cron_job, jobs: before.jobs.clone(), ..newer })
}

/// What this controller does as soon as the CronJob is its own: it rehearses that.
fn starts_here(seen: &Seen, next: Next, local: Zone, now: DateTime<Utc>) -> Option<String> {
    let then = Rehearsal::of(&seen.cron_job, &seen.jobs, local, now);
    let names = |names: &[ObjectName]| names.iter().map(|name| name.name.to_string()).collect::<Vec<_>>().join(", ");
    let deletes = (!then.replaced.is_empty()).then(|| format!("deletes Job {}", names(&then.replaced)));
    let starts = then.starts().map(|(name, slot)| {
        let zone = seen.cron_job.zone(local);
        format!("starts Job {} of {}", name.name, moment(zone, *slot))
    });
    let does: Vec<String> = deletes.into_iter().chain(starts).collect();
    let when = if next.leads { "at once" } else { "as soon as it runs" };
    (!does.is_empty()).then(|| format!("{PROGRAM} {} {when}.", does.join(" and ")))
}

/// What the in-tree controller starts as soon as the CronJob is its own, and this controller does not, or has not yet.
fn starts_in_tree(seen: &Seen, next: Next, local: Zone, now: DateTime<Utc>) -> Option<String> {
    if let Some(slot) = old_slots::find(seen, local, now) {
        return Some(format!("Under the in-tree controller, {}", slot.message));
    }
    let (own, slot) = old_slots::overdue(seen, local, now).filter(|(_, slot)| now - slot > LATE)?;
    let job = old_slots::late_job(&seen.cron_job, own, slot, local, now);
    let when = if next.leads { "" } else { ", as soon as it runs" };
    Some(format!("The in-tree controller starts {job}{when}: no controller has started it yet."))
}

/// That no controller can run what is handed over in one of these namespaces, as far as the leases say.
fn nothing_runs(leases: &[Lease], namespaces: BTreeSet<&str>, now: DateTime<Utc>) -> Option<String> {
    let leases = Leases::of(leases);
    let lease = |namespace| (namespace, leases.controller(ControllerKind::CronJob, namespace, true));
    let is_dead = |lease: &ControllerLease| lease.is_expired(now);
    let (namespace, lease) = namespaces.into_iter().map(lease).find(|(_, lease)| lease.as_ref().is_none_or(is_dead))?;
    let state = lease.map_or_else(|| leases.absence(namespace), |lease| lease.state(now));
    Some(format!("Nothing runs what is handed over until a controller with --manage=annotated runs: {state}."))
}
