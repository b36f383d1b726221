//! The load of a day against `next`, and days on which the clocks change.
#![allow(clippy::unwrap_used)]

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use super::*;
use crate::cli::next::cron_jobs::{CronJobRuns, Given, Question as Next};
use crate::cli::next::manifests::read;

const NOW: &str = "2026-11-22T10:20:30Z";

fn now() -> DateTime<Utc> {
    NOW.parse().unwrap()
}

fn cron_job(name: &str, spec: &Value, annotations: &Value) -> Arc<CronJob> {
    let object = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": name, "namespace": "shop", "annotations": annotations}, "spec": spec,
    });
    let mut cron_job = read(object, "default", &"".into()).unwrap().unwrap().0;
    cron_job.creation_timestamp = now();
    Arc::new(cron_job)
}

fn question(cron_jobs: &[Arc<CronJob>]) -> Question<'_> {
    Question { cron_jobs, zone: Zone::UTC, seed: "", lengths: None, is_plan: true, what_if: None, now: now() }
}

/// A CronJob with a random schedule, zone and policies.
fn random(rng: &mut StdRng, number: usize) -> Arc<CronJob> {
    let mut pick = |from: &[&str]| from[rng.random_range(0..from.len())].to_owned();
    let minute = pick(&["0", "*/5", "30", "7,37", "*", "59"]);
    let hour = pick(&["*", "2", "0", "*/3", "1-4", "23"]);
    let day = pick(&["* * *", "* * 0", "1,15,29 * *", "* * 1-5", "29 3 *"]);
    let schedule = pick(&["@every 90s", "@every 1h30m", "@hourly", "@daily", "", "", "", "", "", "", "", ""]);
    let is_interval = schedule.starts_with("@every");
    let schedule = if schedule.is_empty() { format!("{minute} {hour} {day}") } else { schedule };
    let mut annotations = serde_json::Map::new();
    let policies: [(&str, &[&str]); 5] = [
        ("spread", &["", "", "30m", "6h", "45s", "24h"]),
        ("dst", &["", "", "once", "upstream"]),
        ("exclude", &["", "", "Sat,Sun", "03-29", "2027-03-27/2027-03-28"]),
        ("not-before", &["", "", "", "2027-03-28T09:00:00+01:00"]),
        ("schedule", &["", "", "", "", "0 2 L * *; 30 1 * * FRI#3"]),
    ];
    for (policy, values) in policies {
        let value = pick(values);
        let is_calendar = matches!(policy, "dst" | "exclude" | "schedule");
        if !value.is_empty() && (!is_interval || !is_calendar) {
            annotations.insert(format!("cronjob-controller.dev/{policy}"), value.into());
        }
    }
    let zone = pick(&["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "Asia/Kolkata"]);
    let spec = json!({"schedule": schedule, "timeZone": zone});
    cron_job(&format!("random-{number}"), &spec, &annotations.into())
}

#[test]
fn load_of_a_day_and_next_runs_of_a_thousand_random_cron_jobs_are_those_of_next() {
    let mut rng = StdRng::seed_from_u64(7);
    let cron_jobs: Vec<Arc<CronJob>> = (0..1_000).map(|number| random(&mut rng, number)).collect();
    for (day, zone) in [("2027-03-28", "Europe/Berlin"), ("2026-11-23", "UTC"), ("2027-04-04", "Australia/Lord_Howe")] {
        let zone = Zone::load(zone, Zone::UTC).unwrap();
        let (start, end) = bounds(day.parse().unwrap(), zone).unwrap();
        let minutes = usize::try_from((end - start).num_minutes()).unwrap();
        let mut want = vec![0; minutes];
        for cron_job in &cron_jobs {
            // One more than start on the day, so that `next` must say that no other does.
            let of_one = Question { is_plan: false, ..question(std::slice::from_ref(cron_job)) };
            let count = of_one.load(start, minutes).iter().sum::<u32>() as usize + 1;
            let from = Some(start - TimeDelta::nanoseconds(1));
            let next = Next { zone: Zone::UTC, seed: "".into(), from: from.map(Given::Instant), count, all: false };
            let answer = serde_json::to_value(CronJobRuns::of(cron_job, &next, now())).unwrap();
            let due = answer["runs"].as_array().unwrap().iter().map(|run| run["due"].as_str().unwrap());
            let starts = due.map(|due| (DateTime::parse_from_rfc3339(due).unwrap().to_utc() - start).num_minutes());
            for minute in starts.take_while(|minute| *minute < i64::try_from(minutes).unwrap()) {
                want[usize::try_from(minute).unwrap()] += 1;
            }
        }
        let question = Question { is_plan: false, ..question(&cron_jobs) };
        let load = question.load(start, minutes);
        assert_eq!(load, want, "{day}");
        // The list of a minute is as long as its number.
        for minute in (0..minutes).step_by(97) {
            let at = start + TimeDelta::minutes(i64::try_from(minute).unwrap());
            assert_eq!(question.starting(at).len(), want[minute] as usize, "{at}");
        }
    }
}

#[test]
fn hours_are_those_that_the_clocks_show() {
    let rows = [
        ("2027-03-28", "Europe/Berlin", 23, vec![60; 23]),
        ("2026-10-25", "Europe/Berlin", 25, vec![60; 25]),
        ("2026-11-22", "UTC", 24, vec![60; 24]),
        // Half an hour comes twice.
        ("2027-04-04", "Australia/Lord_Howe", 25, [vec![60; 2], vec![30], vec![60; 22]].concat()),
        // Midnight does not exist.
        ("2018-11-04", "America/Sao_Paulo", 23, vec![60; 23]),
    ];
    for (day, zone, hours, minutes) in rows {
        let zone = Zone::load(zone, Zone::UTC).unwrap();
        let day = question(&[]).day(day.parse().unwrap(), zone).unwrap();
        assert_eq!(day.hours.len(), hours, "{day:?}");
        assert_eq!(day.hours.iter().map(|hour| hour.minutes.len()).collect::<Vec<_>>(), minutes, "{day:?}");
    }
}

#[test]
fn spread_moves_starts_apart_and_suspended_cron_jobs_do_not_count() {
    let daily = json!({"schedule": "0 2 * * *"});
    let mut all: Vec<_> = (0..100).map(|number| cron_job(&format!("c{number}"), &daily, &json!({}))).collect();
    all.push(cron_job("held", &json!({"schedule": "0 2 * * *", "suspend": true}), &json!({})));
    let day: NaiveDate = "2026-11-23".parse().unwrap();
    let together = question(&all).day(day, Zone::UTC).unwrap();
    assert_eq!((together.starts, together.most), (100, 100));
    assert_eq!(together.most_at.unwrap().to_rfc3339(), "2026-11-23T02:00:00+00:00");
    let what_if = Some(Spread::new(1_800_000_000_000).unwrap());
    let apart = Question { what_if, ..question(&all) }.day(day, Zone::UTC).unwrap();
    assert_eq!(apart.starts, 100);
    assert!(apart.most < 12, "{}", apart.most);
}

#[test]
fn running_jobs_count_for_as_long_as_those_before_them_ran() {
    let spec = |schedule: &str, policy: &str| json!({"schedule": schedule, "concurrencyPolicy": policy});
    let at = |minute: i64| "2026-11-23T02:00:00Z".parse::<DateTime<Utc>>().unwrap() + TimeDelta::minutes(minute);
    // The Jobs in each of the eight minutes from 02:00 on, by the schedule, the policy and the seconds that a Job takes.
    let rows: [(&str, &str, Option<i64>, [u32; 8]); 11] = [
        ("0 2 * * *", "Allow", None, [1, 0, 0, 0, 0, 0, 0, 0]),
        ("0 2 * * *", "Allow", Some(60), [1, 0, 0, 0, 0, 0, 0, 0]),
        ("0 2 * * *", "Allow", Some(61), [1, 1, 0, 0, 0, 0, 0, 0]),
        ("1 2 * * *", "Allow", Some(240), [0, 1, 1, 1, 1, 0, 0, 0]),
        ("*/2 2 * * *", "Allow", Some(240), [1, 1, 2, 2, 2, 2, 2, 2]),
        ("*/2 2 * * *", "Forbid", Some(180), [1, 1, 1, 0, 1, 1, 1, 0]),
        ("*/2 * * * *", "Forbid", Some(200), [1, 1, 1, 1, 1, 1, 1, 1]),
        // One of 01:50 runs until 02:01, so none starts at 02:00.
        ("*/25 1,2 * * *", "Forbid", Some(660), [1, 0, 0, 0, 0, 0, 0, 0]),
        ("*/2 2 * * *", "Replace", Some(180), [1, 1, 1, 1, 1, 1, 1, 1]),
        // One from before runs on.
        ("59 1 * * *", "Allow", Some(180), [1, 1, 0, 0, 0, 0, 0, 0]),
        ("0 0 * * *", "Allow", Some(100 * 3600), [1, 1, 1, 1, 1, 1, 1, 1]),
    ];
    for (schedule, policy, length, want) in rows {
        let all = [cron_job("c", &spec(schedule, policy), &json!({}))];
        let lengths: HashMap<ObjectName, i64> =
            length.map(|length| (all[0].name.clone(), length)).into_iter().collect();
        let question = Question { lengths: Some(&lengths), ..question(&all) };
        assert_eq!(question.load(at(0), 8), want, "{schedule} {policy} {length:?}");
        for (minute, jobs) in want.iter().enumerate() {
            let listed = question.starting(at(i64::try_from(minute).unwrap())).len();
            assert_eq!(listed, usize::from(*jobs > 0), "{schedule} {policy} {length:?}: {minute}");
        }
    }
}

#[test]
fn nothing_counts_before_a_cron_job_existed() {
    // It was created at 10:20:30.
    let all = [cron_job("c", &json!({"schedule": "*/10 * * * *"}), &json!({}))];
    let day: NaiveDate = "2026-11-22".parse().unwrap();
    for (is_plan, starts) in [(true, 144), (false, 81)] {
        let question = Question { is_plan, ..question(&all) };
        assert_eq!(question.day(day, Zone::UTC).unwrap().starts, starts, "{is_plan}");
        let at: DateTime<Utc> = "2026-11-22T10:20:00Z".parse().unwrap();
        assert_eq!(question.starting(at).len(), usize::from(is_plan));
    }
}
