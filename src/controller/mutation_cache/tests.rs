#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{EXPIRY, MutationCache};
use crate::api::Uid;
use crate::api::batch_v1::{CronJob, Job};
use crate::controller::tests::objects;

fn cron_job(uid: &str, version: &str) -> Arc<CronJob> {
    objects::cron_job(json!({ "metadata": { "uid": uid, "resourceVersion": version } }))
}

fn job(uid: &str) -> Arc<Job> {
    objects::job(uid, uid, json!({}))
}

#[tokio::test(start_paused = true)]
async fn the_newer_of_the_cached_and_the_written_version_is_seen() {
    let table = [
        ("the cache is behind", cron_job("a", "9"), Duration::ZERO, ("10", false)),
        ("the cache has caught up", cron_job("a", "10"), Duration::ZERO, ("10", false)),
        ("the cache is ahead", cron_job("a", "11"), EXPIRY, ("11", false)),
        ("the cache is behind for so long that it is suspect", cron_job("a", "9"), EXPIRY, ("10", true)),
        ("versions are no numbers", cron_job("a", "x"), Duration::ZERO, ("x", false)),
    ];
    for (sentence, cached, later, expected) in table {
        let mut own = MutationCache::default();
        own.cron_job_known(&cron_job("a", "10"));
        tokio::time::advance(later).await;
        let (newest, is_overdue) = own.newest(cached);
        assert_eq!((&*newest.resource_version, is_overdue), expected, "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_created_job_is_known_until_the_cache_shows_it() {
    let mut own = MutationCache::default();
    own.job_created(&job("seen"));
    own.job_created(&job("unseen"));
    own.job_seen(&Uid::new("seen"));
    let created_at = |version: &'static str| move || version.to_owned();
    assert_eq!(own.created(created_at("2")), [job("unseen")]);
    tokio::time::advance(EXPIRY * 100).await;
    assert_eq!(own.created(created_at("2")), [job("unseen")], "however long the watch is silent");
    assert!(own.created(created_at("3")).is_empty(), "the cache would show it");
    assert!(own.is_empty(), "nothing is kept for ever");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_job_is_hidden_until_the_cache_drops_it() {
    let mut own = MutationCache::default();
    let uid = Uid::new("gone");
    own.job_deleted(&uid);
    assert!(own.deleted().contains(&uid));
    assert!(own.job_gone(&uid) && !own.job_gone(&uid));
    assert!(own.deleted().is_empty());
    own.job_deleted(&uid);
    tokio::time::advance(EXPIRY).await;
    assert!(own.deleted().is_empty(), "a Job that lingers on a finalizer is shown again");
}

#[test]
fn a_slot_whose_job_came_and_went_stays_taken_until_the_status_says_so() {
    let mut own = MutationCache::default();
    let slot = |minute: u32| format!("2026-11-20T10:{minute:02}:00Z");
    let known = |last: Option<u32>| {
        let status = last.map_or_else(|| json!({}), |minute| json!({ "lastScheduleTime": slot(minute) }));
        objects::cron_job(json!({ "status": status }))
    };
    let at = |minute| slot(minute).parse().unwrap();
    own.slot_taken(at(2));
    own.slot_taken(at(1));
    assert_eq!(own.taken(&known(Some(1))), Some(at(2)));
    own.slot_taken(at(3));
    assert_eq!(own.taken(&known(Some(3))), None);
    assert!(own.is_empty(), "nothing is kept for ever");
}

#[test]
fn long_template_of_a_known_version_is_not_kept() {
    let text = "x".repeat(crate::api::job_template::LONGEST_KEPT);
    let whole = objects::cron_job(
        json!({ "metadata": { "resourceVersion": "9" }, "spec": { "jobTemplate": { "spec": text } } }),
    );
    let mut own = MutationCache::default();
    own.cron_job_known(&whole);
    let (known, _) = own.newest(cron_job("own-uid", "8"));
    assert_eq!(known.resource_version, whole.resource_version);
    assert_eq!(known.spec.job_template.text(), None);
    assert_eq!(known.spec, whole.spec, "the digest says that nothing else changed");
}

/// The times are literals, because they are the guarantee.
#[tokio::test(start_paused = true)]
async fn own_writes_are_believed_for_thirty_seconds_beside_a_cache_that_does_not_show_them() {
    for (waited, is_believed) in [(0, true), (29, true), (30, false), (45, false), (2_999, false)] {
        let (mut own, deleted) = (MutationCache::default(), Uid::new("gone"));
        own.cron_job_known(&cron_job("a", "10"));
        own.job_deleted(&deleted);
        tokio::time::advance(Duration::from_secs(waited)).await;
        let (_, is_overdue) = own.newest(cron_job("a", "9"));
        assert_eq!((!is_overdue, own.deleted().contains(&deleted)), (is_believed, is_believed), "after {waited} s");
    }
}

/// What happens to a CronJob and its Jobs; a Job is known by its UID, which is its name.
enum Step {
    /// This process reads or writes the CronJob, and gets this version.
    Known(&'static str),
    /// A sync runs on this version of the cache.
    Cached(&'static str),
    Created(&'static str),
    Seen(&'static str),
    Deleted(&'static str),
    Gone(&'static str),
    Vanished(&'static str),
    Noted(&'static str),
    /// The cache shows Jobs up to this version; each has version 3.
    Listed(&'static str),
    Wait(u64),
}

/// What the last sync sees, or is told: the version of the CronJob, and the Jobs created, deleted and vanished.
type Kept = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

#[tokio::test(start_paused = true)]
async fn what_is_kept_after_several_steps() {
    use Step::*;

    const NOTHING: Kept = ("9", &[], &[], &[]);
    let rows: [(&str, &[Step], Kept, bool); 20] = [
        ("a second write is newer", &[Known("10"), Known("11")], ("11", &[], &[], &[]), false),
        ("a read that comes late is older", &[Known("11"), Known("10")], ("10", &[], &[], &[]), false),
        ("the cache catches up, and goes back by a stale list", &[Known("10"), Cached("10")], NOTHING, true),
        (
            "the cache passes it, and another write follows",
            &[Known("10"), Cached("11"), Known("12")],
            ("12", &[], &[], &[]),
            false,
        ),
        (
            "a second write begins the thirty seconds anew",
            &[Known("10"), Wait(29), Known("11"), Wait(29)],
            ("11", &[], &[], &[]),
            false,
        ),
        ("two created, one is seen", &[Created("a"), Created("b"), Seen("a")], ("9", &["b"], &[], &[]), false),
        (
            "seen before it is created here, as by another's event",
            &[Seen("a"), Created("a")],
            ("9", &["a"], &[], &[]),
            false,
        ),
        ("seen twice", &[Created("a"), Seen("a"), Seen("a")], NOTHING, true),
        ("created, and a list that is too old", &[Created("a"), Listed("2")], ("9", &["a"], &[], &[]), false),
        ("created, and two lists, the second shows it", &[Created("a"), Listed("2"), Listed("3")], NOTHING, true),
        ("created, then deleted", &[Created("a"), Deleted("a")], ("9", &[], &["a"], &[]), false),
        ("created, deleted, then seen", &[Created("a"), Deleted("a"), Seen("a")], ("9", &[], &["a"], &[]), false),
        ("created, deleted, then gone", &[Created("a"), Deleted("a"), Gone("a")], NOTHING, true),
        ("gone without being seen", &[Created("a"), Gone("a")], NOTHING, true),
        ("gone, then a deletion of it is answered", &[Gone("a"), Deleted("a")], ("9", &[], &["a"], &[]), false),
        ("the same, half a minute later", &[Gone("a"), Deleted("a"), Wait(30)], NOTHING, true),
        (
            "deleted twice, the second begins the thirty seconds anew",
            &[Deleted("a"), Wait(29), Deleted("a"), Wait(29)],
            ("9", &[], &["a"], &[]),
            false,
        ),
        ("two deleted, one is gone", &[Deleted("a"), Deleted("b"), Gone("b")], ("9", &[], &["a"], &[]), false),
        ("vanished after a deletion, and told", &[Deleted("a"), Gone("a"), Vanished("a"), Noted("a")], NOTHING, true),
        ("two vanished, one is told", &[Vanished("a"), Vanished("b"), Noted("a")], ("9", &[], &[], &["b"]), false),
    ];
    for (sentence, steps, (version, created, deleted, vanished), is_empty) in rows {
        let mut own = MutationCache::default();
        for step in steps {
            match step {
                Known(version) => own.cron_job_known(&cron_job("a", version)),
                Cached(version) => drop(own.newest(cron_job("a", version))),
                Created(name) => own.job_created(&job(name)),
                Seen(name) => own.job_seen(&Uid::new(name)),
                Deleted(name) => own.job_deleted(&Uid::new(name)),
                Gone(name) => drop(own.job_gone(&Uid::new(name))),
                Vanished(name) => own.job_vanished(&job(name)),
                Noted(name) => own.noted(&[job(name)]),
                Listed(shown) => drop(own.created(|| (*shown).to_owned())),
                Wait(seconds) => tokio::time::advance(Duration::from_secs(*seconds)).await,
            }
        }
        let uids = |jobs: Vec<Arc<Job>>| jobs.iter().map(|job| job.uid.clone()).collect::<Vec<_>>();
        let named = |names: &[&str]| names.iter().map(|name| Uid::new(name)).collect::<Vec<_>>();
        let (newest, is_suspect) = own.newest(cron_job("a", "9"));
        assert_eq!((&*newest.resource_version, is_suspect), (version, false), "{sentence}");
        assert_eq!(uids(own.created(|| "1".to_owned())), named(created), "{sentence}");
        assert_eq!(own.deleted().into_iter().collect::<Vec<_>>(), named(deleted), "{sentence}");
        assert_eq!(uids(own.vanished().to_vec()), named(vanished), "{sentence}");
        assert_eq!(own.is_empty(), is_empty, "{sentence}");
    }
}
