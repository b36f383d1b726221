//! Splits the text of a YAML document into tokens.
//!
//! Guarantees: the tokens are those of go.yaml.in/yaml/v2, which sigs.k8s.io/yaml and so kubectl use, function by function
//! (`scannerc.go`). Each is found with a look-ahead of at most 1024 characters, or to the end of a line, and one token. Pure.
//!
//! go.yaml.in/yaml/v2 ports it from libyaml, whose licence is below. [`super::parser`] has the same origin.

// Copyright (c) 2006 Kirill Simonov
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of
// this software and associated documentation files (the "Software"), to deal in
// the Software without restriction, including without limitation the rights to
// use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies
// of the Software, and to permit persons to whom the Software is furnished to do
// so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all
// copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
// SOFTWARE.

mod properties;
mod scalars;

use std::collections::{HashMap, VecDeque};

use apimachinery::steps;

use super::cursor::{Cursor, Mark};
use super::{TAB_INDENTS, YamlError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Quoted,
    /// After `|` or `>`.
    Block,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    End,
    /// `%YAML`, and whether the version is 1.1.
    Version(bool),
    /// `%TAG` with a handle and a prefix.
    TagDirective(String, String),
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    /// A handle and a suffix.
    Tag(String, String),
    Scalar(String, Style),
}

#[derive(Debug)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: Mark,
    pub end: Mark,
}

/// Where a key without a `?` may have begun.
#[derive(Clone, Copy, Default)]
struct SimpleKey {
    is_possible: bool,
    is_required: bool,
    token: usize,
    mark: Mark,
}

/// How many characters after its beginning the colon of a key without a `?` is, at most.
const LONGEST_KEY: usize = 1024;

pub(super) struct Scanner<'a> {
    cursor: Cursor<'a>,
    flow_level: usize,
    tokens: VecDeque<Token>,
    /// The number of tokens that were taken.
    taken: usize,
    is_ready: bool,
    /// The columns of the blocks around the current one.
    indents: Vec<Option<usize>>,
    /// The column of the current block; `None` outside of all.
    indent: Option<usize>,
    is_key_allowed: bool,
    /// One for each flow level, and the first for blocks.
    keys: Vec<SimpleKey>,
    keys_by_token: HashMap<usize, usize>,
}

type Done = Result<(), YamlError>;

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Self {
        Self {
            cursor: Cursor::new(text),
            flow_level: 0,
            tokens: VecDeque::new(),
            taken: 0,
            is_ready: false,
            indents: Vec::new(),
            indent: None,
            is_key_allowed: true,
            keys: vec![SimpleKey::default()],
            keys_by_token: HashMap::new(),
        }
    }

    /// The next token.
    ///
    /// # Errors
    /// When the text has none.
    pub fn peek(&mut self) -> Result<&Token, YamlError> {
        if !self.is_ready {
            self.fetch_more()?;
        }
        self.tokens.front().ok_or_else(|| YamlError::at(self.cursor.mark, super::ENDS_INSIDE_VALUE))
    }

    /// Takes the token that was peeked.
    pub fn take(&mut self) -> Option<Token> {
        self.is_ready = false;
        self.taken += 1;
        self.tokens.pop_front()
    }

    fn fetch_more(&mut self) -> Done {
        while self.tokens.is_empty() || self.may_be_key()? {
            self.fetch()?;
        }
        self.is_ready = true;
        Ok(())
    }

    /// Whether the first token may turn out to begin a key.
    fn may_be_key(&mut self) -> Result<bool, YamlError> {
        match self.keys_by_token.get(&self.taken) {
            Some(level) => self.is_key_possible(*level),
            None => Ok(false),
        }
    }

    fn is_key_possible(&mut self, level: usize) -> Result<bool, YamlError> {
        let here = self.cursor.mark;
        let Some(key) = self.keys.get_mut(level).filter(|key| key.is_possible) else { return Ok(false) };
        let is_over = key.mark.line < here.line || key.mark.index + LONGEST_KEY < here.index;
        if is_over && key.is_required {
            return Err(YamlError::at(key.mark, "could not find the ':' after a key"));
        }
        key.is_possible = !is_over;
        Ok(!is_over)
    }

    fn fetch(&mut self) -> Done {
        steps::add(1);
        self.skip_to_token();
        self.unroll_indent(Some(self.cursor.mark.column));
        let (byte, column) = (self.cursor.byte(0), self.cursor.mark.column);
        let is_alone = self.cursor.is_space(1);
        let is_in_flow = self.flow_level > 0;
        match byte {
            0 => self.fetch_end(),
            b'%' if column == 0 => self.fetch_directive(),
            b'-' if self.cursor.is_marker() => self.fetch_marker(Kind::DocumentStart),
            b'.' if self.cursor.is_marker() => self.fetch_marker(Kind::DocumentEnd),
            b'[' => self.fetch_flow_start(Kind::FlowSequenceStart),
            b'{' => self.fetch_flow_start(Kind::FlowMappingStart),
            b']' => self.fetch_flow_end(Kind::FlowSequenceEnd),
            b'}' => self.fetch_flow_end(Kind::FlowMappingEnd),
            b',' => {
                self.remove_key()?;
                self.is_key_allowed = true;
                self.push_indicator(Kind::FlowEntry);
                Ok(())
            }
            b'-' if is_alone => self.fetch_entry(),
            b'?' if is_in_flow || is_alone => self.fetch_key(),
            b':' if is_in_flow || is_alone => self.fetch_value(),
            b'*' | b'&' => self.fetch_reference(byte == b'*'),
            b'!' => self.fetch_tag(),
            b'|' | b'>' if !is_in_flow => self.fetch_block_scalar(byte == b'|'),
            b'\'' | b'"' => self.fetch_quoted(byte),
            b'\t' => Err(self.fault(TAB_INDENTS)),
            b' ' | b'#' | b'|' | b'>' | b'%' | b'@' | b'`' => Err(self.bad_start()),
            _ => self.fetch_plain(),
        }
    }

    fn fault(&self, problem: &str) -> YamlError {
        YamlError::at(self.cursor.mark, problem)
    }

    fn bad_start(&self) -> YamlError {
        let character = self.cursor.char().unwrap_or_default();
        self.fault(&format!("the character {character:?} is not allowed here; put the text in quotes"))
    }

    fn skip_to_token(&mut self) {
        loop {
            // A tab is no indentation.
            while self.cursor.is(b' ') || ((self.flow_level > 0 || !self.is_key_allowed) && self.cursor.is(b'\t')) {
                self.cursor.skip();
            }
            self.cursor.skip_comment();
            if self.cursor.skip_line().is_none() {
                return;
            }
            self.is_key_allowed |= self.flow_level == 0;
        }
    }

    fn push(&mut self, kind: Kind, start: Mark) {
        self.tokens.push_back(Token { kind, start, end: self.cursor.mark });
    }

    /// Adds a token of one character.
    fn push_indicator(&mut self, kind: Kind) {
        let start = self.cursor.mark;
        self.cursor.skip();
        self.push(kind, start);
    }

    /// Puts a token in front of that of this number, or at the end if that was taken.
    fn insert(&mut self, number: usize, kind: Kind, mark: Mark) {
        let place = number.checked_sub(self.taken).map_or(self.tokens.len(), |place| place.min(self.tokens.len()));
        self.tokens.insert(place, Token { kind, start: mark, end: mark });
    }

    /// Notes that a key may begin here.
    fn save_key(&mut self) -> Done {
        if !self.is_key_allowed {
            return Ok(());
        }
        let mark = self.cursor.mark;
        let is_required = self.flow_level == 0 && self.indent == Some(mark.column);
        let key = SimpleKey { is_possible: true, is_required, token: self.taken + self.tokens.len(), mark };
        self.remove_key()?;
        self.keys_by_token.insert(key.token, self.flow_level);
        self.keys[self.flow_level] = key;
        Ok(())
    }

    fn remove_key(&mut self) -> Done {
        let key = &mut self.keys[self.flow_level];
        if std::mem::take(&mut key.is_possible) {
            if key.is_required {
                return Err(YamlError::at(key.mark, "could not find the ':' after a key"));
            }
            self.keys_by_token.remove(&key.token);
        }
        Ok(())
    }

    /// Begins a block if this column is to the right of the current one.
    fn roll_indent(&mut self, column: usize, number: Option<usize>, kind: Kind, mark: Mark) {
        if self.flow_level == 0 && self.indent < Some(column) {
            self.indents.push(self.indent.replace(column));
            self.insert(number.unwrap_or(usize::MAX), kind, mark);
        }
    }

    /// Ends the blocks to the right of this column.
    fn unroll_indent(&mut self, column: Option<usize>) {
        while self.flow_level == 0 && self.indent > column {
            self.push(Kind::BlockEnd, self.cursor.mark);
            self.indent = self.indents.pop().flatten();
        }
    }

    fn fetch_end(&mut self) -> Done {
        // Ends the line, and so the keys that may have begun in it.
        self.cursor.mark.line += 1;
        self.unroll_indent(None);
        self.remove_key()?;
        self.is_key_allowed = false;
        self.push(Kind::End, self.cursor.mark);
        Ok(())
    }

    fn fetch_marker(&mut self, kind: Kind) -> Done {
        self.unroll_indent(None);
        self.remove_key()?;
        self.is_key_allowed = false;
        let start = self.cursor.mark;
        (0..3).for_each(|_| self.cursor.skip());
        self.push(kind, start);
        Ok(())
    }

    fn fetch_flow_start(&mut self, kind: Kind) -> Done {
        self.save_key()?;
        let key = SimpleKey { token: self.taken + self.tokens.len(), ..SimpleKey::default() };
        self.keys.push(key);
        self.flow_level += 1;
        self.is_key_allowed = true;
        self.push_indicator(kind);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: Kind) -> Done {
        self.remove_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            // Of a level without a key, this is the token of its bracket, which then begins none.
            if let Some(key) = self.keys.pop() {
                self.keys_by_token.remove(&key.token);
            }
        }
        self.is_key_allowed = false;
        self.push_indicator(kind);
        Ok(())
    }

    fn fetch_entry(&mut self) -> Done {
        if self.flow_level == 0 {
            if !self.is_key_allowed {
                return Err(self.fault(ENTRY_NOT_ALLOWED));
            }
            self.roll_indent(self.cursor.mark.column, None, Kind::BlockSequenceStart, self.cursor.mark);
        }
        self.remove_key()?;
        self.is_key_allowed = true;
        self.push_indicator(Kind::BlockEntry);
        Ok(())
    }

    fn fetch_key(&mut self) -> Done {
        if self.flow_level == 0 {
            if !self.is_key_allowed {
                return Err(self.fault("a key is not allowed here; check the indentation"));
            }
            self.roll_indent(self.cursor.mark.column, None, Kind::BlockMappingStart, self.cursor.mark);
        }
        self.remove_key()?;
        self.is_key_allowed = self.flow_level == 0;
        self.push_indicator(Kind::Key);
        Ok(())
    }

    fn fetch_value(&mut self) -> Done {
        if self.is_key_possible(self.flow_level)? {
            let SimpleKey { token, mark, .. } = self.keys[self.flow_level];
            self.insert(token, Kind::Key, mark);
            self.roll_indent(mark.column, Some(token), Kind::BlockMappingStart, mark);
            self.keys[self.flow_level].is_possible = false;
            self.keys_by_token.remove(&token);
            self.is_key_allowed = false;
        } else {
            if self.flow_level == 0 {
                if !self.is_key_allowed {
                    return Err(self.fault(
                        "a ':' is not allowed here; a text with ': ' needs quotes, and keys of one mapping have the same indentation",
                    ));
                }
                self.roll_indent(self.cursor.mark.column, None, Kind::BlockMappingStart, self.cursor.mark);
            }
            self.is_key_allowed = self.flow_level == 0;
        }
        self.push_indicator(Kind::Value);
        Ok(())
    }
}

/// The problem of a dash where no list can be.
pub(super) const ENTRY_NOT_ALLOWED: &str =
    "an entry of a list, which begins with '- ', is not allowed here; it needs a line of its own, outside of brackets";
