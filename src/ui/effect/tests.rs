#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::cli::explain::tests::{facts, instant, name_of};

fn known(policies: &Value, spec: &Value) -> Facts {
    let mut annotations = serde_json::Map::new();
    for (key, value) in policies.as_object().unwrap() {
        annotations.insert(format!("{}{key}", crate::api::policy::PREFIX), value.clone());
    }
    let change = json!({
        "metadata": {"annotations": annotations, "managedFields": [{"manager": "kubectl", "time": "2026-11-01T12:00:00Z"}]},
        "spec": spec,
    });
    facts(&change, Vec::new())
}

/// How many slots change in which way; `None` without policies.
type Numbers = Option<Vec<(Change, usize)>>;

#[test]
fn each_policy_changes_the_next_slots_as_it_says() {
    // It is Sunday, 10:00, and the CronJob runs at 02:00.
    let now = instant("2026-11-22T10:00:00Z");
    let all = |change, number| vec![(change, number)];
    let rows: [(&str, Value, Value, Numbers); 8] = [
        ("none", json!({}), json!({}), None),
        ("nothing changes", json!({"not-before": "2026-11-01T00:00:00Z"}), json!({}), Some(all(Change::Same, 24))),
        ("spread", json!({"spread": "1h"}), json!({}), Some(all(Change::Moved, 24))),
        (
            "weekends are left out",
            json!({"exclude": "Sat,Sun"}),
            json!({}),
            Some(vec![(Change::Same, 18), (Change::Dropped, 6)]),
        ),
        (
            "an end",
            json!({"not-after": "2026-11-25T03:00:00Z"}),
            json!({}),
            Some(vec![(Change::Same, 3), (Change::Dropped, 21)]),
        ),
        (
            "other lines",
            json!({"schedule": "0 2 * * *; 0 14 * * MON"}),
            json!({}),
            Some(vec![(Change::Same, 24), (Change::Added, 4)]),
        ),
        ("suspended", json!({"spread": "1h"}), json!({"suspend": true}), None),
        ("a policy that cannot be read", json!({"spread": "soon"}), json!({}), None),
    ];
    for (case, policies, spec, want) in rows {
        let found = effect(&known(&policies, &spec), Zone::UTC, Zone::UTC, now);
        assert_eq!(found.map(|found| found.changes.into_iter().collect::<Vec<_>>()), want, "{case}");
    }
}

#[test]
fn reasons_name_the_annotation() {
    let now = instant("2026-11-22T10:00:00Z");
    let why = |policies: Value, change: Change| {
        let found = effect(&known(&policies, &json!({})), Zone::UTC, Zone::UTC, now).unwrap();
        found.with.into_iter().chain(found.without).find(|mark| mark.change == change).unwrap().why
    };
    assert_eq!(why(json!({"exclude": "Sun"}), Change::Dropped), "cronjob-controller.dev/exclude");
    assert_eq!(why(json!({"schedule": "0 3 * * *"}), Change::Dropped), "cronjob-controller.dev/schedule");
    assert_eq!(why(json!({"schedule": "0 3 * * *"}), Change::Added), "cronjob-controller.dev/schedule");
    let moved = why(json!({"spread": "1h"}), Change::Moved);
    assert!(moved.ends_with(" later (cronjob-controller.dev/spread)"), "{moved}");
}

#[test]
fn a_limit_holds_what_would_start_beside_a_running_job() {
    let slot = "2026-11-22T02:00:00Z";
    let mut facts = known(&json!({"max-concurrent": "1"}), &json!({"schedule": "0 * * * *"}));
    facts.jobs.push(crate::cli::explain::tests::job(slot, "cj", None));
    let found = effect(&facts, Zone::UTC, Zone::UTC, instant("2026-11-22T02:30:00Z")).unwrap();
    assert_eq!(found.changes, BTreeMap::from([(Change::Held, 24)]));
    let why = format!(
        "{} has to end first, and no run tells how long one takes (cronjob-controller.dev/max-concurrent is 1)",
        name_of(slot)
    );
    assert_eq!(found.with[0].why, why);
    let is_same = |mark: &Mark| mark.change == Change::Same && mark.why.is_empty();
    assert!(found.without.iter().all(is_same), "nothing is held without the policy: {:?}", found.without);
    let mut forbids = known(&json!({"spread": "1h"}), &json!({"schedule": "0 * * * *", "concurrencyPolicy": "Forbid"}));
    forbids.jobs.push(crate::cli::explain::tests::job(slot, "cj", None));
    let found = effect(&forbids, Zone::UTC, Zone::UTC, instant("2026-11-22T02:30:00Z")).unwrap();
    let own = found
        .without
        .iter()
        .all(|mark| mark.change == Change::Held && mark.why.ends_with("(concurrencyPolicy is Forbid)"));
    assert!(own, "held by what is no policy: {:?}", found.without);
}
