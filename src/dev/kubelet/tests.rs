#![allow(clippy::unwrap_used)]

use apiserver::merge_patch;
use proptest::prelude::*;

use super::*;
use crate::api::{Interner, Object as _};

fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

fn pod(extra: &Value) -> Value {
    let mut pod = json!({
        "metadata": { "name": "p", "namespace": "n", "uid": "0b3a5c1e-7d34-4a53-9f0e-2a5f0d7c9b11" },
        "spec": { "restartPolicy": "Never", "containers": [
            { "name": "c", "image": "busybox", "command": ["sh", "-c"], "args": ["date"] },
            { "name": "d", "image": "busybox" },
        ]},
        "status": { "phase": "Pending" },
    });
    merge_patch(&mut pod, extra);
    pod
}

fn decode(pod: &Value) -> Pod {
    Pod::decode(&pod.to_string(), &Interner::default()).unwrap()
}

const SETTINGS: Settings = Settings { duration: Duration::from_secs(3), failure_rate: 0.0, seed: 1 };

/// Simulates a Pod's life second by second. Returns the changes of its phase and the number of restarts.
fn life(extra: &Value, settings: &Settings) -> (Vec<(i64, String)>, u32) {
    let mut pod = pod(extra);
    let mut phases = Vec::new();
    for second in 0..30 {
        match step(&decode(&pod), settings, at(second)) {
            Step::Patch(patch) => {
                merge_patch(&mut pod, &patch);
                let phase = pod["status"]["phase"].as_str().unwrap().to_owned();
                if phases.last().is_none_or(|(_, last)| *last != phase) {
                    phases.push((second, phase));
                }
            }
            Step::Wait(until) => assert!(until > at(second), "waits for what is past"),
            Step::Nothing | Step::Remove => {}
        }
    }
    (phases, decode(&pod).restart_count())
}

#[test]
fn a_pod_lives_as_its_annotations_and_the_settings_say() {
    let annotated = |key: &str, value: &str| json!({ "metadata": { "annotations": { key: value } } });
    let failing = Settings { failure_rate: 1.0, ..SETTINGS };
    let rows = [
        ("the settings' duration", json!({}), SETTINGS, vec![(0, "Running"), (3, "Succeeded")], 0),
        ("the dice decide", json!({}), failing, vec![(0, "Running"), (3, "Failed")], 0),
        ("its own duration", annotated(DURATION, "10s"), SETTINGS, vec![(0, "Running"), (10, "Succeeded")], 0),
        ("a duration that is none", annotated(DURATION, "long"), SETTINGS, vec![(0, "Running"), (3, "Succeeded")], 0),
        ("its own outcome", annotated(OUTCOME, "fail"), SETTINGS, vec![(0, "Running"), (3, "Failed")], 0),
        (
            "an outcome against the dice",
            annotated(OUTCOME, "succeed"),
            failing,
            vec![(0, "Running"), (3, "Succeeded")],
            0,
        ),
        (
            "restarted where it stands",
            json!({ "spec": { "restartPolicy": "OnFailure" } }),
            failing,
            vec![(0, "Running")],
            9,
        ),
        ("a service runs on", json!({ "spec": { "restartPolicy": "Always" } }), SETTINGS, vec![(0, "Running")], 0),
    ];
    for (sentence, extra, settings, want, restarts) in rows {
        let (phases, restarted) = life(&extra, &settings);
        let phases: Vec<(i64, &str)> = phases.iter().map(|(second, phase)| (*second, phase.as_str())).collect();
        assert_eq!((phases, restarted), (want, restarts), "{sentence}");
    }
}

const DURATION: &str = crate::dev::objects::DURATION_ANNOTATION;
const OUTCOME: &str = crate::dev::objects::OUTCOME_ANNOTATION;

#[test]
fn a_pod_pending_deletion_goes_at_once() {
    let deleting = decode(&pod(&json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } })));
    assert_eq!(step(&deleting, &SETTINGS, at(0)), Step::Remove);
}

#[test]
fn log_says_that_containers_are_simulated() {
    let mut value = pod(&json!({}));
    assert_eq!(log(&decode(&value), "c"), None, "not started");
    let Step::Patch(patch) = step(&decode(&value), &SETTINGS, at(0)) else { panic!("does not start") };
    merge_patch(&mut value, &patch);
    let Step::Patch(patch) = step(&decode(&value), &SETTINGS, at(3)) else { panic!("does not end") };
    merge_patch(&mut value, &patch);
    let pod = decode(&value);
    let text = log(&pod, "c").unwrap();
    let want = "2027-01-15T08:00:00Z This container is simulated: nothing runs, and this is all of its log.\n\
                2027-01-15T08:00:00Z image: busybox\n\
                2027-01-15T08:00:00Z command: sh -c date\n\
                2027-01-15T08:00:03Z exit code: 0\n";
    assert_eq!(text, want);
    assert_eq!(log(&pod, ""), Some(text), "the first container is the default");
    assert!(log(&pod, "d").is_some());
    assert_eq!(log(&pod, "e"), None, "there is no such container");
}

#[test]
fn random_numbers_are_nearly_uniform() {
    let fails = (0..10_000).filter(|uid| dice(7, &uid.to_string(), 0) < 0.2).count();
    assert!((1_900..2_100).contains(&fails), "{fails} of 10000 at a rate of 0.2");
}

proptest! {
    #[test]
    fn random_numbers_repeat_and_stay_in_range(seed: u64, uid in ".*", restarts: u32) {
        let number = dice(seed, &uid, restarts);
        prop_assert!((0.0..1.0).contains(&number));
        prop_assert_eq!(number.to_bits(), dice(seed, &uid, restarts).to_bits());
    }
}
