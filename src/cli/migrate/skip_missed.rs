//! Lets no slot count that is due by now: `migrate skip-missed`, after a restore of etcd.
//!
//! Guarantees: only `not-before` is changed. A later one stays, so that no slot counts that it leaves out; one that cannot be read
//! stays and is named. How many the in-tree controller ran last is said, because it reads none; another may run them next. A slot
//! that a `spread` delays until later still starts. [`bound`] decides and is pure. No controller need run.

use apimachinery::causes::with_causes;
use apimachinery::clock::Clock;
use chrono::{DateTime, SecondsFormat, SubsecRound as _, Utc};
use kube::Client;
use serde_json::{Value, json};

use super::Object;
use super::changes::{self, Changed, Changes, Listed, Outcome, Plan, Selection};
use super::read::Written;
use crate::api::batch_v1::CronJob;
use crate::api::manage::Standing;
use crate::api::policy::{NOT_AFTER, NOT_BEFORE, PolicyError, read_time};
use crate::api::{ControllerKind, Interner, Object as _};
use crate::cli::CliError;
use crate::cli::cluster::{self, ControllerFlags, Scope};
use crate::cli::explain::InCharge;
use crate::cli::explain::lease::Leases;
use crate::cli::explain::read::{list, read_leases};
use crate::cli::output::count;

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Which CronJobs.
    pub which: Selection,
    /// Whether nothing is written.
    pub dry_run: bool,
}

/// What becomes of an object's `not-before`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// It is set to this time.
    Set {
        /// The time.
        to: DateTime<Utc>,
        /// Whether an earlier `not-after` leaves the object no slot.
        leaves_none: bool,
    },
    /// It is that time already.
    Same,
    /// It is later, and stays.
    Later(DateTime<Utc>),
}

impl Bound {
    /// The merge patch; `None` if nothing changes.
    pub fn patch(self) -> Option<Value> {
        let Self::Set { to, .. } = self else { return None };
        Some(json!({ "metadata": { "annotations": { NOT_BEFORE: written(to) } } }))
    }
}

/// Decides so that no slot of an object before `time` counts. `annotation` gives the value of one.
///
/// # Errors
/// If its `not-before` cannot be read.
pub fn bound<'a>(annotation: impl Fn(&str) -> Option<&'a str>, time: DateTime<Utc>) -> Result<Bound, PolicyError> {
    let own = read_time(NOT_BEFORE, annotation(NOT_BEFORE))?;
    // One that cannot be read has its own error, in the controller.
    let last = read_time(NOT_AFTER, annotation(NOT_AFTER)).ok().flatten();
    Ok(match own {
        Some(own) if own > time => Bound::Later(own),
        Some(own) if own == time => Bound::Same,
        _ => Bound::Set { to: time, leaves_none: last.is_some_and(|last| last < time) },
    })
}

fn written(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// A CronJob as it was read, and which controller runs it.
pub(super) struct Found {
    cron_job: CronJob,
    in_charge: InCharge,
    metadata: Written,
}

impl Listed for Found {
    fn cron_job(&self) -> &CronJob {
        &self.cron_job
    }
}

impl Found {
    pub(super) fn read(
        json: &str,
        kind: ControllerKind,
        leases: &Leases,
        flags: &ControllerFlags,
    ) -> Result<Self, (Object, String)> {
        let metadata = Written::of(json);
        let mut cron_job = CronJob::decode(json, &Interner::default()).map_err(|error| {
            (Object::named(kind.parent.kind, &metadata.namespace, &metadata.name), with_causes(&error))
        })?;
        // The items of a list do not say their kind.
        cron_job.controller_kind = kind;
        let in_charge = InCharge::take(&mut cron_job, json, leases, flags);
        Ok(Self { cron_job, in_charge, metadata })
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name)?.as_deref()
    }

    fn plan(&self, now: DateTime<Utc>, dry_run: bool) -> Plan {
        let object = Object::of(&self.cron_job);
        let time = self.cron_job.nominal(now);
        let decided = bound(|name| self.annotation(name), time);
        let starts = if dry_run { "would start" } else { "starts" };
        let (outcome, message) = match &decided {
            Err(error) => (Outcome::Failed, format!("{object} is not changed: {error}.")),
            Ok(Bound::Later(own)) => {
                (Outcome::Kept, format!("{object} keeps its {NOT_BEFORE}, which is later: {}.", written(*own)))
            }
            Ok(Bound::Same) => {
                (Outcome::Unchanged, format!("{object} starts no slot before {} already.", written(time)))
            }
            Ok(Bound::Set { to, leaves_none: false }) => {
                (Outcome::Changed, format!("{object} {starts} no slot before {}.", written(*to)))
            }
            Ok(Bound::Set { leaves_none: true, .. }) => {
                let ended = format!("its {NOT_AFTER} is earlier, which is not allowed; remove both to start it again");
                (Outcome::Changed, format!("{object} {starts} nothing: {ended}."))
            }
        };
        let suspended = Standing::of(&self.cron_job, self.in_charge.is_handed_over()).is_suspended();
        let patch = decided.ok().and_then(Bound::patch);
        Plan { patch, changed: Changed { object, outcome, suspended, message, starts: None } }
    }
}

/// Lets no slot that is due by now count, of the CronJobs that `request` names in `scope`. `flags` are those of the controller.
///
/// # Errors
/// When the CronJobs cannot be read, or one of the names is unknown.
pub async fn skip_missed(
    scope: &Scope,
    request: &Request,
    flags: &ControllerFlags,
    clock: &dyn Clock,
) -> Result<Changes, CliError> {
    let (client, namespace) = scope.connect().await?;
    let now = cluster::now(&client, clock).await;
    skip_missed_with(&client, scope.controller_kind, namespace.as_deref(), request, flags, now).await
}

pub(super) async fn skip_missed_with(
    client: &Client,
    kind: ControllerKind,
    namespace: Option<&str>,
    request: &Request,
    flags: &ControllerFlags,
    now: DateTime<Utc>,
) -> Result<Changes, CliError> {
    let Request { which, dry_run } = request;
    let now = now.trunc_subsecs(0);
    let leases = read_leases(client).await;
    let (mut all, mut undecoded) = (Vec::new(), Vec::new());
    for raw in list(client, &kind.parent.path(namespace), &which.query()).await? {
        match Found::read(raw.get(), kind, &leases, flags) {
            Ok(found) => all.push(found),
            Err(error) => undecoded.push(error),
        }
    }
    which.choose(&mut all, kind, namespace)?;
    let of = |who| all.iter().filter(|found| found.in_charge == who).count();
    let (unknown, in_tree) = (of(InCharge::Unknown) + of(InCharge::NoInstance), of(InCharge::InTree));
    let done = format!("given {NOT_BEFORE}, for slots due before {}", written(now));
    let change_one = async |found| skip(client, found, now, *dry_run, &leases, flags).await;
    let (changed, mut remarks) = which.change_all(&done, all, undecoded, namespace, change_one).await;
    if in_tree > 0 {
        let number = count(in_tree, "CronJob");
        remarks.push(format!("The in-tree controller ran {number} last: under it, {NOT_BEFORE} has no effect."));
    }
    if unknown > 0 {
        let number = count(unknown, "CronJob");
        remarks.push(format!(
            "Nothing shows which controller runs {number}: under the in-tree one, {NOT_BEFORE} has no effect."
        ));
    }
    Ok(Changes { command: "skip-missed", done, dry_run: *dry_run, cron_jobs: changed, remarks })
}

pub(super) async fn skip(
    client: &Client,
    found: Found,
    now: DateTime<Utc>,
    dry_run: bool,
    leases: &Leases,
    flags: &ControllerFlags,
) -> Changed {
    let what = format!("set {NOT_BEFORE} of {}", Object::of(&found.cron_job));
    let kind = found.cron_job.controller_kind;
    let newer = |_: &Found, text: &str| Found::read(text, kind, leases, flags).map_err(|(_, cause)| cause);
    changes::change(client, found, &what, dry_run, |found| found.plan(now, dry_run), newer).await
}
