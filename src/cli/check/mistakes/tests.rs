#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

#[test]
fn common_mistakes_of_a_schedule_are_found() {
    let rows: [(&str, &[(Code, &str)]); 38] = [
        ("* */2 * * *", &[(Code::EveryMinute, "the second field (*/2)")]),
        ("*/1 3 * * *", &[(Code::EveryMinute, "the second field (3)")]),
        ("0-59 */2 * * *", &[(Code::EveryMinute, "the second field (*/2)")]),
        ("00-59 3 * * *", &[(Code::EveryMinute, "the second field (3)")]),
        ("0-59/1 3 * * *", &[(Code::EveryMinute, "the second field (3)")]),
        ("0/1 3 * * *", &[(Code::EveryMinute, "the second field (3)")]),
        ("* * 1 * *", &[(Code::EveryMinute, "every minute of the days that it names")]),
        ("* * * * 1", &[(Code::EveryMinute, "every minute of the days that it names")]),
        ("* * * * 1-5", &[]),
        ("0 0 1/2 * *", &[(Code::UnevenStep, "1/2 starts over with each month: it names day 1, 3")]),
        ("0 0 1-31/2 * *", &[(Code::UnevenStep, "1-31/2 starts over")]),
        ("0 0 * * SUN/2", &[(Code::UnevenStep, "SUN/2 starts over with each week: it names Sunday, Tuesday")]),
        ("0 0 * * 0-6/2", &[(Code::UnevenStep, "0-6/2 starts over with each week")]),
        ("0/7 * * * *", &[(Code::UnevenStep, "0/7 does not divide 60")]),
        ("0 0-23/5 * * *", &[(Code::UnevenStep, "0-23/5 does not divide 24")]),
        ("*/59 * * * *", &[(Code::UnevenStep, "is 1 minute before")]),
        ("0 */2 * * *", &[]),
        ("* * * * *", &[]),
        ("0 0 13 * 5", &[(Code::DayOrWeekday, "the third field (13) or the fifth (5)")]),
        ("* */1 * * *", &[(Code::EveryMinute, "the second field (*/1)")]),
        (
            "0 0 */2 * 1",
            &[
                (Code::DayOrWeekday, "the third field (*/2) or the fifth (1)"),
                (Code::UnevenStep, "29 and 31, and then day 1 of"),
            ],
        ),
        ("0 0 */14 * *", &[(Code::UnevenStep, "names day 1, 15 and 29, and then day 1 of the next month")]),
        ("0 0 */31 * *", &[(Code::UnevenStep, "so only day 1 of each month matches")]),
        ("0 0 * * */2", &[(Code::UnevenStep, "it names Sunday, Tuesday, Thursday and Saturday, and then Sunday")]),
        ("0 0 * * */7", &[(Code::UnevenStep, "so only Sunday matches")]),
        ("0 0 */1 * */1", &[]),
        ("0 0 1-7/2 * *", &[]),
        ("0 0 13 * *", &[]),
        (
            "*/7 * * * *",
            &[(
                Code::UnevenStep,
                "*/7 does not divide 60: it starts over with each hour, and the last run of one is 4 minutes before",
            )],
        ),
        ("0 */5 * * *", &[(Code::UnevenStep, "is 4 hours before")]),
        (
            "*/90 * * * *",
            &[(Code::UnevenStep, "the step 90 is more than the 60 minutes of the hour, so only the first minute")],
        ),
        ("*/15 */6 * */3 *", &[]),
        (
            "0 0 31 * *",
            &[(Code::ShortMonths, "has no run in February, April, June, September, November: the third field (31)")],
        ),
        ("0 0 30 * *", &[(Code::ShortMonths, "has no run in February:")]),
        ("0 0 29 * *", &[(Code::ShortMonths, "has no run in February, except in a leap year:")]),
        ("0 0 31 1,12 *", &[]),
        ("0 0 31 2 *", &[]),
        ("TZ=Asia/Tokyo 0 0 1,31 * *", &[]),
    ];
    let today = "2026-11-22T00:00:00Z".parse().unwrap();
    for (text, want) in rows {
        let found = of_schedule(text, today);
        let same = found.len() == want.len()
            && found.iter().zip(want).all(|(fault, (code, part))| fault.code == *code && fault.message.contains(part));
        assert!(same, "{text}: {found:#?}");
    }
    assert_eq!(of_schedule("@daily", today), []);
}

#[test]
fn common_mistakes_of_a_spec_are_found_at_their_fields() {
    let rows = [
        (json!({}), vec![]),
        (
            json!({"concurrencyPolicy": "Forbid"}),
            vec![
                (Code::ForbidWithoutDeadline, "spec.concurrencyPolicy"),
                (Code::NoActiveDeadline, "spec.jobTemplate.spec"),
            ],
        ),
        (
            json!({
                "concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 60,
                "jobTemplate": {"spec": {"activeDeadlineSeconds": 600}},
            }),
            vec![],
        ),
        (json!({"concurrencyPolicy": "Replace"}), vec![]),
        (
            json!({"failedJobsHistoryLimit": 0, "successfulJobsHistoryLimit": 0}),
            vec![
                (Code::NoHistory, "spec.failedJobsHistoryLimit"),
                (Code::NoHistory, "spec.successfulJobsHistoryLimit"),
            ],
        ),
    ];
    for (spec, want) in rows {
        let found = of_rest(&json!({ "spec": spec }), None, false);
        let found: Vec<(Code, &str)> = found.iter().map(|fault| (fault.code, fault.field.as_str())).collect();
        assert_eq!(found, want, "{spec}");
    }
}

#[test]
fn forbid_beside_a_greater_limit_is_no_forbid() {
    let object = json!({"spec": {"concurrencyPolicy": "Forbid"}});
    for (most, deadline, hang) in [
        (None, "is Forbid, without", "if it hangs"),
        (Some(1), "is Forbid, without", "if it hangs"),
        (Some(2), "has no effect, because cronjob-controller.dev/max-concurrent is 2", "if so many hang"),
    ] {
        let found = of_rest(&object, most, false);
        let [first, second] = found.as_slice() else { panic!("{most:?}: {found:?}") };
        assert!(first.message.starts_with(deadline) && second.message.contains(hang), "{most:?}: {found:?}");
    }
}

#[test]
fn a_wrong_value_that_hands_over_nothing_is_found() {
    for (value, is_found) in [("true", false), ("false", false), ("yes", true), ("", true)] {
        let found = of_rest(&json!({ "metadata": { "annotations": { MANAGED_ANNOTATION: value } } }), None, false);
        let want = is_found.then_some((Code::UnknownPolicy, "metadata.annotations[cronjob-controller.dev/managed]"));
        assert_eq!(found.first().map(|fault| (fault.code, fault.field.as_str())), want, "{value:?}");
    }
}

#[test]
fn time_zone_that_is_not_what_its_name_says_to_most_is_found() {
    for (zone, want) in [
        ("Etc/GMT+2", Some("Etc/GMT+2 is 2 h behind UTC")),
        ("Etc/GMT-14", Some("Etc/GMT-14 is 14 h ahead of UTC")),
        ("EST", Some("without summer time; the zone of a place is such as America/New_York")),
        ("Etc/GMT", None),
        ("Etc/GMT+0", None),
        ("EST5EDT", None),
        ("HST", None),
        ("Europe/Berlin", None),
    ] {
        let found = of_rest(&json!({ "spec": { "timeZone": zone } }), None, false);
        let messages: Vec<&str> = found.iter().map(|fault| fault.message.as_str()).collect();
        assert_eq!(messages.len(), usize::from(want.is_some()), "{zone}: {messages:?}");
        assert!(want.is_none_or(|want| messages[0].contains(want)), "{zone}: {messages:?}");
        assert!(found.iter().all(|fault| fault.code == Code::MisreadZone && fault.field == "spec.timeZone"));
    }
}
