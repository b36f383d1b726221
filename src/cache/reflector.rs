//! List, then watch, and again: the protocol for one collection.
//!
//! Guarantees: the store updater receives every change of its collection, or the difference by a list. Lists are consistent:
//! no resource version is requested, so the server must return its latest state. A watch that ends, breaks, falls silent or
//! is refused is followed by another request. Between two requests there is progress or a wait.
//!
//! Matches client-go `tools/cache/reflector.go`.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, info, warn};

use super::backoff::{Backoff, Failure};
use super::decode::{Change, Event};
use super::error::{Cause, FailureCounts, Operation, Recovery, ReflectorError, VERY_SHORT, recovery};
use super::pages::{PAGE_SIZE, Pages, page_size};
use super::store::Questions;
use super::store_updater::{Listing, StoreUpdater};
use super::transport::{Endpoint, EventStream};
use crate::api::{Object, compare_resource_versions, shows};

/// A page must arrive completely within this time.
const PAGE_DEADLINE: Duration = Duration::from_secs(60);
/// A list without pages must arrive completely within this time.
const FULL_LIST_DEADLINE: Duration = Duration::from_secs(300);
/// A watch's response must begin within this time …
const WATCH_HEADERS: Duration = Duration::from_secs(30);
/// … or, once that was too short, within this time: some proxies hold the headers back until the first event, which is a
/// bookmark after a minute at the latest.
const WATCH_HEADERS_PATIENT: Duration = Duration::from_secs(90);
/// The server is asked to end a watch after a random time in this range, in seconds. Matches client-go's
/// `defaultMinWatchTimeout` and `defaultMaxWatchTimeout`.
const WATCH_SECONDS: std::ops::Range<u32> = 300..600;
/// Servers send a bookmark every minute. After three missed ones the connection counts as dead.
const SILENCE: Duration = Duration::from_secs(180);
/// A watch shows a change within this time after it was committed; otherwise it may be silent, and a list replaces it.
const CATCH_UP: Duration = Duration::from_secs(1);
/// If nothing arrives for this long before the initial events have ended, the server does not support streaming lists.
const INITIAL_SILENCE: Duration = Duration::from_secs(30);
/// The initial events must have ended within this time, however busy the stream is.
const INITIAL_DEADLINE: Duration = Duration::from_secs(300);

/// The state of the protocol.
enum State {
    /// A list by a watch that sends the initial events is due.
    StreamingList,
    /// A list in pages is due.
    PagedList,
    /// A watch from the last resource version is due.
    Watch,
    /// A watch is open.
    Watching(EventStream),
}

impl State {
    fn operation(&self) -> Operation {
        match self {
            Self::StreamingList => Operation::StreamingList,
            Self::PagedList => Operation::List,
            Self::Watch | Self::Watching(_) => Operation::Watch,
        }
    }
}

/// A question whether the store shows everything, while a watch is open.
struct Question {
    number: u64,
    /// The newest version on the server, after the question was asked; `None` if it does not say.
    newest: Option<String>,
    /// When a list has to answer it.
    until: Instant,
}

/// Keeps one scope of a store equal to one collection on the server.
pub(super) struct Reflector<T> {
    endpoint: Endpoint,
    mirror: StoreUpdater<T>,
    rng: StdRng,
    backoff: Backoff,
    failures: FailureCounts,
    /// Whether this server was found not to support streaming lists.
    pages_only: bool,
    /// Whether a watch's headers once took longer than [`WATCH_HEADERS`].
    slow_headers: bool,
    /// Whether the server does not serve the kind (any more).
    is_unserved: bool,
    /// Every change up to this version is in the store.
    resource_version: String,
    questions: Arc<Questions>,
    /// Kept while a list answers a question.
    turn: Option<OwnedSemaphorePermit>,
}

impl<T: Object> Reflector<T> {
    pub(super) fn new(endpoint: Endpoint, mirror: StoreUpdater<T>, rng: StdRng) -> Self {
        let questions = mirror.store.questions(mirror.scope);
        Self {
            questions,
            endpoint,
            mirror,
            rng,
            backoff: Backoff::new(),
            failures: FailureCounts::default(),
            pages_only: false,
            slow_headers: false,
            is_unserved: false,
            resource_version: String::new(),
            turn: None,
        }
    }

    /// Runs until it is dropped. It may be dropped at any time: the store and the handlers always agree.
    pub(super) async fn run(mut self) {
        let mut state = self.list_state();
        loop {
            let operation = state.operation();
            state = match self.step(state).await {
                Ok(next) => next,
                Err(cause) => self.recover(operation, cause).await,
            };
        }
    }

    fn list_state(&self) -> State {
        if self.pages_only { State::PagedList } else { State::StreamingList }
    }

    async fn step(&mut self, state: State) -> Result<State, Cause> {
        // A list that begins now answers every question that was asked before.
        let asked = self.questions.asked();
        match state {
            State::StreamingList => self.streaming_list(asked).await,
            State::PagedList => self.paged_list(asked).await,
            State::Watch => self.watch().await,
            State::Watching(stream) => self.watching(stream).await,
        }
    }

    /// Decides how to recover from a failure, and waits if necessary.
    async fn recover(&mut self, operation: Operation, cause: Cause) -> State {
        self.turn = None;
        self.failures.count(operation, &cause);
        self.slow_headers |= operation == Operation::Watch && matches!(cause, Cause::Timeout(_));
        let recovery = recovery(operation, &cause, self.failures);
        let error = ReflectorError { operation, resource: self.endpoint.path().to_owned(), cause };
        self.mirror.dispatcher.observer.failed(self.mirror.dispatcher.resource, &error);
        if error.is_refused() {
            self.mirror.store.scope_refused(self.mirror.scope);
        }
        let retry_after = match &error.cause {
            Cause::Status(status) => status.retry_after,
            _ => None,
        };
        let failure = error.cause.failure(operation);
        let is_unserved = matches!(&error.cause, Cause::Status(status) if status.code == 404);
        let is_known = self.set_unserved(is_unserved) && is_unserved;
        let goes_on_at_once = matches!(recovery, Recovery::Resume | Recovery::FallBackToPages);
        let is_expected = matches!(&error.cause, Cause::Status(status) if status.is_expired()) || goes_on_at_once;
        // What goes on at once makes no later wait longer.
        let delay = (!goes_on_at_once).then(|| self.backoff.delay(Instant::now(), failure, retry_after, &mut self.rng));
        if is_known {
            debug!(%error, then = ?recovery, "the kind is still not served");
        } else if is_expected {
            info!(%error, then = ?recovery, "the reflector recovers");
        } else if failure == Failure::Other || self.backoff.is_told() {
            warn!(%error, then = ?recovery, "the reflector failed");
        }
        match recovery {
            Recovery::Resume | Recovery::ResumeLater => {}
            Recovery::FallBackToPages => self.pages_only = true,
            Recovery::Relist => self.failures.heard(),
        }
        if let Some(delay) = delay {
            sleep(delay).await;
        }
        match recovery {
            // While no watch is open, a list alone can answer a question.
            Recovery::Resume | Recovery::ResumeLater if !self.questions.has_open() => State::Watch,
            _ => self.list_state(),
        }
    }

    /// Lists by a watch; the watch then continues.
    async fn streaming_list(&mut self, asked: u64) -> Result<State, Cause> {
        let seconds = self.watch_seconds();
        let mut stream = self.endpoint.streaming_list(seconds, WATCH_HEADERS).await?;
        let mut listing = Listing::default();
        let resource_version = loop {
            if stream.age() > INITIAL_DEADLINE {
                return Err(Cause::NoEndBookmark(INITIAL_DEADLINE));
            }
            let line = match stream.next_line(INITIAL_SILENCE).await {
                Err(Cause::Silent(silence)) => return Err(Cause::NoEndBookmark(silence)),
                line => line?.ok_or(Cause::InitialEventsCutOff)?,
            };
            if self.mirror.list_quickly(&mut listing, line) {
                continue;
            }
            match Event::decode(line).map_err(Cause::Envelope)? {
                Event::Upserted(raw) => self.mirror.list(&mut listing, raw),
                Event::Deleted(raw) => self.mirror.unlist(&mut listing, raw),
                Event::Bookmark { resource_version, ends_initial_events: true } => break resource_version,
                Event::Bookmark { .. } => {}
                Event::Error(status) => return Err(Cause::Status(status)),
                Event::Unknown(kind) => self.ignore(&kind),
            }
        };
        self.listed(listing, resource_version, asked)?;
        Ok(State::Watching(stream))
    }

    /// Lists in pages. If the history behind a continue token was compacted, it requests the whole list once.
    ///
    /// Matches client-go `tools/pager/pager.go` (`ListPager.list`).
    async fn paged_list(&mut self, asked: u64) -> Result<State, Cause> {
        let mut listing = Listing::default();
        let mut resource_version = String::new();
        let (mut limit, mut deadline) = (Some(PAGE_SIZE), PAGE_DEADLINE);
        let mut continue_token = String::new();
        let mut pages = Pages::default();
        loop {
            let mut page = match self.endpoint.list(limit, &continue_token, deadline).await {
                Err(Cause::Status(status)) if status.is_expired() && !continue_token.is_empty() && limit.is_some() => {
                    info!(
                        resource = self.endpoint.path(),
                        "the continue token of a list expired; listing without pages"
                    );
                    listing = Listing::default();
                    resource_version.clear();
                    continue_token.clear();
                    (limit, deadline) = (None, FULL_LIST_DEADLINE);
                    pages = Pages::default();
                    continue;
                }
                page => page?,
            };
            let mut objects = 0;
            while let Some(raw) = page.next_item().await? {
                self.mirror.list(&mut listing, raw);
                objects += 1;
            }
            let bytes = page.bytes();
            let page = page.envelope()?;
            for raw in page.items() {
                self.mirror.list(&mut listing, raw);
                objects += 1;
            }
            // All pages show the state at the first page's version.
            if resource_version.is_empty() {
                resource_version = page.metadata.resource_version;
            }
            if page.metadata.continue_token.is_empty() {
                break;
            }
            continue_token = page.metadata.continue_token;
            pages.next(objects, &continue_token)?;
            limit = limit.map(|_| page_size(objects, bytes));
        }
        self.listed(listing, resource_version, asked)?;
        Ok(State::Watch)
    }

    fn listed(&mut self, listing: Listing<T>, resource_version: String, asked: u64) -> Result<(), Cause> {
        if resource_version.is_empty() {
            return Err(Cause::NoResourceVersion);
        }
        debug!(resource = self.endpoint.path(), objects = listing.len(), resource_version, "listed");
        self.mirror.replace(listing, &resource_version);
        self.resource_version = resource_version;
        self.failures = FailureCounts::default();
        self.set_unserved(false);
        self.mirror.answer(asked);
        self.turn = None;
        Ok(())
    }

    /// Notes whether the server serves the kind. Returns whether it did not before.
    fn set_unserved(&mut self, is_unserved: bool) -> bool {
        let was = std::mem::replace(&mut self.is_unserved, is_unserved);
        if was != is_unserved {
            self.mirror.store.scope_unserved(is_unserved);
        }
        was
    }

    async fn watch(&mut self) -> Result<State, Cause> {
        let patience = if self.slow_headers { WATCH_HEADERS_PATIENT } else { WATCH_HEADERS };
        let seconds = self.watch_seconds();
        Ok(State::Watching(self.endpoint.watch(&self.resource_version, seconds, patience).await?))
    }

    /// Follows an open watch to its end, or to a question that it does not answer.
    async fn watching(&mut self, mut stream: EventStream) -> Result<State, Cause> {
        let mut question = None;
        loop {
            let line = tokio::select! {
                biased;
                number = self.questions.open(), if question.is_none() => {
                    question = Some(self.question(number).await);
                    self.answer(&mut question);
                    continue;
                }
                turn = turn_to_list(question.as_ref(), self.mirror.store.turns()) => {
                    self.turn = turn;
                    info!(resource = self.endpoint.path(), "the watch does not show the server's newest version; listing");
                    return Ok(self.list_state());
                }
                line = stream.next_line(SILENCE) => line?,
            };
            let Some(line) = line else { break };
            self.follow(line)?;
            self.answer(&mut question);
        }
        let lasted = stream.age();
        if lasted < VERY_SHORT {
            return Err(Cause::VeryShortWatch(lasted));
        }
        debug!(resource = self.endpoint.path(), ?lasted, "the watch was closed");
        Ok(State::Watch)
    }

    /// Asks the server for its newest version. If it does not say, a list has to answer at once.
    async fn question(&mut self, number: u64) -> Question {
        let newest = self.endpoint.newest_version(CATCH_UP).await.ok();
        let patience = if newest.is_some() { CATCH_UP } else { Duration::ZERO };
        Question { number, newest, until: Instant::now() + patience }
    }

    /// Answers the question if the store shows all that it is about.
    fn answer(&self, question: &mut Option<Question>) {
        let is_shown = |question: &mut Question| {
            question.newest.as_ref().is_some_and(|newest| shows(&self.resource_version, newest))
        };
        if let Some(answered) = question.take_if(is_shown) {
            self.mirror.answer(answered.number);
        }
    }

    /// Applies one line of a watch.
    fn follow(&mut self, line: &[u8]) -> Result<(), Cause> {
        let (change, object) = match self.mirror.decode_quickly(line) {
            Some((change, object)) => (change, Ok(object)),
            None => match Event::decode(line).map_err(Cause::Envelope)? {
                Event::Upserted(raw) => (Change::Upserted, self.mirror.decode(raw)),
                Event::Deleted(raw) => (Change::Deleted, self.mirror.decode(raw)),
                Event::Bookmark { resource_version, .. } => {
                    self.mirror.observe(&resource_version);
                    self.failures.heard();
                    return self.advance(resource_version);
                }
                Event::Error(status) => return Err(Cause::Status(status)),
                Event::Unknown(kind) => {
                    self.ignore(&kind);
                    return Ok(());
                }
            },
        };
        let resource_version = self.mirror.apply(change, object);
        self.failures.heard();
        self.advance(resource_version)
    }

    /// Records the watch's progress. An object whose version could not be read leaves that to the next event.
    fn advance(&mut self, resource_version: String) -> Result<(), Cause> {
        if resource_version.is_empty() {
            return Ok(());
        }
        let order = compare_resource_versions(&resource_version, &self.resource_version);
        let last = std::mem::replace(&mut self.resource_version, resource_version);
        if order.is_some_and(std::cmp::Ordering::is_lt) {
            return Err(Cause::WentBack { last, got: self.resource_version.clone() });
        }
        Ok(())
    }

    fn ignore(&self, kind: &str) {
        warn!(resource = self.endpoint.path(), kind, "a watch event of unknown type is ignored");
    }

    fn watch_seconds(&mut self) -> u32 {
        self.rng.random_range(WATCH_SECONDS)
    }
}

/// Waits until a list has to answer the question, and for its turn to do so.
async fn turn_to_list(question: Option<&Question>, turns: Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    match question {
        Some(question) => sleep_until(question.until).await,
        None => std::future::pending().await,
    }
    turns.acquire_owned().await.ok()
}
