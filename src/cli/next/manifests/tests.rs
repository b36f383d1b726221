#![allow(clippy::unwrap_used)]

use chrono::DateTime;
use schedule::Zone;

use super::*;
use crate::api::policy::{DST, EXCLUDE};
use crate::cli::check::{Rules, check};
use crate::cli::next::cron_jobs::Given;
use crate::cli::output::{Format, Report, render};

const BACKUP: &str = "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: backup\n  namespace: default\n  annotations:\n    \
                      cronjob-controller.dev/spread: 1h\n    cronjob-controller.dev/exclude: Sat\n    \
                      cronjob-controller.dev/dst: once\nspec:\n  schedule: 30 2 * * *\n  timeZone: Europe/Berlin\n  \
                      jobTemplate: {spec: {template: {spec: {}}}}\n";

fn question(from: &str, count: usize, all: bool) -> Question {
    Question { zone: Zone::UTC, seed: "".into(), from: Some(Given::Instant(from.parse().unwrap())), count, all }
}

fn ask_in(namespace: &str, text: &str, question: &Question) -> Result<Answer, ManifestError> {
    let source = Source { file: "f.yaml".to_owned(), text: text.to_owned() };
    let (answer, mut unreadable) = next_of(&[source], namespace, question, DateTime::UNIX_EPOCH);
    match unreadable.pop() {
        Some(error) => Err(error),
        None => Ok(answer.unwrap()),
    }
}

fn ask(text: &str, question: &Question) -> Result<Answer, ManifestError> {
    ask_in("default", text, question)
}

fn json(text: &str, question: &Question) -> Value {
    serde_json::from_str(&render(&ask(text, question).unwrap(), Format::Json)).unwrap()
}

/// The offset of `default/backup` in an hour is 1960 seconds.
#[test]
fn each_run_has_its_slot_its_due_time_and_a_note() {
    let answer = json(BACKUP, &question("2027-03-26T00:00:00Z", 3, false));
    assert_eq!((&answer["namespace"], &answer["name"]), (&json!("default"), &json!("backup")));
    let want = json!([
        { "slot": "2027-03-26T02:30:00+01:00", "due": "2027-03-26T03:02:40+01:00", "note": "" },
        {
            "slot": "2027-03-28T03:00:00+02:00", "due": "2027-03-28T03:32:40+02:00",
            "note": "the run of 02:30: the clocks go from 02:00 to 03:00",
        },
        { "slot": "2027-03-29T02:30:00+02:00", "due": "2027-03-29T03:02:40+02:00", "note": "" },
    ]);
    assert_eq!(answer["runs"], want);
    assert!(answer["leftOut"].is_null());
}

#[test]
fn a_time_without_an_offset_is_in_the_zone_of_each_schedule() {
    let tokyo = BACKUP.replace("name: backup", "name: tokyo").replace("Europe/Berlin", "Asia/Tokyo");
    let from = Some(Given::Local("2027-03-26T00:00:00".parse().unwrap()));
    let answers =
        json(&format!("{BACKUP}---\n{tokyo}"), &Question { from, ..question("2000-01-01T00:00:00Z", 1, false) });
    let from = [&answers[0]["from"], &answers[1]["from"]];
    assert_eq!(from, [&json!("2027-03-26T00:00:00+01:00"), &json!("2027-03-26T00:00:00+09:00")]);
}

#[test]
fn what_policies_leave_out_is_listed_on_request() {
    let answer = json(BACKUP, &question("2027-10-29T00:00:00Z", 3, true));
    let want = json!([
        { "slot": "2027-10-30T02:30:00+02:00", "annotation": EXCLUDE },
        { "slot": "2027-10-31T02:30:00+01:00", "annotation": DST },
    ]);
    assert_eq!(answer["leftOut"], want);
    let lines = ask(BACKUP, &question("2027-10-29T00:00:00Z", 2, true)).unwrap().lines();
    assert_eq!(
        lines,
        [
            "CronJob default/backup: 30 2 * * * in Europe/Berlin, after Fri 2027-10-29 02:00:00 +02:00",
            "These are its runs under cronjob-controller.",
            "SLOT                             DUE                              NOTE",
            "Fri 2027-10-29 02:30:00 +02:00   Fri 2027-10-29 03:02:40 +02:00",
            "Sat 2027-10-30 02:30:00 +02:00   -                                left out by cronjob-controller.dev/exclude",
            "Sun 2027-10-31 02:30:00 +02:00   Sun 2027-10-31 02:02:40 +01:00",
        ]
    );
}

/// A run whose slot has passed waits for its due time.
#[test]
fn runs_are_those_that_are_due_after_the_given_time() {
    let slots = |from: &str| json(BACKUP, &question(from, 1, false))["runs"][0]["slot"].clone();
    assert_eq!(slots("2027-03-22T02:02:39Z"), "2027-03-22T02:30:00+01:00");
    assert_eq!(slots("2027-03-22T02:02:40Z"), "2027-03-23T02:30:00+01:00");
}

#[test]
fn several_cron_jobs_are_a_list_and_other_kinds_are_passed_over() {
    let plain =
        BACKUP.replace("name: backup\n  namespace: default\n", "name: other\n").replace("spread: 1h", "splay: 1h");
    let text = format!("{BACKUP}---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: a}}\n---\n{plain}");
    let answer = json(&text, &question("2027-03-26T00:00:00Z", 1, false));
    let names: Vec<&str> = answer.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["backup", "other"]);
    assert_eq!(answer[1]["namespace"], "default");
    assert_eq!(answer[1]["notes"], json!(["The annotation cronjob-controller.dev/splay is not known."]));
    let error = ask("apiVersion: v1\nkind: Namespace\n", &question("2027-03-26T00:00:00Z", 1, false)).unwrap_err();
    assert_eq!(error.to_string(), "f.yaml, document 1: kind: there is no CronJob");
}

#[test]
fn document_that_cannot_be_read_is_named_and_the_others_are_answered() {
    let other = BACKUP.replace("name: backup", "name: other");
    let bad = BACKUP.replace("schedule: 30 2 * * *", "schedule: [1]");
    let texts = [format!("a: [\n---\n{BACKUP}"), format!("{bad}---\n{other}")];
    let sources: Vec<Source> = texts.into_iter().map(|text| Source { file: "f.yaml".to_owned(), text }).collect();
    let (answer, unreadable) =
        next_of(&sources, "default", &question("2027-03-26T00:00:00Z", 1, false), DateTime::UNIX_EPOCH);
    let json: Value = serde_json::from_str(&render(&answer.unwrap(), Format::Json)).unwrap();
    assert_eq!([&json[0]["name"], &json[1]["name"]], ["backup", "other"]);
    let unreadable: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
    assert_eq!(unreadable.len(), 2, "{unreadable:?}");
    assert!(unreadable[0].starts_with("f.yaml, document 1: not YAML: line "), "{unreadable:?}");
    assert_eq!(
        unreadable[1],
        "f.yaml, document 1, line 11: spec.schedule: json: cannot unmarshal array into Go struct field CronJobSpec.spec.schedule of type string"
    );
}

/// A document, and how each sentence about it ends.
#[test]
fn what_is_wrong_with_a_cron_job_is_said_as_check_says_it() {
    let two = BACKUP.replace("  schedule: 30 2 * * *", "  startingDeadlineSeconds: 1m\n  schedule: 5");
    let twice = BACKUP.replace("  timeZone", "  schedule: 5 * * * *\n  timeZone");
    let whole = BACKUP.replace("{spec: {}}", "{spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}");
    let rows: [(&str, &str, &[&str]); 9] = [
        (
            "a field in other letters, which kubectl refuses",
            &whole.replace("timeZone", "timezone"),
            &["line 12: spec.timezone: there is no such field"],
        ),
        (
            "a value",
            &whole.replace("  timeZone", "  concurrencyPolicy: forbid\n  timeZone"),
            &["line 12: spec.concurrencyPolicy: "],
        ),
        ("in the Job template, on which no run depends", &whole.replace("image", "command: date, image"), &[]),
        (
            "two types",
            &two,
            &["line 12: spec.schedule: json: cannot unmarshal number", "line 11: spec.startingDeadlineSeconds: json: "],
        ),
        (
            "in a list",
            &format!("apiVersion: v1\nkind: List\nitems:\n- {}", two.trim_end().replace('\n', "\n  ")),
            &["line 15: spec.schedule: ", "line 14: spec.startingDeadlineSeconds: "],
        ),
        (
            "a kind in other letters",
            &BACKUP.replace("CronJob", "Cronjob"),
            &["line 2: kind: there is no Cronjob in batch/v1; did you mean CronJob"],
        ),
        (
            "another group",
            &BACKUP.replace("batch/v1", "apps/v1"),
            &["apiVersion: there is no CronJob in apps/v1; did you mean CronJob"],
        ),
        (
            "a key twice",
            &twice,
            &[
                "line 12 column 3: the key \"schedule\" occurs twice in the same mapping; as for kubectl, the last one counts",
            ],
        ),
        ("a template", "a: {{ x }}\n{{ .Values.a }}\n", &["the file is a template of Helm, so read what it renders"]),
    ];
    for (sentence, text, want) in rows {
        let source = Source { file: "f.yaml".to_owned(), text: text.to_owned() };
        let (_, found) =
            next_of(&[source], "default", &question("2027-03-26T00:00:00Z", 1, false), DateTime::UNIX_EPOCH);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        let is_same = found.len() == want.len() && found.iter().zip(want).all(|(found, part)| found.contains(part));
        assert!(is_same, "{sentence}: {found:#?}");
    }
}

/// With and without spec.suspend, the annotation says another thing.
#[test]
fn controller_whose_runs_they_are_comes_first() {
    let managed = "exclude: Sat\n    cronjob-controller.dev/managed: \"true\"";
    let all = "These are its runs under cronjob-controller with --manage=all: cronjob-controller.dev/managed is \"true\", but \
               spec.suspend is false.";
    for (sentence, annotations, suspend, want) in [
        ("no annotation", "exclude: Sat", false, "These are its runs under cronjob-controller."),
        ("half handed over", managed, false, all),
        (
            "handed over",
            managed,
            true,
            "It is handed over: these are its runs under cronjob-controller with --manage=annotated.",
        ),
    ] {
        let schedule = if suspend { "  suspend: true\n  schedule:" } else { "  schedule:" };
        let text = BACKUP.replace("exclude: Sat", annotations).replace("  schedule:", schedule);
        let question = question("2027-03-26T00:00:00Z", 1, false);
        assert_eq!(ask(&text, &question).unwrap().lines()[1], want, "{sentence}");
        assert_eq!(json(&text, &question)["controller"], want, "{sentence}");
    }
}

#[test]
fn problem_and_suspension_are_told() {
    let ask =
        |old: &str, new: &str| ask(&BACKUP.replace(old, new), &question("2027-03-26T00:00:00Z", 1, false)).unwrap();
    let invalid = ask("spread: 1h", "spread: soon");
    assert!(!invalid.is_good());
    let problem = invalid.lines()[2].clone();
    assert!(
        problem.starts_with("It does not run: cronjob-controller.dev/spread: \"soon\" is not allowed"),
        "{problem}"
    );
    let suspended = ask("  schedule:", "  suspend: true\n  schedule:");
    assert_eq!(suspended.lines()[2], "It is suspended (spec.suspend): no run starts until it is resumed.");
    let never = ask("exclude: Sat", "exclude: 01-01/12-31");
    assert!(!never.is_good());
    assert_eq!(never.lines().last().unwrap(), "No run follows within five years.");
}

/// `next` and `check` read the same manifests with the same defaults.
#[test]
fn invalid_policy_is_invalid_for_check_too() {
    const NEEDS_HISTORY: &str = "cronjob-controller.dev/pause-after-failures: \"3\" is not allowed with";
    const BLOCKS_NOTHING: &str = "cronjob-controller.dev/backlog: \"2\" is not allowed with";
    let rows = [
        ("the default keeps one failed Job", "pause-after-failures: '3'", "", Some(NEEDS_HISTORY)),
        ("null is the default", "pause-after-failures: '3'", "failedJobsHistoryLimit: null", Some(NEEDS_HISTORY)),
        ("one is enough for one", "pause-after-failures: '1'", "", None),
        ("three are kept", "pause-after-failures: '3'", "failedJobsHistoryLimit: 3", None),
        (
            "no success is kept",
            "pause-after-failures: '1'",
            "successfulJobsHistoryLimit: 0",
            Some("cronjob-controller.dev/pause"),
        ),
        ("the default is Allow", "backlog: '2'", "", Some(BLOCKS_NOTHING)),
        ("null is Allow", "backlog: '2'", "concurrencyPolicy: null", Some(BLOCKS_NOTHING)),
        ("Forbid", "backlog: '2'", "concurrencyPolicy: Forbid", None),
    ];
    for (sentence, annotation, field, want) in rows {
        let text = BACKUP.replace("spread: 1h", annotation).replace("  timeZone:", &format!("  {field}\n  timeZone:"));
        let answer = ask(&text, &question("2027-03-26T00:00:00Z", 1, false)).unwrap();
        let problem = json(&text, &question("2027-03-26T00:00:00Z", 1, false))["problem"].as_str().map(str::to_owned);
        let start = want.map(|want| format!("It does not run: {want}"));
        let is_wanted = match (&problem, &start) {
            (Some(problem), Some(start)) => problem.starts_with(start),
            (problem, start) => problem.is_none() && start.is_none(),
        };
        assert!(is_wanted && answer.is_good() == want.is_none(), "{sentence}: {problem:?}");
        let source = Source { file: "f.yaml".to_owned(), text };
        let report = check(&[source], &Rules::default(), DateTime::UNIX_EPOCH).lines().join("\n");
        assert_eq!(report.contains("[bad-policy]"), want.is_some(), "{sentence}: {report}");
        assert_eq!(report.contains(want.unwrap_or("[bad-policy]")), want.is_some(), "{sentence}: {report}");
    }
}

#[test]
fn seed_and_namespace_change_the_delay() {
    let due = |namespace: &str, seed: &str| {
        let question = Question { seed: seed.into(), ..question("2027-03-26T00:00:00Z", 1, false) };
        let answer = ask_in(namespace, &BACKUP.replace("  namespace: default\n", ""), &question).unwrap();
        render(&answer, Format::Json).lines().find(|line| line.contains("\"due\"")).unwrap().to_owned()
    };
    let (own, blue, shop) = (due("default", ""), due("default", "blue"), due("shop", ""));
    assert!(own != blue && own != shop && blue != shop);
}
