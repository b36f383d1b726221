#![allow(clippy::unwrap_used)]

use super::*;
use crate::api::ControllerKind;
use crate::api::job_changes::JobChanges;
use crate::cli::backfill::plan::Question;
#[cfg(feature = "dev")]
use crate::cli::check::{CheckFormat, Rules, rendered::Rendered};
use crate::cli::cluster::{ControllerFlags, Namespaces, Scope};
use crate::cli::dispatch;
use crate::cli::explain::read::Target;
use crate::cli::migrate::{Direction, Request, Selection, skip_missed};
use crate::cli::options::cluster::Since;
use crate::cli::shadow::ShadowConfig;
use crate::cli::shadow::what_if::WhatIf;
use crate::cli::trigger::{self, DryRun, Until};
use chrono::TimeDelta;
use std::time::Duration;

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
    let Command::Explain(target, None, flags, _) = command(&["explain", "nightly"]) else { panic!("no explain") };
    let want = Target {
        controller_kind: ControllerKind::CronJob,
        namespace: None,
        name: "nightly".to_owned(),
        kubeconfig: None,
        context: None,
    };
    assert_eq!((target, flags), (want, ControllerFlags::default()));
}

#[test]
fn commands_about_a_cluster_say_where_to_look() {
    let scope = |namespaces, name: Option<&str>| Scope {
        controller_kind: ControllerKind::CronJob,
        namespaces,
        name: name.map(str::to_owned),
        kubeconfig: None,
        context: None,
    };
    let target = |namespace: Option<&str>| Target {
        controller_kind: ControllerKind::CronJob,
        namespace: namespace.map(str::to_owned),
        name: "a".to_owned(),
        kubeconfig: None,
        context: None,
    };
    let shop = || Namespaces::One("shop".to_owned());
    let berlin = zone("Europe/Berlin");
    let (plain, seeded) =
        (ControllerFlags::default, |seed: &str| ControllerFlags { zone: Zone::UTC, seed: seed.into() });
    let in_berlin = || ControllerFlags { zone: berlin, ..plain() };
    let triggers = |namespace, request| Command::Trigger(target(namespace), Box::new(request));
    let rows: [(&[&str], Command); 19] = [
        (&["list"], Command::List(scope(Namespaces::OfContext, None), plain(), Format::Table)),
        (&["list", "-A", "-o", "json"], Command::List(scope(Namespaces::All, None), plain(), Format::Json)),
        (&["list", "-w", "-n", "shop"], Command::Watch(scope(shop(), None), plain(), Format::Table)),
        (
            &["list", "--night", "--times-in=Europe/Berlin"],
            Command::Night(scope(Namespaces::OfContext, None), plain(), berlin, Format::Table),
        ),
        (
            &["list", "--next-hour", "--time-zone=Europe/Berlin", "-ojson"],
            Command::NextHour(scope(Namespaces::OfContext, None), in_berlin(), berlin, Format::Json),
        ),
        (&["explain"], Command::Findings(scope(Namespaces::OfContext, None), plain(), Format::Table)),
        (
            &["explain", "a", "--since", "yesterday", "--time-zone=Europe/Berlin"],
            Command::Slots(scope(Namespaces::OfContext, Some("a")), Since::Day(1), in_berlin(), Format::Table),
        ),
        (
            &["explain", "-A", "--since=6h"],
            Command::Slots(scope(Namespaces::All, None), Since::Ago(TimeDelta::hours(6)), plain(), Format::Table),
        ),
        (
            &["trigger", "a", "-n", "shop", "--job-name=b"],
            triggers(Some("shop"), trigger::Request { name: Some("b".to_owned()), ..trigger::Request::default() }),
        ),
        (
            &["trigger", "a", "--env", "A=b=c", "--env=D=", "-c", "web", "--follow", "--", "--x_y", "-n", "--help"],
            triggers(
                None,
                trigger::Request {
                    changes: JobChanges {
                        container: Some("web".to_owned()),
                        env: [("A", "b=c"), ("D", "")].map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec(),
                        args: ["--x_y", "-n", "--help"].map(str::to_owned).to_vec(),
                    },
                    until: Until::Logged,
                    ..trigger::Request::default()
                },
            ),
        ),
        (
            &["trigger", "a", "--dry-run=server", "-oyaml"],
            triggers(
                None,
                trigger::Request { dry_run: DryRun::Server, format: Format::Yaml, ..trigger::Request::default() },
            ),
        ),
        (
            &["trigger", "a", "--wait", "--"],
            triggers(None, trigger::Request { until: Until::Ended, ..trigger::Request::default() }),
        ),
        (&["suspend", "a"], Command::SetSuspended(target(None), true, plain())),
        (&["resume", "a", "--time-zone=Europe/Berlin"], Command::SetSuspended(target(None), false, in_berlin())),
        (
            &["list", "--spread-seed=blue"],
            Command::List(scope(Namespaces::OfContext, None), seeded("blue"), Format::Table),
        ),
        (
            &["explain", "--spread-seed", "blue"],
            Command::Findings(scope(Namespaces::OfContext, None), seeded("blue"), Format::Table),
        ),
        (&["explain", "a", "--spread-seed=blue"], Command::Explain(target(None), None, seeded("blue"), Format::Table)),
        (
            &["explain", "a", "--wait=1m30s"],
            Command::Explain(target(None), Some(Duration::from_secs(90)), plain(), Format::Table),
        ),
        (&["resume", "a", "--spread-seed=blue"], Command::SetSuspended(target(None), false, seeded("blue"))),
    ];
    for (args, want) in rows {
        assert_eq!(command(args), want, "{args:?}");
    }
}

#[test]
fn commands_about_the_past_say_which_slots() {
    let args =
        ["backfill", "a", "--from=2026-03-28", "--to=2026-03-29T01:00", "--time-zone=Europe/Berlin", "--again=failed"];
    let more = ["--rerun", "--dry-run", "--max-active", "5", "-ojson", "--spread-seed=blue"];
    let Command::Backfill(target, request) = command(&[&args[..], &more].concat()) else { panic!("no backfill") };
    assert_eq!((&*target.name, request.dry_run, request.format), ("a", true, Format::Json));
    let want = Question {
        from: Since::At(Given::Local("2026-03-28T00:00:00".parse().unwrap())),
        to: Since::At(Given::Local("2026-03-29T01:00:00".parse().unwrap())),
        zone: zone("Europe/Berlin"),
        seed: "blue".into(),
        max_active: 5,
        again: true,
        rerun: true,
    };
    assert_eq!(request.question, want);
    let before_now = ["backfill", "a", "--from=yesterday", "--to=2h"];
    let Command::Backfill(_, request) = command(&before_now) else { panic!("no backfill") };
    assert_eq!((request.question.from, request.question.to), (Since::Day(1), Since::Ago(TimeDelta::hours(2))));
    assert!(
        matches!(command(&["migrate", "check", "-A"]), Command::MigrateCheck(scope, ..) if scope.namespaces == Namespaces::All)
    );
    let account = ["migrate", "check", "--service-account=ops/jobs", "--spread-seed=blue"];
    assert!(matches!(
        command(&account),
        Command::MigrateCheck(_, account, flags, _) if account.to_string() == "ops/jobs" && &*flags.seed == "blue"
    ));
    let moved = ["migrate", "handover", "a", "b", "-n", "shop", "--dry-run", "--selector=app=x"];
    let want = Request {
        direction: Direction::Handover,
        which: Selection { names: vec!["a".to_owned(), "b".to_owned()], selector: "app=x".to_owned() },
        dry_run: true,
    };
    assert!(matches!(command(&moved), Command::Handover(_, request, ..) if request == want));
    assert!(matches!(
        command(&["migrate", "takeback", "-A"]),
        Command::Handover(scope, request, ..)
            if scope.namespaces == Namespaces::All && request.direction == Direction::Takeback && !request.dry_run
    ));
    let fault = |args: &[&str]| parse(args).unwrap_err().to_string();
    let which = "which CronJobs is missing; give NAMEs, --selector, --namespace or --all-namespaces";
    assert_eq!(fault(&["migrate", "handover"]), which);
    assert_eq!(fault(&["migrate", "takeback", "--dry-run"]), which);
    let skipped = ["migrate", "skip-missed", "-n", "shop", "--controller=tutorial"];
    let want = skip_missed::Request { which: Selection::default(), dry_run: false };
    assert!(matches!(
        command(&skipped),
        Command::SkipMissed(scope, request, ..) if request == want && scope.controller_kind == ControllerKind::Tutorial
    ));
    assert_eq!(fault(&["migrate", "skip-missed"]), which);
    for (what, kind, kinds) in [
        ("skip-missed", "apiexample", "cronjob or tutorial, which have policies"),
        ("handover", "tutorial", "cronjob, which has an in-tree controller"),
        ("check", "tutorial", "cronjob, which has an in-tree controller"),
    ] {
        let found = fault(&["migrate", what, "-A", "--controller", kind]);
        assert_eq!(found, format!("--controller: {kind} is not allowed; use {kinds}"));
    }
    let only = "NAME, --selector and --dry-run are not for check";
    assert_eq!(fault(&["migrate", "check", "a"]), only);
    assert_eq!(fault(&["migrate", "check", "--dry-run"]), only);
    assert_eq!(
        fault(&["migrate", "handover", "-A", "a"]),
        "--all-namespaces: true is not allowed; use it without a NAME"
    );
    let account = "--service-account: jobs is not allowed; use a namespace and a name, as in ns/name";
    assert_eq!(fault(&["migrate", "check", "--service-account=jobs"]), account);
    assert!(
        fault(&["backfill", "a", "--to=2026-03-28"])
            .starts_with("--from is missing; give yesterday, today, a duration")
    );
    let range = ["backfill", "a", "--from=2026-03-29", "--to=2026-03-28"];
    assert_eq!(fault(&range), "--from is later than --to");
    let rest = |flag| fault(&["backfill", "a", "--from=2026-03-28", "--to=2026-03-28", flag]);
    assert_eq!(rest("--again=all"), "--again: all is not allowed; use failed");
    assert_eq!(rest("--max-active=0"), "--max-active: 0 is not allowed; use a whole number from 1 to 100");
    assert_eq!(rest("--output=yaml"), "--output: yaml is not allowed; use table or json");
    assert_eq!(
        rest("--controller=apiexample"),
        "--controller: apiexample is not allowed; use cronjob or tutorial, whose runs are Jobs"
    );
    assert_eq!(fault(&["migrate"]), "what to do is missing; give one of check, handover, takeback, skip-missed");
    let commands = "its commands are check, handover, takeback, skip-missed";
    assert_eq!(fault(&["migrate", "now"]), format!("migrate now is no command; {commands}"));
}

#[test]
fn since_is_a_time_before_now_and_a_local_one_is_in_the_zone_of_the_cron_job() {
    let local = |text| given_time(text).unwrap();
    let now = "2026-11-22T10:00:00Z".parse().unwrap();
    let rows = [
        (Since::Day(0), zone("Europe/Berlin"), "2026-11-21T23:00:00Z"),
        (Since::Day(1), Zone::UTC, "2026-11-21T00:00:00Z"),
        (Since::Ago(TimeDelta::hours(6)), Zone::UTC, "2026-11-22T04:00:00Z"),
        (Since::At(local("2026-11-20T02:00")), zone("Europe/Berlin"), "2026-11-20T01:00:00Z"),
        (Since::At(local("2026-11-20T02:00:00Z")), zone("Europe/Berlin"), "2026-11-20T02:00:00Z"),
    ];
    for (since, zone, want) in rows {
        assert_eq!(since.time(now, zone), want.parse::<DateTime<Utc>>().unwrap(), "{since:?}");
    }
}

#[test]
fn since_in_the_future_is_refused() {
    let now = "2026-11-22T10:00:00Z".parse().unwrap();
    let at = |text| Since::At(given_time(text).unwrap());
    let both = || vec![zone("Asia/Tokyo"), zone("America/New_York")];
    let refused = |time: &str| Some(format!("--since: {time} is in the future; give a time before now"));
    let rows = [
        ("a past time", at("2026-11-22T09:00:00Z"), vec![Zone::UTC], None),
        ("now", at("2026-11-22T10:00:00Z"), vec![Zone::UTC], None),
        ("a future time", at("2026-11-22T10:00:01Z"), vec![Zone::UTC], refused("Sun 2026-11-22 10:00:01 +00:00")),
        ("a future time in each zone", at("2026-11-23"), both(), refused("Mon 2026-11-23 00:00:00 +09:00")),
        ("one that has come in one of them", at("2026-11-22T10:00"), both(), None),
        ("today", Since::Day(0), both(), None),
        ("a duration", Since::Ago(TimeDelta::hours(6)), both(), None),
    ];
    for (sentence, since, zones, want) in rows {
        assert_eq!(since.fault(zones.into_iter(), now).map(|fault| fault.to_string()), want, "{sentence}");
    }
}

#[cfg(feature = "dev")]
#[test]
fn next_of_files_has_its_own_defaults_and_refuses_a_schedule() {
    let args = ["next", "-f", "a,b", "-c", "20", "--from=2027-03-27", "-ojson"];
    let Command::NextOf(files, namespace, question, format) = command(&args) else { panic!("no next") };
    assert_eq!((files, &*namespace), (["a", "b"].map(PathBuf::from).to_vec(), "default"));
    let want = next::cron_jobs::Question {
        zone: Zone::UTC,
        seed: "".into(),
        from: Some(Given::Local("2027-03-27T00:00:00".parse().unwrap())),
        count: 20,
        all: false,
    };
    assert_eq!((question, format), (want, Format::Json));
    let fault = |args: &[&str]| parse(&[&["next", "-f", "a"], args].concat()).unwrap_err().to_string();
    assert_eq!(fault(&["@daily"]), "unexpected argument \"@daily\"; with -f, there is no SCHEDULE");
    assert_eq!(fault(&["--previous"]), "--previous: true is not allowed; use it with a SCHEDULE");
    assert_eq!(fault(&["--namespace=A"]), "--namespace: A is not allowed; use the name of a namespace");
}

#[test]
fn next_of_a_cron_job_in_a_cluster_is_told_from_a_schedule() {
    let rows: [(&[&str], Option<&str>, usize); 4] = [
        (&["next", "nightly"], None, 5),
        (&["next", "-n", "shop", "nightly", "--count", "3"], Some("shop"), 3),
        (&["next", "--namespace=shop", "nightly", "-c", "20"], Some("shop"), 20),
        (&["next", "nightly", "-n", "7"], Some("7"), 5),
    ];
    for (args, namespace, count) in rows {
        let Command::NextIn(target, question, _) = command(args) else { panic!("{args:?}") };
        assert_eq!((target.namespace.as_deref(), &*target.name), (namespace, "nightly"), "{args:?}");
        assert_eq!(question.count, count, "{args:?}");
    }
    let fault = |args: &[&str]| parse(args).unwrap_err().to_string();
    assert!(fault(&["next", "@nightly"]).starts_with("SCHEDULE: \"@nightly\" is not a schedule: "));
    assert!(fault(&["next", "*"]).starts_with("SCHEDULE: \"*\" is not a schedule: "));
    let elsewhere = "--namespace: shop is not allowed; use it with the NAME of a CronJob or with -f";
    assert_eq!(fault(&["next", "* * * * *", "-n", "shop"]), elsewhere);
}

#[cfg(feature = "dev")]
#[test]
fn check_has_its_own_defaults() {
    let args = ["check", "-f", "a,b", "-f", "-", "-o", "sarif", "-R", "--histogram=none", "--spread-seed=blue"];
    let Command::Check(inputs, rules, format) = command(&args) else { panic!("no check") };
    assert_eq!(inputs.files, ["a", "b", "-"].map(PathBuf::from));
    let want = Rules { zone: Zone::UTC, max_per_minute: 20, histogram: false, seed: "blue".into(), ..Rules::default() };
    assert_eq!(rules, want);
    assert_eq!((format, inputs.recursive, inputs.rendered), (CheckFormat::Sarif, true, Vec::new()));
    let Command::Check(inputs, ..) = command(&["check", "-k", "overlay", "--helm", "chart"]) else {
        panic!("no check")
    };
    let kustomization = |flags| Rendered::Kustomization { directory: "overlay".to_owned(), flags };
    let rendered = [kustomization(Vec::new()), Rendered::Chart("chart".to_owned())];
    assert_eq!((inputs.files, &inputs.rendered[..]), (Vec::new(), &rendered[..]));
    let args = ["check", "-k", "overlay", "--load-restrictor", "LoadRestrictionsNone", "--enable-helm"];
    let Command::Check(inputs, ..) = command(&args) else { panic!("no check") };
    assert_eq!(inputs.rendered, [kustomization(vec!["--load-restrictor=LoadRestrictionsNone", "--enable-helm"])]);
    assert_eq!(
        parse(&["check", "-k", "overlay", "--load-restrictor=none"]).unwrap_err().to_string(),
        "--load-restrictor: none is not allowed; use LoadRestrictionsNone or LoadRestrictionsRootOnly"
    );
    assert_eq!(
        parse(&["check", "-k", "--post-renderer=x", "--helm="]).unwrap_err().to_string(),
        "--kustomize: --post-renderer=x is not allowed; use the path of a directory\n--helm: \"\" is not allowed; use the path or \
         the name of a chart"
    );
}

#[test]
fn a_wrong_command_line_is_one_sentence_per_fault() {
    let rows: Vec<(&str, &[&str], &[&str])> = vec![
        (
            "no schedule",
            &["next"],
            &["SCHEDULE is missing; give a schedule in quotes, such as '30 2 * * *', or the name of a CronJob"],
        ),
        (
            "a schedule without quotes",
            &["next", "30", "2", "Cargo.toml", "src"],
            &[
                "SCHEDULE is one argument, and there are 4; give a schedule in quotes, such as '30 2 * * *', or the name of a \
               CronJob",
            ],
        ),
        (
            "a schedule that is none",
            &["next", "61 * * * *"],
            &["SCHEDULE: \"61 * * * *\" is not a schedule: end of range (61) above maximum (59): 61"],
        ),
        (
            "everything at once",
            &["next", "@daily", "--time-zone=Berlin", "-c0", "--from=today", "-oxml"],
            &[
                "--time-zone: Berlin is not allowed; use a name of the time zone database, such as Europe/Berlin",
                "--count: 0 is not allowed; use a whole number from 1 to 10000",
                "--from: today is not allowed; use a time such as 2026-03-28T01:00:00Z, 2026-03-28T01:00 or 2026-03-28",
                "--output: xml is not allowed; use table, json or yaml",
            ],
        ),
        (
            "credentials in an address",
            &["ui", "--prometheus=http://a:b@127.0.0.1:9090"],
            &[
                "--prometheus: http://a:b@127.0.0.1:9090 is not allowed; use the address of a Prometheus, as in http://127.0.0.1:9090",
            ],
        ),
        (
            "an address without its scheme",
            &["ui", "--prometheus=127.0.0.1:9090"],
            &[
                "--prometheus: 127.0.0.1:9090 is not allowed; use the address of a Prometheus, as in http://127.0.0.1:9090",
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
            "a kind before the name of next",
            &["next", "cronjob/a"],
            &["NAME: \"cronjob/a\" is not allowed; use the name of one CronJob, without its kind"],
        ),
        (
            "steps that are no kind",
            &["next", "*/5"],
            &["SCHEDULE: \"*/5\" is not a schedule: expected exactly 5 fields, found 1: [*/5]"],
        ),
        (
            "another controller",
            &["explain", "a", "--controller=job"],
            &["--controller: job is not allowed; use cronjob, tutorial or apiexample"],
        ),
        (
            "a name and all namespaces",
            &["explain", "a", "-A"],
            &["--all-namespaces: true is not allowed; use it without a NAME"],
        ),
        (
            "a run of no CronJob is awaited, for no time",
            &["explain", "--wait=0s"],
            &[
                "--wait: 0s is not allowed; use it with a NAME, and without --since",
                "--wait: 0s is not allowed; use a duration above zero, such as 90s",
            ],
        ),
        (
            "one namespace and all of them",
            &["list", "-A", "-n", "shop"],
            &["--namespace: shop is not allowed; use either it or --all-namespaces"],
        ),
        (
            "a time that there is not",
            &["explain", "--since=tomorrow"],
            &["--since: tomorrow is not allowed; use yesterday, today, a duration such as 6h, or a time such as \
               2026-03-28T01:00"],
        ),
        ("a name of list", &["list", "a"], &["unexpected argument \"a\"; explain a is about one CronJob"]),
        ("nothing to start", &["trigger"], &["NAME is missing; give the name of one CronJob"]),
        (
            "variables and modes of trigger that are none",
            &["trigger", "a", "--env=A", "--env", "=b", "--dry-run=maybe", "-ojson", "--wait"],
            &[
                "--env: A is not allowed; use KEY=VALUE, such as DAY=2026-03-28",
                "--env: =b is not allowed; use KEY=VALUE, such as DAY=2026-03-28",
                "--dry-run: maybe is not allowed; use client, server or none",
                "--wait: true is not allowed; use it without --dry-run and --output",
            ],
        ),
        (
            "a kind whose runs are Pods",
            &["trigger", "a", "--controller=apiexample"],
            &["--controller: apiexample is not allowed; use cronjob or tutorial, whose runs are Jobs"],
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
    assert!(help.contains("Usage: kubectl cronjob next SCHEDULE | NAME"), "{help}");
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

#[test]
fn command_line_of_shadow_is_read() {
    let everywhere = |namespaces| Scope {
        controller_kind: ControllerKind::CronJob,
        namespaces,
        name: None,
        kubeconfig: None,
        context: None,
    };
    let config = |args: &[&str]| match parse(&[&["shadow"], args].concat()) {
        Ok(Invocation::Shadow(config)) => Ok(*config),
        Ok(other) => panic!("{args:?} gives {other:?}"),
        Err(error) => Err(error.to_string()),
    };
    let plain = ShadowConfig {
        scope: everywhere(Namespaces::All),
        flags: ControllerFlags::default(),
        lasts: None,
        format: Format::Table,
        metrics: None,
        what_if: WhatIf::default(),
        report: None,
    };
    let rows: [(&[&str], Result<ShadowConfig, &str>); 9] = [
        (&[], Ok(plain.clone())),
        (&["-A"], Ok(plain.clone())),
        (
            &["-n", "shop", "--for=1h30m"],
            Ok(ShadowConfig {
                scope: everywhere(Namespaces::One("shop".to_owned())),
                lasts: Some(Duration::from_secs(5400)),
                ..plain.clone()
            }),
        ),
        (
            &["-o", "json", "--metrics-bind-address=127.0.0.1:8080"],
            Ok(ShadowConfig { format: Format::Json, metrics: "127.0.0.1:8080".parse().ok(), ..plain.clone() }),
        ),
        (
            &["--what-if=spread=10m,max-concurrent=3", "--report=a.json"],
            Ok(ShadowConfig {
                what_if: WhatIf::parse("spread=10m,max-concurrent=3").unwrap(),
                report: Some("a.json".into()),
                ..plain.clone()
            }),
        ),
        (&["--for=0s"], Err("--for: 0s is not allowed; use a duration above zero, such as 1h")),
        (&["--for=soon"], Err("--for: soon is not allowed; use a duration above zero, such as 1h")),
        (&["-o", "yaml"], Err("--output: yaml is not allowed; use table or json")),
        (&["nightly"], Err("unexpected argument \"nightly\"; shadow watches all CronJobs of a namespace")),
    ];
    for (args, want) in rows {
        assert_eq!(config(args), want.map_err(ToOwned::to_owned), "{args:?}");
    }
}

#[test]
fn freeze_takes_one_choice_of_namespaces_and_an_end() {
    use crate::cli::freeze::{self, Change};
    let chosen = |args: &[&str]| match command(args) {
        Command::SetFrozen(scope, request, ..) => (scope.namespaces, request),
        other => panic!("{args:?} gives {other:?}"),
    };
    let (namespaces, request) = chosen(&["freeze", "-n", "shop", "--until=12h", "--reason=x", "--dry-run"]);
    let change = Change::Freeze { until: freeze::Until::In(TimeDelta::hours(12)), reason: Some("x".to_owned()) };
    assert_eq!(namespaces, Namespaces::One("shop".to_owned()));
    assert_eq!(request, freeze::Request { change, selector: None, dry_run: true });
    let (namespaces, request) = chosen(&["thaw", "-l", "team=a"]);
    assert_eq!(
        (namespaces, request.change, request.selector.as_deref()),
        (Namespaces::All, Change::Thaw, Some("team=a"))
    );
    assert_eq!(chosen(&["thaw", "-A"]).0, Namespaces::All);
    for args in [&["thaw", "-A"][..], &["freeze", "-A", "--until=12h"]] {
        match command(&[args, &["--time-zone=Asia/Tokyo", "--spread-seed=x"]].concat()) {
            Command::SetFrozen(_, _, flags, _) => {
                assert_eq!((flags.zone.name(), &*flags.seed), ("Asia/Tokyo", "x"), "{args:?}");
            }
            other => panic!("{args:?} gives {other:?}"),
        }
    }
    let rows: [(&[&str], &str); 6] = [
        (&["thaw"], "which Namespaces is missing; give --namespace, --selector or --all-namespaces"),
        (&["thaw", "-n", "a", "-l", "b"], "--selector"),
        (&["thaw", "-A", "-l", "b"], "--selector"),
        (&["freeze", "-A"], "--until is missing"),
        (&["freeze", "-A", "--until=soon"], "--until"),
        (&["freeze", "-A", "--until=-1h"], "--until"),
    ];
    for (args, want) in rows {
        let error = parse(args).unwrap_err().to_string();
        assert!(error.contains(want), "{args:?}: {error}");
    }
}
