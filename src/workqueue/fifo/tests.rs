//! The queue beside a map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn fifo_behaves_as_a_map_by_number(moves in prop::collection::vec((0u8..4, any::<prop::sample::Index>()), 1..200)) {
        let (mut fifo, mut map) = (Fifo::default(), BTreeMap::new());
        for (number, (what, index)) in (0u64..).zip(moves) {
            match what {
                0 | 1 => {
                    fifo.push(number, number);
                    map.insert(number, number);
                }
                2 => assert_eq!(fifo.pop(), map.pop_first().map(|(_, entry)| entry)),
                _ => {
                    let gone = number - index.index(100).min(usize::try_from(number).unwrap_or(0)) as u64;
                    assert_eq!(fifo.remove(gone), map.remove(&gone));
                    assert_eq!(fifo.get_mut(gone), None);
                }
            }
            assert_eq!(fifo.front(), map.values().next());
            assert_eq!(fifo.is_empty(), map.is_empty());
            assert!(map.len() <= fifo.len());
        }
    }
}
