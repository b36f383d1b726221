//! Text output for a terminal.
//!
//! Guarantee: text that went through [`plain`] cannot send control sequences to the terminal. Pure.

use std::fmt::Write as _;

use apimachinery::steps;
use chrono::TimeDelta;

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

/// Formats the rows as lines, with each column as wide as its widest cell.
pub fn columns<const N: usize>(table: &[[String; N]]) -> Vec<String> {
    let length = |cell: &String| {
        steps::add(cell.len());
        cell.chars().count()
    };
    let width = |column: usize| table.iter().map(|row| length(&row[column])).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            // Writing to a String cannot fail.
            let _ = write!(line, "{cell:<width$}   ");
        }
        line.trim_end().to_owned()
    };
    table.iter().map(line).collect()
}

/// Replaces the control characters of an object's text, which could control the terminal, with spaces.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Quotes `text` as one shell word.
#[cfg(feature = "dev")]
pub(crate) fn shell_word(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
