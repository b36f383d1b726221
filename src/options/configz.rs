//! The resolved configuration as `/configz` shows it.

use serde_json::{Value, json};

use super::go_syntax::format_duration;
use super::{AuthenticationConfig, AuthorizationConfig, ClientCaConfig, Config, LogFormat, WebhookCertificate};
use crate::server::TlsVersion;

impl Config {
    /// The configuration as JSON: keys in camel case, durations as Go prints them, `null` for what is off. Contains no
    /// secrets, only the paths of credential files. Matches the shape, not the schema, of upstream's
    /// `kubecontrollermanager.config.k8s.io`.
    pub fn configz(&self) -> Value {
        json!({
            "kubeconfig": self.kubeconfig,
            "master": self.master,
            "controllers": self.controllers.iter().map(|controller_kind| controller_kind.name).collect::<Vec<_>>(),
            "manage": self.manage.name(),
            "policies": self.policies.enabled,
            "spreadSeed": &*self.policies.seed,
            "publish": self.publish.names(),
            "concurrentCronJobSyncs": self.concurrent_cronjob_syncs,
            "clientConnection": self.kube_api.map(|limit| json!({ "qps": limit.qps, "burst": limit.burst })),
            "leaderElection": self.leader_election.as_ref().map(|election| json!({
                "resourceLock": "leases",
                "resourceNamespace": election.namespace,
                "resourceName": election.name,
                "leaseDuration": format_duration(election.lease_duration),
                "renewDeadline": format_duration(election.renew_deadline),
                "retryPeriod": format_duration(election.retry_period),
            })),
            "secureServing": self.secure.as_ref().map(|secure| json!({
                "bindAddress": secure.addr,
                "tlsCertFile": secure.certificate.as_ref().map(|(cert, _)| cert),
                "tlsPrivateKeyFile": secure.certificate.as_ref().map(|(_, key)| key),
                "tlsMinVersion": match secure.tls.min_version {
                    TlsVersion::Tls12 => "VersionTLS12",
                    TlsVersion::Tls13 => "VersionTLS13",
                },
                "tlsCipherSuites": secure.tls.cipher_suites,
            })),
            "authentication": self.secure.as_ref().map(|secure| authentication(&secure.authentication)),
            "authorization": self.secure.as_ref().map(|secure| authorization(&secure.authorization)),
            "metricsBindAddress": self.metrics_addr,
            "healthProbeBindAddress": self.health_addr,
            "webhook": self.webhook.as_ref().map(|webhook| json!({
                "bindAddress": webhook.addr,
                "certDir": match &webhook.certificate {
                    WebhookCertificate::Directory(directory) => Some(directory),
                    WebhookCertificate::SelfSigned(_) => None,
                },
            })),
            "namespaces": self.namespaces,
            "cronJobMetrics": self.cronjob_metrics,
            "logging": {
                "format": match self.logging_format {
                    LogFormat::Text => "text",
                    LogFormat::Json => "json",
                },
                "verbosity": self.verbosity,
            },
        })
    }
}

fn authentication(config: &AuthenticationConfig) -> Value {
    json!({
        "kubeconfig": config.kubeconfig,
        "tokenAudiences": config.token_audiences,
        "tokenCacheTTL": format_duration(config.token_cache_ttl),
        "clientCAFile": match &config.client_ca {
            ClientCaConfig::File(file) => Some(file),
            ClientCaConfig::None | ClientCaConfig::Cluster => None,
        },
        "skipLookup": config.client_ca == ClientCaConfig::None,
        "tolerateLookupFailure": config.tolerate_lookup_failure,
    })
}

fn authorization(config: &AuthorizationConfig) -> Value {
    json!({
        "kubeconfig": config.kubeconfig,
        "alwaysAllowPaths": config.always_allow_paths,
        "authorizedTTL": format_duration(config.authorized_ttl),
        "unauthorizedTTL": format_duration(config.unauthorized_ttl),
    })
}
