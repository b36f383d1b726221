#![allow(clippy::unwrap_used)]

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, Config};
use serde_json::json;

use super::*;
use crate::api::ControllerKind;
use crate::cli::cluster::Namespaces;
use crate::cli::explain::tests::{instant, name_of, post};
use crate::cli::output::stretch;
use crate::cli::output::{Format, render};

#[tokio::test(start_paused = true)]
async fn failed_run_is_found_with_its_exit_code_and_the_command_for_its_log() {
    let clock = TestClock::new(instant("2026-11-19T01:00:00Z"));
    let server = ApiServer::new(Config::builtin(clock.clone()));
    let (client, flags) = (server.client(), ControllerFlags::default());
    let template = json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}],
    }}}});
    let slot = "2026-11-19T02:00:00Z";
    for (namespace, name) in [("default", "nightly"), ("default", "fine"), ("other", "stopped")] {
        if namespace != "default" {
            post(
                &client,
                "/api/v1/namespaces",
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            )
            .await;
        }
        post(
            &client,
            &format!("/apis/batch/v1/namespaces/{namespace}/cronjobs"),
            &json!({
                "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
                "spec": {"schedule": "0 2 * * *", "timeZone": "UTC", "suspend": name == "stopped", "jobTemplate": template},
                "status": {"lastScheduleTime": slot},
            }),
        )
        .await;
    }
    let (known, _) =
        cluster::read_all(&client, ControllerKind::CronJob, Some("default"), Some("nightly"), &flags).await.unwrap();
    let uid = &known[0].facts.cron_job.uid;
    let age = stretch(instant("2026-11-19T10:00:00Z") - known[0].facts.cron_job.creation_timestamp);
    let owner =
        json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": uid, "controller": true}]);
    let job = name_of(slot);
    let condition = json!({
        "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the limit",
        "lastTransitionTime": "2026-11-19T02:00:09Z", "lastProbeTime": "2026-11-19T02:00:09Z",
    });
    post(
        &client,
        "/apis/batch/v1/namespaces/default/jobs",
        &json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": job, "ownerReferences": owner,
                "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot},
            },
            "spec": template["spec"],
            "status": {
                "startTime": slot, "failed": 1,
                "conditions": [
                    {"type": "FailureTarget", "status": "True", "lastTransitionTime": "2026-11-19T02:00:09Z"},
                    condition,
                ],
            },
        }),
    )
    .await;
    let ended = json!({"terminated": {"exitCode": 3, "reason": "Error"}});
    for (pod, of) in [("failed", job.as_str()), ("foreign", "another")] {
        post(
            &client,
            "/api/v1/namespaces/default/pods",
            &json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": pod, "labels": {"batch.kubernetes.io/job-name": of}},
                "spec": template["spec"]["template"]["spec"],
                "status": {
                    "phase": "Failed",
                    "containerStatuses": [{
                        "name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": ended,
                    }],
                },
            }),
        )
        .await;
    }
    let scope = Scope {
        controller_kind: ControllerKind::CronJob,
        namespaces: Namespaces::All,
        name: None,
        kubeconfig: None,
        context: None,
    };
    let revision = server.revision();
    let findings = find_with(&client, &scope, None, &flags, instant("2026-11-19T10:00:00Z")).await.unwrap();
    assert_eq!(server.revision(), revision, "nothing is written");
    assert_eq!(
        findings.lines(),
        [
            "1 of 3 CronJobs needs attention, 1 suspended, frozen or being deleted.".to_owned(),
            String::new(),
            format!(
                "CronJob default/nightly (failing): It is not known which controller runs it. What follows holds if \
                 cronjob-controller does. No success since its creation {age} ago, at least 1 failed run (1 slot): the last run failed, Job {job}. It waits for the \
                 next run."
            ),
            "  BackoffLimitExceeded: Job has reached the limit".to_owned(),
            "  Pod failed, container main: Error, exit code 3".to_owned(),
            "  kubectl logs -n default failed -c main".to_owned(),
        ]
    );
    let json: serde_json::Value = serde_json::from_str(&render(&findings, Format::Json)).unwrap();
    assert_eq!(json["findings"][0]["failure"]["containers"][0]["exitCode"], 3);
    assert_eq!((&json["cronJobCount"], &json["cronJobs"]), (&json!(3), &json!(null)), "a list elsewhere");
    let other = find_with(&client, &scope, Some("other"), &flags, instant("2026-11-19T10:00:00Z")).await.unwrap();
    assert_eq!(other.lines(), ["Nothing needs attention: 1 CronJob, 1 suspended, frozen or being deleted."]);
    let none = find_with(&client, &scope, Some("none"), &flags, instant("2026-11-19T10:00:00Z")).await.unwrap();
    assert_eq!(
        none.lines(),
        ["There are no CronJobs. -A looks in all namespaces, and --controller at another kind, such as tutorial."]
    );
}
