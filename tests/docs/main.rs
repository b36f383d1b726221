//! The documents: README, ARCHITECTURE, the pages below `docs/`, and every other Markdown file in the repository.
//!
//! - Every relative link and every anchor has a target, and the book's summary lists every page.
//! - Every block of commands is run here, or names the test that runs it, or is marked as an excerpt.
//! - A command inside a sentence has arguments and directories that exist.
//! - `docs/reference/` matches the code. `make docs-reference` rewrites it.
//! - The documents keep to their maximum lengths and to plain words.
#![allow(clippy::unwrap_used, clippy::explicit_write, missing_docs)]

mod blocks;
mod commands;
mod links;
mod markdown;
mod reference;
mod upstream;
mod words;

fn report(rule: &str, violations: &[String]) {
    assert!(violations.is_empty(), "{rule}:\n  {}", violations.join("\n  "));
}
