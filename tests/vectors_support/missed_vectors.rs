//! `missed.jsonl`: a CronJob's times and the current time, and the results of upstream's `nextScheduleTime` and
//! `nextScheduleTimeDuration`.

use chrono::{DateTime, TimeDelta, Utc};
use schedule::missed::{Missed, Observed, next_requeue_time, next_schedule_time};
use schedule::{Evaluation, Schedule, Zone};
use serde::Deserialize;

use super::support::check_file;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Row {
    schedule: String,
    time_zone: Option<String>,
    creation_timestamp: DateTime<Utc>,
    last_schedule_time: Option<DateTime<Utc>>,
    starting_deadline_seconds: Option<i64>,
    now: DateTime<Utc>,
    next_schedule_time: Option<DateTime<Utc>>,
    missed: Count,
    error: Option<String>,
    requeue_after_nanos: i64,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Count {
    None,
    Few,
    Many,
}

impl From<Count> for Missed {
    fn from(count: Count) -> Self {
        match count {
            Count::None => Missed::None,
            Count::Few => Missed::Few,
            Count::Many => Missed::Many,
        }
    }
}

/// What upstream adds to every requeue.
const UPSTREAM_DELTA: TimeDelta = TimeDelta::milliseconds(100);

#[test]
fn missed() {
    check_file("missed.jsonl", |row: &Row| judge(row, UPSTREAM_DELTA));
}

fn judge(row: &Row, delta: TimeDelta) -> Result<(), String> {
    let spec = row.time_zone.as_ref().map_or(row.schedule.clone(), |zone| format!("TZ={zone} {}", row.schedule));
    let schedule = Schedule::parse_standard(&spec, Zone::UTC).map_err(|err| format!("does not parse: {err}"))?;
    let observed = Observed {
        creation: row.creation_timestamp,
        last_schedule: row.last_schedule_time,
        starting_deadline_seconds: row.starting_deadline_seconds,
    };

    match (next_schedule_time(&observed, row.now, &Evaluation::of(&schedule)), &row.error) {
        (Ok((next, missed)), None) if next == row.next_schedule_time && missed == row.missed.into() => {}
        (Err(err), Some(expected)) if err.to_string() == *expected => {}
        (got, _) => return Err(format!("next_schedule_time is {got:?}")),
    }

    let requeue = next_requeue_time(&observed, row.now, &Evaluation::of(&schedule), None);
    let nanos = requeue.map_or(i64::MIN, |t| nanos_between(row.now, t + delta));
    if nanos == row.requeue_after_nanos { Ok(()) } else { Err(format!("the requeue is {requeue:?}: {nanos}")) }
}

/// Saturates as Go's `Time.Sub` does.
fn nanos_between(from: DateTime<Utc>, to: DateTime<Utc>) -> i64 {
    let delta = to - from;
    delta.num_nanoseconds().unwrap_or(if delta < TimeDelta::zero() { i64::MIN } else { i64::MAX })
}
