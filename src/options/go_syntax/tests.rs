use std::time::Duration;

use proptest::prelude::*;

use super::*;

#[test]
fn booleans_are_what_go_calls_booleans() {
    let rows = [
        ("one is true", "1", Some(true)),
        ("t is true", "t", Some(true)),
        ("capital T is true", "T", Some(true)),
        ("true is true", "true", Some(true)),
        ("True is true", "True", Some(true)),
        ("TRUE is true", "TRUE", Some(true)),
        ("zero is false", "0", Some(false)),
        ("f is false", "f", Some(false)),
        ("False is false", "False", Some(false)),
        ("mixed case is refused", "tRUE", None),
        ("yes is refused", "yes", None),
        ("nothing is refused", "", None),
    ];
    for (sentence, text, want) in rows {
        assert_eq!(parse_bool(text), want, "{sentence}");
    }
}

#[test]
fn whole_numbers_are_what_go_calls_integers() {
    let rows = [
        ("a plain number", "64", Some(64)),
        ("a plus sign is allowed", "+5", Some(5)),
        ("a minus sign is allowed", "-1", Some(-1)),
        ("hexadecimal by prefix", "0x10", Some(16)),
        ("octal by letter", "0o17", Some(15)),
        ("octal by a leading zero", "010", Some(8)),
        ("binary by prefix", "0B101", Some(5)),
        ("underscores separate digits", "1_000", Some(1000)),
        ("an underscore may follow the prefix", "0x_f", Some(15)),
        ("a doubled underscore is refused", "1__0", None),
        ("a last underscore is refused", "1_", None),
        ("two signs are refused", "--1", None),
        ("a sign behind the prefix is refused", "0x+1", None),
        ("a prefix without digits is refused", "0x", None),
        ("the least number fits", "-9223372036854775808", Some(i64::MIN)),
        ("one below it does not", "-9223372036854775809", None),
        ("a fraction is refused", "1.5", None),
        ("a word is refused", "many", None),
        ("nothing is refused", "", None),
    ];
    for (sentence, text, want) in rows {
        assert_eq!(parse_int(text), want, "{sentence}");
    }
}

#[test]
fn durations_are_what_go_calls_durations() {
    let rows = [
        ("seconds", "15s", Some(15 * SECOND)),
        ("minutes and seconds", "1m30s", Some(90 * SECOND)),
        ("hours and minutes", "2h45m", Some(165 * MINUTE)),
        ("a fraction of an hour", "1.5h", Some(90 * MINUTE)),
        ("a fraction without a whole part", ".5s", Some(500 * MILLISECOND)),
        ("a point without a fraction", "1.s", Some(SECOND)),
        ("milliseconds", "100ms", Some(100 * MILLISECOND)),
        ("micro in the first spelling", "3\u{b5}s", Some(3 * MICROSECOND)),
        ("micro in the second spelling", "3\u{3bc}s", Some(3 * MICROSECOND)),
        ("micro in ASCII", "3us", Some(3 * MICROSECOND)),
        ("nanoseconds", "7ns", Some(7)),
        ("zero needs no unit", "0", Some(0)),
        ("not even with a sign", "-0", Some(0)),
        ("a negative duration", "-1m", Some(-MINUTE)),
        ("units may repeat", "1s1s", Some(2 * SECOND)),
        ("digits below the nanosecond are cut off", "0.3333333333333333333h", Some(20 * MINUTE)),
        ("the longest", "9223372036854775807ns", Some(i64::MAX)),
        ("one more is refused", "9223372036854775808ns", None),
        ("hours that overflow are refused", "2562048h", None),
        ("a number without a unit is refused", "15", None),
        ("an unknown unit is refused", "1d", None),
        ("a space is refused", "1 s", None),
        ("a unit alone is refused", "s", None),
        ("a point alone is refused", ".s", None),
        ("a sign alone is refused", "-", None),
        ("nothing is refused", "", None),
    ];
    for (sentence, text, want) in rows {
        assert_eq!(parse_duration(text), want, "{sentence}");
    }
}

#[test]
fn durations_print_as_go_prints_them() {
    let rows = [
        ("zero", Duration::ZERO, "0s"),
        ("nanoseconds", Duration::from_nanos(12), "12ns"),
        ("microseconds with a fraction", Duration::from_nanos(1_100), "1.1\u{b5}s"),
        ("milliseconds", Duration::from_millis(100), "100ms"),
        ("seconds", Duration::from_secs(15), "15s"),
        ("seconds with a fraction", Duration::from_millis(2_050), "2.05s"),
        ("minutes keep their seconds", Duration::from_secs(60), "1m0s"),
        ("hours keep their minutes", Duration::from_secs(7_200), "2h0m0s"),
    ];
    for (sentence, duration, want) in rows {
        assert_eq!(format_duration(duration), want, "{sentence}");
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_the_same(nanos in 0..=i64::MAX) {
        let printed = format_duration(Duration::from_nanos(nanos.unsigned_abs()));
        prop_assert_eq!(parse_duration(&printed), Some(nanos));
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "[-+.0-9_xobhmsnu\u{b5}]{0,24}|\\PC{0,16}") {
        let _ = (parse_bool(&text), parse_int(&text), parse_float(&text), parse_duration(&text));
    }
}
