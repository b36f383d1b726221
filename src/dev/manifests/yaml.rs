//! Reads a YAML document as kubectl does.
//!
//! Guarantees: the value is the one that kubectl sends to the API server, and what kubectl loses of the document without a word is
//! told: the first of two equal keys, and text after the document's value. Every error has its line in the document. The work and the
//! memory grow with the length of the document, whatever is in it: what aliases repeat and how deep values are nested is bounded. Pure.

mod cursor;
mod parser;
mod scanner;

use std::collections::{HashMap, HashSet};
use std::fmt;

use apimachinery::steps;
use serde_json::{Map, Value};

use super::scalars::Scalar;
use cursor::Mark;
use parser::{Event, Found, Parser, Scalar as Written};

/// The deepest nesting of a document that is read. The embedded API server reads little more.
pub(super) const DEEPEST: usize = 100;
/// What aliases may repeat beyond [`ALIASED_PER_BYTE`], in bytes of memory. No manifest comes near it.
const ALIASED: usize = 12 << 20;
/// What aliases may repeat for each byte of the document, in bytes of memory.
const ALIASED_PER_BYTE: usize = 32;

pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';
const TEXT_AFTER_VALUE: &str = "there is text after the end of the document's value";
const ENDS_INSIDE_VALUE: &str = "the document ends inside a value";
const TAB_INDENTS: &str = "a tab is used for indentation; use spaces";

/// Why a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct YamlError {
    /// The line in the document, counted from 1.
    pub line: usize,
    /// The column, counted from 1, if there is one.
    pub column: Option<usize>,
    /// What is wrong there.
    pub problem: String,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, problem } = self;
        match column {
            Some(column) => write!(f, "line {line} column {column}: {problem}"),
            None => write!(f, "line {line}: {problem}"),
        }
    }
}

impl YamlError {
    fn at(mark: Mark, problem: impl Into<String>) -> Self {
        Self { line: mark.row + 1, column: Some(mark.column + 1), problem: problem.into() }
    }
}

/// What a document says.
#[derive(Debug)]
pub(super) struct Reading {
    /// Its value; null for one without a value.
    pub value: Value,
    /// What kubectl loses of the document, each with what is lost there.
    pub lost: Vec<YamlError>,
}

/// Reads a document.
///
/// # Errors
/// The first fault.
pub(super) fn read(text: &str) -> Result<Reading, YamlError> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    judge_characters(text)?;
    Loader::new(text).document()
}

/// Refuses the characters that YAML 1.1 does not have, and a second byte order mark.
fn judge_characters(text: &str) -> Result<(), YamlError> {
    let is_refused = |c: char| {
        matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}')
            || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    let at = if text.starts_with(BYTE_ORDER_MARK) { Some(0) } else { text.find(is_refused) };
    let Some(at) = at else { return Ok(()) };
    let (before, code) = (&text[..at], text[at..].chars().next().map_or(0, u32::from));
    let column = before.chars().rev().take_while(|c| *c != '\n').count();
    let problem = format!("the character U+{code:04X} is not allowed");
    Err(YamlError { line: before.matches('\n').count() + 1, column: Some(column + 1), problem })
}

/// The problem of a document, or of a JSON value, that is nested too deep.
pub(super) fn too_deep() -> String {
    format!("values are nested more than {DEEPEST} levels deep")
}

/// The end of what [`twice`] says.
pub(crate) const TWICE: &str = "occurs twice in the same mapping";

/// The problem of a key that occurs twice.
pub(super) fn twice(key: &str) -> String {
    format!("the key {key:?} {TWICE}")
}

struct Loader<'a> {
    parser: Parser<'a>,
    /// The number of the last anchor of each name.
    names: HashMap<String, usize>,
    /// How many anchors there were.
    named: usize,
    /// What each anchor stands for, by its number, from the end of its value on.
    anchors: HashMap<usize, Anchored>,
    /// How much more aliases may repeat, in bytes of memory.
    allowance: usize,
    depth: usize,
    lost: Vec<YamlError>,
}

/// A value that aliases repeat.
struct Anchored {
    value: Value,
    /// What it is as a key, and as a value, unless it is a list or a mapping.
    scalar: Option<Scalar>,
    size: usize,
    depth: usize,
}

impl<'a> Loader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            parser: Parser::new(text),
            names: HashMap::new(),
            named: 0,
            anchors: HashMap::new(),
            allowance: text.len().saturating_mul(ALIASED_PER_BYTE).saturating_add(ALIASED),
            depth: 0,
            lost: Vec::new(),
        }
    }

    /// The only value of the document.
    fn document(mut self) -> Result<Reading, YamlError> {
        if matches!(self.next()?.0, Event::End) {
            return Ok(Reading { value: Value::Null, lost: Vec::new() });
        }
        let found = self.next()?;
        let value = self.value(found)?;
        // The end of the document. kubectl reads no further, and so loses, for example, the second of two objects in braces.
        self.next()?;
        match self.next() {
            Ok((Event::End, _)) => {}
            Ok((_, mark)) => self.lost.push(YamlError::at(mark, TEXT_AFTER_VALUE)),
            Err(error) => self.lost.push(YamlError { problem: TEXT_AFTER_VALUE.to_owned(), ..error }),
        }
        Ok(Reading { value, lost: self.lost })
    }

    fn next(&mut self) -> Result<Found, YamlError> {
        steps::add(1);
        self.parser.next()
    }

    fn value(&mut self, (event, mark): Found) -> Result<Value, YamlError> {
        match event {
            Event::Alias(name) => self.repeat(&name, mark),
            Event::Scalar(written) => {
                self.scalar(written, mark)?.into_value().map_err(|problem| YamlError::at(mark, problem))
            }
            Event::SequenceStart(anchor) => self.collection(anchor, mark, Self::sequence),
            Event::MappingStart(anchor) => self.collection(anchor, mark, Self::mapping),
            _ => Err(YamlError::at(mark, "there is no value")),
        }
    }

    fn scalar(&mut self, written: Written, mark: Mark) -> Result<Scalar, YamlError> {
        let scalar = scalar(&written).map_err(|problem| YamlError::at(mark, problem))?;
        if let Some(name) = written.anchor {
            let number = self.name(name);
            // What no value can be, such as infinity, is still a key.
            let value = scalar.clone().into_value().unwrap_or_default();
            self.keep(number, &value, Some(scalar.clone()), mark)?;
        }
        Ok(scalar)
    }

    /// A list or a mapping.
    fn collection(
        &mut self,
        anchor: Option<String>,
        mark: Mark,
        read: fn(&mut Self) -> Result<Value, YamlError>,
    ) -> Result<Value, YamlError> {
        let number = anchor.map(|name| self.name(name));
        self.enter(mark)?;
        let value = read(self)?;
        self.depth -= 1;
        if let Some(number) = number {
            self.keep(number, &value, None, mark)?;
        }
        Ok(value)
    }

    /// The number of a new anchor.
    fn name(&mut self, name: String) -> usize {
        self.named += 1;
        self.names.insert(name, self.named);
        self.named
    }

    /// Keeps what an anchor stands for.
    fn keep(&mut self, number: usize, value: &Value, scalar: Option<Scalar>, mark: Mark) -> Result<(), YamlError> {
        let (size, depth) = (size(value), depth(value));
        self.spend(size, mark)?;
        self.anchors.insert(number, Anchored { value: value.clone(), scalar, size, depth });
        Ok(())
    }

    fn enter(&mut self, mark: Mark) -> Result<(), YamlError> {
        self.depth += 1;
        if self.depth > DEEPEST { Err(YamlError::at(mark, too_deep())) } else { Ok(()) }
    }

    fn anchored(&self, name: &str, mark: Mark) -> Result<&Anchored, YamlError> {
        let missing = || YamlError::at(mark, "there is no anchor of this name before the alias");
        let number = self.names.get(name).ok_or_else(missing)?;
        let itself = || YamlError::at(mark, format!("the value of the anchor {name} contains itself"));
        self.anchors.get(number).ok_or_else(itself)
    }

    /// What an anchor stands for.
    fn repeat(&mut self, name: &str, mark: Mark) -> Result<Value, YamlError> {
        let &Anchored { size, depth, ref scalar, .. } = self.anchored(name, mark)?;
        if let Some(scalar) = scalar {
            scalar.clone().into_value().map_err(|problem| YamlError::at(mark, problem))?;
        }
        if self.depth + depth > DEEPEST {
            return Err(YamlError::at(mark, too_deep()));
        }
        self.spend(size, mark)?;
        Ok(self.anchored(name, mark)?.value.clone())
    }

    /// Counts a copy of a value of this size, whose work is that of its values.
    fn spend(&mut self, size: usize, mark: Mark) -> Result<(), YamlError> {
        let excessive = || YamlError::at(mark, "its aliases repeat too much");
        self.allowance = self.allowance.checked_sub(size).ok_or_else(excessive)?;
        steps::add(size / size_of::<Value>());
        Ok(())
    }

    fn sequence(&mut self) -> Result<Value, YamlError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::Array(items)),
                found => items.push(self.value(found)?),
            }
        }
    }

    fn mapping(&mut self) -> Result<Value, YamlError> {
        let mut map = Map::new();
        // The keys that only a merge has set: the mapping may set them once more.
        let mut merged = HashSet::new();
        loop {
            let found = self.next()?;
            if matches!(found.0, Event::MappingEnd) {
                return Ok(Value::Object(map));
            }
            if is_merge(&found.0) {
                self.key(found)?;
                self.merge(&mut map, &mut merged)?;
                continue;
            }
            let mark = found.1;
            let key = self.key(found)?;
            let value = self.next()?;
            let value = self.value(value)?;
            if map.contains_key(&key) && !merged.remove(&key) {
                self.lost.push(YamlError::at(mark, twice(&key)));
            }
            map.insert(key, value);
        }
    }

    fn key(&mut self, (event, mark): Found) -> Result<String, YamlError> {
        let scalar = match event {
            Event::Scalar(written) => Some(self.scalar(written, mark)?),
            Event::Alias(name) => self.anchored(&name, mark)?.scalar.clone(),
            event => self.value((event, mark)).map(|_| None)?,
        };
        let key = scalar.ok_or_else(|| "a key is a list or a mapping".to_owned()).and_then(Scalar::into_key);
        key.map_err(|problem| YamlError::at(mark, problem))
    }

    /// Takes over the entries of other mappings. As in go-yaml, they replace those before the merge, and of a list the first counts.
    fn merge(&mut self, map: &mut Map<String, Value>, merged: &mut HashSet<String>) -> Result<(), YamlError> {
        let found = self.next()?;
        let mark = found.1;
        let is_list = matches!(found.0, Event::SequenceStart(_));
        let sources = match self.value(found)? {
            source @ Value::Object(_) => vec![source],
            Value::Array(sources) if is_list => sources,
            _ => Vec::from([Value::Null]),
        };
        for source in sources.into_iter().rev() {
            let Value::Object(source) = source else {
                return Err(YamlError::at(mark, "a merge needs a mapping, or a list of mappings"));
            };
            for (key, value) in source {
                if !map.contains_key(&key) {
                    merged.insert(key.clone());
                }
                map.insert(key, value);
            }
        }
        Ok(())
    }
}

fn is_merge(event: &Event) -> bool {
    matches!(event, Event::Scalar(written) if written.text == "<<" && (written.is_plain || of_yaml(written) == Some("merge")))
}

fn scalar(written: &Written) -> Result<Scalar, String> {
    match &written.tag {
        None if written.is_plain => Ok(Scalar::plain(&written.text)),
        None => Ok(Scalar::Text(written.text.clone())),
        Some(_) => Scalar::tagged(of_yaml(written).unwrap_or_default(), &written.text),
    }
}

/// The name of a tag that YAML defines, such as `int`.
fn of_yaml(written: &Written) -> Option<&str> {
    written.tag.as_deref()?.strip_prefix("tag:yaml.org,2002:")
}

/// About how many bytes of memory a value takes.
fn size(value: &Value) -> usize {
    const NODE: usize = size_of::<Value>();
    const ENTRY: usize = 96;
    steps::add(1);
    match value {
        Value::String(text) => NODE + text.len(),
        Value::Array(items) => NODE + items.iter().map(size).sum::<usize>(),
        // A map takes memory for some entries at a time.
        Value::Object(map) if map.is_empty() => NODE,
        Value::Object(map) => 600 + map.iter().map(|(key, value)| ENTRY + key.len() + size(value)).sum::<usize>(),
        _ => NODE,
    }
}

fn depth(value: &Value) -> usize {
    steps::add(1);
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
