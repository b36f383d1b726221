//! What is pending after several creates, one after the other.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::*;
use crate::controller::tests::objects::{at, cron_job};

#[derive(Clone, Copy)]
enum Step {
    /// A create for the slot is sent.
    Begin(&'static str),
    /// The same, while another process may have sent one.
    BeginBeside(&'static str),
    /// It succeeds.
    Created,
    /// It is refused.
    Refused,
    /// It has no answer, and may be committed for so many seconds.
    Unanswered(u64),
    /// A Job of another owner has the name of the slot.
    NameTaken(&'static str),
    /// The status is written with this newest slot.
    Recorded(&'static str),
    /// So many seconds pass.
    Pass(u64),
}

async fn after(status: &mut PendingStatus, steps: &[Step]) {
    use Step::{Begin, BeginBeside, Created, NameTaken, Pass, Recorded, Refused, Unanswered};
    for step in steps {
        match *step {
            Begin(slot) => status.begin(at(slot), false),
            BeginBeside(slot) => status.begin(at(slot), true),
            Created => status.created(false),
            Refused => status.refused(false),
            Unanswered(seconds) => status.unanswered(Instant::now() + Duration::from_secs(seconds)),
            NameTaken(slot) => status.name_taken(at(slot)),
            Recorded(slot) => {
                status.recorded(&cron_job(serde_json::json!({ "status": { "lastScheduleTime": at(slot) } })));
            }
            Pass(seconds) => tokio::time::advance(Duration::from_secs(seconds)).await,
        }
    }
}

/// A sentence, the steps, the create that is still pending and for how many seconds, and for how many seconds the lease is
/// held because of any create.
type Row<'a> = (&'a str, &'a [Step], Option<(&'a str, u64)>, u64);

#[tokio::test(start_paused = true)]
async fn create_without_an_answer_is_pending_whatever_comes_of_those_after_it() {
    use Step::{Begin, BeginBeside, Created, NameTaken, Pass, Recorded, Refused, Unanswered};
    let rows: &[Row<'_>] = &[
        ("sent", &[Begin("10:00"), Pass(9)], Some(("10:00", 30)), 30),
        ("created", &[Begin("10:00"), Created], None, 0),
        ("refused", &[Begin("10:00"), Refused], None, 0),
        ("no answer", &[Begin("10:00"), Unanswered(39), Pass(5)], Some(("10:00", 34)), 34),
        (
            "no answer for so long that it cannot come",
            &[Begin("10:00"), Unanswered(39), Pass(39)],
            Some(("10:00", 0)),
            0,
        ),
        (
            "no answer, then refused",
            &[Begin("10:00"), Unanswered(39), Pass(5), Begin("10:00"), Refused],
            Some(("10:00", 34)),
            34,
        ),
        ("no answer, then created", &[Begin("10:00"), Unanswered(39), Pass(5), Begin("10:00"), Created], None, 34),
        (
            "no answer, then created and recorded",
            &[Begin("10:00"), Unanswered(39), Pass(5), Begin("10:00"), Created, Recorded("10:00")],
            None,
            34,
        ),
        (
            "no answer, then refused, and its Job was found",
            &[Begin("10:00"), Unanswered(39), Pass(5), Begin("10:00"), Refused, Recorded("10:00")],
            None,
            0,
        ),
        (
            "no answer twice, then refused, and its Job was found",
            &[
                Begin("10:00"),
                Unanswered(39),
                Begin("10:00"),
                Unanswered(39),
                Begin("10:00"),
                Refused,
                Recorded("10:00"),
            ],
            None,
            39,
        ),
        (
            "no answer beside an earlier leader, and a Job was found",
            &[BeginBeside("10:00"), Unanswered(39), Recorded("10:00")],
            None,
            39,
        ),
        (
            "no answer beside an earlier leader, then refused, and a Job was found",
            &[BeginBeside("10:00"), Unanswered(39), Pass(5), Begin("10:00"), Refused, Recorded("10:00")],
            None,
            34,
        ),
        (
            "no answer, then refused beside an earlier leader, and a Job was found",
            &[Begin("10:00"), Unanswered(39), Pass(5), BeginBeside("10:00"), Refused, Recorded("10:00")],
            None,
            34,
        ),
        ("created beside an earlier leader", &[BeginBeside("10:00"), Created, Recorded("10:00")], None, 0),
        (
            "no answer twice, and its Job was found",
            &[Begin("10:00"), Unanswered(39), Pass(5), Begin("10:00"), Unanswered(9), Recorded("10:00")],
            None,
            34,
        ),
        (
            "no answer, and the Job of a later slot was found",
            &[Begin("10:00"), Unanswered(39), Recorded("10:01")],
            None,
            39,
        ),
        (
            "no answer, then none from a server that has given up",
            &[Begin("10:00"), Unanswered(39), Pass(5), Begin("10:00"), Unanswered(0)],
            Some(("10:00", 34)),
            34,
        ),
        (
            "no answer twice",
            &[Begin("10:00"), Unanswered(39), Pass(5), Begin("10:00"), Unanswered(39)],
            Some(("10:00", 39)),
            39,
        ),
        (
            "refused, then no answer",
            &[Begin("10:00"), Refused, Pass(5), Begin("10:00"), Unanswered(39)],
            Some(("10:00", 39)),
            39,
        ),
        (
            "no answer, then the next slot is refused",
            &[Begin("10:00"), Unanswered(39), Pass(5), Begin("10:01"), Refused],
            None,
            34,
        ),
        (
            "no answer, then the next slot is created",
            &[Begin("10:00"), Unanswered(39), Pass(5), Begin("10:01"), Created],
            None,
            34,
        ),
        (
            "no answer, and none for the next slot",
            &[Begin("10:00"), Unanswered(39), Pass(5), Begin("10:01"), Unanswered(0)],
            Some(("10:01", 0)),
            34,
        ),
        (
            "no answer for two slots, then the third is created and recorded",
            &[
                Begin("10:00"),
                Unanswered(39),
                Pass(5),
                Begin("10:01"),
                Unanswered(39),
                Pass(5),
                Begin("10:02"),
                Created,
                Recorded("10:02"),
            ],
            None,
            34,
        ),
        (
            "no answer for two slots, the first the later one",
            &[Begin("10:00"), Unanswered(39), Begin("10:01"), Unanswered(9), Begin("10:02"), Created],
            None,
            39,
        ),
        ("no answer, and another owner has its name", &[Begin("10:00"), Unanswered(39), NameTaken("10:00")], None, 0),
        (
            "no answer, and another owner has the name of another slot",
            &[Begin("10:00"), Unanswered(39), NameTaken("10:01")],
            Some(("10:00", 39)),
            39,
        ),
        ("no answer, and its Job was found", &[Begin("10:00"), Unanswered(39), Recorded("10:00")], None, 0),
        (
            "no answer, and an earlier Job was found",
            &[Begin("10:00"), Unanswered(39), Recorded("09:59")],
            Some(("10:00", 39)),
            39,
        ),
    ];
    for (sentence, steps, want, held) in rows {
        let mut status = PendingStatus::default();
        after(&mut status, steps).await;
        let seconds =
            |seconds: u64| TimeDelta::try_seconds(i64::try_from(seconds).unwrap()).filter(|wait| !wait.is_zero());
        let want = want.map(|(slot, wait)| (at(slot), seconds(wait)));
        let pending = status.begun.and_then(|begun| begun.pending());
        assert_eq!(pending.map(|pending| (pending.slot, pending.wait)), want, "{sentence}");
        let left = status.may_commit_until().map(|end| end.saturating_duration_since(Instant::now()).as_secs());
        assert_eq!(left.unwrap_or_default(), *held, "{sentence}: until any may be committed");
        tokio::time::advance(Duration::from_secs(*held)).await;
        assert_eq!(status.is_empty(), want.is_none(), "{sentence}: nothing is kept for ever");
    }
}

#[tokio::test(start_paused = true)]
async fn create_is_repeated_if_another_of_its_slot_has_no_answer() {
    use Step::{Begin, BeginBeside, Pass, Refused, Unanswered};
    let rows: &[(&str, &[Step], bool)] = &[
        ("sent once", &[Begin("10:00"), Unanswered(39)], false),
        ("sent twice", &[Begin("10:00"), Unanswered(39), Pass(5), Begin("10:00")], true),
        ("sent twice, the second refused", &[Begin("10:00"), Unanswered(39), Begin("10:00"), Refused], false),
        (
            "sent three times, the last refused",
            &[Begin("10:00"), Unanswered(39), Begin("10:00"), Unanswered(39), Begin("10:00"), Refused],
            true,
        ),
        ("sent once, beside an earlier leader", &[BeginBeside("10:00"), Unanswered(39)], true),
        ("refused, then sent", &[Begin("10:00"), Refused, Begin("10:00")], false),
        ("another slot was sent before", &[Begin("09:59"), Unanswered(39), Begin("10:00")], false),
    ];
    for (sentence, steps, want) in rows {
        let mut status = PendingStatus::default();
        after(&mut status, steps).await;
        let pending = status.begun.and_then(|begun| begun.pending());
        assert_eq!(pending.map(|pending| pending.is_repeated), Some(*want), "{sentence}");
    }
}
