//! All about one CronJob.
//!
//! Guarantees: the explanation is `explain`'s, the runs are those of `next --all`, and the slots those of `explain --since`.
//! Commands are for the user to copy: nothing here runs one. Every name in them is one word of a shell.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use schedule::Zone;
use serde::{Serialize, Serializer};

use super::effect::{Effect, effect};
use super::model::{Board, Row};
use super::timeline::{Run, runs};
use crate::api::{ControllerKind, ObjectName};
use crate::cli::backfill::plan::refusal;
use crate::cli::cluster::Known;
use crate::cli::explain::read::Said;
use crate::cli::explain::{Explanation, Facts, Remedy};
use crate::cli::next::cron_jobs::{CronJobRuns, Question};
use crate::cli::slots::{History, Judged, OfCronJob, STRIP};
use crate::terminal::shell_word;

/// The number of next runs.
const RUNS: usize = 10;
/// How far back slots are told.
const SINCE: TimeDelta = TimeDelta::hours(48);

/// One CronJob.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detail {
    explanation: Explanation,
    why: Why,
    /// Its row in the table.
    #[serde(serialize_with = "shared")]
    row: Option<Arc<Row>>,
    next: CronJobRuns,
    /// What its policies change.
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<Effect>,
    slots: OfCronJob,
    /// The newest slots, one by one.
    strip: Vec<Judged>,
    jobs: Vec<Run>,
    /// The Events, or why they cannot be read.
    events: Result<Vec<Said>, String>,
    /// The object, or why it cannot be read.
    yaml: Result<String, String>,
    commands: Vec<Copy>,
}

/// What opens a CronJob: the cause, and what to run.
#[derive(Debug, Serialize)]
struct Why {
    /// The cause in whole sentences.
    cause: String,
    /// The command that prints the log of the last run, if its Job exists.
    logs: Option<String>,
    /// The command that ends the state.
    ends: Option<Remedy>,
}

#[allow(clippy::ref_option, reason = "the form that serde asks for")]
fn shared<S: Serializer>(row: &Option<Arc<Row>>, serializer: S) -> Result<S::Ok, S::Error> {
    row.as_deref().serialize(serializer)
}

/// A command to copy.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Copy {
    /// What it does.
    pub what: String,
    /// The command; `None` if it would be refused.
    pub command: Option<String>,
}

/// All about a CronJob; `None` if there is none of the name.
pub async fn detail(board: &Board, name: &ObjectName) -> Option<Detail> {
    let watched = board.source.cron_jobs.get(name)?;
    let now = board.now();
    let known = board.source.known(&watched, board.zone, now);
    let (mut explanation, slots, strip) = {
        let history = History::new(&known, board.zone, now);
        let (slots, strip) = (history.told(now - SINCE), history.newest(STRIP));
        (history.explanation, slots, strip)
    };
    let question = Question { zone: board.zone, seed: board.seed.clone(), from: None, count: RUNS, all: true };
    let next = CronJobRuns::of(&known.facts.cron_job, &question, now);
    let effect = effect(&known.facts, board.zone, board.zone, now);
    let Known { facts, events } = known;
    let jobs = runs(board, &watched);
    explanation.shell = board.shell.clone();
    if let Some(client) = board.source.client() {
        explanation.read_failure(client, ControllerKind::CronJob).await;
        explanation.read_unfinished(client, ControllerKind::CronJob).await;
    }
    let why = Why {
        cause: explanation.why.clone(),
        logs: explanation.logs(&board.shell.flags),
        ends: explanation.remedy(board.shell.program, &board.shell.flags),
    };
    Some(Detail {
        explanation,
        why,
        row: board.model().rows.get(name).cloned(),
        next,
        effect,
        slots,
        strip,
        jobs,
        events: board.source.unread_events().map_or(Ok(events), Err),
        yaml: board.source.yaml(name).await,
        commands: commands(board, &facts, now),
    })
}

/// The commands for a CronJob, at `now`.
fn commands(board: &Board, facts: &Facts, now: DateTime<Utc>) -> Vec<Copy> {
    let cron_job = &facts.cron_job;
    let name = &cron_job.name;
    let (namespace, short) = (shell_word(&name.namespace), shell_word(&name.name));
    let (place, program, flags) = (format!("-n {namespace}"), board.shell.program, &board.shell.flags);
    let copy = |what: &str, command: String| Copy { what: what.to_owned(), command: Some(command) };
    // A Job's name has at most 63 characters.
    let stem: String = name.name.chars().take(40).collect();
    let job = shell_word(&format!("{stem}-manual-{}", now.timestamp() % 1_000_000));
    let from = shell_word(&format!("cronjob/{}", name.name));
    let (word, verb) = if cron_job.spec.suspend { ("Resume it", "resume") } else { ("Suspend it", "suspend") };
    let patch = if cron_job.handover.managed {
        // spec.suspend hides a handed-over CronJob from the in-tree controller, and hands over one that is annotated, so the plugin
        // knows what to change.
        format!("{program} {verb} {place} {short}{flags}")
    } else {
        let spec = format!("'{{\"spec\":{{\"suspend\":{}}}}}'", !cron_job.spec.suspend);
        format!("kubectl patch cronjob {place} {short} --type=merge -p {spec}{flags}")
    };
    let zone = if board.zone == Zone::UTC { String::new() } else { format!(" --time-zone={}", board.zone.name()) };
    let seed = shell_word(&format!("--spread-seed={}", board.seed));
    let seed = if board.seed.is_empty() { String::new() } else { format!(" {seed}") };
    let backfill = match refusal(cron_job, board.zone) {
        None => {
            let time = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
            let range = format!("--from={} --to={}", time(now - SINCE), time(now));
            copy(
                "Backfill the last two days, dry run: print the plan, start nothing",
                format!("{program} backfill {place} {short} {range} --dry-run{zone}{seed}{flags}"),
            )
        }
        Some(why) => Copy { what: format!("A backfill is not possible: {why}."), command: None },
    };
    vec![
        copy("Start a Job now", format!("kubectl create job {place} {job} --from={from}{flags}")),
        copy(word, patch),
        backfill,
        copy("Explain it", format!("{program} explain {place} {short}{zone}{seed}{flags}")),
    ]
}

#[cfg(test)]
mod tests;
