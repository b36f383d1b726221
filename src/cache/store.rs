//! The objects a watch has shown, and an index of them by controller.
//!
//! Guarantees: readers get an [`Arc`] and never a guard, so nothing they do can block the watch; objects and index
//! change together, so a reader never sees one without the other; what a relist changes, it changes at once, so a reader
//! never sees half a list. The lock is held for a few look-ups, or for as many as a relist has differences.
//!
//! One store may be filled by several reflectors, one per namespace. Each writes inside its own scope only.
//!
//! Matches client-go `tools/cache/thread_safe_store.go`, with one index: by the UID of the controlling owner.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::api::{Object, ObjectName, Uid};

/// One change of a store, as handlers are told of it.
#[derive(Debug)]
pub enum Delta<T> {
    /// An object that was not there.
    Added(Arc<T>),
    /// The same object (the same UID) in another version.
    Updated {
        /// The version that was in the store.
        old: Arc<T>,
        /// The version that is in the store now.
        new: Arc<T>,
    },
    /// An object that is there no longer.
    Deleted {
        /// Its last state, as far as it is known.
        last: Arc<T>,
        /// Whether the object may have changed after `last`. Matches client-go's `DeletedFinalStateUnknown`.
        final_state_unknown: bool,
    },
}

/// Objects by name, indexed by the UID of their controller.
#[derive(Debug)]
pub struct Store<T> {
    contents: RwLock<Contents<T>>,
    scopes: Box<[Scope]>,
    /// How many scopes still wait for their first list.
    unsynced: watch::Sender<usize>,
}

#[derive(Debug)]
struct Contents<T> {
    objects: Named<T>,
    /// Holds exactly the objects of `objects` that have a controller; no list is empty.
    by_controller: HashMap<Uid, Vec<Arc<T>>>,
}

/// Objects by name: the name is looked up in the object, so that it is kept once.
pub(super) type Named<T> = HashSet<ByName<T>>;

/// An object that stands for its name.
#[derive(Debug)]
pub(super) struct ByName<T>(pub(super) Arc<T>);

impl<T: Object> Borrow<ObjectName> for ByName<T> {
    fn borrow(&self) -> &ObjectName {
        self.0.object_name()
    }
}

impl<T: Object> Hash for ByName<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.object_name().hash(state);
    }
}

impl<T: Object> PartialEq for ByName<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.object_name() == other.0.object_name()
    }
}

impl<T: Object> Eq for ByName<T> {}

/// What one reflector fills: a namespace, or all of them.
#[derive(Debug)]
struct Scope {
    namespace: Option<Arc<str>>,
    progress: Mutex<Progress>,
}

/// How far a scope has come.
#[derive(Debug)]
struct Progress {
    resource_version: String,
    /// When the server last said so; at first, when the waiting began.
    at: Instant,
}

impl<T: Object> Store<T> {
    /// An empty store with these scopes: a namespace each, or `None` alone for all of them. Without any scope it is
    /// synced from the start and stays empty.
    pub fn new(scopes: impl IntoIterator<Item = Option<Arc<str>>>) -> Self {
        let waits = || Progress { resource_version: String::new(), at: Instant::now() };
        let scope = |namespace| Scope { namespace, progress: Mutex::new(waits()) };
        let scopes: Box<[Scope]> = scopes.into_iter().map(scope).collect();
        Self {
            contents: RwLock::new(Contents { objects: HashSet::new(), by_controller: HashMap::new() }),
            unsynced: watch::Sender::new(scopes.len()),
            scopes,
        }
    }

    /// The object of that name.
    pub fn get(&self, name: &ObjectName) -> Option<Arc<T>> {
        self.contents.read().objects.get(name).map(|found| Arc::clone(&found.0))
    }

    /// The objects whose controlling owner has that UID, in no particular order.
    pub fn by_controller(&self, uid: &Uid) -> Vec<Arc<T>> {
        self.contents.read().by_controller.get(uid).cloned().unwrap_or_default()
    }

    /// All objects, by name.
    pub fn list(&self) -> Vec<Arc<T>> {
        let mut all: Vec<_> = self.contents.read().objects.iter().map(|object| Arc::clone(&object.0)).collect();
        sort_by_name(&mut all);
        all
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.contents.read().objects.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether every scope's first list is in the store and the handlers have heard of it. Once true, it stays true.
    pub fn has_synced(&self) -> bool {
        *self.unsynced.borrow() == 0
    }

    /// Waits until [`Self::has_synced`]. Matches client-go `WaitForCacheSync`.
    pub async fn wait_for_cache_sync(&self) {
        // The sender lives in `self`, so the channel cannot close while this waits.
        let _ = self.unsynced.subscribe().wait_for(|unsynced| *unsynced == 0).await;
    }

    /// The newest resource version that the scope holding `namespace` has seen in a list, a watch event or a bookmark:
    /// the store shows every change up to it. None before the first list, and for a namespace outside every scope.
    pub fn last_resource_version(&self, namespace: &str) -> Option<String> {
        let scope = self.scopes.iter().find(|scope| scope.namespace.as_deref().is_none_or(|own| own == namespace))?;
        Some(scope.progress.lock().resource_version.clone()).filter(|version| !version.is_empty())
    }

    /// How long ago the server last showed a change, a bookmark or a list, in the scope in which that is longest ago. None
    /// without any scope.
    pub fn age(&self) -> Option<Duration> {
        self.scopes.iter().map(|scope| scope.progress.lock().at.elapsed()).max()
    }

    /// Puts one object in. The same UID in the same version changes nothing; another UID under the same name is the end
    /// of the old object and a new one.
    pub fn upsert(&self, object: T) -> Vec<Delta<T>> {
        let old = self.get(object.object_name());
        let (changed, deltas) = compare(old, Arc::new(object));
        if let Some(new) = changed {
            // Dropped after the lock is free, should this be the last reference.
            let _replaced = self.contents.write().insert(new);
        }
        deltas
    }

    /// Takes an object out. `last` is its final state, if that is known; otherwise the stored one stands for it.
    pub fn delete(&self, name: &ObjectName, last: Option<T>) -> Option<Delta<T>> {
        let stored = self.contents.write().remove(name)?;
        Some(match last {
            Some(last) if last.uid() == stored.uid() => {
                Delta::Deleted { last: Arc::new(last), final_state_unknown: false }
            }
            _ => Delta::Deleted { last: stored, final_state_unknown: true },
        })
    }

    /// Makes the contents of one scope (a namespace, or all of them) equal to a list. Deltas come in the order of
    /// names, deletions last. What the list has in the stored version is left alone and gives no delta.
    ///
    /// Only one caller at a time may write to a scope.
    pub(super) fn replace(&self, namespace: Option<&str>, listed: Named<T>) -> Vec<Delta<T>> {
        let mut gone = self.missing_from(namespace, &listed);
        sort_by_name(&mut gone);
        let mut listed: Vec<_> = listed.into_iter().map(|object| object.0).collect();
        sort_by_name(&mut listed);
        let (mut changed, mut deltas) = (Vec::new(), Vec::with_capacity(listed.len()));
        for object in listed {
            let (new, found) = compare(self.get(object.object_name()), object);
            changed.extend(new);
            deltas.extend(found);
        }
        // Dropped after the lock is free.
        let mut replaced = Vec::new();
        let mut contents = self.contents.write();
        contents.objects.reserve(changed.len());
        for object in &gone {
            replaced.extend(contents.remove(object.object_name()));
        }
        for object in changed {
            replaced.extend(contents.insert(object));
        }
        drop(contents);
        deltas.extend(gone.into_iter().map(|last| Delta::Deleted { last, final_state_unknown: true }));
        deltas
    }

    fn missing_from(&self, namespace: Option<&str>, listed: &Named<T>) -> Vec<Arc<T>> {
        let contents = self.contents.read();
        let in_scope = |object: &&ByName<T>| namespace.is_none_or(|own| *own == *object.0.object_name().namespace);
        let missing =
            contents.objects.iter().filter(in_scope).filter(|object| !listed.contains(object.0.object_name()));
        missing.map(|object| Arc::clone(&object.0)).collect()
    }

    /// The namespaces of the scopes, in order; `None` is all of them.
    pub(super) fn scopes(&self) -> impl Iterator<Item = Option<Arc<str>>> {
        self.scopes.iter().map(|scope| scope.namespace.clone())
    }

    /// Records that scope number `scope` shows every change up to `resource_version`.
    pub(super) fn observe(&self, scope: usize, resource_version: &str) {
        let mut progress = self.scopes[scope].progress.lock();
        progress.resource_version.clear();
        progress.resource_version.push_str(resource_version);
        progress.at = Instant::now();
    }

    /// Records that one more scope has its first list.
    pub(super) fn scope_synced(&self) {
        self.unsynced.send_modify(|unsynced| *unsynced = unsynced.saturating_sub(1));
    }
}

impl<T: Object> Contents<T> {
    fn insert(&mut self, object: Arc<T>) -> Option<Arc<T>> {
        let replaced = self.remove(object.object_name());
        if let Some(uid) = object.controller_uid() {
            self.by_controller.entry(uid.clone()).or_default().push(Arc::clone(&object));
        }
        self.objects.insert(ByName(object));
        replaced
    }

    fn remove(&mut self, name: &ObjectName) -> Option<Arc<T>> {
        let object = self.objects.take(name)?.0;
        if let Some(uid) = object.controller_uid()
            && let Some(children) = self.by_controller.get_mut(uid)
        {
            children.retain(|child| !Arc::ptr_eq(child, &object));
            if children.is_empty() {
                self.by_controller.remove(uid);
            }
        }
        Some(object)
    }
}

fn sort_by_name<T: Object>(objects: &mut [Arc<T>]) {
    objects.sort_unstable_by(|a, b| a.object_name().cmp(b.object_name()));
}

/// What takes the place of `old`, if anything does, and what handlers should hear of it.
fn compare<T: Object>(old: Option<Arc<T>>, mut new: Arc<T>) -> (Option<Arc<T>>, Vec<Delta<T>>) {
    let Some(old) = old else {
        return (Some(Arc::clone(&new)), vec![Delta::Added(new)]);
    };
    if old.uid() != new.uid() {
        let deleted = Delta::Deleted { last: old, final_state_unknown: true };
        return (Some(Arc::clone(&new)), vec![deleted, Delta::Added(new)]);
    }
    if old.resource_version() == new.resource_version() {
        return (None, Vec::new());
    }
    // Nobody else holds the new version yet.
    if let Some(new) = Arc::get_mut(&mut new) {
        new.succeed(&old);
    }
    (Some(Arc::clone(&new)), vec![Delta::Updated { old, new }])
}
