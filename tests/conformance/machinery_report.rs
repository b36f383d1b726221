//! Ginkgo's reports: the conformance specs of sig-api-machinery, and what became of one.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use serde_json::Value;

const SIG: &str = "[sig-api-machinery] ";

/// A conformance spec.
#[derive(PartialEq, Eq)]
pub struct Spec {
    /// The texts of its containers and its own, without labels in brackets.
    pub name: String,
    /// The same with labels, as ginkgo matches them.
    pub text: String,
    /// The file that has it.
    pub file: String,
    line: u64,
}

/// What became of a spec.
pub struct Outcome {
    /// Whether it passed.
    pub has_passed: bool,
    message: String,
}

impl Display for Outcome {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if self.has_passed { write!(out, "passed") } else { write!(out, "failed: {}", self.message) }
    }
}

/// All conformance specs of the SIG that a report lists, skipped or not, by file and line.
pub fn specs(report: &Path) -> Result<Vec<Spec>, String> {
    let mut specs: Vec<Spec> = read(report)?.iter().filter_map(spec).collect();
    specs.sort_by(|a, b| (&a.file, a.line, &a.name).cmp(&(&b.file, b.line, &b.name)));
    Ok(specs)
}

/// What the report of one spec says of it. A process that ended before its report failed.
pub fn outcome(report: &Path, wanted: &Spec) -> Outcome {
    let entries = read(report).unwrap_or_default();
    let Some(entry) = entries.iter().find(|entry| spec(entry).is_some_and(|spec| spec == *wanted)) else {
        return Outcome { has_passed: false, message: "its process ended before the report".to_owned() };
    };
    let text = entry["Failure"]["Message"].as_str().unwrap_or_default();
    let message = text.lines().next().unwrap_or_default().chars().take(300).collect();
    Outcome { has_passed: entry["State"] == "passed", message }
}

fn read(report: &Path) -> Result<Vec<Value>, String> {
    let text = std::fs::read_to_string(report).map_err(|error| format!("read {}: {error}", report.display()))?;
    let suites: Value = serde_json::from_str(&text).map_err(|error| format!("ginkgo's report: {error}"))?;
    let reports = suites.as_array().into_iter().flatten();
    Ok(reports.flat_map(|suite| suite["SpecReports"].as_array().into_iter().flatten()).cloned().collect())
}

fn spec(entry: &Value) -> Option<Spec> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let containers = entry["ContainerHierarchyTexts"].as_array().into_iter().flatten().map(text);
    let texts: Vec<String> = containers.chain([text(&entry["LeafNodeText"])]).collect();
    let name = texts.join(" ");
    let is_one = entry["LeafNodeType"] == "It" && name.contains("[Conformance]");
    let name = name.strip_prefix(SIG).filter(|_| is_one)?;
    let file = text(&entry["LeafNodeLocation"]["FileName"]);
    Some(Spec {
        name: plain(name),
        text: name.to_owned(),
        file: file.rsplit('/').next().unwrap_or_default().to_owned(),
        line: entry["LeafNodeLocation"]["LineNumber"].as_u64().unwrap_or_default(),
    })
}

/// `name` without `[Conformance]` and other labels.
fn plain(name: &str) -> String {
    let mut depth = 0_u32;
    let mut kept = String::new();
    for c in name.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    kept.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.').to_owned()
}
