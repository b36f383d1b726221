//! CronJobs that one of the controllers does not run because of how they are written: a zone that is not known here, a wrong value
//! of a handover annotation, an object that cannot be decoded, and those that are handed over where no controller looks for them.
//!
//! Guarantee: the API server has accepted each of these objects. Pure.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};

use super::read::Seen;
use super::{Cluster, Code, Finding, Object, controllers};
use crate::api::manage::{MANAGED_ANNOTATION, SUSPEND_ANNOTATION};
use crate::cli::explain::lease::Leases;
use crate::cli::output::count;

pub(super) fn find(cluster: &Cluster, now: DateTime<Utc>) -> Vec<Finding> {
    let of_each = cluster.cron_jobs.iter().filter(|seen| !seen.cron_job.deleting);
    let of_each = of_each.flat_map(|seen| unknown_zone(seen).into_iter().chain(wrong_values(seen)));
    let undecoded = cluster.undecoded.iter().map(|(object, cause)| {
        let message = format!("{object} cannot be decoded here, and this controller does not run it: {cause}.");
        Finding::new(Code::NotDecoded, object.clone(), message).changing_runs()
    });
    let leases = Leases::of(cluster.leases.as_deref().unwrap_or_default());
    of_each.chain(undecoded).chain(handed_over(&cluster.cron_jobs, &leases, now)).collect()
}

/// The API server knows the zone, or it would have refused the CronJob.
fn unknown_zone(seen: &Seen) -> Option<Finding> {
    let cron_job = &seen.cron_job;
    let zone = cron_job.spec.recurrence.time_zone()?;
    cron_job.timing(schedule::Zone::UTC).time_zone.as_ref().err()?;
    let object = Object::of(cron_job);
    let message = format!(
        "{object} has spec.timeZone {zone:?}, which the API server accepted and this controller does not know: it does not run \
         here. The in-tree controller runs it if its machine's time zone database has a file of that name."
    );
    Some(Finding::new(Code::UnknownTimeZone, object, message).changing_runs())
}

/// A value other than true and false counts as false.
fn wrong_values(seen: &Seen) -> Vec<Finding> {
    let standing = seen.standing();
    let wrong = |(annotation, value): &(&'static str, String)| {
        let object = Object::of(&seen.cron_job);
        let (is_suspend, is_held) = (*annotation == SUSPEND_ANNOTATION, standing.spec_suspend);
        let effect = match (is_suspend, standing.is_handed_over()) {
            (true, true) => "so it is not suspended, and this controller runs it",
            (true, false) => "and has no effect, because it is not handed over",
            (false, _) if is_held => "so it is not handed over, and no controller runs it (spec.suspend is true)",
            (false, _) => "so it is not handed over, and the in-tree controller runs it",
        };
        let message = format!(
            "{object} has {annotation}: {value:?}, which counts as false, {effect}. Use \"true\" or \"false\"."
        );
        let finding = Finding::new(Code::HandoverValue, object, message);
        if is_held { finding.changing_runs() } else { finding }
    };
    seen.wrong_values.iter().map(wrong).collect()
}

/// With `--manage=all` this controller leaves those that are handed over suspended, as the in-tree controller does. One finding for those of
/// which that is known, and one for the others.
fn handed_over(cron_jobs: &[Seen], leases: &Leases, now: DateTime<Utc>) -> Vec<Finding> {
    let mut evidence: HashMap<&str, Option<String>> = HashMap::new();
    let mut found: BTreeMap<Option<String>, Vec<&Seen>> = BTreeMap::new();
    for seen in cron_jobs.iter().filter(|seen| seen.handed_over && !seen.cron_job.deleting) {
        let namespace = &*seen.cron_job.name.namespace;
        let evidence = evidence
            .entry(namespace)
            .or_insert_with(|| controllers::manages_all(cron_jobs, leases, namespace, now))
            .clone();
        found.entry(evidence).or_default().push(seen);
    }
    found.into_iter().filter_map(|(evidence, seen)| handed_over_with(evidence, &seen)).collect()
}

fn handed_over_with(evidence: Option<String>, handed_over: &[&Seen]) -> Option<Finding> {
    let object = Object::of(&handed_over.first()?.cron_job);
    let others = match handed_over.len() - 1 {
        0 => "is".to_owned(),
        others => format!("and {} more are", count(others, "CronJob")),
    };
    let which = format!("{object} {others} handed over ({MANAGED_ANNOTATION})");
    let advice = "cronjob-controller migrate takeback gives them back to spec.suspend.";
    Some(match evidence {
        None => {
            let message = format!("{which}: no controller runs them where this one runs with --manage=all. {advice}");
            Finding::new(Code::HandedOver, object, message)
        }
        Some(evidence) => {
            let message = format!("{which}, and {evidence}: no controller runs them. {advice}");
            Finding::new(Code::HandedOver, object, message).changing_runs()
        }
    })
}
