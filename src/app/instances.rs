//! Watches for other instances of the controller that work on the same CronJobs.
//!
//! Guarantees: one small list every 25 seconds, of the leases beside the own one; nothing is written. What changes is logged once,
//! within a minute. A failure delays nothing else, and is logged once.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, ListParams};
use prometheus::IntGaugeVec;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::leader_election::{Conflict, Coverage, LeaseObservations};
use crate::options::{Config, LeaderElectionConfig};

/// The time between two lists, longer than the usual lease: one that is not renewed meanwhile has no holder. Two lists have to show
/// another instance.
pub const PERIOD: Duration = Duration::from_secs(25);

/// How long an answer may take.
const LONGEST: Duration = Duration::from_secs(10);

impl Config {
    /// What an instance with these settings works on.
    pub fn coverage(&self) -> Coverage {
        Coverage::new(self.controllers.iter().map(|controller_kind| controller_kind.name), &self.namespaces)
            .managing(self.manage)
    }
}

/// Compares what this instance works on with what the leases in `settings`' namespace say, for ever.
pub async fn compare(client: Client, settings: LeaderElectionConfig, own: Coverage, gauge: IntGaugeVec) {
    let leases: Api<Lease> = Api::namespaced(client, &settings.namespace);
    let mut observations = LeaseObservations::default();
    let (mut known, mut has_failed) = (Vec::new(), false);
    report(&gauge, &known);
    loop {
        // From the API server's cache.
        match timeout(LONGEST, leases.list(&ListParams::default().match_any())).await {
            Ok(Ok(list)) => {
                has_failed = false;
                let found = observations.conflicts((&settings.name, &own), &list.items);
                if found != known {
                    tell(&settings, &found);
                    report(&gauge, &found);
                    known = found;
                }
            }
            _ if has_failed => {}
            failed => {
                has_failed = true;
                let error = match failed {
                    Ok(Err(error)) => apimachinery::causes::with_causes(&error),
                    _ => "no answer in time".to_owned(),
                };
                warn!(error, namespace = settings.namespace, "cannot list leases: other instances are not noticed");
            }
        }
        sleep(PERIOD).await;
    }
}

/// The number of conflicts of each kind.
fn report(gauge: &IntGaugeVec, found: &[Conflict]) {
    let of_lease = found.iter().filter(|conflict| matches!(conflict, Conflict::Lease { .. })).count();
    for (reason, number) in [("lease", of_lease), ("namespaces", found.len() - of_lease)] {
        gauge.with_label_values(&[reason]).set(i64::try_from(number).unwrap_or(i64::MAX));
    }
}

fn tell(settings: &LeaderElectionConfig, found: &[Conflict]) {
    let lease = format!("{}/{}", settings.namespace, settings.name);
    if found.is_empty() {
        info!(lease, "no other instance works on the same objects any more");
    }
    for conflict in found {
        match conflict {
            Conflict::Namespaces { lease: other, shared } => {
                let other = format!("{}/{other}", settings.namespace);
                warn!(
                    lease,
                    other, "another instance works in {shared}, too: no slot runs twice, but both do the work"
                );
            }
            Conflict::Lease { namespaces } => {
                warn!(
                    lease,
                    "another instance holds this lease and works in {namespaces}: this one waits, and its own namespaces have no leader"
                );
            }
        }
    }
}
