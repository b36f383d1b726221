//! The history of a run, for people and for comparison.

use std::fmt::Write as _;

use crate::scenario::Millis;

/// A history: its hash always, its lines only if they will be printed.
#[derive(Debug, Default)]
pub struct Journal {
    hash: u64,
    lines: Vec<String>,
    is_kept: bool,
    scratch: String,
}

impl Journal {
    pub fn new(is_kept: bool) -> Self {
        Self { hash: 0xCBF2_9CE4_8422_2325, is_kept, ..Self::default() }
    }

    pub fn note(&mut self, at: Millis, what: std::fmt::Arguments<'_>) {
        self.scratch.clear();
        let (minutes, seconds, rest) = (at / 60_000, at / 1000 % 60, at % 1000);
        let _ = write!(self.scratch, "{minutes:3}:{seconds:02}.{rest:03}  {what}");
        for chunk in self.scratch.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.hash = (self.hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0100_0000_01B3).rotate_left(23);
        }
        if self.is_kept {
            self.lines.push(self.scratch.clone());
        }
    }

    /// Records a line only where lines are kept: it follows from the other lines.
    pub fn detail(&mut self, at: Millis, what: std::fmt::Arguments<'_>) {
        if self.is_kept {
            let hash = self.hash;
            self.note(at, what);
            self.hash = hash;
        }
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn into_lines(self) -> Vec<String> {
        self.lines
    }
}
