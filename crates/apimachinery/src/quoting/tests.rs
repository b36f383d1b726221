use super::*;

#[test]
fn text_is_quoted_as_go_quotes_it() {
    let rows = [
        ("", r#""""#),
        ("a b", r#""a b""#),
        ("a\"b\\c", r#""a\"b\\c""#),
        ("\n\r\t\u{7}\u{8}\u{b}\u{c}", r#""\n\r\t\a\b\v\f""#),
        ("\0\u{7f}", r#""\x00\x7f""#),
        ("\u{85}", r#""\u0085""#),
        ("käse", r#""käse""#),
        ("k\u{e4}\u{200b}\u{7}", r#""kä\u200b\a""#),
        ("e\u{301} \u{65e5} \u{1f600}", "\"e\u{301} \u{65e5} \u{1f600}\""),
        ("\u{a0}\u{2028}\u{ad}\u{200c}\u{feff}", r#""\u00a0\u2028\u00ad\u200c\ufeff""#),
        ("\u{e000}\u{e0001}\u{10ffff}", r#""\ue000\U000e0001\U0010ffff""#),
    ];
    for (text, want) in rows {
        assert_eq!(quote(text), want);
    }
}
