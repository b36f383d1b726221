//! A leader that is killed while Jobs run that are to be replaced.
//!
//! A new leader does not delete a Job while a create of its predecessor may still be committed. The lease says that none outlives it, so
//! that nothing waits for longer than the lease.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use testkit::burst::name;
use testkit::driver::{sleep_until, upcoming_minute};

use super::{ON_TIME, REPLACED, create_replacing};
use crate::contenders::{Arena, still_runs};
use crate::lateness::{Lateness, done_or_late};
use crate::table::{Figure, Reach, float};

/// Seconds between the kill and the slot.
const KILLED_BEFORE: [i64; 2] = [30, 2];

/// For each kill: a slot whose Jobs run on, the slot after the kill, and one more.
pub async fn under_replace(arena: &Arc<Arena>) -> Vec<Figure> {
    let mut leader = arena.start_controller(&[]).await;
    let mut figures = Vec::new();
    for (number, before) in KILLED_BEFORE.into_iter().enumerate() {
        let standby = arena.start_replica(&format!("standby-{number}"), &[]).await;
        let ns = arena.world.namespace(&format!("killed-{before}")).await;
        let first = upcoming_minute().await + TimeDelta::minutes(1);
        let slots = [0, 1, 3].map(|minutes| first + TimeDelta::minutes(minutes));
        create_replacing(&ns, &slots).await;
        sleep_until(slots[1], TimeDelta::seconds(-before)).await;
        leader.kill();

        let late =
            |slot: DateTime<Utc>| Lateness::of(&arena.world.sightings, &ns.name, (0..REPLACED).map(name), slot, slot);
        done_or_late(slots[2], || late(slots[1]).count() == REPLACED).await;
        done_or_late(slots[2] + TimeDelta::seconds(30), || late(slots[2]).count() == REPLACED).await;
        still_runs(&standby);
        assert_eq!(late(slots[0]).count(), REPLACED, "Jobs that are to be replaced");
        let (replaced, next) = (late(slots[1]), late(slots[2]));
        let all = Reach::AtLeast(float(REPLACED));
        let what = |text: &str| format!("killed {before} s before: {text}");
        figures.extend([
            Figure::count(what(&format!("Jobs of {REPLACED}")), replaced.count(), all),
            Figure::seconds(what("the last one's lateness"), replaced.last(), Reach::TimesInTree(1.0)),
            Figure::count(what("Jobs of the slot after, on time"), next.within(ON_TIME), all),
        ]);
        leader = standby;
    }
    figures
}
