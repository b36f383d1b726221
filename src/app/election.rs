//! Leader election as this process uses it.
//!
//! Guarantees: no write passes the gate before this process leads, nor after its deadline. The elector runs on the caller's
//! runtime, which the work under the lease does not use. Metrics and Events of the election have upstream's names and texts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::SharedClock;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use rand::rngs::StdRng;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info};

use super::{AppError, Elector};
use crate::api::EventType;
use crate::events::{EventRecorder, ObjectReference};
use crate::leader_election::{Config, ConfigError, Hooks, KubeLeaseLock, LeaderElector, Leadership, Loss, Outcome};
use crate::metrics::LeaderElectionMetrics;
use crate::options::LeaderElectionConfig;
use crate::shutdown::LAST_RELEASE;
use crate::sim;

/// How long after the end of its lease a leader is still called healthy. Matches upstream.
pub const HEALTH_TIMEOUT: Duration = Duration::from_secs(20);

/// A candidate for the lease under this process's identity.
pub struct Candidate {
    pub settings: LeaderElectionConfig,
    /// What is written on the lease about this process.
    pub annotations: BTreeMap<String, String>,
    /// A client of its own, so that no other request delays the election's.
    pub client: Client,
    pub clock: SharedClock,
    pub metrics: LeaderElectionMetrics,
    /// The holder identity in the lease.
    pub identity: String,
    /// Randomness that spreads the attempts.
    pub rng: StdRng,
}

impl Candidate {
    /// The elector.
    pub fn elector(self, recorder: Arc<dyn EventRecorder>) -> Result<Elector, ConfigError> {
        let hooks = self.hooks(recorder);
        let (settings, name) = (&self.settings, &*self.settings.name);
        let config = Config {
            lease_duration: settings.lease_duration,
            renew_deadline: settings.renew_deadline,
            retry_period: settings.retry_period,
            annotations: self.annotations.clone(),
            ..Config::new(&settings.namespace, name, &self.identity)
        };
        let lock = KubeLeaseLock::new(self.client.clone(), &settings.namespace, name);
        LeaderElector::new(config, lock, self.clock, hooks, self.rng)
    }

    /// Metrics, Events and log lines of the election.
    fn hooks(&self, recorder: Arc<dyn EventRecorder>) -> Hooks {
        let name = &self.settings.name;
        let (status, slowpath) = ((self.metrics.clone(), name.to_owned()), (self.metrics.clone(), name.to_owned()));
        let own = self.identity.clone();
        Hooks {
            on_master_status: Some(Box::new(
                move |leads| {
                    if leads { status.0.on(&status.1) } else { status.0.off(&status.1) }
                },
            )),
            on_slowpath: Some(Box::new(move || slowpath.0.slowpath_exercised(&slowpath.1))),
            on_event: Some(Box::new(move |lease, note| {
                recorder.event(&reference(lease), EventType::Normal, "LeaderElection", note.to_owned());
            })),
            on_new_leader: Some(Box::new(move |leader| {
                if !leader.is_empty() && leader != own {
                    info!(leader, "another process leads");
                }
            })),
        }
    }
}

/// Works until `stop` or until the lease of `elector` is lost. Releases the lease only after the work has ended cleanly.
pub async fn under_lease<W>(
    elector: Elector,
    stop: &CancellationToken,
    work: impl FnOnce(Leadership) -> W,
) -> Result<(), AppError>
where
    W: Future<Output = Result<(), AppError>>,
{
    let resign = CancellationToken::new();
    let (elected, leadership) = oneshot::channel();
    let mut election =
        AbortOnDropHandle::new(tokio::spawn(sim::bind(elector.run(resign.clone(), move |leadership| {
            let _ = elected.send(leadership);
        }))));
    let leadership = tokio::select! {
        biased;
        () = stop.cancelled() => None,
        leadership = leadership => leadership.ok(),
    };
    if let Some(leadership) = leadership {
        tokio::select! {
            biased;
            done = work(leadership) => done?,
            outcome = &mut election => {
                error!(?outcome, "leader election lost");
                let is_hung = matches!(outcome, Ok(Outcome::Lost(Loss::NoSignOfLife)));
                return Err(if is_hung { AppError::Hung } else { AppError::LostLease });
            }
        }
    }
    // No work is in flight any more: only now may another process begin.
    resign.cancel();
    let _ = tokio::time::timeout(LAST_RELEASE, election).await;
    Ok(())
}

fn reference(lease: &ObjectMeta) -> ObjectReference {
    let text = |field: &Option<String>| field.as_deref().unwrap_or_default().into();
    ObjectReference {
        api_version: "coordination.k8s.io/v1".into(),
        kind: "Lease".into(),
        namespace: text(&lease.namespace),
        name: text(&lease.name),
        uid: text(&lease.uid),
        resource_version: text(&lease.resource_version),
    }
}
