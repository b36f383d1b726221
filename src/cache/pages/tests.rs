use proptest::prelude::*;

use super::*;

/// The error for an endless list whose pages have these numbers of objects and these tokens.
fn refusal(objects: impl Fn(u32) -> usize, token: impl Fn(u32) -> String) -> String {
    let mut pages = Pages::default();
    let refused = (1..=MAX_PAGES).find_map(|page| pages.next(objects(page), &token(page)).err());
    refused.map_or_else(String::new, |cause| cause.to_string())
}

#[test]
fn a_list_that_never_ends_is_refused() {
    let fresh = |page: u32| page.to_string();
    let rows = [
        (
            "the token of the last page again",
            refusal(|_| 500, |_| "t".to_owned()),
            "the list does not end: a continue token came again on page 2",
        ),
        (
            "two tokens by turns",
            refusal(|_| 500, |page| (page % 2).to_string()),
            "the list does not end: a continue token came again on page 4",
        ),
        (
            "empty pages with tokens that are always new",
            refusal(|page| usize::from(page <= 3), fresh),
            "the list does not end: page after page is empty on page 13",
        ),
        (
            "pages and tokens that are always new",
            refusal(|_| 1, fresh),
            "the list does not end: there is always another page on page 20000",
        ),
        (
            "an empty page now and then is no reason",
            refusal(|page| usize::from(page % 10 == 0), fresh),
            "the list does not end: there is always another page on page 20000",
        ),
    ];
    for (sentence, refusal, expected) in rows {
        assert_eq!(refusal, expected, "{sentence}");
    }
}

#[test]
fn page_size_follows_the_size_of_the_last_pages_objects() {
    let rows = [
        ("small objects", 500, 500 * 2_000, 500),
        ("an empty page", 0, 100, 500),
        ("objects of 1.3 MB", 500, 500 * 1_300_000, 6),
        ("objects as long as a page", 2, 2 * PAGE_BYTES, 1),
        ("objects longer than a page", 1, 4 * PAGE_BYTES, 1),
        ("small ones again", 6, 6 * 2_000, 500),
    ];
    for (sentence, objects, bytes, expected) in rows {
        assert_eq!(page_size(objects, bytes), expected, "{sentence}");
    }
}

proptest! {
    #[test]
    fn cycle_of_continue_tokens_is_detected_within_a_few_rounds(before in 0_u32..1_000, round in 1_u32..1_000) {
        let token = |page: u32| if page < before { page } else { before + (page - before) % round };
        let mut pages = Pages::default();
        let found = (0..MAX_PAGES).find(|page| pages.next(1, &token(*page).to_string()).is_err());
        prop_assert!(found.is_some_and(|page| page >= before + round && page <= 3 * (before + round) + 1));
    }
}
