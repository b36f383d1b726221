//! The line of each field of a manifest.
//!
//! Guarantees: a document is read once, however many fields are looked up. A lookup takes as many steps as the field's path.
//! Keys and list items are followed by their indentation, as in YAML's block style and in indented JSON. A field without a line
//! of its own, such as one in braces or one that is missing, is on the line of the nearest field around it. Pure.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use apimachinery::steps;

use crate::dev::manifests::Document;

/// A step on the way to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

/// The number of a field in the index. The document itself is the first.
type Node = usize;
const ROOT: Node = 0;

/// The first line of each field that a document has.
pub(super) struct Lines<'a> {
    /// By the field around it.
    fields: HashMap<(Node, Step<'a>), Node>,
    /// The line of each field in the file, counted from 1.
    lines: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Reads a document.
    pub fn of(document: &'a Document) -> Self {
        let numbered = || document.text.lines().enumerate();
        let is_first = |line: &str| content(line).is_some_and(|(_, text)| !text.starts_with("---"));
        let first = numbered().find(|(_, line)| is_first(line)).map_or(0, |(number, _)| number);
        let mut index = Self { fields: HashMap::new(), lines: vec![document.line + first] };
        // The fields around the present line, each with its column.
        let mut path: Vec<(usize, Step<'a>, Node)> = Vec::new();
        for (number, line) in numbered() {
            steps::add(1);
            let Some((mut column, mut rest)) = content(line) else { continue };
            let line = document.line + number;
            while let Some(after) = rest.strip_prefix('-').filter(|after| after.is_empty() || after.starts_with(' ')) {
                leave(&mut path, |at| at > column);
                let item = match path.last() {
                    Some((at, Step::Item(number), _)) if *at == column => number + 1,
                    _ => 0,
                };
                if item > 0 {
                    path.pop();
                }
                index.enter(&mut path, column, Step::Item(item), line);
                let trimmed = after.trim_start();
                column += rest.len() - trimmed.len();
                rest = trimmed;
            }
            if let Some(key) = key(rest).filter(|_| !rest.starts_with('#')) {
                leave(&mut path, |at| at >= column);
                index.enter(&mut path, column, Step::Key(key), line);
            }
        }
        index
    }

    fn enter(&mut self, path: &mut Vec<(usize, Step<'a>, Node)>, column: usize, step: Step<'a>, line: usize) {
        steps::add(1);
        let around = path.last().map_or(ROOT, |(.., node)| *node);
        let node = match self.fields.entry((around, step)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.lines.push(line);
                *new.insert(self.lines.len() - 1)
            }
        };
        path.push((column, step, node));
    }

    /// The line in the file, counted from 1, of the field with a path such as `items[1].spec`.
    pub fn line_of(&self, field: &str) -> usize {
        let mut node = ROOT;
        for step in path_of(field) {
            steps::add(1);
            let Some(inner) = self.fields.get(&(node, step)) else { break };
            node = *inner;
        }
        self.lines[node]
    }
}

/// Leaves the fields whose columns are `beyond` a line's.
fn leave<T>(path: &mut Vec<(usize, T, Node)>, beyond: impl Fn(usize) -> bool) {
    while path.pop_if(|(column, ..)| beyond(*column)).is_some() {
        steps::add(1);
    }
}

/// The steps of a field's path, such as `spec.containers[0].env[PATH]`.
fn path_of(field: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    let mut rest = field;
    while !rest.is_empty() {
        rest = rest.trim_start_matches('.');
        let bracketed = rest.strip_prefix('[').and_then(|inner| inner.split_once(']'));
        let (step, after) = if let Some((inner, after)) = bracketed {
            (inner.parse().map_or(Step::Key(inner), Step::Item), after)
        } else {
            let (key, after) = rest.split_at(rest.find(['.', '[']).filter(|at| *at > 0).unwrap_or(rest.len()));
            (Step::Key(key), after)
        };
        steps.push(step);
        rest = after;
    }
    steps
}

/// The column and the text of a line that is neither empty nor a comment.
fn content(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start();
    (!text.is_empty() && !text.starts_with('#')).then(|| (line.len() - text.len(), text.trim_end()))
}

/// The key with which a line begins.
fn key(text: &str) -> Option<&str> {
    let end = text.find(": ").or_else(|| text.strip_suffix(':').map(str::len))?;
    Some(text[..end].trim().trim_matches(['"', '\'']))
}

#[cfg(test)]
mod tests;
