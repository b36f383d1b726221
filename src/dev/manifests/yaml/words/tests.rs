use super::super::{documents_of_every_fault, read};
use super::*;

/// Words of the grammar of YAML and of parsers, which mean nothing to someone who writes manifests.
const JARGON: [&str; 20] = [
    "while parsing",
    "while scanning",
    "did not find",
    "context",
    "eof",
    "scalar",
    "flow",
    "block",
    "indicator",
    "sequence",
    "simple key",
    "collection",
    "token",
    "node",
    "surrogate",
    "verbatim",
    "percent",
    "utf-8",
    "recursion",
    "stream",
];

/// Every kind of error without fields.
const KINDS: [ErrorKind; 78] = [
    ErrorKind::UnexpectedEofFlowSequence,
    ErrorKind::UnexpectedEofFlowMapping,
    ErrorKind::UnexpectedEofImplicitFlowMapping,
    ErrorKind::UnexpectedEofBlockSequence,
    ErrorKind::UnexpectedEofBlockMapping,
    ErrorKind::UnexpectedEof,
    ErrorKind::ExpectedStreamStart,
    ErrorKind::DuplicateVersionDirective,
    ErrorKind::UnsupportedYamlMajorVersion,
    ErrorKind::DuplicateTagDirective,
    ErrorKind::ExpectedDocumentStart,
    ErrorKind::MissingDocumentEndBeforeDirective,
    ErrorKind::AnchorCountOverflow,
    ErrorKind::UnknownAnchor,
    ErrorKind::ExpectedNodeContent,
    ErrorKind::ExpectedBlockMappingKey,
    ErrorKind::ExpectedFlowMappingSeparator,
    ErrorKind::ExpectedFlowSequenceSeparator,
    ErrorKind::ExpectedBlockSequenceEntry,
    ErrorKind::UndeclaredTagHandle,
    ErrorKind::MissingIncludeResolver,
    ErrorKind::MultipleDocumentsUnsupported,
    ErrorKind::InputOffsetsWithoutSlice,
    ErrorKind::InputSlicingUnavailable,
    ErrorKind::ExpectedTagBang,
    ErrorKind::ExpectedTagDirectiveBang,
    ErrorKind::InvalidGlobalTagCharacter,
    ErrorKind::SimpleKeyExpected,
    ErrorKind::InvalidSimpleKey,
    ErrorKind::InvalidDocumentEnd,
    ErrorKind::InvalidIndentation,
    ErrorKind::BomInsideDocument,
    ErrorKind::TabNotAllowed,
    ErrorKind::TabInBlockIndentation,
    ErrorKind::CommentInterceptedScalar,
    ErrorKind::ExpectedWhitespace,
    ErrorKind::CommentNotSeparated,
    ErrorKind::InvalidDirectiveTerminator,
    ErrorKind::DirectiveDisallowed,
    ErrorKind::MissingYamlVersionSeparator,
    ErrorKind::MissingDirectiveName,
    ErrorKind::InvalidDirectiveName,
    ErrorKind::YamlVersionTooLong,
    ErrorKind::MissingYamlVersion,
    ErrorKind::InvalidTagDirectiveTerminator,
    ErrorKind::InvalidTagTerminator,
    ErrorKind::MissingTagUri,
    ErrorKind::UnclosedVerbatimTag,
    ErrorKind::InvalidTagEscape,
    ErrorKind::InvalidTagUtf8LeadingByte,
    ErrorKind::InvalidTagUtf8TrailingByte,
    ErrorKind::InvalidTagUtf8,
    ErrorKind::MissingAnchorOrAliasName,
    ErrorKind::MisplacedFlowCollectionEnd,
    ErrorKind::RecursionLimitExceeded,
    ErrorKind::BlockEntryInFlowCollection,
    ErrorKind::BlockSequenceEntryNotAllowed,
    ErrorKind::InvalidBlockEntryWhitespace,
    ErrorKind::ZeroBlockScalarIndent,
    ErrorKind::InvalidBlockScalarHeader,
    ErrorKind::TabAtBlockScalarStart,
    ErrorKind::InvalidBlockScalarIndent,
    ErrorKind::DocumentIndicatorInQuotedScalar,
    ErrorKind::UnclosedQuotedScalar,
    ErrorKind::TabInIndentation,
    ErrorKind::InvalidQuotedScalarIndent,
    ErrorKind::InvalidTrailingSingleQuotedScalar,
    ErrorKind::InvalidTrailingDoubleQuotedScalar,
    ErrorKind::UnknownQuotedScalarEscape,
    ErrorKind::InvalidQuotedScalarHexEscape,
    ErrorKind::InvalidLowSurrogateHexEscape,
    ErrorKind::InvalidLowSurrogate,
    ErrorKind::MissingLowSurrogate,
    ErrorKind::UnpairedLowSurrogate,
    ErrorKind::InvalidUnicodeEscape,
    ErrorKind::InvalidFlowScalarIndent,
    ErrorKind::InvalidColonPlacement,
    ErrorKind::MappingValueNotAllowed,
];

fn jargon(words: &str) -> Vec<&'static str> {
    let words = words.to_lowercase();
    JARGON.into_iter().filter(|word| words.contains(word)).collect()
}

#[test]
fn no_kind_of_error_has_words_of_the_parser() {
    for kind in KINDS {
        let words = plain(&kind);
        assert_eq!(jargon(&words), [""; 0], "{kind:?}: {words}");
        assert_ne!(words, kind.to_string(), "{kind:?}");
    }
}

#[test]
fn no_document_with_a_fault_is_answered_with_words_of_the_parser() {
    let mut refused = 0;
    for document in documents_of_every_fault() {
        let Err(error) = read(document) else { continue };
        refused += 1;
        assert_eq!(jargon(&error.problem), [""; 0], "{document:?}: {error}");
        let is_told = error.problem != "this is not YAML";
        assert!(is_told, "{document:?}: {error}");
    }
    assert!(refused > 60, "{refused}");
}
