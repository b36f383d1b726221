//! Reports errors in manifests of CronJobs, and valid settings that are likely to surprise users.
//!
//! Guarantees: a batch/v1 CronJob is validated by the rules and with the messages of kube-apiserver. They are those of
//! the embedded server, which is tested against a real one. The other kinds are validated by their definitions. Every
//! finding names the file, the document in it and, where there is one, the field. An unreadable document does not
//! affect others. Pure.

mod load;
mod manifest;
pub mod sources;
mod times;

use std::fmt;

use chrono::{DateTime, Utc};
use schedule::Zone;
use serde::Serialize;

use super::output::{Report, count};
use crate::dev::manifests::{Place, documents};
use load::Load;
use manifest::Kind;

/// A text with manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name.
    pub file: String,
    /// Its content.
    pub text: String,
}

/// The settings of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The zone of CronJobs without one, and of the histogram.
    pub zone: Zone,
    /// The largest number of CronJobs that may start in one minute.
    pub max_per_minute: usize,
    /// The lowest severity that makes the check fail.
    pub fail_on: Severity,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Allowed, but rarely intended.
    Warning,
    /// Refused by the API server, or without the effect that it states.
    #[default]
    Error,
}

impl Severity {
    /// The names on the command line.
    pub const NAMES: [&str; 2] = ["error", "warning"];

    /// Reads the value of `--fail-on`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "error" => Some(Self::Error),
            "warning" => Some(Self::Warning),
            _ => None,
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// A finding about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    severity: Severity,
    /// The field, empty for the object as a whole.
    field: String,
    message: String,
}

impl Fault {
    fn error(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, field: field.into(), message: message.into() }
    }

    fn warning(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, field: field.into(), message: message.into() }
    }
}

/// One finding.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    severity: Severity,
    /// The file; `None` for what several objects cause together.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The document in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<usize>,
    #[serde(skip_serializing_if = "String::is_empty")]
    object: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
    message: String,
}

/// All findings.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// The number of CronJobs checked, including ApiExamples.
    cron_jobs: usize,
    /// The number of objects of other kinds, which are skipped.
    others: usize,
    findings: Vec<Finding>,
    load: Load,
}

/// Checks manifests at time `now`.
pub fn check(sources: &[Source], rules: &Rules, now: DateTime<Utc>) -> CheckReport {
    let mut findings = Vec::new();
    let (mut cron_jobs, mut others) = (0, 0);
    let mut runners = Vec::new();
    for source in sources {
        for (index, document) in documents(&source.text).into_iter().enumerate() {
            let place = Place { file: source.file.clone(), document: index + 1 };
            let objects = match manifest::objects(&document) {
                Ok(objects) => objects,
                Err(fault) => {
                    findings.push(Finding::new(&place, String::new(), fault));
                    continue;
                }
            };
            for object in objects {
                let name = manifest::name_of(&object);
                let faults = match manifest::kind_of(&object) {
                    Ok(Kind::Scheduled(controller_kind)) => {
                        cron_jobs += 1;
                        let mut faults = manifest::judge(controller_kind, &object);
                        if let Some(timed) = times::Timed::of(controller_kind, &object, rules.zone) {
                            faults.extend(timed.judge(now));
                            runners.extend((!timed.suspended).then(|| (name.clone(), timed.schedule)));
                        }
                        faults
                    }
                    Ok(Kind::Other) => {
                        others += 1;
                        continue;
                    }
                    Err(fault) => vec![fault],
                };
                findings.extend(faults.into_iter().map(|fault| Finding::new(&place, name.clone(), fault)));
            }
        }
    }
    let load = Load::of(&runners, rules.zone, now);
    let busy = load.busy(&runners, rules.max_per_minute);
    findings.extend(busy.into_iter().map(Finding::of_all));
    CheckReport { cron_jobs, others, findings, load }
}

impl Finding {
    fn new(place: &Place, object: String, fault: Fault) -> Self {
        let Fault { severity, field, message } = fault;
        Self { severity, file: Some(place.file.clone()), document: Some(place.document), object, field, message }
    }

    fn of_all(fault: Fault) -> Self {
        let Fault { severity, field, message } = fault;
        Self { severity, file: None, document: None, object: String::new(), field, message }
    }

    fn line(&self) -> String {
        let place =
            self.file.as_ref().zip(self.document).map(|(file, document)| format!("{file}, document {document}"));
        let parts = [place.unwrap_or_default(), self.object.clone(), self.severity.to_string(), self.field.clone()];
        let said = parts.into_iter().chain([self.message.clone()]).filter(|part| !part.is_empty());
        said.collect::<Vec<_>>().join(": ")
    }
}

impl CheckReport {
    /// Whether there is a finding that counts as a failure.
    pub fn fails(&self, rules: &Rules) -> bool {
        self.findings.iter().any(|finding| finding.severity >= rules.fail_on)
    }
}

impl Report for CheckReport {
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.findings.iter().map(Finding::line).collect();
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(self.load.lines());
        let number = |severity| self.findings.iter().filter(|finding| finding.severity == severity).count();
        let (errors, warnings) = (number(Severity::Error), number(Severity::Warning));
        let others =
            if self.others > 0 { format!(", {} ignored", count(self.others, "other object")) } else { String::new() };
        let found = format!("{}, {}", count(errors, "error"), count(warnings, "warning"));
        lines.push(format!("{}{others}: {found}.", count(self.cron_jobs, "CronJob")));
        lines
    }
}

#[cfg(test)]
mod tests;
