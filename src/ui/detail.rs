//! All about one CronJob.
//!
//! Guarantees: the explanation is `explain`'s, the runs are those of `next --all`, and the slots those of `explain --since`.
//! Commands are for the user to copy: nothing here runs one. Every name in them is one word of a shell.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use schedule::Zone;
use serde::{Serialize, Serializer};

use super::model::{Board, Row};
use super::timeline::{Run, runs};
use crate::api::ObjectName;
use crate::cli::backfill::plan::refusal;
use crate::cli::cluster::Known;
use crate::cli::explain::read::Said;
use crate::cli::explain::{Explanation, Facts};
use crate::cli::next::cron_jobs::{CronJobRuns, Question};
use crate::cli::slots::{History, OfCronJob};
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
    /// Its row in the table.
    #[serde(serialize_with = "shared")]
    row: Option<Arc<Row>>,
    next: CronJobRuns,
    slots: OfCronJob,
    jobs: Vec<Run>,
    events: Vec<Said>,
    /// The object, or why it cannot be read.
    yaml: Result<String, String>,
    commands: Vec<Copy>,
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
    let now = board.clock.now();
    let known = board.source.known(&watched, board.zone, now);
    let (explanation, slots) = {
        let history = History::new(&known, board.zone, now);
        let slots = history.told(now - SINCE);
        (history.explanation, slots)
    };
    let question = Question { zone: board.zone, seed: board.seed.clone(), from: None, count: RUNS, all: true };
    let next = CronJobRuns::of(&known.facts.cron_job, &question, now);
    let Known { facts, events } = known;
    let jobs = runs(board, &watched);
    Some(Detail {
        explanation,
        row: board.model().rows.get(name).cloned(),
        next,
        slots,
        jobs,
        events,
        yaml: board.source.yaml(name).await,
        commands: commands(board, &facts, now),
    })
}

/// The commands for a CronJob, at `now`.
fn commands(board: &Board, facts: &Facts, now: DateTime<Utc>) -> Vec<Copy> {
    let cron_job = &facts.cron_job;
    let name = &cron_job.name;
    let (namespace, short) = (shell_word(&name.namespace), shell_word(&name.name));
    let (place, flags) = (format!("-n {namespace}"), &board.flags);
    let copy = |what: &str, command: String| Copy { what: what.to_owned(), command: Some(command) };
    // A Job's name has at most 63 characters.
    let stem: String = name.name.chars().take(40).collect();
    let job = shell_word(&format!("{stem}-manual-{}", now.timestamp() % 1_000_000));
    let from = shell_word(&format!("cronjob/{}", name.name));
    let (word, verb) = if cron_job.spec.suspend { ("Resume it", "resume") } else { ("Suspend it", "suspend") };
    let patch = if cron_job.handover.managed {
        // spec.suspend hides a handed-over CronJob from the in-tree controller, and hands over one that is annotated, so the plugin
        // knows what to change.
        format!("kubectl cronjob {verb} {place} {short}{flags}")
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
                format!("kubectl cronjob backfill {place} {short} {range} --dry-run{zone}{seed}{flags}"),
            )
        }
        Some(why) => Copy { what: format!("A backfill is not possible: {why}."), command: None },
    };
    vec![
        copy("Start a Job now", format!("kubectl create job {place} {job} --from={from}{flags}")),
        copy(word, patch),
        backfill,
        copy("Explain it", format!("kubectl cronjob explain {place} {short}{zone}{seed}{flags}")),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::cli::next::manifests::read;
    use crate::ui::source::Source;

    fn all(name: &str, spec: &serde_json::Value, zone: &str, flags: &str) -> Vec<(String, Option<String>)> {
        all_with_seed("", name, spec, zone, flags)
    }

    fn all_with_seed(
        seed: &str,
        name: &str,
        spec: &serde_json::Value,
        zone: &str,
        flags: &str,
    ) -> Vec<(String, Option<String>)> {
        all_of(&json!({}), seed, name, spec, zone, flags)
    }

    fn all_of(
        annotations: &serde_json::Value,
        seed: &str,
        name: &str,
        spec: &serde_json::Value,
        zone: &str,
        flags: &str,
    ) -> Vec<(String, Option<String>)> {
        let now: DateTime<Utc> = "2026-11-22T10:00:00Z".parse().unwrap();
        let object = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name, "namespace": "shop", "annotations": annotations},
            "spec": spec,
        });
        let cron_job = Arc::new(read(object, "shop", &"".into()).unwrap().unwrap().0);
        let clock: apimachinery::clock::SharedClock = Arc::new(apimachinery::clock::SystemClock);
        let source = Source::of_files(&[], false, "shop", &"".into(), &clock).unwrap();
        let zone = Zone::load(zone, Zone::UTC).unwrap();
        let board = Board::new(source, zone, seed.into(), clock, flags.to_owned());
        let facts = Facts {
            cron_job,
            in_charge: crate::cli::explain::InCharge::Unknown,
            jobs: Vec::new(),
            warnings: Ok(Vec::new()),
            lease: None,
        };
        commands(&board, &facts, now).into_iter().map(|copy| (copy.what, copy.command)).collect()
    }

    #[test]
    fn annotated_cron_job_is_suspended_by_the_plugin_whoever_runs_it() {
        for (sentence, managed, suspend, want) in [
            ("in-tree", "false", false, "kubectl patch cronjob -n shop nightly --type=merge"),
            (
                "annotated, and it runs in-tree: spec.suspend alone would start it here",
                "true",
                false,
                "kubectl cronjob suspend",
            ),
            ("handed over", "true", true, "kubectl cronjob suspend"),
        ] {
            let spec = json!({"schedule": "0 2 * * *", "suspend": suspend});
            let commands = all_of(&json!({"cronjob-controller.dev/managed": managed}), "", "nightly", &spec, "UTC", "");
            assert!(commands[1].1.as_deref().unwrap().starts_with(want), "{sentence}: {commands:?}");
        }
    }

    #[test]
    fn commands_name_the_cluster_and_what_a_backfill_needs() {
        let daily = json!({"schedule": "0 2 * * *"});
        let commands: Vec<String> =
            all("nightly", &daily, "UTC", " --context=prod").into_iter().filter_map(|(_, command)| command).collect();
        assert_eq!(
            commands,
            [
                "kubectl create job -n shop nightly-manual-341600 --from=cronjob/nightly --context=prod",
                "kubectl patch cronjob -n shop nightly --type=merge -p '{\"spec\":{\"suspend\":true}}' --context=prod",
                "kubectl cronjob backfill -n shop nightly --from=2026-11-20T10:00:00Z \
                 --to=2026-11-22T10:00:00Z --dry-run --context=prod",
                "kubectl cronjob explain -n shop nightly --context=prod",
            ]
        );
        let of_zone = all("nightly", &daily, "Europe/Berlin", "");
        assert!(of_zone[2].1.as_ref().unwrap().ends_with(" --dry-run --time-zone=Europe/Berlin"), "{of_zone:?}");
        let seeded = all_with_seed("blue", "nightly", &daily, "UTC", " --context=prod");
        let explain = seeded[3].1.as_deref().unwrap();
        assert_eq!(explain, "kubectl cronjob explain -n shop nightly --spread-seed=blue --context=prod");
        let backfill = seeded[2].1.as_deref().unwrap();
        assert!(backfill.ends_with(" --dry-run --spread-seed=blue --context=prod"), "{backfill}");
        let interval = all("often", &json!({"schedule": "@every 5m"}), "UTC", "");
        assert!(interval[2].0.contains("@every") && interval[2].1.is_none(), "{interval:?}");
    }

    #[test]
    fn every_name_in_a_command_is_one_word() {
        for (what, command) in all("x; rm -rf $HOME '", &json!({"schedule": "0 2 * * *"}), "UTC", "") {
            assert!(command.unwrap().contains(r"rm -rf $HOME '\''"), "{what}");
        }
    }
}
