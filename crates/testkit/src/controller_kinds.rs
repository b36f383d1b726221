//! Checks of the tutorial's CronJobs and of ApiExamples for any API server with their definitions and webhooks: which objects
//! are stored or rejected, and how they run. `tests/controller_kinds.rs` applies the checks to the embedded server, and the
//! end-to-end tests to the real one.

use std::collections::BTreeSet;
use std::time::Duration;

use apimachinery::clock::SharedClock;
use chrono::{DateTime, TimeDelta, Utc};
use http::Method;
use serde_json::{Value, json};

use crate::driver::{EVENTS, JOBS, Namespace, Resource, cron_job, request, rfc3339};

pub const CRON_JOBS: Resource = Resource("apis/batch.tutorial.kubebuilder.io/v1", "cronjobs");
pub const API_EXAMPLES: Resource = Resource("apis/myapp.my.domain/v1alpha1", "apiexamples");
pub const PODS: Resource = Resource("api/v1", "pods");

/// Both kinds, each with the kind of object that it starts.
const BOTH: [(Resource, Resource); 2] = [(CRON_JOBS, JOBS), (API_EXAMPLES, PODS)];

/// The time limit for all expectations together: the samples start at the full minute.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// An API server and its clock.
pub struct TestCluster {
    pub client: kube::Client,
    pub clock: SharedClock,
    pub namespace: Namespace,
    /// The minor version of Kubernetes, such as 36.
    pub minor: u32,
}

/// A tutorial's CronJob with unknown fields in its template; `spec` overrides the defaults.
pub fn tutorial(name: &str, spec: &Value) -> Value {
    let mut object = cron_job(name, "@daily", spec);
    object["apiVersion"] = json!("batch.tutorial.kubebuilder.io/v1");
    if let Some(pod) = object.pointer_mut("/spec/jobTemplate/spec/template/spec") {
        pod["fieldOfTheFuture"] = json!({ "deep": [1] });
    }
    if let Some(container) = object.pointer_mut("/spec/jobTemplate/spec/template/spec/containers/0") {
        container["fieldOfTheFuture"] = json!(true);
    }
    object
}

/// The same as an ApiExample, which has a Pod template.
pub fn example(name: &str, spec: &Value) -> Value {
    let mut object = cron_job(name, "@daily", &json!({}));
    object["apiVersion"] = json!("myapp.my.domain/v1alpha1");
    object["kind"] = json!("ApiExample");
    object["spec"]["jobTemplate"] = object["spec"]["jobTemplate"]["spec"]["template"].clone();
    for (key, value) in spec.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

/// A sample of `manifests/samples/tutorial`.
pub fn sample(file: &str) -> Value {
    let path = crate::repository().join("manifests/samples/tutorial").join(file);
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Checks that a CronJob with only the required fields gets the tutorial's defaults, and that its template is stored as it was
/// sent.
pub async fn defaults(cluster: &TestCluster) {
    let minimal = tutorial("minimal", &json!({ "suspend": null }));
    let stored = cluster.namespace.create(CRON_JOBS, &minimal).await;
    let spec = &stored["spec"];
    assert_eq!(spec["concurrencyPolicy"], "Allow");
    assert_eq!(spec["suspend"], false);
    assert_eq!(spec["successfulJobsHistoryLimit"], 3);
    assert_eq!(spec["failedJobsHistoryLimit"], 1);
    assert_eq!(spec["jobTemplate"], minimal["spec"]["jobTemplate"], "a template is kept, known or not");
    // A controller may have written the status by now.
    assert_eq!(cluster.namespace.get(CRON_JOBS, "minimal").await.unwrap()["spec"], *spec);

    let mut odd = tutorial("odd", &json!({ "suspend": true, "fieldOfTheFuture": 1 }));
    odd["status"] = json!({ "lastScheduleTime": "2026-01-01T00:00:00Z" });
    let stored = cluster.namespace.create(CRON_JOBS, &odd).await;
    assert_eq!(stored["spec"]["suspend"], true, "what is set stays");
    assert_eq!(
        stored["spec"]["fieldOfTheFuture"],
        Value::Null,
        "outside the template nothing is kept that is not known"
    );
    assert_eq!(stored["status"], Value::Null, "a status is written at its own path only");
}

/// Checks that invalid objects are rejected with the expected messages. `minimal` must exist. Returns the number of cases.
pub async fn refusals(cluster: &TestCluster) -> usize {
    let TestCluster { client, namespace: ns, minor, .. } = cluster;
    let since = |first: u32, now, before| if *minor >= first { now } else { before };
    let long = "n".repeat(53);
    let of = |spec: Value| tutorial("minimal", &spec);
    let pods = |spec: Value| example("pods", &spec);
    let twice = json!([{ "name": "a" }, { "name": "a" }]);
    let template = |containers: Value| json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    let rows = [
        (CRON_JOBS, of(json!({ "schedule": "every day" })), "spec.schedule: Invalid value: \"every day\""),
        (CRON_JOBS, of(json!({ "schedule": "61 * * * *" })), "end of range (61) above maximum (59)"),
        (CRON_JOBS, of(json!({ "schedule": "" })), "spec.schedule: Invalid value: \"\": empty spec string"),
        (CRON_JOBS, of(json!({ "schedule": null })), "spec.schedule: Required value"),
        (CRON_JOBS, of(json!({ "jobTemplate": null })), "spec.jobTemplate: Required value"),
        (
            CRON_JOBS,
            of(json!({ "concurrencyPolicy": "Sometimes" })),
            "spec.concurrencyPolicy: Unsupported value: \"Sometimes\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
        ),
        (
            CRON_JOBS,
            of(json!({ "startingDeadlineSeconds": -1 })),
            "spec.startingDeadlineSeconds: Invalid value: -1: \
             spec.startingDeadlineSeconds in body should be greater than or equal to 0",
        ),
        (
            CRON_JOBS,
            of(json!({ "successfulJobsHistoryLimit": -1 })),
            "spec.successfulJobsHistoryLimit: Invalid value: -1",
        ),
        (CRON_JOBS, of(json!({ "failedJobsHistoryLimit": -1 })), "spec.failedJobsHistoryLimit: Invalid value: -1"),
        (
            CRON_JOBS,
            of(json!({ "suspend": "yes" })),
            "spec.suspend: Invalid value: \"string\": spec.suspend in body must be of type boolean: \"string\"",
        ),
        (
            CRON_JOBS,
            of(json!({ "failedJobsHistoryLimit": 1_i64 << 31 })),
            // The latter by the webhook.
            since(
                36,
                "must be of type integer with format int32 in spec.failedJobsHistoryLimit",
                "spec.failedJobsHistoryLimit: Invalid value: 2147483648: must be of type integer with format int32",
            ),
        ),
        (
            CRON_JOBS,
            of(json!({ "jobTemplate": template(json!([])) })),
            "spec.jobTemplate.spec.template.spec.containers: Invalid value: 0: \
             spec.jobTemplate.spec.template.spec.containers in body should have at least 1 items",
        ),
        (
            CRON_JOBS,
            of(json!({ "jobTemplate": template(twice) })),
            since(
                34,
                "spec.jobTemplate.spec.template.spec.containers[1]: Duplicate value: {\"name\":\"a\"}",
                "spec.jobTemplate.spec.template.spec.containers[1]: Duplicate value: map[string]interface {}{\"name\":\"a\"}",
            ),
        ),
        (CRON_JOBS, tutorial(&long, &json!({})), "metadata.name: Too long: may not be more than 52 bytes"),
        (API_EXAMPLES, pods(json!({ "failedJobHistoryLimit": -1 })), "spec.failedJobHistoryLimit: Invalid value: -1"),
        (API_EXAMPLES, pods(json!({ "concurrencyPolicy": "x" })), "spec.concurrencyPolicy: Unsupported value"),
        (
            API_EXAMPLES,
            pods(json!({ "schedule": "every day" })),
            since(
                35,
                "spec.schedule: Invalid value: \"every day\": \
                 must have five fields, or be a descriptor such as @daily or @every 90s",
                "spec.schedule: Invalid value: \"string\": \
                 must have five fields, or be a descriptor such as @daily or @every 90s",
            ),
        ),
        (
            API_EXAMPLES,
            pods(json!({ "schedule": "" })),
            since(
                35,
                "spec.schedule: Invalid value: \"\": must have five fields",
                "spec.schedule: Invalid value: \"string\": must have five fields",
            ),
        ),
        (API_EXAMPLES, example(&long, &json!({})), "metadata.name: Too long"),
    ];
    for (resource, object, want) in &rows {
        let answer = request(client, Method::POST, &ns.path(*resource, ""), Some(object)).await;
        let message = answer.expect_err(want);
        assert!(message.contains(want), "{want}: {message}");
    }
    let change = json!({ "spec": { "schedule": "@often" } });
    let path = ns.path(CRON_JOBS, "minimal");
    let message = request(client, Method::PATCH, &path, Some(&change)).await.expect_err("a change is judged, too");
    assert!(message.contains("spec.schedule: Invalid value: \"@often\": unrecognized descriptor: @often"), "{message}");
    let status = json!({ "status": { "conditions": [{ "type": "Odd" }] } });
    let path = format!("{path}/status");
    let message = request(client, Method::PATCH, &path, Some(&status)).await.expect_err("and a status");
    assert!(message.contains("status.conditions[0].reason: Required value"), "{message}");
    rows.len() + 2
}

/// Checks that `kubectl get` shows the definition's columns and accepts the short names. `minimal` must exist.
pub async fn columns(cluster: &TestCluster) {
    let TestCluster { client, namespace: ns, .. } = cluster;
    let active = json!([{ "name": "minimal-1" }, { "name": "minimal-2" }]);
    let mut table = Value::Null;
    // A controller removes references to Jobs that do not exist, and may be faster than this reader.
    for _ in 0..20 {
        ns.patch_status(CRON_JOBS, "minimal", &json!({ "active": active })).await;
        let request = http::Request::get(ns.path(CRON_JOBS, "minimal"))
            .header(http::header::ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io")
            .body(Vec::new())
            .unwrap();
        table = client.request(request).await.unwrap();
        if table["rows"][0]["cells"][3] != Value::Null {
            break;
        }
    }
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let columns: Vec<_> = columns.map(|column| (&column["name"], &column["type"])).collect();
    let want = [
        ("Name", "string"),
        ("Schedule", "string"),
        ("Suspend", "boolean"),
        ("Active", "string"),
        ("Last Schedule", "date"),
        ("Age", "date"),
    ];
    assert_eq!(
        columns,
        want.map(|(name, kind)| (json!(name), json!(kind))).iter().map(|(a, b)| (a, b)).collect::<Vec<_>>()
    );
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[..3], [json!("minimal"), json!("@daily"), json!(false)]);
    assert_eq!(cells[3], "minimal-1", "no column of a definition can count");
    for (resource, short) in [(CRON_JOBS, "tcj"), (API_EXAMPLES, "apiex")] {
        let list = request(client, Method::GET, &format!("/{}", resource.0), None).await.unwrap();
        let found = list["resources"].as_array().unwrap().iter().find(|one| one["name"] == resource.1).unwrap();
        assert_eq!(found["shortNames"], json!([short]));
    }
}

/// The outcome of the Jobs and Pods of an object; the test stands in for kubelet and Job controller.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Runs,
    Succeeds,
    Fails,
}

/// The observed state of an object and of what it started.
#[derive(Default, Debug)]
struct Picture {
    passed: Duration,
    /// The names of everything that it started.
    started: BTreeSet<String>,
    /// The current objects.
    there: Vec<Value>,
    status: Value,
    reasons: Vec<Value>,
}

impl Picture {
    fn ended(&self) -> usize {
        self.there.iter().filter(|child| is_ended(child)).count()
    }

    fn is_told(&self, reason: &str) -> bool {
        self.reasons.iter().any(|told| told == reason)
    }

    /// Whether the status matches the current objects.
    fn is_right(&self) -> bool {
        let names = |objects: &[Value], path: &str| -> BTreeSet<String> {
            objects.iter().filter_map(|one| Some(one.pointer(path)?.as_str()?.to_owned())).collect()
        };
        let running: Vec<Value> = self.there.iter().filter(|child| !is_ended(child)).cloned().collect();
        let active = self.status["active"].as_array().map_or(&[][..], Vec::as_slice);
        let newest = self.started.iter().filter_map(|name| name.rsplit('-').next()?.parse().ok()).max();
        let newest = newest.and_then(|seconds| DateTime::<Utc>::from_timestamp(seconds, 0));
        names(active, "/name") == names(&running, "/metadata/name")
            && newest.is_none_or(|newest| self.status["lastScheduleTime"] == rfc3339(newest))
    }
}

fn is_ended(child: &Value) -> bool {
    let conditions = child["status"]["conditions"].as_array().into_iter().flatten();
    let is_final = |one: &Value| one["status"] == "True" && (one["type"] == "Complete" || one["type"] == "Failed");
    matches!(child["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) || conditions.into_iter().any(is_final)
}

/// One object, and the expectation about it.
struct Life {
    sentence: &'static str,
    parent: Resource,
    child: Resource,
    object: Value,
    /// The time since its last run, as if the controller had been down meanwhile.
    last: Option<TimeDelta>,
    fate: Fate,
    comes_true: fn(&Picture) -> bool,
    picture: Picture,
}

/// The name, the spec, the time since the last run, the outcome, and the expectation.
type Row = (&'static str, Value, Option<TimeDelta>, Fate, fn(&Picture) -> bool);

/// A period with several slots.
const A_WHILE: Duration = Duration::from_secs(7);

fn rows() -> Vec<Row> {
    let often = |mut spec: Value| {
        spec["schedule"] = json!("@every 2s");
        spec
    };
    let hourly = |deadline: Option<i64>| json!({ "schedule": "@every 1h", "startingDeadlineSeconds": deadline });
    // Half an hour after the slot.
    let late = Some(TimeDelta::minutes(90));
    vec![
        ("allow", often(json!({ "concurrencyPolicy": "Allow" })), None, Fate::Runs, |seen| {
            seen.there.len() >= 3 && seen.is_right()
        }),
        ("forbid", often(json!({ "concurrencyPolicy": "Forbid" })), None, Fate::Runs, |seen| {
            seen.passed > A_WHILE && seen.is_told("JobAlreadyActive") && seen.started.len() == 1 && seen.is_right()
        }),
        ("replace", often(json!({ "concurrencyPolicy": "Replace" })), None, Fate::Runs, |seen| {
            seen.started.len() >= 3 && seen.there.len() == 1 && seen.is_right()
        }),
        ("keeps-successful", often(json!({ "successful": 1, "failed": 0 })), None, Fate::Succeeds, |seen| {
            seen.started.len() >= 4 && seen.ended() == 1 && seen.there.len() == 1 && seen.is_right()
        }),
        ("keeps-failed", often(json!({ "successful": 0, "failed": 1 })), None, Fate::Fails, |seen| {
            seen.started.len() >= 4 && seen.ended() == 1 && seen.there.len() == 1 && seen.is_right()
        }),
        ("keeps-nothing", often(json!({ "successful": 0, "failed": 0 })), None, Fate::Succeeds, |seen| {
            seen.started.len() >= 3 && seen.there.is_empty() && seen.is_right()
        }),
        ("suspended", often(json!({ "suspend": true })), None, Fate::Runs, |seen| {
            seen.passed > A_WHILE && seen.started.is_empty() && seen.status["lastScheduleTime"].is_null()
        }),
        ("too-late", hourly(Some(60)), late, Fate::Runs, |seen| seen.passed > A_WHILE && seen.started.is_empty()),
        ("late", hourly(Some(3600)), late, Fate::Runs, |seen| seen.started.len() == 1 && seen.is_right()),
        ("without-deadline", hourly(None), late, Fate::Runs, |seen| seen.started.len() == 1 && seen.is_right()),
        // More than a hundred slots were missed: only the newest one starts.
        ("long-gone", json!({ "schedule": "@every 1m" }), Some(TimeDelta::hours(3)), Fate::Runs, |seen| {
            seen.is_told("TooManyMissedTimes") && !seen.started.is_empty() && seen.is_right()
        }),
    ]
}

fn lives() -> Vec<Life> {
    let mut lives = Vec::new();
    for (parent, child) in BOTH {
        for (sentence, mut spec, last, fate, comes_true) in rows() {
            let limits = match parent {
                CRON_JOBS => [("successful", "successfulJobsHistoryLimit"), ("failed", "failedJobsHistoryLimit")],
                _ => [("successful", "successfulJobHistoryLimit"), ("failed", "failedJobHistoryLimit")],
            };
            for (short, field) in limits {
                if let Some(limit) = spec.as_object_mut().unwrap().remove(short) {
                    spec[field] = limit;
                }
            }
            let object = if parent == CRON_JOBS { tutorial(sentence, &spec) } else { example(sentence, &spec) };
            lives.push(Life { sentence, parent, child, object, last, fate, comes_true, picture: Picture::default() });
        }
    }
    let at_the_minute = |seen: &Picture| {
        let seconds = |name: &String| name.rsplit('-').next().and_then(|seconds| seconds.parse::<i64>().ok());
        seen.started.iter().any(|name| seconds(name).is_some_and(|at| at % 60 == 0)) && seen.is_right()
    };
    for (parent, child, file) in
        [(CRON_JOBS, JOBS, "batch_v1_cronjob.yaml"), (API_EXAMPLES, PODS, "myapp_v1alpha1_apiexample.yaml")]
    {
        let mut object = sample(file);
        // The ApiExample's sample runs every five minutes, which is too long for a test.
        object["spec"]["schedule"] = json!("* * * * *");
        let (fate, picture) = (Fate::Succeeds, Picture::default());
        lives.push(Life {
            sentence: "sample",
            parent,
            child,
            object,
            last: None,
            fate,
            comes_true: at_the_minute,
            picture,
        });
    }
    lives
}

impl Life {
    fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap()
    }

    async fn begin(&self, cluster: &TestCluster) {
        cluster.namespace.create(self.parent, &self.object).await;
        if let Some(ago) = self.last {
            let last = json!({ "lastScheduleTime": rfc3339(cluster.clock.now() - ago) });
            cluster.namespace.patch_status(self.parent, self.name(), &last).await;
        }
    }

    /// Records the current objects, and finishes running ones by their `Fate`.
    async fn look(&mut self, cluster: &TestCluster, seen: &Seen) {
        let kind = self.object["kind"].clone();
        let name = self.name().to_owned();
        let is_about = |object: &Value| object["kind"] == kind && object["name"] == *name;
        let is_own = |child: &&Value| is_about(&child["metadata"]["ownerReferences"][0]);
        let told = |event: &&Value| {
            is_about(&event["involvedObject"])
                && event["involvedObject"]["apiVersion"]
                    .as_str()
                    .is_some_and(|version| self.parent.0.ends_with(version))
        };
        self.picture.there = seen.of(self.child).iter().filter(is_own).cloned().collect();
        self.picture.reasons = seen.of(EVENTS).iter().filter(told).map(|event| event["reason"].clone()).collect();
        let own = seen.of(self.parent).iter().find(|object| object["metadata"]["name"] == *name);
        self.picture.status = own.map(|object| object["status"].clone()).unwrap_or_default();
        for child in &self.picture.there {
            let child_name = child["metadata"]["name"].as_str().unwrap();
            self.picture.started.insert(child_name.to_owned());
            if self.fate != Fate::Runs && !is_ended(child) {
                let path = format!("{}/status", cluster.namespace.path(self.child, child_name));
                let status = json!({ "status": self.ending(cluster.clock.now()) });
                // The object may be gone by now.
                let _ = request(&cluster.client, Method::PATCH, &path, Some(&status)).await;
            }
        }
    }

    fn ending(&self, now: DateTime<Utc>) -> Value {
        let well = self.fate == Fate::Succeeds;
        if self.child == PODS {
            return json!({ "phase": if well { "Succeeded" } else { "Failed" } });
        }
        let kinds = if well { ["SuccessCriteriaMet", "Complete"] } else { ["FailureTarget", "Failed"] };
        let now = rfc3339(now);
        let conditions = kinds.map(|kind| json!({ "type": kind, "status": "True", "lastTransitionTime": now }));
        let mut status = json!({ "startTime": now, "conditions": conditions });
        if well {
            status["completionTime"] = json!(now);
        }
        status
    }
}

/// All objects of the namespace at one moment.
struct Seen(Vec<(Resource, Vec<Value>)>);

impl Seen {
    async fn take(ns: &Namespace) -> Self {
        let mut all = Vec::new();
        for resource in [CRON_JOBS, API_EXAMPLES, JOBS, PODS, EVENTS] {
            all.push((resource, ns.list(resource).await));
        }
        Self(all)
    }

    fn of(&self, resource: Resource) -> &[Value] {
        self.0.iter().find(|(of, _)| *of == resource).map_or(&[], |(_, objects)| objects)
    }
}

/// Runs all objects in parallel until each expectation is met; returns their number.
pub async fn live(cluster: &TestCluster) -> usize {
    let mut open = lives();
    let names: Vec<_> = open.iter().map(|life| (life.parent, life.name().to_owned())).collect();
    for life in &open {
        life.begin(cluster).await;
    }
    let began = tokio::time::Instant::now();
    loop {
        let seen = Seen::take(&cluster.namespace).await;
        for life in &mut open {
            life.picture.passed = began.elapsed();
            life.look(cluster, &seen).await;
        }
        open.retain(|life| !(life.comes_true)(&life.picture));
        if open.is_empty() {
            for (parent, name) in &names {
                cluster.namespace.delete(*parent, name).await;
            }
            return names.len();
        }
        if began.elapsed() > LONGEST_WAIT {
            let left: Vec<_> = open.iter().map(|life| (life.sentence, life.parent.1, &life.picture)).collect();
            panic!("these did not come true: {left:#?}");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
