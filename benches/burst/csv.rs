//! Stores the samples in two CSV files, from which a later run can add its rounds to those of an earlier one.
//!
//! `rounds.csv` has a line for each round of each case; `skews.csv` every single skew, in milliseconds, by rank.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::report::Sample;

const ROUNDS: &str =
    "case,namespaces,due,idle,alone,round,settled_s,events_s,events_written,cpu_s,resident_mb,served_s,stolen_s,title";
const SKEWS: &str = "case,round,rank,skew_ms";

/// Writes both files.
pub fn write(samples: &[Sample], directory: &Path) -> Result<(), String> {
    let (mut rounds, mut skews) = (format!("{ROUNDS}\n"), format!("{SKEWS}\n"));
    for sample in samples {
        let Sample { case, namespaces, due, idle, alone, round, events_written, served, stolen, title, .. } = sample;
        let [settled, events, cpu, resident] = [sample.settled, sample.events, sample.cpu, sample.resident]
            .map(|value| value.map_or_else(String::new, |value| format!("{value:.4}")));
        let _ = writeln!(
            rounds,
            "{case},{namespaces},{due},{idle},{alone},{round},{settled},{events},{events_written},{cpu},{resident},{served:.2},{stolen:.2},\"{title}\""
        );
        for (rank, skew) in sample.skews.iter().enumerate() {
            let _ = writeln!(skews, "{case},{round},{},{:.3}", rank + 1, skew * 1e3);
        }
    }
    for (name, text) in [("rounds.csv", rounds), ("skews.csv", skews)] {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|why| format!("write {}: {why}", path.display()))?;
    }
    Ok(())
}

/// Reads both files; without them there are no samples.
pub fn read(directory: &Path) -> Result<Vec<Sample>, String> {
    let path = directory.join("rounds.csv");
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let rounds = fs::read_to_string(&path).map_err(|why| format!("read {}: {why}", path.display()))?;
    let skews_path = directory.join("skews.csv");
    let skews = fs::read_to_string(&skews_path).map_err(|why| format!("read {}: {why}", skews_path.display()))?;
    let mut samples = Vec::new();
    for line in rounds.lines().skip(1) {
        let sample = read_round(line).ok_or_else(|| format!("{}: cannot read {line:?}", path.display()))?;
        samples.push(sample);
    }
    for line in skews.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [case, round, _, skew] = fields[..] else {
            return Err(format!("{}: cannot read {line:?}", skews_path.display()));
        };
        let (Ok(round), Ok(skew)) = (round.parse::<usize>(), skew.parse::<f64>()) else {
            return Err(format!("{}: cannot read {line:?}", skews_path.display()));
        };
        if let Some(sample) = samples.iter_mut().rfind(|sample| sample.case == case && sample.round == round) {
            sample.skews.push(skew / 1e3);
        }
    }
    Ok(samples)
}

fn read_round(line: &str) -> Option<Sample> {
    let fields: Vec<&str> = line.splitn(14, ',').collect();
    let [case, namespaces, due, idle, alone, round, settled, events, written, cpu, resident, served, stolen, title] =
        fields[..]
    else {
        return None;
    };
    Some(Sample {
        case: case.to_owned(),
        title: title.trim_matches('"').to_owned(),
        namespaces: namespaces.parse().ok()?,
        due: due.parse().ok()?,
        idle: idle.parse().ok()?,
        alone: alone.parse().ok()?,
        round: round.parse().ok()?,
        skews: Vec::new(),
        settled: settled.parse().ok(),
        events: events.parse().ok(),
        events_written: written.parse().ok()?,
        cpu: cpu.parse().ok(),
        resident: resident.parse().ok(),
        served: served.parse().ok()?,
        stolen: stolen.parse().ok()?,
    })
}
