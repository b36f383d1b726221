//! Reproducible random instants: one seed for a run, printed at its start.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub struct Luck(StdRng);

/// The seed in `FAULTS_SEED`, or a new one.
pub fn seed() -> u64 {
    match std::env::var("FAULTS_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("FAULTS_SEED={text} is not a number")),
        Err(_) => rand::random_range(0..1_000_000),
    }
}

impl Luck {
    /// A separate sequence for each case, so that it can be repeated without the others.
    pub fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A number from `low` to below `high`.
    pub fn number(&mut self, low: usize, high: usize) -> usize {
        self.0.random_range(low..high)
    }

    /// An instant in the inner part of `whole`.
    pub fn part_of(&mut self, whole: Duration) -> Duration {
        whole.mul_f64(self.0.random_range(0.02..0.95))
    }
}
