//! How long a sync may take.

use super::*;
use crate::controller::tests::objects::at;

#[test]
fn sync_settles_until_its_next_slot_and_briefly_if_that_is_due_already() {
    let rows = [
        ("no next slot", None, 60_000),
        ("in an hour", Some("11:00"), 60_000),
        ("in half a minute", Some("10:01"), 30_000),
        ("another slot waits", Some("10:00"), 1_000),
    ];
    for (sentence, next, want) in rows {
        let time = settling_time(next.map(at), at("10:00") + chrono::TimeDelta::seconds(30));
        assert_eq!(time.as_millis(), want, "{sentence}");
    }
}
