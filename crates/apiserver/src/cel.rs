//! Expressions in the Common Expression Language (CEL): rules of CustomResourceDefinitions, admission policies, and conditions of
//! webhooks.
//!
//! Guarantees: an expression is judged only if it consists of what `language` lists, which is compared with kube-apiserver in the
//! truth test. Everything else, and every error of an evaluation, is [`NotJudged`] with a reason, and never a verdict. What an
//! evaluation may cost is bounded before it starts (`cost`), and how deep an expression is nested before it is parsed (`shape`).
//! Pure.
//!
//! Known differences: expressions have no static types, so that no expression is refused for them.
//!
//! The parser and the evaluator are those of the crate `cel`, and the libraries of Kubernetes those of `kube-cel`. Where they differ
//! from kube-apiserver without an error, `functions` replaces them. Without the cargo feature `cel` nothing is judged.
#![cfg_attr(not(feature = "cel"), allow(dead_code, reason = "nothing is evaluated"))]

#[cfg(feature = "cel")]
mod cost;
#[cfg(feature = "cel")]
mod engine;
#[cfg(feature = "cel")]
mod functions;
#[cfg(feature = "cel")]
mod language;
#[cfg(feature = "cel")]
mod shape;
#[cfg(feature = "cel")]
mod values;

#[cfg(not(feature = "cel"))]
#[path = "cel/without.rs"]
mod engine;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// How many steps one expression may take. Matches `PerCallLimit` of k8s.io/apiserver `pkg/apis/cel/config.go`.
pub const STEPS_OF_EXPRESSION: u64 = 1_000_000;
/// How many steps all expressions about one object may take. Matches `RuntimeCELCostBudget`.
pub const STEPS_OF_OBJECT: u64 = 10_000_000;

/// The words of the language that are no names. Matches `celReservedSymbols` of k8s.io/apiserver `pkg/cel/escaping.go`.
pub const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Why an expression has no result here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotJudged(pub String);

impl fmt::Display for NotJudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Of a condition.
    Bool(bool),
    /// Of a `messageExpression`.
    Text(String),
    /// Of any other type.
    Other,
}

/// The steps that are left for one object.
#[derive(Debug)]
pub struct Budget(u64);

impl Default for Budget {
    fn default() -> Self {
        Self(STEPS_OF_OBJECT)
    }
}

impl Budget {
    /// # Errors
    /// When one expression may take more steps than are allowed.
    fn spend(&mut self, steps: u64) -> Result<(), NotJudged> {
        if steps > STEPS_OF_EXPRESSION {
            return Err(NotJudged(format!("it may take more than {STEPS_OF_EXPRESSION} steps on this object")));
        }
        let too_many =
            || NotJudged(format!("the expressions may take more than {STEPS_OF_OBJECT} steps on this object"));
        self.0 = self.0.checked_sub(steps).ok_or_else(too_many)?;
        Ok(())
    }
}

/// What a schema says of a value beside its JSON.
pub trait Shape {
    /// Of a text or a number.
    fn form(&self) -> Form;
    /// The schema of a member.
    fn member(&self, name: &str) -> Option<&dyn Shape>;
    /// The schema of the items.
    fn items(&self) -> Option<&dyn Shape>;
    /// Whether the names of the members are chosen by users, so that they are not escaped. Without a schema none is.
    fn is_map(&self) -> bool;
}

/// The type of a value in CEL where JSON does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As in JSON.
    Json,
    /// A double, also without a fraction.
    Double,
    /// A timestamp.
    Timestamp,
    /// A duration.
    Duration,
    /// Bytes in base64.
    Bytes,
}

/// The variables of an expression.
#[derive(Default)]
pub struct Scope {
    variables: BTreeMap<String, Result<engine::Bound, NotJudged>>,
}

impl Scope {
    /// Adds a variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: &Value, shape: Option<&dyn Shape>) -> Self {
        self.variables.insert(name.to_owned(), Ok(engine::bind(value, shape)));
        self
    }

    /// Adds a variable whose value is not known, and why. Expressions that use it are not judged.
    #[must_use]
    pub fn without(mut self, name: &str, why: &str) -> Self {
        self.variables.insert(name.to_owned(), Err(NotJudged(why.to_owned())));
        self
    }

    /// Adds a variable whose value is the result of an expression. Without one, expressions that use it are not judged.
    pub fn add(&mut self, name: String, expression: &Expression, budget: &mut Budget) {
        let value = expression.value(self, budget);
        self.variables.insert(name, value);
    }
}

/// An expression.
pub struct Expression {
    text: String,
    tree: Result<engine::Tree, NotJudged>,
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

impl Expression {
    /// Reads an expression. One that cannot be read is never judged.
    pub fn read(text: &str) -> Self {
        Self { text: text.to_owned(), tree: engine::read(text) }
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Why it is not judged, whatever it is about.
    pub fn fault(&self) -> Option<&NotJudged> {
        self.tree.as_ref().err()
    }

    /// Whether the text has this variable.
    pub fn names(&self, variable: &str) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        self.text.match_indices(variable).any(|(at, _)| {
            let (before, after) = (&self.text[..at], &self.text[at + variable.len()..]);
            !before.ends_with(|c: char| is_part(c) || c == '.') && !after.starts_with(is_part)
        })
    }

    /// Evaluates the expression.
    ///
    /// # Errors
    /// When it has no result here.
    pub fn evaluate(&self, scope: &Scope, budget: &mut Budget) -> Result<Answer, NotJudged> {
        self.value(scope, budget).map(|bound| engine::answer(&bound))
    }

    fn value(&self, scope: &Scope, budget: &mut Budget) -> Result<engine::Bound, NotJudged> {
        let tree = self.tree.as_ref().map_err(Clone::clone)?;
        engine::evaluate(tree, &scope.variables, budget)
    }
}

#[cfg(all(test, feature = "cel"))]
mod tests;
