//! Selects the command line: the controller's own, a subcommand's, or the plugin's.
//!
//! Guarantees: only the program's file name and the first word decide; for the plugin, the first word after its flags. The
//! module of the subcommand, or `options`, parses the rest. A first word that is no command, and a controller without flags
//! outside a Pod, are refused with advice. Pure.

use std::ffi::OsString;
use std::path::PathBuf;

use super::kubectl::{Program, command_first, complete};
#[cfg(feature = "ui")]
use super::options::ui::UiConfig;
use super::shadow::ShadowConfig;
use super::{Command, crd, options as subcommands, pages};
#[cfg(feature = "dev")]
use crate::dev::options::{self as dev, DevConfig, Request};
use crate::options::{self, Config, Environment, PROGRAM, UsageError};

/// The command that a command line requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Invocation {
    /// Run the controller.
    Run(Box<Config>),
    /// Run a cluster in this process, for trying the controller.
    #[cfg(feature = "dev")]
    Dev(Box<DevConfig>),
    /// Serve a page that shows CronJobs.
    #[cfg(feature = "ui")]
    Ui(Box<UiConfig>),
    /// Compare what this controller would do with what the controller in charge does.
    Shadow(Box<ShadowConfig>),
    /// Print the CustomResourceDefinitions as YAML, or write each into a file of this directory.
    Crd(Option<PathBuf>),
    /// Run a command for a user at a terminal.
    Cli(Box<Command>),
    /// Print this text to stdout and exit with 0: the help, a manual page, or shell completions.
    Help(String),
    /// Print this line, name and version, to stdout and exit with 0.
    Version(String),
}

impl From<options::Command> for Invocation {
    fn from(command: options::Command) -> Self {
        match command {
            options::Command::Run(config) => Self::Run(config),
            options::Command::Help(text) => Self::Help(text),
            options::Command::Version(line) => Self::Version(line),
        }
    }
}

#[cfg(feature = "dev")]
impl From<Request> for Invocation {
    fn from(request: Request) -> Self {
        match request {
            Request::Run(config) => Self::Dev(config),
            Request::Help(text) => Self::Help(text),
        }
    }
}

/// The subcommands that this build does not include, with the cargo features that they need.
#[cfg(not(feature = "ui"))]
const LEFT_OUT: &[(&str, &str)] = &[
    #[cfg(not(feature = "dev"))]
    ("dev", "dev"),
    #[cfg(not(feature = "dev"))]
    ("check", "dev"),
    ("ui", "ui"),
];

/// Parses a command line; `args` begins with the program's name, as [`std::env::args_os`] does.
///
/// # Errors
/// Every fault of the command line, one sentence each. Exit with 2.
pub fn parse<I, S>(args: I, env: &dyn Environment) -> Result<Invocation, UsageError>
where
    I: IntoIterator<Item = S>,
    S: Into<OsString>,
{
    let mut args = args.into_iter().map(Into::into);
    let program = args.next().unwrap_or_else(|| PROGRAM.into());
    let role = Program::of(&program);
    let args: Vec<OsString> = args.collect();
    let mut args = if role == Program::Completer { args } else { without_help(args) };
    if role == Program::Plugin {
        command_first(&mut args);
    }
    let mut args = args.into_iter().peekable();
    match role {
        Program::Controller if !args.peek().is_some_and(subcommands::is_command) => {}
        Program::Completer => {
            let words: Vec<String> = args.map(|word| word.to_string_lossy().into_owned()).collect();
            let completion = complete(&words);
            return Ok(match completion.source {
                None => Invocation::Help(completion.text(Vec::new()).to_string()),
                Some(_) => Invocation::Cli(Box::new(Command::Complete(completion))),
            });
        }
        name => return subcommands::parse(name, args, env),
    }
    #[cfg(not(feature = "ui"))]
    if let Some((word, feature)) = args.peek().and_then(|word| LEFT_OUT.iter().find(|(left_out, _)| word == left_out)) {
        return Err(UsageError::one(format!("{word} is not in this build; it needs the cargo feature {feature}")));
    }
    #[cfg(feature = "dev")]
    if args.next_if(|word| word == "dev").is_some() {
        return dev::parse(std::iter::once(program).chain(args)).map(Invocation::from);
    }
    if args.next_if(|word| word == "crd").is_some() {
        return crd::parse(std::iter::once(program).chain(args));
    }
    match args.peek().map(|word| word.to_string_lossy().into_owned()) {
        None if !env.is_in_cluster() => return Err(UsageError::one(NO_CLUSTER.to_owned())),
        Some(word) if !word.starts_with('-') => return Err(no_command(Program::Controller, &word)),
        _ => {}
    }
    options::parse(std::iter::once(program).chain(args), env).map(Invocation::from)
}

/// What a user reads who starts the program to see what it is.
const NO_CLUSTER: &str = if cfg!(feature = "dev") {
    "this is a controller for CronJobs, and needs a cluster: it uses its Pod's, or --kubeconfig=FILE; \
     `cronjob-controller dev` runs a cluster to try it out, and --help lists all commands and flags"
} else {
    "this is a controller for CronJobs, and needs a cluster: it uses its Pod's, or --kubeconfig=FILE; --help lists all commands \
     and flags"
};

/// Turns `help` into `--help`, and `help COMMAND` into `COMMAND --help`.
fn without_help(mut args: Vec<OsString>) -> Vec<OsString> {
    if args.first().is_some_and(|word| word == "help") {
        args.remove(0);
        args.insert(args.len().min(1), "--help".into());
    }
    args
}

/// The error for a word that is no command.
pub(super) fn no_command(program: Program, word: &str) -> UsageError {
    use clap::error::{ContextKind, ContextValue};

    let said = program.said();
    let error = pages::tree(program).try_get_matches_from([program.file(), word]).err();
    let meant = match error.as_ref().and_then(|error| error.get(ContextKind::SuggestedSubcommand)) {
        // The best one is the last.
        Some(ContextValue::Strings(names)) => names.last().cloned(),
        Some(ContextValue::String(name)) => Some(name.clone()),
        _ => None,
    };
    let is_controllers = || pages::tree(Program::Controller).find_subcommand(word).is_some();
    UsageError::one(match meant {
        Some(meant) => format!("{word} is not a command; did you mean {meant}?"),
        None if program == Program::Plugin && is_controllers() => {
            format!("{word} is a command of {PROGRAM}, and not of {said}")
        }
        None => format!("{word} is not a command; {said} --help lists them"),
    })
}

#[cfg(test)]
mod tests;
