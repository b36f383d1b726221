//! Workers that hang: how long the leader keeps its lease, and what answers meanwhile.
//!
//! One test here runs on real threads and waits for the real clock, for about three seconds, as an end-to-end test does: on paused
//! time no thread can be blocked while another goes on.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::thread::available_parallelism;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::leases::{LEASES, ask, seconds};
use super::*;

/// A client without time limits, as if these had a defect. The server answers a create of a Job after so many seconds.
fn client_without_limits(server: &ApiServer, hangs: u64) -> kube::Client {
    let inner = server.clone().into_service();
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let inner = inner.clone();
        async move {
            if request.method() == http::Method::POST && request.uri().path().ends_with("/jobs") {
                tokio::time::sleep(seconds(hangs)).await;
            }
            tower::ServiceExt::oneshot(inner, request).await
        }
    });
    kube::Client::new(service, "default")
}

async fn lease_of(server: &ApiServer) -> serde_json::Value {
    ask(server, "GET", &format!("{LEASES}/cronjob-controller"), &json!(null)).await["spec"].take()
}

#[tokio::test(start_paused = true)]
async fn leader_whose_workers_all_hang_for_a_minute_is_followed_by_a_standby() {
    let rows = [
        ("they hang for 20 s", 1, Some(20), true),
        ("they hang for 90 s", 1, Some(90), false),
        ("one of two hangs for 90 s", 2, Some(90), true),
        ("they have nothing to do", 1, None, true),
    ];
    for (sentence, workers, hangs, is_kept) in rows {
        let clock: SharedClock = TestClock::new("2026-11-20T18:20:50Z".parse().unwrap());
        let server = server(&clock);
        if hangs.is_some() {
            create(&server, ControllerKind::CronJob).await;
        }
        let config =
            Config { concurrent_cronjob_syncs: workers.try_into().unwrap(), ..config(vec![ControllerKind::CronJob]) };
        let run = |identity: &str, client| {
            let replica =
                Replica { client, clock: Arc::clone(&clock), identity: identity.to_owned(), seed: 1, observer: None };
            let config = config.clone();
            tokio::spawn(async move { run_replica(&config, replica, CancellationToken::new()).await })
        };
        let leader = run("leader", client_without_limits(&server, hangs.unwrap_or_default()));
        tokio::time::sleep(seconds(5)).await;
        let standby = run("standby", server.client());
        // The hang begins with the slot, ten seconds after the start.
        tokio::time::sleep(seconds(95)).await;
        let holder = lease_of(&server).await["holderIdentity"].take();
        assert_eq!(holder, if is_kept { "leader" } else { "standby" }, "{sentence}");
        assert_eq!(leader.is_finished(), !is_kept, "{sentence}");
        if is_kept {
            leader.abort();
        } else {
            assert!(matches!(leader.await.unwrap(), Err(AppError::Hung)), "{sentence}");
        }
        standby.abort();
    }
}

/// Whether the address says that the process lives.
async fn is_alive(addr: SocketAddr) -> bool {
    let answer = async {
        let mut stream = TcpStream::connect(addr).await?;
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: test\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.map(|_| answer)
    };
    answer.await.is_ok_and(|answer: String| answer.starts_with("HTTP/1.1 200"))
}

#[test]
fn lease_is_renewed_and_health_checks_answer_while_all_workers_spin() {
    const SPIN: Duration = Duration::from_millis(1_600);
    let threads = available_parallelism().map_or(1, usize::from);
    let workers = Background::for_workers().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let clock: SharedClock = TestClock::new("2026-11-20T18:20:59.500Z".parse().unwrap());
        let server = server(&clock);
        for number in 0..threads {
            create_named(&server, ControllerKind::CronJob, &format!("spins-{number}")).await;
        }
        let spinning = Arc::new(AtomicU64::new(0));
        let client = {
            let (_entered, spinning) = (workers.handle().enter(), Arc::clone(&spinning));
            client_with(&server, move || {
                spinning.fetch_add(1, Ordering::Relaxed);
                async {
                    let end = Instant::now() + SPIN;
                    while Instant::now() < end {
                        std::hint::spin_loop();
                    }
                    Ok(())
                }
            })
        };
        let addr = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap();
        let mut config = Config {
            concurrent_cronjob_syncs: 64.try_into().unwrap(),
            health_addr: Some(addr),
            ..config(vec![ControllerKind::CronJob])
        };
        let settings = config.leader_election.as_mut().unwrap();
        settings.lease_duration = seconds(2);
        (settings.renew_deadline, settings.retry_period) = (Duration::from_millis(1_200), Duration::from_millis(200));
        let (registry, stop) = (Registry::new(), CancellationToken::new());
        let mut context = ControllerContext::new(&config, &client, &registry, &clock, 1, None).unwrap();
        context.workers = workers.handle().clone();
        let (context, rng) = (Arc::new(context), StdRng::seed_from_u64(1));
        let settings = config.leader_election.as_ref().unwrap();
        let candidate = context.candidate(settings, server.client(), &registry, "me".to_owned(), rng).unwrap();
        let work = Work::new(&context, Some(candidate)).unwrap();
        let listeners = serving::Listeners::bind(&config, workers.handle()).await.unwrap();
        let tasks = listeners.serve(&config, &registry, Vec::new(), work.health(), None, &context.ends);
        let ended = tokio::spawn({
            let stop = stop.clone();
            async move { context.run_to_end(work, tasks, stop).await }
        });

        while spinning.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let (began, mut renewals) = (Instant::now(), BTreeSet::new());
        while began.elapsed() < SPIN {
            assert!(is_alive(addr).await, "after {:?}", began.elapsed());
            renewals.insert(lease_of(&server).await["renewTime"].to_string());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(renewals.len() > 2, "{renewals:?}");
        assert!(!ended.is_finished(), "the lease is lost");
        stop.cancel();
        ended.await.unwrap().unwrap();
        assert_eq!(lease_of(&server).await["holderIdentity"], "", "it is released");
    });
}
