//! Limits how many bytes of long Job templates are in memory at a time.
//!
//! A template too long for the cache is read when its CronJob fires, and held until the create is answered.
//!
//! Guarantees: all templates held together have at most [`BUDGET`] bytes, those of one namespace at most
//! [`NAMESPACE_SHARE`]; a longer template counts as that share. A quarter is kept for namespaces with little: those whose creates
//! are not answered, however many they are, leave it to them unless each of them has little, too. A worker never waits for the
//! budget: the key is put aside and enqueued again, with high priority, when there may be space for it. Namespaces take turns. Each
//! key put aside also has a timer of [`RETRY`], so none is lost if an enqueued key does not use its share.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::api::ObjectName;
use crate::workqueue::{Priority, WorkQueue};

/// How many bytes of templates may be held at a time. A sync needs four to five times the size of its template: the
/// response, the decoded text, the request body, and the connection's buffers.
pub const BUDGET: usize = 8 << 20;

/// How many of these bytes one namespace may take. A namespace whose creates are never answered leaves space for
/// others.
pub const NAMESPACE_SHARE: usize = BUDGET * 3 / 8;

/// A namespace that takes no more than this may use all of the budget, and another one three quarters of it. It is more than any
/// object that etcd takes.
const LITTLE: usize = BUDGET * 3 / 16;

/// After this time a key that was put aside is retried in any case.
pub const RETRY: Duration = Duration::from_secs(1);

/// Hands out [`Reservation`]s.
#[derive(Debug)]
pub struct TemplateBudget {
    queue: WorkQueue<ObjectName>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    held: usize,
    held_by_namespace: HashMap<Arc<str>, usize>,
    /// The keys that were put aside, with the bytes that each needs.
    waiting: BTreeMap<Arc<str>, VecDeque<(ObjectName, usize)>>,
    /// The same keys, so that none is put aside twice.
    is_waiting: HashSet<ObjectName>,
    /// The namespace that had the last turn.
    last: Option<Arc<str>>,
}

impl State {
    fn fits(&self, namespace: &str, bytes: usize, promised: usize) -> bool {
        let own = self.held_by_namespace.get(namespace).copied().unwrap_or_default();
        let total = if own + bytes <= LITTLE { BUDGET } else { BUDGET - BUDGET / 4 };
        self.held + promised + bytes <= total && own + bytes <= NAMESPACE_SHARE
    }

    fn take(&mut self, namespace: &Arc<str>, bytes: usize) {
        self.held += bytes;
        *self.held_by_namespace.entry(Arc::clone(namespace)).or_default() += bytes;
    }

    fn give_back(&mut self, namespace: &Arc<str>, bytes: usize) {
        self.held -= bytes;
        if let Some(own) = self.held_by_namespace.get_mut(namespace) {
            *own -= bytes;
            if *own == 0 {
                self.held_by_namespace.remove(namespace);
            }
        }
    }

    fn put_aside(&mut self, key: &ObjectName, bytes: usize) {
        if self.is_waiting.insert(key.clone()) {
            self.waiting.entry(Arc::clone(&key.namespace)).or_default().push_back((key.clone(), bytes));
        }
    }

    /// Removes and returns the keys that fit into the budget now, one namespace after the other.
    fn next_keys(&mut self) -> Vec<ObjectName> {
        let (mut keys, mut promised) = (Vec::new(), 0);
        let after = self.last.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.waiting.range::<Arc<str>, _>((after, Bound::Unbounded)).map(|(namespace, _)| namespace);
        let turns: Vec<_> = later.chain(self.waiting.keys()).map(Arc::clone).collect();
        for namespace in turns.into_iter().take(self.waiting.len()) {
            let Some(waiting) = self.waiting.get(&namespace) else { continue };
            let Some(&(_, bytes)) = waiting.front() else { continue };
            if !self.fits(&namespace, bytes, promised) {
                continue;
            }
            promised += bytes;
            if let Some(waiting) = self.waiting.get_mut(&namespace) {
                if let Some((key, _)) = waiting.pop_front() {
                    self.is_waiting.remove(&key);
                    keys.push(key);
                }
                if waiting.is_empty() {
                    self.waiting.remove(&namespace);
                }
            }
            self.last = Some(namespace);
        }
        keys
    }
}

impl TemplateBudget {
    /// A budget with nothing reserved. Keys that were put aside are added to `queue`.
    pub fn new(queue: WorkQueue<ObjectName>) -> Arc<Self> {
        Arc::new(Self { queue, state: Mutex::default() })
    }

    /// Reserves `bytes` bytes for the template of `key`. Returns `None` if they do not fit; the key is then requeued.
    pub fn reserve(self: &Arc<Self>, key: &ObjectName, bytes: usize) -> Option<Reservation> {
        let (namespace, bytes) = (Arc::clone(&key.namespace), bytes.min(NAMESPACE_SHARE));
        let mut state = self.state.lock();
        if !state.fits(&namespace, bytes, 0) {
            state.put_aside(key, bytes);
            drop(state);
            self.queue.add_after(key.clone(), RETRY);
            return None;
        }
        state.take(&namespace, bytes);
        Some(Reservation(Some(Held { budget: Arc::clone(self), namespace, bytes })))
    }
}

/// Space for one template, released on drop.
#[derive(Debug)]
#[must_use]
pub struct Reservation(Option<Held>);

#[derive(Debug)]
struct Held {
    budget: Arc<TemplateBudget>,
    namespace: Arc<str>,
    bytes: usize,
}

impl Reservation {
    /// A reservation outside any budget.
    pub fn unbounded() -> Self {
        Self(None)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let Some(Held { budget, namespace, bytes }) = self.0.take() else { return };
        let keys = {
            let mut state = budget.state.lock();
            state.give_back(&namespace, bytes);
            state.next_keys()
        };
        for key in keys {
            budget.queue.add_with(key, Priority::High);
        }
    }
}

#[cfg(test)]
mod tests;
