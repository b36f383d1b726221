#![allow(clippy::unwrap_used)]

mod builtin;
mod definitions;
mod logs;
mod property;
mod state;
mod support;
mod verbs;
mod watches;
mod webhook_client;
mod webhooks;
mod yaml;
