//! The Kubernetes CronJob controller as a library.
pub mod clock;
pub mod leader_election;
pub mod server;
