#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn value_of_the_flag_is_read() {
    let rows = [
        ("spread=10m", true),
        ("max-concurrent=3", true),
        ("spread=10m,max-concurrent=3", true),
        ("", false),
        ("spread", false),
        ("spread=soon", false),
        ("spread=25h", false),
        ("spread=1m,spread=2m", false),
        ("max-concurrent=0", false),
        ("max-concurrent=1001", false),
        ("exclude=Sun", false),
    ];
    for (text, is_read) in rows {
        assert_eq!(WhatIf::parse(text).is_some(), is_read, "{text}");
    }
}

#[test]
fn the_busiest_minute_is_counted_with_and_without_the_spread() {
    let mut supposed = Supposed::new(WhatIf::parse("spread=10m,max-concurrent=3").unwrap(), "".into());
    let start: DateTime<Utc> = "2026-11-22T00:00:00Z".parse().unwrap();
    for hour in 0..100 {
        for n in 0..50 {
            supposed.start(&ObjectName::new("shop", format!("job-{n}")), start + TimeDelta::hours(hour));
            supposed.may_start(n % 5);
        }
    }
    let Changed { spread: Some([now, then]), held } = supposed.changed().unwrap() else { panic!("no spread") };
    assert_eq!((now, held), (50, Some(2000)));
    assert!((5..=12).contains(&then), "{then}");
    assert!(
        supposed.spread.starts.len() < 100 && supposed.minutes.starts.len() < 100,
        "minutes that are over are folded"
    );
    assert_eq!(Supposed::default().changed(), None);
}
