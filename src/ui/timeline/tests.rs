#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::cli::next::manifests::read;

#[test]
fn expected_runs_are_those_of_the_schedule_and_dense_ones_are_joined() {
    let now: DateTime<Utc> = "2026-11-22T10:20:30Z".parse().unwrap();
    let hour = |hours: i64| now + TimeDelta::hours(hours);
    let of = |schedule: &str, suspend: bool, to: DateTime<Utc>| {
        let object = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"},
            "spec": {"schedule": schedule, "suspend": suspend},
        });
        let mut cron_job = read(object, "shop", &"".into()).unwrap().unwrap().0;
        cron_job.creation_timestamp = now;
        expected(&cron_job, Zone::UTC, (hour(-1), to), now)
    };
    let times = |found: Vec<Expected>| {
        let text = |time: DateTime<Utc>| time.format("%d %H:%M:%S").to_string();
        found.into_iter().map(|group| (text(group.from), text(group.to))).collect::<Vec<_>>()
    };
    let one = |text: &str| (text.to_owned(), text.to_owned());
    assert_eq!(times(of("0 * * * *", false, hour(2))), [one("22 11:00:00"), one("22 12:00:00")]);
    assert_eq!(times(of("@every 50m", false, hour(2))), [one("22 11:10:30"), one("22 12:00:30")]);
    assert!(of("0 * * * *", true, hour(2)).is_empty());
    // Thirty days of every minute are one mark; pairs of slots are one each.
    let month = times(of("* * * * *", false, hour(24 * 29)));
    assert!(month.len() == 1 && month[0].0 == "22 10:21:00" && month[0].1.starts_with("21 "), "{month:?}");
    assert_eq!(of("0,5 2 * * *", false, hour(24 * 29)).len(), 29);
}
