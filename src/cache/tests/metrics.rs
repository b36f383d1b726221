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
    let mut informer = Informer::<Job>::new(script.client(), &[], 17);
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

/// Two informers of one controller, of two namespaces each.
#[tokio::test(start_paused = true)]
async fn age_of_a_view_is_that_of_its_stalest_namespace() {
    let registry = Registry::new();
    let metrics = CacheMetrics::register(&registry, TestClock::new("1970-01-01T00:16:40Z".parse().unwrap())).unwrap();
    let script = Script::new([]);
    let informer = |namespaces: [&str; 2]| {
        let namespaces = namespaces.map(str::to_owned);
        let mut informer = Informer::<Job>::new(script.client(), &namespaces, 17);
        metrics.watch("cronjob", &mut informer);
        informer
    };
    let informers = [informer(["a", "b"]), informer(["c", "d"])];
    let stores = informers.each_ref().map(Informer::store);
    let shown = || {
        let text = encode(&registry);
        let line = text.lines().find(|line| line.starts_with("cronjob_controller_watch_last_event_timestamp_seconds{"));
        line.unwrap().rsplit_once(' ').unwrap().1.to_owned()
    };
    // After 100 s each: the store and the namespace of which something is heard, and the time that is shown.
    let rows = [(0, 0, "1000"), (0, 1, "1000"), (1, 1, "1000"), (1, 0, "1100"), (0, 0, "1200"), (0, 1, "1300")];
    for (at, (store, scope, want)) in rows.into_iter().enumerate() {
        sleep(Duration::from_secs(100)).await;
        stores[store].observe(scope, "7");
        assert_eq!(shown(), want, "row {at}");
    }
    assert_eq!(stores.map(|store| store.age().unwrap().as_secs()), [100, 300]);
}
