#![allow(clippy::unwrap_used)]

mod history;
mod metrics;
mod questions;
mod script;
mod selection;
mod store;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::api::batch_v1::Job;
use script::{
    Part, Recorder, Reply, Script, added, bad, bookmark, deleted, end, error, job, job_of, modified, page, pause,
    refused, refused_for, show,
};

const ALL: &str = "/apis/batch/v1/jobs";

/// The observations of one run.
struct Run {
    script: Arc<Script>,
    recorder: Arc<Recorder>,
    store: Arc<Store<Job>>,
}

impl Run {
    /// What the handlers received, without the errors.
    fn told(&self) -> Vec<String> {
        self.recorder.log().into_iter().filter(|line| !line.contains("/apis/")).collect()
    }

    fn errors(&self) -> Vec<String> {
        self.recorder.log().into_iter().filter(|line| line.contains("/apis/")).collect()
    }

    fn stored(&self) -> Vec<String> {
        self.store.list().iter().map(|job| show(job)).collect()
    }
}

async fn run_for(seconds: u64, namespaces: &[&str], script: Arc<Script>) -> Run {
    let namespaces: Vec<String> = namespaces.iter().map(ToString::to_string).collect();
    let informer = Informer::<Job>::new(script.client(), &namespaces, 17);
    run_informer(seconds, informer, script).await
}

async fn run_informer(seconds: u64, mut informer: Informer<Job>, script: Arc<Script>) -> Run {
    let recorder = Arc::new(Recorder::default());
    informer.add_event_handler(Arc::clone(&recorder) as Arc<dyn ResourceEventHandler<Job>>);
    informer.set_observer(Arc::clone(&recorder) as Arc<dyn Observer>);
    let store = informer.store();
    let cancel = CancellationToken::new();
    let running = tokio::spawn(informer.run(cancel.clone()));
    sleep(Duration::from_secs(seconds)).await;
    cancel.cancel();
    running.await.unwrap();
    Run { script, recorder, store }
}

/// One conversation with the server and its expected result.
struct Row {
    sentence: &'static str,
    replies: Vec<Reply>,
    requests: &'static [&'static str],
    told: &'static [&'static str],
    stored: &'static [&'static str],
    resource_version: &'static str,
}

async fn assert_rows(seconds: u64, rows: Vec<Row>) {
    for row in rows {
        let run = run_for(seconds, &[], Script::new([(ALL, row.replies)])).await;
        assert_eq!(run.script.requests(), row.requests, "{}: {:#?}", row.sentence, run.errors());
        assert_eq!(run.told(), row.told, "{}", row.sentence);
        assert_eq!(run.stored(), row.stored, "{}", row.sentence);
        assert_eq!(run.store.last_resource_version("a").as_deref(), Some(row.resource_version), "{}", row.sentence);
        assert!(run.store.has_synced(), "{}", row.sentence);
    }
}

fn watch(parts: impl IntoIterator<Item = Part>) -> Reply {
    Reply::Watch(parts.into_iter().collect())
}

/// A streaming list of `x` at 5, after which the same watch goes on.
fn listed_then(parts: impl IntoIterator<Item = Part>) -> Reply {
    watch([added(&job("x", 5)), end(5)].into_iter().chain(parts))
}

#[tokio::test(start_paused = true)]
async fn streaming_lists() {
    use Part::Stay;
    let rows = vec![
        Row {
            sentence: "a streaming list ends at its bookmark and the same watch goes on",
            replies: vec![watch([
                added(&job("x", 5)),
                added(&job("y", 3)),
                bookmark(2),
                end(6),
                modified(&job("x", 7)),
                Stay,
            ])],
            requests: &["stream"],
            told: &["initial a/x@5", "initial a/y@3", "update a/x@5 to 7"],
            stored: &["a/x@7", "a/y@3"],
            resource_version: "7",
        },
        Row {
            sentence: "what changes during a streaming list is part of it",
            replies: vec![watch([
                added(&job("x", 5)),
                added(&job("y", 3)),
                modified(&job("x", 6)),
                deleted(&job("y", 7)),
                end(7),
                Stay,
            ])],
            requests: &["stream"],
            told: &["initial a/x@6"],
            stored: &["a/x@6"],
            resource_version: "7",
        },
    ];
    assert_rows(100, rows).await;
}

#[tokio::test(start_paused = true)]
async fn fallbacks() {
    use Part::{Break, Line, Stay};
    let rows = vec![
        Row {
            sentence: "a server without streaming lists is listed in pages, after a relist too",
            replies: vec![
                refused(422, "Invalid"),
                page(&[job("x", 5)], 6, ""),
                refused(410, "Expired"),
                page(&[job("x", 5)], 9, ""),
            ],
            requests: &["stream", "list", "watch 6", "list", "watch 9"],
            told: &["initial a/x@5", "relisted"],
            stored: &["a/x@5"],
            resource_version: "9",
        },
        Row {
            sentence: "a bad request to a streaming list falls back too",
            replies: vec![refused(400, "BadRequest"), page(&[], 6, "")],
            requests: &["stream", "list", "watch 6"],
            told: &[],
            stored: &[],
            resource_version: "6",
        },
        Row {
            sentence: "a server that ignores sendInitialEvents is found out by its silence",
            replies: vec![watch([added(&job("x", 5)), pause(20), bookmark(5), Stay]), page(&[job("x", 5)], 6, "")],
            requests: &["stream", "list", "watch 6"],
            told: &["initial a/x@5"],
            stored: &["a/x@5"],
            resource_version: "6",
        },
        Row {
            sentence: "a streaming list that breaks off is tried again, and given up after three times",
            replies: vec![
                watch([added(&job("x", 5)), Break]),
                watch([added(&job("x", 5))]),
                watch([added(&job("x", 5)), Line("{".into())]),
                page(&[job("x", 5)], 6, ""),
            ],
            requests: &["stream", "stream", "stream", "list", "watch 6"],
            told: &["initial a/x@5"],
            stored: &["a/x@5"],
            resource_version: "6",
        },
        Row {
            sentence: "a list without a resource version is no list",
            replies: vec![
                refused(400, ""),
                Reply::Page(r#"{"items":[]}"#.into()),
                Reply::Page("<html>".into()),
                page(&[], 6, ""),
            ],
            requests: &["stream", "list", "list", "list", "watch 6"],
            told: &[],
            stored: &[],
            resource_version: "6",
        },
    ];
    assert_rows(100, rows).await;
}

#[tokio::test(start_paused = true)]
async fn kind_that_is_not_served_is_logged_once() {
    let log = crate::logging::tests::Page::default();
    let _guard = tracing::subscriber::set_default(crate::logging::tests::subscriber(0, &log));
    let replies = std::iter::repeat_with(|| refused(404, "NotFound")).take(8).collect();
    let run = run_for(600, &[], Script::new([(ALL, replies)])).await;
    assert!(run.errors().len() >= 8, "{:?}", run.errors());
    let lines: Vec<_> =
        log.lines().iter().map(ToString::to_string).filter(|line| line.contains("404 NotFound")).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn pages() {
    let rows = vec![
        Row {
            sentence: "pages are put together, and the first one's version counts",
            replies: vec![
                refused(400, ""),
                page(&[job("x", 1)], 6, "t=1"),
                page(&[job("y", 2)], 7, "t/2"),
                page(&[job("z", 3)], 6, ""),
            ],
            requests: &["stream", "list", "list next=t%3D1", "list next=t%2F2", "watch 6"],
            told: &["initial a/x@1", "initial a/y@2", "initial a/z@3"],
            stored: &["a/x@1", "a/y@2", "a/z@3"],
            resource_version: "6",
        },
        Row {
            sentence: "an expired continue token starts the list again, all at once, and nothing of the old one stays",
            replies: vec![
                refused(400, ""),
                page(&[job("x", 1), bad("w", 2)], 6, "t"),
                refused(410, "Expired"),
                page(&[job("y", 8)], 9, ""),
            ],
            requests: &["stream", "list", "list next=t", "list all", "watch 9"],
            told: &["initial a/y@8"],
            stored: &["a/y@8"],
            resource_version: "9",
        },
    ];
    assert_rows(100, rows).await;
}

#[tokio::test(start_paused = true)]
async fn list_with_endless_pages_is_an_error() {
    let whole = || page(&[job("x", 1)], 9, "");
    let empty = |number: u32| page(&[], 6, &number.to_string());
    let rows = [
        (
            "a continue token that leads to itself",
            vec![page(&[job("x", 1)], 6, "t"), page(&[job("x", 1)], 6, "t"), whole()],
            vec!["list", "list next=t", "list", "watch 9"],
            "list /apis/batch/v1/jobs: the list does not end: a continue token came again on page 2",
        ),
        (
            "pages without objects",
            (1..=10).map(empty).chain([whole()]).collect(),
            vec![
                "list",
                "list next=1",
                "list next=2",
                "list next=3",
                "list next=4",
                "list next=5",
                "list next=6",
                "list next=7",
                "list next=8",
                "list next=9",
                "list",
                "watch 9",
            ],
            "list /apis/batch/v1/jobs: the list does not end: page after page is empty on page 10",
        ),
        (
            "a token that expires in the list that was to be whole",
            vec![
                page(&[job("x", 1)], 6, "t"),
                refused(410, "Expired"),
                page(&[job("x", 1)], 6, "t"),
                refused(410, "Expired"),
                whole(),
            ],
            vec!["list", "list next=t", "list all", "&continue=t", "list", "watch 9"],
            "list /apis/batch/v1/jobs: the server answered 410 Expired: so it is",
        ),
    ];
    for (sentence, mut replies, requests, error) in rows {
        replies.insert(0, refused(400, ""));
        let run = run_for(100, &[], Script::new([(ALL, replies)])).await;
        assert_eq!(run.script.requests()[1..], requests, "{sentence}: {:#?}", run.errors());
        assert_eq!(run.errors()[1..], [error], "{sentence}");
        assert_eq!(run.told(), ["initial a/x@1"], "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn watches() {
    use Part::{Break, Line, Raw, Stay};
    let rows = vec![
        Row {
            sentence: "a watch that the server closes is resumed where it was",
            replies: vec![listed_then([modified(&job("x", 8)), pause(2)]), watch([modified(&job("x", 9)), Stay])],
            requests: &["stream", "watch 8"],
            told: &["initial a/x@5", "update a/x@5 to 8", "update a/x@8 to 9"],
            stored: &["a/x@9"],
            resource_version: "9",
        },
        Row {
            sentence: "a bookmark moves the place to resume at",
            replies: vec![listed_then([bookmark(20), pause(2)])],
            requests: &["stream", "watch 20"],
            told: &["initial a/x@5"],
            stored: &["a/x@5"],
            resource_version: "20",
        },
        Row {
            sentence: "a watch that breaks is resumed where it was",
            replies: vec![listed_then([modified(&job("x", 8)), pause(2), Break])],
            requests: &["stream", "watch 8"],
            told: &["initial a/x@5", "update a/x@5 to 8"],
            stored: &["a/x@8"],
            resource_version: "8",
        },
        Row {
            sentence: "an event cut in two by the frames is put together, and blank lines are skipped",
            replies: vec![listed_then([
                Raw(b"\n{\"type\":\"BOOKMARK\",\"obj".to_vec()),
                pause(1),
                Raw(b"ect\":{\"metadata\":{\"resourceVersion\":\"11\"}}}\r\n\r\n".to_vec()),
                Stay,
            ])],
            requests: &["stream"],
            told: &["initial a/x@5"],
            stored: &["a/x@5"],
            resource_version: "11",
        },
        Row {
            sentence: "half an event at the end of a watch was never sent",
            replies: vec![listed_then([pause(2), Raw(b"{\"type\":\"BOOKMARK\",\"object\":{\"metada".to_vec())])],
            requests: &["stream", "watch 5"],
            told: &["initial a/x@5"],
            stored: &["a/x@5"],
            resource_version: "5",
        },
        Row {
            sentence: "a whole event at the end of a watch counts without its line end",
            replies: vec![listed_then([
                pause(2),
                Raw(br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"6"}}}"#.to_vec()),
            ])],
            requests: &["stream", "watch 6"],
            told: &["initial a/x@5"],
            stored: &["a/x@5"],
            resource_version: "6",
        },
        Row {
            sentence: "an event of unknown type is skipped",
            replies: vec![listed_then([Line(r#"{"type":"NEWS","object":{}}"#.into()), modified(&job("x", 6)), Stay])],
            requests: &["stream"],
            told: &["initial a/x@5", "update a/x@5 to 6"],
            stored: &["a/x@6"],
            resource_version: "6",
        },
    ];
    assert_rows(100, rows).await;
}

#[tokio::test(start_paused = true)]
async fn changes() {
    use Part::Stay;
    let rows = vec![
        Row {
            sentence: "a deletion shows the object's final state",
            replies: vec![listed_then([deleted(&job("x", 9)), Stay])],
            requests: &["stream"],
            told: &["initial a/x@5", "delete a/x@9"],
            stored: &[],
            resource_version: "9",
        },
        Row {
            sentence: "a deletion of what is not there is silent",
            replies: vec![listed_then([deleted(&job("y", 9)), Stay])],
            requests: &["stream"],
            told: &["initial a/x@5"],
            stored: &["a/x@5"],
            resource_version: "9",
        },
        Row {
            sentence: "the stored version again is silent",
            replies: vec![listed_then([modified(&job("x", 5)), Stay])],
            requests: &["stream"],
            told: &["initial a/x@5"],
            stored: &["a/x@5"],
            resource_version: "5",
        },
        Row {
            sentence: "another UID under the same name is the end of one object and the start of another",
            replies: vec![listed_then([modified(&job_of("a", "x", "second", 9, None)), Stay])],
            requests: &["stream"],
            told: &["initial a/x@5", "lost a/x@5", "add a/x@9"],
            stored: &["a/x@9"],
            resource_version: "9",
        },
    ];
    assert_rows(100, rows).await;
}

#[tokio::test(start_paused = true)]
async fn gaps() {
    use Part::{Line, Stay};
    let relist = || watch([added(&job("y", 9)), end(9), Stay]);
    let gap = |sentence, replies: Vec<Reply>, requests| Row {
        sentence,
        replies,
        requests,
        told: &["initial a/x@5", "add a/y@9", "lost a/x@5", "relisted"],
        stored: &["a/y@9"],
        resource_version: "9",
    };
    let too_large = r#"{"code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}"#;
    let rows = vec![
        gap(
            "an ERROR event with 410 relists, and what is gone is a tombstone",
            vec![listed_then([error(410, "Expired")]), relist()],
            &["stream", "stream"],
        ),
        gap(
            "an HTTP status 410 relists",
            vec![listed_then([pause(2)]), refused(410, "Gone"), relist()],
            &["stream", "watch 5", "stream"],
        ),
        gap(
            "an ERROR event without code and with the reason Expired relists",
            vec![listed_then([error(0, "Expired")]), relist()],
            &["stream", "stream"],
        ),
        gap("a garbled line relists", vec![listed_then([Line("{]".into())]), relist()], &["stream", "stream"]),
        gap(
            "a line without end relists",
            vec![listed_then(std::iter::repeat_n(Part::Raw(vec![b'x'; 1 << 20]), 33)), relist()],
            &["stream", "stream"],
        ),
        gap(
            "a server that goes back in time is listed again",
            vec![listed_then([bookmark(20), bookmark(19), Stay]), relist()],
            &["stream", "stream"],
        ),
        gap(
            "a resource version that the server does not know yet relists",
            vec![listed_then([pause(2)]), Reply::Refused(504, too_large.into()), relist()],
            &["stream", "watch 5", "stream"],
        ),
    ];
    assert_rows(100, rows).await;

    let relisted_same = watch([added(&job("x", 5)), end(30), Stay]);
    let same = Row {
        sentence: "a relist that shows the stored version again is silent but for saying that it happened",
        replies: vec![listed_then([error(410, "Expired")]), relisted_same],
        requests: &["stream", "stream"],
        told: &["initial a/x@5", "relisted"],
        stored: &["a/x@5"],
        resource_version: "30",
    };
    let reborn = watch([added(&job_of("a", "x", "second", 8, None)), end(30), Stay]);
    let successor = Row {
        sentence: "a relist that shows another UID ends the old object and starts the new one",
        replies: vec![listed_then([error(410, "Expired")]), reborn],
        requests: &["stream", "stream"],
        told: &["initial a/x@5", "lost a/x@5", "add a/x@8", "relisted"],
        stored: &["a/x@8"],
        resource_version: "30",
    };
    assert_rows(100, vec![same, successor]).await;
}

#[tokio::test(start_paused = true)]
async fn malformed_object_affects_no_other_object() {
    use Part::Stay;
    let rows = vec![
        Row {
            sentence: "in a list in pages",
            replies: vec![refused(400, ""), page(&[job("x", 1), bad("y", 2), job("z", 3)], 6, "")],
            requests: &["stream", "list", "watch 6"],
            told: &["initial a/x@1", "initial a/z@3", "malformed a/y@2"],
            stored: &["a/x@1", "a/z@3"],
            resource_version: "6",
        },
        Row {
            sentence: "in a streaming list",
            replies: vec![watch([added(&job("x", 1)), added(&bad("y", 2)), added(&job("z", 3)), end(6), Stay])],
            requests: &["stream"],
            told: &["initial a/x@1", "initial a/z@3", "malformed a/y@2"],
            stored: &["a/x@1", "a/z@3"],
            resource_version: "6",
        },
        Row {
            sentence: "in a watch, where it moves the resource version like any other",
            replies: vec![listed_then([added(&bad("y", 8)), modified(&job("x", 9)), added(&bad("z", 10)), pause(2)])],
            requests: &["stream", "watch 10"],
            told: &["initial a/x@5", "malformed a/y@8", "update a/x@5 to 9", "malformed a/z@10"],
            stored: &["a/x@9"],
            resource_version: "10",
        },
        Row {
            sentence: "an object that turns bad is lost until it is good again",
            replies: vec![listed_then([modified(&bad("x", 8)), modified(&bad("x", 9)), modified(&job("x", 10)), Stay])],
            requests: &["stream"],
            told: &["initial a/x@5", "lost a/x@5", "malformed a/x@8", "malformed a/x@9", "add a/x@10"],
            stored: &["a/x@10"],
            resource_version: "10",
        },
        Row {
            sentence: "one version is reported once, however often it is seen",
            replies: vec![
                listed_then([modified(&bad("x", 8)), modified(&bad("x", 8)), error(410, "Expired")]),
                watch([added(&bad("x", 8)), end(9), Stay]),
            ],
            requests: &["stream", "stream"],
            told: &["initial a/x@5", "lost a/x@5", "malformed a/x@8", "relisted"],
            stored: &[],
            resource_version: "9",
        },
        Row {
            sentence: "a bad final state leaves the last one known",
            replies: vec![listed_then([deleted(&bad("x", 8)), added(&bad("y", 9)), deleted(&bad("y", 10)), Stay])],
            requests: &["stream"],
            told: &["initial a/x@5", "lost a/x@5", "malformed a/y@9"],
            stored: &[],
            resource_version: "10",
        },
        Row {
            sentence: "what has neither name nor version is reported and no more",
            replies: vec![listed_then([added(&serde_json::json!({})), modified(&job("x", 6)), Stay])],
            requests: &["stream"],
            told: &["initial a/x@5", "malformed /@", "update a/x@5 to 6"],
            stored: &["a/x@6"],
            resource_version: "6",
        },
    ];
    assert_rows(100, rows).await;
}

#[tokio::test(start_paused = true)]
async fn silent_watch_is_resumed_and_the_second_in_a_row_causes_a_list() {
    let script = Script::new([(ALL, vec![listed_then([pause(100), bookmark(6), Part::Stay]), watch([Part::Stay])])]);
    let run = run_for(100 + 180 + 180 + 10, &[], script).await;
    assert_eq!(run.script.requests(), ["stream", "watch 6", "stream"]);
    let gaps = run.script.gaps();
    assert_eq!(gaps[0].as_secs(), 280, "three minutes after the bookmark");
    assert_eq!(gaps[1].as_secs(), 180 + 1, "three minutes, and the wait before a list");
    assert_eq!(run.errors()[0], "watch /apis/batch/v1/jobs: nothing heard for 180s");
}

#[tokio::test(start_paused = true)]
async fn watch_past_its_timeout_is_resumed_even_if_events_arrive() {
    let chatter = (6..100).flat_map(|version| [pause(60), bookmark(version)]);
    let run = run_for(700, &[], Script::new([(ALL, vec![listed_then(chatter)])])).await;
    assert!(run.script.requests()[1].starts_with("watch "), "{:?}", run.script.requests());
    assert!((330..=630).contains(&run.script.gaps()[0].as_secs()), "{:?}", run.script.gaps());
    assert!(run.errors()[0].contains("still open"), "{:?}", run.errors());
}

#[tokio::test(start_paused = true)]
async fn backoff_grows_with_failures_and_starts_over_after_two_minutes_without_one() {
    let mut replies = vec![listed_then([pause(2)])];
    replies.extend([
        refused(500, "InternalError"),
        Reply::NoConnection,
        watch([error(500, "InternalError")]),
        watch([]),
        refused_for(7, 429),
        watch([pause(90), bookmark(6), pause(90), bookmark(7), error(500, "InternalError")]),
        Reply::NoAnswer,
        Reply::NoAnswer,
    ]);
    let run = run_for(700, &[], Script::new([(ALL, replies)])).await;
    let requests = run.script.requests();
    assert!(requests[1..7].iter().all(|request| request == "watch 5"), "{requests:?}");
    assert!(requests[7..10].iter().all(|request| request == "watch 7"), "{requests:?}");
    // (what failed before, at least, less than), in milliseconds
    let rows = [
        ("the first watch was closed in good order", 2_000, 2_001),
        ("an HTTP status 500", 800, 1_600),
        ("no connection", 400, 800),
        ("an ERROR event 500", 1_600, 3_200),
        ("a very short watch", 3_200, 6_400),
        ("a Retry-After is a lower bound", 7_000, 7_001),
        ("an error after three good minutes", 180_800, 181_600),
        ("no headers for half a minute", 30_400, 30_800),
        ("no headers again, with more patience", 90_400, 90_800),
    ];
    for ((sentence, least, less_than), gap) in rows.into_iter().zip(run.script.gaps()) {
        let gap = u64::try_from(gap.as_millis()).unwrap();
        assert!((least..less_than).contains(&gap), "{sentence}: {gap}");
    }
}

#[tokio::test(start_paused = true)]
async fn watches_that_are_resumed_at_once_make_no_later_wait_longer() {
    let mut replies = vec![listed_then([pause(2)])];
    replies.extend((0..5).map(|_| watch([pause(2), Part::Break])));
    replies.push(refused(403, "Forbidden"));
    let gaps = run_for(60, &[], Script::new([(ALL, replies)])).await.script.gaps();
    assert!(gaps[..6].iter().all(|gap| gap.as_millis() == 2_000), "{gaps:?}");
    assert!((800..1_600).contains(&gaps[6].as_millis()), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn server_that_closes_every_watch_is_retried_with_backoff() {
    let replies = vec![listed_then([]); 1];
    let closing = std::iter::repeat_n(watch([bookmark(6)]), 1_000);
    let run = run_for(600, &[], Script::new([(ALL, replies.into_iter().chain(closing).collect())])).await;
    assert!(run.script.requests().len() < 30, "{}", run.script.requests().len());
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_refused_repeatedly_causes_a_list() {
    let mut replies = vec![listed_then([pause(2)])];
    replies.extend(vec![refused(500, "InternalError"); 5]);
    replies.push(listed_then([Part::Stay]));
    let run = run_for(200, &[], Script::new([(ALL, replies)])).await;
    let watch = "watch 5";
    assert_eq!(run.script.requests(), ["stream", watch, watch, watch, watch, watch, "stream"]);
}

#[tokio::test(start_paused = true)]
async fn two_namespaces_fill_one_store_and_relist_independently() {
    let replies = |namespace: &str| {
        let job = |name, version| job_of(namespace, name, name, version, Some("owner"));
        vec![
            watch([added(&job("x", 5)), added(&job("y", 6)), end(6), pause(10), error(410, "Expired")]),
            watch([added(&job("y", 6)), end(8), Part::Stay]),
        ]
    };
    let (one, two) = ("/apis/batch/v1/namespaces/one/jobs", "/apis/batch/v1/namespaces/two/jobs");
    let mut late = replies("two");
    late.insert(0, refused_for(5, 403));
    late[1] = watch([added(&job_of("two", "x", "2x", 50, Some("owner"))), end(60), Part::Stay]);
    let script = Script::new([(one, replies("one")), (two, late)]);

    let namespaces = ["two".to_owned(), "one".to_owned(), "two".to_owned()];
    let informer = Informer::<Job>::new(script.client(), &namespaces, 3);
    let (store, cancel, start) = (informer.store(), CancellationToken::new(), Instant::now());
    let running = tokio::spawn(informer.run(cancel.clone()));
    sleep(Duration::from_secs(1)).await;
    assert!(!store.has_synced(), "one of two lists is not enough");
    assert_eq!(store.last_resource_version("one").as_deref(), Some("6"));
    assert_eq!(store.last_resource_version("two"), None);
    timeout(Duration::from_secs(60), store.wait_for_cache_sync()).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 5);
    let names = || store.list().iter().map(|job| show(job)).collect::<Vec<_>>();
    assert_eq!(names(), ["one/x@5", "one/y@6", "two/x@50"]);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(names(), ["one/y@6", "two/x@50"], "a relist of one namespace leaves the other alone");
    assert_eq!(store.by_controller(&"owner".into()).len(), 2);
    assert_eq!(store.last_resource_version("two").as_deref(), Some("60"));
    assert_eq!(store.last_resource_version("three"), None);
    cancel.cancel();
    running.await.unwrap();
}

/// A handler that always panics.
struct Bomb;

impl ResourceEventHandler<Job> for Bomb {
    fn on_add(&self, job: &Arc<Job>, _: bool) {
        panic!("no {}", job.name);
    }

    fn on_update(&self, _: &Arc<Job>, _: &Arc<Job>) {
        panic!("no update");
    }

    fn on_delete(&self, _: &Arc<Job>, _: bool) {
        std::panic::panic_any(7);
    }
}

#[tokio::test(start_paused = true)]
async fn panicking_handler_affects_neither_the_reflector_nor_other_handlers() {
    let parts = [modified(&job("x", 6)), deleted(&job("x", 7)), Part::Stay];
    let script = Script::new([(ALL, vec![listed_then(parts)])]);
    let mut informer = Informer::<Job>::new(script.client(), &[], 0);
    let recorder = Arc::new(Recorder::default());
    informer.add_event_handler(Arc::new(Bomb));
    informer.add_event_handler(Arc::clone(&recorder) as Arc<dyn ResourceEventHandler<Job>>);
    informer.set_observer(Arc::clone(&recorder) as Arc<dyn Observer>);
    let (store, cancel) = (informer.store(), CancellationToken::new());
    let running = tokio::spawn(informer.run(cancel.clone()));
    sleep(Duration::from_secs(1)).await;
    let panicked = "a handler of Job panicked";
    let expected = [panicked, "initial a/x@5", panicked, "update a/x@5 to 6", panicked, "delete a/x@7"];
    assert_eq!(recorder.log(), expected);
    assert!(store.has_synced() && store.is_empty());
    cancel.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn same_seed_gives_the_same_pauses() {
    let course = |_| async {
        let replies = vec![listed_then([pause(2)]), refused(500, ""), refused(500, ""), refused(410, "")];
        run_for(300, &[], Script::new([(ALL, replies)])).await.script.gaps()
    };
    assert_eq!(course(0).await, course(1).await);
}
