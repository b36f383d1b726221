//! Reports errors in manifests of CronJobs, and valid settings that are likely to surprise users.
//!
//! Guarantees: a batch/v1 CronJob is validated by the rules and with the messages of kube-apiserver. They are those of
//! the embedded server, which is tested against a real one. The other kinds are validated by their definitions. Every
//! finding has a stable code and names the file, the line and, where there is one, the field. An unreadable document does not
//! affect others. The work grows with the length of the manifests, whatever is in them. Pure.

pub mod admission;
mod code;
mod concurrency;
mod dialects;
mod formats;
mod lines;
mod load;
mod manifest;
mod mistakes;
mod policies;
pub mod rendered;
pub mod repository;
pub mod sources;
mod times;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use apimachinery::field::REQUIRED;
use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use schedule::{Schedule, Zone};
use serde::Serialize;
use serde_json::Value;

use super::output::{self, Format, Report, Screen, count};
use super::restrictions::Restrictions;
use super::{hints, next};
use crate::api::ControllerKind;
use crate::api::policy::Spread;
use crate::dev::manifests::{self, Document, ManifestError, Position, documents};
use crate::terminal::PlainText;
use admission::{AdmissionPolicies, Judge};
pub use code::Code;
use lines::Lines;
use load::Load;
use manifest::{Kind, SERVED};
use rendered::{RenderError, Rendered};
use repository::LeftOut;

/// A text with manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name.
    pub file: String,
    /// Its content.
    pub text: String,
}

/// What is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Files and directories; `-` is stdin.
    pub files: Vec<PathBuf>,
    /// Whether the directories below these are read, too.
    pub recursive: bool,
    /// What other programs render.
    pub rendered: Vec<Rendered>,
    /// Files and directories with admission policies.
    pub policies: Vec<PathBuf>,
}

/// An output format of `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckFormat {
    /// One that every command has.
    Report(Format),
    /// The Static Analysis Results Interchange Format.
    Sarif,
    /// Workflow commands of GitHub Actions.
    Github,
}

impl CheckFormat {
    /// The names on the command line, in the order of the help.
    pub const NAMES: [&str; 5] = ["table", "json", "yaml", "sarif", "github"];

    /// Reads the value of `--output`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "sarif" => Some(Self::Sarif),
            "github" => Some(Self::Github),
            text => Format::parse(text).map(Self::Report),
        }
    }
}

/// The settings of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The zone of CronJobs without one, and of the histogram.
    pub zone: Zone,
    /// The largest number of CronJobs that may start in one minute.
    pub max_per_minute: usize,
    /// The lowest severity that makes the check fail.
    pub fail_on: Severity,
    /// Whether the report has the load of a day.
    pub histogram: bool,
    /// The window over which the load is computed, in place of what the manifests say.
    pub what_if_spread: Option<Spread>,
    /// The controller's `--spread-seed`.
    pub seed: Arc<str>,
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
    code: Code,
    severity: Severity,
    /// The field, empty for the object as a whole.
    field: String,
    message: String,
}

impl Fault {
    fn error(code: Code, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, severity: Severity::Error, field: field.into(), message: message.into() }
    }

    fn warning(code: Code, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, field, message) }
    }
}

/// One finding.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    code: Code,
    severity: Severity,
    /// The file; for what several objects cause together, that of the first.
    file: String,
    /// The line in the file, from 1.
    line: usize,
    /// The document in the file, from 1.
    document: usize,
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
    /// What was left out because it is no manifest by itself.
    #[serde(flatten)]
    left_out: LeftOut,
    findings: Vec<Finding>,
    /// The Namespaces that are frozen today, so that the load has no run of them until then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    freezes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<Load>,
    /// The load if every run started at its slot, where some do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    load_without_spread: Option<Load>,
}

/// Checks manifests on the day of `now`, in the zone of the rules; the time of day has no effect.
pub fn check(sources: &[Source], rules: &Rules, now: DateTime<Utc>) -> CheckReport {
    check_by(sources, &AdmissionPolicies::default(), rules, now)
}

/// The same, and judges every object whose kind is known by admission policies.
pub fn check_by(sources: &[Source], policies: &AdmissionPolicies, rules: &Rules, now: DateTime<Utc>) -> CheckReport {
    let mut checker = Checker::new(rules.clone(), policies, now);
    checker.restrictions = next::manifests::restrictions(sources);
    for source in sources {
        checker.template = repository::template(source);
        for (index, document) in documents(&source.text).into_iter().enumerate() {
            checker.document(&Position { file: source.file.clone(), document: index + 1 }, &document);
        }
    }
    checker.into_report()
}

/// What is wrong with objects of a document, each with its line and its field. The lines are read once, when one is wrong.
pub(super) struct Wrong<'a> {
    document: &'a Document,
    lines: OnceCell<Lines<'a>>,
}

impl<'a> Wrong<'a> {
    pub(super) fn in_document(document: &'a Document) -> Self {
        Self { document, lines: OnceCell::new() }
    }

    /// What an API server finds wrong with an object of a kind with a schedule, and whether a run may depend on that: on a field of the
    /// specification that is wrong, and not only missing. A wrong schedule or zone is a state that the CronJob has.
    pub(super) fn of_object(&self, of: &manifests::Place, kind: ControllerKind, object: &Value) -> (Vec<String>, bool) {
        let mut errors = SERVED.judge(kind, object);
        errors.retain(|fault| fault.severity == Severity::Error);
        let is_of_runs = |fault: &Fault| {
            let field = fault.field.strip_prefix("spec.").unwrap_or("jobTemplate");
            let is_told = ["schedule", "timeZone"].contains(&field) || field.starts_with("jobTemplate");
            !is_told && !fault.message.starts_with(REQUIRED)
        };
        (errors.iter().map(|fault| self.in_words(of, fault)).collect(), errors.iter().any(is_of_runs))
    }

    /// What is wrong with the kind of an object.
    pub(super) fn of_kind(&self, of: &manifests::Place, object: &Value) -> Option<String> {
        manifest::kind_of(object).err().map(|fault| self.in_words(of, &fault))
    }

    fn in_words(&self, of: &manifests::Place, fault: &Fault) -> String {
        let lines = self.lines.get_or_init(|| Lines::of(self.document));
        let line = lines.line_of(&of.field(&fault.field));
        let field = if fault.field.is_empty() { String::new() } else { format!("{}: ", fault.field) };
        format!("line {line}: {field}{}", fault.message)
    }
}

/// The start of the day.
fn midnight(zone: Zone, now: DateTime<Utc>) -> DateTime<Utc> {
    zone.instant(zone.at(now).date_naive().and_time(NaiveTime::MIN)).unwrap_or(now)
}

/// A CronJob that is not suspended.
struct Runner {
    name: String,
    place: Position,
    line: usize,
    schedule: Schedule,
    /// The text of the schedule and its zone, if nothing else decides the slots.
    written: Option<(String, Option<Zone>)>,
    /// How long after its slots it starts.
    offset: TimeDelta,
}

/// What was found so far.
struct Checker<'a> {
    rules: Rules,
    /// What the Namespaces among the manifests say.
    restrictions: Restrictions,
    policies: Judge<'a>,
    today: DateTime<Utc>,
    cron_jobs: usize,
    others: usize,
    findings: Vec<Finding>,
    runners: Vec<Runner>,
    /// What the file is, if it is a template.
    template: Option<&'static str>,
    /// Where each object was defined, by kind, namespace and name.
    defined: HashMap<(&'static str, String), (String, usize)>,
}

impl<'a> Checker<'a> {
    fn new(rules: Rules, policies: &'a AdmissionPolicies, now: DateTime<Utc>) -> Self {
        Self {
            today: midnight(rules.zone, now),
            rules,
            restrictions: Restrictions::default(),
            policies: policies.judge(),
            cron_jobs: 0,
            others: 0,
            findings: Vec::new(),
            runners: Vec::new(),
            template: None,
            defined: HashMap::new(),
        }
    }

    fn document(&mut self, place: &Position, document: &Document) {
        let (objects, faults) = manifest::objects(document);
        let lines = Lines::of(document);
        for (line, mut fault) in faults {
            if let Some(noun) = self.template {
                fault.message = format!("{}; the file is {noun}, so check what it renders", fault.message);
            }
            let line = line.unwrap_or_else(|| lines.line_of(&fault.field));
            self.findings.push(Finding::new(place, line, String::new(), fault));
        }
        for (of, object) in objects {
            self.object(place, &object, &|field| lines.line_of(&of.field(field)));
        }
    }

    fn object(&mut self, place: &Position, object: &Value, line_of: &dyn Fn(&str) -> usize) {
        let name = manifest::name_of(object);
        let mut faults = match manifest::kind_of(object) {
            Ok(Kind::Scheduled(controller_kind)) => {
                self.cron_jobs += 1;
                let line = line_of("metadata.name");
                let mut faults: Vec<Fault> = self.duplicate(controller_kind, place, line, object).into_iter().collect();
                faults.extend(SERVED.judge(controller_kind, object).into_iter().map(|fault| with_hint(fault, object)));
                if let Some(timed) = times::Timed::of(controller_kind, object, &self.rules, &self.restrictions) {
                    faults.extend(timed.judge(self.today));
                    let text = object["spec"]["schedule"].as_str().unwrap_or_default();
                    faults.extend(mistakes::of_schedule(text, self.today));
                    if controller_kind == ControllerKind::CronJob {
                        faults.extend(dialects::judge(text));
                    }
                    faults.extend(mistakes::of_rest(object, timed.max_concurrent(), timed.deletes_stuck_jobs()));
                    faults.extend(policies::untold(controller_kind, object));
                    faults.extend(concurrency::judge(&timed, object, self.today));
                    if !timed.suspended && !timed.is_held() {
                        let (name, place, line) = (name.clone(), place.clone(), line_of("spec.schedule"));
                        let window = self.rules.what_if_spread.filter(|_| controller_kind.counted_from.is_some());
                        let offset = match window {
                            Some(window) => window.offset(&self.rules.seed, &policies::key(object)),
                            None => timed.offset(),
                        };
                        let written = timed.is_plain().then(|| (text.to_owned(), timed.schedule.zone()));
                        self.runners.push(Runner { name, place, line, schedule: timed.schedule, written, offset });
                    }
                }
                faults
            }
            Ok(Kind::Other) => {
                self.others += 1;
                let of_namespace = policies::of_namespace(object, &self.restrictions);
                of_namespace.into_iter().chain(SERVED.judge_admission(object)).collect()
            }
            Err(fault) => vec![fault],
        };
        faults.extend(self.policies.faults(object));
        self.findings
            .extend(faults.into_iter().map(|fault| Finding::new(place, line_of(&fault.field), name.clone(), fault)));
    }

    /// Notes where an object is defined; a second one of its name replaces the first.
    fn duplicate(
        &mut self,
        controller_kind: ControllerKind,
        place: &Position,
        line: usize,
        object: &Value,
    ) -> Option<Fault> {
        // A generated name is never the same twice.
        object["metadata"]["name"].as_str().filter(|name| !name.is_empty())?;
        let key = (controller_kind.name, manifest::name_of(object));
        let (file, earlier) = self.defined.insert(key, (place.file.clone(), line))?;
        let directory = |file: &str| Path::new(file).parent().map(Path::to_owned);
        // What is in other directories is often for another cluster.
        Some(if directory(&file) == directory(&place.file) {
            let message = format!("is defined at {file}:{earlier} already, and would replace that object");
            Fault::error(Code::Duplicate, "metadata.name", message)
        } else {
            let message =
                format!("is defined at {file}:{earlier} too; in one cluster, one of them would replace the other");
            Fault::warning(Code::Duplicate, "metadata.name", message)
        })
    }

    fn into_report(mut self) -> CheckReport {
        let load = Load::of(&self.runners, self.rules.zone, self.today, true);
        let busy = load.busy(&self.runners, self.rules.max_per_minute);
        let is_spread = self.runners.iter().any(|runner| runner.offset > TimeDelta::zero());
        let at_slots =
            (is_spread && self.rules.histogram).then(|| Load::of(&self.runners, self.rules.zone, self.today, false));
        let of_all = |(runner, fault): (usize, Fault)| {
            let Runner { place, line, .. } = &self.runners[runner];
            Finding::new(place, *line, String::new(), fault)
        };
        self.findings.extend(busy.into_iter().map(of_all));
        let load = self.rules.histogram.then(|| load.with_busiest(&self.runners));
        let (cron_jobs, others, findings) = (self.cron_jobs, self.others, self.findings);
        let freezes = self.restrictions.freezes(self.rules.zone, self.today);
        let left_out = LeftOut::default();
        CheckReport { cron_jobs, others, left_out, findings, freezes, load, load_without_spread: at_slots }
    }
}

impl Finding {
    fn new(place: &Position, line: usize, object: String, fault: Fault) -> Self {
        let Fault { code, severity, field, message } = fault;
        Self { code, severity, file: place.file.clone(), line, document: place.document, object, field, message }
    }

    /// What was found, without its place.
    fn sentence(&self) -> String {
        let parts = [&self.object, &self.field, &self.message].into_iter().filter(|part| !part.is_empty());
        parts.cloned().collect::<Vec<_>>().join(": ")
    }

    /// As compilers write it, so that editors find the line.
    fn line(&self) -> String {
        format!("{}:{}: {}: {} [{}]", self.file, self.line, self.severity, self.sentence(), self.code)
    }
}

impl CheckReport {
    /// The report of a directory, with the files that were not checked.
    #[must_use]
    pub fn leaving_out(self, left_out: LeftOut) -> Self {
        Self { left_out, ..self }
    }

    /// The report with a finding for each file and directory that cannot be read.
    #[must_use]
    pub fn without(mut self, unreadable: &[ManifestError]) -> Self {
        self.findings.extend(unreadable.iter().map(|error| {
            let place = Position { file: error.file(), document: 1 };
            Finding::new(&place, 1, String::new(), Fault::error(Code::NotYaml, "", error.reason()))
        }));
        self
    }

    /// The report with a finding for each command that did not render anything.
    #[must_use]
    pub fn unrendered(mut self, errors: &[RenderError]) -> Self {
        self.findings.extend(errors.iter().map(|error| {
            let (command, problem) = error.parts();
            let place = Position { file: command.to_owned(), document: 1 };
            Finding::new(&place, 1, String::new(), Fault::error(Code::NotYaml, "", problem))
        }));
        self
    }

    /// A remark where there was no CronJob to check, and whether there was nothing at all.
    pub fn nothing(&self) -> Option<(String, bool)> {
        if self.cron_jobs > 0 || !self.findings.is_empty() {
            return None;
        }
        let is_empty = self.others == 0 && self.left_out.is_rendered();
        let text = if is_empty { "no object was found to check" } else { "no CronJob was found to check" };
        Some((text.to_owned(), is_empty))
    }

    /// Whether there is a finding that counts as a failure.
    pub fn fails(&self, rules: &Rules) -> bool {
        self.findings.iter().any(|finding| finding.severity >= rules.fail_on)
    }

    /// The report in the given format; its lines fit the terminal, if there is one.
    pub fn render(&self, format: CheckFormat, screen: Option<Screen>) -> PlainText {
        match format {
            CheckFormat::Report(format) => output::fitting(self, format, screen),
            CheckFormat::Sarif => formats::sarif(self),
            CheckFormat::Github => formats::github(self),
        }
    }
}

impl Report for CheckReport {
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.findings.iter().map(Finding::line).chain(self.left_out.lines("check")).collect();
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(self.freezes.iter().map(|freeze| format!("{freeze} Until then it has no run.")));
        lines.extend(self.load.iter().flat_map(|load| load.lines(self.load_without_spread.as_ref())));
        let number = |severity| self.findings.iter().filter(|finding| finding.severity == severity).count();
        let (errors, warnings) = (number(Severity::Error), number(Severity::Warning));
        let others = (self.others > 0).then(|| count(self.others, "other object"));
        let ignored: Vec<String> = others.into_iter().chain(self.left_out.other_files()).collect();
        let ignored = if ignored.is_empty() { String::new() } else { format!(", {} ignored", ignored.join(" and ")) };
        let found = format!("{}, {}", count(errors, "error"), count(warnings, "warning"));
        lines.push(format!("{}{ignored}: {found}.", count(self.cron_jobs, "CronJob")));
        lines
    }
}

/// The refusal of a schedule, with what to write instead.
fn with_hint(fault: Fault, object: &Value) -> Fault {
    let is_of_schedule = fault.code == Code::Invalid && fault.field == "spec.schedule";
    let schedule = object["spec"]["schedule"].as_str().filter(|_| is_of_schedule);
    match schedule {
        Some(schedule) => Fault { message: hints::with(fault.message, schedule), ..fault },
        None => fault,
    }
}

#[cfg(test)]
mod tests;
