//! The Kubernetes CronJob controller as a library.
pub mod api;
pub mod cache;
pub mod clock;
pub mod controller;
pub mod schedule;
