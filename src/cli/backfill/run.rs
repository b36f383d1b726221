//! Carries a backfill out, from its first slot or from where another process stopped.
//!
//! Guarantees:
//! - Before each create, the CronJob's annotation says which slot is begun, in a write that fails if another process has
//!   written it since. A slot that is no longer left is not started by any process, but for the one that was begun last.
//! - That one is started again only if no Job of it can have been deleted: all other Jobs of the backfill still exist, none can have
//!   expired, and the in-tree controller, which prunes what this program keeps, keeps no history of the CronJob. Its name protects it
//!   from a create that a dead process sent: the record, because of which the controller does not prune, stays until such a create can
//!   no longer be committed.
//! - At most as many Jobs as asked for are unfinished, and no start exceeds `max-concurrent` or takes the place of a regular run
//!   (`limit`), as far as a watch shows. The next start waits for that watch, without polling the Jobs.
//! - The CronJob is read before each create; the backfill stops if it was suspended, deleted or changed to Replace.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use kube::Client;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};

use super::limit::{self, Wait};
use super::plan::{Question, refusal};
use super::watch::{Change, End, JobWatch};
use super::{Step, Tally};
use crate::api::backfill::{Backfill, Begun, Record};
use crate::api::batch_v1::{CronJob, FinishedCondition, Job};
use crate::api::job_template::job_from_template;
use crate::api::policy::{BACKFILL, PolicyOptions};
use crate::api::{ControllerKind, Interner, Manage, Object as _, Uid};
use crate::cli::CliError;
use crate::cli::cluster::{self, SAME_TIME, WriteError, delete, try_create, try_patch};
use crate::cli::explain::InCharge;
use crate::cli::explain::read::{ReadError, get, words};
use crate::cli::restrictions::Restrictions;
use crate::cli::trigger::traceparent;
use crate::client::{LONGEST_WRITE, SERVER_MARGIN};

/// How often a write is repeated because the object has changed since it was read, or a name is not free yet.
const TRIES: usize = 20;

/// A CronJob in a cluster.
#[derive(Clone, Copy)]
pub(super) struct ClusterCronJob<'a> {
    pub client: &'a Client,
    pub controller_kind: ControllerKind,
    pub namespace: &'a str,
    pub name: &'a str,
    /// The controller's `--spread-seed`.
    pub seed: &'a str,
}

/// A CronJob, and the record of backfills that it holds.
pub(super) struct Stored {
    pub cron_job: CronJob,
    pub record: Record,
}

#[derive(Deserialize)]
struct Labelled {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: HashMap<String, String>,
    #[serde(default)]
    annotations: HashMap<String, String>,
}

impl ClusterCronJob<'_> {
    fn path(&self) -> String {
        format!("{}/{}", self.controller_kind.parent.path(Some(self.namespace)), self.name)
    }

    /// What a failure is about.
    pub fn what(&self) -> String {
        format!("backfill {} {}/{}", self.controller_kind.parent.kind, self.namespace, self.name)
    }

    /// An error about the whole backfill.
    pub fn refused(&self, cause: impl Into<String>) -> CliError {
        WriteError { what: self.what(), cause: cause.into() }.into()
    }

    /// Decodes the CronJob with its record.
    pub fn decode(&self, text: &str) -> Result<Stored, CliError> {
        let undecoded =
            |cause: Box<dyn std::error::Error + Send + Sync>| ReadError::Decode { what: self.path(), cause };
        let mut cron_job = CronJob::decode(text, &Interner::default()).map_err(|error| undecoded(Box::new(error)))?;
        cron_job.controller_kind = self.controller_kind;
        PolicyOptions { enabled: true, seed: self.seed.into() }.apply(&mut cron_job);
        Manage::Annotated.takes(&mut cron_job);
        let record = record_in(text, &cron_job.uid).map_err(|error| undecoded(Box::new(error)))?;
        let record = record.unwrap_or_else(|| Record::new(cron_job.uid.clone()));
        Ok(Stored { cron_job, record })
    }

    /// Reads the CronJob with its record.
    pub async fn read(&self) -> Result<Stored, CliError> {
        self.decode(&self.read_text().await?)
    }

    /// Reads the text of the CronJob.
    pub async fn read_text(&self) -> Result<String, CliError> {
        let (kind, name) = (self.controller_kind.parent.kind, self.name.to_owned());
        let text = get(self.client, &self.path()).await.map_err(|cause| match cause {
            kube::Error::Api(status) if status.code == 404 => {
                let api_version = self.controller_kind.parent.api_version();
                ReadError::NotFound { kind, api_version, name, namespace: self.namespace.to_owned() }
            }
            cause => ReadError::Request { what: self.path(), cause: words(&cause) },
        })?;
        Ok(text)
    }

    /// Reads a Job, and the backfill that its label names; `None` if there is no Job of that name.
    async fn job(&self, name: &str) -> Result<Option<(Job, Option<String>)>, CliError> {
        let path = format!("{}/{name}", self.controller_kind.child.path(Some(self.namespace)));
        let text = match get(self.client, &path).await {
            Ok(text) => text,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(cause) => return Err(ReadError::Request { what: path, cause: words(&cause) }.into()),
        };
        decode_job(&text).map(Some).map_err(|cause| ReadError::Decode { what: path, cause }.into())
    }
}

/// How long the end of a wait is not looked at in a cluster with a time of its own.
const OWN_TIME: Duration = Duration::from_secs(1);

/// The record of backfills of the object `uid` in its text.
pub(super) fn record_in(text: &str, uid: &Uid) -> serde_json::Result<Option<Record>> {
    let labelled: Labelled = serde_json::from_str(text)?;
    Ok(labelled.metadata.annotations.get(BACKFILL).and_then(|value| Record::read(value, uid)))
}

/// A Job, and the backfill that its label names.
pub(super) fn decode_job(text: &str) -> Result<(Job, Option<String>), Box<dyn std::error::Error + Send + Sync>> {
    let mut labelled: Labelled = serde_json::from_str(text)?;
    Ok((Job::decode(text, &Interner::default())?, labelled.metadata.labels.remove(BACKFILL)))
}

/// A backfill that this process carries out.
pub(super) struct Run<'a> {
    pub place: ClusterCronJob<'a>,
    pub question: &'a Question,
    pub clock: &'a dyn Clock,
    pub in_charge: InCharge,
    pub watch: JobWatch,
    /// The record that the object holds, as far as this process knows.
    pub stored: Record,
    /// The progress that is to be written next.
    pub next: Backfill,
    /// The unfinished Jobs.
    pub running: HashMap<Uid, (DateTime<Utc>, String)>,
    pub tally: Tally,
    /// Takes what happens; returns false if the output is closed.
    pub report: &'a mut dyn FnMut(&Step, &Tally) -> bool,
    pub is_closed: bool,
}

impl Run<'_> {
    /// The cluster's time.
    async fn now(&self) -> DateTime<Utc> {
        cluster::now(self.place.client, self.clock).await
    }

    /// Starts what is left, and waits for the end of all Jobs. Returns early if the output is closed.
    pub async fn carry_out(&mut self) -> Result<(), CliError> {
        // A create that a dead process sent may be committed until then.
        let settled = Instant::now() + LONGEST_WRITE + SERVER_MARGIN;
        let mut cron_job = self.write(Some(self.next.clone())).await?;
        let has_begun = self.next.begun.is_some();
        if let Some(begun) = self.next.begun {
            let found = self.place.job(&self.name_of(begun.slot)).await?;
            let is_ours = found.is_some_and(|(_, id)| id.as_ref() == Some(&self.next.id));
            if cron_job.limits().max_concurrent.is_some() && !is_ours {
                // Another process may have continued meanwhile.
                let Some(found) = self.write_in_place(None).await? else { return Ok(()) };
                cron_job = found;
            }
            self.repeat(&cron_job, begun, settled).await?;
        }
        while !self.next.left.is_empty() {
            self.wait_until(|run| run.running.len() < run.question.max_active).await?;
            let slot = self.next.left.remove(0);
            let Some(cron_job) = self.write_in_place(Some(slot)).await? else { return Ok(()) };
            self.start(&cron_job, slot).await?;
        }
        self.wait_until(|run| run.running.is_empty()).await?;
        if self.is_closed {
            return Ok(());
        }
        if has_begun {
            sleep_until(settled).await;
        }
        self.write(None).await.map(|_| ())
    }

    /// Reads the CronJob, if it may be backfilled (`goes_on`) and holds the record that this process wrote last.
    async fn read(&self, goes_on: bool) -> Result<Stored, CliError> {
        let stored = self.place.read().await?;
        if stored.cron_job.uid != self.stored.uid {
            return Err(self.place.refused("it was deleted and created again"));
        }
        if let Some(refusal) = refusal(&stored.cron_job, self.question.zone).filter(|_| goes_on) {
            return Err(self.place.refused(format!("{refusal}. The same command continues it")));
        }
        if stored.record != self.stored {
            return Err(self.place.refused("another process continues it, or its annotation was removed"));
        }
        Ok(stored)
    }

    /// Waits until the policies of the CronJob allow another Job, or the output is closed. Returns the CronJob as it is then. There may
    /// have been a place since `since`.
    async fn wait_for_place(&mut self, since: &mut DateTime<Utc>) -> Result<Stored, CliError> {
        let mut told = None;
        loop {
            let stored = self.read(true).await?;
            if stored.cron_job.limits().max_concurrent.is_none() {
                return Ok(stored);
            }
            if !self.watch.has_list() && !self.is_closed {
                // What was read before may have changed by then.
                self.wait_until(|run| run.watch.has_list()).await?;
                continue;
            }
            // A backfill is not held by its Namespace, and the regular runs are, unless the in-tree controller starts them.
            let restrictions = if self.in_charge == InCharge::InTree {
                Restrictions::default()
            } else {
                Restrictions::read(self.place.client, Some(self.place.namespace)).await
            };
            let jobs = self.watch.jobs();
            let is_other = |job: &&Arc<Job>| job.finished.is_none() && !self.running.contains_key(&job.uid);
            let others = jobs.iter().filter(is_other).count();
            let has_job = |slot| {
                let name = self.name_of(slot);
                jobs.iter().any(|job| *job.name.name == *name)
            };
            let (now, unfinished) = (self.now().await, self.running.len() + others);
            // The clock may have been set back.
            *since = (*since).min(now);
            let restriction = restrictions.of(self.place.namespace);
            let wait = limit::wait(&stored.cron_job, restriction, self.question.zone, unfinished, has_job, *since, now);
            let Some(Wait { slot, until }) = wait.filter(|_| !self.is_closed) else { return Ok(stored) };
            let is_worth_telling = slot.is_some() || others > 0;
            if is_worth_telling && told.replace(slot) != Some(slot) {
                let why = match slot {
                    Some(_) => "the regular run of this slot goes first",
                    None => "as many Jobs are unfinished as max-concurrent allows",
                };
                self.tell(&Step::Waiting { slot, why });
            }
            let wait = (until - now).to_std().unwrap_or_default();
            // A cluster whose time is its own may be there sooner.
            let wait = if (self.clock.now() - now).abs() <= SAME_TIME { wait } else { wait.min(OWN_TIME) };
            if let Ok(change) = timeout(wait, self.watch.next()).await {
                self.take(change).await?;
            }
            if slot.is_none() {
                *since = self.now().await;
            }
        }
    }

    /// Waits for a place and writes the progress at once: that `slot` is begun. If the CronJob changes meanwhile, it waits for a place by
    /// what the CronJob is then. `None` if the output was closed.
    async fn write_in_place(&mut self, slot: Option<DateTime<Utc>>) -> Result<Option<CronJob>, CliError> {
        let mut since = self.now().await;
        for _ in 0..TRIES {
            let found = self.wait_for_place(&mut since).await?;
            if self.is_closed {
                return Ok(None);
            }
            if let Some(slot) = slot {
                self.next.begun = Some(Begun { slot, at: self.now().await });
            }
            if let Some(cron_job) = self.try_write(Some(self.next.clone()), found).await? {
                return Ok(Some(cron_job));
            }
        }
        Err(self.changes_all_the_time())
    }

    /// Writes the progress, or the end, if the object holds the record that this process wrote last. Returns the CronJob as
    /// it is then.
    async fn write(&mut self, next: Option<Backfill>) -> Result<CronJob, CliError> {
        for _ in 0..TRIES {
            let stored = self.read(next.is_some()).await?;
            if let Some(cron_job) = self.try_write(next.clone(), stored).await? {
                return Ok(cron_job);
            }
        }
        Err(self.changes_all_the_time())
    }

    /// Does so once. `None` if the object is not as it was read: the controller may have written the status.
    async fn try_write(&mut self, next: Option<Backfill>, stored: Stored) -> Result<Option<CronJob>, CliError> {
        let record = match &next {
            Some(_) => Record { current: next, ..stored.record },
            None => stored.record.finished(),
        };
        let version = stored.cron_job.resource_version.to_string();
        let change = json!({"metadata": {"resourceVersion": version, "annotations": {BACKFILL: record.text()}}});
        match try_patch(self.place.client, &self.place.path(), &change).await {
            Ok(text) => {
                self.stored = record;
                Ok(Some(self.place.decode(&text)?.cron_job))
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
            Err(cause) => Err(self.place.refused(format!("record its progress: {}", words(&cause)))),
        }
    }

    fn changes_all_the_time(&self) -> CliError {
        self.place.refused("record its progress: the object changes all the time")
    }

    /// Starts the slot that another process had begun, unless its Job exists or may have existed. From `settled` on, no create of
    /// that process can be committed.
    async fn repeat(&mut self, cron_job: &CronJob, begun: Begun, settled: Instant) -> Result<(), CliError> {
        let name = self.name_of(begun.slot);
        let mut found = self.place.job(&name).await?;
        let now = self.now().await;
        let counts = (self.tally.jobs, self.next.created);
        let may_be_lost = !self.question.rerun && may_lose_jobs(cron_job, self.in_charge, counts, begun, now);
        if found.is_none() && may_be_lost {
            // Its Job may come yet, and would run beside the next one.
            sleep_until(settled).await;
            found = self.place.job(&name).await?;
        }
        let is_ours = found.as_ref().is_some_and(|(_, id)| id.as_ref() == Some(&self.next.id));
        let may_have_run = found.is_none() && may_be_lost;
        match found {
            Some((job, _)) if is_ours => self.track(&job, begun.slot, true),
            _ if may_have_run => {
                self.tally.begun = self.next.number_begun();
                self.tally.unknown += 1;
                let why = "it may have run: its Job, if there was one, was deleted. --rerun starts it";
                self.tell(&Step::Skipped { slot: begun.slot, why });
            }
            _ => self.start(cron_job, begun.slot).await?,
        }
        Ok(())
    }

    /// Creates the Job of a slot.
    async fn start(&mut self, cron_job: &CronJob, slot: DateTime<Utc>) -> Result<(), CliError> {
        let name = self.name_of(slot);
        let what = format!("create Job {}/{name}", self.place.namespace);
        let failed = |cause: String| WriteError { what: what.clone(), cause };
        let trace = traceparent();
        let body = job_from_template(cron_job, slot, self.question.zone, Some(&self.next.id), trace.as_deref());
        let body = body.map_err(|error| failed(error.to_string()))?;
        let collection = self.place.controller_kind.child.path(Some(self.place.namespace));
        for _ in 0..TRIES {
            match try_create(self.place.client, &collection, body.clone()).await {
                Ok(text) => {
                    let (job, _) = decode_job(&text).map_err(|cause| failed(cause.to_string()))?;
                    self.track(&job, slot, false);
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
                Err(cause) => return Err(failed(words(&cause)).into()),
            }
            match self.place.job(&name).await? {
                None => {}
                Some((job, Some(id))) if id == self.next.id => {
                    self.track(&job, slot, false);
                    return Ok(());
                }
                Some((job, _)) if self.next.again && has_failed(&job) && job.is_child_of(cron_job) => {
                    self.delete(&job).await?;
                }
                Some((job, _)) => {
                    let why = if job.is_child_of(cron_job) {
                        "it has a Job by now"
                    } else {
                        "a Job of another owner has its name"
                    };
                    self.tell(&Step::Skipped { slot, why });
                    return Ok(());
                }
            }
        }
        Err(failed("its name does not become free".to_owned()).into())
    }

    /// Deletes a failed Job, and waits until its name is free.
    async fn delete(&mut self, job: &Job) -> Result<(), CliError> {
        let name = &*job.name.name;
        let collection = self.place.controller_kind.child.path(Some(self.place.namespace));
        delete(self.place.client, &format!("{collection}/{name}"), &job.uid).await.or_else(|cause| match cause {
            kube::Error::Api(status) if status.code == 404 || status.code == 409 => Ok(()),
            cause => {
                let what = format!("delete Job {}/{name}", self.place.namespace);
                Err(WriteError { what, cause: words(&cause) })
            }
        })?;
        while self.place.job(name).await?.is_some_and(|(found, _)| found.uid == job.uid) {
            let change = self.watch.next().await;
            self.take(change).await?;
        }
        Ok(())
    }

    fn name_of(&self, slot: DateTime<Utc>) -> String {
        self.place.controller_kind.child_name(self.place.name, slot)
    }

    fn tell(&mut self, step: &Step) {
        self.is_closed |= !(self.report)(step, &self.tally);
    }

    /// Counts a Job of this backfill as unfinished, until its end. `was_there` is of one that an earlier process created.
    fn track(&mut self, job: &Job, slot: DateTime<Utc>, was_there: bool) {
        self.next.created += 1;
        self.tally.begun = self.next.number_begun();
        self.running.insert(job.uid.clone(), (slot, job.name.name.to_string()));
        self.tally.running = self.running.len();
        let name = job.name.name.to_string();
        self.tell(&if was_there { Step::Found { slot, job: name } } else { Step::Started { slot, job: name } });
        let known = self.watch.end_of(&job.uid).or_else(|| job.finished.map(End::from));
        if let Some(end) = known {
            self.ended(&job.uid, end);
        }
    }

    fn ended(&mut self, uid: &Uid, end: End) {
        let Some((slot, job)) = self.running.remove(uid) else { return };
        self.tally.running = self.running.len();
        self.tally.count(end);
        self.tell(&Step::Ended { slot, job, outcome: end });
    }

    async fn wait_until(&mut self, is_met: impl Fn(&Self) -> bool) -> Result<(), CliError> {
        while !is_met(self) && !self.is_closed {
            let change = self.watch.next().await;
            self.take(change).await?;
        }
        Ok(())
    }

    async fn take(&mut self, change: Change) -> Result<(), CliError> {
        match change {
            Change::Added => {}
            Change::Ended(uid, end) => self.ended(&uid, end),
            Change::Relisted => self.look_for_missing().await?,
            Change::Refused(cause) => return Err(self.place.refused(cause)),
        }
        Ok(())
    }

    /// Finds unfinished Jobs that were deleted while nothing was watched.
    async fn look_for_missing(&mut self) -> Result<(), CliError> {
        let unseen = self.running.iter().filter(|(uid, _)| !self.watch.has(uid));
        let unseen: Vec<(Uid, String)> = unseen.map(|(uid, (_, name))| (uid.clone(), name.clone())).collect();
        for (uid, name) in unseen {
            match self.place.job(&name).await? {
                Some((job, _)) if job.uid == uid => {
                    if let Some(finished) = job.finished {
                        self.ended(&uid, finished.into());
                    }
                }
                _ => self.ended(&uid, End::Gone),
            }
        }
        Ok(())
    }
}

/// Whether a Job that was created for `begun` may have been deleted since. `jobs` of the others exist, of which `created` were created.
pub(super) fn may_lose_jobs(
    cron_job: &CronJob,
    in_charge: InCharge,
    (jobs, created): (usize, usize),
    begun: Begun,
    now: DateTime<Utc>,
) -> bool {
    let expires = cron_job.spec.job_template.time_to_live();
    let expires = expires.and_then(TimeDelta::try_seconds).and_then(|time| begun.at.checked_add_signed(time));
    // The in-tree controller keeps the history of both, and knows no backfill.
    let others_prune = in_charge == InCharge::InTree || in_charge.is_handed_over();
    others_prune || jobs < created || expires.is_some_and(|at| at <= now)
}

fn has_failed(job: &Job) -> bool {
    job.finished == Some(FinishedCondition::Failed)
}
