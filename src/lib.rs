//! The Kubernetes CronJob controller as a library.
pub mod api;
pub mod clock;
pub mod controller;
pub mod events;
pub mod leader_election;
pub mod metrics;
pub mod schedule;
pub mod server;
pub mod workqueue;
