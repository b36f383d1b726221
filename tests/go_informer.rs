//! client-go's own informer against the embedded API server. An ordinary client lists and watches, and recovers after
//! the server's history was compacted while it was disconnected.
//!
//! The informer is part of the control plane fixture's binary. If that is not built, the test is skipped with a
//! message; with `REQUIRE_FIXTURE=1` that is a failure.
#![allow(clippy::unwrap_used, clippy::explicit_write, missing_docs)]

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use testkit::fixture::binary;
use testkit::tools;

use apimachinery::clock::SystemClock;
use apiserver::{ApiServer, Config};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{ChildStdout, Command};
use tokio_util::sync::CancellationToken;

const COLLECTION: &str = "/apis/batch/v1/namespaces/default/cronjobs";

struct Server {
    api: ApiServer,
    port: u16,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    async fn listen(api: ApiServer, port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let (port, stop) = (listener.local_addr().unwrap().port(), CancellationToken::new());
        let task = tokio::spawn(api.clone().serve(listener, stop.clone()));
        Self { api, port, stop, task }
    }

    /// Closes the port and every connection; the stored objects remain.
    async fn close(self) -> (ApiServer, u16) {
        self.stop.cancel();
        self.task.await.unwrap();
        (self.api, self.port)
    }
}

async fn send(api: &ApiServer, method: &str, path: &str, body: &Value) {
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
    let request = request.body(body.to_string().into_bytes()).unwrap();
    api.client().request::<Value>(request).await.unwrap();
}

async fn create(api: &ApiServer, name: &str) {
    let template = json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] } });
    let object = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": { "name": name },
        "spec": { "schedule": "0 0 1 1 *", "jobTemplate": { "spec": { "template": template } } },
    });
    send(api, "POST", COLLECTION, &object).await;
}

/// Reads lines until all of `wanted` were seen, in any order; only `error` lines may come between.
async fn expect(lines: &mut Lines<BufReader<ChildStdout>>, wanted: &[&str]) {
    let mut wanted = wanted.to_vec();
    while !wanted.is_empty() {
        let line = tokio::time::timeout(Duration::from_secs(60), lines.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("no line within a minute; still waiting for {wanted:?}"));
        let line = line.unwrap().unwrap_or_else(|| panic!("the informer ended; still waiting for {wanted:?}"));
        if line.starts_with("error ") {
            println!("go_informer: {line}");
            continue;
        }
        let at = wanted.iter().position(|one| *one == line);
        wanted.remove(at.unwrap_or_else(|| panic!("unexpected {line:?}; waiting for {wanted:?}")));
    }
}

#[tokio::test]
async fn client_go_lists_watches_and_survives_a_compaction() {
    let Ok(binary) = binary::find().inspect_err(|why| tools::without_fixture("go_informer", why)) else { return };
    let server = Server::listen(ApiServer::new(Config::builtin(Arc::new(SystemClock))), 0).await;
    create(&server.api, "kept").await;
    create(&server.api, "dropped").await;

    let mut informer = Command::new(binary)
        .args(["informer", "--server", &format!("http://127.0.0.1:{}", server.port)])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(informer.stdout.take().unwrap()).lines();
    expect(&mut lines, &["add default/kept 0 0 1 1 *", "add default/dropped 0 0 1 1 *", "synced 2"]).await;

    create(&server.api, "seen").await;
    expect(&mut lines, &["add default/seen 0 0 1 1 *"]).await;
    let changed = json!({ "spec": { "schedule": "0 0 2 1 *" } });
    send(&server.api, "PATCH", &format!("{COLLECTION}/seen"), &changed).await;
    expect(&mut lines, &["update default/seen 0 0 2 1 *"]).await;

    let (api, port) = server.close().await;
    send(&api, "DELETE", &format!("{COLLECTION}/dropped"), &json!({})).await;
    create(&api, "missed").await;
    api.compact();
    create(&api, "later").await;
    let server = Server::listen(api, port).await;
    // The informer computes additions and deletions from the difference of two lists. When it compares a list with its
    // store, it also reports unchanged objects as updates.
    let difference = [
        "add default/missed 0 0 1 1 *",
        "add default/later 0 0 1 1 *",
        "delete default/dropped 0 0 1 1 *",
        "update default/kept 0 0 1 1 *",
        "update default/seen 0 0 2 1 *",
    ];
    expect(&mut lines, &difference).await;

    send(&server.api, "DELETE", &format!("{COLLECTION}/kept"), &json!({})).await;
    expect(&mut lines, &["delete default/kept 0 0 1 1 *"]).await;
    server.stop.cancel();
}
