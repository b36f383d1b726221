//! The command on the embedded API server.

use apimachinery::clock::{Clock as _, SystemClock, TestClock};
use apiserver::{ApiServer, Config, kinds};
use kube::Client;

use super::*;
use crate::cli::cluster::{Namespaces, try_create, try_patch};
use crate::cli::explain::tests::post;
use crate::client;
use crate::controller::tests::wire::{Fate, Wire};

const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";

fn object(name: &str, annotations: &Value) -> Value {
    let template = json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
    }}}});
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name, "annotations": annotations},
        "spec": {"schedule": "0 2 * * *", "timeZone": "UTC", "jobTemplate": template},
    })
}

async fn checked(client: &Client, namespace: Option<&str>, now: DateTime<Utc>) -> Findings {
    let flags = ControllerFlags::default();
    let cluster = Cluster::read(client, namespace, &Account::default(), &flags).await.unwrap();
    findings(&cluster, &flags, now)
}

fn said(findings: &Findings) -> Vec<(Code, String)> {
    findings.list.iter().map(|finding| (finding.code, finding.object.to_string())).collect()
}

#[tokio::test(start_paused = true)]
async fn cluster_is_read_and_nothing_written() {
    let clock = TestClock::new(instant("2026-11-18T12:00:00Z"));
    let client = ApiServer::new(Config::new(clock.clone(), kinds::all())).client();
    let mut plain = object("plain", &json!({}));
    plain["spec"]["startingDeadlineSeconds"] = json!(60);
    post(&client, CRON_JOBS, &plain).await;
    clock.step(TimeDelta::days(1));
    assert!(said(&checked(&client, None, clock.now()).await).is_empty(), "every right is granted, and no flow exists");

    post(&client, CRON_JOBS, &object("excluded", &json!({"cronjob-controller.dev/exclude": "Fri"}))).await;
    clock.step(TimeDelta::days(1));
    let before = client_text(&client, CRON_JOBS).await;
    let (old, differs) = (Code::OldSlot, Code::ScheduleDiffers);
    let excluded = "CronJob default/excluded".to_owned();
    let answer = checked(&client, Some("default"), clock.now()).await;
    assert_eq!(said(&answer), [(old, excluded.clone()), (differs, excluded)]);
    assert!(!answer.changes_nothing());
    assert_eq!(answer.not_checked, Vec::<String>::new());
    assert_eq!(client_text(&client, CRON_JOBS).await, before, "nothing is written");
    assert!(said(&checked(&client, Some("elsewhere"), clock.now()).await).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_namespace_leaves_out_is_found() {
    let not_before = "cronjob-controller.dev/not-before";
    let exclude = "cronjob-controller.dev/exclude";
    let (old, differs) = (Code::OldSlot, Code::ScheduleDiffers);
    let frozen = "cronjob-controller.dev/not-before of the Namespace leaves this slot out.";
    let ahead = |day: &str, whose: &str| {
        format!("would run at {day} 02:00:00 +00:00, which cronjob-controller.dev/{whose} leaves out here.")
    };
    let rows = [
        ("none", json!({}), json!({}), vec![]),
        (
            "a freeze",
            json!({not_before: "2026-11-22T00:00:00Z"}),
            json!({}),
            vec![(old, frozen.to_owned()), (differs, ahead("Sat 2026-11-21", "not-before of the Namespace"))],
        ),
        (
            "a thaw after the slot",
            json!({not_before: "2026-11-20T02:30:00Z"}),
            json!({}),
            vec![(old, frozen.to_owned())],
        ),
        ("a thaw before the slot", json!({not_before: "2026-11-20T01:00:00Z"}), json!({}), vec![]),
        (
            "dates beside the CronJob's own",
            json!({exclude: "Sun"}),
            json!({exclude: "Sat"}),
            vec![(differs, ahead("Sat 2026-11-21", "exclude"))],
        ),
        (
            "dates of the Namespace first",
            json!({exclude: "Sat"}),
            json!({exclude: "Sun"}),
            vec![(differs, ahead("Sat 2026-11-21", "exclude of the Namespace"))],
        ),
    ];
    for (sentence, of_namespace, own, want) in rows {
        let clock = TestClock::new(instant("2026-11-19T03:00:00Z"));
        let client = ApiServer::new(Config::new(clock.clone(), kinds::all())).client();
        post(&client, CRON_JOBS, &object("plain", &own)).await;
        let annotations = json!({"metadata": {"annotations": of_namespace}});
        try_patch(&client, "/api/v1/namespaces/default", &annotations).await.unwrap();
        clock.step(TimeDelta::days(1));
        let answer = checked(&client, None, clock.now()).await;
        assert_eq!(answer.list.len(), want.len(), "{sentence}: {answer:?}");
        for (finding, (code, end)) in answer.list.iter().zip(want) {
            assert_eq!((finding.code, finding.changes_runs), (code, true), "{sentence}");
            assert!(finding.message.ends_with(&end), "{sentence}: {}", finding.message);
        }
    }
}

async fn client_text(client: &Client, path: &str) -> String {
    crate::cli::cluster::read_text(client, path).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn status_that_this_controller_wrote_is_no_evidence_of_the_in_tree_controller() {
    let clock = TestClock::new(instant("2026-11-19T03:00:00Z"));
    let client = ApiServer::new(Config::new(clock.clone(), kinds::all())).client();
    post(&client, CRON_JOBS, &object("plain", &json!({}))).await;
    let write = async |manager: &str, at: &str| {
        let path = format!("{CRON_JOBS}/plain/status?fieldManager={manager}");
        try_patch(&client, &path, &json!({"status": {"lastScheduleTime": at}})).await.unwrap();
    };
    write("cronjob-controller", "2026-11-19T02:00:00Z").await;
    assert_eq!(said(&checked(&client, None, clock.now()).await), []);
    clock.step(TimeDelta::minutes(10));
    write("kube-controller-manager", "2026-11-19T02:30:00Z").await;
    let on = (Code::InTreeIsOn, "CronJob default/plain".to_owned());
    assert_eq!(said(&checked(&client, None, clock.now()).await), [on]);

    let schema = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": "global-default"},
        "spec": {"matchingPrecedence": 9900, "priorityLevelConfiguration": {"name": "global-default"}, "rules": [{
            "subjects": [{"kind": "Group", "group": {"name": "system:serviceaccounts"}}],
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}],
        }]},
    });
    let flows = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    try_create(&client, flows, schema.to_string().into_bytes()).await.unwrap();
    clock.step(TimeDelta::hours(2));
    let answer = checked(&client, None, clock.now()).await;
    let flow = (Code::FlowSchema, "FlowSchema global-default".to_owned());
    assert_eq!(said(&answer), [flow.clone(), flow], "the status is old");
    assert!(answer.changes_nothing(), "a slower answer changes no Job");
}

#[tokio::test(start_paused = true)]
async fn part_that_cannot_be_read_is_named_and_the_rest_is_checked() {
    let clock = TestClock::new(instant("2026-11-19T03:00:00Z"));
    let (server, wire) = (ApiServer::new(Config::builtin(clock.clone())), Wire::new());
    post(&server.client(), CRON_JOBS, &object("excluded", &json!({"cronjob-controller.dev/exclude": "Fri"}))).await;
    wire.judge(|ask| match &*ask.resource {
        "namespaces" => Fate::Denied(403, "Forbidden", "namespaces is forbidden"),
        _ => Fate::Pass,
    });
    let client = client::on_service(wire.around(server.into_service()));
    let answer = checked(&client, None, clock.now()).await;
    assert_eq!(said(&answer), [(Code::ScheduleDiffers, "CronJob default/excluded".to_owned())]);
    let path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    let freezes = "freezes, from Namespaces: read /api/v1/namespaces: namespaces is forbidden".to_owned();
    assert_eq!(answer.not_checked, [freezes, format!("FlowSchemas: read {path}: 404 page not found")]);
}

#[tokio::test]
async fn cluster_that_cannot_be_reached_is_an_error() {
    let scope = Scope {
        controller_kind: crate::api::ControllerKind::CronJob,
        namespaces: Namespaces::All,
        name: None,
        kubeconfig: Some("/nowhere".into()),
        context: None,
    };
    let answer = check(&scope, &Account::default(), &ControllerFlags::default(), &SystemClock).await;
    assert!(answer.is_err());
}
