//! The elector against a fake lease server, on paused time.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use apimachinery::clock::TestClock;
use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use proptest::prelude::*;
use rand::SeedableRng;
use tokio::task::JoinHandle;
use tokio::time::{sleep, sleep_until};

use super::fake::{FakeLock, FakeServer, Fault, Lost, Network};
use super::*;

fn start_of_time() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn config(identity: &str) -> Config {
    Config::new("kube-system", "cronjob-controller", identity)
}

fn elector(identity: &str, lock: FakeLock, hooks: Hooks) -> LeaderElector<FakeLock> {
    let clock = TestClock::new(start_of_time());
    LeaderElector::new(config(identity), lock, clock, hooks, StdRng::seed_from_u64(1)).unwrap()
}

fn record(holder: &str, renewed: i64) -> LeaderElectionRecord {
    LeaderElectionRecord {
        holder_identity: holder.to_owned(),
        // Whoever releases a lease writes one second.
        lease_duration_seconds: if holder.is_empty() { 1 } else { 15 },
        acquire_time: Some(start_of_time()),
        renew_time: Some(start_of_time() + TimeDelta::seconds(renewed)),
        leader_transitions: 1,
    }
}

/// What the network does to the calls of one kind (empty: all), from a moment on and for a number of seconds.
type Weather = (f64, f64, &'static str, Fault);

/// What another client does to the lease at a moment.
type Deed = (f64, fn(&FakeServer, i64));

const OK: Fault = Fault { before: Duration::ZERO, after: Duration::ZERO, lost: Lost::Nothing };
const REFUSED: Fault = Fault { lost: Lost::Refused, ..OK };
const SILENT: Fault = Fault { lost: Lost::Request, ..OK };
const REPLY_LOST: Fault = Fault { lost: Lost::Reply, ..OK };
const REPLY_SILENT: Fault = Fault { lost: Lost::ReplyInSilence, ..OK };

const fn slow(seconds: u64) -> Fault {
    Fault { before: Duration::from_secs(seconds), ..OK }
}

struct Scenario {
    name: &'static str,
    initial: Option<LeaderElectionRecord>,
    weather: Vec<Weather>,
    deeds: Vec<Deed>,
    cancel_at: f64,
    release: bool,
    /// Between which seconds leadership starts; `None`: never.
    leads: Option<(f64, f64)>,
    /// Between which seconds the run ends, and how.
    ends: (f64, f64),
    outcome: Outcome,
    /// The holder at the end.
    holder: Option<&'static str>,
}

impl Default for Scenario {
    /// A single candidate on a network without faults.
    fn default() -> Self {
        Self {
            name: "",
            initial: None,
            weather: vec![],
            deeds: vec![],
            cancel_at: 60.0,
            release: true,
            leads: Some((0.0, 0.0)),
            ends: (60.0, 60.0),
            outcome: Outcome::Released,
            holder: Some(""),
        }
    }
}

fn renew_other(server: &FakeServer, now: i64) {
    server.force(Some(&record("other", now)));
}

fn scenarios() -> Vec<Scenario> {
    let taken_by_other = || Outcome::Lost(Loss::TakenBy("other".to_owned()));
    let deadline = |message: &str| Outcome::Lost(Loss::RenewDeadline(message.to_owned()));
    vec![
        Scenario { name: "without a lease, it is created and led at once", ..Scenario::default() },
        Scenario { name: "a released lease is taken at once", initial: Some(record("", 0)), ..Scenario::default() },
        Scenario {
            name: "a dead leader's lease is taken after its duration",
            initial: Some(record("dead", 0)),
            leads: Some((15.0, 15.0)),
            ..Scenario::default()
        },
        Scenario {
            name: "a dead leader whose clock was an hour ahead is waited for no longer",
            initial: Some(record("dead", 3_600)),
            leads: Some((15.0, 15.0)),
            ..Scenario::default()
        },
        Scenario {
            name: "a leader whose clock is an hour behind keeps its lease while it renews",
            initial: Some(record("other", -3_600)),
            deeds: (1..8)
                .map(|i| (f64::from(i) * 8.0, (|server, now| renew_other(server, now - 3_600)) as fn(&FakeServer, i64)))
                .collect(),
            leads: None,
            outcome: Outcome::Cancelled,
            holder: Some("other"),
            ..Scenario::default()
        },
        Scenario {
            name: "a leader that stops renewing is followed one duration after its last renewal",
            initial: Some(record("other", 0)),
            deeds: (1..4).map(|i| (f64::from(i) * 8.0, renew_other as fn(&FakeServer, i64))).collect(),
            leads: Some((39.0, 39.0)),
            cancel_at: 100.0,
            ends: (100.0, 100.0),
            ..Scenario::default()
        },
        Scenario {
            name: "a renewal that only a read of the lease shows is waited for as well",
            initial: Some(record("other", 0)),
            weather: vec![(0.0, 100.0, "watch", SILENT)],
            deeds: vec![(9.0, renew_other)],
            leads: Some((24.0, 28.4)),
            cancel_at: 100.0,
            ends: (100.0, 100.0),
            ..Scenario::default()
        },
        Scenario {
            name: "a leader's release is followed at once",
            initial: Some(record("other", 0)),
            deeds: vec![(10.0, |server, now| server.force(Some(&record("", now))))],
            leads: Some((10.0, 10.0)),
            ..Scenario::default()
        },
        Scenario {
            name: "without a watch, a leader's release is followed at the next attempt",
            initial: Some(record("other", 0)),
            weather: vec![(0.0, 60.0, "watch", SILENT)],
            deeds: vec![(10.0, |server, now| server.force(Some(&record("", now))))],
            leads: Some((10.0, 14.4)),
            ..Scenario::default()
        },
        Scenario {
            name: "a lease that expires while the API server is away is taken soon after",
            initial: Some(record("other", 0)),
            weather: vec![(5.0, 25.0, "", REFUSED)],
            leads: Some((30.0, 32.2)),
            cancel_at: 100.0,
            ends: (100.0, 100.0),
            ..Scenario::default()
        },
        Scenario {
            name: "a rival that creates the lease first is respected",
            weather: vec![(0.0, 1.0, "create", slow(1))],
            deeds: vec![(0.5, |server, now| server.force(Some(&record("other", now))))],
            leads: Some((15.5, 22.0)),
            cancel_at: 100.0,
            ends: (100.0, 100.0),
            ..Scenario::default()
        },
        Scenario {
            name: "a rival that takes the released lease first is respected",
            initial: Some(record("", 0)),
            weather: vec![(0.0, 1.0, "update", slow(1))],
            deeds: vec![(0.5, |server, now| server.force(Some(&record("other", now))))],
            leads: Some((15.5, 22.0)),
            cancel_at: 100.0,
            ends: (100.0, 100.0),
            ..Scenario::default()
        },
        Scenario {
            name: "an API server that is away at the start is waited for",
            weather: vec![(0.0, 20.0, "", REFUSED)],
            leads: Some((20.0, 22.2)),
            ..Scenario::default()
        },
        Scenario {
            name: "a create whose reply was lost is found out and led",
            weather: vec![(0.0, 1.0, "create", REPLY_LOST)],
            leads: Some((2.0, 4.4)),
            ..Scenario::default()
        },
        Scenario {
            name: "a create whose reply never comes is found out and led",
            weather: vec![(0.0, 1.0, "create", REPLY_SILENT)],
            leads: Some((7.0, 9.4)),
            ..Scenario::default()
        },
        Scenario {
            name: "an outage of 7 seconds while leading is survived",
            weather: vec![(20.5, 7.0, "", REFUSED)],
            ..Scenario::default()
        },
        Scenario {
            name: "updates refused for a while fall back to reading and are survived",
            weather: vec![(20.5, 7.0, "update", REFUSED)],
            ..Scenario::default()
        },
        Scenario {
            name: "replies lost for a while are survived",
            weather: vec![(20.5, 7.0, "", REPLY_LOST)],
            ..Scenario::default()
        },
        Scenario {
            name: "calls that take 4 seconds each are survived",
            weather: vec![(20.5, 30.0, "", slow(4))],
            ..Scenario::default()
        },
        Scenario {
            name: "one renewal that hangs is survived",
            weather: vec![(20.5, 2.0, "update", SILENT)],
            ..Scenario::default()
        },
        Scenario {
            name: "refused for longer than the renew deadline, leadership ends one deadline after the last renewal",
            weather: vec![(20.5, 100.0, "", REFUSED)],
            ends: (30.0, 30.0),
            outcome: deadline("get lease kube-system/cronjob-controller: connection refused"),
            holder: Some("me"),
            ..Scenario::default()
        },
        Scenario {
            name: "when every call hangs, leadership ends just as punctually",
            weather: vec![(20.5, 100.0, "", SILENT)],
            ends: (30.0, 30.0),
            outcome: deadline("no attempt to renew was answered in time"),
            holder: Some("me"),
            ..Scenario::default()
        },
        Scenario {
            name: "renewals that arrive but are never confirmed do not count",
            weather: vec![(20.5, 100.0, "", REPLY_SILENT)],
            ends: (30.0, 30.0),
            outcome: deadline("no attempt to renew was answered in time"),
            holder: Some("me"),
            ..Scenario::default()
        },
        Scenario {
            name: "a leader that finds another's name in the lease stops at once",
            deeds: vec![(21.0, |server, now| server.force(Some(&record("other", now))))],
            ends: (22.0, 22.0),
            outcome: taken_by_other(),
            holder: Some("other"),
            ..Scenario::default()
        },
        Scenario {
            name: "a lease that was deleted under a leader is created again",
            deeds: vec![(21.0, |server, _| server.force(None))],
            ..Scenario::default()
        },
        Scenario {
            name: "a lease whose holder was cleared under a leader is taken again",
            deeds: vec![(21.0, |server, now| server.force(Some(&record("", now))))],
            ..Scenario::default()
        },
        Scenario {
            name: "a standby that is cancelled leaves the lease alone",
            initial: Some(record("other", 0)),
            cancel_at: 5.0,
            leads: None,
            ends: (5.0, 5.0),
            outcome: Outcome::Cancelled,
            holder: Some("other"),
            ..Scenario::default()
        },
        Scenario {
            name: "a leader told to keep the lease keeps it",
            release: false,
            outcome: Outcome::Cancelled,
            holder: Some("me"),
            ..Scenario::default()
        },
        Scenario {
            name: "a leader that is cancelled does not wipe out the one who took over meanwhile",
            deeds: vec![(59.9, |server, now| server.force(Some(&record("other", now))))],
            cancel_at: 59.95,
            ends: (59.95, 59.95),
            outcome: Outcome::Cancelled,
            holder: Some("other"),
            ..Scenario::default()
        },
        Scenario {
            name: "a renewal still under way when cancelled does not undo the release",
            weather: vec![(59.5, 1.0, "update", slow(1))],
            cancel_at: 60.5,
            ends: (60.5, 60.5),
            ..Scenario::default()
        },
        Scenario {
            name: "a renewal that arrives between the reads and the write of a release is overcome",
            weather: vec![
                (59.5, 1.0, "update", slow(1)),
                (60.4, 0.5, "get", Fault { after: Duration::from_secs(1), ..OK }),
            ],
            cancel_at: 60.5,
            ends: (61.5, 61.5),
            ..Scenario::default()
        },
        Scenario {
            name: "a release whose reply was lost counts as released",
            weather: vec![(60.5, 10.0, "update", REPLY_LOST)],
            cancel_at: 61.0,
            ends: (61.0, 61.0),
            ..Scenario::default()
        },
        Scenario {
            name: "a release that is never answered ends within the renew deadline",
            weather: vec![(60.5, 100.0, "", SILENT)],
            cancel_at: 61.0,
            ends: (71.0, 71.0),
            outcome: Outcome::Cancelled,
            holder: Some("me"),
            ..Scenario::default()
        },
        Scenario {
            name: "a candidate cancelled while its create is under way cleans up after itself",
            weather: vec![(0.0, 0.5, "create", Fault { after: Duration::from_secs(3), ..OK })],
            cancel_at: 1.0,
            leads: None,
            ends: (1.0, 1.0),
            ..Scenario::default()
        },
    ]
}

fn network(weather: Vec<Weather>) -> Network {
    let started = Instant::now();
    Box::new(move |operation| {
        let now = started.elapsed().as_secs_f64();
        let hit = |(from, length, kind, _): &&Weather| {
            *from <= now && now < from + length && (kind.is_empty() || *kind == operation)
        };
        weather.iter().find(hit).map_or(OK, |(_, _, _, fault)| *fault)
    })
}

async fn play(scenario: Scenario) {
    let name = scenario.name;
    let started = Instant::now();
    let server = FakeServer::default();
    if let Some(record) = &scenario.initial {
        server.force(Some(record));
    }
    for (at, deed) in scenario.deeds {
        let server = server.clone();
        tokio::spawn(async move {
            sleep(Duration::from_secs_f64(at)).await;
            #[allow(clippy::cast_possible_truncation)]
            deed(&server, at as i64);
        });
    }
    let cancel = CancellationToken::new();
    let canceller = cancel.clone();
    tokio::spawn(async move {
        sleep(Duration::from_secs_f64(scenario.cancel_at)).await;
        canceller.cancel();
    });

    let mut elector = elector("me", FakeLock::new(&server, network(scenario.weather)), Hooks::default());
    elector.config.release_on_cancel = scenario.release;
    let led = Arc::new(Mutex::new(None));
    let note = led.clone();
    let outcome = elector.run(cancel, move |leadership| *note.lock() = Some((started.elapsed(), leadership))).await;

    let ended = started.elapsed().as_secs_f64();
    let led = led.lock().take();
    let led_at = led.as_ref().map(|(at, _)| at.as_secs_f64());
    let within = |t: f64, (from, to): (f64, f64)| from - 0.01 <= t && t <= to + 0.01;
    match (led_at, scenario.leads) {
        (None, None) => {}
        (Some(at), Some(span)) if within(at, span) => {}
        (got, want) => panic!("{name}: leads at {got:?}, want {want:?}"),
    }
    assert_eq!(outcome, scenario.outcome, "{name}");
    assert!(within(ended, scenario.ends), "{name}: ended at {ended}, want {:?}", scenario.ends);
    assert!(led.is_none_or(|(_, leadership)| !leadership.is_valid_now()), "{name}: leadership outlives the run");
    // Requests that are still in flight may arrive now.
    sleep(Duration::from_secs(10)).await;
    assert_eq!(server.holder().as_deref(), scenario.holder, "{name}");
}

#[tokio::test(start_paused = true)]
async fn scenarios_of_one_elector() {
    for scenario in scenarios() {
        play(scenario).await;
    }
}

#[tokio::test(start_paused = true)]
async fn transitions_and_times_are_written_as_client_go_writes_them() {
    let server = FakeServer::default();
    server.force(Some(&record("", 0)));
    let cancel = CancellationToken::new();
    let run = elector("me", FakeLock::new(&server, network(vec![])), Hooks::default());
    let clock = run.clock.clone();
    let task = tokio::spawn(run.run(cancel.clone(), |_| {}));
    sleep(Duration::from_secs(11)).await;
    let held = server.record().unwrap();
    assert_eq!((held.leader_transitions, held.lease_duration_seconds), (2, 15));
    assert_eq!(held.acquire_time, Some(start_of_time()));
    assert_eq!(held.renew_time, Some(clock.now() - TimeDelta::seconds(1)), "the last of five renewals");
    cancel.cancel();
    assert_eq!(task.await.unwrap(), Outcome::Released);
    let left = server.record().unwrap();
    assert_eq!((left.leader_transitions, left.lease_duration_seconds), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn hooks_are_called_in_order() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let tell = |what: &'static str| {
        let heard = heard.clone();
        move |detail: String| heard.lock().push(format!("{what} {detail}"))
    };
    let (status, slow, event, leader) = (tell("status"), tell("slowpath"), tell("event"), tell("leader"));
    let hooks = Hooks {
        on_master_status: Some(Box::new(move |leads| status(leads.to_string()))),
        on_slowpath: Some(Box::new(move || slow(String::new()))),
        on_event: Some(Box::new(move |lease, note| event(format!("{}: {note}", lease.name.as_deref().unwrap())))),
        on_new_leader: Some(Box::new(move |who| leader(who.to_owned()))),
    };
    let lock = FakeLock::new(&FakeServer::default(), network(vec![(1.5, 1.0, "update", REFUSED)]));
    let cancel = CancellationToken::new();
    let task = tokio::spawn(elector("me", lock, hooks).run(cancel.clone(), |_| {}));
    sleep(Duration::from_secs(3)).await;
    cancel.cancel();
    task.await.unwrap();
    let want = [
        "status false",
        "leader me",
        "status true",
        "event cronjob-controller: me became leader",
        "slowpath ",
        "status false",
    ];
    let mut heard = heard.lock().clone();
    // The slow path's own update was refused too: it fell into the same second.
    heard.dedup();
    assert_eq!(heard, want);
}

#[tokio::test(start_paused = true)]
async fn the_health_check_fails_only_for_a_leader_long_past_its_lease() {
    let server = FakeServer::default();
    let standby = elector("standby", FakeLock::new(&server, network(vec![])), Hooks::default());
    let elector = elector("me", FakeLock::new(&server, network(vec![(10.5, 1_000.0, "", SILENT)])), Hooks::default());
    let health = [standby.healthz_adaptor(Duration::from_secs(20)), elector.healthz_adaptor(Duration::from_secs(20))];
    assert_eq!(health.clone().map(|h| h.check()), [Ok(()), Ok(())], "before the election");
    let started = Instant::now();
    tokio::spawn(elector.run(CancellationToken::new(), |_| {}));
    // The last renewal is at 10 s, the lease runs out at 25 s, and 20 s are tolerated.
    sleep_until(started + Duration::from_millis(44_900)).await;
    assert_eq!(health.clone().map(|h| h.check()), [Ok(()), Ok(())], "within what is tolerated");
    sleep_until(started + Duration::from_millis(45_100)).await;
    let failed = Err("failed election to renew leadership on lease cronjob-controller".to_owned());
    assert_eq!(health.map(|h| h.check()), [Ok(()), failed], "the standby stays healthy");
}

#[tokio::test(start_paused = true)]
async fn leadership_expires_after_its_elector_is_dropped() {
    let lock = FakeLock::new(&FakeServer::default(), network(vec![]));
    let kept = Arc::new(Mutex::new(None));
    let note = kept.clone();
    let task = tokio::spawn(
        elector("me", lock, Hooks::default())
            .run(CancellationToken::new(), move |leadership| *note.lock() = Some(leadership)),
    );
    sleep(Duration::from_secs(5)).await;
    let leadership = kept.lock().take().unwrap();
    assert!(leadership.is_valid_now());
    assert_eq!(leadership.deadline(), Instant::now() + Duration::from_secs(9), "one deadline after the last renewal");
    task.abort();
    sleep(Duration::from_secs(9)).await;
    assert!(!leadership.is_valid_now());
}

#[tokio::test(start_paused = true)]
async fn leadership_is_counted_from_the_start_of_a_write_and_not_from_its_answer() {
    let late_answer = Fault { after: Duration::from_secs(4), ..OK };
    let no_more = (3.0, 60.0, "", REFUSED);
    let cases = [
        ("a create", None, (0.0, 1.0, "create", late_answer), 0),
        ("a takeover", Some(record("", 0)), (0.0, 1.0, "update", late_answer), 0),
        ("a renewal", None, (1.0, 3.0, "update", late_answer), 2),
    ];
    for (name, initial, late, counted_from) in cases {
        let server = FakeServer::default();
        server.force(initial.as_ref());
        let lock = FakeLock::new(&server, network(vec![late, no_more]));
        let began = Instant::now();
        let kept = Arc::new(Mutex::new(None));
        let note = kept.clone();
        let elector = elector("me", lock, Hooks::default());
        tokio::spawn(elector.run(CancellationToken::new(), move |leadership| *note.lock() = Some(leadership)));
        sleep(Duration::from_secs(7)).await;
        let leadership = kept.lock().take().unwrap();
        let started = began + Duration::from_secs(counted_from);
        assert_eq!(leadership.deadline(), started + Duration::from_secs(10), "{name}");
        assert_eq!(leadership.lease_end(), Some(started + Duration::from_secs(15)), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn leadership_without_an_election_is_always_valid() {
    let leadership = Leadership::unconditional();
    sleep(Duration::from_secs(86_400 * 365)).await;
    assert!(leadership.is_valid_now());
    assert!(leadership.deadline() > Instant::now());
}

/// A network that causes each kind of fault to a call with the given probability.
fn storm(seed: u64, harm: f64, calm_from: Instant) -> Network {
    let mut rng = StdRng::seed_from_u64(seed);
    Box::new(move |_| {
        if Instant::now() >= calm_from || !rng.random_bool(harm) {
            return OK;
        }
        let lost = match rng.random_range(0..8) {
            0 => Lost::Refused,
            1 => Lost::Request,
            2 => Lost::Reply,
            3 => Lost::ReplyInSilence,
            _ => Lost::Nothing,
        };
        let mut delay = || Duration::from_millis(rng.random_range(0..2u64) * rng.random_range(0..20_000));
        Fault { before: delay(), after: delay(), lost }
    })
}

#[derive(Default)]
struct Tally {
    takeovers: usize,
    terms: Vec<(String, Leadership)>,
}

impl Tally {
    /// A new term may begin only when no other replica may begin a write, and when every lease that was not released in order
    /// has expired. So writes of the last leader that began in time have had their time to end.
    fn begin(&mut self, who: &str, leadership: Leadership) {
        let now = Instant::now();
        for (other, theirs) in &self.terms {
            assert!(!theirs.is_valid_now(), "{who} begins to lead while {other} may still write");
            assert!(
                theirs.lease_end().is_none_or(|end| end <= now),
                "{who} begins to lead within the lease of {other}"
            );
        }
        if self.terms.last().is_some_and(|(last, _)| last != who) {
            self.takeovers += 1;
        }
        self.terms.push((who.to_owned(), leadership));
    }
}

/// One replica: contends, is cancelled occasionally, and returns under a new identity after each run.
async fn replica(index: u64, seed: u64, harm: f64, server: FakeServer, calm_from: Instant, tally: Arc<Mutex<Tally>>) {
    let mut rng = StdRng::seed_from_u64(seed ^ (index << 32));
    for life in 0u64.. {
        let identity = format!("replica-{index}-{life}");
        let lock = FakeLock::new(&server, storm(rng.random(), harm, calm_from));
        let clock = TestClock::new(start_of_time() + TimeDelta::seconds(rng.random_range(-4_000_000..4_000_000)));
        let elector = LeaderElector::new(
            config(&identity),
            lock,
            clock.clone(),
            Hooks::default(),
            StdRng::seed_from_u64(rng.random()),
        )
        .unwrap();
        let cancel = CancellationToken::new();
        let note = tally.clone();
        let who = identity.clone();
        let run = elector.run(cancel.clone(), move |leadership| note.lock().begin(&who, leadership));
        tokio::pin!(run);
        let lifetime = Duration::from_millis(rng.random_range(1_000..120_000));
        let stepped_at = lifetime.mul_f64(rng.random());
        let leave = Instant::now() + lifetime;
        // After the storm no replica leaves any more.
        let leaves = leave < calm_from;
        let crash = rng.random_bool(0.5);
        tokio::select! {
            _ = &mut run => {}
            () = async { sleep(stepped_at).await; clock.step(TimeDelta::seconds(-30)); sleep_until(leave).await },
                if leaves => {
                if !crash {
                    cancel.cancel();
                    run.await;
                }
                // A crash drops the elector in whatever state it is; its leadership must expire on its own.
            }
        }
    }
}

async fn weather_a_storm(seed: u64, replicas: u64, harm: f64) -> (usize, usize) {
    let calm_from = Instant::now() + Duration::from_secs(600);
    let server = FakeServer::default();
    let tally = Arc::new(Mutex::new(Tally::default()));
    let tasks: Vec<_> =
        (0..replicas).map(|i| tokio::spawn(replica(i, seed, harm, server.clone(), calm_from, tally.clone()))).collect();
    let check = |when: &str| {
        let tally = tally.lock();
        let valid = tally.terms.iter().filter(|(_, leadership)| leadership.is_valid_now()).count();
        assert!(valid <= 1, "{when}: {valid} may write at once");
        valid
    };
    while Instant::now() < calm_from + Duration::from_secs(90) {
        sleep(Duration::from_millis(250)).await;
        check("in the storm");
    }
    assert_eq!(check("after the storm"), 1, "without faults one candidate leads");
    for task in tasks {
        assert!(!task.is_finished(), "a replica panicked");
        task.abort();
    }
    let tally = tally.lock();
    (tally.terms.len(), tally.takeovers)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn two_or_three_electors_never_lead_at_one_instant(seed: u64, replicas in 2u64..=3, harm in 0.0..0.9f64) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (terms, takeovers) = runtime.block_on(weather_a_storm(seed, replicas, harm));
        prop_assert!(terms >= 1);
        prop_assert!(takeovers < terms);
    }
}

#[test]
fn injected_faults_change_leaders() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (terms, takeovers) = runtime.block_on(weather_a_storm(7, 3, 0.5));
    assert!(terms > 5 && takeovers > 3, "{terms} terms, {takeovers} takeovers");
}

/// The leader's clock is set back by 30 s. 30 s later it renews with the record that the other candidate, cut off in between,
/// saw last.
#[test]
fn renewal_with_an_earlier_record_is_recognised() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(weather_a_storm(8_561_234_171_411_337_684, 2, 0.230_958_440_736_789_5));
}

#[tokio::test(start_paused = true)]
async fn leader_knows_whether_its_predecessor_released_the_lease() {
    let without_holder = LeaderElectionRecord { holder_identity: String::new(), ..record("other", 0) };
    let rows = [
        ("there was no lease", None, Takeover::First),
        ("it was given up", Some(record("", 0)), Takeover::Released),
        ("its holder was taken out by hand", Some(without_holder), Takeover::RanOutInSilence),
        ("it ran out", Some(record("other", 0)), Takeover::RanOutInSilence),
    ];
    for (sentence, before, want) in rows {
        let server = FakeServer::default();
        server.force(before.as_ref());
        let lock = FakeLock::new(&server, network(vec![]));
        let (elected, leadership) = tokio::sync::oneshot::channel();
        let cancel = CancellationToken::new();
        let running = tokio::spawn(elector("me", lock, Hooks::default()).run(cancel.clone(), |leadership| {
            let _ = elected.send(leadership);
        }));
        assert_eq!(leadership.await.unwrap().takeover(), want, "{sentence}");
        cancel.cancel();
        let _ = running.await;
    }
}

/// An attempt reads the lease and cannot write it, and the next one finds it left in another way.
#[tokio::test(start_paused = true)]
async fn leader_knows_the_worst_of_the_ways_in_which_its_attempts_found_the_lease() {
    fn gives_up(server: &FakeServer, now: i64) {
        server.force(Some(&record("", now)));
    }
    fn goes_away(server: &FakeServer, _: i64) {
        server.force(None);
    }
    // (sentence, the lease, until when it cannot be written, what happens to it, what the leader knows)
    let rows: [(&str, &str, f64, Deed, Takeover); 5] = [
        ("it ran out, and another took it and gave it up", "other", 20.5, (20.0, gives_up), Takeover::RanOutInSilence),
        ("it ran out, and was deleted", "other", 20.5, (20.0, goes_away), Takeover::RanOutInSilence),
        (
            "it was given up, and another took it and let it run out",
            "",
            5.5,
            (5.0, renew_other),
            Takeover::RanOutInSilence,
        ),
        ("it was given up, and again", "", 5.5, (5.0, gives_up), Takeover::Released),
        ("it was given up, and was deleted", "", 5.5, (5.0, goes_away), Takeover::RanOutInSilence),
    ];
    for (sentence, holder, unwritable, (at, deed), want) in rows {
        let server = FakeServer::default();
        server.force(Some(&record(holder, 0)));
        let lock = FakeLock::new(&server, network(vec![(0.0, unwritable, "update", REFUSED)]));
        let (elected, leadership) = tokio::sync::oneshot::channel();
        let cancel = CancellationToken::new();
        let running = tokio::spawn(elector("me", lock, Hooks::default()).run(cancel.clone(), |leadership| {
            let _ = elected.send(leadership);
        }));
        sleep(Duration::from_secs_f64(at)).await;
        #[allow(clippy::cast_possible_truncation)]
        deed(&server, at as i64);
        assert_eq!(leadership.await.unwrap().takeover(), want, "{sentence}");
        cancel.cancel();
        let _ = running.await;
    }
}

#[tokio::test(start_paused = true)]
async fn leader_is_followed_once_its_work_was_silent_for_a_minute() {
    for (silence, is_lost) in [(20, false), (90, true)] {
        let (start, server) = (Instant::now(), FakeServer::default());
        let (from, until) = (start + Duration::from_secs(100), start + Duration::from_secs(100 + silence));
        let last_sign = move || if Instant::now() < until { Instant::now().min(from) } else { Instant::now() };
        let run = |identity| {
            let lock = FakeLock::new(&server, network(vec![]));
            let elected = move |leadership: Leadership| {
                if identity == "me" {
                    leadership.depends_on(move || Some(last_sign()));
                }
            };
            let elector = elector(identity, lock, Hooks::default());
            tokio::spawn(async move { (elector.run(CancellationToken::new(), elected).await, start.elapsed()) })
        };
        let leader = run("me");
        sleep(Duration::from_secs(1)).await;
        let standby = run("other");
        sleep(Duration::from_secs(250)).await;
        assert_eq!(leader.is_finished(), is_lost, "silent for {silence} s");
        assert_eq!(server.holder().as_deref(), Some(if is_lost { "other" } else { "me" }), "silent for {silence} s");
        standby.abort();
        if is_lost {
            let (outcome, after) = leader.await.unwrap();
            assert_eq!(outcome, Outcome::Lost(Loss::NoSignOfLife));
            assert!((160..=162).contains(&after.as_secs()), "lost after {after:?}");
        } else {
            leader.abort();
        }
    }
}

/// The leader renews for the last time just after the standby's watch has ended.
#[tokio::test(start_paused = true)]
async fn lease_is_taken_in_time_though_the_watch_ended_just_before_its_last_renewal() {
    let (start, server) = (Instant::now(), FakeServer::default());
    server.force(Some(&record("other", 0)));
    let lock = FakeLock::new(&server, network(vec![(0.0, 5.0, "watch", REFUSED)]));
    let (elected, leadership) = tokio::sync::oneshot::channel();
    let running = tokio::spawn(elector("me", lock, Hooks::default()).run(CancellationToken::new(), |leadership| {
        let _ = elected.send(leadership);
    }));
    for renewal in 1..10 {
        sleep_until(start + Duration::from_secs(2 * renewal)).await;
        renew_other(&server, 2 * i64::try_from(renewal).unwrap());
    }
    sleep_until(start + Duration::from_secs_f64(20.1)).await;
    renew_other(&server, 20);
    leadership.await.unwrap();
    assert!(start.elapsed() < Duration::from_secs_f64(35.5), "taken after {:?}", start.elapsed());
    running.abort();
}

/// Another process won a lease that both found released. What it leaves behind counts, and not what was found before.
#[tokio::test(start_paused = true)]
async fn what_a_lost_race_found_is_forgotten_while_another_holds_the_lease() {
    type Change = fn(&FakeServer, i64);

    fn goes_away(server: &FakeServer, _: i64) {
        server.force(None);
    }
    fn gives_up(server: &FakeServer, now: i64) {
        server.force(Some(&record("", now)));
    }
    let rows: [(&str, &str, Change, Takeover); 3] = [
        ("it found the lease released, and then it was deleted", "", goes_away, Takeover::RanOutInSilence),
        ("it found it run out, and then it was released", "other", gives_up, Takeover::Released),
        ("it found it released, and then it was released", "", gives_up, Takeover::Released),
    ];
    for (sentence, holder, deed, want) in rows {
        let server = FakeServer::default();
        server.force(Some(&record(holder, 0)));
        let lock = FakeLock::new(&server, network(vec![(0.0, 19.0, "update", REFUSED)]));
        let (elected, leadership) = tokio::sync::oneshot::channel();
        let running = tokio::spawn(elector("me", lock, Hooks::default()).run(CancellationToken::new(), |leadership| {
            let _ = elected.send(leadership);
        }));
        sleep(Duration::from_secs(18)).await;
        for now in [18, 20, 22] {
            renew_other(&server, now);
            sleep(Duration::from_secs(2)).await;
        }
        deed(&server, 24);
        assert_eq!(leadership.await.unwrap().takeover(), want, "{sentence}");
        running.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn leader_that_wakes_up_after_its_lease_has_ended_writes_nothing_more() {
    let seconds = Duration::from_secs;
    let rows = [("shorter than the deadline to renew", 5, Some(9)), ("longer", 12, None), ("for an hour", 3_600, None)];
    for (sentence, asleep, left) in rows {
        let (server, clock) = (FakeServer::default(), TestClock::new(start_of_time()));
        let lock = FakeLock::new(&server, network(vec![]));
        let shared: SharedClock = clock.clone();
        let elector =
            LeaderElector::new(config("me"), lock, shared, Hooks::default(), StdRng::seed_from_u64(1)).unwrap();
        let (elected, leadership) = tokio::sync::oneshot::channel();
        let running = tokio::spawn(elector.run(CancellationToken::new(), |leadership| {
            let _ = elected.send(leadership);
        }));
        let leadership = leadership.await.unwrap();
        // The last renewal was a second ago.
        sleep(seconds(11)).await;
        clock.suspend(seconds(asleep));
        assert_eq!(leadership.time_left().map(|left| left.usual), left.map(seconds), "{sentence}: on waking up");
        sleep(seconds(2)).await;
        assert_eq!(running.is_finished(), left.is_none(), "{sentence}");
        assert_eq!(leadership.is_valid_now(), left.is_some(), "{sentence}");
        running.abort();
    }
}

/// A leader announces a create for a slot that timed out, and dies; its standby reads when that has ended.
#[tokio::test(start_paused = true)]
async fn a_create_that_outlives_the_lease_is_announced_before_it_is_sent() {
    let seconds = Duration::from_secs;
    // (sentence, whether a create is announced, seconds of the lease and until the renewal must have succeeded, for how long
    // creates of the dead leader are open after its last renewal)
    let rows = [
        ("none", false, (15, 10), 0),
        ("one of a slot that timed out", true, (15, 10), 36 + 6),
        ("none, but the lease is short", false, (3, 2), 2 + 5),
    ];
    for (sentence, announces, (lease, renewal), open) in rows {
        let server = FakeServer::default();
        server.force(Some(&record("", 0)));
        let config = |who| Config {
            lease_duration: seconds(lease),
            renew_deadline: seconds(renewal),
            retry_period: seconds(1),
            ..config(who)
        };
        let lead = |who| {
            let lock = FakeLock::new(&server, network(vec![]));
            let (rng, clock) = (StdRng::seed_from_u64(1), TestClock::new(start_of_time()));
            let elector = LeaderElector::new(config(who), lock, clock, Hooks::default(), rng).unwrap();
            let (elected, leadership) = tokio::sync::oneshot::channel();
            let run = elector.run(CancellationToken::new(), |leadership| {
                let _ = elected.send(leadership);
            });
            (tokio::spawn(run), leadership)
        };
        let (leader, leadership) = lead("me");
        let leadership = leadership.await.unwrap();
        let usual = leadership.time_left().unwrap();
        assert_eq!(usual.usual, seconds(lease.max(renewal + 5)), "{sentence}");
        assert_eq!(usual.announced, usual.usual, "{sentence}");
        sleep(Duration::from_millis(500)).await;
        let announced = Instant::now();
        if announces {
            let announce = async || {
                leadership.announce(seconds(36)).await;
                let lease = server.get().unwrap();
                let written = open_creates::read(&lease, &LeaderElectionRecord::from_lease(&lease));
                assert!(written >= Some(seconds(36)), "{sentence}: {written:?}");
                assert!(leadership.time_left().unwrap().announced >= seconds(36), "{sentence}");
            };
            tokio::join!(announce(), announce());
            assert_eq!(announced.elapsed(), Duration::ZERO, "{sentence}: the next renewal is not waited for");
            leadership.announce(seconds(36)).await;
        }
        let (standby, next) = lead("other");
        sleep(Duration::from_millis(100)).await;
        leader.abort();
        let takeover = next.await.unwrap().takeover();
        assert_eq!(takeover, Takeover::RanOut(announced + seconds(open)), "{sentence}");
        standby.abort();
    }
}

/// A candidate: how it ends, when it leads, and what stops it.
fn candidate(
    who: &str,
    server: &FakeServer,
) -> (JoinHandle<Outcome>, tokio::sync::oneshot::Receiver<Leadership>, CancellationToken) {
    let (elected, leadership) = tokio::sync::oneshot::channel();
    let cancel = CancellationToken::new();
    let elector = elector(who, FakeLock::new(server, network(vec![])), Hooks::default());
    let run = elector.run(cancel.clone(), |leadership| {
        let _ = elected.send(leadership);
    });
    (tokio::spawn(run), leadership, cancel)
}

/// The leader before has said in the lease that no create of it is open after its end.
#[tokio::test(start_paused = true)]
async fn leader_that_is_stopped_soon_after_a_takeover_releases_the_lease() {
    let server = FakeServer::default();
    server.force(Some(&record("", 0)));
    let (first, leadership, _) = candidate("first", &server);
    leadership.await.unwrap();
    sleep(Duration::from_secs(1)).await;
    first.abort();
    let (second, leadership, cancel) = candidate("second", &server);
    assert!(matches!(leadership.await.unwrap().takeover(), Takeover::RanOut(_)));
    let (third, leadership, _) = candidate("third", &server);
    sleep(Duration::from_secs(1)).await;
    let stopped = Instant::now();
    cancel.cancel();
    assert_eq!(second.await.unwrap(), Outcome::Released);
    assert_eq!(leadership.await.unwrap().takeover(), Takeover::Released);
    assert!(stopped.elapsed() < Duration::from_millis(100), "{:?}", stopped.elapsed());
    third.abort();
}

/// Two leaders die, one soon after the other.
#[tokio::test(start_paused = true)]
async fn what_is_open_of_one_leader_is_known_to_all_that_follow() {
    // (sentence, the first lease, whether it is deleted after three seconds, whether the second leader is told to stop, how long
    // creates of the first are open at most)
    let rows = [
        ("the lease said nothing", Some(record("other", 0)), false, false, 15 + 39),
        ("the same, and the second one is stopped", Some(record("other", 0)), false, true, 15 + 39),
        ("the lease was deleted", None, false, false, 39),
        ("the same, after it was seen", Some(record("other", 0)), true, false, 3 + 39),
        ("the same, and the second one is stopped", Some(record("other", 0)), true, true, 3 + 39),
    ];
    for (sentence, first, is_deleted, is_stopped, open) in rows {
        let (start, server) = (Instant::now(), FakeServer::default());
        server.force(first.as_ref());
        let (second, leadership, cancel) = candidate("second", &server);
        if is_deleted {
            sleep(Duration::from_secs(3)).await;
            server.force(None);
        }
        leadership.await.unwrap();
        sleep(Duration::from_secs(1)).await;
        let (third, next, _) = candidate("third", &server);
        sleep(Duration::from_millis(100)).await;
        if is_stopped {
            cancel.cancel();
            assert_eq!(second.await.unwrap(), Outcome::Cancelled, "{sentence}: the lease is not released");
        } else {
            second.abort();
        }
        let Takeover::RanOut(end) = next.await.unwrap().takeover() else { panic!("{sentence}") };
        // Each counts from its first sight of the lease, in whole seconds.
        assert!((open..open + 6).contains(&(end - start).as_secs()), "{sentence}: {:?}", end - start);
        third.abort();
    }
}
