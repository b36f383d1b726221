//! The forms in which a report is shown.
//!
//! Guarantees: JSON and YAML have the same fields, in camel case, times in RFC 3339; what is in an object never steers the
//! terminal. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;
use serde::Serialize;

use crate::terminal;

/// The form of a report.
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

/// Something that can be shown in each form.
pub trait Report: Serialize {
    /// The lines for people.
    fn lines(&self) -> Vec<String>;
}

/// The report in the form that was asked for.
pub fn render(report: &impl Report, format: Format) -> String {
    match format {
        Format::Table => report.lines().iter().map(|line| terminal::plain(line) + "\n").collect(),
        // Reports are structs of texts and numbers: neither writer can fail on them.
        Format::Json => serde_json::to_string_pretty(report).unwrap_or_default() + "\n",
        Format::Yaml => serde_yaml_ng::to_string(report).unwrap_or_default(),
    }
}

/// A time as people read it, with the day of the week and the offset.
pub fn moment(zone: Zone, t: DateTime<Utc>) -> String {
    zone.at(t).format(MOMENT).to_string()
}

/// The format of [`moment`].
pub const MOMENT: &str = "%a %F %T %:z";

/// A stretch of time in at most two units; one that has begun counts whole.
pub fn stretch(delta: TimeDelta) -> String {
    terminal::countdown(delta)
}

/// One of something, or several.
pub fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
