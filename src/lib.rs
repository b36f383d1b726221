//! The Kubernetes CronJob controller as a library.
pub mod clock;
pub mod options;
