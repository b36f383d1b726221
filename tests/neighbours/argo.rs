//! `manifests/argocd`: each script, run by Argo CD's interpreter and by Lua 5.4, on CronJobs in every state.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use apimachinery::clock::SystemClock;
use chrono::{DateTime, Utc};
use cronjob_controller::api::batch_v1::CronJob;
use cronjob_controller::api::job_changes::JobChanges;
use cronjob_controller::api::job_template::manual_job;
use cronjob_controller::api::manage::{MANAGED_ANNOTATION, SUSPEND_ANNOTATION, Standing};
use cronjob_controller::api::policy::{DUE_TIME, SLOT_IN_POD};
use cronjob_controller::api::{Interner, Object as _};
use schedule::Zone;
use serde_json::{Map, Value, json};
use testkit::embedded::{self, Served};
use testkit::{repository, tools};

use crate::go;

fn directory() -> PathBuf {
    repository().join("manifests/argocd")
}

fn script(name: &str) -> String {
    std::fs::read_to_string(directory().join("lua").join(name)).unwrap()
}

/// A CronJob of the API server's, with what `change` sets as a merge patch does.
fn cron_job(change: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {
            "name": "report", "namespace": "shop", "uid": "5c9e7b0e-1111-4222-8333-444455556666", "resourceVersion": "7",
            "generation": 2, "creationTimestamp": "2026-03-01T00:00:00Z",
        },
        "spec": {
            "schedule": "0 * * * *", "concurrencyPolicy": "Allow", "suspend": false,
            "jobTemplate": {"spec": {"backoffLimit": 2, "template": {
                "metadata": {},
                "spec": {
                    "restartPolicy": "Never", "securityContext": {},
                    "containers": [{"name": "c", "image": "i", "args": ["-c", "exit 1"], "resources": {}}],
                },
            }}},
        },
        "status": {},
    });
    merge(&mut object, change);
    object
}

fn merge(target: &mut Value, change: &Value) {
    let Some(fields) = change.as_object() else {
        *target = change.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut target[name], value);
        }
    }
}

/// Without empty lists and objects, which Lua cannot tell apart. Argo CD restores those of the object that it patches.
fn without_empty(value: &Value) -> Value {
    let is_empty = |value: &Value| *value == json!({}) || *value == json!([]);
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), without_empty(value)));
            Value::Object(fields.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_empty).filter(|item| !is_empty(item)).collect()),
        // Lua's numbers are floats.
        Value::Number(number) => json!(number.as_f64()),
        other => other.clone(),
    }
}

/// The merge patch between two objects, which Argo CD sends.
fn patch(before: &Value, after: &Value) -> Value {
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else { return after.clone() };
    let mut changes = Map::new();
    for name in old.keys().chain(new.keys()) {
        match (old.get(name), new.get(name)) {
            (_, None) => drop(changes.insert(name.clone(), Value::Null)),
            (None, Some(new)) => drop(changes.insert(name.clone(), new.clone())),
            (Some(old), Some(new)) if old != new => drop(changes.insert(name.clone(), patch(old, new))),
            _ => {}
        }
    }
    Value::Object(changes)
}

/// The result of a script on each object, once for each interpreter that exists here.
fn results(name: &str, objects: &[Value]) -> Vec<(&'static str, Vec<Value>)> {
    [("gopher-lua", gopher_lua(name, objects)), ("lua5.4", lua(name, objects))]
        .into_iter()
        .filter_map(|(interpreter, results)| Some((interpreter, results?)))
        .inspect(|(_, results)| assert_eq!(results.len(), objects.len()))
        .collect()
}

fn gopher_lua(name: &str, objects: &[Value]) -> Option<Vec<Value>> {
    let calls: Vec<String> =
        objects.iter().map(|object| json!({"script": script(name), "object": object}).to_string()).collect();
    let lines = go("argo", &calls.join("\n"), Path::new(""))?;
    let answers = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    Some(answers.map(|answer| answer.get("result").unwrap_or_else(|| panic!("{name}: {answer}")).clone()).collect())
}

/// A value as a Lua expression.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Array(items) => format!("{{{}}}", items.iter().map(literal).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("[{}]={}", json!(name), literal(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        plain => plain.to_string(),
    }
}

/// Prints a value as JSON, with an empty table as a list.
const TO_JSON: &str = r#"
local function json(value)
  if type(value) == "string" then
    return '"' .. value:gsub('[%c"\\]', function(c) return string.format("\\u%04x", c:byte()) end) .. '"'
  elseif type(value) ~= "table" then
    return tostring(value)
  end
  local parts = {}
  if next(value) == nil or #value > 0 then
    for _, element in ipairs(value) do parts[#parts + 1] = json(element) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for key, element in pairs(value) do parts[#parts + 1] = json(key) .. ":" .. json(element) end
  return "{" .. table.concat(parts, ",") .. "}"
end
"#;

fn lua(name: &str, objects: &[Value]) -> Option<Vec<Value>> {
    if !tools::has("argo", "lua5.4", &["-v"]) {
        return None;
    }
    let mut program = format!("{TO_JSON}local script = [==[{}]==]\n", script(name));
    for object in objects {
        writeln!(program, "obj = {}\nprint(json(load(script)()))", literal(object)).unwrap();
    }
    let mut lua = Command::new("lua5.4");
    let mut lua = lua.arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    lua.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let output = lua.wait_with_output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// The ConfigMap that carries the scripts.
fn config_map() -> String {
    let indented = |name: &str, by: usize| {
        let mut text = String::new();
        for line in script(name).lines() {
            writeln!(text, "{}", format!("{}{line}", " ".repeat(by)).trim_end()).unwrap();
        }
        text
    };
    let mut definitions = String::new();
    for action in ["create-job", "suspend", "resume"] {
        let text = indented(&format!("actions/{action}.lua"), 8);
        write!(definitions, "    - name: {action}\n      action.lua: |\n{text}").unwrap();
    }
    format!(
        "# Generated by `make manifests` from the files in lua. Do not edit.
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
data:
  resource.customizations.health.batch_CronJob: |
{}  resource.customizations.health.batch.tutorial.kubebuilder.io_CronJob: |
{}  resource.customizations.actions.batch_CronJob: |
    discovery.lua: |
{}    definitions:
{definitions}",
        indented("health.lua", 4),
        indented("tutorial_health.lua", 4),
        indented("actions/discovery.lua", 6),
    )
}

#[test]
fn config_map_of_argo_cd_has_the_text_of_every_script() {
    let path = directory().join("argocd-cm.yaml");
    if std::env::var_os("UPDATE_MANIFESTS").is_some_and(|value| value == "1") {
        std::fs::write(&path, config_map()).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap();
    assert!(stored == config_map(), "manifests/argocd/argocd-cm.yaml is stale; run make manifests");
    // What a reader of YAML finds in it.
    let object: Value = serde_saphyr::from_str(&stored).unwrap();
    let health = |kind: &str| &object["data"][format!("resource.customizations.health.{kind}")];
    assert_eq!(*health("batch_CronJob"), script("health.lua"));
    assert_eq!(*health("batch.tutorial.kubebuilder.io_CronJob"), script("tutorial_health.lua"));
    let actions = object["data"]["resource.customizations.actions.batch_CronJob"].as_str().unwrap();
    let actions: Value = serde_saphyr::from_str(actions).unwrap();
    assert_eq!(actions["discovery.lua"], script("actions/discovery.lua"));
    let definitions = actions["definitions"].as_array().unwrap();
    assert_eq!(definitions.len(), 3);
    for definition in definitions {
        let name = definition["name"].as_str().unwrap();
        assert_eq!(definition["action.lua"], script(&format!("actions/{name}.lua")), "{name}");
    }
}

/// Runs the command of docs/gitops.md.
#[tokio::test(flavor = "multi_thread")]
async fn command_of_the_page_adds_the_scripts_to_the_settings_of_argo_cd() {
    if !tools::has_kubectl("argo") {
        return;
    }
    let server = embedded::server(Arc::new(SystemClock));
    let here = Served::start(server).await;
    here.each(&["create", "namespace", "argocd"]).await;
    here.each(&["-n", "argocd", "create", "configmap", "argocd-cm", "--from-literal=url=https://argo.example"]).await;
    let page = std::fs::read_to_string(repository().join("docs/gitops.md")).unwrap();
    let command = page.lines().find(|line| line.starts_with("kubectl -n argocd patch ")).unwrap();
    let args: Vec<&str> = command.split(' ').skip(1).collect();
    assert_eq!(here.each(&args).await, ["configmap/argocd-cm patched"]);
    let stored = here.each(&["-n", "argocd", "get", "configmap", "argocd-cm", "-o", "json"]).await.concat();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["data"]["url"], "https://argo.example");
    assert_eq!(stored["data"]["resource.customizations.health.batch_CronJob"], script("health.lua"));
}

/// With the sync option `Replace=true`, Argo CD runs kubectl's own replace, with the manifest in Git.
#[tokio::test(flavor = "multi_thread")]
async fn replace_removes_the_annotations_that_git_does_not_name() {
    if !tools::has_kubectl("argo") {
        return;
    }
    let names = ["managed", "suspend", "counted-from", "next-run", "last-failure", "backfill"];
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    for (command, left) in [("apply", &names[..]), ("replace", &[])] {
        let here = Served::start(embedded::server(Arc::new(SystemClock))).await;
        let manifest = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "report"},
            "spec": {"schedule": "0 * * * *", "jobTemplate": cron_job(&json!({}))["spec"]["jobTemplate"]},
        });
        std::fs::write(path, manifest.to_string()).unwrap();
        here.each(&["apply", "-f", path]).await;
        let annotations = names.map(|name| format!("cronjob-controller.dev/{name}=true"));
        let mut annotate = vec!["annotate", "cronjob", "report"];
        annotate.extend(annotations.iter().map(|annotation| &**annotation));
        here.each(&annotate).await;
        here.each(&[command, "-f", path]).await;
        let stored = here.each(&["get", "cronjob", "report", "-o", "json"]).await.concat();
        let stored: Value = serde_json::from_str(&stored).unwrap();
        let has = |name: &str| stored["metadata"]["annotations"][format!("cronjob-controller.dev/{name}")].is_string();
        let kept: Vec<&str> = names.into_iter().filter(|name| has(name)).collect();
        assert_eq!(kept, left, "{command}");
    }
}

/// What the health check says of a state.
struct Health {
    state: &'static str,
    change: Value,
    want: (&'static str, &'static str),
}

fn check_health(name: &str, rows: &[Health], object: impl Fn(&Value) -> Value) {
    let objects: Vec<Value> = rows.iter().map(|row| object(&row.change)).collect();
    for (interpreter, results) in results(name, &objects) {
        for (row, result) in rows.iter().zip(results) {
            let (status, message) = row.want;
            assert_eq!(result, json!({"status": status, "message": message}), "{interpreter}: {}", row.state);
        }
    }
}

/// The annotations of a CronJob that is handed over, and `more`.
fn handed_over(more: &Value) -> Value {
    let mut change = json!({"metadata": {"annotations": {MANAGED_ANNOTATION: "true"}}, "spec": {"suspend": true}});
    merge(&mut change, more);
    change
}

#[test]
fn health_in_argo_cd_shows_the_state_of_every_cron_job() {
    const NEXT: &str = "cronjob-controller.dev/next-run";
    const FAILED: &str = "cronjob-controller.dev/last-failure";
    let ran = json!({"lastScheduleTime": "2026-03-02T10:00:00Z", "lastSuccessfulTime": "2026-03-02T10:00:30Z"});
    let late = json!({"lastScheduleTime": "2026-03-02T11:00:00Z", "lastSuccessfulTime": "2026-03-02T10:00:30Z"});
    let mut running = late.clone();
    running["active"] = json!([{"name": "report-29540340"}]);
    let failed = json!({FAILED: "2026-03-02T11:02:00Z", NEXT: "2026-03-02T12:00:00Z"});
    let ok = "The last Job that succeeded ended at 2026-03-02T10:00:30Z.";
    let bad = "The last Job that ended failed at 2026-03-02T11:02:00Z. The last success was at 2026-03-02T10:00:30Z.";
    let rows = [
        ("no status", json!({"status": null}), ("Healthy", "It has not run yet.")),
        ("never ran", json!({}), ("Healthy", "It has not run yet.")),
        (
            "never ran, with its next run",
            json!({"metadata": {"annotations": {NEXT: "2026-03-02T12:00:00Z"}}}),
            ("Healthy", "It has not run yet. Next run: 2026-03-02T12:00:00Z."),
        ),
        ("succeeded", json!({"status": ran}), ("Healthy", ok)),
        (
            "succeeded, and an annotation that cannot be read holds it, which the check does not see",
            json!({"metadata": {"annotations": {"cronjob-controller.dev/spread": "soon"}}, "status": ran}),
            ("Healthy", ok),
        ),
        (
            "the first Job runs",
            json!({"status": {"lastScheduleTime": "2026-03-02T10:00:00Z", "active": [{"name": "report-29540280"}]}}),
            ("Healthy", "No Job has ended yet. Running: 1."),
        ),
        (
            "the first Job is gone without a success, and failures are not published",
            json!({"status": {"lastScheduleTime": "2026-03-02T10:00:00Z"}}),
            ("Healthy", "No run is known to have succeeded."),
        ),
        (
            "the first Job failed",
            json!({"metadata": {"annotations": failed}, "status": {"lastScheduleTime": "2026-03-02T11:00:00Z"}}),
            ("Degraded", "The last Job that ended failed at 2026-03-02T11:02:00Z. Next run: 2026-03-02T12:00:00Z."),
        ),
        (
            "the last run did not succeed, and failures are not published",
            json!({"status": late}),
            (
                "Degraded",
                "The run of 2026-03-02T11:00:00Z did not succeed. The last success was at 2026-03-02T10:00:30Z.",
            ),
        ),
        (
            "a Job runs, and how the one before ended is not published",
            json!({"status": running}),
            ("Healthy", "The last Job that succeeded ended at 2026-03-02T10:00:30Z. Running: 1."),
        ),
        (
            "a Job runs, and the one before failed",
            json!({"metadata": {"annotations": {FAILED: "2026-03-02T11:02:00Z"}}, "status": running}),
            (
                "Degraded",
                "The last Job that ended failed at 2026-03-02T11:02:00Z. The last success was at 2026-03-02T10:00:30Z. Running: 1.",
            ),
        ),
        (
            "succeeded after a failure",
            json!({"metadata": {"annotations": {FAILED: "2026-03-02T09:02:00Z"}}, "status": ran}),
            ("Healthy", ok),
        ),
        (
            "suspended",
            json!({"spec": {"suspend": true}, "status": late}),
            ("Healthy", "Suspended (spec.suspend): no further run starts."),
        ),
        (
            "suspended, and the annotation of a handover says otherwise without managed",
            json!({"metadata": {"annotations": {SUSPEND_ANNOTATION: "false"}}, "spec": {"suspend": true}}),
            ("Healthy", "Suspended (spec.suspend): no further run starts."),
        ),
        ("handed over, succeeded", handed_over(&json!({"status": ran})), ("Healthy", ok)),
        (
            "handed over, failed",
            handed_over(&json!({"metadata": {"annotations": {FAILED: "2026-03-02T11:02:00Z"}}, "status": late})),
            ("Degraded", bad),
        ),
        (
            "handed over, failed, and failures are not published",
            handed_over(&json!({"status": late})),
            (
                "Degraded",
                "The run of 2026-03-02T11:00:00Z did not succeed. The last success was at 2026-03-02T10:00:30Z.",
            ),
        ),
        (
            "handed over and suspended; the time of the next run is stale",
            handed_over(
                &json!({"metadata": {"annotations": {SUSPEND_ANNOTATION: "true", NEXT: "2026-03-02T12:00:00Z"}}}),
            ),
            ("Healthy", "Suspended (cronjob-controller.dev/suspend): no further run starts."),
        ),
        (
            "handed over, with another value of the annotation",
            handed_over(&json!({"metadata": {"annotations": {SUSPEND_ANNOTATION: "yes"}}, "status": ran})),
            ("Healthy", ok),
        ),
        (
            "another controller has run it since the annotation was written",
            json!({"metadata": {"annotations": {NEXT: "2026-03-02T10:00:00Z"}}, "status": ran}),
            ("Healthy", ok),
        ),
        (
            "was handed over, and spec.suspend was reverted; the time of the next run stays behind",
            handed_over(&json!({
                "metadata": {"annotations": {NEXT: "2026-03-02T12:00:00Z"}}, "spec": {"suspend": false}, "status": ran,
            })),
            (
                "Healthy",
                "The last Job that succeeded ended at 2026-03-02T10:00:30Z. It is not handed over, because spec.suspend is not true.",
            ),
        ),
        (
            "was handed over, and spec.suspend was reverted",
            handed_over(&json!({"spec": {"suspend": false}, "status": ran})),
            (
                "Healthy",
                "The last Job that succeeded ended at 2026-03-02T10:00:30Z. It is not handed over, because spec.suspend is not true.",
            ),
        ),
    ];
    check_health("health.lua", &rows.map(|(state, change, want)| Health { state, change, want }), cron_job);
}

#[test]
fn health_of_the_tutorials_cron_job_in_argo_cd_follows_its_conditions() {
    let conditions = |available: [&str; 3], degraded: &str| {
        let [status, reason, message] = available;
        json!({"status": {"conditions": [
            {"type": "Available", "status": status, "reason": reason, "message": message},
            {"type": "Degraded", "status": degraded, "reason": "Failed", "message": "What ended last has failed."},
        ]}})
    };
    let scheduled = ["True", "Scheduled", "The next run is waited for."];
    let rows = [
        ("not seen yet", json!({}), ("Healthy", "The controller has not seen it yet.")),
        ("runs", conditions(scheduled, "False"), ("Healthy", "The next run is waited for.")),
        ("failed", conditions(scheduled, "True"), ("Degraded", "What ended last has failed.")),
        (
            "suspended after a failure",
            conditions(["False", "Suspended", "New runs are held back."], "True"),
            ("Healthy", "New runs are held back."),
        ),
        ("over", conditions(["False", "NeverDue", "no time"], "False"), ("Healthy", "no time")),
        ("bad schedule", conditions(["False", "UnparseableSchedule", "no"], "False"), ("Degraded", "no")),
        ("bad policy", conditions(["False", "InvalidPolicy", "no"], "True"), ("Degraded", "no")),
    ];
    let rows = rows.map(|(state, change, want)| Health { state, change, want });
    check_health("tutorial_health.lua", &rows, cron_job);
}

#[test]
fn actions_of_argo_cd_change_what_the_commands_suspend_and_resume_change() {
    let mut objects = Vec::new();
    for managed in [None, Some("true"), Some("false")] {
        for suspend in [None, Some("true"), Some("false"), Some("yes")] {
            for spec in [None, Some(true), Some(false)] {
                objects.push(cron_job(&json!({
                    "metadata": {"annotations": {MANAGED_ANNOTATION: managed, SUSPEND_ANNOTATION: suspend}},
                    "spec": {"suspend": spec},
                })));
            }
        }
    }
    let standing =
        |object: &Value| Standing::of(&CronJob::decode(&object.to_string(), &Interner::default()).unwrap(), false);
    for (interpreter, results) in results("actions/discovery.lua", &objects) {
        for (object, result) in objects.iter().zip(results) {
            let toggle = if standing(object).is_suspended() { "resume" } else { "suspend" };
            let names: Vec<&String> = result.as_object().unwrap().keys().collect();
            assert_eq!(names, ["create-job", toggle], "{interpreter}: {}", object["metadata"]["annotations"]);
        }
    }
    for suspend in [true, false] {
        let (name, offered) = (
            if suspend { "actions/suspend.lua" } else { "actions/resume.lua" },
            objects.iter().filter(|object| standing(object).is_suspended() != suspend),
        );
        let offered: Vec<Value> = offered.cloned().collect();
        assert!(offered.len() > 5, "{name}: {}", offered.len());
        for (interpreter, results) in results(name, &offered) {
            for (object, result) in offered.iter().zip(results) {
                let before = standing(object);
                let want = without_empty(&before.patch(before.with_suspend(suspend)));
                let sent = patch(&without_empty(object), &without_empty(&result));
                assert_eq!(sent, want, "{interpreter}: {name} of {object}");
            }
        }
    }
}

#[test]
fn job_that_argo_cd_creates_is_the_one_that_trigger_creates() {
    let template = |metadata: Value| cron_job(&json!({"spec": {"jobTemplate": {"metadata": metadata}}}));
    let slot_in_pod = |value: &str, pods: &Value| {
        cron_job(&json!({
            "metadata": {"annotations": {SLOT_IN_POD: value}},
            "spec": {"jobTemplate": {"spec": {"template": {"metadata": pods}}}},
        }))
    };
    let objects = [
        cron_job(&json!({})),
        template(json!({"labels": {"team": "shop"}, "annotations": {"a": "b"}})),
        template(json!({"labels": {}, "annotations": {"cronjob.kubernetes.io/instantiate": "argo"}})),
        template(json!({"labels": {"cronjob-controller.dev/backfill": "x"}})),
        template(json!({"labels": {"cronjob-controller.dev/backfill": "x", "team": "shop"}})),
        slot_in_pod("true", &json!({})),
        slot_in_pod("true", &json!({"annotations": {"a": "b", DUE_TIME: "x"}})),
        slot_in_pod("yes", &json!({})),
        cron_job(&json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {
            "imagePullSecrets": [{}, {"name": "a"}],
        }}}}}})),
    ];
    for (interpreter, results) in results("actions/create-job.lua", &objects) {
        for (object, result) in objects.iter().zip(results) {
            let [created] = result.as_array().unwrap().as_slice() else { panic!("{interpreter}: {result}") };
            assert_eq!(created["operation"], "create");
            let name = created["resource"]["metadata"]["name"].as_str().unwrap();
            let digits = name.strip_prefix("report-").unwrap();
            assert!(digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{interpreter}: {name}");
            let cron_job = CronJob::decode(&object.to_string(), &Interner::default()).unwrap();
            // The Pods have the time of the command, which is in the name.
            let told =
                created["resource"].pointer("/spec/template/metadata/annotations").and_then(|all| all.get(DUE_TIME));
            let now: DateTime<Utc> = told.map_or(DateTime::UNIX_EPOCH, |time| time.as_str().unwrap().parse().unwrap());
            assert!(told.is_none() || digits == now.format("%m%d%H%M%S").to_string(), "{interpreter}: {now}");
            let (name, changes) = (name.to_owned(), JobChanges::default());
            let job = manual_job(&cron_job, name, &changes, now, Zone::UTC, None).unwrap().0;
            let want: Value = serde_json::from_slice(&job).unwrap();
            assert_eq!(without_empty(&created["resource"]), without_empty(&want), "{interpreter}");
        }
    }
}
