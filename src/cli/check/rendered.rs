//! Manifests that another program renders: a kustomization by kubectl, a chart by Helm.
//!
//! Guarantees: the program is the one that the user's PATH finds, and it gets no input. What it writes to stdout is checked as one
//! file with the command as its name; what it writes to stderr is told if it fails.

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

fn advice(source: &io::Error, flag: &str) -> String {
    let is_absent = source.kind() == io::ErrorKind::NotFound;
    if is_absent { format!("; {flag} needs it in PATH") } else { String::new() }
}

/// What is rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendered {
    /// The kustomization in a directory.
    Kustomization(String),
    /// A chart: its directory, its archive, or its name in a repository.
    Chart(String),
}

impl Rendered {
    /// Renders it.
    ///
    /// # Errors
    /// When the program is not there, or fails.
    pub fn read(&self) -> Result<Source, RenderError> {
        let (program, verb, flag, target) = match self {
            Self::Kustomization(directory) => ("kubectl", "kustomize", "-k", directory),
            Self::Chart(chart) => ("helm", "template", "--helm", chart),
        };
        let command = format!("{program} {verb} {target}");
        let mut process = Command::new(program);
        run(process.args([verb, target]), &command, program, flag)
    }
}

fn run(process: &mut Command, command: &str, program: &'static str, flag: &'static str) -> Result<Source, RenderError> {
    let output = process.stdin(Stdio::null()).output();
    let output = output.map_err(|source| RenderError::Start { command: command.to_owned(), program, flag, source })?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        // The last line of these programs says why.
        let last = stderr.lines().rfind(|line| !line.trim().is_empty()).map(str::trim);
        let said = last.map_or_else(|| output.status.to_string(), str::to_owned);
        return Err(RenderError::Failed { command: command.to_owned(), said });
    }
    Ok(Source { file: command.to_owned(), text: String::from_utf8_lossy(&output.stdout).into_owned() })
}

#[cfg(test)]
mod tests;
