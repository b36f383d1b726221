//! The command line of `crd`.
//!
//! Guarantee: the syntax is that of the controller's own flags.

use std::ffi::OsString;

use clap::{ArgAction, Parser};

use super::dispatch::Invocation;
use crate::options::resolve::path;
use crate::options::{UsageError, flags};

#[derive(Debug, Clone, Parser)]
#[command(
    name = "cronjob-controller crd",
    about = "Prints the CustomResourceDefinitions of the tutorial's CronJobs and of ApiExamples, as YAML.",
    override_usage = "cronjob-controller crd [flags]"
)]
struct RawFlags {
    /// Write each definition into a file of its own in this directory instead.
    #[arg(long, value_name = "DIR", default_value = "")]
    output_dir: String,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    help: bool,
}

/// The flags as clap knows them.
pub(super) fn command() -> clap::Command {
    flags::command::<RawFlags>()
}

/// Parses the command line after `crd`; `args` begins with the program's name.
pub(super) fn parse(args: impl Iterator<Item = OsString>) -> Result<Invocation, UsageError> {
    let mut command = command();
    let raw: RawFlags = flags::matches(&mut command, args)?;
    if raw.help {
        return Ok(Invocation::Help(command.render_help().to_string()));
    }
    Ok(Invocation::Crd(path(&raw.output_dir)))
}

#[cfg(test)]
mod tests;
