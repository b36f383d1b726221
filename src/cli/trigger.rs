//! Starts a Job of a CronJob at once, as `kubectl create job --from=cronjob/NAME` does.
//!
//! Guarantees: one Job is created, from the template as it is now, with the annotation `cronjob.kubernetes.io/instantiate` and
//! the CronJob as its owner; what the user changes in it is named in another annotation. No slot is used up. `reconcile` says
//! what the Job means for the next run, and `explain` which controller runs the CronJob. With a dry run nothing is created.
//! stdout has either lines for people, or the Job, or the log; all else that is said goes to stderr.

mod follow;

use apimachinery::clock::Clock;
use chrono::{DateTime, Utc};
use kube::Client;
use schedule::Zone;
use serde_json::Value;

use self::follow::Followed;
pub(super) use self::follow::Outlet;
use super::cluster::{self, ControllerFlags, Scope, WriteError};
use super::explain::read::{Target, find_in_charge, read_cron_job};
use super::output::Format;
use super::restrictions::{Freeze, Restrictions};
use super::{Answer, CliError};
use crate::api::batch_v1::{ConcurrencyPolicy, CronJob, Job};
use crate::api::job_changes::{Container, JobChanges};
use crate::api::job_template::manual_job;
use crate::api::policy::MAX_CONCURRENT;
use crate::api::{ControllerKind, Interner, Object as _};
use crate::terminal::PlainText;

/// The longest name of a Job whose Pods can carry it in a label.
const LONGEST_NAME: usize = 63;
/// The letters of a generated name: as kube-apiserver's, without those that form words.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Which Job is started, and what is said about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The name of the Job; without it, one is generated.
    pub name: Option<String>,
    /// What differs from the template.
    pub changes: JobChanges,
    /// Whether the Job is created.
    pub dry_run: DryRun,
    /// Lines for people, or the Job.
    pub format: Format,
    /// How long the command goes on.
    pub until: Until,
}

/// Whether a Job is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DryRun {
    /// It is.
    #[default]
    None,
    /// It is not sent.
    Client,
    /// It is sent to be checked, and not stored.
    Server,
}

impl DryRun {
    /// Reads the value of `--dry-run`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Self::None),
            "client" => Some(Self::Client),
            "server" => Some(Self::Server),
            _ => None,
        }
    }

    /// The end of a sentence about the Job.
    fn result(self) -> &'static str {
        match self {
            Self::None => "was created",
            Self::Client => "would be created (client dry run)",
            Self::Server => "would be created (server dry run)",
        }
    }
}

/// How long the command goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// Until the Job is created.
    #[default]
    Created,
    /// Until it has ended.
    Ended,
    /// Until it has ended and its logs are printed.
    Logged,
}

/// Starts a Job of the CronJob that `target` names. What is said before the end goes to `print`, which returns false if that
/// cannot be written; then the command ends, and the Job goes on.
///
/// # Errors
/// When there is no such CronJob, its template cannot become this Job, or the API server refuses it.
pub async fn trigger(
    target: &Target,
    request: &Request,
    clock: &dyn Clock,
    print: &mut dyn FnMut(&PlainText) -> bool,
) -> Result<Answer, CliError> {
    let (client, namespace) = Scope::from(target.clone()).connect().await?;
    let namespace = namespace.unwrap_or_default();
    let mut outlet = Outlet { print, note: &mut super::output::note };
    trigger_with(&client, target.controller_kind, (&namespace, &target.name), request, clock, &mut outlet).await
}

/// The same over a client: `place` is the namespace and the name.
pub(super) async fn trigger_with(
    client: &Client,
    controller_kind: ControllerKind,
    (namespace, name): (&str, &str),
    request: &Request,
    clock: &dyn Clock,
    outlet: &mut Outlet<'_>,
) -> Result<Answer, CliError> {
    let object = format!("{} {namespace}/{name}", controller_kind.parent.kind);
    let what = format!("start a Job of {object}");
    let refused = |cause: String| WriteError { what: what.clone(), cause };
    let now = cluster::now(client, clock).await;
    let (mut cron_job, text) = read_cron_job(client, controller_kind, namespace, name).await?;
    let job = request.name.clone().unwrap_or_else(|| generated(name, rand::random()));
    let made = manual_job(&cron_job, job.clone(), &request.changes, now, Zone::UTC, traceparent().as_deref());
    let (body, container) = made.map_err(|error| refused(error.to_string()))?;
    outlet.note(container.as_ref().and_then(|container| choice(container, request)));
    let document = create(client, controller_kind, namespace, body, request.dry_run, &what).await?;
    if request.format != Format::Table {
        let document: Value = serde_json::from_str(&document).map_err(|error| refused(error.to_string()))?;
        let is_json = request.format == Format::Json;
        let text = if is_json { PlainText::json(&document, false) } else { PlainText::yaml(&document) };
        return Ok(Answer { text, is_good: true });
    }
    let (in_charge, lease) = find_in_charge(client, &mut cron_job, &text, &ControllerFlags::default()).await;
    let restrictions = Restrictions::read(client, Some(namespace)).await;
    let cron_job = restrictions.restricted(cron_job, in_charge);
    let held = held(&cron_job, now);
    let first = format!("{object}: {}{held}", in_charge.sentence(&cron_job, lease.as_ref(), now));
    let second = format!("Job {namespace}/{job} {}.{}", request.dry_run.result(), consequence(&cron_job));
    let mut lines = vec![first, second];
    if request.until == Until::Created {
        if request.dry_run == DryRun::None {
            lines.push(format!("kubectl logs -n {namespace} -f job/{job} prints its log."));
        }
        return Ok(Answer { text: PlainText::lines(lines), is_good: true });
    }
    outlet.say(request.until, lines);
    let job = Job::decode(&document, &Interner::default()).map_err(|error| refused(error.to_string()))?;
    let container = container.filter(|_| request.until == Until::Logged).map(|container| container.name);
    let followed = Followed { client, controller_kind, namespace, job: &job, container };
    followed.to_the_end(outlet).await
}

/// Sends the Job; returns the text of it as it is then.
async fn create(
    client: &Client,
    controller_kind: ControllerKind,
    namespace: &str,
    body: Vec<u8>,
    dry_run: DryRun,
    what: &str,
) -> Result<String, WriteError> {
    let collection = controller_kind.child.path(Some(namespace));
    match dry_run {
        DryRun::None => cluster::create(client, &collection, body, what).await,
        DryRun::Server => cluster::create(client, &format!("{collection}?dryRun=All"), body, what).await,
        DryRun::Client => {
            String::from_utf8(body).map_err(|error| WriteError { what: what.to_owned(), cause: error.to_string() })
        }
    }
}

/// Which of several containers is meant, if the user did not say so and it matters.
fn choice(container: &Container, request: &Request) -> Option<String> {
    let matters = !request.changes.is_empty() || request.until == Until::Logged;
    let others = container.default_of.as_ref().filter(|all| matters && all.len() > 1)?;
    Some(format!("Container {} is taken, out of {}; -c names another.", container.name, others.join(", ")))
}

/// What keeps the schedule from starting Jobs, which this one is not subject to.
fn held(cron_job: &CronJob, now: DateTime<Utc>) -> String {
    let suspended = cron_job.spec.suspend.then(|| format!("It is suspended ({})", cron_job.handover.suspended_by()));
    let zone = cron_job.zone(Zone::UTC);
    let frozen = || Some(format!("Its Namespace is frozen: {}", Freeze::of(cron_job, zone, now)?));
    let held = suspended.or_else(frozen).map(|held| format!(" {held}; this Job starts all the same."));
    held.unwrap_or_default()
}

/// What the Job means for the next run.
fn consequence(cron_job: &CronJob) -> String {
    let limits = cron_job.limits();
    let is_active = cron_job.controller_kind.every_child_is_active;
    match (limits.max_concurrent, cron_job.spec.concurrency_policy) {
        (Some(1), _) => format!(" While it runs, no further run starts ({MAX_CONCURRENT}: 1)."),
        (Some(most), _) => format!(" It is one of the {most} Jobs that may run at a time ({MAX_CONCURRENT})."),
        (None, ConcurrencyPolicy::Forbid) if is_active => {
            " While it runs, no further run starts (concurrencyPolicy: Forbid).".to_owned()
        }
        (None, ConcurrencyPolicy::Forbid) => match cron_job.status.active.len() {
            0 => String::new(),
            1 => " It starts beside a Job that runs (concurrencyPolicy: Forbid counts Jobs of slots alone).".to_owned(),
            many => format!(
                " It starts beside {many} Jobs that run (concurrencyPolicy: Forbid counts Jobs of slots alone)."
            ),
        },
        (None, ConcurrencyPolicy::Replace) if is_active || limits.replace_waits => {
            " The next run deletes it if it still runs (concurrencyPolicy: Replace).".to_owned()
        }
        _ => String::new(),
    }
}

/// The trace that the command is a part of, for Pods that are told of it: the variable `TRACEPARENT`, if it is what W3C Trace
/// Context allows in version 00.
pub(super) fn traceparent() -> Option<String> {
    std::env::var("TRACEPARENT").ok().filter(|text| is_traceparent(text))
}

fn is_traceparent(text: &str) -> bool {
    let is_hex = |part: &&str, digits: usize| {
        part.len() == digits && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_id = |part: &&str, digits: usize| is_hex(part, digits) && part.bytes().any(|byte| byte != b'0');
    let [version, trace, span, flags] = &text.split('-').collect::<Vec<_>>()[..] else { return false };
    *version == "00" && is_id(trace, 32) && is_id(span, 16) && is_hex(flags, 2)
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
