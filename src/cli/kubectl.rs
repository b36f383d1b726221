//! The binary as a kubectl plugin.
//!
//! Guarantees: under the file name `kubectl-cronjob`, all help texts say `kubectl cronjob`, and no controller is ever
//! started. Flags may come before the command, as with kubectl's own commands. Under `kubectl_complete-cronjob`, the
//! arguments are the typed words. Candidates for the last one are printed in the form of cobra's `__complete`, which kubectl
//! expects from a plugin's completion helper. Pure.

use std::ffi::OsStr;
use std::path::Path;

use clap::ValueHint;

use super::pages;
use crate::options::PROGRAM;

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

/// The candidates for the last of `words`, one per line, and the directive.
pub fn complete(words: &[String]) -> String {
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut before = before.to_vec();
    command_first(&mut before);
    let (candidates, directive) = candidates(&before, last);
    let fitting = candidates.into_iter().filter(|candidate| candidate.starts_with(last));
    fitting.chain([directive.to_owned()]).map(|line| line + "\n").collect()
}

fn candidates(before: &[String], last: &str) -> (Vec<String>, &'static str) {
    let tree = pages::tree(Program::Plugin);
    let Some(word) = before.first() else {
        return (tree.get_subcommands().map(|command| command.get_name().to_owned()).collect(), NO_FILES);
    };
    let Some(command) = tree.find_subcommand(word) else { return (Vec::new(), NO_FILES) };
    if last.starts_with('-') {
        let longs = command.get_arguments().filter_map(clap::Arg::get_long).map(|long| format!("--{long}"));
        return (longs.collect(), NO_FILES);
    }
    let flag = before.last().filter(|word| word.starts_with('-'));
    let flag = flag.and_then(|flag| command.get_arguments().find(|arg| is_named(arg, flag)));
    let wanted = flag.filter(|arg| arg.get_action().takes_values()).or_else(|| command.get_positionals().next());
    let Some(wanted) = wanted else { return (Vec::new(), NO_FILES) };
    let values = wanted.get_possible_values().into_iter().map(|value| value.get_name().to_owned()).collect();
    let is_path = matches!(wanted.get_value_hint(), ValueHint::FilePath | ValueHint::DirPath | ValueHint::AnyPath);
    (values, if is_path { WITH_FILES } else { NO_FILES })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_chooses_the_program() {
        let rows = [
            ("cronjob-controller", Program::Controller),
            ("/usr/local/bin/kubectl-cronjob", Program::Plugin),
            ("kubectl_complete-cronjob", Program::Completer),
            ("kubectl-cronjobs", Program::Controller),
            ("", Program::Controller),
        ];
        for (argv0, want) in rows {
            assert_eq!(Program::of(OsStr::new(argv0)), want, "{argv0}");
        }
    }

    #[test]
    fn command_moves_before_the_flags_in_front_of_it() {
        let rows = [
            ("next @daily", "next @daily"),
            ("-n shop explain nightly", "explain -n shop nightly"),
            ("-n next explain nightly", "explain -n next nightly"),
            ("-nshop --context=one explain nightly", "explain -nshop --context=one nightly"),
            ("--previous next @daily", "next --previous @daily"),
            ("--help explain", "explain --help"),
            ("--version explain", "--version explain"),
            ("-n explain", "-n explain"),
            ("-n shop", "-n shop"),
            ("--leader-elect=false next", "--leader-elect=false next"),
        ];
        for (typed, want) in rows {
            let mut words: Vec<&str> = typed.split(' ').collect();
            command_first(&mut words);
            assert_eq!(words.join(" "), want, "{typed}");
        }
    }

    #[test]
    fn completions_have_kubectls_format() {
        let rows: Vec<(&str, &[&str], &str)> = vec![
            #[cfg(feature = "dev")]
            ("nothing typed", &[""], "next\nexplain\ncheck\ncompletion\nman\n:4\n"),
            ("the start of a command", &["ex"], "explain\n:4\n"),
            ("a flag", &["explain", "--con"], "--context\n--controller\n:4\n"),
            ("a flag's value", &["explain", "--controller", "t"], "tutorial\n:4\n"),
            ("after flags before the command", &["-n", "shop", "explain", "--controller", "t"], "tutorial\n:4\n"),
            ("a short flag's value", &["next", "0 * * * *", "-o", ""], "table\njson\nyaml\n:4\n"),
            #[cfg(feature = "dev")]
            ("a file", &["check", "-f", "my"], ":0\n"),
            ("an argument", &["completion", "z"], "zsh\n:4\n"),
            ("what no command is", &["nothing", ""], ":4\n"),
        ];
        for (sentence, words, want) in rows {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(complete(&words), want, "{sentence}");
        }
    }
}
