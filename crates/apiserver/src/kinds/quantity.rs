//! Resource quantities such as `500m` and `1.5Gi`.
//!
//! Guarantees: a quantity is read, compared, added and written as apimachinery `api/resource` does it, with a number of any length and
//! in bounded time. One that is written canonically keeps its text, with its sign and its fraction. Matches `ParseQuantity`,
//! `CanonicalizeBytes`, `Value` and `MilliValue`.
//!
//! Known differences: upstream writes 10^21 and more without a suffix, `1` for `1000E`; here such a number has an exponent. Upstream judges
//! 10^15 and more, and negative pages, by the form in which they were written; here the canonical one counts.

mod decimal;

use std::cmp::Ordering;

use decimal::Decimal;

/// The error for an invalid quantity, in upstream's words.
pub(super) const FORMAT_ERROR: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// The error for a text that matches the expression, and whose suffix is none, in upstream's words.
const SUFFIX_ERROR: &str = "unable to parse quantity's suffix";
/// The error for a text without a digit, in upstream's words.
const NUMERIC_ERROR: &str = "unable to parse numeric part of quantity";

/// The most digits of a number that upstream reads as 64 bits.
const SMALL_DIGITS: i64 = 18;
/// The most of a number with a binary suffix.
const MOST: i64 = i64::MAX;
/// The smallest power of ten that a quantity has.
const NANO: i64 = -9;
const MILLI: i64 = -3;
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// The suffixes from 10^-9 on, in steps of a thousand.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// A quantity, with the family of its suffix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quantity {
    amount: Decimal,
    /// The power of ten beside 64 bits, if upstream has it as such.
    scale: Option<i64>,
    family: Family,
    /// The text, if upstream keeps it.
    given: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Decimal,
    Binary,
    Exponent,
}

/// The canonical text of a quantity in a list of resources, whose defaults round it up to thousandths. Matches
/// `SetDefaults_ResourceList`.
///
/// # Errors
/// Upstream's when the text is not a quantity.
pub(super) fn canonical(text: &str) -> Result<String, String> {
    let quantity = read(text.trim())?;
    let rounded = quantity.amount.rounded_up(MILLI);
    let is_exact = rounded == quantity.amount;
    let given = quantity.given.filter(|_| is_exact);
    Ok(Quantity { amount: rounded, given, ..quantity }.text())
}

/// The text of a quantity outside of lists, which is not rounded: it may have the suffixes u and n.
///
/// # Errors
/// As [`canonical`].
pub(super) fn exact(text: &str) -> Result<String, String> {
    Ok(read(text.trim())?.text())
}

/// Parses a quantity.
pub(super) fn parse(text: &str) -> Option<Quantity> {
    read(text).ok()
}

/// The parts of a text: the digits before and behind the point without leading zeros, all before the suffix, and the suffix.
struct Parts<'a> {
    whole: &'a str,
    fraction: &'a str,
    number: &'a str,
    suffix: &'a str,
}

/// Matches `parseQuantityString`, for which a sign, a point or a suffix alone is 0.
fn split(text: &str) -> Option<Parts<'_>> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text).trim_start_matches('0');
    let (whole, rest) = unsigned.split_at(digits(unsigned));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let exponent = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_whole = digits(exponent) == exponent.len();
    let number = &text[..text.len() - suffix.len()];
    is_whole.then_some(Parts { whole: if whole.is_empty() { "0" } else { whole }, fraction, number, suffix })
}

fn read(text: &str) -> Result<Quantity, &'static str> {
    if text.is_empty() {
        return Err(FORMAT_ERROR);
    }
    let Parts { whole, fraction, number, suffix } = split(text).ok_or(FORMAT_ERROR)?;
    let (family, exponent) = parse_suffix(suffix).ok_or(SUFFIX_ERROR)?;
    let is_negative = text.starts_with('-');
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(MOST);
    let scale = if family == Family::Binary { 0 } else { exponent } - length(fraction);
    let shifted = format!("{whole}{fraction}");
    let is_small = match family {
        Family::Binary => fraction.is_empty() && 14 - length(whole) - exponent * 3 / 10 >= 0,
        _ => length(&shifted) <= SMALL_DIGITS && scale >= NANO,
    };
    let amount = Decimal::new(is_negative, &shifted, scale);
    let amount = if family == Family::Binary { amount.times_power_of_two(exponent) } else { amount };
    let small = |given| Quantity { scale: Some(scale), given, amount: amount.clone(), family };
    if is_small {
        let is_kept = match family {
            Family::Binary => shifted.parse::<i64>().is_ok_and(|value| value % 8 != 0),
            _ => scale % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0'),
        };
        return Ok(small(is_kept.then(|| text.to_owned())));
    }
    if !number.contains(|c: char| c.is_ascii_digit()) {
        return Err(NUMERIC_ERROR);
    }
    let mut amount = amount.rounded_up(NANO);
    let mut family = family;
    if family == Family::Binary {
        amount = amount.at_most(&Decimal::from(MOST));
        if amount.is_below_one() {
            family = Family::Decimal;
        }
    }
    Ok(Quantity { amount, scale: None, family, given: None })
}

/// The family and the power of ten, or of two, of a suffix. Upstream cuts a power of ten down to 32 bits.
fn parse_suffix(suffix: &str) -> Option<(Family, i64)> {
    let index = |suffixes: &[&str]| suffixes.iter().position(|s| *s == suffix).and_then(|i| i64::try_from(i).ok());
    if let Some(index) = index(&DECIMAL) {
        return Some((Family::Decimal, 3 * index - 9));
    }
    if let Some(index) = index(&BINARY) {
        return Some((Family::Binary, 10 * index));
    }
    let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    #[allow(clippy::cast_possible_truncation, reason = "upstream does so")]
    Some((Family::Exponent, i64::from(exponent as i32)))
}

impl Quantity {
    /// Whether it is less than, equal to or greater than zero.
    pub(super) fn sign(&self) -> Ordering {
        self.amount.sign()
    }

    /// Whether it is a whole number. Matches `MilliValue() % 1000 == 0`.
    pub(super) fn is_whole(&self) -> bool {
        self.scaled(MILLI) % 1000 == 0
    }

    /// Whether it is a multiple of the size of a page. Matches `IsHugePageResourceValueDivisible`, which ends with a panic for a size
    /// that overflows.
    pub(super) fn is_multiple_of(&self, size: &Self) -> bool {
        let pages = || self.value().checked_rem(size.scaled(0));
        size.sign() == Ordering::Greater && size.is_whole() && pages() == Some(0)
    }

    /// Matches `Value`, which rounds a long negative number towards zero, and one up.
    fn value(&self) -> i64 {
        if self.scale.is_some() || self.sign().is_ge() {
            return self.scaled(0);
        }
        let thousandths = self.amount.rounded_up(MILLI).wrapped_units(MILLI);
        thousandths / 1000 + i64::from(thousandths % 1000 != 0)
    }

    /// What the comparison with another quantity leaves behind: upstream turns both into numbers of any length if one is such.
    pub(super) fn lengthen_beside(&mut self, other: &Self) {
        if other.scale.is_none() {
            self.scale = None;
        }
    }

    /// Compares the amounts.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.amount.compare(&other.amount)
    }

    /// Whether it is more than another one.
    pub(super) fn exceeds(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Greater
    }

    /// The amount in units of a power of ten, rounded up. Matches `ScaledValue`.
    fn scaled(&self, power: i64) -> i64 {
        let units = self.amount.rounded_up(power);
        // Upstream multiplies by these powers of ten at once, and takes what is left after an overflow; by others in a loop.
        let is_wrapped = self.scale.is_none_or(|scale| [1, 2, 3, 6, 9].contains(&(scale - power)));
        units.units(power).unwrap_or_else(|| if is_wrapped { units.wrapped_units(power) } else { 0 })
    }

    /// The sum, in the form of this one unless it is zero. Matches `Quantity.Add`.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let family = if self.sign() == Ordering::Equal { other.family } else { self.family };
        Self { amount: self.amount.plus(&other.amount), scale: None, family, given: None }
    }

    /// The canonical text. Binary quantities below 1024, and fractions, are written decimally.
    pub(super) fn text(&self) -> String {
        if let Some(given) = &self.given {
            return given.clone();
        }
        let binary = self.amount.whole().filter(|units| self.family == Family::Binary && units.unsigned_abs() >= 1024);
        if let Some(mut units) = binary {
            let mut index = 0;
            while units % 1024 == 0 && index + 1 < BINARY.len() {
                (units, index) = (units / 1024, index + 1);
            }
            return format!("{units}{}", BINARY[index]);
        }
        let (digits, power) = self.amount.by_thousands();
        let index = usize::try_from(power / 3 + 3).ok();
        match index.and_then(|index| DECIMAL.get(index)).filter(|_| self.family != Family::Exponent) {
            Some(suffix) => format!("{digits}{suffix}"),
            None if power == 0 => digits,
            None => format!("{digits}e{power}"),
        }
    }
}

#[cfg(test)]
mod tests;
