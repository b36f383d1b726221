use super::*;

#[test]
fn names_are_judged_by_length_and_by_characters() {
    type Rule = fn(&str) -> Vec<String>;
    let rows: [(&str, Rule, &str, usize); 12] = [
        ("a subdomain", subdomain_errors, "a.b-c.example", 0),
        ("a subdomain in capitals", subdomain_errors, "A.b", 1),
        ("a subdomain too long and in capitals", subdomain_errors, &"A".repeat(254), 2),
        ("a label", dns_label_errors, "a-1", 0),
        ("a label with a dot", dns_label_errors, "a.b", 1),
        ("a label too long", dns_label_errors, &"a".repeat(64), 1),
        ("a path segment", path_segment_errors, "A b", 0),
        ("a path segment with both characters", path_segment_errors, "a/b%", 2),
        ("a label key with a prefix", label_key_errors, "example.com/My_name", 0),
        ("a label key with two slashes", label_key_errors, "a/b/c", 1),
        ("an empty label value", label_value_errors, "", 0),
        ("a label value that ends in a dot", label_value_errors, "a.", 1),
    ];
    for (sentence, rule, name, errors) in rows {
        assert_eq!(rule(name).len(), errors, "{sentence}: {:?}", rule(name));
    }
    assert_eq!(in_characters(dns_label_errors(&"a".repeat(64))), ["must be no more than 63 characters"]);
}
