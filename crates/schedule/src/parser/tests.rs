#![allow(clippy::unwrap_used)]

use super::*;

/// The case, the spec, upstream's message.
const REFUSED: &[(&str, &str, &str)] = &[
    ("nothing", "", "empty spec string"),
    ("four fields", "* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
    ("a blank before a descriptor", " @daily", "expected exactly 5 fields, found 1: [@daily]"),
    ("Sunday is not 7", "* * * * 7", "end of range (7) above maximum (6): 7"),
    ("day 0", "* * 0 * *", "beginning of range (0) below minimum (1): 0"),
    ("a range that wraps", "* 20-10 * * *", "beginning of range (20) beyond end of range (10): 20-10"),
    ("a step of nothing", "*/0 * * * *", "step of range should be a positive number: */0"),
    ("two hyphens", "1-2-3 * * * *", "too many hyphens: 1-2-3"),
    ("two slashes", "1/2/3 * * * *", "too many slashes: 1/2/3"),
    ("a sign is not a number", "- * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
    ("a negative step", "*/-1 * * * *", "negative number (-1) not allowed: -1"),
    (
        "beyond 64 bits",
        "99999999999999999999 * * * *",
        "failed to parse int from 99999999999999999999: strconv.Atoi: parsing \"99999999999999999999\": value out of range",
    ),
    (
        "a minute has no names",
        "mon * * * *",
        "failed to parse int from mon: strconv.Atoi: parsing \"mon\": invalid syntax",
    ),
    ("descriptors know no capitals", "@EVERY 1h", "unrecognized descriptor: @EVERY 1h"),
    (
        "a duration without a unit",
        "@every 1",
        "failed to parse duration @every 1: time: missing unit in duration \"1\"",
    ),
    ("no such duration", "@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
    ("no such zone", "TZ=Mars/Phobos * * * * *", "provided bad location Mars/Phobos: unknown time zone Mars/Phobos"),
    (
        "zones have capitals",
        "TZ=europe/berlin @daily",
        "provided bad location europe/berlin: unknown time zone europe/berlin",
    ),
    ("a path upwards", "TZ=../x * * * * *", "provided bad location ../x: time: invalid location name"),
    ("a zone alone, where upstream panics", "TZ=0", "time zone without a schedule: TZ=0"),
    ("a tab does not end a zone", "TZ=UTC\t* * * * *", "provided bad location UTC\t*: unknown time zone UTC\t*"),
];

#[test]
fn refusals_read_as_upstreams() {
    for (name, spec, text) in REFUSED {
        assert_eq!(parse(spec, Zone::UTC).unwrap_err().to_string(), *text, "{name}");
    }
}

/// The case and two specs with the same meaning.
const SAME: &[(&str, &str, &str)] = &[
    ("any blanks separate", "\u{a0}1\t2\u{3000} 3  4 5 ", "1 2 3 4 5"),
    ("names in any case", "0 0 * JaN-mar sUN", "0 0 * 1-3 0"),
    ("a sign is allowed", "+5 * * * *", "5 * * * *"),
    ("empty items are skipped", "0,,5, * * * *", "0,5 * * * *"),
    ("a star's range is not looked at", "*-3 * * * *", "* * * * *"),
    ("a step beyond the field", "*/90 * * * *", "0 * * * *"),
    ("a huge step", "7/9223372036854775807 * * * *", "7 * * * *"),
    ("a name with a step", "0 0 1 1 mon/2", "0 0 1 1 1,3,5"),
    ("yearly", "@yearly", "0 0 1 1 *"),
    ("annually", "@annually", "0 0 1 1 *"),
    ("monthly", "@monthly", "0 0 1 * *"),
    ("weekly", "@weekly", "0 0 * * 0"),
    ("daily", "@daily", "0 0 * * *"),
    ("midnight", "@midnight", "0 0 * * *"),
    ("hourly", "@hourly", "0 * * * *"),
    ("the long prefix", "CRON_TZ=Asia/Tokyo  @daily ", "TZ=Asia/Tokyo 0 0 * * *"),
    ("no zone name is UTC", "TZ= 0 0 * * *", "TZ=UTC 0 0 * * *"),
    ("every drops its zone", "TZ=Asia/Tokyo @every 1h0.5m", "@every 3630s"),
    ("every cuts fractions", "@every 1.999s", "@every 1s"),
];

#[test]
fn spellings_of_one_schedule() {
    for (name, spec, plain) in SAME {
        assert_eq!(parse(spec, Zone::UTC), parse(plain, Zone::UTC), "{name}");
    }
}

#[test]
fn the_default_zone_serves_specs_without_one() {
    let tokyo = Zone::load("Asia/Tokyo", Zone::UTC).unwrap();
    assert_eq!(parse("0 0 * * *", tokyo), parse("TZ=Asia/Tokyo 0 0 * * *", Zone::UTC));
    assert_eq!(parse("TZ=Local 0 0 * * *", tokyo), parse("TZ=Asia/Tokyo 0 0 * * *", Zone::UTC));
    assert_ne!(parse("TZ=UTC 0 0 * * *", tokyo), parse("TZ=Asia/Tokyo 0 0 * * *", Zone::UTC));
}

#[test]
fn durations_are_gos() {
    let hour = 3_600_000_000_000;
    let rows: &[(&str, Option<i64>)] = &[
        ("0", Some(0)),
        ("-0", Some(0)),
        ("+1h", Some(hour)),
        ("1h30m", Some(hour + hour / 2)),
        (".5h", Some(hour / 2)),
        ("1.h", Some(hour)),
        ("1h1ns1us1\u{b5}s1\u{3bc}s1ms", Some(hour + 1_003_001)),
        ("2562047h47m16.854775807s", Some(i64::MAX)),
        ("-9223372036854775808ns", Some(i64::MIN)),
        ("9223372036854775808ns9223372036854775808ns", Some(0)),
        ("0.3333333333333333333h", Some(1_200_000_000_000)),
        ("0.100000000000000000000000001h", Some(360_000_000_000)),
        ("9223372036854775808ns", None),
        ("9223372036854775809ns", None),
        ("99999999999999999999999h", None),
        ("2562048h", None),
        ("", None),
        ("-", None),
        (".", None),
        (".s", None),
        ("1", None),
        ("1 h", None),
        ("1H", None),
        ("1h-1m", None),
        ("--1h", None),
    ];
    for (text, nanos) in rows {
        assert_eq!(duration::parse_nanos(text).ok(), *nanos, "{text:?}");
    }
}
