#![allow(clippy::unwrap_used)]

use schedule::{Schedule, Zone};

use super::*;

#[test]
fn schedule_of_another_scheduler_is_refused_with_what_to_write() {
    let rows = [
        ("0 0 L * *", "L, W and # are known to the annotation cronjob-controller.dev/schedule only"),
        ("0 0 15W * *", "L, W and #"),
        ("0 0 LW * *", "L, W and #"),
        ("0 0 * * 5L", "L, W and #"),
        ("0 0 * * FRI#2", "L, W and #"),
        ("H 3 * * *", "H is Jenkins's"),
        ("H/15 * * * *", "H is Jenkins's"),
        ("0 0 * * 7", "Sunday is 0"),
        ("0 0 * * 5-7", "Sunday is 0"),
        ("0 0 * * SAT-SUN", "write 6,0"),
        ("0 0 * * FRI-MON", "write 5-6,0-1"),
        ("0 22-6 * * *", "write 22-23,0-6"),
        ("0 0 1 NOV-FEB *", "write 11-12,1-2"),
        ("0 22-6/2 * * *", "write 22,0,2,4,6"),
        ("0 0 * * 7/2", "Sunday is 0"),
        ("0 0 0 * * *", "leave out the first (seconds)"),
        ("0 0 3 ? * MON", "leave out the first (seconds)"),
        ("0 10 * * ? *", "leave out the last (years)"),
        ("0 10 ? * MON-FRI *", "leave out the last (years)"),
        ("0 0 1 1 * 2027", "leave out the last (years)"),
        ("0 3 * * 1, 5", "a list has no blanks"),
        ("0 3 * * 1 - 5", "a range has no blanks"),
        ("0 0 0 * * ? 2027", "leave out the first (seconds), and the last (years)"),
        ("rate(5 minutes)", "@every 5m"),
    ];
    for (text, want) in rows {
        assert!(Schedule::parse_standard(text, Zone::UTC).is_err(), "{text}");
        let hint = of(text).unwrap_or_default();
        assert!(hint.contains(want), "{text}: {hint}");
    }
}

#[test]
fn other_refused_schedules_have_no_hint() {
    for text in [
        "",
        "often",
        "61 * * * *",
        "0 0 * * MOO",
        "* * * *",
        "0 24 * * *",
        "0 0 32-1 * *",
        "5-1/0 * * * *",
        "TZ=Europe/Berlin 0 3 * * * *",
        "CRON_TZ=UTC 0 3 * * *  x",
        "0 3 * * * echo hi",
    ] {
        assert!(Schedule::parse_standard(text, Zone::UTC).is_err(), "{text}");
        assert_eq!(of(text), None, "{text}");
    }
}
