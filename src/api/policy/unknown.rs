//! The annotations below the prefix that this program does not know.
//!
//! Guarantee: the size is bounded, however many there are and however long their names.

use std::fmt;

use super::PREFIX;
use crate::api::shortened;

/// The longest name that the API server takes, in bytes: the part after the slash has at most 63.
const LONGEST_NAME: usize = PREFIX.len() + 63;

/// The names of unknown annotations, in the object's order: the first eight, and how many more there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UnknownNames {
    first: Vec<Box<str>>,
    more: usize,
}

impl UnknownNames {
    /// How many names are kept.
    const MOST: usize = 8;

    pub(super) fn add(&mut self, name: &str) {
        if self.first.len() < Self::MOST {
            self.first.push(shortened(name, LONGEST_NAME).into());
        } else {
            self.more += 1;
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// The names that are kept.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.first.iter().map(|name| &**name)
    }

    /// How many others there are.
    pub fn more(&self) -> usize {
        self.more
    }
}

/// The names, separated by commas, and how many more there are.
impl fmt::Display for UnknownNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first.join(", "))?;
        if self.more > 0 {
            write!(f, " and {} more", self.more)?;
        }
        Ok(())
    }
}
