//! A watch on its way to a replica: late, paused, cut, silent, coalesced, or without bookmarks.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Bytes;
use cronjob_controller::api::ResourceKind;
use futures::FutureExt as _;
use futures::stream;
use http::Response;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::{Value, json};
use tokio::time::{sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use crate::call::{Call, Kind};
use crate::disguise::disguise_line;
use crate::faults::FaultKind as F;
use crate::invariants::Sent;
use crate::network::{Network, full};
use crate::view::{Event, Shown};

/// The body of an answer on its way.
pub type SimBody = UnsyncBoxBody<Bytes, BoxError>;

/// A bookmark, unless it ends the initial events.
const BOOKMARK: &str = r#"{"type":"BOOKMARK""#;
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// Opens a watch.
pub fn open(network: &Network, call: &Call, sent: &Sent, stale: Option<u64>) -> Response<SimBody> {
    let begun = stale.filter(|_| call.is_list()).and_then(|revision| begin_stale(network, call, sent, revision));
    let (first, response) = match begun {
        Some((first, response)) => (Some(first), response),
        None => (None, network.sim.commit(sent, call)),
    };
    let (parts, body) = response.into_parts();
    if !parts.status.is_success() {
        let bytes = body.collect().now_or_never().expect("an answer is whole").unwrap_or_else(|never| match never {});
        return Response::from_parts(parts, full(bytes.to_bytes()));
    }
    let cut = {
        let mut state = network.sim.state.lock();
        let replica = &mut state.replicas[network.replica];
        if let Kind::CronJobs | Kind::Jobs = call.kind {
            replica.watched[call.kind as usize] = Some(network.sim.now());
        }
        replica.cut.clone()
    };
    let feed = Feed {
        cut,
        network: network.clone(),
        kind: call.kind,
        body,
        first,
        silent: false,
        initial: call.is_list().then(Vec::new),
        over: false,
        ended: false,
    };
    let frames = stream::unfold(feed, |mut feed| async move {
        if feed.over {
            return None;
        }
        let frame = feed.next().await?;
        feed.over = frame.is_err();
        Some((frame.map(Frame::data), feed))
    });
    Response::from_parts(parts, StreamBody::new(frames).boxed_unsync())
}

/// The initial events of an old revision, followed by the watch from there.
fn begin_stale(
    network: &Network,
    call: &Call,
    sent: &Sent,
    revision: u64,
) -> Option<(String, Response<apiserver::Body>)> {
    let mut list = call.with_query(&format!("resourceVersion={revision}&resourceVersionMatch=Exact"));
    list.watch = false;
    let (parts, body) = network.sim.commit(sent, &list).into_parts();
    if !parts.status.is_success() {
        return None;
    }
    let bytes = body.collect().now_or_never()?.unwrap_or_else(|never| match never {}).to_bytes();
    let document: Value = serde_json::from_slice(&bytes).ok()?;
    let controller_kind = network.sim.scenario.controller_kind;
    let resource = match call.kind {
        Kind::Jobs => controller_kind.child,
        Kind::Namespaces => ResourceKind::NAMESPACE,
        _ => controller_kind.parent,
    };
    let (kind, api_version) = (resource.kind, resource.api_version());
    let mut lines = String::new();
    for item in document["items"].as_array()? {
        let mut item = item.clone();
        (item["kind"], item["apiVersion"]) = (json!(kind), json!(api_version));
        lines.push_str(&format!("{{\"type\":\"ADDED\",\"object\":{item}}}\n"));
    }
    let mut end = json!({"kind": kind, "apiVersion": api_version, "metadata": {
        "resourceVersion": revision.to_string(), "annotations": {"k8s.io/initial-events-end": "true"},
    }});
    if call.kind == Kind::CronJobs {
        end["spec"] = json!({"schedule": "", "jobTemplate": {}});
    }
    lines.push_str(&format!("{{\"type\":\"BOOKMARK\",\"object\":{end}}}\n"));
    let seconds = call.query().split('&').find_map(|pair| pair.strip_prefix("timeoutSeconds=")).unwrap_or("300");
    let query = format!("watch=1&resourceVersion={revision}&allowWatchBookmarks=true&timeoutSeconds={seconds}");
    Some((lines, network.sim.commit(sent, &call.with_query(&query))))
}

struct Feed {
    network: Network,
    kind: Kind,
    body: apiserver::Body,
    /// The data before the body.
    first: Option<String>,
    cut: CancellationToken,
    /// The connection is dead without any sign of it.
    silent: bool,
    /// The initial events so far, until their end.
    initial: Option<Vec<Shown>>,
    over: bool,
    /// The body has ended.
    ended: bool,
}

impl Feed {
    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        let cut = self.cut.clone();
        tokio::select! {
            biased;
            () = cut.cancelled() => {
                let is_clean = self.network.sim.now().is_multiple_of(2);
                if is_clean { None } else { Some(Err("connection reset".into())) }
            }
            frame = self.frame() => frame,
        }
    }

    async fn frame(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            let mut text = match self.first.take() {
                Some(first) => first,
                None if self.ended => return None,
                None => text_of(self.body.frame().await)?,
            };
            self.wait().await;
            self.gather(&mut text).await;
            let text = self.edit(&text);
            if !text.is_empty() {
                self.note(&text);
                return Some(Ok(text.into()));
            }
        }
    }

    /// Delays an event as the current faults require.
    async fn wait(&mut self) {
        let (sim, replica) = (&self.network.sim, self.network.replica);
        let lag = loop {
            let (until, lag) = {
                let mut state = sim.state.lock();
                if !self.silent && state.suffers(F::WatchSilent, replica).is_some() {
                    state.struck(F::WatchSilent);
                    self.silent = true;
                }
                let lagging = if self.kind == Kind::Jobs { F::LagJobs } else { F::LagCronJobs };
                let lag = state.suffers(lagging, replica).map(|fault| fault.amount);
                if lag.is_some() {
                    state.struck(lagging);
                }
                let silent = match self.kind {
                    Kind::Jobs => Some(F::JobsSilent),
                    Kind::CronJobs => Some(F::CronJobsSilent),
                    Kind::Namespaces => Some(F::NamespacesSilent),
                    _ => None,
                };
                // Who lists gets an answer: only the changes are missing.
                let silent = silent.filter(|_| self.initial.is_none());
                let holds = [Some(F::WatchPause), silent].into_iter().flatten();
                let holding = holds.filter_map(|kind| state.suffers(kind, replica)).max_by_key(|fault| fault.until);
                let until = holding.map(|fault| (fault.kind, fault.until));
                if let Some((kind, _)) = until {
                    state.struck(kind);
                }
                let until = until.map(|(_, until)| until);
                let lag = lag.unwrap_or_else(|| state.rng.range(0, 4));
                (until, lag)
            };
            if self.silent {
                std::future::pending::<()>().await;
            }
            match until.filter(|until| *until > sim.now()) {
                Some(until) => sleep_until(sim.instant(until)).await,
                None => break lag,
            }
        };
        sleep(Duration::from_millis(lag)).await;
    }

    /// Waits for further events, where changes are to be coalesced.
    async fn gather(&mut self, text: &mut String) {
        let waits = {
            let mut state = self.network.sim.state.lock();
            let suffers = self.initial.is_none() && state.suffers(F::Coalesce, self.network.replica).is_some();
            suffers.then(|| state.rng.range(50, 15_000))
        };
        let Some(waits) = waits else { return };
        sleep(Duration::from_millis(waits)).await;
        while let Some(more) = self.body.frame().now_or_never() {
            match text_of(more) {
                Some(more) => text.push_str(&more),
                None => {
                    self.ended = true;
                    return;
                }
            }
        }
    }

    /// The rest of a piece of the stream.
    fn edit(&self, text: &str) -> String {
        let replica = self.network.replica;
        let mut state = self.network.sim.state.lock();
        let mut lines: Vec<&str> = text.lines().collect();
        if state.suffers(F::NoBookmarks, replica).is_some() {
            let before = lines.len();
            lines.retain(|line| !line.starts_with(BOOKMARK) || line.contains(INITIAL_END));
            if lines.len() < before {
                state.struck(F::NoBookmarks);
            }
        }
        if lines.len() > 1 && self.initial.is_none() && state.suffers(F::Coalesce, replica).is_some() {
            let before = lines.len();
            lines = coalesced(lines);
            if lines.len() < before {
                state.struck(F::Coalesce);
            }
        }
        let mut out = String::with_capacity(text.len());
        for line in lines {
            out.push_str(&disguise_line(line));
            out.push('\n');
        }
        out
    }

    /// Records what the replica now sees.
    fn note(&mut self, text: &str) {
        let at = self.network.sim.now();
        let mut state = self.network.sim.state.lock();
        let (replica, incarnation) = (self.network.replica, self.network.incarnation);
        let author = format!("r{replica}.{incarnation}");
        let state = &mut *state;
        if state.replicas[replica].incarnation != incarnation {
            return;
        }
        if !matches!(self.kind, Kind::CronJobs | Kind::Jobs | Kind::Namespaces) {
            return;
        }
        for line in text.lines() {
            if line.starts_with(BOOKMARK) && !line.contains(INITIAL_END) {
                continue;
            }
            let Ok(Event { kind, object }) = serde_json::from_str::<Event>(line) else { continue };
            let metadata = &object.metadata;
            state.journal.detail(
                at,
                format_args!(
                    "      {author} sees {kind} {}/{} @{}",
                    metadata.namespace, metadata.name, metadata.resource_version,
                ),
            );
            if self.kind == Kind::Jobs {
                if let Some(job) = state.model.jobs.get_mut(&metadata.uid) {
                    let revision = metadata.resource_version.parse().unwrap_or(0);
                    job.shown((replica, incarnation), revision, metadata.deletion_timestamp.is_some(), at);
                }
                continue;
            }
            let view = &mut state.replicas[replica].view;
            if self.kind == Kind::Namespaces {
                match (kind.as_str(), &mut self.initial) {
                    ("BOOKMARK", initial) => {
                        initial.take().into_iter().flatten().for_each(|object| view.namespace_shown(&object, at));
                    }
                    (_, Some(initial)) => initial.push(object),
                    (_, None) => view.namespace_shown(&object, at),
                }
                continue;
            }
            match (kind.as_str(), &mut self.initial) {
                ("BOOKMARK", initial) => view.listed(initial.take().unwrap_or_default(), at),
                ("DELETED", None) => view.removed(&object, at),
                ("ADDED" | "MODIFIED", Some(initial)) => initial.push(object),
                ("ADDED" | "MODIFIED", None) => view.shown(object, at),
                _ => {}
            }
        }
    }
}

fn text_of(frame: Option<Result<Frame<Bytes>, std::convert::Infallible>>) -> Option<String> {
    let frame = frame?.unwrap_or_else(|never| match never {});
    Some(String::from_utf8(frame.into_data().ok()?.into()).expect("watches are text"))
}

/// Removes the changes that a later one in the same piece supersedes.
fn coalesced(lines: Vec<&str>) -> Vec<&str> {
    let read = |line: &str| serde_json::from_str::<Event>(line).ok().map(|e| (e.kind, e.object.metadata.uid));
    let mut newest: BTreeMap<String, usize> = BTreeMap::new();
    let events: Vec<_> = lines.iter().map(|line| read(line)).collect();
    for (number, event) in events.iter().enumerate() {
        if let Some((_, uid)) = event {
            newest.insert(uid.clone(), number);
        }
    }
    let mut kept = Vec::new();
    for (number, (line, event)) in lines.into_iter().zip(&events).enumerate() {
        let is_old = event.as_ref().is_some_and(|(kind, uid)| kind == "MODIFIED" && newest.get(uid) != Some(&number));
        if !is_old {
            kept.push(line);
        }
    }
    kept
}
