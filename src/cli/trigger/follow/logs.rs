//! The logs of one container in the Pods of a Job.
//!
//! Guarantees: each start of the container that a list of the Pods shows is read from its first line, once. If the connection
//! breaks, it is read again and continues after the last line that was printed. A line is at most [`LONGEST_LINE`] long, and at
//! most [`MOST_WAITING`] lines wait to be printed.

use std::collections::HashMap;

use futures::{AsyncBufRead, AsyncBufReadExt as _};
use http::Request;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Client;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use super::Outlet;
use crate::cli::explain::read::{list, words};
use crate::terminal::PlainText;

/// The most bytes of a line; a longer one becomes several.
const LONGEST_LINE: usize = 64 << 10;
/// The most lines that wait to be printed.
const MOST_WAITING: usize = 256;
/// How often a log is asked for that breaks off without another line.
const TRIES: usize = 5;

/// One start of the container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Instance {
    pod: String,
    uid: String,
    restarts: i32,
}

/// How far a log was read.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The bytes that were printed.
    printed: usize,
    tries: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Reading,
    /// The connection broke.
    Broken,
    Read,
}

/// What a log says.
pub(super) enum Piece {
    /// A line, and how many bytes of the log it is.
    Line(Instance, String, usize),
    /// It has ended, or why it broke off; and whether that is for good.
    Ended(Instance, Result<(), (String, bool)>),
}

/// The logs of one container in the Pods of a Job.
pub(super) struct Logs<'a> {
    client: &'a Client,
    namespace: &'a str,
    job: &'a str,
    container: &'a str,
    progress: HashMap<Instance, Progress>,
    /// Whether lines say which Pod they are of, because several may run at a time.
    has_prefix: bool,
    sender: Sender<Piece>,
    pieces: Receiver<Piece>,
    /// Ends when this value is dropped.
    readers: JoinSet<()>,
    told: Option<String>,
}

impl<'a> Logs<'a> {
    pub fn new(client: &'a Client, namespace: &'a str, job: &'a str, container: &'a str) -> Self {
        let (sender, pieces) = channel(MOST_WAITING);
        let (progress, readers) = (HashMap::new(), JoinSet::new());
        Self { client, namespace, job, container, progress, has_prefix: false, sender, pieces, readers, told: None }
    }

    /// Whether all logs that were found are printed.
    pub fn are_read(&self) -> bool {
        self.progress.values().all(|progress| progress.state == State::Read)
    }

    /// The next piece of a log; waits for ever without logs.
    pub async fn next(logs: Option<&mut Self>) -> Option<Piece> {
        match logs {
            Some(logs) => logs.pieces.recv().await,
            None => std::future::pending().await,
        }
    }

    /// Prints a piece; returns false if that cannot be written.
    pub fn take(&mut self, piece: Option<Piece>, outlet: &mut Outlet<'_>) -> bool {
        match piece {
            Some(Piece::Line(instance, line, bytes)) => {
                let prefix =
                    if self.has_prefix { format!("[pod/{}/{}] ", instance.pod, self.container) } else { String::new() };
                let progress = self.progress.entry(instance).or_default();
                progress.printed += bytes;
                progress.tries = 0;
                (outlet.print)(&PlainText::lines([prefix + &line]))
            }
            Some(Piece::Ended(instance, result)) => {
                let progress = self.progress.entry(instance).or_default();
                progress.tries += 1;
                let is_final = match &result {
                    Ok(()) => true,
                    Err((_, is_final)) => *is_final || progress.tries >= TRIES,
                };
                progress.state = if is_final { State::Read } else { State::Broken };
                outlet.note(result.err().filter(|_| is_final).map(|(why, _)| why));
                true
            }
            None => true,
        }
    }

    /// Lists the Pods, and begins to read the logs that are new or broke off. Returns whether they could be listed.
    pub async fn look(&mut self, outlet: &mut Outlet<'_>) -> bool {
        let selector = format!("&labelSelector=batch.kubernetes.io/job-name%3D{}", self.job);
        let pods = match list(self.client, &format!("/api/v1/namespaces/{}/pods", self.namespace), &selector).await {
            Ok(pods) => pods,
            Err(error) => {
                let why = format!("The Pods cannot be read: {error}");
                outlet.note((self.told.as_ref() != Some(&why)).then(|| why.clone()));
                self.told = Some(why);
                return false;
            }
        };
        let mut pods: Vec<Pod> = pods.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
        pods.sort_by(|a, b| a.metadata.creation_timestamp.cmp(&b.metadata.creation_timestamp));
        let running = pods.iter().filter(|pod| !has_ended(pod)).count();
        self.has_prefix |= running > 1;
        let started: Vec<(Instance, bool)> = pods.iter().flat_map(|pod| self.started(pod)).collect();
        for (instance, is_previous) in started {
            let known = self.progress.get(&instance).copied();
            if known.is_some_and(|progress| progress.state != State::Broken) {
                continue;
            }
            if known.is_none() && !self.has_prefix {
                let Instance { pod, restarts, .. } = &instance;
                let restarts = if *restarts > 0 { format!(", restart {restarts}") } else { String::new() };
                outlet.note([format!("Pod {pod}, container {}{restarts}:", self.container)]);
            }
            let progress = Progress { state: State::Reading, ..known.unwrap_or_default() };
            self.progress.insert(instance.clone(), progress);
            let previous = if is_previous { "&previous=true" } else { "" };
            let (namespace, pod, container) = (self.namespace, &instance.pod, self.container);
            let path =
                format!("/api/v1/namespaces/{namespace}/pods/{pod}/log?container={container}&follow=true{previous}");
            self.readers.spawn(read(self.client.clone(), path, progress.printed, instance, self.sender.clone()));
        }
        true
    }

    /// The starts of the container in a Pod whose logs can be read, the older first, and whether another start followed.
    fn started(&self, pod: &Pod) -> Vec<(Instance, bool)> {
        let status = pod.status.as_ref();
        let lists = status.map(|status| [&status.container_statuses, &status.init_container_statuses]);
        let mut statuses = lists.into_iter().flatten().flatten().flatten();
        let Some(status) = statuses.find(|status| status.name == self.container) else { return Vec::new() };
        let instance = |restarts: i32| Instance {
            pod: pod.metadata.name.clone().unwrap_or_default(),
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            restarts,
        };
        let last = status.restart_count - 1;
        let previous = (last >= 0).then(|| (instance(last), true));
        let current = has_started(status).then(|| (instance(status.restart_count), false));
        previous.into_iter().chain(current).collect()
    }
}

fn has_ended(pod: &Pod) -> bool {
    matches!(pod.status.as_ref().and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed"))
}

fn has_started(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
}

/// Reads a log from the byte `skip`, to its end.
async fn read(client: Client, path: String, skip: usize, instance: Instance, sender: Sender<Piece>) {
    let result = match Request::get(path).body(Vec::new()) {
        Ok(request) => match client.request_stream(request).await {
            Ok(log) => read_lines(std::pin::pin!(log), skip, &instance, &sender).await,
            // Another answer is not to be expected, but from a server that is overloaded.
            Err(kube::Error::Api(status)) => Err((status.message.clone(), status.code != 429 && status.code < 500)),
            Err(error) => Err((words(&error), false)),
        },
        Err(error) => Err((error.to_string(), true)),
    };
    let result =
        result.map_err(|(why, is_final)| (format!("The log of Pod {} cannot be read: {why}", instance.pod), is_final));
    // The command may have ended.
    let _ = sender.send(Piece::Ended(instance, result)).await;
}

async fn read_lines(
    mut log: impl AsyncBufRead + Unpin,
    mut skip: usize,
    instance: &Instance,
    sender: &Sender<Piece>,
) -> Result<(), (String, bool)> {
    let mut line = Vec::new();
    loop {
        let piece = log.fill_buf().await.map_err(|error| (error.to_string(), false))?;
        let is_end = piece.is_empty();
        let skipped = skip.min(piece.len());
        let rest = &piece[skipped..];
        let found = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
        let taken = found.min(LONGEST_LINE - line.len());
        line.extend_from_slice(&rest[..taken]);
        skip -= skipped;
        log.consume_unpin(skipped + taken);
        if !line.is_empty() && (is_end || line.ends_with(b"\n") || line.len() == LONGEST_LINE) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
            // The command has ended.
            let Ok(()) = sender.send(Piece::Line(instance.clone(), text, line.len())).await else { return Ok(()) };
            line.clear();
        }
        if is_end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
