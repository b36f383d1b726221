use proptest::prelude::*;
use serde_json::{Map, Value};

use super::*;
use crate::body::parse_yaml;

#[test]
fn depth_is_that_of_the_collections_and_no_text_hides_one() {
    let rows: [(&str, &str, usize); 16] = [
        ("nothing", "a: b\nc: [d", 1),
        ("in each other", "[{a: [b]}, [c]]", 3),
        ("beside each other", "[[], [], {}]", 2),
        ("in a plain text of a block", "a: b[c[d[e", 0),
        ("in quotes", r#"["[[[", '[[['']]']"#, 1),
        ("closed in quotes only", r#"["]", ["]", ["]"#, 3),
        ("closed in single quotes only", "[']', [']''', [']'", 3),
        ("closed after a quote that is text", "[it's [a's], [b]]", 2),
        ("closed after a backslash", r#"["\"]", ["#, 2),
        ("closed in a comment only", "[ # ]\n[ # ]\n[", 3),
        ("closed in a comment that a line break of three bytes ends", "[ # ]\u{2028}[", 2),
        ("no comment without a blank", "[a#], [b#]", 1),
        ("closed in a tag only", "[!<]> [!<]> [", 3),
        ("behind an anchor", r#"[&a "]", [*a , ["#, 3),
        ("behind a key", r#"{a: "}", b: {"c":"}", d: {"#, 3),
        ("in a comment of a block", "a: 1 # [b]\nc: [d]", 1),
    ];
    for (name, text, depth) in rows {
        assert_eq!(flow_depth(text.as_bytes()), depth, "{name}");
    }
}

/// The depth without mappings of one member in lists, which need no braces.
fn depth_of(value: &Value) -> usize {
    let below = |members: &Map<String, Value>| members.values().map(depth_of).max().unwrap_or(0);
    let item = |item: &Value| match item {
        Value::Object(members) if members.len() == 1 => below(members),
        item => depth_of(item),
    };
    match value {
        Value::Array(items) => 1 + items.iter().map(item).max().unwrap_or(0),
        Value::Object(members) => 1 + below(members),
        _ => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn depth_is_at_least_that_of_the_value(inner in "[\\[\\]{},:\"'#&*!<>ab \n\u{85}-]{0,24}") {
        let text = format!("[{inner}]");
        if let Ok(document) = parse_yaml(text.as_bytes()) {
            let depth = depth_of(&document.value);
            prop_assert!(flow_depth(text.as_bytes()) >= depth, "{text:?}: {}", document.value);
        }
    }
}
