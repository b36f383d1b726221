//! One of several replicas inside somebody else's process.
//!
//! Guarantees: what runs is what [`run`](super::run) runs, leader election included, without listeners; all chance
//! follows from the seed; an onlooker changes nothing.

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
use crate::sharding::Shard;

/// What a replica has to itself.
pub struct Replica {
    /// The API server.
    pub client: Client,
    /// The wall clock.
    pub clock: SharedClock,
    /// What it writes as the holder of the lease; another one after each start.
    pub identity: String,
    /// Decides every jitter.
    pub seed: u64,
    /// Who wants to see more of it than it writes.
    pub observer: Option<Arc<dyn ReplicaObserver>>,
}

/// Looks on, and must not block.
pub trait ReplicaObserver: Send + Sync + 'static {
    /// The controller of a shard was built; its caches are still empty.
    fn built(&self, shard: Shard, controller: Weak<Controller<RealControl>>);
    /// An Event is handed to the recorder, which may count it together with others or drop it.
    fn event(&self, regarding: &ObjectReference, type_: EventType, reason: &'static str, message: &str);
}

/// Runs a replica until `stop`; with an election, if `config` has one, until leadership is lost.
///
/// # Errors
/// When a setting of the election cannot be used, leadership is lost, an informer ends, or the work in flight does not
/// end.
pub async fn run_replica(config: &Config, replica: Replica, stop: CancellationToken) -> Result<(), AppError> {
    let Replica { client, clock, identity, seed, observer } = replica;
    let registry = Registry::new();
    let context = Arc::new(ControllerContext::new(config, &client, &registry, &clock, seed, observer)?);
    let candidate = match &config.leader_election {
        None => None,
        Some(settings) => {
            let rng = StdRng::seed_from_u64(seed.wrapping_add(1));
            Some(context.candidate(settings, client, &registry, (identity, rng))?)
        }
    };
    let work = Work::new(&context, candidate)?;
    context.run_to_end(work, Vec::new(), stop).await
}

/// A recorder with an onlooker.
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
