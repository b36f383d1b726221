#![allow(clippy::unwrap_used)]

use chrono::DateTime;
use schedule::Zone;
use serde_json::{Value, json};

use super::super::REASON;
use super::*;
use crate::api::{Interner, Namespace, Object as _};

/// The restriction of a Namespace with these annotations.
fn restriction(annotations: &Value) -> Option<Arc<Restriction>> {
    let object = json!({
        "metadata": { "name": "ns", "uid": "u", "resourceVersion": "1", "annotations": annotations },
    });
    Namespace::decode(&object.to_string(), &Interner::default()).unwrap().restriction
}

fn cron_job(schedule: &str, annotations: &Value) -> CronJob {
    let object = json!({
        "metadata": {
            "name": "c", "namespace": "ns", "uid": "c", "creationTimestamp": "2026-03-01T00:00:00Z", "annotations": annotations,
        },
        "spec": { "schedule": schedule, "jobTemplate": {} },
    });
    CronJob::decode(&object.to_string(), &Interner::default()).unwrap()
}

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

const OWN: &str = "2026-03-04T00:00:00Z";
const LATER: &str = "2026-03-06T00:00:00Z";

#[test]
fn only_the_bound_and_the_exclusions_of_a_namespace_count() {
    let long = "x".repeat(1000);
    let rows = [
        ("no annotations", json!(null), None),
        ("others", json!({ "team": "a", "cronjob-controller.dev/spread": "1h" }), None),
        ("a reason alone", json!({ REASON: "because" }), None),
        ("a bound", json!({ NOT_BEFORE: OWN }), Some("")),
        (
            "exclusions, and a reason with control characters",
            json!({ EXCLUDE: "Sat", REASON: "a\n\u{1b}[2J b" }),
            Some("a [2J b"),
        ),
        ("a long reason", json!({ EXCLUDE: "Sat", REASON: long }), Some("…")),
    ];
    for (sentence, annotations, want) in rows {
        let found = restriction(&annotations);
        assert_eq!(found.is_some(), want.is_some(), "{sentence}");
        let reason = found.and_then(|found| found.reason.clone()).unwrap_or_default();
        assert!(
            reason.len() <= LONGEST_REASON + 3 && reason.ends_with(want.unwrap_or_default()),
            "{sentence}: {reason:?}"
        );
    }
}

#[test]
fn both_the_cron_job_and_its_namespace_choose_the_slots() {
    let rows = [
        ("no policies", json!({}), json!({ NOT_BEFORE: OWN }), OWN),
        ("the later bound is the Namespace's", json!({ NOT_BEFORE: OWN }), json!({ NOT_BEFORE: LATER }), LATER),
        ("the later bound is the CronJob's", json!({ NOT_BEFORE: LATER }), json!({ NOT_BEFORE: OWN }), LATER),
        (
            "both exclude",
            json!({ EXCLUDE: "03-02,03-03" }),
            json!({ EXCLUDE: "03-04/03-05,2026-03-01/2026-03-02" }),
            LATER,
        ),
    ];
    for (sentence, own, of_namespace, first) in rows {
        let cron_job = cron_job("0 */6 * * *", &own).restricted(&restriction(&of_namespace).unwrap());
        let next = cron_job.schedule(Zone::UTC).unwrap().next_after(time("2026-03-01T18:00:00Z"));
        assert_eq!(next, Some(time(first)), "{sentence}");
    }
}

#[test]
fn restriction_takes_the_place_of_an_earlier_one() {
    let own = cron_job("0 */6 * * *", &json!({ EXCLUDE: "03-01" }));
    let next = |cron_job: &CronJob| cron_job.schedule(Zone::UTC).unwrap().next_after(time("2026-02-28T20:00:00Z"));
    let [early, late] = [OWN, LATER].map(|bound| restriction(&json!({ NOT_BEFORE: bound })).unwrap());
    let frozen = Arc::new(own.restricted(&late));
    assert_eq!(next(&frozen), Some(time(LATER)));
    assert_eq!(next(&Arc::clone(&frozen).in_its_namespace(Some(&early))), Some(time(OWN)), "an earlier bound");
    let thawed = frozen.in_its_namespace(None);
    assert_eq!((next(&thawed), thawed.restriction()), (next(&own), None), "none");
}

#[test]
fn other_policies_and_the_record_of_slots_are_the_cron_jobs_own() {
    let annotations = json!({ "cronjob-controller.dev/spread": "1h", "cronjob-controller.dev/max-concurrent": "2" });
    let own = cron_job("0 * * * *", &annotations);
    let restricted = own.restricted(&restriction(&json!({ NOT_BEFORE: OWN })).unwrap());
    assert_eq!((restricted.offset(), restricted.limits()), (own.offset(), own.limits()));
    assert!(own.same_policies(&restricted));
    let now = time("2026-03-02T00:00:00Z");
    assert_eq!(restricted.counted_at(now), own.counted_at(now));
    let plain = cron_job("0 * * * *", &json!({}));
    let restricted = plain.restricted(&restriction(&json!({ NOT_BEFORE: OWN })).unwrap());
    assert_eq!(
        (restricted.counted_at(now), restricted.recount(&restricted.status, Zone::UTC, now)),
        (plain.counted_at(now), None)
    );
}

#[test]
fn restriction_that_cannot_be_read_holds_and_says_where_it_is() {
    let rows = [
        (
            "no time",
            json!({ NOT_BEFORE: "tomorrow" }),
            "0 * * * *",
            "on the Namespace: cronjob-controller.dev/not-before: \"tomorrow\"",
        ),
        (
            "no dates",
            json!({ EXCLUDE: "Someday" }),
            "0 * * * *",
            "on the Namespace: cronjob-controller.dev/exclude: \"Someday\"",
        ),
        (
            "one of two",
            json!({ EXCLUDE: "Sat", NOT_BEFORE: "" }),
            "0 * * * *",
            "on the Namespace: cronjob-controller.dev/not-before",
        ),
        (
            "dates beside an interval",
            json!({ EXCLUDE: "Sat" }),
            "@every 1h",
            "on the Namespace: cronjob-controller.dev/exclude: \"Sat\" is not allowed with @every",
        ),
    ];
    for (sentence, annotations, schedule, message) in rows {
        let restricted = cron_job(schedule, &json!({})).restricted(&restriction(&annotations).unwrap());
        let error = restricted.policy().unwrap_err().to_string();
        assert!(error.starts_with(message), "{sentence}: {error}");
        assert!(restricted.schedule(Zone::UTC).is_none(), "{sentence}");
    }
    let own = cron_job("0 * * * *", &json!({ NOT_BEFORE: "never" }))
        .restricted(&restriction(&json!({ NOT_BEFORE: "" })).unwrap());
    let error = own.policy().unwrap_err().to_string();
    assert!(
        error.starts_with("cronjob-controller.dev/not-before: \"never\""),
        "the CronJob's own is told first: {error}"
    );
}
