#![allow(clippy::unwrap_used)]

use std::sync::LazyLock;

use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value, json};

use super::*;

#[test]
fn table_has_any_number_of_characters_in_a_cell() {
    let long = "x".repeat(70_000);
    let table = [["NAME".to_owned(), "WHY".to_owned()], ["a".to_owned(), long.clone()]];
    assert_eq!(columns(&table), ["NAME   WHY".to_owned(), format!("a      {long}")]);
}

/// Words that a tenant may write, each with its name.
pub const HOSTILE: [(&str, &str); 16] = [
    ("a command after a line break", "a.yaml\n::error file=x::owned"),
    ("after a carriage return", "a\r::warning::owned"),
    ("after a next line", "a\u{85}::error::owned"),
    ("after a line separator", "a\u{2028}::error::owned\u{2029}"),
    ("a command", "::add-mask::a"),
    ("after spaces", " \t\u{a0}::error::owned"),
    ("a command anywhere", "a ##[error]owned"),
    ("Azure's", "a ###vso[task.setvariable variable=a]owned"),
    ("a clear screen", "a\u{1b}[2J\u{1b}]0;title\u{7}"),
    ("with one byte", "a\u{9b}2J\u{7f}\u{0}\u{8}"),
    ("reversed text", "a\u{202e}lmay.\u{202c}"),
    ("isolated text", "a\u{2066}b\u{2069}\u{61c}\u{200e}\u{200f}"),
    ("no width", "a\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}\u{ad}"),
    ("tags", "a\u{e0001}\u{e0068}\u{e0069}"),
    ("no commands", "c:a '::' \"##\" # [x] \\ % é 日本語 😀"),
    ("nothing", ""),
];

static HIDDEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\u{fff9}-\u{fffb}--\n]").unwrap()
});
static COMMAND: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)^\s*::|##[A-Za-z0-9]*\[").unwrap());

/// The characters and commands in lines of output that should not be there. It is written anew, from Unicode's tables and
/// the parsers of the CI systems.
pub fn harmful(lines: &str) -> Vec<String> {
    let found = HIDDEN.find_iter(lines).chain(COMMAND.find_iter(lines));
    found.map(|found| found.as_str().escape_unicode().to_string()).collect()
}

#[test]
fn text_is_escaped_where_it_would_have_an_effect() {
    let rows = [
        ("käse 日本語 😀 e\u{301} a\\b \"c\"", "käse 日本語 😀 e\u{301} a\\b \"c\""),
        ("a\n::error::x", r"a\n::error::x"),
        ("a\tb\r\u{1b}[2J\u{7}\u{0}", r"a\tb\r\x1b[2J\a\x00"),
        ("\u{85}\u{9b}\u{2028}\u{202e}", r"\u0085\u009b\u2028\u202e"),
        ("\u{200b}\u{feff}\u{e0041}", r"\u200b\ufeff\U000e0041"),
        ("::error::x", r"\x3a:error::x"),
        ("  ::error::x", r"  \x3a:error::x"),
        ("x ::error::x: a::b", "x ::error::x: a::b"),
        ("##[error]x", r"#\x23[error]x"),
        ("###vso[x]", r"##\x23vso[x]"),
        ("## a [b]", "## a [b]"),
    ];
    for (text, want) in rows {
        assert_eq!(plain(text), want, "{text:?}");
    }
}

#[test]
fn hidden_characters_are_those_of_unicode() {
    for c in (char::MIN..=char::MAX).filter(|c| *c != '\n') {
        assert_eq!(is_hidden(c), HIDDEN.is_match(&c.to_string()), "{}", c.escape_unicode());
    }
}

#[cfg(feature = "dev")]
#[test]
fn bytes_of_a_path_that_are_not_text_are_escaped() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let path = Path::new(OsStr::from_bytes(b"d/\xffk\xc3\xa4se\xe2\x82.yaml"));
    assert_eq!(path_text(path), r"d/\xffkäse\xe2\x82.yaml");
}

#[test]
fn documents_are_harmless_and_have_the_same_values() {
    for (name, words) in HOSTILE {
        let value = json!({"words": words, words: [words, {"b": format!("{words}\n{words}")}]});
        for text in [PlainText::json(&value, false), PlainText::json(&value, true)] {
            assert_eq!(
                (harmful(&text), serde_json::from_str::<Value>(&text).unwrap()),
                (vec![], value.clone()),
                "{name}"
            );
        }
        let text = PlainText::yaml(&value);
        assert_eq!((harmful(&text), serde_saphyr::from_str::<Value>(&text).unwrap()), (vec![], value), "{name}");
    }
}

/// Text of pieces of hostile words.
fn text() -> impl Strategy<Value = String> {
    let words = HOSTILE.map(|(_, words)| words).concat();
    let pieces = ["#", "##", "[", "::", ":", " ", "\n", "\u{e9}"].into_iter().map(str::to_owned);
    let pieces: Vec<String> = words.chars().map(String::from).chain(pieces).collect();
    prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn plain_text_is_one_harmless_line_and_stays_the_same(text in text()) {
        let line = plain(&text);
        prop_assert!(harmful(&line).is_empty() && !line.contains('\n'), "{line:?}");
        prop_assert_eq!(plain(&line), line);
    }

    #[test]
    fn outputs_are_harmless_and_documents_keep_their_values(texts in prop::collection::vec(text(), 0..4)) {
        let table: Vec<[String; 2]> = texts.iter().map(|text| [text.clone(), text.clone()]).collect();
        for lines in [PlainText::lines(&texts), PlainText::lines(columns(&table))] {
            prop_assert!(harmful(&lines).is_empty(), "{lines:?}");
            prop_assert_eq!(lines.lines().count(), texts.len());
        }
        let (json, yaml) = (PlainText::json(&texts, false), PlainText::yaml(&texts));
        prop_assert!(harmful(&json).is_empty() && harmful(&yaml).is_empty(), "{json:?} {yaml:?}");
        prop_assert_eq!(&serde_json::from_str::<Vec<String>>(&json).unwrap(), &texts);
        prop_assert_eq!(&serde_saphyr::from_str::<Vec<String>>(&yaml).unwrap(), &texts, "{}", &*yaml);
    }
}
