//! The command lines of the commands for a user at a terminal.
//!
//! Guarantees: the syntax is that of the controller's own flags. All faults are reported at once, each as one sentence
//! that names the flag or argument, the value and the allowed values. Pure.

use std::ffi::OsString;
use std::path::PathBuf;

use apimachinery::names::{dns_label_errors, subdomain_errors};
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use clap::{ArgAction, FromArgMatches, Parser, ValueHint};
use schedule::{Schedule, Zone};

#[cfg(feature = "dev")]
use super::check::{CheckFormat, Rules, Severity};
use super::dispatch::{Invocation, no_command};
use super::explain::read::Target;
use super::kubectl::Program;
use super::output::Format;
use super::{Command, next, pages};
use crate::api::ControllerKind;
#[cfg(feature = "dev")]
use crate::options::go_syntax::parse_int;
use crate::options::resolve::Faults;
use crate::options::{Environment, UsageError, flags, version_line};

/// A command, independent of the program's name.
pub(super) struct Entry {
    /// The word on the command line.
    pub name: &'static str,
    /// What follows it.
    pub usage: &'static str,
    /// Its flags.
    pub command: fn() -> clap::Command,
    /// The end of the help, with `{}` for the program.
    pub remark: &'static str,
}

/// All commands, in the order of the help.
pub(super) const COMMANDS: &[Entry] = &[
    Entry {
        name: "next",
        usage: "SCHEDULE [flags]",
        command: flags::command::<Next>,
        remark: "The exit code is 1 if the schedule never fires. Example: {} next '30 2 * * *' --time-zone Europe/Berlin",
    },
    Entry {
        name: "explain",
        usage: "NAME [flags]",
        command: flags::command::<Explain>,
        remark: "Reads the CronJob, the Jobs of its namespace and the Warnings about it; writes nothing.",
    },
    #[cfg(feature = "dev")]
    Entry {
        name: "check",
        usage: "-f FILE [flags]",
        command: flags::command::<Check>,
        remark: "Exit codes: 0 if nothing of the severity of --fail-on was found, 1 if something was or a file cannot be read, \
                 2 for a wrong command line. docs/check.md explains each finding by its code. Example: {} check -R -f manifests",
    },
    Entry {
        name: "completion",
        usage: "SHELL",
        command: flags::command::<Completion>,
        remark: "Example for bash: source <({} completion bash)",
    },
    Entry { name: "man", usage: "[flags]", command: flags::command::<Man>, remark: "Example: {} man | man -l -" },
];

const ZONES: &str = "a name of the time zone database, such as Europe/Berlin";
const FORMATS: &str = "table, json or yaml";

#[derive(Debug, Clone, Parser)]
#[command(
    about = "Says a schedule in words, prints its next runs, and marks those that a clock change skips or repeats."
)]
struct Next {
    /// Five fields, or @daily, @every 90s and the like, in quotes
    #[arg(value_name = "SCHEDULE", num_args = 0.., hide_default_value = true)]
    schedule: Vec<String>,

    /// The time zone of the schedule, as in spec.timeZone [default: the time zone of this process]
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,

    /// How many runs to print.
    #[arg(short = 'n', long, value_name = "INT", default_value = "5")]
    count: String,

    /// Print the runs up to the time of --from instead, the latest at the end.
    #[arg(long, value_name = "BOOL", default_value = "false")]
    previous: String,

    /// Print the runs after this time: 2026-03-28T01:00:00Z, or 2026-03-28 or 2026-03-28T01:00 in the schedule's zone
    /// [default: now]
    #[arg(long, value_name = "TIME", verbatim_doc_comment)]
    from: Option<String>,

    /// The output format: table, json or yaml.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: String,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    help: bool,
}

#[derive(Debug, Clone, Parser)]
#[command(about = "Says why a CronJob did or did not run, and what it will do next.")]
struct Explain {
    /// The CronJob's name
    #[arg(value_name = "NAME", num_args = 0.., hide_default_value = true)]
    name: Vec<String>,

    /// The namespace [default: that of the context, else default]
    #[arg(short, long, value_name = "STRING")]
    namespace: Option<String>,

    /// The kind of the object: cronjob (batch/v1), tutorial (the kubebuilder book's CronJob) or apiexample.
    #[arg(long, value_name = "STRING", default_value = "cronjob")]
    controller: String,

    /// The controller's time zone, for a CronJob without spec.timeZone.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,

    /// The kubeconfig file [default: as kubectl, $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    kubeconfig: Option<PathBuf>,

    /// The kubeconfig's context [default: the current one]
    #[arg(long, value_name = "STRING")]
    context: Option<String>,

    /// The output format: table, json or yaml.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: String,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    help: bool,
}

#[cfg(feature = "dev")]
#[derive(Debug, Clone, Parser)]
#[command(
    about = "Validates manifests of CronJobs, and warns of schedules that never fire, clock changes and busy minutes."
)]
struct Check {
    /// A manifest (YAML or JSON), a directory of them, or - for stdin; may be repeated and takes commas
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-", action = ArgAction::Append, value_hint = ValueHint::AnyPath)]
    filename: Vec<String>,

    /// Refused, with the advice to use -f.
    #[arg(value_name = "FILE", num_args = 0.., hide = true)]
    word: Vec<String>,

    /// Read the directories below that of -f too.
    #[arg(short = 'R', long, value_name = "BOOL", default_value = "false")]
    recursive: String,

    /// Warn if more CronJobs than this start in one minute.
    #[arg(long, value_name = "INT", default_value = "20")]
    max_per_minute: String,

    /// The lowest severity that makes the exit code 1: error or warning.
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    fail_on: String,

    /// The controller's time zone, for CronJobs without spec.timeZone and for the histogram.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,

    /// What to show of the load: day (the runs in each hour of the day) or none.
    #[arg(long, value_name = "STRING", default_value = "day")]
    histogram: String,

    /// The output format: table, json, yaml, sarif, or github (annotations of a workflow).
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: String,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    help: bool,
}

#[derive(Debug, Clone, Parser)]
#[command(about = "Prints the completion script for a shell: bash, zsh, fish, powershell or elvish.")]
struct Completion {
    /// bash, zsh, fish, powershell or elvish
    #[arg(value_name = "SHELL", num_args = 0.., hide_default_value = true)]
    shell: Vec<String>,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    help: bool,
}

#[derive(Debug, Clone, Parser)]
#[command(about = "Prints the manual page.")]
struct Man {
    /// Write the page, and one for each command, into files in this directory instead.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output_dir: Option<PathBuf>,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    help: bool,
}

/// Whether a word begins one of these command lines.
pub(super) fn is_command(word: &OsString) -> bool {
    COMMANDS.iter().any(|entry| word == entry.name)
}

/// Parses the command line after the program's name.
///
/// # Errors
/// One sentence per fault.
pub(super) fn parse(
    program: Program,
    mut args: impl Iterator<Item = OsString>,
    env: &dyn Environment,
) -> Result<Invocation, UsageError> {
    let word = args.next().unwrap_or_else(|| "--help".into());
    let Some(entry) = COMMANDS.iter().find(|entry| word == entry.name) else {
        return other_word(program, &word.to_string_lossy());
    };
    let args = std::iter::once(word).chain(args);
    let mut command = pages::command(program, entry);
    match entry.name {
        "next" => answer(&mut command, args, |raw: &Next| raw.help, |raw| next(&raw, env)),
        "explain" => answer(&mut command, args, |raw: &Explain| raw.help, explain),
        #[cfg(feature = "dev")]
        "check" => answer(&mut command, args, |raw: &Check| raw.help, |raw| check(&raw)),
        "completion" => answer(&mut command, args, |raw: &Completion| raw.help, |raw| completion(program, &raw)),
        _ => answer(&mut command, args, |raw: &Man| raw.help, |raw| Ok(manual(program, raw))),
    }
}

fn answer<T: FromArgMatches>(
    command: &mut clap::Command,
    args: impl Iterator<Item = OsString>,
    wants_help: fn(&T) -> bool,
    resolve: impl FnOnce(T) -> Result<Invocation, UsageError>,
) -> Result<Invocation, UsageError> {
    let raw: T = flags::matches(command, args)?;
    if wants_help(&raw) {
        return Ok(Invocation::Help(command.render_help().to_string()));
    }
    resolve(raw)
}

/// An unknown command of the plugin.
fn other_word(program: Program, word: &str) -> Result<Invocation, UsageError> {
    match word {
        "help" | "--help" | "-h" => Ok(Invocation::Help(pages::tree(program).render_help().to_string())),
        "version" | "--version" => Ok(Invocation::Version(version_line())),
        _ => Err(no_command(program, word)),
    }
}

fn cli(command: Command) -> Invocation {
    Invocation::Cli(Box::new(command))
}

fn next(raw: &Next, env: &dyn Environment) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    let text = the_one(&raw.schedule, "SCHEDULE", "a schedule in quotes, such as '30 2 * * *'");
    let text = faults.record(text);
    let zone = match &raw.time_zone {
        None => Some(env.local_zone()),
        Some(name) => faults.read("time-zone", name, ZONES, zone_named),
    };
    let parsed = text.and_then(|text| {
        let schedule = Schedule::parse_standard(text, zone.unwrap_or_default());
        let schedule = schedule.map_err(|error| format!("SCHEDULE: {text:?} is not a schedule: {error}"));
        Some((text.to_owned(), faults.record(schedule)?))
    });
    let count = faults.whole("count", &raw.count, 1..=10_000);
    let zone = parsed.as_ref().and_then(|(_, schedule)| schedule.zone()).or(zone).unwrap_or_default();
    let from = raw.from.as_deref().and_then(|text| {
        faults.read("from", text, "a time such as 2026-03-28T01:00:00Z, 2026-03-28T01:00 or 2026-03-28", |text| {
            time_from(text, zone)
        })
    });
    let previous = faults.boolean("previous", &raw.previous);
    if previous == Some(true) && parsed.as_ref().is_some_and(|(_, schedule)| schedule.interval().is_some()) {
        faults.add("previous", "true", "it with a schedule of five fields: @every counts from the last run");
    }
    let format = faults.read("output", &raw.output, FORMATS, Format::parse);
    let Some((text, schedule)) = parsed else { return Err(faults.into_error()) };
    faults.into_result()?;
    // A value that could not be parsed is a fault: its placeholder never leaves these functions.
    let previous = previous.unwrap_or_default();
    let question = next::Question { text, schedule, from, count: count.unwrap_or_default(), previous };
    Ok(cli(Command::Next(question, format.unwrap_or_default())))
}

fn explain(raw: Explain) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    let name = the_one(&raw.name, "NAME", "the name of one CronJob").and_then(|name| {
        let fault = format!("NAME: {name:?} is not allowed; use the name of one CronJob, without its kind");
        if subdomain_errors(name).is_empty() { Ok(name.to_owned()) } else { Err(fault) }
    });
    let name = faults.record(name);
    if let Some(namespace) = raw.namespace.as_deref().filter(|namespace| !dns_label_errors(namespace).is_empty()) {
        faults.add("namespace", namespace, "the name of a namespace");
    }
    let controller_kind = faults.read("controller", &raw.controller, "cronjob, tutorial or apiexample", |text| {
        ControllerKind::ALL.into_iter().find(|controller_kind| controller_kind.name == text)
    });
    let zone = faults.read("time-zone", &raw.time_zone, ZONES, zone_named);
    let format = faults.read("output", &raw.output, FORMATS, Format::parse);
    faults.into_result()?;
    let target = Target {
        controller_kind: controller_kind.unwrap_or_default(),
        namespace: raw.namespace,
        name: name.unwrap_or_default(),
        kubeconfig: raw.kubeconfig,
        context: raw.context,
    };
    Ok(cli(Command::Explain(target, zone.unwrap_or_default(), format.unwrap_or_default())))
}

#[cfg(feature = "dev")]
fn check(raw: &Check) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    let files: Vec<&str> = raw.filename.iter().flat_map(|list| list.split(',')).collect();
    if let [first, ..] = raw.word.as_slice() {
        return Err(UsageError::one(format!(
            "unexpected argument {first:?}; files follow -f: check -f {}",
            raw.word.join(",")
        )));
    }
    if files.is_empty() {
        let what =
            "-f is missing; give the path of a file or of a directory, or - for stdin, as in check -f cronjobs.yaml";
        return Err(UsageError::one(what.to_owned()));
    }
    if files.contains(&"") {
        faults.add("filename", "", "the path of a file or of a directory, or - for stdin");
    }
    let max_per_minute = faults.read("max-per-minute", &raw.max_per_minute, "a whole number above 0", |text| {
        parse_int(text).and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0)
    });
    let fail_on = faults.read("fail-on", &raw.fail_on, "error or warning", Severity::parse);
    let zone = faults.read("time-zone", &raw.time_zone, ZONES, zone_named);
    let recursive = faults.boolean("recursive", &raw.recursive);
    let histogram = faults.read("histogram", &raw.histogram, "day or none", |text| match text {
        "day" => Some(true),
        "none" => Some(false),
        _ => None,
    });
    let format = faults.read("output", &raw.output, "table, json, yaml, sarif or github", CheckFormat::parse);
    faults.into_result()?;
    let rules = Rules {
        zone: zone.unwrap_or_default(),
        max_per_minute: max_per_minute.unwrap_or_default(),
        fail_on: fail_on.unwrap_or_default(),
        histogram: histogram.unwrap_or(true),
    };
    let files = files.into_iter().map(PathBuf::from).collect();
    let format = format.unwrap_or(CheckFormat::Report(Format::Table));
    Ok(cli(Command::Check(files, rules, format, recursive.unwrap_or_default())))
}

fn completion(program: Program, raw: &Completion) -> Result<Invocation, UsageError> {
    let names = pages::SHELLS.map(|shell| shell.to_string()).join(", ");
    let shell = the_one(&raw.shell, "SHELL", &format!("one of {names}")).and_then(|text| {
        let shell = pages::SHELLS.into_iter().find(|shell| shell.to_string() == text);
        shell.ok_or_else(|| format!("SHELL: {text} is not allowed; use one of {names}"))
    });
    shell.map(|shell| Invocation::Help(pages::completion(program, shell))).map_err(UsageError::one)
}

fn manual(program: Program, raw: Man) -> Invocation {
    let pages = pages::manual(program);
    match raw.output_dir {
        Some(directory) => cli(Command::Manual(pages, directory)),
        None => Invocation::Help(pages.into_iter().next().map(|(_, page)| page).unwrap_or_default()),
    }
}

/// The single argument. Several arguments are usually a schedule without quotes.
fn the_one<'a>(words: &'a [String], argument: &str, what: &str) -> Result<&'a str, String> {
    match words {
        [one] => Ok(one),
        [] => Err(format!("{argument} is missing; give {what}")),
        several => Err(format!("{argument} is one argument, and there are {}; give {what}", several.len())),
    }
}

/// A zone by its name. `Local` is refused, since it means a different zone in each process.
fn zone_named(name: &str) -> Option<Zone> {
    Zone::load(name, Zone::UTC).ok().filter(|_| !matches!(name, "" | "Local"))
}

/// RFC 3339, a local time, or the start of a day, in `zone`.
fn time_from(text: &str, zone: Zone) -> Option<DateTime<Utc>> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.to_utc());
    }
    let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().map(|day| day.and_time(NaiveTime::MIN));
    let forms = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
    let local = forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok()).or_else(day)?;
    zone.instant(local)
}

#[cfg(test)]
mod tests;
