//! The command line of the controller: options, logging, exit codes.
//!
//! Guarantees: output that cannot be written makes the exit code 1, except where the reader has closed its pipe. All that is
//! printed is plain text: a [`PlainText`] on stdout; errors, and what a panic says, on stderr.
#![cfg_attr(
    not(test),
    warn(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout, clippy::too_many_lines)
)]

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::panic::PanicHookInfo;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use apimachinery::clock::SystemClock;
use cronjob_controller::api::crd;
use cronjob_controller::cli::CliError;
use cronjob_controller::cli::dispatch::{self, Invocation};
use cronjob_controller::cli::generated_files;
use cronjob_controller::cli::kubectl::Program;
#[cfg(feature = "ui")]
use cronjob_controller::cli::options::ui::UiConfig;
use cronjob_controller::cli::output::Screen;
use cronjob_controller::cli::shadow::{self, ShadowConfig, ShadowError};
#[cfg(feature = "dev")]
use cronjob_controller::dev::{self, StartPage, live_terminal, options::DevConfig, output::Output};
use cronjob_controller::logging::{self, LoggingError};
use cronjob_controller::options::{Config, LogFormat, ProcessEnvironment};
use cronjob_controller::terminal::{PlainText, plain};
#[cfg(feature = "ui")]
use cronjob_controller::ui;
use cronjob_controller::{app, cli};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit code for a usage error; the same as pflag's and Go's.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(print_panic));
    match dispatch::parse(std::env::args_os(), &ProcessEnvironment) {
        Ok(Invocation::Cli(command)) => answer(&command),
        Ok(Invocation::Help(text) | Invocation::Version(text)) => print(&PlainText::trusted(text)),
        Ok(Invocation::Shadow(config)) => run_shadow(*config),
        Ok(Invocation::Crd(directory)) => write_crds(directory.as_deref()),
        Ok(Invocation::Run(config)) => run(*config),
        #[cfg(feature = "dev")]
        Ok(Invocation::Dev(config)) => run_dev(*config),
        #[cfg(feature = "ui")]
        Ok(Invocation::Ui(config)) => run_ui(*config),
        Err(error) => {
            print_error(error.sentences());
            ExitCode::from(USAGE)
        }
    }
}

/// Runs the controller until it fails or receives a signal.
fn run(config: Config) -> ExitCode {
    let logging = logging::init(config.verbosity, config.logging_format);
    // The controller starts runtimes of its own for its work: this thread drives the election.
    until_stopped(logging, &mut Builder::new_current_thread(), |stop| app::run(config, stop))
}

/// Runs a cluster to try the controller on, with a live view on a terminal.
#[cfg(feature = "dev")]
fn run_dev(config: DevConfig) -> ExitCode {
    let live = live_terminal::can_show();
    let output = Output::new(stdout());
    let (verbosity, format) = (config.verbosity, config.logging_format);
    let logging = if live && stderr().is_terminal() {
        logging::init_on(verbosity, format, output.clone(), false)
    } else {
        logging::init(verbosity, format)
    };
    until_stopped(logging, &mut Builder::new_multi_thread(), |stop| {
        dev::run(config, output, live, PAGE, cli::explain::judge, stop)
    })
}

/// The page of `dev`, where this build has one.
#[cfg(feature = "dev")]
const PAGE: Option<StartPage> = {
    #[cfg(feature = "ui")]
    let page: Option<StartPage> = Some(ui::beside);
    #[cfg(not(feature = "ui"))]
    let page = None;
    page
};

/// Serves the page of a cluster or of manifests.
#[cfg(feature = "ui")]
fn run_ui(config: UiConfig) -> ExitCode {
    let logging = logging::init(0, LogFormat::Text);
    let program = std::env::args_os().next().map_or(Program::Controller, |name| Program::of(&name)).said();
    until_stopped(logging, &mut Builder::new_multi_thread(), |stop| {
        ui::run(config, program, Output::new(stdout()), stop)
    })
}

/// Watches the controller in charge, and says what this one would have done.
fn run_shadow(config: ShadowConfig) -> ExitCode {
    let is_live = stderr().is_terminal();
    // On a terminal, the line with the progress says what fails.
    let logging = if is_live { Ok(()) } else { logging::init(0, LogFormat::Text) };
    let live = is_live.then(|| Box::new(cli::output::replace_line) as Box<dyn FnMut(&PlainText) + Send>);
    let mut found = None;
    let ended = until_stopped(logging, &mut Builder::new_multi_thread(), async |stop| {
        found = Some(shadow::run(config, live, stop).await?);
        Ok::<(), ShadowError>(())
    });
    match found {
        Some(found) => answered(&found, ended),
        None => ended,
    }
}

/// Runs `work` on this runtime until it ends; the first signal cancels the token that it gets.
fn until_stopped<F, E>(
    logging: Result<(), LoggingError>,
    runtime: &mut Builder,
    work: impl FnOnce(CancellationToken) -> F,
) -> ExitCode
where
    F: Future<Output = Result<(), E>>,
    E: Display,
{
    if let Err(error) = logging {
        print_error(&[error.to_string()]);
        return ExitCode::from(USAGE);
    }
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            print_error(&[format!("starting the runtime: {error}")]);
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(async {
        let stop = CancellationToken::new();
        tokio::spawn(stop_on_signal(stop.clone()));
        work(stop).await
    });
    // Tasks that still run have used up their time; none of them writes any more.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&[error.to_string()]);
            ExitCode::FAILURE
        }
    }
}

/// Signals that come so soon after the first one are the same.
const ONE_SIGNAL: Duration = Duration::from_millis(200);

/// Ends the work at the first SIGTERM, SIGINT or SIGHUP (the terminal was closed), and the process at a second SIGTERM or SIGINT. No
/// kubeconfig with a token is left behind.
#[allow(clippy::disallowed_methods, reason = "the second signal does not wait for main")]
async fn stop_on_signal(stop: CancellationToken) {
    // A handler would undo what nohup has set.
    let mut hangup = if is_hangup_ignored() { None } else { signal(SignalKind::hangup()).ok() };
    loop {
        let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
        else {
            tracing::error!("signals cannot be received; end this process with SIGKILL");
            return;
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = received(hangup.as_mut()) => {
                // Both the shell and the system can send one for a closed terminal.
                if stop.is_cancelled() {
                    continue;
                }
            }
        }
        // A key that ends `dev` counts as the first signal.
        if stop.is_cancelled() {
            break;
        }
        stop.cancel();
        tracing::info!("received a signal to stop; a second one ends the process at once");
        // `timeout` signals the process, and then its group. Those who wait for signals anew have missed these.
        tokio::time::sleep(ONE_SIGNAL).await;
    }
    #[cfg(feature = "dev")]
    dev::kubeconfig::remove_all();
    std::process::exit(1);
}

/// Waits for a signal; forever without one.
async fn received(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether the process was started with SIGHUP ignored, where the system says so.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Answers a command that a user runs.
fn answer(command: &cli::Command) -> ExitCode {
    let mut printed = ExitCode::SUCCESS;
    let mut goes_on = |text: &PlainText| match write(text) {
        Ok(()) => true,
        Err(error) => {
            printed = unwritten(&error);
            false
        }
    };
    match cli::run(command, screen(), &SystemClock, &mut goes_on) {
        Ok(answer) => answered(&answer, printed),
        Err(error) => {
            print_error(&[error.to_string()]);
            if matches!(error, CliError::Usage(_)) { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
        }
    }
}

/// The terminal that shows the output, if one does.
fn screen() -> Option<Screen> {
    let out = stdout();
    let width = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out).ok())??.ws_col;
    let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    (width > 0).then(|| Screen { width: usize::from(width), colour })
}

/// Prints the answer, if there is one to print; `printed` is how the output before it went.
fn answered(answer: &cli::Answer, printed: ExitCode) -> ExitCode {
    let printed = if answer.text.is_empty() { printed } else { print(&answer.text) };
    if answer.is_good { printed } else { ExitCode::FAILURE }
}

/// Prints the errors, each on a line, prefixed with the program's name.
fn print_error(sentences: &[String]) {
    let program = Program::of(&std::env::args_os().next().unwrap_or_default()).said();
    for sentence in sentences {
        // Nothing is left to tell a user whose terminal is gone.
        let _ = writeln!(stderr(), "{program}: {}", plain(sentence));
    }
}

/// Prints what a panic says, which can quote text of an object, and its backtrace if the environment asks for one.
fn print_panic(panic: &PanicHookInfo<'_>) {
    print_error(&[panic.to_string()]);
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        let _ = write!(stderr(), "{backtrace}");
    }
}

/// Prints the CustomResourceDefinitions, or writes them into files.
fn write_crds(directory: Option<&Path>) -> ExitCode {
    let written = crd::files().map_err(|error| error.to_string()).and_then(|files| match directory {
        None => Ok(print(&PlainText::trusted(files.into_iter().map(|(_, yaml)| yaml).collect()))),
        Some(directory) => {
            generated_files::write(directory, &files).map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string())
        }
    });
    written.unwrap_or_else(|sentence| {
        print_error(&[sentence]);
        ExitCode::FAILURE
    })
}

/// Stdout, for plain text.
#[allow(clippy::disallowed_methods, reason = "its users write plain text only")]
fn stdout() -> io::Stdout {
    io::stdout()
}

/// Stderr, for plain text.
#[allow(clippy::disallowed_methods, reason = "its users write plain text only")]
fn stderr() -> io::Stderr {
    io::stderr()
}

/// Prints to stdout.
fn print(text: &PlainText) -> ExitCode {
    write(text).map_or_else(|error| unwritten(&error), |()| ExitCode::SUCCESS)
}

fn write(text: &PlainText) -> io::Result<()> {
    let mut out = stdout();
    writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush())
}

/// The exit code for output that cannot be written. A closed pipe (`--help | head -1`) is not an error.
fn unwritten(error: &io::Error) -> ExitCode {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return ExitCode::SUCCESS;
    }
    print_error(&[format!("the output cannot be written: {error}")]);
    ExitCode::FAILURE
}
