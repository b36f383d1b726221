//! Webhook calls over HTTPS.
//!
//! Guarantees: the server trusts a webhook only if its certificate is valid for the called name and signed by a CA in its
//! `caBundle`. A Service is called as `<name>.<namespace>.svc`. No call takes longer than the webhook's `timeoutSeconds`, and
//! no answer is read beyond [`MAX_ANSWER`]. Connections are reused while the configuration does not change. A request is sent
//! again only if its reused connection had already ended.
//!
//! There is no Service network here: the caller of the crate resolves the endpoints of Services ([`ServiceResolver`]).
//!
//! Known differences: without a `caBundle` no certificate is trusted, whereas upstream trusts the system's CAs. Errors of TLS
//! and of the network that have no known Go wording have the libraries' wording.
//!
//! Matches k8s.io/apiserver `pkg/util/webhook/client.go` and
//! `pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go`.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use apimachinery::quoting::quote;
use apimachinery::status;
use axum::body::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Request, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::admission::WebhookCaller;
use super::pending_write::{WebhookAnswer, WebhookCall};

/// The endpoint of a Service, by namespace, name and port; `None` if it has none.
pub type ServiceResolver = Arc<dyn Fn(&str, &str, u16) -> Option<SocketAddr> + Send + Sync>;

/// The largest answer in bytes: a patch of an object of the largest accepted size (3 MiB) in base64, and as much again for the
/// rest.
pub const MAX_ANSWER: usize = 8 << 20;

/// Matches `SetDefaults_ValidatingWebhook`.
const DEFAULT_TIMEOUT: u64 = 10;
const DEFAULT_PORT: u64 = 443;

/// Calls webhooks over HTTPS; `resolve` finds the endpoints of Services in configurations.
pub fn webhooks_over_https(resolve: ServiceResolver) -> WebhookCaller {
    let clients = Arc::new(Clients { resolve, known: Mutex::default() });
    Arc::new(move |call| {
        let clients = Arc::clone(&clients);
        async move { clients.call(&call).await }.boxed()
    })
}

/// A client for each webhook, with the configuration it was made for.
struct Clients {
    resolve: ServiceResolver,
    known: Mutex<HashMap<String, (Value, Target)>>,
}

/// A webhook and its connections.
#[derive(Clone)]
struct Target {
    /// The URL without its query.
    url: String,
    client: Client<HttpsConnector<Dial>, Full<Bytes>>,
}

impl Clients {
    async fn call(&self, call: &WebhookCall) -> WebhookAnswer {
        let target = self.target(&call.webhook)?;
        let seconds = call.webhook["timeoutSeconds"].as_u64().unwrap_or(DEFAULT_TIMEOUT);
        let url = format!("{}?timeout={seconds}s", target.url);
        let request = Request::post(&url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, "kube-apiserver-admission")
            .body(Full::from(call.review.to_string()));
        let request = request.map_err(|error| error.to_string())?;
        match timeout(Duration::from_secs(seconds), exchange(&target, request)).await {
            Err(_) => Err(format!("Post {}: context deadline exceeded", quote(&url))),
            Ok(Err(Failure::Unsent(why))) => Err(format!("Post {}: {why}", quote(&url))),
            Ok(Err(Failure::Answered(why))) => Err(why),
            Ok(Ok(answer)) => Ok(answer),
        }
    }

    /// The client for this configuration. Matches `ClientManager.HookClient`.
    fn target(&self, webhook: &Value) -> Result<Target, String> {
        let (name, config) = (webhook["name"].as_str().unwrap_or_default(), &webhook["clientConfig"]);
        let mut known = self.known.lock();
        if let Some((_, target)) = known.get(name).filter(|(made_for, _)| made_for == config) {
            return Ok(target.clone());
        }
        let target = self.connectable(config)?;
        known.insert(name.to_owned(), (config.clone(), target.clone()));
        Ok(target)
    }

    fn connectable(&self, config: &Value) -> Result<Target, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (url, service) = if config["service"].is_object() {
            let service = &config["service"];
            let (name, namespace) = (text(&service["name"]), text(&service["namespace"]));
            let port = service["port"].as_u64().unwrap_or(DEFAULT_PORT);
            let port = u16::try_from(port).map_err(|_| format!("invalid port {port}"))?;
            let path = text(&service["path"]);
            let url = format!("https://{name}.{namespace}.svc:{port}/{}", path.trim_start_matches('/'));
            (url, Some(Service { resolve: Arc::clone(&self.resolve), namespace, name, port }))
        } else {
            (text(&config["url"]), None)
        };
        let uri: Uri = url.parse().map_err(|error| format!("Unparsable URL: {error}"))?;
        if uri.scheme_str() != Some("https") {
            return Err("webhook configuration must have either service or URL".to_owned());
        }
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls(config)?).https_only().enable_http1();
        let client = Client::builder(TokioExecutor::new()).build(connector.wrap_connector(Dial { service }));
        Ok(Target { url, client })
    }
}

/// A TLS configuration that trusts the CAs of `caBundle`.
fn tls(config: &Value) -> Result<ClientConfig, String> {
    let bundle = STANDARD.decode(config["caBundle"].as_str().unwrap_or_default());
    let bundle = bundle.map_err(|error| format!("caBundle: {error}"))?;
    let mut roots = RootCertStore::empty();
    for ca in CertificateDer::pem_slice_iter(&bundle) {
        let ca = ca.map_err(|error| format!("caBundle: {error}"))?;
        roots.add(ca).map_err(|error| format!("caBundle: {error}"))?;
    }
    let own: Vec<_> = CertificateDer::pem_slice_iter(&bundle).filter_map(Result::ok).collect();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    if own.is_empty() {
        return Ok(builder.with_root_certificates(roots).with_no_client_auth());
    }
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let inner = inner.map_err(|error| format!("caBundle: {error}"))?;
    let verifier = Arc::new(AsGo { inner, own });
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Trusts what Go trusts: also a certificate that is both that of the server and a CA, if `caBundle` has it. Everything else is left
/// to rustls.
#[derive(Debug)]
struct AsGo {
    inner: Arc<WebPkiServerVerifier>,
    /// The certificates of `caBundle`.
    own: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for AsGo {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        // rustls looks at this after the times and before anything that depends on the issuer.
        let is_ca = |error: &rustls::Error| error.to_string().contains("CaUsedAsEndEntity");
        match verified {
            Err(error) if is_ca(&error) && self.own.iter().any(|own| own == end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Why a call failed.
enum Failure {
    /// The request or its answer was lost.
    Unsent(String),
    /// The answer is an error, or not an AdmissionReview.
    Answered(String),
}

async fn exchange(target: &Target, request: Request<Full<Bytes>>) -> Result<Value, Failure> {
    let answer = target.client.request(request).await.map_err(|error| Failure::Unsent(words(&error)))?;
    let status = answer.status();
    let is_text = answer.headers().get(CONTENT_TYPE).is_some_and(|form| form.as_bytes().starts_with(b"text/"));
    let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await.map_err(|error| {
        let is_large = error.is::<LengthLimitError>();
        let why = if is_large { format!("the answer is larger than {MAX_ANSWER} bytes") } else { error.to_string() };
        Failure::Answered(format!("unexpected error when reading response body. Please retry. Original error: {why}"))
    })?;
    let body = body.to_bytes();
    let document: Result<Value, _> = serde_json::from_slice(&body);
    if status.is_success() {
        return document
            .map_err(|error| Failure::Answered(format!("couldn't get version/kind; json parse error: {error}")));
    }
    // Matches `Result.Error` in k8s.io/client-go `rest/request.go`: the message of a Status is used as it is.
    let said = document.ok().filter(|document| document["kind"] == "Status" && document["status"] == "Failure");
    let why = said.and_then(|status| status["message"].as_str().map(str::to_owned)).unwrap_or_else(|| {
        let text = String::from_utf8_lossy(&body);
        status::generic(status.as_u16(), if is_text { text.trim() } else { "unknown" }).message
    });
    Err(Failure::Answered(why))
}

/// The root cause of an error, in Go's words where they are known.
fn words(mut error: &(dyn Error + 'static)) -> String {
    loop {
        // An issuer with the same name and another key is another issuer.
        if let Some(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) = error.downcast_ref()
        {
            return "tls: failed to verify certificate: x509: certificate signed by unknown authority".to_owned();
        }
        // `io::Error` prints its inner error but does not return it as its source.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source()) {
            Some(below) => error = below,
            None => return error.to_string(),
        }
    }
}

/// A Service that is resolved for each new connection.
#[derive(Clone)]
struct Service {
    resolve: ServiceResolver,
    namespace: String,
    name: String,
    port: u16,
}

/// Connects to a Service, or to the host of a URL.
#[derive(Clone)]
struct Dial {
    service: Option<Service>,
}

impl tower::Service<Uri> for Dial {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let service = self.service.clone();
        Box::pin(async move {
            let stream = if let Some(Service { resolve, namespace, name, port }) = service {
                let found = resolve(&namespace, &name, port);
                let none = || io::Error::other(format!("no endpoints available for service {}", quote(&name)));
                dial(found.ok_or_else(none)?).await?
            } else {
                let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
                dial((host, uri.port_u16().unwrap_or(443))).await?
            };
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(stream))
        })
    }
}

async fn dial(to: impl tokio::net::ToSocketAddrs + std::fmt::Debug) -> io::Result<TcpStream> {
    let mut last = None;
    for addr in tokio::net::lookup_host(&to).await? {
        match TcpStream::connect(addr).await {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                last = Some(io::Error::new(error.kind(), format!("dial tcp {addr}: connect: connection refused")));
            }
            Err(error) => last = Some(io::Error::new(error.kind(), format!("dial tcp {addr}: {error}"))),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::other(format!("dial tcp: lookup {to:?}: no such host"))))
}
