//! The listeners: which ones the flags ask for, and what each serves.
//!
//! Guarantees: the process binds every address and reads every certificate before the controller does anything. On the
//! secure port the API server authorizes each request. The plain ports are off by default; they serve everything to every
//! client. With `--health-probe-bind-address`, health checks have their own listener, which answers probes whatever load
//! clients put on the others. That one is on the caller's runtime, beside the election: it answers whatever the workers do. The
//! others are on a runtime of their own, since TLS and long answers take time.

use std::sync::Arc;

use apimachinery::clock::SharedClock;
use schedule::local_zone;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::runtimes::run_on;
use super::{AppError, ElectionHealth};
use crate::client::{self, RequestObserver};
use crate::leader_election::HealthzAdaptor;
use crate::metrics::{Registry, RestClientMetrics, encode};
use crate::options::{ClientCaConfig, Config};
use crate::server::delegation::{ClientCa, ClientCaSource, Reviewers, Ttls};
use crate::server::{
    Bound, Delegation, Endpoints, HealthCheck, ServerError, Tls, TlsSource, VersionInfo, Which, bind, router,
};

/// The addresses this process listens on.
pub struct Listeners {
    secure: Option<(Bound, Tls)>,
    metrics: Option<Bound>,
    /// For health checks, and for metrics on the same address.
    health: Option<Bound>,
    /// The runtime of the first two.
    serving: Handle,
}

impl Listeners {
    /// Binds the addresses. Health checks are served on the caller's runtime, everything else on `serving`.
    pub async fn bind(config: &Config, serving: &Handle) -> Result<Self, ServerError> {
        let secure = match &config.secure {
            None => None,
            Some(secure) => {
                let source = match secure.certificate.clone() {
                    Some((cert, key)) => TlsSource::Files { cert, key },
                    None => TlsSource::SelfSigned { hosts: vec!["localhost".into(), "127.0.0.1".into(), "::1".into()] },
                };
                Some((run_on(serving, bind(secure.addr)).await?, Tls::load(source, &secure.tls)?))
            }
        };
        let metrics = match config.metrics_addr {
            Some(addr) if config.health_addr != Some(addr) => Some(run_on(serving, bind(addr)).await?),
            _ => None,
        };
        let health = match config.health_addr {
            Some(addr) => Some(bind(addr).await?.for_probes()),
            None => None,
        };
        Ok(Self { secure, metrics, health, serving: serving.clone() })
    }

    /// Serves until `cancel`; `ready` holds the checks that `/readyz` has in addition to those of `/livez`.
    pub fn serve(
        self,
        config: &Config,
        registry: &Registry,
        ready: Vec<HealthCheck>,
        election: Option<ElectionHealth>,
        delegation: Option<Delegation>,
        cancel: &CancellationToken,
    ) -> Vec<JoinHandle<()>> {
        let endpoints = endpoints(config, registry, ready, election);
        let mut tasks = Vec::new();
        if let (Some((bound, tls)), Some(delegation)) = (self.secure, delegation) {
            info!(address = %bound.local_addr(), "serving HTTPS");
            let router = delegation.protect(router(endpoints.clone(), Which::All));
            tasks.push(self.serving.spawn(bound.serve_https(tls, router, cancel.clone())));
        }
        let is_shared = config.metrics_addr == config.health_addr;
        let health_shows = if is_shared { Which::All } else { Which::HealthOnly };
        let listeners =
            [(self.metrics, Which::MetricsOnly, self.serving), (self.health, health_shows, Handle::current())];
        for (bound, which, runtime) in listeners {
            let Some(bound) = bound else { continue };
            info!(address = %bound.local_addr(), ?which, "serving HTTP");
            tasks.push(runtime.spawn(bound.serve_http(router(endpoints.clone(), which), cancel.clone())));
        }
        tasks
    }
}

/// Who authenticates and authorizes requests on the secure port, which is on the runtime `serving`; `None` without a secure port.
///
/// # Errors
/// When a kubeconfig or the client CA is unusable.
pub async fn delegation(
    config: &Config,
    clock: &SharedClock,
    observer: &RestClientMetrics,
    serving: &Handle,
) -> Result<Option<Delegation>, AppError> {
    let (config, clock, observer) = (config.clone(), Arc::clone(clock), Arc::new(observer.clone()));
    run_on(serving, async move { delegation_of(&config, &clock, observer).await }).await
}

async fn delegation_of(
    config: &Config,
    clock: &SharedClock,
    observer: Arc<dyn RequestObserver>,
) -> Result<Option<Delegation>, AppError> {
    let Some(secure) = &config.secure else { return Ok(None) };
    let (authentication, authorization) = (&secure.authentication, &secure.authorization);
    let file = authentication.kubeconfig.as_deref().map(|file| ("authentication-kubeconfig", file));
    let authenticating = client::connect_for_reviews(config, file, Some(Arc::clone(&observer))).await?;
    let authorizing = if authorization.kubeconfig == authentication.kubeconfig {
        authenticating.clone()
    } else {
        let file = authorization.kubeconfig.as_deref().map(|file| ("authorization-kubeconfig", file));
        client::connect_for_reviews(config, file, Some(observer)).await?
    };
    let source = match &authentication.client_ca {
        ClientCaConfig::None => None,
        ClientCaConfig::File(file) => Some(ClientCaSource::File(file.clone())),
        ClientCaConfig::Cluster => Some(ClientCaSource::Cluster(authenticating.clone())),
    };
    let client_ca = source.map(|source| ClientCa::new(source, Arc::clone(clock)));
    let may_wait = authentication.client_ca == ClientCaConfig::Cluster && authentication.tolerate_lookup_failure;
    if let Some(client_ca) = client_ca.as_ref().filter(|_| !may_wait) {
        client_ca.load().await?;
    }
    let audiences = authentication.token_audiences.clone();
    let reviewers = Reviewers { authentication: authenticating, audiences, authorization: authorizing };
    let ttls = Ttls {
        token: authentication.token_cache_ttl,
        authorized: authorization.authorized_ttl,
        unauthorized: authorization.unauthorized_ttl,
    };
    Ok(Some(Delegation::new(&authorization.always_allow_paths, client_ca, reviewers, ttls)))
}

fn endpoints(
    config: &Config,
    registry: &Registry,
    ready: Vec<HealthCheck>,
    election: Option<ElectionHealth>,
) -> Endpoints {
    let mut live = vec![HealthCheck::ping()];
    if let Some(election) = election {
        live.push(HealthCheck::new(HealthzAdaptor::NAME, move || election()));
    }
    let ready = live.iter().cloned().chain(ready).collect();
    let registry = registry.clone();
    let mut configz = config.configz();
    // Not a flag, but it decides when schedules without a time zone run.
    configz["localTimeZone"] = json!(local_zone().0.name());
    Endpoints {
        healthz: live.clone(),
        livez: live,
        readyz: ready,
        metrics: Arc::new(move || encode(&registry)),
        configz: json!({ "cronjobcontroller.config": configz }),
        version: VersionInfo::current(),
    }
}
