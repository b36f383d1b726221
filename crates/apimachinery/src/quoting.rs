//! Quoting in Go's format.
//!
//! Guarantee: [`quote`] prints ASCII text as `%q` of Go's fmt does, so that messages equal upstream's.

/// Quotes text as Go's `%q` does.
pub fn quote(text: &str) -> String {
    use std::fmt::Write;
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
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
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
        ];
        for (text, want) in rows {
            assert_eq!(quote(text), want);
        }
    }
}
