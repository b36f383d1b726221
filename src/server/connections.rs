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
    pub(super) fn take(self: &Arc<Self>) -> Option<Place> {
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
        Some(Place { id, slots: Arc::clone(self), evict })
    }
}

/// The slot of one connection, held until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    id: u64,
    slots: Arc<ConnectionSlots>,
    evict: CancellationToken,
}

impl Place {
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

impl Drop for Place {
    fn drop(&mut self) {
        self.slots.taken.lock().by_id.remove(&self.id);
    }
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct Busy(Arc<Place>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.change(|occupant| {
            occupant.requests -= 1;
            occupant.idle_since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::FutureExt;
    use tokio::time::sleep;

    use super::*;

    const IDLE: Duration = Duration::from_secs(90);

    /// Takes slots one second apart.
    async fn take(slots: &Arc<ConnectionSlots>, count: usize) -> Vec<Arc<Place>> {
        let mut taken = Vec::new();
        for _ in 0..count {
            taken.push(Arc::new(slots.take().unwrap()));
            sleep(Duration::from_secs(1)).await;
        }
        taken
    }

    fn gone(taken: &[Arc<Place>]) -> Vec<usize> {
        (0..taken.len()).filter(|&at| taken[at].lost(IDLE).now_or_never().is_some()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn connection_that_was_idle_for_longest_is_closed_for_a_new_one() {
        let slots = ConnectionSlots::new(3);
        let taken = take(&slots, 3).await;
        // The first connection has had a request since, so the second is evicted.
        drop(taken[0].busy());
        let _fourth = slots.take().unwrap();
        assert_eq!(gone(&taken), [1]);
        let _fifth = slots.take().unwrap();
        assert_eq!(gone(&taken), [1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_with_a_request_in_flight_is_never_closed_for_a_new_one() {
        let slots = ConnectionSlots::new(2);
        let taken = take(&slots, 2).await;
        let _first = taken[0].busy();
        let (second, again) = (taken[1].busy(), taken[1].busy());
        assert!(slots.take().is_none());
        drop(second);
        assert!(slots.take().is_none(), "there is another request on the connection");
        drop(again);
        assert!(slots.take().is_some());
        assert_eq!(gone(&taken), [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_that_ends_frees_one_slot() {
        let slots = ConnectionSlots::new(2);
        let mut taken = take(&slots, 2).await;
        let third = slots.take().unwrap();
        // Its slot was taken already.
        taken.remove(0);
        let fourth = slots.take().unwrap();
        assert_eq!(gone(&taken), [0]);
        drop((third, fourth));
        assert_eq!(slots.taken.lock().by_id.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_is_lost_after_the_idle_time() {
        let slots = ConnectionSlots::new(1);
        let place = Arc::new(slots.take().unwrap());
        let started = Instant::now();
        let busy = place.busy();
        let requests = async {
            sleep(2 * IDLE).await;
            drop(busy);
        };
        let ((), ()) = tokio::join!(place.lost(IDLE), requests);
        assert!(started.elapsed() >= 3 * IDLE && started.elapsed() < 4 * IDLE, "{:?}", started.elapsed());
    }
}
