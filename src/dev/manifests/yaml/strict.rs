//! What kubectl refuses or reads otherwise, and the parser accepts, because it reads YAML 1.2.
//!
//! Guarantee: each character of the document is looked at a bounded number of times. Pure.

use apimachinery::steps;
use granit_parser::{Event, Marker, ScalarStyle, Span, StructureStyle};

use super::{TAB_INDENTS, YamlError};

/// Refuses the characters that YAML 1.1 does not have.
///
/// # Errors
/// The first of them.
pub(super) fn characters(text: &str) -> Result<(), YamlError> {
    let is_refused = |c: char| {
        matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}')
            || matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    let Some(at) = text.find(is_refused) else { return Ok(()) };
    let code = text[at..].chars().next().map_or(0, u32::from);
    Err(error_at(text, at, format!("the character U+{code:04X} is not allowed")))
}

/// An error at a byte of a text.
fn error_at(text: &str, at: usize, problem: impl Into<String>) -> YamlError {
    let before = &text[..at];
    let column = before.chars().rev().take_while(|c| *c != '\n').count();
    YamlError { line: before.matches('\n').count() + 1, column: Some(column + 1), problem: problem.into() }
}

/// Judges the events of a document in their order.
pub(super) struct Strict<'a> {
    text: &'a str,
    /// Where the last token ended.
    end: usize,
    /// The lists and mappings around the next token.
    styles: Vec<StructureStyle>,
}

impl<'a> Strict<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, end: 0, styles: Vec::new() }
    }

    /// # Errors
    /// When kubectl refuses what comes before the event or the event itself, or gives it another value.
    pub fn judge(&mut self, event: &Event<'_>, span: Span) -> Result<(), YamlError> {
        match event {
            Event::SequenceStart(style, ..) | Event::MappingStart(style, ..) => {
                self.indentation(span.start)?;
                self.styles.push(*style);
            }
            // A value that is left out has no text.
            Event::Scalar(..) if span.is_empty() => {}
            Event::Scalar(_, style, ..) => {
                self.indentation(span.start)?;
                match style {
                    ScalarStyle::Plain if self.is_in_flow() => self.plain_in_flow(span)?,
                    ScalarStyle::DoubleQuoted => self.escapes(span)?,
                    _ => {}
                }
            }
            Event::Alias(_) | Event::StreamEnd => self.indentation(span.start)?,
            Event::SequenceEnd | Event::MappingEnd => drop(self.styles.pop()),
            _ => return Ok(()),
        }
        if let Some(range) = span.byte_range().filter(|range| !range.is_empty()) {
            self.end = self.end.max(range.end);
        }
        Ok(())
    }

    fn is_in_flow(&self) -> bool {
        self.styles.last() == Some(&StructureStyle::Flow)
    }

    /// Refuses a tab between the last token and this one in the places where YAML 1.1 takes it for indentation: at the beginning
    /// of a line, and after the `-` or `?` of an entry.
    ///
    /// # Errors
    /// The first such tab.
    pub fn indentation(&self, start: Marker) -> Result<(), YamlError> {
        let start = start.byte_offset().unwrap_or(self.end).max(self.end);
        if self.is_in_flow() {
            return Ok(());
        }
        // A text after `|` ends in front of the next token.
        let line = self.text[..self.end].trim_end_matches(' ');
        let mut is_indentation = line.is_empty() || line.ends_with('\n');
        let mut is_comment = false;
        let gap = &self.text.as_bytes()[self.end..start];
        steps::add(gap.len());
        for (at, byte) in gap.iter().enumerate() {
            match byte {
                b'\n' => (is_indentation, is_comment) = (true, false),
                _ if is_comment => {}
                b'#' => is_comment = true,
                // Only before an error of the parser, and then within a text.
                b'"' | b'\'' => return Ok(()),
                b'\t' if is_indentation => return Err(self.tab(self.end + at)),
                b' ' | b'\t' | b'\r' => {}
                // A colon that begins a line belongs to a `?`.
                byte => is_indentation = matches!(byte, b'-' | b'?') || (*byte == b':' && is_indentation),
            }
        }
        Ok(())
    }

    /// Refuses what is another text in YAML 1.1, where a key without quotes ends at a colon with a space only, and any text at a `?`.
    fn plain_in_flow(&self, span: Span) -> Result<(), YamlError> {
        let Some(range) = span.byte_range() else { return Ok(()) };
        let after = &self.text.as_bytes()[range.end..];
        if after.first() == Some(&b':') && after.get(1).is_some_and(|byte| b",[]{}".contains(byte)) {
            return Err(YamlError::at(span.end, "the colon after a key needs a space behind it"));
        }
        if self.text[range].contains('?') {
            return Err(YamlError::at(span.start, "a text with a ? needs quotes within braces and brackets"));
        }
        Ok(())
    }

    /// Refuses the escapes of JSON that YAML 1.1 does not have.
    fn escapes(&self, span: Span) -> Result<(), YamlError> {
        let Some(range) = span.byte_range() else { return Ok(()) };
        steps::add(range.len());
        let mut rest = &self.text[range.clone()];
        while let Some((_, escape)) = rest.split_once('\\') {
            let at = range.end - escape.len() - 1;
            let is_surrogate =
                |code: &str| matches!(code.as_bytes(), [b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', ..]);
            if escape.starts_with('/') || escape.strip_prefix('u').is_some_and(is_surrogate) {
                return Err(error_at(self.text, at, "an escape that only JSON has"));
            }
            rest = escape.get(1..).unwrap_or_default();
        }
        Ok(())
    }

    fn tab(&self, at: usize) -> YamlError {
        error_at(self.text, at, TAB_INDENTS)
    }
}
