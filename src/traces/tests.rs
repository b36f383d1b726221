//! Traces of fires, with an exporter that keeps the spans and with a collector on a socket.
#![allow(clippy::unwrap_used)]

use std::convert::Infallible;

use apimachinery::clock::TestClock;
use axum::Router;
use axum::body::Body;
use axum::routing::post;
use chrono::{TimeDelta, TimeZone};
use http::Request;
use http_body_util::BodyExt;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::SpanData;
use parking_lot::Mutex;

use super::*;
use crate::api::ControllerRef;
use crate::logging::tests::{Page, subscriber};

/// An exporter that keeps its spans.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<SpanData>>>);

impl opentelemetry_sdk::trace::SpanExporter for Kept {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().extend(batch);
        Ok(())
    }
}

fn slot() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 3, 1, 12, 0, 0).unwrap()
}

fn name(name: &str) -> ObjectName {
    ObjectName { namespace: "ns".into(), name: name.into() }
}

fn job(job: &str, cron_job: &str) -> Arc<Job> {
    Arc::new(Job {
        name: name(job),
        uid: job.into(),
        resource_version: "1".into(),
        creation_timestamp: slot(),
        deleting: false,
        controller: Some(Arc::new(ControllerRef {
            group: "batch".into(),
            kind: "CronJob".into(),
            name: cron_job.into(),
            uid: cron_job.into(),
        })),
        scheduled_timestamp: Some(slot()),
        start_time: None,
        has_ready_pod: false,
        suspended: false,
        parallelism_is_zero: false,
        managed_by_another: false,
        completion_time: None,
        finished: None,
        succeeded: false,
        failed_at: None,
        of_backfill: false,
    })
}

fn uid_of(job: &Job) -> Uid {
    job.controller.as_ref().unwrap().uid.clone()
}

type Failed = Result<Arc<Job>, &'static str>;

/// For each span the name, begin and end in milliseconds after the slot, and error; children after their fires.
fn told(kept: &Kept) -> Vec<(String, i64, i64, String)> {
    let after = |time: SystemTime| (DateTime::<Utc>::from(time) - slot()).num_milliseconds();
    let spans = std::mem::take(&mut *kept.0.lock());
    let mut rows = Vec::new();
    for fire in spans.iter().filter(|span| span.name == "fire") {
        let within = spans.iter().filter(|span| span.parent_span_id == fire.span_context.span_id());
        for span in std::iter::once(fire).chain(within) {
            assert_eq!(span.span_context.trace_id(), fire.span_context.trace_id());
            let error = match &span.status {
                Status::Error { description } => description.to_string(),
                _ => String::new(),
            };
            rows.push((span.name.to_string(), after(span.start_time), after(span.end_time), error));
        }
    }
    rows
}

fn row(span: &str, began: i64, ended: i64, error: &str) -> (String, i64, i64, String) {
    (span.to_owned(), began, ended, error.to_owned())
}

struct Bench {
    clock: Arc<TestClock>,
    traces: Arc<Traces>,
    kept: Kept,
}

impl Bench {
    fn new() -> Self {
        let (clock, kept) = (TestClock::new(slot()), Kept::default());
        let shared: SharedClock = clock.clone();
        let traces = Traces::new(SdkTracerProvider::builder().with_simple_exporter(kept.clone()), &shared);
        Self { clock, traces, kept }
    }

    fn pass(&self, millis: i64) {
        self.clock.step(TimeDelta::milliseconds(millis));
    }

    /// A request that takes this long.
    fn watch(&self, millis: i64) -> Stopwatch {
        let watch = Stopwatch::start(Some(&self.traces));
        self.pass(millis);
        watch
    }
}

#[tokio::test(start_paused = true)]
async fn a_fire_is_traced_from_its_slot_to_its_status() {
    let bench = Bench::new();
    let made = job("hello-1", "hello");
    bench.pass(3);
    bench.watch(10).created(&made.name, &Failed::Ok(made.clone()));
    assert!(bench.kept.0.lock().is_empty(), "its status is not written yet");
    bench.pass(100);
    bench.watch(7).settled::<(), _>(&name("hello"), &uid_of(&made), &Err("conflict"));
    bench.pass(50);
    bench.watch(5).settled::<_, &str>(&name("hello"), &uid_of(&made), &Ok(()));
    let attributes: Vec<String> = bench
        .kept
        .0
        .lock()
        .iter()
        .flat_map(|span| span.attributes.clone())
        .map(|a| format!("{}={}", a.key, a.value))
        .collect();
    assert_eq!(attributes, ["k8s.namespace.name=ns", "k8s.cronjob.name=hello", "k8s.job.name=hello-1"]);
    let want = [
        row("fire", 0, 175, "conflict"),
        row("create", 3, 13, ""),
        row("status", 113, 120, "conflict"),
        row("status", 170, 175, ""),
    ];
    assert_eq!(told(&bench.kept), want);
    bench.watch(5).settled::<_, &str>(&name("hello"), &uid_of(&made), &Ok(()));
    assert_eq!(told(&bench.kept), [], "a status without a fire is no trace");
}

#[tokio::test(start_paused = true)]
async fn a_create_that_is_refused_is_a_trace_of_its_own() {
    let bench = Bench::new();
    bench.pass(3);
    bench.watch(10).created(&name("hello-1"), &Failed::Err("quota"));
    assert_eq!(told(&bench.kept), [row("fire", 3, 13, "quota"), row("create", 3, 13, "quota")]);
}

#[tokio::test(start_paused = true)]
async fn number_of_fires_waiting_for_a_status_is_bounded() {
    let bench = Bench::new();
    for index in 0..100 {
        let made = job(&format!("hello-{index}"), "hello");
        bench.watch(1).created(&made.name, &Failed::Ok(made.clone()));
    }
    assert_eq!(bench.traces.waiting.iter().map(|waiting| waiting.len()).sum::<usize>(), WAITING);
}

#[tokio::test]
async fn nothing_is_recorded_without_an_exporter() {
    let made = job("hello-1", "hello");
    let watch = Stopwatch::start(None);
    assert!(watch.running.is_none());
    watch.created(&made.name, &Failed::Ok(made.clone()));
}

#[test]
fn environment_variables_choose_the_exporter_and_its_endpoint() {
    type Variables = &'static [(&'static str, &'static str)];
    type Endpoint = Result<Option<String>, &'static str>;
    let to = |endpoint: &str| Ok(Some(endpoint.to_owned()));
    let rows: [(&str, Variables, Endpoint); 14] = [
        ("off by default", &[], Ok(None)),
        ("a collector", &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/")], to("http://c:4318/v1/traces")),
        (
            "one for traces",
            &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c/t"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c")],
            to("https://c/t"),
        ),
        ("the default one", &[("OTEL_TRACES_EXPORTER", "otlp")], to("http://localhost:4318/v1/traces")),
        ("none", &[("OTEL_TRACES_EXPORTER", "none"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c")], Ok(None)),
        ("everything off", &[("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c")], Ok(None)),
        ("an empty variable is none", &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], Ok(None)),
        (
            "the protocol that there is",
            &[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"), ("OTEL_TRACES_EXPORTER", "otlp")],
            to("http://localhost:4318/v1/traces"),
        ),
        (
            "a protocol of traces goes first",
            &[
                ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
                ("OTEL_TRACES_EXPORTER", "otlp"),
            ],
            to("http://localhost:4318/v1/traces"),
        ),
        (
            "another protocol",
            &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c")],
            Err("OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not allowed; use http/protobuf"),
        ),
        ("another protocol without traces", &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], Ok(None)),
        (
            "another exporter",
            &[("OTEL_TRACES_EXPORTER", "zipkin")],
            Err("OTEL_TRACES_EXPORTER: zipkin is not allowed; use otlp or none"),
        ),
        (
            "no URL for traces",
            &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "c:4318"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c")],
            Err("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: c:4318 is not allowed; use a URL such as http://collector:4318"),
        ),
        (
            "no URL",
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4318")],
            Err(
                "OTEL_EXPORTER_OTLP_ENDPOINT: c:4318/v1/traces is not allowed; use a URL such as http://collector:4318",
            ),
        ),
    ];
    for (sentence, variables, want) in rows {
        let variable =
            |name: &str| variables.iter().find(|(found, _)| *found == name).map(|(_, value)| (*value).to_owned());
        let found = environment::wanted(&variable).map(|wanted| wanted.map(|wanted| wanted.endpoint.url));
        assert_eq!(found.map_err(|error| error.to_string()), want.map_err(str::to_owned), "{sentence}");
    }
}

/// The endpoint of this URL for all signals.
fn endpoint(url: &str) -> Result<Option<Wanted>, TracesError> {
    environment::wanted(&|name| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| url.to_owned()))
}

#[tokio::test]
async fn user_password_and_query_of_the_endpoint_are_in_no_log_line_and_no_error() {
    let rows = [
        ("http://me:s3cret@c:4318", "http://c:4318/v1/traces"),
        ("https://s3cret@c/otlp/?key=s3cret", "https://c/otlp/v1/traces"),
        ("http://me:s3cret@[::1]:4318/", "http://[::1]:4318/v1/traces"),
        ("http://me:x@s3cret@c", "http://c/v1/traces"),
        ("http://c?key=s3cret", "http://c/v1/traces"),
        ("http://me:x/s3cret@c", "(hidden: an @ after its host)"),
        ("http://me:x?s3cret@c", "(hidden: an @ after its host)"),
        ("http://me:x#s3cret@c", "(hidden: an @ after its host)"),
        ("grpc://me:s3cret@c", "grpc://c/v1/traces is not allowed"),
        ("me:s3cret@c:4318", "c:4318/v1/traces is not allowed"),
        ("http://me:s3cret@not a host", "http://not a host/v1/traces: invalid"),
        ("http://me:s3cret@", "http:///v1/traces: "),
    ];
    let clock: SharedClock = TestClock::new(slot());
    for (url, want) in rows {
        let page = Page::default();
        let result = tracing::subscriber::with_default(subscriber(5, &page), || {
            endpoint(url).and_then(|wanted| Traces::to_collector(&wanted.unwrap(), &clock))
        });
        let lines = page.lines().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let error = result.err().map(|error| format!("{error} {error:?}")).unwrap_or_default();
        assert!(lines.contains(want) || error.contains(want), "{url}: {lines} {error}");
        assert!(!(lines.contains("s3cret") || error.contains("s3cret")), "{url}: {lines} {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_are_encoded_as_otlp() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://me:s3cret@{}?key=value", listener.local_addr().unwrap());
    let (batches, mut received) = tokio::sync::mpsc::unbounded_channel();
    let receive = post(async move |request: Request<Body>| {
        let target = request.uri().to_string();
        let kind = request.headers()["content-type"].to_str().unwrap().to_owned();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        batches.send((target, kind, body)).unwrap();
        Ok::<_, Infallible>("")
    });
    tokio::spawn(axum_serve(listener, Router::new().route("/v1/traces", receive)));
    let clock: SharedClock = TestClock::new(slot());
    let traces = Traces::to_collector(&endpoint(&url).unwrap().unwrap(), &clock).unwrap();
    Stopwatch::start(Some(&traces)).created(&name("hello-1"), &Failed::Err("quota"));
    traces.shut_down().await;
    let (target, kind, body) = received.try_recv().unwrap();
    assert_eq!(target, "/v1/traces?key=value");
    assert_eq!(kind, "application/x-protobuf");
    for text in ["cronjob-controller", "service.version", "fire", "create", "k8s.job.name", "hello-1", "quota"] {
        assert!(body.windows(text.len()).any(|window| window == text.as_bytes()), "{text} is not in it");
    }
}

/// Serves HTTP, one connection after the other.
async fn axum_serve(listener: tokio::net::TcpListener, router: Router) {
    while let Ok((stream, _)) = listener.accept().await {
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        let builder = hyper_util::server::conn::auto::Builder::new(hyper_util::rt::TokioExecutor::new());
        let _ = builder.serve_connection(hyper_util::rt::TokioIo::new(stream), service).await;
    }
}

/// A create whose Pods were told of the trace; returns what they were told.
fn announced(bench: &Bench, made: &Arc<Job>, reply: &Failed) -> String {
    let cron_job = name("hello");
    let told = bench.traces.announce(&cron_job, &made.name, slot()).unwrap();
    let watch = Stopwatch::of_create(Some(&bench.traces), &made.name);
    bench.pass(10);
    watch.created(&made.name, reply);
    told
}

/// The fires that were exported, as Pods would be told of them.
fn fires(bench: &Bench) -> Vec<String> {
    let spans = bench.kept.0.lock();
    let contexts = spans.iter().filter(|span| span.name == "fire").map(|span| &span.span_context);
    contexts.map(|context| format!("00-{}-{}-01", context.trace_id(), context.span_id())).collect()
}

#[tokio::test(start_paused = true)]
async fn pods_are_told_of_the_fire_that_is_exported() {
    let bench = Bench::new();
    bench.pass(3);
    let made = job("hello-1", "hello");
    let refused = announced(&bench, &made, &Failed::Err("quota"));
    assert_eq!(fires(&bench), [refused]);
    assert_eq!(told(&bench.kept), [row("fire", 0, 13, "quota"), row("create", 3, 13, "quota")]);

    let jobs = [made, job("hello-2", "hello")];
    let mut want = jobs.each_ref().map(|made| announced(&bench, made, &Failed::Ok(made.clone())));
    assert!(bench.traces.announced.is_empty());
    bench.watch(5).settled::<_, &str>(&name("hello"), &uid_of(&jobs[0]), &Ok(()));
    let mut found = fires(&bench);
    want.sort();
    found.sort();
    assert_eq!(found, want, "each of two Jobs that one status names has its own");
}

#[tokio::test(start_paused = true)]
async fn number_of_fires_that_are_announced_and_not_begun_is_bounded() {
    let bench = Bench::new();
    for index in 0..10 * ANNOUNCED {
        bench.traces.announce(&name("hello"), &name(&format!("hello-{index}")), slot());
    }
    assert!(bench.traces.announced.len() <= ANNOUNCED);
}
