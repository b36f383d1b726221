//! Label and field selectors.
//!
//! Guarantees: selectors that k8s.io/apimachinery `labels.Parse` and `fields.ParseSelector` accept are accepted with the same
//! meaning. Others are rejected with the same messages.

use std::collections::BTreeSet;

use apimachinery::names::{label_key_errors, label_value_errors};
use apimachinery::quoting::quote;
use serde_json::Value;

use super::registry::Resource;

/// A label selector: all requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    End,
    Identifier(String),
    Symbol(&'static str),
    In,
    NotIn,
    Error(String),
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::End => "",
            Self::Identifier(text) | Self::Error(text) => text,
            Self::Symbol(symbol) => symbol,
            Self::In => "in",
            Self::NotIn => "notin",
        }
    }

    /// Where a value is expected, `in` and `notin` are ordinary words.
    fn as_value(&self) -> Self {
        match self {
            Self::In | Self::NotIn => Self::Identifier(self.text().to_owned()),
            other => other.clone(),
        }
    }
}

const SYMBOLS: [&str; 9] = ["==", "!=", ")", "(", ",", "!", "=", ">", "<"];

fn is_special(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn scan(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let Some(first) = rest.chars().next() else {
            tokens.push(Token::End);
            return tokens;
        };
        let (token, length) = if is_special(first) {
            scan_symbol(rest)
        } else {
            let end = |c: char| is_special(c) || matches!(c, ' ' | '\t' | '\r' | '\n');
            let word = &rest[..rest.find(end).unwrap_or(rest.len())];
            let token = match word {
                "in" => Token::In,
                "notin" => Token::NotIn,
                _ => Token::Identifier(word.to_owned()),
            };
            (token, word.len())
        };
        tokens.push(token);
        rest = &rest[length..];
    }
}

/// The longest symbol at the start of `rest`, as `Lexer.scanSpecialSymbol` reads it.
fn scan_symbol(rest: &str) -> (Token, usize) {
    let special = rest.find(|c| !is_special(c)).unwrap_or(rest.len());
    let mut last = None;
    for end in 1..=special {
        match SYMBOLS.iter().find(|symbol| **symbol == &rest[..end]) {
            Some(symbol) => last = Some((*symbol, end)),
            None if last.is_some() => break,
            None => {}
        }
    }
    match last {
        Some((symbol, end)) => (Token::Symbol(symbol), end),
        None => (Token::Error(format!("error expected: keyword found '{}'", &rest[..special])), special),
    }
}

struct Parser {
    tokens: Vec<Token>,
    position: usize,
}

impl Parser {
    fn look(&self) -> Token {
        self.tokens.get(self.position).cloned().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.look();
        self.position += 1;
        token
    }

    fn parse(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.look().as_value() {
                Token::Identifier(_) | Token::Symbol("!") => {
                    let one = self.requirement().map_err(|e| format!("unable to parse requirement: {e}"))?;
                    requirements.push(one);
                    match self.next().as_value() {
                        Token::End => return Ok(requirements),
                        Token::Symbol(",") => match self.look().as_value() {
                            Token::Identifier(_) | Token::Symbol("!") => {}
                            other => return Err(format!("found '{}', expected: identifier after ','", other.text())),
                        },
                        other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
                    }
                }
                Token::End => return Ok(requirements),
                other => return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.text())),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.next().as_value();
        let negated = token == Token::Symbol("!");
        if negated {
            token = self.next().as_value();
        }
        let Token::Identifier(key) = token else {
            return Err(format!("found '{}', expected: identifier", token.text()));
        };
        let problems = label_key_errors(&key);
        if !problems.is_empty() {
            return Err(format!("<nil>: Invalid value: {}: {}", quote(&key), problems.join("; ")));
        }
        if negated {
            return Ok(Requirement { key, operator: Operator::DoesNotExist, values: BTreeSet::new() });
        }
        if matches!(self.look(), Token::End | Token::Symbol(",")) {
            return Ok(Requirement { key, operator: Operator::Exists, values: BTreeSet::new() });
        }
        let operator = match self.next() {
            Token::In | Token::Symbol("=" | "==") => Operator::In,
            Token::NotIn | Token::Symbol("!=") => Operator::NotIn,
            Token::Symbol(">") => Operator::GreaterThan,
            Token::Symbol("<") => Operator::LessThan,
            other => return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text())),
        };
        let many = matches!(self.tokens.get(self.position - 1), Some(Token::In | Token::NotIn));
        let values = if many { self.values()? } else { self.exact_value()? };
        check_values(&key, operator, &values)?;
        Ok(Requirement { key, operator, values })
    }

    fn exact_value(&mut self) -> Result<BTreeSet<String>, String> {
        match self.look().as_value() {
            Token::End | Token::Symbol(",") => Ok(BTreeSet::from([String::new()])),
            Token::Identifier(value) => {
                self.position += 1;
                Ok(BTreeSet::from([value]))
            }
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let open = self.next().as_value();
        if open != Token::Symbol("(") {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        match self.look().as_value() {
            Token::Identifier(_) | Token::Symbol(",") => {
                let first = self.look();
                let values = self.identifiers()?;
                if self.next() == Token::Symbol(")") {
                    Ok(values)
                } else {
                    Err(format!("found '{}', expected: ')'", first.text()))
                }
            }
            Token::Symbol(")") => {
                self.position += 1;
                Ok(BTreeSet::from([String::new()]))
            }
            other => Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
        }
    }

    fn identifiers(&mut self) -> Result<BTreeSet<String>, String> {
        let mut values = BTreeSet::new();
        loop {
            match self.next().as_value() {
                Token::Identifier(value) => {
                    values.insert(value);
                    match self.look().as_value() {
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => return Ok(values),
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Token::Symbol(",") => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    match self.look().as_value() {
                        Token::Symbol(")") => {
                            values.insert(String::new());
                            return Ok(values);
                        }
                        Token::Symbol(",") => {
                            values.insert(String::new());
                        }
                        _ => {}
                    }
                }
                other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
        }
    }
}

fn check_values(key: &str, operator: Operator, values: &BTreeSet<String>) -> Result<(), String> {
    let mut problems = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let numeric = matches!(operator, Operator::GreaterThan | Operator::LessThan);
        if numeric && value.parse::<i64>().is_err() {
            let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
            problems.push(format!("values[{index}]: Invalid value: {}: {detail}", quote(value)));
        }
    }
    for (index, value) in values.iter().enumerate() {
        let errors = label_value_errors(value);
        if !errors.is_empty() {
            problems.push(format!("values[{index}][{key}]: Invalid value: {}: {}", quote(value), errors.join("; ")));
        }
    }
    match problems.len() {
        0 => Ok(()),
        1 => Err(problems.swap_remove(0)),
        _ => Err(format!("[{}]", problems.join(", "))),
    }
}

impl LabelSelector {
    /// Parses the query parameter `labelSelector`.
    ///
    /// # Errors
    /// A syntax error in the words of `labels.Parse`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { tokens: scan(text), position: 0 };
        parser.parse().map(Self)
    }

    /// Whether the selector matches everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the labels of `object` match.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.0.iter().all(|requirement| requirement.matches(labels[requirement.key.as_str()].as_str()))
    }
}

impl Requirement {
    fn matches(&self, label: Option<&str>) -> bool {
        match (self.operator, label) {
            (Operator::Exists, label) => label.is_some(),
            (Operator::DoesNotExist, label) => label.is_none(),
            (Operator::In, Some(value)) => self.values.contains(value),
            (Operator::NotIn, Some(value)) => !self.values.contains(value),
            (Operator::NotIn, None) => true,
            (Operator::GreaterThan, Some(value)) => self.compare(value).is_some_and(std::cmp::Ordering::is_gt),
            (Operator::LessThan, Some(value)) => self.compare(value).is_some_and(std::cmp::Ordering::is_lt),
            (Operator::In | Operator::GreaterThan | Operator::LessThan, None) => false,
        }
    }

    fn compare(&self, label: &str) -> Option<std::cmp::Ordering> {
        let wanted: i64 = self.values.first()?.parse().ok()?;
        Some(label.parse::<i64>().ok()?.cmp(&wanted))
    }
}

/// A field selector: all terms must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    field: String,
    equal: bool,
    value: String,
}

impl FieldSelector {
    /// Parses the query parameter `fieldSelector` for a kind.
    ///
    /// # Errors
    /// An error in the words of `fields.ParseSelector` or of the kind's field label conversion.
    pub fn parse(text: &str, resource: &Resource) -> Result<Self, String> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, operator, value)) = split_term(part) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            let value = unescape(value)?;
            terms.push(Term { field: field.to_owned(), equal: operator != "!=", value });
        }
        let selectable = resource.strategy.selectable_fields(&Value::Null);
        for term in &terms {
            check_field(&term.field, resource, &selectable)?;
        }
        Ok(Self(terms))
    }

    /// Whether the selector matches everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the term `field=value`.
    pub fn and_equals(&mut self, field: &str, value: &str) {
        self.0.push(Term { field: field.to_owned(), equal: true, value: value.to_owned() });
    }

    /// The value that the selector requires of `field`, if any.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }

    /// Whether the fields of `object` match.
    pub fn matches(&self, object: &Value, resource: &Resource) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let own = resource.strategy.selectable_fields(object);
        self.0.iter().all(|term| {
            let value = match term.field.as_str() {
                "metadata.name" => object["metadata"]["name"].as_str().unwrap_or_default(),
                "metadata.namespace" => object["metadata"]["namespace"].as_str().unwrap_or_default(),
                field => own.iter().find(|(name, _)| *name == field).map_or("", |(_, value)| value.as_str()),
            };
            (value == term.value) == term.equal
        })
    }
}

/// Checks that the kind supports the field in selectors. The message depends on the kind, as upstream's conversions do.
fn check_field(field: &str, resource: &Resource, own: &[(&'static str, String)]) -> Result<(), String> {
    let known = field == "metadata.name" || (field == "metadata.namespace" && resource.kind != "Namespace");
    if known || own.iter().any(|(name, _)| *name == field) {
        return Ok(());
    }
    Err(match resource.kind.as_str() {
        "Job" => format!("field label {} not supported for Job", quote(field)),
        "Pod" | "Event" | "Namespace" | "Secret" | "Service" => format!("field label not supported: {field}"),
        _ => format!(r#"{} is not a known field selector: only "metadata.name", "metadata.namespace""#, quote(field)),
    })
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn split_term(term: &str) -> Option<(&str, &'static str, &str)> {
    term.char_indices().find_map(|(index, _)| {
        let operator = ["!=", "==", "="].into_iter().find(|operator| term[index..].starts_with(operator))?;
        Some((&term[..index], operator, &term[index + operator.len()..]))
    })
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                Some(other) => return Err(format!("invalid field selector: invalid escape sequence: \\{other}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => {
                return Err(format!("invalid field selector: unescaped character in value: {}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}
