#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use regex::Regex;

use super::*;
use crate::api::policy::{ANNOTATIONS, PolicyReading, SCHEDULE, SPREAD};

/// A spec under which every annotation but `replace-waits` is allowed.
fn forbid() -> Setting<'static> {
    Setting { concurrency_policy: ConcurrencyPolicy::Forbid, ..Setting::from("0 3 * * *") }
}

fn limits(annotations: &[(&str, &str)], setting: Setting<'_>) -> Result<Limits, PolicyError> {
    PolicyReading::of(annotations.iter().copied(), setting).unwrap().policy.map(|policy| *policy.limits())
}

fn form(name: &str) -> Regex {
    let form = ANNOTATIONS.iter().find(|known| known.name == name).unwrap().form;
    Regex::new(&format!("^(?:{form})$")).unwrap()
}

#[test]
fn allowed_values_are_read_and_have_the_form_of_the_table() {
    let none = Limits::default();
    let stuck = |seconds, delete| Limits {
        stuck_after: Some(StuckAfter { age: TimeDelta::seconds(seconds), delete }),
        ..Limits::default()
    };
    let rows = [
        (MAX_CONCURRENT, "1", Limits { max_concurrent: Some(1), ..none }),
        (MAX_CONCURRENT, "1000", Limits { max_concurrent: Some(1_000), ..none }),
        (BACKLOG, "0", Limits { backlog: Some(0), ..none }),
        (BACKLOG, "100", Limits { backlog: Some(100), ..none }),
        (REPLACE_WAITS, "true", Limits { replace_waits: true, ..none }),
        (AFTER_CHANGE, "wait", Limits { waits_after_change: true, ..none }),
        (AFTER_CHANGE, "fire", none),
        (STUCK_AFTER, "2h", stuck(7_200, false)),
        (STUCK_AFTER, "1h30m, delete", stuck(5_400, true)),
        (STUCK_AFTER, " 90.5s ,delete ", stuck(90, true)),
        (STUCK_AFTER, "8760h", stuck(LONGEST_RUN, false)),
        (PAUSE_AFTER_FAILURES, "3", Limits { pause_after_failures: Some(3), ..none }),
        (SLOT_IN_POD, "true", Limits { slot_in_pod: true, ..none }),
        (SLOT_IN_POD, "false", none),
    ];
    for (name, value, want) in rows {
        let replaces = Setting { concurrency_policy: ConcurrencyPolicy::Replace, ..forbid() };
        let setting = if name == REPLACE_WAITS { replaces } else { forbid() };
        assert_eq!(limits(&[(name, value)], setting), Ok(want), "{name}: {value}");
        assert!(form(name).is_match(value), "{name}: {value}");
    }
}

#[test]
fn refused_values_are_named_with_the_reason() {
    let rows = [
        (MAX_CONCURRENT, "0", "no whole number from 1 to 1000"),
        (MAX_CONCURRENT, "1001", "no whole number from 1 to 1000"),
        (MAX_CONCURRENT, "+3", "no whole number from 1 to 1000"),
        (MAX_CONCURRENT, "03", "no whole number from 1 to 1000"),
        (MAX_CONCURRENT, "", "no whole number from 1 to 1000"),
        (BACKLOG, "101", "no whole number from 0 to 100"),
        (BACKLOG, "-1", "no whole number from 0 to 100"),
        (REPLACE_WAITS, "false", "no such value"),
        (SLOT_IN_POD, "yes", "no such value"),
        (AFTER_CHANGE, "Wait", "no such value"),
        (STUCK_AFTER, "999ms", "not between 1s and 8760h"),
        (STUCK_AFTER, "8761h", "not between 1s and 8760h"),
        (STUCK_AFTER, "2h, kill", "\" kill\" is no action"),
        (PAUSE_AFTER_FAILURES, "0", "no whole number from 1 to 100"),
    ];
    for (name, value, cause) in rows {
        let error = limits(&[(name, value)], forbid()).unwrap_err().to_string();
        let start = format!("{name}: {value:?} is not allowed (");
        assert!(error.starts_with(&start) && error.contains(cause), "{error}");
    }
}

/// The table of what cannot be combined in docs/policies.md.
pub(in crate::api::policy) fn assert_is_on_the_page(name: &str, with: &str) {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/policies.md");
    let prefix = "cronjob-controller.dev/";
    let row = format!("| {} | {} |", name.strip_prefix(prefix).unwrap(), with.replace(prefix, ""));
    assert!(std::fs::read_to_string(page).unwrap().contains(&row), "{page} should have: {row}");
}

/// Annotations, the rest of the spec, the annotation that is named, and what it cannot be combined with.
type Forbidden<'a> = (&'a [(&'a str, &'a str)], Setting<'a>, &'a str, &'a str);

#[test]
fn combinations_without_a_meaning_are_refused() {
    let allow = || Setting::from("0 3 * * *");
    let replace = || Setting { concurrency_policy: ConcurrencyPolicy::Replace, ..allow() };
    let every = || Setting { schedule: "@every 5m", ..forbid() };
    let keeps = |limit| Setting { failed_jobs_history_limit: Some(limit), ..forbid() };
    let keeps_no_success = || Setting { successful_jobs_history_limit: Some(0), ..forbid() };
    let ttl = r#"{"metadata":{},"spec":{"ttlSecondsAfterFinished":0,"template":{}}}"#;
    let is_every = "@every in spec.schedule, which has no calendar";
    let hours: [String; 2] =
        [16, 17].map(|lines| (0..lines).map(|hour| format!("0 {hour} * * *;")).collect::<Vec<_>>().concat());
    let too_many_lines = "more than 16 different lines in cronjob-controller.dev/schedule";
    let rows: [Forbidden<'_>; 13] = [
        (&[(MAX_CONCURRENT, "2")], replace(), MAX_CONCURRENT, "concurrencyPolicy Replace"),
        (
            &[(BACKLOG, "1")],
            allow(),
            BACKLOG,
            "a concurrencyPolicy other than Forbid, unless cronjob-controller.dev/max-concurrent is set",
        ),
        (
            &[(BACKLOG, "2")],
            replace(),
            BACKLOG,
            "a concurrencyPolicy other than Forbid, unless cronjob-controller.dev/max-concurrent is set",
        ),
        (&[(BACKLOG, "0")], every(), BACKLOG, is_every),
        (&[(BACKLOG, "1")], every(), BACKLOG, is_every),
        (&[(BACKLOG, "1"), (SCHEDULE, &hours[1])], forbid(), BACKLOG, too_many_lines),
        (&[(AFTER_CHANGE, "wait")], every(), AFTER_CHANGE, is_every),
        (&[(REPLACE_WAITS, "true")], forbid(), REPLACE_WAITS, "a concurrencyPolicy other than Replace"),
        (&[(REPLACE_WAITS, "true")], allow(), REPLACE_WAITS, "a concurrencyPolicy other than Replace"),
        (
            &[(REPLACE_WAITS, "true"), (STUCK_AFTER, "2h")],
            replace(),
            STUCK_AFTER,
            "cronjob-controller.dev/replace-waits, which deletes the Job itself",
        ),
        (&[(PAUSE_AFTER_FAILURES, "3")], keeps(2), PAUSE_AFTER_FAILURES, "a failedJobsHistoryLimit below it"),
        (&[(PAUSE_AFTER_FAILURES, "1")], keeps_no_success(), PAUSE_AFTER_FAILURES, "successfulJobsHistoryLimit 0"),
        (
            &[(PAUSE_AFTER_FAILURES, "1")],
            Setting { job_template: ttl, ..forbid() },
            PAUSE_AFTER_FAILURES,
            "ttlSecondsAfterFinished in the Job template",
        ),
    ];
    for (annotations, setting, name, with) in rows {
        let error = limits(annotations, setting).unwrap_err();
        assert_eq!(error.annotation(), name);
        assert!(error.to_string().ends_with(&format!("is not allowed with {with}")), "{error}");
        assert_is_on_the_page(name, with);
    }
    let allowed: [(&[(&str, &str)], Setting<'_>); 9] = [
        (&[(BACKLOG, "0")], allow()),
        (&[(BACKLOG, "0")], replace()),
        (&[(BACKLOG, "100"), (SCHEDULE, &hours[0])], forbid()),
        (&[(BACKLOG, "0"), (SCHEDULE, &hours[1])], forbid()),
        (&[(BACKLOG, "3"), (MAX_CONCURRENT, "2")], allow()),
        (&[(AFTER_CHANGE, "fire")], every()),
        (&[(MAX_CONCURRENT, "2"), (STUCK_AFTER, "1m,delete")], every()),
        (&[(PAUSE_AFTER_FAILURES, "3")], keeps(3)),
        (
            &[(PAUSE_AFTER_FAILURES, "3")],
            Setting { job_template: r#"{"spec":{"ttlSecondsAfterFinished":null}}"#, ..allow() },
        ),
    ];
    for (annotations, setting) in allowed {
        assert!(limits(annotations, setting).is_ok(), "{annotations:?} {setting:?}");
    }
}

/// An edit of the spec alone may forbid what was allowed, so a reading is not shared over it.
#[test]
fn reading_is_the_same_only_with_the_same_limits_and_the_same_error() {
    let of = |annotations: &[(&str, &str)], setting| PolicyReading::of(annotations.iter().copied(), setting).unwrap();
    let two = of(&[(MAX_CONCURRENT, "2")], forbid());
    assert!(two.is_same(&of(&[(MAX_CONCURRENT, "2")], forbid())));
    assert!(!two.is_same(&of(&[(MAX_CONCURRENT, "3")], forbid())));
    let replace = Setting { concurrency_policy: ConcurrencyPolicy::Replace, ..forbid() };
    assert!(!two.is_same(&of(&[(MAX_CONCURRENT, "2")], replace)));
    assert!(!two.has_timing() && of(&[(MAX_CONCURRENT, "2"), (SPREAD, "1m")], forbid()).has_timing());
    assert!(of(&[(MAX_CONCURRENT, "2"), (SCHEDULE, "0 1 * * *")], forbid()).has_limits_of(&two));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// No text makes reading panic, and what is accepted has the form of the table.
    #[test]
    fn accepted_values_have_the_form_of_the_table(
        name in proptest::sample::select(&LIMITS[..]),
        value in prop_oneof![".{0,20}", "[+]?[0-9]{0,4}", "[ ]?[0-9.]{1,4}(s|m|h|ms)[ ]?(,[ ]*(delete|Delete)?[ ]*)?", "true|wait|fire"],
    ) {
        for policy in [ConcurrencyPolicy::Forbid, ConcurrencyPolicy::Replace] {
            let setting = Setting { concurrency_policy: policy, ..forbid() };
            if limits(&[(name, &value)], setting).is_ok() {
                prop_assert!(form(name).is_match(&value), "{}: {:?}", name, value);
            }
        }
    }
}
