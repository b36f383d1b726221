//! The serving certificate: from watched files, or generated at startup.
//!
//! Guarantees: a certificate and key that do not match are never served. When files are replaced, new connections get
//! the new certificate within [`RELOAD_PERIOD`]. While the new files are unreadable or incomplete, the old certificate
//! stays. Open connections stay in any case. TLS is 1.2 or 1.3, with h2 and HTTP/1.1 offered, and only with
//! authenticated encryption. Where client certificates are requested, a client may present any or none. The handshake
//! proves only that it has the key; each of its requests is authenticated separately.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use parking_lot::{Mutex, RwLock};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme, SupportedCipherSuite,
    SupportedProtocolVersion, version,
};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::ServerError;

/// How often the files are checked. Kubernetes rewrites a mounted Secret about once a minute.
pub const RELOAD_PERIOD: Duration = Duration::from_secs(60);

/// Where the serving certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsSource {
    /// `--tls-cert-file` and `--tls-private-key-file`, PEM; the certificate may be followed by its chain.
    Files {
        /// The certificate and its chain.
        cert: PathBuf,
        /// The private key.
        key: PathBuf,
    },
    /// A new key and certificate at each start, for clients that do not verify it.
    SelfSigned {
        /// Names and addresses in the certificate.
        hosts: Vec<String>,
    },
    /// Installed with [`CertificateSlot::install`]; until then every handshake fails.
    Handed,
}

/// The TLS versions and cipher suites that the server offers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsParameters {
    /// The oldest version.
    pub min_version: TlsVersion,
    /// The cipher suites of TLS 1.2, by names of [`cipher_suites`]; empty means all of them. Those of TLS 1.3 cannot be
    /// chosen, as in Go.
    pub cipher_suites: Vec<String>,
    /// Whether the server requests client certificates.
    pub client_certificates: bool,
}

/// A version of TLS. Older ones are not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsVersion {
    /// 1.2
    #[default]
    Tls12,
    /// 1.3
    Tls13,
}

impl TlsVersion {
    fn and_newer(self) -> &'static [&'static SupportedProtocolVersion] {
        static ALL: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
        match self {
            Self::Tls12 => &ALL,
            Self::Tls13 => &ALL[..1],
        }
    }
}

/// The names of all cipher suites, as in IANA's registry and in Go.
pub fn cipher_suites() -> impl Iterator<Item = String> {
    ring::ALL_CIPHER_SUITES.iter().map(name_of)
}

fn name_of(suite: &SupportedCipherSuite) -> String {
    suite.suite().as_str().unwrap_or_default().replace("TLS13_", "TLS_")
}

/// Requests a certificate and accepts any whose key the client has.
#[derive(Debug)]
struct AnyClientCertificate(WebPkiSupportedAlgorithms);

impl ClientCertVerifier for AnyClientCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// A validated certificate, ready to serve and to watch.
#[derive(Debug)]
pub struct Tls {
    pub(super) config: Arc<ServerConfig>,
    current: Arc<Current>,
    watched: Option<Watched>,
    period: Duration,
}

#[derive(Debug)]
struct Watched {
    cert: PathBuf,
    key: PathBuf,
    /// The last valid contents. Contents are compared, not times: a mounted Secret is a symlink whose target changes,
    /// and a restored backup has an old time.
    loaded: Mutex<(Vec<u8>, Vec<u8>)>,
}

/// Provides the current certificate.
struct Current(RwLock<Option<Arc<CertifiedKey>>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().clone()
    }
}

impl Current {
    fn set(&self, certified: CertifiedKey) {
        *self.0.write() = Some(Arc::new(certified));
    }
}

/// Sets a server's certificate. New connections use it from then on; open ones stay.
#[derive(Debug, Clone)]
pub struct CertificateSlot {
    current: Arc<Current>,
    provider: Arc<CryptoProvider>,
}

impl CertificateSlot {
    /// Serves this certificate, with its chain behind it, and key, both PEM.
    ///
    /// # Errors
    /// When they are not PEM or do not match; the previous certificate stays in use.
    pub fn install(&self, cert: &[u8], key: &[u8]) -> Result<(), ServerError> {
        let pems = (cert.to_vec(), key.to_vec());
        self.current.set(parse(Path::new("tls.crt"), Path::new("tls.key"), &pems, &self.provider)?);
        Ok(())
    }

    /// Whether there is a certificate to serve with.
    pub fn is_filled(&self) -> bool {
        self.current.0.read().is_some()
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current")
    }
}

impl Tls {
    /// Reads or generates the certificate. It reads files; call it once, at startup.
    ///
    /// # Errors
    /// When a file cannot be read, is not PEM, or certificate and key do not match.
    pub fn load(source: TlsSource, parameters: &TlsParameters) -> Result<Self, ServerError> {
        let provider = Arc::new(provider(&parameters.cipher_suites));
        let (certified, watched) = match source {
            TlsSource::Handed => (None, None),
            TlsSource::SelfSigned { hosts } => (Some(self_signed(hosts, &provider)?), None),
            TlsSource::Files { cert, key } => {
                let read = |path: &Path| std::fs::read(path).map_err(|e| unreadable(path, e));
                let pems = (read(&cert)?, read(&key)?);
                let certified = parse(&cert, &key, &pems, &provider)?;
                (Some(certified), Some(Watched { cert, key, loaded: Mutex::new(pems) }))
            }
        };
        let current = Arc::new(Current(RwLock::new(certified.map(Arc::new))));
        let algorithms = provider.signature_verification_algorithms;
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(parameters.min_version.and_newer())
            .map_err(|e| ServerError::Tls(format!("no usable protocol version: {e}")))?;
        let config = if parameters.client_certificates {
            config.with_client_cert_verifier(Arc::new(AnyClientCertificate(algorithms)))
        } else {
            config.with_no_client_auth()
        };
        let mut config = config.with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), current, watched, period: RELOAD_PERIOD })
    }

    /// Checks the files at this interval instead of every [`RELOAD_PERIOD`].
    #[must_use]
    pub fn looking_every(self, period: Duration) -> Self {
        Self { period, ..self }
    }

    /// The slot of the certificate.
    pub fn slot(&self) -> CertificateSlot {
        CertificateSlot { current: Arc::clone(&self.current), provider: Arc::clone(self.config.crypto_provider()) }
    }

    /// The served certificate as PEM, for clients that trust exactly this one; `None` before there is one.
    pub fn certificate_pem(&self) -> Option<String> {
        let certified = self.current.0.read().clone()?;
        let text = BASE64.encode(certified.cert.first()?);
        let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
        for line in text.as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem.push_str("-----END CERTIFICATE-----\n");
        Some(pem)
    }

    /// Watches the files for ever. It never returns, even with nothing to watch.
    pub(super) async fn keep_fresh(&self) {
        let Some(watched) = &self.watched else { return std::future::pending().await };
        let mut ticks = interval(self.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.reload(watched).await {
                Ok(true) => info!(cert = %watched.cert.display(), "reloaded the serving certificate"),
                Ok(false) => {}
                Err(error) => warn!(%error, "keeping the old serving certificate"),
            }
        }
    }

    /// Whether there was a new certificate.
    async fn reload(&self, watched: &Watched) -> Result<bool, ServerError> {
        let cert = tokio::fs::read(&watched.cert).await.map_err(|e| unreadable(&watched.cert, e))?;
        let key = tokio::fs::read(&watched.key).await.map_err(|e| unreadable(&watched.key, e))?;
        let pems = (cert, key);
        if *watched.loaded.lock() == pems {
            return Ok(false);
        }
        let certified = parse(&watched.cert, &watched.key, &pems, self.config.crypto_provider())?;
        self.current.set(certified);
        *watched.loaded.lock() = pems;
        Ok(true)
    }

    #[cfg(test)]
    pub(super) async fn reload_now(&self) -> Result<bool, ServerError> {
        self.reload(self.watched.as_ref().expect("files to watch")).await
    }

    #[cfg(test)]
    pub(super) fn certificate(&self) -> CertificateDer<'static> {
        self.current.0.read().as_ref().expect("a certificate").cert[0].clone()
    }
}

/// The cryptography, with all cipher suites of TLS 1.3 and the named ones of TLS 1.2.
fn provider(names: &[String]) -> CryptoProvider {
    let mut provider = ring::default_provider();
    if !names.is_empty() {
        provider.cipher_suites.retain(|suite| suite.tls13().is_some() || names.contains(&name_of(suite)));
    }
    provider
}

fn unreadable(path: &Path, source: std::io::Error) -> ServerError {
    ServerError::ReadTls { path: path.to_owned(), source }
}

fn parse(
    cert: &Path,
    key: &Path,
    pems: &(Vec<u8>, Vec<u8>),
    provider: &CryptoProvider,
) -> Result<CertifiedKey, ServerError> {
    let bad = |path: &Path, e: &dyn fmt::Display| ServerError::Tls(format!("{}: {e}", path.display()));
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&pems.0).collect::<Result<_, _>>().map_err(|e| bad(cert, &e))?;
    if chain.is_empty() {
        return Err(bad(cert, &"holds no certificate"));
    }
    let secret = PrivateKeyDer::from_pem_slice(&pems.1).map_err(|e| bad(key, &e))?;
    CertifiedKey::from_der(chain, secret, provider)
        .map_err(|e| ServerError::Tls(format!("{} with {}: {e}", cert.display(), key.display())))
}

fn self_signed(mut hosts: Vec<String>, provider: &CryptoProvider) -> Result<CertifiedKey, ServerError> {
    if hosts.is_empty() {
        hosts.push("localhost".to_owned());
    }
    let made = rcgen::generate_simple_self_signed(hosts)
        .map_err(|e| ServerError::Tls(format!("making a self-signed certificate: {e}")))?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    CertifiedKey::from_der(vec![made.cert.der().clone()], key.into(), provider)
        .map_err(|e| ServerError::Tls(format!("making a self-signed certificate: {e}")))
}
