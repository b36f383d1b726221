//! Random numbers from a seed: SplitMix64, so that a run does not depend on a library's version.

/// A sequence of numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A separate sequence for `label`: drawing from one does not change the other.
    pub fn fork(seed: u64, label: &str) -> Self {
        Self(seed ^ hash(label))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `low` up to, and excluding, `high`.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low).max(1)
    }

    /// True with a probability of `percent`.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.range(0, 100) < percent
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.range(0, from.len() as u64)).unwrap()]
    }

    /// One of `from`, chosen by weight.
    pub fn weighted<T: Clone>(&mut self, from: &[(u64, T)]) -> T {
        let mut left = self.range(0, from.iter().map(|(weight, _)| weight).sum());
        for (weight, item) in from {
            if left < *weight {
                return item.clone();
            }
            left -= weight;
        }
        unreachable!("the weights add up")
    }
}

/// FNV-1a: the same on every machine.
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}
