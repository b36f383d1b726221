//! The help, the manual pages and the shell completions of the whole command line.
//!
//! Guarantee: all of them are generated from the declarations that parse the command lines, so they are never out of
//! date. Pure.

use clap_complete::{Shell, generate};
use clap_mangen::Man;

#[cfg(feature = "dev")]
use super::check::{CheckFormat, Severity};
use super::crd;
use super::kubectl::Program;
use super::options::past::MIGRATE;
use super::options::{COMMANDS, Entry};
use super::output::Format;
use crate::api::ControllerKind;
#[cfg(feature = "dev")]
use crate::dev;
use crate::options::flags;

/// The supported shells.
pub const SHELLS: [Shell; 5] = [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish];

/// One command, under its name in this program.
pub(super) fn command(program: Program, entry: &Entry) -> clap::Command {
    let Entry { name, usage, command, remark } = entry;
    let said = program.said();
    command().name(*name).override_usage(format!("{said} {name} {usage}")).after_help(remark.replace("{}", said))
}

/// The program with all its commands. It is for documentation and parses nothing: values that the command lines
/// validate in a later step are listed here.
pub fn tree(program: Program) -> clap::Command {
    let root = match program {
        Program::Controller => flags::controller().subcommands([
            #[cfg(feature = "dev")]
            dev::options::command().name("dev"),
            crd::command().name("crd"),
        ]),
        Program::Plugin | Program::Completer => clap::Command::new(program.file())
            .about("Explains what CronJobs do, and why.")
            .override_usage(format!("{} COMMAND [flags]", program.said())),
    };
    root.version(env!("CARGO_PKG_VERSION"))
        .disable_version_flag(true)
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .subcommands(COMMANDS.iter().map(|entry| with_values(command(program, entry))))
}

/// Adds the values that are known in advance.
fn with_values(command: clap::Command) -> clap::Command {
    let values: Vec<(&str, Vec<String>)> = vec![
        ("output", formats(&command)),
        ("histogram", ["day", "none"].map(str::to_owned).into()),
        ("again", vec!["failed".to_owned()]),
        ("what", MIGRATE.map(str::to_owned).into()),
        #[cfg(feature = "dev")]
        ("fail_on", Severity::NAMES.map(str::to_owned).into()),
        ("controller", ControllerKind::ALL.map(|controller_kind| controller_kind.name.to_owned()).into()),
        ("shell", SHELLS.map(|shell| shell.to_string()).into()),
    ];
    values.into_iter().fold(command, |command, (name, values)| {
        let known = command.get_arguments().any(|arg| arg.get_id() == name);
        let parser = clap::builder::PossibleValuesParser::new(values);
        if known { command.mut_arg(name, |arg| arg.value_parser(parser).hide_possible_values(true)) } else { command }
    })
}

/// The output formats of a command.
fn formats(command: &clap::Command) -> Vec<String> {
    let names: &[&str] = match command.get_name() {
        #[cfg(feature = "dev")]
        "check" => &CheckFormat::NAMES,
        "backfill" | "shadow" => &["table", "json"],
        _ => &Format::NAMES,
    };
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The completion script of a shell.
pub fn completion(program: Program, shell: Shell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut tree(program), program.file(), &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    if shell != Shell::Bash {
        return script;
    }
    // The script for bash looks up a command of a program with a hyphen by one name and defines it by another
    // (clap-rs/clap#6421). Where the names are equal, nothing is replaced.
    let [written, sought] = ["__subcmd__", "__"].map(|hyphen| program.file().replace('-', hyphen) + "__subcmd__");
    script.replace(&written, &sought).lines().map(|line| commands_before_flags(line) + "\n").collect()
}

/// A line of the script for bash; where it lists the candidates, the commands come before the flags.
fn commands_before_flags(line: &str) -> String {
    let Some((start, words)) = line.split_once("opts=\"") else { return line.to_owned() };
    let is_command = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
    let (commands, others): (Vec<&str>, Vec<&str>) =
        words.trim_end_matches('"').split_whitespace().partition(is_command);
    format!("{start}opts=\"{}\"", [commands, others].concat().join(" "))
}

/// The manual pages with their file names: first the program's own, then one for each command.
pub fn manual(program: Program) -> Vec<(String, String)> {
    let mut tree = tree(program);
    tree.build();
    let commands: Vec<clap::Command> = tree.get_subcommands().cloned().collect();
    std::iter::once(tree).chain(commands).map(page).collect()
}

fn page(command: clap::Command) -> (String, String) {
    let page = Man::new(command);
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = page.render(&mut text);
    (page.get_filename(), String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests;
