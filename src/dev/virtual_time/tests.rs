#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn timers_expire_in_order_at_their_own_instants_and_every_thread_reads_the_same_clock() {
    let at: DateTime<Utc> = "2027-03-27T22:00:00Z".parse().unwrap();
    let time = VirtualTime::start(at, 3600).unwrap();
    let clock = time.clock();
    let (sender, receiver) = std::sync::mpsc::channel();
    {
        let _entered = time.enter();
        for seconds in [90, 7, 3600, 8] {
            let (clock, sender) = (Arc::clone(&clock), sender.clone());
            // The timer counts from the task's start.
            let end = Instant::now() + Duration::from_secs(seconds);
            tokio::spawn(async move {
                tokio::time::sleep_until(end).await;
                sender.send((seconds, (clock.now() - at).num_seconds())).unwrap();
            });
        }
    }
    drop(sender);
    let found: Vec<(u64, i64)> = receiver.iter().collect();
    let order: Vec<u64> = found.iter().map(|(seconds, _)| *seconds).collect();
    assert_eq!(order, [7, 8, 90, 3600]);
    // All began within the first step or two.
    for (seconds, seen) in found {
        assert!((0..=180).contains(&(seen - i64::try_from(seconds).unwrap())), "{seconds} s ended at {seen} s");
    }
    assert!(clock.now() - at >= TimeDelta::hours(1), "{}", clock.now());
}

#[test]
fn end_drops_what_still_waits() {
    let time = VirtualTime::start(DateTime::UNIX_EPOCH, 1).unwrap();
    let waiting = {
        let _entered = time.enter();
        tokio::spawn(std::future::pending::<()>())
    };
    drop(time);
    assert!(waiting.is_finished());
}
