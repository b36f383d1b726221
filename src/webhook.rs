//! The admission webhooks of the tutorial's CronJobs: defaults, and what a schema cannot judge.
//!
//! Guarantees: what is answered is a function of the request alone (`defaulting`, `validation`), so every replica
//! answers alike, leader or not; a request that is too large, too slow or no AdmissionReview gets an answer that says so;
//! nobody is turned away while a certificate is replaced. With a certificate of our own, all replicas serve the same one,
//! and the API server has been told of its CA before it meets it.

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

/// Where defaults are set. Paths are those that controller-runtime makes of group, version and kind.
pub const MUTATE_PATH: &str = "/mutate-batch-tutorial-kubebuilder-io-v1-cronjob";

/// Where objects are judged.
pub const VALIDATE_PATH: &str = "/validate-batch-tutorial-kubebuilder-io-v1-cronjob";

/// The webhooks' listener, which has its address and does not answer yet.
pub struct Webhooks {
    bound: Bound,
    tls: Tls,
    own: Option<SelfSignedWebhook>,
    pace: Pace,
}

/// How the certificate is looked after.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How often the files are looked at, or the Secret and the configurations.
    pub look: Duration,
    /// How long an API server may take to notice a change of a configuration.
    pub settle: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { look: RELOAD_PERIOD, settle: Duration::from_secs(5) }
    }
}

impl Webhooks {
    /// Reads the certificate, where there is one to be read, and takes the address.
    ///
    /// # Errors
    /// When the address cannot be had, or the certificate not be used.
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

    /// Looks after the certificate at another pace than the usual one.
    #[must_use]
    pub fn at_pace(self, pace: Pace) -> Self {
        Self { tls: self.tls.looking_every(pace.look), pace, ..self }
    }

    /// The address that was taken.
    pub fn local_addr(&self) -> SocketAddr {
        self.bound.local_addr()
    }

    /// Fails until there is a certificate to serve with.
    pub fn health_check(&self) -> HealthCheck {
        let slot = self.tls.slot();
        HealthCheck::new("webhook", move || ready(&slot))
    }

    /// Answers until `cancel`, and looks after a certificate of our own meanwhile.
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
