//! Reads a vector file and checks its rows.

use std::io::Write;
use std::path::PathBuf;

use serde::de::DeserializeOwned;

/// The directory that holds the files.
fn directory() -> PathBuf {
    std::env::var_os("CRONJOB_VECTORS_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors")), PathBuf::from)
}

/// Checks every row of `file` and fails with the first disagreements. Returns the rows for further checks.
pub fn check_file<T: DeserializeOwned>(file: &str, judge: impl Fn(&T) -> Result<(), String>) -> Vec<T> {
    let path = directory().join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|err| panic!("reading {}: {err}", path.display()));
    let mut rows = Vec::new();
    let mut failures = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let row: T = serde_json::from_str(line).unwrap_or_else(|err| panic!("{file}:{}: {err}: {line}", index + 1));
        if let Err(why) = judge(&row) {
            failures.push(format!("{file}:{}: {why}\n    {line}", index + 1));
        }
        rows.push(row);
    }
    assert!(!rows.is_empty(), "{} is empty", path.display());
    say(&format!("{file}: {} passed, {} failed", rows.len() - failures.len(), failures.len()));
    let first: Vec<_> = failures.iter().take(20).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} of {} rows of {file} failed:\n{}", failures.len(), rows.len(), first.join("\n"));
    rows
}

/// Prints a line that the test harness does not capture, as it would with `println!`.
pub fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").unwrap();
}
