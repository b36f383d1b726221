//! What API servers and their clients share: refusals, rules for names, quoting, and the clock.
//!
//! Guarantees: every text is upstream's for the same arguments (k8s.io/apimachinery), and nothing here does any I/O.

pub mod clock;
pub mod field;
pub mod names;
pub mod quoting;
pub mod status;
