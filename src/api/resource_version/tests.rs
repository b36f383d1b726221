use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn every_version_keeps_its_text(text in ".{0,40}") {
        let version = ResourceVersion::from(text.as_str());
        prop_assert_eq!(&*version, text.as_str());
        prop_assert_eq!(version, ResourceVersion::from(text));
    }
}

#[test]
fn it_is_three_words_and_the_largest_number_fits() {
    assert_eq!(size_of::<ResourceVersion>(), 24);
    assert!(matches!(ResourceVersion::from(u64::MAX.to_string()).0, Repr::Inline(20, _)));
}
