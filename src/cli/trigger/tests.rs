#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn generated_name_is_short_enough_and_keeps_the_start_of_the_cron_jobs() {
    let long = "a".repeat(44) + "-" + &"b".repeat(8);
    let rows = [
        ("nightly", "nightly-manual-bcdfg".to_owned()),
        (long.as_str(), format!("{}-{}-manual-bcdfg", "a".repeat(44), "b".repeat(5))),
    ];
    for (cron_job, want) in rows {
        let name = generated(cron_job, [0, 1, 2, 3, 4]);
        assert_eq!(name, want);
        assert!(name.len() <= LONGEST_NAME);
    }
}

#[cfg(feature = "dev")]
mod on_a_cluster;
