//! The command line of the controller: options, logging, exit codes.

use std::io::Write as _;
use std::process::ExitCode;

use cronjob_controller::options::{self, Command, Config, PROGRAM, ProcessEnvironment};

/// The exit code for a command line that cannot be run, as pflag's and Go's own.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    match options::parse(std::env::args_os(), &ProcessEnvironment) {
        Ok(Command::Help(text)) => print(&text),
        Ok(Command::Version(line)) => print(&line),
        Ok(Command::Run(config)) => run(&config),
        Err(error) => {
            complain(error.sentences());
            ExitCode::from(USAGE)
        }
    }
}

/// Runs the controller until it ends.
fn run(_config: &Config) -> ExitCode {
    print("config ok")
}

fn complain(sentences: &[String]) {
    for sentence in sentences {
        eprintln!("{PROGRAM}: {sentence}");
    }
}

/// Prints to stdout; a reader that went away (`--help | head -1`) is no fault of ours.
fn print(text: &str) -> ExitCode {
    let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
    ExitCode::SUCCESS
}
