//! Starts the Jobs of slots in the past: `backfill`.
//!
//! Guarantees: the plan comes first. No slot is started twice, however often the command is killed and run again (`run`), and
//! slots that may have run are started on request only (`plan`). One that is interrupted says how it is continued. Each Job has the name and the annotation of its slot, so that
//! a controller cannot start the slot beside it, and a label, because of which it never counts as active.

mod limit;
pub mod plan;
mod run;
pub mod watch;

use std::collections::HashMap;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;

use apimachinery::clock::Clock;
use chrono::{DateTime, SecondsFormat, Utc};
use kube::Client;
use schedule::Zone;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use super::cluster::{self, ControllerFlags, Scope};
use super::explain::InCharge;
use super::explain::read::{Target, find_in_charge, list};
use super::next::cron_jobs::Given;
use super::options::cluster::Since;
use super::output::{Format, count, moment};
use super::restrictions::{Restrictions, why};
use super::{Answer, CliError, trigger};
use crate::api::backfill::{Backfill, Record};
use crate::api::batch_v1::{CronJob, Job};
use crate::api::policy::BACKFILL;
use crate::api::{ControllerKind, Interner, Object as _, Uid};
use crate::terminal::PlainText;
use plan::{BackfillPlan, Question};
use run::{ClusterCronJob, Run, Stored, decode_job};
use watch::{End, JobWatch};

/// What a backfill does, and how it tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Request<T = Given> {
    /// The slots. Local times are in the zone of the CronJob.
    pub question: Question<T>,
    /// Whether only the plan is printed.
    pub dry_run: bool,
    /// Lines for people, or JSON, one object a line.
    pub format: Format,
}

/// What happens to a slot.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "type")]
enum Step {
    /// Its Job was created.
    Started { slot: DateTime<Utc>, job: String },
    /// Its Job was created by an earlier process of this backfill.
    Found { slot: DateTime<Utc>, job: String },
    /// Its Job has ended.
    Ended { slot: DateTime<Utc>, job: String, outcome: End },
    /// It is left out.
    Skipped { slot: DateTime<Utc>, why: &'static str },
    /// The next start waits: for the regular run of a slot, or for a place under the limit of a policy.
    Waiting {
        #[serde(skip_serializing_if = "Option::is_none")]
        slot: Option<DateTime<Utc>>,
        why: &'static str,
    },
}

/// The numbers of a backfill.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tally {
    /// All slots that it starts.
    total: usize,
    begun: usize,
    running: usize,
    succeeded: usize,
    failed: usize,
    gone: usize,
    /// Slots that may have run, because a Job was deleted.
    unknown: usize,
    /// The Jobs of the backfill that existed when this process began.
    #[serde(skip)]
    jobs: usize,
}

impl Tally {
    fn count(&mut self, end: End) {
        match end {
            End::Succeeded => self.succeeded += 1,
            End::Failed => self.failed += 1,
            End::Gone => self.gone += 1,
        }
    }
}

/// A line of the output for machines.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", tag = "type")]
enum Line<'a> {
    Plan(&'a BackfillPlan),
    Continued(&'a Tally),
    Finished(&'a Tally),
}

/// Backfills the CronJob that `target` names. What it says before its end goes to `print`, which returns false if that
/// cannot be written; then it stops, and the next call continues. If another controller runs the CronJob, or none that is known,
/// a line on stderr says so first.
///
/// # Errors
/// When the cluster cannot be reached, the CronJob cannot be backfilled, or the API server refuses a write.
pub async fn backfill(
    target: &Target,
    request: &Request<Since>,
    clock: &dyn Clock,
    print: &mut dyn FnMut(&PlainText) -> bool,
) -> Result<Answer, CliError> {
    let (client, namespace) = Scope::from(target.clone()).connect().await?;
    let namespace = namespace.unwrap_or_default();
    let mut note = |text: &PlainText| {
        // Nothing is left to tell a user whose terminal is gone.
        let _ = error_output().write_all(text.as_bytes());
    };
    let restrictions = Restrictions::read(&client, Some(&namespace)).await;
    let now = cluster::now(&client, clock).await;
    if let Some(line) = freeze_of(&restrictions, &namespace, request.question.zone, now) {
        note(&PlainText::lines([line]));
    }
    let (kind, place) = (target.controller_kind, (&*namespace, &*target.name));
    interruptible(&client, kind, place, request, clock, print, &mut note, interrupted()).await
}

/// Waits for Ctrl-C or SIGTERM, from the first poll on.
async fn interrupted() {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// That a freeze of the Namespace does not hold a backfill; `None` without one.
fn freeze_of(restrictions: &Restrictions, namespace: &str, zone: Zone, now: DateTime<Utc>) -> Option<String> {
    let restriction = restrictions.of(namespace)?;
    let (until, why) = (moment(zone, restriction.frozen_until(now)?), why(restriction.reason.as_deref()));
    Some(format!("Namespace {namespace} is frozen until {until}{why}. A freeze holds regular runs, and no backfill."))
}

/// The same over a client: `place` is the namespace and the name.
///
/// # Errors
/// As [`backfill`].
pub async fn backfill_with(
    client: &Client,
    controller_kind: ControllerKind,
    place: (&str, &str),
    request: &Request,
    clock: &dyn Clock,
    print: &mut dyn FnMut(&PlainText) -> bool,
    note: &mut dyn FnMut(&PlainText),
) -> Result<Answer, CliError> {
    let Request { question, dry_run, format } = request.clone();
    let (from, to) = (Since::At(question.from), Since::At(question.to));
    let request = Request { question: question.at(from, to), dry_run, format };
    interruptible(client, controller_kind, place, &request, clock, print, note, std::future::pending()).await
}

/// The same with any times, until `stop`: it then says which command continues the backfill.
#[allow(clippy::too_many_arguments, reason = "what a command has")]
async fn interruptible(
    client: &Client,
    controller_kind: ControllerKind,
    (namespace, name): (&str, &str),
    request: &Request<Since>,
    clock: &dyn Clock,
    print: &mut dyn FnMut(&PlainText) -> bool,
    note: &mut dyn FnMut(&PlainText),
    stop: impl Future<Output = ()>,
) -> Result<Answer, CliError> {
    let place = ClusterCronJob { client, controller_kind, namespace, name, seed: &request.question.seed };
    let json = place.read_text().await?;
    let stored = place.decode(&json)?;
    if let Some(refusal) = plan::refusal(&stored.cron_job, request.question.zone) {
        return Err(place.refused(refusal));
    }
    let zone_of = |cron_job: &CronJob| cron_job.schedule(request.question.zone).and_then(schedule::Schedule::zone);
    let zone = zone_of(&stored.cron_job).unwrap_or(request.question.zone);
    let now = cluster::now(client, clock).await;
    let question = request.question.in_zone(zone, now).map_err(|cause| place.refused(cause))?;
    let (in_charge, line) = whose(&place, &json, now).await;
    if let Some(line) = line {
        note(&PlainText::lines([line]));
    }
    let jobs = jobs_beside(&place).await?;
    let mut screen = Screen::new(request.format, zone, &stored, print);
    let Some(next) = prepare(&place, &stored, &jobs, &question, now, &mut screen)? else {
        return Ok(Answer { text: PlainText::default(), is_good: true });
    };
    let (running, tally) = found(&jobs, &next);
    if let Some(current) = &stored.record.current {
        screen.continued(&tally);
        if request.dry_run {
            screen.rest(&rest(&stored, current, &jobs, &question, (in_charge, &tally), now));
        }
    }
    if request.dry_run {
        return Ok(Answer { text: PlainText::default(), is_good: true });
    }
    let owner = stored.cron_job.uid.clone();
    let is_child = move |job: &mut Job| job.controller.as_ref().is_some_and(|controller| controller.uid == owner);
    let watch = JobWatch::start(client, controller_kind.child, namespace, is_child);
    let mut run = Run {
        place,
        question: &question,
        clock,
        in_charge,
        watch,
        stored: stored.record,
        next,
        running,
        tally,
        report: &mut |step, tally| screen.tell(step, tally),
        is_closed: false,
    };
    let ended = tokio::select! {
        ended = run.carry_out() => ended,
        () = stop => Err(place.refused(format!("it was interrupted; {} continues it", flags(&question)))),
    };
    let (tally, is_closed) = (run.tally.clone(), run.is_closed);
    drop(run);
    screen.clear();
    ended?;
    let text = if is_closed { PlainText::default() } else { screen.end(&tally) };
    Ok(Answer { text, is_good: tally.failed + tally.gone + tally.unknown == 0 })
}

/// The times of slots that backfills of the CronJob with that text covered, first and last.
pub(crate) fn covered(text: &str, uid: &Uid) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
    let record = text.contains(BACKFILL).then(|| run::record_in(text, uid).ok().flatten()).flatten();
    let of = |record: Record| {
        let current = record.current.map(|current| (current.from, current.to));
        record.done.into_iter().chain(current).collect()
    };
    record.map(of).unwrap_or_default()
}

/// All Jobs of the namespace, and the backfills that their labels name.
async fn jobs_beside(place: &ClusterCronJob<'_>) -> Result<Vec<(Arc<Job>, Option<String>)>, CliError> {
    let jobs = list(place.client, &place.controller_kind.child.path(Some(place.namespace)), "").await?;
    let decoded = jobs.iter().filter_map(|raw| decode_job(raw.get()).ok());
    Ok(decoded.map(|(job, backfill)| (Arc::new(job), backfill)).collect())
}

/// Which controller runs the CronJob, decoded from `json`, and a line about it, unless it is this one.
async fn whose(place: &ClusterCronJob<'_>, json: &str, now: DateTime<Utc>) -> (InCharge, Option<String>) {
    let Ok(mut cron_job) = CronJob::decode(json, &Interner::default()) else { return (InCharge::Unknown, None) };
    let flags = ControllerFlags::default();
    let (in_charge, lease) = find_in_charge(place.client, &mut cron_job, json, &flags).await;
    let limits = match (in_charge, in_charge.is_running(lease.as_ref(), now)) {
        (InCharge::Own | InCharge::HandedOver, true) => return (in_charge, None),
        (InCharge::InTree, true) => {
            " Limits such as Forbid are that controller's, which does not know the Jobs of a backfill, and prunes those that have \
             ended."
        }
        _ => "",
    };
    let (kind, sentence) = (cron_job.controller_kind.parent.kind, in_charge.sentence(&cron_job, lease.as_ref(), now));
    (in_charge, Some(format!("{kind} {}: {sentence}{limits}", cron_job.object_name())))
}

/// The record to begin with: the stored one with this process as its holder, or that of a new plan. `None` if there is nothing
/// to start.
fn prepare(
    place: &ClusterCronJob<'_>,
    stored: &Stored,
    jobs: &[(Arc<Job>, Option<String>)],
    question: &Question,
    now: DateTime<Utc>,
    screen: &mut Screen<'_>,
) -> Result<Option<Backfill>, CliError> {
    let Question { from, to, again, .. } = *question;
    let holder = trigger::word(rand::random());
    if let Some(stored) = &stored.record.current {
        if (stored.from, stored.to, stored.again) != (from, to, again) {
            let again = Question { again: stored.again, ..question.clone().at(stored.from, stored.to) };
            return Err(place.refused(format!(
                "another backfill is under way. {} continues it; kubectl annotate -n {} {} {} {}- gives it up",
                flags(&again),
                place.namespace,
                place.controller_kind.parent.qualified_name(),
                place.name,
                BACKFILL,
            )));
        }
        return Ok(Some(Backfill { holder, ..stored.clone() }));
    }
    let jobs: Vec<Arc<Job>> = jobs.iter().map(|(job, _)| Arc::clone(job)).collect();
    let plan = plan::plan(&stored.cron_job, &jobs, &stored.record, question, now);
    let plan = plan.map_err(|cause| place.refused(cause))?;
    screen.plan(&plan);
    let left = plan.chosen().to_vec();
    let (id, total) = (trigger::word(rand::random()), left.len());
    Ok((total > 0).then_some(Backfill { id, holder, from, to, again, total, created: 0, begun: None, left }))
}

/// The flags of the command that continues a backfill.
fn flags(question: &Question) -> String {
    let time = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
    let again = if question.again { " --again failed" } else { "" };
    let rerun = if question.rerun { " --rerun" } else { "" };
    let (from, to) = (time(question.from), time(question.to));
    format!("--from {from} --to {to} --max-active {}{again}{rerun}", question.max_active)
}

/// What the next process of an interrupted backfill starts, of which `tally` says what was found.
fn rest(
    stored: &Stored,
    current: &Backfill,
    jobs: &[(Arc<Job>, Option<String>)],
    question: &Question,
    (in_charge, tally): (InCharge, &Tally),
    now: DateTime<Utc>,
) -> BackfillPlan {
    let Stored { cron_job, record } = stored;
    let counts = (tally.jobs, current.created);
    let is_lost = current.begun.is_some_and(|begun| run::may_lose_jobs(cron_job, in_charge, counts, begun, now));
    let jobs: Vec<Arc<Job>> = jobs.iter().map(|(job, _)| Arc::clone(job)).collect();
    plan::rest(cron_job, &jobs, record, current, question, is_lost)
}

/// Unfinished Jobs, with their slots and names.
type Running = HashMap<Uid, (DateTime<Utc>, String)>;

/// What earlier processes did: the unfinished Jobs, and the numbers of the others. The slot that was begun last is not among them:
/// whether it has a Job is found later.
fn found(jobs: &[(Arc<Job>, Option<String>)], backfill: &Backfill) -> (Running, Tally) {
    let begun = backfill.number_begun().saturating_sub(usize::from(backfill.begun.is_some()));
    let mut tally = Tally { total: backfill.total, begun, ..Tally::default() };
    let mut running = Running::new();
    for (job, id) in jobs {
        let Some(slot) = job.scheduled_timestamp.filter(|_| id.as_ref() == Some(&backfill.id)) else { continue };
        if backfill.begun.is_some_and(|begun| begun.slot == slot) {
            continue;
        }
        tally.jobs += 1;
        match job.finished {
            Some(finished) => tally.count(finished.into()),
            None => {
                running.insert(job.uid.clone(), (slot, job.name.name.to_string()));
            }
        }
    }
    tally.running = running.len();
    (running, tally)
}

/// Where a backfill tells what it does: lines on stdout, and on a terminal a line that changes.
struct Screen<'a> {
    print: &'a mut dyn FnMut(&PlainText) -> bool,
    format: Format,
    on_terminal: bool,
    object: String,
    zone: schedule::Zone,
}

/// The width of the bar.
const BAR: usize = 30;

impl<'a> Screen<'a> {
    fn new(
        format: Format,
        zone: schedule::Zone,
        stored: &Stored,
        print: &'a mut dyn FnMut(&PlainText) -> bool,
    ) -> Self {
        let cron_job = &stored.cron_job;
        let object = format!("{} {}", cron_job.controller_kind.parent.kind, cron_job.object_name());
        let on_terminal = format == Format::Table && error_output().is_terminal();
        Self { print, format, on_terminal, object, zone }
    }

    fn line(&mut self, line: &Line<'_>, lines: &[String]) -> bool {
        match self.format {
            Format::Table => (self.print)(&PlainText::lines(lines)),
            _ => (self.print)(&PlainText::json(line, true)),
        }
    }

    fn plan(&mut self, plan: &BackfillPlan) -> bool {
        self.line(&Line::Plan(plan), &plan.lines())
    }

    /// The plan of the rest of an interrupted backfill.
    fn rest(&mut self, plan: &BackfillPlan) -> bool {
        let mut lines = plan.lines();
        lines.push("Without --dry-run, this command goes on with these.".to_owned());
        self.line(&Line::Plan(plan), &lines)
    }

    fn continued(&mut self, tally: &Tally) -> bool {
        let Tally { total, begun, .. } = tally;
        let text = format!("Backfill of {}: {begun} of {} begun already.", self.object, count(*total, "slot"));
        self.line(&Line::Continued(tally), &[text])
    }

    /// Tells a step; returns false if it cannot be written.
    fn tell(&mut self, step: &Step, tally: &Tally) -> bool {
        if self.format != Format::Table {
            return (self.print)(&PlainText::json(step, true));
        }
        let text = match step {
            Step::Started { slot, job } if !self.on_terminal => {
                let time = moment(self.zone, *slot);
                Some(format!("{} of {}: started Job {job} of {time}", tally.begun, tally.total))
            }
            Step::Found { slot, job } if !self.on_terminal => {
                let time = moment(self.zone, *slot);
                Some(format!("{} of {}: Job {job} of {time} was started before", tally.begun, tally.total))
            }
            Step::Started { .. } | Step::Found { .. } | Step::Ended { outcome: End::Succeeded, .. } => None,
            Step::Ended { job, outcome, .. } => {
                Some(format!("Job {job} {}", if *outcome == End::Failed { "failed" } else { "was deleted" }))
            }
            Step::Skipped { slot, why } => Some(format!("The slot {} is left out: {why}", moment(self.zone, *slot))),
            Step::Waiting { .. } if self.on_terminal => None,
            Step::Waiting { slot: Some(slot), why } => {
                Some(format!("Waits for the slot {}: {why}", moment(self.zone, *slot)))
            }
            Step::Waiting { slot: None, why } => Some(format!("Waits: {why}")),
        };
        let wait = match step {
            Step::Waiting { slot: Some(slot), .. } => {
                Some(format!("waits for the run of {}", self.zone.at(*slot).format("%H:%M:%S")))
            }
            Step::Waiting { .. } => Some("waits for a place".to_owned()),
            _ => None,
        };
        self.clear();
        let is_open = text.is_none_or(|text| (self.print)(&PlainText::lines([text])));
        if self.on_terminal {
            let _ = write!(error_output(), "{}", bar(tally, wait.as_deref())).and_then(|()| error_output().flush());
        }
        is_open
    }

    /// Removes the bar.
    fn clear(&self) {
        if self.on_terminal {
            let _ = write!(error_output(), "\r\x1b[K");
        }
    }

    /// The last lines.
    fn end(&self, tally: &Tally) -> PlainText {
        if self.format != Format::Table {
            return PlainText::json(&Line::Finished(tally), true);
        }
        let Tally { succeeded, failed, gone, unknown, .. } = tally;
        let others =
            [(failed, "failed"), (gone, "deleted while it ran"), (unknown, "left out, because it may have run")];
        let others = others
            .iter()
            .filter(|(number, _)| **number > 0)
            .fold(String::new(), |all, (number, what)| all + &format!(", {number} {what}"));
        PlainText::lines([format!("Backfill of {}: {} succeeded{others}.", self.object, count(*succeeded, "Job"))])
    }
}

/// Where the bar and the notes are.
#[allow(clippy::disallowed_methods, reason = "a bar has no words of others, and a note is plain text")]
fn error_output() -> std::io::Stderr {
    std::io::stderr()
}

/// One line of progress. What the next start waits for is in the place of the numbers, so that the line stays short.
fn bar(tally: &Tally, wait: Option<&str>) -> String {
    let ended = tally.succeeded + tally.failed + tally.gone;
    let done = (BAR * ended).checked_div(tally.total).unwrap_or_default().min(BAR);
    let failed = if tally.failed > 0 { format!(", {} failed", tally.failed) } else { String::new() };
    let Tally { total, running, .. } = tally;
    let now = wait.map_or_else(|| format!("{running} running{failed}"), str::to_owned);
    format!("[{:<BAR$}] {ended} of {total}, {now}", "#".repeat(done))
}

#[cfg(test)]
mod tests;
