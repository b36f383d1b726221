use super::*;

const YAML: &str = "--- # the first\n# a comment\napiVersion: batch/v1\nspec:\n  schedule: '* * * * *'\n  list:\n  - name: a\n    \
                    image: b\n  - - x\n  - # nothing\n    name: c\n  after: {flow: 1}\n  \"quoted\": |\n    schedule: text\n";

#[test]
fn field_is_on_its_line_or_on_that_of_the_nearest_field_around_it() {
    let rows = [
        ("the whole object", "", 13),
        ("a key", "spec.schedule", 15),
        ("a list", "spec.list", 16),
        ("an item", "spec.list[0]", 17),
        ("a key in an item", "spec.list[0].image", 18),
        ("an item in an item", "spec.list[1][0]", 19),
        ("a later item", "spec.list[2].name", 21),
        ("a key after a list", "spec.after", 22),
        ("in braces", "spec.after.flow", 22),
        ("a key in quotes", "spec.quoted", 23),
        ("a missing one", "spec.list[0].command", 17),
        ("a missing one at the top", "metadata.name", 13),
        ("a key in brackets", "spec[after]", 22),
    ];
    let document = Document::yaml(11, YAML.to_owned());
    for (sentence, field, want) in rows {
        assert_eq!(Lines::of(&document).line_of(field), want, "{sentence}");
    }
}

#[test]
fn object_of_a_list_and_indented_json_are_followed_too() {
    let list = "kind: List\nitems:\n- kind: a\n- kind: b\n  spec:\n    x: 1\n";
    let json = "{\n  \"kind\": \"a\",\n  \"spec\": {\n    \"x\": 1\n  }\n}\n";
    for (text, field, want) in [(list, "items[1].spec.x", 6), (list, "items[0].spec.x", 3), (json, "spec.x", 4)] {
        let document = Document::yaml(1, text.to_owned());
        assert_eq!(Lines::of(&document).line_of(field), want, "{text}");
    }
}
