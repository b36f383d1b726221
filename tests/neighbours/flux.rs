//! Flux: what kstatus says of CronJobs, and what the library of its controllers does to what others wrote to one.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use apimachinery::clock::SystemClock;
use serde_json::{Value, json};
use testkit::embedded::{self, Served};
use testkit::{controller, repository, tools};

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
    for (name, object, want) in rows {
        let Some(status) = go("kstatus", &json!({"object": object}).to_string(), Path::new("")) else { return };
        assert_eq!(status.trim(), want, "{name}");
    }
}

#[test]
fn health_check_of_the_page_fails_while_the_newest_job_that_ended_failed() {
    let [health, ..] = examples();
    assert_eq!(health["spec"]["wait"], true);
    let [check] = health["spec"]["healthCheckExprs"].as_array().unwrap().as_slice() else { panic!("{health}") };
    assert_eq!((&check["apiVersion"], &check["kind"]), (&json!("batch/v1"), &json!("CronJob")));
    let failed = |time: &str| json!({format!("{PREFIX}/last-failure"): time});
    let succeeded = json!({"lastSuccessfulTime": "2026-03-02T10:00:30Z"});
    // The API server gives every CronJob a status.
    let rows = [
        ("new", json!({}), json!({}), "Current"),
        ("succeeded", json!({}), succeeded.clone(), "Current"),
        ("the first Job failed", failed("2026-03-02T11:02:00Z"), json!({}), "Failed"),
        ("failed after a success", failed("2026-03-02T11:02:00Z"), succeeded.clone(), "Failed"),
        ("succeeded after a failure", failed("2026-03-02T09:02:00Z"), succeeded.clone(), "Current"),
        ("another annotation", json!({"team": "shop"}), succeeded, "Current"),
    ];
    for (name, annotations, status, want) in rows {
        let mut object = manifest(&annotations, &json!({"suspend": true}));
        object["status"] = status;
        if annotations == json!({}) {
            object["metadata"].as_object_mut().unwrap().remove("annotations");
        }
        let input = json!({"object": object, "expressions": check}).to_string();
        let Some(status) = go("kstatus", &input, Path::new("")) else { return };
        assert_eq!(status.trim(), want, "{name}");
    }
}

/// A way to change the CronJob between two reconciliations of Flux.
enum Edit {
    Kubectl(&'static [&'static str]),
    Own(&'static [&'static str]),
    /// As the controller writes with a status, which `--publish` and policies extend.
    Controller,
}

/// Which of Flux' controllers reconciles the object, with which rules.
#[derive(Clone, Copy, PartialEq)]
enum Flux {
    Kustomization,
    /// With the first rule of docs/gitops.md.
    KustomizationThatIgnores,
    Helm,
    /// With the second rule.
    HelmThatIgnores,
    /// With the first rule.
    HelmThatIgnoresByAnnotation,
}

impl Flux {
    fn is_helm(self) -> bool {
        !matches!(self, Self::Kustomization | Self::KustomizationThatIgnores)
    }

    /// The rules, as Flux' library takes them.
    fn rules(self) -> Value {
        let [_, kustomization, helm] = examples();
        let rules = match self {
            Self::Kustomization | Self::Helm => return json!([]),
            Self::KustomizationThatIgnores | Self::HelmThatIgnoresByAnnotation => &kustomization["spec"]["ignore"],
            Self::HelmThatIgnores => &helm["spec"]["driftDetection"]["ignore"],
        };
        // The libraries' names of the fields, in which capitals do not count.
        let renamed = |rule: &Value| json!({"paths": rule["paths"], "selector": rule["target"]});
        rules.as_array().unwrap().iter().map(renamed).collect()
    }
}

fn page() -> String {
    let page = std::fs::read_to_string(repository().join("docs/gitops.md")).unwrap();
    page.split_once("\n## Flux\n").unwrap().1.to_owned()
}

/// The examples of the page: the health check, and the rules of both controllers.
fn examples() -> [Value; 3] {
    let page = page();
    let blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let blocks: Vec<Value> = blocks.map(|text| serde_saphyr::from_str(text).unwrap()).collect();
    blocks.try_into().unwrap()
}

struct Case {
    /// The row of the page.
    row: [&'static str; 3],
    /// The annotations and the spec in Git.
    git: (Value, Value),
    flux: Flux,
    edit: Edit,
    /// The annotations `managed` and `suspend`, and `spec.suspend`, afterwards.
    left: [&'static str; 3],
}

fn cases() -> [Case; 13] {
    const SUSPEND: &[&str] = &["annotate", "cronjob", "report", "cronjob-controller.dev/suspend=true"];
    const HANDOVER: &[&str] = &["migrate", "handover", "report", "-n", "default"];
    let managed = || json!({format!("{PREFIX}/managed"): "true"});
    let handed_over = || (managed(), json!({"suspend": true}));
    let not_suspended = || (json!({}), json!({"suspend": false}));
    let nothing = || (json!({}), json!({}));
    let flux = Flux::Kustomization;
    [
        Case {
            row: [
                "anything",
                "the controller writes a status, `counted-from`, `next-run`, `last-failure`",
                "leaves it",
            ],
            git: nothing(),
            flux,
            edit: Edit::Controller,
            left: ["-", "-", "false"],
        },
        Case {
            row: ["handed over", "`cronjob-controller suspend`", "leaves it"],
            git: handed_over(),
            flux,
            edit: Edit::Own(&["suspend", "report", "-n", "default"]),
            left: ["true", "true", "true"],
        },
        Case {
            row: [
                "handed over",
                "`kubectl annotate … cronjob-controller.dev/suspend=true`",
                "**removes it, so that the CronJob runs again**",
            ],
            git: handed_over(),
            flux,
            edit: Edit::Kubectl(SUSPEND),
            left: ["true", "-", "true"],
        },
        Case {
            row: ["handed over", "the same with `--field-manager=flux-client-side-apply`", "leaves it"],
            git: handed_over(),
            flux,
            edit: Edit::Kubectl(&[
                "annotate",
                "cronjob",
                "report",
                "cronjob-controller.dev/suspend=true",
                "--field-manager=flux-client-side-apply",
            ]),
            left: ["true", "true", "true"],
        },
        Case {
            row: ["handed over, and `kustomize.toolkit.fluxcd.io/ssa: Merge`", "`kubectl annotate`", "leaves it"],
            git: (
                json!({format!("{PREFIX}/managed"): "true", "kustomize.toolkit.fluxcd.io/ssa": "Merge"}),
                json!({"suspend": true}),
            ),
            flux,
            edit: Edit::Kubectl(SUSPEND),
            left: ["true", "true", "true"],
        },
        Case {
            row: ["handed over", "`kubectl patch` with `suspend: false`", "hands it over again"],
            git: handed_over(),
            flux,
            edit: Edit::Kubectl(&["patch", "cronjob", "report", "-p", r#"{"spec":{"suspend":false}}"#]),
            left: ["true", "-", "true"],
        },
        Case {
            row: ["handed over", "`migrate takeback`", "hands it over again"],
            git: handed_over(),
            flux,
            edit: Edit::Own(&["migrate", "takeback", "report", "-n", "default"]),
            left: ["true", "-", "true"],
        },
        Case {
            row: ["no `suspend`", "`migrate handover`", "leaves it"],
            git: nothing(),
            flux,
            edit: Edit::Own(HANDOVER),
            left: ["true", "-", "true"],
        },
        Case {
            row: ["no `suspend`", "`kubectl patch` with `suspend: true`", "resumes it"],
            git: nothing(),
            flux,
            edit: Edit::Kubectl(&["patch", "cronjob", "report", "-p", r#"{"spec":{"suspend":true}}"#]),
            left: ["-", "-", "false"],
        },
        Case {
            row: [
                "`suspend: false`",
                "`migrate handover`",
                "**sets `suspend: false`, so that the in-tree controller runs it**",
            ],
            git: not_suspended(),
            flux,
            edit: Edit::Own(HANDOVER),
            left: ["true", "-", "false"],
        },
        Case {
            row: ["`suspend: false`, and the first rule below", "`migrate handover`", "leaves it"],
            git: not_suspended(),
            flux: Flux::KustomizationThatIgnores,
            edit: Edit::Own(HANDOVER),
            left: ["true", "-", "true"],
        },
        Case {
            row: [
                "a chart with `suspend: false`, without a rule or with the first one",
                "`migrate handover`",
                "**sets `suspend: false`**",
            ],
            git: not_suspended(),
            flux: Flux::Helm,
            edit: Edit::Own(HANDOVER),
            left: ["true", "-", "false"],
        },
        Case {
            row: ["a chart with `suspend: false`, and the second rule", "`migrate handover`", "leaves it"],
            git: not_suspended(),
            flux: Flux::HelmThatIgnores,
            edit: Edit::Own(HANDOVER),
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
async fn reconcile(object: &Value, flux: Flux, served: &Served) -> Option<String> {
    let input = json!({"object": object, "ignore": flux.rules(), "helm": flux.is_helm()}).to_string();
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

#[test]
fn table_of_the_page_has_every_case_of_flux() {
    let page = page();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).skip(2).collect();
    assert_eq!(rows, cases().map(|Case { row: [git, edit, does], .. }| format!("| {git} | {edit} | {does} |")));
}

#[tokio::test(flavor = "multi_thread")]
async fn flux_undoes_what_kubectl_wrote_and_leaves_what_this_program_wrote() {
    if !tools::has_kubectl("flux") {
        return;
    }
    for Case { row, git: (annotations, spec), flux, edit, left } in cases() {
        let also = (flux == Flux::Helm).then_some(Flux::HelmThatIgnoresByAnnotation);
        for flux in [flux].into_iter().chain(also) {
            let server = embedded::server(Arc::new(SystemClock));
            let client = server.client();
            let here = Served::start(server).await;
            let object = manifest(&annotations, &spec);
            let Some(first) = reconcile(&object, flux, &here).await else { return };
            assert_eq!(first, "created", "{row:?}");
            // A status makes the controller known, so that a handover finds one.
            write_status(&client).await;
            match edit {
                Edit::Kubectl(args) => drop(here.each(args).await),
                Edit::Own(args) => run(&controller(), args, &here).await,
                Edit::Controller => {}
            }
            let what = reconcile(&object, flux, &here).await.unwrap();
            let want = if row[2] == "leaves it" { "unchanged" } else { "configured" };
            let object = send(&client, "GET", PATH, &json!({})).await;
            let annotation = |name: &str| {
                object["metadata"]["annotations"][format!("{PREFIX}/{name}")].as_str().unwrap_or("-").to_owned()
            };
            let now = [annotation("managed"), annotation("suspend"), object["spec"]["suspend"].to_string()];
            assert_eq!((&*what, now.each_ref().map(|text| &**text)), (want, left), "{row:?}");
            for name in ["counted-from", "next-run", "last-failure"] {
                // takeback itself removes the time of the next run.
                let is_removed = name == "next-run" && row[1].contains("takeback");
                assert_eq!(annotation(name) == "-", is_removed, "{row:?}: {name}");
            }
        }
    }
}
