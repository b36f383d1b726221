//! Makes events of the tokens of a YAML document.
//!
//! Guarantees: the events are those of go.yaml.in/yaml/v2, state by state (`parserc.go`; [`super::scanner`]
//! has its licence). Pure.

use std::collections::HashMap;

use super::cursor::Mark;
use super::scanner::{ENTRY_NOT_ALLOWED, Kind, Scanner, Style, Token};
use super::{ENDS_INSIDE_VALUE, TEXT_AFTER_VALUE, YamlError};

const VALUE_MISSING: &str = "a value is missing here";

#[derive(Debug)]
pub(super) enum Event {
    DocumentStart,
    DocumentEnd,
    End,
    Alias(String),
    Scalar(Scalar),
    SequenceStart(Option<String>),
    SequenceEnd,
    MappingStart(Option<String>),
    MappingEnd,
}

#[derive(Debug, Default)]
pub(super) struct Scalar {
    pub text: String,
    /// Whether the text alone says what the value is.
    pub is_plain: bool,
    pub anchor: Option<String>,
    pub tag: Option<String>,
}

/// What is expected next.
#[derive(Clone, Copy)]
enum State {
    FirstDocument,
    DocumentContent,
    DocumentEnd,
    NextDocument,
    BlockNode,
    BlockSequence,
    IndentlessSequence,
    BlockKey,
    BlockValue,
    /// An entry; the first one has no comma before it.
    FlowSequence {
        is_first: bool,
    },
    PairKey,
    PairValue,
    PairEnd,
    FlowKey {
        is_first: bool,
    },
    FlowValue,
    /// After a key without a colon.
    NoFlowValue,
}

/// An event with its position.
pub(super) type Found = (Event, Mark);

type Answer = Result<Found, YamlError>;

pub(super) struct Parser<'a> {
    text: &'a str,
    scanner: Scanner<'a>,
    state: State,
    /// The states after the current one, which end what is around it.
    states: Vec<State>,
    /// The brackets that are open.
    brackets: Vec<(char, Mark)>,
    /// The handles of tags, and their prefixes.
    handles: HashMap<String, String>,
    /// The end of the last text, if it was in quotes.
    quoted: Option<Mark>,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            scanner: Scanner::new(text),
            state: State::FirstDocument,
            states: Vec::new(),
            brackets: Vec::new(),
            handles: HashMap::new(),
            quoted: None,
        }
    }

    /// The next event.
    ///
    /// # Errors
    /// When the text is not YAML.
    pub fn next(&mut self) -> Answer {
        match self.state {
            State::FirstDocument => self.document_start(true),
            State::NextDocument => self.document_start(false),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(true, false),
            State::BlockSequence => self.block_sequence(),
            State::IndentlessSequence => self.indentless_sequence(),
            State::BlockKey => self.block_key(),
            State::BlockValue => self.block_value(),
            State::FlowSequence { is_first } => self.flow_sequence(is_first),
            State::PairKey => self.pair_key(),
            State::PairValue => self.pair_value(),
            State::PairEnd => {
                self.state = State::FlowSequence { is_first: false };
                Ok((Event::MappingEnd, self.peek()?.start))
            }
            State::FlowKey { is_first } => self.flow_key(is_first),
            State::FlowValue => self.flow_value(),
            State::NoFlowValue => {
                let mark = self.peek()?.start;
                Ok(self.empty(State::FlowKey { is_first: false }, mark))
            }
        }
    }

    fn peek(&mut self) -> Result<&Token, YamlError> {
        self.scanner.peek()
    }

    fn kind(&mut self) -> Result<&Kind, YamlError> {
        self.peek().map(|token| &token.kind)
    }

    fn take(&mut self) -> Result<Token, YamlError> {
        self.peek()?;
        let token = self.scanner.take().ok_or_else(|| YamlError::at(Mark::default(), ENDS_INSIDE_VALUE))?;
        self.quoted = matches!(token.kind, Kind::Scalar(_, Style::Quoted)).then_some(token.end);
        Ok(token)
    }

    /// Takes the next token if it is of this kind.
    fn take_if(&mut self, kind: &Kind) -> Result<Option<Token>, YamlError> {
        if self.kind()? == kind { self.take().map(Some) } else { Ok(None) }
    }

    fn pop(&mut self) {
        self.state = self.states.pop().unwrap_or(State::DocumentEnd);
    }

    /// A value that is left out.
    fn empty(&mut self, next: State, mark: Mark) -> Found {
        self.state = next;
        (Event::Scalar(Scalar { is_plain: true, ..Scalar::default() }), mark)
    }

    /// A value, after which `next` is expected.
    fn node_then(&mut self, next: State, is_block: bool, may_be_indentless: bool) -> Answer {
        self.states.push(next);
        self.node(is_block, may_be_indentless)
    }

    fn document_start(&mut self, is_first: bool) -> Answer {
        if !is_first {
            while self.take_if(&Kind::DocumentEnd)?.is_some() {}
        }
        let token = self.peek()?;
        let start = token.start;
        match token.kind {
            Kind::End => return Ok((Event::End, start)),
            Kind::Version(_) | Kind::TagDirective(..) | Kind::DocumentStart => {
                self.directives()?;
                if self.take_if(&Kind::DocumentStart)?.is_none() {
                    let problem =
                        "kubectl cuts a file at each ---, and so reads no directive, which begins with %; leave it out";
                    return Err(YamlError::at(self.peek()?.start, problem));
                }
                self.state = State::DocumentContent;
            }
            _ if is_first => {
                self.directives()?;
                self.state = State::BlockNode;
            }
            _ => return Err(YamlError::at(start, TEXT_AFTER_VALUE)),
        }
        self.states.push(State::DocumentEnd);
        Ok((Event::DocumentStart, start))
    }

    fn directives(&mut self) -> Result<(), YamlError> {
        let mut has_version = false;
        while matches!(self.kind()?, Kind::Version(_) | Kind::TagDirective(..)) {
            let Token { kind, start, .. } = self.take()?;
            let fault = |problem| Err(YamlError::at(start, problem));
            match kind {
                Kind::Version(_) if has_version => return fault("there is a second %YAML"),
                Kind::Version(false) => return fault("kubectl reads YAML 1.1 only"),
                Kind::TagDirective(handle, _) if self.handles.contains_key(&handle) => {
                    return fault("there is a second %TAG with this handle");
                }
                Kind::TagDirective(handle, prefix) => drop(self.handles.insert(handle, prefix)),
                _ => has_version = true,
            }
        }
        for (handle, prefix) in [("!", "!"), ("!!", "tag:yaml.org,2002:")] {
            self.handles.entry(handle.to_owned()).or_insert_with(|| prefix.to_owned());
        }
        Ok(())
    }

    fn document_content(&mut self) -> Answer {
        let token = self.peek()?;
        let start = token.start;
        match token.kind {
            Kind::Version(_) | Kind::TagDirective(..) | Kind::DocumentStart | Kind::DocumentEnd | Kind::End => {
                self.pop();
                Ok(self.empty(self.state, start))
            }
            _ => self.node(true, false),
        }
    }

    fn document_end(&mut self) -> Answer {
        let start = self.peek()?.start;
        self.take_if(&Kind::DocumentEnd)?;
        self.handles.clear();
        self.state = State::NextDocument;
        Ok((Event::DocumentEnd, start))
    }

    fn node(&mut self, is_block: bool, may_be_indentless: bool) -> Answer {
        let start = self.peek()?.start;
        if let Kind::Alias(_) = self.kind()? {
            self.pop();
            let token = self.take()?;
            let Kind::Alias(name) = token.kind else { return Err(self.unexpected(VALUE_MISSING)) };
            return Ok((Event::Alias(name), start));
        }
        let (anchor, tag) = self.properties()?;
        let next = match self.kind()? {
            Kind::BlockEntry if may_be_indentless => {
                self.state = State::IndentlessSequence;
                return Ok((Event::SequenceStart(anchor), start));
            }
            Kind::Scalar(..) => {
                self.pop();
                let token = self.take()?;
                let Kind::Scalar(text, style) = token.kind else { return Err(self.unexpected(VALUE_MISSING)) };
                let is_plain = tag.as_ref().map_or(style == Style::Plain, |tag| tag == "!");
                return Ok((Event::Scalar(Scalar { text, is_plain, anchor, tag }), start));
            }
            Kind::FlowSequenceStart => State::FlowSequence { is_first: true },
            Kind::FlowMappingStart => State::FlowKey { is_first: true },
            Kind::BlockSequenceStart if is_block => State::BlockSequence,
            Kind::BlockMappingStart if is_block => State::BlockKey,
            _ if anchor.is_some() || tag.is_some() => {
                self.pop();
                return Ok((
                    Event::Scalar(Scalar { is_plain: tag.is_none(), anchor, tag, ..Scalar::default() }),
                    start,
                ));
            }
            _ => return Err(self.unexpected(VALUE_MISSING)),
        };
        let bracket = self.take()?.start;
        match next {
            State::FlowSequence { .. } => self.brackets.push(('[', bracket)),
            State::FlowKey { .. } => self.brackets.push(('{', bracket)),
            _ => {}
        }
        self.state = next;
        let is_mapping = matches!(next, State::FlowKey { .. } | State::BlockKey);
        Ok((if is_mapping { Event::MappingStart(anchor) } else { Event::SequenceStart(anchor) }, start))
    }

    /// An anchor and a tag, in either order.
    fn properties(&mut self) -> Result<(Option<String>, Option<String>), YamlError> {
        let (mut anchor, mut tag) = (None, None);
        loop {
            match self.kind()? {
                Kind::Anchor(_) if anchor.is_none() => {
                    if let Kind::Anchor(name) = self.take()?.kind {
                        anchor = Some(name);
                    }
                }
                Kind::Tag(..) if tag.is_none() => {
                    let Token { kind, start, .. } = self.take()?;
                    if let Kind::Tag(handle, suffix) = kind {
                        tag = Some((handle, suffix, start));
                    }
                }
                _ => break,
            }
        }
        let Some((handle, suffix, start)) = tag else { return Ok((anchor, None)) };
        if handle.is_empty() {
            return Ok((anchor, Some(suffix)));
        }
        match self.handles.get(&handle) {
            Some(prefix) => Ok((anchor, Some(format!("{prefix}{suffix}")))),
            None => Err(YamlError::at(start, "the handle of the tag is not declared")),
        }
    }

    /// The error about a token that cannot be here.
    fn unexpected(&mut self, problem: &str) -> YamlError {
        let (kind, start) = match self.peek() {
            Ok(Token { kind, start, .. }) => (kind.clone(), *start),
            Err(error) => return error,
        };
        let ends = matches!(kind, Kind::End | Kind::BlockEnd);
        let is_marker = matches!(kind, Kind::DocumentStart | Kind::DocumentEnd);
        let closing = match kind {
            Kind::FlowSequenceEnd => Some(']'),
            Kind::FlowMappingEnd => Some('}'),
            _ => None,
        };
        match (self.brackets.last(), closing) {
            (Some((bracket, mark)), None) if ends || is_marker => {
                YamlError::at(*mark, format!("the bracket {bracket} is not closed"))
            }
            (Some(('[', mark)), Some('}')) => YamlError::at(*mark, "the bracket [ is closed by a }"),
            (Some(('{', mark)), Some(']')) => YamlError::at(*mark, "the bracket { is closed by a ]"),
            (None, Some(_)) => YamlError::at(start, "there is a closing bracket without an opening one"),
            (Some(_), None) if kind == Kind::BlockEntry => YamlError::at(start, ENTRY_NOT_ALLOWED),
            (Some(_), None) if kind == Kind::Key && self.text[start.at..].starts_with('?') => {
                YamlError::at(start, "a text with a ? needs quotes within braces and brackets")
            }
            _ if self.quoted.is_some_and(|end| end.row == start.row) => {
                YamlError::at(start, "there is text after the closing quote; put the whole value in quotes")
            }
            _ if kind == Kind::End => YamlError::at(start, ENDS_INSIDE_VALUE),
            _ => YamlError::at(start, problem),
        }
    }

    fn block_sequence(&mut self) -> Answer {
        if let Some(entry) = self.take_if(&Kind::BlockEntry)? {
            return match self.kind()? {
                Kind::BlockEntry | Kind::BlockEnd => Ok(self.empty(State::BlockSequence, entry.end)),
                _ => self.node_then(State::BlockSequence, true, false),
            };
        }
        match self.take_if(&Kind::BlockEnd)? {
            Some(end) => {
                self.pop();
                Ok((Event::SequenceEnd, end.start))
            }
            None => {
                Err(self
                    .unexpected("an entry of the list is expected here: a '-' with the indentation of those before it"))
            }
        }
    }

    fn indentless_sequence(&mut self) -> Answer {
        if let Some(entry) = self.take_if(&Kind::BlockEntry)? {
            return match self.kind()? {
                Kind::BlockEntry | Kind::Key | Kind::Value | Kind::BlockEnd => {
                    Ok(self.empty(State::IndentlessSequence, entry.end))
                }
                _ => self.node_then(State::IndentlessSequence, true, false),
            };
        }
        self.pop();
        Ok((Event::SequenceEnd, self.peek()?.start))
    }

    fn block_key(&mut self) -> Answer {
        if let Some(key) = self.take_if(&Kind::Key)? {
            return match self.kind()? {
                Kind::Key | Kind::Value | Kind::BlockEnd => Ok(self.empty(State::BlockValue, key.end)),
                _ => self.node_then(State::BlockValue, true, true),
            };
        }
        match self.take_if(&Kind::BlockEnd)? {
            Some(end) => {
                self.pop();
                Ok((Event::MappingEnd, end.start))
            }
            None => Err(self.unexpected("a key is expected here, with the indentation of the keys before it")),
        }
    }

    fn block_value(&mut self) -> Answer {
        let mark = self.peek()?.start;
        match self.take_if(&Kind::Value)? {
            Some(value) => match self.kind()? {
                Kind::Key | Kind::Value | Kind::BlockEnd => Ok(self.empty(State::BlockKey, value.end)),
                _ => self.node_then(State::BlockKey, true, true),
            },
            None => Ok(self.empty(State::BlockKey, mark)),
        }
    }

    /// The end of a list or a mapping in brackets.
    fn flow_end(&mut self, event: Event) -> Answer {
        self.pop();
        self.brackets.pop();
        let end = self.take()?;
        Ok((event, end.start))
    }

    fn flow_sequence(&mut self, is_first: bool) -> Answer {
        if *self.kind()? == Kind::FlowSequenceEnd {
            return self.flow_end(Event::SequenceEnd);
        }
        if !is_first && self.take_if(&Kind::FlowEntry)?.is_none() {
            return Err(self.unexpected("a ',' or a ']' is expected here"));
        }
        match self.kind()? {
            Kind::Key => {
                self.state = State::PairKey;
                let key = self.take()?;
                Ok((Event::MappingStart(None), key.start))
            }
            Kind::FlowSequenceEnd => self.flow_end(Event::SequenceEnd),
            _ => self.node_then(State::FlowSequence { is_first: false }, false, false),
        }
    }

    fn pair_key(&mut self) -> Answer {
        match self.kind()? {
            Kind::Value | Kind::FlowEntry | Kind::FlowSequenceEnd => {
                // The token is lost, as it is in go-yaml: `[? : a]` is an error.
                let token = self.take()?;
                Ok(self.empty(State::PairValue, token.end))
            }
            _ => self.node_then(State::PairValue, false, false),
        }
    }

    fn pair_value(&mut self) -> Answer {
        let mark = self.peek()?.start;
        let has_value =
            self.take_if(&Kind::Value)?.is_some() && !matches!(self.kind()?, Kind::FlowEntry | Kind::FlowSequenceEnd);
        if has_value { self.node_then(State::PairEnd, false, false) } else { Ok(self.empty(State::PairEnd, mark)) }
    }

    fn flow_key(&mut self, is_first: bool) -> Answer {
        if *self.kind()? == Kind::FlowMappingEnd {
            return self.flow_end(Event::MappingEnd);
        }
        if !is_first && self.take_if(&Kind::FlowEntry)?.is_none() {
            return Err(self.unexpected("a ',' or a '}' is expected here"));
        }
        match self.kind()? {
            Kind::Key => {
                self.take()?;
                let mark = self.peek()?.start;
                match self.kind()? {
                    Kind::Value | Kind::FlowEntry | Kind::FlowMappingEnd => Ok(self.empty(State::FlowValue, mark)),
                    _ => self.node_then(State::FlowValue, false, false),
                }
            }
            Kind::FlowMappingEnd => self.flow_end(Event::MappingEnd),
            _ => self.node_then(State::NoFlowValue, false, false),
        }
    }

    fn flow_value(&mut self) -> Answer {
        let next = State::FlowKey { is_first: false };
        let mark = self.peek()?.start;
        let has_value =
            self.take_if(&Kind::Value)?.is_some() && !matches!(self.kind()?, Kind::FlowEntry | Kind::FlowMappingEnd);
        if has_value { self.node_then(next, false, false) } else { Ok(self.empty(next, mark)) }
    }
}
