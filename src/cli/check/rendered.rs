//! Manifests that another program renders: a kustomization by kubectl, a chart by Helm.
//!
//! Guarantees: the program is the one that the user's PATH finds, and it gets no input. What it writes to stdout is checked as one
//! file with the command as its name. Of what it writes to stderr, warnings are told, and why it fails; what klog puts before and
//! around a message is left out.

use std::io;
use std::process::{Command, Stdio};

use super::Source;

/// Why nothing was rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The program cannot be started.
    #[error("{command}: {program} cannot be started: {source}{}", advice(.source, .flag))]
    Start {
        /// The whole command.
        command: String,
        /// The program.
        program: &'static str,
        /// The flag that asks for it.
        flag: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The program failed.
    #[error("{command}: {said}")]
    Failed {
        /// The whole command.
        command: String,
        /// The end of what it wrote to stderr.
        said: String,
    },
}

impl RenderError {
    /// The command, and why it rendered nothing.
    pub fn parts(&self) -> (&str, String) {
        let (Self::Start { command, .. } | Self::Failed { command, .. }) = self;
        let text = self.to_string();
        (command, text.strip_prefix(&format!("{command}: ")).unwrap_or(&text).to_owned())
    }
}

fn advice(source: &io::Error, flag: &str) -> String {
    let is_absent = source.kind() == io::ErrorKind::NotFound;
    if is_absent { format!("; {flag} needs it in PATH") } else { String::new() }
}

/// The words of kustomize for a file that it may not read.
const RESTRICTED: &str = "is not in or below";
/// The flag of kubectl that lets a kustomization name files outside of its directory.
pub const UNRESTRICTED: &str = "--load-restrictor=LoadRestrictionsNone";
/// The flag of kubectl that lets a kustomization have charts, which helm renders.
pub const WITH_HELM: &str = "--enable-helm";

/// What is rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendered {
    /// The kustomization in a directory.
    Kustomization {
        /// The directory.
        directory: String,
        /// Flags of kubectl, which allow kustomize more than it may do by itself.
        flags: Vec<&'static str>,
    },
    /// A chart: its directory, its archive, or its name in a repository.
    Chart(String),
}

impl Rendered {
    /// Renders it, and returns the warnings of the program, too.
    ///
    /// # Errors
    /// When the program is not there, or fails.
    pub fn read(&self) -> Result<(Source, Vec<String>), RenderError> {
        let (program, flag) = self.program();
        let (command, arguments) = self.command();
        run(Command::new(program).args(arguments), &command, program, flag)
    }

    /// The whole command, and the program's arguments.
    fn command(&self) -> (String, Vec<String>) {
        let arguments: Vec<String> = match self {
            Self::Kustomization { directory, flags } => {
                let flags = flags.iter().map(|flag| (*flag).to_owned());
                std::iter::once("kustomize".to_owned()).chain(flags).chain([directory.clone()]).collect()
            }
            Self::Chart(chart) => vec!["template".to_owned(), chart.clone()],
        };
        (format!("{} {}", self.program().0, arguments.join(" ")), arguments)
    }

    /// The program, and the flag that asks for it.
    fn program(&self) -> (&'static str, &'static str) {
        match self {
            Self::Kustomization { .. } => ("kubectl", "-k"),
            Self::Chart(_) => ("helm", "--helm"),
        }
    }
}

fn run(
    process: &mut Command,
    command: &str,
    program: &'static str,
    flag: &'static str,
) -> Result<(Source, Vec<String>), RenderError> {
    let output = process.stdin(Stdio::null()).output();
    let output = output.map_err(|source| RenderError::Start { command: command.to_owned(), program, flag, source })?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut said = messages(&stderr);
    if !output.status.success() {
        // The last message of these programs says why.
        let mut said = said.pop().unwrap_or_else(|| output.status.to_string());
        if said.contains(RESTRICTED) {
            said = format!("{said}; {UNRESTRICTED} allows it");
        }
        return Err(RenderError::Failed { command: command.to_owned(), said });
    }
    let warnings = said.into_iter().filter_map(|said| Some(said[warning(&said)?..].to_owned()));
    let warnings = warnings.map(|warning| format!("{command}: {warning}")).collect();
    Ok((Source { file: command.to_owned(), text: String::from_utf8_lossy(&output.stdout).into_owned() }, warnings))
}

/// Where a warning begins in a message: behind the comment sign of kustomize.
fn warning(message: &str) -> Option<usize> {
    let text = message.trim_start_matches(['#', ' ']);
    let is_warning = text.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("warning"));
    is_warning.then(|| message.len() - text.len())
}

/// The messages in what a program wrote to stderr, each on one line.
fn messages(stderr: &str) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    let mut lines = stderr.lines();
    while let Some(line) = lines.next() {
        let text = without_prefix(line);
        let mut message = without_key(text).trim().to_owned();
        // klog writes a value of several lines between <, and > at the beginning of a line.
        if message == "<" {
            let value = lines.by_ref().take_while(|line| line.trim() != ">").map(str::trim);
            message = value.collect::<Vec<_>>().join(" ");
        }
        if !message.is_empty() {
            messages.push(message);
        }
    }
    messages
}

/// A line without the header of klog: severity and date, time, thread, and place, such as `E1130 00:28:01.676746 26931 run.go:72] `.
fn without_prefix(line: &str) -> &str {
    let Some((header, text)) = line.split_once("] ") else { return line };
    let words: Vec<&str> = header.split_whitespace().collect();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_header = matches!(words.as_slice(), [date, time, thread, place]
        if date.strip_prefix(['I', 'W', 'E', 'F']).is_some_and(|date| date.len() == 4 && is_number(date))
            && time.len() > 8 && time.as_bytes()[2] == b':' && is_number(thread)
            && place.rsplit_once(':').is_some_and(|(_, line)| is_number(line)));
    if is_header { text } else { line }
}

/// The error of a structured message, such as `"command failed" err="no such file"`; another text as it is.
fn without_key(text: &str) -> String {
    let value = text.strip_prefix('"').and_then(|text| text.split_once("\" err=")).map(|(_, value)| value);
    match value {
        None => text.to_owned(),
        Some(value) => serde_json::from_str(value).unwrap_or_else(|_| value.to_owned()),
    }
}

#[cfg(test)]
mod tests;
