//! The embedded API server applies the CustomResourceDefinitions and the webhook configurations of `manifests/`. The
//! end-to-end tests check the tutorial's CronJobs and ApiExamples on the real server; this test does so on paused time,
//! from the same tables. The webhooks are the controller's own. HTTPS is replaced by a function call, except in the
//! certificate test.
#![allow(clippy::unwrap_used, clippy::explicit_write, missing_docs)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::{SharedClock, SystemClock, TestClock};
use apiserver::{ApiServer, WebhookAnswer, WebhookCall, webhooks_over_https};
use axum::body::Body;
use cronjob_controller::api::ControllerKind;
use cronjob_controller::app;
use cronjob_controller::options::{self, SelfSignedWebhook, WebhookCertificate, WebhookConfig};
use cronjob_controller::server::TlsParameters;
use cronjob_controller::webhook::{self, Pace, Webhooks};
use futures::FutureExt;
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt;

use testkit::controller_kinds::{self, API_EXAMPLES, CRON_JOBS, TestCluster};
use testkit::driver::{self, Namespace, request};
use testkit::embedded::{self, Served};
use testkit::rotation::{self, Issued, Stage, Timeouts};
use testkit::tools;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1";

/// The documents of a file below `manifests`.
fn documents(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

/// Calls the controller's webhooks as an API server would, without a network.
async fn ask(call: WebhookCall) -> WebhookAnswer {
    let path = call.webhook["clientConfig"]["service"]["path"].as_str().ok_or("the configuration names no Service")?;
    let question = Request::post(path).header("content-type", "application/json");
    let question = question.body(Body::from(call.review.to_string())).map_err(|error| error.to_string())?;
    let answer = webhook::router().oneshot(question).await.unwrap();
    let (status, body) = (answer.status(), answer.into_body().collect().await.unwrap().to_bytes());
    if !status.is_success() {
        return Err(String::from_utf8_lossy(&body).into_owned());
    }
    serde_json::from_slice(&body).map_err(|error| error.to_string())
}

/// A server without applied objects.
fn bare() -> (ApiServer, TestCluster) {
    let clock: SharedClock = TestClock::new("2026-11-20T18:20:30Z".parse().unwrap());
    let server = embedded::server(Arc::clone(&clock));
    let client = server.client();
    server.set_webhook_caller(Arc::new(|call| ask(call).boxed()));
    let namespace = Namespace::existing(client.clone(), "default");
    (server, TestCluster { client, clock, namespace, minor: 37 })
}

/// A server with the definitions.
async fn defined() -> (ApiServer, TestCluster) {
    let (server, cluster) = bare();
    let definitions = ["batch.tutorial.kubebuilder.io_cronjobs", "myapp.my.domain_apiexamples"];
    for definition in definitions.into_iter().flat_map(|name| documents(&format!("crd/bases/{name}.yaml"))) {
        let stored = request(&cluster.client, Method::POST, DEFINITIONS, Some(&definition)).await.unwrap();
        assert_eq!(stored["status"]["conditions"][1]["type"], "Established");
    }
    (server, cluster)
}

/// A server with the definitions and the configurations.
async fn cluster() -> (ApiServer, TestCluster) {
    let (server, cluster) = defined().await;
    for configuration in documents("webhook/manifests.yaml") {
        let plural = format!("{}s", configuration["kind"].as_str().unwrap().to_lowercase());
        request(&cluster.client, Method::POST, &format!("{WEBHOOKS}/{plural}"), Some(&configuration)).await.unwrap();
    }
    (server, cluster)
}

async fn what_is_stored_and_refused(cluster: &TestCluster) {
    controller_kinds::defaults(cluster).await;
    assert!(controller_kinds::refusals(cluster).await > 20);
    controller_kinds::columns(cluster).await;
}

/// The behaviour of the kinds under their controllers.
async fn live(cluster: &TestCluster) {
    let controllers = vec![ControllerKind::Tutorial, ControllerKind::ApiExample];
    let config = options::Config { controllers, ..options::Config::embedded(4.try_into().unwrap()) };
    let stop = CancellationToken::new();
    let controller = tokio::spawn({
        let (client, clock, stop) = (cluster.client.clone(), Arc::clone(&cluster.clock), stop.clone());
        async move { app::run_embedded(&config, &client, &clock, 1, stop).await }
    });
    assert_eq!(controller_kinds::live(cluster).await, 24);
    stop.cancel();
    controller.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn defaults_refusals_and_columns_are_those_of_the_real_server() {
    let (_server, cluster) = cluster().await;
    what_is_stored_and_refused(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn policies_limits_deadlines_suspension_and_status_are_those_of_the_real_server() {
    let (_server, cluster) = cluster().await;
    live(&cluster).await;
}

/// The order of deletions: a definition after its objects.
async fn a_moment() {
    tokio::time::sleep(Duration::from_secs(5)).await;
}

/// The kubectl commands, and their output for each object.
type Applied<'a> = (&'a [&'a str], fn(&str) -> bool);

#[tokio::test(start_paused = true)]
async fn tutorial_applied_by_kubectl_behaves_the_same() {
    if !tools::has_kubectl("controller_kinds") {
        return;
    }
    let (server, cluster) = bare();
    let listening = Served::start(server).await;
    let rows: [Applied; 3] = [
        (&["apply"], |line| line.ends_with(" created")),
        (&["apply"], embedded::is_unchanged),
        (&["apply", "--server-side", "--force-conflicts"], |line| line.ends_with(" serverside-applied")),
    ];
    for (how, holds) in rows {
        let said = listening.each(&[how, &["-k", "manifests/tutorial-self-signed"]].concat()).await;
        assert!(said.len() > 20 && said.iter().all(|line| holds(line)), "{said:#?}");
    }
    what_is_stored_and_refused(&cluster).await;
    live(&cluster).await;

    listening.each(&["apply", "-k", "manifests/samples/tutorial"]).await;
    let shown = listening.each(&["get", "tcj,apiex", "--show-kind"]).await.join("\n");
    assert!(shown.contains("cronjob.batch.tutorial.kubebuilder.io/cronjob-sample   * * * * *"), "{shown}");
    assert!(shown.contains("apiexample.myapp.my.domain/apiexample-sample"), "{shown}");
    // Applies a second time without changes, as a user might: with the defaults that a webhook has set.
    let said = listening.each(&["apply", "-k", "manifests/samples/tutorial"]).await;
    assert!(said.iter().all(|line| line.ends_with(" unchanged")), "{said:#?}");
    listening.each(&["delete", "-k", "manifests/samples/tutorial"]).await;
    // No time passes while kubectl runs, so it would wait for ever for the end of the namespace.
    let said = listening.each(&["delete", "--wait=false", "-k", "manifests/tutorial-self-signed"]).await;
    assert!(said.iter().all(|line| line.ends_with(" deleted")), "{said:#?}");
    a_moment().await;
    let (found, said) = listening.kubectl(&["get", "tcj"]).await;
    assert!(!found && said.contains("the server could not find the requested resource"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn unreachable_webhook_blocks_writes_but_no_deletion_and_no_status() {
    let (server, cluster) = cluster().await;
    let ns = &cluster.namespace;
    let object = controller_kinds::tutorial("minimal", &json!({ "suspend": true }));
    ns.create(CRON_JOBS, &object).await;
    server.set_webhook_caller(Arc::new(|_| async { Err("connection refused".to_owned()) }.boxed()));
    let message = request(&cluster.client, Method::POST, &ns.path(CRON_JOBS, ""), Some(&object)).await.unwrap_err();
    assert!(message.contains("failed calling webhook \"mcronjob.kb.io\": failed to call webhook: connection refused"));
    ns.create(API_EXAMPLES, &controller_kinds::example("pods", &json!({}))).await;
    ns.patch_status(CRON_JOBS, "minimal", &json!({ "lastScheduleTime": "2026-01-01T00:00:00Z" })).await;
    ns.delete(CRON_JOBS, "minimal").await;
    assert!(ns.get(CRON_JOBS, "minimal").await.is_none());

    let path = format!("{WEBHOOKS}/mutatingwebhookconfigurations/cronjob-controller-mutating-webhook");
    let mut lenient = request(&cluster.client, Method::GET, &path, None).await.unwrap();
    lenient["webhooks"][0]["failurePolicy"] = json!("Ignore");
    request(&cluster.client, Method::PUT, &path, Some(&lenient)).await.unwrap();
    let message = request(&cluster.client, Method::POST, &ns.path(CRON_JOBS, ""), Some(&object)).await.unwrap_err();
    assert!(message.contains("failed calling webhook \"vcronjob.kb.io\""), "{message}");
}

/// A server, and its own webhooks on loopback with this certificate.
async fn rotating(certificate: WebhookCertificate, ca: &str) -> (Stage, DropGuard) {
    let (server, TestCluster { client, .. }) = defined().await;
    let addr = "127.0.0.1:0".parse().unwrap();
    let webhooks = Webhooks::bind(&WebhookConfig { addr, certificate, tls: TlsParameters::default() }).await.unwrap();
    let addr = webhooks.local_addr();
    let resolve = move |namespace: &str, name: &str, port: u16| {
        ((namespace, name, port) == (rotation::SERVICE_NAMESPACE, rotation::SERVICE, 443)).then_some(addr)
    };
    server.set_webhook_caller(webhooks_over_https(Arc::new(resolve)));
    let stage = Stage {
        ns: Namespace::create_new(client.clone(), rotation::SERVICE_NAMESPACE).await,
        admin: client.clone(),
        addr,
        as_service: true,
        patience: Timeouts { noticed: driver::SOON, followed: Duration::ZERO, rest: Duration::from_millis(1) },
    };
    stage.configure(ca).await;
    let cancel = CancellationToken::new();
    let pace = Pace { look: Duration::from_millis(50), settle: Duration::ZERO };
    // A certificate is valid from the real time, whatever the time of the objects.
    drop(webhooks.at_pace(pace).serve(client, Arc::new(SystemClock), &cancel));
    (stage, cancel.drop_guard())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificate_files_are_rotated_under_load_without_a_failed_admission() {
    let dir = tempfile::tempdir().unwrap();
    let first = Issued::new();
    first.mount(dir.path(), 0);
    let (stage, _stop) = rotating(WebhookCertificate::Directory(dir.path().to_owned()), &first.ca).await;
    assert!(rotation::of_files(&stage, dir.path(), first).await > 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_of_its_own_is_rotated_under_load_without_a_failed_admission() {
    let name = rotation::SERVICE_NAMESPACE.to_owned();
    let own = SelfSignedWebhook {
        namespace: name.clone(),
        secret: "cronjob-controller-webhook-cert".to_owned(),
        service: rotation::SERVICE.to_owned(),
        mutating: name.clone(),
        validating: name,
    };
    let (stage, _stop) = rotating(WebhookCertificate::SelfSigned(own), "").await;
    assert!(rotation::of_its_own(&stage).await >= 20);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_definition_deletes_its_objects() {
    let (server, cluster) = cluster().await;
    cluster.namespace.create(API_EXAMPLES, &controller_kinds::example("pods", &json!({}))).await;
    let path = format!("{DEFINITIONS}/apiexamples.myapp.my.domain");
    request(&cluster.client, Method::DELETE, &path, None).await.unwrap();
    assert!(cluster.namespace.get(API_EXAMPLES, "pods").await.is_none());
    a_moment().await;
    assert!(server.resources().iter().all(|resource| resource.kind != "ApiExample"));

    let snapshot = server.snapshot();
    let other = embedded::server(Arc::clone(&cluster.clock));
    other.restore(&snapshot).unwrap();
    assert!(other.resources().iter().any(|resource| resource.group == "batch.tutorial.kubebuilder.io"));
}

#[tokio::test(start_paused = true)]
async fn definition_that_cannot_be_honoured_is_refused() {
    let (_server, cluster) = cluster().await;
    let mut definition = documents("crd/bases/myapp.my.domain_apiexamples.yaml").remove(0);
    definition["metadata"]["name"] = json!("others.myapp.my.domain");
    definition["spec"]["names"]["plural"] = json!("others");
    let rows = [
        ("/versions/0/additionalPrinterColumns/0/jsonPath", json!(".spec["), "of a column is not understood"),
        ("/versions/1", definition["spec"]["versions"][0].clone(), "2 of its versions are stored, and one has to be"),
    ];
    for (place, value, want) in rows {
        let mut broken = definition.clone();
        let (parent, field) = place.rsplit_once('/').unwrap();
        let parent = broken["spec"].pointer_mut(parent).unwrap();
        match parent.as_array_mut() {
            Some(items) => items.push(value),
            None => parent[field] = value,
        }
        let message = request(&cluster.client, Method::POST, DEFINITIONS, Some(&broken)).await.unwrap_err();
        assert!(message.contains(want), "{want}: {message}");
    }
    request(&cluster.client, Method::POST, DEFINITIONS, Some(&definition)).await.unwrap();
}
