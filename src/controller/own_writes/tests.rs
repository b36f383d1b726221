#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{EXPIRY, OwnWrites};
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
        ("the cache is behind", cron_job("a", "9"), Duration::ZERO, "10"),
        ("the cache has caught up", cron_job("a", "10"), Duration::ZERO, "10"),
        ("the cache is ahead", cron_job("a", "11"), Duration::ZERO, "11"),
        ("the CronJob was created again", cron_job("b", "9"), Duration::ZERO, "9"),
        ("the write is too long ago to be believed", cron_job("a", "9"), EXPIRY, "9"),
        ("versions are no numbers", cron_job("a", "x"), Duration::ZERO, "x"),
    ];
    for (sentence, cached, later, expected) in table {
        let own = OwnWrites::default();
        own.cron_job_written(&cron_job("a", "10"));
        tokio::time::advance(later).await;
        assert_eq!(&*own.newest(cached).resource_version, expected, "{sentence}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_created_job_is_known_until_the_cache_shows_it() {
    let own = OwnWrites::default();
    let owner = Uid::new("owner");
    own.job_created(&owner, &job("seen"));
    own.job_created(&owner, &job("unseen"));
    own.job_seen(&Uid::new("seen"));
    assert_eq!(own.created_for(&owner), [job("unseen")]);
    tokio::time::advance(EXPIRY).await;
    assert!(own.created_for(&owner).is_empty());
    assert!(own.children.is_empty() && own.created.is_empty(), "nothing is kept for ever");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_job_is_hidden_until_the_cache_drops_it() {
    let own = OwnWrites::default();
    let uid = Uid::new("gone");
    own.job_deleted(&uid);
    assert!(own.is_deleted(&uid));
    own.job_gone(&uid);
    assert!(!own.is_deleted(&uid));
    own.job_deleted(&uid);
    tokio::time::advance(EXPIRY).await;
    assert!(!own.is_deleted(&uid), "a Job that lingers on a finalizer is shown again");
}
