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
mod tests;
