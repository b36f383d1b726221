//! Which controllers work on the CronJobs: the in-tree one, this one, or both.
//!
//! Guarantees: a finding names its evidence. Evidence is what the API server recorded in `managedFields`: only a CronJob
//! controller writes the status of a CronJob and creates the Jobs of its slots. The Lease of kube-controller-manager shows that
//! the process runs, and no more, because `--controllers=-cronjob-controller` may be set. Without evidence of the last hour
//! nothing is claimed. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::coordination::v1::Lease;

use super::read::{Seen, Written};
use super::{Cluster, Code, Finding, Object};
use crate::api::{ControllerKind, Manage};
use crate::cli::explain::lease::{ControllerLease, IN_TREE, Leases, SKEW};
use crate::cli::output::{count, stretch};
use crate::leader_election::Coverage;
use crate::options::PROGRAM;

/// The managers in the name of which the in-tree controller writes: the program's file name, also where kube-controller-manager
/// is part of another program.
const IN_TREE_MANAGERS: [&str; 4] = [IN_TREE, "k3s", "k3s-server", "kubelite"];

/// How old evidence may be.
const RECENT: TimeDelta = TimeDelta::hours(1);

/// How long after a take-back this controller may write the status of a Job that it started before.
const PENDING: TimeDelta = TimeDelta::seconds(10);

/// How much the API server's times of one create may differ.
const SAME_REQUEST: TimeDelta = TimeDelta::seconds(1);

/// The newest writes of each controller to a CronJob's status and to its Jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Writers {
    in_tree: Option<Write>,
    own: Option<Write>,
}

/// A write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Write {
    time: DateTime<Utc>,
    /// The Job that was created; `None` for the status.
    job: Option<String>,
}

impl Writers {
    /// Who wrote the status of a CronJob, and who created the Jobs of its slots.
    pub(super) fn of<'a>(cron_job: &Written, jobs: impl Iterator<Item = &'a Written>) -> Self {
        let mut writers = Self::default();
        for entry in cron_job.managed_fields.iter().filter(|entry| entry.subresource == "status") {
            writers.add(&entry.manager, entry.time, None);
        }
        for job in jobs {
            let Some(since) = job.creation_timestamp else { continue };
            let is_create = |time: DateTime<Utc>| (time - since).abs() <= SAME_REQUEST;
            let creates = job.managed_fields.iter().filter(|entry| entry.subresource.is_empty());
            for entry in creates.filter(|entry| entry.time.is_some_and(is_create)) {
                writers.add(&entry.manager, entry.time, Some(&job.name));
            }
        }
        writers
    }

    /// Whether the newest write is the in-tree controller's; `None` if there is none, or it may belong to what was before the
    /// edit at `edited`.
    pub(super) fn is_in_tree(&self, edited: Option<DateTime<Utc>>) -> Option<bool> {
        let newest = self.in_tree.as_ref().max(self.own.as_ref())?;
        let is_in_tree = Some(newest) != self.own.as_ref();
        let may_be_late = if is_in_tree { TimeDelta::zero() } else { PENDING };
        (Some(newest.time) >= edited.map(|edited| edited + may_be_late)).then_some(is_in_tree)
    }

    fn add(&mut self, manager: &str, time: Option<DateTime<Utc>>, job: Option<&str>) {
        let place = match manager {
            PROGRAM => &mut self.own,
            manager if IN_TREE_MANAGERS.contains(&manager) => &mut self.in_tree,
            _ => return,
        };
        let write = time.map(|time| Write { time, job: job.map(ToOwned::to_owned) });
        *place = write.max(place.take());
    }
}

impl Write {
    /// What was done to `cron_job`, and when.
    fn said(&self, cron_job: &Object, now: DateTime<Utc>) -> String {
        let ago = stretch((now - self.time).max(TimeDelta::zero()));
        match &self.job {
            Some(job) => format!("created Job {job} of {cron_job} {ago} ago"),
            None => format!("wrote the status of {cron_job} {ago} ago"),
        }
    }
}

/// What shows that this controller works on the CronJobs of a namespace that are not handed over, and that no instance of it runs those
/// that are: the Leases. That of an older version does not say it; then its newest write to one since the process that runs has acquired
/// the Lease. Where no Lease says when that was, a write of the last hour.
pub(super) fn manages_all(cron_jobs: &[Seen], leases: &Leases, namespace: &str, now: DateTime<Utc>) -> Option<String> {
    let said = |namespace: &str| {
        let instances = leases.instances(now).into_iter();
        let instances = instances.filter(|(_, it)| it.includes(ControllerKind::CronJob.name, namespace));
        instances.filter_map(|(lease, coverage)| Some((lease, coverage.manage()?))).collect::<Vec<_>>()
    };
    let said_here = said(namespace);
    if let Some((lease, _)) = said_here.first() {
        let is_all = said_here.iter().all(|(_, manage)| *manage == Manage::All);
        return is_all.then(|| format!("{PROGRAM} runs with --manage=all, as its Lease {} says", lease.name));
    }
    let since = |seen: &Seen| {
        let lease = leases.controller(ControllerKind::CronJob, &seen.cron_job.name.namespace, true);
        let acquired = lease.filter(|lease| !lease.is_expired(now)).and_then(|lease| lease.record.acquire_time);
        acquired.map_or(now - RECENT, |acquired| acquired + SKEW)
    };
    let of_own = cron_jobs.iter().filter(|seen| seen.is_own && !seen.handed_over);
    // Where a Lease says it, an instance of that version has written.
    let of_own = of_own.filter(|seen| said(&seen.cron_job.name.namespace).is_empty());
    let writes = of_own.filter_map(|seen| Some((seen.writers.own.as_ref()?, seen)));
    let (write, seen) = writes.filter(|(write, seen)| write.time >= since(seen)).max_by_key(|(write, _)| *write)?;
    Some(format!(
        "{PROGRAM} runs with --manage=all, since it {}, which is not handed over",
        write.said(&seen.at(), now)
    ))
}

pub(super) fn find(cluster: &Cluster, now: DateTime<Utc>) -> Vec<Finding> {
    let leases = cluster.leases.as_deref().unwrap_or_default();
    let in_tree = in_tree_is_on(&cluster.cron_jobs, now).or_else(|| in_tree_may_be_on(leases, now));
    let overlapping = overlapping_instances(&Leases::of(leases), now);
    two_controllers(&cluster.cron_jobs, leases, now).into_iter().chain(in_tree).chain(overlapping).collect()
}

/// Each two instances of this controller that work on the same CronJobs.
fn overlapping_instances(leases: &Leases, now: DateTime<Utc>) -> Vec<Finding> {
    let mut instances = leases.instances(now);
    instances.sort_by_key(|(lease, _)| &lease.name);
    let pairs =
        instances.iter().enumerate().flat_map(|(at, one)| instances[at + 1..].iter().map(move |two| (one, two)));
    let finding = |((one, of_one), (two, of_two)): (&(&ControllerLease, &Coverage), &(&ControllerLease, &Coverage))| {
        let shared = of_one.shared_with(of_two)?;
        let (namespace, name) = one.name.split_once('/')?;
        let object = Object::named("Lease", namespace, name);
        let message = format!(
            "{object} and Lease {} are those of two instances that both work in {shared}. No slot runs twice, but each does all the \
             work, and until one of them stops, Forbid and Replace rest on the Jobs that both see.",
            two.name
        );
        Some(Finding::new(Code::OverlappingInstances, object, message))
    };
    pairs.filter_map(finding).collect()
}

fn in_tree_is_on(cron_jobs: &[Seen], now: DateTime<Utc>) -> Option<Finding> {
    let evidence =
        |seen: &Seen| Some((seen.writers.in_tree.clone().filter(|write| now - write.time <= RECENT)?, seen.at()));
    let found: Vec<(Write, Object)> = cron_jobs.iter().filter_map(evidence).collect();
    let (newest, object) = found.iter().max_by_key(|(write, _)| write)?;
    let others = match found.len() - 1 {
        0 => String::new(),
        others => format!(", and worked on {} more within the last hour", count(others, "CronJob")),
    };
    let intended = if cron_jobs.iter().any(|seen| seen.handed_over) {
        " Where this controller runs with --manage=annotated, that is as intended."
    } else {
        ""
    };
    let message = format!(
        "{IN_TREE} {}{others}: its CronJob controller was on then, which --controllers=*,-cronjob-controller turns off.{intended}",
        newest.said(object, now)
    );
    Some(Finding::new(Code::InTreeIsOn, object.clone(), message))
}

/// Only the Lease says that kube-controller-manager runs.
fn in_tree_may_be_on(leases: &[Lease], now: DateTime<Utc>) -> Option<Finding> {
    let lease = Leases::of(leases).in_tree().filter(|lease| !lease.is_expired(now))?;
    let (namespace, _) = lease.name.split_once('/')?;
    let renewed = lease.record.renew_time?;
    let object = Object::named("Lease", namespace, IN_TREE);
    let ago = stretch((now - renewed).max(TimeDelta::zero()));
    let message = format!(
        "{object} was renewed {ago} ago, so {IN_TREE} runs. That does not show whether its CronJob controller is on: \
         --controllers=*,-cronjob-controller may be set. It has written no status of these CronJobs within the last hour, and \
         created none of their Jobs."
    );
    Some(Finding::new(Code::InTreeMayBeOn, object, message))
}

/// Both have worked on a CronJob since the leader of this controller holds its Lease. A CronJob that was handed over is
/// left out, because the in-tree controller also writes its status.
fn two_controllers(cron_jobs: &[Seen], leases: &[Lease], now: DateTime<Utc>) -> Option<Finding> {
    let leases = Leases::of(leases);
    let evidence = |seen: &Seen| {
        let Seen { cron_job, handed_over: false, writers, .. } = seen else { return None };
        let lease = leases.controller(cron_job.controller_kind, &cron_job.name.namespace, true)?;
        let is_led = !lease.is_expired(now) && !lease.record.holder_identity.is_empty();
        let since = lease.record.acquire_time.filter(|_| is_led)?.max(now - RECENT);
        let in_tree = writers.in_tree.clone().filter(|write| write.time > since + SKEW)?;
        let own = writers.own.clone().filter(|write| write.time > since)?;
        Some((in_tree, own, seen.at(), lease))
    };
    let found: Vec<_> = cron_jobs.iter().filter_map(evidence).collect();
    let (in_tree, own, object, lease) = found.iter().max_by_key(|(in_tree, ..)| in_tree)?;
    let others = match found.len() - 1 {
        0 => String::new(),
        others => format!(" The same holds for {} more.", count(others, "CronJob")),
    };
    let message = format!(
        "{IN_TREE} {}, and {PROGRAM}, which holds the lease {}, {}: both start Jobs. No slot runs twice, but policies have no \
         effect.{others}",
        in_tree.said(object, now),
        lease.name,
        own.said(object, now)
    );
    Some(Finding::new(Code::TwoControllers, object.clone(), message))
}

impl Seen {
    fn at(&self) -> Object {
        Object::of(&self.cron_job)
    }
}
