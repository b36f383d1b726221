//! The file with the report so far.
//!
//! Guarantees: a reader sees a whole report, since the file is replaced and never written to. It is as old as [`EVERY`] at most.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use super::report::Report;
use crate::cli::generated_files;

/// How often it is written.
const EVERY: Duration = Duration::from_secs(10);

/// The file of `--report`.
pub(super) struct ReportFile {
    path: PathBuf,
    last: Option<Instant>,
    is_told: bool,
}

impl ReportFile {
    /// This file. Nothing is written yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, last: None, is_told: false }
    }

    /// Whether it is time to write it again.
    pub fn is_due(&self) -> bool {
        self.last.is_none_or(|last| last.elapsed() >= EVERY)
    }

    /// Replaces it. The first failure is logged.
    pub fn write(&mut self, report: &Report) {
        self.last = Some(Instant::now());
        if let Err(error) = self.replace(report)
            && !std::mem::replace(&mut self.is_told, true)
        {
            warn!(path = %self.path.display(), %error, "the report cannot be written");
        }
    }

    fn replace(&self, report: &Report) -> io::Result<()> {
        let mut text = serde_json::to_vec(report)?;
        text.push(b'\n');
        generated_files::replace(&self.path, &text)
    }
}
