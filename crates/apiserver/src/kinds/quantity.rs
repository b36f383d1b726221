//! Resource quantities such as `500m` and `1.5Gi`.
//!
//! Guarantees: a quantity has one canonical text, which kube-apiserver stores: the largest suffix that needs no fraction,
//! rounded up to thousandths. Matches apimachinery `api/resource`, `ParseQuantity` and `CanonicalizeBytes`, and core/v1
//! `SetDefaults_ResourceList`, for values up to 10^26.

/// The error for an invalid quantity, in upstream's words.
pub(super) const FORMAT_ERROR: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// The error for a text that matches the expression, and whose suffix is none, in upstream's words.
const SUFFIX_ERROR: &str = "unable to parse quantity's suffix";

/// The most digits of a number that Go reads as 64 bits.
const GO_DIGITS: usize = 18;
/// The most that a number of arbitrary precision is, in thousandths.
const MOST: i128 = i64::MAX as i128 * 1000;
/// Larger numbers, which Go has too, are taken for this one.
const LARGEST: i128 = 10_i128.pow(36);
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// The suffixes from 10^-9 on, in steps of a thousand.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// A quantity in thousandths, rounded up, with the family of its suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quantity {
    pub(super) milli: i128,
    family: Family,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Decimal,
    Binary,
    Exponent,
}

/// The canonical text of a quantity.
///
/// # Errors
/// [`FORMAT_ERROR`] or [`SUFFIX_ERROR`] when the text is not a quantity.
pub(super) fn canonical(text: &str) -> Result<String, String> {
    let error = || if is_of_format(text.trim()) { SUFFIX_ERROR } else { FORMAT_ERROR };
    parse(text.trim()).map(Quantity::text).ok_or_else(|| error().to_owned())
}

/// Whether a text is a number, whose digits may be missing, and letters of suffixes with an exponent. Matches `parseQuantityString`.
fn is_of_format(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text).trim_start_matches(|c: char| c.is_ascii_digit());
    let suffix = unsigned.strip_prefix('.').unwrap_or(unsigned).trim_start_matches(|c: char| c.is_ascii_digit());
    let exponent = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    !text.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
}

/// The text of a quantity that is not rounded to thousandths, as those outside of lists of resources are: it may have the suffixes u
/// and n.
///
/// # Errors
/// As [`canonical`].
pub(super) fn exact(text: &str) -> Result<String, String> {
    let rounded = canonical(text)?;
    // The thousandths of a million times the number are billionths of it.
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(trimmed.len());
    let (number, suffix) = trimmed.split_at(end);
    let Some((Family::Decimal, _, exponent)) = parse_suffix(suffix) else { return Ok(rounded) };
    let Some(nano) = parse(&format!("{number}e{}", exponent + 6)).map(|quantity| quantity.milli) else {
        return Ok(rounded);
    };
    Ok(match (nano % 1_000_000, nano % 1000) {
        (0, _) => rounded,
        (_, 0) => format!("{}u", nano / 1000),
        _ => format!("{nano}n"),
    })
}

/// Parses a quantity.
pub(super) fn parse(text: &str) -> Option<Quantity> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // Go reads a sign, a point or a suffix alone as 0.
    if text.is_empty() || fraction.contains('.') {
        return None;
    }
    let mantissa: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let (family, multiplier, exponent) = parse_suffix(suffix)?;
    // Computes mantissa · multiplier · 10^(exponent - digits of the fraction), in thousandths.
    let power = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?.checked_add(3)?;
    let scaled = mantissa.checked_mul(multiplier).unwrap_or(LARGEST);
    let factor = 10_i128.checked_pow(power.unsigned_abs());
    let milli = match factor {
        _ if scaled == 0 => 0,
        Some(factor) if power >= 0 => scaled.checked_mul(factor).unwrap_or(LARGEST),
        Some(factor) => scaled.saturating_add(factor - 1) / factor,
        None if power >= 0 => LARGEST,
        None => 1,
    };
    // Go reads such numbers with arbitrary precision, and cuts them off.
    let is_long = whole.len() + fraction.len() > GO_DIGITS || (family == Family::Binary && milli > MOST);
    let milli = if is_long { milli.min(MOST) } else { milli };
    Some(Quantity { milli: if text.starts_with('-') { -milli } else { milli }, family })
}

/// The family, the factor and the power of ten of a suffix.
fn parse_suffix(suffix: &str) -> Option<(Family, i128, i32)> {
    if let Some(index) = BINARY.iter().position(|s| *s == suffix).filter(|index| *index > 0) {
        return Some((Family::Binary, 1 << (10 * index), 0));
    }
    if let Some(index) = DECIMAL.iter().position(|s| *s == suffix) {
        return Some((Family::Decimal, 1, 3 * i32::try_from(index).ok()? - 9));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Family::Exponent, 1, exponent))
}

impl Quantity {
    /// The sum, in the form of this one unless it is zero. Matches `Quantity.Add`.
    pub(super) fn plus(self, other: Self) -> Self {
        let family = if self.milli == 0 { other.family } else { self.family };
        Self { milli: self.milli.saturating_add(other.milli), family }
    }

    /// The canonical text. Binary quantities below 1024, and fractions, are written decimally.
    pub(super) fn text(self) -> String {
        let units = self.milli / 1000;
        if self.family == Family::Binary && self.milli % 1000 == 0 && units.abs() >= 1024 {
            let mut value = units;
            let mut index = 0;
            while value % 1024 == 0 && index + 1 < BINARY.len() {
                value /= 1024;
                index += 1;
            }
            return format!("{value}{}", BINARY[index]);
        }
        if self.milli == 0 {
            return "0".to_owned();
        }
        let (mut value, mut index) = (self.milli, 2);
        while value % 1000 == 0 && index + 1 < DECIMAL.len() {
            value /= 1000;
            index += 1;
        }
        if self.family == Family::Exponent {
            while value % 1000 == 0 {
                (value, index) = (value / 1000, index + 1);
            }
        }
        match (self.family, index) {
            (Family::Exponent, 3) => value.to_string(),
            (Family::Exponent, _) => format!("{value}e{}", 3 * i32::try_from(index).unwrap_or(0) - 9),
            _ => format!("{value}{}", DECIMAL[index]),
        }
    }
}

#[cfg(test)]
mod tests;
