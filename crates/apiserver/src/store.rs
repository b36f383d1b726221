//! The objects, their revisions and the history that watches read.
//!
//! Guarantees: the revision increases by one with every change and only then. An object's resourceVersion is the revision of
//! its last change. A collection's history holds every change after `forgotten`, in order, so its state at any later revision
//! can be reconstructed. Nothing is random: UIDs and name suffixes follow from the seed.
//!
//! Matches the part of k8s.io/apiserver `pkg/storage/etcd3` and `pkg/storage/cacher` that clients can observe.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use apimachinery::clock::SharedClock;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::kinds::{self, Versions};
use super::meta;
use super::object::{Entry, Object};
use super::registry::Resource;
use super::sorted::Sorted;
use super::state::{Expiry, Recording};

/// The alphabet of generated name suffixes. Matches k8s.io/apimachinery `pkg/util/rand`.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
/// Prefixes are truncated so that names fit into 63 characters. Matches `names.SimpleNameGenerator`.
const MAX_PREFIX: usize = 58;

/// The kind whose objects define kinds.
pub const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// The number of a collection's latest changes that keep their objects as trees.
pub const RECENT: usize = 512;

/// The type of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The object was created.
    Added,
    /// The object was updated.
    Modified,
    /// The object was deleted.
    Deleted,
}

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The revision of the change.
    pub revision: u64,
    /// What happened.
    pub kind: ChangeKind,
    /// `namespace/name`.
    pub key: String,
    /// The object afterwards; for a deletion its last state with the deletion's resourceVersion.
    pub object: Entry,
    /// The object before.
    pub previous: Option<Entry>,
}

/// All objects of one kind.
#[derive(Debug)]
pub struct Collection {
    /// The kind, in the version in which its objects are stored.
    pub resource: Arc<Resource>,
    /// The versions that clients see.
    pub served: Vec<Arc<Resource>>,
    /// Whether objects may have been stored before the definition was as it is.
    pub is_redefined: bool,
    /// The objects by `namespace/name`, whose byte order is the order of lists.
    pub objects: Sorted<Entry>,
    /// The changes after `forgotten`, oldest first.
    pub history: VecDeque<Change>,
    /// The newest revision that the history no longer holds.
    pub forgotten: u64,
    /// Wakes watches in the order in which they wait; a watch channel would wake them in random order.
    changed: Arc<Notify>,
}

/// The identity of an object: its collection and `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// `plural.group`.
    pub collection: String,
    /// `namespace/name`.
    pub key: String,
}

/// The objects that have an owner, by its UID.
#[derive(Debug, Default)]
pub struct Dependents(BTreeMap<String, BTreeSet<Id>>);

impl Dependents {
    /// Adds an object to its owners.
    pub fn add(&mut self, id: &Id, object: &Value) {
        for uid in meta::owners(object).iter().filter_map(|owner| owner["uid"].as_str()) {
            self.0.entry(uid.to_owned()).or_default().insert(id.clone());
        }
    }

    fn remove(&mut self, id: &Id, object: &Value) {
        for uid in meta::owners(object).iter().filter_map(|owner| owner["uid"].as_str()) {
            if let Some(ids) = self.0.get_mut(uid) {
                ids.remove(id);
                if ids.is_empty() {
                    self.0.remove(uid);
                }
            }
        }
    }
}

/// The difference from a collection's state at an earlier revision: keys with their objects at that time.
pub type Undo<'a> = BTreeMap<&'a str, Option<&'a Entry>>;

/// The state of the server.
pub struct Store {
    /// The collections by `plural.group`.
    pub collections: BTreeMap<String, Collection>,
    /// The kinds of the collections.
    pub served: Arc<[Arc<Resource>]>,
    /// The revision of the last change.
    pub revision: u64,
    /// Objects that the garbage collector has to process.
    pub dirty: VecDeque<Id>,
    /// Objects of `dirty` that have just lost an owner.
    pub orphaned: BTreeSet<Id>,
    /// Objects written with owner references, which are processed a little later.
    pub late: BTreeSet<Id>,
    /// Incremented when the whole state is replaced, so that open watches end.
    pub epoch: u64,
    /// Changes that are not yet in the journal.
    pub recording: Recording,
    /// When Events expire.
    pub expiry: Expiry,
    /// The objects by their owners.
    pub dependents: Dependents,
    /// The state of the random numbers.
    pub random: u64,
    history: usize,
    clock: SharedClock,
}

/// `namespace/name`, the sort key of lists.
pub fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// The key of an object.
pub fn key_of(object: &Value) -> String {
    key(meta::text(object, "namespace"), meta::text(object, "name"))
}

/// Makes a UID from random numbers, in the form of a random UUID.
pub fn uid_from(mut numbers: impl FnMut() -> u64) -> String {
    let (high, low) = (numbers(), numbers());
    let (time, mid, version) = (high >> 32, (high >> 16) & 0xFFFF, high & 0x0FFF);
    let (variant, node) = ((low >> 48) & 0x3FFF | 0x8000, low & 0xFFFF_FFFF_FFFF);
    format!("{time:08x}-{mid:04x}-4{version:03x}-{variant:04x}-{node:012x}")
}

/// Makes a name with this prefix from random numbers. Matches `SimpleNameGenerator.GenerateName`.
pub fn name_from(prefix: &str, mut numbers: impl FnMut() -> u64) -> String {
    let mut end = prefix.len().min(MAX_PREFIX);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = prefix[..end].to_owned();
    for _ in 0..SUFFIX_LENGTH {
        let index = numbers() % ALPHABET.len() as u64;
        name.push(char::from(ALPHABET[usize::try_from(index).unwrap_or_default()]));
    }
    name
}

/// Formats a time like metav1 `Time`, in whole seconds.
pub fn timestamp(at: DateTime<Utc>) -> Value {
    json!(at.to_rfc3339_opts(SecondsFormat::Secs, true))
}

impl Collection {
    fn new(resource: Arc<Resource>, revision: u64) -> Self {
        Self {
            resource,
            served: Vec::new(),
            is_redefined: false,
            objects: Sorted::default(),
            history: VecDeque::new(),
            forgotten: revision,
            changed: Arc::default(),
        }
    }

    /// Notifies of every later change.
    pub fn subscribe(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// The changes after `revision`, oldest first.
    pub fn since(&self, revision: u64) -> impl Iterator<Item = &Change> {
        let start = self.history.partition_point(|change| change.revision <= revision);
        self.history.range(start..)
    }

    /// The difference between the objects at `revision` and now; `None` if the history no longer reaches back to it.
    pub fn undo(&self, revision: u64) -> Option<Undo<'_>> {
        if revision < self.forgotten {
            return None;
        }
        let mut undo = Undo::new();
        for change in self.since(revision) {
            undo.entry(&change.key).or_insert(change.previous.as_ref());
        }
        Some(undo)
    }

    /// The objects from the key `start` on, as they were then.
    pub fn range<'a>(&'a self, undo: &'a Undo<'a>, start: &str) -> impl Iterator<Item = (&'a str, &'a Entry)> {
        let mut now = self.objects.range(start).peekable();
        let mut then = undo.range::<str, _>((Bound::Included(start), Bound::Unbounded)).peekable();
        std::iter::from_fn(move || {
            loop {
                let Some((key, _)) = then.peek() else { return now.next() };
                match now.peek().map(|(current, _)| current.cmp(*key)) {
                    Some(Ordering::Less) => return now.next(),
                    Some(Ordering::Equal) => drop(now.next()),
                    _ => {}
                }
                if let Some((key, Some(entry))) = then.next() {
                    return Some((*key, *entry));
                }
            }
        })
    }

    /// The number of objects at that time with keys from `start` up to but excluding `end`. Only changed objects are checked
    /// one by one.
    pub fn count(&self, undo: &Undo<'_>, start: &str, end: &str) -> usize {
        let now = self.objects.rank(end).saturating_sub(self.objects.rank(start));
        let changed = || undo.range::<str, _>((Bound::Included(start), Bound::Excluded(end)));
        let gone = changed().filter(|(_, then)| then.is_some()).count();
        let new = changed().filter(|(key, _)| self.objects.get(key).is_some()).count();
        now + gone - new
    }

    /// Drops the tree of one change, and of the object if it has not changed since.
    fn pack(&mut self, index: usize) {
        let Some(change) = self.history.get_mut(index) else { return };
        let current = self.objects.get_mut(&change.key).filter(|entry| entry.is(&change.object));
        change.object.pack();
        if let Some(current) = current {
            *current = change.object.clone();
        }
        if let Some(previous) = &mut change.previous {
            previous.pack();
        }
    }
}

impl Store {
    /// An empty store. `history` is the number of changes kept per collection, and `event_ttl` how long Events stay.
    pub fn new(clock: SharedClock, seed: u64, history: usize, event_ttl: Option<TimeDelta>) -> Self {
        Self {
            collections: BTreeMap::new(),
            served: Arc::default(),
            revision: 1,
            dirty: VecDeque::new(),
            orphaned: BTreeSet::new(),
            late: BTreeSet::new(),
            epoch: 0,
            recording: Recording::default(),
            expiry: Expiry::new(event_ttl),
            dependents: Dependents::default(),
            random: seed,
            history,
            clock,
        }
    }

    /// Adds a kind of one version. A kind that is already served takes the new resource and keeps its objects.
    pub fn register(&mut self, resource: Resource) {
        self.register_versions(Versions { served: vec![resource.clone()], stored: resource });
    }

    /// Adds a kind, as [`Store::register`] does.
    pub fn register_versions(&mut self, versions: Versions) {
        let (stored, revision) = (Arc::new(versions.stored), self.revision);
        let collection = self.collections.entry(stored.qualified_name());
        let collection = collection.or_insert_with(|| Collection::new(Arc::clone(&stored), revision));
        let old = &collection.resource;
        // The schemas of native kinds are large, and never change.
        collection.is_redefined |= !stored.strategy.is_native()
            && !Arc::ptr_eq(old, &stored)
            && (old.version != stored.version || old.strategy.schema() != stored.strategy.schema());
        collection.resource = stored;
        collection.served = versions.served.into_iter().map(Arc::new).collect();
        self.tell_served();
    }

    fn tell_served(&mut self) {
        self.served = self.collections.values().flat_map(|collection| collection.served.iter().cloned()).collect();
    }

    /// Removes a kind that has no objects left; its watches end.
    fn unregister(&mut self, name: &str) {
        if let Some(collection) = self.collections.remove(name) {
            collection.changed.notify_waiters();
        }
        self.tell_served();
    }

    /// The definition of a collection, if it is terminating.
    pub fn ending_definition(&self, collection: &str) -> Option<Id> {
        let definitions = self.collections.get(DEFINITIONS)?;
        let key = key("", collection);
        let is_ending = meta::is_deleting(&definitions.objects.get(&key)?.object());
        is_ending.then(|| Id { collection: DEFINITIONS.to_owned(), key })
    }

    /// Wall time.
    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// Returns one object.
    pub fn get(&self, id: &Id) -> Option<Arc<Object>> {
        self.entry(id).map(Entry::object)
    }

    /// Returns one object in its stored form.
    pub fn entry(&self, id: &Id) -> Option<&Entry> {
        self.collections.get(&id.collection)?.objects.get(&id.key)
    }

    /// The objects with an owner reference to this UID.
    pub fn dependents(&self, uid: &str) -> Vec<Id> {
        self.dependents.0.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Writes an object and sets its resourceVersion.
    pub fn put(&mut self, id: &Id, mut object: Value) -> Arc<Object> {
        self.revision += 1;
        meta::set(&mut object, "resourceVersion", self.revision.to_string().into());
        if let Some(collection) = self.collections.get(&id.collection) {
            object = collection.stored(object);
        }
        let object = Object::new(object);
        let entry = Entry::Whole(Arc::clone(&object));
        let collection = self.collections.get_mut(&id.collection);
        let previous = collection.and_then(|collection| collection.objects.insert(&id.key, entry.clone()));
        if let Some(previous) = &previous {
            self.dependents.remove(id, &previous.object());
        }
        self.dependents.add(id, &object);
        let kind = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.expiry.start(id, self.revision, self.clock.now());
        self.record(id, Change { revision: self.revision, kind, key: id.key.clone(), object: entry, previous });
        // A definition that cannot be served was rejected before.
        if id.collection == DEFINITIONS
            && let Ok(versions) = kinds::versions(&object)
        {
            self.register_versions(versions);
        }
        self.dirty.push_back(id.clone());
        if !meta::owners(&object).is_empty() && !meta::is_deleting(&object) {
            self.late.insert(id.clone());
        }
        object
    }

    /// Removes an object and returns it as watchers see it in the deletion event.
    pub fn remove(&mut self, id: &Id) -> Option<Arc<Object>> {
        let previous = self.collections.get_mut(&id.collection)?.objects.remove(&id.key)?;
        self.revision += 1;
        let mut last = (**previous.object()).clone();
        self.dependents.remove(id, &last);
        meta::set(&mut last, "resourceVersion", self.revision.to_string().into());
        let object = Object::new(last);
        let change = Change {
            revision: self.revision,
            kind: ChangeKind::Deleted,
            key: id.key.clone(),
            object: Entry::Whole(Arc::clone(&object)),
            previous: Some(previous),
        };
        self.record(id, change);
        self.mark_neighbours(&object);
        // A terminating definition waits for its last object.
        self.late.extend(self.ending_definition(&id.collection));
        if id.collection == DEFINITIONS {
            self.unregister(meta::text(&object, "name"));
        }
        Some(object)
    }

    /// Marks the objects that depend on a removed object, or waited for its removal, for the garbage collector.
    fn mark_neighbours(&mut self, object: &Value) {
        let dependents = self.dependents(meta::text(object, "uid"));
        self.orphaned.extend(dependents.iter().cloned());
        self.dirty.extend(dependents);
        let namespace = meta::text(object, "namespace");
        for owner in meta::owners(object) {
            if let Some(id) = self.resolve(owner, namespace) {
                self.dirty.push_back(id);
            }
        }
        let id = Id { collection: "namespaces".to_owned(), key: key("", namespace) };
        if !namespace.is_empty() && self.get(&id).is_some_and(|namespace| namespace["status"]["phase"] == "Terminating")
        {
            self.dirty.push_back(id);
        }
    }

    /// The identity of the object that an owner reference names; `None` for a kind that is not served.
    pub fn resolve(&self, owner: &Value, namespace: &str) -> Option<Id> {
        let api_version = owner["apiVersion"].as_str()?;
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let kind = owner["kind"].as_str()?;
        let collection = self.collections.values().find(|c| c.resource.group == group && c.resource.kind == kind)?;
        let namespace = if collection.resource.namespaced { namespace } else { "" };
        let key = key(namespace, owner["name"].as_str()?);
        Some(Id { collection: collection.resource.qualified_name(), key })
    }

    fn record(&mut self, id: &Id, change: Change) {
        self.recording.add(id, &change);
        let limit = self.history;
        let Some(collection) = self.collections.get_mut(&id.collection) else { return };
        collection.history.push_back(change);
        if let Some(index) = collection.history.len().checked_sub(RECENT + 1) {
            collection.pack(index);
        }
        while collection.history.len() > limit {
            collection.pack(0);
            if let Some(oldest) = collection.history.pop_front() {
                collection.forgotten = oldest.revision;
            }
        }
        collection.changed.notify_waiters();
    }

    /// Drops the history of all collections.
    pub fn compact(&mut self) {
        for collection in self.collections.values_mut() {
            collection.history.clear();
            collection.forgotten = self.revision;
            collection.changed.notify_waiters();
        }
    }

    /// The next random number (SplitMix64), derived from the seed.
    pub fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
