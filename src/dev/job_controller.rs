//! jc
mod indexes;
pub mod plan;
