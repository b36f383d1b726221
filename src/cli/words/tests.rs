#![allow(clippy::unwrap_used)]

use schedule::Zone;

use super::*;

#[test]
fn schedule_is_described_by_what_it_runs() {
    let rows = [
        ("* * * * *", "Every minute."),
        ("*/15 * * * *", "Every 15 minutes."),
        ("*/7 * * * *", "Every hour, at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56."),
        ("0 * * * *", "Every hour, on the hour."),
        ("30 * * * *", "Every hour, at minute 30."),
        ("0 */2 * * *", "Every 2 hours, on the hour."),
        ("* */2 * * *", "Every minute of the hours 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20 and 22."),
        ("* 2 * * *", "Every minute from 02:00 to 02:59."),
        ("* 9-17 * * 1-5", "Every minute from 09:00 to 17:59 on Monday to Friday."),
        ("*/20 8-17 * * *", "Every 20 minutes from 08:00 to 17:40."),
        ("*/5 14 * * *", "Every 5 minutes from 14:00 to 14:55."),
        ("*/5 14,18 * * *", "Every 5 minutes of the hours 14 and 18."),
        ("*/5 */2 * * *", "Every 5 minutes of the hours 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20 and 22."),
        ("*/30 9-10 * * 1-5", "At 09:00, 09:30, 10:00 and 10:30 on Monday to Friday."),
        ("*/20 8-17 * * 1-5", "Every 20 minutes from 08:00 to 17:40 on Monday to Friday."),
        ("0 8-17 * * *", "At minute 0 of the hours 8 to 17."),
        ("30 2 * * *", "At 02:30 every day."),
        ("0 8,20 * * *", "At 08:00 and 20:00 every day."),
        ("0 0 13 * 5", "At 00:00 on day 13 of the month or on Friday."),
        ("0 0 * * 0", "At 00:00 on Sunday."),
        ("0 0 1,15 * *", "At 00:00 on days 1 and 15 of the month."),
        ("0 0 1 1-3,7 *", "At 00:00 on day 1 of the month in January to March and July."),
        ("0 0 1-31 * 1", "At 00:00 every day."),
        ("@weekly", "At 00:00 on Sunday."),
        ("@every 90s", "Every 1m30s, counted from the last run."),
    ];
    for (text, want) in rows {
        assert_eq!(describe(&Schedule::parse_standard(text, Zone::UTC).unwrap()), want, "{text}");
    }
}

#[test]
fn lines_of_an_annotation_are_described_in_place_of_the_schedule() {
    let rows = [
        ("0 3 * * 1-5", "At 03:00 on Monday to Friday."),
        (
            "0 3 * * 1-5; 30 6,18 * * 6; 0 12 L * *; @at 2027-03-01T09:00",
            "At 03:00 on Monday to Friday; at 06:30 and 18:30 on Saturday; 0 12 L * *; @at 2027-03-01T09:00.",
        ),
    ];
    for (annotation, want) in rows {
        let change =
            serde_json::json!({ "metadata": { "annotations": { "cronjob-controller.dev/schedule": annotation } } });
        assert_eq!(
            of(&crate::cli::explain::tests::cron_job(&change), Zone::UTC).as_deref(),
            Some(want),
            "{annotation}"
        );
    }
    let plain = crate::cli::explain::tests::cron_job(&serde_json::json!({}));
    assert_eq!(of(&plain, Zone::UTC).as_deref(), Some("At 02:00 every day."));
}
