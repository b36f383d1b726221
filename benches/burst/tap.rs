//! A raw watch: its bytes are recorded with their arrival times, and decoded after the round.
//!
//! It requests metadata only, which costs the API server and this process little, and the same for every contender.
//! When kube-apiserver ends a watch, for example one that it considers too slow, the watch resumes where it ended.

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

use testkit::driver::request;

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
    /// Byte counts with their arrival times.
    arrivals: Vec<(usize, DateTime<Utc>)>,
    /// Why the watch ended and could not resume.
    ended: Option<String>,
}

impl Recording {
    fn keep(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        self.arrivals.push((self.bytes.len(), Utc::now()));
    }

    /// Drops the bytes of an incomplete event, and returns the last complete one.
    fn last_event(&mut self) -> Option<&[u8]> {
        let whole = self.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.bytes.truncate(whole);
        for (upto, _) in self.arrivals.iter_mut().rev().take_while(|(upto, _)| *upto > whole) {
            *upto = whole;
        }
        self.bytes.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n').next()
    }
}

/// The arrival times of an object's events.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    pub added: Option<DateTime<Utc>>,
    pub last: DateTime<Utc>,
}

/// Namespace and name.
pub type Key = (String, String);

impl Tap {
    /// Opens a watch of the objects at `path` from now on.
    pub async fn open(client: &kube::Client, path: &'static str) -> Result<Self, String> {
        let list = request(client, Method::GET, &format!("{path}?limit=1"), None).await?;
        let version = list["metadata"]["resourceVersion"].as_str().ok_or("a list without a resource version")?;
        let body = watch(client, path, version).await?;
        let recording = Arc::new(Mutex::new(Recording::default()));
        let lines = Arc::new(AtomicUsize::new(0));
        let follow =
            Follow { client: client.clone(), path, recording: Arc::clone(&recording), lines: Arc::clone(&lines) };
        let task = tokio::spawn(follow.into_its_end(body, version.to_owned()));
        Ok(Self { path, recording, lines, task })
    }

    /// The number of events so far, for all objects.
    pub fn lines(&self) -> usize {
        self.lines.load(Ordering::Relaxed)
    }

    /// Decodes the bytes so far: for each object the arrivals of its creation and of its newest event.
    pub fn seen(&self) -> Result<HashMap<Key, Seen>, String> {
        let recording = self.recording.lock().unwrap();
        if let Some(why) = &recording.ended {
            return Err(format!("the harness's own watch of {} ended: {why}", self.path));
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

/// Opens a watch of the objects at `path` after `version`.
async fn watch(client: &kube::Client, path: &str, version: &str) -> Result<Body, String> {
    let request = Request::get(format!("{path}?watch=true&resourceVersion={version}"))
        .header("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
        .body(Body::empty())
        .map_err(|why| format!("watch {path}: {why}"))?;
    let response = client.send(request).await.map_err(|why| format!("watch {path}: {why}"))?;
    if !response.status().is_success() {
        return Err(format!("watch {path}: {}", response.status()));
    }
    Ok(response.into_body())
}

/// The parameters of a watch.
struct Follow {
    client: kube::Client,
    path: &'static str,
    recording: Arc<Mutex<Recording>>,
    lines: Arc<AtomicUsize>,
}

impl Follow {
    /// Records the watch, and resumes it when the server ends it.
    async fn into_its_end(self, mut body: Body, mut version: String) {
        loop {
            self.record(body).await;
            let next = match self.reached() {
                Ok(reached) => {
                    version = reached.unwrap_or(version);
                    watch(&self.client, self.path, &version).await
                }
                Err(why) => Err(why),
            };
            match next {
                Ok(next) => body = next,
                Err(why) => {
                    self.recording.lock().unwrap().ended = Some(why);
                    return;
                }
            }
        }
    }

    /// The version of the last complete event, if there was one.
    fn reached(&self) -> Result<Option<String>, String> {
        match self.recording.lock().unwrap().last_event().map(serde_json::from_slice::<Event>) {
            Some(Ok(event)) if event.kind == "ERROR" => Err("the server sent an error".to_owned()),
            Some(Ok(event)) => Ok(Some(event.object.metadata.resource_version)),
            Some(Err(why)) => Err(why.to_string()),
            None => Ok(None),
        }
    }

    async fn record(&self, body: Body) {
        let mut chunks = body.into_data_stream();
        while let Some(Ok(chunk)) = chunks.next().await {
            self.recording.lock().unwrap().keep(&chunk);
            self.lines.fetch_add(chunk.split(|byte| *byte == b'\n').count() - 1, Ordering::Relaxed);
        }
    }
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
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    resource_version: String,
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

    /// Waits until nothing has arrived for a second; false if that has not happened by `deadline`.
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
