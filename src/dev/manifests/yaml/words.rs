//! What the errors of the YAML parser mean to someone who writes manifests.
//!
//! Guarantee: no word of the parser's own reaches a user. Pure.

use granit_parser::ErrorKind;

use super::{ENDS_INSIDE_VALUE, TAB_INDENTS, TEXT_AFTER_VALUE, too_deep};

/// What is missing where a value should be.
pub(super) const VALUE_MISSING: &str = "a value is missing here";

const BAD_DIRECTIVE: &str = "a line that begins with % is a directive, and this one cannot be read";
const BAD_TAG: &str = "a word that begins with ! is a tag, and this one cannot be read; put a text in quotes";
const BAD_ESCAPE: &str = "an escape in a text in double quotes is no character";

/// An error of the parser in plain words.
pub(super) fn plain(kind: &ErrorKind) -> String {
    match kind {
        ErrorKind::UnclosedFlowCollection { open } => format!("the bracket {open} is not closed"),
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => format!("the bracket {open} is closed by a {close}"),
        ErrorKind::UnexpectedCharacter { character } => {
            format!("the character {character:?} is not allowed here; put the text in quotes")
        }
        ErrorKind::RecursionLimitExceeded => too_deep(),
        kind => structure(kind).or_else(|| text(kind)).or_else(|| rest(kind)).unwrap_or("this is not YAML").to_owned(),
    }
}

/// About mappings, lists and indentation.
fn structure(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => {
            "a ':' is not allowed here; a text with ': ' needs quotes, and keys of one mapping have the same indentation"
        }
        ErrorKind::ExpectedBlockMappingKey => "a key is expected here, with the indentation of the keys before it",
        ErrorKind::ExpectedBlockSequenceEntry => {
            "an entry of the list is expected here: a '-' with the indentation of those before it"
        }
        ErrorKind::ExpectedFlowMappingSeparator => "a ',' or a '}' is expected here",
        ErrorKind::ExpectedFlowSequenceSeparator => "a ',' or a ']' is expected here",
        ErrorKind::MisplacedFlowCollectionEnd => "there is a closing bracket without an opening one",
        ErrorKind::BlockSequenceEntryNotAllowed
        | ErrorKind::InvalidBlockEntryWhitespace
        | ErrorKind::BlockEntryInFlowCollection => {
            "an entry of a list, which begins with '- ', is not allowed here; it needs a line of its own, outside of brackets"
        }
        ErrorKind::MappingKeyNotAllowed => "a key is not allowed here; check the indentation",
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => "could not find the ':' after a key",
        ErrorKind::InvalidIndentation | ErrorKind::InvalidFlowScalarIndent => "this line is not indented enough",
        ErrorKind::ExpectedNodeContent | ErrorKind::UnexpectedEndOfPlainScalar => VALUE_MISSING,
        ErrorKind::ExpectedWhitespace
        | ErrorKind::FlowMappingValueAdjacentCollection
        | ErrorKind::InvalidMappingValueWhitespace => "a space is missing here",
        ErrorKind::CommentNotSeparated => "a comment needs a space before its #",
        ErrorKind::UnexpectedEof
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::UnexpectedEofBlockSequence
        | ErrorKind::UnexpectedEofBlockMapping => ENDS_INSIDE_VALUE,
        ErrorKind::ExpectedDocumentStart => TEXT_AFTER_VALUE,
        ErrorKind::InvalidDocumentEnd => "after the '...' of a document only a comment may follow on the same line",
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart => TAB_INDENTS,
        _ => return None,
    })
}

/// About texts.
fn text(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::UnclosedQuotedScalar => "a text in quotes is not closed",
        ErrorKind::InvalidQuotedScalarIndent => "a text in quotes is not closed, or its next line is not indented",
        ErrorKind::DocumentIndicatorInQuotedScalar => "a text in quotes is not closed before the end of the document",
        ErrorKind::InvalidTrailingSingleQuotedScalar | ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            "there is text after the closing quote; put the whole value in quotes"
        }
        ErrorKind::UnknownQuotedScalarEscape => {
            "there is no such escape; in double quotes a backslash is written twice, or use single quotes"
        }
        ErrorKind::InvalidQuotedScalarHexEscape
        | ErrorKind::InvalidLowSurrogateHexEscape
        | ErrorKind::InvalidLowSurrogate
        | ErrorKind::MissingLowSurrogate
        | ErrorKind::UnpairedLowSurrogate
        | ErrorKind::InvalidUnicodeEscape => BAD_ESCAPE,
        ErrorKind::InvalidBlockScalarHeader => {
            "after the | or > of a text only + or -, a number and a comment may follow"
        }
        ErrorKind::ZeroBlockScalarIndent => "the number after the | or > of a text is from 1 to 9",
        ErrorKind::InvalidBlockScalarIndent => "a line of the text has another indentation than its first line",
        ErrorKind::TabInPlainScalar => "a tab is inside a text without quotes; use spaces",
        ErrorKind::CommentInterceptedScalar => "a comment is inside a text of several lines",
        ErrorKind::PlainScalarStartsWithDashFlowIndicator => "a text that begins with a - needs quotes here",
        ErrorKind::BomInsideDocument => "there is a byte order mark inside the document",
        _ => return None,
    })
}

/// About anchors, tags and directives.
fn rest(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::UnknownAnchor => "there is no anchor of this name before the alias",
        ErrorKind::MissingAnchorOrAliasName => "a name is missing after the & or the *; put a text in quotes",
        ErrorKind::UndeclaredTagHandle => "the handle of the tag is not declared",
        ErrorKind::ExpectedTagBang
        | ErrorKind::InvalidGlobalTagCharacter
        | ErrorKind::InvalidTagTerminator
        | ErrorKind::MissingTagUri
        | ErrorKind::UnclosedVerbatimTag
        | ErrorKind::InvalidTagEscape
        | ErrorKind::InvalidTagUtf8LeadingByte
        | ErrorKind::InvalidTagUtf8TrailingByte
        | ErrorKind::InvalidTagUtf8 => BAD_TAG,
        ErrorKind::MissingDocumentEndBeforeDirective
        | ErrorKind::DuplicateVersionDirective
        | ErrorKind::UnsupportedYamlMajorVersion
        | ErrorKind::DuplicateTagDirective
        | ErrorKind::ExpectedTagDirectiveBang
        | ErrorKind::InvalidDirectiveTerminator
        | ErrorKind::DirectiveDisallowed
        | ErrorKind::MissingYamlVersionSeparator
        | ErrorKind::MissingDirectiveName
        | ErrorKind::InvalidDirectiveName
        | ErrorKind::DirectiveByteLimitExceeded { .. }
        | ErrorKind::TooManyReservedDirectiveParams { .. }
        | ErrorKind::YamlVersionTooLong
        | ErrorKind::MissingYamlVersion
        | ErrorKind::InvalidTagDirectiveTerminator => BAD_DIRECTIVE,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
