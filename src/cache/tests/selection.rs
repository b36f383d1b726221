//! Informers that keep only some objects: here Jobs that have not ended.

use serde_json::{Value, json};

use super::*;

/// A Job that has ended, and so is not kept.
fn over(name: &str, resource_version: u64) -> Value {
    let mut job = job(name, resource_version);
    job["status"]["conditions"] = json!([{ "type": "Complete", "status": "True" }]);
    job
}

fn of_unfinished(script: &Arc<Script>) -> Informer<Job> {
    Informer::new(script.client(), &[], 17).selecting(|job: &mut Job| job.finished.is_none())
}

#[tokio::test(start_paused = true)]
async fn object_that_the_filter_starts_or_stops_selecting_is_added_or_deleted() {
    let replies = vec![
        watch([
            added(&job("changes", 3)),
            added(&over("old", 4)),
            added(&job("x", 5)),
            added(&over("changes", 6)),
            end(7),
            modified(&over("x", 8)),
            modified(&over("x", 9)),
            modified(&job("x", 10)),
            modified(&job("old", 11)),
            deleted(&over("changes", 12)),
            modified(&job("old", 13)),
            deleted(&over("old", 14)),
        ]),
        refused(410, "Expired"),
        watch([added(&over("x", 20)), added(&job("y", 21)), end(22), Part::Stay]),
    ];
    let script = Script::new([(ALL, replies)]);
    let run = run_informer(100, of_unfinished(&script), script).await;
    let told = [
        "initial a/x@5",
        "delete a/x@8",
        "add a/x@10",
        "add a/old@11",
        "update a/old@11 to 13",
        "delete a/old@14",
        "add a/y@21",
        "lost a/x@10",
        "relisted",
    ];
    assert_eq!(run.told(), told);
    assert_eq!(run.stored(), ["a/y@21"]);
    assert_eq!(run.store.last_resource_version("a").as_deref(), Some("22"));
}

#[tokio::test(start_paused = true)]
async fn filter_applies_to_lists_as_to_watches() {
    let replies = vec![refused(422, "Invalid"), page(&[job("x", 5), over("y", 5)], 6, "")];
    let script = Script::new([(ALL, replies)]);
    let run = run_informer(100, of_unfinished(&script), script).await;
    assert_eq!((run.told(), run.stored()), (vec!["initial a/x@5".to_owned()], vec!["a/x@5".to_owned()]));
}
