//! Flux: what kstatus says of CronJobs, and what kustomize-controller's own library does to what others wrote to one.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use apimachinery::clock::SystemClock;
use serde_json::{Value, json};
use testkit::embedded::{self, Served};
use testkit::{controller, tools};

use crate::go;

const PATH: &str = "/apis/batch/v1/namespaces/default/cronjobs/report";
const PREFIX: &str = "cronjob-controller.dev";

/// The manifest in Git: its annotations, and its spec beside what every CronJob has.
fn manifest(annotations: &Value, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "report", "namespace": "default", "annotations": annotations},
        "spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}}}},
    });
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object
}

#[test]
fn kstatus_says_that_every_cron_job_of_batch_v1_is_current() {
    let failed = json!({"lastScheduleTime": "2026-03-02T11:00:00Z", "lastSuccessfulTime": "2026-03-01T10:00:30Z"});
    let tutorial = |reason: &str| {
        json!({
            "apiVersion": "batch.tutorial.kubebuilder.io/v1", "kind": "CronJob", "metadata": {"name": "c", "generation": 3},
            "status": {"conditions": [{"type": "Available", "status": "False", "reason": reason, "message": ""}]},
        })
    };
    let rows = [
        ("new", manifest(&json!({}), &json!({})), "Current"),
        ("suspended", manifest(&json!({}), &json!({"suspend": true})), "Current"),
        (
            "handed over, and its last run failed",
            json!({
                "apiVersion": "batch/v1", "kind": "CronJob", "status": failed, "spec": {"suspend": true},
                "metadata": {"name": "c", "annotations": {format!("{PREFIX}/managed"): "true"}},
            }),
            "Current",
        ),
        (
            "being deleted",
            json!({
                "apiVersion": "batch/v1", "kind": "CronJob",
                "metadata": {"name": "c", "deletionTimestamp": "2026-03-02T11:00:00Z"},
            }),
            "Terminating",
        ),
        ("the tutorial's, with a schedule that cannot be read", tutorial("UnparseableSchedule"), "Current"),
    ];
    let input: Vec<String> = rows.iter().map(|(_, object, _)| object.to_string()).collect();
    let Some(lines) = go("kstatus", &input.join("\n"), Path::new("")) else { return };
    let statuses: Vec<&str> = lines.lines().collect();
    assert_eq!(statuses, rows.each_ref().map(|(_, _, want)| *want));
}

/// A way to change the CronJob between two reconciliations of Flux.
enum Edit {
    Kubectl(&'static [&'static str]),
    Own(&'static [&'static str]),
    /// As the controller writes with a status, which `--publish` and policies extend.
    Controller,
}

struct Case {
    sentence: &'static str,
    /// The annotations and the spec in Git.
    git: (Value, Value),
    /// Whether there is the rule of docs/gitops.md that ignores `spec.suspend`.
    ignore: bool,
    edit: Edit,
    /// What Flux does.
    want: &'static str,
    /// The annotations `managed` and `suspend`, and `spec.suspend`, afterwards.
    left: [&'static str; 3],
}

fn cases() -> [Case; 11] {
    const SUSPEND: &[&str] = &["annotate", "cronjob", "report", "cronjob-controller.dev/suspend=true"];
    const HANDOVER: &[&str] = &["migrate", "handover", "report", "-n", "default"];
    let managed = || json!({format!("{PREFIX}/managed"): "true"});
    let handed_over = || (managed(), json!({"suspend": true}));
    let kept = "unchanged";
    let undone = "configured";
    [
        Case {
            sentence: "what the controller writes stays",
            git: (json!({}), json!({})),
            ignore: false,
            edit: Edit::Controller,
            want: kept,
            left: ["-", "-", "false"],
        },
        Case {
            sentence: "the command suspend on one that is handed over in Git stays",
            git: handed_over(),
            ignore: false,
            edit: Edit::Own(&["suspend", "report", "-n", "default"]),
            want: kept,
            left: ["true", "true", "true"],
        },
        Case {
            sentence: "kubectl annotate is undone, so that it runs again",
            git: handed_over(),
            ignore: false,
            edit: Edit::Kubectl(SUSPEND),
            want: undone,
            left: ["true", "-", "true"],
        },
        Case {
            sentence: "kubectl annotate with another field manager stays",
            git: handed_over(),
            ignore: false,
            edit: Edit::Kubectl(&[
                "annotate",
                "cronjob",
                "report",
                "cronjob-controller.dev/suspend=true",
                "--field-manager=flux-client-side-apply",
            ]),
            want: kept,
            left: ["true", "true", "true"],
        },
        Case {
            sentence: "kubectl annotate stays with the policy Merge",
            git: (
                json!({format!("{PREFIX}/managed"): "true", "kustomize.toolkit.fluxcd.io/ssa": "Merge"}),
                json!({"suspend": true}),
            ),
            ignore: false,
            edit: Edit::Kubectl(SUSPEND),
            want: kept,
            left: ["true", "true", "true"],
        },
        Case {
            sentence: "a handover stays while Git does not name suspend",
            git: (json!({}), json!({})),
            ignore: false,
            edit: Edit::Own(HANDOVER),
            want: kept,
            left: ["true", "-", "true"],
        },
        Case {
            sentence: "a handover is half undone where Git has suspend: false, and the in-tree controller runs it",
            git: (json!({}), json!({"suspend": false})),
            ignore: false,
            edit: Edit::Own(HANDOVER),
            want: undone,
            left: ["true", "-", "false"],
        },
        Case {
            sentence: "a handover stays with a rule that ignores suspend, although Git has suspend: false",
            git: (json!({}), json!({"suspend": false})),
            ignore: true,
            edit: Edit::Own(HANDOVER),
            want: kept,
            left: ["true", "-", "true"],
        },
        Case {
            sentence: "a resume by spec.suspend of one that is handed over in Git is undone",
            git: handed_over(),
            ignore: false,
            edit: Edit::Kubectl(&["patch", "cronjob", "report", "-p", r#"{"spec":{"suspend":false}}"#]),
            want: undone,
            left: ["true", "-", "true"],
        },
        Case {
            sentence: "spec.suspend by kubectl is undone where Git does not name it",
            git: (json!({}), json!({})),
            ignore: false,
            edit: Edit::Kubectl(&["patch", "cronjob", "report", "-p", r#"{"spec":{"suspend":true}}"#]),
            want: undone,
            left: ["-", "-", "false"],
        },
        Case {
            sentence: "a takeback of one that is handed over in Git is undone",
            git: handed_over(),
            ignore: false,
            edit: Edit::Own(&["migrate", "takeback", "report", "-n", "default"]),
            want: undone,
            left: ["true", "-", "true"],
        },
    ]
}

async fn run(program: &Path, args: &[&str], served: &Served) {
    let mut command = Command::new(program);
    command.args(args).env("KUBECONFIG", served.kubeconfig());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{args:?}: {said}");
}

/// What Flux does about the object, as one word.
async fn reconcile(object: &Value, ignore: bool, served: &Served) -> Option<String> {
    let target = json!({"Group": "batch", "Kind": "CronJob", "AnnotationSelector": format!("{PREFIX}/managed=true")});
    let rules = if ignore { json!([{"Paths": ["/spec/suspend"], "Selector": target}]) } else { json!([]) };
    let input = json!({"object": object, "ignore": rules}).to_string();
    let kubeconfig = served.kubeconfig().to_owned();
    let output = tokio::task::spawn_blocking(move || go("drift", &input, &kubeconfig)).await.unwrap()?;
    Some(output.trim().to_owned())
}

async fn send(client: &kube::Client, method: &str, path: &str, body: &Value) -> Value {
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/merge-patch+json");
    client.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap()
}

/// What a status of the controller carries: times, and the records of a policy and of `--publish`.
async fn write_status(client: &kube::Client) {
    let annotations = json!({
        format!("{PREFIX}/counted-from"): "2026-03-02T10:00:00Z",
        format!("{PREFIX}/next-run"): "2026-03-02T12:00:00Z",
        format!("{PREFIX}/last-failure"): "2026-03-02T11:02:00Z",
    });
    let change =
        json!({"metadata": {"annotations": annotations}, "status": {"lastScheduleTime": "2026-03-02T11:00:00Z"}});
    let object = send(client, "PATCH", &format!("{PATH}/status?fieldManager=cronjob-controller"), &change).await;
    assert_eq!(object["metadata"]["annotations"][format!("{PREFIX}/next-run")], "2026-03-02T12:00:00Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn flux_undoes_what_kubectl_wrote_and_leaves_what_this_program_wrote() {
    if !tools::has_kubectl("flux") {
        return;
    }
    for Case { sentence, git: (annotations, spec), ignore, edit, want, left } in cases() {
        let server = embedded::server(Arc::new(SystemClock));
        let client = server.client();
        let here = Served::start(server).await;
        let object = manifest(&annotations, &spec);
        let Some(first) = reconcile(&object, ignore, &here).await else { return };
        assert_eq!(first, "created", "{sentence}");
        // A status makes the controller known, so that a handover finds one.
        write_status(&client).await;
        match edit {
            Edit::Kubectl(args) => drop(here.each(args).await),
            Edit::Own(args) => run(&controller(), args, &here).await,
            Edit::Controller => {}
        }
        let what = reconcile(&object, ignore, &here).await.unwrap();
        let object = send(&client, "GET", PATH, &json!({})).await;
        let annotation = |name: &str| {
            object["metadata"]["annotations"][format!("{PREFIX}/{name}")].as_str().unwrap_or("-").to_owned()
        };
        let now = [annotation("managed"), annotation("suspend"), object["spec"]["suspend"].to_string()];
        assert_eq!((&*what, now.each_ref().map(|text| &**text)), (want, left), "{sentence}");
        for name in ["counted-from", "next-run", "last-failure"] {
            assert_ne!(annotation(name), "-", "{sentence}: {name}");
        }
    }
}
