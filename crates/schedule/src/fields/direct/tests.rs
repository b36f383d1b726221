#![allow(clippy::unwrap_used)]

use chrono_tz::TZ_VARIANTS;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::fields::Walk;
use crate::{Kind, Schedule, Zone};

/// Specs with long walks, at the hours and days of changes of offset.
const SPECS: &[&str] = &[
    "* * * * *",
    "*/5 * * * *",
    "0 * * * *",
    "59 * * * *",
    "0 0 * * *",
    "30 0 * * *",
    "15,45 2 * * *",
    "30 1-3 * * *",
    "59 23 * * *",
    "0 0,23 * * 0",
    "0 1 1 * *",
    "*/20 0-3 1-14 * *",
    "0 12 29-31 * 5",
    "45 23 31 12 *",
    "0 0 1 1 *",
    "0 3 29 2 *",
    "0 0 31 2 *",
    "5 4 * 3,4,10,11 6",
    "30 2 8-14 3 *",
    "30 2 * 3,10 0",
    "5-55/10 0,2 25-31 3,9 *",
];

/// Tests every zone at instants around its own changes of offset and at others.
#[test]
fn direct_answer_and_the_walk_that_leaps_equal_the_walk_by_steps() {
    let mut rng = StdRng::seed_from_u64(7);
    let (mut direct, mut walked) = (0, 0);
    for tz in TZ_VARIANTS {
        let transitions = Zone::load(tz.name(), Zone::UTC).unwrap().transitions();
        for _ in 0..400 {
            let anywhere = rng.random_range(-4_000_000_000..6_000_000_000);
            let near = transitions.span(rng.random_range(-1_000_000_000..4_100_000_000)).start;
            let from = match rng.random_range(0..4) {
                0 => anywhere,
                1 => near.max(-4_000_000_000) + rng.random_range(-40 * SECONDS_PER_DAY..40 * SECONDS_PER_DAY),
                _ => near.max(-4_000_000_000) + rng.random_range(-100_000..100_000),
            };
            let from = if rng.random() { from - from.rem_euclid(60) } else { from };
            let spec = format!("TZ={tz} {}", SPECS.choose(&mut rng).unwrap());
            let Kind::Fields(fields) = Schedule::parse_standard(&spec, Zone::UTC).unwrap().0 else { panic!() };
            let span = transitions.span(from);
            let steps = &mut Steps::new();
            let mut by_steps = Walk::new(transitions, span, from, steps);
            by_steps.leaps = false;
            let by_steps = fields.go(by_steps, i64::MAX);
            assert_eq!(fields.walk(from, i64::MAX, span, transitions, steps), by_steps, "{spec} from {from}");
            let Some(found) = fields.direct(from, &span, transitions, steps) else {
                walked += 1;
                continue;
            };
            direct += 1;
            assert_eq!(found, by_steps, "{spec} from {from}");
        }
    }
    assert!(direct > walked, "{direct} direct, {walked} walked");
}
