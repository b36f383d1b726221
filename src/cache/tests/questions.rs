//! Whether the store shows everything that is committed on the server.

use super::*;

/// What each request got, how long the answer took, and which requests there were.
async fn catch_up(replies: Vec<Reply>) -> (Duration, Vec<String>, Vec<String>) {
    let script = Script::new([(ALL, replies)]);
    let informer = Informer::<Job>::new(script.client(), &[], 17);
    let (store, cancel) = (informer.store(), CancellationToken::new());
    let running = tokio::spawn(informer.run(cancel.clone()));
    store.wait_for_cache_sync().await;
    let began = Instant::now();
    timeout(Duration::from_secs(100), store.catch_up()).await.unwrap();
    let took = began.elapsed();
    let stored = store.list().iter().map(|job| show(job)).collect();
    cancel.cancel();
    running.await.unwrap();
    (took, script.requests(), stored)
}

#[tokio::test(start_paused = true)]
async fn a_store_catches_up_by_its_watch_or_by_a_list() {
    let newest = |version| page(&[], version, "");
    let relisted = || watch([added(&job("x", 5)), added(&job("z", 8)), end(9), Part::Stay]);
    let millis = Duration::from_millis;
    let rows = [
        (
            "the store shows it already",
            vec![listed_then([Part::Stay]), newest(5)],
            millis(0),
            vec!["stream", "newest"],
            vec!["a/x@5"],
        ),
        (
            "the watch shows it a little later",
            vec![listed_then([late(100), modified(&job("x", 6)), late(400), bookmark(8), Part::Stay]), newest(7)],
            millis(500),
            vec!["stream", "newest"],
            vec!["a/x@6"],
        ),
        (
            "the watch is silent",
            vec![listed_then([Part::Stay]), newest(9), relisted()],
            millis(1_000),
            vec!["stream", "newest", "stream"],
            vec!["a/x@5", "a/z@8"],
        ),
        (
            "the watch lags",
            vec![listed_then([late(900), modified(&job("x", 6)), Part::Stay]), newest(9), relisted()],
            millis(1_000),
            vec!["stream", "newest", "stream"],
            vec!["a/x@5", "a/z@8"],
        ),
        (
            "the server refuses to say",
            vec![listed_then([Part::Stay]), refused(500, "InternalError"), relisted()],
            millis(0),
            vec!["stream", "newest", "stream"],
            vec!["a/x@5", "a/z@8"],
        ),
        (
            "the server does not answer",
            vec![listed_then([Part::Stay]), Reply::NoAnswer, relisted()],
            millis(1_000),
            vec!["stream", "newest", "stream"],
            vec!["a/x@5", "a/z@8"],
        ),
    ];
    for (sentence, replies, took, requests, stored) in rows {
        let found = catch_up(replies).await;
        assert_eq!(found, (took, owned(&requests), owned(&stored)), "{sentence}");
    }
}

fn late(milliseconds: u64) -> Part {
    Part::Pause(Duration::from_millis(milliseconds))
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

/// A list that began before the question may not show what was committed before it.
#[tokio::test(start_paused = true)]
async fn only_a_list_that_begins_after_the_question_answers_it() {
    let slow = watch([late(500), added(&job("x", 5)), end(5), Part::Stay]);
    let script = Script::new([(ALL, vec![slow, page(&[], 9, ""), watch([end(9), Part::Stay])])]);
    let informer = Informer::<Job>::new(script.client(), &[], 17);
    let (store, cancel) = (informer.store(), CancellationToken::new());
    let running = tokio::spawn(informer.run(cancel.clone()));
    sleep(Duration::from_millis(100)).await;
    store.catch_up().await;
    assert_eq!(script.requests(), ["stream", "newest", "stream"]);
    assert_eq!(store.len(), 0);
    cancel.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_namespace_of_a_store_catches_up() {
    let path = |namespace| format!("/apis/batch/v1/namespaces/{namespace}/jobs");
    let replies = || vec![watch([end(5), Part::Stay]), page(&[], 9, ""), watch([end(9), Part::Stay])];
    let script = Script::new([(&*path("a"), replies()), (&*path("b"), replies())]);
    let informer = Informer::<Job>::new(script.client(), &["a".to_owned(), "b".to_owned()], 17);
    let (store, cancel) = (informer.store(), CancellationToken::new());
    let running = tokio::spawn(informer.run(cancel.clone()));
    store.wait_for_cache_sync().await;
    let began = Instant::now();
    store.catch_up().await;
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    assert_eq!(["a", "b"].map(|namespace| store.last_resource_version(namespace).unwrap()), ["9", "9"]);
    cancel.cancel();
    running.await.unwrap();
}

/// Each list takes half a second, a refused one of "a" answers nothing, and its turn goes to another.
#[tokio::test(start_paused = true)]
async fn four_namespaces_list_at_a_time_to_answer_a_question() {
    let listing = || watch([late(500), end(9), Part::Stay]);
    let first = || vec![watch([end(5), Part::Stay]), page(&[], 9, "")];
    let lists = || [first(), vec![listing()]].concat();
    let refused_once = || [first(), vec![refused(500, "InternalError"), listing()]].concat();
    let millis = Duration::from_millis;
    let rows = [
        ("four", 4, lists(), millis(1_500)),
        ("five", 5, lists(), millis(2_000)),
        ("eight", 8, lists(), millis(2_000)),
        ("nine", 9, lists(), millis(2_500)),
        ("five, and the first list is refused", 5, refused_once(), millis(1_500)),
    ];
    for (sentence, count, of_a, took) in rows {
        let names: Vec<_> = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(str::to_owned)[..count].to_vec();
        let path = |namespace: &String| format!("/apis/batch/v1/namespaces/{namespace}/jobs");
        let paths: Vec<_> = names.iter().map(path).collect();
        let replies = |number: usize| if number == 0 { of_a.clone() } else { lists() };
        let script = Script::new(paths.iter().enumerate().map(|(number, path)| (&**path, replies(number))));
        let informer = Informer::<Job>::new(script.client(), &names, 17);
        let (store, cancel) = (informer.store(), CancellationToken::new());
        let running = tokio::spawn(informer.run(cancel.clone()));
        store.wait_for_cache_sync().await;
        let began = Instant::now();
        let asked = store.ask();
        asked.last().unwrap().wait().await;
        assert_eq!(began.elapsed(), took, "{sentence}");
        cancel.cancel();
        running.await.unwrap();
    }
}

/// Whether each namespace has its list, and how long a caller waited for those that can be read, and for what they show.
#[tokio::test(start_paused = true)]
async fn a_namespace_that_may_not_be_read_holds_up_no_other() {
    let path = |namespace| format!("/apis/batch/v1/namespaces/{namespace}/jobs");
    let lists = || vec![watch([end(5), Part::Stay]), page(&[], 5, "")];
    let refuses = || vec![refused(403, "Forbidden"); 100];
    let granted_later = || [vec![refused(403, "Forbidden"); 2], lists()].concat();
    let seconds = Duration::from_secs;
    // (sentence, the answers for two namespaces, whether one is read within ten seconds, which are listed then and after a minute)
    let rows = [
        ("both are read", lists(), lists(), true, [true, true], [true, true]),
        ("one may not be read", lists(), refuses(), true, [true, false], [true, false]),
        ("one may be read later", lists(), granted_later(), true, [true, true], [true, true]),
        ("none may be read", refuses(), refuses(), false, [false, false], [false, false]),
        ("one does not answer", lists(), vec![Reply::NoAnswer], false, [true, false], [true, false]),
    ];
    for (sentence, a, b, is_read, soon, later) in rows {
        let script = Script::new([(&*path("a"), a), (&*path("b"), b)]);
        let informer = Informer::<Job>::new(script.client(), &["a".to_owned(), "b".to_owned()], 17);
        let (store, cancel) = (informer.store(), CancellationToken::new());
        let running = tokio::spawn(informer.run(cancel.clone()));
        let read = async {
            store.wait_for_readable_scopes().await;
            store.catch_up().await;
        };
        assert_eq!(timeout(seconds(10), read).await.is_ok(), is_read, "{sentence}");
        let listed = || ["a", "b"].map(|namespace| store.has_listed(namespace));
        sleep(seconds(10)).await;
        assert_eq!(listed(), soon, "{sentence}");
        sleep(seconds(60)).await;
        assert_eq!(listed(), later, "{sentence}");
        let missing = ["a", "b"].into_iter().zip(later).filter(|(_, listed)| !listed).map(|(namespace, _)| namespace);
        let unlisted = store.unlisted_namespaces();
        assert_eq!(unlisted.iter().map(|name| &**name).collect::<Vec<_>>(), missing.collect::<Vec<_>>(), "{sentence}");
        cancel.cancel();
        running.await.unwrap();
    }
}

/// Its namespace is gone, and the rights with it.
#[tokio::test(start_paused = true)]
async fn a_namespace_that_may_not_be_read_any_more_leaves_the_others_their_answers() {
    let path = |namespace| format!("/apis/batch/v1/namespaces/{namespace}/jobs");
    let lists = vec![watch([end(5), Part::Stay]), page(&[], 5, "")];
    let ends = [vec![watch([end(5)])], vec![refused(403, "Forbidden"); 100]].concat();
    let script = Script::new([(&*path("a"), lists), (&*path("b"), ends)]);
    let informer = Informer::<Job>::new(script.client(), &["a".to_owned(), "b".to_owned()], 17);
    let (store, cancel) = (informer.store(), CancellationToken::new());
    let running = tokio::spawn(informer.run(cancel.clone()));
    store.wait_for_cache_sync().await;
    sleep(Duration::from_secs(10)).await;
    let asked = store.ask();
    sleep(Duration::from_secs(60)).await;
    let shown = ["a", "b"].map(|namespace| asked.iter().filter(|asked| asked.covers(namespace)).all(Asked::is_shown));
    assert_eq!(shown, [true, false]);
    cancel.cancel();
    running.await.unwrap();
}

/// Something between here and the server answers lists and no watch.
#[tokio::test(start_paused = true)]
async fn a_question_is_answered_by_a_list_while_no_watch_is_open() {
    let relisted = watch([added(&job("z", 8)), end(9), Part::Stay]);
    let script = Script::new([(ALL, vec![watch([end(5)]), relisted])]);
    let informer = Informer::<Job>::new(script.client(), &[], 17);
    let (store, cancel) = (informer.store(), CancellationToken::new());
    let running = tokio::spawn(informer.run(cancel.clone()));
    store.wait_for_cache_sync().await;
    sleep(Duration::from_millis(100)).await;
    timeout(Duration::from_secs(5), store.catch_up()).await.unwrap();
    assert_eq!((script.requests(), store.len()), (owned(&["stream", "stream"]), 1));
    cancel.cancel();
    running.await.unwrap();
}
