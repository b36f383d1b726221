//! The binary's commands for a user at a terminal: `next`, `explain`, `check` and others.
//!
//! Guarantees: pure modules compute every answer, with the time passed in. They use the parser, the slot search and the
//! `reconcile` of the controller, so that an answer matches the controller's behaviour. Only `trigger`, `suspend`, `resume`,
//! `freeze`, `thaw`, `backfill` and, of `migrate`, `handover`, `takeback` and `skip-missed` write to a cluster.
//! The same commands run as `kubectl cronjob` when the binary is named `kubectl-cronjob`.

pub mod backfill;
pub(crate) mod banners;
#[cfg(feature = "dev")]
pub mod check;
pub mod clock_changes;
pub mod cluster;
mod completion;
mod crd;
pub mod dispatch;
pub mod explain;
pub mod failure;
pub mod findings;
pub(crate) mod forecast;
pub mod freeze;
pub mod generated_files;
mod hints;
pub mod kubectl;
pub mod list;
pub mod migrate;
pub mod next;
pub mod options;
pub mod output;
pub mod pages;
pub(crate) mod restrictions;
pub mod shadow;
pub mod slots;
pub mod suspend;
pub mod trigger;
mod unfinished;
pub mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::Clock;
use schedule::Zone;

use crate::client::ConnectError;
#[cfg(feature = "dev")]
use crate::options::PROGRAM;
use crate::options::UsageError;
use crate::terminal::PlainText;
use cluster::{ControllerFlags, Scope};
use explain::read::Target;
use options::cluster::Since;
use output::{Format, Report, Screen, fitting};

/// A complete and validated command.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Print the next runs of a schedule.
    Next(next::Question, Format),
    /// Print the next runs of the CronJobs in manifests; the text is the namespace of objects without one.
    #[cfg(feature = "dev")]
    NextOf(Vec<PathBuf>, String, next::cron_jobs::Question, Format),
    /// Print the next runs of a CronJob in a cluster.
    NextIn(Target, next::cron_jobs::Question, Format),
    /// Explain why a CronJob did or did not run; with a time, once its next run has started, or after it.
    Explain(Target, Option<Duration>, ControllerFlags, Format),
    /// Explain every CronJob that is not fine.
    Findings(Scope, ControllerFlags, Format),
    /// Say what became of each slot since a time.
    Slots(Scope, Since, ControllerFlags, Format),
    /// List CronJobs with their state.
    List(Scope, ControllerFlags, Format),
    /// Say what happened last night, in this zone.
    Night(Scope, ControllerFlags, Zone, Format),
    /// Say what runs in the next hour, in this zone.
    NextHour(Scope, ControllerFlags, Zone, Format),
    /// List CronJobs, and again whenever a state changes.
    Watch(Scope, ControllerFlags, Format),
    /// Start the Jobs of past slots.
    Backfill(Target, Box<backfill::Request<Since>>),
    /// Say what changes between the in-tree controller and this one, which has this account.
    MigrateCheck(Scope, migrate::Account, ControllerFlags, Format),
    /// Hand CronJobs over to this controller, or take them back.
    Handover(Scope, migrate::Request, ControllerFlags, Format),
    /// Let no slot of CronJobs before a time count.
    SkipMissed(Scope, migrate::skip_missed::Request, ControllerFlags, Format),
    /// Start a Job of a CronJob.
    Trigger(Target, Box<trigger::Request>),
    /// Suspend a CronJob, or resume it.
    SetSuspended(Target, bool, ControllerFlags),
    /// Freeze Namespaces, or thaw them.
    SetFrozen(Scope, freeze::Request, ControllerFlags, Format),
    /// Check manifests.
    #[cfg(feature = "dev")]
    Check(check::Inputs, check::Rules, check::CheckFormat),
    /// Say what may follow the typed words.
    Complete(kubectl::Completion),
    /// Write manual pages into files of these names in a directory.
    Manual(Vec<(String, String)>, PathBuf),
}

/// The output and the exit code.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// For stdout.
    pub text: PlainText,
    /// Whether the exit code is 0, else 1.
    pub is_good: bool,
}

/// Why a command failed. Each message is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// A manifest cannot be read.
    #[cfg(feature = "dev")]
    #[error(transparent)]
    Manifest(#[from] crate::dev::manifests::ManifestError),
    /// No client for the cluster could be created.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Reading from the cluster failed.
    #[error(transparent)]
    Read(#[from] explain::read::ReadError),
    /// Writing to the cluster failed.
    #[error(transparent)]
    ChangeObject(#[from] cluster::WriteError),
    /// A flag does not fit what was read.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// A page cannot be written.
    #[error(transparent)]
    GeneratedFile(#[from] generated_files::FileError),
    /// The async runtime cannot start.
    #[error("starting the runtime: {0}")]
    Runtime(std::io::Error),
}

/// The next runs of the CronJobs in files.
#[cfg(feature = "dev")]
fn next_of_files(
    (paths, namespace, question, format): (&[PathBuf], &str, &next::cron_jobs::Question, Format),
    screen: Option<Screen>,
    clock: &dyn Clock,
) -> Result<Answer, CliError> {
    let check::sources::Read { sources, left_out, mut unreadable } = check::sources::read(paths, false)?;
    let (answer, errors) = next::manifests::next_of(&sources, namespace, question, clock.now());
    unreadable.extend(errors);
    output::note(&PlainText::lines(left_out.lines("next")));
    if sources.is_empty() && unreadable.is_empty() {
        unreadable.extend(paths.first().map(|path| crate::dev::manifests::ManifestError::NoManifest(path.clone())));
    }
    output::note(&PlainText::lines(unreadable.iter().map(ToString::to_string)));
    let text = answer.as_ref().map(|answer| fitting(answer, format, screen)).unwrap_or_default();
    Ok(Answer { text, is_good: unreadable.is_empty() && answer.is_some_and(|answer| answer.is_good()) })
}

/// Runs a command. What a command says before it ends goes to `print`, which returns false if that cannot be written. `screen` is the
/// terminal that shows the answer, if one does.
///
/// # Errors
/// See [`CliError`].
pub fn run(
    command: &Command,
    screen: Option<Screen>,
    clock: &dyn Clock,
    print: &mut dyn FnMut(&PlainText) -> bool,
) -> Result<Answer, CliError> {
    match command {
        Command::Next(question, format) => {
            let runs = next::next_runs(question, clock.now());
            Ok(Answer { text: fitting(&runs, *format, screen), is_good: !runs.is_empty() })
        }
        #[cfg(feature = "dev")]
        Command::NextOf(paths, namespace, question, format) => {
            next_of_files((paths, namespace, question, *format), screen, clock)
        }
        Command::NextIn(target, question, format) => {
            let flags = ControllerFlags { zone: question.zone, seed: Arc::clone(&question.seed) };
            let (cron_job, who, now) = wait(explain::read::connect_and_read_cron_job(target, &flags, clock))?;
            let answer = next::cron_jobs::CronJobRuns::of(&cron_job, question, now).run_by(who);
            let answer = next::cron_jobs::Answer::One(Box::new(answer));
            Ok(Answer { text: fitting(&answer, *format, screen), is_good: answer.is_good() })
        }
        Command::Explain(target, limit, flags, format) => {
            let (explanation, is_good) = wait(explain::read::connect_and_explain(target, *limit, flags, clock))?;
            Ok(Answer { text: fitting(&explanation, *format, screen), is_good })
        }
        Command::Findings(scope, flags, format) => report(findings::find(scope, flags, clock), *format, screen),
        Command::Slots(scope, since, flags, format) => {
            report(slots::read(scope, flags, *since, clock), *format, screen)
        }
        Command::List(scope, flags, format) => {
            let listing = |known: &[_], not_decoded, now| list::listing_of(known, not_decoded, flags.zone, now);
            let read = list::read(scope, flags, clock, listing);
            let text = wait(read)?.shown(*format, screen);
            Ok(Answer { text, is_good: true })
        }
        Command::Night(scope, flags, zone, format) => {
            let night = |known: &[_], _, now| list::night::Night::of(known, flags.zone, *zone, now);
            report(list::read(scope, flags, clock, night), *format, screen)
        }
        Command::NextHour(scope, flags, zone, format) => {
            let hour = |known: &[_], _, now| list::next_hour::NextHour::of(known, flags.zone, *zone, now);
            report(list::read(scope, flags, clock, hour), *format, screen)
        }
        Command::Watch(scope, flags, format) => {
            wait(list::watch(scope, flags, *format, screen, clock, print))?;
            Ok(Answer { text: PlainText::default(), is_good: true })
        }
        Command::Backfill(target, request) => wait(backfill::backfill(target, request, clock, print)),
        Command::MigrateCheck(scope, account, flags, format) => {
            judged(migrate::check(scope, account, flags, clock), *format, screen, migrate::Findings::changes_nothing)
        }
        Command::Handover(scope, request, flags, format) => {
            judged(migrate::hand_over(scope, request, flags, clock), *format, screen, migrate::Changes::is_good)
        }
        Command::SkipMissed(scope, request, flags, format) => {
            judged(migrate::skip_missed(scope, request, flags, clock), *format, screen, migrate::Changes::is_good)
        }
        Command::Trigger(target, request) => wait(trigger::trigger(target, request, clock, print)),
        Command::SetFrozen(scope, request, flags, format) => {
            judged(freeze::set_frozen(scope, request, flags, clock), *format, screen, freeze::Outcome::is_good)
        }
        Command::SetSuspended(target, suspend, flags) => wait(suspend::set_suspended(target, *suspend, flags, clock)),
        #[cfg(feature = "dev")]
        Command::Check(inputs, rules, format) => Ok(checked(inputs, rules, *format, screen, clock)),
        Command::Complete(typed) => wait(completion::complete(typed)),
        Command::Manual(pages, directory) => manual(pages, directory),
    }
}

/// Runs what waits for a cluster.
fn wait<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(CliError::Runtime)?.block_on(work)
}

/// Checks manifests. What cannot be read or rendered is a finding.
#[cfg(feature = "dev")]
fn checked(
    inputs: &check::Inputs,
    rules: &check::Rules,
    format: check::CheckFormat,
    screen: Option<Screen>,
    clock: &dyn Clock,
) -> Answer {
    let read = check::sources::read_all(&inputs.files, inputs.recursive);
    let (check::sources::Read { mut sources, left_out, mut unreadable }, mut unrendered) = (read, Vec::new());
    for rendered in &inputs.rendered {
        match rendered.read() {
            Ok((source, warnings)) => {
                sources.push(source);
                output::note(&PlainText::lines(warnings));
            }
            Err(error) => unrendered.push(error),
        }
    }
    let policies = check::admission::read(&inputs.policies).unwrap_or_else(|error| {
        unreadable.push(error);
        check::admission::AdmissionPolicies::default()
    });
    let report = check::check_by(&sources, &policies, rules, clock.now());
    let report = report.leaving_out(left_out).without(&unreadable).unrendered(&unrendered);
    // As `kubectl apply -f`, which fails where it finds no object, and applies objects of any kind.
    let (remark, is_empty) = report.nothing().unzip();
    output::note(&PlainText::lines(remark.map(|remark| format!("{PROGRAM}: {remark}"))));
    Answer { text: report.render(format, screen), is_good: !report.fails(rules) && is_empty != Some(true) }
}

/// A report that decides the exit code.
fn judged<T: Report>(
    work: impl Future<Output = Result<T, CliError>>,
    format: Format,
    screen: Option<Screen>,
    is_good: fn(&T) -> bool,
) -> Result<Answer, CliError> {
    let report = wait(work)?;
    Ok(Answer { text: fitting(&report, format, screen), is_good: is_good(&report) })
}

fn report<T: Report>(
    work: impl Future<Output = Result<T, CliError>>,
    format: Format,
    screen: Option<Screen>,
) -> Result<Answer, CliError> {
    Ok(Answer { text: fitting(&wait(work)?, format, screen), is_good: true })
}

fn manual(pages: &[(String, String)], directory: &Path) -> Result<Answer, CliError> {
    generated_files::write(directory, pages)?;
    Ok(Answer { text: PlainText::default(), is_good: true })
}

#[cfg(test)]
mod tests;
