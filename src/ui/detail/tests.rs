#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::cli::next::manifests::read;
use crate::ui::model::Shell;
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
    let board =
        Board::new(source, zone, seed.into(), clock, Shell { program: "kubectl cronjob", flags: flags.to_owned() });
    let facts = Facts::of(cron_job, crate::cli::explain::InCharge::Unknown, Vec::new());
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
