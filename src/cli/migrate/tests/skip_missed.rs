//! `migrate skip-missed`: what it decides (a table), and what it writes on the embedded API server.

use chrono::SecondsFormat;

use super::super::skip_missed::{Bound, Found, Request, bound, skip, skip_missed_with};
use super::handover::{CRON_JOBS, MANAGED, World};
use super::*;
use crate::api::ControllerKind;
use crate::api::batch_v1::CronJob;
use crate::api::policy::{NOT_AFTER, NOT_BEFORE, PolicyOptions, SPREAD};
use crate::api::{Interner, Object as _};
use crate::cli::CliError;
use crate::cli::cluster::{read_text, try_patch};
use crate::cli::explain::lease::Leases;

/// A minute before the clock of [`World`].
const TIME: &str = "2026-11-20T02:59:00Z";

/// What it is, `not-before` and `not-after`, and what is decided or named.
type Row = (&'static str, Option<&'static str>, Option<&'static str>, Result<Bound, &'static str>);

#[test]
fn bound_is_set_unless_it_is_later_or_cannot_be_read() {
    let set = |leaves_none| Ok(Bound::Set { to: instant(TIME), leaves_none });
    let later = |time| Ok(Bound::Later(instant(time)));
    let rows: [Row; 11] = [
        ("none", None, None, set(false)),
        ("of last year", Some("2025-11-20T02:59:00Z"), None, set(false)),
        ("a second before", Some("2026-11-20T02:58:59Z"), None, set(false)),
        ("the same, in another zone", Some("2026-11-20T03:59:00+01:00"), None, Ok(Bound::Same)),
        ("a second later", Some("2026-11-20T02:59:01Z"), None, later("2026-11-20T02:59:01Z")),
        ("to come, in another zone", Some("2099-01-01T00:00:00+01:00"), None, later("2098-12-31T23:00:00Z")),
        ("no time", Some("tomorrow"), None, Err("\"tomorrow\" is not allowed")),
        ("empty", Some(""), None, Err("\"\" is not allowed")),
        ("ends later", None, Some("2099-01-01T00:00:00Z"), set(false)),
        ("has ended", None, Some("2026-11-20T02:58:59Z"), set(true)),
        ("ends at no time", None, Some("soon"), set(false)),
    ];
    for (sentence, not_before, not_after, want) in rows {
        let annotation = |name: &str| match name {
            NOT_BEFORE => not_before,
            NOT_AFTER => not_after,
            _ => None,
        };
        match (bound(annotation, instant(TIME)), want) {
            (Err(error), Err(want)) => {
                let error = error.to_string();
                assert!(error.contains(NOT_BEFORE) && error.contains(want), "{sentence}: {error}");
            }
            (found, want) => {
                let patch = found.as_ref().ok().and_then(|bound| bound.patch());
                let is_set = matches!(found, Ok(Bound::Set { .. }));
                let wanted = is_set.then(|| json!({"metadata": {"annotations": {NOT_BEFORE: TIME}}}));
                assert_eq!((found.ok(), patch), (want.ok(), wanted), "{sentence}");
            }
        }
    }
}

async fn run(world: &World, names: &[&str], selector: &str, dry_run: bool) -> Result<Changes, CliError> {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    let which = Selection { names, selector: selector.to_owned() };
    let flags = ControllerFlags { seed: "night".into(), ..ControllerFlags::default() };
    let request = Request { which, dry_run };
    skip_missed_with(&world.client, ControllerKind::CronJob, Some("default"), &request, &flags, world.now()).await
}

async fn text(world: &World, names: &[&str], dry_run: bool) -> String {
    render(&run(world, names, "", dry_run).await.unwrap(), Format::Table).to_string()
}

async fn not_before(world: &World, name: &str) -> Value {
    world.get(name).await["metadata"]["annotations"][NOT_BEFORE].clone()
}

/// A second later, the one of the first time is set anew.
#[tokio::test(start_paused = true)]
async fn no_slot_before_now_counts_and_each_cron_job_says_why_not() {
    let world = World::new(&[
        ("plain", json!({"team": "shop"}), false),
        ("past", json!({NOT_BEFORE: "2026-01-01T00:00:00Z"}), false),
        ("later", json!({NOT_BEFORE: "2099-01-01T00:00:00Z"}), false),
        ("wrong", json!({NOT_BEFORE: "tomorrow"}), false),
        ("ended", json!({NOT_AFTER: "2026-11-19T00:00:00Z"}), false),
        ("over", json!({MANAGED: "true"}), true),
        ("in-tree", json!({}), false),
    ])
    .await;
    let status = json!({"status": {"lastScheduleTime": "2026-11-19T02:00:00Z"}});
    let path = format!("{CRON_JOBS}/in-tree/status?fieldManager=kube-controller-manager");
    try_patch(&world.client, &path, &status).await.unwrap();
    let dry = text(&world, &[], true).await;
    assert!(
        dry.starts_with(&format!("5 CronJobs would be given {NOT_BEFORE}, for slots due before 2026-11-20T03:00:00Z.")),
        "{dry}"
    );
    assert!(dry.contains("\n  CronJob default/plain would start no slot before 2026-11-20T03:00:00Z.\n"), "{dry}");
    assert_eq!(not_before(&world, "plain").await, Value::Null, "a dry run writes nothing");
    for now in ["2026-11-20T03:00:00Z", "2026-11-20T03:00:01Z"] {
        let changes = run(&world, &[], "", false).await.unwrap();
        assert!(!changes.is_good(), "one cannot be read");
        let want = format!(
            "5 CronJobs given {NOT_BEFORE}, for slots due before {now}. Nothing changes for 1 CronJob. It failed for 1 CronJob.
  CronJob default/ended starts nothing: its {NOT_AFTER} is earlier, which is not allowed; remove both to start it again.
  CronJob default/in-tree starts no slot before {now}.
  CronJob default/later keeps its {NOT_BEFORE}, which is later: 2099-01-01T00:00:00Z.
  CronJob default/over starts no slot before {now}.
  CronJob default/past starts no slot before {now}.
  CronJob default/plain starts no slot before {now}.
  CronJob default/wrong is not changed: {NOT_BEFORE}: \"tomorrow\" is not allowed (no RFC 3339 time). Use a time in RFC 3339, such \
             as 2027-03-01T09:00:00+01:00.
The in-tree controller ran 1 CronJob last: under it, {NOT_BEFORE} has no effect.
Nothing shows which controller runs 5 CronJobs: under the in-tree one, {NOT_BEFORE} has no effect.
"
        );
        assert_eq!(render(&changes, Format::Table).to_string(), want);
        for (name, want) in [
            ("plain", now),
            ("in-tree", now),
            ("past", now),
            ("ended", now),
            ("over", now),
            ("later", "2099-01-01T00:00:00Z"),
            ("wrong", "tomorrow"),
        ] {
            assert_eq!(not_before(&world, name).await, want, "{name}");
        }
        world.clock.step(TimeDelta::seconds(1));
    }
    let standing = world.standing("plain").await;
    assert_eq!(standing.1["team"], "shop", "nothing else changes");
    assert!(world.standing("over").await.0, "it stays handed over");
    let json: Value =
        serde_json::from_str(&render(&run(&world, &["later"], "", true).await.unwrap(), Format::Json)).unwrap();
    assert_eq!((&json["command"], &json["cronJobs"][0]["outcome"]), (&json!("skip-missed"), &json!("kept")), "{json}");
}

#[tokio::test(start_paused = true)]
async fn slot_that_its_spread_delays_until_later_still_counts() {
    let world = World::new(&[("a", json!({SPREAD: "15m"}), false), ("b", json!({}), false)]).await;
    let text = text(&world, &["a"], false).await;
    let mut cron_job = CronJob::decode(&world.get("a").await.to_string(), &Interner::default()).unwrap();
    PolicyOptions { enabled: true, seed: "night".into() }.apply(&mut cron_job);
    assert!(cron_job.offset() > TimeDelta::zero(), "{:?}", cron_job.offset());
    let first = (instant("2026-11-20T03:00:00Z") - cron_job.offset()).to_rfc3339_opts(SecondsFormat::Secs, true);
    assert_eq!(not_before(&world, "a").await, first);
    assert!(text.contains(&format!("CronJob default/a starts no slot before {first}.")), "{text}");
    assert_eq!(not_before(&world, "b").await, Value::Null, "it was not named");
    assert!(matches!(run(&world, &["b", "x"], "", false).await, Err(CliError::Read(_))), "an unknown name");
    run(&world, &[], "name in (b)", false).await.unwrap();
    assert_eq!(not_before(&world, "b").await, "2026-11-20T03:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn later_bound_of_a_version_that_was_not_judged_stays() {
    let world = World::new(&[("a", json!({}), false)]).await;
    let read = read_text(&world.client, &format!("{CRON_JOBS}/a")).await.unwrap();
    let (leases, flags) = (Leases::of(&[]), ControllerFlags::default());
    let found = Found::read(&read, ControllerKind::CronJob, &leases, &flags).map_err(|(_, cause)| cause).unwrap();
    let later = json!({"metadata": {"annotations": {NOT_BEFORE: "2099-01-01T00:00:00Z"}}});
    try_patch(&world.client, &format!("{CRON_JOBS}/a"), &later).await.unwrap();
    let changed = skip(&world.client, found, instant(TIME), false, &leases, &flags).await;
    let json = serde_json::to_value(&changed).unwrap();
    assert_eq!(json["outcome"], "kept", "{json}");
    assert_eq!(not_before(&world, "a").await, "2099-01-01T00:00:00Z");
}
