//! The output formats of a report.
//!
//! Guarantees: JSON and YAML have the same fields, in camel case, with times in RFC 3339. Every format is a
//! [`PlainText`]. On a terminal, no line of a [`fitting`] report is longer than the terminal unless a word or a command is. Pure, but for
//! what is written to stderr.

use std::io::{IsTerminal as _, Write as _};

use chrono::{DateTime, TimeDelta, Utc};
use schedule::Zone;
use serde::Serialize;

use crate::options::PROGRAM;
use crate::terminal::{self, PlainText, plain};

/// The space between two columns.
pub(super) const GAP: usize = 2;
/// The last cell of a row is folded within its column if that has so many characters.
const NARROWEST: usize = 20;

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

/// The same; the lines of a table fit the terminal, if there is one. A command stays on its line, so that it can be copied.
pub fn fitting(report: &impl Report, format: Format, screen: Option<Screen>) -> PlainText {
    let Some(Screen { width, .. }) = screen.filter(|_| format == Format::Table) else { return render(report, format) };
    let fit = |line: String| match plain(&line) {
        command if is_command(&command) => vec![command],
        line => folded(&line, width),
    };
    PlainText::lines(report.lines().into_iter().flat_map(fit))
}

/// Whether a line is a command for the user to run.
fn is_command(line: &str) -> bool {
    let program = line.split_whitespace().next();
    line.starts_with(' ') && program.is_some_and(|program| program == "kubectl" || program == PROGRAM)
}

/// A line as several of at most `width` characters; those after the first are further in. The last cell of a row goes on below itself,
/// if there is room.
pub(super) fn folded(line: &str, width: usize) -> Vec<String> {
    if line.chars().count() <= width {
        return vec![line.to_owned()];
    }
    let before = line.chars().take_while(|one| *one == ' ').count();
    let cell = last_cell(line, before, width);
    let further = (before + 2 * GAP).min(width / 2);
    let (head, first, indent) = cell.map_or((before, before, further), |cell| (cell, cell, cell));
    let (start, rest): (String, String) = (line.chars().take(head).collect(), line.chars().skip(head).collect());
    // Between columns there are several spaces, which have no meaning in a text that is folded.
    let text = rest.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = wrapped_in(&text, width.saturating_sub(first), width.saturating_sub(indent));
    let own =
        |(at, text): (usize, String)| if at == 0 { format!("{start}{text}") } else { format!("{:indent$}{text}", "") };
    lines.into_iter().enumerate().map(own).collect()
}

/// Where the last cell of a row begins, if it has enough of the width.
fn last_cell(line: &str, before: usize, width: usize) -> Option<usize> {
    let line: Vec<char> = line.chars().collect();
    let last = width.checked_sub(NARROWEST)?;
    let is_start = |at: &usize| line[*at] != ' ' && line[at - 1] == ' ' && line[at - 2] == ' ';
    (before + 2..line.len().min(last + 1)).rev().find(is_start)
}

/// The words in lines of at most `width` characters; a longer word has a line of its own.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    wrapped_in(text, width, width)
}

/// The same, where the first line has another width.
fn wrapped_in(text: &str, first: usize, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let width = if lines.len() > 1 { width } else { first };
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= width) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The first `most` of the names, and how many more of `all` there are.
pub(super) fn named(names: impl Iterator<Item = String>, most: usize, all: usize) -> String {
    let names: Vec<String> = names.take(most).collect();
    let more = all.saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

/// What a user reads who looks where there are none.
pub(super) const NO_CRON_JOBS: &str =
    "There are no CronJobs. -A looks in all namespaces, and --controller at another kind, such as tutorial.";

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

/// Shows how far a command is, in place of what was shown before: on stderr, if that is a terminal. An empty text takes it away.
#[allow(clippy::disallowed_methods, reason = "only asks what it is")]
pub(super) fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        replace_line(&PlainText::lines([text.to_owned()]));
    }
}

/// Replaces the line of the terminal on which the cursor is; the text has no line end but its last.
#[allow(clippy::disallowed_methods, reason = "the line is plain text")]
pub fn replace_line(text: &PlainText) {
    let mut terminal = std::io::stderr();
    let width = rustix::termios::tcgetwinsize(&terminal).map_or(80, |size| usize::from(size.ws_col).max(1));
    let line: String = text.trim_end().chars().take(width - 1).collect();
    // Nothing is left to show on a terminal that is gone.
    let _ = write!(terminal, "\r\x1b[K{line}").and_then(|()| terminal.flush());
}

#[cfg(test)]
mod tests;
