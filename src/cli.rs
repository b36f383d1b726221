//! The binary's commands for a user at a terminal: `next`, `explain`, `check` and others.
//!
//! Guarantees: pure modules compute every answer, with the time passed in. They use the parser, the slot search and the
//! `reconcile` of the controller, so that an answer matches the controller's behaviour. No command writes to a cluster.
//! The same commands run as `kubectl cronjob` when the binary is named `kubectl-cronjob`.

#[cfg(feature = "dev")]
pub mod check;
pub mod clock_changes;
mod crd;
pub mod dispatch;
pub mod explain;
pub mod kubectl;
pub mod next;
pub mod options;
pub mod output;
pub mod pages;
pub mod words;

use std::path::{Path, PathBuf};

use apimachinery::clock::Clock;
use schedule::Zone;

use crate::client::ConnectError;
use output::{Format, render};

/// A complete and validated command.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Print the next runs of a schedule.
    Next(next::Question, Format),
    /// Explain why a CronJob did or did not run.
    Explain(explain::read::Target, Zone, Format),
    /// Check manifests; with those in the directories below if the last is true.
    #[cfg(feature = "dev")]
    Check(Vec<PathBuf>, check::Rules, check::CheckFormat, bool),
    /// Write manual pages into files of these names in a directory.
    Manual(Vec<(String, String)>, PathBuf),
}

/// The output and the exit code.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// For stdout.
    pub text: String,
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
    /// A page cannot be written.
    #[error("write {}: {source}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The async runtime cannot start.
    #[error("starting the runtime: {0}")]
    Runtime(std::io::Error),
}

/// Runs a command.
///
/// # Errors
/// See [`CliError`].
pub fn run(command: &Command, clock: &dyn Clock) -> Result<Answer, CliError> {
    match command {
        Command::Next(question, format) => {
            let runs = next::next_runs(question, clock.now());
            Ok(Answer { text: render(&runs, *format), is_good: !runs.is_empty() })
        }
        Command::Explain(target, zone, format) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let facts = runtime.map_err(CliError::Runtime)?.block_on(explain::read::connect_and_read(target))?;
            let explanation = explain::explain(&facts, *zone, clock.now());
            Ok(Answer { text: render(&explanation, *format), is_good: true })
        }
        #[cfg(feature = "dev")]
        Command::Check(paths, rules, format, recursive) => {
            let sources = check::sources::read(paths, *recursive)?;
            let report = check::check(&sources, rules, clock.now());
            Ok(Answer { text: report.render(*format), is_good: !report.fails(rules) })
        }
        Command::Manual(pages, directory) => manual(pages, directory),
    }
}

fn manual(pages: &[(String, String)], directory: &Path) -> Result<Answer, CliError> {
    for (name, page) in pages {
        let file = directory.join(name);
        std::fs::write(&file, page).map_err(|source| CliError::Write { file, source })?;
    }
    Ok(Answer { text: String::new(), is_good: true })
}
