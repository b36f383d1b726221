//! Suspends a CronJob, and resumes it.
//!
//! Guarantees: only the suspension is changed, in one request: `spec.suspend`, or the annotation for it if the CronJob is handed
//! over. Where `spec.suspend` alone would hand it over and so start its Jobs, both are set; where no controller may be there to run it
//! then, nothing is. The object is the version that was
//! judged. The answer says first which controller runs the CronJob. What is said about the runs that a resumption starts or passes over
//! is the rehearsal of `explain`.

use std::sync::Arc;

use apimachinery::clock::Clock;
use chrono::{DateTime, Utc};
use kube::Client;
use schedule::Zone;

use super::cluster::{self, ATTEMPTS, CHANGES, ControllerFlags, Scope, WriteError};
use super::explain::read::{Target, read};
use super::explain::{AS_SOON, Facts, InCharge, MANY, Resumed, Resumption, resumed};
use super::{Answer, CliError};
use crate::api::Manage;
use crate::api::batch_v1::Job;
use crate::api::manage::{MANAGED_ANNOTATION, SUSPEND_ANNOTATION};
use crate::options::PROGRAM;
use crate::terminal::PlainText;

/// Suspends the CronJob that `target` names, or resumes it.
///
/// # Errors
/// When there is no such CronJob, or the API server refuses the change.
pub async fn set_suspended(
    target: &Target,
    suspend: bool,
    flags: &ControllerFlags,
    clock: &dyn Clock,
) -> Result<Answer, CliError> {
    let (client, namespace) = Scope::from(target.clone()).connect().await?;
    let now = cluster::now(&client, clock).await;
    set_suspended_with(&client, target, &namespace.unwrap_or_default(), suspend, flags, now).await
}

pub(super) async fn set_suspended_with(
    client: &Client,
    target: &Target,
    namespace: &str,
    suspend: bool,
    flags: &ControllerFlags,
    now: DateTime<Utc>,
) -> Result<Answer, CliError> {
    let kind = target.controller_kind.parent.kind;
    let object = format!("{kind} {namespace}/{}", target.name);
    let what = format!("{} {object}", if suspend { "suspend" } else { "resume" });
    let answer = |facts: &Facts, text: &str| {
        let who = facts.in_charge.sentence(&facts.cron_job, facts.lease.as_ref(), now);
        Answer { text: PlainText::lines([format!("{object}: {who}"), format!("{object} {text}")]), is_good: true }
    };
    for _ in 0..ATTEMPTS {
        let facts = read(client, target.controller_kind, namespace, &target.name, flags).await?;
        let before = facts.standing();
        let wanted = before.with_suspend(suspend);
        if before == wanted {
            return Ok(answer(&facts, &unchanged(&facts)));
        }
        if let Some(why) = hands_to_nobody(&facts) {
            let text = format!(
                "is not changed: {why}, and {MANAGED_ANNOTATION} is \"true\", so that spec.suspend would hand it over. Remove the \
                 annotation first: kubectl -n {namespace} annotate cronjob {} {MANAGED_ANNOTATION}-",
                target.name
            );
            return Ok(Answer { is_good: false, ..answer(&facts, &text) });
        }
        let text = if suspend { suspended(&facts) } else { resumption(&facts, flags.zone, now) };
        if cluster::patch_as_read(client, &facts.cron_job, before.patch(wanted), &what).await? {
            return Ok(answer(&facts, &text));
        }
    }
    Err(WriteError { what, cause: CHANGES.to_owned() }.into())
}

/// Why no controller may be there that would run a half handed-over CronJob once `spec.suspend` had handed it over; `None` of any other.
fn hands_to_nobody(facts: &Facts) -> Option<String> {
    let why = match (facts.in_charge, facts.manage) {
        _ if !facts.standing().is_half_handed_over() => return None,
        (InCharge::Own, _) => "a controller with --manage=all runs it".to_owned(),
        (_, Some(Manage::All)) => format!("{PROGRAM} runs with --manage=all"),
        (InCharge::InTree, _) => return None,
        _ => "it is not known which controller runs it".to_owned(),
    };
    Some(why)
}

fn unchanged(facts: &Facts) -> String {
    let standing = facts.standing();
    let handover = standing.handover;
    if let Some(why) = hands_to_nobody(facts) {
        return format!("is not suspended: spec.suspend is false, and {why}.");
    }
    if standing.is_half_handed_over() {
        let annotation =
            if handover.suspend { format!(", and {SUSPEND_ANNOTATION} has no effect") } else { String::new() };
        return format!(
            "is not suspended: {MANAGED_ANNOTATION} is \"true\" and spec.suspend is false, so the in-tree controller runs \
             it{annotation}. cronjob-controller migrate handover hands it over."
        );
    }
    let by =
        if standing.is_handed_over() { format!(": it is handed over ({MANAGED_ANNOTATION})") } else { String::new() };
    if standing.is_suspended() {
        format!("is suspended already ({}){by}.", handover.suspended_by())
    } else {
        format!("is not suspended{by}.")
    }
}

fn suspended(facts: &Facts) -> String {
    let children = facts.jobs.iter().filter(|job| job.is_child_of(&facts.cron_job));
    let unfinished: Vec<&Arc<Job>> = children.filter(|job| job.finished.is_none()).collect();
    let noun = facts.cron_job.controller_kind.child.kind;
    let names = unfinished.iter().map(|job| &*job.name.name).collect::<Vec<_>>().join(", ");
    let still_runs = match (unfinished.as_slice(), unfinished.iter().all(|job| job.waits_for().is_none())) {
        ([], _) => String::new(),
        ([_], true) => format!(" {noun} {names} still runs."),
        ([_], false) => format!(" {noun} {names} has not ended."),
        (_, true) => format!(" {noun}s {names} still run."),
        (_, false) => format!(" {noun}s {names} have not ended."),
    };
    let standing = facts.standing();
    let (by, was) = if standing.is_half_handed_over() {
        let was = format!(
            " {MANAGED_ANNOTATION} was \"true\" and spec.suspend false, so the in-tree controller ran it; now it is handed over. \
             What sets spec.suspend to false again gives it back to the in-tree controller."
        );
        (format!(" by {SUSPEND_ANNOTATION}"), was)
    } else if standing.is_handed_over() {
        (format!(" by {SUSPEND_ANNOTATION}, because it is handed over"), String::new())
    } else {
        (" by spec.suspend".to_owned(), String::new())
    };
    format!("is suspended{by}: no further run starts.{still_runs}{was}")
}

fn resumption(facts: &Facts, zone: Zone, now: DateTime<Utc>) -> String {
    let whose = if facts.in_charge.is_handed_over() { " for the controller that it is handed over to" } else { "" };
    let Resumed { held, deleted, then, passed_over } = resumed(facts, zone, now);
    if let Some(why) = held {
        return format!("is resumed{whose}. {why}");
    }
    let deleted: Vec<String> = deleted.iter().map(|name| name.name.to_string()).collect();
    let noun = facts.cron_job.controller_kind.child.kind;
    let leaderless = facts.without_leader(now);
    let at_once = if leaderless.is_some() { AS_SOON } else { "at once" };
    let first =
        if deleted.is_empty() { String::new() } else { format!("{noun} {} is deleted, and ", deleted.join(", ")) };
    let then = match then {
        Resumption::Starts(slot) => format!("{first}the run of {slot}, suspended until now, starts {at_once}"),
        Resumption::Waits(next) => format!("it runs at {next}"),
        Resumption::Never => "it does not run, because its schedule has no next time".to_owned(),
    };
    let passed_over = match passed_over {
        0 => String::new(),
        1 => " 1 suspended run is passed over.".to_owned(),
        number if number > MANY => format!(" More than {MANY} suspended runs are passed over."),
        number => format!(" {number} suspended runs are passed over."),
    };
    let leaderless = leaderless.map(|sentence| format!(" {sentence}")).unwrap_or_default();
    format!("is resumed{whose}: {then}.{passed_over}{leaderless}")
}

#[cfg(test)]
mod tests;
