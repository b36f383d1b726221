//! A whole cluster in this process: API server, CronJob controller, simulated Jobs.
//!
//! Guarantees: no sockets and no threads. Time comes from the given clock and from tokio, randomness from the seed; so with
//! paused time a day takes only as long as its computations. [`Cluster::stop`] stops the controllers before the informers that
//! feed them, and writes all Events.

use std::num::NonZeroUsize;
use std::sync::Arc;

use apimachinery::clock::SharedClock;
use apiserver::{ApiServer, discovery, kinds};
use futures::FutureExt as _;
use kube::Client;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::job_controller::{self, COMPONENT, JobHandler, PodHandler, Simulation};
use super::kubelet::{self, Settings};
use super::objects::{Job, Pod};
use crate::api::{ControllerKind, Interner, Object as _};
use crate::app::{self, AppError};
use crate::cache::{Informer, ResourceEventHandler, Store};
use crate::client::REQUEST_DEADLINE;
use crate::events;
use crate::leader_election::Gate;
use crate::options;

/// The number of Jobs and Pods that are simulated concurrently; each mostly waits for the API server.
const SIMULATION_WORKERS: usize = 16;
/// The number of concurrent CronJob syncs.
const SYNCS: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not 0");

/// Why a cluster stopped running.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The CronJob controller failed.
    #[error(transparent)]
    Controller(#[from] AppError),
    /// A part of the cluster ended unexpectedly.
    #[error("a part of the cluster has ended: {0}")]
    Ended(String),
}

/// The configuration of a cluster.
#[derive(Debug, Clone)]
pub struct Config {
    /// Wall time.
    pub clock: SharedClock,
    /// The seed of all randomness.
    pub seed: u64,
    /// How containers behave.
    pub settings: Settings,
    /// The controllers to run.
    pub controllers: Vec<ControllerKind>,
}

/// An API server that serves all known kinds and holds no objects.
pub fn api_server(clock: SharedClock, seed: u64) -> ApiServer {
    let mut config = apiserver::Config::new(clock, kinds::all());
    config.discovery = Some(discovery::respond);
    config.seed = seed;
    ApiServer::new(config)
}

/// A running cluster.
pub struct Cluster {
    /// The store of Jobs.
    pub jobs: Arc<Store<Job>>,
    /// The store of Pods.
    pub pods: Arc<Store<Pod>>,
    stop: CancellationToken,
    ends: CancellationToken,
    controllers: JoinSet<Result<(), AppError>>,
    background: JoinSet<()>,
}

impl Cluster {
    /// Starts the controllers on a server. `watchers` are further handlers of Job events.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(server: &ApiServer, config: &Config, watchers: Vec<Arc<dyn ResourceEventHandler<Job>>>) -> Self {
        let (stop, ends) = (CancellationToken::new(), CancellationToken::new());
        let client = server.client();
        let mut jobs = Informer::<Job>::new(client.clone(), &[], config.seed.wrapping_add(2));
        let mut pods = Informer::<Pod>::new(client.clone(), &[], config.seed.wrapping_add(3));
        let (recorder, sink) = events::Recorder::new(
            events::Config {
                component: COMPONENT,
                seed: Some(config.seed),
                max_queued: 16_384,
                ..events::Config::default()
            },
            Arc::clone(&config.clock),
            |_| {},
        );
        let simulation = Simulation::new(job_controller::Parts {
            client: client.clone(),
            jobs: jobs.store(),
            pods: pods.store(),
            recorder: Arc::new(recorder),
            clock: Arc::clone(&config.clock),
            settings: config.settings,
        });
        jobs.add_event_handler(Arc::new(JobHandler(Arc::clone(&simulation))));
        for watcher in watchers {
            jobs.add_event_handler(watcher);
        }
        pods.add_event_handler(Arc::new(PodHandler(Arc::clone(&simulation))));
        server.set_log_source(Arc::new(|pod, container| {
            let pod = Pod::decode(&pod.to_string(), &Interner::default()).ok()?;
            kubelet::log(&pod, container)
        }));

        let (job_store, pod_store) = (jobs.store(), pods.store());
        let mut controllers = JoinSet::new();
        controllers.spawn(simulation.run(SIMULATION_WORKERS, stop.clone()).map(Ok));
        if !config.controllers.is_empty() {
            controllers.spawn(run_controller(named(server), config.clone(), stop.clone()));
        }
        let mut background = JoinSet::new();
        background.spawn(jobs.run(ends.clone()));
        background.spawn(pods.run(ends.clone()));
        background.spawn(
            sink.run(events::KubeSink::new(client, Arc::new(Gate::unconditional()), REQUEST_DEADLINE), ends.clone())
                .map(drop),
        );
        Self { jobs: job_store, pods: pod_store, stop, ends, controllers, background }
    }

    /// Waits until a part of the cluster ends unexpectedly.
    ///
    /// # Errors
    /// Always: the cause.
    pub async fn failure(&mut self) -> ClusterError {
        let ended = tokio::select! {
            Some(ended) = self.controllers.join_next() => match ended {
                Ok(Err(error)) => return error.into(),
                other => other.err(),
            },
            Some(ended) = self.background.join_next() => ended.err(),
            else => None,
        };
        ClusterError::Ended(ended.map_or_else(|| "it returned".to_owned(), |error| error.to_string()))
    }

    /// Stops the controllers, lets them finish work in progress, and then stops the informers, the simulation and the Event
    /// writer.
    ///
    /// # Errors
    /// When the work in progress does not end.
    pub async fn stop(mut self) -> Result<(), ClusterError> {
        self.stop.cancel();
        let mut result = Ok(());
        while let Some(ended) = self.controllers.join_next().await {
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(error)) => result = Err(error.into()),
                Err(panic) => result = Err(ClusterError::Ended(panic.to_string())),
            }
        }
        self.ends.cancel();
        // Events are written for at most two seconds.
        while self.background.join_next().await.is_some() {}
        result
    }
}

/// A client whose writes the server knows as those of this controller.
fn named(server: &ApiServer) -> Client {
    let name = |mut request: http::Request<kube::client::Body>| {
        request.headers_mut().insert(http::header::USER_AGENT, http::HeaderValue::from_static(options::PROGRAM));
        request
    };
    Client::new(tower::util::MapRequest::new(server.into_service(), name), "default")
}

async fn run_controller(client: Client, config: Config, stop: CancellationToken) -> Result<(), AppError> {
    let options = options::Config { controllers: config.controllers, ..options::Config::embedded(SYNCS) };
    app::run_embedded(&options, &client, &config.clock, config.seed, stop).await
}
