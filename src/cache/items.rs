//! Splits a list into its objects while it arrives. Pure.
//!
//! Guarantees: at most one object and the text around the objects are held, beside the piece that arrived last. However the
//! list is cut into pieces, the objects and their order are those of the whole text. Syntax is not checked here, but each
//! byte is in an object or in the envelope, whose decoders check it.

use std::ops::Range;

/// A list that is still arriving.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// Bytes that were not returned yet, after those that were returned last.
    buffer: Vec<u8>,
    /// Where in the buffer the first unassigned bytes begin.
    begun: usize,
    /// Up to where the buffer was scanned.
    scanned: usize,
    /// Everything except the text of the objects and the commas between them.
    envelope: Vec<u8>,
    /// How many brackets and braces are open.
    depth: usize,
    text: Text,
    /// The objects begin at the next bracket: the last string in the outermost braces was their key.
    is_announced: bool,
    /// The last string in the outermost braces, as far as it can be that key.
    last_text: Vec<u8>,
    /// Whether the scan is between the brackets of the objects, and whether an object was there before.
    inside: Option<Inside>,
}

/// Whether the scan is inside a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

#[derive(Clone, Copy, Debug)]
struct Inside {
    /// A comma came, so an object must follow.
    is_owed: bool,
}

/// A larger buffer is freed when it is empty.
pub(super) const KEEP_BUFFER: usize = 1 << 20;

const KEY: &[u8] = b"items";

impl Items {
    /// Takes the next piece of the text. Drops what was returned before.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.buffer.drain(..self.begun);
        self.scanned -= self.begun;
        self.begun = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP_BUFFER {
            self.buffer = Vec::new();
        }
        self.buffer.extend_from_slice(piece);
    }

    /// How many bytes are held.
    pub(super) fn held(&self) -> usize {
        self.buffer.len() - self.begun + self.envelope.len()
    }

    /// The range of the next complete object.
    pub(super) fn next(&mut self) -> Option<Range<usize>> {
        while self.scanned < self.buffer.len() {
            if self.text != Text::Outside {
                self.skip_text();
                continue;
            }
            let at = self.scanned;
            self.scanned += 1;
            match self.buffer[at] {
                b'"' => {
                    self.text = Text::Inside;
                    self.last_text.clear();
                    self.is_announced = false;
                }
                b'{' | b'[' => self.open(at),
                b'}' | b']' => {
                    if let Some(item) = self.close(at) {
                        return Some(item);
                    }
                }
                b',' if self.depth == 1 => self.is_announced = false,
                b',' if self.depth == 2 && self.inside.is_some() => {
                    self.inside = Some(Inside { is_owed: true });
                    return Some(self.cut(at));
                }
                _ => {}
            }
        }
        if self.inside.is_none() {
            self.envelope.extend_from_slice(&self.buffer[self.begun..]);
            self.begun = self.buffer.len();
        }
        None
    }

    /// The bytes of an object that [`next`](Self::next) has found.
    pub(super) fn text(&self, item: Range<usize>) -> &[u8] {
        &self.buffer[item]
    }

    /// The text around the objects: a list without objects. Call it when all pieces have been pushed and scanned.
    pub(super) fn envelope(&self) -> &[u8] {
        &self.envelope
    }

    /// Scans to the end of the current string.
    fn skip_text(&mut self) {
        let from = self.scanned;
        if self.text == Text::Escaped {
            self.text = Text::Inside;
            self.scanned += 1;
        } else {
            match memchr::memchr2(b'"', b'\\', &self.buffer[from..]) {
                None => self.scanned = self.buffer.len(),
                Some(found) => {
                    let is_end = self.buffer[from + found] == b'"';
                    self.text = if is_end { Text::Outside } else { Text::Escaped };
                    self.scanned = from + found + 1;
                }
            }
        }
        if self.depth == 1 {
            let read = &self.buffer[from..self.scanned];
            let room = (KEY.len() + 2).saturating_sub(self.last_text.len());
            self.last_text.extend_from_slice(&read[..read.len().min(room)]);
            self.is_announced = self.text == Text::Outside && self.last_text.strip_suffix(b"\"") == Some(KEY);
        }
    }

    fn open(&mut self, at: usize) {
        self.depth += 1;
        if self.depth == 2 && std::mem::take(&mut self.is_announced) && self.buffer[at] == b'[' {
            self.envelope.extend_from_slice(&self.buffer[self.begun..=at]);
            self.begun = at + 1;
            self.inside = Some(Inside { is_owed: false });
        }
    }

    /// At the end of the objects, returns the last one.
    fn close(&mut self, at: usize) -> Option<Range<usize>> {
        self.depth = self.depth.saturating_sub(1);
        if self.depth != 1 {
            return None;
        }
        let inside = self.inside.take()?;
        let is_blank = self.buffer[self.begun..at].trim_ascii().is_empty();
        let item = self.cut(at);
        // The bracket belongs to the envelope.
        self.begun = at;
        (inside.is_owed || !is_blank).then_some(item)
    }

    /// The object that ends before `at`, where a separator follows.
    fn cut(&mut self, at: usize) -> Range<usize> {
        let item = self.begun..at;
        self.begun = at + 1;
        item
    }
}

#[cfg(test)]
mod tests;
