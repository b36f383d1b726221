//! The Kubernetes CronJob controller as a library.
pub mod client;
pub mod clock;
pub mod logging;
pub mod options;
