//! Applies the server's changes to the store and calls the handlers.
//!
//! Guarantees: the store is changed before a handler is called. The first list of a scope is marked as synced only after its
//! last handler call. The store never has a malformed object, nor one that is not selected.
//!
//! A malformed object removes its older, readable version, as a deletion whose final state is unknown. To keep the old
//! version would be to act on outdated data: a CronJob would go on firing by a schedule that its owner has changed. Handlers
//! receive both the deletion and the malformed object.
//!
//! Matches client-go `tools/cache/shared_informer.go` (`processDeltas`) and `the_real_fifo.go`, without a queue between.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::value::RawValue;
use tracing::warn;

use super::Select;
use super::decode::{Change, decode_object, decode_quickly};
use super::handlers::{Dispatcher, MalformedObject};
use super::store::{ByName, Named, Store};
use crate::api::{Interner, Object, ObjectName};

/// One scope of a store, with its handlers and filters.
pub(super) struct StoreUpdater<T> {
    pub(super) store: Arc<Store<T>>,
    pub(super) dispatcher: Arc<Dispatcher<T>>,
    pub(super) interner: Arc<Interner>,
    /// The scope's number in the store.
    pub(super) scope: usize,
    pub(super) namespace: Option<Arc<str>>,
    /// Which objects are kept.
    pub(super) select: Select<T>,
    /// The objects that exist and cannot be decoded, with the resource version that was reported.
    pub(super) malformed: HashMap<ObjectName, String>,
    /// Whether a list was completed.
    pub(super) listed: bool,
}

/// An incomplete list. A later version of an object replaces an earlier one.
pub(super) struct Listing<T> {
    readable: Named<T>,
    malformed: BTreeMap<ObjectName, MalformedObject>,
}

impl<T: Object> Default for Listing<T> {
    fn default() -> Self {
        Self { readable: Named::new(), malformed: BTreeMap::new() }
    }
}

impl<T: Object> Listing<T> {
    fn add(&mut self, object: T) {
        self.malformed.remove(object.object_name());
        self.readable.replace(ByName(Arc::new(object)));
    }

    fn forget(&mut self, name: &ObjectName) {
        self.readable.remove(name);
        self.malformed.remove(name);
    }

    /// How many objects it has.
    pub(super) fn len(&self) -> usize {
        self.readable.len() + self.malformed.len()
    }
}

impl<T: Object> StoreUpdater<T> {
    /// Applies a line of the initial events to an incomplete list; false if the line must be read in two stages.
    pub(super) fn list_quickly(&self, listing: &mut Listing<T>, line: &[u8]) -> bool {
        match self.decode_quickly(line) {
            Some((Change::Upserted, object)) => self.take(listing, object),
            Some((Change::Deleted, object)) => listing.forget(T::object_name(&object)),
            None => return false,
        }
        true
    }

    /// Adds an object to an incomplete list.
    pub(super) fn list(&self, listing: &mut Listing<T>, raw: &RawValue) {
        match self.decode(raw) {
            Ok(object) => self.take(listing, object),
            Err(malformed) => {
                let name = self.key(&malformed);
                listing.readable.remove(&name);
                listing.malformed.insert(name, malformed);
            }
        }
    }

    fn take(&self, listing: &mut Listing<T>, mut object: T) {
        if (self.select)(&mut object) {
            listing.add(object);
        } else {
            // An earlier version of it may have been kept.
            listing.forget(object.object_name());
        }
    }

    /// Removes an object that was deleted meanwhile from an incomplete list.
    pub(super) fn unlist(&self, listing: &mut Listing<T>, raw: &RawValue) {
        match self.decode(raw) {
            Ok(object) => listing.forget(object.object_name()),
            Err(malformed) => listing.forget(&self.key(&malformed)),
        }
    }

    /// Makes the scope equal to a complete list at `resource_version`.
    pub(super) fn replace(&mut self, listing: Listing<T>, resource_version: &str) {
        let is_initial = !self.listed;
        self.listed = true;
        let deltas = self.store.replace(self.namespace.as_deref(), listing.readable);
        self.store.observe(self.scope, resource_version);
        self.dispatcher.deliver(&deltas, is_initial);
        self.malformed.retain(|name, _| listing.malformed.contains_key(name));
        self.count_malformed();
        for (name, malformed) in listing.malformed {
            self.report(name, &malformed);
        }
        self.dispatcher.observer.listed(self.dispatcher.resource);
        if is_initial {
            self.store.scope_synced(self.scope);
        } else {
            self.dispatcher.relisted();
        }
    }

    /// Applies a change and calls the handlers. Returns the resource version of its event, empty if it cannot be read.
    pub(super) fn apply(&mut self, change: Change, object: Result<T, MalformedObject>) -> String {
        match object {
            Ok(mut object) => {
                let resource_version = object.resource_version().to_owned();
                if change == Change::Deleted || !(self.select)(&mut object) {
                    return self.remove(&object.object_name().clone(), resource_version, Some(object));
                }
                self.is_readable_or_gone(object.object_name());
                let deltas = self.store.upsert(object);
                self.store.observe(self.scope, &resource_version);
                self.dispatcher.deliver(&deltas, false);
                resource_version
            }
            Err(malformed) if change == Change::Deleted => {
                let name = self.key(&malformed);
                self.remove(&name, malformed.resource_version, None)
            }
            Err(malformed) => {
                let name = self.key(&malformed);
                let deltas = self.store.delete(&name, None);
                self.observe(&malformed.resource_version);
                self.dispatcher.deliver(deltas.as_slice(), false);
                self.report(name, &malformed);
                malformed.resource_version
            }
        }
    }

    fn remove(&mut self, name: &ObjectName, resource_version: String, last: Option<T>) -> String {
        self.is_readable_or_gone(name);
        let deltas = self.store.delete(name, last);
        self.observe(&resource_version);
        self.dispatcher.deliver(deltas.as_slice(), false);
        resource_version
    }

    /// Answers the questions whether the scope shows everything, up to `number`.
    pub(super) fn answer(&self, number: u64) {
        self.store.answer(self.scope, number);
    }

    /// Records that the scope shows every change up to `resource_version`, if there is one.
    pub(super) fn observe(&self, resource_version: &str) {
        if !resource_version.is_empty() {
            self.store.observe(self.scope, resource_version);
        }
    }

    /// A line that shows a change; `None` if it must be read in two stages.
    pub(super) fn decode_quickly(&self, line: &[u8]) -> Option<(Change, T)> {
        decode_quickly(line, self.namespace.as_deref(), &self.interner)
    }

    /// An object.
    pub(super) fn decode(&self, raw: &RawValue) -> Result<T, MalformedObject> {
        decode_object(raw, self.namespace.as_deref(), &self.interner)
    }

    /// The name under which a malformed object is stored here. One without a readable name is stored under its UID, after a
    /// slash, which no name contains.
    fn key(&self, malformed: &MalformedObject) -> ObjectName {
        let namespace = self.interner.intern(&malformed.namespace);
        if malformed.name.is_empty() {
            return ObjectName { namespace, name: format!("/{}", malformed.uid).into() };
        }
        ObjectName { namespace, name: malformed.name.as_str().into() }
    }

    fn report(&mut self, name: ObjectName, malformed: &MalformedObject) {
        if self.malformed.get(&name).is_some_and(|reported| *reported == malformed.resource_version) {
            return;
        }
        // Without the object itself: it may contain secrets.
        warn!(
            kind = self.dispatcher.resource.kind,
            object = %name,
            resource_version = malformed.resource_version,
            error = malformed.error,
            "an object cannot be read and is ignored"
        );
        self.dispatcher.malformed(malformed);
        self.malformed.insert(name, malformed.resource_version.clone());
        self.count_malformed();
    }

    fn is_readable_or_gone(&mut self, name: &ObjectName) {
        if self.malformed.remove(name).is_some() {
            self.count_malformed();
        }
    }

    fn count_malformed(&self) {
        self.store.set_malformed(self.scope, self.malformed.len());
    }
}
