//! Turns a scenario that panics, or does not end, into a sentence.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;

pub enum Verdict {
    /// What was measured.
    Passed(String),
    /// What went wrong.
    Failed(String),
}

/// Runs the scenario to its end, its panic or `limit`.
pub async fn judge(scenario: impl Future<Output = String>, limit: Duration) -> Verdict {
    match tokio::time::timeout(limit, AssertUnwindSafe(scenario).catch_unwind()).await {
        Ok(Ok(note)) => Verdict::Passed(note),
        Ok(Err(panic)) => Verdict::Failed(
            panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_else(|| "panicked".to_owned()),
        ),
        Err(_) => Verdict::Failed(format!("still running after {limit:?}")),
    }
}
