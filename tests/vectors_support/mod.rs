//! The files of vectors, each with the code that judges its rows.

mod missed_vectors;
mod schedule_vectors;
mod support;
mod sync_vectors;
