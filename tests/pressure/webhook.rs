//! An admission webhook on 127.0.0.1 that is as slow, limited or broken as a case needs.
//!
//! Guarantees: at most [`CONNECTIONS`] connections are open, no answer takes longer than [`LONGEST`], and everything
//! ends when the server is dropped. A call that the API server abandons is abandoned here, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Json, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use testkit::driver::{JOBS, Namespace, eventually, request};

/// Connections that are open at once; more wait.
const CONNECTIONS: usize = 512;
/// The API server waits 30 s at most, so holding a call for longer has no effect.
const LONGEST: Duration = Duration::from_secs(40);
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// The webhook's reaction to every call.
#[derive(Debug, Clone, Copy)]
pub enum Behaviour {
    /// Admits immediately.
    Admit,
    /// Admits after this time.
    Delay(Duration),
    /// Admits after this time multiplied by the calls in flight at its arrival, this one included.
    DelayPerCall(Duration),
    /// Does not answer while the API server waits.
    Hang,
    /// Answers with this HTTP status and no review.
    Fail(u16),
    /// Denies with this code.
    Deny(u16),
}

/// A running webhook server.
pub struct WebhookServer {
    port: u16,
    ca_bundle: String,
    calls: Arc<Calls>,
    _stop: DropGuard,
}

struct Calls {
    behaviour: Mutex<Behaviour>,
    begun: AtomicUsize,
    in_flight: AtomicU32,
}

/// One call in flight; it ends when this is dropped, also if the client disconnects.
struct InFlight<'a>(&'a AtomicU32);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl WebhookServer {
    /// Starts a server with a certificate of its own.
    pub async fn start(behaviour: Behaviour) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let mut config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let calls = Arc::new(Calls {
            behaviour: Mutex::new(behaviour),
            begun: AtomicUsize::new(0),
            in_flight: AtomicU32::new(0),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&calls));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = CancellationToken::new();
        tokio::spawn(accept(listener, TlsAcceptor::from(Arc::new(config)), router, stop.clone()));
        Self { port, ca_bundle: STANDARD.encode(made.cert.pem()), calls, _stop: stop.drop_guard() }
    }

    /// Changes the reaction to calls from now on.
    pub fn set(&self, behaviour: Behaviour) {
        *self.calls.behaviour.lock() = behaviour;
    }

    /// The number of calls so far.
    pub fn calls(&self) -> usize {
        self.calls.begun.load(Ordering::Relaxed)
    }

    /// Registers the webhook for `operation` (CREATE or DELETE) on Jobs of these namespaces, and waits until the API
    /// server calls it. The calls for this are not counted. The behaviour is [`Behaviour::Admit`] meanwhile.
    pub async fn register(&self, admin: &kube::Client, namespaces: &[Namespace], operation: &str) {
        let ns = namespaces.first().expect("a webhook is for some namespace");
        let names: Vec<&str> = namespaces.iter().map(|ns| ns.name.as_str()).collect();
        let behaviour = std::mem::replace(&mut *self.calls.behaviour.lock(), Behaviour::Admit);
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": ns.name},
            "webhooks": [{
                "name": "pressure.example.com",
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "timeoutSeconds": 30,
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": format!("https://127.0.0.1:{}/", self.port), "caBundle": self.ca_bundle},
                "namespaceSelector": {"matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "In", "values": names},
                ]},
                "rules": [{
                    "apiGroups": ["batch"], "apiVersions": ["v1"], "operations": [operation], "resources": ["jobs"],
                }],
            }],
        });
        request(admin, Method::POST, CONFIGURATIONS, Some(&configuration)).await.unwrap();
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "probe"},
            "spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/none"}],
            }}},
        });
        ns.create(JOBS, &job).await;
        let (collection, one) = (ns.path(JOBS, ""), ns.path(JOBS, "probe"));
        eventually("the API server to call the webhook", Duration::from_secs(30), || async {
            let (method, path, body) = match operation {
                "CREATE" => (Method::POST, format!("{collection}?dryRun=All&fieldManager=pressure"), {
                    let mut another = job.clone();
                    another["metadata"]["name"] = json!("another-probe");
                    another
                }),
                _ => (Method::DELETE, one.clone(), json!({"dryRun": ["All"]})),
            };
            let _ = request(admin, method, &path, Some(&body)).await;
            (self.calls() > 0).then_some(())
        })
        .await;
        ns.delete(JOBS, "probe").await;
        self.calls.begun.store(0, Ordering::Relaxed);
        self.set(behaviour);
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, router: Router, stop: CancellationToken) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await.expect("the semaphore is never closed");
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        if let Ok((stream, _)) = stream {
            tokio::spawn(serve(stream, tls.clone(), router.clone(), stop.clone(), slot));
        }
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, router: Router, stop: CancellationToken, _: OwnedSemaphorePermit) {
    let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_secs(10), tls.accept(stream)).await else { return };
    let mut server = auto::Builder::new(TokioExecutor::new());
    // The API server multiplexes all its calls over few connections.
    server.http2().max_concurrent_streams(2_000);
    let connection = server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::select! {
        () = stop.cancelled() => {}
        _ = connection => {}
    }
}

async fn answer(State(calls): State<Arc<Calls>>, Json(review): Json<Value>) -> Response {
    calls.begun.fetch_add(1, Ordering::Relaxed);
    let in_flight = calls.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
    let _ends = InFlight(&calls.in_flight);
    let behaviour = *calls.behaviour.lock();
    let (delay, code) = match behaviour {
        Behaviour::Admit => (Duration::ZERO, None),
        Behaviour::Delay(delay) => (delay, None),
        Behaviour::DelayPerCall(delay) => (delay * in_flight, None),
        Behaviour::Hang => (LONGEST, None),
        Behaviour::Fail(status) => {
            return StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response();
        }
        Behaviour::Deny(code) => (Duration::ZERO, Some(code)),
    };
    tokio::time::sleep(delay.min(LONGEST)).await;
    let mut response = json!({"uid": review["request"]["uid"], "allowed": code.is_none()});
    if let Some(code) = code {
        response["status"] = json!({"code": code, "message": "not now"});
    }
    Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})).into_response()
}
