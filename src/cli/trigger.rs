//! Starts a Job of a CronJob at once, as `kubectl create job --from=cronjob/NAME` does.
//!
//! Guarantees: one Job is created, from the template as it is now, with the annotation `cronjob.kubernetes.io/instantiate` and
//! the CronJob as its owner. No slot is used up. `reconcile` says what the Job means for the next run, and `explain` which controller
//! runs the CronJob.

use apimachinery::clock::Clock;
use chrono::{DateTime, Utc};
use kube::Client;

use super::cluster::{self, ControllerFlags, Scope, WriteError};
use super::explain::read::{Target, find_in_charge};
use super::{Answer, CliError};
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob};
use crate::api::job_template::manual_job;
use crate::api::{ControllerKind, Interner, Object as _};
use crate::terminal::PlainText;

/// The longest name of a Job whose Pods can carry it in a label.
const LONGEST_NAME: usize = 63;
/// The letters of a generated name: as kube-apiserver's, without those that form words.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Starts a Job of the CronJob that `target` names; under this name, or under a generated one.
///
/// # Errors
/// When there is no such CronJob, its template cannot become a Job, or the API server refuses it.
pub async fn trigger(target: &Target, name: Option<&str>, clock: &dyn Clock) -> Result<Answer, CliError> {
    let (client, namespace) = Scope::from(target.clone()).connect().await?;
    let now = cluster::now(&client, clock).await;
    let random: [u8; 5] = rand::random();
    let name = name.map_or_else(|| generated(&target.name, random), str::to_owned);
    trigger_with(&client, target.controller_kind, &namespace.unwrap_or_default(), &target.name, name, now).await
}

pub(super) async fn trigger_with(
    client: &Client,
    controller_kind: ControllerKind,
    namespace: &str,
    cron_job: &str,
    name: String,
    now: DateTime<Utc>,
) -> Result<Answer, CliError> {
    let object = format!("{} {namespace}/{cron_job}", controller_kind.parent.kind);
    let what = format!("start a Job of {object}");
    let refused = |cause: String| WriteError { what: what.clone(), cause };
    let text =
        cluster::read_text(client, &format!("{}/{cron_job}", controller_kind.parent.path(Some(namespace)))).await?;
    let mut cron_job = CronJob::decode(&text, &Interner::default()).map_err(|error| refused(error.to_string()))?;
    let body = manual_job(&cron_job, name.clone()).map_err(|error| refused(error.to_string()))?;
    cluster::create(client, &controller_kind.child.path(Some(namespace)), body, &what).await?;
    let (in_charge, lease) = find_in_charge(client, &mut cron_job, &text, &ControllerFlags::default()).await;
    let counts = match cron_job.spec.concurrency_policy {
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Unknown => "",
        _ if !controller_kind.every_child_is_active => "",
        ConcurrencyPolicy::Forbid => " While it runs, no further run starts (concurrencyPolicy: Forbid).",
        ConcurrencyPolicy::Replace => " The next run deletes it if it still runs (concurrencyPolicy: Replace).",
    };
    let lines = [
        format!("{object}: {}", in_charge.sentence(&cron_job, lease.as_ref(), now)),
        format!("Job {namespace}/{name} was created.{counts}"),
        format!("kubectl logs -n {namespace} -f job/{name} prints its log."),
    ];
    Ok(Answer { text: PlainText::lines(lines), is_good: true })
}

/// A name for a Job that a user starts.
fn generated(cron_job: &str, random: [u8; 5]) -> String {
    const INFIX: &str = "-manual-";
    let suffix = word(random);
    let room = LONGEST_NAME - INFIX.len() - suffix.len();
    let base = cron_job.get(..room).unwrap_or(cron_job).trim_end_matches(['-', '.']);
    format!("{base}{INFIX}{suffix}")
}

/// Five letters, as kube-apiserver adds to a name.
pub(super) fn word(random: [u8; 5]) -> String {
    random.map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()])).iter().collect()
}

#[cfg(test)]
mod tests;
