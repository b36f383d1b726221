//! The errors of a list or a watch, and how to recover from them. Pure.
//!
//! Guarantees: an error names the operation, the resource and the cause. Every failure leads to a [`Recovery`], and none
//! leads to the same request for ever: a watch that cannot be resumed ends in a list.

use std::fmt;
use std::time::Duration;

use apimachinery::causes::with_causes;

use super::backoff::Failure;
use super::decode::MAX_MESSAGE;
use crate::api::shortened;

/// The failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A list by a watch that sends the initial events (`sendInitialEvents`).
    StreamingList,
    /// A list in pages.
    List,
    /// A watch from a resource version.
    Watch,
}

impl Operation {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StreamingList => "streaming list",
            Self::List => "list",
            Self::Watch => "watch",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One list or watch that failed.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {resource}: {cause}")]
pub struct ReflectorError {
    /// The failed operation.
    pub operation: Operation,
    /// The collection: the URL's path.
    pub resource: String,
    /// Why it failed.
    #[source]
    pub cause: Cause,
}

impl ReflectorError {
    /// Whether the server does not allow the request to this user.
    pub fn is_refused(&self) -> bool {
        self.cause.is_refused()
    }
}

/// Why a list or a watch failed.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The request could not be written.
    #[error("building the request: {0}")]
    Request(#[from] http::Error),
    /// No answer came: the connection failed.
    #[error("sending the request: {}", with_causes(&**.0))]
    Send(#[source] Box<kube::Error>),
    /// The answer broke off.
    #[error("reading the answer: {}", with_causes(&**.0))]
    Read(#[source] Box<kube::Error>),
    /// A watch broke off.
    #[error("broken off {after:?} after it was opened: {}", with_causes(&**.source))]
    CutOff {
        /// How long it had been open.
        after: Duration,
        /// The cause.
        source: Box<kube::Error>,
    },
    /// The complete answer did not come in time.
    #[error("no complete answer within {0:?}")]
    Timeout(Duration),
    /// A watch that received nothing, not even a bookmark.
    #[error("nothing heard for {0:?}")]
    Silent(Duration),
    /// A watch that the server did not end at the requested time.
    #[error("still open {0:?} after it was opened")]
    Overdue(Duration),
    /// A watch that ended within a second.
    #[error("very short watch: it ended after {0:?}")]
    VeryShortWatch(Duration),
    /// The stream ended before the bookmark that ends the initial events.
    #[error("the stream ended before its initial events did")]
    InitialEventsCutOff,
    /// The bookmark that ends the initial events did not come in time.
    #[error("no bookmark ended the initial events within {0:?}")]
    NoEndBookmark(Duration),
    /// The server refused, by HTTP status or by an ERROR event.
    #[error("the server answered {0}")]
    Status(ServerStatus),
    /// The envelope around the objects could not be read.
    #[error("the answer is not understood: {}", brief(.0))]
    Envelope(#[source] serde_json::Error),
    /// A list without a resource version to watch from.
    #[error("the list carries no resource version")]
    NoResourceVersion,
    /// A list whose pages never end.
    #[error("the list does not end: {sign} on page {pages}")]
    EndlessList {
        /// How many pages there were.
        pages: u32,
        /// How this was detected.
        sign: &'static str,
    },
    /// An object of a list, or the text around the objects, exceeds the size limit.
    #[error("an object of more than {0} bytes in a list")]
    ObjectTooLong(usize),
    /// A watch event's line exceeds the size limit.
    #[error("a watch event of more than {0} bytes")]
    LineTooLong(usize),
    /// The server's history went backwards, as after a restore from a backup.
    #[error("resource version {got} after {last}: the server went back in time")]
    WentBack {
        /// The newest resource version seen before.
        last: String,
        /// The older one seen now.
        got: String,
    },
}

/// The Status with which the server refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerStatus {
    /// HTTP status code.
    pub code: u16,
    /// `reason`, for example `Expired`.
    pub reason: String,
    /// `message`, shortened.
    pub message: String,
    /// How long the server asks the client to wait.
    pub retry_after: Option<Duration>,
    /// Whether the Status has the cause `ResourceVersionTooLarge`.
    pub resource_version_too_large: bool,
}

impl fmt::Display for ServerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.code, self.reason, self.message)
    }
}

impl ServerStatus {
    /// The resource version is older than the server's history. Matches client-go `isExpiredError`.
    pub fn is_expired(&self) -> bool {
        self.code == 410 || self.reason == "Expired" || self.reason == "Gone"
    }

    /// Whether the server cannot, or may be unable to, serve the resource version.
    fn wants_another_version(&self) -> bool {
        self.is_expired() || self.is_invalid() || self.resource_version_too_large
    }

    /// Whether the server answers every request so at present.
    fn is_of_any_request(&self) -> bool {
        matches!(self.code, 429 | 502 | 503 | 504) && !self.resource_version_too_large
    }

    /// Whether the server refuses the request itself: its parameters, not its timing.
    pub(super) fn is_invalid(&self) -> bool {
        matches!(self.code, 400 | 405 | 406 | 422 | 501)
    }
}

impl Cause {
    fn is_refused(&self) -> bool {
        matches!(self, Self::Status(status) if matches!(status.code, 401 | 403))
    }

    /// How soon it is tried again. A watch that is answered with 500 may ask for a version that the server cannot read.
    pub(super) fn failure(&self, operation: Operation) -> Failure {
        match self {
            // A server that hangs: its answer was waited for, so these are few.
            Self::Timeout(_) | Self::NoEndBookmark(_) | Self::Send(_) => Failure::Away,
            Self::Status(status) if status.is_of_any_request() => Failure::Away,
            Self::Status(status) if status.code == 500 && operation != Operation::Watch => Failure::Away,
            _ if self.is_refused() => Failure::Passing,
            _ => Failure::Other,
        }
    }
}

/// The decoder's message, without most of the text that it quotes.
fn brief(error: &serde_json::Error) -> String {
    shortened(&error.to_string(), MAX_MESSAGE).to_owned()
}

/// How to recover from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recovery {
    /// Watch again from the last resource version, at once.
    Resume,
    /// Wait, then watch again from the last resource version.
    ResumeLater,
    /// Wait, then list again.
    Relist,
    /// List in pages at once, and from now on.
    FallBackToPages,
}

/// How often in a row each kind of attempt has failed before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FailureCounts {
    /// Streaming lists that were answered and not completed.
    pub(super) streaming_lists: u32,
    /// Watches that stayed silent.
    pub(super) silences: u32,
    /// Watches that were refused, or not opened for long enough to be of use.
    pub(super) refusals: u32,
}

/// A watch that lasted less was too short to justify its request; the next one must wait.
pub(super) const VERY_SHORT: Duration = Duration::from_secs(1);
/// After this many streaming lists that were answered and not completed, the reflector lists in pages.
const STREAMING_LISTS: u32 = 3;
/// A second silence in a row may come from a server that was restored to an older state and has no newer change to send.
const SILENCES: u32 = 2;
/// After this many refusals in a row, the resource version may be the cause.
const REFUSALS: u32 = 5;

impl FailureCounts {
    /// Counts a failure.
    pub(super) fn count(&mut self, operation: Operation, cause: &Cause) {
        match (operation, cause) {
            (Operation::StreamingList, Cause::Request(_) | Cause::Send(_) | Cause::Timeout(_) | Cause::Status(_))
            | (Operation::List, _) => {}
            (Operation::StreamingList, _) => self.streaming_lists += 1,
            (Operation::Watch, Cause::Silent(_)) => self.silences += 1,
            (Operation::Watch, Cause::Status(status)) if !status.is_of_any_request() => self.refusals += 1,
            // Something between here and the server may answer lists and no watch.
            (Operation::Watch, Cause::Timeout(_) | Cause::VeryShortWatch(_)) => self.refusals += 1,
            (Operation::Watch, Cause::CutOff { after, .. }) if *after < VERY_SHORT => self.refusals += 1,
            (Operation::Watch, _) => {}
        }
    }

    /// A watch has received something.
    pub(super) fn heard(&mut self) {
        self.silences = 0;
        self.refusals = 0;
    }
}

/// How to recover from `cause`, which `failures` already includes.
///
/// Matches the decisions of client-go `reflector.go` (`ListAndWatchWithContext`, `watch`, `watchList`), which lists again
/// after most errors of a watch. Here a watch is resumed unless the error points to its resource version.
pub(super) fn recovery(operation: Operation, cause: &Cause, failures: FailureCounts) -> Recovery {
    match operation {
        Operation::List => Recovery::Relist,
        Operation::StreamingList => match cause {
            Cause::NoEndBookmark(_) => Recovery::FallBackToPages,
            Cause::Status(status) if status.is_invalid() => Recovery::FallBackToPages,
            _ if failures.streaming_lists >= STREAMING_LISTS => Recovery::FallBackToPages,
            _ => Recovery::Relist,
        },
        Operation::Watch => match cause {
            Cause::Status(status) if status.wants_another_version() => Recovery::Relist,
            // An event was lost.
            Cause::Envelope(_) | Cause::LineTooLong(_) | Cause::WentBack { .. } => Recovery::Relist,
            _ if failures.silences >= SILENCES || failures.refusals >= REFUSALS => Recovery::Relist,
            // A watch that lasted may be resumed at once: this cannot loop quickly.
            Cause::Silent(_) | Cause::Overdue(_) => Recovery::Resume,
            Cause::CutOff { after, .. } if *after >= VERY_SHORT => Recovery::Resume,
            _ => Recovery::ResumeLater,
        },
    }
}

#[cfg(test)]
mod tests;
