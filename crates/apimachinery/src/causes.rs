//! An error with its causes, on one line.

use std::error::Error;

/// How kube begins the text of an error below it, which says nothing to a user.
const KUBE: &str = "ServiceError: ";

/// The error and its causes, each once, in one line.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let own = |error: &dyn Error| {
        let text = error.to_string();
        text.strip_prefix(KUBE).map_or(text.clone(), str::to_owned)
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
