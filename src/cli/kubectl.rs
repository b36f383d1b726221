//! The binary as a kubectl plugin.
//!
//! Guarantees: under the file name `kubectl-cronjob`, all help texts say `kubectl cronjob`, and no controller is ever
//! started. Flags may come before the command, as with kubectl's own commands. Under `kubectl_complete-cronjob`, the
//! arguments are the typed words. Candidates for the last one are printed in the form of cobra's `__complete`, which kubectl
//! expects from a plugin's completion helper. Pure: `completion` looks up what the command line does not have.

use std::ffi::OsStr;
use std::path::Path;

use clap::ValueHint;

use super::pages;
use crate::options::PROGRAM;
use crate::terminal::PlainText;

/// The role in which the binary was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The controller, with the commands for a user at a terminal.
    Controller,
    /// The plugin, which has only these commands.
    Plugin,
    /// The plugin's helper for completion.
    Completer,
}

impl Program {
    /// The role that belongs to the file name; any other name is the controller's.
    pub fn of(argv0: &OsStr) -> Self {
        match Path::new(argv0).file_stem().and_then(OsStr::to_str) {
            Some("kubectl-cronjob") => Self::Plugin,
            Some("kubectl_complete-cronjob") => Self::Completer,
            _ => Self::Controller,
        }
    }

    /// The words that start it on a command line.
    pub fn said(self) -> &'static str {
        match self {
            Self::Controller => PROGRAM,
            Self::Plugin | Self::Completer => "kubectl cronjob",
        }
    }

    /// The name of the file.
    pub fn file(self) -> &'static str {
        match self {
            Self::Controller => PROGRAM,
            Self::Plugin | Self::Completer => "kubectl-cronjob",
        }
    }
}

/// Moves the command before the flags in front of it, as in `-n shop explain nightly`.
pub(super) fn command_first<T: AsRef<OsStr>>(words: &mut [T]) {
    let tree = pages::tree(Program::Plugin);
    let mut at = 0;
    while let Some(length) = words.get(at).and_then(|word| flag_length(&tree, word.as_ref().to_str()?)) {
        at += length;
    }
    if words.get(at).is_some_and(|word| tree.find_subcommand(word.as_ref()).is_some()) {
        words[..=at].rotate_right(1);
    }
}

/// The number of words that a flag of any command takes with its value; `None` for any other word.
fn flag_length(tree: &clap::Command, word: &str) -> Option<usize> {
    let name = match word.split_once('=') {
        Some((name, _)) => name,
        None if word.starts_with("--") => word,
        None => word.get(..2)?,
    };
    let mut args = tree.get_subcommands().flat_map(clap::Command::get_arguments);
    let arg = args.find(|arg| is_named(arg, name))?;
    let value_follows = name == word && arg.get_action().takes_values() && !arg.is_require_equals_set();
    Some(if value_follows { 2 } else { 1 })
}

fn is_named(arg: &clap::Arg, flag: &str) -> bool {
    let long = arg.get_long().is_some_and(|long| flag.strip_prefix("--") == Some(long));
    long || arg.get_short().is_some_and(|short| flag.strip_prefix('-') == Some(short.to_string().as_str()))
}

/// cobra's `ShellCompDirectiveDefault`: the shell may add the names of files.
const WITH_FILES: &str = ":0";
/// cobra's `ShellCompDirectiveNoFileComp`.
const NO_FILES: &str = ":4";

/// What the shell may offer for the last of the typed words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What the candidates begin with.
    pub typed: String,
    /// The candidates that the command line has.
    pub known: Vec<String>,
    /// Where the other candidates are, and the words that say which cluster.
    pub source: Option<(Source, TypedFlags)>,
    directive: &'static str,
}

/// Where candidates come from that the command line does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The names of CronJobs in the cluster.
    CronJobs,
    /// The namespaces of the cluster.
    Namespaces,
    /// The contexts of the kubeconfig.
    Contexts,
    /// All time zones.
    Zones,
}

/// What the typed words say about the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypedFlags {
    /// `--namespace`.
    pub namespace: Option<String>,
    /// `--context`.
    pub context: Option<String>,
    /// `--kubeconfig`.
    pub kubeconfig: Option<String>,
    /// `--controller`.
    pub controller: Option<String>,
}

impl Completion {
    /// The candidates, one per line, and the directive. `found` are those of [`Completion::source`].
    pub fn text(self, found: Vec<String>) -> PlainText {
        let fitting = self.known.into_iter().chain(found).filter(|candidate| candidate.starts_with(&self.typed));
        PlainText::lines(fitting.chain([self.directive.to_owned()]))
    }
}

/// What may follow the typed words; the last one is not complete.
pub fn complete(words: &[String]) -> Completion {
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut before = before.to_vec();
    command_first(&mut before);
    let (known, source, directive) = candidates(&before, last);
    let source = source.map(|source| (source, place(&before)));
    Completion { typed: last.to_owned(), known, source, directive }
}

fn candidates(before: &[String], last: &str) -> (Vec<String>, Option<Source>, &'static str) {
    let tree = pages::tree(Program::Plugin);
    let Some(word) = before.first() else {
        return (tree.get_subcommands().map(|command| command.get_name().to_owned()).collect(), None, NO_FILES);
    };
    let Some(command) = tree.find_subcommand(word) else { return (Vec::new(), None, NO_FILES) };
    if last.starts_with('-') {
        let longs = command.get_arguments().filter_map(clap::Arg::get_long).map(|long| format!("--{long}"));
        return (longs.collect(), None, NO_FILES);
    }
    let flag = before.last().filter(|word| word.starts_with('-'));
    let flag = flag.and_then(|flag| command.get_arguments().find(|arg| is_named(arg, flag)));
    let wanted = flag
        .filter(|arg| arg.get_action().takes_values())
        .or_else(|| command.get_positionals().min_by_key(|arg| arg.get_index()));
    let Some(wanted) = wanted else { return (Vec::new(), None, NO_FILES) };
    let values = wanted.get_possible_values().into_iter().map(|value| value.get_name().to_owned()).collect();
    let is_path = matches!(wanted.get_value_hint(), ValueHint::FilePath | ValueHint::DirPath | ValueHint::AnyPath);
    (values, source(wanted), if is_path { WITH_FILES } else { NO_FILES })
}

fn source(wanted: &clap::Arg) -> Option<Source> {
    let is_name = wanted.is_positional()
        && wanted.get_value_names().into_iter().flatten().any(|name| name.split('|').any(|one| one == "NAME"));
    match wanted.get_long() {
        Some("namespace") => Some(Source::Namespaces),
        Some("context") => Some(Source::Contexts),
        Some("time-zone") => Some(Source::Zones),
        _ => is_name.then_some(Source::CronJobs),
    }
}

fn place(words: &[String]) -> TypedFlags {
    let value = |long: &str| {
        let mut found = None;
        for (at, word) in words.iter().enumerate() {
            let rest = word.strip_prefix("--").and_then(|word| word.strip_prefix(long));
            let rest = if long == "namespace" { rest.or_else(|| word.strip_prefix("-n")) } else { rest };
            found = match rest {
                Some("") => words.get(at + 1).cloned(),
                Some(rest) => Some(rest.strip_prefix('=').unwrap_or(rest).to_owned()),
                None => found,
            };
        }
        found
    };
    TypedFlags {
        namespace: value("namespace"),
        context: value("context"),
        kubeconfig: value("kubeconfig"),
        controller: value("controller"),
    }
}

#[cfg(test)]
mod tests;
