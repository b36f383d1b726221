//! How late Jobs were.
//!
//! Guarantees: the greatest value is exact. A quantile is exact to a millisecond below a second, to ten milliseconds below five
//! minutes, and to a second above, where what exceeds a day counts as a day. So there are at most 117,000 counts, however many values. Pure.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::Serialize;

/// A histogram of durations.
#[derive(Clone, Debug, Default)]
pub(super) struct Lateness {
    /// The number of values by their millisecond, rounded down to the step.
    counts: BTreeMap<u32, u64>,
    total: u64,
    max: TimeDelta,
}

/// Quantiles, in seconds. All are zero without a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Quantiles {
    /// The median.
    pub p50: f64,
    /// The value that one of a hundred exceeds.
    pub p99: f64,
    /// The greatest value.
    pub max: f64,
}

impl Lateness {
    /// Adds a value; what is early counts as zero.
    pub fn add(&mut self, late: TimeDelta) {
        let late = late.max(TimeDelta::zero());
        *self.counts.entry(step(late)).or_default() += 1;
        self.total += 1;
        self.max = self.max.max(late);
    }

    /// The number of values.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// The quantiles.
    pub fn quantiles(&self) -> Quantiles {
        Quantiles { p50: self.quantile(50), p99: self.quantile(99), max: seconds(self.max) }
    }

    /// The smallest value that `percent` of all values do not exceed.
    fn quantile(&self, percent: u64) -> f64 {
        let rank = (self.total * percent).div_ceil(100);
        let mut below = 0;
        for (millis, count) in &self.counts {
            below += count;
            if below >= rank {
                return f64::from(*millis) / 1000.0;
            }
        }
        0.0
    }
}

/// A duration in seconds, to the millisecond.
pub(super) fn seconds(time: TimeDelta) -> f64 {
    let millis = i32::try_from(time.num_milliseconds()).unwrap_or(i32::MAX);
    f64::from(millis) / 1000.0
}

/// The step of a duration of zero or more, in milliseconds.
fn step(late: TimeDelta) -> u32 {
    let millis = u32::try_from(late.num_milliseconds()).unwrap_or(u32::MAX).min(86_400_000);
    match millis {
        0..1_000 => millis,
        1_000..300_000 => millis / 10 * 10,
        _ => millis / 1_000 * 1_000,
    }
}

#[cfg(test)]
mod tests;
