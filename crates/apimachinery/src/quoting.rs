//! Quoting in Go's format.
//!
//! Guarantee: [`quote`] prints text as `%q` of Go's fmt and `strconv.Quote` do, so that messages equal upstream's. Characters
//! that only one of the two languages' Unicode tables has may differ.

use std::fmt::Write as _;

/// Quotes text as Go's `%q` does.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if c.is_ascii_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c if c.is_ascii() || is_printable(c) => out.push(c),
            c if u32::from(c) <= 0xffff => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}

/// Matches `strconv.IsPrint`: letters, marks, numbers, punctuation and symbols.
fn is_printable(c: char) -> bool {
    // After another character, because a mark at the start of a text is escaped.
    format!("a{c}").escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests {
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
}
