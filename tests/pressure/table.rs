//! What a case measures, the targets, and the table of all cases.

use std::fmt::Write;

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unit {
    Count,
    Seconds,
    /// 10^6 bytes.
    Megabytes,
}

/// The target of this controller's figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reach {
    /// No target; the figure is only shown.
    Shown,
    AtMost(f64),
    AtLeast(f64),
    /// At most this multiple of the best figure of the in-tree controller with default flags.
    TimesInTree(f64),
}

/// One figure of one case and contender.
#[derive(Debug, Clone)]
pub struct Figure {
    pub what: String,
    /// `None`: nothing could be measured, such as the delay without any Job.
    pub value: Option<f64>,
    pub unit: Unit,
    pub reach: Reach,
}

/// All figures of one case and contender, or why there are none.
pub struct Outcome {
    pub case: &'static str,
    pub contender: &'static str,
    pub figures: Result<Vec<Figure>, String>,
}

impl Figure {
    pub fn count(what: impl Into<String>, count: usize, reach: Reach) -> Self {
        Self { what: what.into(), value: Some(float(count)), unit: Unit::Count, reach }
    }

    pub fn seconds(what: impl Into<String>, value: Option<f64>, reach: Reach) -> Self {
        Self { what: what.into(), value, unit: Unit::Seconds, reach }
    }

    pub fn megabytes(what: impl Into<String>, value: f64, reach: Reach) -> Self {
        Self { what: what.into(), value: Some(value), unit: Unit::Megabytes, reach }
    }

    /// The same with this value.
    pub fn with(self, value: f64) -> Self {
        Self { value: Some(value), ..self }
    }

    pub fn text(&self) -> String {
        let Some(value) = self.value else { return "none".to_owned() };
        match self.unit {
            Unit::Count => format!("{value:.0}"),
            Unit::Seconds => format!("{value:.2} s"),
            Unit::Megabytes => format!("{value:.0} MB"),
        }
    }

    /// Whether the figure meets its target relative to the in-tree controller's; a missing one does not.
    fn is_reached(&self, in_tree: Option<f64>) -> bool {
        match (self.reach, self.value) {
            (Reach::Shown, _) => true,
            (_, None) => false,
            (Reach::AtMost(most), Some(value)) => value <= most,
            (Reach::AtLeast(least), Some(value)) => value >= least,
            // If the in-tree controller did not do it at all, any result is enough.
            (Reach::TimesInTree(times), Some(value)) => in_tree.is_none_or(|in_tree| value <= times * in_tree),
        }
    }

    fn reach_text(&self) -> String {
        let number = |value: f64| Self { value: Some(value), ..self.clone() }.text();
        match self.reach {
            Reach::Shown => "–".to_owned(),
            Reach::AtMost(most) => format!("≤ {}", number(most)),
            Reach::AtLeast(least) => format!("≥ {}", number(least)),
            Reach::TimesInTree(times) => format!("≤ {times} × in-tree"),
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts of a test")]
pub fn float(count: usize) -> f64 {
    count as f64
}

/// The table of all outcomes, and the number of figures of this controller that miss their targets.
pub fn markdown(outcomes: &[Outcome], contenders: &[&'static str]) -> (String, usize) {
    let mut text = format!("| case | figure | {} | ours ÷ in-tree | to reach |\n", contenders.join(" | "));
    let _ = writeln!(text, "| --- | --- |{} ---: | --- |", " ---: |".repeat(contenders.len()));
    let mut missed = 0;
    let mut cases: Vec<&str> = Vec::new();
    for outcome in outcomes {
        if !cases.contains(&outcome.case) {
            cases.push(outcome.case);
        }
    }
    for case in cases {
        for what in figure_names(outcomes, case) {
            let cells = contenders.iter().map(|contender| cell(outcomes, case, contender, &what));
            let cells: Vec<String> = cells.collect();
            let value = |contender: &str| figure(outcomes, case, contender, &what);
            let (ours, in_tree) = (value("ours"), value("in-tree").and_then(|figure| figure.value));
            let ratio = match (ours.and_then(|figure| figure.value), in_tree) {
                (Some(ours), Some(in_tree)) if in_tree > 0.0 => format!("{:.2}", ours / in_tree),
                _ => "–".to_owned(),
            };
            let reach = ours.map_or_else(|| "–".to_owned(), Figure::reach_text);
            let is_missed = ours.is_some_and(|figure| !figure.is_reached(in_tree));
            missed += usize::from(is_missed);
            let mark = if is_missed { " (missed)" } else { "" };
            let _ = writeln!(text, "| {case} | {what} | {} | {ratio} | {reach}{mark} |", cells.join(" | "));
        }
    }
    for outcome in outcomes {
        if let Err(why) = &outcome.figures {
            let line: String = why.lines().next().unwrap_or_default().chars().take(200).collect();
            let _ = writeln!(
                text,
                "| {} | {}: FAILED: {line} |{} – | – |",
                outcome.case,
                outcome.contender,
                " – |".repeat(contenders.len())
            );
            missed += 1;
        }
    }
    (text, missed)
}

/// The names of a case's figures, in the order of the contender that has the most.
fn figure_names(outcomes: &[Outcome], case: &str) -> Vec<String> {
    let lists =
        outcomes.iter().filter(|outcome| outcome.case == case).filter_map(|outcome| outcome.figures.as_ref().ok());
    let mut names: Vec<String> = Vec::new();
    for figure in lists.flatten() {
        if !names.contains(&figure.what) {
            names.push(figure.what.clone());
        }
    }
    names
}

fn figure<'a>(outcomes: &'a [Outcome], case: &str, contender: &str, what: &str) -> Option<&'a Figure> {
    let outcome = outcomes.iter().find(|outcome| outcome.case == case && outcome.contender == contender)?;
    outcome.figures.as_ref().ok()?.iter().find(|figure| figure.what == what)
}

fn cell(outcomes: &[Outcome], case: &str, contender: &str, what: &str) -> String {
    figure(outcomes, case, contender, what).map_or_else(|| "–".to_owned(), Figure::text)
}
