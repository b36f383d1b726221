//! Suspends a CronJob, and resumes it.
//!
//! Guarantees: only the suspension is changed, in one request: `spec.suspend`, or the annotation for it if the CronJob is handed
//! over. What is said about the runs that a resumption starts or passes over is the rehearsal of `explain`.

use chrono::{DateTime, Utc};
use kube::Client;
use schedule::Zone;
use serde_json::json;

use super::cluster::{self, ControllerFlags, Scope};
use super::explain::read::{Target, read};
use super::explain::{Facts, MANY, Resumption, resumption};
use super::{Answer, CliError};
use crate::api::manage::SUSPEND_ANNOTATION;
use crate::terminal::PlainText;

/// Suspends the CronJob that `target` names, or resumes it.
///
/// # Errors
/// When there is no such CronJob, or the API server refuses the change.
pub async fn set_suspended(
    target: &Target,
    suspend: bool,
    flags: &ControllerFlags,
    now: DateTime<Utc>,
) -> Result<Answer, CliError> {
    let (client, namespace) = Scope::from(target.clone()).connect().await?;
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
    let facts = read(client, target.controller_kind, namespace, &target.name, flags).await?;
    let kind = target.controller_kind.parent.kind;
    let object = format!("{kind} {namespace}/{}", target.name);
    let answer = |text: String| Answer { text: PlainText::lines([format!("{object} {text}")]), is_good: true };
    if facts.cron_job.spec.suspend == suspend {
        return Ok(answer(if suspend { "is suspended already." } else { "is not suspended." }.to_owned()));
    }
    let text = if suspend { suspended(&facts) } else { resumed(&facts, flags.zone, now) };
    let change = match (facts.handed_over, suspend) {
        (false, _) => json!({"spec": {"suspend": suspend}}),
        (true, true) => json!({"metadata": {"annotations": {SUSPEND_ANNOTATION: "true"}}}),
        (true, false) => json!({"metadata": {"annotations": {SUSPEND_ANNOTATION: null}}}),
    };
    let path = format!("{}/{}", target.controller_kind.parent.path(Some(namespace)), target.name);
    let what = format!("{} {object}", if suspend { "suspend" } else { "resume" });
    cluster::merge_patch(client, &path, &change, &what).await?;
    Ok(answer(text))
}

fn suspended(facts: &Facts) -> String {
    let children = facts.jobs.iter().filter(|job| job.is_child_of(&facts.cron_job));
    let running = children.filter(|job| job.finished.is_none()).map(|job| job.name.name.to_string());
    let running: Vec<String> = running.collect();
    let noun = facts.cron_job.controller_kind.child.kind;
    match running.as_slice() {
        [] => "is suspended: no further run starts.".to_owned(),
        running => format!("is suspended: no further run starts. {noun} {} still runs.", running.join(", ")),
    }
}

fn resumed(facts: &Facts, zone: Zone, now: DateTime<Utc>) -> String {
    let (resumption, passed_over) = resumption(facts, zone, now);
    let then = match resumption {
        Resumption::Starts(slot) => format!("the missed run of {slot} starts at once"),
        Resumption::Waits(next) => format!("it runs at {next}"),
        Resumption::Never => "it does not run, because its schedule has no next time".to_owned(),
    };
    let passed_over = match passed_over {
        0 => String::new(),
        1 => " 1 missed run is passed over.".to_owned(),
        number if number > MANY => format!(" More than {MANY} missed runs are passed over."),
        number => format!(" {number} missed runs are passed over."),
    };
    format!("is resumed: {then}.{passed_over}")
}

#[cfg(test)]
mod tests;
