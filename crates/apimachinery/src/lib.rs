//! Code that API servers and their clients share: Status errors, rules for names, quoting, the clock, and counts of steps for
//! tests.
//!
//! Guarantees: every text equals upstream's for the same arguments (k8s.io/apimachinery), except those of [`causes`]. Nothing
//! here does I/O, except for the clock's timer.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::too_many_lines))]

pub mod clock;

// For the API server and for this project; may change with any release.
#[doc(hidden)]
pub mod causes;
#[doc(hidden)]
pub mod field;
#[doc(hidden)]
pub mod names;
#[doc(hidden)]
pub mod quoting;
#[doc(hidden)]
pub mod status;
#[doc(hidden)]
pub mod steps;

/// Runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
