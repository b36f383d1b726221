//! The store without an informer.

use std::collections::HashSet;
use std::sync::Arc;

use super::script::{job_of, show};
use crate::api::batch_v1::Job;
use crate::api::{Interner, Object, ObjectName, Uid};
use crate::cache::store::ByName;
use crate::cache::{Delta, Store};

fn decode(name: &str, uid: &str, version: u64, owner: Option<&str>) -> Job {
    Job::decode(&job_of("a", name, uid, version, owner).to_string(), &Interner::default()).unwrap()
}

fn children(store: &Store<Job>, owner: &str) -> Vec<String> {
    let mut all: Vec<_> = store.by_controller(&Uid::new(owner)).iter().map(|job| show(job)).collect();
    all.sort();
    all
}

/// A relist of all children of one owner: the list of them is not walked for each.
#[test]
fn steps_of_a_relist_grow_with_the_number_of_children() {
    let relist = |number: u64| {
        let store = Store::<Job>::new([None]);
        let jobs = |version: u64| (0..number).map(move |at| decode(&format!("j{at}"), "u", version + at, Some("p")));
        jobs(1).for_each(|job| drop(store.upsert(job)));
        let (steps, ()) = apimachinery::steps::of(|| jobs(1 + number).for_each(|job| drop(store.upsert(job))));
        assert_eq!(children(&store, "p").len() as u64, number);
        steps
    };
    let (once, twice) = (relist(500), relist(1_000));
    assert!(once >= 500 && twice < once * 5 / 2, "{once} steps, and {twice} for twice as many");
}

#[test]
fn the_owner_index_follows_every_change() {
    let store = Store::<Job>::new([None]);
    let none: [&str; 0] = [];
    store.upsert(decode("x", "x", 1, Some("p")));
    store.upsert(decode("y", "y", 2, Some("p")));
    store.upsert(decode("z", "z", 3, None));
    assert_eq!(children(&store, "p"), ["a/x@1", "a/y@2"]);
    store.upsert(decode("x", "x", 4, Some("p")));
    assert_eq!(children(&store, "p"), ["a/x@4", "a/y@2"], "a new version takes the place of the old");
    store.upsert(decode("x", "x", 5, Some("q")));
    assert_eq!((children(&store, "p"), children(&store, "q")), (vec!["a/y@2".into()], vec!["a/x@5".into()]));
    store.upsert(decode("x", "x", 6, None));
    assert_eq!(children(&store, "q"), none, "an orphan has no owner");
    store.upsert(decode("x", "x", 7, Some("p")));
    store.upsert(decode("x", "successor", 8, Some("p")));
    assert_eq!(children(&store, "p"), ["a/x@8", "a/y@2"], "a successor takes its predecessor's place");
    store.delete(&ObjectName::new("a", "y"), None);
    assert_eq!(children(&store, "p"), ["a/x@8"]);
    store.replace(None, HashSet::new());
    assert_eq!((children(&store, "p"), store.len()), (vec![], 0));
}

#[test]
fn deletion_with_another_uid_is_not_the_stored_objects_final_state() {
    let store = Store::<Job>::new([None]);
    store.upsert(decode("x", "first", 1, None));
    let delta = store.delete(&ObjectName::new("a", "x"), Some(decode("x", "second", 2, None)));
    assert!(matches!(delta, Some(Delta::Deleted { last, final_state_unknown: true }) if last.uid == Uid::new("first")));
}

#[test]
fn a_list_changes_only_what_differs_and_only_in_its_namespace() {
    let store = Store::<Job>::new([Some("a".into()), Some("b".into())]);
    let other = Job::decode(&job_of("b", "o", "o", 1, None).to_string(), &Interner::default()).unwrap();
    store.upsert(other);
    for name in ["gone", "new", "same"] {
        store.upsert(decode(name, name, 1, None));
    }
    let same = store.get(&ObjectName::new("a", "same")).unwrap();
    let listed = [decode("added", "added", 5, None), decode("new", "new", 4, None), decode("same", "same", 1, None)];
    let listed = listed.into_iter().map(|job| ByName(Arc::new(job))).collect();
    let told: Vec<_> = store
        .replace(Some("a"), listed)
        .iter()
        .map(|delta| match delta {
            Delta::Added(job) => format!("add {}", show(job)),
            Delta::Updated { old, new } => format!("update {} to {}", show(old), show(new)),
            Delta::Deleted { last, final_state_unknown } => format!("delete {} {final_state_unknown}", show(last)),
        })
        .collect();
    assert_eq!(told, ["add a/added@5", "update a/new@1 to a/new@4", "delete a/gone@1 true"]);
    let names: Vec<_> = store.list().iter().map(|job| show(job)).collect();
    assert_eq!(names, ["a/added@5", "a/new@4", "a/same@1", "b/o@1"]);
    assert!(Arc::ptr_eq(&same, &store.get(&ObjectName::new("a", "same")).unwrap()), "what is equal is left alone");
}

#[test]
fn a_new_version_may_share_what_did_not_change() {
    use crate::api::batch_v1::CronJob;
    let text = |version: u64| {
        let mut job = job_of("a", "c", "c", version, None);
        job["spec"] = serde_json::json!({"schedule": "* * * * *", "jobTemplate": {}});
        job.to_string()
    };
    let store = Store::<CronJob>::new([None]);
    for version in [1, 2] {
        store.upsert(CronJob::decode(&text(version), &Interner::default()).unwrap());
    }
    let first = store.list().remove(0);
    store.upsert(CronJob::decode(&text(3), &Interner::default()).unwrap());
    let second = store.list().remove(0);
    assert_eq!(&*second.resource_version, "3");
    let text = |cron_job: &CronJob| cron_job.spec.job_template.text().unwrap().as_ptr();
    assert_eq!(text(&first), text(&second));
}
