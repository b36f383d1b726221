//! List and watch requests on kube's client.
//!
//! Guarantees: no request and no read waits for ever. An answer that is not a success is an error with the server's Status.
//! The bytes of an object or an event exist once, and of a list at most one object is held at a time.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout, timeout_at};

use super::decode::{PageEnvelope, decode_status};
use super::error::{Cause, ServerStatus};
use super::items::{Items, KEEP_BUFFER};
use crate::client::ReadInPieces;

/// The maximum length of a watch line and of a list's object. etcd's default limit is 1.5 MiB; this allows for servers with a
/// higher one.
const MAX_LINE: usize = 32 << 20;
/// How much of an error's body is read.
const MAX_ERROR_BODY: usize = 64 << 10;
/// How long a watch may stay open after the requested time.
const OVERDUE_MARGIN: Duration = Duration::from_secs(30);

/// One collection on the API server.
pub(super) struct Endpoint {
    client: Client,
    path: String,
}

impl Endpoint {
    pub(super) fn new(client: Client, path: String) -> Self {
        Self { client, path }
    }

    /// The URL's path.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Requests one page, which must arrive completely within `deadline`. Without a `limit` it is the whole list. The
    /// resource version is left unset, which requests the latest state, by a quorum read if necessary.
    pub(super) async fn list(
        &self,
        limit: Option<u32>,
        continue_token: &str,
        deadline: Duration,
    ) -> Result<PageStream, Cause> {
        let mut query = String::new();
        if let Some(limit) = limit {
            let _ = write!(query, "limit={limit}");
        }
        if !continue_token.is_empty() {
            query.push_str("&continue=");
            percent_encode(&mut query, continue_token);
        }
        let end = Instant::now() + deadline;
        let body = timeout_at(end, self.get(&query, false)).await.unwrap_or(Err(Cause::Timeout(deadline)))?;
        Ok(PageStream { body, items: Items::default(), end, deadline, bytes: 0 })
    }

    /// The resource version of the collection's latest state, without reading its objects, within `deadline`.
    pub(super) async fn newest_version(&self, deadline: Duration) -> Result<String, Cause> {
        let mut page = self.list(Some(1), "", deadline).await?;
        while page.next_item().await?.is_some() {}
        let resource_version = page.envelope()?.metadata.resource_version;
        if resource_version.is_empty() { Err(Cause::NoResourceVersion) } else { Ok(resource_version) }
    }

    /// Opens a watch that first sends all objects of the latest state, then a bookmark, then changes.
    pub(super) async fn streaming_list(&self, seconds: u32, deadline: Duration) -> Result<EventStream, Cause> {
        let query = format!(
            "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
             &timeoutSeconds={seconds}"
        );
        self.open(&query, seconds, deadline).await
    }

    /// Opens a watch on the changes after `resource_version`.
    pub(super) async fn watch(
        &self,
        resource_version: &str,
        seconds: u32,
        deadline: Duration,
    ) -> Result<EventStream, Cause> {
        let mut query = "watch=1&resourceVersion=".to_owned();
        percent_encode(&mut query, resource_version);
        let _ = write!(query, "&allowWatchBookmarks=true&timeoutSeconds={seconds}");
        self.open(&query, seconds, deadline).await
    }

    /// Opens a watch that the server should end after `seconds`; its response must begin within `deadline`.
    async fn open(&self, query: &str, seconds: u32, deadline: Duration) -> Result<EventStream, Cause> {
        // Taken before the request, since some proxies hold the headers back until the first event.
        let opened = Instant::now();
        let body = timeout(deadline, self.get(query, true)).await.unwrap_or(Err(Cause::Timeout(deadline)))?;
        let lifetime = Duration::from_secs(seconds.into()) + OVERDUE_MARGIN;
        Ok(EventStream { body, buffer: Vec::new(), consumed: 0, scanned: 0, opened, lifetime, ended: false })
    }

    async fn get(&self, query: &str, is_watch: bool) -> Result<Body, Cause> {
        let mut request = Request::get(format!("{}?{query}", self.path)).header(header::ACCEPT, "application/json");
        if is_watch {
            // Newer servers compress each event separately, which decompressing layers do not support.
            request = request.header(header::ACCEPT_ENCODING, "identity");
        }
        let mut request = request.body(Body::empty())?;
        request.extensions_mut().insert(ReadInPieces);
        let response = self.client.send(request).await.map_err(|error| Cause::Send(Box::new(error)))?;
        let (parts, body) = response.into_parts();
        if parts.status == StatusCode::OK {
            return Ok(body);
        }
        Err(Cause::Status(read_status(body, parts.status).await))
    }
}

/// Reads the body of an error. If it breaks off, the part that came is used; the status code is sufficient.
async fn read_status(mut body: Body, code: StatusCode) -> ServerStatus {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_ERROR_BODY {
        let Some(Ok(frame)) = body.frame().await else { break };
        bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
    }
    let mut status = decode_status(&bytes, Some(code.as_u16()));
    if status.reason.is_empty() {
        code.canonical_reason().unwrap_or_default().clone_into(&mut status.reason);
    }
    status
}

/// A page of a list while it arrives.
pub(super) struct PageStream {
    body: Body,
    items: Items,
    end: Instant,
    deadline: Duration,
    bytes: usize,
}

impl PageStream {
    /// The next object; `None` at the end of the page.
    pub(super) async fn next_item(&mut self) -> Result<Option<&RawValue>, Cause> {
        let item = loop {
            if let Some(item) = self.items.next() {
                break item;
            }
            if self.items.held() > MAX_LINE {
                return Err(Cause::ObjectTooLong(MAX_LINE));
            }
            let frame = timeout_at(self.end, self.body.frame()).await.map_err(|_| Cause::Timeout(self.deadline))?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| Cause::Read(Box::new(error)))?;
            let piece = frame.data_ref().map_or(&[][..], |data| data);
            self.bytes += piece.len();
            self.items.push(piece);
        };
        serde_json::from_slice(self.items.text(item)).map(Some).map_err(Cause::Envelope)
    }

    /// How many bytes have arrived.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The text around the objects, once every object was read.
    pub(super) fn envelope(&self) -> Result<PageEnvelope<'_>, Cause> {
        PageEnvelope::decode(self.items.envelope()).map_err(Cause::Envelope)
    }
}

/// An open watch: one JSON text per line.
pub(super) struct EventStream {
    body: Body,
    buffer: Vec<u8>,
    /// Where the unreturned bytes begin.
    consumed: usize,
    /// Up to where no line end follows `consumed`.
    scanned: usize,
    opened: Instant,
    lifetime: Duration,
    /// Whether the body has ended; it must not be read again.
    ended: bool,
}

impl EventStream {
    /// How long ago the watch was requested.
    pub(super) fn age(&self) -> Duration {
        self.opened.elapsed()
    }

    /// The next line that is not blank; `None` when the server has closed the watch. It is an error if nothing arrives for
    /// `silence`, or if the watch exceeds its time.
    pub(super) async fn next_line(&mut self, silence: Duration) -> Result<Option<&[u8]>, Cause> {
        let line = loop {
            if let Some(line) = self.take_line() {
                if !self.buffer[line.clone()].trim_ascii().is_empty() {
                    break line;
                }
            } else if self.buffer.len() - self.consumed > MAX_LINE {
                return Err(Cause::LineTooLong(MAX_LINE));
            } else if !self.fill(silence).await? {
                let Some(rest) = self.take_rest() else { return Ok(None) };
                break rest;
            }
        };
        Ok(Some(&self.buffer[line]))
    }

    fn take_line(&mut self) -> Option<Range<usize>> {
        let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let line = self.consumed..self.scanned + found;
        self.consumed = line.end + 1;
        self.scanned = self.consumed;
        Some(line)
    }

    /// The text after the last line end, if it is complete; an incomplete event means that the connection was cut.
    fn take_rest(&mut self) -> Option<Range<usize>> {
        let rest = self.consumed..self.buffer.len();
        self.consumed = rest.end;
        serde_json::from_slice::<IgnoredAny>(&self.buffer[rest.clone()]).ok().map(|_| rest)
    }

    /// Reads more bytes; false when the server has closed the watch.
    async fn fill(&mut self, silence: Duration) -> Result<bool, Cause> {
        self.buffer.drain(..self.consumed);
        self.scanned -= self.consumed;
        self.consumed = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP_BUFFER {
            self.buffer = Vec::new();
        }
        if self.ended {
            return Ok(false);
        }
        let end = self.opened + self.lifetime;
        let now = Instant::now();
        let patience = now + silence;
        // Checked separately from the timeout, which would let a stream that always has more data continue.
        if now >= end {
            return Err(Cause::Overdue(self.lifetime));
        }
        match timeout_at(patience.min(end), self.body.frame()).await {
            Err(_) if end <= patience => Err(Cause::Overdue(self.lifetime)),
            Err(_) => Err(Cause::Silent(silence)),
            Ok(None) => {
                self.ended = true;
                Ok(false)
            }
            Ok(Some(Err(error))) => Err(Cause::CutOff { after: self.age(), source: Box::new(error) }),
            Ok(Some(Ok(frame))) => {
                self.buffer.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
                Ok(true)
            }
        }
    }
}

/// Appends `text` as a query parameter's value. Matches RFC 3986: all but unreserved characters are escaped.
fn percent_encode(query: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            let _ = write!(query, "%{byte:02X}");
        }
    }
}
