//! The cases of the table.

use std::fs;
use std::time::Duration;

use chrono::{Datelike as _, NaiveDate, Utc};
use http::Method;
use serde_json::json;
use testkit::driver::{CRON_JOBS, cron_job, request};
use tokio::time::Instant;

use crate::cluster::{Dev, HOT, annotate};
use crate::command::{self, LIMIT, Took};
use crate::flood::{self, Flood};
use crate::manifests::{KINDS, Kind, NESTED, config_map, list, manifest, unknown_annotations};
use crate::runner::Case;
use crate::table::{Figure, Seen, Unit, float};

/// How deep a document is nested that no decoder has to read.
const DEPTH: usize = 20_000;
/// How many of them are sent at once.
const BATCH: usize = 20;
/// How often a CronJob is changed to measure what one change costs.
const UPDATES: usize = 20;

pub fn all() -> Vec<Case> {
    let mut cases: Vec<Case> = KINDS
        .iter()
        .map(|kind| Case {
            name: format!("one CronJob: {}", kind.name),
            run: Box::new(move || Box::pin(one_of_a_kind(Some(kind)))),
        })
        .collect();
    cases.push(Case {
        name: "one CronJob: an ordinary one, to compare".to_owned(),
        run: Box::new(|| Box::pin(one_of_a_kind(None))),
    });
    cases.push(Case {
        name: "memory: unknown annotations, 100 CronJobs".to_owned(),
        run: Box::new(|| Box::pin(memory_of_names())),
    });
    for count in [250, 1_000, 10_000] {
        let name = format!("check: a List of {count} CronJobs");
        cases.push(Case { name, run: Box::new(move || Box::pin(check(list(count), 5.0, 400.0))) });
    }
    cases.push(Case {
        name: "check: 4,000 unknown annotations".to_owned(),
        run: Box::new(|| Box::pin(check(manifest(&[unknown_annotations("names", 4_000)]), 1.0, 100.0))),
    });
    cases.push(Case { name: format!("dev: YAML nested {DEPTH} deep"), run: Box::new(|| Box::pin(nested_documents())) });
    cases.extend(flood::all().into_iter().map(|flood: Flood| Case {
        name: format!("lease: {}", flood.name),
        run: Box::new(move || Box::pin(flood.run())),
    }));
    cases
}

/// What the controller takes for one CronJob, and each command.
async fn one_of_a_kind(kind: Option<&'static Kind>) -> Vec<Figure> {
    let object = kind.map_or_else(|| cron_job("one", "0 0 * * *", &json!({})), |kind| kind.cron_job("one"));
    let dev = Dev::start_alone().await;
    let hot = dev.namespace(HOT);
    let mut controller = dev.controller(None, &["--leader-elect=false"]);
    // Until its informers have listed.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let idle = controller.rest().await;
    let since = |seen: Seen, from: Seen| match from {
        Seen::Exactly(from) => seen.map(|cpu| cpu - from),
        Seen::MoreThan(_) | Seen::Nothing => Seen::Nothing,
    };

    if kind.is_some_and(|kind| kind.is_overdue) {
        let new_year = NaiveDate::from_ymd_opt(Utc::now().year(), 1, 1).unwrap().and_hms_opt(0, 0, 0).unwrap();
        hot.create_overdue(&object, new_year.and_utc()).await;
    } else {
        hot.create(CRON_JOBS, &object).await;
    }
    let created = controller.rest().await;
    let mut figures = vec![Figure::seconds("create, CPU", since(created, idle)).at_most(0.05)];

    let (mut turn, mut last, started) = (0, created, Instant::now());
    while turn < UPDATES && started.elapsed() < LIMIT && matches!(last, Seen::Exactly(_)) {
        turn += 1;
        assert!(annotate(&dev.client, "one", turn).await, "the update was refused");
        last = controller.rest().await;
    }
    let update = since(last, created).map(|cpu| cpu / float(turn.max(1)));
    figures.push(Figure::seconds("update, CPU", update).at_most(0.01));
    drop(controller);

    let file = dev.directory.path().join("one.yaml");
    fs::write(&file, manifest(&[object])).unwrap();
    let kubeconfig = dev.kubeconfig.clone();
    let took = blocking(move || {
        [
            ("next", command::run(&["next", "-f"], Some(&file))),
            ("check", command::run(&["check", "-f"], Some(&file))),
            ("list", command::run(&["list", "--namespace", HOT, "--kubeconfig"], Some(&kubeconfig))),
        ]
    })
    .await;
    figures.extend(took.map(|(what, Took { cpu, .. })| Figure::seconds(format!("{what}, CPU"), cpu).at_most(0.1)));
    figures
}

/// How much the controller grows with CronJobs that have nothing but unknown annotations.
async fn memory_of_names() -> Vec<Figure> {
    const CRON_JOBS_OF_NAMES: usize = 100;
    let dev = Dev::start_alone().await;
    let hot = dev.namespace(HOT);
    let mut controller = dev.controller(None, &["--leader-elect=false"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    controller.rest().await;
    let before = controller.usage().expect("the controller runs").resident;
    for at in 0..CRON_JOBS_OF_NAMES {
        hot.create(CRON_JOBS, &unknown_annotations(&format!("names-{at}"), usize::MAX)).await;
    }
    controller.rest().await;
    let after = controller.usage().expect("the controller runs").resident;
    vec![
        Figure::new("resident before", Seen::Exactly(before), Unit::Megabytes),
        Figure::new("growth", Seen::Exactly(after - before), Unit::Megabytes).at_most(20.0),
    ]
}

async fn check(text: String, seconds: f64, megabytes: f64) -> Vec<Figure> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("objects.yaml");
    fs::write(&file, text).unwrap();
    blocking(move || command::run(&["check", "-f"], Some(&file))).await.figures("check", seconds, megabytes)
}

/// How long the embedded API server takes to refuse deep documents, and what another client notices of it.
async fn nested_documents() -> Vec<Figure> {
    const PATH: &str = "/api/v1/namespaces/default/configmaps";
    let dev = Dev::start_alone().await;
    let seen = |started: Instant, is_answered: bool| {
        let seconds = started.elapsed().as_secs_f64();
        if is_answered { Seen::Exactly(seconds) } else { Seen::MoreThan(seconds) }
    };
    let mut figures = Vec::new();
    for (name, text) in NESTED {
        let (cpu, started) = (dev.usage().cpu, Instant::now());
        let answer = dev.post_yaml(PATH, config_map(&text(DEPTH))).await;
        assert!(answer.is_none_or(|status| (400..500).contains(&status)), "{name}: the answer was {answer:?}");
        figures.push(Figure::seconds(name, seen(started, answer.is_some())).at_most(0.2));
        figures.push(Figure::seconds(format!("{name}, CPU"), Seen::Exactly(dev.usage().cpu - cpu)));
    }
    let (started, forms) = (Instant::now(), NESTED.iter().cycle().take(BATCH));
    let all = futures::future::join_all(forms.map(|(_, text)| dev.post_yaml(PATH, config_map(&text(DEPTH)))));
    let beside = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let asked = Instant::now();
        let answer = tokio::time::timeout(LIMIT, request(&dev.client, Method::GET, "/version", None)).await;
        seen(asked, answer.is_ok_and(|answer| answer.is_ok()))
    };
    let (answers, beside) = tokio::join!(all, beside);
    figures.push(
        Figure::seconds(format!("{BATCH} at once"), seen(started, answers.iter().all(Option::is_some))).at_most(2.0),
    );
    figures.push(Figure::seconds("a GET beside them", beside).at_most(1.0));
    figures
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}
