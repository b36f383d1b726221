//! One of several replicas inside another program, such as a simulation.
//!
//! Guarantees: the replica runs what [`run`](super::run) runs, leader election included, without listeners. All randomness
//! follows from the seed. An observer changes nothing.

use std::sync::{Arc, Weak};

use apimachinery::clock::SharedClock;
use kube::Client;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio_util::sync::CancellationToken;

use super::{AppError, ControllerContext, Work};
use crate::api::EventType;
use crate::controller::Controller;
use crate::controller::control::RealControl;
use crate::events::{EventRecorder, ObjectReference, Recorder};
use crate::metrics::Registry;
use crate::options::Config;

/// The settings of one replica.
pub struct Replica {
    /// The API server; made by [`crate::client`], which checks the lease before each write.
    pub client: Client,
    /// The wall clock.
    pub clock: SharedClock,
    /// Its holder identity in the lease; a new one after each start.
    pub identity: String,
    /// Decides every jitter.
    pub seed: u64,
    /// Observes more than the replica writes.
    pub observer: Option<Arc<dyn ReplicaObserver>>,
}

/// Observes a replica; must not block.
pub trait ReplicaObserver: Send + Sync + 'static {
    /// A controller was built; its caches are still empty.
    fn built(&self, controller: Weak<Controller<RealControl>>);
    /// An Event is handed to the recorder, which may combine it with others or drop it.
    fn event(&self, regarding: &ObjectReference, type_: EventType, reason: &'static str, message: &str);
}

/// Runs a replica until `stop`; with leader election (if `config` enables it), until it loses the lease.
///
/// # Errors
/// When a setting of the election is unusable, leadership is lost, an informer ends, or the work in flight does not end.
pub async fn run_replica(config: &Config, replica: Replica, stop: CancellationToken) -> Result<(), AppError> {
    let Replica { client, clock, identity, seed, observer } = replica;
    let registry = Registry::new();
    let context = Arc::new(ControllerContext::new(config, &client, &registry, &clock, seed, observer)?);
    let candidate = match &config.leader_election {
        None => None,
        Some(settings) => {
            let rng = StdRng::seed_from_u64(seed.wrapping_add(1));
            Some(context.candidate(settings, client, &registry, identity, rng)?)
        }
    };
    let work = Work::new(&context, candidate)?;
    context.run_to_end(work, Vec::new(), stop).await
}

/// A recorder that also passes each event to an observer.
pub(super) struct TeeRecorder {
    recorder: Recorder,
    observer: Arc<dyn ReplicaObserver>,
}

impl TeeRecorder {
    pub(super) fn new(recorder: Recorder, observer: Arc<dyn ReplicaObserver>) -> Self {
        Self { recorder, observer }
    }
}

impl EventRecorder for TeeRecorder {
    fn event(&self, regarding: &ObjectReference, type_: EventType, reason: &'static str, message: String) {
        self.observer.event(regarding, type_, reason, &message);
        self.recorder.event(regarding, type_, reason, message);
    }
}
