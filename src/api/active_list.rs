//! The references of `status.active`.
//!
//! Guarantees: the order in which they were added; each UID once, as the first reference has it. A reference is found, added and
//! removed in constant time however many there are: whoever may run Jobs decides how many. A short list, as almost all are,
//! takes no more memory than its references.

use std::collections::HashMap;

use apimachinery::steps;
use serde::{Serialize, Serializer};

use super::{ObjectReference, Uid};

/// Up to how many references are searched one after the other.
const SHORT: usize = 16;

/// The references to the running Jobs of a CronJob, oldest first.
#[derive(Clone, Debug, Default)]
pub struct ActiveList {
    /// `None` where one was removed from a long list.
    references: Vec<Option<ObjectReference>>,
    /// The place of each UID in a list that is or was long.
    #[allow(clippy::box_collection, reason = "almost no list has it")]
    places: Option<Box<HashMap<Uid, usize>>>,
}

impl ActiveList {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.as_ref().map_or(self.references.len(), |places| places.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The references, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &ObjectReference> {
        self.references.iter().flatten()
    }

    /// Whether one has the UID.
    pub fn contains(&self, uid: &Uid) -> bool {
        match &self.places {
            Some(places) => places.contains_key(uid),
            None => steps::each(self.iter()).any(|reference| reference.uid == *uid),
        }
    }

    /// Adds a reference at the end, unless one has its UID.
    pub fn push(&mut self, reference: ObjectReference) {
        if self.contains(&reference.uid) {
            return;
        }
        // As many places as were left are at least added until the next time.
        if self.references.len() > 2 * self.len() + SHORT || self.places.is_none() && self.references.len() == SHORT {
            self.references.retain(Option::is_some);
            let places = steps::each(self.iter()).enumerate().map(|(place, known)| (known.uid.clone(), place));
            self.places = Some(Box::new(places.collect()));
        }
        if let Some(places) = &mut self.places {
            places.insert(reference.uid.clone(), self.references.len());
        }
        self.references.push(Some(reference));
    }

    /// Removes the reference with the UID. Returns whether there was one.
    pub fn remove(&mut self, uid: &Uid) -> bool {
        if let Some(places) = &mut self.places {
            let place = places.remove(uid);
            if let Some(place) = place {
                self.references[place] = None;
            }
            return place.is_some();
        }
        let place = steps::each(self.iter()).position(|reference| reference.uid == *uid);
        if let Some(place) = place {
            self.references.remove(place);
        }
        place.is_some()
    }

    /// Gives back memory that is kept for further references.
    pub fn shrink_to_fit(&mut self) {
        self.references.shrink_to_fit();
    }
}

impl FromIterator<ObjectReference> for ActiveList {
    fn from_iter<I: IntoIterator<Item = ObjectReference>>(references: I) -> Self {
        let mut list = Self::default();
        for reference in references {
            list.push(reference);
        }
        list
    }
}

impl PartialEq for ActiveList {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ActiveList {}

impl Serialize for ActiveList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests;
