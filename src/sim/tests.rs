use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::*;

/// Counts seconds in a task of a task.
fn count_in(process: &Process) -> Arc<AtomicU32> {
    let count = Arc::new(AtomicU32::new(0));
    let seconds = Arc::clone(&count);
    tokio::spawn(process.bind(async move {
        tokio::spawn(bind(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                seconds.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }));
    count
}

#[tokio::test(start_paused = true)]
async fn frozen_process_polls_none_of_its_tasks_until_it_is_thawed() {
    let process = Process::default();
    let count = count_in(&process);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    process.freeze();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(count.load(Ordering::Relaxed), 2);
    process.thaw();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn killed_process_drops_its_tasks_and_cannot_be_thawed() {
    let process = Process::default();
    let count = count_in(&process);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    process.kill();
    process.thaw();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(count.load(Ordering::Relaxed), 2);
    assert_eq!(Arc::strong_count(&count), 1);
}
