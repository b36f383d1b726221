#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use schedule::Zone;
use serde_json::json;

use super::Memories;
use crate::api::batch_v1::{CronJob, Job};
use crate::controller::control::Patience;
use crate::controller::observation::Observation;
use crate::controller::retained::Retained;
use crate::controller::status::{Draft, Edits};
use crate::controller::tests::objects;

fn cron_job(uid: &str, version: &str) -> Arc<CronJob> {
    objects::cron_job(json!({ "metadata": { "uid": uid, "resourceVersion": version } }))
}

fn job(uid: &str) -> Arc<Job> {
    objects::job(uid, uid, json!({}))
}

/// Remembers everything that can be known of a CronJob.
fn fill(memories: &Memories, owner: &Arc<CronJob>) {
    let mut edits = Edits::default();
    edits.scheduled(objects::time("2026-11-20T10:00:00Z"));
    memories.settled(owner, Some(owner), Edits::default());
    memories.settled(owner, None, edits);
    memories.change(owner, |known| {
        known.own.job_created(&job("created"));
        known.own.job_deleted(&job("deleted").uid);
        known.own.job_vanished(&job("vanished"));
        known.own.slot_taken(objects::time("2026-11-20T10:01:00Z"));
        known.memo.name_taken = Some(objects::time("2026-11-20T10:02:00Z"));
        known.name_conflict_reported = true;
        known.pending.begin(objects::time("2026-11-20T10:03:00Z"), false);
    });
}

/// What a sync of this version is told.
fn recall(memories: &Memories, cached: &Arc<CronJob>) -> Observation {
    memories.recall(cached, Zone::UTC, 4, String::new)
}

fn is_known(observation: &Observation) -> [bool; 6] {
    let recalled = &observation.recalled;
    [
        !recalled.created.is_empty(),
        !recalled.deleted.is_empty(),
        !recalled.vanished.is_empty(),
        !recalled.carried.is_empty(),
        recalled.memo.name_taken.is_some(),
        recalled.begun.is_some(),
    ]
}

#[tokio::test]
async fn what_is_known_of_a_cron_job_goes_as_a_whole_with_the_first_sync_of_a_later_one() {
    let (memories, old, new) = (Memories::default(), cron_job("old", "10"), cron_job("new", "20"));
    fill(&memories, &old);
    memories.of_name(&old.name, |memory| (memory.confirmed, memory.timed_out) = (4, true));
    assert_eq!(is_known(&recall(&memories, &old)), [true; 6], "it is no predecessor of itself");
    let recalled = recall(&memories, &new);
    assert_eq!(is_known(&recalled), [false; 6]);
    assert_eq!(recalled.cron_job.resource_version, new.resource_version);
    let of_name = (recalled.view_is_suspect, recalled.patience);
    assert_eq!(of_name, (false, Patience::Longest), "this belongs to the name");
    memories.of_name(&old.name, |memory| memory.confirmed = 3);
    assert!(recall(&memories, &new).view_is_suspect);
    assert!(!memories.knows(&old.name, &old.uid));
    assert_eq!((memories.last_commit(), memories.open(), memories.unseen()), (None, vec![], vec![]));
    memories.forget(&old.name);
    assert_eq!(memories.retained(), Retained::default());
}

#[tokio::test]
async fn first_record_about_a_later_cron_job_replaces_what_is_known_of_an_earlier_one() {
    let (memories, old, new) = (Memories::default(), cron_job("old", "10"), cron_job("new", "20"));
    fill(&memories, &old);
    memories.change(&new, |known| known.own.job_created(&job("other")));
    assert_eq!(is_known(&recall(&memories, &new)), [true, false, false, false, false, false]);
    assert_eq!(is_known(&recall(&memories, &old)), [false; 6], "an answer that comes late records nothing");
    memories.change(&old, |known| known.name_conflict_reported = true);
    assert!(memories.knows(&new.name, &new.uid) && !memories.knows(&old.name, &old.uid));
}

#[tokio::test]
async fn what_is_known_of_a_later_cron_job_outlives_a_sync_of_an_earlier_one_on_a_stale_list() {
    let (memories, old, new) = (Memories::default(), cron_job("old", "10"), cron_job("new", "20"));
    fill(&memories, &new);
    assert_eq!(is_known(&recall(&memories, &old)), [false; 6]);
    memories.settled(&old, None, Edits::default());
    assert_eq!(memories.change(&old, |_| ()), None);
    assert_eq!(is_known(&recall(&memories, &new)), [true; 6]);
    // The API server says that the earlier one is the one that exists, as after a restored backup.
    memories.confirmed(&old, 1);
    assert!(memories.knows(&old.name, &old.uid) && !memories.knows(&new.name, &new.uid));
    assert_eq!(memories.change(&old, |_| ()), Some(()));
}

#[tokio::test]
async fn nothing_is_kept_of_a_cron_job_of_which_nothing_is_known() {
    let (memories, owner) = (Memories::default(), cron_job("a", "10"));
    memories.settled(&owner, None, Edits::default());
    memories.change(&owner, |known| known.own.job_created(&job("seen")));
    assert!(memories.contains(&owner.name));
    memories.update(&owner, |known| known.own.job_seen(&job("seen").uid));
    assert!(!memories.contains(&owner.name));
    memories.settled(&owner, Some(&owner), Edits::default());
    assert!(memories.contains(&owner.name));
    recall(&memories, &owner);
    assert!(!memories.contains(&owner.name), "the cache has caught up");
}

/// Each edit removes the record with the policies, and no status was written between.
#[tokio::test]
async fn of_records_that_edits_removed_one_after_the_other_the_later_is_carried_on_and_is_new_once() {
    type Row<'a> = (&'a str, &'a [&'a str], &'a [&'a str], Option<&'a str>);

    let (at, known) = (|clock: &str| objects::time(&format!("2026-11-20T{clock}:00Z")), cron_job("a", "10"));
    let mut with_record = CronJob::clone(&known);
    with_record.status.counted_from = Some(Box::new(known.counted_at(at("09:00"))));
    let with_record = Arc::new(with_record);
    let remove = |memories: &Memories, clock: &str| {
        memories.change(&known, |memory| memory.record_removed = Some(Box::new(known.counted_at(at(clock)))));
    };
    let rows: [Row<'_>; 5] = [
        ("one edit", &["10:10"], &[], Some("10:10")),
        ("two edits before a sync", &["10:10", "10:20"], &[], Some("10:20")),
        ("two edits, each before a sync", &["10:10"], &["10:20"], Some("10:20")),
        ("two edits, the later of an earlier time", &["10:20"], &["10:10"], Some("10:20")),
        ("none", &[], &[], None),
    ];
    for (sentence, first, second, want) in rows {
        let memories = Memories::default();
        for edits in [first, second] {
            for edit in edits {
                remove(&memories, edit);
            }
            // Without `told`, the first sync failed before it decided.
            for _ in 0..2 {
                assert_eq!(
                    recall(&memories, &known).recalled.record_removed.is_some(),
                    !edits.is_empty(),
                    "{sentence}"
                );
            }
            let recalled = recall(&memories, &known);
            memories.told(&known, &recalled.recalled);
            memories.settled(&known, None, recalled.recalled.carried);
        }
        let recalled = recall(&memories, &known);
        let status = Draft::new(&recalled.cron_job, &recalled.recalled).status.into_owned();
        let carried = status.counted_from.map(|counted| counted.time());
        assert_eq!((carried, recalled.recalled.record_removed), (want.map(at), None), "{sentence}");
        // The leader of that time has written one since.
        remove(&memories, "10:30");
        assert!(recall(&memories, &with_record).recalled.record_removed.is_none(), "{sentence}");
    }
}

/// Whether a sync reads the CronJob live before it acts, after one step upon another. Epochs begin with a takeover, or with a watch
/// that was silent.
#[tokio::test]
async fn a_view_is_believed_once_it_was_confirmed_in_this_epoch_and_until_a_read_finds_nothing() {
    enum Step {
        /// A live read in that epoch returns it.
        Read(u64),
        /// A live read finds nothing.
        NotFound,
        /// A status was written.
        Written,
        /// The CronJob goes, and one of its name comes.
        Forget,
    }
    use Step::*;

    let (cached, other) = (cron_job("a", "10"), cron_job("b", "20"));
    let rows: [(&str, &[Step], u64, bool); 14] = [
        ("nothing is known, before any takeover", &[], 0, false),
        ("nothing is known, after a takeover", &[], 1, true),
        ("read in this epoch", &[Read(1)], 1, false),
        ("read in the last one", &[Read(1)], 2, true),
        ("read in both", &[Read(1), Read(2)], 2, false),
        ("an answer of the last epoch comes after that of this one", &[Read(2), Read(1)], 2, true),
        ("a read finds nothing", &[NotFound], 0, true),
        ("a read finds nothing, the next finds it", &[NotFound, Read(1)], 1, false),
        ("a read finds it, the next finds nothing", &[Read(1), NotFound], 1, true),
        ("a write is no read of this epoch", &[Written], 1, true),
        ("found nothing, then a write succeeds", &[NotFound, Written], 0, true),
        ("read, then a status is written", &[Read(1), Written], 1, false),
        ("forgotten after a read that found nothing", &[NotFound, Forget], 0, false),
        ("forgotten after a read, in the same epoch", &[Read(1), Forget], 1, true),
    ];
    for (sentence, steps, epoch, is_suspect) in rows {
        let memories = Memories::default();
        for step in steps {
            match step {
                Read(epoch) => memories.confirmed(&cached, *epoch),
                NotFound => memories.doubt(&cached.name),
                Written => memories.settled(&cached, Some(&cached), Edits::default()),
                Forget => memories.forget(&cached.name),
            }
        }
        let observation = memories.recall(&cached, Zone::UTC, epoch, String::new);
        assert_eq!(observation.view_is_suspect, is_suspect, "{sentence}");
    }
    // Each read that returns another CronJob of the name drops what was known.
    let memories = Memories::default();
    fill(&memories, &cached);
    memories.confirmed(&other, 1);
    memories.confirmed(&cached, 1);
    assert_eq!(is_known(&recall(&memories, &cached)), [false; 6], "what the other one's read dropped stays dropped");
}
