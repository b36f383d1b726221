//! Keeps a certificate of our own: one for all replicas, known to the API server, renewed in time.
//!
//! Guarantees: the replicas share one certificate, kept in a Secret; whoever comes second, at the first start as at a
//! renewal, takes what the other wrote (create, or replace by resource version; on conflict, read). A renewed certificate
//! is served only after both webhook configurations have its CA. An error is logged and tried again; what was served goes
//! on being served.
//!
//! These writes need no lease: each names the version that it replaces, and a standby has to answer webhooks, too.

use std::time::Duration;

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

/// How long to wait after an error.
const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// How often a conflict is answered by reading again, before it counts as an error.
const ATTEMPTS: usize = 5;

/// Why the certificate is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The API server refused, or did not answer.
    #[error("{operation} {object}: {source}")]
    Call {
        /// What was tried.
        operation: &'static str,
        /// On what.
        object: String,
        /// What the client said.
        source: Box<kube::Error>,
    },
    /// Somebody else was quicker, each time.
    #[error("write Secret {0}: others keep changing it")]
    Contended(String),
    /// No certificate could be made.
    #[error("make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// What the Secret holds cannot be served with.
    #[error(transparent)]
    Use(#[from] ServerError),
}

/// Looks after the certificate.
pub struct Authority {
    client: Client,
    clock: SharedClock,
    own: SelfSignedWebhook,
    names: Vec<String>,
    slot: CertificateSlot,
    pace: Pace,
}

impl Authority {
    /// Hands certificates to `slot`.
    pub fn new(client: Client, clock: SharedClock, own: SelfSignedWebhook, slot: CertificateSlot, pace: Pace) -> Self {
        let names = names_of(&own.service, &own.namespace);
        Self { client, clock, own, names, slot, pace }
    }

    /// Looks after the certificate for ever.
    pub async fn run(self) {
        let mut served = None;
        loop {
            match self.refresh(&mut served).await {
                Ok(()) => sleep(self.pace.look).await,
                Err(error) => {
                    warn!(%error, "the webhooks' certificate is not as it should be");
                    sleep(RETRY_PERIOD).await;
                }
            }
        }
    }

    /// One look at the Secret and at the configurations.
    pub(super) async fn refresh(&self, served: &mut Option<Certificate>) -> Result<(), AuthorityError> {
        let current = self.shared(served.as_ref()).await?;
        if served.is_none() {
            // Nobody can be turned away yet, and the configurations may come later than this program.
            self.serve(&current, served)?;
        }
        self.tell::<MutatingWebhookConfiguration>(&self.own.mutating, &current.ca).await?;
        self.tell::<ValidatingWebhookConfiguration>(&self.own.validating, &current.ca).await?;
        if served.as_ref() != Some(&current) {
            // Another replica may have told the API servers a moment ago.
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

    /// The certificate that all replicas share, made or renewed if need be. Where the Secret is gone, what is served is what
    /// clients still trust.
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

    /// Sees to it that every webhook of a configuration trusts `ca`.
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
        info!(configuration = object, "told the API server the CA of the webhooks");
        Ok(())
    }
}

/// The strategic merge patch of `webhooks` that gives each of them this CA; `None` where all have it.
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
