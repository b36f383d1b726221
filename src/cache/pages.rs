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
mod tests;
