//! Limits on all clients together: requests per second, bytes of buffered bodies, log lines.
//!
//! Guarantees: the bodies that one [`BodyBudget`] reads hold at most its bytes at a time; each has a size limit and a time
//! limit. [`LogLimit`] lets one line a second through and counts the others.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::token_bucket::Rate;

/// The rate of client-go's client for reviews in k8s.io/apiserver (`DelegatingAuthenticationOptions.getClient`: QPS
/// 200, burst 400). It also bounds everything else that unauthenticated clients can cause.
pub(crate) const STRANGERS: Rate = Rate { per_second: 200.0, burst: NonZeroU32::new(400).expect("400 is not 0") };

/// Limits log lines that clients can cause to one a second.
#[derive(Debug, Default)]
pub(crate) struct LogLimit(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    last: Option<Instant>,
    suppressed: u64,
}

impl LogLimit {
    /// Whether a line may be written; if so, how many were suppressed since the last one.
    pub(crate) fn admit(&self, now: Instant) -> Option<u64> {
        let mut lines = self.0.lock();
        if lines.last.is_some_and(|last| now.saturating_duration_since(last) < Duration::from_secs(1)) {
            lines.suppressed += 1;
            return None;
        }
        lines.last = Some(now);
        Some(std::mem::take(&mut lines.suppressed))
    }
}

/// The bytes that all request bodies together may hold at a time.
#[derive(Debug, Clone)]
pub(crate) struct BodyBudget(Arc<Semaphore>);

/// A complete body. Its bytes count against the budget until it is dropped.
#[derive(Debug)]
pub(crate) struct WholeBody {
    pub(crate) bytes: Bytes,
    _held: Option<OwnedSemaphorePermit>,
}

/// Why a body was not read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// It is larger than one body may be.
    TooLarge,
    /// It did not arrive in time.
    TooSlow,
    /// Other bodies use up the budget.
    Busy,
    /// The connection broke.
    Broken(axum::Error),
}

impl BodyBudget {
    /// A budget of `bytes`.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes)))
    }

    /// Reads a body of at most `limit` bytes within `within`. When it refuses a body, it first reads and discards up to
    /// four times the limit in that time. Otherwise a client that still writes would get a connection reset before it
    /// read the answer.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub(crate) async fn read(&self, mut body: Body, limit: usize, within: Duration) -> Result<WholeBody, ReadError> {
        let deadline = Instant::now() + within;
        match timeout_at(deadline, self.collect(&mut body, limit)).await {
            Err(_) => Err(ReadError::TooSlow),
            Ok(Err(refusal @ (ReadError::TooLarge | ReadError::Busy))) => {
                // The answer is the same whether the end of the body arrives or not.
                let _ = timeout_at(deadline, discard(body, limit.saturating_mul(4))).await;
                Err(refusal)
            }
            Ok(read) => read,
        }
    }

    async fn collect(&self, body: &mut Body, limit: usize) -> Result<WholeBody, ReadError> {
        let mut bytes = Vec::new();
        let mut held: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(ReadError::Broken)?.into_data() else { continue };
            if bytes.len() + data.len() > limit {
                return Err(ReadError::TooLarge);
            }
            let size = u32::try_from(data.len()).map_err(|_| ReadError::TooLarge)?;
            let more = Arc::clone(&self.0).try_acquire_many_owned(size).map_err(|_| ReadError::Busy)?;
            match &mut held {
                Some(held) => held.merge(more),
                None => held = Some(more),
            }
            bytes.extend_from_slice(&data);
        }
        Ok(WholeBody { bytes: bytes.into(), _held: held })
    }
}

/// Reads and discards the rest of a body, up to `limit` bytes.
async fn discard(mut body: Body, mut limit: usize) {
    while let Some(Ok(frame)) = body.frame().await {
        let size = frame.data_ref().map_or(0, Bytes::len);
        match limit.checked_sub(size) {
            Some(left) => limit = left,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::convert::Infallible;

    use futures::stream;
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn log_limit_lets_one_line_a_second_through_and_counts_the_others() {
        let limit = LogLimit::default();
        let admit = || limit.admit(Instant::now());
        assert_eq!([admit(), admit(), admit()], [Some(0), None, None]);
        advance(SECOND).await;
        assert_eq!([admit(), admit()], [Some(2), None]);
        advance(SECOND).await;
        assert_eq!(admit(), Some(1));
    }

    fn chunks(count: usize, size: usize) -> Body {
        Body::from_stream(stream::iter((0..count).map(move |_| Ok::<_, Infallible>(vec![b'x'; size]))))
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_together_hold_no_more_than_the_budget() {
        let budget = BodyBudget::new(100);
        let read = async |body| budget.read(body, 60, SECOND).await;
        let first = read(chunks(6, 10)).await.unwrap();
        assert_eq!(first.bytes.len(), 60);
        assert!(matches!(read(chunks(5, 10)).await, Err(ReadError::Busy)));
        let second = read(chunks(4, 10)).await.unwrap();
        assert!(matches!(read(chunks(1, 1)).await, Err(ReadError::Busy)));
        drop(first);
        assert!(read(chunks(6, 10)).await.is_ok(), "what was refused holds nothing");
        assert!(matches!(read(chunks(7, 10)).await, Err(ReadError::TooLarge)));
        drop(second);
        assert!(matches!(
            read(Body::from_stream(stream::pending::<Result<Bytes, Infallible>>())).await,
            Err(ReadError::TooSlow)
        ));
        assert!(read(Body::empty()).await.is_ok());
        assert_eq!(budget.0.available_permits(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn body_that_never_ends_is_refused_after_four_times_its_limit() {
        let (read, counted) = (Arc::new(Mutex::new(0)), BodyBudget::new(1 << 20));
        let chunks = Arc::clone(&read);
        let endless = stream::repeat_with(move || {
            *chunks.lock() += 1;
            Ok::<_, Infallible>(vec![0; 10])
        });
        let refused = counted.read(Body::from_stream(endless), 100, SECOND).await;
        assert!(matches!(refused, Err(ReadError::TooLarge)));
        assert!(*read.lock() <= 60, "{} chunks of 10 bytes were read", read.lock());
    }
}
