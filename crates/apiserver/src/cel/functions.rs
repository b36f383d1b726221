//! Functions in place of those that the evaluator has with other results than kube-apiserver.
//!
//! Guarantee: what is not the same in both is an error, so that it is not judged.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::extractors::Arguments;
use kube_cel::cel::objects::{Key, Map, OptionalValue};
use kube_cel::cel::{Context, ExecutionError, Value};
use regex::{Regex, RegexBuilder};

/// The prefix of a function that replaces another one.
pub const OWN: &str = "@own:";
/// How large a prepared pattern may be, in bytes.
const PATTERN_SIZE: usize = 64 << 10;

type Outcome = Result<Value, ExecutionError>;
type Function = fn(&[Value]) -> Outcome;

const FUNCTIONS: [(&str, Function); 13] = [
    ("@select", select),
    ("@has", has),
    ("@short", short),
    ("@own:_?._", optional_member),
    ("@own:_[?_]", optional_member),
    ("@own:_==_", |args| Ok(Value::Bool(equal(pair(args)?)?))),
    ("@own:_!=_", |args| Ok(Value::Bool(!equal(pair(args)?)?))),
    ("@own:@in", contains),
    ("@own:size", size),
    ("@own:string", string),
    ("@own:int", int),
    ("@own:matches", matches),
    ("@own:format", format),
];

thread_local! {
    static LIBRARY: Context<'static> = library();
    static PATTERNS: std::cell::RefCell<HashMap<String, Regex>> = std::cell::RefCell::default();
}

/// Calls `work` with all functions.
pub fn with_library<T>(work: impl FnOnce(&Context<'static>) -> T) -> T {
    LIBRARY.with(work)
}

fn library() -> Context<'static> {
    let mut context = Context::default().with_all();
    for (name, function) in FUNCTIONS {
        context.add_function(name, move |Arguments(args): Arguments| -> Outcome { function(&args) });
    }
    context
}

fn error(why: &str) -> ExecutionError {
    ExecutionError::function_error("CEL", why)
}

fn no_overload() -> ExecutionError {
    ExecutionError::NoSuchOverload
}

fn pair(args: &[Value]) -> Result<(&Value, &Value), ExecutionError> {
    match args {
        [first, second] => Ok((first, second)),
        _ => Err(no_overload()),
    }
}

/// The value in an optional one; of any other value itself.
enum Inner<'a> {
    Value(&'a Value),
    Optional(Option<&'a Value>),
}

fn inner(value: &Value) -> Inner<'_> {
    match value {
        Value::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>() {
            Some(optional) => Inner::Optional(optional.value()),
            None => Inner::Value(value),
        },
        value => Inner::Value(value),
    }
}

fn optional(value: Option<Value>) -> Value {
    Value::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

/// A member of a map, or an item of a list.
fn member(of: &Value, key: &Value) -> Result<Option<Value>, ExecutionError> {
    match (of, key) {
        (Value::Map(map), key) => Ok(map.map.get(&key_of(key)?).cloned()),
        (Value::List(list), Value::Int(index)) => {
            Ok(usize::try_from(*index).ok().and_then(|index| list.get(index)).cloned())
        }
        _ => Err(no_overload()),
    }
}

fn key_of(value: &Value) -> Result<Key, ExecutionError> {
    match value {
        Value::Int(value) => Ok(Key::Int(*value)),
        Value::UInt(value) => Ok(Key::Uint(*value)),
        Value::Bool(value) => Ok(Key::Bool(*value)),
        Value::String(value) => Ok(Key::String(Arc::clone(value))),
        _ => Err(no_overload()),
    }
}

fn select(args: &[Value]) -> Outcome {
    let (of, field) = pair(args)?;
    match inner(of) {
        Inner::Optional(None) => Ok(optional(None)),
        Inner::Optional(Some(of @ Value::Map(_))) => member(of, field).map(optional),
        Inner::Value(of @ Value::Map(_)) => {
            let name = || if let Value::String(name) = field { name.to_string() } else { String::new() };
            member(of, field)?.ok_or_else(|| ExecutionError::no_such_key(&name()))
        }
        _ => Err(no_overload()),
    }
}

fn has(args: &[Value]) -> Outcome {
    let (of, field) = pair(args)?;
    match inner(of) {
        Inner::Optional(None) => Ok(Value::Bool(false)),
        Inner::Optional(Some(of @ Value::Map(_))) | Inner::Value(of @ Value::Map(_)) => {
            member(of, field).map(|found| Value::Bool(found.is_some()))
        }
        _ => Err(no_overload()),
    }
}

fn optional_member(args: &[Value]) -> Outcome {
    let (of, key) = pair(args)?;
    match inner(of) {
        Inner::Optional(None) => Ok(optional(None)),
        Inner::Optional(Some(of)) | Inner::Value(of) => member(of, key).map(optional),
    }
}

/// Whether two values are equal. Texts and numbers, for example, are not compared: kube-apiserver refuses most such expressions.
fn equal((left, right): (&Value, &Value)) -> Result<bool, ExecutionError> {
    use Value::{Bool, Bytes, Duration, Float, Int, List, Map as Members, Null, Opaque, String, Timestamp, UInt};
    match (left, right) {
        (Null, _) | (_, Null) => Ok(matches!((left, right), (Null, Null))),
        (Int(_) | UInt(_) | Float(_), Int(_) | UInt(_) | Float(_))
        | (String(_), String(_))
        | (Bool(_), Bool(_))
        | (Bytes(_), Bytes(_))
        | (Duration(_), Duration(_))
        | (Timestamp(_), Timestamp(_)) => Ok(left == right),
        (Opaque(a), Opaque(b)) if a.runtime_type_name() == b.runtime_type_name() => match (inner(left), inner(right)) {
            (Inner::Optional(Some(a)), Inner::Optional(Some(b))) => equal((a, b)),
            (Inner::Optional(a), Inner::Optional(b)) => Ok(a.is_none() && b.is_none()),
            _ => Ok(left == right),
        },
        (List(a), List(b)) => Ok(a.len() == b.len() && all_equal(a.iter().zip(b.iter()))?),
        (Members(a), Members(b)) => {
            if a.map.len() != b.map.len() {
                return Ok(false);
            }
            let pairs: Option<Vec<_>> = a.map.iter().map(|(key, value)| Some((value, b.map.get(key)?))).collect();
            pairs.map_or(Ok(false), |pairs| all_equal(pairs.into_iter()))
        }
        _ => Err(no_overload()),
    }
}

fn all_equal<'a>(mut pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> Result<bool, ExecutionError> {
    pairs.try_fold(true, |all, pair| Ok(all && equal(pair)?))
}

fn contains(args: &[Value]) -> Outcome {
    let (item, of) = pair(args)?;
    match of {
        Value::List(list) => {
            let mut found = false;
            for other in list.iter() {
                found |= equal((item, other))?;
            }
            Ok(Value::Bool(found))
        }
        Value::Map(Map { map }) => Ok(Value::Bool(map.contains_key(&key_of(item)?))),
        _ => Err(no_overload()),
    }
}

fn size(args: &[Value]) -> Outcome {
    let number = match args {
        [Value::String(text)] => text.chars().count(),
        [Value::Bytes(bytes)] => bytes.len(),
        [Value::List(list)] => list.len(),
        [Value::Map(map)] => map.map.len(),
        _ => return Err(no_overload()),
    };
    i64::try_from(number).map(Value::Int).map_err(|_| no_overload())
}

/// The text of a value; that of floats, times and quantities differs.
fn text_of(value: &Value) -> Result<String, ExecutionError> {
    match value {
        Value::String(text) => Ok(text.to_string()),
        Value::Int(number) => Ok(number.to_string()),
        Value::UInt(number) => Ok(number.to_string()),
        Value::Bool(value) => Ok(value.to_string()),
        _ => Err(error("the text of a value of this type differs")),
    }
}

fn string(args: &[Value]) -> Outcome {
    let [value] = args else { return Err(no_overload()) };
    text_of(value).map(|text| Value::String(Arc::new(text)))
}

fn int(args: &[Value]) -> Outcome {
    let number = match args {
        [Value::Int(number)] => Some(*number),
        [Value::UInt(number)] => i64::try_from(*number).ok(),
        [Value::String(text)] => text.parse().ok(),
        [Value::Timestamp(time)] => Some(time.timestamp()),
        _ => return Err(error("the integer of a value of this type differs")),
    };
    number.map(Value::Int).ok_or_else(|| error("there is no such integer"))
}

/// A pattern, prepared once in each thread.
pub fn regex(pattern: &str) -> Option<Regex> {
    PATTERNS.with_borrow_mut(|known| {
        if let Some(found) = known.get(pattern) {
            return Some(found.clone());
        }
        let made = RegexBuilder::new(pattern).size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_SIZE).build().ok()?;
        if known.len() >= 64 {
            known.clear();
        }
        known.insert(pattern.to_owned(), made.clone());
        Some(made)
    })
}

/// Whether RE2 may read a pattern otherwise than this crate's library, or refuse it: operations on classes and classes in classes,
/// `\<`, `\>`, `\b{…}`, `\u`, the flags x, R and u, a quantifier of a quantifier, and counts above 1,000.
pub fn is_read_otherwise(pattern: &str) -> bool {
    let mut rest = pattern;
    let (mut in_class, mut after_quantifier) = (false, false);
    while let Some(c) = rest.chars().next() {
        let tail = &rest[c.len_utf8()..];
        let was_quantified = std::mem::take(&mut after_quantifier);
        rest = tail;
        match c {
            '\\' => {
                let escaped = tail.chars().next();
                if matches!(escaped, Some('<' | '>' | 'u' | 'U')) || tail.starts_with("b{") {
                    return true;
                }
                rest = escaped.map_or("", |escaped| &tail[escaped.len_utf8()..]);
            }
            '[' if !in_class => {
                in_class = true;
                rest = tail.strip_prefix('^').unwrap_or(tail);
                // As the first one, it is itself.
                rest = rest.strip_prefix(']').unwrap_or(rest);
            }
            '[' => match tail.strip_prefix(':').and_then(|class| class.split_once(":]")) {
                Some((_, after)) => rest = after,
                None => return true,
            },
            ']' if in_class => in_class = false,
            '&' | '-' | '~' if in_class && tail.starts_with(c) => return true,
            _ if in_class => {}
            '(' => {
                let flags = tail.strip_prefix('?').filter(|flags| !flags.starts_with(['P', '<']));
                let flags = flags.and_then(|flags| flags.split([':', ')']).next()).unwrap_or_default();
                if flags.contains(['x', 'R', 'u']) {
                    return true;
                }
                rest = tail.strip_prefix('?').unwrap_or(tail);
            }
            '*' | '+' | '?' | '{' => {
                let count = tail.split_once('}').filter(|_| c == '{');
                let is_large =
                    |count: &str| count.split(',').any(|number| number.parse().is_ok_and(|number: u64| number > 1_000));
                if was_quantified || count.is_some_and(|(count, _)| is_large(count)) {
                    return true;
                }
                rest = count.map_or(tail, |(_, after)| after);
                rest = rest.strip_prefix('?').unwrap_or(rest);
                after_quantifier = true;
            }
            _ => {}
        }
    }
    false
}

/// Matches `matches` of RE2, whose classes such as `\d` are of ASCII alone, and so is what they are compared with here.
fn matches(args: &[Value]) -> Outcome {
    let [Value::String(text), Value::String(pattern)] = args else { return Err(no_overload()) };
    let has_class =
        ["\\d", "\\w", "\\s", "\\b", "\\D", "\\W", "\\S", "\\B"].iter().any(|class| pattern.contains(class));
    if has_class && !text.is_ascii() {
        return Err(error("a class of characters on a text that is not ASCII differs"));
    }
    let regex = regex(pattern).ok_or_else(|| error("the pattern is too large, or not one of RE2"))?;
    Ok(Value::Bool(regex.is_match(text)))
}

/// `format` with `%s` and `%d`.
fn format(args: &[Value]) -> Outcome {
    let [Value::String(pattern), Value::List(values)] = args else { return Err(no_overload()) };
    let (mut result, mut values) = (String::new(), values.iter());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            result.push(c);
            continue;
        }
        match chars.next() {
            Some('%') => result.push('%'),
            Some('s') => result.push_str(&text_of(values.next().ok_or_else(no_overload)?)?),
            Some('d') => match values.next() {
                Some(value @ (Value::Int(_) | Value::UInt(_))) => result.push_str(&text_of(value)?),
                _ => return Err(no_overload()),
            },
            _ => return Err(error("only %s and %d are formatted")),
        }
    }
    Ok(Value::String(Arc::new(result)))
}

/// The text of a quantity, if the library's arithmetic is exact for all such quantities: 128 bits without a check.
fn short(args: &[Value]) -> Outcome {
    let [value @ Value::String(text)] = args else { return Err(no_overload()) };
    let number = text.trim_start_matches(['+', '-']);
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    let (digits, suffix) = number.split_at(end);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_known = ["", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"].contains(&suffix);
    let is_number = suffix.is_empty() || is_known || !suffix.starts_with(|c: char| "nupEPe".contains(c));
    if whole.len() <= 9 && part.len() <= 3 && is_number {
        Ok(value.clone())
    } else {
        Err(error("a quantity this large or small differs"))
    }
}
