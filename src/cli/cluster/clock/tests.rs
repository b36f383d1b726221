#![allow(clippy::unwrap_used)]

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, Config};

use super::*;

#[tokio::test(start_paused = true)]
async fn clock_of_a_cluster_is_the_machines_unless_they_differ() {
    let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
    let server = TestClock::new(at("2027-03-28T00:59:50.300Z"));
    let client = ApiServer::new(Config::builtin(server.clone())).client();
    // (a sentence, the machine's time, how far its clock may be from the server's, in milliseconds)
    let rows = [
        ("a second behind: the machine's", "2027-03-28T00:59:49.300Z", Some(-1000)),
        ("months behind: the server's", "2026-11-28T12:00:00Z", None),
        ("a minute ahead: the server's", "2027-03-28T01:00:50Z", None),
    ];
    for (sentence, machine, want) in rows {
        let own = TestClock::new(at(machine));
        // The rows before took time on the server.
        own.step(server.now() - at("2027-03-28T00:59:50.300Z"));
        let clock = clock_of(&client, own).await.unwrap();
        let differ = (clock.now() - server.now()).num_milliseconds();
        assert!(want.map_or(differ.abs() <= 10, |want| differ == want), "{sentence}: {differ} ms");
        tokio::time::sleep(Duration::from_secs(100)).await;
        let later = (clock.now() - server.now()).num_milliseconds();
        assert!((later - differ).abs() <= 10, "{sentence}: {later} ms later");
    }
}

#[tokio::test(start_paused = true)]
async fn time_of_a_clock_with_a_rate_passes_as_fast() {
    let clock = ClusterClock {
        base: Mutex::new((Instant::now(), "2027-03-28T00:00:00Z".parse().unwrap())),
        rate: 60.0,
        steps: watch::Sender::new(()),
    };
    let start = Instant::now();
    clock.sleep_until(start + Duration::from_secs(600)).await;
    assert_eq!(start.elapsed(), Duration::from_secs(10));
    assert_eq!(clock.now().to_rfc3339(), "2027-03-28T00:10:00+00:00");
}
