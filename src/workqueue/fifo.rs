//! A queue whose entries can be taken out of its middle.
//!
//! Guarantees: entries leave in the order in which they came. Adding and popping cost amortised O(1), taking out O(log n). The
//! place of an entry that was taken out is freed when no older entry is left.

use std::collections::VecDeque;

/// Entries by number, in rising order. The first and the last one are never taken out: their places are freed at once.
#[derive(Debug, Clone)]
pub(super) struct Fifo<T>(VecDeque<(u64, Option<T>)>);

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Fifo<T> {
    /// Adds an entry, whose number is greater than all before.
    pub(super) fn push(&mut self, number: u64, entry: T) {
        self.0.push_back((number, Some(entry)));
    }

    /// Takes the oldest entry out.
    pub(super) fn pop(&mut self) -> Option<T> {
        let (_, entry) = self.0.pop_front()?;
        self.trim();
        entry
    }

    /// Takes the entry with that number out, if it is there.
    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        let place = self.0.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        let entry = self.0[place].1.take();
        self.trim();
        entry
    }

    /// The entry with that number, if it is there.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let place = self.0.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.0[place].1.as_mut()
    }

    /// The oldest entry.
    pub(super) fn front(&self) -> Option<&T> {
        self.0.front()?.1.as_ref()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn trim(&mut self) {
        while self.0.front().is_some_and(|(_, entry)| entry.is_none()) {
            self.0.pop_front();
        }
        while self.0.back().is_some_and(|(_, entry)| entry.is_none()) {
            self.0.pop_back();
        }
    }
}

#[cfg(test)]
mod tests;
