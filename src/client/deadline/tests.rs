use super::*;
use crate::leader_election::{Gate, Leadership};

#[tokio::test(start_paused = true)]
async fn time_allowed_for_a_create_never_outlives_what_the_lease_says() {
    let seconds = Duration::from_secs_f64;
    let whole = |server: f64| Ok(Allowed { server: Some(seconds(server)), client: seconds(server + 5.0) });
    let left = |lease: f64, creates: f64| Some((seconds(lease), seconds(creates)));
    let rows = [
        ("a fixed limit is the client's alone", left(9.5, 9.5), TimeLimit::Client(seconds(10.0)), None),
        (
            "a create has what is left of the lease, less the time until its receipt",
            left(13.2, 13.2),
            TimeLimit::Lease,
            Some(whole(9.2)),
        ),
        ("one that was announced has more", left(5.5, 32.5), TimeLimit::Announced, Some(whole(28.5))),
        ("a lease of minutes has the server's own bound", left(600.0, 600.0), TimeLimit::Lease, Some(whole(34.0))),
        ("what names a version has the server's own bound", left(5.1, 5.1), TimeLimit::Longest, Some(whole(34.0))),
        ("without the lease nothing is sent", None, TimeLimit::Longest, Some(Err(DeadlineError::Closed))),
        ("nor within the lease's time", None, TimeLimit::Lease, Some(Err(DeadlineError::Closed))),
    ];
    for (sentence, left, limit, want) in rows {
        let gate = Gate::default();
        if let Some((lease, creates)) = left {
            gate.open(Leadership::ending_in(lease, creates));
        }
        let want = want.unwrap_or(Ok(Allowed { server: None, client: seconds(10.0) }));
        assert_eq!(RequestLimits { gate: Some(gate.into()), limit }.now(), want, "{sentence}");
    }
    let unbounded = RequestLimits { gate: None, limit: TimeLimit::Lease };
    assert_eq!(unbounded.now(), whole(34.0), "without an election");
}

#[test]
fn timeout_is_sent_in_the_query() {
    for (uri, want) in [
        ("https://h:1/apis/batch/v1/jobs", "https://h:1/apis/batch/v1/jobs?timeout=13250ms"),
        ("/jobs?fieldValidation=Ignore", "/jobs?fieldValidation=Ignore&timeout=13250ms"),
    ] {
        let mut request = Request::post(uri).body(()).expect("a request");
        tell_the_server(&mut request, Duration::from_micros(13_250_900));
        assert_eq!(request.uri(), want);
    }
}

#[test]
fn a_body_is_read_up_to_its_limit() {
    let rows = [
        ("what just fits passes", LengthLimit::Fail(6), Ok(6)),
        ("what does not is an error", LengthLimit::Fail(5), Err(DeadlineError::Length)),
        ("a refusal that fits is whole", LengthLimit::Cut(7), Ok(6)),
        ("a longer one is cut", LengthLimit::Cut(5), Ok(5)),
        ("a watch goes on", LengthLimit::None, Ok(6)),
    ];
    for (sentence, mut limit, want) in rows {
        let read = [b"abc".to_vec(), b"def".to_vec()].into_iter().try_fold(0, |read, piece| {
            let mut piece = Bytes::from(piece);
            limit.take(&mut piece).map(|()| read + piece.len())
        });
        assert_eq!(read, want, "{sentence}");
    }
}
