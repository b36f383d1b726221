//! Jobs that are started by hand on a cluster that runs them, with paused time.

use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::{SharedClock, TestClock};
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::*;
use crate::cli::explain::tests::{instant, post};
use crate::dev::cluster::{self as dev, Cluster};
use crate::dev::kubelet::Settings;

const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// A cluster with the CronJob `c`, whose containers run for 30 s.
struct World {
    client: Client,
    clock: Arc<TestClock>,
    cluster: Cluster,
}

/// The answer, and what went to stdout and to stderr before it.
struct Ended {
    answer: Result<Answer, String>,
    out: String,
    err: String,
}

impl World {
    /// `job` changes the spec of the Job.
    async fn new(job: Value) -> Self {
        let clock = TestClock::new(instant("2026-11-19T03:00:00Z"));
        let shared: SharedClock = clock.clone();
        let settings = Settings { duration: Duration::from_secs(30), failure_rate: 0.0, seed: 7 };
        let server = dev::api_server(Arc::clone(&shared), 7);
        let config = dev::Config { clock: shared, seed: 7, settings, controllers: Vec::new() };
        let cluster = Cluster::start(&server, &config, Vec::new());
        let containers = json!([
            {"name": "main", "image": "i", "args": ["old"], "env": [{"name": "A", "value": "1"}]}, {"name": "proxy", "image": "p"},
        ]);
        let mut spec = json!({"template": {"spec": {"restartPolicy": "Never", "containers": containers}}});
        json_patch(&mut spec, &job);
        let object = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"},
            "spec": {"schedule": "0 2 * * *", "suspend": true, "jobTemplate": {"spec": spec}},
        });
        let world = Self { client: server.client(), clock, cluster };
        post(&world.client, CRON_JOBS, &object).await;
        world
    }

    async fn call(&self, request: Request) -> Ended {
        self.call_while(request, |_| true).await
    }

    /// Calls the command; `is_open` says of each text whether stdout takes it.
    async fn call_while(&self, request: Request, is_open: impl Fn(&str) -> bool) -> Ended {
        let request = Request { name: Some("once".to_owned()), ..request };
        let (mut out, mut err) = (String::new(), String::new());
        let mut print = |text: &PlainText| {
            out.push_str(text);
            is_open(text)
        };
        let mut note = |text: &PlainText| err.push_str(text);
        let mut outlet = Outlet { print: &mut print, note: &mut note };
        let place = ("default", "c");
        let answer =
            trigger_with(&self.client, ControllerKind::CronJob, place, &request, &*self.clock, &mut outlet).await;
        Ended { answer: answer.map_err(|error| error.to_string()), out, err }
    }

    async fn get(&self, path: &str) -> Option<Value> {
        let text = cluster::read_text(&self.client, path).await.ok()?;
        Some(serde_json::from_str(&text).unwrap())
    }
}

/// A merge of objects.
fn json_patch(into: &mut Value, from: &Value) {
    match from.as_object() {
        Some(fields) => fields.iter().for_each(|(key, value)| json_patch(&mut into[key], value)),
        None => *into = from.clone(),
    }
}

fn changed(container: Option<&str>) -> JobChanges {
    JobChanges {
        container: container.map(str::to_owned),
        env: [("A", "2"), ("B", "3")].map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec(),
        args: vec!["--new".to_owned()],
    }
}

fn until(until: Until) -> Request {
    Request { until, ..Request::default() }
}

#[tokio::test(start_paused = true)]
async fn changes_are_in_the_job_and_named_in_its_annotation() {
    let world = World::new(json!({})).await;
    let ended = world.call(Request { changes: changed(None), ..Request::default() }).await;
    let text = ended.answer.unwrap().text;
    assert!(
        text.contains("It is suspended (spec.suspend); this Job starts all the same.\nJob default/once was created.\n"),
        "{text:?}"
    );
    assert_eq!(ended.err, "Container main is taken, out of main, proxy; -c names another.\n");
    let job = world.get(&format!("{JOBS}/once")).await.unwrap();
    let main = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(main["env"], json!([{"name": "A", "value": "2"}, {"name": "B", "value": "3"}]));
    assert_eq!(main["args"], json!(["--new"]));
    let annotations = &job["metadata"]["annotations"];
    let summary = r#"{"args":true,"container":"main","env":["A","B"]}"#;
    assert_eq!(annotations["cronjob-controller.dev/trigger"], summary);
    assert_eq!(annotations["cronjob.kubernetes.io/instantiate"], "manual");
    world.cluster.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unknown_container_is_refused_with_the_known_ones() {
    let world =
        World::new(json!({"template": {"spec": {"initContainers": [{"name": "migrate", "image": "m"}]}}})).await;
    for changes in [changed(Some("web")), JobChanges { container: Some("web".to_owned()), ..JobChanges::default() }] {
        let error = world.call(Request { changes, ..Request::default() }).await.answer.unwrap_err();
        let want = "there is no container web; its containers are main, proxy, migrate";
        assert!(error.starts_with("start a Job of CronJob default/c: ") && error.ends_with(want), "{error}");
    }
    assert_eq!(world.get(JOBS).await.unwrap()["items"], json!([]));
    world.cluster.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dry_run_creates_nothing_and_prints_the_job() {
    let world = World::new(json!({})).await;
    for (dry_run, word, has_uid) in [(DryRun::Client, "client", false), (DryRun::Server, "server", true)] {
        let request = |format| Request { dry_run, format, changes: changed(Some("proxy")), ..Request::default() };
        let ended = world.call(request(Format::Table)).await;
        let text = ended.answer.unwrap().text;
        assert!(text.ends_with(&format!("Job default/once would be created ({word} dry run).\n")), "{text:?}");
        let yaml = world.call(request(Format::Yaml)).await.answer.unwrap().text;
        assert!(yaml.starts_with("apiVersion: batch/v1\nkind: Job\n"), "{yaml:?}");
        let ended = world.call(request(Format::Json)).await;
        let job: Value = serde_json::from_str(&ended.answer.unwrap().text).unwrap();
        assert_eq!((&job["kind"], &job["metadata"]["name"]), (&json!("Job"), &json!("once")));
        assert_eq!(job["spec"]["template"]["spec"]["containers"][1]["args"], json!(["--new"]));
        assert_eq!((job["metadata"]["uid"].is_string(), ended.err), (has_uid, String::new()));
    }
    assert_eq!(world.get(JOBS).await.unwrap()["items"], json!([]));
    world.cluster.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn wait_lasts_until_the_job_has_ended_and_its_result_is_the_answer() {
    let fails = json!({"backoffLimit": 0, "template": {"metadata": {"annotations": {"cronjob-controller.dev/outcome": "fail"}}}});
    let gone = json!({"ttlSecondsAfterFinished": 0});
    let rows = [
        ("it succeeds", json!({}), true, "Job default/once succeeded.\n"),
        ("it is deleted at its end", gone, true, "Job default/once succeeded.\n"),
        ("it fails", fails, false, "Job default/once failed.\n  BackoffLimitExceeded: "),
    ];
    for (sentence, job, is_good, last) in rows {
        let world = World::new(job).await;
        let start = world.clock.now();
        let ended = world.call(until(Until::Ended)).await;
        assert_eq!(ended.answer.unwrap().is_good, is_good, "{sentence}");
        assert!(
            ended.out.contains("Job default/once was created.\n") && ended.out.contains(last),
            "{sentence}: {}",
            ended.out
        );
        assert_eq!(ended.err, "", "{sentence}");
        let took = world.clock.now() - start;
        assert!(took >= TimeDelta::seconds(30) && took < TimeDelta::seconds(40), "{sentence}: {took}");
        world.cluster.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn wait_says_why_a_job_does_not_end_and_that_it_was_deleted() {
    let world = World::new(json!({"suspend": true})).await;
    let request = until(Until::Ended);
    let (ended, ()) = tokio::join!(world.call(request), async {
        tokio::time::sleep(Duration::from_secs(45)).await;
        let uid = crate::api::Uid::new(
            world.get(&format!("{JOBS}/once")).await.unwrap()["metadata"]["uid"].as_str().unwrap(),
        );
        cluster::delete(&world.client, &format!("{JOBS}/once"), &uid).await.unwrap();
    });
    assert!(!ended.answer.unwrap().is_good);
    assert!(ended.out.ends_with("Job default/once was deleted before it ended.\n"), "{}", ended.out);
    let why = "once: It is suspended (spec.suspend), so it has no Pods.\n  kubectl describe -n default job once\n";
    assert_eq!(ended.err, why, "it is told once");
    world.cluster.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn follow_prints_the_log_of_each_pod_until_the_job_has_ended() {
    let outcome = |outcome: &str| json!({"metadata": {"annotations": {"cronjob-controller.dev/outcome": outcome}}});
    let again = json!({"backoffLimit": 1, "template": outcome("fail")});
    let mut restarts = again.clone();
    restarts["template"]["spec"]["restartPolicy"] = json!("OnFailure");
    restarts["backoffLimit"] = json!(2);
    let rows = [
        ("one Pod", json!({}), true, 1, vec![], "succeeded.\n"),
        ("another Pod after a failure", again, false, 2, vec![], "failed.\n"),
        ("a restart in its Pod", restarts, false, 2, vec!["restart 1"], "failed.\n"),
        ("Pods beside each other", json!({"parallelism": 2, "completions": 2}), true, 2, vec![], "succeeded.\n"),
        ("a Job that is deleted at its end", json!({"ttlSecondsAfterFinished": 0}), true, 1, vec![], "succeeded.\n"),
    ];
    for (sentence, job, is_good, logs, notes, last) in rows {
        let world = World::new(job).await;
        let request = Request { changes: changed(Some("main")), ..until(Until::Logged) };
        let ended = world.call(request).await;
        let Ended { answer, out, err } = ended;
        assert_eq!(answer.unwrap(), Answer { text: PlainText::default(), is_good }, "{sentence}: {out}{err}");
        for (what, number) in [("nothing runs, and this is all of its log.", logs), ("command: --new", logs)] {
            assert_eq!(out.matches(what).count(), number, "{sentence}: {what}: {out}{err}");
        }
        // In this cluster a restart takes the end of the log before it with it.
        let ends = if notes.is_empty() { logs } else { 0 };
        assert_eq!(out.matches("exit code: ").count(), ends, "{sentence}: {out}{err}");
        assert!(err.contains("Job default/once was created.\n") && err.contains(last), "{sentence}: {err}");
        assert!(notes.iter().all(|note| err.contains(note)), "{sentence}: {err}");
        let has_prefix = out.lines().all(|line| line.starts_with("[pod/once-") && line.contains("/main] "));
        assert_eq!(has_prefix, sentence == "Pods beside each other", "{out}");
        world.cluster.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn closed_output_ends_the_command_and_not_the_job() {
    let world = World::new(json!({})).await;
    let ended = world.call_while(until(Until::Logged), |_| false).await;
    assert!(!ended.answer.unwrap().is_good);
    assert_eq!(ended.out.lines().count(), 1, "{}", ended.out);
    assert!(world.get(&format!("{JOBS}/once")).await.is_some());
    world.cluster.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn freeze_of_the_namespace_is_said_and_holds_nothing() {
    let world = World::new(json!({})).await;
    let patch = async |path: &str, change: Value| {
        cluster::merge_patch(&world.client, path, &change, "change it").await.unwrap();
    };
    patch(&format!("{CRON_JOBS}/c"), json!({"spec": {"suspend": false}})).await;
    let annotations = json!({
        "cronjob-controller.dev/not-before": "2026-11-20T00:00:00Z", "cronjob-controller.dev/reason": "release week",
    });
    let freeze = json!({"metadata": {"annotations": annotations}});
    patch("/api/v1/namespaces/default", freeze).await;
    let managed =
        json!({"metadata": {"annotations": {"cronjob-controller.dev/managed": "true"}}, "spec": {"suspend": true}});
    patch(&format!("{CRON_JOBS}/c"), managed).await;
    let text = world.call(Request::default()).await.answer.unwrap().text;
    let want = "Its Namespace is frozen: \"release week\", until Fri 2026-11-20 00:00:00 +00:00; this Job starts all the same.\n\
                Job default/once was created.\n";
    assert!(text.contains(want), "{text:?}");
    assert!(world.get(&format!("{JOBS}/once")).await.is_some());
}
