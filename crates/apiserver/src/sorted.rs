//! A sorted map that counts keys quickly.
//!
//! Guarantees: finding, inserting and removing a key, and counting the keys before one, cost far less than a walk over all
//! keys. The keys are stored in runs of some hundred; of most runs only the first key or the length is read.

/// A run that has reached this length is split.
const LONGEST: usize = 512;

/// Values by key, in the byte order of the keys.
#[derive(Debug)]
pub struct Sorted<V> {
    /// No run is empty, and all are in order.
    runs: Vec<Vec<(Box<str>, V)>>,
}

impl<V> Default for Sorted<V> {
    fn default() -> Self {
        Self { runs: Vec::new() }
    }
}

impl<V> Sorted<V> {
    /// The run and the position in it where `key` is (`Ok`) or would be (`Err`).
    fn find(&self, key: &str) -> (usize, Result<usize, usize>) {
        let run = self.runs.partition_point(|run| run.first().is_some_and(|(first, _)| &**first <= key));
        let run = run.saturating_sub(1);
        let place = self.runs.get(run).map_or(Err(0), |run| run.binary_search_by(|(known, _)| (**known).cmp(key)));
        (run, place)
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&V> {
        let (run, place) = self.find(key);
        Some(&self.runs.get(run)?.get(place.ok()?)?.1)
    }

    /// The value of a key, mutable.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        let (run, place) = self.find(key);
        Some(&mut self.runs.get_mut(run)?.get_mut(place.ok()?)?.1)
    }

    /// Sets the value of a key and returns the previous one.
    pub fn insert(&mut self, key: &str, value: V) -> Option<V> {
        let (at, place) = self.find(key);
        let is_last = at + 1 >= self.runs.len();
        let Some(run) = self.runs.get_mut(at) else {
            self.runs.push(vec![(key.into(), value)]);
            return None;
        };
        match place {
            Ok(place) => return Some(std::mem::replace(&mut run[place].1, value)),
            // Keys that arrive in order leave full runs behind.
            Err(place) if place == LONGEST && is_last => self.runs.push(vec![(key.into(), value)]),
            Err(place) => {
                run.insert(place, (key.into(), value));
                if run.len() > LONGEST {
                    let later = run.split_off(LONGEST / 2);
                    self.runs.insert(at + 1, later);
                }
            }
        }
        None
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &str) -> Option<V> {
        let (at, place) = self.find(key);
        let run = self.runs.get_mut(at)?;
        let (_, value) = run.remove(place.ok()?);
        if run.is_empty() {
            self.runs.remove(at);
        }
        Some(value)
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.runs.clear();
    }

    /// The number of keys before `key`.
    pub fn rank(&self, key: &str) -> usize {
        let (run, place) = self.find(key);
        let before: usize = self.runs.iter().take(run).map(Vec::len).sum();
        before + place.unwrap_or_else(|place| place)
    }

    /// The entries from `start` on, in order.
    pub fn range(&self, start: &str) -> impl Iterator<Item = (&str, &V)> {
        let (run, place) = self.find(start);
        let place = place.unwrap_or_else(|place| place);
        let first = self.runs.get(run).and_then(|run| run.get(place..)).unwrap_or_default();
        let later = self.runs.iter().skip(run + 1).flatten();
        first.iter().chain(later).map(|(key, value)| (&**key, value))
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.runs.iter().flatten().map(|(key, value)| (&**key, value))
    }
}

#[cfg(test)]
mod tests;
