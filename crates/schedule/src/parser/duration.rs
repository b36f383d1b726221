//! Durations in Go's syntax: `1h30m`, `1.5h`, `-2µs`.
//!
//! Guarantees: accepts and rejects the same texts as Go's `time.ParseDuration` and returns the same nanoseconds, including
//! overflow. Errors have Go's wording.

/// The value in nanoseconds. Matches `ParseDuration` in Go's time/format.go.
pub(super) fn parse_nanos(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), split_digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit_name, after) = after.split_at(end);
        let amount = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        if amount > LIMIT {
            return Err(invalid());
        }
        if unit_name.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let unit =
            unit_nanos(unit_name).ok_or_else(|| format!("time: unknown unit {unit_name:?} in duration {text:?}"))?;
        if amount > LIMIT / unit {
            return Err(invalid());
        }
        // The second sum wraps in Go too: twice 2^63 is 0.
        let nanos = amount * unit + fraction_nanos(fraction, unit);
        total = total.wrapping_add(nanos);
        if nanos > LIMIT || total > LIMIT {
            return Err(invalid());
        }
        rest = after;
    }
    if negative {
        // -2^63 is a duration, 2^63 is not.
        return Ok(0i64.wrapping_sub_unsigned(total));
    }
    i64::try_from(total).map_err(|_| invalid())
}

/// The magnitude of the smallest duration.
const LIMIT: u64 = 1 << 63;

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn unit_nanos(name: &str) -> Option<u64> {
    Some(match name {
        "ns" => 1,
        // Micro sign and Greek mu.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// The digits after the point in nanoseconds; digits beyond 63 bits are dropped. The float arithmetic is Go's.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bit for bit what Go computes; the product is below an hour"
)]
fn fraction_nanos(digits: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0u64, 1f64);
    for digit in digits.bytes() {
        if value > (LIMIT - 1) / 10 {
            break;
        }
        let longer = value * 10 + u64::from(digit - b'0');
        if longer > LIMIT {
            break;
        }
        value = longer;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}
