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
        "backfill" => &["table", "json"],
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
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_tree_is_one_that_clap_accepts() {
        tree(Program::Controller).debug_assert();
        tree(Program::Plugin).debug_assert();
    }

    #[test]
    fn each_command_has_a_page_of_its_own() {
        let names = |program| manual(program).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let commands: Vec<&str> = COMMANDS.iter().map(|entry| entry.name).collect();
        let pages = |file: &str| commands.iter().map(|command| format!("{file}-{command}.1")).collect::<Vec<_>>();
        assert_eq!(names(Program::Plugin)[0], "kubectl-cronjob.1");
        assert_eq!(names(Program::Plugin)[1..], pages("kubectl-cronjob"));
        let controller = names(Program::Controller);
        assert_eq!(controller[0], "cronjob-controller.1");
        let has = |name: &str| controller.contains(&format!("cronjob-controller-{name}.1"));
        assert_eq!((has("dev"), has("crd")), (cfg!(feature = "dev"), true), "{controller:?}");
        assert!(controller.ends_with(&pages("cronjob-controller")), "{controller:?}");
    }

    #[test]
    fn bash_offers_commands_before_flags() {
        let candidates = |program| -> Vec<String> {
            let script = completion(program, Shell::Bash);
            let lists = script.lines().filter_map(|line| line.trim().strip_prefix("opts=\"")?.strip_suffix('"'));
            lists.filter(|list| !list.is_empty()).map(str::to_owned).collect()
        };
        let commands = COMMANDS.iter().map(|entry| entry.name).collect::<Vec<_>>().join(" ");
        let of_plugin = candidates(Program::Plugin);
        assert_eq!(of_plugin[0], commands);
        assert!(of_plugin.iter().any(|list| list.starts_with('-')), "flags alone: {of_plugin:#?}");
        let of_controller = &candidates(Program::Controller)[0];
        let (before, flags) = of_controller.split_once(" -").unwrap();
        assert!(before.ends_with(&commands) && flags.contains("--kubeconfig"), "{of_controller}");
    }

    #[test]
    fn pages_and_scripts_name_flags_commands_and_values() {
        let pages: String = manual(Program::Controller).into_iter().map(|(_, page)| page).collect();
        for word in
            [r"cronjob\-controller\-next(1)", r"\-\-time\-zone", r"\-\-leader\-elect\-lease\-duration", "SCHEDULE"]
        {
            assert!(pages.contains(word), "{word}");
        }
        for shell in SHELLS {
            let script = completion(Program::Plugin, shell);
            for word in ["kubectl-cronjob", "explain", "time-zone", "yaml"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }
}
