//! Object UIDs in little memory.
//!
//! Guarantee: a [`Uid`] prints exactly the text it was made from. The canonical form, which API servers use, needs no
//! heap allocation.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A UID as the API server writes it: opaque text, compared for equality only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Uid(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    /// A canonical lower-case UUID. Never holds what `Other` could hold, so derived equality is exact.
    Uuid([u8; 16]),
    Other(Arc<str>),
}

const HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl Uid {
    /// The UID written as `text`.
    pub fn new(text: &str) -> Self {
        Self(parse_canonical(text).map_or_else(|| Repr::Other(text.into()), Repr::Uuid))
    }

    /// The length of the text, in bytes.
    pub fn text_len(&self) -> usize {
        match &self.0 {
            Repr::Uuid(_) => 36,
            Repr::Other(text) => text.len(),
        }
    }
}

fn parse_canonical(text: &str) -> Option<[u8; 16]> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 || HYPHENS.iter().any(|&at| bytes[at] != b'-') {
        return None;
    }
    let mut out = [0; 16];
    let mut nibbles = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if HYPHENS.contains(&at) {
            continue;
        }
        let value = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        out[nibbles / 2] = out[nibbles / 2] << 4 | value;
        nibbles += 1;
    }
    Some(out)
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Other(text) => f.write_str(text),
            Repr::Uuid(bytes) => {
                for (at, byte) in bytes.iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<&Uid> for Uid {
    fn from(uid: &Uid) -> Self {
        uid.clone()
    }
}

impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = Uid;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a UID")
            }
            fn visit_str<E>(self, text: &str) -> Result<Uid, E> {
                Ok(Uid::new(text))
            }
        }
        deserializer.deserialize_str(Text)
    }
}
