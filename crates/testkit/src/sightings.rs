//! An observer of all Jobs: one watch over the whole cluster from before the first scenario to the end.
//!
//! For each Job (by UID) it records when it first saw the creation. Two UIDs for one (namespace, name) mean that the Job was
//! created twice. No scenario allows that, since a Job's name encodes its slot.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use http::{Method, Request};
use kube::core::WatchEvent;
use serde::Deserialize;

use crate::driver::{eventually, job_name, request};

#[derive(Debug, Clone)]
pub struct Sighting {
    pub namespace: String,
    pub name: String,
    /// When the watch reported the creation.
    pub at: DateTime<Utc>,
}

/// The Jobs seen so far; cheap to clone.
#[derive(Clone, Default)]
pub struct Sightings {
    record: Arc<Mutex<Record>>,
}

#[derive(Default)]
struct Record {
    uids: HashSet<String>,
    /// In the order in which they were first seen.
    sightings: Vec<Sighting>,
}

#[derive(Debug, Clone, Deserialize)]
struct Seen {
    metadata: Metadata,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    resource_version: String,
}

#[derive(Deserialize)]
struct List {
    metadata: ListMetadata,
    items: Vec<Seen>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
}

impl Sightings {
    /// Starts a watch that runs as long as the runtime, across restarts of the API server.
    pub fn watch(client: kube::Client) -> Self {
        let sightings = Self::default();
        let witness = sightings.clone();
        tokio::spawn(async move {
            loop {
                // Lists again after any end of a watch: a restarted server may not know older versions.
                if let Ok(list) = request(&client, Method::GET, "/apis/batch/v1/jobs", None).await {
                    let list: List = serde_json::from_value(list).expect("a list of Jobs");
                    list.items.into_iter().for_each(|job| witness.saw(job));
                    witness.follow(&client, list.metadata.resource_version).await;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        sightings
    }

    /// Reads the watch until it ends or fails.
    async fn follow(&self, client: &kube::Client, mut version: String) {
        loop {
            let path = format!("/apis/batch/v1/jobs?watch=true&allowWatchBookmarks=true&resourceVersion={version}");
            let message = Request::get(path).body(Vec::new()).expect("a valid watch request");
            let Ok(stream) = client.request_events::<Seen>(message).await else { return };
            let mut stream = std::pin::pin!(stream);
            loop {
                match stream.try_next().await {
                    Ok(Some(WatchEvent::Added(job) | WatchEvent::Modified(job) | WatchEvent::Deleted(job))) => {
                        version.clone_from(&job.metadata.resource_version);
                        self.saw(job);
                    }
                    Ok(Some(WatchEvent::Bookmark(mark))) => version = mark.metadata.resource_version,
                    Ok(None) => break,
                    Ok(Some(WatchEvent::Error(_))) | Err(_) => return,
                }
            }
        }
    }

    fn saw(&self, job: Seen) {
        let Metadata { uid, namespace, name, .. } = job.metadata;
        let mut record = self.record.lock().unwrap();
        if record.uids.insert(uid) {
            record.sightings.push(Sighting { namespace, name, at: Utc::now() });
        }
    }

    /// All Jobs seen so far, including finished and deleted ones.
    pub fn all(&self) -> Vec<Sighting> {
        self.after(0)
    }

    /// The Jobs seen after the first `count`.
    pub fn after(&self, count: usize) -> Vec<Sighting> {
        self.record.lock().unwrap().sightings[count..].to_vec()
    }

    /// The number of Jobs seen in a namespace.
    pub fn count_in(&self, namespace: &str) -> usize {
        let record = self.record.lock().unwrap();
        record.sightings.iter().filter(|sighting| sighting.namespace == namespace).count()
    }

    /// Waits for the creation of the Job for `cron_job` and `slot`, and returns when it was seen.
    pub async fn job(&self, namespace: &str, cron_job: &str, slot: DateTime<Utc>, within: Duration) -> DateTime<Utc> {
        let name = job_name(cron_job, slot);
        eventually(format!("creation of Job {namespace}/{name}"), within, || async {
            self.all().into_iter().find(|job| job.namespace == namespace && job.name == name).map(|job| job.at)
        })
        .await
    }

    /// The Jobs that were created more than once.
    pub fn created_twice(&self) -> Vec<String> {
        let mut counts = BTreeMap::new();
        for job in self.all() {
            *counts.entry(format!("{}/{}", job.namespace, job.name)).or_insert(0) += 1;
        }
        counts.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name).collect()
    }
}
