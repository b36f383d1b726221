//! The report of a shadow, from the file that `shadow --report` writes, or that holds what `shadow -o json` printed.
//!
//! Guarantees: the file is read anew for each answer, up to [`MOST_BYTES`], and only its last line counts. A list is cut to
//! [`MOST_ENTRIES`], and `more` counts the others. Whatever fails is one sentence.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use serde_json::Value;

/// The most bytes that are read.
const MOST_BYTES: u64 = 64 << 20;
/// The most entries of a list in an answer.
const MOST_ENTRIES: usize = 200;
/// The lists of a report.
const LISTS: [&str; 4] = ["missed", "twice", "differs", "listed"];

/// The file.
pub struct ShadowFile(PathBuf);

impl ShadowFile {
    /// This file. Nothing is read yet.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The report, cut.
    ///
    /// # Errors
    /// One sentence, when the file cannot be read or its last line is no report.
    pub fn read(&self) -> Result<Value, String> {
        let path = self.0.display();
        let mut text = String::new();
        let read = File::open(&self.0).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text));
        read.map_err(|error| format!("{path} cannot be read: {error}"))?;
        let last = text.lines().rfind(|line| !line.trim().is_empty());
        let Some(last) = last else { return Err(format!("{path} is empty: the shadow has not ended yet")) };
        let report: Option<Value> = serde_json::from_str(last).ok();
        let report = report.filter(|report| LISTS.iter().all(|list| report[*list].is_array()));
        report.map(cut).ok_or_else(|| format!("the last line of {path} is not what shadow -o json prints"))
    }
}

/// The report with short lists.
fn cut(mut report: Value) -> Value {
    for list in LISTS {
        let Some(entries) = report[list].as_array_mut() else { continue };
        let left_out = entries.len().saturating_sub(MOST_ENTRIES);
        entries.truncate(MOST_ENTRIES);
        let more = report["more"][list].as_u64().unwrap_or_default();
        report["more"][list] = (more + left_out as u64).into();
    }
    report
}

#[cfg(test)]
mod tests;
