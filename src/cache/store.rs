//! The objects that a watch has shown, indexed by controller.
//!
//! Guarantees: readers get an [`Arc`] and never a guard, so they cannot block the watch. Objects and index change together,
//! so a reader never sees one without the other. A relist changes everything at once, so a reader never sees half a list. The
//! lock is held for a few look-ups, or for as many as a relist has differences.
//!
//! Several reflectors may write to one store, one per namespace. Each writes only to its own scope.
//!
//! Matches client-go `tools/cache/thread_safe_store.go`, with one index: by the UID of the controlling owner.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use apimachinery::steps;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::counter::Counter;
use crate::api::{Object, ObjectName, Uid};

/// One change of a store, as handlers receive it.
#[derive(Debug)]
pub enum Delta<T> {
    /// An object that was not in the store.
    Added(Arc<T>),
    /// The same object (the same UID) in another version.
    Updated {
        /// The version that was in the store.
        old: Arc<T>,
        /// The version that is in the store now.
        new: Arc<T>,
    },
    /// An object that no longer exists.
    Deleted {
        /// Its last known state.
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
    unsynced: Counter,
    /// How many scopes have neither their first list nor the server's refusal of it.
    unanswered: Counter,
    /// For how many scopes the last answer was that the kind is not served.
    unserved: Counter,
    /// The turns of lists that answer questions.
    turns: Arc<Semaphore>,
}

/// How many namespaces are listed at a time to answer questions: after a takeover all are asked, and a server that has just come
/// back is not to be met by as many lists as there are namespaces.
const LISTS_AT_A_TIME: usize = 4;

#[derive(Debug)]
struct Contents<T> {
    objects: Named<T>,
    /// Exactly those of `objects` that have a controller, sorted by name; no list is empty. A list may be as long as its author
    /// likes, and is never searched from its beginning.
    by_controller: HashMap<Uid, Vec<Arc<T>>>,
}

/// Objects by name. The name is read from the object, so it is stored once.
pub(super) type Named<T> = HashSet<ByName<T>>;

/// An object that is compared by its name.
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

/// The part of a store that one reflector fills: a namespace, or all of them.
#[derive(Debug)]
struct Scope {
    namespace: Option<Arc<str>>,
    progress: Mutex<Progress>,
    /// How many of its objects exist and cannot be decoded.
    malformed: AtomicUsize,
    /// Whether its first list was refused.
    is_refused: AtomicBool,
    questions: Arc<Questions>,
}

impl Scope {
    fn has_listed(&self) -> bool {
        !self.progress.lock().resource_version.is_empty()
    }

    fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::SeqCst)
    }
}

/// Whether a scope is of that namespace, or of all.
fn covers(scope: Option<&str>, namespace: &str) -> bool {
    scope.is_none_or(|own| own == namespace)
}

/// A question whether one scope shows everything that was committed before.
#[derive(Debug)]
pub struct Asked {
    namespace: Option<Arc<str>>,
    number: u64,
    questions: Arc<Questions>,
}

impl Asked {
    /// Whether it is about that namespace.
    pub fn covers(&self, namespace: &str) -> bool {
        covers(self.namespace.as_deref(), namespace)
    }

    /// Whether the scope shows it.
    pub fn is_shown(&self) -> bool {
        self.questions.answered.get() >= self.number
    }

    /// Waits until the scope shows it: for ever, while the server refuses its lists.
    pub async fn wait(&self) {
        self.questions.answered.wait_for(|answered| answered >= self.number).await;
    }
}

/// Numbered questions whether a scope shows everything that is committed on the server.
#[derive(Debug, Default)]
pub(super) struct Questions {
    asked: Counter,
    answered: Counter,
}

impl Questions {
    /// The number of the last question.
    pub(super) fn asked(&self) -> u64 {
        self.asked.get()
    }

    /// Whether a question has no answer.
    pub(super) fn has_open(&self) -> bool {
        self.asked.get() > self.answered.get()
    }

    /// Waits for a question without an answer, and returns its number.
    pub(super) async fn open(&self) -> u64 {
        self.asked.wait_for(|asked| asked > self.answered.get()).await
    }
}

/// The progress of a scope.
#[derive(Debug)]
struct Progress {
    resource_version: String,
    /// When the server last confirmed it; at first, when the scope was created.
    at: Instant,
}

impl<T: Object> Store<T> {
    /// An empty store with these scopes: one for each namespace, or a single `None` for all of them. A store without scopes
    /// is synced from the start and stays empty.
    pub fn new(scopes: impl IntoIterator<Item = Option<Arc<str>>>) -> Self {
        let waits = || Progress { resource_version: String::new(), at: Instant::now() };
        let scope = |namespace| Scope {
            namespace,
            progress: Mutex::new(waits()),
            malformed: AtomicUsize::default(),
            is_refused: AtomicBool::default(),
            questions: Arc::default(),
        };
        let scopes: Box<[Scope]> = scopes.into_iter().map(scope).collect();
        Self {
            contents: RwLock::new(Contents { objects: HashSet::new(), by_controller: HashMap::new() }),
            unsynced: Counter::new(scopes.len() as u64),
            unanswered: Counter::new(scopes.len() as u64),
            unserved: Counter::default(),
            turns: Arc::new(Semaphore::new(LISTS_AT_A_TIME)),
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

    /// The objects of a namespace, by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<T>> {
        let contents = self.contents.read();
        let objects = contents.objects.iter().map(|object| &object.0);
        let mut found: Vec<_> =
            objects.filter(|object| *object.object_name().namespace == *namespace).cloned().collect();
        drop(contents);
        sort_by_name(&mut found);
        found
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.contents.read().objects.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether every scope's first list is in the store and was delivered to the handlers. Once true, it stays true.
    pub fn has_synced(&self) -> bool {
        self.unsynced.get() == 0
    }

    /// Waits until [`Self::has_synced`]. Matches client-go `WaitForCacheSync`.
    pub async fn wait_for_cache_sync(&self) {
        self.unsynced.wait_for(|unsynced| unsynced == 0).await;
    }

    /// Waits until each scope has its first list, or the server refuses it and another scope has one: a namespace that may not be
    /// read keeps no other from being worked on. [`Self::has_listed`] says which.
    pub async fn wait_for_readable_scopes(&self) {
        self.unanswered.wait_for(|unanswered| unanswered == 0).await;
        let scopes = self.scopes.len() as u64;
        self.unsynced.wait_for(|unsynced| unsynced == 0 || unsynced < scopes).await;
    }

    /// Waits until the server says that it does not serve the kind.
    pub async fn wait_until_unserved(&self) {
        self.unserved.wait_for(|scopes| scopes > 0).await;
    }

    /// Whether the first list of the scope of `namespace` is in the store; true for a namespace outside every scope.
    pub fn has_listed(&self, namespace: &str) -> bool {
        self.has_synced() || self.scope_of(namespace).is_none_or(Scope::has_listed)
    }

    /// The namespaces of which there is no list yet, in order.
    pub fn unlisted_namespaces(&self) -> Vec<Arc<str>> {
        self.scopes.iter().filter(|scope| !scope.has_listed()).filter_map(|scope| scope.namespace.clone()).collect()
    }

    fn scope_of(&self, namespace: &str) -> Option<&Scope> {
        self.scopes.iter().find(|scope| covers(scope.namespace.as_deref(), namespace))
    }

    /// Asks for every change that was committed before this call, however long the watches are silent. Each reflector asks the
    /// server for its newest version, and lists if its watch does not reach that within a second; four list at a time.
    pub fn ask(&self) -> Vec<Asked> {
        let ask = |scope: &Scope| Asked {
            namespace: scope.namespace.clone(),
            number: scope.questions.asked.increment(),
            questions: Arc::clone(&scope.questions),
        };
        self.scopes.iter().map(ask).collect()
    }

    /// Waits until the store shows what it is [asked](Self::ask) now, but for scopes whose first list is refused.
    pub async fn catch_up(&self) {
        let asked = self.ask();
        for (asked, _) in asked.iter().zip(&*self.scopes).filter(|(_, scope)| !scope.is_refused()) {
            asked.wait().await;
        }
    }

    /// The newest resource version that the scope of `namespace` has seen in a list, a watch event or a bookmark: the store
    /// shows every change up to it. `None` before the first list, and for a namespace outside every scope.
    pub fn last_resource_version(&self, namespace: &str) -> Option<String> {
        let scope = self.scope_of(namespace)?;
        Some(scope.progress.lock().resource_version.clone()).filter(|version| !version.is_empty())
    }

    /// How long ago the server last sent a change, a bookmark or a list, for the stalest scope. `None` without scopes.
    pub fn age(&self) -> Option<Duration> {
        self.scopes.iter().map(|scope| scope.progress.lock().at.elapsed()).max()
    }

    /// How many objects exist but cannot be decoded, and so are not in the store.
    pub fn malformed(&self) -> usize {
        self.scopes.iter().map(|scope| scope.malformed.load(Ordering::Relaxed)).sum()
    }

    /// Adds or replaces one object. The same UID in the same version changes nothing. Another UID under the same name counts
    /// as a deletion and an addition.
    pub fn upsert(&self, object: T) -> Vec<Delta<T>> {
        let old = self.get(object.object_name());
        let (changed, deltas) = compare(old, Arc::new(object));
        if let Some(new) = changed {
            // Dropped after the lock is released, in case this is the last reference.
            let _replaced = self.contents.write().insert(new);
        }
        deltas
    }

    /// Removes an object. `last` is its final state, if known; otherwise the stored one is used.
    pub fn delete(&self, name: &ObjectName, last: Option<T>) -> Option<Delta<T>> {
        let stored = self.contents.write().remove(name)?;
        Some(match last {
            Some(last) if last.uid() == stored.uid() => {
                Delta::Deleted { last: Arc::new(last), final_state_unknown: false }
            }
            _ => Delta::Deleted { last: stored, final_state_unknown: true },
        })
    }

    /// Makes the contents of one scope (a namespace, or all of them) equal to a list. Deltas come in the order of names,
    /// deletions last. Objects in the stored version are left alone and give no delta.
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
        // Dropped after the lock is released.
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

    /// The namespaces of the scopes, in order; `None` means all of them.
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

    /// Who lists to answer a question holds one of these until the list ends.
    pub(super) fn turns(&self) -> Arc<Semaphore> {
        Arc::clone(&self.turns)
    }

    /// The questions about scope number `scope`.
    pub(super) fn questions(&self, scope: usize) -> Arc<Questions> {
        Arc::clone(&self.scopes[scope].questions)
    }

    /// Answers the questions about scope number `scope` up to `number`.
    pub(super) fn answer(&self, scope: usize, number: u64) {
        self.scopes[scope].questions.answered.raise(number);
    }

    /// Records how many objects of scope number `scope` cannot be decoded.
    pub(super) fn set_malformed(&self, scope: usize, count: usize) {
        self.scopes[scope].malformed.store(count, Ordering::Relaxed);
    }

    /// Records that scope number `scope` has its first list.
    pub(super) fn scope_synced(&self, scope: usize) {
        self.unsynced.decrement();
        if !self.scopes[scope].is_refused.swap(false, Ordering::SeqCst) {
            self.unanswered.decrement();
        }
    }

    /// Records for a scope that the server does not serve the kind, or that this is no longer known.
    pub(super) fn scope_unserved(&self, is_unserved: bool) {
        if is_unserved {
            self.unserved.increment();
        } else {
            self.unserved.decrement();
        }
    }

    /// Records that a list of scope number `scope` was refused.
    pub(super) fn scope_refused(&self, scope: usize) {
        let scope = &self.scopes[scope];
        if !scope.has_listed() && !scope.is_refused.swap(true, Ordering::SeqCst) {
            self.unanswered.decrement();
        }
    }
}

/// Where a list of children has a name, or would have it.
fn place_of<T: Object>(children: &[Arc<T>], name: &ObjectName) -> Result<usize, usize> {
    children.binary_search_by(|child| {
        steps::add(1);
        child.object_name().cmp(name)
    })
}

impl<T: Object> Contents<T> {
    fn insert(&mut self, object: Arc<T>) -> Option<Arc<T>> {
        let known = self.objects.get(object.object_name());
        let keeps_controller = known.is_some_and(|known| known.0.controller_uid() == object.controller_uid());
        let replaced = if keeps_controller { None } else { self.remove(object.object_name()) };
        if let Some(uid) = object.controller_uid() {
            let children = self.by_controller.entry(uid.clone()).or_default();
            match place_of(children, object.object_name()) {
                Ok(place) => children[place] = Arc::clone(&object),
                Err(place) => children.insert(place, Arc::clone(&object)),
            }
        }
        self.objects.replace(ByName(object)).map(|known| known.0).or(replaced)
    }

    fn remove(&mut self, name: &ObjectName) -> Option<Arc<T>> {
        let object = self.objects.take(name)?.0;
        if let Some(uid) = object.controller_uid()
            && let Some(children) = self.by_controller.get_mut(uid)
        {
            if let Ok(place) = place_of(children, name) {
                children.remove(place);
            }
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

/// The replacement of `old`, if there is one, and the deltas for the handlers.
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
    // The new version is not shared yet.
    if let Some(new) = Arc::get_mut(&mut new) {
        new.succeed(&old);
    }
    (Some(Arc::clone(&new)), vec![Delta::Updated { old, new }])
}
