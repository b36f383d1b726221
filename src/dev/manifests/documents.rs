//! Splits the text of a file into documents.
//!
//! Guarantees: each document has its first line in the file. A text that is no document, such as a comment before the first `---`,
//! is none of its own. Pure.

use serde::de::IgnoredAny;

/// A document of a file.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// Its first line in the file, counted from 1.
    pub line: usize,
    /// Its text, with what follows its `---`.
    pub text: String,
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// Splits a file at its `---` lines, of which the first document may lack one, and JSON after each value.
pub(crate) fn documents(text: &str) -> Vec<Document> {
    let mut documents = Vec::new();
    let mut current = Document { line: 1, text: String::new() };
    for (index, line) in text.lines().enumerate() {
        let marked = line.strip_prefix("---").filter(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if let Some(rest) = marked {
            let ended = std::mem::replace(&mut current, Document { line: index + 1, text: format!("{rest}\n") });
            // Only comments before a marker are no document of their own.
            if !ended.text.lines().all(is_comment) {
                values(ended, &mut documents);
            }
            continue;
        }
        current.text.push_str(line);
        current.text.push('\n');
    }
    values(current, &mut documents);
    documents
}

/// Adds the document to `documents`, or each of its values if they are JSON objects one after another, as jq writes them.
fn values(document: Document, documents: &mut Vec<Document>) {
    let text = document.text.as_str();
    let mut start = text.len() - text.trim_start().len();
    if !text[start..].starts_with('{') {
        return documents.push(document);
    }
    let (mut line, mut counted) = (document.line, 0);
    let mut found = Vec::new();
    while text[start..].starts_with('{') {
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<IgnoredAny>();
        if !matches!(values.next(), Some(Ok(_))) {
            break;
        }
        let end = start + values.byte_offset();
        line += text[counted..start].matches('\n').count();
        counted = start;
        found.push(Document { line, text: text[start..end].to_owned() });
        start = text.len() - text[end..].trim_start().len();
    }
    let rest = &text[start..];
    if found.len() > 1 || (found.len() == 1 && !rest.lines().all(is_comment)) {
        documents.append(&mut found);
        if !rest.lines().all(is_comment) {
            line += text[counted..start].matches('\n').count();
            documents.push(Document { line, text: rest.to_owned() });
        }
    } else {
        documents.push(document);
    }
}

#[cfg(test)]
mod tests;
