//! The command lines of the commands for a user at a terminal.
//!
//! Guarantees: the syntax is that of the controller's own flags. All faults are reported at once, each as one sentence
//! that names the flag or argument, the value and the allowed values. Pure.

#[cfg(feature = "dev")]
mod check;
pub mod cluster;
mod freeze;
pub(super) mod past;
mod shadow;
#[cfg(feature = "ui")]
pub mod ui;

use std::ffi::OsString;
use std::path::PathBuf;

use apimachinery::names::subdomain_errors;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use clap::{ArgAction, FromArgMatches, Parser, ValueHint};
use schedule::{Schedule, Zone};

use super::dispatch::{Invocation, no_command};
use super::kubectl::Program;
use super::next::cron_jobs::Given;
use super::output::Format;
use super::{Command, hints, next, pages};
use crate::api::ControllerKind;
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
        usage: if cfg!(feature = "dev") { "SCHEDULE | NAME | -f FILE [flags]" } else { "SCHEDULE | NAME [flags]" },
        command: flags::command::<Next>,
        remark: "The exit code is 1 if the schedule never fires. Example: {} next '30 2 * * *' --time-zone Europe/Berlin",
    },
    Entry {
        name: "explain",
        usage: "[NAME] [flags]",
        command: flags::command::<cluster::Explain>,
        remark: "Reads CronJobs, the Jobs of their namespaces, the Events about them, failed Pods and Leases; writes nothing. \
                 Example: {} explain --since yesterday",
    },
    Entry {
        name: "list",
        usage: "[flags]",
        command: flags::command::<cluster::List>,
        remark: "Reads CronJobs, Jobs, Events and Leases; writes nothing. Example: {} list -A",
    },
    #[cfg(feature = "ui")]
    Entry {
        name: "ui",
        usage: "[-f FILE] [flags]",
        command: flags::command::<ui::Ui>,
        remark: "Prints the page's link, which works once, within five minutes; open the page without a token, and another is printed. \
                 Lists and watches CronJobs, Jobs and Events, and lists Leases; writes nothing. Example: {} ui -A --open",
    },
    Entry {
        name: "trigger",
        usage: "NAME [flags] [-- ARGS]",
        command: flags::command::<cluster::Trigger>,
        remark: "Reads the CronJob and creates a Job; --wait and --follow list and watch the Jobs of its namespace and read Pods. \
                 Example: {} trigger nightly --env DAY=2026-03-28 --follow -- --verbose",
    },
    Entry {
        name: "suspend",
        usage: "NAME [flags]",
        command: flags::command::<cluster::Suspend>,
        remark: "Reads what explain reads, and patches the CronJob.",
    },
    Entry {
        name: "resume",
        usage: "NAME [flags]",
        command: flags::command::<cluster::Resume>,
        remark: "Reads what explain reads, and patches the CronJob.",
    },
    Entry {
        name: "freeze",
        usage: "-n NAMESPACE | -l SELECTOR | -A --until TIME [flags]",
        command: flags::command::<freeze::Freeze>,
        remark: "Reads Namespaces, CronJobs and Leases, and patches each Namespace. The exit code is 1 if one could not be changed. \
                 docs/policies.md explains what a freeze holds. Example: {} freeze -n shop --until 12h --reason 'release week'",
    },
    Entry {
        name: "thaw",
        usage: "-n NAMESPACE | -l SELECTOR | -A [flags]",
        command: flags::command::<freeze::Thaw>,
        remark: "Reads Namespaces, CronJobs and Leases, and patches each Namespace that is frozen. Example: {} thaw -n shop",
    },
    Entry {
        name: "backfill",
        usage: "NAME --from TIME --to TIME [flags]",
        command: flags::command::<past::Backfill>,
        remark: "Reads the CronJob and lists and watches the Jobs of its namespace; patches the CronJob, creates Jobs, and deletes \
                 failed ones with --again. The exit code is 1 if a Job failed or was deleted, if the backfill stopped, or if it left \
                 out the slot begun last, which may have run. Example: {} backfill nightly --from 2026-03-01 --to 2026-03-08 --dry-run",
    },
    Entry {
        name: "migrate",
        usage: "check | handover [NAME...] | takeback [NAME...] | skip-missed [NAME...] [flags]",
        command: flags::command::<past::Migrate>,
        remark: "check reads CronJobs and Jobs; Leases, FlowSchemas and the rights of the controller's account if the user may; \
                 writes nothing. Its exit code is 1 if a finding changes which Jobs run. docs/migration.md explains each finding by \
                 its code. handover, takeback and skip-missed patch each CronJob once; one that is suspended stays suspended. Their \
                 exit code is 1 if a CronJob could not be changed. Example: {} migrate handover nightly --dry-run",
    },
    Entry {
        name: "shadow",
        usage: "[flags]",
        command: flags::command::<shadow::Shadow>,
        remark: "Lists and watches CronJobs and Jobs, and lists Leases and Events if the user may; its client refuses every write before it is sent. \
                 The exit code is 1 if a slot was missed, started twice or differs; lateness alone is no difference. docs/shadow.md \
                 explains the report. Example: {} shadow --for 1h",
    },
    #[cfg(feature = "dev")]
    Entry {
        name: "check",
        usage: "-f FILE [flags]",
        command: flags::command::<check::Check>,
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
    about = "Prints the next runs of a schedule or of a CronJob, and marks those that a clock change skips or repeats."
)]
struct Next {
    /// Five fields, or @daily, @every 90s and the like, in quotes; one word that does not begin with @ is the name of a CronJob
    #[arg(value_name = "SCHEDULE|NAME", num_args = 0.., hide_default_value = true)]
    schedule: Vec<String>,

    /// The CronJobs in a manifest (YAML or JSON), a directory of them, or - for stdin, with their policies, instead of a
    /// schedule; may be repeated and takes commas. Objects without a namespace are in that of -n, else in default
    #[cfg(feature = "dev")]
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-", action = ArgAction::Append,
          value_hint = ValueHint::AnyPath, verbatim_doc_comment)]
    filename: Vec<String>,

    #[command(flatten)]
    place: cluster::Where,

    /// List what policies leave out, too.
    #[arg(long, value_name = "BOOL", default_value = "false")]
    all: String,

    /// The --spread-seed of the controller.
    #[arg(long, value_name = "STRING", default_value = "")]
    spread_seed: String,

    /// The time zone of the schedule, as in spec.timeZone [default: the time zone of this process; of a CronJob, UTC]
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,

    /// How many runs to print.
    #[arg(short, long, value_name = "INT", default_value = "5")]
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
        "next" => answer(&mut command, args, |raw: &Next| raw.help, |raw| next(raw, env)),
        "explain" => answer(&mut command, args, |raw: &cluster::Explain| raw.output.help, cluster::explain),
        "list" => answer(&mut command, args, |raw: &cluster::List| raw.output.help, cluster::list),
        #[cfg(feature = "ui")]
        "ui" => answer(&mut command, args, |raw: &ui::Ui| raw.help, ui::ui),
        "trigger" => answer(&mut command, args, |raw: &cluster::Trigger| raw.help, cluster::trigger),
        "suspend" => answer(&mut command, args, |raw: &cluster::Suspend| raw.help, cluster::suspend),
        "resume" => answer(&mut command, args, |raw: &cluster::Resume| raw.help, cluster::resume),
        "freeze" => answer(&mut command, args, |raw: &freeze::Freeze| raw.output.help, freeze::freeze),
        "thaw" => answer(&mut command, args, |raw: &freeze::Thaw| raw.output.help, freeze::thaw),
        "backfill" => answer(&mut command, args, |raw: &past::Backfill| raw.help, past::backfill),
        "shadow" => answer(&mut command, args, |raw: &shadow::Shadow| raw.help, shadow::shadow),
        "migrate" => answer(&mut command, args, |raw: &past::Migrate| raw.output.help, past::migrate),
        #[cfg(feature = "dev")]
        "check" => answer(&mut command, args, |raw: &check::Check| raw.help, |raw| check::check(&raw)),
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

/// What `--from` takes.
const TIMES: &str = "a time such as 2026-03-28T01:00:00Z, 2026-03-28T01:00 or 2026-03-28";

/// What is asked of CronJobs, in place of a schedule.
fn question(raw: &Next, faults: &mut Faults) -> (next::cron_jobs::Question, Format) {
    let zone = raw.time_zone.as_deref().map(|name| faults.read("time-zone", name, ZONES, zone_named));
    let zone = zone.flatten().unwrap_or(Zone::UTC);
    let count = faults.whole("count", &raw.count, 1..=10_000);
    let from = raw.from.as_deref().and_then(|text| faults.read("from", text, TIMES, given_time));
    if faults.boolean("previous", &raw.previous) == Some(true) {
        faults.add("previous", "true", "it with a SCHEDULE");
    }
    let all = faults.boolean("all", &raw.all).unwrap_or_default();
    let format = faults.read("output", &raw.output, FORMATS, Format::parse);
    let seed = raw.spread_seed.as_str().into();
    let question = next::cron_jobs::Question { zone, seed, from, count: count.unwrap_or_default(), all };
    (question, format.unwrap_or_default())
}

#[cfg(feature = "dev")]
fn next_of_files(raw: &Next) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    if let [first, ..] = raw.schedule.as_slice() {
        return Err(UsageError::one(format!("unexpected argument {first:?}; with -f, there is no SCHEDULE")));
    }
    let files: Vec<&str> = raw.filename.iter().flat_map(|list| list.split(',')).collect();
    if files.contains(&"") {
        faults.add("filename", "", "the path of a file or of a directory, or - for stdin");
    }
    let namespace = cluster::namespace(&raw.place, &mut faults).unwrap_or_else(|| "default".to_owned());
    let (question, format) = question(raw, &mut faults);
    faults.into_result()?;
    let files = files.into_iter().map(PathBuf::from).collect();
    Ok(cli(Command::NextOf(files, namespace, question, format)))
}

/// Whether the command line names a CronJob, perhaps with its kind as `get` prints it: a schedule has several words, or begins with @.
fn is_name(words: &[String]) -> bool {
    let is_kind = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'.');
    let is_name = |word: &str| subdomain_errors(word).is_empty();
    let with_kind = |word: &str| word.split_once('/').is_some_and(|(kind, name)| is_kind(kind) && is_name(name));
    matches!(words, [word] if is_name(word) || with_kind(word))
}

fn next_in_cluster(raw: Next) -> Result<Invocation, UsageError> {
    let mut faults = Faults::default();
    let (question, format) = question(&raw, &mut faults);
    let target = cluster::target(&raw.schedule, raw.place, &mut faults);
    faults.into_result()?;
    Ok(cli(Command::NextIn(target, question, format)))
}

const KINDS: &str = "cronjob, tutorial or apiexample";

fn kind_named(text: &str) -> Option<ControllerKind> {
    ControllerKind::ALL.into_iter().find(|controller_kind| controller_kind.name == text)
}

fn next(raw: Next, env: &dyn Environment) -> Result<Invocation, UsageError> {
    #[cfg(feature = "dev")]
    if !raw.filename.is_empty() {
        return next_of_files(&raw);
    }
    if is_name(&raw.schedule) {
        return next_in_cluster(raw);
    }
    let mut faults = Faults::default();
    if let Some(namespace) = cluster::namespace(&raw.place, &mut faults) {
        faults.add("namespace", &namespace, "it with the NAME of a CronJob or with -f");
    }
    let what = "a schedule in quotes, such as '30 2 * * *', or the name of a CronJob";
    let text = the_one(&raw.schedule, "SCHEDULE", what);
    let text = faults.record(text);
    let zone = match &raw.time_zone {
        None => Some(env.local_zone()),
        Some(name) => faults.read("time-zone", name, ZONES, zone_named),
    };
    let parsed = text.and_then(|text| {
        let schedule = Schedule::parse_standard(text, zone.unwrap_or_default());
        let schedule =
            schedule.map_err(|error| hints::with(format!("SCHEDULE: {text:?} is not a schedule: {error}"), text));
        Some((text.to_owned(), faults.record(schedule)?))
    });
    let count = faults.whole("count", &raw.count, 1..=10_000);
    let zone = parsed.as_ref().and_then(|(_, schedule)| schedule.zone()).or(zone).unwrap_or_default();
    let from = raw.from.as_deref().and_then(|text| faults.read("from", text, TIMES, |text| time_from(text, zone)));
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
    given_time(text)?.in_zone(zone)
}

/// RFC 3339, a local time, or the start of a day.
fn given_time(text: &str) -> Option<Given> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(Given::Instant(time.to_utc()));
    }
    let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().map(|day| day.and_time(NaiveTime::MIN));
    let forms = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
    let local = forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok()).or_else(day)?;
    Some(Given::Local(local))
}

#[cfg(test)]
mod tests;
