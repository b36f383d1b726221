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
    for word in [r"cronjob\-controller\-next(1)", r"\-\-time\-zone", r"\-\-leader\-elect\-lease\-duration", "SCHEDULE"]
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
