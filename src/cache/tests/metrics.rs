//! What a scrape shows of informers.

use apimachinery::clock::TestClock;
use prometheus::Registry;

use super::*;
use crate::cache::metrics::CacheMetrics;
use crate::metrics::encode;

#[tokio::test(start_paused = true)]
async fn metrics_show_the_age_and_the_faults_of_a_cache_until_it_is_dropped() {
    let registry = Registry::new();
    let metrics = CacheMetrics::register(&registry, TestClock::new("1970-01-01T00:16:40Z".parse().unwrap())).unwrap();
    let script = Script::new([(
        ALL,
        vec![watch([
            added(&job("x", 1)),
            added(&bad("y", 2)),
            end(5),
            pause(100),
            modified(&job("y", 6)),
            pause(100),
            error(410, "Expired"),
        ])],
    )]);
    let mut informer = Informer::<Job>::of_shard(script.client(), &[], Shard::WHOLE, 17);
    metrics.watch("cronjob", &mut informer);
    let cancel = CancellationToken::new();
    let running = tokio::spawn(informer.run(cancel.clone()));
    let value = |metric: &str| {
        let start = format!("cronjob_controller_{metric}{{");
        let text = encode(&registry);
        let found = text.lines().find(|line| line.starts_with(&start) && !line.contains("list\""));
        found.map(|line| line.rsplit_once(' ').unwrap().1.to_owned())
    };
    let shown = || {
        ["watch_last_event_timestamp_seconds", "malformed_objects", "lists_total", "list_watch_failures_total"]
            .map(value)
    };
    let want = |values: [&str; 4]| values.map(|value| Some(value.to_owned()));
    sleep(Duration::from_secs(50)).await;
    assert_eq!(shown(), want(["1000", "1", "1", "0"]), "listed at once, one object of it malformed");
    sleep(Duration::from_secs(100)).await;
    assert_eq!(shown(), want(["1100", "0", "1", "0"]), "that was mended, and nothing came since");
    sleep(Duration::from_secs(51)).await;
    assert_eq!(shown()[3].as_deref(), Some("1"), "the watch has failed");
    cancel.cancel();
    running.await.unwrap();
    assert_eq!(shown()[..2], [None, None], "an informer that is gone has no view");
}
