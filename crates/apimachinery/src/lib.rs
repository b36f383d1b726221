//! Code that API servers and their clients share: Status errors, rules for names, quoting, the clock, and counts of steps for
//! tests.
//!
//! Guarantees: every text equals upstream's for the same arguments (k8s.io/apimachinery), except those of [`causes`]. Nothing
//! here does I/O, except for the clock's timer.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::too_many_lines))]

pub mod causes;
pub mod clock;
pub mod field;
pub mod names;
pub mod quoting;
pub mod status;
pub mod steps;
