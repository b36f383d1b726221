//! Decimal numbers of any length.
//!
//! Guarantees: a number is its digits and a power of ten, so its size costs nothing. Nothing here panics or overflows: what is longer than
//! [`LONGEST`] digits when two numbers are aligned counts as its larger part alone. Pure.

use std::cmp::Ordering;

/// The most digits of a sum.
const LONGEST: i64 = 10_000;

/// A number: its digits times a power of ten. The first and the last digit are not 0, and zero has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    is_negative: bool,
    digits: Vec<u8>,
    power: i64,
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Self {
        Self::new(number < 0, &number.unsigned_abs().to_string(), 0)
    }
}

impl Decimal {
    /// The number with these digits, all of them from 0 to 9.
    pub fn new(is_negative: bool, digits: &str, power: i64) -> Self {
        Self::of(is_negative, digits.bytes().map(|digit| digit.wrapping_sub(b'0')).collect(), power)
    }

    fn of(is_negative: bool, mut digits: Vec<u8>, power: i64) -> Self {
        let Some(first) = digits.iter().position(|digit| *digit != 0) else {
            return Self { is_negative: false, digits: Vec::new(), power: 0 };
        };
        let end = digits.iter().rposition(|digit| *digit != 0).map_or(digits.len(), |last| last + 1);
        let zeros = i64::try_from(digits.len() - end).unwrap_or(i64::MAX);
        digits.truncate(end);
        digits.drain(..first);
        Self { is_negative, digits, power: power.saturating_add(zeros) }
    }

    fn length(&self) -> i64 {
        i64::try_from(self.digits.len()).unwrap_or(i64::MAX)
    }

    pub fn sign(&self) -> Ordering {
        match self.digits.is_empty() {
            true => Ordering::Equal,
            false if self.is_negative => Ordering::Less,
            false => Ordering::Greater,
        }
    }

    pub fn compare(&self, other: &Self) -> Ordering {
        match (self.sign(), other.sign()) {
            (Ordering::Less, Ordering::Less) => other.compare_sizes(self),
            (Ordering::Greater, Ordering::Greater) => self.compare_sizes(other),
            (own, other) => own.cmp(&other),
        }
    }

    /// Compares without the signs.
    fn compare_sizes(&self, other: &Self) -> Ordering {
        let most = |number: &Self| (!number.digits.is_empty()).then(|| number.length().saturating_add(number.power));
        most(self).cmp(&most(other)).then_with(|| self.digits.cmp(&other.digits))
    }

    /// Whether its size is below 1.
    pub fn is_below_one(&self) -> bool {
        self.compare_sizes(&Self::from(1)) == Ordering::Less
    }

    /// The number, or `most` with its sign if its size is more than that.
    pub fn at_most(self, most: &Self) -> Self {
        if self.compare_sizes(most) == Ordering::Greater {
            Self { is_negative: self.is_negative, ..most.clone() }
        } else {
            self
        }
    }

    /// The number as a multiple of a power of ten, rounded away from zero.
    pub fn rounded_up(&self, power: i64) -> Self {
        if self.digits.is_empty() || self.power >= power {
            return self.clone();
        }
        let kept = usize::try_from(self.length().saturating_add(self.power).saturating_sub(power)).unwrap_or(0);
        let mut digits: Vec<u8> = std::iter::once(0).chain(self.digits.iter().copied().take(kept)).collect();
        // The last digit is not 0, so what is left out is not either.
        for digit in digits.iter_mut().rev() {
            *digit = (*digit + 1) % 10;
            if *digit != 0 {
                break;
            }
        }
        Self::of(self.is_negative, digits, power)
    }

    /// The number times 2^`power`, of which `power` is at most 60.
    pub fn times_power_of_two(self, power: i64) -> Self {
        let factor = 1_u128 << power.clamp(0, 60);
        let (mut digits, mut carry) = (Vec::with_capacity(self.digits.len() + 20), 0_u128);
        for digit in self.digits.iter().rev() {
            carry += u128::from(*digit) * factor;
            digits.push(u8::try_from(carry % 10).unwrap_or(0));
            carry /= 10;
        }
        while carry > 0 {
            digits.push(u8::try_from(carry % 10).unwrap_or(0));
            carry /= 10;
        }
        digits.reverse();
        Self::of(self.is_negative, digits, self.power)
    }

    /// The whole number, if it is one that fits.
    pub fn whole(&self) -> Option<i128> {
        let factor = 10_i128.checked_pow(u32::try_from(self.power).ok()?)?;
        let mut number = 0_i128;
        for digit in &self.digits {
            number = number.checked_mul(10)?.checked_add(i128::from(*digit))?;
        }
        number.checked_mul(if self.is_negative { -factor } else { factor })
    }

    /// The number in units of a power of ten, of which it is a multiple, if that fits.
    pub fn units(&self, power: i64) -> Option<i64> {
        if self.digits.is_empty() {
            return Some(0);
        }
        let units = Self { power: self.power.saturating_sub(power), ..self.clone() };
        units.whole().and_then(|units| i64::try_from(units).ok())
    }

    /// The same, without what does not fit into 64 bits.
    pub fn wrapped_units(&self, power: i64) -> i64 {
        // 10^64 has no bit below the 65th.
        let zeros = self.power.saturating_sub(power).clamp(0, 64);
        let mantissa =
            self.digits.iter().fold(0_i64, |sum, digit| sum.wrapping_mul(10).wrapping_add(i64::from(*digit)));
        let size = (0..zeros).fold(mantissa, |size, _| size.wrapping_mul(10));
        if self.is_negative { size.wrapping_neg() } else { size }
    }

    pub fn plus(&self, other: &Self) -> Self {
        if self.digits.is_empty() || other.digits.is_empty() {
            return if self.digits.is_empty() { other.clone() } else { self.clone() };
        }
        let (large, small) = if self.compare_sizes(other) == Ordering::Less { (other, self) } else { (self, other) };
        let power = large.power.min(small.power);
        let end = large.length().saturating_add(large.power);
        let Some(length) = usize::try_from(end.saturating_sub(power)).ok().filter(|_| end - power < LONGEST) else {
            return large.clone();
        };
        let aligned = |number: &Self| {
            let zeros = usize::try_from(number.power - power).unwrap_or(0);
            let mut digits = vec![0; (length + 1).saturating_sub(number.digits.len() + zeros)];
            digits.extend(&number.digits);
            digits.resize(length + 1, 0);
            digits
        };
        let (mut sum, other) = (aligned(large), aligned(small));
        let is_difference = large.is_negative != small.is_negative;
        let mut carry = 0;
        for (digit, other) in sum.iter_mut().zip(other).rev() {
            let more = if is_difference { 20 + *digit - other - carry } else { 10 + *digit + other + carry };
            (*digit, carry) = (more % 10, if is_difference { u8::from(more < 20) } else { more / 10 - 1 });
        }
        Self::of(large.is_negative, sum, power)
    }

    /// The digits and a power of ten that is the largest multiple of three.
    pub fn by_thousands(&self) -> (String, i64) {
        if self.digits.is_empty() {
            return ("0".to_owned(), 0);
        }
        let zeros = self.power.rem_euclid(3);
        let sign = if self.is_negative { "-" } else { "" };
        let digits: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let padding = "0".repeat(usize::try_from(zeros).unwrap_or(0));
        (format!("{sign}{digits}{padding}"), self.power - zeros)
    }
}
