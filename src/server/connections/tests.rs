#![allow(clippy::unwrap_used)]
use futures::FutureExt;
use tokio::time::sleep;

use super::*;

const IDLE: Duration = Duration::from_secs(90);

/// Takes slots one second apart.
async fn take(slots: &Arc<ConnectionSlots>, count: usize) -> Vec<Arc<ConnectionSlot>> {
    let mut taken = Vec::new();
    for _ in 0..count {
        taken.push(Arc::new(slots.take().unwrap()));
        sleep(Duration::from_secs(1)).await;
    }
    taken
}

fn gone(taken: &[Arc<ConnectionSlot>]) -> Vec<usize> {
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
