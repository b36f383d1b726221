//! The value of a YAML scalar.
//!
//! Guarantees: the value is the one that kubectl sends to the API server, so words such as `yes` and `off` are booleans, `0440` is
//! octal, and a number without a fraction is an integer, however it is written. Pure.
//!
//! Matches `resolve` of go.yaml.in/yaml/v2 and `convertToJSONableObject` of sigs.k8s.io/yaml.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

/// A scalar's value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Integer(i64),
    /// More than an `i64` has.
    Unsigned(u64),
    Float(f64),
    Text(String),
}

/// The smallest number that Go's encoding/json writes with an exponent.
const WITH_EXPONENT: f64 = 1e21;

impl Scalar {
    /// The value of a plain scalar without a tag.
    pub fn plain(text: &str) -> Self {
        by_name(text).or_else(|| number(text)).unwrap_or_else(|| Self::Text(text.to_owned()))
    }

    /// The value of a scalar whose tag is `tag:yaml.org,2002:` and `tag`. An unknown tag has no effect.
    ///
    /// # Errors
    /// When the text is not of the tag's type.
    pub fn tagged(tag: &str, text: &str) -> Result<Self, String> {
        let value = || match Self::plain(text) {
            Self::Text(_) if is_timestamp(text) => (Self::Text(text.to_owned()), "timestamp"),
            value => {
                let tag = value.tag();
                (value, tag)
            }
        };
        match tag {
            "binary" => {
                let bytes = STANDARD.decode(text.replace(['\n', '\r'], ""));
                let bytes = bytes.map_err(|_| "the value of !!binary is not base64".to_owned())?;
                Ok(Self::Text(String::from_utf8_lossy(&bytes).into_owned()))
            }
            "float" => match Self::plain(text) {
                #[allow(clippy::cast_precision_loss, reason = "the text asks for a float")]
                Self::Integer(number) => Ok(Self::Float(number as f64)),
                number @ Self::Float(_) => Ok(number),
                _ => Err(wrong(tag, text)),
            },
            "bool" | "int" | "null" | "timestamp" => match value() {
                (value, found) if found == tag => Ok(value),
                _ => Err(wrong(tag, text)),
            },
            _ => Ok(Self::Text(text.to_owned())),
        }
    }

    fn tag(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Integer(_) | Self::Unsigned(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "str",
        }
    }

    /// The JSON value.
    ///
    /// # Errors
    /// For infinity and NaN, which JSON does not have.
    pub fn into_value(self) -> Result<Value, String> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => value.into(),
            Self::Integer(number) => number.into(),
            Self::Unsigned(number) => number.into(),
            Self::Float(number) => float(number).ok_or("infinity and NaN are not allowed; put the value in quotes")?,
            Self::Text(text) => text.into(),
        })
    }

    /// The key of a mapping, which is a text in JSON.
    ///
    /// # Errors
    /// For null and for numbers beyond an `i64`.
    pub fn into_key(self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Bool(value) => Ok(value.to_string()),
            Self::Integer(number) => Ok(number.to_string()),
            Self::Float(number) => Ok(float_key(number)),
            Self::Null => Err("a key is empty, or null".to_owned()),
            Self::Unsigned(number) => Err(format!("the key {number} needs quotes")),
        }
    }
}

fn wrong(tag: &str, text: &str) -> String {
    format!("the value {text:?} has the tag !!{tag}, but is not of that type")
}

/// The words of YAML 1.1 that are not texts.
fn by_name(text: &str) -> Option<Scalar> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

fn number(text: &str) -> Option<Scalar> {
    match text.as_bytes().first()? {
        b'.' => decimal(&without_separators(text)?).map(Scalar::Float),
        b'0'..=b'9' | b'+' | b'-' => {
            let digits = text.replace('_', "");
            let float = || decimal(&digits).map(Scalar::Float);
            integer(&digits).or_else(float).or_else(|| {
                let binary = digits.strip_prefix("0b")?;
                i64::from_str_radix(binary, 2).ok().map(Scalar::Integer)
            })
        }
        _ => None,
    }
}

/// A number without the underscores between its digits; `None` if there are others.
fn without_separators(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let is_separator = |(at, _): (usize, &str)| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
    text.match_indices('_').all(is_separator).then(|| text.replace('_', ""))
}

/// An integer as Go's `strconv.ParseInt` reads it with base 0.
fn integer(text: &str) -> Option<Scalar> {
    let (sign, digits) = match text.as_bytes().first()? {
        sign @ (b'+' | b'-') => (Some(*sign), &text[1..]),
        _ => (None, text),
    };
    let prefixed = |prefix: [&str; 2]| prefix.into_iter().find_map(|prefix| digits.strip_prefix(prefix));
    let (digits, base) = if let Some(digits) = prefixed(["0x", "0X"]) {
        (digits, 16)
    } else if let Some(digits) = prefixed(["0b", "0B"]) {
        (digits, 2)
    } else if let Some(digits) = prefixed(["0o", "0O"]) {
        (digits, 8)
    } else {
        let octal = digits.strip_prefix('0').filter(|rest| !rest.is_empty());
        octal.map_or((digits, 10), |digits| (digits, 8))
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let number = u64::from_str_radix(digits, base).ok()?;
    match sign {
        Some(b'-') => 0_i64.checked_sub_unsigned(number).map(Scalar::Integer),
        sign => match i64::try_from(number) {
            Ok(number) => Some(Scalar::Integer(number)),
            Err(_) => sign.is_none().then_some(Scalar::Unsigned(number)),
        },
    }
}

/// A decimal number that a float can have. It is none if it is too large.
fn decimal(text: &str) -> Option<f64> {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
        None => (unsigned, "0"),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = is_digits(whole) && is_digits(fraction) && is_digits(exponent);
    if !is_number || exponent.is_empty() || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The JSON number, an integer if encoding/json writes it like one; `None` for infinity and NaN.
pub(super) fn float(number: f64) -> Option<Value> {
    if number.fract() == 0.0 && number.abs() < WITH_EXPONENT {
        // The digits after those that tell the float from its neighbours are zeros, which its exact value has not.
        let text = number.to_string();
        if let Ok(whole) = text.parse::<i64>() {
            return Some(whole.into());
        }
        if let Ok(whole) = text.parse::<u64>() {
            return Some(whole.into());
        }
    }
    Number::from_f64(number).map(Value::Number)
}

/// A float as a key: Go's `strconv.FormatFloat(number, 'g', -1, 32)`, with YAML's words.
#[allow(clippy::cast_possible_truncation, reason = "upstream does so")]
fn float_key(number: f64) -> String {
    let number = number as f32;
    if number.is_nan() {
        return ".nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Whether a text has the form of YAML 1.1's timestamps.
fn is_timestamp(text: &str) -> bool {
    text.len() > 4 && text.bytes().take(4).all(|byte| byte.is_ascii_digit()) && text.as_bytes()[4] == b'-'
}
