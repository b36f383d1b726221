//! The user of a client certificate, and the CA that verifies it.
//!
//! Guarantees: a certificate counts only if the current CA signed it, it is for clients, and it has not expired. The CA
//! is read again when it is needed and was last read more than [`REFRESH`] ago, so that a replaced CA takes effect
//! without a restart. If no client presents a certificate, the CA is not read again. If the CA cannot be read or is
//! invalid, the previous one stays.
//!
//! Matches k8s.io/apiserver's pkg/authentication/request/x509 (`CommonNameUserConversion`).

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::causes::with_causes;
use apimachinery::clock::SharedClock;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::Api;
use ring::digest;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;
use x509_parser::nom;
use x509_parser::prelude::FromDer as _;

use super::REVIEW_TIMEOUT;
use super::reviews::User;

/// The greatest age of the CA when it is used.
const REFRESH: Duration = Duration::from_secs(60);

/// Where kube-apiserver publishes its client CA. Matches `authenticationConfigMapName` in k8s.io/apiserver's
/// pkg/server/options/authentication.go.
const NAMESPACE: &str = "kube-system";
const CONFIG_MAP: &str = "extension-apiserver-authentication";
const KEY: &str = "client-ca-file";

/// Where the client CA comes from.
pub enum ClientCaSource {
    /// A file with certificates (PEM).
    File(PathBuf),
    /// The ConfigMap in which kube-apiserver publishes its client CA.
    Cluster(Client),
}

/// Why the client CA cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientCaError {
    /// The file cannot be read.
    #[error("cannot read the client CA file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The ConfigMap cannot be read.
    #[error("get configmap {NAMESPACE}/{CONFIG_MAP}: {}", with_causes(&**.0))]
    Get(#[source] Box<kube::Error>),
    /// The API server did not answer.
    #[error("get configmap {NAMESPACE}/{CONFIG_MAP}: no answer within {} s", REVIEW_TIMEOUT.as_secs())]
    Timeout,
    /// The source holds no certificate, or none that can be used.
    #[error("the client CA cannot be used: {0}")]
    Unusable(String),
    /// A client's certificate is not trusted.
    #[error("the client certificate is not valid: {0}")]
    NotTrusted(rustls::Error),
    /// A client's certificate cannot be read.
    #[error("the client certificate has no subject that can be read")]
    Subject,
}

/// The client CA.
pub struct ClientCa {
    source: ClientCaSource,
    clock: SharedClock,
    trusted: Mutex<Trusted>,
}

#[derive(Default)]
struct Trusted {
    /// The bundle from which the verifier was made.
    pem: Vec<u8>,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    looked_at: Option<Instant>,
}

impl ClientCa {
    /// A CA that is read at its first use.
    pub fn new(source: ClientCaSource, clock: SharedClock) -> Self {
        Self { source, clock, trusted: Mutex::default() }
    }

    /// Reads it now.
    ///
    /// # Errors
    /// When it cannot be read or used.
    pub async fn load(&self) -> Result<(), ClientCaError> {
        self.refresh(&mut *self.trusted.lock().await).await
    }

    /// The user of the certificate; `None` where there is no CA to verify it, or the certificate has no common name.
    pub(super) async fn user(&self, chain: &[CertificateDer<'static>]) -> Result<Option<User>, ClientCaError> {
        let Some((own, intermediates)) = chain.split_first() else { return Ok(None) };
        let Some(verifier) = self.verifier().await else { return Ok(None) };
        let now = u64::try_from(self.clock.now().timestamp()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        verifier.verify_client_cert(own, intermediates, now).map_err(ClientCaError::NotTrusted)?;
        let subject = subject(own).map_err(|_| ClientCaError::Subject)?;
        if subject.common_name.is_empty() {
            return Ok(None);
        }
        let mut fingerprint = "X509SHA256=".to_owned();
        for byte in digest::digest(&digest::SHA256, own).as_ref() {
            // Writing into a String cannot fail.
            let _ = write!(fingerprint, "{byte:02x}");
        }
        Ok(Some(User {
            name: subject.common_name,
            uid: subject.uid,
            groups: subject.organizations,
            extra: [("authentication.kubernetes.io/credential-id".to_owned(), vec![fingerprint])].into(),
        }))
    }

    async fn verifier(&self) -> Option<Arc<dyn ClientCertVerifier>> {
        let mut trusted = self.trusted.lock().await;
        if trusted.looked_at.is_none_or(|at| at.elapsed() >= REFRESH)
            && let Err(error) = self.refresh(&mut trusted).await
        {
            warn!(%error, "cannot read the client CA; keeping the last one");
        }
        trusted.verifier.clone()
    }

    async fn refresh(&self, trusted: &mut Trusted) -> Result<(), ClientCaError> {
        // Set before the read, so that a failing read is not repeated for every client.
        trusted.looked_at = Some(Instant::now());
        let pem = self.source.read().await?;
        if trusted.pem == pem && trusted.verifier.is_some() {
            return Ok(());
        }
        trusted.verifier = Some(verifier(&pem)?);
        trusted.pem = pem;
        info!("read the client CA");
        Ok(())
    }
}

impl ClientCaSource {
    async fn read(&self) -> Result<Vec<u8>, ClientCaError> {
        match self {
            Self::File(path) => {
                tokio::fs::read(path).await.map_err(|source| ClientCaError::Read { path: path.clone(), source })
            }
            Self::Cluster(client) => {
                let api = Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE);
                let found = timeout(REVIEW_TIMEOUT, api.get(CONFIG_MAP)).await.map_err(|_| ClientCaError::Timeout)?;
                let data = found.map_err(|error| ClientCaError::Get(Box::new(error)))?.data.unwrap_or_default();
                let bundle = data.get(KEY).ok_or_else(|| {
                    ClientCaError::Unusable(format!("configmap {NAMESPACE}/{CONFIG_MAP} has no {KEY}"))
                })?;
                Ok(bundle.clone().into_bytes())
            }
        }
    }
}

/// Verifies certificates that a CA of the bundle has signed.
fn verifier(pem: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, ClientCaError> {
    let unusable = |error: &dyn std::fmt::Display| ClientCaError::Unusable(error.to_string());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(|error| unusable(&error))?).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"it holds no certificate"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().map_err(|error| unusable(&error))
}

/// The parts of a certificate's subject that name its user.
#[derive(Debug, Default, PartialEq, Eq)]
struct Subject {
    common_name: String,
    organizations: Vec<String>,
    uid: String,
}

/// Reads the subject of a certificate. Matches `FillFromRDNSequence` in Go's crypto/x509/pkix: the last name counts, and
/// organizations are collected.
fn subject(certificate: &[u8]) -> Result<Subject, nom::Err<X509Error>> {
    let (_, certificate) = X509Certificate::from_der(certificate)?;
    let mut subject = Subject::default();
    for attribute in certificate.subject().iter_attributes() {
        // Names in encodings other than UTF-8 and its subsets are not supported.
        let value = String::from_utf8(attribute.as_slice().to_vec()).unwrap_or_default();
        match attribute.attr_type().to_id_string().as_str() {
            "2.5.4.3" => subject.common_name = value,
            "2.5.4.10" => subject.organizations.push(value),
            // Kubernetes' own attribute: see `X509UID` in k8s.io/apimachinery's pkg/util/asn1.
            "1.3.6.1.4.1.57683.2" => subject.uid = value,
            _ => {}
        }
    }
    Ok(subject)
}

#[cfg(test)]
mod tests;
