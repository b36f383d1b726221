//! The line of a field in a manifest.
//!
//! Guarantees: keys and list items are followed by their indentation, as in YAML's block style and in indented JSON. A field
//! without a line of its own, such as one in braces or one that is missing, is on the line of the nearest field around it. Pure.

use crate::dev::manifests::Document;

/// A step on the way to a field.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Item(usize),
}

/// The line in the file, counted from 1, of `field` in an object of a document. `item` is the object's number in a List.
pub(super) fn line_of(document: &Document, item: usize, field: &str) -> usize {
    let own = steps(field);
    let in_list = [vec![Step::Key("items".to_owned()), Step::Item(item)], own.clone()].concat();
    let found = match nearest(&document.text, &in_list) {
        Some((2.., line)) => Some(line),
        _ => nearest(&document.text, &own).map(|(_, line)| line),
    };
    let first =
        || document.text.lines().position(|line| content(line).is_some_and(|(_, text)| !text.starts_with("---")));
    document.line + found.or_else(first).unwrap_or_default()
}

/// The steps of a field's path, such as `spec.containers[0].env[PATH]`.
fn steps(field: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = field;
    while !rest.is_empty() {
        rest = rest.trim_start_matches('.');
        let bracketed = rest.strip_prefix('[').and_then(|inner| inner.split_once(']'));
        let (step, after) = if let Some((inner, after)) = bracketed {
            (inner.parse().map_or_else(|_| Step::Key(inner.to_owned()), Step::Item), after)
        } else {
            let (key, after) = rest.split_at(rest.find(['.', '[']).filter(|at| *at > 0).unwrap_or(rest.len()));
            (Step::Key(key.to_owned()), after)
        };
        steps.push(step);
        rest = after;
    }
    steps
}

/// The number of the first steps of `wanted` that the text has, if any, and the line of the last of them, counted from 0.
fn nearest(text: &str, wanted: &[Step]) -> Option<(usize, usize)> {
    let mut best = None;
    let mut path: Vec<(usize, Step)> = Vec::new();
    let mut note = |path: &[(usize, Step)], line| {
        let fits = path.len() <= wanted.len() && path.iter().zip(wanted).all(|((_, step), wanted)| step == wanted);
        if fits && best.is_none_or(|(depth, _)| path.len() > depth) {
            best = Some((path.len(), line));
        }
    };
    for (line, text) in text.lines().enumerate() {
        let Some((mut column, mut rest)) = content(text) else { continue };
        while let Some(after) = rest.strip_prefix('-').filter(|after| after.is_empty() || after.starts_with(' ')) {
            path.truncate(path.iter().take_while(|(at, _)| *at <= column).count());
            match path.last_mut() {
                Some((at, Step::Item(number))) if *at == column => *number += 1,
                _ => path.push((column, Step::Item(0))),
            }
            note(&path, line);
            let trimmed = after.trim_start();
            column += rest.len() - trimmed.len();
            rest = trimmed;
        }
        if let Some(key) = key(rest).filter(|_| !rest.starts_with('#')) {
            path.truncate(path.iter().take_while(|(at, _)| *at < column).count());
            path.push((column, Step::Key(key.to_owned())));
            note(&path, line);
        }
    }
    best
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
mod tests {
    use super::*;

    const YAML: &str = "--- # the first\n# a comment\napiVersion: batch/v1\nspec:\n  schedule: '* * * * *'\n  list:\n  - name: a\n    \
                        image: b\n  - - x\n  - # nothing\n    name: c\n  after: {flow: 1}\n  \"quoted\": |\n    schedule: text\n";

    #[test]
    fn field_is_on_its_line_or_on_that_of_the_nearest_field_around_it() {
        let rows = [
            ("the whole object", "", 13),
            ("a key", "spec.schedule", 15),
            ("a list", "spec.list", 16),
            ("an item", "spec.list[0]", 17),
            ("a key in an item", "spec.list[0].image", 18),
            ("an item in an item", "spec.list[1][0]", 19),
            ("a later item", "spec.list[2].name", 21),
            ("a key after a list", "spec.after", 22),
            ("in braces", "spec.after.flow", 22),
            ("a key in quotes", "spec.quoted", 23),
            ("a missing one", "spec.list[0].command", 17),
            ("a missing one at the top", "metadata.name", 13),
            ("a key in brackets", "spec[after]", 22),
        ];
        let document = Document { line: 11, text: YAML.to_owned() };
        for (sentence, field, want) in rows {
            assert_eq!(line_of(&document, 0, field), want, "{sentence}");
        }
    }

    #[test]
    fn object_of_a_list_and_indented_json_are_followed_too() {
        let list = "kind: List\nitems:\n- kind: a\n- kind: b\n  spec:\n    x: 1\n";
        let json = "{\n  \"kind\": \"a\",\n  \"spec\": {\n    \"x\": 1\n  }\n}\n";
        for (text, item, want) in [(list, 1, 6), (list, 0, 3), (json, 0, 4)] {
            let document = Document { line: 1, text: text.to_owned() };
            assert_eq!(line_of(&document, item, "spec.x"), want, "{text}");
        }
    }
}
