use super::*;

#[test]
fn nesting_and_chains_have_a_limit_and_texts_do_not_count() {
    let rows = [
        (
            "a policy",
            "object.spec.template.spec.containers.all(c, has(c.a) && c.b.exists(d, d.e in ['(((((((((((', \"[[[[\"]))"
                .to_owned(),
            true,
        ),
        (
            "brackets in each kind of text",
            r#"'(((((' + "[[[[[[[[" + '''{{{{{'{{{{''' + r'\' + "\"((((((((((""#.to_owned(),
            true,
        ),
        ("brackets in a comment", "1 // ((((((((((((((((((((\n".to_owned(), true),
        ("many items", format!("[{}]", vec!["1"; 500].join(",")), true),
        ("many conditions", vec!["a.b == 'c'"; 60].join(" || "), true),
        ("nine brackets", format!("{}1{}", "(".repeat(9), ")".repeat(9)), true),
        ("ten brackets", format!("{}1{}", "(".repeat(10), ")".repeat(10)), false),
        ("open brackets", "(".repeat(100), false),
        ("closed brackets", ")".repeat(2), false),
        ("a long sum", vec!["1"; 60].join("+"), false),
        ("a long path", format!("a{}", ".b".repeat(60)), false),
        ("a chain of in", vec!["a"; 60].join(" in "), false),
        ("a chain in brackets", format!("(((({}))))", vec!["1"; 30].join("+")), false),
        ("conditions in conditions", format!("{}1", "a?1:".repeat(60)), false),
        ("a long text", format!("'{}'", "a".repeat(5000)), false),
    ];
    for (name, text, want) in rows {
        assert_eq!(judge(&text).is_ok(), want, "{name}");
    }
}
