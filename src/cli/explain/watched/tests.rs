#![allow(clippy::unwrap_used)]

use k8s_openapi::api::coordination::v1::Lease;
use serde_json::{Value, json};

use super::*;
use crate::cli::cluster::ControllerFlags;

/// The page and `list` say the same of each CronJob, whatever its status, its annotations and the leases say.
#[test]
fn controller_and_what_it_sees_are_those_of_list() {
    const KCM: &str = "kube-controller-manager";
    const OWN: &str = "cronjob-controller";
    let leases = |names: &[&str]| {
        let lease = |name: &&str| serde_json::from_value(json!({"metadata": {"name": name}, "spec": {}})).unwrap();
        Leases::of(&names.iter().map(lease).collect::<Vec<Lease>>())
    };
    let mut found = std::collections::HashSet::new();
    for writer in [None, Some(KCM), Some(OWN)] {
        for (managed, suspend) in [(false, false), (false, true), (true, false), (true, true)] {
            let status = json!({"manager": writer, "subresource": "status", "time": "2026-11-22T09:00:00Z"});
            let managers: Vec<Value> = writer.map(|_| status).into_iter().collect();
            let json = json!({
                "metadata": {
                    "name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "1", "managedFields": managers,
                    "annotations": {
                        "cronjob-controller.dev/managed": managed.to_string(), "cronjob-controller.dev/exclude": "Sun",
                    },
                },
                "spec": {"schedule": "0 2 * * *", "suspend": suspend, "jobTemplate": {}},
            })
            .to_string();
            let watched = Watched::decode(&json, &Interner::default()).unwrap();
            for names in [&[] as &[&str], &[OWN], &[KCM], &[OWN, KCM]] {
                let mut cron_job = CronJob::decode(&json, &Interner::default()).unwrap();
                let want = InCharge::take(&mut cron_job, &json, &leases(names), &ControllerFlags::default());
                let (in_charge, seen) = watched.seen(&leases(names));
                assert_eq!(in_charge, want, "{writer:?} {managed} {suspend} {names:?}");
                let parts = |cron_job: &CronJob| (cron_job.spec.suspend, cron_job.policies.is_some());
                assert_eq!(parts(&seen), parts(&cron_job), "{writer:?} {managed} {suspend} {names:?}");
                found.insert(in_charge.word());
            }
        }
    }
    assert_eq!(found.len(), 4, "{found:?}");
}
