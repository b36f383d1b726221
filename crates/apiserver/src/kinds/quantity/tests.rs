#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

#[test]
fn quantities_have_one_canonical_text() {
    let rows = [
        ("0", "0"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1.0", "1"),
        ("+2", "2"),
        ("-1", "-1"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000Ki", "1000Ki"),
        ("1Ki", "1Ki"),
        ("0.5Ki", "512"),
        ("1e3", "1e3"),
        ("1E", "1E"),
        ("1e0", "1"),
        ("100u", "1m"),
        ("1n", "1m"),
        (".", "0"),
        ("+", "0"),
        ("-", "0"),
        ("m", "0"),
        ("Ki", "0"),
        ("e1", "0"),
    ];
    for (text, expected) in rows {
        assert_eq!(canonical(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn exact_text_keeps_what_is_smaller_than_a_thousandth() {
    let rows = [
        ("1n", "1n"),
        ("1500n", "1500n"),
        ("2000n", "2u"),
        ("1u", "1u"),
        ("0.0000001", "100n"),
        ("1500m", "1500m"),
        ("1Gi", "1Gi"),
        ("0", "0"),
    ];
    for (text, expected) in rows {
        assert_eq!(exact(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn number_beyond_all_limits_is_still_one() {
    for text in ["1e40", "1e99999", "1e-99999", "99999999999999999999E"] {
        assert!(canonical(text).is_ok(), "{text}");
    }
}

#[test]
fn invalid_quantity_is_refused() {
    for text in ["", "abc", "1.2.3", "1 Gi", "1gi", "0x10", "1Kib", "1e+1m", "..1"] {
        assert_eq!(canonical(text), Err(FORMAT_ERROR.to_owned()), "{text}");
    }
    for text in ["1e", "e", "1e+", "1e-", "1ee", "1m1", "1Ei2", "ki", "1+1", "n+", "--1"] {
        assert_eq!(canonical(text), Err(SUFFIX_ERROR.to_owned()), "{text}");
    }
}

proptest! {
    #[test]
    fn canonical_text_stays_and_keeps_its_value(number in 0u32..2_000_000, suffix in "(m|k|M|G|Ki|Mi|Gi|e3|)") {
        let text = format!("{number}{suffix}");
        let first = canonical(&text).unwrap();
        prop_assert_eq!(canonical(&first).unwrap(), first.clone());
        prop_assert_eq!(parse(&first).unwrap().milli, parse(&text).unwrap().milli);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,40}|[0-9eEmkMKi.+-]{0,60}") {
        let _ = canonical(&text);
    }
}
