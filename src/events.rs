//! Core/v1 Events, written as kube-controller-manager writes them.
//!
//! Guarantees: [`EventRecorder::event`] never waits, never fails and does no I/O. It stamps the event with the present time
//! and puts it into a bounded queue; an event that does not fit is dropped and counted. One background task
//! ([`EventSinkTask`]) correlates and writes. The events of one object reach the API server in the order in which they were
//! recorded; those of different objects do not wait for each other. Repetitions share one Event object with a count. An
//! object that repeats itself with changing messages ends in one combined Event. A rate limit per object, and per reason that
//! upstream does not have, stops an endless stream. Every buffer and cache has a fixed bound, and every event that is not
//! written is counted under one of the reasons in [`discard`].
//!
//! The parts: [`Correlator`] is pure and decides what an event becomes; [`EventSink`] is the port to the API server; `lanes`
//! keeps the order; [`EventSinkTask`] connects them. Matches client-go's `tools/record`.

mod correlator;
mod lanes;
mod lru;
pub mod reasons;
mod recorder;
mod sink;
mod writer;

use std::hash::Hash;
use std::sync::Arc;

use apimachinery::names::subdomain_errors;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};

pub use crate::api::EventType;
use crate::api::shortened;
pub use correlator::{Correlator, CorrelatorOptions};
pub use recorder::{Config, Recorder};
pub use sink::{Disposition, EventSink, KubeSink, SinkError, SinkFault};
pub use writer::EventSinkTask;

/// Why an event was not written: the values with which the `discarded` closure of [`Recorder::new`] is called.
pub mod discard {
    /// The incoming queue was full when the event was recorded.
    pub const QUEUE_FULL: &str = "queue_full";
    /// The object had used up its rate limit for events.
    pub const SPAM_FILTER: &str = "spam_filter";
    /// The API server refused the event, and would refuse it again.
    pub const REFUSED: &str = "refused";
    /// All tries failed, or the process shut down.
    pub const GAVE_UP: &str = "gave_up";
    /// All reasons, for a metric that starts each at zero.
    pub const ALL: [&str; 4] = [QUEUE_FULL, SPAM_FILTER, REFUSED, GAVE_UP];
}

/// The maximum length of a message in bytes. Longer ones are cut at a character boundary.
///
/// Neither client-go nor the API server limits the message of a core/v1 Event (the limit of 1,024 is that of
/// `events.k8s.io/v1`). This limit only bounds the queue's memory; real messages are far shorter.
pub const MAX_MESSAGE_BYTES: usize = 8192;

/// Records events about objects. Matches `EventRecorder` of client-go's `tools/record/event.go`.
pub trait EventRecorder: Send + Sync {
    /// Records that `reason` happened to `regarding`. Never blocks and never fails; the time of the event is now.
    ///
    /// `reason` is UpperCamelCase and from a small set; `message` is for people.
    fn event(&self, regarding: &ObjectReference, type_: EventType, reason: &'static str, message: String);
}

/// The object that an event is about. Cheap to clone. An empty field is left out on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectReference {
    /// Group and version, such as `batch/v1`.
    pub api_version: Arc<str>,
    /// Such as `CronJob`.
    pub kind: Arc<str>,
    /// The object's namespace. Events about an object without one are written to `default`.
    pub namespace: Arc<str>,
    /// The object's name.
    pub name: Arc<str>,
    /// The object's UID.
    pub uid: Arc<str>,
    /// The version of the object that the event refers to.
    pub resource_version: Arc<str>,
}

impl ObjectReference {
    /// The fields that stay the same over the object's life: all but the resource version.
    fn identity(&self) -> Arc<ObjectKey> {
        Arc::new(ObjectKey(Self { resource_version: Arc::default(), ..self.clone() }))
    }
}

/// An [`ObjectReference`] without its resource version, as a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ObjectKey(ObjectReference);

/// One Event, before and after correlation. Serializes to the body of a POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The Event object's own name.
    pub name: Arc<str>,
    /// The namespace that it is written to.
    pub namespace: Arc<str>,
    /// The object that the event is about.
    pub involved_object: ObjectReference,
    /// Normal or Warning.
    pub type_: EventType,
    /// The reason, in UpperCamelCase.
    pub reason: &'static str,
    /// A message for people.
    pub message: String,
    /// The reporting component: `source.component` and `reportingComponent`.
    pub component: &'static str,
    /// When the first of the `count` occurrences was recorded.
    pub first_timestamp: DateTime<Utc>,
    /// When the latest was recorded.
    pub last_timestamp: DateTime<Utc>,
    /// The number of occurrences. More than one means that the Event exists already and is patched.
    pub count: i32,
}

impl Event {
    /// A first occurrence, recorded at `now`. `nanos` makes the name unique: `now` in nanoseconds since 1970, or the next
    /// free number. Matches `makeEvent` in client-go's `tools/record/event.go`.
    fn new(
        regarding: &ObjectReference,
        type_: EventType,
        reason: &'static str,
        message: String,
        component: &'static str,
        now: DateTime<Utc>,
        nanos: i64,
    ) -> Self {
        let namespace = if regarding.namespace.is_empty() { "default".into() } else { regarding.namespace.clone() };
        Self {
            name: event_name(&regarding.name, &regarding.uid, nanos),
            namespace,
            involved_object: regarding.clone(),
            type_,
            reason,
            message: truncated(message),
            component,
            first_timestamp: now,
            last_timestamp: now,
            count: 1,
        }
    }

    /// The strategic merge patch that turns an earlier occurrence on the server into this one. It carries the three fields
    /// that differ, like client-go's diff in `eventObserve` (`tools/record/events_cache.go`).
    pub fn patch(&self) -> impl Serialize {
        Patch { count: self.count, last_timestamp: rfc3339(self.last_timestamp), message: &self.message }
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let about = &self.involved_object;
        Body {
            api_version: "v1",
            kind: "Event",
            metadata: Metadata { name: &self.name, namespace: &self.namespace },
            involved_object: InvolvedObject {
                kind: &about.kind,
                namespace: &about.namespace,
                name: &about.name,
                uid: &about.uid,
                api_version: &about.api_version,
                resource_version: &about.resource_version,
            },
            reason: self.reason,
            message: &self.message,
            source: Source { component: self.component },
            first_timestamp: rfc3339(self.first_timestamp),
            last_timestamp: rfc3339(self.last_timestamp),
            count: self.count,
            type_: self.type_.as_str(),
            event_time: None,
            reporting_component: self.component,
            reporting_instance: "",
        }
        .serialize(serializer)
    }
}

/// `<object>.<hex nanos>`, with the UID in place of an object name that would make an invalid Event name (too long, or with
/// characters that an Event's name may not have). Matches `GenerateEventName` in client-go's `tools/record/util/util.go`,
/// which uses a random UUID instead.
fn event_name(object: &str, uid: &str, nanos: i64) -> Arc<str> {
    [object, uid]
        .iter()
        .map(|prefix| format!("{prefix}.{nanos:x}"))
        .find(|name| subdomain_errors(name).is_empty())
        .unwrap_or_else(|| format!("event.{nanos:x}"))
        .into()
}

/// `message`, cut to [`MAX_MESSAGE_BYTES`].
fn truncated(mut message: String) -> String {
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(shortened(&message, MAX_MESSAGE_BYTES).len());
        message.shrink_to_fit();
    }
    message
}

/// `metav1.Time` on the wire: whole seconds in UTC, truncated and not rounded.
fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Patch<'a> {
    count: i32,
    last_timestamp: String,
    message: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    involved_object: InvolvedObject<'a>,
    reason: &'a str,
    message: &'a str,
    source: Source,
    first_timestamp: String,
    last_timestamp: String,
    count: i32,
    #[serde(rename = "type")]
    type_: &'static str,
    /// Always null: an Event with this time would be validated by the rules of `events.k8s.io`.
    event_time: Option<()>,
    reporting_component: &'static str,
    /// The source's host, which a controller leaves empty.
    reporting_instance: &'static str,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    namespace: &'a str,
}

#[derive(Serialize)]
struct Source {
    component: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InvolvedObject<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    resource_version: &'a str,
}

#[cfg(test)]
mod tests;
