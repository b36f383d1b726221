//! A replica's use of the lease: how long a write may take, when a replica stands for it, when a standby doubts its caches, and
//! when the lease is released.

use std::future::pending;

use crate::controller::tests::wire::{Ask, Fate, Verb, Wire};

use super::*;

pub const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

pub const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The body of the server's answer to a request that bypasses the network.
pub async fn ask(server: &ApiServer, method: &str, path: &str, body: &serde_json::Value) -> serde_json::Value {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let answer = server.handle(request.body(Bytes::from(body.to_string())).unwrap()).await;
    let bytes = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}

/// A lease that was renewed at `renewed`.
fn lease(name: &str, holder: &str, seconds: u64, renewed: &str) -> serde_json::Value {
    let spec = json!({
        "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 0,
        "acquireTime": renewed, "renewTime": renewed,
    });
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": name }, "spec": spec })
}

#[test]
fn write_is_given_up_before_another_process_can_hold_the_lease() {
    for (lease_duration, renew_deadline) in [(15, 10), (137, 107), (60, 40), (4, 3), (3, 2)] {
        let mut config = config(vec![ControllerKind::CronJob]);
        let election = config.leader_election.as_mut().unwrap();
        (election.lease_duration, election.renew_deadline) = (seconds(lease_duration), seconds(renew_deadline));
        let (limit, margin) = (requests::timeout(&config), seconds(lease_duration - renew_deadline));
        assert!(limit > Duration::ZERO, "{lease_duration} s and {renew_deadline} s");
        assert!(limit < margin, "{limit:?} is more than the {margin:?} between renew deadline and lease duration");
    }
}

#[tokio::test(start_paused = true)]
async fn slow_shutdown_fails_and_does_not_release_the_lease() {
    for (work, is_slow) in [(seconds(GRACE.as_secs() - 1), false), (GRACE + seconds(1), true), (Duration::MAX, true)] {
        let clock: SharedClock = TestClock::new("2026-11-20T18:20:30Z".parse().unwrap());
        let server = server(&clock);
        let (config, registry) = (config(vec![ControllerKind::CronJob]), Registry::new());
        let context = ControllerContext::new(&config, &server.client(), &registry, &clock, 1, None).unwrap();
        let rng = StdRng::seed_from_u64(1);
        let settings = config.leader_election.as_ref().unwrap();
        let candidate = context.candidate(settings, server.client(), &registry, "me".to_owned(), rng).unwrap();
        let elector = candidate.elector(context.recorder().0).unwrap();
        let stop = CancellationToken::new();
        let ended = tokio::spawn({
            let stop = stop.clone();
            async move {
                let in_flight = async {
                    stop.cancelled().await;
                    if work == Duration::MAX {
                        pending::<()>().await;
                    } else {
                        tokio::time::sleep(work).await;
                    }
                    Ok(())
                };
                under_lease(elector, &stop, |_| finish_in_time(in_flight, &stop)).await
            }
        });
        tokio::time::sleep(seconds(5)).await;
        stop.cancel();
        let stopped = tokio::time::Instant::now();
        let result = ended.await.unwrap();
        assert_eq!(matches!(result, Err(AppError::SlowShutdown)), is_slow, "{work:?}: {result:?}");
        assert!(stopped.elapsed() <= GRACE + seconds(1), "{work:?}");
        let lease = ask(&server, "GET", &format!("{LEASES}/{}", settings.name), &json!(null)).await;
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        assert_eq!(holder, if is_slow { "me" } else { "" }, "{work:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn leader_after_another_reads_a_cron_job_live_before_it_fires() {
    let rows = [
        ("another process led before", Some("other"), 1),
        ("another process led and gave the lease up", Some(""), 1),
        ("no process led", None, 0),
    ];
    for (sentence, holder, reads) in rows {
        let clock: SharedClock = TestClock::new("2026-11-20T18:20:30Z".parse().unwrap());
        let server = server(&clock);
        create(&server, ControllerKind::CronJob).await;
        if let Some(holder) = holder {
            let theirs = lease("cronjob-controller", holder, 15, "2026-11-20T18:20:29.000000Z");
            ask(&server, "POST", LEASES, &theirs).await;
        }
        let wire = Wire::new();
        let client = client::on_service(wire.around(server.into_service()));
        let stop = CancellationToken::new();
        let replica = Replica { client, clock, identity: "me".into(), seed: 1, observer: None };
        let ended = tokio::spawn({
            let (config, stop) = (config(vec![ControllerKind::CronJob]), stop.clone());
            async move { run_replica(&config, replica, stop).await }
        });
        tokio::time::sleep(seconds(35)).await;
        let asked = [(Verb::Create, "jobs"), (Verb::Get, "cronjobs")].map(|(verb, what)| wire.asked(verb, what));
        assert_eq!(asked.each_ref().map(Vec::len), [1, reads], "{sentence}");
        assert!(asked[1].iter().all(|read| read.at <= asked[0][0].at), "{sentence}");
        stop.cancel();
        ended.await.unwrap().unwrap();
    }
}

/// After how long a replica asks for its lease first, within `most`. Its reads have this fate for so long after the start.
async fn stands_after(
    config: Config,
    is_hidden: impl Fn(&Ask) -> bool + Send + 'static,
    (fate, hidden): (Fate, Duration),
    most: Duration,
) -> Duration {
    let clock: SharedClock = TestClock::new("2026-11-20T18:20:30Z".parse().unwrap());
    let server = server(&clock);
    let wire = Wire::new();
    let client = client::on_service(wire.around(server.clone().into_service()));
    let began = tokio::time::Instant::now();
    wire.judge(move |ask| {
        let is_read = matches!(ask.verb, Verb::List | Verb::Watch) && is_hidden(ask);
        if is_read && began.elapsed() < hidden { fate } else { Fate::Pass }
    });
    let replica = Replica { client, clock, identity: "me".into(), seed: 1, observer: None };
    let running = tokio::spawn(async move { run_replica(&config, replica, CancellationToken::new()).await });
    tokio::time::sleep(most).await;
    running.abort();
    wire.asked(Verb::Create, "leases")[0].at - began
}

/// After an outage the lease is for the replica that has its caches.
#[tokio::test(start_paused = true)]
async fn replica_without_caches_leaves_the_lease_to_others() {
    type Row<'a> = (&'a str, &'a [ControllerKind], &'a [&'a str], Fate, u64, u64);

    let (away, unserved) = (Fate::Unreachable, Fate::Refused(404, "NotFound"));
    let one = [ControllerKind::CronJob].as_slice();
    let two = [ControllerKind::CronJob, ControllerKind::ApiExample].as_slice();
    let rows: [Row<'_>; 8] = [
        ("it lists at once", one, &[], away, 0, 0),
        ("its Jobs come after 20 s", one, &["jobs"], away, 20, 20),
        ("its CronJobs come after 40 s", one, &["cronjobs"], away, 40, 40),
        ("of two controllers, the one's Jobs come after 8 s", two, &["jobs"], away, 8, 8),
        ("of two controllers, the one's objects never come", two, &["apiexamples"], away, 60, 10),
        ("of two controllers, the CronJobs come after 30 s", two, &["cronjobs"], away, 30, 30),
        ("of two controllers, the CronJobs never come", two, &["cronjobs"], away, 90, 60),
        ("of two controllers, the one's kind is not served", two, &["apiexamples"], unserved, 60, 0),
    ];
    for (sentence, controllers, hidden, fate, listed, leads) in rows {
        let hidden: Vec<String> = hidden.iter().map(ToString::to_string).collect();
        let is_hidden = move |ask: &Ask| hidden.contains(&ask.resource);
        let took = stands_after(config(controllers.to_vec()), is_hidden, (fate, seconds(listed)), seconds(70)).await;
        assert!((leads..leads + 2).contains(&took.as_secs()), "{sentence}: {took:?}");
    }
}

/// A server that has just started refuses what it allows a moment later.
#[tokio::test(start_paused = true)]
async fn replica_waits_a_moment_for_namespaces_that_are_refused() {
    // (a sentence, for how many milliseconds one of two namespaces is refused, and, at least and less than, when it stands)
    let rows = [("none is refused", 0, 0, 100), ("for a moment", 500, 800, 1_700), ("for ever", 90_000, 3_000, 3_100)];
    for (sentence, refused, least, less_than) in rows {
        let mut config = config(vec![ControllerKind::CronJob]);
        config.namespaces = ["default", "other"].map(str::to_owned).to_vec();
        let refused = (Fate::Refused(403, "Forbidden"), Duration::from_millis(refused));
        let took = stands_after(config, |ask| ask.namespace == "other", refused, seconds(10)).await.as_millis();
        assert!((least..less_than).contains(&took), "{sentence}: {took} ms");
    }
}

/// What a leader that was killed had sent may still be committed, whether or not someone deletes its lease.
#[tokio::test(start_paused = true)]
async fn leader_that_finds_no_lease_after_others_deletes_nothing_before_their_creates_have_ended() {
    let clock: SharedClock = TestClock::new("2026-11-20T18:20:50Z".parse().unwrap());
    let server = server(&clock);
    create(&server, ControllerKind::CronJob).await;
    let url = format!("{}/minutely", ControllerKind::CronJob.parent.path(Some("default")));
    let run = |identity: &str| {
        let wire = Wire::new();
        let client = client::on_service(wire.around(server.clone().into_service()));
        let replica = Replica { client, clock: Arc::clone(&clock), identity: identity.into(), seed: 1, observer: None };
        let (config, stop) = (config(vec![ControllerKind::CronJob]), CancellationToken::new());
        (wire, tokio::spawn(async move { run_replica(&config, replica, stop).await }))
    };
    let (_, killed) = run("first");
    let replace = json!({ "spec": { "concurrencyPolicy": "Replace" } });
    let patch = Request::patch(&url).header("content-type", "application/merge-patch+json");
    let answer = server.handle(patch.body(Bytes::from(replace.to_string())).unwrap()).await;
    assert!(answer.status().is_success());
    tokio::time::sleep(seconds(60)).await;
    killed.abort();
    ask(&server, "DELETE", &format!("{LEASES}/cronjob-controller"), &json!({})).await;

    let started = tokio::time::Instant::now();
    let (wire, second) = run("second");
    tokio::time::sleep(seconds(60)).await;
    second.abort();
    let deletions = wire.asked(Verb::Delete, "jobs");
    assert_eq!(deletions.len(), 1, "the slot of 18:22 has come");
    assert!(deletions[0].at - started >= seconds(39), "{:?}", deletions[0].at - started);
}
