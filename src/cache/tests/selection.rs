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
async fn what_is_no_longer_kept_has_gone_and_what_is_kept_from_now_on_has_appeared() {
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
async fn a_page_is_selected_from_as_a_watch_is() {
    let replies = vec![refused(422, "Invalid"), page(&[job("x", 5), over("y", 5)], 6, "")];
    let script = Script::new([(ALL, replies)]);
    let run = run_informer(100, of_unfinished(&script), script).await;
    assert_eq!((run.told(), run.stored()), (vec!["initial a/x@5".to_owned()], vec!["a/x@5".to_owned()]));
}
