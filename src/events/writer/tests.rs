//! The recorder and its task on paused time, with a scripted server.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use apimachinery::clock::TestClock;
use chrono::TimeDelta;
use kube::core::Status;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::super::tests::{at as second, cron_job};
use super::super::{CorrelatorOptions, EventRecorder, EventType, Recorder};
use super::*;

/// A request as the server received it.
#[derive(Clone, Debug)]
struct Call {
    verb: &'static str,
    event: Event,
    /// Since the start of the test.
    after: Duration,
}

type Script = dyn Fn(&Call, usize) -> (Duration, Result<(), SinkFault>) + Send + Sync;

/// A server whose script decides each response and its delay.
#[derive(Clone)]
struct FakeSink {
    script: Arc<Script>,
    calls: Arc<Mutex<Vec<Call>>>,
    in_flight: Arc<Mutex<(usize, usize)>>,
    started: Instant,
}

impl FakeSink {
    async fn call(&self, verb: &'static str, event: &Event) -> Result<(), SinkError> {
        let call = Call { verb, event: event.clone(), after: self.started.elapsed() };
        let earlier = self.calls.lock().len();
        self.calls.lock().push(call.clone());
        let (delay, answer) = (self.script)(&call, earlier);
        {
            let (now, most) = &mut *self.in_flight.lock();
            *now += 1;
            *most = (*most).max(*now);
        }
        sleep(delay).await;
        self.in_flight.lock().0 -= 1;
        answer.map_err(|fault| SinkError::new(verb, event, fault))
    }
}

impl EventSink for FakeSink {
    async fn create(&self, event: &Event) -> Result<(), SinkError> {
        self.call("create", event).await
    }

    async fn patch(&self, event: &Event) -> Result<(), SinkError> {
        self.call("patch", event).await
    }
}

/// A running recorder.
struct World {
    recorder: Recorder,
    sink: FakeSink,
    discarded: Arc<Mutex<BTreeMap<&'static str, usize>>>,
    clock: Arc<TestClock>,
    cancel: CancellationToken,
    task: JoinHandle<usize>,
}

impl World {
    fn new(
        config: Config,
        script: impl Fn(&Call, usize) -> (Duration, Result<(), SinkFault>) + Send + Sync + 'static,
    ) -> Self {
        Self::with(config, script, |task| task)
    }

    fn with(
        config: Config,
        script: impl Fn(&Call, usize) -> (Duration, Result<(), SinkFault>) + Send + Sync + 'static,
        adjust: impl FnOnce(EventSinkTask) -> EventSinkTask,
    ) -> Self {
        let calls = Arc::default();
        let sink = FakeSink { script: Arc::new(script), calls, in_flight: Arc::default(), started: Instant::now() };
        let discarded = Arc::new(Mutex::new(BTreeMap::new()));
        let clock = TestClock::new(second(0));
        let count = discarded.clone();
        let (recorder, task) = Recorder::new(config, clock.clone(), move |reason| {
            *count.lock().entry(reason).or_insert(0) += 1;
        });
        let cancel = CancellationToken::new();
        let task = tokio::spawn(adjust(task).run(sink.clone(), cancel.clone()));
        Self { recorder, sink, discarded, clock, cancel, task }
    }

    /// A server that accepts every request at once.
    fn willing() -> Self {
        Self::new(config(), |_, _| (Duration::ZERO, Ok(())))
    }

    fn record(&self, name: &str, reason: &'static str, message: impl Into<String>) {
        self.recorder.event(&cron_job(name), EventType::Normal, reason, message.into());
    }

    /// Advances the time by this many seconds.
    async fn pass(&self, seconds: u64) {
        sleep(Duration::from_secs(seconds) + Duration::from_millis(1)).await;
    }

    /// The requests: verb, object, count and message.
    fn asked(&self) -> Vec<String> {
        let line = |call: &Call| {
            let event = &call.event;
            format!("{} {} {} {}", call.verb, event.involved_object.name, event.count, event.message)
        };
        self.sink.calls.lock().iter().map(line).collect()
    }

    fn discarded(&self) -> Vec<(&'static str, usize)> {
        self.discarded.lock().iter().map(|(reason, count)| (*reason, *count)).collect()
    }

    /// Stops the task; returns how many events it dropped, and how long that took.
    async fn stop(self) -> (usize, Duration) {
        let asked = Instant::now();
        self.cancel.cancel();
        (self.task.await.unwrap(), asked.elapsed())
    }
}

fn config() -> Config {
    Config { seed: Some(1), ..Config::default() }
}

/// Without combining and without a budget, to test only the writing.
fn plain() -> Config {
    let correlator =
        CorrelatorOptions { max_events: usize::MAX, spam_burst: 1_000_000, ..CorrelatorOptions::default() };
    Config { correlator, ..config() }
}

fn refused(code: u16, reason: &str) -> Result<(), SinkFault> {
    Err(SinkFault::Status(Status::failure("no", reason).with_code(code).boxed()))
}

#[tokio::test(start_paused = true)]
async fn a_repeated_event_is_created_once_and_then_patched_with_its_count() {
    let world = World::willing();
    for _ in 0..3 {
        world.record("cj", "Again", "m");
        world.pass(10).await;
    }
    assert_eq!(world.asked(), ["create cj 1 m", "patch cj 2 m", "patch cj 3 m"]);
    let calls = world.sink.calls.lock().clone();
    assert!(calls.iter().all(|call| call.event.name == calls[0].event.name));
    assert_eq!(calls[2].event.first_timestamp, second(0));
    assert_eq!(calls[2].event.last_timestamp.signed_duration_since(second(0)).num_seconds(), 20);
    assert!(world.discarded().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_patch_of_an_event_that_is_gone_creates_it_anew() {
    let world = World::new(config(), |call, _| {
        (Duration::ZERO, if call.verb == "patch" { refused(404, "NotFound") } else { Ok(()) })
    });
    world.record("cj", "Again", "m");
    world.record("cj", "Again", "m");
    world.pass(0).await;
    assert_eq!(world.asked(), ["create cj 1 m", "patch cj 2 m", "create cj 2 m"]);
    assert!(world.discarded().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_tenth_similar_event_is_combined() {
    let world = World::willing();
    for i in 1..=11 {
        world.record("cj", "Similar", format!("m{i}"));
    }
    world.pass(0).await;
    let asked = world.asked();
    assert_eq!(asked[8], "create cj 1 m9");
    assert_eq!(asked[9], "create cj 1 (combined from similar events): m10");
    assert_eq!(asked[10], "patch cj 2 (combined from similar events): m11");
}

#[tokio::test(start_paused = true)]
async fn what_exceeds_an_objects_budget_is_dropped_and_counted() {
    let world = World::willing();
    for _ in 0..30 {
        world.record("cj", "Again", "m");
    }
    world.record("other", "Again", "m");
    world.pass(0).await;
    assert_eq!(world.asked().len(), 26);
    assert_eq!(world.discarded(), [(discard::SPAM_FILTER, 5)]);
}

/// A hundred Events of a namespace whose webhook hangs, and then one of another.
#[tokio::test(start_paused = true)]
async fn events_of_a_namespace_that_hangs_delay_no_others_for_longer_than_one_try() {
    let config = Config { max_in_flight: 8, request_timeout: Duration::from_secs(4), ..plain() };
    let world = World::new(config, |call, _| {
        let is_hung = call.event.involved_object.name.starts_with("hung");
        (if is_hung { Duration::from_secs(60) } else { Duration::ZERO }, Ok(()))
    });
    let record = |namespace: &str, name: &str| {
        let mut about = cron_job(name);
        about.namespace = namespace.into();
        world.recorder.event(&about, EventType::Normal, "R", "m".into());
    };
    (0..100).for_each(|number| record("hangs", &format!("hung{number}")));
    world.pass(1).await;
    record("calm", "calm");
    world.pass(60).await;
    let calls = world.sink.calls.lock();
    let calm = calls.iter().find(|call| call.event.involved_object.name.starts_with("calm")).unwrap();
    assert_eq!(calm.after.as_secs(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_the_newest_counts_them_and_never_blocks() {
    let config = Config { max_queued: 5, max_pending: 3, max_in_flight: 1, ..plain() };
    let world = World::new(config, |_, _| (Duration::from_secs(5), Ok(())));
    for i in 0..3 {
        world.record(&format!("held{i}"), "R", "m");
    }
    world.pass(0).await;
    // The task holds three and accepts no more; five fit into the queue. `event` is not async: it cannot wait.
    for i in 0..100 {
        world.record(&format!("cj{i}"), "R", "m");
    }
    assert_eq!(world.discarded(), [(discard::QUEUE_FULL, 95)]);
    world.pass(60).await;
    let names: Vec<_> = world.asked().iter().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(names, ["held0", "held1", "held2", "cj0", "cj1", "cj2", "cj3", "cj4"]);
    assert_eq!(world.discarded(), [(discard::QUEUE_FULL, 95)]);
}

#[tokio::test(start_paused = true)]
async fn transient_errors_are_retried_up_to_twelve_attempts() {
    type Answer = fn() -> Result<(), SinkFault>;
    let rows: [(&str, Answer); 4] = [
        ("a server error", || refused(500, "InternalError")),
        ("overload", || refused(429, "TooManyRequests")),
        ("a broken connection", || Err(SinkFault::from(kube::Error::Service("connection reset".into())))),
        ("an answer in no known form", || refused(0, "")),
    ];
    for (row, answer) in rows {
        let world = World::new(config(), move |_, _| (Duration::ZERO, answer()));
        world.record("cj", "R", "m");
        world.pass(300).await;
        let calls = world.sink.calls.lock().clone();
        assert_eq!(calls.len(), 12, "{row}");
        let pauses: Vec<_> = calls.windows(2).map(|pair| pair[1].after.checked_sub(pair[0].after).unwrap()).collect();
        assert!(pauses[0] < Duration::from_secs(10), "{row}: the first pause is random");
        assert!(pauses[1..].iter().all(|pause| pause.as_millis().abs_diff(10_000) <= 5), "{row}: {pauses:?}");
        assert_eq!(world.discarded(), [(discard::GAVE_UP, 1)], "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn event_written_after_a_retry_has_the_time_of_recording() {
    let world = World::new(config(), |_, earlier| {
        (Duration::ZERO, if earlier < 3 { refused(500, "InternalError") } else { Ok(()) })
    });
    world.record("cj", "R", "m");
    world.clock.step(TimeDelta::hours(1));
    world.pass(60).await;
    let calls = world.sink.calls.lock().clone();
    assert_eq!(calls.len(), 4);
    assert_eq!(calls[3].event.last_timestamp, second(0));
    assert!(world.discarded().is_empty());
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_respected_up_to_a_minute() {
    for (asked, kept) in [(30, 30), (3, 10), (3600, 60)] {
        let world = World::new(config(), move |_, _| {
            let details = serde_json::from_value(serde_json::json!({"retryAfterSeconds": asked})).unwrap();
            let status = Status::failure("no", "TooManyRequests").with_code(429).with_details(details);
            (Duration::ZERO, Err(SinkFault::Status(status.boxed())))
        });
        world.record("cj", "R", "m");
        world.pass(200).await;
        let calls = world.sink.calls.lock().clone();
        let pause = calls[2].after.checked_sub(calls[1].after).unwrap();
        assert!(pause.as_millis().abs_diff(kept * 1000) <= 5, "asked for {asked}: {pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn refused_event_is_not_retried() {
    for (code, reason) in
        [(403, "Forbidden"), (409, "AlreadyExists"), (409, "Conflict"), (422, "Invalid"), (404, "NotFound")]
    {
        let world = World::new(config(), move |_, _| (Duration::ZERO, refused(code, reason)));
        world.record("cj", "R", "m");
        world.pass(300).await;
        assert_eq!(world.asked(), ["create cj 1 m"], "{code} {reason}");
        assert_eq!(world.discarded(), [(discard::REFUSED, 1)], "{code} {reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn already_exists_after_a_lost_answer_counts_as_written() {
    let world = World::new(config(), |_, earlier| match earlier {
        0 => (Duration::from_secs(3600), Ok(())),
        _ => (Duration::ZERO, refused(409, "AlreadyExists")),
    });
    world.record("cj", "R", "m");
    world.pass(60).await;
    assert_eq!(world.asked().len(), 2, "the first request was cut off, the second made");
    assert!(world.discarded().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_without_answer_is_cut_off_after_ten_seconds() {
    let world = World::new(config(), |_, _| (Duration::from_secs(3600), Ok(())));
    world.record("cj", "R", "m");
    world.pass(60).await;
    let calls = world.sink.calls.lock().clone();
    let second_pause = calls[2].after.checked_sub(calls[1].after).unwrap();
    assert_eq!(second_pause.as_millis() / 100, 200, "ten seconds for the request and ten of pause");
}

#[tokio::test(start_paused = true)]
async fn failing_event_delays_only_events_of_its_object() {
    let world = World::new(plain(), |call, _| match &*call.event.involved_object.name {
        "stuck" => (Duration::from_secs(3600), Ok(())),
        "broken" => (Duration::ZERO, refused(500, "InternalError")),
        _ => (Duration::from_millis(10), Ok(())),
    });
    world.record("stuck", "R", "first");
    world.record("broken", "R", "first");
    for i in 0..50 {
        world.record("stuck", "R", format!("{i}"));
        world.record("broken", "R", format!("{i}"));
        world.record(&format!("cj{i}"), "R", "m");
    }
    world.pass(1).await;
    let asked = world.asked();
    assert_eq!(asked.iter().filter(|line| line.starts_with("create cj")).count(), 50);
    assert!(asked.iter().all(|line| line.starts_with("create cj") || line.ends_with("first")));
}

#[tokio::test(start_paused = true)]
async fn an_objects_events_are_written_in_order_and_few_at_a_time() {
    // Every third request takes long, every fifth fails temporarily.
    let world = World::new(plain(), |_, earlier| {
        let delay = Duration::from_millis(if earlier % 3 == 0 { 700 } else { 1 });
        (delay, if earlier % 5 == 0 { refused(503, "ServiceUnavailable") } else { Ok(()) })
    });
    for i in 0..200 {
        world.record(&format!("cj{}", i % 20), "R", format!("{i:03}"));
    }
    world.pass(1000).await;
    assert_eq!(world.sink.in_flight.lock().1, 3);
    assert!(world.discarded().is_empty());
    let calls = world.sink.calls.lock().clone();
    for object in 0..20 {
        let name = format!("cj{object}");
        let of_object = calls.iter().filter(|call| *call.event.involved_object.name == *name);
        let messages: Vec<_> = of_object.map(|call| call.event.message.clone()).collect();
        assert!(messages.is_sorted(), "{messages:?}");
        assert!(messages.len() >= 10);
    }
}

#[tokio::test(start_paused = true)]
async fn events_wait_while_the_queue_is_busy_and_then_go_one_at_a_time() {
    let busy = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&busy);
    let answer = |_: &Call, _| (Duration::from_millis(999), Ok(()));
    let world = World::with(config(), answer, |task| task.yielding_to(move || asked.load(Ordering::Relaxed)));
    for name in ["a", "b", "c", "d", "e", "f"] {
        world.record(name, "R", "m");
    }
    world.pass(4).await;
    assert_eq!(world.asked().len(), 0);
    world.pass(3).await;
    assert_eq!((world.asked().len(), world.sink.in_flight.lock().1), (3, 1));
    busy.store(false, Ordering::Relaxed);
    world.pass(2).await;
    assert_eq!((world.asked().len(), world.sink.in_flight.lock().1), (6, 3));
}

#[tokio::test(start_paused = true)]
async fn events_are_written_within_seconds_after_an_outage() {
    let world = World::new(plain(), |call, _| {
        let down = call.after < Duration::from_secs(60);
        (Duration::from_millis(5), if down { refused(503, "ServiceUnavailable") } else { Ok(()) })
    });
    for i in 0..900 {
        world.record(&format!("cj{i}"), "R", "m");
    }
    world.pass(75).await;
    let calls = world.sink.calls.lock().clone();
    let written = calls.iter().filter(|call| call.after >= Duration::from_secs(60)).count();
    assert_eq!(written, 900);
    assert!(world.discarded().is_empty());
}

#[tokio::test(start_paused = true)]
async fn two_events_at_the_same_time_have_different_names() {
    let world = World::willing();
    world.record("cj", "R", "a");
    world.record("cj", "R", "b");
    world.clock.step(TimeDelta::hours(-1));
    world.record("cj", "R", "c");
    world.pass(0).await;
    let names: Vec<_> = world.sink.calls.lock().iter().map(|call| call.event.name.clone()).collect();
    assert!(names[0] < names[1] && names[1] < names[2], "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn at_shutdown_waiting_events_are_written_first() {
    let world = World::new(plain(), |_, _| (Duration::from_millis(5), Ok(())));
    for i in 0..900 {
        world.record(&format!("cj{}", i % 30), "R", format!("{i}"));
    }
    let (sink, discarded) = (world.sink.clone(), world.discarded.clone());
    let (abandoned, took) = world.stop().await;
    assert_eq!((abandoned, sink.calls.lock().len()), (0, 900));
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(discarded.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn at_shutdown_a_silent_server_is_given_up_after_two_seconds_and_the_events_are_counted() {
    let config = Config { max_pending: 10, ..plain() };
    let world = World::new(config, |_, _| (Duration::from_secs(3600), Ok(())));
    for i in 0..100 {
        world.record(&format!("cj{i}"), "R", "m");
    }
    world.pass(1).await;
    let discarded = world.discarded.clone();
    let (abandoned, took) = world.stop().await;
    assert_eq!((abandoned, took.as_millis() / 10), (100, 200));
    assert_eq!(discarded.lock().get(discard::GAVE_UP), Some(&100));
}

#[tokio::test(start_paused = true)]
async fn at_shutdown_events_in_backoff_are_tried_once_more() {
    let world = World::new(plain(), |_, _| (Duration::ZERO, refused(500, "InternalError")));
    for i in 0..10 {
        world.record(&format!("cj{i}"), "R", "m");
    }
    world.pass(0).await;
    let (sink, discarded) = (world.sink.clone(), world.discarded.clone());
    let (abandoned, took) = world.stop().await;
    assert_eq!((abandoned, sink.calls.lock().len()), (10, 20));
    assert!(took < Duration::from_millis(100), "{took:?}");
    assert_eq!(discarded.lock().get(discard::GAVE_UP), Some(&10));
}

#[tokio::test(start_paused = true)]
async fn an_idle_task_stops_at_once_and_later_events_are_counted() {
    let world = World::willing();
    let (recorder, discarded) = (world.recorder.clone(), world.discarded.clone());
    let (abandoned, took) = world.stop().await;
    assert_eq!((abandoned, took), (0, Duration::ZERO));
    recorder.event(&cron_job("cj"), EventType::Normal, "R", "too late".into());
    assert_eq!(discarded.lock().get(discard::GAVE_UP), Some(&1));
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_when_the_last_recorder_is_gone() {
    let world = World::willing();
    world.record("cj", "R", "m");
    let World { recorder, sink, task, .. } = world;
    drop(recorder);
    assert_eq!(task.await.unwrap(), 0);
    assert_eq!(sink.calls.lock().len(), 1);
}
