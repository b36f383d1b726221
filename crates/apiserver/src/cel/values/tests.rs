use super::*;

#[test]
fn names_of_members_are_escaped_as_upstream_escapes_them() {
    let rows = [
        ("plain", "name", "name"),
        ("a dash, a dot and a slash", "a-b.c/d", "a__dash__b__dot__c__slash__d"),
        ("two underscores", "a__b", "a__underscores__b"),
        ("a word of the language", "namespace", "__namespace__"),
        ("the last word of the language", "while", "__while__"),
    ];
    for (sentence, name, want) in rows {
        assert_eq!(escape(name), want, "{sentence}");
    }
}
