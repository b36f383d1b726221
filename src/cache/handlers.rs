//! Handlers of changes, and how they are called.
//!
//! Guarantees: a handler is called after the store was changed, in the order of the changes, by one reflector at a time per
//! namespace. A handler that panics is logged and counted and affects neither the reflector nor the other handlers.
//!
//! Matches client-go `tools/cache/shared_informer.go` (`sharedProcessor`) and `controller.go` (`ResourceEventHandler`).
//! Handlers are called directly: they only look into stores and add to queues, so no buffer is needed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tracing::error;

use super::error::ReflectorError;
use super::store::Delta;
use crate::api::{Object, ResourceKind};

/// Reacts when an object is added, changed or deleted. Handlers must be quick and must not block: the reflector waits for
/// them.
pub trait ResourceEventHandler<T>: Send + Sync {
    /// An object was added; `is_in_initial_list` if it existed when the reflector started.
    fn on_add(&self, object: &Arc<T>, is_in_initial_list: bool);

    /// An object was changed. Unlike in client-go, `old` and `new` always have different resource versions and the same UID.
    /// There is no resync; a relist that shows the stored version again makes no call; a successor of the same name is a
    /// deletion followed by an addition.
    fn on_update(&self, old: &Arc<T>, new: &Arc<T>);

    /// An object was deleted. With `final_state_unknown` the deletion event was missed, and `last` may be older than the
    /// final state.
    fn on_delete(&self, last: &Arc<T>, final_state_unknown: bool);

    /// An object exists but cannot be decoded, so it is not in the store. Called once per object and resource version.
    fn on_malformed(&self, object: &MalformedObject) {
        let _ = object;
    }

    /// A relist after a gap in the watch is complete; called when the differences have been delivered.
    fn on_relisted(&self) {}
}

/// An object that could not be decoded. Metadata fields that could not be read are empty.
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
    /// The decoder's error.
    pub error: String,
}

/// Receives the numbers for metrics.
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

/// An observer that does nothing.
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
    pub(super) fn deliver(&self, deltas: &[Delta<T>], is_in_initial_list: bool) {
        for delta in deltas {
            self.each(|handler| match delta {
                Delta::Added(object) => handler.on_add(object, is_in_initial_list),
                Delta::Updated { old, new } => handler.on_update(old, new),
                Delta::Deleted { last, final_state_unknown } => handler.on_delete(last, *final_state_unknown),
            });
        }
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
