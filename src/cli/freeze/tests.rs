#![allow(clippy::unwrap_used)]

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, Config};

use super::*;
use crate::cli::cluster::read_text;
use crate::cli::explain::tests::{instant, post};

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
    let outcome = set_frozen_with(client, ControllerKind::CronJob, namespace, request, &flags, instant(now)).await;
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
             Of 1 CronJob, these runs {held}:\n  moved: 5 runs, the first of 2026-12-18T18:00:00Z\n\
             Not held, because the in-tree controller runs them: reverted.\n\
             Held only if this controller runs them, which nothing shows: plain."
        )
    };
    let dry = Request { dry_run: true, ..request.clone() };
    assert_eq!(set(&client, Some("shop"), &dry, NOW).await, (want("would be", "would be held"), true));
    assert_eq!(annotations(&client, "shop").await, [Value::Null, Value::Null], "nothing was written");
    assert_eq!(set(&client, Some("shop"), &request, NOW).await, (want("is", "are held"), true));
    assert_eq!(annotations(&client, "shop").await, [json!(until), json!("release week")]);
    let shorter = freeze(Until::In(TimeDelta::minutes(90)), None);
    let (text, _) = set(&client, Some("shop"), &shorter, NOW).await;
    let first = text.lines().next().unwrap();
    assert_eq!(
        first,
        "Namespace shop is frozen until Fri 2026-12-18 13:30:01 +00:00. Before, it was frozen until Sun 2026-12-20 00:00:00 +00:00."
    );
    assert_eq!(annotations(&client, "shop").await, [json!("2026-12-18T13:30:01Z"), Value::Null]);
    assert!(text.contains("No run of its 1 CronJob is due until then."), "{text}");
}

#[tokio::test]
async fn thaw_sets_the_bound_to_the_present_second() {
    let client = world().await;
    assert_eq!(set(&client, Some("shop"), &thaw(), NOW).await, ("Namespace shop is not frozen.".to_owned(), true));
    assert_eq!(annotations(&client, "shop").await, [Value::Null, Value::Null]);
    let rows = [
        (
            "a freeze",
            json!({NOT_BEFORE: "2027-01-01T00:00:00Z", REASON: "x"}),
            [json!("2026-12-18T12:00:01Z"), Value::Null],
        ),
        ("a bound that cannot be read", json!({NOT_BEFORE: "soon"}), [json!("2026-12-18T12:00:01Z"), Value::Null]),
        (
            "dates stay, with their reason",
            json!({NOT_BEFORE: "2027-01-01T00:00:00Z", REASON: "closed", EXCLUDE: "Sun"}),
            [json!("2026-12-18T12:00:01Z"), json!("closed")],
        ),
    ];
    for (sentence, before, want) in rows {
        let path = "/api/v1/namespaces/shop";
        cluster::try_patch(&client, path, &json!({"metadata": {"annotations": before}})).await.unwrap();
        let text = "Namespace shop is thawed: no run that was due before now starts. Leave cronjob-controller.dev/not-before until \
                    each CronJob has run: without it, the newest run that the freeze held starts.";
        assert_eq!(set(&client, Some("shop"), &thaw(), NOW).await, (text.to_owned(), true), "{sentence}");
        assert_eq!(annotations(&client, "shop").await, want, "{sentence}");
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
        let (text, is_good) = set(&client, Some("shop"), &request, NOW).await;
        assert!(!is_good, "{text}");
        let start = "Namespace shop is changed, and no run of its CronJobs starts until this is mended: cronjob-controller.dev/exclude: ";
        assert!(text.starts_with(start), "{text}");
        let bound = json!(whole_second(instant(bound)).to_rfc3339_opts(SecondsFormat::AutoSi, true));
        assert_eq!(annotations(&client, "shop").await, [bound, json!("closed")]);
    }
}

#[tokio::test]
async fn thaw_of_what_is_not_frozen_holds_nothing() {
    let client = world().await;
    let path = "/apis/batch/v1/namespaces/shop/cronjobs/moved";
    let spread = json!({"metadata": {"annotations": {"cronjob-controller.dev/spread": "1h"}}});
    cluster::try_patch(&client, path, &spread).await.unwrap();
    let (text, _) = set(&client, Some("shop"), &thaw(), "2026-12-18T12:00:00.250Z").await;
    assert_eq!(text, "Namespace shop is not frozen.");
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

#[tokio::test]
async fn namespaces_are_chosen_by_labels_or_are_all() {
    let client = world().await;
    let by_label =
        |value: &str| Request { selector: Some(format!("team={value}")), ..freeze(at("2027-01-01T00:00:00Z"), None) };
    assert_eq!(set(&client, None, &by_label("none"), NOW).await.0, "There is no such Namespace.");
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
