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
            c if is_printable(c) => out.push(c),
            c => push_escape(&mut out, c),
        }
    }
    out.push('"');
    out
}

/// Appends the escape of one character, as Go's `%q` writes it.
pub fn push_escape(out: &mut String, c: char) {
    // Writing to a String cannot fail.
    let _ = match c {
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        '\u{7}' => out.write_str("\\a"),
        '\u{8}' => out.write_str("\\b"),
        '\u{b}' => out.write_str("\\v"),
        '\u{c}' => out.write_str("\\f"),
        c if c.is_ascii() => write!(out, "\\x{:02x}", u32::from(c)),
        c if u32::from(c) <= 0xffff => write!(out, "\\u{:04x}", u32::from(c)),
        c => write!(out, "\\U{:08x}", u32::from(c)),
    };
}

/// Matches `strconv.IsPrint`: letters, marks, numbers, punctuation and symbols.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // After another character, because a mark at the start of a text is escaped.
    format!("a{c}").escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests;
