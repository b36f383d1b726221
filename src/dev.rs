//! dev
pub mod job_controller;
pub mod kubelet;
pub mod objects;
pub mod options;
