//! What is kept from one sync to the next about the slot that runs keep from starting.
#![allow(clippy::unwrap_used)]

use chrono::TimeDelta;
use serde_json::json;

use super::*;
use crate::controller::observation::Recalled;
use crate::controller::plan::Failure;
use crate::controller::tests::objects::{at, cron_job};

/// How a sync ends.
#[derive(Clone, Copy)]
enum End {
    /// A Job keeps the slot from starting.
    Forbidden(&'static str),
    /// So does a Job that is being replaced.
    Replacing(&'static str),
    /// The same, and the sync has deleted it for the slot.
    Replaces(&'static str),
    /// The slot is passed over.
    PassedOver(&'static str),
    /// The slot could have started, and the API server refused it.
    Refused(&'static str),
    /// The same, after the sync has deleted Jobs for the slot.
    RefusedAfterDeleting(&'static str),
    /// A request failed before that was known.
    Failed,
    /// The CronJob is suspended.
    Suspended,
    /// A run blocks the slot that began after it came due.
    BlockedLate(&'static str),
    /// Failures hold the slot.
    Paused(&'static str),
    /// No sync, but a minute after the slot of 10:00.
    MinuteLater,
    /// The slot has started.
    Started(&'static str),
    /// No slot is due.
    NothingDue,
}

#[test]
fn the_slot_that_runs_keep_from_starting_is_known_over_all_that_syncs_meet_one_after_the_other() {
    type Row<'a> = (&'a str, &'a [End], Option<(&'a str, bool)>);

    use End::{
        BlockedLate, Failed, Forbidden, MinuteLater, NothingDue, PassedOver, Paused, Refused, RefusedAfterDeleting,
        Replaces, Replacing, Started, Suspended,
    };
    let (ten, eleven) = ("10:00", "11:00");
    let rows: &[Row<'_>] = &[
        ("one run", &[Forbidden(ten)], Some((ten, false))),
        ("two runs", &[Forbidden(ten), Forbidden(ten)], Some((ten, false))),
        ("a run, over two slots", &[Forbidden(ten), Forbidden(eleven)], Some((eleven, false))),
        ("a run, then a refusal", &[Forbidden(ten), Refused(ten)], Some((ten, true))),
        ("a run, then a refusal, then another run", &[Forbidden(ten), Refused(ten), Forbidden(ten)], Some((ten, true))),
        ("a refusal, then a run", &[Refused(ten), Forbidden(ten)], Some((ten, true))),
        ("a refusal, then a run at the next slot", &[Refused(ten), Forbidden(eleven)], Some((eleven, false))),
        ("a run, then a failure", &[Forbidden(ten), Failed], Some((ten, true))),
        ("a run, then a suspension", &[Forbidden(ten), Suspended], Some((ten, true))),
        ("a run, then a pause", &[Forbidden(ten), Paused(ten)], Some((ten, true))),
        ("a pause, then a run", &[Paused(ten), Forbidden(ten)], Some((ten, true))),
        (
            "a run for a minute, then all of them",
            &[Forbidden(ten), MinuteLater, Failed, Suspended, Paused(ten)],
            Some((ten, false)),
        ),
        ("a run that began later, seen twice", &[BlockedLate(ten), BlockedLate(ten)], Some((ten, true))),
        ("a run, then one that began later", &[Forbidden(ten), BlockedLate(ten)], Some((ten, false))),
        ("a run, then the start", &[Forbidden(ten), Started(ten)], None),
        ("a run, then an edit of the schedule", &[Forbidden(ten), NothingDue], None),
        ("a run that is deleted", &[Replaces(ten)], Some((ten, true))),
        ("a run that is deleted, and lingers", &[Replaces(ten), Replacing(ten)], Some((ten, true))),
        ("two runs, of which one is deleted", &[Replaces(ten), Forbidden(ten)], Some((ten, true))),
        ("a run that lingers, over two slots", &[Replaces(ten), Replacing(eleven)], Some((eleven, false))),
        ("a run that is deleted for each of two slots", &[Replaces(ten), Replaces(eleven)], Some((eleven, true))),
        (
            "a run that someone else deletes, then one that is deleted",
            &[Replacing(ten), Replaces(ten)],
            Some((ten, true)),
        ),
        ("a run that is deleted, then a failure", &[Replaces(ten), Failed], Some((ten, true))),
        ("a run that is deleted, then a refusal", &[Replaces(ten), Refused(ten)], Some((ten, true))),
        ("a deletion and a refusal in one sync", &[RefusedAfterDeleting(ten)], Some((ten, true))),
        ("a deletion and two refusals", &[RefusedAfterDeleting(ten), Refused(ten)], Some((ten, true))),
        (
            "a deletion, two refusals and another run",
            &[RefusedAfterDeleting(ten), Refused(ten), Forbidden(ten)],
            Some((ten, true)),
        ),
        ("a deletion, a refusal and the start", &[Replaces(ten), Refused(ten), Started(ten)], None),
        ("passed over, twice", &[Forbidden(ten), PassedOver(ten), PassedOver(ten)], Some((ten, false))),
    ];
    let annotations =
        |value: &str| json!({ "metadata": { "annotations": { "cronjob-controller.dev/backlog": value } } });
    let forbid = json!({ "spec": { "concurrencyPolicy": "Forbid" } });
    for (backlog, is_kept) in [("0", true), ("1", false)] {
        let cron_job = cron_job(crate::controller::tests::objects::merged(annotations(backlog), forbid.clone()));
        for (sentence, ends, want) in rows {
            let mut observation = Observation::new(Arc::clone(&cron_job), vec![], schedule::Zone::UTC);
            let mut now = at(ten) + TimeDelta::seconds(30);
            for end in *ends {
                let (verdict, deleted_for) = match *end {
                    MinuteLater => {
                        now += TimeDelta::seconds(31);
                        continue;
                    }
                    Paused(slot) => (Verdict::Skipped(Skip::Paused(at(slot))), None),
                    Forbidden(slot) | BlockedLate(slot) => (Verdict::Skipped(Skip::Forbid(at(slot))), None),
                    Replacing(slot) => (Verdict::Skipped(Skip::Replacing(at(slot))), None),
                    Replaces(slot) => (Verdict::Skipped(Skip::Replacing(at(slot))), Some(at(slot))),
                    PassedOver(slot) => (Verdict::Skipped(Skip::PassedOver(at(slot))), None),
                    Refused(_) | Failed => (Verdict::Open, None),
                    RefusedAfterDeleting(slot) => (Verdict::Open, Some(at(slot))),
                    Suspended => (Verdict::Skipped(Skip::Suspended), None),
                    Started(slot) => {
                        (Verdict::Started { slot: at(slot), missed: schedule::missed::Missed::None }, None)
                    }
                    NothingDue => (Verdict::NothingDue, None),
                };
                let mut draft = Draft::new(&cron_job, &Recalled::default());
                draft.verdict = verdict;
                draft.startable = match end {
                    Refused(slot) | RefusedAfterDeleting(slot) | Started(slot) => Some(at(slot)),
                    _ => None,
                };
                draft.blocked_from_due = !matches!(end, BlockedLate(_));
                let failure = Failure::Changed(cron_job.name.clone());
                let fails = matches!(end, Failed | Refused(_) | RefusedAfterDeleting(_));
                let outcome = if fails { Outcome::Failed(failure) } else { Outcome::Done };
                observation.recalled.memo.blocked = blocked(&observation, &draft, &outcome, deleted_for, now);
            }
            let want = want.filter(|_| is_kept).map(|(slot, waits)| Blocked { slot: at(slot), waits });
            assert_eq!(observation.recalled.memo.blocked, want, "backlog {backlog}: {sentence}");
        }
    }
}
