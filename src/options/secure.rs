//! The flags of the HTTPS listener, and of its authentication and authorization.
//!
//! Guarantee: an unknown name of a cipher suite or version is refused, never ignored, so that the server never runs
//! with fewer or more than the user asked for. Names and defaults are those of k8s.io/apiserver's
//! `SecureServingOptions`, `DelegatingAuthenticationOptions` and `DelegatingAuthorizationOptions`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use super::flags::{AUTHENTICATION, AUTHORIZATION, RawFlags, SECURE};
use super::go_syntax::parse_duration;
use super::resolve::{Faults, ip, listener, path};
use crate::server::{TlsParameters, TlsVersion, cipher_suites};

/// The HTTPS listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecureServing {
    /// Where to listen.
    pub addr: SocketAddr,
    /// The files of certificate and private key; `None` means a self-signed certificate.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The TLS versions and cipher suites that the server offers.
    pub tls: TlsParameters,
    /// How clients are authenticated.
    pub authentication: AuthenticationConfig,
    /// How requests are authorized.
    pub authorization: AuthorizationConfig,
}

/// How clients are authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthenticationConfig {
    /// The kubeconfig for TokenReviews; `None` means the controller's own connection.
    pub kubeconfig: Option<PathBuf>,
    /// The audiences of which a token must name one; none means that the API server's own are asked for.
    pub token_audiences: Vec<String>,
    /// How long the answer about a token is cached.
    pub token_cache_ttl: Duration,
    /// Where the CA of client certificates comes from.
    pub client_ca: ClientCaConfig,
    /// Whether to continue when [`ClientCaConfig::Cluster`] cannot be read at startup.
    pub tolerate_lookup_failure: bool,
}

/// Where the CA of client certificates comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientCaConfig {
    /// No CA: the server requests no client certificates.
    None,
    /// This file.
    File(PathBuf),
    /// The ConfigMap in which kube-apiserver publishes its client CA.
    Cluster,
}

/// How requests are authorized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationConfig {
    /// The kubeconfig for SubjectAccessReviews; `None` means the controller's own connection.
    pub kubeconfig: Option<PathBuf>,
    /// The paths that need no authorization; one that ends in `*` stands for all paths with that prefix.
    pub always_allow_paths: Vec<String>,
    /// How long a positive answer is cached.
    pub authorized_ttl: Duration,
    /// How long a negative answer is cached.
    pub unauthorized_ttl: Duration,
}

/// The flags' texts.
#[derive(Debug, Clone, Args)]
pub(super) struct SecureFlags {
    /// The cipher suites of TLS 1.2, by IANA's names; may be repeated and takes commas. Those of TLS 1.3 are always on
    /// [default: all with forward secrecy and authenticated encryption]
    #[arg(long, value_name = "STRINGS", action = ArgAction::Append, help_heading = SECURE, verbatim_doc_comment)]
    pub tls_cipher_suites: Vec<String>,

    /// The oldest version of TLS: VersionTLS12 or VersionTLS13.
    #[arg(long, value_name = "STRING", default_value = "VersionTLS12", help_heading = SECURE)]
    pub tls_min_version: String,

    /// The kubeconfig file for TokenReviews and the client CA [default: the connection of --kubeconfig]
    #[arg(long, value_name = "FILE", default_value = "", help_heading = AUTHENTICATION)]
    pub authentication_kubeconfig: String,

    /// The audiences of which a bearer token must name one, so that a token for the API server need not be sent here.
    /// May be repeated and takes commas [default: those of the API server]
    #[arg(long, value_name = "STRINGS", action = ArgAction::Append, help_heading = AUTHENTICATION, verbatim_doc_comment)]
    pub authentication_token_audiences: Vec<String>,

    /// How long to remember whose a token is; 0 is not at all.
    #[arg(long, value_name = "DURATION", default_value = "10s", help_heading = AUTHENTICATION)]
    pub authentication_token_webhook_cache_ttl: String,

    /// The file with the CA of client certificates (PEM), whose common name is a user and whose organizations are
    /// groups [default: the CA that kube-apiserver publishes in kube-system/extension-apiserver-authentication]
    #[arg(long, value_name = "FILE", default_value = "", help_heading = AUTHENTICATION,
          verbatim_doc_comment)]
    pub client_ca_file: String,

    /// Do not look in the cluster for the CA of client certificates: without --client-ca-file none is asked for.
    #[arg(long, value_name = "BOOL", default_value = "false", help_heading = AUTHENTICATION)]
    pub authentication_skip_lookup: String,

    /// Start although the CA of client certificates cannot be read in the cluster. It is read again when a client
    /// presents a certificate
    #[arg(long, value_name = "BOOL", default_value = "true", help_heading = AUTHENTICATION, verbatim_doc_comment)]
    pub authentication_tolerate_lookup_failure: String,

    /// The kubeconfig file for SubjectAccessReviews [default: the connection of --kubeconfig]
    #[arg(long, value_name = "FILE", default_value = "", help_heading = AUTHORIZATION)]
    pub authorization_kubeconfig: String,

    /// The paths of --secure-port that every client may read, without a request to the API server; one that ends in "*"
    /// stands for all that begin alike. May be repeated and takes commas
    #[arg(long, value_name = "STRINGS", action = ArgAction::Append, default_value = "/healthz,/readyz,/livez",
          help_heading = AUTHORIZATION, verbatim_doc_comment)]
    pub authorization_always_allow_paths: Vec<String>,

    /// How long to cache that a user may read a path; 0 is not at all.
    #[arg(long, value_name = "DURATION", default_value = "10s", help_heading = AUTHORIZATION)]
    pub authorization_webhook_cache_authorized_ttl: String,

    /// How long to cache that a user may not read a path; 0 is not at all.
    #[arg(long, value_name = "DURATION", default_value = "10s", help_heading = AUTHORIZATION)]
    pub authorization_webhook_cache_unauthorized_ttl: String,
}

/// Validates the flags; `None` when the listener is off.
pub(super) fn resolve(raw: &RawFlags, faults: &mut Faults) -> Option<SecureServing> {
    faults.read("bind-address", &raw.bind_address, "an IP address, such as 0.0.0.0 or ::1", ip);
    let addr = listener(raw, "secure-port", &raw.secure_port, faults);
    let (cert, key) = (path(&raw.tls_cert_file), path(&raw.tls_private_key_file));
    if cert.is_some() && key.is_none() {
        faults.add("tls-private-key-file", "", "the private key of --tls-cert-file, or neither of the two flags");
    } else if cert.is_none() && key.is_some() {
        faults.add("tls-cert-file", "", "the certificate of --tls-private-key-file, or neither of the two flags");
    }
    let authentication = authentication(&raw.secure, faults);
    let authorization = authorization(&raw.secure, faults);
    let client_certificates = authentication.client_ca != ClientCaConfig::None;
    let tls = TlsParameters { client_certificates, ..tls(raw, faults) };
    Some(SecureServing { addr: addr?, certificate: cert.zip(key), tls, authentication, authorization })
}

/// The TLS versions and cipher suites of every listener; [`resolve`] reports the faults.
pub(super) fn tls(raw: &RawFlags, faults: &mut Faults) -> TlsParameters {
    let flags = &raw.secure;
    let allowed = "VersionTLS12 or VersionTLS13, the versions that are still safe";
    let min_version = faults.read("tls-min-version", &flags.tls_min_version, allowed, |text| match text {
        "" | "VersionTLS12" => Some(TlsVersion::Tls12),
        "VersionTLS13" => Some(TlsVersion::Tls13),
        _ => None,
    });
    let mut suites = Vec::new();
    for name in values(&flags.tls_cipher_suites) {
        // Two of Go's names from before the RFC are shorter.
        let suite = cipher_suites().find(|suite| suite == name || suite.strip_suffix("_SHA256") == Some(name));
        if suite.is_none() {
            let known: Vec<String> = cipher_suites().collect();
            faults.add("tls-cipher-suites", name, &format!("one or more of {}", known.join(", ")));
        }
        suites.extend(suite);
    }
    TlsParameters { min_version: min_version.unwrap_or_default(), cipher_suites: suites, client_certificates: false }
}

fn authentication(flags: &SecureFlags, faults: &mut Faults) -> AuthenticationConfig {
    let ttl = &flags.authentication_token_webhook_cache_ttl;
    let token_cache_ttl = ttl_of("authentication-token-webhook-cache-ttl", ttl, faults);
    let skip_lookup = faults.boolean("authentication-skip-lookup", &flags.authentication_skip_lookup);
    let tolerate =
        faults.boolean("authentication-tolerate-lookup-failure", &flags.authentication_tolerate_lookup_failure);
    let client_ca = match path(&flags.client_ca_file) {
        Some(file) => ClientCaConfig::File(file),
        None if skip_lookup == Some(true) => ClientCaConfig::None,
        None => ClientCaConfig::Cluster,
    };
    AuthenticationConfig {
        kubeconfig: path(&flags.authentication_kubeconfig),
        token_audiences: values(&flags.authentication_token_audiences).map(str::to_owned).collect(),
        token_cache_ttl,
        client_ca,
        tolerate_lookup_failure: tolerate.unwrap_or_default(),
    }
}

fn authorization(flags: &SecureFlags, faults: &mut Faults) -> AuthorizationConfig {
    let always_allow_paths: Vec<String> = values(&flags.authorization_always_allow_paths).map(str::to_owned).collect();
    for path in always_allow_paths.iter().filter(|path| path.trim_end_matches('*').contains('*')) {
        faults.add("authorization-always-allow-paths", path, "a path with \"*\" at its end or nowhere");
    }
    let authorized = &flags.authorization_webhook_cache_authorized_ttl;
    let unauthorized = &flags.authorization_webhook_cache_unauthorized_ttl;
    AuthorizationConfig {
        kubeconfig: path(&flags.authorization_kubeconfig),
        always_allow_paths,
        authorized_ttl: ttl_of("authorization-webhook-cache-authorized-ttl", authorized, faults),
        unauthorized_ttl: ttl_of("authorization-webhook-cache-unauthorized-ttl", unauthorized, faults),
    }
}

fn ttl_of(flag: &str, text: &str, faults: &mut Faults) -> Duration {
    let read = |text: &str| u64::try_from(parse_duration(text)?).ok().map(Duration::from_nanos);
    faults.read(flag, text, "a duration, such as 10s or 0", read).unwrap_or_default()
}

/// The values of a flag that may be repeated and takes commas; `--flag=` alone means an empty list, as in pflag.
pub(super) fn values(lists: &[String]) -> impl Iterator<Item = &str> {
    lists.iter().filter(|list| !list.is_empty()).flat_map(|list| list.split(','))
}
