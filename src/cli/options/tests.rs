#![allow(clippy::unwrap_used)]

use super::*;
use crate::cli::dispatch;

struct Berlin;

impl Environment for Berlin {
    fn pod_namespace(&self) -> Option<String> {
        None
    }

    fn local_zone(&self) -> Zone {
        zone("Europe/Berlin")
    }
}

fn zone(name: &str) -> Zone {
    Zone::load(name, Zone::UTC).unwrap()
}

fn parse(args: &[&str]) -> Result<Invocation, UsageError> {
    dispatch::parse(["cronjob-controller"].iter().chain(args), &Berlin)
}

fn command(args: &[&str]) -> Command {
    match parse(args).unwrap() {
        Invocation::Cli(command) => *command,
        other => panic!("{args:?} gives {other:?}"),
    }
}

fn question(args: &[&str]) -> next::Question {
    match command(&[&["next"], args].concat()) {
        Command::Next(question, _) => question,
        other => panic!("{args:?} gives {other:?}"),
    }
}

#[test]
fn a_schedule_is_read_in_the_zone_that_is_named_else_in_the_process_s_own() {
    let rows: [(&str, &[&str], &str, Option<&str>); 6] = [
        ("the process's own", &["30 2 * * *"], "Europe/Berlin", None),
        ("the flag's", &["30 2 * * *", "--time-zone=Asia/Tokyo"], "Asia/Tokyo", None),
        ("the schedule's wins", &["TZ=Asia/Tokyo 30 2 * * *", "--time-zone=UTC"], "Asia/Tokyo", None),
        (
            "a time with an offset",
            &["@daily", "--from=2026-03-28T01:00:00+03:00"],
            "Europe/Berlin",
            Some("2026-03-27T22:00:00Z"),
        ),
        ("a local time", &["@daily", "--from", "2026-07-01T01:00"], "Europe/Berlin", Some("2026-06-30T23:00:00Z")),
        (
            "a day in the schedule's zone",
            &["TZ=Asia/Tokyo 0 0 * * *", "--from", "2026-07-01"],
            "Asia/Tokyo",
            Some("2026-06-30T15:00:00Z"),
        ),
    ];
    for (sentence, args, in_zone, from) in rows {
        let question = question(args);
        assert_eq!(question.schedule.zone(), Some(zone(in_zone)), "{sentence}");
        assert_eq!(question.from, from.map(|from| from.parse().unwrap()), "{sentence}");
    }
}

#[test]
fn defaults_are_what_the_help_says() {
    let Command::Next(question, format) = command(&["next", "@hourly"]) else { panic!("no next") };
    assert_eq!((question.count, question.from, format), (5, None, Format::Table));
    let Command::Explain(target, in_zone, _) = command(&["explain", "nightly"]) else { panic!("no explain") };
    let want = Target {
        controller_kind: ControllerKind::CronJob,
        namespace: None,
        name: "nightly".to_owned(),
        kubeconfig: None,
        context: None,
    };
    assert_eq!((target, in_zone), (want, Zone::UTC));
}

#[cfg(feature = "dev")]
#[test]
fn check_has_its_own_defaults() {
    let args = ["check", "-f", "a,b", "-f", "-", "-o", "sarif", "-R", "--histogram=none"];
    let Command::Check(files, rules, format, recursive) = command(&args) else { panic!("no check") };
    assert_eq!(files, ["a", "b", "-"].map(PathBuf::from));
    assert_eq!(rules, Rules { zone: Zone::UTC, max_per_minute: 20, fail_on: Severity::Error, histogram: false });
    assert_eq!((format, recursive), (CheckFormat::Sarif, true));
}

#[test]
fn a_wrong_command_line_is_one_sentence_per_fault() {
    let rows: Vec<(&str, &[&str], &[&str])> = vec![
        ("no schedule", &["next"], &["SCHEDULE is missing; give a schedule in quotes, such as '30 2 * * *'"]),
        (
            "a schedule without quotes",
            &["next", "30", "2", "Cargo.toml", "src"],
            &["SCHEDULE is one argument, and there are 4; give a schedule in quotes, such as '30 2 * * *'"],
        ),
        (
            "a schedule that is none",
            &["next", "61 * * * *"],
            &["SCHEDULE: \"61 * * * *\" is not a schedule: end of range (61) above maximum (59): 61"],
        ),
        (
            "everything at once",
            &["next", "@daily", "--time-zone=Berlin", "-n0", "--from=today", "-oxml"],
            &[
                "--time-zone: Berlin is not allowed; use a name of the time zone database, such as Europe/Berlin",
                "--count: 0 is not allowed; use a whole number from 1 to 10000",
                "--from: today is not allowed; use a time such as 2026-03-28T01:00:00Z, 2026-03-28T01:00 or 2026-03-28",
                "--output: xml is not allowed; use table, json or yaml",
            ],
        ),
        (
            "Local means nothing outside this process",
            &["explain", "a", "--time-zone=Local"],
            &["--time-zone: Local is not allowed; use a name of the time zone database, such as Europe/Berlin"],
        ),
        (
            "a kind before the name",
            &["explain", "cronjob/a"],
            &["NAME: \"cronjob/a\" is not allowed; use the name of one CronJob, without its kind"],
        ),
        (
            "another controller",
            &["explain", "a", "--controller=job"],
            &["--controller: job is not allowed; use cronjob, tutorial or apiexample"],
        ),
        #[cfg(feature = "dev")]
        (
            "no file",
            &["check"],
            &["-f is missing; give the path of a file or of a directory, or - for stdin, as in check -f cronjobs.yaml"],
        ),
        #[cfg(feature = "dev")]
        (
            "a severity that there is not",
            &["check", "-f", "a", "--fail-on=info", "--max-per-minute=0"],
            &[
                "--max-per-minute: 0 is not allowed; use a whole number above 0",
                "--fail-on: info is not allowed; use error or warning",
            ],
        ),
        (
            "a shell that there is not",
            &["completion", "csh"],
            &["SHELL: csh is not allowed; use one of bash, zsh, fish, powershell, elvish"],
        ),
    ];
    for (sentence, args, want) in rows {
        assert_eq!(parse(args).unwrap_err().sentences(), want, "{sentence}");
    }
}

#[test]
fn plugin_messages_name_kubectl_and_no_controller_can_start() {
    let plugin = |args: &[&str]| dispatch::parse(["/usr/bin/kubectl-cronjob"].iter().chain(args), &Berlin);
    let Invocation::Help(help) = plugin(&["next", "--help"]).unwrap() else { panic!("no help") };
    assert!(help.contains("Usage: kubectl cronjob next SCHEDULE [flags]"), "{help}");
    assert!(!help.contains(crate::options::PROGRAM), "{help}");
    for args in [&[][..], &["--help"], &["help"]] {
        let Invocation::Help(help) = plugin(args).unwrap() else { panic!("no help") };
        assert!(help.contains("Usage: kubectl cronjob COMMAND [flags]") && help.contains("explain"), "{help}");
    }
    assert!(matches!(plugin(&["--version"]).unwrap(), Invocation::Version(_)));
    assert!(matches!(plugin(&["explain", "a"]).unwrap(), Invocation::Cli(_)));
    for (word, want) in [
        ("--leader-elect=false", "--leader-elect=false is not a command; kubectl cronjob --help lists them"),
        ("crd", "crd is a command of cronjob-controller, and not of kubectl cronjob"),
    ] {
        assert_eq!(plugin(&[word]).unwrap_err().sentences(), [want]);
    }
    let helper = dispatch::parse(["kubectl_complete-cronjob", "explain", "--con"], &Berlin).unwrap();
    assert_eq!(helper, Invocation::Help("--context\n--controller\n:4\n".to_owned()));
}
