//! Resource versions in little memory.
//!
//! Guarantee: a [`ResourceVersion`] is exactly the text it was made from. A number, which API servers use, needs no
//! heap allocation.

use std::fmt;
use std::ops::Deref;

/// Fits the largest number that etcd can count to, and keeps the whole type at three words.
const INLINE: usize = 22;

/// A resource version as the API server writes it: opaque text but for [`super::compare_resource_versions`].
#[derive(Clone)]
pub struct ResourceVersion(Repr);

#[derive(Clone)]
enum Repr {
    /// The text is the first `.0` bytes.
    Inline(u8, [u8; INLINE]),
    Heap(Box<str>),
}

impl Deref for ResourceVersion {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            // Only valid texts are stored, so the check always succeeds; it costs a few instructions.
            Repr::Inline(len, bytes) => std::str::from_utf8(&bytes[..usize::from(*len)]).unwrap_or_default(),
            Repr::Heap(text) => text,
        }
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        let mut bytes = [0; INLINE];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(text.as_bytes());
                Self(Repr::Inline(len, bytes))
            }
            _ => Self(Repr::Heap(text.into())),
        }
    }
}

impl From<String> for ResourceVersion {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl PartialEq for ResourceVersion {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for ResourceVersion {}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests;
