//! Scenario results: a panic or a timeout becomes an error message.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;

pub enum Verdict {
    /// The measured result.
    Passed(String),
    /// The error.
    Failed(String),
}

/// Runs the scenario until it returns, panics or exceeds `limit`.
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
