//! Informers of a shard: what they request, and what they skip.

use std::num::NonZeroU32;

use serde_json::{Value, json};

use super::*;

/// The namespace `a` is in the second half, `reports` in the first.
fn second_half() -> Shard {
    Shard::all(NonZeroU32::new(2).unwrap()).last().unwrap()
}

fn foreign(name: &str, resource_version: u64) -> Value {
    job_of("reports", name, name, resource_version, None)
}

fn foreign_bad(name: &str, resource_version: u64) -> Value {
    let mut job = foreign(name, resource_version);
    job["status"]["startTime"] = json!(7);
    job
}

#[tokio::test(start_paused = true)]
async fn shard_selector_is_sent_and_objects_of_other_shards_are_ignored() {
    let replies = vec![
        watch([
            added(&foreign("f", 3)),
            added(&foreign_bad("g", 4)),
            added(&job("x", 5)),
            end(6),
            modified(&foreign("f", 7)),
            modified(&foreign_bad("f", 8)),
            modified(&job("x", 9)),
            deleted(&foreign("f", 10)),
            deleted(&foreign("never", 11)),
        ]),
        refused(410, "Expired"),
        watch([added(&job("x", 9)), added(&foreign_bad("g", 12)), end(12), Part::Stay]),
    ];
    let run = run_shard(100, &[], second_half(), Script::new([(ALL, replies)])).await;
    assert_eq!(run.script.requests(), ["stream shard", "watch 11 shard", "stream shard"]);
    assert_eq!(run.told(), ["initial a/x@5", "update a/x@5 to 9", "relisted"]);
    assert_eq!(run.stored(), ["a/x@9"]);
    assert_eq!(run.store.last_resource_version("a").as_deref(), Some("12"));
}

#[tokio::test(start_paused = true)]
async fn server_without_shard_selectors_is_listed_completely() {
    let replies = vec![
        refused(400, "BadRequest"),
        refused(400, "BadRequest"),
        watch([added(&job("x", 5)), added(&foreign("f", 5)), end(6)]),
    ];
    let run = run_shard(100, &[], second_half(), Script::new([(ALL, replies)])).await;
    assert_eq!(run.script.requests(), ["stream shard", "list shard", "stream", "watch 6"]);
    assert_eq!(run.stored(), ["a/x@5"]);
}

#[tokio::test(start_paused = true)]
async fn server_without_streaming_lists_still_gets_the_shard_selector() {
    let replies = vec![refused(422, "Invalid"), page(&[job("x", 5), foreign("f", 5), foreign_bad("g", 6)], 6, "")];
    let run = run_shard(100, &[], second_half(), Script::new([(ALL, replies)])).await;
    assert_eq!(run.script.requests(), ["stream shard", "list shard", "watch 6 shard"]);
    assert_eq!(run.told(), ["initial a/x@5"]);
    assert_eq!(run.stored(), ["a/x@5"]);
}

#[tokio::test(start_paused = true)]
async fn configured_namespaces_outside_the_shard_are_not_watched() {
    let path = "/apis/batch/v1/namespaces/a/jobs";
    let script = || Script::new([(path, vec![listed_then([Part::Stay])])]);
    let run = run_shard(10, &["a", "reports"], second_half(), script()).await;
    assert_eq!(run.script.requests(), ["stream"]);
    assert_eq!(run.stored(), ["a/x@5"]);
    let run = run_shard(10, &["reports"], second_half(), script()).await;
    assert!(run.script.requests().is_empty());
    assert!(run.store.has_synced() && run.store.is_empty(), "there is nothing to wait for");
}
