//! Computes the table from samples.

use std::fmt::Write;

use crate::cases::{Case, Due, namespaces};

/// The results of one round of one case. Times in seconds after the due instant.
#[derive(Debug, Clone)]
pub struct Sample {
    pub case: String,
    pub title: String,
    pub namespaces: usize,
    pub due: usize,
    pub idle: usize,
    pub alone: bool,
    pub round: usize,
    /// Sorted.
    pub skews: Vec<f64>,
    pub settled: Option<f64>,
    pub events: Option<f64>,
    /// The number of due CronJobs with an Event: client-go drops Events that it cannot write soon enough.
    pub events_written: usize,
    /// CPU seconds of the controller's process.
    pub cpu: Option<f64>,
    /// Its resident memory at the end, in MB.
    pub resident: Option<f64>,
    /// CPU seconds of the API server and etcd until all was written.
    pub served: f64,
    /// CPU seconds that the host took from this machine (steal time): a round with much of it is unreliable.
    pub stolen: f64,
}

impl Sample {
    pub fn new(case: &Case, mut skews: Vec<f64>) -> Self {
        skews.sort_unstable_by(f64::total_cmp);
        Self {
            case: case.name.clone(),
            title: case.title.clone(),
            namespaces: case.namespaces,
            due: case.due,
            idle: case.idle,
            alone: case.timing == Due::Alone,
            round: 0,
            skews,
            settled: None,
            events: None,
            events_written: 0,
            cpu: None,
            resident: None,
            served: 0.0,
            stolen: 0.0,
        }
    }

    /// The value that a share `p` of all delays does not exceed.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    pub fn percentile(&self, p: f64) -> f64 {
        let rank = (p * self.skews.len() as f64).ceil() as usize;
        self.skews.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
    }

    pub fn last(&self) -> f64 {
        self.percentile(1.0)
    }

    /// When all Events existed, or how many were written at all.
    fn events_text(&self) -> Option<String> {
        if self.events.is_some() && self.events_written < self.due {
            return Some(format!("{} written", thousands(self.events_written)));
        }
        self.events.map(time)
    }

    pub fn one_line(&self) -> String {
        let [p50, p99, last] = [self.percentile(0.5), self.percentile(0.99), self.last()].map(time);
        let mut line = format!("p50 {p50}, p99 {p99}, last {last}");
        let more = [
            ("statuses", self.settled.map(time)),
            ("events", self.events_text()),
            ("CPU", self.cpu.map(time)),
            ("servers' CPU", Some(time(self.served))),
        ];
        for (what, value) in more {
            if let Some(value) = value {
                let _ = write!(line, ", {what} {value}");
            }
        }
        if let Some(resident) = self.resident {
            let _ = write!(line, ", {resident:.0} MB");
        }
        if self.stolen >= 0.05 {
            let _ = write!(line, " (the host took {})", time(self.stolen));
        }
        line
    }
}

/// The table of all cases, medians over their rounds; ratios are medians of the ratios within each round.
pub fn markdown(samples: &[Sample]) -> String {
    let mut cases: Vec<&str> = Vec::new();
    for sample in samples {
        if !cases.contains(&sample.case.as_str()) {
            cases.push(&sample.case);
        }
    }
    let mut out = String::from(
        "| controller | due at once | p50 | p99 | last | all statuses | all events | CPU | resident | servers' CPU \
         | p99 ÷ floor | statuses ÷ floor | p99 ÷ in-tree | statuses ÷ in-tree | CPU ÷ in-tree | servers' CPU ÷ in-tree | rounds |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for case in cases {
        let rounds: Vec<&Sample> = samples.iter().filter(|sample| sample.case == case).collect();
        let _ = writeln!(out, "{}", row(&rounds, samples));
    }
    out.push_str(
        "\nMedians over the rounds. floor: the bare writes of the Jobs, and then of the statuses, the faster where two are; \
         in-tree: the tuned one; each on as many namespaces in the same round.\n",
    );
    out
}

fn row(rounds: &[&Sample], all: &[Sample]) -> String {
    let first = rounds[0];
    let of = |value: &dyn Fn(&Sample) -> Option<f64>| median(rounds.iter().filter_map(|sample| value(sample)));
    let against_in_tree = |value: &dyn Fn(&Sample) -> Option<f64>| {
        let ratio = |sample: &Sample| Some(value(sample)? / value(in_tree(sample, all)?)?);
        of(&ratio)
    };
    let floor = |sample: &Sample| Some(sample.percentile(0.99) / fastest_floor(sample, all, &|of| Some(of.last()))?);
    let settled_floor = |sample: &Sample| Some(sample.settled? / fastest_floor(sample, all, &|of| of.settled)?);
    let cells = [
        first.title.clone(),
        due(first),
        text(of(&|sample| Some(sample.percentile(0.5)))),
        text(of(&|sample| Some(sample.percentile(0.99)))),
        text(of(&|sample| Some(sample.last()))),
        text(of(&|sample| sample.settled)),
        events(rounds),
        text(of(&|sample| sample.cpu)),
        of(&|sample| sample.resident).map_or_else(dash, |value| format!("{value:.0} MB")),
        text(of(&|sample| Some(sample.served))),
        ratio(of(&floor)),
        ratio(of(&settled_floor)),
        ratio(against_in_tree(&|sample| Some(sample.percentile(0.99)))),
        ratio(against_in_tree(&|sample| sample.settled)),
        ratio(against_in_tree(&|sample| sample.cpu)),
        ratio(against_in_tree(&|sample| Some(sample.served))),
        rounds.len().to_string(),
    ];
    format!("| {} |", cells.join(" | "))
}

fn events(rounds: &[&Sample]) -> String {
    if let Some(incomplete) = rounds.iter().find(|sample| sample.events_written < sample.due) {
        return incomplete.events_text().unwrap_or_else(dash);
    }
    text(median(rounds.iter().filter_map(|sample| sample.events)))
}

fn due(sample: &Sample) -> String {
    let count = thousands(sample.due);
    if sample.alone {
        return format!("1, {count} times");
    }
    let of = if sample.idle > 0 { format!(" of {}", thousands(sample.due + sample.idle)) } else { String::new() };
    format!("{count}{of} in {}", namespaces(sample.namespaces))
}

/// The shortest such time of the bare writes in the same round and shape.
fn fastest_floor(sample: &Sample, all: &[Sample], time: &dyn Fn(&Sample) -> Option<f64>) -> Option<f64> {
    alike(sample, all, "floor").filter_map(time).min_by(f64::total_cmp)
}

/// The tuned in-tree controller's sample of the same round and shape.
fn in_tree<'a>(sample: &Sample, all: &'a [Sample]) -> Option<&'a Sample> {
    alike(sample, all, "in-tree-tuned").next()
}

/// The samples of one contender in this sample's round and shape.
fn alike<'a>(sample: &Sample, all: &'a [Sample], contender: &'static str) -> impl Iterator<Item = &'a Sample> {
    let shape = |of: &Sample| (of.round, of.due, of.idle, of.namespaces, of.alone);
    let wanted = shape(sample);
    all.iter().filter(move |other| other.case.starts_with(contender) && shape(other) == wanted)
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

fn dash() -> String {
    "–".to_owned()
}

fn text(value: Option<f64>) -> String {
    value.map_or_else(dash, time)
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(dash, |value| format!("{value:.2}"))
}

/// Seconds, or milliseconds for small values.
pub fn time(seconds: f64) -> String {
    match seconds {
        small if small < 0.02 => format!("{:.1} ms", small * 1e3),
        short if short < 0.3 => format!("{:.0} ms", short * 1e3),
        long if long >= 20.0 => format!("{long:.0} s"),
        _ => format!("{seconds:.2} s"),
    }
}

fn thousands(count: usize) -> String {
    if count < 1_000 { count.to_string() } else { format!("{},{:03}", count / 1_000, count % 1_000) }
}
