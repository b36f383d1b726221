#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use schedule::Zone;
use serde_json::json;

use super::*;
use crate::cli::explain::read::Said;
use crate::cli::explain::tests::{facts, instant};
use crate::cli::explain::{Facts, explain};

const NOW: &str = "2026-11-22T10:00:00Z";

/// What is said of a CronJob that is overdue since the morning, with this Warning.
fn overdue(message: &str) -> Explanation {
    let facts = facts(&json!({"status": {"lastScheduleTime": "2026-11-21T02:00:00Z"}}), vec![]);
    let said = Said { time: instant(NOW), count: 9, reason: "FailedCreate".to_owned(), message: message.to_owned() };
    explain(&Facts { warnings: Ok(vec![said]), ..facts }, Zone::UTC, instant(NOW))
}

#[test]
fn a_refusal_is_a_cause_by_its_webhook_and_namespace() {
    let refusal =
        "Error creating job: Internal error occurred: failed calling webhook \"jobs.policy.example\": refused";
    let denial = "Error creating job: admission webhook \"jobs.policy.example\" denied the request: no";
    let text = "The webhook jobs.policy.example refuses the Jobs of namespace shop".to_owned();
    let cause = Some(Cause { text, q: "shop/".to_owned() });
    for (message, want) in [(refusal, cause.clone()), (denial, cause), ("Error creating job: exceeded quota", None)] {
        assert_eq!(Cause::of(&overdue(message)), want, "{message}");
    }
    let waiting = explain(&facts(&json!({}), vec![]), Zone::UTC, instant(NOW));
    assert_eq!(Cause::of(&waiting), None, "it waits for its next run");
}

#[test]
fn a_cause_is_said_once_for_all_and_not_for_one() {
    let cause = |text: &str| Some(Cause { text: text.to_owned(), q: "q".to_owned() });
    let row = |number: usize, cause: Option<Cause>| {
        let mut row = crate::ui::model::tests::row(&format!("cj-{number}"));
        row.cause = cause;
        (crate::api::ObjectName::new("shop", row.name.as_str()), Arc::new(row))
    };
    let rows = [cause("A"), cause("B"), cause("B"), None, cause("B"), cause("C"), cause("C")];
    let rows = rows.into_iter().enumerate().map(|(number, cause)| row(number, cause)).collect();
    let texts: Vec<String> = banners(&Model { rows, version: 1 }).into_iter().map(|banner| banner.text).collect();
    assert_eq!(texts, ["B: 3 CronJobs did not start.", "C: 2 CronJobs did not start."]);
}
