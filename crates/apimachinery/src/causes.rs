//! An error with its causes, on one line.
//!
//! Guarantee: a cause whose text is part of what comes before it is left out. Pure.

use std::error::Error;

/// The prefix with which kube wraps an error of its HTTP client; it tells a user nothing.
const KUBE: &str = "ServiceError: ";

/// The error, and then each of its causes.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let own = |error: &dyn Error| {
        let text = error.to_string();
        text.strip_prefix(KUBE).unwrap_or(&text).to_owned()
    };
    let mut text = own(error);
    for cause in std::iter::successors(error.source(), |cause| (*cause).source()) {
        let cause = own(cause);
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
