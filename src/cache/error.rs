//! What a list or a watch can fail with, and what follows from it. Pure.
//!
//! Guarantees: an error names the operation, the resource and the cause; every failure leads on ([`Recovery`]), and none
//! leads to the same request for ever: a watch that cannot be resumed ends in a list.

use std::fmt;
use std::time::Duration;

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A list by a watch that sends the initial events (`sendInitialEvents`).
    StreamingList,
    /// A list in pages.
    List,
    /// A watch from a resource version.
    Watch,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StreamingList => "streaming list",
            Self::List => "list",
            Self::Watch => "watch",
        })
    }
}

/// One list or watch that failed.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {resource}: {cause}")]
pub struct ReflectorError {
    /// What was being done.
    pub operation: Operation,
    /// On which collection: the URL's path.
    pub resource: String,
    /// Why it failed.
    #[source]
    pub cause: Cause,
}

/// Why a list or a watch failed.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The request could not be written.
    #[error("building the request: {0}")]
    Request(#[from] http::Error),
    /// No answer came: the connection failed.
    #[error("sending the request: {}", with_sources(.0))]
    Send(#[source] Box<kube::Error>),
    /// The answer broke off.
    #[error("reading the answer: {}", with_sources(.0))]
    Read(#[source] Box<kube::Error>),
    /// A watch broke off.
    #[error("broken off {after:?} after it was opened: {}", with_sources(.source))]
    CutOff {
        /// How long it had been open.
        after: Duration,
        /// What broke it.
        source: Box<kube::Error>,
    },
    /// No answer, or not the whole of it, came in time.
    #[error("no complete answer within {0:?}")]
    Timeout(Duration),
    /// A watch on which nothing was heard, not even a bookmark.
    #[error("nothing heard for {0:?}")]
    Silent(Duration),
    /// A watch that the server did not end at the time it was asked to.
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
    #[error("the answer is not understood: {0}")]
    Envelope(#[source] serde_json::Error),
    /// A list without a resource version to watch from.
    #[error("the list carries no resource version")]
    NoResourceVersion,
    /// A watch event's line exceeds every sensible size.
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
    /// How long the server asks to be left alone.
    pub retry_after: Option<Duration>,
    /// Whether it has the cause `ResourceVersionTooLarge`.
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

    /// The request itself is refused: its parameters, not the moment.
    fn is_invalid(&self) -> bool {
        matches!(self.code, 400 | 405 | 406 | 422 | 501)
    }
}

fn with_sources(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}

/// How to go on after a failure.
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

/// What came before a failure: how often in a row a way of going on bore no fruit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fruitless {
    /// Streaming lists that were answered and not completed.
    pub(super) streaming_lists: u32,
    /// Watches that stayed silent.
    pub(super) silences: u32,
    /// Watches that were refused.
    pub(super) refusals: u32,
}

/// A watch that lasted less was not worth its request; the next one must wait.
pub(super) const VERY_SHORT: Duration = Duration::from_secs(1);
/// After so many streaming lists that were answered and not completed, pages it is.
const STREAMING_LISTS: u32 = 3;
/// A second silence in a row may be a server that has gone back in time and has nothing newer to say.
const SILENCES: u32 = 2;
/// After so many refusals in a row, the resource version may be what the server cannot serve.
const REFUSALS: u32 = 5;

impl Fruitless {
    /// Takes a failure into account.
    pub(super) fn count(&mut self, operation: Operation, cause: &Cause) {
        match (operation, cause) {
            (Operation::StreamingList, Cause::Request(_) | Cause::Send(_) | Cause::Timeout(_) | Cause::Status(_))
            | (Operation::List, _) => {}
            (Operation::StreamingList, _) => self.streaming_lists += 1,
            (Operation::Watch, Cause::Silent(_)) => self.silences += 1,
            (Operation::Watch, Cause::Status(status)) if status.code != 429 => self.refusals += 1,
            (Operation::Watch, _) => {}
        }
    }

    /// A watch has said something.
    pub(super) fn heard(&mut self) {
        self.silences = 0;
        self.refusals = 0;
    }
}

/// How to go on after `cause`, which `fruitless` counts already.
///
/// Matches the decisions of client-go `reflector.go` (`ListAndWatchWithContext`, `watch`, `watchList`), which lists again
/// after most errors of a watch; here a watch is resumed wherever nothing says that its resource version is the trouble.
pub(super) fn recovery(operation: Operation, cause: &Cause, fruitless: Fruitless) -> Recovery {
    match (operation, cause) {
        (Operation::List, _) => Recovery::Relist,
        (Operation::StreamingList, Cause::NoEndBookmark(_)) => Recovery::FallBackToPages,
        (Operation::StreamingList, Cause::Status(status)) if status.is_invalid() => Recovery::FallBackToPages,
        (Operation::StreamingList, _) if fruitless.streaming_lists >= STREAMING_LISTS => Recovery::FallBackToPages,
        (Operation::StreamingList, _) => Recovery::Relist,
        (Operation::Watch, Cause::Status(status))
            if status.is_expired() || status.is_invalid() || status.resource_version_too_large =>
        {
            Recovery::Relist
        }
        // An event was lost on the way.
        (Operation::Watch, Cause::Envelope(_) | Cause::LineTooLong(_) | Cause::WentBack { .. }) => Recovery::Relist,
        (Operation::Watch, _) if fruitless.silences >= SILENCES || fruitless.refusals >= REFUSALS => Recovery::Relist,
        // What lasted may be resumed at once: it cannot spin.
        (Operation::Watch, Cause::Silent(_) | Cause::Overdue(_)) => Recovery::Resume,
        (Operation::Watch, Cause::CutOff { after, .. }) if *after >= VERY_SHORT => Recovery::Resume,
        (Operation::Watch, _) => Recovery::ResumeLater,
    }
}
