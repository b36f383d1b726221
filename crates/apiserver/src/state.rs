//! The state of a server outside it: as one document, as a list of objects, and as a stream of changes. And when Events expire.
//!
//! Guarantees: [`Store::load`] of a state, followed by all changes that a journal has recorded since, gives the objects and the
//! revision of the server that recorded them. A state that cannot be restored changes nothing. Changes that a journal has
//! refused are offered again, with later ones, in order.

use std::collections::VecDeque;
use std::fmt;
use std::io;

use axum::body::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::kinds::{self, Versions};
use super::meta;
use super::object::{Entry, Object};
use super::store::{Change, ChangeKind, Collection, DEFINITIONS, Dependents, Id, RECENT, Store, key_of};

/// The collection whose objects expire.
const EVENTS: &str = "events";

/// The last change of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectChange {
    /// `plural.group`.
    pub collection: String,
    /// `namespace/name`.
    pub key: String,
    /// The object as JSON; `None` if it was deleted.
    pub object: Option<Bytes>,
}

/// Changes of objects up to a revision. Those of a whole state lead to it from an empty server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The revision after the changes.
    pub revision: u64,
    /// The changes in order.
    pub objects: Vec<ObjectChange>,
}

/// Records the changes of a server, so that they survive it.
pub trait Journal: Send {
    /// Records the changes of one request, all or none. After an error they are offered again, with later ones.
    fn append(&mut self, changes: &Changes) -> io::Result<()>;
}

/// The changes that a journal has yet to record.
#[derive(Default)]
pub struct Recording {
    journal: Option<Box<dyn Journal>>,
    open: Changes,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recording({} open)", self.open.objects.len())
    }
}

impl Recording {
    /// Records all later changes.
    pub fn begin(&mut self, journal: Box<dyn Journal>) {
        *self = Self { journal: Some(journal), open: Changes::default() };
    }

    /// Adds a change.
    pub fn add(&mut self, id: &Id, change: &Change) {
        if self.journal.is_some() {
            let object = (change.kind != ChangeKind::Deleted).then(|| change.object.text().without_newline());
            self.open.objects.push(ObjectChange { collection: id.collection.clone(), key: id.key.clone(), object });
        }
    }

    /// Offers the open changes to the journal.
    pub fn flush(&mut self, revision: u64) -> io::Result<()> {
        let Some(journal) = self.journal.as_mut().filter(|_| !self.open.objects.is_empty()) else { return Ok(()) };
        self.open.revision = revision;
        journal.append(&self.open)?;
        self.open.objects.clear();
        Ok(())
    }
}

/// When Events expire, each a fixed time after its last write.
#[derive(Debug)]
pub struct Expiry {
    ttl: Option<TimeDelta>,
    /// Deadline, key and revision of every write, oldest first.
    writes: VecDeque<(DateTime<Utc>, String, u64)>,
}

impl Expiry {
    pub fn new(ttl: Option<TimeDelta>) -> Self {
        Self { ttl, writes: VecDeque::new() }
    }

    /// Starts the time of an object that was written.
    pub fn start(&mut self, id: &Id, revision: u64, now: DateTime<Utc>) {
        if let Some(ttl) = self.ttl.filter(|_| id.collection == EVENTS) {
            self.writes.push_back((now + ttl, id.key.clone(), revision));
        }
    }
}

impl Store {
    /// Removes the objects whose time is over. Returns whether there were any.
    pub fn expire(&mut self) -> bool {
        let (now, before) = (self.now(), self.revision);
        while self.expiry.writes.front().is_some_and(|(deadline, ..)| *deadline <= now)
            && let Some((_, key, revision)) = self.expiry.writes.pop_front()
        {
            let id = Id { collection: EVENTS.to_owned(), key };
            if self.get(&id).is_some_and(|event| revision_of(&event) == revision) {
                self.remove(&id);
            }
        }
        self.revision != before
    }

    /// The whole state.
    pub fn state(&self) -> Changes {
        let objects = self.collections.iter().flat_map(|(name, collection)| {
            collection.objects.iter().map(|(key, entry)| ObjectChange {
                collection: name.clone(),
                key: key.to_owned(),
                object: Some(entry.text().without_newline()),
            })
        });
        Changes { revision: self.revision, objects: objects.collect() }
    }

    /// The whole state as one document.
    pub fn snapshot(&self) -> Value {
        let objects = |collection: &Collection| -> Value {
            collection.objects.iter().map(|(_, entry)| (**entry.object()).clone()).collect()
        };
        let named = self.collections.iter().map(|(name, collection)| (name.clone(), objects(collection)));
        let collections: Value = named.collect();
        json!({"version": 1, "revision": self.revision, "random": self.random, "collections": collections})
    }

    /// Replaces the whole state by a document. `Err` says what is wrong with it.
    pub fn restore(&mut self, snapshot: &Value) -> Result<(), String> {
        if snapshot["version"] != 1 {
            return Err("it is not of version 1".to_owned());
        }
        let revision = snapshot["revision"].as_u64().ok_or("it has no revision")?;
        let random = snapshot["random"].as_u64().ok_or("it has no random state")?;
        let mut saved = Vec::new();
        for (name, objects) in snapshot["collections"].as_object().ok_or("it has no collections")? {
            let objects = objects.as_array().ok_or_else(|| format!("{name} is not a list"))?;
            saved.extend(objects.iter().map(|object| (name.clone(), object.clone())));
        }
        self.replace(revision, saved.into_iter().map(Ok))?;
        self.random = random;
        Ok(())
    }

    /// Replaces the whole state by a list of objects. `Err` says what is wrong with it.
    pub fn load(&mut self, state: Changes) -> Result<(), String> {
        let present =
            state.objects.into_iter().filter_map(|change| Some((change.collection, change.key, change.object?)));
        let trees = present.map(|(collection, key, json)| match serde_json::from_slice(&json) {
            Ok(tree) => Ok((collection, tree)),
            Err(error) => Err(format!("{key} of the {collection} is not JSON: {error}")),
        });
        self.replace(state.revision, trees)
    }

    /// Replaces all objects. Those of kinds that are not served are an error, since they would be lost. Of many objects, only
    /// the text is held at any time.
    fn replace(
        &mut self,
        revision: u64,
        objects: impl Iterator<Item = Result<(String, Value), String>>,
    ) -> Result<(), String> {
        let (now, mut entries, mut brought) = (self.now(), Vec::new(), Vec::new());
        let (mut expiry, mut dependents) = (Expiry::new(self.expiry.ttl), Dependents::default());
        for object in objects {
            let (collection, tree) = object?;
            if meta::text(&tree, "name").is_empty() {
                return Err(format!("one of the {collection} has no name"));
            }
            if collection == DEFINITIONS {
                brought.push(kinds::versions(&tree).map_err(|error| error.to_string())?);
            }
            let id = Id { collection, key: key_of(&tree) };
            expiry.start(&id, revision_of(&tree), last_write(&tree).unwrap_or(now));
            dependents.add(&id, &tree);
            let mut entry = Entry::Whole(Object::new(tree));
            if entries.len() >= RECENT {
                entry.pack();
            }
            entries.push((id, entry));
        }
        expiry.writes.make_contiguous().sort();
        let is_served = |name: &str| {
            self.collections.contains_key(name)
                || brought.iter().any(|kind: &Versions| kind.stored.qualified_name() == name)
        };
        if let Some((id, _)) = entries.iter().find(|(id, _)| !is_served(&id.collection)) {
            return Err(format!("it holds {}, which are not served", id.collection));
        }
        for versions in brought {
            let name = versions.stored.qualified_name();
            self.register_versions(versions);
            // What is loaded may be older than the last change of the definition.
            if let Some(collection) = self.collections.get_mut(&name) {
                collection.is_redefined = true;
            }
        }
        for collection in self.collections.values_mut() {
            collection.objects.clear();
        }
        (self.expiry, self.dependents) = (expiry, dependents);
        self.revision = revision.max(self.revision);
        self.epoch += 1;
        self.orphaned.clear();
        self.late = entries.iter().map(|(id, _)| id.clone()).collect();
        self.dirty = self.late.iter().cloned().collect();
        for (id, entry) in entries {
            if let Some(collection) = self.collections.get_mut(&id.collection) {
                collection.objects.insert(&id.key, entry);
            }
        }
        self.compact();
        Ok(())
    }
}

fn revision_of(object: &Value) -> u64 {
    meta::text(object, "resourceVersion").parse().unwrap_or_default()
}

/// The time of the last write that an object tells of.
fn last_write(object: &Value) -> Option<DateTime<Utc>> {
    let managers = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let times = managers.map(|manager| &manager["time"]).chain([&object["metadata"]["creationTimestamp"]]);
    times.filter_map(|time| time.as_str()?.parse().ok()).max()
}
