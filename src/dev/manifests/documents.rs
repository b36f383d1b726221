//! Splits the text of a file into documents, and documents into objects.
//!
//! Guarantees: a file has the documents that kubectl reads, or an error in one of them. Each document has its first line in the
//! file. A text that is no document, such as a comment before the first `---`, is none of its own. Objects in lists are found. Pure.
//!
//! Matches `YAMLOrJSONDecoder` of k8s.io/apimachinery.

use std::rc::Rc;

use apimachinery::steps;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::lists::{Expanded, ListFault, expand};
use super::scalars::float;
use super::yaml::{BYTE_ORDER_MARK, Reading, YamlError};
use super::{json, yaml};

/// A document of a file.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its first line in the file, counted from 1.
    pub line: usize,
    /// Its text, with what follows its `---`.
    pub text: String,
    /// How many characters are before it on its first line.
    column: usize,
    form: Form,
}

/// What a document contains.
#[derive(Debug)]
pub(crate) struct Content {
    /// The objects, each with its place.
    pub objects: Vec<(Place, Value)>,
    /// What kubectl loses without a word: the first of two equal keys, text after the document's value, and bytes that are no text.
    pub lost: Vec<YamlError>,
    /// Why kubectl refuses the list around the objects.
    pub list_fault: Option<ListFault>,
}

/// The place of an object in its document: in which list, by the list's path, and its number there, if it is not alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place(Option<(Rc<str>, usize)>);

impl Place {
    /// The place of an item of the list with that path.
    pub(super) fn item(list: &Rc<str>, number: usize) -> Self {
        Self(Some((Rc::clone(list), number)))
    }

    /// The path in the document, such as `items[1].spec`, of a field of the object.
    pub fn field(&self, field: &str) -> String {
        match &self.0 {
            Some((list, number)) => format!("{list}[{number}].{field}"),
            None => field.to_owned(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Yaml,
    Json,
    /// kubectl does not read it, and no document after it.
    Refused(&'static str),
}

const AFTER_MARKER: &str =
    "after --- only a comment may follow on the same line; kubectl refuses this document and all after it";
const AFTER_JSON: &str = "after two JSON values only JSON may follow; kubectl refuses what is here, and all after it";

impl Document {
    /// A document of YAML.
    pub fn yaml(line: usize, text: String) -> Self {
        Self { line, text, column: 0, form: Form::Yaml }
    }

    /// The objects: none in an empty document, and the items of a List.
    ///
    /// # Errors
    /// The first fault, with its line in the file.
    pub fn objects(&self) -> Result<Vec<Value>, YamlError> {
        Ok(self.content()?.objects.into_iter().map(|(_, object)| object).collect())
    }

    /// The objects, each with its place in the document, and what kubectl loses.
    ///
    /// # Errors
    /// The first fault, with its line in the file.
    pub fn content(&self) -> Result<Content, YamlError> {
        let read = match self.form {
            Form::Yaml => yaml::read(&self.text)
                .map_err(|error| conflict(&self.text).or_else(|| unquoted(&self.text, &error)).unwrap_or(error)),
            Form::Json => json::read(&self.text),
            Form::Refused(problem) => Err(YamlError { line: 1, column: None, problem: problem.to_owned() }),
        };
        let Reading { value, mut lost } = read.map_err(|error| self.in_file(error))?;
        lost.extend(replaced(&self.text));
        let expanded = expand(as_sent(value));
        let Expanded { objects, fault } =
            expanded.map_err(|problem| self.in_file(YamlError { line: 1, column: None, problem }))?;
        Ok(Content { objects, list_fault: fault, lost: lost.into_iter().map(|error| self.in_file(error)).collect() })
    }

    /// An error of the document with its line in the file.
    fn in_file(&self, error: YamlError) -> YamlError {
        let before = if error.line == 1 { self.column } else { 0 };
        let column = error.column.map(|column| column + before);
        YamlError { line: self.line + error.line.saturating_sub(1), column, ..error }
    }
}

/// The value as kubectl sends it: it has integers beyond an `i64` as floats.
fn as_sent(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            number.as_f64().and_then(float).unwrap_or(Value::Number(number))
        }
        Value::Array(items) => items.into_iter().map(as_sent).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key, as_sent(value))).collect(),
        value => value,
    }
}

/// That a text has bytes of another encoding, which were replaced when it was read.
fn replaced(text: &str) -> Option<YamlError> {
    let at = text.find(char::REPLACEMENT_CHARACTER)?;
    let line = 1 + text[..at].matches('\n').count();
    Some(YamlError { line, column: None, problem: "a byte is no UTF-8, and is read as U+FFFD".to_owned() })
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// Splits a file. It consists of JSON values one after another, as jq writes them, or of YAML between `---` lines; what follows
/// a single JSON value may be YAML, too.
pub(crate) fn documents(text: &str) -> Vec<Document> {
    let (mut documents, rest) = json_values(text);
    if documents.len() < 2 {
        yaml_documents(rest, &mut documents);
    } else if !rest.text.trim().is_empty() {
        let (line, _) = position(rest.line, 0, &rest.text[..rest.text.len() - rest.text.trim_start().len()]);
        documents.push(Document { line, form: Form::Refused(AFTER_JSON), ..rest });
    }
    documents
}

/// The JSON values at the beginning of a text whose first one is an object, and what follows them.
fn json_values(text: &str) -> (Vec<Document>, Document) {
    let mut values = Vec::new();
    if !text.trim_start().starts_with('{') {
        return (values, Document::yaml(1, text.to_owned()));
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let (mut line, mut column, mut end) = (1, 0, 0);
    while let Some(Ok(_)) = stream.next() {
        let start = text.len() - text[end..].trim_start().len();
        (line, column) = position(line, column, &text[end..start]);
        end = stream.byte_offset();
        let value = Document { line, text: text[start..end].to_owned(), column, form: Form::Json };
        (line, column) = position(line, column, &value.text);
        values.push(value);
    }
    (values, Document { column, ..Document::yaml(line, text[end..].to_owned()) })
}

/// The line and the column behind a text.
fn position(line: usize, column: usize, text: &str) -> (usize, usize) {
    steps::add(text.len());
    match text.rfind('\n') {
        Some(at) => (line + text.matches('\n').count(), text[at + 1..].chars().count()),
        None => (line, column + text.chars().count()),
    }
}

/// Adds the documents of YAML, of which the first one may lack its `---`.
fn yaml_documents(Document { line: first_line, text, column, .. }: Document, documents: &mut Vec<Document>) {
    let mut current = Document { column, ..Document::yaml(first_line, String::new()) };
    let mut is_after_marker = false;
    for (number, line) in text.lines().enumerate() {
        steps::add(1);
        let Some(rest) = line.strip_prefix("---") else {
            // A file that was appended to another one may have brought its byte order mark.
            let is_first = std::mem::take(&mut is_after_marker);
            current.text.push_str(line.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(line));
            current.text.push('\n');
            continue;
        };
        is_after_marker = true;
        let form = if is_comment(rest) { Form::Yaml } else { Form::Refused(AFTER_MARKER) };
        let next = Document { form, ..Document::yaml(first_line + number, format!("{}\n", rest.trim_start())) };
        add(std::mem::replace(&mut current, next), documents);
    }
    if documents.is_empty() { documents.push(current) } else { add(current, documents) }
}

/// Adds a document if it is more than comments.
fn add(document: Document, documents: &mut Vec<Document>) {
    if document.form != Form::Yaml || !document.text.lines().all(is_comment) {
        documents.push(document);
    }
}

/// That a document has the marks of a merge that Git could not do.
fn conflict(document: &str) -> Option<YamlError> {
    let mark = ["<<<<<<< ", ">>>>>>> "];
    let at = document.lines().position(|line| mark.iter().any(|mark| line.starts_with(mark)))?;
    Some(YamlError { line: at + 1, column: None, problem: "a merge conflict of Git is not resolved".to_owned() })
}

/// What is wrong with a document in which a value has no quotes and begins with a character that means something in YAML, as
/// schedules do. It is in the line of the `error`.
fn unquoted(document: &str, error: &YamlError) -> Option<YamlError> {
    let line = document.lines().nth(error.line.checked_sub(1)?)?;
    let pairs = line.match_indices(": ").map(|(at, colon)| (&line[..at], line[at + colon.len()..].trim_start()));
    let mut found = pairs.filter_map(|(before, value)| {
        let first = value.chars().next().filter(|first| matches!(first, '*' | '@' | '%' | '`'))?;
        // What follows an alias's star is a name.
        let is_alias = first == '*' && value[1..].starts_with(char::is_alphanumeric);
        let key = key_at_end(before)?;
        // In braces a comma ends the value. They are often on the lines before.
        let ends: &[char] = if before.contains('{') || value.ends_with('}') { &[',', '}'] } else { &[] };
        let value = value.split(" #").next().unwrap_or_default();
        let value = value.split(ends).next().unwrap_or_default().trim();
        (!is_alias).then(|| format!("a value that begins with {first} needs quotes: {key}: \"{value}\""))
    });
    Some(YamlError { line: error.line, column: None, problem: found.next()? })
}

/// The key, with or without quotes, that is all of a line or follows a bracket, a comma or a dash.
fn key_at_end(line: &str) -> Option<&str> {
    let line = line.trim();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let bare = |quote: char| {
        let rest = line.strip_suffix(quote)?;
        let start = rest.rfind(quote)?;
        Some((&rest[..start], &rest[start + 1..]))
    };
    let plain = || {
        let start =
            line.rfind(|c: char| !is_part(c)).map_or(0, |at| at + line[at..].chars().next().map_or(1, char::len_utf8));
        line.split_at(start)
    };
    let (before, key) = bare('"').or_else(|| bare('\'')).unwrap_or_else(plain);
    let before = before.trim_end();
    let is_key = !key.is_empty() && key.chars().all(is_part);
    let is_first = before.chars().all(|c| c == '-' || c == ' ') || before.ends_with(['{', ',', '[']);
    (is_key && is_first).then_some(key)
}

#[cfg(test)]
mod tests;
