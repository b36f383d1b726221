//! Ginkgo's report: one row for each spec of CronJob, and whether all of them passed.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use serde_json::Value;

/// The container of the specs of CronJob, and of no others.
pub const SUITE: &str = "[sig-apps] CronJob";

/// The specs in upstream's order.
pub struct Report(Vec<Spec>);

struct Spec {
    name: String,
    state: String,
    seconds: f64,
    failure: String,
}

impl Report {
    /// Reads ginkgo's JSON report. It also lists the skipped specs: the rest of SIG Apps.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("read {}: {error}", path.display()))?;
        let suites: Value = serde_json::from_str(&text).map_err(|error| format!("ginkgo's report: {error}"))?;
        let mut specs: Vec<(u64, Spec)> = suites
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|suite| suite["SpecReports"].as_array().into_iter().flatten())
            .filter(|spec| spec["LeafNodeType"] == "It" && spec["ContainerHierarchyTexts"][0] == SUITE)
            .map(|spec| (spec["LeafNodeLocation"]["LineNumber"].as_u64().unwrap_or_default(), Spec::of(spec)))
            .collect();
        specs.sort_by_key(|(line, _)| *line);
        Ok(Self(specs.into_iter().map(|(_, spec)| spec).collect()))
    }

    /// Fails unless `expected` specs were run and every one of them passed.
    pub fn verdict(&self, expected: usize) -> Result<(), String> {
        let passed = self.0.iter().filter(|spec| spec.has_passed()).count();
        let failures = self.0.iter().filter(|spec| !spec.has_passed());
        let failures: String =
            failures.map(|spec| format!("\n{}: {}: {}", spec.name, spec.state, spec.failure)).collect();
        if passed == expected && self.0.len() == expected {
            return Ok(());
        }
        Err(format!("{passed} of {expected} specs passed, of {} that there are{failures}", self.0.len()))
    }
}

impl Spec {
    fn of(report: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            name: text(&report["LeafNodeText"]),
            state: text(&report["State"]),
            seconds: report["RunTime"].as_f64().unwrap_or_default() / 1e9,
            failure: text(&report["Failure"]["Message"]),
        }
    }

    fn has_passed(&self) -> bool {
        self.state == "passed"
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        writeln!(out, "\n| spec | result | seconds |\n| --- | --- | ---: |")?;
        for spec in &self.0 {
            writeln!(out, "| {} | {} | {:.0} |", spec.name, spec.state, spec.seconds)?;
        }
        let passed = self.0.iter().filter(|spec| spec.has_passed()).count();
        writeln!(out, "\nconformance: {passed} of {} passed", self.0.len())
    }
}
