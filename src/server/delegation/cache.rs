//! A cache of answers with a time limit. Pure: the caller passes the time.
//!
//! Guarantees: there are never more entries than the capacity, and no entry is returned after its expiry. When the
//! cache is full, the entry with the earliest expiry is removed.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// The key of an answer.
pub(super) type Key = [u8; 32];

/// Answers of one kind.
#[derive(Debug)]
pub(super) struct Cache<V> {
    capacity: usize,
    entries: HashMap<Key, Entry<V>>,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    until: Instant,
}

impl<V: Clone> Cache<V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, entries: HashMap::new() }
    }

    /// The value of the key, unless it has expired.
    pub(super) fn get(&self, key: &Key, now: Instant) -> Option<V> {
        let entry = self.entries.get(key).filter(|entry| now < entry.until)?;
        Some(entry.value.clone())
    }

    /// Stores `value` for `ttl`; a zero TTL stores nothing.
    pub(super) fn put(&mut self, key: Key, value: V, ttl: Duration, now: Instant) {
        let Some(until) = now.checked_add(ttl).filter(|until| *until > now) else { return };
        if self.entries.len() >= self.capacity {
            self.entries.retain(|_, entry| now < entry.until);
        }
        if self.entries.len() >= self.capacity
            && let Some(first) = self.entries.iter().min_by_key(|(_, entry)| entry.until).map(|(key, _)| *key)
        {
            self.entries.remove(&first);
        }
        self.entries.insert(key, Entry { value, until });
    }
}

#[cfg(test)]
mod tests;
