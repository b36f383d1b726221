#![allow(clippy::unwrap_used)]

use chrono::TimeDelta;
use serde_json::{Value, json};

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, Config};

use super::*;
use crate::cli::explain::tests::{cron_job, facts, instant, job, name_of};
use crate::client;
use crate::controller::tests::wire::{Fate, Wire};

const NOW: &str = "2026-11-22T10:00:00Z";
const TODAY: &str = "2026-11-22T02:00:00Z";
const YESTERDAY: &str = "2026-11-21T02:00:00Z";

fn known(name: &str, mut change: Value, jobs: &[(&str, Option<&str>)]) -> Known {
    change["metadata"] = json!({"name": name});
    let jobs = jobs.iter().map(|(slot, end)| job(slot, "cj", *end)).collect();
    let facts = facts(&change, jobs);
    Known { facts, events: Vec::new() }
}

fn all() -> Vec<Known> {
    vec![
        known("stopped", json!({"spec": {"suspend": true}}), &[]),
        known("quiet", json!({}), &[]),
        known("nightly", json!({}), &[(TODAY, Some("Failed"))]),
        known("late", json!({"status": {"lastScheduleTime": YESTERDAY}}), &[]),
        known("wrong", json!({"spec": {"schedule": "0 25 * * *"}}), &[]),
        known(
            "nightly",
            json!({
                "spec": {"concurrencyPolicy": "Forbid"},
                "status": {
                    "lastScheduleTime": YESTERDAY,
                    "active": [{"kind": "Job", "name": name_of(YESTERDAY), "namespace": "shop", "uid": name_of(YESTERDAY)}],
                },
            }),
            &[(YESTERDAY, None)],
        ),
        known("idle", json!({}), &[]),
    ]
}

#[test]
fn worst_comes_first() {
    let listing = listing(&all(), Zone::UTC, instant(NOW));
    let got: Vec<(&str, State)> = listing.cron_jobs.iter().map(|entry| (entry.name.as_str(), entry.state)).collect();
    let want = [
        ("late", State::Overdue),
        ("wrong", State::UnparseableSchedule),
        ("nightly", State::Blocked),
        ("nightly", State::Failing),
        ("idle", State::Waiting),
        ("quiet", State::Waiting),
        ("stopped", State::Suspended),
    ];
    assert_eq!(got, want);
}

#[test]
fn table_says_what_is_late_and_what_blocks() {
    let lines = listing(&all()[2..6], Zone::UTC, instant(NOW)).lines();
    let blocker = name_of(YESTERDAY);
    let want = [
        "CRONJOB CONTROLLER STATE NEXT LAST LATE BLOCKED BY SINCE RUNS".to_owned(),
        format!(
            "shop/late not known overdue in 16h00m 1d08h ago, no longer exists 8h00m - due for 8h00m {}–>",
            "?".repeat(18)
        ),
        "shop/wrong not known bad schedule - 8h00m ago, no longer exists - - last run 8h00m ago –".to_owned(),
        format!(
            "shop/nightly not known blocked - 1d08h ago, has been running for 1d08h 8h00m {blocker} blocked for 8h00m by {blocker}, \
             which has been running for 1d08h {}●~",
            "?".repeat(18)
        ),
        format!(
            "shop/nightly not known failing in 16h00m 8h00m ago, failed - - no success since its creation 20d22h ago (21 slots, 1 failed run still known) {}✗",
            "?".repeat(19)
        ),
        "No controller has a Lease: none is running, or it runs without leader election. This concerns 4 CronJobs; 1 is overdue."
            .to_owned(),
    ];
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let [got, want] = [lines, want.to_vec()].map(|lines| lines.iter().map(|line| squeezed(line)).collect::<Vec<_>>());
    assert_eq!(got, want);
    assert_eq!(listing(&[], Zone::UTC, instant(NOW)).lines(), [crate::cli::output::NO_CRON_JOBS]);
}

#[test]
fn a_run_that_waits_for_its_spread_is_not_late_by_that() {
    for change in [
        json!({"status": {"lastScheduleTime": YESTERDAY}}),
        json!({"spec": {"concurrencyPolicy": "Forbid"}, "status": {
            "lastScheduleTime": YESTERDAY, "active": [{"kind": "Job", "name": name_of(YESTERDAY), "namespace": "shop", "uid": name_of(YESTERDAY)}],
        }}),
    ] {
        let mut known = known("late", change.clone(), &[(YESTERDAY, None)]);
        let mut spread = change;
        spread["metadata"] = json!({
            "name": "late", "annotations": {"cronjob-controller.dev/spread": "4h"},
            "managedFields": [{"manager": "kubectl", "time": "2026-11-01T12:00:00Z"}],
        });
        known.facts.cron_job = cron_job(&spread);
        let delay = known.facts.cron_job.offset();
        assert!(delay > TimeDelta::minutes(5));
        let listing = listing(&[known], Zone::UTC, instant(NOW));
        assert_eq!(listing.cron_jobs[0].due_since, Some(instant(TODAY) + delay), "{spread}");
    }
}

#[test]
fn json_has_the_state_and_the_blockers() {
    let json: Value =
        serde_json::from_str(&render(&listing(&all()[5..6], Zone::UTC, instant(NOW)), Format::Json)).unwrap();
    assert_eq!(
        json["cronJobs"],
        json!([{
            "namespace": "shop", "name": "nightly", "controller": "unknown", "state": "blocked",
            "lastRun": "2026-11-21T02:00:00Z",
            "lastOutcome": "has been running for 1d08h", "dueSince": "2026-11-22T02:00:00Z",
            "blockedBy": [name_of(YESTERDAY)],
            "since": format!("blocked for 8h00m by {}, which has been running for 1d08h", name_of(YESTERDAY)),
        }])
    );
    let concerned = "This concerns 1 CronJob; none is overdue yet.";
    let banner = format!("No controller has a Lease: none is running, or it runs without leader election. {concerned}");
    assert_eq!(json["banners"], json!([banner]));
}

/// The facts with which `list` is asked, the lines that follow the legend, and the fields in JSON that say what is not known.
type Rights<'a> = (&'a str, Option<&'a str>, Option<&'a str>, &'a [&'a str], Value);

#[test]
fn what_may_not_be_read_is_said_and_what_concerns_all_is_a_banner() {
    let absent = "No controller has a Lease: none is running, or it runs without leader election. This concerns 1 CronJob; none is \
                  overdue yet.";
    let forbidden = "events is forbidden";
    let events = "Events cannot be read, so neither refusals nor runs whose Jobs are gone show: events is forbidden";
    let leases = "Leases cannot be read, so it does not show whether a controller runs: leases is forbidden";
    let rows: [Rights<'_>; 3] = [
        ("all rights", None, None, &[absent], json!({})),
        ("no Events", Some(forbidden), None, &[events, absent], json!({"eventsUnread": forbidden})),
        ("no Leases", None, Some("leases is forbidden"), &[leases], json!({"leasesUnread": "leases is forbidden"})),
    ];
    for (sentence, no_events, no_leases, want, fields) in rows {
        let mut quiet = known("quiet", json!({}), &[]);
        if let Some(error) = no_events {
            quiet.facts.warnings = Err(error.to_owned());
        }
        quiet.facts.leases_unread = no_leases.map(str::to_owned);
        let listing = listing(&[quiet], Zone::UTC, instant(NOW));
        let lines = listing.lines();
        assert_eq!(&lines[2..], want, "{sentence}");
        let json: Value = serde_json::from_str(&render(&listing, Format::Json)).unwrap();
        for field in ["eventsUnread", "leasesUnread"] {
            assert_eq!(json[field], fields[field], "{sentence}");
        }
        let screen = |colour| listing.shown(Format::Table, Some(Screen { width: 60, colour })).to_string();
        let folded = screen(false).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(folded.ends_with(&want.join(" ")), "{sentence}: {folded}");
        assert_eq!(screen(true).contains("\u{1b}[1;31mNo controller has a Lease"), no_leases.is_none(), "{sentence}");
    }
}

#[test]
fn table_on_a_terminal_fits_it_and_has_the_worst_last() {
    let mut all = all();
    all.push(known("sync-the-orders-of-all-shops-with-the-warehouse", json!({}), &[(TODAY, Some("Complete"))]));
    let listing = listing(&all, Zone::UTC, instant(NOW));
    for width in [60, 80, 100, 120, 200] {
        let text = listing.shown(Format::Table, Some(Screen { width, colour: false }));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:#?}");
        assert!(lines[0].starts_with("CRONJOB") && lines[0].ends_with("RUNS"), "{width}: {lines:#?}");
        assert!(lines[1].contains("suspended"), "{width}: {lines:#?}");
        let at = lines.iter().position(|line| line.starts_with("shop/late")).unwrap();
        assert!(lines[at].contains("overdue") && lines[at].ends_with('>'), "{width}: {lines:#?}");
        assert_eq!(&lines[at + 1..at + 3], ["  due for 8h00m", ""], "{width}: {lines:#?}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let failing = "no success since its creation 20d22h ago (21 slots, 1 failed run still known)";
        assert!(words.contains(failing), "{width}: {lines:#?}");
        assert!(
            words.contains(&format!("blocked for 8h00m by {}, which has been running for 1d08h", name_of(YESTERDAY)))
        );
    }
    let coloured = listing.shown(Format::Table, Some(Screen { width: 80, colour: true }));
    assert!(coloured.contains("\u{1b}[31mshop/late") && coloured.contains("\u{1b}[2mshop/stopped"), "{coloured:?}");
    let json = listing.shown(Format::Json, Some(Screen { width: 80, colour: true }));
    assert!(!json.contains('\u{1b}'));
}

#[test]
fn controller_is_named_at_each_width_where_there_are_several() {
    let mut all = all();
    all[1].facts.in_charge = InCharge::InTree;
    all[2].facts.in_charge = InCharge::Own;
    let listing = listing(&all, Zone::UTC, instant(NOW));
    for width in [60, 80, 100, 120, 200] {
        let text = listing.shown(Format::Table, Some(Screen { width, colour: false })).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
        for word in ["in-tree", "cronjob-controller", "not known"] {
            assert!(text.contains(word), "{width}, {word}: {text}");
        }
        let is_column = text.lines().next().unwrap().contains("CONTROLLER");
        assert_eq!(text.matches("\n  controller: ").count(), if is_column { 0 } else { all.len() }, "{width}: {text}");
    }
}

/// `spec.suspend` has another type.
#[tokio::test(start_paused = true)]
async fn cron_jobs_that_cannot_be_decoded_are_counted_and_named() {
    let wrong = json!({"metadata": {"name": "wrong", "namespace": "shop"}, "spec": {"suspend": "no"}}).to_string();
    let leases = crate::cli::explain::lease::Leases::default();
    let interner = crate::api::Interner::default();
    let flags = ControllerFlags::default();
    let decoded = InCharge::of_listed(&wrong, ControllerKind::CronJob, &interner, &leases, &flags);
    let text = cluster::undecoded(&wrong, &decoded.unwrap_err());
    assert!(text.starts_with("shop/wrong: "), "{text}");
    for known in [&all()[..], &[]] {
        let listing = listing_of(known, vec![text.clone()], Zone::UTC, instant(NOW));
        let want = format!("1 CronJob cannot be decoded here, and left out: {text}");
        assert!(listing.lines().contains(&want), "{:?}", listing.lines());
        let json: Value = serde_json::from_str(&render(&listing, Format::Json)).unwrap();
        assert_eq!(json["notDecoded"], json!([text]));
    }
}

#[test]
fn words_of_an_object_have_no_effect_on_the_terminal() {
    let mut known = known("nightly", json!({}), &[]);
    known.facts.cron_job = cron_job(&json!({"metadata": {"name": "a\u{1b}[2Jb\nc"}}));
    let text =
        listing(&[known], Zone::UTC, instant(NOW)).shown(Format::Table, Some(Screen { width: 80, colour: false }));
    assert!(text.contains("shop/a\\x1b[2Jb\\nc") && !text.contains('\u{1b}'), "{text:?}");
}

/// A CronJob that is paused, in a Namespace that is frozen.
#[test]
fn list_of_a_frozen_namespace_has_its_reason_at_each_width_and_no_time_of_what_does_not_start() {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "uid": "", "annotations": {
            "cronjob-controller.dev/not-before": "2026-12-24T00:00:00Z", "cronjob-controller.dev/reason": "release week",
        }},
    });
    let mut restrictions = crate::cli::restrictions::Restrictions::default();
    restrictions.add(&namespace.to_string());
    let frozen = |annotations: Value, end: &str| {
        let mut known = known("held", json!({}), &[(TODAY, Some(end))]);
        let own = cron_job(&json!({"metadata": {"name": "held", "annotations": annotations}}));
        known.facts.cron_job = restrictions.applied(own, InCharge::Own);
        known
    };
    let paused = json!({"cronjob-controller.dev/pause-after-failures": "1"});
    for (sentence, annotations, end, is_next) in
        [("paused", paused, "Failed", false), ("on schedule", json!({}), "Complete", true)]
    {
        let listing = listing(&[frozen(annotations, end)], Zone::UTC, instant(NOW));
        assert_eq!(listing.cron_jobs[0].next_run.is_some(), is_next, "{sentence}");
        let told = "\"release week\", until Thu 2026-12-24 00:00:00 +00:00";
        for width in [60, 80, 100, 120, 160, 200] {
            let text = listing.shown(Format::Table, Some(Screen { width, colour: false }));
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(text.matches(told).count(), 1, "{sentence}, {width}: {text}");
        }
    }
}

/// The API server is stopped: connections stay, and nothing is answered.
#[tokio::test(start_paused = true)]
async fn watch_of_a_server_that_answers_no_more_says_so() {
    let clock = TestClock::new(instant(NOW));
    let server = ApiServer::new(Config::builtin(TestClock::new(instant(NOW))));
    let wire = Wire::new();
    let client = client::on_service(wire.around(server.into_service()));
    let mut printed: Vec<String> = Vec::new();
    let began = tokio::time::Instant::now();
    let mut print = |text: &PlainText| {
        printed.push(text.to_string());
        if printed.len() == 1 {
            wire.judge(|_| Fate::Swallowed);
        }
        printed.len() < 3
    };
    let mut ages: Vec<String> = Vec::new();
    let mut age = |text: &str| {
        ages.push(text.to_owned());
        if ages.len() == 3 {
            wire.calm();
        }
    };
    let place = (ControllerKind::CronJob, None);
    let format = (Format::Table, None);
    watch_with(&client, place, &ControllerFlags::default(), format, &*clock, &mut print, &mut age).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    assert_eq!(ages, ["Not live for 7s.", "Not live for 14s.", "Not live for 21s.", ""], "it grows, and is taken away");
    let lost = "Not live since Sun 2026-11-22 10:00:00 +00:00: the API server does not answer.";
    assert!(printed[0].contains("There are no CronJobs.") && printed[1].contains(lost), "{printed:?}");
    assert_eq!(printed.len(), 3, "what is live again is shown: {printed:?}");
}
