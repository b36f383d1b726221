//! The log of a Pod is its annotation `log`.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::support::{MERGE, Server};
use crate::Body;

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn with_pod() -> Server {
    let server = Server::with_kinds().await;
    server.api.set_log_source(Arc::new(|pod, container| {
        let log = pod["metadata"]["annotations"]["log"].as_str()?;
        Some(format!("{container}\n{log}"))
    }));
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
    server.post(PODS, &pod).await.expect(201);
    server
}

async fn write(server: &Server, log: &str) {
    let change = json!({"metadata": {"annotations": {"log": log}}});
    server.patch(&format!("{PODS}/p"), MERGE, &change).await.expect(200);
}

/// Makes this the state of the container, after so many restarts.
async fn set_state(server: &Server, state: Value, restarts: u32) {
    let status =
        json!({"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": restarts, "state": state});
    let change = json!({"status": {"containerStatuses": [status]}});
    server.patch(&format!("{PODS}/p/status"), MERGE, &change).await.expect(200);
}

fn rest(body: &mut Body) -> String {
    let mut text = String::new();
    while let Some(Some(frame)) = body.frame().now_or_never() {
        text.push_str(std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap());
    }
    text
}

#[tokio::test(start_paused = true)]
async fn log_is_that_of_the_chosen_container_and_as_long_as_asked_for() {
    let server = with_pod().await;
    let waiting = server.get(&format!("{PODS}/p/log")).await;
    assert_eq!(
        (waiting.code, waiting.message()),
        (400, "container \"c\" in pod \"p\" is waiting to start: ContainerCreating")
    );
    write(&server, "one\ntwo").await;
    let rows = [
        ("", "c\none\ntwo"),
        ("?container=c&tailLines=2", "one\ntwo"),
        ("?tailLines=0", ""),
        ("?tailLines=9", "c\none\ntwo"),
    ];
    for (query, want) in rows {
        let answer = server.get(&format!("{PODS}/p/log{query}")).await;
        assert_eq!((answer.code, answer.body.as_str()), (200, Some(want)), "{query}");
    }
    let unknown = server.get(&format!("{PODS}/p/log?container=d")).await;
    assert_eq!((unknown.code, unknown.message()), (400, "container d is not valid for pod p"));
}

#[tokio::test(start_paused = true)]
async fn followed_log_grows_and_ends_with_its_container() {
    let running = json!({"running": {}});
    let ends = [
        ("it ends", Some(json!({"terminated": {"exitCode": 1}})), 0),
        ("it is restarted", Some(running.clone()), 1),
        ("its Pod is deleted", None, 0),
    ];
    for (sentence, end, restarts) in ends {
        let server = with_pod().await;
        set_state(&server, running.clone(), 0).await;
        write(&server, "one\n").await;
        let mut body = server.raw("GET", &format!("{PODS}/p/log?follow=true&tailLines=1"), &[], "").await.into_body();
        assert_eq!(rest(&mut body), "one\n", "{sentence}");
        write(&server, "one\ntwo\n").await;
        assert_eq!(rest(&mut body), "two\n", "{sentence}");
        assert!(body.frame().now_or_never().is_none(), "{sentence}: it is still open");
        match end {
            Some(state) => set_state(&server, state, restarts).await,
            None => {
                server.delete(&format!("{PODS}/p?gracePeriodSeconds=0")).await.expect(200);
            }
        }
        assert!(body.frame().now_or_never().unwrap().is_none(), "{sentence}");
    }
}
