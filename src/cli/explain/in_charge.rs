//! Which controller runs a CronJob, as far as the cluster says.
//!
//! Guarantees: a CronJob that is handed over is this controller's. Of any other, the newest write to its status says whose it is,
//! unless the object was edited since; then the handover annotation, and then the leases. A CronJob that the in-tree controller
//! runs has no policies, because that controller reads none. Pure.

use serde::Serialize;

use super::lease::Leases;
use crate::api::Manage;
use crate::api::batch_v1::CronJob;
use crate::api::manage::MANAGED_ANNOTATION;
use crate::api::policy::PolicyOptions;
use crate::cli::cluster::ControllerFlags;
use crate::cli::migrate::in_tree_wrote;
use crate::options::PROGRAM;

/// The controller of a CronJob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum InCharge {
    /// This one, whatever it manages.
    Own,
    /// This one, with `--manage=annotated`.
    HandedOver,
    /// The one in kube-controller-manager.
    InTree,
    /// Nothing says; what is told holds for this one.
    #[default]
    Unknown,
}

impl InCharge {
    /// Which controller runs the CronJob, just decoded from `json`. Afterwards it reads as that controller reads it.
    pub fn take(cron_job: &mut CronJob, json: &str, leases: Option<&Leases>, flags: &ControllerFlags) -> Self {
        let found = Self::of(cron_job, json, leases);
        if found == Self::InTree {
            PolicyOptions { enabled: false, ..PolicyOptions::default() }.apply(cron_job);
        } else {
            flags.apply(cron_job);
        }
        found
    }

    fn of(cron_job: &mut CronJob, json: &str, leases: Option<&Leases>) -> Self {
        if Manage::Annotated.takes(cron_job) {
            return Self::HandedOver;
        }
        if !cron_job.controller_kind.is_in_tree {
            return Self::Own;
        }
        let by_leases =
            || match leases.map(|leases| leases.are_there(cron_job.controller_kind, &cron_job.name.namespace)) {
                Some([true, false]) => Some(false),
                Some([false, true]) => Some(true),
                _ => None,
            };
        let by_annotation = cron_job.handover.managed.then_some(true);
        match in_tree_wrote(json).or(by_annotation).or_else(by_leases) {
            Some(true) => Self::InTree,
            Some(false) => Self::Own,
            None => Self::Unknown,
        }
    }

    /// Whether a controller with `--manage=annotated` runs it.
    pub fn is_handed_over(self) -> bool {
        self == Self::HandedOver
    }

    /// In a column of a table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Own => PROGRAM,
            Self::HandedOver => "handed over",
            Self::InTree => "in-tree",
            Self::Unknown => "-",
        }
    }

    /// A sentence; empty where nothing is known.
    pub fn sentence(self, cron_job: &CronJob) -> String {
        match self {
            Self::Own => format!("{PROGRAM} runs it."),
            Self::HandedOver => format!("It is handed over: {PROGRAM} runs it."),
            Self::InTree if cron_job.handover.managed => {
                format!("The in-tree controller runs it: {MANAGED_ANNOTATION} is \"true\", but spec.suspend is false.")
            }
            Self::InTree => "The in-tree controller runs it.".to_owned(),
            Self::Unknown => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use k8s_openapi::api::coordination::v1::Lease;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::{ControllerKind, Interner, Object as _};

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

    fn leases(names: &[&str]) -> Leases {
        let lease = |name: &&str| serde_json::from_value(json!({"metadata": {"name": name}, "spec": {}})).unwrap();
        Leases::of(&names.iter().map(lease).collect::<Vec<Lease>>())
    }

    /// What it is, the writes to the status, the last edit, annotations, spec.suspend, leases, the controller.
    type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a Value, bool, &'a [&'a str], InCharge);

    #[test]
    fn controller_is_known_by_the_handover_its_writes_and_the_leases() {
        use InCharge::{HandedOver, InTree, Own, Unknown};
        let (none, managed) = (json!({}), json!({"cronjob-controller.dev/managed": "true"}));
        let no = json!({"cronjob-controller.dev/managed": "false"});
        let rows: [Row<'_>; 14] = [
            ("handed over", &[(KCM, LATE)], EARLY, &managed, true, &[KCM], HandedOver),
            ("annotated, and spec.suspend is false", &[], EARLY, &managed, false, &[PROGRAM, KCM], InTree),
            ("annotated with --manage=all", &[(PROGRAM, LATE)], EARLY, &managed, false, &[PROGRAM, KCM], Own),
            ("taken back, and suspended", &[], EARLY, &no, true, &[PROGRAM, KCM], Unknown),
            ("its status is the in-tree controller's", &[(KCM, LATE)], EARLY, &none, false, &[PROGRAM, KCM], InTree),
            ("its status is this controller's", &[(PROGRAM, LATE)], EARLY, &none, false, &[PROGRAM, KCM], Own),
            ("the newest counts", &[(PROGRAM, EARLY), (KCM, LATE)], EARLY, &none, false, &[PROGRAM], InTree),
            ("edited since, as by a take-back", &[(PROGRAM, EARLY)], LATE, &none, false, &[PROGRAM, KCM], Unknown),
            ("a record of its own since", &[(PROGRAM, LATE), ("own record", LATE)], EARLY, &none, false, &[KCM], Own),
            ("reverted since", &[(PROGRAM, EARLY)], LATE, &managed, false, &[PROGRAM, KCM], InTree),
            ("never run, and only in-tree", &[], EARLY, &none, false, &[KCM], InTree),
            ("never run, and only this one", &[], EARLY, &none, false, &[PROGRAM], Own),
            ("never run, and both", &[], EARLY, &none, false, &[PROGRAM, KCM], Unknown),
            ("never run, and no lease can be read", &[], EARLY, &none, false, &[], Unknown),
        ];
        for (sentence, writes, edited, annotations, suspend, names, want) in rows {
            let json = object(writes, edited, annotations, suspend).to_string();
            let mut cron_job = CronJob::decode(&json, &Interner::default()).unwrap();
            let found = InCharge::take(&mut cron_job, &json, Some(&leases(names)), &ControllerFlags::default());
            assert_eq!(found, want, "{sentence}");
            assert_eq!(cron_job.policies.is_some(), want != InTree, "{sentence}: its policies");
            assert_eq!(cron_job.spec.suspend, suspend && want != HandedOver, "{sentence}: its suspension");
            assert_eq!(found.sentence(&cron_job).contains("in-tree"), want == InTree, "{sentence}");
        }
        let json = object(&[(KCM, LATE)], EARLY, &managed, true).to_string();
        let mut cron_job = CronJob::decode(&json, &Interner::default()).unwrap();
        cron_job.controller_kind = ControllerKind::Tutorial;
        let found = InCharge::take(&mut cron_job, &json, None, &ControllerFlags::default());
        assert_eq!((found, cron_job.spec.suspend), (Own, true), "a kind that has no in-tree controller");
    }
}
