#![allow(clippy::unwrap_used)]

use serde::Deserialize;
use serde_json::json;

use super::super::scalars::float;
use super::*;

mod drawn;

/// A document, and what kubectl's reader makes of it.
#[derive(Deserialize)]
struct Recorded {
    yaml: String,
    #[serde(default, deserialize_with = "some")]
    json: Option<Value>,
    error: Option<String>,
}

/// A null is a value.
fn some<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Writes the numbers of JSON as this reader reads them.
fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => number.as_f64().and_then(float).unwrap_or(Value::Number(number)),
        Value::Array(items) => items.into_iter().map(whole_numbers).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, whole_numbers(value))).collect(),
        value => value,
    }
}

fn value_of(text: &str) -> Option<Value> {
    read(text).ok().map(|reading| reading.value)
}

/// The value as JSON, or what is lost, or the error.
fn outcome(text: &str) -> String {
    match read(text) {
        Ok(Reading { value, lost }) => lost.first().map_or_else(|| value.to_string(), ToString::to_string),
        Err(error) => error.to_string(),
    }
}

#[test]
fn documents_have_the_values_that_kubectl_reads() {
    let mut number = 0;
    for line in include_str!("recorded.jsonl").lines() {
        let Recorded { yaml, json, .. } = serde_json::from_str(line).unwrap();
        number += 1;
        assert_eq!(value_of(&yaml), json.map(whole_numbers), "{yaml:?}: {}", outcome(&yaml));
    }
    assert_eq!(number, 291);
}

#[test]
fn what_kubectl_loses_is_told_and_lost_here_too() {
    let rows = [
        (
            "the first of two keys",
            "a: 1\nb: {c: 2, c: 3}\na: 4\n",
            r#"{"a":4,"b":{"c":3}}"#,
            vec![(2, 11, TWICE), (3, 1, TWICE)],
        ),
        ("not what a merge set", "a: &a {b: 1}\nc:\n  <<: *a\n  b: 2\n", r#"{"a":{"b":1},"c":{"b":2}}"#, vec![]),
        ("a second object in braces", "{a: 1}\n{b: 2}\n", r#"{"a":1}"#, vec![(2, 1, TEXT_AFTER_VALUE)]),
        (
            "what follows a marker that is still there",
            "a: 1\n---\nb: 2\n",
            r#"{"a":1}"#,
            vec![(2, 1, TEXT_AFTER_VALUE)],
        ),
        ("what follows the end of a document", "a: 1\n...\nb: 2\n", r#"{"a":1}"#, vec![(3, 1, TEXT_AFTER_VALUE)]),
        ("what is not YAML there", "a: 1\n...\n\n  @\n", r#"{"a":1}"#, vec![(4, 3, TEXT_AFTER_VALUE)]),
        ("a comment there", "a: 1\n...\n# c\n", r#"{"a":1}"#, vec![]),
    ];
    for (name, document, value, want) in rows {
        let reading = read(document).unwrap();
        assert_eq!(reading.value.to_string(), value, "{name}");
        let places: Vec<_> = reading.lost.iter().map(|lost| (lost.line, lost.column.unwrap())).collect();
        assert_eq!(places, want.iter().map(|(line, column, _)| (*line, *column)).collect::<Vec<_>>(), "{name}");
        assert!(
            reading.lost.iter().zip(&want).all(|(lost, want)| lost.problem.ends_with(want.2)),
            "{name}: {:?}",
            reading.lost
        );
    }
}

#[test]
fn errors_are_in_plain_words_and_have_their_line() {
    let level = |(key, of): (char, char)| format!("{key}: &{key} [{}]\n", vec![format!("*{of}"); 10].join(", "));
    let levels: Vec<String> = ('b'..='j').zip('a'..).map(level).collect();
    let bomb = format!("a: &a [x, x, x, x, x, x, x, x, x, x]\n{}", levels.concat());
    let brackets = "[".repeat(150) + &"]".repeat(150);
    let dashes = "- ".repeat(200);
    let rows = [
        (
            "a key twice",
            "a: 1\nb:\n  c: 1\n  c: 2\n",
            "line 4 column 3: the key \"c\" occurs twice in the same mapping",
        ),
        (
            "a key twice in JSON",
            r#"{"a": 1, "a": 2}"#,
            "line 1 column 10: the key \"a\" occurs twice in the same mapping",
        ),
        ("a tab", "a:\n\tb: 1\n", "line 2 column 1: a tab is used for indentation; use spaces"),
        ("an alias without an anchor", "a: *b\n", "line 1 column 4: there is no anchor of this name before the alias"),
        ("an anchor in itself", "a: &x [*x]\n", "line 1 column 8: the value of the anchor x contains itself"),
        ("a key without a colon", "a: 1\nb\nc: 2\n", "line 2 column 1: could not find the ':' after a key"),
        (
            "a second colon",
            "a: b: c\n",
            "line 1 column 5: a ':' is not allowed here; a text with ': ' needs quotes, and keys of one mapping have the same indentation",
        ),
        ("an open bracket", "a: [1,\n", "line 1 column 4: the bracket [ is not closed"),
        ("an open quote", "a: \"b\n", "line 1 column 4: a text in quotes is not closed"),
        ("an open quote before a tab", "a: \"b\n \tc\n", "line 1 column 4: a text in quotes is not closed"),
        (
            "a list among keys",
            "a: 1\n- b\n",
            "line 2 column 1: a key is expected here, with the indentation of the keys before it",
        ),
        ("infinity", "a: .inf\n", "line 1 column 4: infinity and NaN are not allowed; put the value in quotes"),
        ("a wrong tag", "a: !!int x\n", "line 1 column 4: the value \"x\" has the tag !!int, but is not of that type"),
        ("base64", "a: !!binary x\n", "line 1 column 4: the value of !!binary is not base64"),
        ("an empty key", "a: 1\n? \n: 2\n", "line 2 column 2: a key is empty, or null"),
        ("a list as a key", "? [a]\n: 2\n", "line 1 column 3: a key is a list or a mapping"),
        (
            "a large number as a key",
            "18446744073709551615: 1\n",
            "line 1 column 1: the key 18446744073709551615 needs quotes",
        ),
        ("a merge of a text", "a:\n  <<: x\n", "line 2 column 7: a merge needs a mapping, or a list of mappings"),
        ("nesting in brackets", &brackets, "line 1 column 101: values are nested more than 100 levels deep"),
        ("nesting by dashes", &dashes, "line 1 column 201: values are nested more than 100 levels deep"),
        ("a bomb", &bomb, "line 6 column 12: its aliases repeat too much"),
    ];
    for (name, document, want) in rows {
        assert_eq!(outcome(document), want, "{name}");
    }
}

/// Documents that are refused, for each reason that the parser has.
fn documents_of_every_fault() -> Vec<&'static str> {
    let documents = r#"a: [|a: {b|a: "x|a: 'x|a: b: c|a¶b: c| a: 1¶b: 2|a: 1¶ b: 2|a:¶→b: 1|a: *x|&x &y a|!<x|!x!y a|a: !!int x|? a¶: b¶c|- a¶b: 1
a: 1¶- b|a: ]|a: }|a: @x|a: `x|a: %x|%YAML 1.9¶---¶a: 1|%FOO¶---¶a|%TAG ! x¶a: 1|%YAML¶---¶a|%YAML 1¶---¶a|%YAML 2.0¶---¶a: 1|% ¶---¶a
a: >-+¶ b|a: "\q"|a: "\u12"|a: "\ud800"|a: "\ud800\u12"|a: "\udc00"|a: "\U00110000"|{a: 1, b|{a: 1 b: 2}|[a, , b]|[a b: c: d]|, a
a: - b|a: "x" y|"x" y: 1|a: 'x' y|a: [1,2]]|a: {x: 1}}|a: [1}|a: {b: 1]|a: 1¶a: 2|[- a]|[a: 1¶]: b|a: &|a: * b|a: !<> x|a: !%zz x
a: "x¶y: 1|a: [x¶y: 1|a: # c¶  b # d¶  c|- - - a¶ - b|a: "x¶---¶y"|a: 1#b: c: d|a: [b]#c|{? a: b: c}|[-]|a: >¶→x|a: x¶→y: 1|- →a: 1"#;
    let lines = documents.lines().flat_map(|line| line.split('|'));
    let blocks = ["a: |x\n b", "a: |0\n b", "a: |\n\tx", "a: |\n  x\n y: 1", "a: |2\n b"];
    let written = lines.map(|line| line.replace('¶', "\n").replace('→', "\t"));
    written.map(|text| &*text.leak()).chain(blocks).collect()
}

#[test]
fn comments_and_long_documents_have_no_limit() {
    let comments = "# why\n".repeat(5000);
    let rows = [
        ("comments between keys", format!("a: 1\n{comments}b: 2\n"), 2),
        ("comments in a list", format!("- a\n{comments}- b\n"), 2),
        ("comments behind values", "- a # why\n".repeat(5000), 5000),
        ("many values", "- {a: 1, b: [x, 'y', \"z\"], c: {d: e}}\n".repeat(30_000), 30_000),
        ("an anchor that many items use", "- &a x\n".to_owned() + &"- *a\n".repeat(30_000), 30_001),
    ];
    for (name, document, want) in rows {
        let value = read(&document).unwrap_or_else(|error| panic!("{name}: {error}")).value;
        let number = value.as_array().map(Vec::len).or_else(|| value.as_object().map(Map::len));
        assert_eq!(number, Some(want), "{name}");
    }
}

/// Documents with each kind of scalar in each style, with each tag, at each place.
fn scalars_everywhere() -> Vec<String> {
    let words = "yes no on Off y N true TRUE null ~ .inf -.5 1e3 08 010 0o7 0x1f 0b11 1_000 2026-01-01 3.0 1.2096e+06 83e2010 83e20 12:30 \
                 9223372036854775808 -0 +5 1e21 a.b/c-d http://x:80 é aGk=";
    let tags =
        ["", "!!str ", "!!int ", "!!float ", "!!bool ", "!!null ", "!!binary ", "!!timestamp ", "!local ", "! ", "&a "];
    let mut documents = Vec::new();
    for word in words.split(' ') {
        for styled in [word.to_owned(), format!("'{word}'"), format!("\"{word}\"")] {
            for tag in tags {
                let value = format!("{tag}{styled}");
                documents.extend([
                    format!("v: {value} # why\nw: 1\n"),
                    format!("{value} : 1\n"),
                    format!("v: [{value}, {{k: {value}}}]\n"),
                    format!("v:\n- {value}\n- k: {value}\n# why\n  {styled} : 1\n"),
                ]);
            }
        }
        for header in ["|", ">-", "!!str |+", "!!int |-"] {
            documents.push(format!("v: {header}\n  {word}\n\n  # no comment\nw: 1\n"));
        }
    }
    documents
}

/// What kubectl's own reader makes of documents; `None` without Go.
fn recorded(test: &str, documents: &[String]) -> Option<Vec<Recorded>> {
    if !testkit::tools::has(test, "go", &["version"]) {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let rows: Vec<String> = documents.iter().map(|text| json!({ "yaml": text }).to_string()).collect();
    std::fs::write(directory.path().join("rows"), rows.join("\n")).unwrap();
    let go = std::process::Command::new("go")
        .args(["run", "./goyaml"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/controlplane"))
        .stdin(std::fs::File::open(directory.path().join("rows")).unwrap())
        .output()
        .unwrap();
    if !go.status.success() {
        let why = format!("the reader of kubectl is not built: {}", String::from_utf8_lossy(&go.stderr));
        testkit::tools::without(test, &why, "REQUIRE_TOOLS");
        return None;
    }
    let lines = String::from_utf8(go.stdout).unwrap();
    assert_eq!(lines.lines().count(), documents.len());
    Some(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// What this reader and kubectl's make of a document, if that differs: the value, or the error.
fn difference(row: &Recorded) -> Option<(String, Result<String, String>)> {
    let want = row.json.clone().map(whole_numbers);
    let differs = value_of(&row.yaml) != want;
    differs.then(|| {
        let of_kubectl = want.map(|value| value.to_string()).ok_or_else(|| row.error.clone().unwrap_or_default());
        (outcome(&row.yaml), of_kubectl)
    })
}

#[test]
fn scalars_have_the_values_of_the_reader_of_kubectl_itself() {
    let documents = scalars_everywhere();
    let test = "scalars_have_the_values_of_the_reader_of_kubectl_itself";
    let Some(recorded) = recorded(test, &documents) else { return };
    let different: Vec<String> = recorded
        .iter()
        .filter_map(|row| difference(row).map(|(ours, theirs)| format!("{:?}: {ours}, and not {theirs:?}", row.yaml)))
        .collect();
    assert!(
        different.is_empty(),
        "{} of {}: {:#?}",
        different.len(),
        documents.len(),
        &different[..different.len().min(20)]
    );
}

/// The seeds of the documents that are drawn, and how many of each. Other seeds may draw a mapping with the keys `1` and `"1"`, of which
/// kubectl takes now one and now the other.
const DRAWN: [(u64, usize); 3] = [(1, 20_000), (2, 10_000), (4, 10_000)];

#[test]
fn drawn_documents_have_the_values_of_the_reader_of_kubectl_itself() {
    let test = "drawn_documents_have_the_values_of_the_reader_of_kubectl_itself";
    let documents: Vec<String> = DRAWN.iter().flat_map(|(seed, number)| drawn::documents(*seed, *number)).collect();
    let Some(recorded) = recorded(test, &documents) else { return };
    let different: Vec<String> = recorded
        .iter()
        .filter_map(|row| difference(row).map(|(ours, theirs)| format!("{:?}: {ours}, and not {theirs:?}", row.yaml)))
        .collect();
    assert!(different.is_empty(), "{} of {}: {different:#?}", different.len(), documents.len());
    let accepted = recorded.iter().filter(|row| row.json.is_some());
    let (whole, with_loss): (Vec<_>, Vec<_>) = accepted.partition(|row| read(&row.yaml).unwrap().lost.is_empty());
    assert_eq!((whole.len(), with_loss.len()), (7892, 461), "docs/testing.md has these numbers");
}

#[test]
fn documents_that_only_yaml_1_2_has_are_refused_as_kubectl_refuses_them() {
    let tab = "a tab is used for indentation; use spaces";
    let rows = [
        ("a tab after a dash", "a:\n-\tb\n", 2, 2, tab),
        ("a tab in an empty line", "a: [1]\n \t\nb: 2\n", 2, 2, tab),
        ("a tab before a comment", "a: 'x'\n\t# c\n", 2, 1, tab),
        ("a tab in an empty line of a text", "a: |\n  b\n\t\n  c\n", 3, 1, tab),
        ("a tab in an empty line after a text", "a: |\n  b\n\t\n", 3, 1, tab),
        ("a tab in the indentation of a text", "a: >\n  \n \tb\n", 3, 2, tab),
        ("a control character", "a: \u{7}\n", 1, 4, "the character U+0007 is not allowed"),
        ("a second byte order mark", "\u{feff}\u{feff}a: 1\n", 1, 1, "the character U+FEFF is not allowed"),
        ("an escape of a slash", "a: \"x\\\\\\/y\"\n", 1, 8, "an escape that only JSON has"),
        ("a pair of escapes", "a: \"\\ud83d\\ude00\"\n", 1, 5, "an escape that only JSON has"),
        (
            "a schedule in braces",
            "a: {schedule: 0 3 ? * *}\n",
            1,
            19,
            "a text with a ? needs quotes within braces and brackets",
        ),
        ("a second value", "{a: 1}\n{b: 2}\n", 2, 1, "there is text after the end of the document's value"),
        (
            "a mapping with less indentation",
            "  a: 1\nb: 2\n",
            2,
            1,
            "there is text after the end of the document's value",
        ),
        (
            "a key without a space",
            "a:1\nb: 2\n",
            2,
            2,
            "a ':' is not allowed here; a text with ': ' needs quotes, and keys of one mapping have the same indentation",
        ),
    ];
    for (name, document, line, column, problem) in rows {
        assert_eq!(outcome(document), format!("line {line} column {column}: {problem}"), "{name}");
    }
    let allowed = [
        "a:\t1\nb: [\t1\t]\t\nc: 'x'\t# c\n\nd: |\n  x\n  \ty\n\n#\tc\n",
        "a: \"\\\\/ \\u00e9\"\nb: c ? d\n",
        "a: 1\n...\n",
        "\u{feff}a: 1\nb: \u{feff}\n",
    ];
    for document in allowed {
        assert!(read(document).is_ok(), "{document:?}: {}", outcome(document));
    }
}

/// Documents that are written to cost much, so many bytes long.
fn hostile(length: usize) -> Vec<(&'static str, String)> {
    let repeated = |text: &str| text.repeat(length / text.len());
    let numbered =
        |line: &dyn Fn(usize) -> String, size: usize| (0..length / size).map(line).collect::<Vec<_>>().concat();
    let anchors = numbered(&|at| format!("- &a{at} [x, *a{}]\n", at.max(1) - 1), 20);
    let keys = numbered(&|at| format!("k{at:08}: 1\n"), 12);
    let nested = format!("{}{}\n", "&a [".repeat(99), "]".repeat(99));
    vec![
        (
            "aliases of a long value",
            format!("a: &a [{}]\nb: [{}]\n", "x, ".repeat(length / 6), "*a, ".repeat(length / 8)),
        ),
        ("aliases of aliases", anchors),
        (
            "merges of a long mapping",
            format!("a: &a\n  {}b:\n{}", keys.replace('\n', "\n  "), "- <<: *a\n".repeat(length / 18)),
        ),
        ("nested anchors", repeated(&format!("- {nested}"))),
        ("anchors of one name", repeated("- &a x\n- *a\n")),
        ("brackets", repeated("[")),
        ("dashes", repeated("- ")),
        ("question marks", repeated("? ")),
        ("tabs", repeated("\t")),
        ("spaces", repeated(" ")),
        ("empty lines of spaces", repeated("   \n")),
        ("values that are left out", repeated("-\n")),
        ("values and spaces", format!("a:\n{}", repeated("- x          \n"))),
        ("comments", repeated("# c\n")),
        ("a text of many lines", format!("a: |\n{}", repeated("  x\n"))),
        ("a text in quotes", format!("a: \"{}\"\n", repeated("\\\\"))),
        ("a plain text", format!("a: {}\n", repeated("x "))),
        ("a tag", format!("a: !{} x\n", repeated("x"))),
        ("an anchor", format!("a: &{} x\n", repeated("x"))),
        ("a list in brackets", format!("[{}]\n", repeated("x, "))),
        ("pairs in brackets", format!("[{}]\n", repeated("a: b, "))),
        ("keys", keys),
        ("directives", repeated("%A b\n")),
        ("handles of tags", numbered(&|at| format!("%TAG !h{at}! x\n"), 16)),
        ("brackets on lines of their own", repeated("[\n")),
        ("braces", repeated("{")),
        ("an anchor for each value", numbered(&|at| format!("- &a{at} x\n"), 12)),
        ("a long key", format!("{}: 1\n", repeated("x"))),
        ("empty brackets", format!("[{}]\n", repeated("[], "))),
        ("pairs in nested brackets", format!("{}{}{}\n", "[".repeat(99), repeated("a: b, "), "]".repeat(99))),
        ("a key many times", repeated("a: 1\n")),
    ]
}

#[test]
fn documents_that_are_written_to_cost_much_take_steps_that_grow_with_their_length() {
    const LENGTH: usize = 40_000;
    for (name, document) in hostile(LENGTH) {
        let (steps, ()) = steps::of(|| drop(read(&document)));
        // What aliases may repeat in a short document counts by itself.
        let allowed = 100 * document.len() + ALIASED / size_of::<Value>() * 4;
        assert!(
            steps <= allowed as u64,
            "{name}: {steps} steps for {} bytes, and {allowed} are allowed",
            document.len()
        );
    }
}

/// Words of the grammar of YAML and of parsers, which mean nothing to someone who writes manifests.
const JARGON: [&str; 20] = [
    "while parsing",
    "while scanning",
    "did not find",
    "context",
    "eof",
    "scalar",
    "flow",
    "block",
    "indicator",
    "sequence",
    "simple key",
    "collection",
    "token",
    "node",
    "surrogate",
    "verbatim",
    "percent",
    "utf-8",
    "recursion",
    "stream",
];

#[test]
fn no_document_with_a_fault_is_answered_with_words_of_the_grammar() {
    let drawn = drawn::documents(4, 2000);
    let documents = documents_of_every_fault().into_iter().chain(drawn.iter().map(String::as_str));
    let problems: HashSet<String> = documents.filter_map(|document| Some(read(document).err()?.problem)).collect();
    for problem in &problems {
        let words: Vec<&str> = JARGON.into_iter().filter(|word| problem.to_lowercase().contains(word)).collect();
        assert_eq!(words, [""; 0], "{problem}");
    }
    assert!(problems.len() > 40, "{problems:#?}");
}
