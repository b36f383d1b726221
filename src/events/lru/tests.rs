use super::*;
use proptest::prelude::*;

proptest! {
    /// Compares with a list in order of use.
    #[test]
    fn forgets_exactly_the_least_recently_used(
        capacity in 1_usize..6,
        keys in proptest::collection::vec(0_u8..9, 0..200),
    ) {
        let mut lru = Lru::new(capacity);
        let mut model: Vec<(u8, usize)> = Vec::new();
        for (made_at, key) in keys.into_iter().enumerate() {
            let value = *lru.get_or_insert_with(key, || made_at);
            let known = model.iter().position(|(k, _)| *k == key).map(|at| model.remove(at));
            if known.is_none() && model.len() == capacity {
                model.remove(0);
            }
            model.push(known.unwrap_or((key, made_at)));
            prop_assert_eq!(Some(&(key, value)), model.last());
            prop_assert_eq!(lru.entries.len(), model.len());
            prop_assert_eq!(lru.by_last_use.values().copied().collect::<Vec<_>>(),
                            model.iter().map(|(k, _)| *k).collect::<Vec<_>>());
        }
    }
}
