//! The admission webhooks of the tutorial's CronJobs: defaulting, and validation beyond the schema.
//!
//! Guarantees: an answer depends on the request alone (`defaulting`, `validation`), so every replica gives the same answers,
//! leader or not. A request that is too large, too slow or no AdmissionReview gets an answer that says so. Replacing a
//! certificate rejects no request. With a self-signed certificate, all replicas serve the same one, and the API server has its
//! CA before they serve it.

mod authority;
mod certificate;
mod defaulting;
mod review;
mod router;
#[cfg(test)]
mod tests;
mod validation;

use std::net::SocketAddr;
use std::time::Duration;

use apimachinery::clock::SharedClock;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::info;

use self::authority::Authority;
pub use self::router::router;
use crate::options::{SelfSignedWebhook, WebhookCertificate, WebhookConfig};
use crate::server::{Bound, CertificateSlot, HealthCheck, RELOAD_PERIOD, ServerError, Tls, TlsSource, bind};

/// The path of the mutating webhook. Controller-runtime derives such paths from group, version and kind.
pub const MUTATE_PATH: &str = "/mutate-batch-tutorial-kubebuilder-io-v1-cronjob";

/// The path of the validating webhook.
pub const VALIDATE_PATH: &str = "/validate-batch-tutorial-kubebuilder-io-v1-cronjob";

/// The webhooks' listener: bound to its address, but not yet serving.
pub struct Webhooks {
    bound: Bound,
    tls: Tls,
    own: Option<SelfSignedWebhook>,
    pace: Pace,
}

/// The intervals of certificate maintenance.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How often the files, or the Secret and the webhook configurations, are checked.
    pub look: Duration,
    /// How long an API server may take to notice a changed configuration.
    pub settle: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { look: RELOAD_PERIOD, settle: Duration::from_secs(5) }
    }
}

impl Webhooks {
    /// Reads the certificate files, if configured, and binds the address.
    ///
    /// # Errors
    /// When the address cannot be bound, or the certificate is unusable.
    pub async fn bind(config: &WebhookConfig) -> Result<Self, ServerError> {
        let (source, own) = match &config.certificate {
            WebhookCertificate::Directory(directory) => {
                (TlsSource::Files { cert: directory.join("tls.crt"), key: directory.join("tls.key") }, None)
            }
            WebhookCertificate::SelfSigned(own) => (TlsSource::Handed, Some(own.clone())),
        };
        let tls = Tls::load(source, &config.tls)?;
        Ok(Self { bound: bind(config.addr).await?, tls, own, pace: Pace::default() })
    }

    /// Sets other maintenance intervals.
    #[must_use]
    pub fn at_pace(self, pace: Pace) -> Self {
        Self { tls: self.tls.looking_every(pace.look), pace, ..self }
    }

    /// The bound address.
    pub fn local_addr(&self) -> SocketAddr {
        self.bound.local_addr()
    }

    /// Fails until there is a serving certificate.
    pub fn health_check(&self) -> HealthCheck {
        let slot = self.tls.slot();
        HealthCheck::new("webhook", move || ready(&slot))
    }

    /// Serves until `cancel`, and maintains a self-signed certificate meanwhile.
    pub fn serve(self, client: kube::Client, clock: SharedClock, cancel: &CancellationToken) -> Vec<JoinHandle<()>> {
        let mut tasks = Vec::new();
        if let Some(own) = self.own {
            let authority = Authority::new(client, clock, own, self.tls.slot(), self.pace);
            let cancel = cancel.clone();
            tasks.push(tokio::spawn(async move {
                cancel.run_until_cancelled(authority.run()).await;
            }));
        }
        info!(address = %self.bound.local_addr(), "serving webhooks");
        tasks.push(tokio::spawn(self.bound.serve_https(self.tls, router::router(), cancel.clone())));
        tasks
    }
}

fn ready(slot: &CertificateSlot) -> Result<(), String> {
    if slot.is_filled() { Ok(()) } else { Err("there is no serving certificate yet".to_owned()) }
}
