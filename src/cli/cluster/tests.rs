#![allow(clippy::unwrap_used)]

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, Config};

use super::*;

#[tokio::test(start_paused = true)]
async fn time_is_the_clusters_where_the_machines_is_another() {
    let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
    let server = ApiServer::new(Config::builtin(TestClock::new(at("2027-03-28T00:59:50Z"))));
    // (a sentence, the machine's time, the time of the answer)
    let rows = [
        ("alike", "2027-03-28T00:59:50.7Z", "2027-03-28T00:59:50.7Z"),
        ("a second behind", "2027-03-28T00:59:48.5Z", "2027-03-28T00:59:48.5Z"),
        ("months behind", "2026-11-28T12:00:00Z", "2027-03-28T00:59:50Z"),
        ("a minute ahead", "2027-03-28T01:00:50Z", "2027-03-28T00:59:50Z"),
    ];
    for (sentence, machine, want) in rows {
        let clock = TestClock::new(at(machine));
        assert_eq!(now(&server.client(), &*clock).await, at(want), "{sentence}");
    }
    let away = Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    let clock = TestClock::new(at("2026-11-28T12:00:00Z"));
    assert_eq!(now(&away, &*clock).await, at("2026-11-28T12:00:00Z"), "no answer");
}
