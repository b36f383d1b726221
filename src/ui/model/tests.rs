#![allow(clippy::unwrap_used)]

use super::*;

/// A row that is fine.
pub(crate) fn row(name: &str) -> Row {
    let state = State::Waiting;
    Row {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        state,
        label: state.label(),
        urgency: state.urgency(),
        summary: String::new(),
        schedule: String::new(),
        time_zone: None,
        words: None,
        next: None,
        held: None,
        last: None,
        lateness: None,
        durations: None,
        failures: 0,
        no_success: None,
        never_succeeded: false,
        policies: Vec::new(),
        due_since: None,
        running: Vec::new(),
        about: Arc::default(),
        in_charge: InCharge::Own,
        refusal: None,
        freeze: None,
        until: DateTime::<Utc>::MAX_UTC,
    }
}

#[test]
fn words_of_a_waiting_cron_job_hold_until_its_next_run() {
    let now: DateTime<Utc> = "2026-11-22T10:00:00Z".parse().unwrap();
    let next = |seconds| {
        let due = now + TimeDelta::seconds(seconds);
        Next { due, slot: due, effect: String::new() }
    };
    for (state, next, seconds) in [
        (State::Waiting, Some(next(20)), 20),
        (State::Waiting, Some(next(3_600)), 300),
        (State::Waiting, Some(next(-1)), 300),
        (State::Starting, Some(next(20)), 1),
        (State::Suspended, None, 60),
    ] {
        assert_eq!((until(state, next.as_ref(), now) - now).num_seconds(), seconds, "{state:?}");
    }
}
