use super::*;
use crate::client::DeadlineError;

fn status(code: u16, reason: &str) -> Cause {
    Cause::Status(ServerStatus { code, reason: reason.to_owned(), ..ServerStatus::default() })
}

fn too_large() -> Cause {
    Cause::Status(ServerStatus { code: 504, resource_version_too_large: true, ..ServerStatus::default() })
}

fn transport() -> kube::Error {
    kube::Error::Service("connection refused".into())
}

fn no_connection() -> Cause {
    Cause::Send(Box::new(transport()))
}

fn no_answer() -> Cause {
    Cause::Send(Box::new(kube::Error::Service(Box::new(DeadlineError::Answer))))
}

fn cut_off(millis: u64) -> Cause {
    Cause::CutOff { after: Duration::from_millis(millis), source: Box::new(transport()) }
}

fn garbage() -> Cause {
    Cause::Envelope(serde_json::from_str::<u8>("{").expect_err("no number"))
}

#[test]
fn each_failure_has_its_recovery() {
    use Operation::{List, StreamingList, Watch};
    use Recovery::{FallBackToPages, Relist, Resume, ResumeLater};
    let second = Duration::from_secs(1);
    let went_back = || Cause::WentBack { last: "9".into(), got: "8".into() };
    let rows = [
        ("a streaming list that is a bad request falls back", StreamingList, status(400, ""), FallBackToPages),
        ("a streaming list that is invalid falls back", StreamingList, status(422, "Invalid"), FallBackToPages),
        ("a streaming list without end falls back", StreamingList, Cause::NoEndBookmark(second), FallBackToPages),
        ("a streaming list that is forbidden is tried again", StreamingList, status(403, ""), Relist),
        ("a streaming list that is cut off is tried again", StreamingList, cut_off(9), Relist),
        ("a streaming list in an outage is tried again", StreamingList, no_connection(), Relist),
        ("a list that is refused is tried again", List, status(400, ""), Relist),
        ("a list that breaks off is tried again", List, Cause::Read(Box::new(transport())), Relist),
        ("a watch with code 410 relists", Watch, status(410, ""), Relist),
        ("a watch with reason Expired relists", Watch, status(0, "Expired"), Relist),
        ("a watch with reason Gone relists", Watch, status(0, "Gone"), Relist),
        ("a watch from the future relists", Watch, too_large(), Relist),
        ("a watch that is a bad request relists", Watch, status(400, ""), Relist),
        ("a watch with a garbled event relists", Watch, garbage(), Relist),
        ("a watch with an endless line relists", Watch, Cause::LineTooLong(9), Relist),
        ("a watch that goes back in time relists", Watch, went_back(), Relist),
        ("a watch that meets an error of the server waits", Watch, status(500, "InternalError"), ResumeLater),
        ("a watch that is throttled waits", Watch, status(429, "TooManyRequests"), ResumeLater),
        ("a watch in an outage waits", Watch, no_connection(), ResumeLater),
        ("a watch without headers waits", Watch, Cause::Timeout(second), ResumeLater),
        ("a very short watch waits", Watch, Cause::VeryShortWatch(second), ResumeLater),
        ("a watch that is cut off within a second waits", Watch, cut_off(999), ResumeLater),
        ("a watch that is cut off later goes on at once", Watch, cut_off(1_000), Resume),
        ("a watch that falls silent goes on at once", Watch, Cause::Silent(second), Resume),
        ("a watch that is overdue goes on at once", Watch, Cause::Overdue(second), Resume),
    ];
    for (sentence, operation, cause, expected) in rows {
        let mut failures = FailureCounts::default();
        failures.count(operation, &cause);
        assert_eq!(recovery(operation, &cause, failures), expected, "{sentence}");
    }
}

#[test]
fn request_that_fails_repeatedly_without_progress_is_given_up() {
    type Row = (&'static str, Operation, fn() -> Cause, Option<usize>);
    let rows: [Row; 10] = [
        ("silence is given up the second time", Operation::Watch, || Cause::Silent(Duration::ZERO), Some(2)),
        ("refusals are given up the fifth time", Operation::Watch, || status(500, ""), Some(5)),
        ("watches without headers are given up, too", Operation::Watch, || Cause::Timeout(Duration::ZERO), Some(5)),
        ("and very short ones", Operation::Watch, || Cause::VeryShortWatch(Duration::ZERO), Some(5)),
        ("and those that are cut off at once", Operation::Watch, || cut_off(5), Some(5)),
        ("throttling is never given up", Operation::Watch, || status(429, ""), None),
        ("an outage is never given up: a list would not help", Operation::Watch, no_connection, None),
        ("cut-off streaming lists are given up the third time", Operation::StreamingList, || cut_off(5), Some(3)),
        ("an outage says nothing about streaming lists", Operation::StreamingList, no_connection, None),
        ("a failing server says nothing about streaming lists", Operation::StreamingList, || status(500, ""), None),
    ];
    for (sentence, operation, cause, given_up) in rows {
        let mut failures = FailureCounts::default();
        let first = {
            let mut once = FailureCounts::default();
            once.count(operation, &cause());
            recovery(operation, &cause(), once)
        };
        let turn = (1..=20).find(|_| {
            failures.count(operation, &cause());
            recovery(operation, &cause(), failures) != first
        });
        assert_eq!(turn, given_up, "{sentence}");
    }
}

#[test]
fn an_error_names_the_operation_the_resource_and_the_cause() {
    let error = |operation, cause| ReflectorError { operation, resource: "/apis/batch/v1/jobs".into(), cause };
    let rows = [
        (
            error(Operation::Watch, no_connection()),
            "watch /apis/batch/v1/jobs: sending the request: connection refused",
        ),
        (
            error(Operation::StreamingList, status(422, "Invalid")),
            "streaming list /apis/batch/v1/jobs: the server answered 422 Invalid: ",
        ),
        (
            error(Operation::List, Cause::Timeout(Duration::from_secs(60))),
            "list /apis/batch/v1/jobs: no complete answer within 60s",
        ),
    ];
    for (error, text) in rows {
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn each_failure_has_its_wait() {
    use Failure::{Away, Other, Passing};
    use Operation::{List, StreamingList, Watch};
    let second = Duration::from_secs(1);
    let read = || Cause::Read(Box::new(transport()));
    let rows = [
        ("no connection", List, no_connection(), Away),
        ("throttled", List, status(429, ""), Away),
        ("a proxy without a server", Watch, status(502, ""), Away),
        ("a list that meets an error of the server", List, status(500, ""), Away),
        ("a watch that meets one", Watch, status(500, ""), Other),
        ("a version from the future", Watch, too_large(), Other),
        ("a missing right", List, status(403, ""), Passing),
        ("a list that is not answered in time", List, Cause::Timeout(second), Away),
        ("a list without headers", List, no_answer(), Away),
        ("a watch that is not answered in time", Watch, Cause::Timeout(second), Away),
        ("a list that breaks off", List, read(), Other),
        ("a watch that is cut off at once", Watch, cut_off(9), Other),
        ("a watch that ends at once", Watch, Cause::VeryShortWatch(second), Other),
        ("a streaming list that ends early", StreamingList, Cause::InitialEventsCutOff, Other),
        ("a streaming list without end", StreamingList, Cause::NoEndBookmark(second), Away),
        ("a kind that is not served", List, status(404, ""), Other),
        ("garbage", List, garbage(), Other),
    ];
    for (sentence, operation, cause, want) in rows {
        assert_eq!(cause.failure(operation), want, "{sentence}");
    }
}
