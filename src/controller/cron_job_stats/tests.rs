#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use schedule::missed::Missed;
use serde_json::{Value, json};

use super::*;
use crate::controller::tests::objects::{cron_job, job, time};

/// A time on the day of these tests. The CronJob is hourly and last fired at nine.
fn at(clock: &str) -> DateTime<Utc> {
    time(&format!("2026-03-02T{clock}Z"))
}

fn started(slot: &str) -> Verdict {
    Verdict::Started { slot: at(slot), missed: Missed::None }
}

fn skipped(why: Skip) -> Verdict {
    Verdict::Skipped(why)
}

fn skips(reason: &'static str, slots: u64) -> Skipped {
    Skipped([(reason, slots)].into())
}

/// Fires, missed slots, skipped slots, and the earliest undecided slot.
fn told(stats: &CronJobStats, cron_job: &CronJob) -> (u64, u64, Skipped, Option<String>) {
    let next = stats.next_slot(cron_job, Zone::UTC).map(|next| next.format("%H:%M").to_string());
    (stats.fires, stats.missed, stats.skipped.clone(), next)
}

/// A sentence, the decisions with their times, and the statistics after them.
type Row<'a> = (&'a str, &'a [(&'a str, Verdict)], (u64, u64, Skipped, &'a str));

#[test]
fn every_slot_is_counted_once_under_its_reason() {
    let none = Skipped::default;
    let table: [Row<'_>; 12] = [
        ("a slot is started", &[("10:00:01", started("10:00:00"))], (1, 0, none(), "11:00")),
        ("it is started late", &[("12:30:00", started("12:00:00"))], (1, 2, none(), "13:00")),
        (
            "a failed sync decides nothing: the slot is overdue",
            &[("10:00:01", Verdict::Open), ("11:00:01", Verdict::Open)],
            (0, 0, none(), "10:00"),
        ),
        (
            "what could not be started until the next slot came is missed",
            &[("10:00:01", Verdict::Open), ("11:00:01", started("11:00:00"))],
            (1, 1, none(), "12:00"),
        ),
        (
            "a slot that is forbidden again and again is left out once",
            &[("10:00:01", skipped(Skip::Forbid(at("10:00:00")))), ("10:20:00", skipped(Skip::Forbid(at("10:00:00"))))],
            (0, 0, skips("forbid", 1), "11:00"),
        ),
        (
            "a controller that finds an old Job running counts the slots since it began",
            &[("12:30:00", skipped(Skip::Forbid(at("12:00:00"))))],
            (0, 0, skips("forbid", 3), "13:00"),
        ),
        (
            "a forbidden slot that is started after all has been left out before",
            &[("10:00:01", skipped(Skip::Forbid(at("10:00:00")))), ("10:20:00", started("10:00:00"))],
            (1, 0, skips("forbid", 1), "11:00"),
        ),
        (
            "the oldest of a backlog is held, while further slots come due",
            &[
                ("10:00:01", skipped(Skip::Forbid(at("10:00:00")))),
                ("11:00:01", skipped(Skip::Forbid(at("10:00:00")))),
                ("12:00:01", skipped(Skip::Forbid(at("10:00:00")))),
                ("12:10:00", started("10:00:00")),
            ],
            (1, 0, skips("forbid", 3), "13:00"),
        ),
        (
            "a deadline has passed",
            &[("11:30:00", skipped(Skip::Deadline(at("11:00:00"))))],
            (0, 0, skips("deadline", 2), "12:00"),
        ),
        (
            "a name is taken",
            &[
                ("11:00:01", skipped(Skip::NameTaken(at("11:00:00")))),
                ("11:10:00", skipped(Skip::NameTaken(at("11:00:00")))),
            ],
            (0, 1, skips("name_taken", 1), "12:00"),
        ),
        (
            "another controller has started it",
            &[("10:30:00", Verdict::NothingDue), ("11:00:01", started("11:00:00"))],
            (1, 0, none(), "12:00"),
        ),
        (
            "an edit that leaves no schedule counts once",
            &[("10:30:00", skipped(Skip::Invalid)), ("10:40:00", skipped(Skip::Invalid))],
            (0, 0, skips("invalid", 1), "10:00"),
        ),
    ];
    let cron_job = cron_job(json!({}));
    for (sentence, decisions, (fires, missed, skipped, next)) in table {
        let mut stats = CronJobStats::open(&cron_job, &[], at("09:30:00"));
        for (now, verdict) in decisions {
            stats.decided(&cron_job, Zone::UTC, *verdict, at(now), at(now));
        }
        assert_eq!(told(&stats, &cron_job), (fires, missed, skipped, Some(next.to_owned())), "{sentence}");
    }
}

#[test]
fn the_slots_of_a_suspension_are_counted_when_asked_for_and_when_it_ends() {
    let (on, off) = (cron_job(json!({})), cron_job(json!({ "spec": { "suspend": true } })));
    let mut stats = CronJobStats::open(&off, &[], at("09:30:00"));
    stats.decided(&off, Zone::UTC, skipped(Skip::Suspended), at("09:30:00"), at("09:30:00"));
    stats.suspended(&off, Zone::UTC, at("11:30:00"));
    stats.suspended(&off, Zone::UTC, at("11:31:00"));
    assert_eq!(told(&stats, &off), (0, 0, skips("suspended", 2), None), "none is waited for");
    stats.edited(&off, &on, Zone::UTC, at("13:30:00"));
    stats.decided(&on, Zone::UTC, started("13:00:00"), at("13:30:00"), at("13:30:00"));
    let want = (1, 0, skips("suspended", 4), Some("14:00".to_owned()));
    assert_eq!(told(&stats, &on), want, "the newest is started all the same");
}

#[test]
fn slots_of_a_new_schedule_count_from_the_edit_on() {
    let spec = |schedule: &str| cron_job(json!({ "spec": { "schedule": schedule } }));
    let (old, minutely, every) = (spec("0 * * * *"), spec("* * * * *"), spec("@every 25m"));
    for (new, next) in [(&minutely, "09:46"), (&every, "09:50")] {
        let mut stats = CronJobStats::open(&old, &[], at("09:30:00"));
        stats.edited(&old, new, Zone::UTC, at("09:45:30"));
        assert_eq!(told(&stats, new), (0, 0, Skipped::default(), Some(next.to_owned())));
    }
}

#[test]
fn a_slot_that_came_due_while_a_sync_waited_for_answers_is_left_to_the_next() {
    let cron_job = cron_job(json!({}));
    let mut stats = CronJobStats::open(&cron_job, &[], at("09:30:00"));
    stats.decided(&cron_job, Zone::UTC, Verdict::NothingDue, at("09:59:59"), at("10:00:01"));
    stats.decided(&cron_job, Zone::UTC, skipped(Skip::Forbid(at("10:00:00"))), at("10:00:02"), at("10:00:02"));
    assert_eq!(told(&stats, &cron_job), (0, 0, skips("forbid", 1), Some("11:00".to_owned())));
}

#[test]
fn counting_has_an_end() {
    let secondly = cron_job(json!({ "spec": { "schedule": "@every 1s" } }));
    let mut stats = CronJobStats::open(&secondly, &[], at("09:30:00"));
    stats.decided(&secondly, Zone::UTC, started("11:00:00"), at("11:00:00"), at("11:00:00"));
    assert_eq!((stats.fires, stats.missed), (1, AT_MOST - 1));
}

#[test]
fn what_ended_is_counted_since_the_last_success_and_at_first_from_the_jobs_that_are_left() {
    let ended = |made: &str, hour: &str, condition: &str| -> Arc<Job> {
        let slot = at(&format!("{hour}:00:00"));
        let name =
            if made == "by hand" { format!("by-hand-{hour}") } else { format!("report-{}", slot.timestamp() / 60) };
        let completed = (condition == "Complete").then(|| format!("2026-03-02T{hour}:10:00Z"));
        let ended = format!("2026-03-02T{hour}:05:00Z");
        let conditions = json!([{ "type": condition, "status": "True", "lastTransitionTime": ended }]);
        let status: Value = json!({
            "startTime": format!("2026-03-02T{hour}:00:01Z"), "completionTime": completed, "conditions": conditions,
        });
        let annotations = json!({ "batch.kubernetes.io/cronjob-scheduled-timestamp": slot });
        job(&name, &name, json!({ "metadata": { "annotations": annotations }, "status": status }))
    };
    let (good, bad) = (|made, hour| ended(made, hour, "Complete"), |made, hour| ended(made, hour, "Failed"));
    let now = at("10:30:00");
    let jobs = [
        bad("a", "05"),
        good("b", "06"),
        bad("c", "07"),
        bad("by hand", "07"),
        bad("d", "08"),
        good("by hand", "09"),
        bad("by hand", "10"),
    ];
    let mut stats = CronJobStats::open(&cron_job(json!({})), &jobs, now);
    assert_eq!((stats.failures_in_a_row, stats.last_success), (2, Some(at("09:10:00"))), "those of slots");
    assert_eq!(stats.runs.last, Some(bad("d", "08").ran_for(now)));
    stats.ended(&[&bad("e", "09")], now);
    assert_eq!(stats.failures_in_a_row, 3);
    stats.ended(&[&good("f", "10"), &bad("g", "10")], now);
    assert_eq!((stats.failures_in_a_row, stats.last_success), (1, Some(at("10:10:00"))));
}

#[test]
fn a_start_ends_the_row_of_forbidden_slots() {
    let cron_job = cron_job(json!({}));
    let mut stats = CronJobStats::open(&cron_job, &[], at("09:30:00"));
    for (now, verdict, row) in [
        ("10:00:01", skipped(Skip::Forbid(at("10:00:00"))), 1),
        ("11:00:01", skipped(Skip::Forbid(at("11:00:00"))), 2),
        ("12:00:01", started("12:00:00"), 0),
    ] {
        stats.decided(&cron_job, Zone::UTC, verdict, at(now), at(now));
        assert_eq!(stats.forbidden_in_a_row, row, "{now}");
    }
}

/// A run that was held counts again if a change passes over it, as one that starts does.
#[test]
fn slots_that_a_change_passes_over_are_counted_with_the_one_that_would_have_started() {
    let cron_job = cron_job(json!({}));
    for (sentence, verdicts, want) in [
        ("downtime", vec![], 2),
        ("held", vec![("10:00:01", Skip::Forbid(at("10:00:00"))), ("11:00:01", Skip::Forbid(at("11:00:00")))], 1),
        ("suspended", vec![("11:00:01", Skip::Suspended)], 1),
    ] {
        let mut stats = CronJobStats::open(&cron_job, &[], at("09:30:00"));
        for (now, skip) in verdicts {
            stats.decided(&cron_job, Zone::UTC, skipped(skip), at(now), at(now));
        }
        stats.passed_over(&cron_job, Zone::UTC, at("11:00:00"));
        stats.decided(&cron_job, Zone::UTC, Verdict::NothingDue, at("11:30:00"), at("11:30:00"));
        assert_eq!((stats.skipped.0["passed_over"], stats.missed), (want, 0), "{sentence}");
    }
}

proptest! {
    /// For any decisions at any times, every decided slot is in exactly one count.
    #[test]
    fn counts_add_up_to_the_slots_that_have_passed(
        steps in prop::collection::vec((0u8..10, 1i64..7_200), 1..40),
        schedule in prop::sample::select(vec!["*/7 * * * *", "0 * * * *", "@every 11m", "15,45 9-17 * * *"]),
    ) {
        let cron_job = cron_job(json!({ "spec": { "schedule": schedule } }));
        let mut stats = CronJobStats::open(&cron_job, &[], at("09:30:00"));
        let mut now = at("09:00:00");
        for (kind, seconds) in steps {
            now += TimeDelta::seconds(seconds);
            let newest = newest_slot(&cron_job, Zone::UTC, now).unwrap();
            // A sync starts a slot only if it is undecided.
            if newest <= stats.decided {
                continue;
            }
            stats.decided(&cron_job, Zone::UTC, match kind {
                0 => Verdict::Open,
                1 => Verdict::Started { slot: newest, missed: Missed::None },
                2 => skipped(Skip::Forbid(newest)),
                3 => skipped(Skip::Deadline(newest)),
                4 => skipped(Skip::NameTaken(newest)),
                5 => skipped(Skip::MaxConcurrent(newest)),
                6 => skipped(Skip::Replacing(newest)),
                7 => skipped(Skip::Paused(newest)),
                8 => skipped(Skip::PassedOver(newest)),
                _ => skipped(Skip::Suspended),
            }, now, now);
        }
        let skipped: u64 = stats.skipped.iter().map(|(_, slots)| slots).sum();
        let counted = stats.fires + stats.missed + skipped;
        let mut whole = CronJobStats::open(&cron_job, &[], at("09:30:00"));
        let decided = stats.decided;
        prop_assert_eq!(counted, whole.pass(&cron_job, Zone::UTC, decided));
    }
}
