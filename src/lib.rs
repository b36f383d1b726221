//! The Kubernetes CronJob controller as a library.
pub mod api;
pub mod apiserver;
pub mod app;
pub mod cache;
pub mod client;
pub mod clock;
pub mod controller;
pub mod dev;
pub mod events;
pub mod leader_election;
pub mod logging;
pub mod metrics;
pub mod options;
pub mod schedule;
pub mod server;
pub mod task;
pub mod workqueue;
