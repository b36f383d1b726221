#![allow(clippy::unwrap_used)]

use super::*;
use crate::api::ObjectName;
use crate::cli::banners::banners;
use crate::cli::banners::tests::refusal_of;
use crate::cli::explain::lease::ControllerLease;
use crate::cli::explain::{InCharge, State};
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
        ("h", State::Frozen, false, None),
        ("i", State::PilesUp, false, in_minutes(90)),
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
        ("growing", "i"),
        ("never", "bdf"),
        ("soon", "beg"),
        ("fine", "e"),
        ("frozen", "h"),
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

/// A link has each of them, the menu and the tiles name it.
#[test]
fn filters_of_the_page_are_those_of_the_server() {
    let found =
        |text: &'static str, begin: &str| text.lines().find(|line| line.trim_start().starts_with(begin)).unwrap();
    let link = found(include_str!("../assets/state.js"), "state: oneOf(");
    let tiles = found(include_str!("../assets/app.js"), "const TILES");
    let menu = include_str!("../assets/words.js");
    for (name, _) in STATES {
        assert!(link.contains(&format!("'{name}'")), "a link with {name}: {link}");
        assert!(menu.contains(&format!(" {name}: ['")), "the menu has {name}");
        let has_tile = !matches!(name, "fine" | "stopped");
        assert_eq!(tiles.contains(&format!("'{name}'")), has_tile, "a tile for {name}: {tiles}");
    }
}

#[test]
fn what_finds_the_cron_jobs_of_a_banner_selects_them() {
    const NOW: &str = "2026-11-22T10:00:00Z";
    let quota = |used| format!("Error creating job: exceeded quota: cpus, requested: cpu={used}, limited: cpu=8");
    let (two, three) = (quota(2), quota(3));
    let policy = "Error creating job: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
    let rows = [
        ("shop", "a", Some(policy)),
        ("shop", "b", Some(policy)),
        ("ops", "c", Some(policy)),
        ("shop", "d", Some(&*two)),
        ("shop", "e", Some(&*three)),
        ("shop", "f", Some("Error creating job: only this one")),
        ("shop", "g", None),
    ];
    let rows = rows.into_iter().map(|(namespace, name, message)| {
        let mut row = row(name);
        (row.namespace, row.state, row.urgency) = (namespace.to_owned(), State::Overdue, State::Overdue.urgency());
        row.refusal = message.map(|message| refusal_of(name, message, NOW).unwrap());
        (ObjectName::new(namespace, name), Arc::new(row))
    });
    let model = Model { rows: rows.collect(), version: 1 };
    let now = NOW.parse().unwrap();
    let lease: Option<&fn(&str, InCharge) -> Option<ControllerLease>> = None;
    let found = banners(model.rows.values().map(|row| row.concern()), lease, now);
    assert_eq!(found.len(), 2);
    for (banner, number) in found.iter().zip([3, 2]) {
        let namespace = banner.namespace.clone().unwrap_or_default();
        let selection = Selection { q: banner.q.clone().unwrap(), namespace, ..Selection::default() };
        assert_eq!(selection.rows(&model, now).unwrap().len(), number, "{}", banner.text);
    }
}
