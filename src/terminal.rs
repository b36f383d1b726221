//! Text output for a terminal or a log.
//!
//! Guarantees: text that went through [`plain`] stays on one line, shows every character that it contains, and commands
//! neither the terminal nor the CI system that shows the log. What the commands print is a [`PlainText`], which can only be
//! made of such text. Pure.

use std::fmt::Write as _;
use std::ops::Deref;
#[cfg(feature = "dev")]
use std::path::Path;

use apimachinery::quoting::push_escape;
use apimachinery::steps;
use chrono::TimeDelta;
use serde::Serialize;

use crate::yaml;

/// A duration in at most two units: `9s`, `1m05s`, `2h30m`, `3d04h`. Fractions of a second are rounded up, so it never shows
/// 0s early.
pub fn countdown(wait: TimeDelta) -> String {
    let seconds = (wait.num_milliseconds().max(0) + 999) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Formats the rows as lines, with each column as wide as its widest cell. The cells become [`plain`].
pub fn columns<const N: usize>(table: &[[String; N]]) -> Vec<String> {
    let table: Vec<[String; N]> = table.iter().map(|row| row.each_ref().map(|cell| plain(cell))).collect();
    let length = |cell: &String| {
        steps::add(cell.len());
        cell.chars().count()
    };
    let width = |column: usize| table.iter().map(|row| length(&row[column])).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            // A format's width has 16 bits, and a name may be joined with any number of others.
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width.saturating_sub(length(cell)) + 3));
        }
        line.trim_end().to_owned()
    };
    table.iter().map(line).collect()
}

/// The text as a line, or a part of one, with Go's escapes in place of
/// - characters that control a terminal, end a line, change the direction of text or have no width;
/// - what begins a command of a CI system that reads its log: `::` at the start (GitHub Actions), and `##[` and `##vso[`
///   anywhere (GitHub Actions, Azure Pipelines).
///
/// The result does not change when it goes through this function again.
pub fn plain(text: &str) -> String {
    let mut line = escaped(text, push_escape);
    let start = line.len() - line.trim_start().len();
    if line[start..].starts_with("::") {
        line.replace_range(start..=start, "\\x3a");
    }
    line
}

/// A path as text, with bytes that are not UTF-8 as escapes, so that two files never look the same by them.
#[cfg(feature = "dev")]
pub(crate) fn path_text(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The text, with what may not reach a terminal or a log written by `escape`.
fn escaped(text: &str, escape: impl Fn(&mut String, char)) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let begins_command = c == '#' && text[..at].ends_with('#') && {
            let name_and_rest = text[at + 1..].trim_start_matches(|c: char| c.is_ascii_alphanumeric());
            name_and_rest.starts_with('[')
        };
        if begins_command || is_hidden(c) { escape(&mut out, c) } else { out.push(c) }
    }
    out
}

/// Whether a character has an effect other than to be seen: controls, line and paragraph separators, and Unicode's
/// `Default_Ignorable_Code_Point`, which contains those of direction and without width.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// A JSON document with JSON's own escapes in place of what [`plain`] escapes: it stays the same document. Line ends between
/// its values stay.
pub(crate) fn plain_json(document: &str) -> String {
    escaped_document(document, |out, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// As [`escaped`], for documents, in which no text contains a raw line end.
fn escaped_document(document: &str, escape: impl Fn(&mut String, char)) -> String {
    let lines = document.split('\n').map(|line| escaped(line, &escape));
    lines.collect::<Vec<_>>().join("\n")
}

/// Text for stdout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainText(String);

impl PlainText {
    /// Lines; each becomes [`plain`].
    pub fn lines<T: AsRef<str>>(lines: impl IntoIterator<Item = T>) -> Self {
        Self(lines.into_iter().map(|line| plain(line.as_ref()) + "\n").collect())
    }

    /// Text of the program itself, such as its help. Words of others in it must be [`plain`] already: nothing is changed.
    pub fn trusted(text: String) -> Self {
        Self(text)
    }

    /// A JSON document; on one line if `is_line`.
    pub fn json(value: &impl Serialize, is_line: bool) -> Self {
        let document = if is_line { serde_json::to_string(value) } else { serde_json::to_string_pretty(value) };
        // Reports are structs of texts and numbers, on which the writer cannot fail.
        Self(plain_json(&document.unwrap_or_default()) + "\n")
    }

    /// A YAML document. With text that [`plain`] would change it has JSON's notation, which is YAML too.
    pub fn yaml(value: &impl Serialize) -> Self {
        let document = yaml::write(value).unwrap_or_default();
        if document.split('\n').all(|line| plain(line) == line) {
            return Self(document);
        }
        // JSON writes characters beyond 16 bits as two escapes, which YAML does not join.
        let json = serde_json::to_string_pretty(value).unwrap_or_default();
        let escape = |out: &mut String, c: char| {
            let _ = write!(out, "\\U{:08x}", u32::from(c));
        };
        Self(escaped_document(&json, escape) + "\n")
    }
}

impl Deref for PlainText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Quotes `text` as one shell word.
pub(crate) fn shell_word(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
pub(crate) mod tests;
