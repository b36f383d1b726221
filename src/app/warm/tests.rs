//! When connections are opened, and when not.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use apimachinery::clock::{Clock, TestClock};
use chrono::{DateTime, Timelike, Utc};
use kube::client::Body;
use parking_lot::Mutex;

use super::*;
use crate::client;
use crate::workqueue::Config;

#[tokio::test(start_paused = true)]
async fn connections_are_opened_when_several_keys_are_due_soon_and_none_fresh_are_enough() {
    let millis = Duration::from_millis;
    let now = Instant::now() + Duration::from_secs(1_000);
    let used = |connections, ago| Some(Used { connections, at: now - Duration::from_secs(ago) });
    let table = [
        ("no timer", None, None, None, LEAD),
        ("one key", Some((millis(100), 1)), None, None, LEAD),
        ("far away", Some((millis(60_000), 9)), None, None, LEAD),
        ("a little early", Some((millis(1_600), 9)), None, None, millis(100)),
        ("in time", Some((LEAD, 9)), None, Some(9), millis(2_000)),
        ("late", Some((millis(0), 9)), None, Some(9), millis(500)),
        ("enough are fresh", Some((LEAD, 9)), used(9, 29), None, millis(2_000)),
        ("enough, but no longer fresh", Some((LEAD, 9)), used(9, 30), Some(9), millis(2_000)),
        ("fresh, but too few", Some((LEAD, 9)), used(8, 1), Some(9), millis(2_000)),
    ];
    for (name, soonest, used, open, pause) in table {
        assert_eq!(step(soonest, used, now), Step { open, pause }, "{name}");
    }
}

/// 20 to 26 keys are due at every second, as CronJobs that `spread` spreads.
#[tokio::test(start_paused = true)]
async fn keys_due_every_second_cost_few_reads_and_none_while_jobs_are_created() {
    let clock = TestClock::new("2026-11-20T18:20:00.8Z".parse().unwrap());
    let queue = WorkQueue::new(Config::new("cronjob", Arc::<TestClock>::clone(&clock)));
    for second in 0..300 {
        for key in 0..20 + second * 5 % 7 {
            let due: DateTime<Utc> = "2026-11-20T18:20:05Z".parse().unwrap();
            queue.add_at(format!("{second}-{key}"), due + TimeDelta::seconds(second));
        }
    }
    let reads = Arc::new(Mutex::new(Vec::new()));
    let service = {
        let (clock, reads) = (Arc::clone(&clock), Arc::clone(&reads));
        tower::service_fn(move |_: Request<Body>| {
            reads.lock().push(clock.now());
            async { Ok::<_, std::convert::Infallible>(http::Response::new(Body::empty())) }
        })
    };
    let client = client::on_service(service);
    let warm = tokio::spawn(keep_warm(queue.clone(), Arc::<TestClock>::clone(&clock), client, 64));
    let drain = async {
        loop {
            let key = queue.get().await.unwrap();
            queue.done(&key);
        }
    };
    timeout(Duration::from_secs(304), drain).await.unwrap_err();
    warm.abort();

    let reads = reads.lock();
    let near = reads.iter().filter(|at| !(400..=600).contains(&at.timestamp_subsec_millis())).count();
    assert_eq!(near, 0, "{:?}", reads.iter().map(|at| (at.second(), at.nanosecond())).collect::<Vec<_>>());
    // Every half a minute, and when a second has more keys than any since.
    assert!((10 * 20..30 * 27).contains(&reads.len()), "{} reads in five minutes", reads.len());
}
