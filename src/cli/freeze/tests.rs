#![allow(clippy::unwrap_used)]

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, Config, discovery, kinds};
use chrono::SecondsFormat;
use futures::FutureExt as _;
use serde_json::json;

use super::*;
use crate::api::crd;
use crate::api::policy::{NOT_BEFORE, REASON};
use crate::cli::cluster::read_text;
use crate::cli::explain::tests::{facts, instant, job, post};
use crate::client;
use crate::controller::tests::wire::{Fate, Verb, Wire};

const NOW: &str = "2026-12-18T12:00:00.250Z";

/// A cluster with the Namespaces `default` and `shop`, which has a CronJob that is handed over, one that the in-tree controller runs,
/// and one of which nothing says who runs it.
async fn world() -> Client {
    let client = ApiServer::new(Config::builtin(TestClock::new(instant(NOW)))).client();
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "blue"}}});
    post(&client, "/api/v1/namespaces", &namespace).await;
    let managed = json!({"cronjob-controller.dev/managed": "true"});
    for (name, suspend, annotations) in
        [("moved", true, managed.clone()), ("reverted", false, managed), ("plain", false, json!({}))]
    {
        let template = json!({"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}}});
        let object = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name, "annotations": annotations},
            "spec": {"schedule": "0 */6 * * *", "suspend": suspend, "jobTemplate": template},
        });
        post(&client, "/apis/batch/v1/namespaces/shop/cronjobs", &object).await;
    }
    client
}

async fn set(client: &Client, namespace: Option<&str>, request: &Request, now: &str) -> (String, bool) {
    let flags = ControllerFlags::default();
    let now = (instant(now), Instant::now());
    let outcome = set_frozen_with(client, ControllerKind::CronJob, namespace, request, &flags, now).await;
    let outcome = outcome.unwrap();
    (outcome.lines().join("\n"), outcome.is_good())
}

/// The two annotations of a Namespace.
async fn annotations(client: &Client, name: &str) -> [Value; 2] {
    let text = read_text(client, &format!("/api/v1/namespaces/{name}")).await.unwrap();
    let object: Value = serde_json::from_str(&text).unwrap();
    [NOT_BEFORE, REASON].map(|annotation| object["metadata"]["annotations"][annotation].clone())
}

fn freeze(until: Until, reason: Option<&str>) -> Request {
    let change = Change::Freeze { until, reason: reason.map(str::to_owned) };
    Request { change, selector: None, dry_run: false }
}

fn thaw() -> Request {
    Request { change: Change::Thaw, selector: None, dry_run: false }
}

fn merge(mut object: Value, change: &Value) -> Value {
    object.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    object
}

fn at(time: &str) -> Until {
    Until::At(Given::Instant(instant(time)))
}

#[tokio::test]
async fn freeze_writes_the_annotations_and_says_what_it_holds() {
    let client = world().await;
    let until = "2026-12-20T00:00:00Z";
    let request = freeze(at(until), Some("release week"));
    let want = |verb: &str, held: &str| {
        format!(
            "Namespace shop {verb} frozen until Sun 2026-12-20 00:00:00 +00:00: \"release week\".\n\
             Of 1 CronJob, these runs {held}:\n  moved: 5 runs, the first of Fri 2026-12-18 18:00:00 +00:00\n\
             Not frozen, because the in-tree controller runs them: reverted.\n\
             Frozen only if this controller runs them, which nothing shows: plain."
        )
    };
    let dry = Request { dry_run: true, ..request.clone() };
    assert_eq!(set(&client, Some("shop"), &dry, NOW).await, (want("would be", "would be frozen"), true));
    assert_eq!(annotations(&client, "shop").await, [Value::Null, Value::Null], "nothing was written");
    assert_eq!(set(&client, Some("shop"), &request, NOW).await, (want("is", "are frozen"), true));
    assert_eq!(annotations(&client, "shop").await, [json!(until), json!("release week")]);
    set(&client, Some("shop"), &thaw(), NOW).await;
    let short = freeze(Until::In(TimeDelta::minutes(90)), None);
    let (text, _) = set(&client, Some("shop"), &short, "2026-12-18T12:00:05Z").await;
    let first = text.lines().next().unwrap();
    assert_eq!(first, "Namespace shop is frozen until Fri 2026-12-18 13:30:05 +00:00.");
    assert_eq!(annotations(&client, "shop").await, [json!("2026-12-18T13:30:05Z"), Value::Null]);
    assert!(text.contains("No run of its 1 CronJob is due until then."), "{text}");
}

/// A case, the annotations of the Namespace, a reason; what is said of a freeze until the twentieth, and the annotations after it, if it
/// succeeds.
type Over<'a> = (&'a str, Value, Option<&'a str>, &'a [&'a str], Option<[Value; 2]>);

#[tokio::test]
async fn freeze_over_another_ends_it_no_sooner_and_says_what_it_replaces() {
    let end = "2026-12-20T00:00:00Z";
    let [old, new] = [json!("release week"), json!("audit")];
    let rows: [Over<'_>; 9] = [
        (
            "a later end stays",
            json!({NOT_BEFORE: "2026-12-24T00:00:00Z", REASON: "release week"}),
            Some("audit"),
            &[
                "Namespace shop is not changed: it is already frozen until Thu 2026-12-24 00:00:00 +00:00: \"release week\". Thaw it first \
               to end that sooner.",
            ],
            None,
        ),
        (
            "also beside dates that cannot be read",
            json!({NOT_BEFORE: "2026-12-24T00:00:00Z", EXCLUDE: "Blursday"}),
            None,
            &[
                "Namespace shop is not changed: it is already frozen until Thu 2026-12-24 00:00:00 +00:00. Thaw it first to end that sooner.",
            ],
            None,
        ),
        (
            "an earlier end, and its reason stays",
            json!({NOT_BEFORE: "2026-12-19T00:00:00Z", REASON: "release week"}),
            None,
            &[
                "Namespace shop is frozen until Sun 2026-12-20 00:00:00 +00:00: \"release week\". Before, it was frozen until Sat 2026-12-19 \
               00:00:00 +00:00.",
            ],
            Some([json!(end), old.clone()]),
        ),
        (
            "an earlier end, and another reason",
            json!({NOT_BEFORE: "2026-12-19T00:00:00Z", REASON: "release week"}),
            Some("audit"),
            &[
                "Namespace shop is frozen until Sun 2026-12-20 00:00:00 +00:00: \"audit\". Before, it was frozen until Sat 2026-12-19 \
               00:00:00 +00:00: \"release week\".",
            ],
            Some([json!(end), new.clone()]),
        ),
        (
            "the same",
            json!({NOT_BEFORE: end, REASON: "release week"}),
            None,
            &["Namespace shop is frozen until Sun 2026-12-20 00:00:00 +00:00: \"release week\"."],
            Some([json!(end), old.clone()]),
        ),
        (
            "a freeze that is over, and its reason goes",
            json!({NOT_BEFORE: "2026-12-01T00:00:00Z", REASON: "release week"}),
            None,
            &["Namespace shop is frozen until Sun 2026-12-20 00:00:00 +00:00."],
            Some([json!(end), Value::Null]),
        ),
        (
            "dates keep their reason",
            json!({EXCLUDE: "Sun", REASON: "release week"}),
            None,
            &["Namespace shop is frozen until Sun 2026-12-20 00:00:00 +00:00: \"release week\"."],
            Some([json!(end), old.clone()]),
        ),
        (
            "a reason in the place of that of dates",
            json!({EXCLUDE: "Sun", REASON: "release week"}),
            Some("audit"),
            &[
                "Namespace shop is frozen until Sun 2026-12-20 00:00:00 +00:00: \"audit\". Before, it had this reason: \"release week\".",
            ],
            Some([json!(end), new]),
        ),
        (
            "a bound that cannot be read",
            json!({NOT_BEFORE: "soon", REASON: "release week"}),
            None,
            &[
                "Namespace shop is frozen until Sun 2026-12-20 00:00:00 +00:00: \"release week\".",
                "Before, all its CronJobs were held by what cannot be read: cronjob-controller.dev/not-before: \"soon\".",
            ],
            Some([json!(end), old]),
        ),
    ];
    for (sentence, before, reason, want, after) in rows {
        let client = world().await;
        let before = json!({"metadata": {"annotations": before}});
        cluster::try_patch(&client, "/api/v1/namespaces/shop", &before).await.unwrap();
        let annotated = annotations(&client, "shop").await;
        let (text, is_good) = set(&client, Some("shop"), &freeze(at(end), reason), NOW).await;
        assert_eq!(is_good, after.is_some(), "{sentence}: {text}");
        for (line, want) in text.lines().zip(want) {
            assert!(line.starts_with(want), "{sentence}: {line}");
        }
        let first = text.lines().next().unwrap();
        assert_eq!(first, want[0], "{sentence}");
        assert_eq!(annotations(&client, "shop").await, after.unwrap_or(annotated), "{sentence}");
    }
}

#[tokio::test]
async fn what_a_thaw_replaces_is_said() {
    let client = world().await;
    let before = json!({"metadata": {"annotations": {NOT_BEFORE: "soon", EXCLUDE: "Blursday"}}});
    cluster::try_patch(&client, "/api/v1/namespaces/shop", &before).await.unwrap();
    let (text, is_good) = set(&client, Some("shop"), &thaw(), NOW).await;
    let lines: Vec<&str> = text.lines().collect();
    assert!(!is_good && lines[0].contains("cronjob-controller.dev/exclude"), "{text}");
    assert!(lines[1].contains("cronjob-controller.dev/not-before: \"soon\""), "{text}");
}

#[tokio::test]
async fn times_of_a_freeze_are_in_one_zone() {
    let client = world().await;
    let flags = ControllerFlags { zone: Zone::load("Asia/Tokyo", Zone::UTC).unwrap(), ..ControllerFlags::default() };
    let (request, now) = (freeze(at("2026-12-20T00:00:00Z"), None), (instant(NOW), Instant::now()));
    let done = set_frozen_with(&client, ControllerKind::CronJob, Some("shop"), &request, &flags, now).await.unwrap();
    let text = done.lines().join("\n");
    assert!(text.contains("until Sun 2026-12-20 09:00:00 +09:00"), "{text}");
    assert!(text.contains("the first of Sat 2026-12-19 00:00:00 +09:00"), "{text}");
}

/// A case, the annotations of the Namespace, a change of the CronJob, its Jobs by the day of their slots; the first run that a freeze
/// of two days holds, and how many. The CronJob runs at two, and it is 10:00 on the 22nd.
type Holds<'a> = (&'a str, Value, Value, &'a [(u32, Option<&'a str>)], usize, &'a str);

#[test]
fn freeze_counts_what_waits_and_leaves_out_dates() {
    let day = |of: u32| format!("2026-11-{of:02}T02:00:00Z");
    let with = |policy: &str, annotations: Value| {
        json!({
            "metadata": {"annotations": annotations}, "spec": {"concurrencyPolicy": policy},
            "status": {"lastScheduleTime": day(19), "active": [{"name": "cj", "uid": "j-19"}]},
        })
    };
    let none = || json!({});
    let runs: &[(u32, Option<&str>)] = &[(19, None)];
    let ran = json!({"status": {"lastScheduleTime": day(22)}});
    let backlog = json!({"cronjob-controller.dev/backlog": "2"});
    let no_backlog = json!({"cronjob-controller.dev/backlog": "0"});
    let limit = json!({"cronjob-controller.dev/max-concurrent": "1"});
    let rows: [Holds<'_>; 11] = [
        ("nothing waits", none(), ran.clone(), &[(22, Some("Complete"))], 2, "23"),
        ("Forbid holds the newest", none(), with("Forbid", none()), runs, 3, "22"),
        ("a backlog", none(), with("Forbid", backlog), runs, 4, "21"),
        ("no backlog", none(), with("Forbid", no_backlog), runs, 2, "23"),
        ("max-concurrent", none(), with("Allow", limit), runs, 3, "22"),
        ("a run that is due", none(), with("Allow", none()), &[(19, Some("Complete"))], 3, "22"),
        ("a suspension", none(), json!({"spec": {"suspend": true}}), &[], 0, ""),
        ("dates", json!({EXCLUDE: "2026-11-23"}), ran.clone(), &[(22, Some("Complete"))], 1, "24"),
        (
            "dates beside a bound that cannot be read",
            json!({NOT_BEFORE: "soon", EXCLUDE: "2026-11-23"}),
            ran.clone(),
            &[(22, Some("Complete"))],
            1,
            "24",
        ),
        ("a freeze that is on", json!({NOT_BEFORE: "2026-11-23T06:00:00Z"}), with("Forbid", none()), runs, 2, "23"),
        ("a thaw", json!({NOT_BEFORE: "2026-11-22T06:00:00Z"}), with("Forbid", none()), runs, 2, "23"),
    ];
    for (sentence, annotations, change, jobs, runs, first) in rows {
        let metadata = json!({"name": "shop", "uid": "", "annotations": annotations});
        let found = Found::read(&json!({ "metadata": metadata }).to_string()).unwrap();
        let jobs = jobs.iter().map(|(of, end)| job(&day(*of), "cj", *end)).collect();
        let facts = Facts { in_charge: InCharge::Own, ..facts(&change, jobs) };
        let (request, flags) = (freeze(at("2026-11-24T10:00:00Z"), None), ControllerFlags::default());
        let now = instant("2026-11-22T10:00:00Z");
        let by_namespace = HashMap::from([("shop".to_owned(), vec![facts])]);
        let all = CronJobs { kind: ControllerKind::CronJob, by_namespace, not_read: Vec::new() };
        let frozen = request.frozen(&request.plan(&found, &flags, now), &found, &all, &flags, now);
        let held = &frozen.held[0];
        let first = (!first.is_empty()).then(|| instant(&format!("2026-11-{first}T02:00:00Z")));
        assert_eq!((held.runs, held.first.map(|first| first.to_utc())), (runs, first), "{sentence}");
    }
}

#[tokio::test]
async fn thaw_sets_the_bound_to_the_present_second() {
    let client = world().await;
    assert_eq!(set(&client, Some("shop"), &thaw(), NOW).await, ("Namespace shop is not frozen.".to_owned(), true));
    assert_eq!(annotations(&client, "shop").await, [Value::Null, Value::Null]);
    let rows = [
        ("a freeze", json!({NOT_BEFORE: "2027-01-01T00:00:00Z", REASON: "x"}), Value::Null, ""),
        (
            "a bound that cannot be read, and its reason",
            json!({NOT_BEFORE: "soon", REASON: "x"}),
            Value::Null,
            "\nBefore, all its CronJobs were held by what cannot be read: cronjob-controller.dev/not-before: \"soon\".",
        ),
        (
            "dates stay, with their reason",
            json!({NOT_BEFORE: "2027-01-01T00:00:00Z", REASON: "two  words", EXCLUDE: "Sun"}),
            json!("two  words"),
            " cronjob-controller.dev/exclude (Sun) goes on to hold.",
        ),
        (
            "dates beside a bound that cannot be read",
            json!({NOT_BEFORE: "soon", REASON: "closed", EXCLUDE: "Sun"}),
            json!("closed"),
            " cronjob-controller.dev/exclude (Sun) goes on to hold.\nBefore, all its CronJobs were held by what cannot be \
             read: cronjob-controller.dev/not-before: \"soon\".",
        ),
    ];
    for (sentence, before, reason, more) in rows {
        let before = merge(json!({REASON: null, EXCLUDE: null}), &before);
        let path = "/api/v1/namespaces/shop";
        cluster::try_patch(&client, path, &json!({"metadata": {"annotations": before}})).await.unwrap();
        let text = "Namespace shop is thawed: no run that was due before now starts. Leave cronjob-controller.dev/not-before until \
                    each CronJob has run: without it, the newest frozen run starts.";
        assert_eq!(set(&client, Some("shop"), &thaw(), NOW).await, (format!("{text}{more}"), true), "{sentence}");
        assert_eq!(annotations(&client, "shop").await, [json!("2026-12-18T12:00:01Z"), reason], "{sentence}");
    }
}

#[tokio::test]
async fn dates_that_cannot_be_read_hold_on_and_keep_their_reason() {
    for (request, bound) in
        [(thaw(), NOW), (freeze(at("2027-01-01T00:00:00Z"), Some("closed")), "2027-01-01T00:00:00Z")]
    {
        let client = world().await;
        let before = json!({NOT_BEFORE: "2026-12-20T00:00:00Z", REASON: "closed", EXCLUDE: "Blursday"});
        let path = "/api/v1/namespaces/shop";
        cluster::try_patch(&client, path, &json!({"metadata": {"annotations": before}})).await.unwrap();
        let dry = Request { dry_run: true, ..request.clone() };
        let (text, is_good) = set(&client, Some("shop"), &dry, NOW).await;
        let start = "Namespace shop would be changed, and no run of its CronJobs would start until this is mended: ";
        assert!(!is_good && text.starts_with(start), "{text}");
        assert_eq!(annotations(&client, "shop").await[0], json!("2026-12-20T00:00:00Z"), "nothing was written");
        let (text, is_good) = set(&client, Some("shop"), &request, NOW).await;
        assert!(!is_good, "{text}");
        let start = "Namespace shop is changed, and no run of its CronJobs starts until this is mended: cronjob-controller.dev/exclude: ";
        assert!(text.starts_with(start), "{text}");
        let bound = json!(whole_second(instant(bound)).to_rfc3339_opts(SecondsFormat::AutoSi, true));
        assert_eq!(annotations(&client, "shop").await, [bound, json!("closed")]);
    }
}

#[tokio::test]
async fn thaw_names_the_runs_that_it_drops_of_a_spread() {
    let path = "/apis/batch/v1/namespaces/shop/cronjobs/moved";
    let spread = json!({"metadata": {"annotations": {"cronjob-controller.dev/spread": "1h"}}});
    let frozen = json!({"metadata": {"annotations": {NOT_BEFORE: "2027-01-01T00:00:00Z"}}});
    let nothing = json!({});
    let rows = [
        ("it is not frozen", &nothing, false, None),
        ("it is frozen", &frozen, false, Some("Of 1 CronJob, these runs do not start:")),
        ("a dry run", &frozen, true, Some("Of 1 CronJob, these runs would not start:")),
    ];
    for (sentence, namespace, dry_run, want) in rows {
        let client = world().await;
        cluster::try_patch(&client, path, &spread).await.unwrap();
        cluster::try_patch(&client, "/api/v1/namespaces/shop", namespace).await.unwrap();
        let (text, _) = set(&client, Some("shop"), &Request { dry_run, ..thaw() }, NOW).await;
        assert_eq!(text.lines().nth(1), want, "{sentence}: {text}");
    }
}

#[tokio::test]
async fn freeze_holds_the_cron_jobs_of_every_kind() {
    let clock = TestClock::new(instant(NOW));
    let mut resources = kinds::all();
    resources.extend(crd::all().iter().map(|definition| kinds::custom(definition).unwrap()));
    let config = Config { discovery: Some(discovery::respond), ..Config::new(clock, resources) };
    let server = ApiServer::new(config);
    let (client, wire) = (server.client(), Wire::new());
    let spec = |template: Value| json!({"schedule": "0 */6 * * *", "jobTemplate": template});
    let template = json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
    }}}});
    for kind in [ControllerKind::CronJob, ControllerKind::Tutorial] {
        let annotations = json!({"cronjob-controller.dev/managed": "true"});
        let mut object = json!({
            "apiVersion": kind.parent.api_version(), "kind": kind.parent.kind,
            "metadata": {"name": "same", "annotations": annotations}, "spec": spec(template.clone()),
        });
        object["spec"]["suspend"] = (kind == ControllerKind::CronJob).into();
        post(&client, &kind.parent.path(Some("default")), &object).await;
    }
    let freeze = Request { dry_run: true, ..freeze(Until::In(TimeDelta::hours(12)), None) };
    let flags = ControllerFlags::default();
    let lines = async |client: &Client, kind| {
        let now = (instant(NOW), Instant::now());
        let done = set_frozen_with(client, kind, Some("default"), &freeze, &flags, now).await;
        done.unwrap().lines().split_off(1)
    };
    let runs = "2 runs, the first of Fri 2026-12-18 18:00:00 +00:00";
    let rows = [
        (ControllerKind::CronJob, "  same: ", "  CronJob.batch.tutorial.kubebuilder.io/same: "),
        (ControllerKind::Tutorial, "  CronJob.batch/same: ", "  same: "),
    ];
    for (kind, first, second) in rows {
        let want = [
            "Of 2 CronJobs, these runs would be frozen:".to_owned(),
            format!("{first}{runs}"),
            format!("{second}{runs}"),
        ];
        assert_eq!(lines(&client, kind).await, want, "{kind}");
    }
    wire.judge(|ask| match &*ask.resource {
        "apiexamples" => Fate::Denied(403, "Forbidden", "apiexamples is forbidden"),
        _ => Fate::Pass,
    });
    let refused = client::on_service(wire.around(server.into_service()));
    let found = lines(&refused, ControllerKind::CronJob).await;
    let group = ControllerKind::ApiExample.parent.group;
    let want = format!("Not counted, because it cannot be read: ApiExample.{group}: apiexamples is forbidden");
    assert_eq!((found.len(), found.last()), (4, Some(&want)));
}

/// RBAC refuses a kind before the API server looks whether it serves it.
#[tokio::test]
async fn kind_that_is_not_installed_is_not_said_to_be_unreadable() {
    for (sentence, is_installed, unread) in [("installed", true, 1), ("not installed", false, 0)] {
        let mut resources = kinds::all();
        let custom = crd::all();
        let custom = custom.iter().filter(|_| is_installed).map(|definition| kinds::custom(definition).unwrap());
        resources.extend(custom);
        let config = Config::new(TestClock::new(instant(NOW)), resources);
        let server = ApiServer::new(Config { discovery: Some(discovery::respond), ..config });
        let wire = Wire::new();
        wire.judge(|ask| match &*ask.resource {
            "apiexamples" => Fate::Denied(403, "Forbidden", "apiexamples is forbidden"),
            _ => Fate::Pass,
        });
        let refused = client::on_service(wire.around(server.into_service()));
        let (flags, now) = (ControllerFlags::default(), (instant(NOW), Instant::now()));
        let (kind, request) = (ControllerKind::CronJob, freeze(at("2026-12-20T00:00:00Z"), None));
        let outcome = set_frozen_with(&refused, kind, Some("default"), &request, &flags, now).await.unwrap();
        assert_eq!(outcome.not_read.len(), unread, "{sentence}: {:?}", outcome.not_read);
    }
}

#[tokio::test(start_paused = true)]
async fn thaw_takes_the_later_of_two_clocks() {
    let server = "2026-12-18T12:00:00.900Z";
    let rows = [
        ("the same", server, "2026-12-18T12:00:01Z"),
        ("its own is ahead", "2026-12-18T12:00:01.500Z", "2026-12-18T12:00:01.5Z"),
        ("its own is behind", "2026-12-18T11:59:59.500Z", "2026-12-18T12:00:01Z"),
        ("its own is wrong", "2026-12-18T15:00:00Z", "2026-12-18T12:00:01Z"),
    ];
    for (sentence, own, want) in rows {
        let client = ApiServer::new(Config::builtin(TestClock::new(instant(server)))).client();
        assert_eq!(cluster::latest_now(&client, &*TestClock::new(instant(own))).await, instant(want), "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn bound_of_a_thaw_is_the_time_of_its_write() {
    let end = "2027-01-01T00:00:00Z";
    let rows = [
        ("a thaw", thaw(), "2026-12-18T12:00:21Z"),
        (
            "the end of a freeze is the same everywhere",
            freeze(Until::In(TimeDelta::days(30)), None),
            "2027-01-17T12:00:01Z",
        ),
    ];
    for (sentence, request, want) in rows {
        let client = world().await;
        set(&client, Some("shop"), &freeze(at(end), None), NOW).await;
        let read = (instant(NOW), Instant::now());
        tokio::time::advance(std::time::Duration::from_secs(20)).await;
        let flags = ControllerFlags::default();
        let done = set_frozen_with(&client, ControllerKind::CronJob, Some("shop"), &request, &flags, read).await;
        assert!(done.unwrap().is_good(), "{sentence}");
        assert_eq!(annotations(&client, "shop").await[0], json!(want), "{sentence}");
    }
}

/// Someone else writes between the read and the write.
#[tokio::test]
async fn freeze_that_came_meanwhile_is_judged_too() {
    let (until, later) = ("2026-12-20T00:00:00Z", "2026-12-24T00:00:00Z");
    let [ours, theirs] = [json!("audit"), json!("release week")];
    let rows = [
        (
            "a longer one",
            json!({NOT_BEFORE: later, REASON: theirs}),
            1,
            [json!(later), theirs.clone()],
            "already frozen",
        ),
        ("a label", json!({"team": "blue"}), 1, [json!(until), ours.clone()], "is frozen until"),
        ("each time", json!({"team": "blue"}), 100, [Value::Null, Value::Null], "is not changed: "),
    ];
    for (sentence, change, times, want, says) in rows {
        let server = ApiServer::new(Config::builtin(TestClock::new(instant(NOW))));
        let (other, wire, mut left) = (server.clone(), Wire::new(), times);
        wire.judge(move |ask| {
            if ask.is(Verb::Patch, "namespaces") && left > 0 {
                left -= 1;
                let mut change = json!({ "metadata": { "annotations": change } });
                change["metadata"]["annotations"]["number"] = json!(left.to_string());
                let request = http::Request::patch("/api/v1/namespaces/default")
                    .header("content-type", "application/merge-patch+json")
                    .body(change.to_string().into_bytes().into());
                let answer = other.handle(request.unwrap()).now_or_never();
                assert!(answer.expect("the server never waits").status().is_success());
            }
            Fate::Pass
        });
        let client = client::on_service(wire.around(server.into_service()));
        let (text, is_good) = set(&client, Some("default"), &freeze(at(until), Some("audit")), NOW).await;
        assert!(text.contains(says), "{sentence}: {text}");
        assert_eq!(annotations(&client, "default").await, want, "{sentence}");
        assert_eq!(is_good, sentence == "a label", "{sentence}: {text}");
    }
}

#[tokio::test]
async fn namespaces_are_chosen_by_labels_or_are_all() {
    let client = world().await;
    let by_label =
        |value: &str| Request { selector: Some(format!("team={value}")), ..freeze(at("2027-01-01T00:00:00Z"), None) };
    let none = set(&client, None, &by_label("none"), NOW).await;
    assert_eq!(none, ("No Namespace matches team=none.".to_owned(), false));
    set(&client, None, &Request { selector: Some("team".to_owned()), ..freeze(at("2027-01-01T00:00:00Z"), None) }, NOW)
        .await;
    assert_eq!(annotations(&client, "default").await[0], Value::Null);
    assert_eq!(annotations(&client, "shop").await[0], json!("2027-01-01T00:00:00Z"));
    let (text, _) = set(&client, None, &freeze(at("2027-02-01T00:00:00Z"), None), NOW).await;
    assert_eq!(annotations(&client, "default").await[0], json!("2027-02-01T00:00:00Z"));
    assert!(text.contains("Namespace default is frozen") && text.contains("Namespace shop is frozen"), "{text}");
}

#[tokio::test]
async fn freeze_that_is_over_is_refused() {
    let client = world().await;
    let (text, is_good) = set(&client, Some("shop"), &freeze(at("2026-12-18T12:00:00Z"), None), NOW).await;
    assert_eq!(
        (text.as_str(), is_good),
        ("Namespace shop is not changed: Fri 2026-12-18 12:00:00 +00:00 has passed.", false)
    );
    assert_eq!(annotations(&client, "shop").await[0], Value::Null);
}

#[test]
fn paused_cron_job_has_no_run_that_a_freeze_holds() {
    let slot = "2026-12-18T06:00:00Z";
    let rows = [
        ("paused", json!({"cronjob-controller.dev/pause-after-failures": "1"}), Some("paused")),
        ("it fails, and is not paused", json!({}), None),
    ];
    for (sentence, annotations, want) in rows {
        let change = json!({
            "metadata": {"annotations": annotations}, "spec": {"schedule": "0 */6 * * *"},
            "status": {"lastScheduleTime": slot},
        });
        let facts = facts(&change, vec![job(slot, "cj", Some("Failed"))]);
        assert_eq!(idle(&facts, None, Zone::UTC, instant(NOW)), want, "{sentence}");
    }
    let held = |name: &str, runs, idle| Held { name: name.to_owned(), runs, first: None, idle };
    let frozen = |held| Frozen {
        namespace: "shop".to_owned(),
        summary: "Namespace shop would be frozen.".to_owned(),
        replaced: None,
        is_freeze: true,
        failed: false,
        held,
        not_held: Vec::new(),
        not_known: Vec::new(),
    };
    let nothing = "Nothing starts without a freeze either: a (paused).".to_owned();
    assert_eq!(&frozen(vec![held("a", 0, Some("paused"))]).lines(true)[1..], std::slice::from_ref(&nothing));
    let lines = frozen(vec![held("a", 0, Some("paused")), held("b", 3, None)]).lines(true);
    let want = ["Of 2 CronJobs, these runs would be frozen:".to_owned(), "  b: 3 runs".to_owned(), nothing];
    assert_eq!(lines[1..], want);
}
