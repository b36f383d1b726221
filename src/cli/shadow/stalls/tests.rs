use chrono::TimeDelta;
use tokio::time::advance;

use super::*;

/// How many seconds pass, whether a tick comes then, whether it finds the queue empty, and how many seconds ago what is found may have
/// held.
const ROWS: [(u64, Option<bool>, i64); 10] = [
    (1, Some(true), 0),
    (1, Some(true), 0),
    // Stopped.
    (5, None, 5),
    (0, Some(true), 5),
    (1, Some(true), 6),
    (2, Some(true), 8),
    (3, Some(true), 0),
    // The queue is long.
    (2, Some(false), 0),
    (2, Some(false), 4),
    (3, Some(true), 7),
];

#[tokio::test(start_paused = true)]
async fn what_is_found_after_a_stall_may_have_held_since_it_began() {
    let mut now = DateTime::<Utc>::UNIX_EPOCH;
    let mut stalls = Stalls::new(now);
    for (row, (seconds, tick, ago)) in ROWS.into_iter().enumerate() {
        advance(Duration::from_secs(seconds)).await;
        now += Duration::from_secs(seconds);
        if let Some(is_idle) = tick {
            stalls.tick(now, is_idle);
        }
        assert_eq!(now - stalls.ready(now), TimeDelta::seconds(ago), "row {row}");
    }
}
