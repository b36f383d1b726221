//! The shards of a cluster: namespaces, distributed by a hash of their names.
//!
//! Guarantees: every namespace is in exactly one shard of a given number of shards. A shard is a range of hashes, the same
//! that an API server with `ShardedListAndWatch` uses, so server and client agree. Pure.

use std::hash::Hasher;
use std::num::NonZeroU32;

use fnv::FnvHasher;

/// The largest number of shards. Every shard has a lease to renew, which limits the useful number.
pub const MAX_SHARDS: u32 = 256;

/// One shard: the namespaces whose hash lies in its range of the 64-bit numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: NonZeroU32,
}

impl Shard {
    /// All namespaces.
    pub const WHOLE: Self = Self { index: 0, count: NonZeroU32::MIN };

    /// The shards of a cluster that is divided into `count`.
    pub fn all(count: NonZeroU32) -> impl Iterator<Item = Self> {
        (0..count.get()).map(move |index| Self { index, count })
    }

    /// The shard of `count` that contains the namespace of that name.
    pub fn of(namespace: &str, count: NonZeroU32) -> Self {
        let index = (u128::from(hash(namespace)) * u128::from(count.get())) >> 64;
        let shard = Self { index: u32::try_from(index).unwrap_or_default(), count };
        // Bounds are rounded down.
        if shard.owns(namespace) { shard } else { Self { index: shard.index + 1, count } }
    }

    /// The shard's number, from zero.
    pub fn index(self) -> u32 {
        self.index
    }

    /// Whether the shard contains the namespace of that name.
    pub fn owns(self, namespace: &str) -> bool {
        let hash = u128::from(hash(namespace));
        (self.bound(self.index)..self.bound(self.index + 1)).contains(&hash)
    }

    /// The `shardSelector` that asks the API server for these namespaces only; `None` for all namespaces. Matches
    /// apimachinery's `pkg/sharding`: hexadecimal with as many digits as the server prints, the end excluded.
    pub fn selector(self) -> Option<String> {
        (self != Self::WHOLE).then(|| {
            let (start, end) = (self.bound(self.index), self.bound(self.index + 1));
            format!("shardRange(object.metadata.namespace, '0x{start:016x}', '0x{end:016x}')")
        })
    }

    /// The start of the shard of that number: `number` parts of 2^64.
    fn bound(self, number: u32) -> u128 {
        (u128::from(number) << 64) / u128::from(self.count.get())
    }
}

/// FNV-1a with 64 bits. Matches `HashField` in apimachinery's `pkg/sharding/hash.go`.
pub fn hash(text: &str) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn shards(count: u32) -> Vec<Shard> {
        Shard::all(NonZeroU32::new(count).unwrap()).collect()
    }

    #[test]
    fn shard_selector_has_the_api_servers_syntax() {
        let rows = [
            (1, vec![None]),
            (
                2,
                vec![
                    Some("shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')"),
                    Some("shardRange(object.metadata.namespace, '0x8000000000000000', '0x10000000000000000')"),
                ],
            ),
            (
                3,
                vec![
                    Some("shardRange(object.metadata.namespace, '0x0000000000000000', '0x5555555555555555')"),
                    Some("shardRange(object.metadata.namespace, '0x5555555555555555', '0xaaaaaaaaaaaaaaaa')"),
                    Some("shardRange(object.metadata.namespace, '0xaaaaaaaaaaaaaaaa', '0x10000000000000000')"),
                ],
            ),
        ];
        for (count, expected) in rows {
            let selectors: Vec<Option<String>> = shards(count).into_iter().map(Shard::selector).collect();
            assert_eq!(selectors.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn hash_equals_the_api_servers() {
        let rows = [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
            ("default", 0xebad_a516_8620_c5fe),
        ];
        for (text, expected) in rows {
            assert_eq!(hash(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_namespace_is_in_exactly_one_shard(namespace in "[a-z0-9-]{0,20}", count in 1_u32..300) {
            let owners: Vec<Shard> = shards(count).into_iter().filter(|shard| shard.owns(&namespace)).collect();
            prop_assert_eq!(owners, [Shard::of(&namespace, NonZeroU32::new(count).unwrap())]);
        }

        #[test]
        fn ranges_of_consecutive_shards_have_no_gap(count in 1_u32..300) {
            let shards = shards(count);
            prop_assert_eq!(shards[0].bound(0), 0);
            prop_assert_eq!(shards[0].bound(count), 1 << 64);
            for shard in shards {
                prop_assert!(shard.bound(shard.index) < shard.bound(shard.index + 1));
            }
        }
    }
}
