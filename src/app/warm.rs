//! Connections that are opened before they are needed.
//!
//! Guarantees: when several keys come due at one instant, enough connections are used within [`LEAD`] before it: one for
//! each key, but no more than there are workers. So no TLS handshake delays the creation of Jobs. The cost is that many
//! reads of `/version`, which every account may make; with fewer than two due keys there is no cost. A failure has no
//! effect. It looks at the timers at least every [`LEAD`], so it also sees those that are set shortly before they are due: at a
//! start, and after a change of a schedule.

use std::time::Duration;

use apimachinery::clock::SharedClock;
use chrono::TimeDelta;
use futures::future::join_all;
use http::Request;
use kube::Client;
use tokio::time::{sleep, timeout};
use tracing::debug;

use crate::workqueue::{Key, WorkQueue};

/// How long before the instant the connections are opened: time enough for handshakes, too short for a server to close idle
/// connections.
pub const LEAD: Duration = Duration::from_secs(2);

/// Keys that come due within this time are in flight at the API server together.
const TOGETHER: TimeDelta = TimeDelta::milliseconds(500);

/// Warms up connections of `client` for the timers of `queue`, for ever.
pub async fn keep_warm<K: Key>(queue: WorkQueue<K>, clock: SharedClock, client: Client, workers: usize) {
    loop {
        let pause = match queue.upcoming(TOGETHER, workers) {
            Some((at, due)) if due > 1 => {
                let left = (at - clock.now()).to_std().unwrap_or_default();
                if left <= LEAD {
                    warm(&client, due).await;
                    // This instant is done; the next may follow at once.
                    left + Duration::from_secs(1)
                } else {
                    LEAD.min(left.saturating_sub(LEAD))
                }
            }
            _ => LEAD,
        };
        sleep(pause).await;
    }
}

/// Requests that are in flight together need one connection each.
async fn warm(client: &Client, connections: usize) {
    let requests = (0..connections).map(|_| async {
        let request = Request::get("/version").body(Vec::new()).ok()?;
        timeout(LEAD, client.request_text(request)).await.ok()?.ok()
    });
    let answers = join_all(requests).await;
    debug!(
        connections,
        answered = answers.iter().flatten().count(),
        "Warmed connections for the keys that are due soon"
    );
}
