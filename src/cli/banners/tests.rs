#![allow(clippy::unwrap_used)]

use chrono::TimeDelta;
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::json;

use super::*;
use crate::api::ControllerKind;
use crate::cli::explain::lease::Leases;
use crate::cli::explain::read::Said;
use crate::cli::explain::read::lease_at;
use crate::cli::explain::tests::{facts, instant};
use crate::cli::explain::{State, explain};

const NOW: &str = "2026-11-22T10:00:00Z";

/// With what a due run is refused, as an Event says at that time.
pub(crate) fn refusal_of(name: &str, message: &str, at: &str) -> Option<Refusal> {
    let facts =
        facts(&json!({"metadata": {"name": name}, "status": {"lastScheduleTime": "2026-11-21T02:00:00Z"}}), vec![]);
    let said = Said { time: instant(at), count: 9, reason: "FailedCreate".to_owned(), message: message.to_owned() };
    let facts = Facts { warnings: Ok(vec![said]), ..facts };
    Refusal::of(&explain(&facts, Zone::UTC, instant(NOW)), &facts)
}

#[test]
fn refusal_of_a_due_run_is_quoted_without_its_job() {
    let webhook = "admission webhook \"guard.example\" denied the request: quota service unreachable";
    let quota = "exceeded quota: jobs, requested: count/jobs.batch=1, used: count/jobs.batch=3";
    let long = "x".repeat(100_000);
    for (message, want) in [
        (format!("Error creating job: {webhook}."), webhook),
        (format!("Error creating job: jobs.batch \"nightly-29675640\" is forbidden: {quota}"), quota),
        ("Error creating job: Job.batch \"nightly-29675640\" is invalid".to_owned(), "Job.batch \"…\" is invalid"),
        ("Error creating job: nightly-images is full".to_owned(), "nightly-images is full"),
        (format!("Error creating job: {long}"), &long[..LONGEST]),
    ] {
        assert_eq!(refusal_of("nightly", &message, NOW).unwrap().text, want, "{message}");
    }
    assert_eq!(refusal_of("nightly", webhook, "2026-11-22T01:59:00Z"), None, "an Event from before the run was due");
    assert_eq!(refusal_of("nightly", "Error creating job: ", NOW), None);
    let waiting = facts(&json!({}), vec![]);
    assert_eq!(Refusal::of(&explain(&waiting, Zone::UTC, instant(NOW)), &waiting), None, "it waits for its next run");
}

/// A CronJob: namespace, name, state, and with what its Jobs are refused.
type One<'a> = (&'a str, &'a str, State, Option<&'a str>);

fn refusals(rows: &[One<'_>]) -> Vec<Option<Refusal>> {
    rows.iter().map(|(_, name, _, message)| message.map(|message| refusal_of(name, message, NOW).unwrap())).collect()
}

fn concerns<'a>(rows: &'a [One<'a>], refusals: &'a [Option<Refusal>]) -> impl Iterator<Item = Concern<'a>> {
    rows.iter().zip(refusals).map(|((namespace, _, state, _), refusal)| Concern {
        namespace,
        in_charge: InCharge::Own,
        urgency: state.urgency(),
        refusal: refusal.as_ref(),
    })
}

/// The leases, who is in charge, the states of the CronJobs, and the banners.
type Case<'a> = (&'a str, Option<Vec<Lease>>, InCharge, &'a [State], &'a [String]);

type Nothing = fn(&str, InCharge) -> Option<ControllerLease>;

#[test]
fn refusals_alike_are_one_banner_that_quotes_the_answer() {
    use State::Overdue;
    let quota = |used| format!("Error creating job: exceeded quota: cpus, requested: cpu={used}, limited: cpu=8");
    let (two, three) = (quota(2), quota(3));
    let policy = Some("Error creating job: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no");
    let rows = [
        ("shop", "a", Overdue, policy),
        ("shop", "b", Overdue, policy),
        ("ops", "c", Overdue, policy),
        ("shop", "d", Overdue, Some(&two)),
        ("shop", "e", Overdue, Some(&three)),
        ("shop", "f", Overdue, Some("Error creating job: only this one")),
        ("shop", "g", Overdue, None),
    ];
    let found = banners(concerns(&rows, &refusals(&rows)), None::<&Nothing>, instant(NOW));
    let texts: Vec<&str> = found.iter().map(|banner| &*banner.text).collect();
    assert_eq!(
        texts,
        [
            "The API server refuses the Jobs of 3 CronJobs: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no.",
            "The API server refuses the Jobs of 2 CronJobs of namespace shop, with other numbers for each: exceeded quota: cpus, \
             requested: cpu=2, limited: cpu=8.",
        ]
    );
    let places: Vec<_> = found.iter().map(|banner| (banner.q.as_deref(), banner.namespace.as_deref())).collect();
    let beginning = "ValidatingAdmissionPolicy 'p' with binding 'b' denied reques";
    assert_eq!(places, [(Some(beginning), None), (Some("exceeded quota: cpus, requested: cpu="), Some("shop"))]);
}

#[test]
fn controller_without_its_lease_is_named_whatever_is_overdue() {
    use State::{Overdue, Suspended, Waiting};
    let lease = |name: &str, renewed: TimeDelta| -> Lease {
        let renewed = (instant(NOW) - renewed).format("%FT%T%.6fZ").to_string();
        let spec = json!({"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": renewed});
        serde_json::from_value(json!({"metadata": {"namespace": "kube-system", "name": name}, "spec": spec})).unwrap()
    };
    let (fresh, old) = (TimeDelta::seconds(2), TimeDelta::hours(2));
    let lost =
        "No controller has renewed the Lease kube-system/cronjob-controller since Sun 2026-11-22 08:00:00 +00:00.";
    let absent = "No controller has a Lease: none is running, or it runs without leader election.";
    let kcm = "kube-controller-manager has no Lease: it is not running, or runs without leader election.";
    let unserved = "No instance of cronjob-controller works in the namespaces of some CronJobs, as its Leases say; the in-tree \
                    controller would run them, if it is on.";
    let own = InCharge::Own;
    let rows: [Case<'_>; 9] = [
        ("held", Some(vec![lease(PROGRAM, fresh)]), own, &[Waiting, Overdue], &[]),
        (
            "run out",
            Some(vec![lease(PROGRAM, old)]),
            own,
            &[Waiting, Waiting],
            &[format!("{lost} This concerns 2 CronJobs; none is overdue yet.")],
        ),
        (
            "run out, overdue",
            Some(vec![lease(PROGRAM, old)]),
            own,
            &[Waiting, Overdue],
            &[format!("{lost} This concerns 2 CronJobs; 1 is overdue.")],
        ),
        (
            "run out, and the other one runs",
            Some(vec![lease(PROGRAM, old), lease(IN_TREE, fresh)]),
            own,
            &[Waiting],
            &[],
        ),
        ("all suspended", Some(vec![lease(PROGRAM, old)]), own, &[Suspended], &[]),
        (
            "none",
            Some(vec![]),
            InCharge::Unknown,
            &[Waiting],
            &[format!("{absent} This concerns 1 CronJob; none is overdue yet.")],
        ),
        (
            "none of the in-tree one",
            Some(vec![lease(PROGRAM, fresh)]),
            InCharge::InTree,
            &[Waiting],
            &[format!("{kcm} This concerns 1 CronJob; none is overdue yet.")],
        ),
        ("not known", None, InCharge::Unknown, &[Overdue], &[]),
        (
            "no instance, and kube-controller-manager runs",
            Some(vec![lease(IN_TREE, fresh)]),
            InCharge::NoInstance,
            &[Waiting],
            &[format!("{unserved} This concerns 1 CronJob; none is overdue yet.")],
        ),
    ];
    for (case, leases, in_charge, states, want) in rows {
        // A controller that is gone explains it.
        let refusal = refusal_of("nightly", "Error creating job: no", NOW);
        let one = |state: &State| Concern {
            namespace: "shop",
            in_charge,
            urgency: state.urgency(),
            refusal: refusal.as_ref(),
        };
        let leases = leases.map(|leases| Leases::of(&leases));
        let finder = leases.map(|leases| {
            move |namespace: &str, in_charge| lease_at(&leases, ControllerKind::CronJob, namespace, in_charge)
        });
        let texts: Vec<String> = banners(states.iter().map(one), finder.as_ref(), instant(NOW))
            .into_iter()
            .map(|banner| banner.text)
            .collect();
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.starts_with("The API server")).collect();
        assert_eq!(texts, want, "{case}");
    }
}

#[test]
fn lost_connection_is_said_with_the_time_of_what_is_shown() {
    let berlin = Zone::load("Europe/Berlin", Zone::UTC).unwrap();
    let want = "Not live since Sun 2026-11-22 11:00:00 +01:00: read /apis: no route to host. Every state and every time above is as of then.";
    for why in ["read /apis: no route to host", "read /apis: no route to host."] {
        assert_eq!(outage(instant(NOW), why, berlin), want, "{why}");
    }
}
