//! The length of a list's pages, and whether they can end. Pure.
//!
//! Guarantee: whatever continue tokens a server sends, [`Pages::next`] refuses one after more pages than any cluster has. It
//! refuses much earlier where tokens repeat or pages stay empty. It stores one token.
//!
//! A page holds as many objects as make [`PAGE_BYTES`] at the length of those on the page before, [`PAGE_SIZE`] at most. So a
//! server need not hold hundreds of MB for one request, and a page arrives within its deadline.
//!
//! client-go's `tools/pager/pager.go` always asks for [`PAGE_SIZE`], and as long as there are tokens.

use super::error::Cause;

/// How many objects a page holds at most. Matches client-go's `pager.defaultPageSize`.
pub(crate) const PAGE_SIZE: u32 = 500;
/// The intended size of a page, in bytes.
const PAGE_BYTES: usize = 8 << 20;

/// How many objects to ask for after a page with this many objects and bytes.
pub(crate) fn page_size(objects: usize, bytes: usize) -> u32 {
    let average = bytes / objects.max(1);
    let fitting = PAGE_BYTES / average.max(1);
    u32::try_from(fitting).unwrap_or(PAGE_SIZE).clamp(1, PAGE_SIZE)
}

/// Ten million objects in pages of 500: more than etcd holds.
const MAX_PAGES: u32 = 20_000;
/// A page ends where it is full or where the list ends, so an empty page that does not end the list is unusual. This many in
/// a row mean that the server makes no progress.
const MAX_EMPTY: u32 = 10;

/// The progress of a list.
#[derive(Debug, Default)]
pub(super) struct Pages {
    count: u32,
    /// How many pages in a row were empty.
    empty: u32,
    /// A token to compare later ones with. It is replaced at every power of two pages, so a cycle of any length is found once
    /// a token stays for long enough (Brent's algorithm).
    known: String,
}

impl Pages {
    /// Counts a page with this many objects whose continue token is not empty.
    ///
    /// # Errors
    /// [`Cause::EndlessList`] if asking for the next page makes no sense.
    pub(super) fn next(&mut self, objects: usize, token: &str) -> Result<(), Cause> {
        self.count += 1;
        self.empty = if objects == 0 { self.empty + 1 } else { 0 };
        let sign = if token == self.known {
            "a continue token came again"
        } else if self.empty >= MAX_EMPTY {
            "page after page is empty"
        } else if self.count >= MAX_PAGES {
            "there is always another page"
        } else {
            if self.count.is_power_of_two() {
                token.clone_into(&mut self.known);
            }
            return Ok(());
        };
        Err(Cause::EndlessList { pages: self.count, sign })
    }
}

#[cfg(test)]
mod tests {
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
}
