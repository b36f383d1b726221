use super::*;

#[test]
#[allow(clippy::type_complexity)]
fn documents_of_yaml_and_json_have_their_lines() {
    let rows: [(&str, &str, &[(usize, &str)]); 10] = [
        ("YAML", "a: 1\n---\nb: 2\n", &[(1, "a: 1\n"), (2, "\nb: 2\n")]),
        ("JSON", "{\"a\": 1}\n", &[(1, "{\"a\": 1}\n")]),
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
        (
            "between markers",
            "a: 1\n---\n{\"b\": 2}\n{\"c\": 3}\n",
            &[(1, "a: 1\n"), (3, "{\"b\": 2}"), (4, "{\"c\": 3}")],
        ),
        ("the second one broken", "{\"a\": 1}\n\n{\"b\": \n", &[(1, "{\"a\": 1}"), (3, "{\"b\": \n")]),
        ("a comment after JSON", "{\"a\": 1}\n# words\n", &[(1, "{\"a\": 1}\n# words\n")]),
        ("braces of YAML", "{a: 1}\n", &[(1, "{a: 1}\n")]),
        ("braces in a text", "{\"a\": \"}{\"}\n{\"b\": \"{\"}", &[(1, "{\"a\": \"}{\"}"), (2, "{\"b\": \"{\"}")]),
    ];
    for (name, text, want) in rows {
        let documents = documents(text);
        let got: Vec<(usize, &str)> =
            documents.iter().map(|document| (document.line, document.text.as_str())).collect();
        assert_eq!(got, want, "{name}");
    }
}
