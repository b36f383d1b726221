//! Connections that are opened before they are needed.
//!
//! Guarantees: when several keys come due at one instant, enough connections are used within [`FRESH`] before it: one for
//! each key, but no more than there are workers. So no TLS handshake delays the creation of Jobs. The cost is that many
//! reads of `/version`, which every account may make. They are made between the whole seconds at which slots are due, except
//! those of the first look after a start, so they delay no Job of an earlier instant. They are not made again while the last
//! ones are fresh: CronJobs spread over an hour are due every second. With fewer than two due keys there is no cost. A failure
//! has no effect. It looks at the timers at least every [`LEAD`], so it also sees those that are set shortly before they are
//! due: at a start, and after a change of a schedule.

use std::time::Duration;

use apimachinery::clock::SharedClock;
use chrono::TimeDelta;
use futures::future::join_all;
use http::Request;
use kube::Client;
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

use crate::workqueue::{Key, WorkQueue};

/// How long before the instant the connections are opened: time enough for handshakes, and half way between two whole
/// seconds.
pub const LEAD: Duration = Duration::from_millis(1_500);

/// How long connections stay open unused, at least. kube-apiserver closes them after 90 seconds, and what stands before it may
/// do so after 60.
pub const FRESH: Duration = Duration::from_secs(30);

/// Keys that come due within this time are in flight at the API server together.
const TOGETHER: TimeDelta = TimeDelta::milliseconds(500);

/// How long after an instant the next one is looked at: half way to the next whole second.
const AFTER: Duration = Duration::from_millis(500);

/// Connections that were used together.
#[derive(Clone, Copy, Debug)]
struct Used {
    connections: usize,
    at: Instant,
}

/// What to do now: open that many connections, if any, and look again after the pause.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    open: Option<usize>,
    pause: Duration,
}

/// Warms up connections of `client` for the timers of `queue`, for ever.
pub async fn keep_warm<K: Key>(queue: WorkQueue<K>, clock: SharedClock, client: Client, workers: usize) {
    let mut used = None;
    loop {
        let soonest =
            queue.upcoming(TOGETHER, workers).map(|(at, due)| ((at - clock.now()).to_std().unwrap_or_default(), due));
        let now = Instant::now();
        let Step { open, pause } = step(soonest, used, now);
        if let Some(connections) = open {
            used = Some(Used { connections: warm(&client, connections).await, at: now });
        }
        sleep(pause.saturating_sub(now.elapsed())).await;
    }
}

/// `soonest` is the time until the next instant, and the number of keys that come due then.
fn step(soonest: Option<(Duration, usize)>, used: Option<Used>, now: Instant) -> Step {
    let Some((left, due)) = soonest.filter(|(_, due)| *due > 1) else {
        return Step { open: None, pause: LEAD };
    };
    if left > LEAD {
        return Step { open: None, pause: LEAD.min(left.saturating_sub(LEAD)) };
    }
    let is_warm = used.is_some_and(|used| used.connections >= due && now.duration_since(used.at) < FRESH);
    Step { open: (!is_warm).then_some(due), pause: left + AFTER }
}

/// Requests that are in flight together need one connection each. Returns how many were answered.
async fn warm(client: &Client, connections: usize) -> usize {
    let requests = (0..connections).map(|_| async {
        let request = Request::get("/version").body(Vec::new()).ok()?;
        timeout(LEAD, client.request_text(request)).await.ok()?.ok()
    });
    let answered = join_all(requests).await.iter().flatten().count();
    debug!(connections, answered, "Warmed connections for the keys that are due soon");
    answered
}

#[cfg(test)]
mod tests;
