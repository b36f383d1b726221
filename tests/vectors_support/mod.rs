//! The vector files, each with the code that checks its rows.

mod missed_vectors;
mod schedule_vectors;
mod support;
mod sync_vectors;
