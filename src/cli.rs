//! What the binary does for a person at a terminal: `next`, `explain`, `check`, and what goes with them.
//!
//! Guarantees: everything that is said is decided by pure modules, with the time passed in, on the parser, the search and the
//! `reconcile` that the controller runs on, so that what is said is what it does; nothing is ever written to a cluster. The
//! same commands answer as `kubectl cronjob` when the binary has the name `kubectl-cronjob`.

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

use std::path::{Path, PathBuf};

use apimachinery::clock::Clock;
use schedule::Zone;

use crate::client::ConnectError;
use output::{Format, render};

/// What is asked for, complete and judged.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Tell the next runs of a schedule.
    Next(next::Question, Format),
    /// Say why a CronJob did or did not run.
    Explain(explain::read::Target, Zone, Format),
    /// Judge manifests.
    #[cfg(feature = "dev")]
    Check(Vec<PathBuf>, check::Rules, Format),
    /// Write pages of the manual into files of these names in a directory.
    Manual(Vec<(String, String)>, PathBuf),
}

/// What is printed, and how the process ends.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// For stdout.
    pub text: String,
    /// Whether all is well: the exit code is 0, else 1.
    pub is_good: bool,
}

/// Why there is no answer. Each is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// A manifest cannot be read.
    #[cfg(feature = "dev")]
    #[error(transparent)]
    Manifest(#[from] crate::dev::manifests::ManifestError),
    /// There is no way to a cluster.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The cluster does not answer as it should.
    #[error(transparent)]
    Read(#[from] explain::read::ReadError),
    /// A page cannot be written.
    #[error("write {}: {source}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There are no threads.
    #[error("starting the runtime: {0}")]
    Runtime(std::io::Error),
}

/// Answers a command.
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
        Command::Check(paths, rules, format) => {
            let sources = check::sources::read(paths)?;
            let report = check::check(&sources, rules, clock.now());
            Ok(Answer { text: render(&report, *format), is_good: !report.fails(rules) })
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
