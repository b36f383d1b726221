//! Maintains the self-signed certificate: one for all replicas, published to the API server, renewed in time.
//!
//! Guarantees: the replicas share one certificate, kept in a Secret. If two replicas write it at the same time, at the first
//! start or at a renewal, the second uses what the first wrote (create, or replace by resourceVersion; on conflict, read). A
//! renewed certificate is served only after both webhook configurations have its CA. An error is logged and retried; the old
//! certificate stays in use meanwhile.
//!
//! These writes need no lease: each names the version that it replaces, and standby replicas also serve webhooks.

use std::time::Duration;

use apimachinery::causes::with_causes;
use apimachinery::clock::SharedClock;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::{info, warn};

use super::Pace;
use super::certificate::{Certificate, names_of};
use crate::options::SelfSignedWebhook;
use crate::server::{CertificateSlot, ServerError};

/// The delay after an error.
const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// How often a conflict is retried before it counts as an error.
const ATTEMPTS: usize = 5;

/// Why the certificate could not be maintained.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The API server rejected a request or did not answer.
    #[error("{operation} {object}: {}", with_causes(&**source))]
    Call {
        /// The operation.
        operation: &'static str,
        /// The object.
        object: String,
        /// The client's error.
        source: Box<kube::Error>,
    },
    /// Other writers changed the Secret first, each time.
    #[error("write Secret {0}: others keep changing it")]
    Contended(String),
    /// Generating a certificate failed.
    #[error("make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// The certificate in the Secret is unusable.
    #[error(transparent)]
    Use(#[from] ServerError),
}

/// Maintains the certificate.
pub struct Authority {
    client: Client,
    clock: SharedClock,
    own: SelfSignedWebhook,
    names: Vec<String>,
    slot: CertificateSlot,
    pace: Pace,
}

impl Authority {
    /// Passes certificates to `slot`.
    pub fn new(client: Client, clock: SharedClock, own: SelfSignedWebhook, slot: CertificateSlot, pace: Pace) -> Self {
        let names = names_of(&own.service, &own.namespace);
        Self { client, clock, own, names, slot, pace }
    }

    /// Maintains the certificate forever.
    pub async fn run(self) {
        let mut served = None;
        loop {
            match self.refresh(&mut served).await {
                Ok(()) => sleep(self.pace.look).await,
                Err(error) => {
                    warn!(%error, "cannot maintain the webhooks' certificate; trying again");
                    sleep(RETRY_PERIOD).await;
                }
            }
        }
    }

    /// Checks the Secret and the webhook configurations once.
    pub(super) async fn refresh(&self, served: &mut Option<Certificate>) -> Result<(), AuthorityError> {
        let current = self.shared(served.as_ref()).await?;
        if served.is_none() {
            // No request can fail yet, and the configurations may be created after this program starts.
            self.serve(&current, served)?;
        }
        self.tell::<MutatingWebhookConfiguration>(&self.own.mutating, &current.ca).await?;
        self.tell::<ValidatingWebhookConfiguration>(&self.own.validating, &current.ca).await?;
        if served.as_ref() != Some(&current) {
            // Another replica may have updated the configurations a moment ago.
            sleep(self.pace.settle).await;
            self.serve(&current, served)?;
        }
        Ok(())
    }

    fn serve(&self, current: &Certificate, served: &mut Option<Certificate>) -> Result<(), ServerError> {
        self.slot.install(current.cert.as_bytes(), current.key.as_bytes())?;
        info!(secret = self.own.secret, "serving webhooks with the certificate in the Secret");
        *served = Some(current.clone());
        Ok(())
    }

    /// The certificate that all replicas share, created or renewed if necessary. If the Secret is gone, the served certificate
    /// is kept, because clients still trust it.
    async fn shared(&self, served: Option<&Certificate>) -> Result<Certificate, AuthorityError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.own.namespace);
        let (name, now) = (&self.own.secret, self.clock.now());
        for _ in 0..ATTEMPTS {
            let found = api.get_opt(name).await.map_err(|error| call("get Secret", name, error))?;
            let old = found.as_ref().and_then(Certificate::from_secret);
            if let Some(old) = old.as_ref().filter(|old| !old.is_due(&self.names, now)) {
                return Ok(old.clone());
            }
            let new = Certificate::make(&self.names, old.as_ref().or(served), now)?;
            let (exists, mut secret) = (found.is_some(), found.unwrap_or_else(|| self.empty_secret()));
            new.put_into(&mut secret);
            let written = if exists {
                api.replace(name, &PostParams::default(), &secret).await
            } else {
                api.create(&PostParams::default(), &secret).await
            };
            match written {
                Ok(_) => return Ok(new),
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(call("write Secret", name, error)),
            }
        }
        Err(AuthorityError::Contended(name.clone()))
    }

    fn empty_secret(&self) -> Secret {
        Secret {
            metadata: ObjectMeta { name: Some(self.own.secret.clone()), ..ObjectMeta::default() },
            type_: Some("kubernetes.io/tls".to_owned()),
            ..Secret::default()
        }
    }

    /// Ensures that every webhook of a configuration trusts `ca`.
    async fn tell<K>(&self, name: &str, ca: &str) -> Result<(), AuthorityError>
    where
        K: kube::Resource<DynamicType = ()>,
    {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &ApiResource::erase::<K>(&()));
        let object = format!("{} {name}", K::kind(&()));
        let found = api.get(name).await.map_err(|error| call("get", &object, error))?;
        let Some(webhooks) = missing_ca(&found.data, ca) else { return Ok(()) };
        let patch = json!({ "metadata": { "resourceVersion": found.metadata.resource_version }, "webhooks": webhooks });
        api.patch(name, &PatchParams::default(), &Patch::Strategic(patch))
            .await
            .map_err(|error| call("write the CA to", &object, error))?;
        info!(configuration = object, "wrote the CA into the webhook configuration");
        Ok(())
    }
}

/// The strategic merge patch of `webhooks` that sets this CA in each of them; `None` if all have it.
fn missing_ca(configuration: &Value, ca: &str) -> Option<Vec<Value>> {
    use base64::Engine as _;
    let ca = base64::engine::general_purpose::STANDARD.encode(ca);
    let webhooks = configuration["webhooks"].as_array()?;
    if webhooks.iter().all(|webhook| webhook["clientConfig"]["caBundle"] == ca.as_str()) {
        return None;
    }
    Some(
        webhooks.iter().map(|webhook| json!({ "name": webhook["name"], "clientConfig": { "caBundle": ca } })).collect(),
    )
}

fn call(operation: &'static str, object: &str, source: kube::Error) -> AuthorityError {
    AuthorityError::Call { operation, object: object.to_owned(), source: Box::new(source) }
}
