#![allow(clippy::unwrap_used)]

use futures::stream;
use futures::{StreamExt as _, TryStreamExt as _};

use super::*;

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
