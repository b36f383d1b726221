//! Replicas that share a certificate, on a server that serves only Secrets and webhook configurations.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use apimachinery::clock::{SharedClock, TestClock};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::super::Pace;
use super::super::authority::Authority;
use super::super::certificate::Certificate;
use crate::client::on_service;
use crate::options::SelfSignedWebhook;
use crate::server::{CertificateSlot, Tls, TlsParameters, TlsSource};

const SECRET: &str = "/api/v1/namespaces/system/secrets/cert";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/mutating";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/validating";

/// Objects by path, each with its version, and the completed writes.
#[derive(Default)]
struct Server {
    objects: BTreeMap<String, Value>,
    version: u64,
    writes: Vec<String>,
}

impl Server {
    fn put(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        object
    }

    fn configure(&mut self) {
        for (path, name) in [(MUTATING, "mutating"), (VALIDATING, "validating")] {
            let hook = |name: &str| json!({ "name": name, "clientConfig": { "service": { "name": "webhook" } } });
            let webhooks = [hook("a.kb.io"), hook("b.kb.io")];
            self.put(path, json!({ "metadata": { "name": name }, "webhooks": webhooks }));
        }
    }

    fn answer(&mut self, method: &Method, path: &str, body: &Value) -> (u16, Value) {
        let refusal = |code: u16| {
            let reason = if code == 404 { "NotFound" } else { "Conflict" };
            (code, json!({ "kind": "Status", "status": "Failure", "code": code, "reason": reason }))
        };
        let path = if *method == Method::POST { format!("{path}/cert") } else { path.to_owned() };
        let found = self.objects.get(&path).cloned();
        if *method == Method::GET {
            return found.map_or(refusal(404), |object| (200, object));
        }
        let version = &body["metadata"]["resourceVersion"];
        let stored = match (method.as_str(), found) {
            ("POST", None) => body.clone(),
            ("PUT", Some(old)) if *version == old["metadata"]["resourceVersion"] => body.clone(),
            ("PATCH", Some(mut old)) if *version == old["metadata"]["resourceVersion"] => {
                for (webhook, patch) in
                    old["webhooks"].as_array_mut().unwrap().iter_mut().zip(body["webhooks"].as_array().unwrap())
                {
                    assert_eq!(webhook["name"], patch["name"]);
                    webhook["clientConfig"]["caBundle"] = patch["clientConfig"]["caBundle"].clone();
                }
                old
            }
            (_, None) => return refusal(404),
            (_, Some(_)) => return refusal(409),
        };
        self.writes.push(format!("{method} {}", path.rsplit('/').next().unwrap()));
        (200, self.put(&path, stored))
    }
}

type Shared = Arc<Mutex<Server>>;

fn client(server: &Shared) -> kube::Client {
    let server = Arc::clone(server);
    on_service(tower::service_fn(move |request: Request<Body>| {
        let server = Arc::clone(&server);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            // Lets other tasks run in between.
            tokio::task::yield_now().await;
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let (code, answer) = server.lock().answer(&head.method, head.uri.path(), &body);
            Ok::<_, Infallible>(
                Response::builder().status(code).body(Body::from(answer.to_string().into_bytes())).unwrap(),
            )
        }
    }))
}

struct Replica {
    authority: Authority,
    slot: CertificateSlot,
    served: Option<Certificate>,
}

impl Replica {
    fn new(server: &Shared, clock: &Arc<TestClock>) -> Self {
        let own = SelfSignedWebhook {
            namespace: "system".to_owned(),
            secret: "cert".to_owned(),
            service: "webhook".to_owned(),
            mutating: "mutating".to_owned(),
            validating: "validating".to_owned(),
        };
        let slot = Tls::load(TlsSource::Handed, &TlsParameters::default()).unwrap().slot();
        let clock: SharedClock = Arc::clone(clock) as SharedClock;
        Self {
            authority: Authority::new(client(server), clock, own, slot.clone(), Pace::default()),
            slot,
            served: None,
        }
    }

    async fn refresh(&mut self) -> Result<(), String> {
        self.authority.refresh(&mut self.served).await.map_err(|error| error.to_string())
    }

    fn served(&self) -> &Certificate {
        self.served.as_ref().unwrap()
    }
}

fn start() -> (Shared, Arc<TestClock>) {
    let now: DateTime<Utc> = "2026-01-01T12:00:00Z".parse().unwrap();
    (Shared::default(), TestClock::new(now))
}

/// The distinct CAs of all webhooks.
fn told(server: &Shared) -> Vec<String> {
    let server = server.lock();
    let webhooks =
        [MUTATING, VALIDATING].into_iter().flat_map(|path| server.objects[path]["webhooks"].as_array().unwrap());
    let mut cas: Vec<String> = webhooks
        .map(|webhook| STANDARD.decode(webhook["clientConfig"]["caBundle"].as_str().unwrap_or_default()).unwrap())
        .map(|ca| String::from_utf8(ca).unwrap())
        .collect();
    cas.dedup();
    cas
}

#[tokio::test(start_paused = true)]
async fn replicas_that_start_at_once_share_one_certificate() {
    let (server, clock) = start();
    server.lock().configure();
    let mut replicas: Vec<Replica> = (0..3).map(|_| Replica::new(&server, &clock)).collect();
    // A patch may conflict with another replica's; then the next check finds all in order.
    futures::future::join_all(replicas.iter_mut().map(Replica::refresh)).await;
    for replica in &mut replicas {
        replica.refresh().await.unwrap();
    }
    assert_eq!(told(&server), [replicas[0].served().ca.as_str()]);
    assert!(replicas.iter().all(|replica| replica.slot.is_filled() && replica.served() == replicas[0].served()));
    let writes = server.lock().writes.clone();
    assert_eq!(writes.iter().filter(|write| *write == "POST cert").count(), 1, "{writes:?}");
    assert_eq!(writes.len(), 3, "one Secret, and each configuration once: {writes:?}");

    for replica in &mut replicas {
        replica.refresh().await.unwrap();
    }
    assert_eq!(server.lock().writes.len(), 3, "what is as it should be is not written");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_renewed_long_before_it_ends_and_the_old_ca_stays_trusted() {
    let (server, clock) = start();
    server.lock().configure();
    let (mut one, mut other) = (Replica::new(&server, &clock), Replica::new(&server, &clock));
    one.refresh().await.unwrap();
    other.refresh().await.unwrap();
    let first = one.served().clone();

    clock.step(TimeDelta::days(242));
    one.refresh().await.unwrap();
    assert!(*one.served() == first, "it is not due yet");

    clock.step(TimeDelta::days(1));
    one.refresh().await.unwrap();
    let second = one.served().clone();
    assert!(second != first && second.ca.ends_with(&first.ca), "the other replica still serves the first");
    assert!(*other.served() == first);
    assert_eq!(told(&server), [second.ca.as_str()]);
    other.refresh().await.unwrap();
    assert!(*other.served() == second);
    let writes = server.lock().writes.clone();
    assert_eq!(writes[3..], ["PUT cert", "PATCH mutating", "PATCH validating"]);
}

#[tokio::test(start_paused = true)]
async fn deleted_secret_is_created_again_and_the_ca_of_the_served_certificate_stays_trusted() {
    let (server, clock) = start();
    server.lock().configure();
    let (mut one, mut other) = (Replica::new(&server, &clock), Replica::new(&server, &clock));
    one.refresh().await.unwrap();
    other.refresh().await.unwrap();
    let first = one.served().clone();
    server.lock().objects.remove(SECRET);
    one.refresh().await.unwrap();
    let second = one.served().clone();
    assert!(second != first && second.ca.ends_with(&first.ca), "the other replica still serves the first");
    assert_eq!(told(&server), [second.ca.as_str()]);
    other.refresh().await.unwrap();
    assert!(*other.served() == second);
}

#[tokio::test(start_paused = true)]
async fn renewed_certificate_is_served_only_after_its_ca_is_in_the_webhook_configurations() {
    let (server, clock) = start();
    server.lock().configure();
    let mut replica = Replica::new(&server, &clock);
    replica.refresh().await.unwrap();
    let first = replica.served().clone();
    clock.step(TimeDelta::days(300));
    let configuration = server.lock().objects.remove(VALIDATING).unwrap();
    let error = replica.refresh().await.unwrap_err();
    assert!(error.starts_with("get ValidatingWebhookConfiguration validating: "), "{error}");
    assert!(*replica.served() == first, "the API server could not trust the new one");
    server.lock().put(VALIDATING, configuration);
    replica.refresh().await.unwrap();
    assert!(*replica.served() != first);
}

#[tokio::test(start_paused = true)]
async fn webhook_configuration_created_later_or_overwritten_by_another_client_gets_the_ca() {
    let (server, clock) = start();
    let mut replica = Replica::new(&server, &clock);
    assert!(replica.refresh().await.is_err());
    assert!(replica.slot.is_filled(), "there is a certificate all the same");
    for _ in 0..2 {
        server.lock().configure();
        replica.refresh().await.unwrap();
        assert_eq!(told(&server), [replica.served().ca.as_str()]);
    }
}

#[tokio::test(start_paused = true)]
async fn secret_without_a_certificate_or_with_one_for_other_names_is_replaced() {
    let rows = [
        ("an empty one", json!({ "metadata": { "name": "cert", "labels": { "team": "a" } } })),
        (
            "one of cert-manager's",
            json!({ "metadata": { "name": "cert" }, "data": { "tls.crt": "eA==", "tls.key": "eA==" } }),
        ),
        (
            "one for another Service",
            json!({
                "metadata": { "name": "cert", "annotations": {
                    "cronjob-controller/renew-at": "2030-01-01T00:00:00Z", "cronjob-controller/names": "other.system.svc",
                } },
                "data": { "ca.crt": "eA==", "tls.crt": "eA==", "tls.key": "eA==" },
            }),
        ),
    ];
    for (sentence, secret) in rows {
        let (server, clock) = start();
        server.lock().configure();
        server.lock().put(SECRET, secret.clone());
        let mut replica = Replica::new(&server, &clock);
        replica.refresh().await.unwrap();
        assert!(replica.slot.is_filled(), "{sentence}");
        let labels = server.lock().objects[SECRET]["metadata"]["labels"].clone();
        assert_eq!(labels, secret["metadata"]["labels"], "{sentence}: the rest of the Secret stays");
    }
}
