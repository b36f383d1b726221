//! Alerts and dashboard: checked by promtool, and by a Prometheus that scrapes the binary during faults.
#![allow(clippy::unwrap_used, clippy::explicit_write, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use testkit::dev_client::DevClient;
use testkit::tools;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The groups of the PrometheusRule, as Prometheus itself reads them.
fn groups() -> Value {
    let text = fs::read_to_string(root().join("manifests/prometheus/rules.yaml")).unwrap();
    let object: Value = serde_saphyr::from_str(&text).unwrap();
    json!({ "groups": object["spec"]["groups"] })
}

/// The alerts; recording rules have no name, severity or page.
fn alerting(groups: &Value) -> Vec<Value> {
    let of_group = |group: &Value| group["rules"].as_array().unwrap().clone();
    groups["groups"].as_array().unwrap().iter().flat_map(of_group).filter(|rule| rule["alert"].is_string()).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}"))
}

#[test]
fn every_alert_has_a_description_a_runbook_and_tests_for_firing_and_not_firing() {
    let runbooks = fs::read_to_string(root().join("docs/runbooks.md")).unwrap();
    let tests: Value =
        serde_saphyr::from_str(&fs::read_to_string(root().join("tests/prometheus/alerts.yaml")).unwrap()).unwrap();
    let cases: Vec<&Value> = tests["tests"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|test| test["alert_rule_test"].as_array().unwrap())
        .collect();
    let mut alerts = BTreeSet::new();
    for rule in alerting(&groups()) {
        let alert = text(&rule, "alert");
        assert!(alerts.insert(format!("## {alert}")), "{alert} is there twice");
        assert!(["critical", "warning"].contains(&text(&rule["labels"], "severity")), "{alert}");
        for annotation in ["summary", "description"] {
            assert!(text(&rule["annotations"], annotation).ends_with('.'), "{alert}: {annotation} is no sentence");
        }
        let anchor = format!("docs/runbooks.md#{}", alert.to_lowercase());
        assert_eq!(text(&rule["annotations"], "runbook_url"), anchor);
        for fires in [true, false] {
            let is_it = |case: &&&Value| case["alertname"] == alert && case["exp_alerts"].is_array() == fires;
            assert!(cases.iter().any(|case| is_it(&case)), "no test in which {alert} fires: {fires}");
        }
    }
    let sections: BTreeSet<String> =
        runbooks.lines().filter(|line| line.starts_with("## ")).map(ToOwned::to_owned).collect();
    assert_eq!(sections, alerts, "one section of the runbooks for each alert");
    for section in runbooks.split("\n## ").skip(1) {
        for word in ["**Means:**", "**Costs:**", "**Look:**", "**Do:**"] {
            assert!(section.contains(word), "{word} is missing in {}", section.lines().next().unwrap());
        }
    }
}

#[test]
fn runbook_links_of_every_overlay_are_absolute_and_lead_to_a_section() {
    if !tools::has_kubectl("prometheus") {
        return;
    }
    let runbooks = fs::read_to_string(root().join("docs/runbooks.md")).unwrap();
    let anchors: BTreeSet<String> =
        runbooks.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_lowercase).collect();
    let kustomization = fs::read_to_string(root().join("manifests/prometheus/kustomization.yaml")).unwrap();
    let base = kustomization.lines().find_map(|line| line.trim().strip_prefix("- url=")).unwrap();
    assert!(base.starts_with("https://"), "{base}");
    for (overlay, namespace) in
        [("prometheus", "cronjob-controller-system"), ("tutorial/prometheus", "cronjob-tutorial-system")]
    {
        let output =
            Command::new("kubectl").arg("kustomize").arg(root().join("manifests").join(overlay)).output().unwrap();
        assert!(output.status.success(), "{overlay}: {}", String::from_utf8_lossy(&output.stderr));
        let objects: Vec<Value> = serde_saphyr::from_slice_multiple(&output.stdout).unwrap();
        assert!(objects.iter().all(|object| object["metadata"]["name"] != "runbooks"), "{overlay}: only a variable");
        let rule = objects.iter().find(|object| object["kind"] == "PrometheusRule").unwrap();
        for rule in alerting(&json!({ "groups": rule["spec"]["groups"] })) {
            let url = text(&rule["annotations"], "runbook_url");
            let (page, anchor) = url.split_once('#').unwrap();
            assert!(page == base && anchors.contains(anchor), "{overlay}: {url}");
            if text(&rule, "alert") == "CronJobControllerAbsent" {
                assert!(text(&rule, "expr").contains(&format!("namespace=\"{namespace}\"")), "{overlay}: {rule}");
            }
        }
    }
}

#[test]
fn the_rules_pass_their_tests() {
    if !tools::has_program("prometheus", "promtool") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // JSON is YAML.
    fs::write(directory.path().join("rules.yaml"), groups().to_string()).unwrap();
    fs::copy(root().join("tests/prometheus/alerts.yaml"), directory.path().join("alerts.yaml")).unwrap();
    for args in [["check", "rules", "rules.yaml"], ["test", "rules", "alerts.yaml"]] {
        let output = Command::new("promtool").args(args).current_dir(directory.path()).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "promtool {}: {said}", args.join(" "));
    }
}

/// A process that ends with the test.
struct Process(Child);

impl Process {
    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(sent.success(), "kill {signal}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The expression of docs/observability.md with this metric gives these samples of these series.
fn documented_expression_gives(metric: &str, series: &Value, found: &Value) {
    let page = fs::read_to_string(root().join("docs/observability.md")).unwrap();
    let mut expressions = page.split("```promql\n").skip(1).filter_map(|rest| rest.split("```").next());
    let expression = expressions.find(|expression| expression.contains(metric)).unwrap();
    let expressions = json!([{"expr": expression, "eval_time": "0m", "exp_samples": found}]);
    let test = json!({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": expressions}]});
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("test.yaml"), test.to_string()).unwrap();
    let args = ["test", "rules", "test.yaml"];
    let output = Command::new("promtool").args(args).current_dir(directory.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8([output.stdout, output.stderr].concat()).unwrap());
}

/// On what kube-state-metrics says of a Job with two Pods, of one whose Pod waits, and of a Pod without a Job.
#[test]
fn start_of_the_first_container_of_a_job_by_kube_state_metrics() {
    if !tools::has_program("prometheus", "promtool") {
        return;
    }
    let mut series = Vec::new();
    for job in ["report-1", "waits-1"] {
        let of = format!("kube_job_status_start_time{{namespace=\"shop\",job_name=\"{job}\"}}");
        series.push(json!({"series": of, "values": "1000"}));
    }
    for (pod, kind, owner, containers) in [
        ("report-1-a", "Job", "report-1", &[("main", "1012"), ("sidecar", "1007")][..]),
        ("report-1-b", "Job", "report-1", &[("main", "1060")]),
        ("waits-1-a", "Job", "waits-1", &[]),
        ("web-1", "ReplicaSet", "web", &[("main", "1001")]),
    ] {
        let of = format!("namespace=\"shop\",pod=\"{pod}\",uid=\"{pod}\"");
        let owner = format!("kube_pod_owner{{{of},owner_kind=\"{kind}\",owner_name=\"{owner}\"}}");
        series.push(json!({"series": owner, "values": "1"}));
        for (container, at) in containers {
            let started = format!("kube_pod_container_state_started{{{of},container=\"{container}\"}}");
            series.push(json!({"series": started, "values": at}));
        }
    }
    let found = json!([{"labels": "{namespace=\"shop\",job_name=\"report-1\"}", "value": 7}]);
    documented_expression_gives("kube_job_status_start_time", &series.into(), &found);
}

/// The expression of docs/observability.md, on what kube-state-metrics says of CronJobs in each state.
#[test]
fn suspension_by_kube_state_metrics_leaves_out_what_is_handed_over() {
    if !tools::has_program("prometheus", "promtool") {
        return;
    }
    let (managed, suspend) = ("annotation_cronjob_controller_dev_managed", "annotation_cronjob_controller_dev_suspend");
    // The state, its annotations, spec.suspend, and whether the CronJob is found.
    let rows = [
        ("runs", String::new(), 0, false),
        ("suspended", String::new(), 1, true),
        ("handed-over", format!(",{managed}=\"true\""), 1, false),
        ("handed-over-and-suspended", format!(",{managed}=\"true\",{suspend}=\"true\""), 1, true),
        ("handed-over-and-resumed", format!(",{managed}=\"true\",{suspend}=\"false\""), 1, false),
        ("suspended-by-an-annotation-without-effect", format!(",{suspend}=\"true\""), 1, true),
        ("taken-back", format!(",{managed}=\"true\""), 0, false),
    ];
    let (mut series, mut found) = (Vec::new(), Vec::new());
    for (name, annotations, suspended, is_found) in rows {
        let of = format!("job=\"kube-state-metrics\",namespace=\"shop\",cronjob=\"{name}\"");
        let spec = format!("kube_cronjob_spec_suspend{{{of}}}");
        series.push(json!({"series": spec, "values": suspended.to_string()}));
        series.push(json!({"series": format!("kube_cronjob_annotations{{{of}{annotations}}}"), "values": "1"}));
        found.extend(is_found.then(|| json!({"labels": spec, "value": 1})));
    }
    documented_expression_gives("kube_cronjob_spec_suspend", &series.into(), &found.into());
}

/// The answer to one request over HTTP/1.0.
fn http(address: &str, method: &str, path: &str, body: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let head = format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

/// Waits for a condition, and returns the duration.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            println!("{what}: after {:.1} s", began.elapsed().as_secs_f64());
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// The same rules without `for` durations, and with much shorter windows and limits.
fn impatient(groups: &Value) -> Value {
    let mut groups = groups.clone();
    for group in groups["groups"].as_array_mut().unwrap() {
        group["name"] = format!("impatient-{}", text(group, "name")).into();
        group["rules"].as_array_mut().unwrap().retain(|rule| rule["alert"].is_string());
        for rule in group["rules"].as_array_mut().unwrap() {
            rule["for"] = "0s".into();
            rule["labels"]["impatient"] = "true".into();
            let expr = text(rule, "expr").replace("> 300", "> 3").replace("> 60", "> 3");
            rule["expr"] = expr.replace("> 10", "> 0.5").replace("[10m]", "[10s]").into();
        }
    }
    groups
}

/// An API server, the controller, and a Prometheus that scrapes it every second.
struct World {
    directory: tempfile::TempDir,
    api: DevClient,
    server: Process,
    prometheus: String,
    controller_at: String,
    _prometheus: Process,
}

/// Names, schedules, and the rest of their specs. Slots of one minute share a Job, but all of them are due.
const CRON_JOBS: [(&str, &str, &str); 6] = [
    ("good", "* * * * *", ""),
    ("bad", "* * * * *", "failedJobsHistoryLimit: 9"),
    ("stuck", "* * * * *", "concurrencyPolicy: Forbid"),
    ("paused", "* * * * *", "suspend: true"),
    ("often", "@every 1s", ""),
    ("as-often", "@every 1s", ""),
];

/// The field manager of Jobs that kube-controller-manager runs, and `dev` in its place.
const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";

/// How long the CronJobs have existed without a controller when it starts.
const NEGLECTED: TimeDelta = TimeDelta::minutes(10);

fn rfc3339(time: DateTime<Utc>) -> Value {
    time.to_rfc3339_opts(SecondsFormat::Secs, true).into()
}

fn manifests() -> String {
    let template = "{spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}";
    let one = |(name, schedule, more): (&str, &str, &str)| {
        format!(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: {name}}}\nspec:\n  schedule: \"{schedule}\"\n  {more}\n  \
             jobTemplate: {template}\n---\n"
        )
    };
    CRON_JOBS.map(one).concat()
}

impl World {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (server, api) = serve(directory.path(), |stored| {
            // An object that no API server would accept any more: a CronJob that cannot be decoded.
            let cron_jobs = stored["collections"]["cronjobs.batch"].as_array_mut().unwrap();
            for cron_job in &mut *cron_jobs {
                cron_job["metadata"]["creationTimestamp"] = rfc3339(Utc::now() - NEGLECTED);
            }
            let mut broken = cron_jobs[0].clone();
            broken["metadata"]["name"] = "broken".into();
            broken["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000".into();
            broken["spec"]["schedule"] = 5.into();
            cron_jobs.push(broken);
        });
        let (controller_at, prometheus) = (free_address(), free_address());
        fs::write(directory.path().join("rules.yaml"), groups().to_string()).unwrap();
        fs::write(directory.path().join("impatient.yaml"), impatient(&groups()).to_string()).unwrap();
        let config = json!({
            "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
            "rule_files": ["rules.yaml", "impatient.yaml"],
            "scrape_configs": [{
                "job_name": "cronjob-controller",
                "honor_labels": true,
                "static_configs": [{ "targets": [&controller_at], "labels": { "namespace": "cronjob-controller-system" } }],
            }],
        });
        fs::write(directory.path().join("prometheus.yaml"), config.to_string()).unwrap();
        let log = File::create(directory.path().join("prometheus.log")).unwrap();
        let child = Command::new("prometheus")
            .args(["--config.file=prometheus.yaml", "--storage.tsdb.path=tsdb", "--log.level=warn"])
            .arg(format!("--web.listen-address={prometheus}"))
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stderr(log)
            .spawn();
        Self { directory, api, server, prometheus, controller_at, _prometheus: Process(child.unwrap()) }
    }

    /// Runs the controller, one sync at a time, with leases that outlive the API server's faults.
    fn controller(&self) -> Process {
        let child = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"))
            .args([
                "--secure-port=0",
                "--cronjob-metrics",
                "--concurrent-cronjob-syncs=1",
                "--logging-format=json",
                "-v=2",
            ])
            .args(["--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=40s"])
            .arg(format!("--kubeconfig={}", self.directory.path().join("kubeconfig").display()))
            .arg(format!("--metrics-bind-address={}", self.controller_at))
            .env_remove("RUST_LOG")
            .env_remove("POD_NAMESPACE")
            .stdin(Stdio::null())
            .stderr(File::create(self.log()).unwrap())
            .spawn();
        Process(child.unwrap())
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("controller.log")
    }

    /// Prometheus' answer to a query; `None` if it refuses the query.
    fn query(&self, query: &str) -> Option<Vec<Value>> {
        let escaped = query.bytes().fold(String::new(), |escaped, byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => escaped + &char::from(byte).to_string(),
            _ => format!("{escaped}%{byte:02X}"),
        });
        let answer = http(&self.prometheus, "GET", &format!("/api/v1/query?query={escaped}"), "")?;
        (answer["status"] == "success").then(|| answer["data"]["result"].as_array().unwrap().clone())
    }

    /// Waits until the alert of the shortened rules fires.
    fn fires(&self, alert: &str) {
        until(alert, || {
            let alerts = http(&self.prometheus, "GET", "/api/v1/alerts", "")?;
            let is_it = |one: &Value| {
                one["labels"]["alertname"] == alert && one["labels"]["impatient"] == "true" && one["state"] == "firing"
            };
            alerts["data"]["alerts"].as_array()?.iter().any(is_it).then_some(())
        });
    }

    /// State and health of the shipped rules, by alert.
    fn rules(&self) -> Option<BTreeMap<String, (String, String)>> {
        let answer = http(&self.prometheus, "GET", "/api/v1/rules", "")?;
        let groups = answer["data"]["groups"].as_array()?.iter();
        let shipped = groups.filter(|group| !text(group, "name").starts_with("impatient-"));
        let rules = shipped.flat_map(|group| group["rules"].as_array().unwrap());
        let rules = rules.filter(|rule| rule["type"] == "alerting");
        let one = |rule: &Value| {
            let health = format!("{} {}", text(rule, "health"), rule["lastError"].as_str().unwrap_or_default());
            (text(rule, "name").to_owned(), (text(rule, "state").to_owned(), health))
        };
        Some(rules.map(one).collect())
    }

    /// Creates a Job of a CronJob; `pod` annotations make it end. The simulated Job controller starts it, unless the Job names
    /// another one.
    fn job(&self, cron_job: &str, name: &str, annotations: &Value, pod: &Value, managed_by: &str) {
        let batch = "/apis/batch/v1/namespaces/default";
        let owner = self.api.request("GET", &format!("{batch}/cronjobs/{cron_job}"), "").unwrap();
        let owner = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "name": cron_job, "uid": owner["metadata"]["uid"],
            "controller": true,
        });
        let spec = json!({ "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] });
        let template = json!({ "metadata": { "annotations": pod }, "spec": spec });
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": { "name": name, "annotations": annotations, "ownerReferences": [owner] },
            "spec": { "backoffLimit": 0, "managedBy": managed_by, "template": template },
        });
        let created = self.api.request("POST", &format!("{batch}/jobs"), &job.to_string()).unwrap();
        assert!(created["metadata"]["uid"].is_string(), "{created}");
    }

    /// The Jobs of an earlier controller: three that fail, one that never ends, and one that nothing starts.
    fn leave_jobs(&self) {
        let of_slot = |slot: i64| {
            let at = rfc3339(DateTime::from_timestamp(slot * 60, 0).unwrap());
            json!({ "batch.kubernetes.io/cronjob-scheduled-timestamp": at })
        };
        let minute = Utc::now().timestamp() / 60;
        for slot in minute - 3..minute {
            let fails = json!({ "cronjob-controller.dev/outcome": "fail" });
            self.job("bad", &format!("bad-{slot}"), &of_slot(slot), &fails, JOB_CONTROLLER);
        }
        let slot = (Utc::now() - NEGLECTED).timestamp() / 60 + 1;
        let hangs = json!({ "cronjob-controller.dev/duration": "1h" });
        self.job("stuck", &format!("stuck-{slot}"), &of_slot(slot), &hangs, JOB_CONTROLLER);
        self.job("good", "good-1", &json!({}), &json!({}), "example.com/none");
    }

    /// Another process has the lease, or no process has it.
    fn lease(&self, is_held: bool) {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "cronjob-controller" },
            "spec": { "holderIdentity": "another-holder", "leaseDurationSeconds": 3600 },
        });
        let done = if is_held {
            self.api.request("POST", leases, &lease.to_string())
        } else {
            self.api.request("DELETE", &format!("{leases}/cronjob-controller"), "")
        };
        assert!(done.as_ref().is_some_and(|done| done["code"].is_null()), "{done:?}");
    }
}

/// An API server whose state `tamper` has changed, and a client of it.
fn serve(directory: &Path, tamper: impl Fn(&mut Value)) -> (Process, DevClient) {
    let start = || {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"))
            .args(["dev", "--controller=false", "-f", "cronjobs.yaml", "--data-dir=data", "--kubeconfig=kubeconfig"])
            .current_dir(directory)
            .env("XDG_RUNTIME_DIR", directory)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.find(|line| line.as_ref().unwrap().starts_with("Kubernetes API on ")).unwrap().unwrap();
        let client = DevClient::new(&directory.join("kubeconfig"));
        // Read to its end, or the process would block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        (Process(child), client)
    };
    fs::write(directory.join("cronjobs.yaml"), manifests()).unwrap();
    let (mut first, api) = start();
    let objects = |path: &str, api_version: &str, kind: &str| {
        let mut objects = api.request("GET", path, "").unwrap()["items"].take();
        for object in objects.as_array_mut().unwrap() {
            (object["apiVersion"], object["kind"]) = (api_version.into(), kind.into());
        }
        objects
    };
    let mut stored = json!({ "version": 1, "revision": 1000, "random": 1, "collections": {
        "namespaces": objects("/api/v1/namespaces", "v1", "Namespace"),
        "cronjobs.batch": objects("/apis/batch/v1/cronjobs", "batch/v1", "CronJob"),
    } });
    first.signal("-INT");
    assert!(first.0.wait().unwrap().success());
    tamper(&mut stored);
    // The document of an earlier version, which dev still reads.
    fs::remove_file(directory.join("data/state.log")).unwrap();
    fs::write(directory.join("data/state.json"), stored.to_string()).unwrap();
    start()
}

/// The queries of the dashboard as Grafana sends them, by panel title.
fn dashboard_queries() -> Vec<(String, String)> {
    let file = fs::read_to_string(root().join("manifests/prometheus/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&file).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let chosen = text(target, "expr").replace("$job", ".*").replace("$namespace", ".*");
            queries.push((text(panel, "title").to_owned(), chosen.replace("$__rate_interval", "10s")));
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let arguments = text(variable, "query").strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
        if let Some((metric, label)) = arguments.and_then(|arguments| arguments.split_once(", ")) {
            queries.push((text(variable, "name").to_owned(), format!("count by ({label}) ({metric})")));
        }
    }
    queries
}

#[test]
fn a_real_prometheus_sees_each_alert_that_can_be_provoked_and_answers_every_query_of_the_dashboard() {
    if !tools::has_program("prometheus", "prometheus") {
        return;
    }
    let world = World::start();
    world.leave_jobs();
    world.fires("CronJobControllerAbsent");

    world.lease(true);
    let controller = world.controller();
    world.fires("CronJobControllerLeaderless");
    let series = || world.query("count({__name__=~\"cronjob_controller_cronjob_.*_total\"})");
    assert_eq!(series(), Some(vec![]), "what stands by has no series of CronJobs");
    world.fires("CronJobControllerMalformedObjects");

    world.lease(false);
    for alert in [
        "CronJobControllerLate",
        "CronJobRunsMissed",
        "CronJobForbidBlocked",
        "CronJobFailing",
        "CronJobNeverSucceeded",
        "CronJobNotStarted",
    ] {
        world.fires(alert);
    }
    until("every query of the dashboard has an answer", || {
        dashboard_queries()
            .iter()
            .all(|(panel, query)| {
                // The failing CronJobs: possibly none; it is enough that the number exists.
                let query = query.strip_suffix(" > 0").unwrap_or(query);
                let answer = world.query(query).unwrap_or_else(|| panic!("{panel}: refused: {query}"));
                !answer.is_empty()
            })
            .then_some(())
    });

    world.server.signal("-STOP");
    for alert in ["CronJobOverdue", "CronJobControllerSyncStuck", "CronJobControllerWatchStale"] {
        world.fires(alert);
    }
    world.fires("CronJobControllerQueueNotDrained");
    world.server.signal("-CONT");

    let rules = until("all rules are evaluated", || {
        world.rules().filter(|rules| rules.values().all(|(_, health)| !health.starts_with("unknown")))
    });
    assert_eq!(rules.len(), 21);
    for (alert, (_, health)) in &rules {
        assert_eq!(health, "ok ", "{alert}");
    }
    drop(controller);
    for line in fs::read_to_string(world.log()).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["ts"].is_f64() && line["msg"].is_string() && line["level"].is_string(), "{line}");
    }
}
