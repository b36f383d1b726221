//! A raw observer: one watch whose bytes are kept with the moment they came, and read when all is over.
//!
//! It asks for metadata only, which costs the API server and this process little, and the same for every contender.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::StreamExt;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use serde::Deserialize;

use crate::driver::request;

/// How the error begins that says a round was not seen to its end: kube-apiserver ends a watch that it thinks too slow.
pub const BLIND: &str = "the harness's own watch";

/// One open watch of one resource in all namespaces.
pub struct Tap {
    path: &'static str,
    recording: Arc<Mutex<Recording>>,
    lines: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Recording {
    bytes: Vec<u8>,
    /// Up to which byte had come when.
    arrivals: Vec<(usize, DateTime<Utc>)>,
    /// Why the watch is over.
    ended: Option<String>,
}

/// When an object's events came.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub added: Option<DateTime<Utc>>,
    pub last: DateTime<Utc>,
}

/// Namespace and name.
pub type Key = (String, String);

impl Tap {
    /// Opens the watch of what happens to the objects at `path` from now on.
    pub async fn open(client: &kube::Client, path: &'static str) -> Result<Self, String> {
        let list = request(client, Method::GET, &format!("{path}?limit=1"), None).await?;
        let version = list["metadata"]["resourceVersion"].as_str().ok_or("a list without a resource version")?;
        let request = Request::get(format!("{path}?watch=true&resourceVersion={version}"))
            .header("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
            .body(Body::empty())
            .map_err(|why| format!("watch {path}: {why}"))?;
        let response = client.send(request).await.map_err(|why| format!("watch {path}: {why}"))?;
        if !response.status().is_success() {
            return Err(format!("watch {path}: {}", response.status()));
        }
        let recording = Arc::new(Mutex::new(Recording::default()));
        let lines = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(record(response.into_body(), Arc::clone(&recording), Arc::clone(&lines)));
        Ok(Self { path, recording, lines, task })
    }

    /// How many events have come, whatever they are about.
    pub fn lines(&self) -> usize {
        self.lines.load(Ordering::Relaxed)
    }

    /// Reads what has come so far: for each object when its creation and when its newest event came.
    pub fn seen(&self) -> Result<HashMap<Key, Seen>, String> {
        let recording = self.recording.lock().unwrap();
        if let Some(why) = &recording.ended {
            return Err(format!("{BLIND} of {} ended: {why}", self.path));
        }
        let mut seen: HashMap<Key, Seen> = HashMap::new();
        let mut arrivals = recording.arrivals.iter();
        let mut arrival = arrivals.next();
        let mut start = 0;
        for end in recording.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at) {
            while arrival.is_some_and(|(upto, _)| *upto <= end) {
                arrival = arrivals.next();
            }
            let event: Event = serde_json::from_slice(&recording.bytes[start..end])
                .map_err(|why| format!("an event of {}: {why}", self.path))?;
            start = end + 1;
            let at = arrival.expect("every byte came at some moment").1;
            let added = (event.kind == "ADDED").then_some(at);
            let key = (event.object.metadata.namespace, event.object.metadata.name);
            seen.entry(key).and_modify(|seen| seen.last = at).or_insert(Seen { added, last: at });
        }
        Ok(seen)
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn record(body: Body, recording: Arc<Mutex<Recording>>, lines: Arc<AtomicUsize>) {
    let mut chunks = body.into_data_stream();
    let why = loop {
        match chunks.next().await {
            Some(Ok(chunk)) => {
                let at = Utc::now();
                let count = chunk.split(|byte| *byte == b'\n').count() - 1;
                let mut recording = recording.lock().unwrap();
                recording.bytes.extend_from_slice(&chunk);
                let upto = recording.bytes.len();
                recording.arrivals.push((upto, at));
                lines.fetch_add(count, Ordering::Relaxed);
            }
            Some(Err(why)) => break why.to_string(),
            None => break "the server closed it".to_owned(),
        }
    };
    recording.lock().unwrap().ended = Some(why);
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

/// The watches that are open in every round.
pub struct Taps {
    pub jobs: Tap,
    pub cron_jobs: Tap,
    pub events: Tap,
}

impl Taps {
    pub async fn open(client: &kube::Client) -> Result<Self, String> {
        Ok(Self {
            jobs: Tap::open(client, "/apis/batch/v1/jobs").await?,
            cron_jobs: Tap::open(client, "/apis/batch/v1/cronjobs").await?,
            events: Tap::open(client, "/api/v1/events").await?,
        })
    }

    /// Whether a watch has ended.
    pub fn blind(&self) -> bool {
        [&self.jobs, &self.cron_jobs, &self.events].iter().any(|tap| tap.recording.lock().unwrap().ended.is_some())
    }

    /// Waits until nothing has come for a second; false when that is not so at `deadline`.
    pub async fn quiet(&self, deadline: DateTime<Utc>) -> bool {
        let count = || self.jobs.lines() + self.cron_jobs.lines() + self.events.lines();
        let mut last = count();
        while Utc::now() < deadline {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = count();
            if now == last {
                return true;
            }
            last = now;
        }
        false
    }
}
