//! The output formats of a report.
//!
//! Guarantees: JSON and YAML have the same fields, in camel case, with times in RFC 3339. Every format is a
//! [`PlainText`]. Pure, but for `note`.

use std::io::Write as _;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;
use serde::Serialize;

use crate::terminal::{self, PlainText};

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

impl Format {
    /// The names on the command line, in the order of the help.
    pub const NAMES: [&str; 3] = ["table", "json", "yaml"];

    /// Reads the value of `--output`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "table" => Some(Self::Table),
            "json" => Some(Self::Json),
            "yaml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// A terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Its width in characters.
    pub width: usize,
    /// Whether to use colours.
    pub colour: bool,
}

/// A report that can be printed in each format.
pub trait Report: Serialize {
    /// The lines for people.
    fn lines(&self) -> Vec<String>;
}

/// The report in the given format.
pub fn render(report: &impl Report, format: Format) -> PlainText {
    match format {
        Format::Table => PlainText::lines(report.lines()),
        Format::Json => PlainText::json(report, false),
        Format::Yaml => PlainText::yaml(report),
    }
}

/// A time for people, with the day of the week and the offset.
pub fn moment(zone: Zone, t: DateTime<Utc>) -> String {
    zone.at(t).format(MOMENT).to_string()
}

/// The format of [`moment`].
pub const MOMENT: &str = "%a %F %T %:z";

/// A duration in at most two units; a unit that has begun counts as whole.
pub fn stretch(delta: TimeDelta) -> String {
    terminal::countdown(delta)
}

/// A number with its noun, singular or plural.
pub fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Writes what is beside the answer to stderr.
#[allow(clippy::disallowed_methods, reason = "a note is plain text")]
pub(super) fn note(text: &PlainText) {
    // Nothing is left to tell a user whose terminal is gone.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
