//! The connection slots of a listener, and which connection is evicted when all are taken.
//!
//! Guarantees: there are never more connections than slots. A new connection gets a slot as long as another one has no
//! request in flight: the one that has been idle for longest is evicted. So a client that opens connections and sends
//! nothing, or too little, cannot block health probes. A connection with a request in flight is never evicted.
//!
//! A semaphore with time limits would be less code but is not enough. 128 silent connections, renewed again and again,
//! would block the webhooks' port, which the API server has to reach. 5,000 new ones a second would keep every probe in
//! the backlog. Here the newest connections stay, which are those of clients that are about to send a request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// The slots of one listener.
#[derive(Debug)]
pub(super) struct ConnectionSlots {
    limit: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    last_id: u64,
    by_id: HashMap<u64, Occupant>,
}

/// The state of one connection.
#[derive(Debug)]
struct Occupant {
    requests: usize,
    /// Since when there has been no request in flight, if there is none.
    idle_since: Instant,
    evict: CancellationToken,
}

impl ConnectionSlots {
    /// A set of `limit` slots.
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, taken: Mutex::default() })
    }

    /// A slot for a new connection; `None` when every connection is busy.
    pub(super) fn take(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let evict = CancellationToken::new();
        let mut taken = self.taken.lock();
        if taken.by_id.len() >= self.limit {
            let idle = taken.by_id.iter().filter(|(_, occupant)| occupant.requests == 0);
            let id = *idle.min_by_key(|(id, occupant)| (occupant.idle_since, **id))?.0;
            if let Some(occupant) = taken.by_id.remove(&id) {
                occupant.evict.cancel();
            }
        }
        taken.last_id += 1;
        let id = taken.last_id;
        let occupant = Occupant { requests: 0, idle_since: Instant::now(), evict: evict.clone() };
        taken.by_id.insert(id, occupant);
        drop(taken);
        Some(ConnectionSlot { id, slots: Arc::clone(self), evict })
    }
}

/// The slot of one connection, held until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    id: u64,
    slots: Arc<ConnectionSlots>,
    evict: CancellationToken,
}

impl ConnectionSlot {
    /// Marks a request as in flight until the returned guard is dropped.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.change(|occupant| occupant.requests += 1);
        Busy(Arc::clone(self))
    }

    /// Waits until the connection has to close: because it was evicted, or because there was no request for `idle`.
    pub(super) async fn lost(&self, idle: Duration) {
        let mut wait = idle;
        while !wait.is_zero() && timeout(wait, self.evict.cancelled()).await.is_err() {
            wait = self.left_of(idle);
        }
    }

    /// The rest of `idle`: all of it during a request, zero once the connection is evicted.
    fn left_of(&self, idle: Duration) -> Duration {
        match self.slots.taken.lock().by_id.get(&self.id) {
            None => Duration::ZERO,
            Some(occupant) if occupant.requests > 0 => idle,
            Some(occupant) => idle.saturating_sub(occupant.idle_since.elapsed()),
        }
    }

    fn change(&self, change: impl FnOnce(&mut Occupant)) {
        if let Some(occupant) = self.slots.taken.lock().by_id.get_mut(&self.id) {
            change(occupant);
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.taken.lock().by_id.remove(&self.id);
    }
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct Busy(Arc<ConnectionSlot>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.change(|occupant| {
            occupant.requests -= 1;
            occupant.idle_since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests;
