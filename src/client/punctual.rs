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
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use http_body::Body as _;
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_late_is_not_sent() {
        // (sentence, seconds that the request may wait, seconds until its body is asked for, whether it is sent)
        let rows = [
            ("at once", Some(2), 0, true),
            ("in time", Some(2), 2, true),
            ("after a slow connection", Some(2), 3, false),
            ("without a limit", None, 60, true),
        ];
        for (sentence, allowed, waits, is_sent) in rows {
            let mut request = Request::post("/jobs").body(Body::from(b"{}".to_vec())).unwrap();
            if let Some(allowed) = allowed {
                request.extensions_mut().insert(SendBefore(Instant::now() + Duration::from_secs(allowed)));
            }
            let (waiting, early) = (request.extensions().clone(), punctual(request));
            assert_eq!(early.body().size_hint().exact(), Some(2), "{sentence}");
            tokio::time::sleep(Duration::from_secs(waits)).await;
            assert_eq!(early.into_body().collect().await.is_ok(), is_sent, "{sentence}: its body");
            let mut late = Request::new(Body::empty());
            *late.extensions_mut() = waiting;
            assert_eq!(in_time(late).is_ok(), is_sent, "{sentence}: its credentials");
        }
    }
}
