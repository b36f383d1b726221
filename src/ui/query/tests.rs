#![allow(clippy::unwrap_used)]

use super::*;
use crate::api::ObjectName;
use crate::cli::explain::State;
use crate::ui::model::{Next, tests::row};

#[test]
fn what_is_counted_is_what_is_selected() {
    let now: DateTime<Utc> = "2026-11-22T10:00:00Z".parse().unwrap();
    let in_minutes = |minutes| {
        let due = now + TimeDelta::minutes(minutes);
        Some(Next { due, slot: due, effect: String::new() })
    };
    let rows = [
        ("a", State::Paused, false, None),
        ("b", State::Failing, true, in_minutes(59)),
        ("c", State::NeverEnds, false, in_minutes(61)),
        ("d", State::RunStuck, true, None),
        ("e", State::Waiting, false, in_minutes(5)),
        ("f", State::Suspended, true, None),
        ("g", State::NotStarted, false, in_minutes(1)),
    ];
    let rows = rows.into_iter().map(|(name, state, never_succeeded, next)| {
        let mut row = row(name);
        (row.state, row.label, row.urgency) = (state, state.label(), state.urgency());
        (row.never_succeeded, row.next) = (never_succeeded, next);
        (ObjectName::new("shop", name), Arc::new(row))
    });
    let model = Model { rows: rows.collect(), version: 1 };
    let want = [
        ("overdue", "g"),
        ("stuck", "a"),
        ("blocked", "d"),
        ("failed", "bc"),
        ("never", "bdf"),
        ("soon", "beg"),
        ("fine", "e"),
        ("stopped", "f"),
    ];
    for (state, want) in want {
        let selection = Selection { state: state.to_owned(), sort: "name".to_owned(), ..Selection::default() };
        let names: String = selection.rows(&model, now).unwrap().iter().map(|row| row.name.clone()).collect();
        let filter = STATES.iter().find(|(name, _)| *name == state).unwrap().1;
        let counted = model.rows.values().filter(|row| filter.selects(row, now)).count();
        assert_eq!((&*names, counted), (want, want.len()), "{state}");
    }
}
