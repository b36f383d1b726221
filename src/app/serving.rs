//! The listeners: which the flags ask for, and what each shows.
//!
//! Guarantee: every address is taken, and every certificate read, before the controller does anything.

use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::ElectionHealth;
use crate::leader_election::HealthzAdaptor;
use crate::metrics::{Registry, encode};
use crate::options::Config;
use crate::schedule::local_zone;
use crate::server::{Bound, Endpoints, HealthCheck, ServerError, Tls, TlsSource, VersionInfo, Which, bind, router};

/// The addresses this process listens on.
pub struct Listeners {
    secure: Option<(Bound, Tls)>,
    metrics: Option<Bound>,
    health: Option<Bound>,
}

impl Listeners {
    /// Takes the addresses.
    pub async fn bind(config: &Config) -> Result<Self, ServerError> {
        let secure = match &config.secure {
            None => None,
            Some(secure) => {
                let source = match secure.tls.clone() {
                    Some((cert, key)) => TlsSource::Files { cert, key },
                    None => TlsSource::SelfSigned { hosts: vec!["localhost".into(), "127.0.0.1".into(), "::1".into()] },
                };
                Some((bind(secure.addr).await?, Tls::load(source)?))
            }
        };
        let metrics = match config.metrics_addr {
            Some(addr) => Some(bind(addr).await?),
            None => None,
        };
        let health = match config.health_addr {
            // One address for both is one listener.
            Some(addr) if config.metrics_addr != Some(addr) => Some(bind(addr).await?),
            _ => None,
        };
        Ok(Self { secure, metrics, health })
    }

    /// Answers until `cancel`; `ready` is what `/readyz` looks at beyond what `/livez` does.
    pub fn serve(
        self,
        config: &Config,
        registry: &Registry,
        ready: Vec<HealthCheck>,
        election: Option<ElectionHealth>,
        cancel: &CancellationToken,
    ) -> Vec<JoinHandle<()>> {
        let endpoints = endpoints(config, registry, ready, election);
        let mut tasks = Vec::new();
        if let Some((bound, tls)) = self.secure {
            info!(address = %bound.local_addr(), "serving HTTPS");
            tasks.push(tokio::spawn(bound.serve_https(tls, router(endpoints.clone(), Which::All), cancel.clone())));
        }
        let shared = config.metrics_addr.is_some() && config.metrics_addr == config.health_addr;
        let metrics_shows = if shared { Which::All } else { Which::MetricsOnly };
        for (bound, which) in [(self.metrics, metrics_shows), (self.health, Which::HealthOnly)] {
            let Some(bound) = bound else { continue };
            info!(address = %bound.local_addr(), ?which, "serving HTTP");
            tasks.push(tokio::spawn(bound.serve_http(router(endpoints.clone(), which), cancel.clone())));
        }
        tasks
    }
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
    // Not a flag, but it decides when schedules without a zone run.
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
