//! Which missed slots the API server refused, as Events tell.
//!
//! Guarantee: an Event counts only if it is about the CronJob itself, not an earlier one of its name, and its first or its last time is
//! within the three minutes in which the slot could have started. All reads together take at most [`AT_MOST`]. Pure, but for the reads.

use std::time::Duration;

use chrono::{DateTime, Utc};
use kube::Client;
use serde::Deserialize;
use tokio::time::timeout;

use super::compare::MISSED_AFTER;
use super::report::{Entry, Sums};
use crate::api::Uid;
use crate::cli::cluster::SAME_TIME;
use crate::cli::explain::read::list;

/// How long all Events may take.
pub(super) const AT_MOST: Duration = Duration::from_secs(5);

/// An Event that says that the API server refused a Job.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Refusal {
    involved_object: Involved,
    #[serde(default)]
    first_timestamp: Option<DateTime<Utc>>,
    #[serde(default)]
    last_timestamp: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct Involved {
    #[serde(default)]
    name: String,
    #[serde(default)]
    uid: Option<String>,
}

/// Takes back the missed slots whose Jobs were refused. Without a right to read Events, none is.
pub(super) async fn take_back(client: &Client, sums: &mut Sums) {
    let reads = async {
        for namespace in sums.namespaces_of_missed() {
            let query = "&fieldSelector=involvedObject.kind=CronJob,reason=FailedCreate";
            let events = list(client, &format!("/api/v1/namespaces/{namespace}/events"), query).await;
            let refusals: Vec<Refusal> =
                events.iter().flatten().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
            sums.take_back_refused(&namespace, |missed| refusals.iter().any(|refusal| refusal.is_of(missed)));
        }
    };
    // The slots of the other namespaces stay missed.
    let _ = timeout(AT_MOST, reads).await;
}

impl Refusal {
    /// Whether it can be about a missed slot.
    fn is_of(&self, missed: &Entry) -> bool {
        let Some((uid, due)) = &missed.of else { return false };
        let involved = &self.involved_object;
        let is_in_time = |time: DateTime<Utc>| (-SAME_TIME..=MISSED_AFTER).contains(&(time - *due));
        involved.name == missed.name
            && involved.uid.as_deref().is_none_or(|of| *uid == Uid::new(of))
            && [self.first_timestamp, self.last_timestamp].into_iter().flatten().any(is_in_time)
    }
}

#[cfg(test)]
mod tests;
