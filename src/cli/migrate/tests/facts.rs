//! The findings other than old slots, each from the facts that were read.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::flowcontrol::v1::FlowSchema;

use super::super::controllers::manages_all;
use super::super::rights::Review;
use super::super::{flow_schemas, read, rights, schedules};
use super::*;
use crate::api::Manage;
use crate::cli::explain::lease::Leases;
use crate::cli::restrictions::Restrictions;
use crate::leader_election::Coverage;

fn read_differently(change: &Value, now: &str) -> Vec<(Code, bool, String)> {
    let found = schedules::find(&seen(change, vec![]), Zone::UTC, instant(now));
    found.into_iter().map(|finding| (finding.code, finding.changes_runs, finding.message)).collect()
}

/// A case, the CronJob; for each finding its code, whether it changes runs, and a part of the sentence.
type Difference<'a> = (&'a str, Value, &'a [(Code, bool, &'a str)]);

#[test]
fn what_the_controllers_read_differently_is_found() {
    use Code::{LimitsDiffer, LongName, ScheduleDiffers, TimeZoneInSchedule};
    let named = |length: usize| json!({"metadata": {"name": "n".repeat(length)}});
    let limited = with(annotated(&[("backlog", "2"), ("stuck-after", "2h")]), json!({"concurrencyPolicy": "Forbid"}));
    let zoned = |schedule: &str| json!({"spec": {"schedule": schedule, "timeZone": null}});
    let uneven = json!({
        "spec": {"schedule": "15,45 9-17 * * *"}, "status": {"lastScheduleTime": "2026-11-22T16:45:00Z"},
    });
    let rows: Vec<Difference<'_>> = vec![
        ("neither policy nor zone", json!({}), &[]),
        (
            "an excluded day",
            annotated(&[("exclude", "Wed")]),
            &[(
                ScheduleDiffers,
                true,
                "would run at Wed 2026-11-25 02:00:00 +00:00, which cronjob-controller.dev/exclude",
            )],
        ),
        (
            "other lines",
            annotated(&[("schedule", "0 3 * * *")]),
            &[(
                ScheduleDiffers,
                true,
                "would not run at Mon 2026-11-23 03:00:00 +00:00, which cronjob-controller.dev/sch",
            )],
        ),
        ("a bound that has passed", annotated(&[("not-before", "2026-11-01T00:00:00Z")]), &[]),
        (
            "a difference that is far away",
            with(annotated(&[("exclude", "2027-11-01")]), json!({"schedule": "* * * * *"})),
            &[(
                ScheduleDiffers,
                false,
                "has the same slots until Mon 2026-12-28 01:00:00 +00:00, and other ones later",
            )],
        ),
        (
            "a day of next week, and a slot each minute",
            with(annotated(&[("exclude", "2026-12-01")]), json!({"schedule": "* * * * *"})),
            &[(
                ScheduleDiffers,
                true,
                "would run at Tue 2026-12-01 00:00:00 +00:00, which cronjob-controller.dev/exclude",
            )],
        ),
        (
            "a slot each minute, and no more after some time",
            with(annotated(&[("not-after", "2026-12-20T12:00:00Z")]), json!({"schedule": "* * * * *"})),
            &[(
                ScheduleDiffers,
                true,
                "would run at Sun 2026-12-20 12:01:00 +00:00, which cronjob-controller.dev/not-after",
            )],
        ),
        (
            "a slot each month",
            with(annotated(&[("exclude", "2028-02-01")]), json!({"schedule": "0 2 1 * *"})),
            &[(
                ScheduleDiffers,
                true,
                "would run at Tue 2028-02-01 02:00:00 +00:00, which cronjob-controller.dev/exclude",
            )],
        ),
        ("a delay", annotated(&[("spread", "1h")]), &[(ScheduleDiffers, false, "earlier than with cronjob-contr")]),
        (
            "skipped by a clock change",
            with(annotated(&[("dst", "once")]), json!({"schedule": "30 2 * * *", "timeZone": "Europe/Berlin"})),
            &[(
                ScheduleDiffers,
                true,
                "would not run at Sun 2027-03-28 03:00:00 +02:00, which cronjob-controller.dev/dst",
            )],
        ),
        (
            "a policy that cannot be read",
            annotated(&[("exclude", "nonsense")]),
            &[(ScheduleDiffers, true, "would run at Mon 2026-11-23 02:00:00 +00:00, and here it does not run: ")],
        ),
        (
            "a limit that cannot be read",
            annotated(&[("max-concurrent", "0")]),
            &[(ScheduleDiffers, true, "and here it does not run: ")],
        ),
        (
            "what Pods are told",
            annotated(&[("slot-in-pod", "true")]),
            &[(LimitsDiffer, false, "its Pods do not get their slot")],
        ),
        ("limits", limited, &[(LimitsDiffer, true, "dev/backlog, cronjob-controller.dev/stuck-after of CronJob")]),
        ("a zone", zoned("TZ=UTC 0 2 * * *"), &[(TimeZoneInSchedule, false, "Both controllers run it")]),
        ("a zone alone", zoned("CRON_TZ=UTC"), &[(TimeZoneInSchedule, false, "Neither controller runs it")]),
        ("the longest name", named(52), &[]),
        ("a longer name", named(54), &[(LongName, false, "both controllers run it")]),
        ("a name that is too long", named(55), &[(LongName, false, "neither controller runs it")]),
        (
            "an estimate that misses the newest slot",
            uneven,
            &[(ScheduleDiffers, true, "is due since Sun 2026-11-22 17:45:00 +00:00, and the in-tree")],
        ),
        ("suspended", with(annotated(&[("exclude", "Wed")]), json!({"suspend": true})), &[]),
    ];
    for (sentence, change, want) in rows {
        // The estimate is wrong after a night, and right after a day.
        let now = if sentence.contains("estimate") { "2026-11-23T08:00:00Z" } else { "2026-11-23T01:00:00Z" };
        let found = read_differently(&change, now);
        assert_eq!(found.len(), want.len(), "{sentence}: {found:?}");
        for ((code, changes, message), (want, changed, part)) in found.iter().zip(want) {
            assert_eq!((code, changes), (want, changed), "{sentence}: {message}");
            assert!(message.contains(part), "{sentence}: {message}");
        }
    }
}

#[test]
fn comparison_of_slots_has_as_many_steps_as_a_month_has_minutes_at_most() {
    // How often it runs, its annotations, and the steps.
    let rows = [
        ("* * * * *", ("exclude", "2028-02-01"), 50_000..51_000),
        ("* * * * *", ("exclude", "Wed"), 2_000..2_500),
        ("0 2 * * *", ("exclude", "2038-02-01"), 1_000..1_100),
        ("0 2 * * *", ("not-after", "2026-12-01T00:00:00Z"), 1_000..1_100),
    ];
    for (schedule, annotation, want) in rows {
        let object = with(annotated(&[annotation]), json!({"schedule": schedule}));
        let (steps, _) = apimachinery::steps::of(|| read_differently(&object, NOW));
        assert!(want.contains(&steps), "{schedule} {annotation:?}: {steps}");
    }
}

/// A CronJob or a Job of its last slot, as the API server stores them, with its managers: name, subresource, and time.
fn written(kind: &str, managers: &[Manager<'_>]) -> String {
    let managers: Vec<Value> = managers
        .iter()
        .map(|(manager, subresource, time)| json!({"manager": manager, "subresource": subresource, "time": time}))
        .collect();
    let mut object = json!({
        "metadata": {"name": "nightly", "namespace": "shop", "uid": "cj", "managedFields": managers},
        "spec": {"schedule": "0 * * * *", "suspend": false, "jobTemplate": {}},
    });
    if kind == "Job" {
        let created = managers[0]["time"].clone();
        object["metadata"] = json!({
            "name": name_of("2026-11-23T09:00:00Z"), "namespace": "shop", "uid": "job", "managedFields": managers,
            "creationTimestamp": created,
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-11-23T09:00:00Z"},
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "cj", "controller": true},
            ],
        });
    }
    object.to_string()
}

fn lease(name: &str, holder: &str, acquired: &str, renewed: &str) -> Lease {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 15,
            "acquireTime": acquired.replace('Z', ".000000Z"), "renewTime": renewed.replace('Z', ".000000Z"),
        },
    }))
    .unwrap()
}

/// What is stored, the managers of the CronJob and of its Job, the leases, and the codes.
type Working<'a> = (&'a str, &'a [Manager<'a>], &'a [Manager<'a>], Vec<Lease>, Vec<Code>);

/// A manager's name, the subresource that it wrote, and when.
type Manager<'a> = (&'a str, &'a str, &'a str);

#[test]
fn controllers_that_work_are_found_by_what_they_wrote() {
    const KCM: &str = "kube-controller-manager";
    const OWN: &str = "cronjob-controller";
    const HOURS: &str = "2026-11-23T06:00:00Z";
    const RECENT: &str = "2026-11-23T09:30:00Z";
    const SECONDS: &str = "2026-11-23T09:59:58Z";
    let of_kcm = || lease(KCM, "a", HOURS, SECONDS);
    let of_own = |acquired: &str| lease(OWN, "b", acquired, SECONDS);
    let released = || lease(OWN, "", HOURS, SECONDS);
    let both = [(KCM, "status", RECENT), (OWN, "status", SECONDS)];
    let rows: Vec<Working<'_>> = vec![
        ("nothing", &[], &[], vec![], vec![]),
        ("a status of the in-tree controller", &[(KCM, "status", RECENT)], &[], vec![], vec![Code::InTreeIsOn]),
        ("one of k3s", &[("k3s", "status", RECENT)], &[], vec![], vec![Code::InTreeIsOn]),
        ("an old status", &[(KCM, "status", HOURS)], &[], vec![], vec![]),
        ("a write to the metadata, as of the garbage collector", &[(KCM, "", RECENT)], &[], vec![], vec![]),
        ("a user's status", &[("kubectl", "status", RECENT)], &[], vec![], vec![]),
        ("a Job of the in-tree controller", &[], &[(KCM, "", RECENT)], vec![], vec![Code::InTreeIsOn]),
        ("a Job whose status it wrote", &[], &[(OWN, "", RECENT), (KCM, "status", SECONDS)], vec![], vec![]),
        ("a Job that it changed later", &[], &[(OWN, "", RECENT), (KCM, "", SECONDS)], vec![], vec![]),
        ("its lease alone", &[], &[], vec![of_kcm()], vec![Code::InTreeMayBeOn]),
        ("an old lease", &[], &[], vec![lease(KCM, "a", HOURS, RECENT)], vec![]),
        ("a lease and a status", &[(KCM, "status", RECENT)], &[], vec![of_kcm()], vec![Code::InTreeIsOn]),
        ("both", &both, &[], vec![of_own(HOURS)], vec![Code::TwoControllers, Code::InTreeIsOn]),
        (
            "its status, and a Job of this controller",
            &[(KCM, "status", SECONDS)],
            &[(OWN, "", RECENT)],
            vec![of_own(HOURS)],
            vec![Code::TwoControllers, Code::InTreeIsOn],
        ),
        (
            "a switch: this one leads since then",
            &both,
            &[],
            vec![of_own("2026-11-23T09:40:00Z")],
            vec![Code::InTreeIsOn],
        ),
        ("a switch back: this one has released its lease", &both, &[], vec![released()], vec![Code::InTreeIsOn]),
    ];
    for (sentence, cron_job, job, leases, want) in rows {
        let stored = written("CronJob", cron_job);
        let jobs: Vec<String> = (!job.is_empty()).then(|| written("Job", job)).into_iter().collect();
        let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
        let flags = ControllerFlags::default();
        let mut cluster = Cluster {
            cron_jobs: read::seen([&*stored].into_iter(), &jobs, &flags, &Restrictions::default()).0,
            leases: Ok(leases),
            ..empty()
        };
        assert_eq!(cluster.cron_jobs.len(), 1);
        let of_controllers = |cluster: &Cluster| {
            codes(cluster).into_iter().filter(|code| *code >= Code::TwoControllers).collect::<Vec<_>>()
        };
        assert_eq!(of_controllers(&cluster), want, "{sentence}");
        cluster.cron_jobs[0].handed_over = true;
        let want: Vec<Code> = want.into_iter().filter(|code| *code != Code::TwoControllers).collect();
        assert_eq!(of_controllers(&cluster), want, "{sentence}, and handed over");
    }
}

#[test]
fn instances_that_work_in_the_same_namespaces_are_found() {
    const LATELY: &str = "2026-11-23T09:59:58Z";
    let instance = |name: &str, holder: &str, renewed: &str, namespaces: &[&str]| {
        let mut lease = lease(name, holder, renewed, renewed);
        let namespaces: Vec<String> = namespaces.iter().map(|name| (*name).to_owned()).collect();
        lease.metadata.annotations = Some(Coverage::new(["cronjob"], &namespaces).annotations());
        lease
    };
    let one = || instance("one", "a", LATELY, &["shop", "bank"]);
    let rows = [
        ("alone", vec![one()], vec![]),
        ("apart", vec![one(), instance("two", "b", LATELY, &["mill"])], vec![]),
        (
            "one for all namespaces",
            vec![instance("two", "b", LATELY, &[]), one()],
            vec![
                "Lease kube-system/one and Lease kube-system/two are those of two instances that both work in namespaces bank, shop.",
            ],
        ),
        ("no longer held", vec![one(), instance("two", "", LATELY, &[])], vec![]),
        ("no longer renewed", vec![one(), instance("two", "b", "2026-11-23T09:50:00Z", &[])], vec![]),
        ("an older version", vec![one(), lease("cronjob-controller", "b", LATELY, LATELY)], vec![]),
        (
            "three",
            vec![one(), instance("two", "b", LATELY, &["shop"]), instance("three", "c", LATELY, &["shop", "bank"])],
            vec!["one and Lease kube-system/three", "one and Lease kube-system/two", "three and Lease kube-system/two"],
        ),
    ];
    for (sentence, leases, want) in rows {
        let found = findings(&Cluster { leases: Ok(leases), ..empty() }, &ControllerFlags::default(), instant(NOW));
        assert!(found.changes_nothing(), "{sentence}");
        let messages: Vec<String> = found.list.into_iter().map(|finding| finding.message).collect();
        assert_eq!(messages.len(), want.len(), "{sentence}: {messages:?}");
        assert!(messages.iter().zip(want).all(|(message, part)| message.contains(part)), "{sentence}: {messages:?}");
    }
}

#[test]
fn missing_rights_are_those_of_the_manifests() {
    let needed = rights::needed().unwrap();
    let reviewed = |denied: &dyn Fn(&Value) -> bool| {
        let account = Account::default();
        let review = |right: &rights::Right| {
            let asked = right.review(&account, Some("shop"));
            Review { right: right.clone(), allowed: !denied(&asked["spec"]["resourceAttributes"]) }
        };
        let cluster = Cluster { reviews: Ok(needed.iter().map(review).collect()), ..empty() };
        let found = rights::find(&cluster);
        found.into_iter().map(|finding| (finding.changes_runs, finding.message)).collect::<Vec<_>>()
    };
    assert!(reviewed(&|_| false).is_empty());
    let [(true, none)] = &*reviewed(&|_| true) else { panic!("one finding") };
    assert!(
        none.contains("ServiceAccount cronjob-controller-system/cronjob-controller has none of the rights"),
        "{none}"
    );
    let [(true, jobs)] = &*reviewed(&|asked| asked["resource"] == "jobs" && asked["verb"] != "get") else { panic!() };
    assert!(jobs.contains("may not list or watch or create or delete jobs of batch"), "{jobs}");
    let [(true, status)] = &*reviewed(&|asked| asked["subresource"] == "status") else { panic!() };
    assert!(status.contains("may not patch cronjobs/status of batch"), "{status}");
    let [(false, events)] = &*reviewed(&|asked| asked["resource"] == "events") else { panic!() };
    assert!(events.contains("may not create or patch events of the core group"), "{events}");
    let [(false, namespaces)] = &*reviewed(&|asked| asked["resource"] == "namespaces") else { panic!() };
    assert!(namespaces.ends_with("Jobs start without it, in a frozen Namespace too."), "{namespaces}");
    let is_vital = |asked: &Value| asked["name"] == "cronjob-controller" && asked["verb"] != "watch";
    let [(true, leases)] = &*reviewed(&is_vital) else { panic!() };
    let [(false, watch)] = &*reviewed(&|asked| asked["resource"] == "leases" && asked["verb"] == "watch") else {
        panic!()
    };
    assert!(watch.contains("may not watch leases of coordination.k8s.io"), "{watch}");
    assert!(leases.contains("may not get or update leases of coordination.k8s.io"), "{leases}");
    let own = |asked: &Value| asked["namespace"] == "cronjob-controller-system" && asked["resource"] != "leases";
    assert!(reviewed(&own).is_empty(), "only the lease is in the controller's namespace");
}

fn flow_schema(name: &str, precedence: i32, level: &str, subject: &Value, resource: &str) -> FlowSchema {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": level},
            "rules": [{
                "subjects": [subject],
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": [resource], "namespaces": ["*"]}],
            }],
        },
    }))
    .unwrap()
}

#[test]
fn shared_priority_level_is_found() {
    let group = |name: &str| json!({"kind": "Group", "group": {"name": name}});
    let account = |namespace: &str, name: &str| json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}});
    let accounts = flow_schema("service-accounts", 9000, "workload-low", &group("system:serviceaccounts"), "*");
    let catch_all = flow_schema("catch-all", 10_000, "catch-all", &group("system:authenticated"), "*");
    let own = account("cronjob-controller-system", "cronjob-controller");
    let jobs = flow_schema("jobs", 890, "cronjob-controller", &own, "jobs");
    let leases = flow_schema("leases", 210, "leader-election", &account("cronjob-controller-system", "*"), "leases");
    let others = flow_schema("others", 800, "elsewhere", &account("other", "cronjob-controller"), "*");
    let (of_jobs, of_leases) = ("puts the requests that start Jobs of", "puts the renewals of its Lease of");
    let rows: [(&str, Vec<&FlowSchema>, &[&str]); 6] = [
        ("no API Priority and Fairness", vec![], &[]),
        ("those of every cluster", vec![&catch_all, &accounts], &[of_jobs, of_leases]),
        ("those of the manifests", vec![&catch_all, &accounts, &jobs, &leases], &[]),
        ("the lease forgotten", vec![&jobs, &accounts], &[of_leases]),
        ("those of another account", vec![&others, &accounts], &[of_jobs, of_leases]),
        ("no rule matches", vec![&others], &[of_jobs, of_leases]),
    ];
    for (sentence, schemas, want) in rows {
        let cluster = Cluster { flow_schemas: Ok(schemas.into_iter().cloned().collect()), ..empty() };
        let found = flow_schemas::find(&cluster);
        assert_eq!(found.len(), want.len(), "{sentence}");
        for (finding, part) in found.iter().zip(want) {
            assert!(!finding.changes_runs && finding.message.contains(part), "{sentence}: {}", finding.message);
        }
    }
}

#[test]
fn lease_says_whether_this_controller_runs_what_is_not_handed_over() {
    let now: DateTime<Utc> = "2026-11-22T10:00:05Z".parse().unwrap();
    let lease = |controller: &str, manage: Option<Manage>, renewed: &str| {
        let coverage = Coverage::new([controller], &[]);
        let annotations = manage.map_or(coverage.clone(), |manage| coverage.managing(manage)).annotations();
        serde_json::from_value::<Lease>(json!({
            "metadata": {"name": controller, "namespace": "kube-system", "annotations": annotations},
            "spec": {"holderIdentity": "p", "leaseDurationSeconds": 15, "renewTime": renewed},
        }))
        .unwrap()
    };
    let (soon, old) = ("2026-11-22T10:00:00.000000Z", "2026-11-22T08:00:00.000000Z");
    let rows = [
        ("all", lease("cronjob", Some(Manage::All), soon), true),
        ("what is handed over", lease("cronjob", Some(Manage::Annotated), soon), false),
        ("an older version", lease("cronjob", None, soon), false),
        ("one that is gone", lease("cronjob", Some(Manage::All), old), false),
        ("another kind's", lease("tutorial", Some(Manage::All), soon), false),
    ];
    for (sentence, lease, want) in rows {
        let evidence = manages_all(&[], &Leases::of(&[lease]), "shop", now);
        let said = "cronjob-controller runs with --manage=all, as its Lease kube-system/cronjob says";
        assert_eq!(evidence.as_deref(), want.then_some(said), "{sentence}");
    }
}

/// A Lease: its name, namespaces and `--manage`.
type Instance<'a> = (&'a str, &'a [&'a str], Manage);

#[test]
fn which_instance_manages_all_is_judged_for_each_namespace() {
    use Manage::{All, Annotated};
    let now: DateTime<Utc> = "2026-11-22T10:00:05Z".parse().unwrap();
    let (bank, shop): (&[&str], &[&str]) = (&["bank"], &["shop"]);
    // (a sentence, the instances, whether handed-over CronJobs of shop have no controller)
    let rows: [(&str, &[Instance<'_>], bool); 6] = [
        ("all in another namespace", &[("bank", bank, All)], false),
        ("all elsewhere, annotated here", &[("bank", bank, All), ("shop", shop, Annotated)], false),
        ("annotated elsewhere, all here", &[("bank", bank, Annotated), ("shop", shop, All)], true),
        ("all everywhere", &[("every", &[], All)], true),
        ("all everywhere, and annotated here", &[("every", &[], All), ("shop", shop, Annotated)], false),
        ("annotated everywhere, and all elsewhere", &[("every", &[], Annotated), ("bank", bank, All)], false),
    ];
    for (sentence, instances, want) in rows {
        let lease = |(name, namespaces, manage): &Instance<'_>| -> Lease {
            let namespaces: Vec<String> = namespaces.iter().map(|name| (*name).to_owned()).collect();
            let annotations = Coverage::new(["cronjob"], &namespaces).managing(*manage).annotations();
            serde_json::from_value(json!({
                "metadata": {"name": name, "namespace": "kube-system", "annotations": annotations},
                "spec": {"holderIdentity": "p", "leaseDurationSeconds": 15, "renewTime": "2026-11-22T10:00:00.000000Z"},
            }))
            .unwrap()
        };
        let leases: Vec<Lease> = instances.iter().map(lease).collect();
        let evidence = manages_all(&[], &Leases::of(&leases), "shop", now);
        assert_eq!(evidence.is_some(), want, "{sentence}: {evidence:?}");
    }
}
