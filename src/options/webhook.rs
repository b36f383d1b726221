//! The flags of the admission webhooks.
//!
//! Guarantee: nothing but the syntax is judged where no webhook is to be served.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::flags::RawFlags;
use super::go_syntax::parse_bool;
use super::resolve::{Faults, LABEL, SUBDOMAIN, is_dns1123_label, is_dns1123_subdomain, listener, own_namespace};
use super::{ControllerKind, Environment, secure};
use crate::server::TlsParameters;

/// The listener of the admission webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookConfig {
    /// Where to listen.
    pub addr: SocketAddr,
    /// Where the serving certificate comes from.
    pub certificate: WebhookCertificate,
    /// What of TLS is offered.
    pub tls: TlsParameters,
}

/// Where the certificate of the webhooks comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookCertificate {
    /// `tls.crt` and `tls.key` in this directory.
    Directory(PathBuf),
    /// Made by this program, and told to the API server.
    SelfSigned(SelfSignedWebhook),
}

/// Where a certificate of our own is kept, whom it is for, and who is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfSignedWebhook {
    /// The namespace of the Secret and of the Service.
    pub namespace: String,
    /// The Secret that all replicas share.
    pub secret: String,
    /// The Service by which the API server calls.
    pub service: String,
    /// The `MutatingWebhookConfiguration` that gets the CA.
    pub mutating: String,
    /// The `ValidatingWebhookConfiguration` that gets the CA.
    pub validating: String,
}

/// Judges the flags; `None` where no webhook is served. Port and directory are controller-runtime's
/// (`pkg/webhook/server.go`).
pub(super) fn resolve(
    raw: &RawFlags,
    controller_kinds: &[ControllerKind],
    env: &dyn Environment,
    faults: &mut Faults,
) -> Option<WebhookConfig> {
    let addr = listener(raw, "webhook-port", &raw.webhook_port, faults);
    let self_signed = faults.read("webhook-self-signed", &raw.webhook_self_signed, "true or false", parse_bool);
    let addr = addr.filter(|_| controller_kinds.contains(&ControllerKind::Tutorial))?;
    // Its faults are found where the secure port is judged.
    let tls = secure::tls(raw, &mut Faults::default());
    if !self_signed? {
        let given = &raw.webhook_cert_dir;
        let directory = if given.is_empty() {
            env.temp_dir().join("k8s-webhook-server").join("serving-certs")
        } else {
            PathBuf::from(given)
        };
        return Some(WebhookConfig { addr, certificate: WebhookCertificate::Directory(directory), tls });
    }
    if !raw.webhook_cert_dir.is_empty() {
        faults.add("webhook-cert-dir", &raw.webhook_cert_dir, "it without --webhook-self-signed");
    }
    let namespace = raw.webhook_namespace.clone().unwrap_or_else(|| own_namespace(env));
    if !is_dns1123_label(&namespace) {
        faults.add("webhook-namespace", &namespace, LABEL);
    }
    let names = [
        ("webhook-secret", &raw.webhook_secret),
        ("webhook-service", &raw.webhook_service),
        ("webhook-mutating-configuration", &raw.webhook_mutating_configuration),
        ("webhook-validating-configuration", &raw.webhook_validating_configuration),
    ];
    for (flag, name) in names.iter().filter(|(_, name)| !is_dns1123_subdomain(name)) {
        faults.add(flag, name, SUBDOMAIN);
    }
    let [secret, service, mutating, validating] = names.map(|(_, name)| name.clone());
    let own = SelfSignedWebhook { namespace, secret, service, mutating, validating };
    Some(WebhookConfig { addr, certificate: WebhookCertificate::SelfSigned(own), tls })
}
