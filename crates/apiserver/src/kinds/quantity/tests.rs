#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

/// Texts that upstream reads: what it stores in a list of resources, and elsewhere.
#[test]
fn quantities_have_one_canonical_text() {
    let rows = [
        ("0", "0", "0"),
        ("0.5", "500m", "500m"),
        (".5", "500m", "500m"),
        ("1000m", "1", "1"),
        ("1500m", "1500m", "1500m"),
        ("1.0", "1", "1"),
        ("+2", "+2", "+2"),
        ("007", "007", "007"),
        ("-1", "-1", "-1"),
        ("1.234k", "1.234k", "1.234k"),
        ("1000", "1k", "1k"),
        ("1024", "1024", "1024"),
        ("1024Mi", "1Gi", "1Gi"),
        ("1.5Gi", "1536Mi", "1536Mi"),
        ("1000Ki", "1000Ki", "1000Ki"),
        ("1Ki", "1Ki", "1Ki"),
        ("+3Ki", "+3Ki", "+3Ki"),
        ("0.5Ki", "512", "512"),
        ("1001.00000000000000000000000000001Gi", "1074815565824001m", "1074815565824000000001n"),
        ("8.9999999999999999999Ti", "9Ti", "9895604649983999999891n"),
        ("8Ei", "9223372036854775807", "9223372036854775807"),
        ("1e3", "1e3", "1e3"),
        ("1E3", "1E3", "1E3"),
        ("1e4", "10e3", "10e3"),
        ("1E", "1E", "1E"),
        ("1e0", "1e0", "1e0"),
        ("100u", "1m", "100u"),
        ("1n", "1m", "1n"),
        ("1500n", "1m", "1500n"),
        ("2000n", "1m", "2u"),
        ("1e-10", "1e-3", "1e-9"),
        ("-1.2345678901", "-1235m", "-1234567891n"),
        ("0.0000001", "1m", "100n"),
        ("100000000000000000000000000001", "100000000000000000000000000001", "100000000000000000000000000001"),
        (".", "0", "0"),
        ("+", "0", "0"),
        ("-", "0", "0"),
        ("m", "0", "0"),
        ("Ki", "0", "0"),
        ("e1", "0", "0"),
    ];
    for (text, rounded, whole) in rows {
        assert_eq!(canonical(text).as_deref(), Ok(rounded), "{text}");
        assert_eq!(exact(text).as_deref(), Ok(whole), "{text}");
    }
}

#[test]
fn number_that_overflows_is_judged_as_upstream_does() {
    let rows = [
        ("1", true),
        ("1500m", false),
        ("1e18", true),
        // Their thousandths wrap around.
        ("28235741629986498", false),
        ("1000000000000000000000000000001", false),
        // Its thousandths are not computed.
        ("1e30", true),
    ];
    for (text, is_whole) in rows {
        assert_eq!(parse(text).unwrap().is_whole(), is_whole, "{text}");
    }
    let size = |text: &str| parse(text).unwrap();
    for (amount, page, is_multiple) in
        [("4Mi", "2Mi", true), ("3Mi", "2Mi", false), ("1", "0", false), ("1", "1e20", false)]
    {
        assert_eq!(size(amount).is_multiple_of(&size(page)), is_multiple, "{amount} in pages of {page}");
    }
}

#[test]
fn sums_and_comparisons_are_exact() {
    let rows = [
        ("1", "2", "3"),
        ("1Gi", "1Mi", "1025Mi"),
        ("500m", "500m", "1"),
        ("-1", "1", "0"),
        ("-3", "1", "-2"),
        ("1e30", "1", "1000000000000000000000000000001"),
        ("999", "1m", "999001m"),
        ("0", "1Ki", "1Ki"),
    ];
    for (one, other, sum) in rows {
        let (one, other) = (parse(one).unwrap(), parse(other).unwrap());
        let found = one.plus(&other);
        assert_eq!(found.text(), sum);
        assert_eq!(other.plus(&one).compare(&found), Ordering::Equal, "{sum}");
        assert_eq!(found.exceeds(&one), other.sign().is_gt(), "{sum}");
    }
}

#[test]
fn number_beyond_all_limits_is_still_one() {
    for text in
        ["1e40", "1e99999", "1e-99999", "99999999999999999999E", "1e2147483647", "1e99999999999", "1e-99999999999"]
    {
        assert!(canonical(text).is_ok(), "{text}");
    }
}

#[test]
fn invalid_quantity_is_refused() {
    for text in ["", "abc", "1.2.3", "1 Gi", "1gi", "0x10", "1Kib", "1e+1m", "..1"] {
        assert_eq!(canonical(text), Err(FORMAT_ERROR.to_owned()), "{text}");
    }
    for text in [".e-10", "+.e-20"] {
        assert_eq!(canonical(text), Err(NUMERIC_ERROR.to_owned()), "{text}");
    }
    for text in ["1e99999999999999999999", "1e", "e", "1e+", "1e-", "1ee", "1m1", "1Ei2", "ki", "1+1", "n+", "--1"] {
        assert_eq!(canonical(text), Err(SUFFIX_ERROR.to_owned()), "{text}");
    }
}

proptest! {
    #[test]
    fn canonical_text_stays_and_keeps_its_value(number in 0u32..2_000_000, suffix in "(m|k|M|G|Ki|Mi|Gi|e3|)") {
        let text = format!("{number}{suffix}");
        let first = canonical(&text).unwrap();
        prop_assert_eq!(canonical(&first).unwrap(), first.clone());
        prop_assert!(parse(&first).unwrap().compare(&parse(&text).unwrap()).is_eq());
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,40}|[0-9eEmkMKi.+-]{0,60}") {
        let _ = canonical(&text);
        if let Some(quantity) = parse(&text) {
            prop_assert!(quantity.plus(&quantity).compare(&quantity) == quantity.sign());
            let _ = (quantity.is_whole(), quantity.is_multiple_of(&quantity));
        }
    }
}
