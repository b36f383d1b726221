//! temp
pub mod control;
pub mod observation;
pub mod own_writes;
pub mod plan;
pub mod reconcile;
mod status;
pub mod sync;
