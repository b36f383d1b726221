use proptest::prelude::*;

use super::*;

#[test]
fn index_sets_have_upstreams_text() {
    for (text, indexes) in [("", vec![]), ("0", vec![0]), ("0,1", vec![0, 1]), ("0-2,5", vec![0, 1, 2, 5])] {
        let indexes: BTreeSet<u32> = indexes.into_iter().collect();
        assert_eq!((format(&indexes).as_str(), parse(text, 10)), (text, indexes));
    }
    assert_eq!(parse("0-9,x,3-", 2), [0, 1].into(), "what lies beyond the completions, or is no index, is left out");
}

proptest! {
    #[test]
    fn formatted_index_set_parses_back(indexes in prop::collection::btree_set(0_u32..40, 0..40)) {
        prop_assert_eq!(parse(&format(&indexes), 40), indexes);
    }
}
