//! A map that keeps the most recently used entries.
//!
//! Guarantees: never more than `capacity` entries; a new entry that does not fit replaces the least recently used one. Every
//! access is a use and costs O(log n).

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

#[derive(Debug)]
pub(super) struct Lru<K, V> {
    capacity: usize,
    /// The number of uses so far, which is the timestamp of each use.
    uses: u64,
    entries: HashMap<K, (u64, V)>,
    /// Each key of `entries` once, by the timestamp of its last use.
    by_last_use: BTreeMap<u64, K>,
}

impl<K: Clone + Eq + Hash, V> Lru<K, V> {
    /// An empty map for at most `capacity` entries, and for one if that is zero.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), uses: 0, entries: HashMap::new(), by_last_use: BTreeMap::new() }
    }

    /// The value under `key`, made by `make` if there is none yet.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        if let Some((last_use, _)) = self.entries.get(&key) {
            self.by_last_use.remove(last_use);
        } else if self.entries.len() >= self.capacity
            && let Some((_, oldest)) = self.by_last_use.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.by_last_use.insert(self.uses, key.clone());
        let entry = self.entries.entry(key).or_insert_with(|| (0, make()));
        entry.0 = self.uses;
        &mut entry.1
    }
}

#[cfg(test)]
mod tests;
