//! A bound on every request that is not a watch.
//!
//! Guarantees: a request with [`RequestLimits`] is sent only while its gate is open, and ends within its limit. The
//! server receives that limit as well, where it has to keep it. For any other request, the head of the answer arrives
//! within [`REQUEST_DEADLINE`], and each piece of its body within the same time of the previous one. Otherwise the
//! caller gets a [`DeadlineError`] and the connection is closed. An answer has at most [`LONGEST_ANSWER`] bytes, unless
//! its reader declares that it does not buffer it ([`ReadInPieces`]). Of a refusal, also of a watch, at most the size
//! of a `Status` is read.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use http_body::{Frame, SizeHint};
use kube::client::Body;
use tokio::time::{Instant, Sleep};
use tower::layer::layer_fn;
use tower::{BoxError, Layer, Service};

use super::punctual::SendBefore;
use super::{LONGEST_IN_SOCKET, LONGEST_UNSENT, LONGEST_WRITE, RequestLimits, SERVER_MARGIN, TimeLimit, stays_open};
use crate::leader_election::TimeLeft;

/// How long the server may be silent. Twice the longest time that a request may wait in a queue of API Priority and
/// Fairness (a quarter of the server's `--request-timeout`, 15 s). An API server that died silently is noticed within
/// this time.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(30);

/// The server was silent for too long, and may or may not have carried the request out; or the request was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DeadlineError {
    /// The gate of its [`RequestLimits`] was closed.
    #[error("not sent: this process does not hold its lease")]
    Closed,
    /// It did not end within the limit of its [`RequestLimits`].
    #[error("no answer within {} s", .0.as_secs_f64())]
    Late(Duration),
    /// There was no connection within [`LONGEST_UNSENT`].
    #[error("not sent: no connection within {} s", LONGEST_UNSENT.as_secs())]
    Unsent,
    /// No answer began.
    #[error("no answer from the API server within {}s", REQUEST_DEADLINE.as_secs())]
    Answer,
    /// The answer broke off.
    #[error("the API server fell silent for {}s in the middle of an answer", REQUEST_DEADLINE.as_secs())]
    Body,
    /// The answer was longer than the limit.
    #[error("the API server's answer has more than {LONGEST_ANSWER} bytes")]
    Length,
}

impl DeadlineError {
    /// That of an error, or of its causes.
    pub fn of(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let mut causes = std::iter::successors(Some(error), |error| (*error).source());
        causes.find_map(|error| error.downcast_ref().copied())
    }
}

/// More than any object or list of leases has. Readers of one object stop earlier. Lists that may be longer are [read
/// in pieces](ReadInPieces).
pub(super) const LONGEST_ANSWER: usize = 64 << 20;

/// An extension of a request whose answer may have any length, because its reader bounds the memory that it uses: a
/// list that is decoded while it arrives.
#[derive(Debug, Clone, Copy)]
pub struct ReadInPieces;

/// More than any `Status` has; anything longer is a proxy's page.
pub(super) const LONGEST_REFUSAL: usize = 128 << 10;

pub(super) fn layer<S>() -> impl Layer<S, Service = Bounded<S>> {
    layer_fn(|inner| Bounded { inner })
}

#[derive(Clone)]
pub(super) struct Bounded<S> {
    inner: S,
}

impl<S, A, B> Service<Request<A>> for Bounded<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
{
    type Response = Response<BoundedBody<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        let watch = stays_open(&request);
        let in_pieces = watch || request.extensions().get::<ReadInPieces>().is_some();
        // Before the limits are asked for: the process may stop in between.
        let now = Instant::now();
        let patience = match request.extensions().get::<RequestLimits>().map(RequestLimits::now) {
            Some(Err(closed)) => return Box::pin(async move { Err(closed.into()) }),
            Some(Ok(allowed)) => {
                if let Some(server) = allowed.server {
                    tell_the_server(&mut request, server);
                    request.extensions_mut().insert(SendBefore(now + LONGEST_UNSENT));
                }
                AnswerTime::Whole(now + allowed.client, allowed.client)
            }
            None if watch => AnswerTime::Endless,
            None => AnswerTime::Silence,
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = match patience.end() {
                None => answer.await.map_err(Into::into)?,
                Some(end) => {
                    let answer = tokio::time::timeout_at(end, answer).await;
                    answer.map_err(|_| patience.error(DeadlineError::Answer))?.map_err(Into::into)?
                }
            };
            let is_success = answer.status().is_success();
            let limit = match (is_success, in_pieces) {
                (false, _) => LengthLimit::Cut(LONGEST_REFUSAL),
                (true, false) => LengthLimit::Fail(LONGEST_ANSWER),
                (true, true) => LengthLimit::None,
            };
            let silence = patience.end().map(|end| Box::pin(tokio::time::sleep_until(end)));
            Ok(answer.map(|inner| BoundedBody { inner, patience, silence, limit }))
        })
    }
}

/// The limits of a request, from the moment at which it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allowed {
    /// The timeout that the server receives, if any.
    server: Option<Duration>,
    client: Duration,
}

impl RequestLimits {
    /// Whether the request may be sent now, and how long it may take.
    fn now(&self) -> Result<Allowed, DeadlineError> {
        let left = match &self.gate {
            None => TimeLeft::UNLIMITED,
            Some(gate) => gate.time_left().ok_or(DeadlineError::Closed)?,
        };
        let sent = |left: Duration| left.saturating_sub(LONGEST_UNSENT + LONGEST_IN_SOCKET).min(LONGEST_WRITE);
        let within = |server: Duration| Allowed { server: Some(server), client: server + SERVER_MARGIN };
        Ok(match self.limit {
            TimeLimit::Client(client) => Allowed { server: None, client },
            TimeLimit::Lease => within(sent(left.usual)),
            TimeLimit::Announced => within(sent(left.announced)),
            TimeLimit::Longest => within(LONGEST_WRITE),
        })
    }
}

/// Adds `?timeout=`, in Go's syntax, rounded down to milliseconds: zero would mean no timeout.
fn tell_the_server<T>(request: &mut Request<T>, timeout: Duration) {
    let separator = if request.uri().query().is_some() { '&' } else { '?' };
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let path = format!("{path}{separator}timeout={}ms", timeout.as_millis().max(1));
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = path.parse().ok();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}

/// How long an answer may take.
#[derive(Clone, Copy)]
pub(super) enum AnswerTime {
    /// Unlimited, for a watch.
    Endless,
    /// Each piece within [`REQUEST_DEADLINE`] of the previous one.
    Silence,
    /// The whole answer until an instant, which is this duration after the request was sent.
    Whole(Instant, Duration),
}

impl AnswerTime {
    /// When it ends if no data arrives.
    fn end(self) -> Option<Instant> {
        match self {
            Self::Endless => None,
            Self::Silence => Some(Instant::now() + REQUEST_DEADLINE),
            Self::Whole(end, _) => Some(end),
        }
    }

    fn error(self, of_silence: DeadlineError) -> DeadlineError {
        match self {
            Self::Whole(_, limit) => DeadlineError::Late(limit),
            Self::Endless | Self::Silence => of_silence,
        }
    }
}

/// How many bytes may still arrive, and what happens at the limit.
#[derive(Clone, Copy)]
pub(super) enum LengthLimit {
    None,
    /// The body ends.
    Cut(usize),
    /// The body breaks off with an error.
    Fail(usize),
}

impl LengthLimit {
    /// Subtracts a piece of the body; the part beyond the limit may be cut off.
    fn take(&mut self, data: &mut Bytes) -> Result<(), DeadlineError> {
        match self {
            Self::None => {}
            Self::Cut(left) => {
                data.truncate(*left);
                *left -= data.len();
            }
            Self::Fail(left) => *left = left.checked_sub(data.len()).ok_or(DeadlineError::Length)?,
        }
        Ok(())
    }
}

type Bytes = <Body as http_body::Body>::Data;

/// A body whose pieces must arrive in time.
pub(super) struct BoundedBody<B> {
    inner: B,
    patience: AnswerTime,
    /// Fires when no data arrived in time; `None` for a watch.
    silence: Option<Pin<Box<Sleep>>>,
    limit: LengthLimit,
}

impl<B> http_body::Body for BoundedBody<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if matches!(self.limit, LengthLimit::Cut(0)) {
            return Poll::Ready(None);
        }
        let Poll::Ready(piece) = Pin::new(&mut self.inner).poll_frame(context) else {
            let Some(silence) = &mut self.silence else { return Poll::Pending };
            let ended = silence.as_mut().poll(context);
            return ended.map(|()| Some(Err(self.patience.error(DeadlineError::Body).into())));
        };
        let patience = self.patience;
        if let (Some(silence), Some(end)) = (&mut self.silence, patience.end()) {
            silence.as_mut().reset(end);
        }
        Poll::Ready(piece.map(|piece| {
            let mut frame = piece.map_err(Into::into)?;
            if let Some(data) = frame.data_mut() {
                self.limit.take(data)?;
            }
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.limit {
            // The body may end before its announced length.
            LengthLimit::Cut(_) => SizeHint::new(),
            LengthLimit::None | LengthLimit::Fail(_) => self.inner.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests;
