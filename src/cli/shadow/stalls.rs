//! Whether this process was slow: stopped, or short of processor time.
//!
//! Guarantee: what is found shortly after a stall may have held since the last time at which nothing was left to do. Lateness that counts
//! from then is not too low. Tokio's time says how long a stall was.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

/// Ticks come every second. After so long without one that finds the queue empty, this process is slow.
const SLOW: Duration = Duration::from_secs(3);
/// For so long after a stall, the watches may still show what happened in it.
const AFTER: Duration = Duration::from_secs(5);

/// When nothing was left to do last, and the last stall.
pub(super) struct Stalls {
    idle: (Instant, DateTime<Utc>),
    /// When the stall began at the earliest, and until when it counts.
    last: Option<(DateTime<Utc>, Instant)>,
}

impl Stalls {
    /// Nothing is left to do at `now`.
    pub fn new(now: DateTime<Utc>) -> Self {
        Self { idle: (Instant::now(), now), last: None }
    }

    /// A second has passed.
    pub fn tick(&mut self, now: DateTime<Utc>, is_idle: bool) {
        let (at, (idle, began)) = (Instant::now(), self.idle);
        if at - idle > SLOW {
            let began = self.last.filter(|(_, until)| at <= *until).map_or(began, |(began, _)| began);
            self.last = Some((began, at + AFTER));
        }
        if is_idle {
            self.idle = (at, now);
        }
    }

    /// Since when what is found at `now` may have held.
    pub fn ready(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let (at, (idle, began)) = (Instant::now(), self.idle);
        match self.last {
            Some((began, until)) if at <= until => began,
            _ if at - idle > SLOW => began,
            _ => now,
        }
    }
}

#[cfg(test)]
mod tests;
