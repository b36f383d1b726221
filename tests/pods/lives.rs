//! How many Pods of each CronJob were alive at once, by a watch: its order is that of the API server's writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::sync::{Arc, Mutex};

use futures::TryStreamExt;
use http::{Method, Request};
use kube::core::WatchEvent;
use serde_json::Value;
use testkit::driver::request;

/// The Pods of one CronJob.
#[derive(Clone, Default)]
pub struct Life {
    /// How many were created.
    pub started: usize,
    /// How many existed at once, at most.
    pub most_at_once: usize,
    alive: BTreeSet<String>,
}

impl Display for Life {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} Pods, at most {} at once", self.started, self.most_at_once)
    }
}

/// By CronJob, which is the label `of`; `None` when the watch has ended.
#[derive(Clone)]
pub struct Lives(Arc<Mutex<Option<BTreeMap<String, Life>>>>);

impl Lives {
    /// Watches the Pods at `path` from now on.
    pub async fn watch(client: &kube::Client, path: String) -> Result<Self, String> {
        let list = request(client, Method::GET, &path, None).await?;
        let version = list["metadata"]["resourceVersion"].as_str().unwrap();
        let path = format!("{path}?watch=true&timeoutSeconds=3600&resourceVersion={version}");
        let message = Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
        let stream = client.request_events::<Value>(message).await.map_err(|error| error.to_string())?;
        let lives = Self(Arc::new(Mutex::new(Some(BTreeMap::new()))));
        let seen = lives.clone();
        tokio::spawn(async move {
            let mut stream = std::pin::pin!(stream);
            while let Ok(Some(event)) = stream.try_next().await {
                seen.saw(&event);
            }
            *seen.0.lock().unwrap() = None;
        });
        Ok(lives)
    }

    fn saw(&self, event: &WatchEvent<Value>) {
        let (WatchEvent::Added(pod) | WatchEvent::Deleted(pod)) = event else { return };
        let Some(cron_job) = pod["metadata"]["labels"]["of"].as_str() else { return };
        let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
        let mut lives = self.0.lock().unwrap();
        let life = lives.as_mut().unwrap().entry(cron_job.to_owned()).or_default();
        if matches!(event, WatchEvent::Deleted(_)) {
            life.alive.remove(&uid);
        } else if life.alive.insert(uid) {
            life.started += 1;
            life.most_at_once = life.most_at_once.max(life.alive.len());
        }
    }

    /// What was seen of one CronJob so far. Panics when the watch has ended: a gap would hide an overlap.
    pub fn of(&self, cron_job: &str) -> Life {
        let lives = self.0.lock().unwrap();
        lives.as_ref().expect("the watch of Pods has ended").get(cron_job).cloned().unwrap_or_default()
    }
}
