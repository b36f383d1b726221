//! A body that is sent in time or not at all.
//!
//! Guarantee: of a request with [`SendBefore`] no server receives a whole body that began to be sent later. Between the moment at
//! which its limit is computed and its sending lie the credentials, which a plugin may have to fetch, and a connection that may have
//! to be opened, even twice.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::Request;
use http_body::{Frame, SizeHint};
use kube::client::Body;
use tokio::time::Instant;
use tower::BoxError;

use super::DeadlineError;

/// An extension of a request: when its body has to be on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBefore(pub Instant);

/// The body of a request, which fails if it is asked for too late.
pub(super) struct Punctual {
    inner: Body,
    /// Until when its first piece is given; `None` once it was.
    before: Option<Instant>,
}

/// Refuses a request whose credentials came too late, before it takes a connection.
pub(super) fn in_time(request: Request<Body>) -> Result<Request<Body>, BoxError> {
    let is_late = request.extensions().get::<SendBefore>().is_some_and(|SendBefore(before)| Instant::now() > *before);
    if is_late { Err(DeadlineError::Unsent.into()) } else { Ok(request) }
}

/// Gives the request a body that keeps its [`SendBefore`].
pub(super) fn punctual(request: Request<Body>) -> Request<Punctual> {
    let before = request.extensions().get::<SendBefore>().map(|SendBefore(before)| *before);
    request.map(|inner| Punctual { inner, before })
}

impl http_body::Body for Punctual {
    type Data = <Body as http_body::Body>::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, BoxError>>> {
        if self.before.take().is_some_and(|before| Instant::now() > before) {
            return Poll::Ready(Some(Err(DeadlineError::Unsent.into())));
        }
        Pin::new(&mut self.inner).poll_frame(context).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests;
