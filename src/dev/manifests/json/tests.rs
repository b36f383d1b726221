#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn value_of(text: &str) -> Result<Value, YamlError> {
    read(text).map(|reading| reading.value)
}

#[test]
fn values_of_json_have_whole_numbers_and_of_a_key_that_occurs_twice_the_last_value() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let twice = format!(r#"{{"a": 1, "a": 2, "b": {}}}"#, deep(DEEPEST));
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
        ("a key twice, and a float", r#"{"a": {"b": 1, "b": 2.0}, "a": 3}"#, Ok(json!({"a": 3}))),
        ("a key twice, and nesting", &twice, Err("line 1 column 123: values are nested more than 100 levels deep")),
        ("a number beyond floats", "[1e400]", Err("line 1 column 6: number out of range")),
        ("the first half of a pair", r#"["\ud83d"]"#, Ok(json!(["\u{fffd}"]))),
        ("the second half", r#"["a\uDE00b"]"#, Ok(json!(["a\u{fffd}b"]))),
        ("the first half, twice", r#""\ud83d\ud83d\ude00""#, Ok(json!("\u{fffd}😀"))),
        ("the second half first", r#""\ude00\ud83d""#, Ok(json!("\u{fffd}\u{fffd}"))),
        ("a half in a key", r#"{"\ud83d": 1}"#, Ok(json!({"\u{fffd}": 1}))),
        ("a backslash before it", r#""\\ud83d""#, Ok(json!("\\ud83d"))),
        ("two of them", r#""\\\ud83d""#, Ok(json!("\\\u{fffd}"))),
        ("nesting", &too_deep, Err("line 1 column 102: values are nested more than 100 levels deep")),
    ];
    for (name, text, want) in rows {
        assert_eq!(value_of(text).map_err(|error| error.to_string()), want.map_err(str::to_owned), "{name}");
    }
    assert!(read(&allowed).is_ok());
    let lost = read(r#"{"a": 1, "b": 2, "b": 3, "a": 4}"#).unwrap().lost;
    assert_eq!(
        lost.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["line 1 column 20: the key \"b\" occurs twice in the same mapping"]
    );
    let long_key = "k".repeat(2000);
    assert_eq!(value_of(&format!("{{\"{long_key}\": 1.0}}")).unwrap(), json!({ long_key: 1 }));
}
