//! Selects the command line: the controller's own, a subcommand's, or the plugin's.
//!
//! Guarantee: only the program's file name and the first word decide. The module of the subcommand, or `options`,
//! parses the rest. Pure.

use std::ffi::OsString;
use std::path::PathBuf;

use super::kubectl::{Program, complete};
use super::{crd, options as subcommands};
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
    /// Print the CustomResourceDefinitions as YAML, or write each into a file of this directory.
    Crd(Option<PathBuf>),
    /// Run a command for a user at a terminal.
    Cli(Box<super::Command>),
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

/// The subcommands that need the in-memory API server, which this build does not include.
#[cfg(not(feature = "dev"))]
const LEFT_OUT: [&str; 2] = ["dev", "check"];

/// Parses a command line; `args` begins with the program's name, as [`std::env::args_os`] does.
///
/// # Errors
/// Every fault of the command line, one sentence each. Exit with 2.
pub fn parse<I, S>(args: I, env: &dyn Environment) -> Result<Invocation, UsageError>
where
    I: IntoIterator<Item = S>,
    S: Into<OsString>,
{
    let mut args = args.into_iter().map(Into::into).peekable();
    let program = args.next().unwrap_or_else(|| PROGRAM.into());
    match Program::of(&program) {
        Program::Controller if !args.peek().is_some_and(subcommands::is_command) => {}
        Program::Completer => {
            let words: Vec<String> = args.map(|word| word.to_string_lossy().into_owned()).collect();
            return Ok(Invocation::Help(complete(&words)));
        }
        name => return subcommands::parse(name, args, env),
    }
    #[cfg(not(feature = "dev"))]
    if let Some(word) = args.peek().and_then(|word| LEFT_OUT.into_iter().find(|left_out| word == left_out)) {
        return Err(UsageError::one(format!("{word} is not in this build; it needs the cargo feature dev")));
    }
    #[cfg(feature = "dev")]
    if args.next_if(|word| word == "dev").is_some() {
        return dev::parse(std::iter::once(program).chain(args)).map(Invocation::from);
    }
    if args.next_if(|word| word == "crd").is_some() {
        return crd::parse(std::iter::once(program).chain(args));
    }
    options::parse(std::iter::once(program).chain(args), env).map(Invocation::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ProcessEnvironment;

    fn kind(args: &[&str]) -> &'static str {
        match parse(args, &ProcessEnvironment) {
            Ok(Invocation::Run(_)) => "run",
            #[cfg(feature = "dev")]
            Ok(Invocation::Dev(_)) => "dev",
            Ok(Invocation::Crd(_)) => "crd",
            Ok(Invocation::Cli(_)) => "cli",
            Ok(Invocation::Help(_)) => "help",
            Ok(Invocation::Version(_)) => "version",
            Err(_) => "error",
        }
    }

    #[test]
    fn first_argument_and_file_name_choose_the_command() {
        let rows: [(&[&str], &str); 8] = [
            (&["cronjob-controller"], "run"),
            (&["cronjob-controller", "--version"], "version"),
            (&["cronjob-controller", "crd"], "crd"),
            (&["cronjob-controller", "next", "@daily"], "cli"),
            (&["cronjob-controller", "--v=1", "crd"], "error"),
            (&["kubectl-cronjob", "next", "@daily"], "cli"),
            (&["kubectl-cronjob", "crd"], "error"),
            (&["kubectl_complete-cronjob", "next"], "help"),
        ];
        for (args, want) in rows {
            assert_eq!(kind(args), want, "{args:?}");
        }
    }

    #[cfg(feature = "dev")]
    #[test]
    fn the_subcommands_of_the_api_server_are_read() {
        assert_eq!(kind(&["cronjob-controller", "dev"]), "dev");
        assert_eq!(kind(&["kubectl-cronjob", "dev"]), "error");
        assert_eq!(kind(&["cronjob-controller", "check", "-f", "a.yaml"]), "cli");
    }

    #[cfg(not(feature = "dev"))]
    #[test]
    fn subcommands_without_the_api_server_say_what_they_need() {
        let error = parse(["cronjob-controller", "dev"], &ProcessEnvironment).map_err(|error| error.to_string());
        assert_eq!(error, Err("dev is not in this build; it needs the cargo feature dev".to_owned()));
    }
}
