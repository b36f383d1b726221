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

#[test]
fn a_trace_of_the_command_is_passed_on_if_it_is_one() {
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let table = [
        (format!("00-{trace}-{span}-01"), true),
        (format!("00-{trace}-{span}-00"), true),
        (format!("01-{trace}-{span}-01"), false),
        (format!("00-{trace}-{span}-01-more"), false),
        (format!("00-{}-{span}-01", trace.to_uppercase()), false),
        (format!("00-{}-{span}-01", "0".repeat(32)), false),
        (format!("00-{trace}-{}-01", "0".repeat(16)), false),
        (format!("00-{trace}-{span}"), false),
        (String::new(), false),
        ("x".repeat(1 << 20), false),
    ];
    for (text, want) in table {
        assert_eq!(is_traceparent(&text), want, "{text}");
    }
}

#[cfg(feature = "dev")]
mod on_a_cluster;
