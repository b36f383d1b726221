#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

#[test]
fn values_of_json_have_whole_numbers_and_no_key_twice() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let (allowed, too_deep) = (deep(DEEPEST), deep(DEEPEST + 1));
    let rows = [
        (
            "each type",
            r#"{"a": [null, true, -1, 18446744073709551615, 1.5, "x"]}"#,
            Ok(json!({"a": [null, true, -1, u64::MAX, 1.5, "x"]})),
        ),
        ("whole numbers", "[1.0, 1e3, -2E0, 1e21]", Ok(json!([1, 1000, -2, 1e21]))),
        ("escapes", r#""\/\ud83d\ude00""#, Ok(json!("/😀"))),
        ("tabs between values", "{\n\t\"a\":\t1\n}", Ok(json!({"a": 1}))),
        ("a key twice", r#"{"a": 1, "a": 2}"#, Err("line 1 column 12: the key \"a\" occurs twice in the same mapping")),
        ("a number beyond floats", "[1e400]", Err("line 1 column 6: number out of range")),
        ("half a pair of escapes", r#"["\ud83d"]"#, Err("line 1 column 9: an escape in a text is no character")),
        ("nesting", &too_deep, Err("line 1 column 102: values are nested more than 100 levels deep")),
    ];
    for (name, text, want) in rows {
        assert_eq!(read(text).map_err(|error| error.to_string()), want.map_err(str::to_owned), "{name}");
    }
    assert!(read(&allowed).is_ok());
    let long_key = "k".repeat(2000);
    assert_eq!(read(&format!("{{\"{long_key}\": 1.0}}")).unwrap(), json!({ long_key: 1 }));
}
