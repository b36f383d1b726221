#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn namespaces(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn coverage(controllers: &[&str], names: &[&str]) -> Coverage {
    Coverage::new(controllers.iter().copied(), &namespaces(names))
}

fn lease(name: &str, holder: &str, renewed: u32, annotations: &BTreeMap<String, String>) -> Lease {
    serde_json::from_value(json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"holderIdentity": holder, "renewTime": format!("2026-11-22T10:00:{renewed:02}.000000Z")},
    }))
    .unwrap()
}

#[test]
fn namespaces_in_which_two_instances_work_are_shared() {
    const CRON_JOB: &[&str] = &["cronjob"];
    let both: &[&str] = &["cronjob", "tutorial"];
    let rows = [
        ("all and all", coverage(CRON_JOB, &[]), coverage(CRON_JOB, &[]), Some("all namespaces")),
        ("all and one", coverage(CRON_JOB, &[]), coverage(CRON_JOB, &["a"]), Some("namespace a")),
        ("two with one in common", coverage(CRON_JOB, &["a", "b"]), coverage(both, &["b", "c"]), Some("namespace b")),
        ("none in common", coverage(CRON_JOB, &["a", "b"]), coverage(CRON_JOB, &["c"]), None),
        ("a name that begins like another", coverage(CRON_JOB, &["a"]), coverage(CRON_JOB, &["ab"]), None),
        ("other controllers", coverage(CRON_JOB, &["a"]), coverage(&["tutorial", "apiexample"], &["a"]), None),
        ("other controllers everywhere", coverage(CRON_JOB, &[]), coverage(&["tutorial"], &[]), None),
        (
            "more than a message names",
            coverage(CRON_JOB, &[]),
            coverage(CRON_JOB, &["g", "f", "e", "d", "c", "b", "a"]),
            Some("namespaces a, b, c, d, e and 2 more"),
        ),
    ];
    for (sentence, one, other, want) in rows {
        for (own, other) in [(&one, &other), (&other, &one)] {
            let shared = own.shared_with(other).map(|shared| shared.to_string());
            assert_eq!(shared.as_deref(), want, "{sentence}");
        }
    }
}

#[test]
fn lease_says_what_its_holder_works_on() {
    let many: Vec<String> = (0..20_000).map(|number| format!("namespace-{number}")).collect();
    let rows = [
        ("all", coverage(&["cronjob"], &[]), true),
        ("two", coverage(&["cronjob", "tutorial"], &["a", "b"]), true),
        ("all that are handed over", coverage(&["cronjob"], &[]).managing(Manage::Annotated), true),
        ("too many to say", Coverage::new(["cronjob"], &many), false),
    ];
    for (sentence, own, is_said) in rows {
        let annotations = own.annotations();
        let length: usize = annotations.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert!(length < 256 * 1024, "{sentence}: {length} bytes");
        let read = Coverage::of(&lease("a", "me", 0, &annotations));
        assert_eq!(read, is_said.then_some(own), "{sentence}");
    }
    let annotated = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Coverage::of(&lease("a", "me", 0, &pairs.collect()))
    };
    assert_eq!(annotated(&[]), None);
    assert_eq!(annotated(&[(NAMESPACES_ANNOTATION, "a")]), None, "which controllers, it does not say");
    assert_eq!(annotated(&[(NAMESPACES_ANNOTATION, ","), (CONTROLLERS_ANNOTATION, "cronjob")]), None);
    let spaced = annotated(&[(NAMESPACES_ANNOTATION, "b, a,"), (CONTROLLERS_ANNOTATION, "cronjob")]);
    assert_eq!(spaced, Some(coverage(&["cronjob"], &["a", "b"])), "as a user may write it");
}

#[test]
fn coverage_includes_the_objects_of_its_controllers_in_its_namespaces() {
    let (some, all) = (coverage(&["cronjob"], &["a", "b"]), coverage(&["tutorial"], &[]));
    let rows = [
        (&some, "cronjob", "a", true),
        (&some, "cronjob", "c", false),
        (&some, "tutorial", "a", false),
        (&all, "tutorial", "c", true),
        (&all, "cronjob", "c", false),
    ];
    for (coverage, controller, namespace, want) in rows {
        assert_eq!(coverage.includes(controller, namespace), want, "{coverage:?}: {controller} in {namespace}");
    }
}

/// What it is; a lease as it was observed twice; the conflict of the instance `own` for namespaces a and b.
type Row = (&'static str, [Option<Lease>; 2], Option<Conflict>);

#[test]
fn instance_conflicts_with_one_that_renews_its_lease_and_works_on_the_same() {
    let own = coverage(&["cronjob"], &["a", "b"]);
    let (same, disjoint) = (own.annotations(), coverage(&["cronjob"], &["c"]).annotations());
    let shares = |name: &str| Conflict::Namespaces { lease: name.to_owned(), shared: own.namespaces.clone() };
    let held = |renewed: u32| Some(lease("other", "them", renewed, &same));
    let annotated = coverage(&["cronjob"], &["a", "b"]).managing(Manage::Annotated).annotations();
    let rows: Vec<Row> = vec![
        ("it is renewed", [held(0), held(2)], Some(shares("other"))),
        ("it was renewed by a clock that went back", [held(2), held(0)], Some(shares("other"))),
        ("it was taken over", [Some(lease("other", "us", 0, &same)), held(2)], Some(shares("other"))),
        ("it is not renewed", [held(0), held(0)], None),
        ("it is observed once", [None, held(2)], None),
        ("it is gone", [held(0), None], None),
        ("it was released", [held(0), Some(lease("other", "", 2, &same))], None),
        ("it is another program's", [held(0), Some(lease("other", "them", 2, &BTreeMap::new()))], None),
        ("other namespaces", [held(0), Some(lease("other", "them", 2, &disjoint))], None),
        ("its own", [held(0), held(2)].map(|seen| seen.map(|seen| named(seen, "own"))), None),
        (
            "its own, before a rollout of --manage",
            [0, 2].map(|renewed| Some(named(lease("other", "them", renewed, &annotated), "own"))),
            None,
        ),
        (
            "its own, held by an instance for others",
            [held(0), Some(lease("other", "them", 2, &disjoint))].map(|seen| seen.map(|seen| named(seen, "own"))),
            Some(Conflict::Lease { namespaces: Namespaces::These(["c".to_owned()].into()) }),
        ),
    ];
    for (sentence, observed, want) in rows {
        let mut observations = LeaseObservations::default();
        let [first, second] = observed.map(|lease| lease.into_iter().collect::<Vec<_>>());
        assert_eq!(observations.conflicts(("own", &own), &first), [], "{sentence}: nothing is known at first");
        let found = observations.conflicts(("own", &own), &second);
        assert_eq!(found, want.into_iter().collect::<Vec<_>>(), "{sentence}");
    }
}

fn named(mut lease: Lease, name: &str) -> Lease {
    lease.metadata.name = Some(name.to_owned());
    lease
}
