//! Reads a YAML document as kubectl does.
//!
//! Guarantees: the value is the one that kubectl sends to the API server, except that a key that occurs twice, and text after the
//! document's value, are errors here. Every error has its line in the document. The work and the memory grow with the length of the
//! document, whatever is in it: what aliases repeat and how deep values are nested is bounded. Pure.

mod strict;
mod words;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use apimachinery::steps;
use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag, options};
use serde_json::{Map, Value};

use super::scalars::Scalar;
use strict::Strict;

/// The deepest nesting of a document that is read. The embedded API server reads little more.
pub(super) const DEEPEST: usize = 100;
/// What aliases may repeat beyond [`ALIASED_PER_BYTE`], in bytes of memory. No manifest comes near it.
const ALIASED: usize = 12 << 20;
/// What aliases may repeat for each byte of the document, in bytes of memory.
const ALIASED_PER_BYTE: usize = 32;

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
    fn at(mark: Marker, problem: impl Into<String>) -> Self {
        Self { line: mark.line(), column: Some(mark.col() + 1), problem: problem.into() }
    }
}

/// The value of a document; null for one without a value.
///
/// # Errors
/// The first fault.
pub(super) fn read(text: &str) -> Result<Value, YamlError> {
    // A file that was appended to another one may have brought its byte order mark.
    let text = match text.split_once('\u{feff}') {
        Some((before, after)) if before.trim().is_empty() => Cow::Owned(format!("{before}{after}")),
        _ => Cow::Borrowed(text),
    };
    strict::characters(&text)?;
    Loader::new(&text).document()
}

impl From<&ScanError> for YamlError {
    fn from(error: &ScanError) -> Self {
        Self::at(*error.marker(), words::plain(error.kind()))
    }
}

/// The problem of a document, or of a JSON value, that is nested too deep.
pub(super) fn too_deep() -> String {
    format!("values are nested more than {DEEPEST} levels deep")
}

/// The problem of a key that occurs twice.
pub(super) fn twice(key: &str) -> String {
    format!("the key {key:?} occurs twice in the same mapping")
}

struct Loader<'a> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Anchored>,
    /// How much more aliases may repeat, in bytes of memory.
    allowance: usize,
    depth: usize,
    strict: Strict<'a>,
}

/// A value that aliases repeat.
struct Anchored {
    value: Value,
    size: usize,
    depth: usize,
}

/// An event with its position.
type Found<'a> = (Event<'a>, Span);

impl<'a> Loader<'a> {
    fn new(text: &'a str) -> Self {
        let options = options! { emit_comments: false };
        Self {
            text,
            parser: Parser::new_from_str_with_options(text, options),
            anchors: HashMap::new(),
            allowance: text.len().saturating_mul(ALIASED_PER_BYTE).saturating_add(ALIASED),
            depth: 0,
            strict: Strict::new(text),
        }
    }

    /// The only value of the document.
    fn document(mut self) -> Result<Value, YamlError> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(..), _) => {}
                (Event::StreamEnd, _) => return Ok(Value::Null),
                found => {
                    let value = self.value(found)?;
                    return self.end().map(|()| value);
                }
            }
        }
    }

    /// Makes sure that nothing follows the value. kubectl would ignore it, and so lose, for example, the second of two objects
    /// in braces.
    fn end(&mut self) -> Result<(), YamlError> {
        loop {
            match self.next()? {
                (Event::DocumentEnd, _) => {}
                (Event::StreamEnd, _) => return Ok(()),
                (_, span) => return Err(YamlError::at(span.start, TEXT_AFTER_VALUE)),
            }
        }
    }

    fn next(&mut self) -> Result<Found<'a>, YamlError> {
        steps::add(1);
        let Some(event) = self.parser.next_event() else {
            return Err(YamlError::at(Marker::default(), ENDS_INSIDE_VALUE));
        };
        // A tab may be why the parser lost its way.
        let (event, span) =
            event.or_else(|error| self.strict.indentation(*error.marker()).and(Err(self.fault(&error))))?;
        self.strict.judge(&event, span)?;
        Ok((event, span))
    }

    /// The parser's error. Where a value is missing before the end of the text, the parser says that the text ends.
    fn fault(&self, error: &ScanError) -> YamlError {
        let (mark, error) = (*error.marker(), YamlError::from(error));
        let mut after = self.text.lines().skip(mark.line().saturating_sub(1));
        let has_more = after.next().is_some_and(|line| !line.chars().skip(mark.col()).all(char::is_whitespace))
            || after.any(|line| !line.trim().is_empty());
        let is_early = error.problem == ENDS_INSIDE_VALUE && has_more;
        if is_early { YamlError { problem: words::VALUE_MISSING.to_owned(), ..error } } else { error }
    }

    fn value(&mut self, (event, span): Found<'a>) -> Result<Value, YamlError> {
        let (value, anchor) = match event {
            Event::Alias(id) => return self.repeat(id, span),
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(&text, style, tag.as_deref()).and_then(Scalar::into_value);
                (value.map_err(|problem| YamlError::at(span.start, problem))?, anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.enter(span)?;
                (self.sequence()?, anchor)
            }
            Event::MappingStart(_, anchor, _) => {
                self.enter(span)?;
                (self.mapping()?, anchor)
            }
            _ => return Err(YamlError::at(span.start, "there is no value")),
        };
        if matches!(value, Value::Array(_) | Value::Object(_)) {
            self.depth -= 1;
        }
        if anchor != 0 {
            self.keep(anchor, &value, span)?;
        }
        Ok(value)
    }

    /// Keeps what an anchor stands for.
    fn keep(&mut self, anchor: usize, value: &Value, span: Span) -> Result<(), YamlError> {
        let (size, depth) = (size(value), depth(value));
        self.spend(size, span)?;
        self.anchors.insert(anchor, Anchored { value: value.clone(), size, depth });
        Ok(())
    }

    fn enter(&mut self, span: Span) -> Result<(), YamlError> {
        self.depth += 1;
        if self.depth > DEEPEST { Err(YamlError::at(span.start, too_deep())) } else { Ok(()) }
    }

    /// What an anchor stands for.
    fn repeat(&mut self, id: usize, span: Span) -> Result<Value, YamlError> {
        let Some(&Anchored { size, depth, .. }) = self.anchors.get(&id) else {
            let name = span.slice(self.text).unwrap_or("*").trim_start_matches('*');
            return Err(YamlError::at(span.start, format!("the value of the anchor {name} contains itself")));
        };
        if self.depth + depth > DEEPEST {
            return Err(YamlError::at(span.start, too_deep()));
        }
        self.spend(size, span)?;
        Ok(self.anchors[&id].value.clone())
    }

    /// Counts a copy of a value of this size, whose work is that of its values.
    fn spend(&mut self, size: usize, span: Span) -> Result<(), YamlError> {
        let excessive = || YamlError::at(span.start, "its aliases repeat too much");
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
                self.merge(&mut map, &mut merged)?;
                continue;
            }
            let span = found.1;
            let key = self.key(found)?;
            let value = self.next()?;
            let value = self.value(value)?;
            if map.contains_key(&key) && !merged.remove(&key) {
                return Err(YamlError::at(span.start, twice(&key)));
            }
            map.insert(key, value);
        }
    }

    fn key(&mut self, (event, span): Found<'a>) -> Result<String, YamlError> {
        let key = match event {
            Event::Scalar(text, style, anchor, tag) => match scalar(&text, style, tag.as_deref()) {
                Ok(key) => {
                    // A number that no value can be is still a key.
                    if anchor != 0
                        && let Ok(value) = key.clone().into_value()
                    {
                        self.keep(anchor, &value, span)?;
                    }
                    key.into_key()
                }
                Err(problem) => Err(problem),
            },
            event => match self.value((event, span))? {
                Value::String(text) => Ok(text),
                Value::Bool(value) => Ok(value.to_string()),
                Value::Number(number) => Ok(number.to_string()),
                Value::Null => Scalar::Null.into_key(),
                Value::Array(_) | Value::Object(_) => Err("a key is a list or a mapping".to_owned()),
            },
        };
        key.map_err(|problem| YamlError::at(span.start, problem))
    }

    /// Takes over the entries of other mappings. As in go-yaml, they replace those before the merge, and of a list the first counts.
    fn merge(&mut self, map: &mut Map<String, Value>, merged: &mut HashSet<String>) -> Result<(), YamlError> {
        let found = self.next()?;
        let span = found.1;
        let is_list = matches!(found.0, Event::SequenceStart(..));
        let sources = match self.value(found)? {
            source @ Value::Object(_) => vec![source],
            Value::Array(sources) if is_list => sources,
            _ => Vec::from([Value::Null]),
        };
        for source in sources.into_iter().rev() {
            let Value::Object(source) = source else {
                return Err(YamlError::at(span.start, "a merge needs a mapping, or a list of mappings"));
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

fn is_merge(event: &Event<'_>) -> bool {
    match event {
        Event::Scalar(text, style, _, tag) if text == "<<" => match tag.as_deref() {
            None => *style == ScalarStyle::Plain,
            Some(tag) => of_yaml(tag).as_deref() == Some("merge"),
        },
        _ => false,
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Scalar, String> {
    match tag {
        None if style == ScalarStyle::Plain => Ok(Scalar::plain(text)),
        None => Ok(Scalar::Text(text.to_owned())),
        Some(tag) => Scalar::tagged(of_yaml(tag).as_deref().unwrap_or_default(), text),
    }
}

/// The name of a tag that YAML defines, such as `int`.
fn of_yaml(tag: &Tag) -> Option<String> {
    format!("{}{}", tag.handle(), tag.suffix()).strip_prefix("tag:yaml.org,2002:").map(str::to_owned)
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
use tests::documents_of_every_fault;

#[cfg(test)]
mod tests;
