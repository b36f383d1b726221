//! The table of `list` on a terminal.
//!
//! Guarantees: no line is longer than the terminal unless a single word is, every text of an object is [`plain`], and without colour
//! nothing is lost. Pure.

use crate::cli::explain::Urgency;
use crate::cli::output::{GAP, Screen, folded, wrapped};
use crate::terminal::{PlainText, plain};

/// The cells of a CronJob.
pub(super) type Row = [String; 9];

/// The headings.
pub(super) const COLUMNS: [&str; 9] =
    ["CRONJOB", "CONTROLLER", "STATE", "NEXT", "LAST", "LATE", "BLOCKED BY", "SINCE", "RUNS"];
/// The places of some of them.
const NAME: usize = 0;
/// Where CronJobs have several controllers and there is no column for them, it has lines of its own, too.
const CONTROLLER: usize = 1;
const LAST: usize = 4;
/// What blocks it, or its freeze.
const BLOCKED_BY: usize = 6;
/// On a terminal it has lines of its own, below the row. Without a column for it, so does a freeze.
const SINCE: usize = 7;
const RUNS: usize = 8;
/// What is left out on a terminal that is too narrow, in this order: the controller if all have the same, what blocks, how late, and the
/// controller.
const LEFT_OUT: [usize; 4] = [CONTROLLER, BLOCKED_BY, 5, CONTROLLER];
/// So many slots of a strip are enough, if there is no place for more.
const SHORT_STRIP: usize = 10;
/// What the letters of a strip mean.
const LEGEND: &str = "RUNS, the newest right: \u{2713} succeeded, \u{2717} failed, \u{25cf} running, \u{2013} ran and its Job is gone, \
                      \u{25cb} skipped, ~ waits, = held, > due, ! missed, \u{2016} suspended, * frozen, ? unknown";

/// The rows, of which the worst is the first, as a terminal shows them: the worst last.
pub(super) fn on_screen(
    rows: Vec<Row>,
    urgencies: &[Urgency],
    unread: &[String],
    banners: &[String],
    screen: Screen,
) -> PlainText {
    let in_tone = |code: Option<&str>, line: String| match code.filter(|_| screen.colour) {
        Some(code) => format!("\x1b[{code}m{line}\x1b[0m"),
        None => line,
    };
    let tones = std::iter::once(None).chain(urgencies.iter().rev().copied().map(Some));
    let rows = rows.into_iter().map(|row| row.map(|cell| plain(&cell))).collect::<Vec<_>>();
    let shown = shown(&rows, screen.width);
    let names_each = have_several(&rows) && !shown.contains(&CONTROLLER);
    let told = |row: &Row| {
        let controller = names_each.then(|| format!("  controller: {}", row[CONTROLLER]));
        let rest = match &*row[SINCE] {
            "-" if !shown.contains(&BLOCKED_BY) => below(&row[BLOCKED_BY], screen.width),
            since => below(since, screen.width),
        };
        controller.into_iter().chain(rest).collect()
    };
    let since: Vec<Vec<String>> = rows.iter().rev().map(told).collect();
    let since = std::iter::once(Vec::new()).chain(since);
    let row = |((urgency, line), since): ((Option<Urgency>, String), Vec<String>)| {
        std::iter::once(line).chain(since).map(move |line| in_tone(tone(urgency), line)).collect::<Vec<_>>()
    };
    let lines = tones.zip(fitted(rows, &shown, screen.width)).zip(since).flat_map(row);
    let legend = wrapped(LEGEND, screen.width);
    let words = |texts: &[String]| texts.iter().flat_map(|text| folded(&plain(text), screen.width)).collect::<Vec<_>>();
    let gap = (!banners.is_empty()).then(String::new);
    let banners = words(banners).into_iter().map(|line| in_tone(Some(BANNER), line));
    let lines = lines.chain([String::new()]).chain(legend).chain(words(unread)).chain(gap).chain(banners);
    PlainText::trusted(lines.map(|line| line + "\n").collect())
}

/// The lines below a row.
fn below(since: &str, width: usize) -> Vec<String> {
    match since {
        "-" => Vec::new(),
        since => folded(&format!("  {since}"), width),
    }
}

/// The terminal's code for a banner.
const BANNER: &str = "1;31";

/// The terminal's code for a row; `None` is the heading.
fn tone(urgency: Option<Urgency>) -> Option<&'static str> {
    match urgency {
        None => Some("1"),
        Some(Urgency::Overdue | Urgency::Stuck | Urgency::Failed) => Some("31"),
        Some(Urgency::Blocked | Urgency::Growing) => Some("33"),
        Some(Urgency::Stopped) => Some("2"),
        Some(Urgency::Fine) => None,
    }
}

/// The columns for which there is place.
fn shown(rows: &[Row], most: usize) -> Vec<usize> {
    let first = usize::from(have_several(rows));
    let rows: Vec<Row> = rows.iter().cloned().chain([COLUMNS.map(str::to_owned)]).map(without_end).collect();
    let mut shown: Vec<usize> = (0..COLUMNS.len()).filter(|column| *column != SINCE).collect();
    for left_out in LEFT_OUT.into_iter().skip(first) {
        if width(&rows, &shown) > most {
            shown.retain(|column| *column != left_out);
        }
    }
    shown
}

/// Whether not all CronJobs have the same controller.
fn have_several(rows: &[Row]) -> bool {
    rows.iter().any(|row| row[CONTROLLER] != rows[0][CONTROLLER])
}

/// Without how the last run ended, which is in the strip.
fn without_end(mut row: Row) -> Row {
    let end = row[LAST].find(',').unwrap_or(row[LAST].len());
    row[LAST].truncate(end);
    row
}

/// The lines, from the heading to the worst row.
fn fitted(rows: Vec<Row>, shown: &[usize], most: usize) -> Vec<String> {
    let mut rows: Vec<Row> = rows.into_iter().chain([COLUMNS.map(str::to_owned)]).map(without_end).collect();
    rows.reverse();
    if width(&rows, shown) > most {
        for row in rows.iter_mut().skip(1) {
            let long = row[RUNS].chars().count().saturating_sub(SHORT_STRIP);
            row[RUNS] = row[RUNS].chars().skip(long).collect();
        }
    }
    let excess = width(&rows, shown).saturating_sub(most);
    let name = widest(&rows, NAME).saturating_sub(excess);
    for row in &mut rows {
        row[NAME] = cut_inside(&row[NAME], name);
    }
    let widths: Vec<(usize, usize)> = shown.iter().map(|column| (*column, widest(&rows, *column))).collect();
    rows.iter().map(|row| aligned(row, &widths)).collect()
}

fn widest(rows: &[Row], column: usize) -> usize {
    rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
}

/// The width of these columns.
fn width(rows: &[Row], shown: &[usize]) -> usize {
    shown.iter().map(|column| widest(rows, *column)).sum::<usize>() + GAP * shown.len().saturating_sub(1)
}

fn aligned(row: &Row, widths: &[(usize, usize)]) -> String {
    let mut line = String::new();
    for (column, width) in widths {
        line.push_str(&row[*column]);
        line.extend(std::iter::repeat_n(' ', width.saturating_sub(row[*column].chars().count()) + GAP));
    }
    line.trim_end().to_owned()
}

/// A name of at most `width` characters, cut inside, since names often differ at their end.
fn cut_inside(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let tail = width / 3;
    let head: String = name.chars().take(width.saturating_sub(tail + 1)).collect();
    let tail: String = name.chars().skip(length - tail).collect();
    format!("{head}…{tail}")
}
