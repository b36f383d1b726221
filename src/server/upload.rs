//! When a request counts as in flight.
//!
//! Guarantee: a connection has a request in flight from the moment the request is complete until it is answered. A
//! client that sends a body slowly is as idle as one that sends nothing, and may be evicted (`connections`).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use parking_lot::Mutex;

use super::connections::{Busy, ConnectionSlot};

/// The body of a request; its end makes the connection busy.
pub(super) struct TrackedBody {
    body: Incoming,
    place: Arc<ConnectionSlot>,
    in_flight: InFlight,
}

/// A request, in flight or about to be, until this is dropped.
#[derive(Clone, Default)]
pub(super) struct InFlight(Arc<Mutex<Option<Busy>>>);

impl TrackedBody {
    /// The body received on this connection.
    pub(super) fn new(body: Incoming, place: Arc<ConnectionSlot>) -> Self {
        let upload = Self { body, place, in_flight: InFlight::default() };
        upload.note_end();
        upload
    }

    /// Held until the request is answered, which is later than the end of the body.
    pub(super) fn in_flight(&self) -> InFlight {
        self.in_flight.clone()
    }

    fn note_end(&self) {
        if self.body.is_end_stream() {
            self.in_flight.0.lock().get_or_insert_with(|| self.place.busy());
        }
    }
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        self.note_end();
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
