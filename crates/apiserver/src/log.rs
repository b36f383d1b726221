//! The log of a container: `pods/log`.
//!
//! Guarantees: the log is what the source makes of the Pod as it is stored. One that is followed grows with each change of the
//! Pod, and ends when its container has ended or was restarted, or its Pod is gone. Matches kubernetes
//! `pkg/registry/core/pod/strategy.go` (`LogLocation`) in the choice of the container.

use std::convert::Infallible;
use std::pin::pin;

use apimachinery::quoting::quote;
use apimachinery::status::{self, Result};
use axum::body::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::Value;

use super::query::Query;
use super::rest::{Call, Target};
use super::{ApiServer, Body, meta, read};

/// The log that a request asks for.
///
/// # Errors
/// When there is no such Pod or container, or the container has not started.
pub(super) fn read(server: &ApiServer, call: &Call) -> Result<Body> {
    let target = &call.target;
    let pod = read::get(&server.store(), target, &Query::default())?.object();
    let container = choose(&pod, call.query.get("container"))?;
    let text = server.log_source().and_then(|source| source(&pod, &container));
    let text = text.ok_or_else(|| {
        let pod = quote(&target.name);
        status::bad_request(format!(
            "container {} in pod {pod} is waiting to start: ContainerCreating",
            quote(&container)
        ))
    })?;
    let sent = text.len() - last_lines(&text, call.query.integer("tailLines")?).len();
    if call.query.boolean("follow") != Some(true) {
        return Ok(Full::new(Bytes::from(text.into_bytes().split_off(sent))).boxed_unsync());
    }
    let instance = Instance::of(&pod, &container);
    Ok(Followed { server: server.clone(), target: target.clone(), container, instance, sent, has_ended: false }
        .into_body())
}

/// The container that is meant by `wanted`, or the only one.
fn choose(pod: &Value, wanted: Option<&str>) -> Result<String> {
    let names: Vec<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| pod["spec"][*list].as_array().into_iter().flatten())
        .filter_map(|container| container["name"].as_str())
        .collect();
    let name = meta::text(pod, "name");
    match wanted {
        Some(wanted) if names.contains(&wanted) => Ok(wanted.to_owned()),
        Some(wanted) => Err(status::bad_request(format!("container {wanted} is not valid for pod {name}"))),
        None if pod["spec"]["containers"].as_array().is_some_and(|containers| containers.len() == 1) => {
            Ok(names[0].to_owned())
        }
        None => {
            let choices = names.join(" ");
            let message = format!("a container name must be specified for pod {name}, choose one of: [{choices}]");
            Err(status::bad_request(message))
        }
    }
}

fn last_lines(text: &str, wanted: Option<i64>) -> &str {
    let Some(wanted) = wanted.and_then(|count| usize::try_from(count).ok()) else { return text };
    let lines = text.split_inclusive('\n').rev().take(wanted).map(str::len).sum::<usize>();
    &text[text.len() - lines..]
}

/// One of the containers that a restart makes of a Pod's container.
#[derive(PartialEq)]
struct Instance {
    pod: Value,
    restarts: Value,
}

impl Instance {
    fn of(pod: &Value, container: &str) -> Self {
        let restarts = status_of(pod, container)["restartCount"].clone();
        Self { pod: pod["metadata"]["uid"].clone(), restarts }
    }
}

fn status_of<'a>(pod: &'a Value, container: &str) -> &'a Value {
    let lists = ["containerStatuses", "initContainerStatuses"].map(|list| pod["status"][list].as_array());
    let mut statuses = lists.into_iter().flatten().flatten();
    statuses.find(|status| status["name"] == container).unwrap_or(&Value::Null)
}

/// A log that is followed.
struct Followed {
    server: ApiServer,
    target: Target,
    container: String,
    instance: Instance,
    /// How many bytes of it were sent.
    sent: usize,
    has_ended: bool,
}

impl Followed {
    fn into_body(self) -> Body {
        let pieces = stream::unfold(self, |mut followed| async move {
            let piece = followed.next().await?;
            Some((Ok::<_, Infallible>(Frame::data(piece)), followed))
        });
        StreamBody::new(pieces).boxed_unsync()
    }

    /// What was added; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let signal = read::collection(&self.server.store(), &self.target.resource).ok()?.subscribe();
        loop {
            let mut changed = pin!(signal.notified());
            // Registers before it looks, so that a change after the look wakes it.
            changed.as_mut().enable();
            if self.has_ended {
                return None;
            }
            let text = self.look().unwrap_or_default();
            if let Some(more) = text.get(self.sent..).filter(|more| !more.is_empty()) {
                self.sent = text.len();
                return Some(Bytes::copy_from_slice(more.as_bytes()));
            }
            if !self.has_ended {
                changed.await;
            }
        }
    }

    /// The whole log, and whether it has ended; `None` if it is gone.
    fn look(&mut self) -> Option<String> {
        let pod = read::get(&self.server.store(), &self.target, &Query::default()).ok().map(|entry| entry.object());
        let pod = pod.filter(|pod| Instance::of(pod, &self.container) == self.instance);
        self.has_ended =
            pod.as_ref().is_none_or(|pod| !status_of(pod, &self.container)["state"]["terminated"].is_null());
        self.server.log_source()?(&*pod?, &self.container)
    }
}
