#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use serde_json::{Value, json};

use super::*;
use crate::api::{ControllerKind, Interner};
use crate::leader_election::Coverage;

const KCM: &str = "kube-controller-manager";
const EARLY: &str = "2026-11-22T08:00:00Z";
const LATE: &str = "2026-11-22T09:00:00Z";

/// The managers and their times, of the status; then of the rest.
fn object(writes: &[(&str, &str)], edited: &str, annotations: &Value, suspend: bool) -> Value {
    let write = |(manager, time): &(&str, &str)| json!({"manager": manager, "subresource": "status", "time": time});
    let mut managers: Vec<Value> = writes.iter().map(write).collect();
    managers.retain(|entry| entry["manager"] != "own record");
    if writes.iter().any(|(manager, _)| *manager == "own record") {
        managers.push(json!({"manager": PROGRAM, "subresource": "", "time": "2026-11-22T09:00:01Z"}));
    }
    managers.push(json!({"manager": "kubectl", "time": edited}));
    let mut annotations = annotations.clone();
    annotations["cronjob-controller.dev/exclude"] = json!("Sun");
    json!({
        "metadata": {
            "name": "nightly", "namespace": "shop", "uid": "cj", "resourceVersion": "1", "managedFields": managers,
            "annotations": annotations,
        },
        "spec": {"schedule": "0 2 * * *", "suspend": suspend, "jobTemplate": {}},
    })
}

/// Leases that say what their holder manages.
const OF_ALL: &str = "cronjob-controller-all";
const OF_ANNOTATED: &str = "cronjob-controller-annotated";
/// The same, of another namespace.
const ALL_ELSEWHERE: &str = "cronjob-controller-all-elsewhere";
const ANNOTATED_ELSEWHERE: &str = "cronjob-controller-annotated-elsewhere";

fn leases(names: &[&str]) -> Leases {
    let lease = |name: &&str| {
        let of = |manage| Coverage::new(["cronjob"], &[]).managing(manage).annotations();
        let elsewhere = |manage| Coverage::new(["cronjob"], &["bank".to_owned()]).managing(manage).annotations();
        let annotations = match *name {
            ALL_ELSEWHERE => elsewhere(Manage::All),
            ANNOTATED_ELSEWHERE => elsewhere(Manage::Annotated),
            OF_ALL => of(Manage::All),
            OF_ANNOTATED => of(Manage::Annotated),
            _ => BTreeMap::new(),
        };
        serde_json::from_value(json!({"metadata": {"name": name, "annotations": annotations}, "spec": {}})).unwrap()
    };
    Leases::of(&names.iter().map(lease).collect::<Vec<Lease>>())
}

/// What it is, the writes to the status, the last edit, annotations, spec.suspend, leases, the controller.
type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a Value, bool, &'a [&'a str], InCharge);

#[test]
fn controller_is_known_by_the_handover_its_writes_and_the_leases() {
    use InCharge::{HandedOver, InTree, NoInstance, NotManaged, Own, Unknown};
    let (none, managed) = (json!({}), json!({"cronjob-controller.dev/managed": "true"}));
    let no = json!({"cronjob-controller.dev/managed": "false"});
    let rows: [Row<'_>; 37] = [
        ("handed over", &[(KCM, LATE)], EARLY, &managed, true, &[KCM], HandedOver),
        ("handed over, and this one leaves it out", &[(KCM, LATE)], EARLY, &managed, true, &[OF_ALL, KCM], NotManaged),
        ("handed over, and this one runs it", &[], EARLY, &managed, true, &[OF_ANNOTATED, KCM], HandedOver),
        ("annotated, and spec.suspend is false", &[], EARLY, &managed, false, &[PROGRAM, KCM], InTree),
        ("annotated with --manage=all", &[(PROGRAM, LATE)], EARLY, &managed, false, &[PROGRAM, KCM], Own),
        ("taken back, and suspended", &[], EARLY, &no, true, &[PROGRAM, KCM], Unknown),
        ("its status is the in-tree controller's", &[(KCM, LATE)], EARLY, &none, false, &[PROGRAM, KCM], InTree),
        ("its status is this controller's", &[(PROGRAM, LATE)], EARLY, &none, false, &[PROGRAM, KCM], Own),
        ("the newest counts", &[(PROGRAM, EARLY), (KCM, LATE)], EARLY, &none, false, &[PROGRAM], InTree),
        ("edited since, as by a take-back", &[(PROGRAM, EARLY)], LATE, &none, false, &[PROGRAM, KCM], Unknown),
        ("a record of its own since", &[(PROGRAM, LATE), ("own record", LATE)], EARLY, &none, false, &[KCM], Own),
        ("reverted since", &[(PROGRAM, EARLY)], LATE, &managed, false, &[PROGRAM, KCM], InTree),
        ("annotated, and only in-tree", &[], EARLY, &managed, false, &[KCM], InTree),
        ("annotated, and only this one", &[], EARLY, &managed, false, &[PROGRAM], Unknown),
        ("annotated, and no lease can be read", &[], EARLY, &managed, false, &[], InTree),
        ("edited in the second of the write", &[(PROGRAM, LATE)], LATE, &none, false, &[PROGRAM, KCM], Unknown),
        ("in-tree writes at once", &[(KCM, LATE)], LATE, &none, false, &[PROGRAM, KCM], InTree),
        ("never run, and only in-tree", &[], EARLY, &none, false, &[KCM], InTree),
        ("never run, and only this one", &[], EARLY, &none, false, &[PROGRAM], Own),
        ("never run, and both", &[], EARLY, &none, false, &[PROGRAM, KCM], Unknown),
        ("never run, and no lease can be read", &[], EARLY, &none, false, &[], Unknown),
        ("taken back, by its lease", &[(PROGRAM, EARLY)], LATE, &none, false, &[OF_ANNOTATED, KCM], InTree),
        ("never run, and by its lease not its own", &[], EARLY, &none, false, &[OF_ANNOTATED], InTree),
        (
            "it ran it, and by its lease does so no more",
            &[(PROGRAM, LATE)],
            EARLY,
            &none,
            false,
            &[OF_ANNOTATED],
            InTree,
        ),
        (
            "half handed over, and by its lease not its own",
            &[(PROGRAM, LATE)],
            EARLY,
            &managed,
            false,
            &[OF_ANNOTATED],
            InTree,
        ),
        ("annotated, and by its lease its own", &[], EARLY, &managed, false, &[OF_ALL], Own),
        ("never run, and by its lease its own", &[], EARLY, &none, false, &[OF_ALL], Own),
        ("never run, and by both leases", &[], EARLY, &none, false, &[OF_ALL, KCM], Unknown),
        ("annotated, and by both leases", &[], EARLY, &managed, false, &[OF_ALL, KCM], Unknown),
        ("annotated, and in-tree wrote", &[(KCM, LATE)], EARLY, &managed, false, &[OF_ALL, KCM], InTree),
        ("it ran it, elsewhere now", &[(PROGRAM, LATE)], EARLY, &none, false, &[ALL_ELSEWHERE, KCM], NoInstance),
        ("the same, some", &[(PROGRAM, LATE)], EARLY, &none, false, &[ANNOTATED_ELSEWHERE, KCM], NoInstance),
        ("never named", &[], EARLY, &none, false, &[ALL_ELSEWHERE, KCM], NoInstance),
        ("never named, annotated", &[], EARLY, &managed, false, &[ALL_ELSEWHERE, KCM], NoInstance),
        ("some elsewhere", &[], EARLY, &none, false, &[ANNOTATED_ELSEWHERE, KCM], InTree),
        ("in-tree ran it, elsewhere", &[(KCM, LATE)], EARLY, &none, false, &[ALL_ELSEWHERE, KCM], InTree),
        ("here and elsewhere", &[(PROGRAM, LATE)], EARLY, &none, false, &[ALL_ELSEWHERE, OF_ALL, KCM], Own),
    ];
    for (sentence, writes, edited, annotations, suspend, names, want) in rows {
        let json = object(writes, edited, annotations, suspend).to_string();
        let mut cron_job = CronJob::decode(&json, &Interner::default()).unwrap();
        let found = InCharge::take(&mut cron_job, &json, &leases(names), &ControllerFlags::default());
        assert_eq!(found, want, "{sentence}");
        assert_eq!(cron_job.policies.is_some(), want != InTree, "{sentence}: its policies");
        assert_eq!(cron_job.spec.suspend, suspend && !want.is_handed_over(), "{sentence}: its suspension");
        let said = found.sentence(&cron_job, None, LATE.parse().unwrap());
        assert_eq!(said.contains("in-tree"), matches!(want, InTree | NoInstance), "{sentence}");
        assert_eq!(said.contains("not known"), want == Unknown, "{sentence}");
    }
    let json = object(&[(KCM, LATE)], EARLY, &managed, true).to_string();
    let mut cron_job = CronJob::decode(&json, &Interner::default()).unwrap();
    cron_job.controller_kind = ControllerKind::Tutorial;
    let found = InCharge::take(&mut cron_job, &json, &Leases::default(), &ControllerFlags::default());
    assert_eq!((found, cron_job.spec.suspend), (Own, true), "a kind that has no in-tree controller");
}

fn lease(name: &str, renewed: &str) -> Lease {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"holderIdentity": "pod-a", "leaseDurationSeconds": 15, "renewTime": renewed.replace('Z', ".000000Z")},
    }))
    .unwrap()
}

/// The Lease of a controller that was removed stays.
#[test]
fn lease_counts_while_it_is_renewed() {
    let (soon, none) = ("2026-11-22T09:00:20Z", json!({}));
    let managed = json!({"cronjob-controller.dev/managed": "true"});
    // What it is, the annotations, when this one renewed its lease, and when kube-controller-manager; the controller.
    let rows = [
        ("both", &none, LATE, soon, InCharge::Unknown),
        ("this one is gone", &none, EARLY, LATE, InCharge::InTree),
        ("in-tree is gone", &none, LATE, EARLY, InCharge::Own),
        ("annotated, and both", &managed, LATE, soon, InCharge::InTree),
        ("annotated, and this one is gone", &managed, EARLY, LATE, InCharge::InTree),
        ("annotated, and in-tree is gone", &managed, LATE, EARLY, InCharge::Unknown),
    ];
    for (sentence, annotations, own, in_tree, want) in rows {
        let json = object(&[], EARLY, annotations, false).to_string();
        let mut cron_job = CronJob::decode(&json, &Interner::default()).unwrap();
        let leases = Leases::of(&[lease(PROGRAM, own), lease(KCM, in_tree)]);
        assert_eq!(InCharge::take(&mut cron_job, &json, &leases, &ControllerFlags::default()), want, "{sentence}");
    }
}

#[test]
fn controller_that_does_not_run_is_not_said_to_run_it() {
    let json = object(&[], EARLY, &json!({}), false).to_string();
    let cron_job = CronJob::decode(&json, &Interner::default()).unwrap();
    let own = |renewed: &str| Leases::of(&[lease(PROGRAM, renewed)]).controller(ControllerKind::CronJob, "shop", true);
    let in_tree = |renewed: &str| Leases::of(&[lease(KCM, renewed)]).in_tree();
    let rows = [
        ("its lease is held", InCharge::Own, own(LATE), "cronjob-controller runs it."),
        ("it has run out", InCharge::Own, own(EARLY), "cronjob-controller ran it, and its lease has run out."),
        ("its lease has another name", InCharge::Own, in_tree(EARLY), "cronjob-controller runs it."),
        ("it is held", InCharge::HandedOver, own(LATE), "It is handed over: cronjob-controller runs it."),
        (
            "it has run out",
            InCharge::HandedOver,
            own(EARLY),
            "It is handed over to cronjob-controller, and its lease has run out.",
        ),
        (
            "there is none",
            InCharge::HandedOver,
            None,
            "It is handed over to cronjob-controller, and no lease shows that it runs.",
        ),
        ("held", InCharge::InTree, in_tree(LATE), "The in-tree controller runs it."),
        ("run out", InCharge::InTree, in_tree(EARLY), "The in-tree controller ran it, and its lease has run out."),
        ("not readable", InCharge::InTree, None, "The in-tree controller runs it."),
    ];
    for (sentence, in_charge, lease, want) in rows {
        let said = in_charge.sentence(&cron_job, lease.as_ref(), LATE.parse().unwrap());
        assert_eq!(said, want, "{in_charge:?}: {sentence}");
    }
}

/// The Lease of `dev` leaves out what its controller manages.
#[test]
fn warning_says_that_no_controller_runs_what_is_handed_over_where_the_lease_does_not() {
    let managed = json!({"cronjob-controller.dev/managed": "true"});
    let warning = |reason: &str, time: &str| Said {
        time: time.parse().unwrap(),
        count: 1,
        reason: reason.to_owned(),
        message: String::new(),
    };
    let late = || vec![warning("HandedOver", LATE)];
    let rows = [
        ("a Warning", PROGRAM, EARLY, late(), InCharge::NotManaged),
        ("none", PROGRAM, EARLY, vec![], InCharge::HandedOver),
        ("another Warning", PROGRAM, EARLY, vec![warning("FailedCreate", LATE)], InCharge::HandedOver),
        ("a run since the Warning", PROGRAM, "2026-11-22T09:30:00Z", late(), InCharge::HandedOver),
        ("the Lease says that it runs it", OF_ANNOTATED, EARLY, late(), InCharge::HandedOver),
    ];
    for (sentence, name, last_run, warnings, want) in rows {
        let mut object = object(&[], EARLY, &managed, true);
        object["status"] = json!({"lastScheduleTime": last_run});
        let json = object.to_string();
        let mut cron_job = CronJob::decode(&json, &Interner::default()).unwrap();
        let leases = leases(&[name]);
        let found = InCharge::take(&mut cron_job, &json, &leases, &ControllerFlags::default());
        assert_eq!(found.warned(&cron_job, &leases, &warnings), want, "{sentence}");
    }
}
