#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Bytes;
use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};
use http::Response;
use http_body::Frame;
use http_body_util::StreamBody;
use kube::client::Body;
use serde_json::json;

use super::*;
use crate::client;

/// Lines with the bytes that they are of the log, and the result.
async fn lines_of(pieces: Vec<Result<&str, &str>>, skip: usize) -> (Vec<(String, usize)>, Result<(), (String, bool)>) {
    let pieces = pieces.into_iter().map(|piece| match piece {
        Ok(text) => Ok(text.as_bytes().to_vec()),
        Err(why) => Err(std::io::Error::other(why.to_owned())),
    });
    let log = stream::iter(pieces.collect::<Vec<_>>()).boxed().into_async_read();
    let (sender, mut pieces) = channel(1000);
    let instance = Instance { pod: "p".to_owned(), uid: "u".to_owned(), restarts: 0 };
    let result = read_lines(std::pin::pin!(log), skip, &instance, &sender).await;
    drop(sender);
    let mut lines = Vec::new();
    while let Some(Piece::Line(_, line, bytes)) = pieces.recv().await {
        lines.push((line, bytes));
    }
    (lines, result)
}

#[tokio::test]
async fn log_is_split_into_lines_from_the_byte_at_which_it_continues() {
    let long = "x".repeat(LONGEST_LINE + 1);
    let broken = Err(("reset".to_owned(), false));
    let row = |line: &str, bytes: usize| (line.to_owned(), bytes);
    let rows = [
        ("nothing", vec![], 0, vec![], Ok(())),
        (
            "lines across pieces",
            vec![Ok("on"), Ok("e\r\ntwo\n"), Ok("\nthree")],
            0,
            vec![row("one", 5), row("two", 4), row("", 1), row("three", 5)],
            Ok(()),
        ),
        ("what was printed is left out", vec![Ok("one\nt"), Ok("wo\n")], 4, vec![row("two", 4)], Ok(())),
        ("a log that has become shorter", vec![Ok("one\n")], 9, vec![], Ok(())),
        (
            "a line that has begun is no line when it breaks off",
            vec![Ok("one\ntw"), Err("reset")],
            0,
            vec![row("one", 4)],
            broken,
        ),
        ("a long line is two", vec![Ok(&*long)], 0, vec![row(&long[1..], LONGEST_LINE), row("x", 1)], Ok(())),
    ];
    for (sentence, pieces, skip, lines, result) in rows {
        assert_eq!(lines_of(pieces, skip).await, (lines, result), "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn log_that_breaks_off_is_read_again_and_continues_after_the_last_line() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_log = request.uri().path().ends_with("/log");
        let status = json!({"phase": "Running", "containerStatuses": [
            {"name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}},
        ]});
        let pods = json!({"items": [{"metadata": {"name": "p", "uid": "u"}, "status": status}]}).to_string();
        let pieces = match is_log.then(|| counted.fetch_add(1, Ordering::Relaxed)) {
            None => vec![Ok(pods)],
            Some(0) => vec![Ok("one\ntw".to_owned()), Err("reset")],
            Some(_) => vec![Ok("one\ntwo\n".to_owned())],
        };
        let frames = pieces
            .into_iter()
            .map(|piece| piece.map(|text| Frame::data(Bytes::from(text))).map_err(std::io::Error::other));
        let answer = Response::new(StreamBody::new(stream::iter(frames.collect::<Vec<_>>())));
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    let client = client::on_service(service);
    let (mut out, mut err) = (String::new(), String::new());
    let mut print = |text: &PlainText| {
        out.push_str(text);
        true
    };
    let mut note = |text: &PlainText| err.push_str(text);
    let mut outlet = Outlet { print: &mut print, note: &mut note };
    let mut logs = Logs::new(&client, "default", "j", "c");
    logs.look(&mut outlet).await;
    while !logs.are_read() {
        let piece = Logs::next(Some(&mut logs)).await;
        assert!(logs.take(piece, &mut outlet));
        logs.look(&mut outlet).await;
    }
    assert_eq!((&*out, &*err, asked.load(Ordering::Relaxed)), ("one\ntwo\n", "Pod p, container c:\n", 2));
}
