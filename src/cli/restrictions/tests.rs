#![allow(clippy::unwrap_used)]

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, Config};
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::*;
use crate::api::ControllerKind;
use crate::api::policy::{PAUSE_AFTER_FAILURES, REASON};
use crate::cli::check::{self, Rules, Source};
use crate::cli::cluster::{self, ControllerFlags, Known, Namespaces, Scope};
use crate::cli::explain::read::{read, read_alone};
use crate::cli::explain::tests::{cron_job, facts, instant, job, post};
use crate::cli::explain::{Facts, State, explain};
use crate::cli::findings;
use crate::cli::list::listing;
use crate::cli::list::next_hour::NextHour;
use crate::cli::list::night::Night;
use crate::cli::next::cron_jobs::Question;
use crate::cli::next::manifests::next_of;
use crate::cli::options::cluster::Since;
use crate::cli::output::{Format, Report as _, Screen};
use crate::cli::slots::slots;
use crate::client;
use crate::controller::tests::wire::{Fate, Wire};

const NOW: &str = "2026-11-22T10:00:00Z";

/// What the Namespace of [`facts`]' CronJob says with these annotations.
#[allow(clippy::needless_pass_by_value, reason = "callers write it with json!")]
fn restrictions(annotations: Value) -> Restrictions {
    let mut restrictions = Restrictions::default();
    let metadata = json!({"name": "shop", "annotations": annotations});
    restrictions.add_manifest(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
    restrictions
}

fn restricted(change: &Value, annotations: Value) -> Facts {
    let cron_job = restrictions(annotations).restricted(CronJob::clone(&cron_job(change)), InCharge::Own);
    Facts { cron_job: Arc::new(cron_job), in_charge: InCharge::Own, ..facts(change, Vec::new()) }
}

#[test]
fn freeze_is_a_state_with_its_reason() {
    let frozen = json!({NOT_BEFORE: "2026-11-24T06:00:00Z", REASON: "release week"});
    let rows = [
        (
            "a freeze",
            json!({}),
            frozen.clone(),
            State::Frozen,
            "It does not run: its Namespace is frozen until Tue 2026-11-24 06:00:00 +00:00: \"release week\".",
        ),
        (
            "a freeze that is over",
            json!({}),
            json!({NOT_BEFORE: "2026-11-22T09:00:00Z"}),
            State::Waiting,
            "It runs on schedule and waits for the next run.",
        ),
        (
            "a bound that cannot be read",
            json!({}),
            json!({NOT_BEFORE: "soon"}),
            State::BadPolicy,
            "It does not run: on the Namespace: cronjob-controller.dev/not-before: \"soon\" is not allowed",
        ),
        (
            "a suspension comes first",
            json!({"spec": {"suspend": true}}),
            frozen,
            State::Suspended,
            "It does not run: it is suspended",
        ),
    ];
    for (sentence, change, annotations, state, why) in rows {
        let told = explain(&restricted(&change, annotations), Zone::UTC, instant(NOW));
        assert_eq!(told.state, state, "{sentence}: {}", told.why);
        assert!(told.why.starts_with(why), "{sentence}: {}", told.why);
        let command = told.remedy("p", "").map(|remedy| remedy.command);
        let is_edit = command.as_deref() == Some("kubectl edit namespace shop");
        assert_eq!(is_edit, state == State::BadPolicy, "{sentence}: {command:?}");
    }
}

/// Its last Job failed. Sentences, and what the command that ends its state does.
#[test]
fn what_holds_a_cron_job_once_a_user_no_longer_stops_it_is_said() {
    let pausing = json!({"metadata": {"annotations": {PAUSE_AFTER_FAILURES: "1"}}});
    let suspended = json!({"spec": {"suspend": true}});
    let both = json!({"metadata": pausing["metadata"], "spec": suspended["spec"]});
    let frozen = || json!({NOT_BEFORE: "2026-11-24T06:00:00Z"});
    let until = "its Namespace is frozen until Tue 2026-11-24 06:00:00 +00:00.";
    let paused = "It is paused: the last Job failed (cronjob-controller.dev/pause-after-failures). It goes on when a Job \
                  succeeds, also one made with kubectl create job --from, or when the failed ones are deleted.";
    let resumed = "It does not run: it is suspended (spec.suspend). If it were resumed now,";
    let rows = [
        (
            "frozen",
            json!({}),
            frozen(),
            format!("It does not run: {until}"),
            "It goes on when its namespace is thawed.",
        ),
        (
            "frozen and paused",
            pausing,
            frozen(),
            format!("It does not run: {until} Nothing would start without the freeze either. {paused}"),
            "It goes on when its namespace is thawed, and then when a run succeeds.",
        ),
        (
            "suspended",
            suspended.clone(),
            json!({}),
            format!("{resumed} it would run at Mon 2026-11-23 02:00:00 +00:00."),
            "It goes on when it is resumed.",
        ),
        (
            "suspended and paused",
            both,
            json!({}),
            format!("{resumed} it would not start either. {paused}"),
            "It goes on when it is resumed, and then when a run succeeds.",
        ),
        (
            "suspended and frozen",
            suspended,
            frozen(),
            format!("{resumed} it would not start either. It does not run: {until}"),
            "It goes on when it is resumed, and then when its namespace is thawed.",
        ),
    ];
    for (sentence, change, annotations, why, remedy) in rows {
        let failed = job("2026-11-22T02:00:00Z", "cj", Some("Failed"));
        let told = explain(&Facts { jobs: vec![failed], ..restricted(&change, annotations) }, Zone::UTC, instant(NOW));
        assert_eq!(told.why, why, "{sentence}");
        assert_eq!(told.remedy("p", "").map(|remedy| remedy.what).as_deref(), Some(remedy), "{sentence}");
    }
}

#[test]
fn explanation_names_the_first_run_after_the_freeze_and_what_is_left_out() {
    let annotations = json!({NOT_BEFORE: "2026-11-24T06:00:00Z", EXCLUDE: "Wed", REASON: "release week"});
    let text = explain(&restricted(&json!({}), annotations), Zone::UTC, instant(NOW)).lines().join("\n");
    for want in [
        "Thu 2026-11-26 02:00:00",
        "No slot is before Tue 2026-11-24 06:00:00 +00:00 (cronjob-controller.dev/not-before of the Namespace).",
        "The dates in cronjob-controller.dev/exclude, of the Namespace too: Wed: \"release week\", have no slots.",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
}

#[test]
fn list_shows_state_reason_and_end() {
    let frozen = json!({NOT_BEFORE: "2026-11-24T06:00:00Z", REASON: "release week"});
    let known = Known { facts: restricted(&json!({}), frozen), events: Vec::new() };
    let lines = listing(&[known], Zone::UTC, instant(NOW)).lines();
    assert!(lines[1].contains(" frozen "), "{lines:?}");
    assert!(lines[1].contains("\"release week\", until Tue 2026-11-24 06:00:00 +00:00"), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn namespaces_that_cannot_be_read_are_named_by_every_report() {
    let (clock, wire) = (TestClock::new(instant(NOW)), Wire::new());
    let server = ApiServer::new(Config::builtin(clock));
    wire.judge(|ask| match &*ask.resource {
        "namespaces" => Fate::Denied(403, "Forbidden", "namespaces is forbidden"),
        _ => Fate::Pass,
    });
    let template = json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
    }}}});
    let object = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 2 * * *", "timeZone": "UTC", "jobTemplate": template},
    });
    post(&server.client(), "/apis/batch/v1/namespaces/default/cronjobs", &object).await;
    let client = client::on_service(wire.around(server.into_service()));
    let (flags, kind, now) = (ControllerFlags::default(), ControllerKind::CronJob, instant(NOW));
    let (known, _) = cluster::read_all(&client, kind, None, None, &flags).await.unwrap();
    let scope =
        Scope { controller_kind: kind, namespaces: Namespaces::All, name: None, kubeconfig: None, context: None };
    let findings = findings::find_with(&client, &scope, None, &flags, now).await.unwrap();
    let listing = listing(&known, Zone::UTC, now);
    let screen = Screen { width: 200, colour: false };
    let one = read(&client, kind, "default", "nightly", &flags).await.unwrap();
    let (_, next) = read_alone(&client, kind, "default", "nightly", &flags, now).await.unwrap();
    let all =
        "Namespaces cannot be read, so freezes of them do not show: read /api/v1/namespaces: namespaces is forbidden";
    let rows = [
        ("explain", findings.lines(), all),
        (
            "explain NAME",
            explain(&one, Zone::UTC, now).lines(),
            "Its Namespace cannot be read, so a freeze of it does not show: namespaces is forbidden",
        ),
        ("explain --since", slots(&known, Zone::UTC, Since::Ago(TimeDelta::hours(1)), now).lines(), all),
        ("list", listing.lines(), all),
        ("list on a terminal", vec![listing.shown(Format::Table, Some(screen)).to_string()], all),
        ("list --night", Night::of(&known, Zone::UTC, Zone::UTC, now).lines(), all),
        ("list --next-hour", NextHour::of(&known, Zone::UTC, Zone::UTC, now).lines(), all),
        ("next NAME", vec![next], "Namespaces cannot be read, so freezes of them do not show: namespaces is forbidden"),
    ];
    for (command, lines, want) in rows {
        let text = lines.join("\n");
        assert_eq!(text.matches(want).count(), 1, "{command}: {text}");
    }
}

#[test]
fn in_tree_controller_is_not_held() {
    let frozen = restrictions(json!({NOT_BEFORE: "2027-01-01T00:00:00Z"}));
    let restriction =
        |in_charge| frozen.restricted(CronJob::clone(&cron_job(&json!({}))), in_charge).restriction().is_some();
    let rows = [InCharge::Own, InCharge::HandedOver, InCharge::InTree, InCharge::Unknown].map(restriction);
    assert_eq!(rows, [true, true, false, true]);
}

/// A CronJob before its Namespace, and one in another.
fn manifests(not_before: &str) -> Vec<Source> {
    let cron_job = |namespace: &str, schedule: &str| {
        let template = json!({"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}}});
        json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly", "namespace": namespace},
            "spec": {"schedule": schedule, "timeZone": "UTC", "jobTemplate": template},
        })
    };
    let annotations = json!({NOT_BEFORE: not_before, EXCLUDE: "Fri", REASON: "release week"});
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": annotations}});
    let interval = cron_job("shop", "@every 6h");
    let objects = [cron_job("shop", "0 2 * * *"), namespace, cron_job("other", "0 2 * * *"), interval];
    let text = objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n");
    vec![Source { file: "all.yaml".to_owned(), text }]
}

#[test]
fn next_of_manifests_heeds_the_namespaces_among_them() {
    let question = Question { zone: Zone::UTC, seed: Arc::default(), from: None, count: 1, all: false };
    let answer = next_of(&manifests("2026-11-26T12:00:00Z"), "default", &question, instant(NOW)).0.unwrap();
    let text = answer.lines().join("\n");
    for want in [
        "Its Namespace is frozen until Thu 2026-11-26 12:00:00 +00:00 (cronjob-controller.dev/not-before): \"release week\".",
        "Its Namespace leaves out Fri (cronjob-controller.dev/exclude).",
        "Sat 2026-11-28 02:00:00 +00:00",
        "Mon 2026-11-23 02:00:00 +00:00",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
}

#[test]
fn check_judges_a_namespace_once_and_intervals_beside_its_dates() {
    let rules = Rules { max_per_minute: 20, ..Rules::default() };
    let rows = [
        (
            "2026-11-26T12:00:00Z",
            ["CronJob shop/nightly: spec.schedule: on the Namespace: cronjob-controller.dev/exclude: \"Fri\""],
        ),
        (
            "soon",
            [
                "Namespace shop: metadata.annotations[cronjob-controller.dev/not-before]: cronjob-controller.dev/not-before: \"soon\"",
            ],
        ),
    ];
    for (not_before, want) in rows {
        let report = check::check(&manifests(not_before), &rules, instant(NOW));
        let lines = report.lines();
        let found: Vec<&String> = lines.iter().filter(|line| line.contains("[bad-policy]")).collect();
        assert_eq!(found.len(), want.len(), "{lines:?}");
        for (line, want) in found.iter().zip(want) {
            assert!(line.contains(want), "{line}");
        }
    }
}
