//! The figures of the cases, their targets, and the table.

use std::fmt::Write as _;

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Seen {
    Exactly(f64),
    /// It was given up, and would have been more.
    MoreThan(f64),
    /// There was nothing to measure, such as the delay without any Job.
    Nothing,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unit {
    Count,
    Seconds,
    /// 10^6 bytes.
    Megabytes,
}

/// One figure of a case.
#[derive(Debug)]
pub struct Figure {
    what: String,
    seen: Seen,
    unit: Unit,
    /// The most that it may be; `None` if it is only shown.
    most: Option<f64>,
}

/// All figures of a case, or why there are none.
pub struct Outcome {
    pub case: String,
    pub figures: Result<Vec<Figure>, String>,
}

impl Seen {
    /// The same measured by another measure, such as for each of several.
    pub fn map(self, convert: impl Fn(f64) -> f64) -> Self {
        match self {
            Self::Exactly(value) => Self::Exactly(convert(value)),
            Self::MoreThan(value) => Self::MoreThan(convert(value)),
            Self::Nothing => Self::Nothing,
        }
    }
}

impl From<Option<f64>> for Seen {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Nothing, Self::Exactly)
    }
}

impl Figure {
    pub fn new(what: impl Into<String>, seen: Seen, unit: Unit) -> Self {
        Self { what: what.into(), seen, unit, most: None }
    }

    pub fn seconds(what: impl Into<String>, seen: Seen) -> Self {
        Self::new(what, seen, Unit::Seconds)
    }

    pub fn count(what: impl Into<String>, count: usize) -> Self {
        Self::new(what, Seen::Exactly(float(count)), Unit::Count)
    }

    pub fn at_most(self, most: f64) -> Self {
        Self { most: Some(most), ..self }
    }

    fn is_reached(&self) -> bool {
        match (self.most, self.seen) {
            (None, _) => true,
            (Some(most), Seen::Exactly(value)) => value <= most,
            (Some(_), Seen::MoreThan(_) | Seen::Nothing) => false,
        }
    }

    fn number(&self, value: f64) -> String {
        match self.unit {
            Unit::Count => format!("{value:.0}"),
            Unit::Seconds if value < 0.1 => format!("{:.1} ms", value * 1000.0),
            Unit::Seconds => format!("{value:.2} s"),
            Unit::Megabytes => format!("{value:.0} MB"),
        }
    }

    fn text(&self) -> String {
        match self.seen {
            Seen::Exactly(value) => self.number(value),
            Seen::MoreThan(value) => format!("more than {}", self.number(value)),
            Seen::Nothing => "none".to_owned(),
        }
    }

    /// `what: seen`, for one line.
    pub fn line(&self) -> String {
        format!("{}: {}", self.what, self.text())
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts of a test")]
pub fn float(count: usize) -> f64 {
    count as f64
}

/// The table, and how many figures miss their targets.
pub fn markdown(outcomes: &[Outcome]) -> (String, usize) {
    let mut text = "| case | figure | seen | to reach |\n| --- | --- | ---: | --- |\n".to_owned();
    let mut missed = 0;
    for Outcome { case, figures } in outcomes {
        let figures = match figures {
            Ok(figures) => figures,
            Err(why) => {
                let line: String = why.lines().next().unwrap_or_default().chars().take(200).collect();
                let _ = writeln!(text, "| {case} | FAILED: {line} | – | – |");
                missed += 1;
                continue;
            }
        };
        for figure in figures {
            let most = figure.most.map_or_else(|| "–".to_owned(), |most| format!("≤ {}", figure.number(most)));
            let mark = if figure.is_reached() { "" } else { " (missed)" };
            missed += usize::from(!figure.is_reached());
            let _ = writeln!(text, "| {case} | {} | {} | {most}{mark} |", figure.what, figure.text());
        }
    }
    (text, missed)
}
