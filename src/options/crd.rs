//! The command line of `crd`.
//!
//! Guarantee: the syntax is that of the controller's own flags.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, CommandFactory, Parser};

use super::{Command, UsageError, flags};

#[derive(Debug, Clone, Parser)]
#[command(
    name = "cronjob-controller crd",
    about = "Prints the CustomResourceDefinitions of the tutorial's CronJobs and of ApiExamples, as YAML.",
    override_usage = "cronjob-controller crd [flags]",
    disable_help_flag = true,
    disable_version_flag = true,
    args_override_self = true,
    next_line_help = true
)]
struct RawFlags {
    /// Write each definition into a file of its own in this directory instead.
    #[arg(long, value_name = "DIR", default_value = "", hide_default_value = true)]
    output_dir: String,

    /// Print this text and quit.
    #[arg(short, long, action = ArgAction::SetTrue)]
    help: bool,
}

/// The flags as clap knows them.
pub(crate) fn command() -> clap::Command {
    RawFlags::command()
}

/// Reads the command line behind `crd`; `args` begins with the program's name.
pub(super) fn parse(args: impl Iterator<Item = OsString>) -> Result<Command, UsageError> {
    let mut command = command();
    let raw: RawFlags = flags::matches(&mut command, args)?;
    if raw.help {
        return Ok(Command::Help(command.render_help().to_string()));
    }
    Ok(Command::Crd((!raw.output_dir.is_empty()).then(|| PathBuf::from(raw.output_dir))))
}
