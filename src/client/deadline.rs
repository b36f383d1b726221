//! A bound on every request that is not a watch.
//!
//! Guarantees: the head of the answer comes within [`REQUEST_DEADLINE`], and then each piece of its body within the
//! same time of the one before it, or the caller gets a [`DeadlineError`] and the connection is closed. A long list
//! may take as long as it moves.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};
use tower::layer::layer_fn;
use tower::{BoxError, Layer, Service};

use super::is_watch;

/// How long the server may be silent. Twice the longest that a request may wait in one of API Priority and Fairness's
/// queues (a quarter of the server's `--request-timeout`, 15 s); an API server that died without a word is noticed in
/// this time.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(30);

/// The server was silent for too long. Whether it carried the request out is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DeadlineError {
    /// No answer began.
    #[error("no answer from the API server within {}s", REQUEST_DEADLINE.as_secs())]
    Answer,
    /// The answer broke off.
    #[error("the API server fell silent for {}s in the middle of an answer", REQUEST_DEADLINE.as_secs())]
    Body,
}

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

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let watch = is_watch(&request);
        let answer = self.inner.call(request);
        Box::pin(async move {
            if watch {
                let answer = answer.await.map_err(Into::into)?;
                return Ok(answer.map(|inner| BoundedBody { inner, silence: None }));
            }
            let answer = tokio::time::timeout(REQUEST_DEADLINE, answer).await;
            let answer = answer.map_err(|_| DeadlineError::Answer)?.map_err(Into::into)?;
            let silence = Some(Box::pin(tokio::time::sleep(REQUEST_DEADLINE)));
            Ok(answer.map(|inner| BoundedBody { inner, silence }))
        })
    }
}

/// A body whose pieces keep coming.
pub(super) struct BoundedBody<B> {
    inner: B,
    /// Runs from the last piece; `None` for a watch.
    silence: Option<Pin<Box<Sleep>>>,
}

impl<B> http_body::Body for BoundedBody<B>
where
    B: http_body::Body + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let piece = Pin::new(&mut self.inner).poll_frame(context);
        let Some(silence) = &mut self.silence else { return piece.map_err(Into::into) };
        match piece {
            Poll::Ready(piece) => {
                silence.as_mut().reset(Instant::now() + REQUEST_DEADLINE);
                Poll::Ready(piece.map(|piece| piece.map_err(Into::into)))
            }
            Poll::Pending => silence.as_mut().poll(context).map(|()| Some(Err(DeadlineError::Body.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
