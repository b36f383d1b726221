//! Compares two answers, and checks the list of known differences.

use std::collections::BTreeMap;

use serde_json::Value;

use super::drive::Answers;

/// Scenario → answers.
pub type Recording = BTreeMap<String, Answers>;

/// An intended difference between the embedded server and the real one.
pub struct Known {
    pub scenario: &'static str,
    /// The step's sentence; a `*` at the end matches anything.
    pub step: &'static str,
    /// JSON pointer into the recorded answer; a `*` at the end matches anything.
    pub path: &'static str,
    /// What must still hold of the two servers' values.
    pub alike: fn(&Value, &Value) -> bool,
    pub why: &'static str,
}

impl Known {
    fn covers(&self, difference: &Difference) -> bool {
        matches(self.scenario, &difference.scenario)
            && matches(self.step, &difference.step)
            && matches(self.path, &difference.path)
            && (self.alike)(&difference.wanted, &difference.got)
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == text, |start| text.starts_with(start))
}

/// One difference of two answers.
pub struct Difference {
    pub scenario: String,
    pub step: String,
    pub path: String,
    pub wanted: Value,
    pub got: Value,
}

/// All differences of `got` against `wanted`.
pub fn differences(wanted: &Recording, got: &Recording) -> Vec<Difference> {
    let mut all = Vec::new();
    for (scenario, answers) in got {
        let none = Vec::new();
        let recorded = wanted.get(scenario).unwrap_or(&none);
        for (index, (step, answer)) in answers.iter().enumerate() {
            let before =
                recorded.get(index).filter(|(name, _)| name == step).map_or(&Value::Null, |(_, answer)| answer);
            diff("", before, answer, &mut |path, wanted, got| {
                all.push(Difference {
                    scenario: scenario.clone(),
                    step: step.clone(),
                    path: path.to_owned(),
                    wanted: wanted.clone(),
                    got: got.clone(),
                });
            });
        }
    }
    all
}

fn diff(path: &str, wanted: &Value, got: &Value, report: &mut impl FnMut(&str, &Value, &Value)) {
    match (wanted, got) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => diff(&path, a, b, report),
                    // An absent field and a null differ.
                    (a, b) => {
                        let absent = Value::String("<absent>".to_owned());
                        report(&path, a.unwrap_or(&absent), b.unwrap_or(&absent));
                    }
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                diff(&format!("{path}/{index}"), a, b, report);
            }
        }
        (a, b) if a == b => {}
        (a, b) => report(path, a, b),
    }
}

/// The differences that no entry covers, and the entries that cover no difference.
pub fn judge<'a>(differences: &'a [Difference], known: &'a [Known]) -> (Vec<&'a Difference>, Vec<&'a Known>) {
    let unknown = differences.iter().filter(|one| !known.iter().any(|entry| entry.covers(one))).collect();
    let gone = known.iter().filter(|entry| !differences.iter().any(|one| entry.covers(one))).collect();
    (unknown, gone)
}

/// The recording as text: JSON, one answer per line.
pub fn to_text(recording: &Recording) -> String {
    let mut text = String::from("{\n");
    for (index, (scenario, answers)) in recording.iter().enumerate() {
        let comma = if index == 0 { "" } else { ",\n" };
        text = text + comma + &Value::from(scenario.as_str()).to_string() + ": [\n";
        let lines: Vec<String> =
            answers.iter().map(|(step, answer)| format!("[{},{answer}]", Value::from(step.as_str()))).collect();
        text.push_str(&lines.join(",\n"));
        text.push_str("\n]");
    }
    text + "\n}\n"
}
