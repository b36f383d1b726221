//! The process: what is built at the start, in which order it runs, and how it ends.
//!
//! Guarantees: everything that can be wrong with the configuration is found before the first request; a standby keeps
//! its caches warm and writes nothing; on SIGTERM or SIGINT what is in flight is finished, the lease is given up after
//! the last write and not before, and the process ends within [`GRACE`]; a leader that lost its lease stops at once.
//!
//! Matches upstream `cmd/kube-controller-manager/app/controllermanager.go` (`Run`) for one controller.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::TimeDelta;
use kube::Client;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tracing::{error, info};

use crate::api::ObjectName;
use crate::api::batch_v1::{CronJob, Job};
use crate::cache::{Informer, Store};
use crate::client::{self, ConnectError, WriteGate};
use crate::clock::{SharedClock, SystemClock};
use crate::controller::control::RealControl;
use crate::controller::{Controller, CronJobHandler, JobHandler, Parts};
use crate::events;
use crate::leader_election::{self, ConfigError, Leadership, default_identity};
use crate::metrics::{
    ControllerMetrics, LeaderElectionMetrics, MetricsError, ProcessCollector, Registry, RestClientMetrics,
};
use crate::options::{Config, Flavour, LeaderElectionConfig};
use crate::schedule::local_zone;
use crate::server::{HealthCheck, ServerError};
use crate::task;
use crate::webhook::Webhooks;
use crate::workqueue::{self, WorkQueue};

mod election;
mod replica;
mod requests;
mod serving;
mod warm;

pub use self::replica::{Onlooker, Replica, run_replica};

/// The longest a shutdown takes: the work in flight, then the events, then the lease.
pub const GRACE: Duration = Duration::from_secs(20);

/// How long one request of a sync may take where no lease says otherwise.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// How many events may wait to be written: a burst of thousands of CronJobs makes as many at once.
const MAX_PENDING_EVENTS: usize = 16_384;

/// How many events are written at a time once nothing more urgent is to be done: the next burst may come in a minute.
const EVENTS_IN_FLIGHT: usize = 16;

/// Why the process could not run, or ended otherwise than it was told to.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// A listener could not be opened.
    #[error(transparent)]
    Serve(#[from] ServerError),
    /// No client for the API server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A metric of that name was registered twice.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The settings of the election contradict each other.
    #[error(transparent)]
    LeaderElection(#[from] ConfigError),
    /// Another process leads now.
    #[error("leader election lost")]
    LostLease,
    /// The caches are no longer kept: to work on would be to work on the past.
    #[error("an informer ended")]
    InformerEnded,
    /// The work in flight did not end.
    #[error("shutdown took longer than {} s", GRACE.as_secs())]
    SlowShutdown,
}

/// Runs the controller until `stop`.
///
/// # Errors
/// When something of the configuration cannot be used, and when leadership is lost.
pub async fn run(config: Config, stop: CancellationToken) -> Result<(), AppError> {
    let clock: SharedClock = Arc::new(SystemClock);
    let registry = Registry::new();
    ProcessCollector::register(&registry)?;
    let listeners = serving::Listeners::bind(&config).await?;
    let webhooks = match &config.webhook {
        Some(webhook) => Some(Webhooks::bind(webhook).await?),
        None => None,
    };
    let mut ready: Vec<HealthCheck> = webhooks.iter().map(Webhooks::health_check).collect();

    let observer = requests::Observer::new(RestClientMetrics::register(&registry)?);
    let client = client::connect(&config, Some(Arc::new(observer.clone()))).await?;
    let ends = CancellationToken::new();
    let mut served = match webhooks {
        Some(webhooks) => webhooks.serve(client.clone(), Arc::clone(&clock), &ends),
        None => Vec::new(),
    };
    if !config.controllers.contains(&Flavour::CronJob) {
        served.extend(listeners.serve(&config, &registry, ready, None, &ends));
        stop.cancelled().await;
        end(&ends, served).await;
        return Ok(());
    }
    let parts = Assembly::new(&config, &client, &registry, &clock, rand::random(), &ends, None)?;

    let election = match &config.leader_election {
        None => None,
        Some(settings) => {
            let client = client::connect_for_leader_election(&config, Some(Arc::new(observer))).await?;
            let rng = StdRng::from_rng(&mut rand::rng());
            Some(parts.elector(settings, client, &registry, (default_identity(), rng))?)
        }
    };
    let health = election.as_ref().map(|elector| elector.healthz_adaptor(election::HEALTH_TIMEOUT));
    ready.push(HealthCheck::informer_sync(parts.has_synced()));
    served.extend(listeners.serve(&config, &registry, ready, health, &ends));

    parts.run_to_end(&config, election, served, stop, &ends).await
}

/// Runs the controller alone until `stop`, on a client and a clock that somebody else made: no listeners, no election.
/// `seed` decides every jitter.
///
/// # Errors
/// When a metric is registered twice, an informer ends, or the work in flight does not end.
pub async fn run_embedded(
    config: &Config,
    client: &Client,
    clock: &SharedClock,
    seed: u64,
    stop: CancellationToken,
) -> Result<(), AppError> {
    let ends = CancellationToken::new();
    let parts = Assembly::new(config, client, &Registry::new(), clock, seed, &ends, None)?;
    parts.run_to_end(config, None, Vec::new(), stop, &ends).await
}

type Elector = leader_election::LeaderElector<leader_election::KubeLeaseLock>;

/// The controller and what feeds it, running or ready to run.
struct Assembly {
    client: Client,
    clock: SharedClock,
    controller: Arc<Controller<RealControl>>,
    cron_jobs: Arc<Store<CronJob>>,
    jobs: Arc<Store<Job>>,
    recorder: Arc<dyn events::EventRecorder>,
    gate: Arc<election::Gate>,
    /// Whether another process led while this one's caches filled.
    stood_by: Arc<AtomicBool>,
    informers: JoinSet<()>,
    /// The one task that writes events, and what tells it that no more come.
    events: TaskTracker,
    events_end: CancellationToken,
}

impl Assembly {
    fn new(
        config: &Config,
        client: &Client,
        registry: &Registry,
        clock: &SharedClock,
        seed: u64,
        ends: &CancellationToken,
        onlooker: Option<&Arc<dyn Onlooker>>,
    ) -> Result<Self, AppError> {
        let metrics = ControllerMetrics::register(registry)?;
        let queue: WorkQueue<ObjectName> = WorkQueue::new(workqueue::Config::new("cronjob", Arc::clone(clock)));
        queue.register_metrics(registry)?;
        let (zone, source) = local_zone();
        info!(%zone, source, "schedules that name no time zone run in this one");

        let busy = queue.clone();
        let (recorder, sink) = recorder(clock, &metrics, seed, onlooker);

        let gate = Arc::new(election::Gate::default());
        let may_write: WriteGate = {
            let gate = Arc::clone(&gate);
            Arc::new(move || gate.may_write())
        };
        let mut cron_job_informer = Informer::<CronJob>::new(client.clone(), &config.namespaces, seed);
        let mut job_informer = Informer::<Job>::new(client.clone(), &config.namespaces, !seed);
        let (cron_jobs, jobs) = (cron_job_informer.store(), job_informer.store());
        let controller = Controller::new(Parts {
            queue,
            cron_jobs: Arc::clone(&cron_jobs),
            jobs: Arc::clone(&jobs),
            control: RealControl::new(client.clone(), Arc::clone(&may_write), request_timeout(config)),
            recorder: Arc::clone(&recorder),
            clock: Arc::clone(clock),
            metrics,
            local_zone: zone,
            schedule_delta: TimeDelta::zero(),
        });
        cron_job_informer.add_event_handler(Arc::new(CronJobHandler(Arc::clone(&controller))));
        job_informer.add_event_handler(Arc::new(JobHandler(Arc::clone(&controller))));
        let (events, events_end) = (TaskTracker::new(), CancellationToken::new());
        let (sink_client, opened, end) =
            (events::KubeSink::new(client.clone(), may_write), Arc::clone(&gate), events_end.clone());
        events.spawn(task::owned(async move {
            // What a standby has to tell is told by the leader, and by itself once it leads.
            if end.run_until_cancelled(opened.opened()).await.is_none() {
                return;
            }
            let dropped = sink.yielding_to(move || busy.is_busy()).run(sink_client, end).await;
            if dropped > 0 {
                error!(dropped, "events were not written before the end");
            }
        }));
        let mut informers = JoinSet::new();
        informers.spawn(task::owned(cron_job_informer.run(ends.clone())));
        informers.spawn(task::owned(job_informer.run(ends.clone())));
        Ok(Self {
            client: client.clone(),
            clock: Arc::clone(clock),
            controller,
            cron_jobs,
            jobs,
            recorder,
            gate,
            stood_by: Arc::default(),
            informers,
            events,
            events_end,
        })
    }

    /// The candidate for the lease, under this identity and with this chance.
    fn elector(
        &self,
        settings: &LeaderElectionConfig,
        client: Client,
        registry: &Registry,
        candidate: (String, StdRng),
    ) -> Result<Elector, AppError> {
        let metrics = LeaderElectionMetrics::register(registry)?;
        let hooks = election::hooks(&settings.name, metrics, Arc::clone(&self.recorder), &self.stood_by);
        Ok(election::elector(settings, client, Arc::clone(&self.clock), candidate, hooks)?)
    }

    /// Works until `stop`, then ends what is in the background, `served` included.
    async fn run_to_end(
        mut self,
        config: &Config,
        election: Option<Elector>,
        served: Vec<JoinHandle<()>>,
        stop: CancellationToken,
        ends: &CancellationToken,
    ) -> Result<(), AppError> {
        let mut informers = std::mem::take(&mut self.informers);
        let result = tokio::select! {
            biased;
            result = lead(config, &self, election, stop) => result,
            _ = informers.join_next() => Err(AppError::InformerEnded),
        };
        self.write_last_events().await;
        end(ends, served).await;
        result
    }

    /// Writes what events there are, as far as they can be written in time and this process leads; no more will come.
    async fn write_last_events(&self) {
        self.events_end.cancel();
        self.events.close();
        let _ = tokio::time::timeout(Duration::from_secs(3), self.events.wait()).await;
    }

    fn has_synced(&self) -> impl Fn() -> bool + Clone + Send + Sync + 'static {
        let (cron_jobs, jobs) = (Arc::clone(&self.cron_jobs), Arc::clone(&self.jobs));
        move || cron_jobs.has_synced() && jobs.has_synced()
    }

    /// Opens the gate for writes and works until `stop`.
    async fn work(&self, leadership: Leadership, workers: usize, stop: CancellationToken) {
        self.gate.open(leadership);
        if self.stood_by.load(Ordering::Relaxed) {
            self.controller.suspect_views();
        }
        let synced = async {
            self.cron_jobs.wait_for_cache_sync().await;
            self.jobs.wait_for_cache_sync().await;
        };
        if stop.run_until_cancelled(synced).await.is_some() {
            info!(cronjobs = self.cron_jobs.len(), jobs = self.jobs.len(), "caches are synced");
            let queue = self.controller.queue().clone();
            let warm = warm::keep_warm(queue, Arc::clone(&self.clock), self.client.clone(), workers);
            let _warm = AbortOnDropHandle::new(tokio::spawn(task::owned(warm)));
            self.controller.run(workers, stop).await;
        }
    }
}

/// Ends what is served.
async fn end(ends: &CancellationToken, served: Vec<JoinHandle<()>>) {
    ends.cancel();
    let _ = tokio::time::timeout(Duration::from_secs(3), futures::future::join_all(served)).await;
}

/// Where events go, and the task that writes them.
fn recorder(
    clock: &SharedClock,
    metrics: &ControllerMetrics,
    seed: u64,
    onlooker: Option<&Arc<dyn Onlooker>>,
) -> (Arc<dyn events::EventRecorder>, events::EventSinkTask) {
    let discarded = metrics.events_discarded_total.clone();
    let config = events::Config {
        max_queued: MAX_PENDING_EVENTS,
        max_pending: MAX_PENDING_EVENTS,
        max_in_flight: EVENTS_IN_FLIGHT,
        seed: Some(seed),
        ..events::Config::default()
    };
    let (recorder, sink) = events::Recorder::new(config, Arc::clone(clock), move |reason| {
        discarded.with_label_values(&[reason]).inc();
    });
    match onlooker {
        None => (Arc::new(recorder), sink),
        Some(onlooker) => (Arc::new(replica::Overheard::new(recorder, Arc::clone(onlooker))), sink),
    }
}

/// A write that begins while the lease is surely ours must end before another process can hold it.
fn request_timeout(config: &Config) -> Duration {
    let Some(settings) = &config.leader_election else { return REQUEST_TIMEOUT };
    let margin = settings.lease_duration.saturating_sub(settings.renew_deadline);
    margin.mul_f64(0.8).clamp(Duration::from_millis(100), REQUEST_TIMEOUT)
}

/// Works, as the leader where there is an election, until `stop` or until the lease is lost.
async fn lead(
    config: &Config,
    parts: &Assembly,
    election: Option<Elector>,
    stop: CancellationToken,
) -> Result<(), AppError> {
    let workers = config.concurrent_cronjob_syncs.get();
    let Some(elector) = election else {
        let work = parts.work(Leadership::unconditional(), workers, stop.clone());
        return finish_in_time(work, &stop).await;
    };
    let resign = CancellationToken::new();
    let (elected, mut leadership) = oneshot::channel();
    let mut election = tokio::spawn(task::owned(elector.run(resign.clone(), move |leadership| {
        let _ = elected.send(leadership);
    })));
    let leadership = tokio::select! {
        biased;
        () = stop.cancelled() => None,
        leadership = &mut leadership => leadership.ok(),
    };
    if let Some(leadership) = leadership {
        tokio::select! {
            biased;
            done = finish_in_time(parts.work(leadership, workers, stop.clone()), &stop) => done?,
            outcome = &mut election => {
                error!(?outcome, "leader election lost");
                return Err(AppError::LostLease);
            }
        }
    }
    parts.write_last_events().await;
    // Nothing is in flight any more: only now may another process begin.
    resign.cancel();
    let _ = tokio::time::timeout(Duration::from_secs(5), election).await;
    Ok(())
}

async fn finish_in_time(work: impl Future<Output = ()>, stop: &CancellationToken) -> Result<(), AppError> {
    let overdue = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        biased;
        () = work => Ok(()),
        () = overdue => Err(AppError::SlowShutdown),
    }
}

#[cfg(test)]
mod tests;
