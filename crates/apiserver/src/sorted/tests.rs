use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn sorted_map_behaves_as_a_btree_map(steps in prop::collection::vec((any::<bool>(), 0_u32..2000), 0..3000), probe in 0_u32..2000) {
        let (mut sorted, mut model) = (Sorted::default(), BTreeMap::new());
        for (index, (is_insert, key)) in steps.into_iter().enumerate() {
            let key = format!("{key:04}");
            if is_insert {
                prop_assert_eq!(sorted.insert(&key, index), model.insert(key, index));
            } else {
                prop_assert_eq!(sorted.remove(&key), model.remove(&key));
            }
        }
        let probe = format!("{probe:04}");
        prop_assert_eq!(sorted.iter().count(), model.len());
        prop_assert_eq!(sorted.get(&probe), model.get(&probe));
        prop_assert_eq!(sorted.rank(&probe), model.range(..probe.clone()).count());
        let from: Vec<_> = sorted.range(&probe).map(|(key, value)| (key.to_owned(), *value)).collect();
        prop_assert_eq!(from, model.range(probe..).map(|(k, v)| (k.clone(), *v)).collect::<Vec<_>>());
        let all: Vec<_> = sorted.iter().map(|(key, value)| (key.to_owned(), *value)).collect();
        prop_assert_eq!(all, model.into_iter().collect::<Vec<_>>());
        prop_assert!(sorted.runs.iter().all(|run| (1..=LONGEST).contains(&run.len())));
    }
}

#[test]
fn keys_in_order_fill_their_runs() {
    let mut sorted = Sorted::default();
    for number in 0..10 * LONGEST {
        sorted.insert(&format!("{number:08}"), ());
    }
    assert_eq!(sorted.runs.len(), 10);
}
