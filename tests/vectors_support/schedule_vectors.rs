//! `schedule.jsonl`: a spec and an instant, and the results of upstream's parser and `Next`. The process's zone is UTC.

use chrono::{DateTime, Utc};
use schedule::{Schedule, Zone};
use serde::Deserialize;

use super::support::{check_file, say};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Row {
    schedule: String,
    from: DateTime<Utc>,
    /// A sequence of calls, each from the previous result; `null` where upstream returns the zero time.
    next: Option<Vec<Option<DateTime<Utc>>>>,
    error: Option<String>,
    upstream_hangs: Option<bool>,
}

#[test]
fn schedule() {
    let rows = check_file("schedule.jsonl", judge);
    let refused: Vec<_> = rows.iter().filter_map(|row| Some((row, row.error.as_ref()?))).collect();
    let same = refused
        .iter()
        .filter(|(row, error)| Schedule::parse_standard(&row.schedule, Zone::UTC).unwrap_err().to_string() == **error);
    say(&format!("schedule.jsonl: {} of {} errors read as upstream's", same.count(), refused.len()));
}

fn judge(row: &Row) -> Result<(), String> {
    let parsed = Schedule::parse_standard(&row.schedule, Zone::UTC);
    match (&row.next, &row.error, row.upstream_hangs) {
        (Some(expected), None, None) => {
            let schedule = parsed.map_err(|err| format!("does not parse: {err}"))?;
            let mut t = row.from;
            for (index, expected) in expected.iter().enumerate() {
                let next = schedule.next(t);
                if next != *expected {
                    return Err(format!("instant {index} is {next:?}"));
                }
                t = next.unwrap_or(t);
            }
            Ok(())
        }
        (None, Some(_), None) => parsed.map_or(Ok(()), |schedule| Err(format!("parses: {schedule:?}"))),
        (None, None, Some(true)) => {
            let schedule = parsed.map_err(|err| format!("does not parse: {err}"))?;
            schedule.next(row.from);
            schedule.next_after(row.from);
            Ok(())
        }
        _ => Err("wants exactly one of next, error and upstreamHangs".to_owned()),
    }
}
