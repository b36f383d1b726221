//! The resolved configuration as `/configz` shows it.

use serde_json::{Value, json};

use super::go_syntax::format_duration;
use super::{Config, LogFormat, WebhookCertificate};

impl Config {
    /// The configuration as JSON: keys in camel case, durations as Go prints them, `null` for what is off. Holds no
    /// secret: credentials are in files, of which it names only the path. Matches the shape, not the schema, of
    /// upstream's `kubecontrollermanager.config.k8s.io`.
    pub fn configz(&self) -> Value {
        json!({
            "kubeconfig": self.kubeconfig,
            "master": self.master,
            "controllers": self.controllers.iter().map(|flavour| flavour.name).collect::<Vec<_>>(),
            "concurrentCronJobSyncs": self.concurrent_cronjob_syncs,
            "shards": self.shards,
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
                "tlsCertFile": secure.tls.as_ref().map(|(cert, _)| cert),
                "tlsPrivateKeyFile": secure.tls.as_ref().map(|(_, key)| key),
            })),
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
