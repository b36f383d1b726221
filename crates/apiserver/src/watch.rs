//! Watches.
//!
//! Guarantees: a watch shows every change of the objects it selects exactly once and in order, from its start revision. It
//! never skips a change: if the history no longer holds what it needs, it ends with an ERROR event of code 410. It reads from
//! the history, so a slow client costs no memory. An object that starts or stops matching the selectors is shown as added or
//! deleted.
//!
//! Matches k8s.io/apiserver `pkg/endpoints/handlers/watch.go` and `pkg/storage/cacher` (`Watch`, `cacheWatcher`).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::status::{self, Result, Status};
use axum::body::Bytes;
use futures::Stream;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::managers::empty;
use super::negotiate::{Output, Transform};
use super::object::{Entry, Object};
use super::query::ListOptions;
use super::registry::Resource;
use super::store::{Change, ChangeKind, Collection};
use super::{ApiServer, Body, table};

/// How often a watch with bookmarks gets one.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// On the real server a watch without a timeout lasts 30 to 60 minutes; here it is always 45.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2700);
/// A year, because instants are bounded and requested timeouts are not.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How long before its timeout a watch gets the last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// Roughly how many bytes of events are sent at once.
const BATCH: usize = 64 * 1024;

/// An open watch.
pub struct Watch {
    server: ApiServer,
    resource: Arc<Resource>,
    /// `namespace/`, the prefix of the watched keys; empty for all.
    prefix: String,
    options: ListOptions,
    output: Output,
    changed: Arc<Notify>,
    epoch: u64,
    /// The revision up to which all changes were sent.
    seen: u64,
    /// The initial objects still to be sent, and whether a bookmark marks their end.
    initial: VecDeque<Entry>,
    mark_initial_end: bool,
    headers_sent: bool,
    deadline: Instant,
    next_bookmark: Instant,
    failure: Option<Box<Status>>,
}

impl Watch {
    /// Prepares a watch. Errors with an HTTP status are returned here.
    pub fn start(
        server: &ApiServer,
        resource: &Arc<Resource>,
        namespace: &str,
        options: ListOptions,
        output: Output,
    ) -> Result<Self> {
        let wanted = options.revision().map_err(status::unknown)?;
        let store = server.store();
        let Some(collection) = store.collections.get(&resource.qualified_name()) else {
            return Err(status::generic(404, ""));
        };
        let now = Instant::now();
        let asked = options.timeout_seconds.filter(|s| *s > 0).map(Duration::from_secs);
        let timeout = asked.map_or(DEFAULT_TIMEOUT, |asked| asked.min(LONGEST_TIMEOUT));
        let first_bookmark = timeout.checked_sub(LAST_BOOKMARK).unwrap_or(timeout).min(BOOKMARK_PERIOD);
        let mut watch = Self {
            server: server.clone(),
            resource: Arc::clone(resource),
            prefix: if namespace.is_empty() { String::new() } else { format!("{namespace}/") },
            changed: collection.subscribe(),
            epoch: store.epoch,
            seen: wanted,
            initial: VecDeque::new(),
            mark_initial_end: false,
            headers_sent: false,
            deadline: now + timeout,
            next_bookmark: now + first_bookmark,
            failure: None,
            options,
            output,
        };
        watch.begin(collection, wanted, store.revision);
        Ok(watch)
    }

    /// Determines the start of a watch.
    fn begin(&mut self, collection: &Collection, wanted: u64, current: u64) {
        let from_now = self.options.resource_version.is_empty();
        match self.options.send_initial_events {
            Some(true) => {
                if wanted > current {
                    self.failure = Some(status::too_large_resource_version(wanted, current));
                    return;
                }
                let inside =
                    collection.objects.range(&self.prefix).take_while(|(key, _)| key.starts_with(&self.prefix));
                let entries = inside.map(|(_, entry)| entry);
                let selected = entries.filter(|entry| self.options.selects(entry, &self.resource));
                self.initial = selected.map(|entry| collection.shown(&self.resource, entry)).collect();
                self.mark_initial_end = self.options.bookmarks;
                self.seen = current;
            }
            // Without initial events, a watch without a resourceVersion starts now.
            _ if from_now || wanted == 0 => self.seen = current,
            _ if wanted < collection.forgotten => {
                self.failure = Some(self.expired(wanted, collection.forgotten));
            }
            _ => {}
        }
    }

    /// Events are watched past the cache, and the storage below it words the error differently.
    fn expired(&self, wanted: u64, oldest: u64) -> Box<Status> {
        if self.resource.kind == "Event" {
            return status::expired("The resourceVersion for the provided watch is too old.");
        }
        status::expired(format!("too old resource version: {wanted} ({oldest})"))
    }

    fn selects(&self, entry: &Entry) -> bool {
        self.options.selects(entry, &self.resource)
    }

    /// The body of the answer.
    pub fn into_body(self) -> Body {
        StreamBody::new(self.into_stream()).boxed_unsync()
    }

    fn into_stream(self) -> impl Stream<Item = std::result::Result<Frame<Bytes>, Infallible>> + Send {
        stream::unfold(Some(self), |watch| async move {
            let mut watch = watch?;
            let (lines, go_on) = watch.next().await?;
            Some((Ok(Frame::data(Bytes::from(lines))), go_on.then_some(watch)))
        })
    }

    /// The next events as text, and whether more may follow; `None` at the end.
    async fn next(&mut self) -> Option<(Vec<u8>, bool)> {
        if let Some(failure) = self.failure.take() {
            return Some((error(&failure), false));
        }
        if !self.initial.is_empty() {
            let mut lines = Vec::new();
            while lines.len() < BATCH
                && let Some(entry) = self.initial.pop_front()
            {
                self.event(&mut lines, "ADDED", &entry);
            }
            return Some((lines, true));
        }
        if std::mem::take(&mut self.mark_initial_end) {
            return Some((self.bookmark(true), true));
        }
        let signal = Arc::clone(&self.changed);
        loop {
            let mut changed = pin!(signal.notified());
            // Registers before it reads the history, so that a change after the read wakes this watch.
            changed.as_mut().enable();
            match self.pull() {
                Pulled::Events(lines) => return Some((lines, true)),
                Pulled::Expired(status) => return Some((error(&status), false)),
                Pulled::Ended => return None,
                Pulled::Nothing => {}
            }
            let bookmark_at = if self.options.bookmarks { self.next_bookmark } else { self.deadline };
            tokio::select! {
                biased;
                () = changed => {}
                () = sleep_until(bookmark_at.min(self.deadline)) => {
                    if Instant::now() >= self.deadline {
                        return None;
                    }
                    self.next_bookmark = self.bookmark_after(Instant::now());
                    return Some((self.bookmark(false), true));
                }
            }
        }
    }

    fn bookmark_after(&self, now: Instant) -> Instant {
        let last = self.deadline - LAST_BOOKMARK;
        if now < last { (now + BOOKMARK_PERIOD).min(last) } else { self.deadline }
    }

    /// Reads the history for this watch.
    fn pull(&mut self) -> Pulled {
        let server = self.server.clone();
        let store = server.store();
        let Some(collection) = store.collections.get(&self.resource.qualified_name()) else { return Pulled::Ended };
        if store.epoch != self.epoch {
            return Pulled::Ended;
        }
        if self.seen < collection.forgotten {
            return Pulled::Expired(self.expired(self.seen, collection.forgotten));
        }
        let mut lines = Vec::new();
        for change in collection.since(self.seen) {
            if lines.len() > BATCH {
                return Pulled::Events(lines);
            }
            self.seen = change.revision;
            if change.key.starts_with(&self.prefix)
                && let Some((kind, entry)) = self.view(change)
            {
                self.event(&mut lines, kind, &collection.shown(&self.resource, &entry));
            }
        }
        self.seen = self.seen.max(store.revision);
        if lines.is_empty() { Pulled::Nothing } else { Pulled::Events(lines) }
    }

    /// A change as the event that this watch sends.
    fn view(&self, change: &Change) -> Option<(&'static str, Entry)> {
        let before = change.previous.as_ref().is_some_and(|previous| self.selects(previous));
        let after = change.kind != ChangeKind::Deleted && self.selects(&change.object);
        match (before, after) {
            (false, true) => Some(("ADDED", change.object.clone())),
            (true, true) => Some(("MODIFIED", change.object.clone())),
            (true, false) if change.kind == ChangeKind::Deleted => Some(("DELETED", change.object.clone())),
            (true, false) => {
                // It stopped matching: the event has its last matching state with the revision of the change.
                let mut last = (**change.previous.as_ref()?.object()).clone();
                super::meta::set(&mut last, "resourceVersion", json!(change.revision.to_string()));
                Some(("DELETED", Entry::Whole(Object::new(last))))
            }
            (false, false) => None,
        }
    }

    /// Writes one event.
    fn event(&mut self, lines: &mut Vec<u8>, kind: &str, entry: &Entry) {
        let shown = match self.output.transform {
            Transform::None => return line(lines, kind, entry.text().json()),
            Transform::Table => {
                let headers = !std::mem::replace(&mut self.headers_sent, true);
                table::table(&self.resource, &entry.object(), self.output, self.server.now(), headers)
            }
            Transform::Metadata | Transform::MetadataList => table::metadata(&entry.object(), self.output),
        };
        line(lines, kind, shown.to_string().as_bytes());
    }

    fn bookmark(&mut self, initial_end: bool) -> Vec<u8> {
        let mut object = empty(&self.resource);
        super::body::set_kind(&self.resource, &mut object);
        let mut metadata = json!({"resourceVersion": self.seen.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        object["metadata"] = metadata;
        let mut lines = Vec::new();
        self.event(&mut lines, "BOOKMARK", &Entry::Whole(Object::new(object)));
        lines
    }
}

/// Writes the wire form of one event.
fn line(lines: &mut Vec<u8>, kind: &str, object: &[u8]) {
    for part in [br#"{"type":""#, kind.as_bytes(), br#"","object":"#, object, b"}\n"] {
        lines.extend_from_slice(part);
    }
}

/// The event that ends a watch.
fn error(status: &Status) -> Vec<u8> {
    let mut lines = Vec::new();
    line(&mut lines, "ERROR", status.to_value().to_string().as_bytes());
    lines
}

enum Pulled {
    Events(Vec<u8>),
    Nothing,
    Expired(Box<Status>),
    Ended,
}
