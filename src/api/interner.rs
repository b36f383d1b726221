//! Values that many objects have in common are kept once.
//!
//! Guarantees: an interned value equals the requested one. Values that no object uses any more are dropped, so memory
//! is bounded by what objects hold. A sweep runs whenever as many entries were added as the last sweep left.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;

use super::{ControllerRef, Recurrence, Uid};

/// The smallest number of new entries that triggers a sweep.
const FEW: usize = 1024;

/// Shares namespace names, schedules and controllers among the objects that one reader of objects decodes.
#[derive(Debug, Default)]
pub struct Interner {
    texts: Pool<Box<str>, str>,
    recurrences: Pool<Box<str>, Recurrence>,
    controllers: Pool<Uid, ControllerRef>,
}

impl Interner {
    /// The shared copy of `text`: for repeated strings, such as names of namespaces and kinds.
    pub fn intern(&self, text: &str) -> Arc<str> {
        self.texts.get_or_insert(text, |_| true, || text.into())
    }

    /// The shared recurrence of this schedule and zone.
    pub(super) fn recurrence(&self, schedule: &str, time_zone: Option<&str>) -> Arc<Recurrence> {
        let fresh = || Arc::new(Recurrence::new(schedule, time_zone));
        // Either string may hold any text, so the key may belong to another pair.
        let is_same = |known: &Recurrence| known.schedule() == schedule && known.time_zone() == time_zone;
        match time_zone {
            None => self.recurrences.get_or_insert(schedule, is_same, fresh),
            Some(zone) => self.recurrences.get_or_insert(format!("{schedule}\n{zone}").as_str(), is_same, fresh),
        }
    }

    /// The shared owner reference of these fields.
    pub(super) fn controller(&self, group: &str, kind: &str, name: &str, uid: &Uid) -> Arc<ControllerRef> {
        let fresh = || {
            let (group, kind) = (self.intern(group), self.intern(kind));
            Arc::new(ControllerRef { group, kind, name: name.into(), uid: uid.clone() })
        };
        // Any user may write any owner reference: the UID alone proves nothing.
        let is_same = |known: &ControllerRef| *known.name == *name && *known.kind == *kind && *known.group == *group;
        self.controllers.get_or_insert(uid, is_same, fresh)
    }
}

/// Shared values by key.
#[derive(Debug)]
struct Pool<K: Eq + Hash, V: ?Sized> {
    entries: DashMap<K, Arc<V>>,
    /// How many entries may be added before the next sweep.
    until_look: AtomicUsize,
}

impl<K: Eq + Hash, V: ?Sized> Default for Pool<K, V> {
    fn default() -> Self {
        Self { entries: DashMap::new(), until_look: AtomicUsize::new(FEW) }
    }
}

impl<K: Eq + Hash, V: ?Sized> Pool<K, V> {
    /// The value of `key` if `is_same` accepts it, else a new one, which replaces it.
    fn get_or_insert<Q>(&self, key: &Q, is_same: impl FnOnce(&V) -> bool, fresh: impl FnOnce() -> Arc<V>) -> Arc<V>
    where
        Q: Eq + Hash + ?Sized,
        K: Borrow<Q> + for<'q> From<&'q Q>,
    {
        let known = self.entries.get(key).map(|known| Arc::clone(&known));
        if let Some(known) = known.filter(|known| is_same(known)) {
            return known;
        }
        let fresh = fresh();
        self.insert(key.into(), Arc::clone(&fresh));
        fresh
    }

    fn insert(&self, key: K, value: Arc<V>) {
        self.entries.insert(key, value);
        let spent = |left: usize| left.checked_sub(1);
        if self.until_look.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent).is_err() {
            // Every user of a value holds a reference count of its own.
            self.entries.retain(|_, value| Arc::strong_count(value) > 1);
            self.until_look.store(self.entries.len().max(FEW), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
