#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, kinds};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::cache::Informer;
use crate::client;
use crate::controller::tests::objects::time;
use crate::controller::tests::support::{job, request};
use crate::controller::tests::wire::{Fate, Wire};

/// No reflector fills the store, as where none of its lists is answered.
#[tokio::test(start_paused = true)]
async fn only_a_namespace_that_the_store_does_not_show_waits_for_it() {
    let jobs = Store::<Job>::new([Some("shop".into())]);
    let takeover = Takeover::default();
    assert_eq!(takeover.wait("shop"), None, "there was no earlier leader");
    takeover.begin(Duration::from_secs(39));
    assert_eq!(["shop", "bank"].map(|name| takeover.wait(name)), [Some(TimeDelta::seconds(39)); 2]);
    takeover.ask(&jobs).await;
    assert_eq!(["shop", "bank"].map(|name| takeover.wait(name)), [Some(TimeDelta::seconds(1)), None]);
}

/// What happens to a process that watches the Jobs of `shop` and of `bank`.
enum Step {
    /// It takes over, and creates of the earlier leader may be committed for so many seconds.
    Begin(u64),
    /// Its controller runs, which asks the store once these seconds are over.
    Run,
    /// So many milliseconds pass.
    Pass(u64),
    /// A Job of the earlier leader is committed in that namespace.
    Commit(&'static str),
    /// The open watches show nothing more.
    Silence,
    /// The watches break, and both namespaces are listed again.
    Relist,
    /// The Jobs of that namespace may not be read any more.
    Refuse(&'static str),
    /// All may be read.
    Allow,
}

/// For how many milliseconds it is not known which Jobs the earlier leader created in `shop` and in `bank`, whether its creates may
/// still be committed, and how many of its Jobs the store shows.
type Left = ([Option<i64>; 2], bool, usize);

async fn after(steps: &[Step]) -> Left {
    let server = ApiServer::new(apiserver::Config::new(TestClock::new(time("2026-03-02T10:00:00Z")), kinds::builtin()));
    let create_namespace = async |name: &str| {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        request(&server, "POST", "/api/v1/namespaces", &namespace).await.unwrap();
    };
    for name in ["shop", "bank"] {
        create_namespace(name).await;
    }
    let wire = Wire::new();
    let client = client::on_service(wire.around(server.into_service()));
    let informer = Informer::<Job>::new(client, &["shop".to_owned(), "bank".to_owned()], 1);
    let (jobs, takeover, stop) = (informer.store(), Arc::new(Takeover::default()), CancellationToken::new());
    let _stop = stop.clone().drop_guard();
    tokio::spawn(informer.run(stop));
    jobs.wait_for_cache_sync().await;
    for step in steps {
        match *step {
            Step::Begin(seconds) => takeover.begin(Duration::from_secs(seconds)),
            Step::Run => {
                let (takeover, jobs) = (Arc::clone(&takeover), Arc::clone(&jobs));
                tokio::spawn(async move {
                    takeover.ask(&jobs).await;
                });
            }
            Step::Pass(milliseconds) => tokio::time::sleep(Duration::from_millis(milliseconds)).await,
            Step::Commit(namespace) => {
                let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs");
                request(&server, "POST", &path, &job("committed", &json!([]))).await.unwrap();
            }
            Step::Silence => wire.silence("jobs"),
            Step::Relist => {
                // The watches saw nothing of this, so that they cannot go on from where they were.
                create_namespace("other").await;
                server.compact();
                wire.cut_watches();
            }
            Step::Refuse(namespace) => {
                wire.judge(
                    move |ask| {
                        if ask.namespace == namespace { Fate::Refused(403, "Forbidden") } else { Fate::Pass }
                    },
                );
            }
            Step::Allow => wire.calm(),
        }
    }
    let wait = |namespace| takeover.wait(namespace).map(|wait| wait.num_milliseconds());
    (["shop", "bank"].map(wait), takeover.creates_may_be_pending(), jobs.len())
}

#[tokio::test(start_paused = true)]
async fn jobs_of_an_earlier_leader_are_known_once_a_namespace_shows_what_was_committed_until_its_creates_ended() {
    use Step::*;

    const OVER: Left = ([None, None], false, 0);
    let rows: [(&str, &[Step], Left); 20] = [
        ("there was no earlier leader", &[Run, Pass(60_000)], OVER),
        ("the takeover begins", &[Begin(39), Run, Pass(1)], ([Some(38_999); 2], true, 0)),
        ("its last half second", &[Begin(39), Run, Pass(38_500)], ([Some(1_000); 2], true, 0)),
        ("its end", &[Begin(39), Run, Pass(39_500)], OVER),
        ("its end, and the controller does not run yet", &[Begin(39), Pass(60_000)], ([Some(1_000); 2], false, 0)),
        ("the controller runs later", &[Begin(39), Pass(60_000), Run, Pass(500)], OVER),
        ("the lease was released", &[Begin(0)], ([Some(1_000); 2], false, 0)),
        ("the lease was released, and the store was asked", &[Begin(0), Run, Pass(500)], OVER),
        (
            "it begins a second time, for less",
            &[Begin(39), Run, Pass(10_000), Begin(5), Pass(6_000)],
            ([Some(23_000); 2], true, 0),
        ),
        // A process takes over once. What is asked at the first end would not answer for a second.
        (
            "it begins a second time before its end, for longer",
            &[Begin(39), Run, Pass(10_000), Begin(39), Pass(29_500)],
            OVER,
        ),
        ("it begins a second time after its end", &[Begin(39), Run, Pass(39_500), Begin(39), Pass(1)], OVER),
        (
            "a list before its end proves nothing",
            &[Begin(39), Run, Pass(10_000), Relist, Pass(5_000), Silence, Commit("shop"), Pass(24_500)],
            ([Some(1_000); 2], false, 0),
        ),
        (
            "and a second later a list shows it",
            &[Begin(39), Run, Pass(10_000), Relist, Pass(5_000), Silence, Commit("shop"), Pass(25_500)],
            ([None; 2], false, 1),
        ),
        (
            "a list after its end shows it at once",
            &[Begin(39), Run, Silence, Commit("shop"), Pass(39_200), Relist, Pass(500)],
            ([None; 2], false, 1),
        ),
        (
            "the watch has shown it before",
            &[Begin(39), Run, Commit("shop"), Commit("bank"), Pass(40_500)],
            ([None; 2], false, 2),
        ),
        (
            "the Jobs of one namespace may not be read any more",
            &[Begin(39), Run, Silence, Commit("shop"), Commit("bank"), Refuse("bank"), Pass(60_000)],
            ([None, Some(1_000)], false, 1),
        ),
        (
            "and may be read again",
            &[
                Begin(39),
                Run,
                Silence,
                Commit("shop"),
                Commit("bank"),
                Refuse("bank"),
                Pass(60_000),
                Allow,
                Pass(60_000),
            ],
            ([None; 2], false, 2),
        ),
        (
            "they may be read again before its end",
            &[Begin(39), Run, Refuse("bank"), Pass(20_000), Allow, Pass(20_000)],
            OVER,
        ),
        (
            "one namespace has answered, and is refused since",
            &[Begin(39), Run, Pass(39_500), Refuse("bank"), Relist, Pass(60_000)],
            OVER,
        ),
        (
            "a list of the namespace that may be read answers for no other",
            &[Begin(39), Run, Refuse("bank"), Pass(39_500), Relist, Pass(5_000)],
            ([None, Some(1_000)], false, 0),
        ),
    ];
    for (sentence, steps, want) in rows {
        assert_eq!(after(steps).await, want, "{sentence}");
    }
}
