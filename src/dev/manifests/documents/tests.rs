#![allow(clippy::unwrap_used)]

use super::*;

/// The documents of a text: their lines and texts, or what is wrong with them.
fn read(text: &str) -> Vec<(usize, String)> {
    let of = |document: &Document| match document.form {
        Form::Refused(problem) => (document.line, problem.to_owned()),
        Form::Json | Form::Yaml => (document.line, document.text.clone()),
    };
    documents(text).iter().map(of).collect()
}

#[test]
#[allow(clippy::type_complexity)]
fn documents_of_yaml_and_json_are_those_of_kubectl_and_have_their_lines() {
    let rows: [(&str, &str, &[(usize, &str)]); 24] = [
        ("nothing", "", &[(1, "")]),
        ("YAML", "a: 1\n---\nb: 2\n", &[(1, "a: 1\n"), (2, "\nb: 2\n")]),
        ("a comment behind a marker", "a: 1\n--- # b\nb: 2\n---#c\n", &[(1, "a: 1\n"), (2, "# b\nb: 2\n")]),
        ("a tab behind a marker", "---\t\na: 1\n---\t# b\nb: 2\n", &[(1, "\na: 1\n"), (3, "# b\nb: 2\n")]),
        ("line ends of Windows", "a: 1\r\n---\r\nb: 2\r\n", &[(1, "a: 1\n"), (2, "\nb: 2\n")]),
        (
            "a value behind a marker",
            "a: 1\n--- {b: 2}\nc: 3\n---\nd: 4\n",
            &[(1, "a: 1\n"), (2, AFTER_MARKER), (4, "\nd: 4\n")],
        ),
        ("a text behind a marker", "--- >\n  b\n", &[(1, AFTER_MARKER)]),
        ("four dashes", "a: 1\n----\nb: 2\n", &[(1, "a: 1\n"), (2, AFTER_MARKER)]),
        ("a marker with indentation is a text", "a:\n  ---\n", &[(1, "a:\n  ---\n")]),
        ("JSON", "{\"a\": 1}\n", &[(1, "{\"a\": 1}")]),
        ("JSON after JSON", "{\"a\": 1}\n{\"b\": 2}\n", &[(1, "{\"a\": 1}"), (2, "{\"b\": 2}")]),
        (
            "on the same line",
            "{\"a\": 1}{\"b\": 2} {\"c\": 3}",
            &[(1, "{\"a\": 1}"), (1, "{\"b\": 2}"), (1, "{\"c\": 3}")],
        ),
        (
            "with indentation and empty lines",
            "\n{\n  \"a\": 1\n}\n\n{\n  \"b\": 2\n}\n",
            &[(2, "{\n  \"a\": 1\n}"), (6, "{\n  \"b\": 2\n}")],
        ),
        ("braces in a text", "{\"a\": \"}{\"}\n{\"b\": \"{\"}", &[(1, "{\"a\": \"}{\"}"), (2, "{\"b\": \"{\"}")]),
        ("a comment after JSON", "{\"a\": 1}\n# words\n", &[(1, "{\"a\": 1}")]),
        ("YAML after JSON", "{\"a\": 1}\n---\nb: 2\n", &[(1, "{\"a\": 1}"), (2, "\nb: 2\n")]),
        (
            "YAML with indentation after JSON",
            "{\"a\": 1}\n  b: 2\n  c: 3\n",
            &[(1, "{\"a\": 1}"), (1, "\n  b: 2\n  c: 3\n")],
        ),
        (
            "YAML after two of JSON",
            "{\"a\": 1}\n{\"b\": 2}\n---\nc: 3\n",
            &[(1, "{\"a\": 1}"), (2, "{\"b\": 2}"), (3, AFTER_JSON)],
        ),
        (
            "a comment after two of JSON",
            "{\"a\": 1}\n{\"b\": 2}\n# c\n",
            &[(1, "{\"a\": 1}"), (2, "{\"b\": 2}"), (3, AFTER_JSON)],
        ),
        (
            "JSON after YAML is YAML",
            "a: 1\n---\n{\"b\": 2}\n{\"c\": 3}\n",
            &[(1, "a: 1\n"), (2, "\n{\"b\": 2}\n{\"c\": 3}\n")],
        ),
        ("the second value of JSON broken", "{\"a\": 1}\n\n{\"b\": \n", &[(1, "{\"a\": 1}"), (1, "\n\n{\"b\": \n")]),
        (
            "a byte order mark of a file",
            "a: 1\n---\n\u{feff}b: 2\nc: \u{feff}\n",
            &[(1, "a: 1\n"), (2, "\nb: 2\nc: \u{feff}\n")],
        ),
        ("braces of YAML", "{a: 1}\n---\n{b: 2}\n", &[(1, "{a: 1}\n"), (2, "\n{b: 2}\n")]),
        ("comments alone", "# a\n---\n# b\n", &[(2, "\n# b\n")]),
    ];
    for (name, text, want) in rows {
        let want: Vec<(usize, String)> = want.iter().map(|(line, text)| (*line, (*text).to_owned())).collect();
        assert_eq!(read(text), want, "{name}");
    }
}

#[test]
fn errors_have_their_line_and_column_in_the_file() {
    let rows = [
        (
            "{\"a\": 1} {\"b\": {\"c\": 1,\n\"c\": 2}}",
            "line 2 column 3: the key \"c\" occurs twice in the same mapping",
        ),
        ("{\"a\": 1} {\"b\": 1, \"b\": 2}", "line 1 column 21: the key \"b\" occurs twice in the same mapping"),
        ("a: 1\n---\n\nb: [\n", "line 4 column 4: the bracket [ is not closed"),
        (
            "a: 1\n---\n\n{\"b\": 2}\n{\"c\": 3}\n",
            "line 5 column 1: there is text after the end of the document's value",
        ),
        ("a: 1\n---\n\na: @daily\n", "line 4: a value that begins with @ needs quotes: a: \"@daily\""),
        ("\"a\": */5 * * * * # b\n", "line 1: a value that begins with * needs quotes: a: \"*/5 * * * *\""),
        ("b:\n- 'a' : @daily\n", "line 2: a value that begins with @ needs quotes: a: \"@daily\""),
        ("a: {b: */5 * * * *}\n", "line 1: a value that begins with * needs quotes: b: \"*/5 * * * *\""),
        ("a: {c: 1, b: @daily, d: 2}\n", "line 1: a value that begins with @ needs quotes: b: \"@daily\""),
        ("{\"b\": * * * * *}\n", "line 1: a value that begins with * needs quotes: b: \"* * * * *\""),
        ("a: {\n  b: */5 0,12 * * *, c: 1}\n", "line 2: a value that begins with * needs quotes: b: \"*/5 0\""),
        (
            "a: 1\n---\nkind: List\nitems:\n- kind: List\n  items: []\n",
            "line 2: items[0] is a list, and kubectl refuses lists in lists; put its items into the outer one",
        ),
    ];
    for (text, want) in rows {
        // What is lost of a document is an error that leaves a value.
        let first =
            |document: &Document| document.content().map_or_else(Some, |content| content.lost.into_iter().next());
        let found = documents(text).iter().find_map(first);
        assert_eq!(found.unwrap().to_string(), want, "{text}");
    }
}

#[test]
fn integers_beyond_64_bits_with_a_sign_are_floats_as_kubectl_sends_them() {
    let rows = [
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854776000"),
        ("18446744073709551615", "1.8446744073709552e+19"),
        ("-9223372036854775808", "-9223372036854775808"),
    ];
    for (given, want) in rows {
        for text in [format!("a: [{given}]\n"), format!("{{\"a\": [{given}]}}")] {
            let objects = documents(&text)[0].objects().unwrap();
            assert_eq!(objects[0]["a"][0].to_string(), want, "{text}");
        }
    }
}
