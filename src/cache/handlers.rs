//! Who is told of changes, and how.
//!
//! Guarantees: a handler is called after the store was changed, in the order of the changes, by one reflector at a time
//! per namespace; a handler that panics is logged and counted and harms neither the reflector nor the other handlers.
//!
//! Matches client-go `tools/cache/shared_informer.go` (`sharedProcessor`) and `controller.go` (`ResourceEventHandler`),
//! with the handlers called in place: they only look into stores and add to queues, so no buffer stands between.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tracing::error;

use super::error::ReflectorError;
use super::store::Delta;
use crate::api::{Object, ResourceKind};

/// What is to happen when an object appears, changes or goes. Handlers must be quick and must not block: the reflector
/// waits for them.
pub trait ResourceEventHandler<T>: Send + Sync {
    /// An object has appeared; `is_in_initial_list` if it was there when the reflector started.
    fn on_add(&self, object: &Arc<T>, is_in_initial_list: bool);

    /// An object has changed. Unlike in client-go, `old` and `new` always have different resource versions and the same
    /// UID: there is no resync, a relist that shows the stored version again is silent, and a successor of the same
    /// name is a deletion followed by an addition.
    fn on_update(&self, old: &Arc<T>, new: &Arc<T>);

    /// An object has gone. With `final_state_unknown` nobody saw it go, and `last` may be older than its end.
    fn on_delete(&self, last: &Arc<T>, final_state_unknown: bool);

    /// An object is there but cannot be read, and so is not in the store. Called once per object and resource version.
    fn on_malformed(&self, object: &MalformedObject) {
        let _ = object;
    }

    /// After a gap in the watch everything was listed again; called when the differences have been delivered.
    fn on_relisted(&self) {}
}

/// An object that could not be decoded. What could not be read of its metadata is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MalformedObject {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// What the decoder met.
    pub error: String,
}

/// Where the cache reports what metrics are made of.
pub trait Observer: Send + Sync {
    /// An object could not be decoded; once per object and resource version.
    fn malformed(&self, resource: ResourceKind, object: &MalformedObject) {
        let _ = (resource, object);
    }

    /// A handler panicked.
    fn handler_panicked(&self, resource: ResourceKind) {
        let _ = resource;
    }

    /// A list or a watch failed.
    fn failed(&self, resource: ResourceKind, error: &ReflectorError) {
        let _ = (resource, error);
    }

    /// A list was completed: the first one, or one after a gap in the watch.
    fn listed(&self, resource: ResourceKind) {
        let _ = resource;
    }
}

/// Reports nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}

/// The handlers of one informer and its observer, shared by its reflectors.
pub(super) struct Dispatcher<T> {
    pub(super) resource: ResourceKind,
    pub(super) handlers: Vec<Arc<dyn ResourceEventHandler<T>>>,
    pub(super) observer: Arc<dyn Observer>,
}

impl<T: Object> Dispatcher<T> {
    pub(super) fn deliver(&self, delta: &Delta<T>, is_in_initial_list: bool) {
        self.each(|handler| match delta {
            Delta::Added(object) => handler.on_add(object, is_in_initial_list),
            Delta::Updated { old, new } => handler.on_update(old, new),
            Delta::Deleted { last, final_state_unknown } => handler.on_delete(last, *final_state_unknown),
        });
    }

    pub(super) fn malformed(&self, object: &MalformedObject) {
        self.observer.malformed(self.resource, object);
        self.each(|handler| handler.on_malformed(object));
    }

    pub(super) fn relisted(&self) {
        self.each(|handler| handler.on_relisted());
    }

    fn each(&self, call: impl Fn(&dyn ResourceEventHandler<T>)) {
        for handler in &self.handlers {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| call(handler.as_ref()))) {
                error!(kind = self.resource.kind, panic = panic_text(panic.as_ref()), "an event handler panicked");
                self.observer.handler_panicked(self.resource);
            }
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("not a text")
}
