use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn key(name: u8) -> Key {
    [name; 32]
}

proptest! {
    #[test]
    fn cache_never_exceeds_its_capacity_and_returns_no_expired_entry(
        steps in prop::collection::vec((0_u8..12, 0_u32..5, 0_u32..3), 0..200),
    ) {
        let mut now = Instant::now();
        let mut cache = Cache::new(4);
        let mut ends = HashMap::new();
        for (name, ttl, pause) in steps {
            cache.put(key(name), name, SECOND * ttl, now);
            if ttl > 0 {
                ends.insert(name, now + SECOND * ttl);
                prop_assert_eq!(cache.get(&key(name), now), Some(name), "what was just put is there");
            }
            prop_assert!(cache.entries.len() <= 4);
            now += SECOND * pause;
            for name in 0..12 {
                if let Some(found) = cache.get(&key(name), now) {
                    prop_assert!(found == name && ends[&name] > now);
                }
            }
        }
    }
}

#[test]
fn entry_that_expires_first_is_evicted_unless_one_has_expired() {
    let now = Instant::now();
    let mut cache = Cache::new(2);
    cache.put(key(1), 1, 9 * SECOND, now);
    cache.put(key(2), 2, SECOND, now);
    cache.put(key(3), 3, 9 * SECOND, now + SECOND);
    assert_eq!([1, 2, 3].map(|name| cache.get(&key(name), now + SECOND)), [Some(1), None, Some(3)]);
    cache.put(key(4), 4, 9 * SECOND, now + 2 * SECOND);
    assert_eq!([1, 3, 4].map(|name| cache.get(&key(name), now + 2 * SECOND)), [None, Some(3), Some(4)]);
}
