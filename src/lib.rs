//! The Kubernetes CronJob controller as a library.
#![cfg_attr(
    not(test),
    warn(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout, clippy::too_many_lines)
)]

pub mod api;
pub mod app;
pub mod cache;
pub mod cli;
pub mod client;
pub mod controller;
#[cfg(feature = "dev")]
pub mod dev;
pub mod events;
pub mod leader_election;
pub mod logging;
pub mod metrics;
pub mod options;
pub mod server;
pub mod shutdown;
pub mod sim;
pub mod terminal;
mod token_bucket;
pub mod traces;
#[cfg(feature = "ui")]
pub mod ui;
pub mod webhook;
pub mod workqueue;
mod yaml;
