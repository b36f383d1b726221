use std::future::pending;
use std::sync::Arc;

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worker {
    /// It waits for a key.
    Idle,
    /// It waits for something that never comes.
    Stuck,
    /// Each of its requests is answered after so many seconds.
    Slow(u64),
}

/// The longest time without a sign of life in ten minutes.
async fn longest_silence(workers: &[Worker]) -> Duration {
    let heartbeat = Arc::new(Heartbeat::default());
    heartbeat.set_workers(workers.len());
    let busy = workers.iter().filter(|worker| **worker != Worker::Idle).count();
    let mut tasks = tokio::task::JoinSet::new();
    for worker in workers.iter().copied() {
        let heartbeat = Arc::clone(&heartbeat);
        let steps = async move {
            let Worker::Slow(seconds) = worker else { return pending().await };
            loop {
                sleep(Duration::from_secs(seconds)).await;
            }
        };
        tasks.spawn(async move { heartbeat.watch(steps).await });
    }
    let shown = Arc::clone(&heartbeat);
    tasks.spawn(async move { shown.show_idle(|| busy).await });
    let mut longest = Duration::ZERO;
    for _ in 0..600 {
        sleep(Duration::from_secs(1)).await;
        longest = longest.max(heartbeat.last().elapsed());
    }
    longest
}

#[tokio::test(start_paused = true)]
async fn signs_of_life_end_only_if_no_worker_goes_on() {
    use Worker::{Idle, Slow, Stuck};
    let rows: [(&str, &[Worker], Duration); 6] = [
        ("no worker yet: the caches are not synced", &[], PERIOD),
        ("nothing to do", &[Idle, Idle], PERIOD),
        ("one that hangs beside an idle one", &[Stuck, Idle], PERIOD),
        ("one that hangs beside a busy one", &[Stuck, Slow(39)], Duration::from_secs(39)),
        ("a slow API server", &[Slow(39), Slow(39)], Duration::from_secs(39)),
        ("all hang", &[Stuck, Stuck], Duration::from_secs(600)),
    ];
    for (sentence, workers, want) in rows {
        let found = longest_silence(workers).await;
        assert!(found <= want && found + Duration::from_secs(1) >= want, "{sentence}: {found:?}");
    }
}
