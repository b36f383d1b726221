//! Draws the live view. Pure.
//!
//! Guarantees: a command is never cut: one that is longer than a line continues on the next, as shells read it. Every other
//! text that is cut ends in "…", which means nothing else; the legend alone is not marked. A terminal that is too low loses messages first, then the legend,
//! then the commands, and rows last. Without colour, no information is lost.

use std::ops::Range;

use chrono::{DateTime, Utc};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table};
use schedule::Zone;

use super::keys::Viewport;
use super::{Fate, Order, Row, Tone, milliseconds, summary};
use crate::terminal::countdown;

/// So many messages are shown at most.
pub const MAX_MESSAGES: usize = 3;
/// So many lines of the table come before messages, legend and commands: the heading and three rows.
const MIN_TABLE: usize = 4;
/// The space between two columns.
const SPACING: u16 = 2;
/// A schedule and a name are cut to this width before a column is left out.
const MIN_SCHEDULE: u16 = 12;
const MIN_NAME: u16 = 18;
/// On terminals of this width there is room for more Jobs.
const WIDE: u16 = 100;

/// What is drawn.
#[derive(Debug)]
pub struct Screen<'a> {
    /// What runs, and where.
    pub title: &'a str,
    /// Commands to paste into another terminal.
    pub commands: &'a [String],
    /// The rows in their order.
    pub rows: &'a [Row],
    /// What was logged, the newest last.
    pub messages: &'a [String],
    /// The time of the view.
    pub now: DateTime<Utc>,
    /// The zone of the times.
    pub local: Zone,
    /// Whether to use colours.
    pub colour: bool,
}

impl Screen<'_> {
    /// Draws the view, at this place in the rows.
    pub fn draw(&self, frame: &mut Frame<'_>, place: &mut Viewport) {
        let area = frame.area();
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let clock = format!("{} {}", self.local.at(self.now).format("%H:%M:%S"), self.local.name());
        let mut commands: Vec<String> = self.commands.iter().flat_map(|line| continued(line, width)).collect();
        let newest = self.messages.len().saturating_sub(MAX_MESSAGES);
        let mut messages: Vec<Line<'_>> =
            self.messages[newest..].iter().map(|text| Line::raw(cut(text, width))).collect();
        let mut legend = 2;
        // Title, summary, and an empty line before and after the table.
        let room = height.saturating_sub(MIN_TABLE + 4);
        messages.drain(..messages.len().saturating_sub(room.saturating_sub(commands.len() + legend)));
        if commands.len() + legend > room {
            legend = 0;
        }
        if commands.len() > room {
            commands.clear();
        }
        let mut top = vec![Line::raw(cut(&format!("{clock}  {}", self.title), width))];
        top.extend(commands.into_iter().map(|line| Line::styled(line, self.style(Color::Cyan))));
        top.push(Line::styled(cut(&summary(self.rows, self.now), width), Modifier::BOLD));
        let [above, _, table, _, said, below] = Layout::vertical([
            lines(top.len()),
            lines(usize::from(height > MIN_TABLE + 2)),
            Constraint::Fill(1),
            lines(usize::from(!messages.is_empty())),
            lines(messages.len()),
            lines(legend),
        ])
        .areas(area);
        frame.render_widget(Paragraph::new(Text::from(top)), above);
        let shown = place.visible(self.rows.len(), usize::from(table.height.saturating_sub(1)));
        let legend = [self.legend(), Line::styled(cut(&self.keys(place.order, &shown), width), Modifier::DIM)];
        self.table(frame, table, &self.rows[shown]);
        frame.render_widget(Paragraph::new(Text::from(messages)), said);
        frame.render_widget(Paragraph::new(Text::from(legend.to_vec())), below);
    }

    fn table(&self, frame: &mut Frame<'_>, area: Rect, shown: &[Row]) {
        if self.rows.is_empty() {
            frame.render_widget(Paragraph::new("There are no CronJobs. Apply one with kubectl apply -f FILE."), area);
            return;
        }
        // The widths are those of all rows, so that scrolling does not change them.
        let columns = columns(area.width, self.rows);
        let heading = columns.iter().map(|(column, _)| Cell::from(column.heading()));
        let row = |row: &Row| {
            TableRow::new(columns.iter().map(|(column, width)| self.cell(row, *column, usize::from(*width))))
        };
        let table = Table::new(shown.iter().map(row), columns.iter().map(|(_, width)| Constraint::Length(*width)))
            .header(TableRow::new(heading).style(Modifier::BOLD))
            .column_spacing(SPACING);
        frame.render_widget(table, area);
    }

    fn cell(&self, row: &Row, column: Column, width: usize) -> Cell<'static> {
        let of_row = match row.condition.tone {
            Tone::Bad => self.style(Color::Red),
            Tone::Stopped => Style::new().add_modifier(Modifier::DIM),
            Tone::Fine => Style::new(),
        };
        let text = match column {
            Column::Name => cut_inside(&row.name, width),
            Column::Schedule => cut(&row.schedule, width),
            Column::Next => match row.next {
                Some(next) => format!("in {}", countdown(next - self.now)),
                None => cut(row.condition.label, width),
            },
            Column::Last => {
                let last = row.last.map(|last| self.local.at(last).format("%H:%M:%S").to_string());
                let late = row.lateness.map(|late| format!(" +{}", milliseconds(late))).unwrap_or_default();
                cut(&format!("{}{late}", last.unwrap_or_else(|| "-".to_owned())), width)
            }
            Column::Active => row.active.to_string(),
            Column::Jobs => {
                let recent = row.jobs.iter().skip(row.jobs.len().saturating_sub(width));
                return Cell::from(Line::from(recent.map(|fate| self.glyph(*fate)).collect::<Vec<_>>()));
            }
        };
        Cell::from(Line::styled(text, of_row))
    }

    fn glyph(&self, fate: Fate) -> Span<'static> {
        let (glyph, colour) = match fate {
            Fate::Waiting => ("~", Color::Yellow),
            Fate::Running => ("●", Color::Yellow),
            Fate::Complete => ("✓", Color::Green),
            Fate::Failed => ("✗", Color::Red),
        };
        Span::styled(glyph, self.style(colour))
    }

    fn legend(&self) -> Line<'static> {
        let dim = |text: &'static str| Span::styled(text, Modifier::DIM);
        Line::from(vec![
            self.glyph(Fate::Complete),
            dim(" succeeded  "),
            self.glyph(Fate::Failed),
            dim(" failed  "),
            self.glyph(Fate::Running),
            dim(" runs  "),
            self.glyph(Fate::Waiting),
            dim(" waits  …: cut  LAST +3 ms: came 3 ms late"),
        ])
    }

    fn keys(&self, order: Order, shown: &Range<usize>) -> String {
        let (first, last, all) = ((shown.start + 1).min(shown.end), shown.end, self.rows.len());
        format!("{first} to {last} of {all}  ↑ ↓ PgUp PgDn: scroll  s: sort ({})  q: quit", order.said())
    }

    fn style(&self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Name,
    Schedule,
    Next,
    Last,
    Active,
    Jobs,
}

impl Column {
    fn heading(self) -> &'static str {
        match self {
            Self::Name => "CRONJOB",
            Self::Schedule => "SCHEDULE",
            Self::Next => "NEXT",
            Self::Last => "LAST",
            Self::Active => "ACTIVE",
            Self::Jobs => "JOBS",
        }
    }
}

/// The columns that fit, with their widths. The schedule is cut before the name, and left out before the last start.
fn columns(width: u16, rows: &[Row]) -> Vec<(Column, u16)> {
    let is_wide = width >= WIDE;
    let mut columns = vec![(Column::Name, 0), (Column::Schedule, 0), (Column::Next, 13), (Column::Last, 16)];
    columns.extend(is_wide.then_some((Column::Active, 6)));
    columns.push((Column::Jobs, if is_wide { 12 } else { 8 }));
    let longest = |heading: &str, text: fn(&Row) -> &str| {
        let longest = rows.iter().map(|row| Line::raw(text(row)).width()).max().unwrap_or(0);
        u16::try_from(longest.max(heading.len())).unwrap_or(u16::MAX)
    };
    let name = longest("CRONJOB", |row| &row.name);
    let schedule = longest("SCHEDULE", |row| &row.schedule);
    loop {
        let spaces = SPACING * u16::try_from(columns.len().saturating_sub(1)).unwrap_or(0);
        let room = width.saturating_sub(spaces + columns.iter().map(|(_, width)| width).sum::<u16>());
        let has = |wanted: Column| columns.iter().any(|(column, _)| *column == wanted);
        let needed = if has(Column::Schedule) { MIN_NAME + MIN_SCHEDULE } else { MIN_NAME };
        let dropped = [Column::Schedule, Column::Last].into_iter().find(|column| has(*column));
        if let Some(dropped) = dropped.filter(|_| room < needed.min(name.saturating_add(schedule))) {
            columns.retain(|(column, _)| *column != dropped);
            continue;
        }
        let of_schedule = schedule.min(room.saturating_sub(name).max(MIN_SCHEDULE));
        for (column, width) in &mut columns {
            match column {
                Column::Schedule => *width = of_schedule,
                Column::Name if dropped == Some(Column::Schedule) => *width = name.min(room - of_schedule.min(room)),
                Column::Name => *width = name.min(room),
                _ => {}
            }
        }
        return columns;
    }
}

fn lines(number: usize) -> Constraint {
    Constraint::Length(u16::try_from(number).unwrap_or(u16::MAX))
}

/// The text, cut to this width.
fn cut(text: &str, width: usize) -> String {
    if Line::raw(text).width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        short.push(letter);
        if Line::raw(short.as_str()).width() >= width {
            short.pop();
            break;
        }
    }
    // Without any room, there is none for the mark either.
    if width > 0 { short + "…" } else { short }
}

/// The name, cut inside to this width, since names often differ at their end.
fn cut_inside(name: &str, width: usize) -> String {
    let length = Line::raw(name).width();
    let tail = width / 3;
    if length <= width || length != name.len() {
        return cut(name, width);
    }
    let head = cut(name, width - tail);
    format!("{head}{}", &name[name.len() - tail..])
}

/// A command for a shell in lines of at most this width. A line that ends in a backslash continues on the next; a quoted word
/// is closed before and opened after it.
pub(super) fn continued(command: &str, width: usize) -> Vec<String> {
    // A character, two quotes and a backslash have to fit.
    if Line::raw(command).width() <= width || width < 8 {
        return vec![command.to_owned()];
    }
    let (mut lines, mut line, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        let mut piece = String::from(letter);
        if letter == '\\' && !is_quoted {
            piece.extend(letters.next());
        }
        let end = if is_quoted || letter == '\'' { 2 } else { 1 };
        if Line::raw(format!("{line}{piece}")).width() + end > width {
            lines.push(line + if is_quoted { "'\\" } else { "\\" });
            line = if is_quoted { "'".to_owned() } else { String::new() };
        }
        is_quoted ^= letter == '\'';
        line += &piece;
    }
    lines.push(line);
    lines
}
