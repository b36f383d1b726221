//! Watches, with paused time.

use serde_json::{Value, json};

use super::support::{MERGE, Server, WIDGETS, widget};

fn shown(events: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    events.iter().map(|event| (text(&event["type"]), text(&event["object"]["metadata"]["name"]))).collect()
}

fn pairs(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(kind, name)| ((*kind).to_owned(), (*name).to_owned())).collect()
}

/// The case, the query, and the events.
type Row<'a> = (&'a str, String, &'a [(&'a str, &'a str)]);

async fn history(server: &Server) -> String {
    let made = server.post(WIDGETS, &widget("a")).await.expect(201);
    let revision = made["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let label = |value: &str| json!({"metadata": {"labels": {"tier": value}}});
    server.patch(&format!("{WIDGETS}/a"), MERGE, &label("x")).await.expect(200);
    server.post(WIDGETS, &widget("b")).await.expect(201);
    server.patch(&format!("{WIDGETS}/a"), MERGE, &label("y")).await.expect(200);
    server.delete(&format!("{WIDGETS}/a")).await.expect(200);
    revision
}

#[tokio::test(start_paused = true)]
async fn a_watch_shows_what_happened_since_its_revision() {
    let server = Server::new();
    let revision = history(&server).await;
    let rows: Vec<Row<'_>> = vec![
        (
            "from a revision: every change after it",
            format!("resourceVersion={revision}"),
            &[("MODIFIED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")],
        ),
        (
            "with a selector: objects come and go as they match",
            format!("resourceVersion={revision}&labelSelector=tier%3Dx"),
            &[("ADDED", "a"), ("DELETED", "a")],
        ),
        ("from nothing: what is there", String::new(), &[("ADDED", "b")]),
        ("from 0: what is there", "resourceVersion=0".into(), &[("ADDED", "b")]),
        ("one object alone", format!("resourceVersion={revision}&fieldSelector=metadata.name%3Db"), &[("ADDED", "b")]),
        ("from the future: nothing", "resourceVersion=9999".into(), &[]),
        (
            "with initial events and bookmarks: their end is marked",
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true".into(),
            &[("ADDED", "b"), ("BOOKMARK", "")],
        ),
    ];
    for (why, query, expected) in rows {
        let events = server.watch(&format!("{WIDGETS}?watch=1&timeoutSeconds=1&{query}")).await;
        let mut events = shown(&events);
        if !query.contains("sendInitialEvents") {
            events.retain(|(kind, _)| kind != "BOOKMARK");
        }
        events.dedup();
        let expected = pairs(expected);
        assert_eq!(events[..expected.len().min(events.len())], expected[..], "{why}: {events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_bookmark_that_ends_the_initial_events_says_so() {
    let server = Server::new();
    history(&server).await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=5";
    let events = server.watch(&format!("{WIDGETS}?watch=1&{query}")).await;
    let mark = &events[1]["object"];
    assert_eq!(mark["kind"], "Widget");
    assert_eq!(mark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert!(mark["metadata"]["resourceVersion"].is_string());
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_and_at_the_end() {
    let server = Server::new();
    let revision = history(&server).await;
    let start = tokio::time::Instant::now();
    let path = format!("{WIDGETS}?watch=1&resourceVersion={revision}&allowWatchBookmarks=true&timeoutSeconds=150");
    let events = server.watch(&path).await;
    let bookmarks = events.iter().filter(|event| event["type"] == "BOOKMARK").count();
    assert_eq!((bookmarks, start.elapsed().as_secs()), (3, 150), "at 60, 120 and 148 seconds");
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_revision_ends_a_watch_with_410() {
    let server = Server::new();
    let revision = history(&server).await;
    server.api.compact();
    let events = server.watch(&format!("{WIDGETS}?watch=1&resourceVersion={revision}")).await;
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0]["type"], &events[0]["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(events[0]["object"]["reason"], "Expired");
    let list = server.get(&format!("{WIDGETS}?resourceVersion={revision}&resourceVersionMatch=Exact")).await;
    assert_eq!((list.code, list.message()), (410, "The resourceVersion for the provided list is too old."));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_lags_behind_the_history_ends_with_410() {
    let server = Server::with_history(3);
    let revision = history(&server).await;
    let events = server.watch(&format!("{WIDGETS}?watch=1&resourceVersion={revision}")).await;
    assert_eq!(events[0]["object"]["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn an_open_watch_sees_changes_as_they_happen() {
    let server = Server::new();
    let path = format!("{WIDGETS}?watch=1&resourceVersion=5&timeoutSeconds=10");
    let watching = server.watch(&path);
    let writing = async {
        tokio::task::yield_now().await;
        server.post(WIDGETS, &widget("a")).await.expect(201);
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        server.delete(&format!("{WIDGETS}/a")).await.expect(200);
    };
    let (events, ()) = tokio::join!(watching, writing);
    assert_eq!(shown(&events), pairs(&[("ADDED", "a"), ("DELETED", "a")]));
    let revisions: Vec<u64> = events
        .iter()
        .map(|event| event["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap())
        .collect();
    assert!(revisions[0] < revisions[1], "a deletion has a revision of its own");
}

#[tokio::test(start_paused = true)]
async fn a_watch_as_a_table_has_its_headings_once() {
    let server = Server::new();
    server.post(WIDGETS, &widget("a")).await.expect(201);
    server.post(WIDGETS, &widget("b")).await.expect(201);
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let reply = server.ask("GET", &format!("{WIDGETS}?watch=1&timeoutSeconds=1"), &accept, "").await;
    let text = reply.body.as_str().unwrap();
    let tables: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(tables[0]["object"]["columnDefinitions"].is_array());
    assert!(tables[1]["object"]["columnDefinitions"].is_null());
    assert_eq!(tables[1]["object"]["rows"][0]["cells"], json!(["b"]));
}

#[tokio::test(start_paused = true)]
async fn restoring_ends_open_watches() {
    let server = Server::new();
    let snapshot = server.api.snapshot();
    let path = format!("{WIDGETS}?watch=1&resourceVersion=5");
    let watching = server.watch(&path);
    let restoring = async {
        tokio::task::yield_now().await;
        server.api.restore(&snapshot).unwrap();
    };
    let (events, ()) = tokio::join!(watching, restoring);
    assert!(events.is_empty());
}

#[tokio::test]
async fn a_socket_serves_the_same_and_a_cancel_ends_its_watches() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = Server::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cancel = tokio_util::sync::CancellationToken::new();
    let serving = tokio::spawn(server.api.clone().serve(listener, cancel.clone()));
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = "GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nhost: x\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains("\"kube-system\"") {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the watch ended early: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    cancel.cancel();
    serving.await.unwrap();
}
