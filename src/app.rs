//! The process: what it builds at the start, in which order it runs, and how it ends.
//!
//! Guarantees: the process finds every configuration error before its first request. A standby keeps its caches warm and
//! writes nothing. On SIGTERM or SIGINT the work in flight finishes, and the lease is released after the last write. The
//! work in flight has [`GRACE`] for that; [`shutdown`](crate::shutdown) sets the time of every step. A leader that lost its
//! lease stops at once. Workers that hang delay neither the election nor the end of the process (`runtimes`), and a leader whose
//! workers all hang loses its lease.
//!
//! Matches `Run` in upstream `cmd/kube-controller-manager/app/controllermanager.go`, for the enabled controllers: they share
//! one lease, one leadership check and one event writer; each has its own informers and queue.

use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::{SharedClock, SystemClock};
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use kube::Client;
use rand::SeedableRng;
use rand::rngs::StdRng;
use schedule::{TIME_ZONE_DATA, local_zone};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};

use crate::api::batch_v1::{CronJob, Job};
use crate::api::{NameConflict, ObjectName};
use crate::cache::metrics::CacheMetrics;
use crate::cache::{Informer, Store};
use crate::client;
use crate::controller::control::RealControl;
use crate::controller::cron_job_metrics::CronJobMetrics;
use crate::controller::namespaces::Namespaces;
use crate::controller::{Controller, LONGEST_CREATE, Parts};
use crate::events;
use crate::leader_election::{self, Gate, Leadership, Takeover, default_identity};
use crate::metrics::{
    ControllerMetrics, LeaderElectionMetrics, MetricsError, ProcessCollector, Registry, RestClientMetrics,
    register_time_zone_data,
};
use crate::options::{Config, ControllerKind, LeaderElectionConfig};
use crate::server::HealthCheck;
use crate::shutdown::{GRACE, LAST_CONNECTIONS, LAST_EVENTS};
use crate::sim;
use crate::traces::Traces;
use crate::webhook::Webhooks;
use crate::workqueue::{self, Membership, QueueGroup, WorkQueue};

mod caches;
mod election;
mod error;
mod instances;
mod namespaces;
mod replica;
mod requests;
mod runtimes;
mod serving;
mod warm;

use self::caches::{Caches, LookAtCaches};
use self::election::{Candidate, under_lease};
pub use self::error::AppError;
use self::namespaces::NamespaceSource;
pub use self::replica::{Replica, ReplicaObserver, run_replica};
use self::runtimes::{Background, run_on};

/// How long status writes and Events wait at most while the Jobs of due slots are created, so that these do not share the API
/// server with them. Several times what the Jobs of a second of `spread` take; in a larger burst the Jobs go first anyway. A longer
/// create, for example because of a webhook, does not hold up the statuses of others.
const PAUSE_AT_DUE: Duration = Duration::from_millis(250);

/// How many events may wait: a burst of thousands of CronJobs records as many at once.
const MAX_PENDING_EVENTS: usize = 16_384;

/// How many events are written concurrently once no more urgent work is left: the next burst may come within a minute.
const EVENTS_IN_FLIGHT: usize = 16;

/// Runs the controller until `stop`. The caller's runtime must be on a thread of its own, since it drives the election; this starts
/// further ones (`runtimes`).
///
/// # Errors
/// When a setting is unusable, and when leadership is lost.
pub fn run(config: Config, stop: CancellationToken) -> BoxFuture<'static, Result<(), AppError>> {
    // Boxed, so that it is compiled here, once, and not again in the binary.
    run_process(config, stop).boxed()
}

async fn run_process(config: Config, stop: CancellationToken) -> Result<(), AppError> {
    // Before the work begins there is nothing to finish: a signal does not wait for a credential plugin that hangs.
    match stop.run_until_cancelled(start(&config, &stop)).await {
        None => Ok(()),
        Some(started) => {
            let Started { context, work, served, runtimes: _runtimes } = started?;
            context.run_to_end(work, served, stop).await
        }
    }
}

/// A process that is ready to work.
struct Started {
    context: Arc<ControllerContext>,
    work: Work,
    served: Vec<JoinHandle<()>>,
    runtimes: [Background; 2],
}

/// Builds all that a process needs, and opens its listeners.
async fn start(config: &Config, stop: &CancellationToken) -> Result<Started, AppError> {
    let clock: SharedClock = Arc::new(SystemClock);
    let registry = Registry::new();
    ProcessCollector::register(&registry)?;
    register_time_zone_data(&registry, TIME_ZONE_DATA)?;
    let (workers, serving) = (Background::for_workers()?, Background::for_serving()?);
    let listeners = serving::Listeners::bind(config, serving.handle()).await?;
    let webhooks = match config.webhook.clone() {
        Some(webhook) => Some(run_on(workers.handle(), async move { Webhooks::bind(&webhook).await }).await?),
        None => None,
    };
    let mut ready: Vec<HealthCheck> = webhooks.iter().map(Webhooks::health_check).collect();

    let observer = RestClientMetrics::register(&registry)?;
    let client = connect(config, &observer, workers.handle()).await?;
    let delegation = serving::delegation(config, &clock, &observer, serving.handle()).await?;
    let mut context = ControllerContext::new(config, &client, &registry, &clock, rand::random(), None)?;
    context.workers = workers.handle().clone();
    let mut served = Vec::new();
    {
        let _entered = workers.handle().enter();
        context.traces = Traces::from_environment(&clock)?;
        if let Some(webhooks) = webhooks {
            served = webhooks.serve(client.clone(), Arc::clone(&clock), &context.ends);
        }
    }
    let context = Arc::new(context);
    let work = match &config.leader_election {
        None => Work::new(&context, None)?,
        Some(settings) => {
            let client = client::connect_for_leader_election(config, Some(Arc::new(observer))).await?;
            let rng = StdRng::from_rng(&mut rand::rng());
            Work::new(&context, Some(context.candidate(settings, client, &registry, default_identity(), rng)?))?
        }
    };
    ready.extend(caches::health_checks(work.caches()));
    ready.push(HealthCheck::shutdown(stop));
    served.extend(listeners.serve(config, &registry, ready, work.health(), delegation, &context.ends));

    Ok(Started { context, work, served, runtimes: [workers, serving] })
}

/// The client of the workers, on their runtime.
async fn connect(config: &Config, observer: &RestClientMetrics, workers: &Handle) -> Result<Client, AppError> {
    let (config, observer) = (config.clone(), Arc::new(observer.clone()));
    Ok(run_on(workers, async move { client::connect(&config, Some(observer)).await }).await?)
}

/// Runs the controller until `stop` on the caller's client and clock, without listeners or election; `seed` sets all jitter.
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
    let context = Arc::new(ControllerContext::new(config, client, &Registry::new(), clock, seed, None)?);
    let work = Work::new(&context, None)?;
    context.run_to_end(work, Vec::new(), stop).await
}

type Elector = leader_election::LeaderElector<leader_election::KubeLeaseLock>;

/// State that the controllers of one process share.
struct ControllerContext {
    config: Config,
    client: Client,
    /// The runtime of `client`, and of all that uses it.
    workers: Handle,
    clock: SharedClock,
    metrics: ControllerMetrics,
    cron_job_metrics: Option<CronJobMetrics>,
    cache_metrics: CacheMetrics,
    /// The enabled controllers, each with its queues.
    queues: Vec<(ControllerKind, QueueGroup)>,
    observer: Option<Arc<dyn ReplicaObserver>>,
    traces: Option<Arc<Traces>>,
    seed: u64,
    /// Cancels the background tasks.
    ends: CancellationToken,
}

/// The work of this process, under leader election if it is enabled.
struct Work {
    controllers: Controllers,
    elector: Option<Elector>,
}

impl ControllerContext {
    /// With the caller's runtime for the workers, too.
    fn new(
        config: &Config,
        client: &Client,
        registry: &Registry,
        clock: &SharedClock,
        seed: u64,
        observer: Option<Arc<dyn ReplicaObserver>>,
    ) -> Result<Self, AppError> {
        let metrics = ControllerMetrics::register(registry)?;
        let cache_metrics = CacheMetrics::register(registry, Arc::clone(clock))?;
        let cron_job_metrics =
            config.cronjob_metrics.map(|limit| CronJobMetrics::register(registry, limit)).transpose()?;
        let group = |controller_kind: &ControllerKind| {
            Ok((*controller_kind, QueueGroup::register(registry, controller_kind.name)?))
        };
        let queues = config.controllers.iter().map(group).collect::<Result<_, MetricsError>>()?;
        let (zone, source) = local_zone();
        info!(%zone, source, "schedules that name no time zone run in this one");

        let (config, client, clock) = (config.clone(), client.clone(), Arc::clone(clock));
        let ends = CancellationToken::new();
        Ok(Self {
            config,
            client,
            workers: Handle::current(),
            clock,
            metrics,
            cron_job_metrics,
            cache_metrics,
            queues,
            observer,
            traces: None,
            seed,
            ends,
        })
    }

    /// The recorder for events, and the task that writes them.
    fn recorder(&self) -> (Arc<dyn events::EventRecorder>, events::EventSinkTask) {
        let discarded = self.metrics.events_discarded_total.clone();
        let config = events::Config {
            max_queued: MAX_PENDING_EVENTS,
            max_pending: MAX_PENDING_EVENTS,
            max_in_flight: EVENTS_IN_FLIGHT,
            seed: Some(self.seed),
            ..events::Config::default()
        };
        let (recorder, sink) = events::Recorder::new(config, Arc::clone(&self.clock), move |reason| {
            discarded.with_label_values(&[reason]).inc();
        });
        match &self.observer {
            None => (Arc::new(recorder), sink),
            Some(observer) => (Arc::new(replica::TeeRecorder::new(recorder, Arc::clone(observer))), sink),
        }
    }

    /// A candidate for the lease, with this identity and this source of randomness.
    fn candidate(
        &self,
        settings: &LeaderElectionConfig,
        client: Client,
        registry: &Registry,
        identity: String,
        rng: StdRng,
    ) -> Result<Candidate, AppError> {
        Ok(Candidate {
            settings: settings.clone(),
            annotations: self.config.coverage().annotations(),
            client,
            clock: Arc::clone(&self.clock),
            metrics: LeaderElectionMetrics::register(registry)?,
            identity,
            rng,
        })
    }

    /// Notices other instances that work on the same objects, until it is dropped.
    fn compare_instances(&self) -> Option<AbortOnDropHandle<()>> {
        let (settings, gauge) = (self.config.leader_election.clone()?, self.metrics.instance_conflicts.clone());
        let compare = instances::compare(self.client.clone(), settings, self.config.coverage(), gauge);
        Some(AbortOnDropHandle::new(self.workers.spawn(sim::bind(compare))))
    }

    /// Works until `stop`, then ends the background tasks.
    async fn run_to_end(
        &self,
        work: Work,
        served: Vec<JoinHandle<()>>,
        stop: CancellationToken,
    ) -> Result<(), AppError> {
        let Work { mut controllers, elector } = work;
        let result = controllers.run(elector, &stop).await;
        // The process ends as requested; its lease was left to expire.
        let result = result.or_else(AppError::unless_pending);
        end(&self.ends, served).await;
        if let Some(traces) = &self.traces {
            Arc::clone(traces).shut_down().await;
        }
        result
    }
}

impl Work {
    fn new(context: &Arc<ControllerContext>, candidate: Option<Candidate>) -> Result<Self, AppError> {
        let (recorder, sink) = context.recorder();
        let elector = candidate.map(|candidate| candidate.elector(Arc::clone(&recorder))).transpose()?;
        Ok(Self { controllers: Controllers::new(context, &recorder, sink), elector })
    }

    /// The state of all caches in use.
    fn caches(&self) -> LookAtCaches {
        self.controllers.caches()
    }

    /// The health of leader election, if it is enabled.
    fn health(&self) -> Option<ElectionHealth> {
        let adaptor = self.elector.as_ref()?.healthz_adaptor(election::HEALTH_TIMEOUT);
        Some(Arc::new(move || adaptor.check()))
    }
}

/// The health check of the election.
type ElectionHealth = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The controllers and what feeds them. Dropping this ends them.
struct Controllers {
    context: Arc<ControllerContext>,
    instances: Vec<ControllerInstance>,
    gate: Arc<Gate>,
    informers: JoinSet<()>,
    /// The task that writes events, and the token that says that no more events follow.
    events: JoinSet<()>,
    events_end: CancellationToken,
}

/// The controller of one kind. It shares no CronJob state with controllers of other kinds.
#[derive(Clone)]
struct ControllerInstance {
    controller: Arc<Controller<RealControl>>,
    cron_jobs: Arc<Store<CronJob>>,
    jobs: Arc<Store<Job>>,
    namespaces: Option<Arc<Namespaces>>,
    _counted: Arc<Membership>,
}

impl ControllerContext {
    /// Builds the controller of one kind, which writes while `gate` is open, and starts its informers.
    fn instance(
        &self,
        (controller_kind, queues): &(ControllerKind, QueueGroup),
        recorder: &Arc<dyn events::EventRecorder>,
        gate: &Arc<Gate>,
        mut source: Option<&mut NamespaceSource>,
        informers: &mut JoinSet<()>,
    ) -> ControllerInstance {
        let controller_kind = *controller_kind;
        let Self { config, client, clock, metrics, cache_metrics, observer, ends, .. } = self;
        let queue: WorkQueue<ObjectName> = WorkQueue::new(
            workqueue::Config::new(controller_kind.name, Arc::clone(clock))
                .grouped_by(ObjectName::namespace_of)
                .pausing_at_due(PAUSE_AT_DUE),
        );
        let counted = Arc::new(queues.join(&queue));
        let seed = self.seed ^ (controller_kind as u64);
        let namespaces = &config.namespaces;
        let mut cron_job_informer =
            Informer::<CronJob>::new(client.clone(), namespaces, seed).of_resource(controller_kind.parent);
        let (manage, policies) = (config.manage_of(controller_kind), config.policies.clone());
        cron_job_informer = cron_job_informer.selecting(move |cron_job| {
            policies.apply(cron_job);
            manage.takes(cron_job)
        });
        let mut job_informer =
            Informer::<Job>::new(client.clone(), namespaces, !seed).of_resource(controller_kind.child);
        cache_metrics.watch(controller_kind.name, &mut cron_job_informer);
        cache_metrics.watch(controller_kind.name, &mut job_informer);
        let (cron_jobs, jobs) = (cron_job_informer.store(), job_informer.store());
        let known = source.as_ref().map(|source| Arc::clone(&source.namespaces));
        let stats_set = |all: &CronJobMetrics| {
            let (cron_jobs, clock) = (Arc::clone(&cron_jobs), Arc::clone(clock));
            all.join(controller_kind, cron_jobs, known.clone(), clock, local_zone().0)
        };
        let name_conflict_informer = controller_kind
            .fears_name_conflicts
            .then(|| Informer::<NameConflict>::new(client.clone(), namespaces, seed.rotate_left(32)));
        let controller = Controller::new(Parts {
            controller_kind,
            manage,
            queue,
            cron_jobs: Arc::clone(&cron_jobs),
            jobs: Arc::clone(&jobs),
            name_conflicts: name_conflict_informer.as_ref().map(Informer::store),
            namespaces: known.clone(),
            control: RealControl::new(controller_kind, client.clone(), Arc::clone(gate))
                .managing(manage)
                .with_policies(config.policies.clone())
                .traced(self.traces.clone()),
            recorder: Arc::clone(recorder),
            clock: Arc::clone(clock),
            metrics: metrics.clone(),
            stats_set: self.cron_job_metrics.as_ref().map(stats_set),
            local_zone: local_zone().0,
            publish: config.publish,
        });
        controller.stand_by();
        cron_job_informer.add_event_handler(Arc::clone(&controller) as _);
        job_informer.add_event_handler(Arc::clone(&controller) as _);
        informers.spawn(sim::bind(cron_job_informer.run(ends.clone())));
        informers.spawn(sim::bind(job_informer.run(ends.clone())));
        if let Some(mut informer) = name_conflict_informer {
            informer.add_event_handler(Arc::clone(&controller) as _);
            informers.spawn(sim::bind(informer.run(ends.clone())));
        }
        if let Some(source) = &mut source {
            source.add_event_handler(Arc::clone(&controller) as _);
        }
        if let Some(observer) = observer {
            observer.built(Arc::downgrade(&controller));
        }
        ControllerInstance { controller, cron_jobs, jobs, namespaces: known, _counted: counted }
    }
}

impl Controllers {
    fn new(
        context: &Arc<ControllerContext>,
        recorder: &Arc<dyn events::EventRecorder>,
        sink: events::EventSinkTask,
    ) -> Self {
        // The tasks that start here belong to the workers.
        let _entered = context.workers.enter();
        let gate = Arc::new(Gate::default());
        let mut informers = JoinSet::new();
        let mut source = NamespaceSource::new(context);
        let instance = |kind| context.instance(kind, recorder, &gate, source.as_mut(), &mut informers);
        let instances = context.queues.iter().map(instance).collect();
        if let Some(source) = source {
            source.start(context, &gate, &mut informers);
        }
        let (mut events, events_end) = (JoinSet::new(), CancellationToken::new());
        events.spawn(sim::bind({
            let (opened, queues, end) = (Arc::clone(&gate), context.queues.clone(), events_end.clone());
            let client =
                events::KubeSink::new(context.client.clone(), Arc::clone(&gate), requests::timeout(&context.config));
            async move {
                // A standby does not report: the leader does, and a standby once it leads.
                if end.run_until_cancelled(opened.opened()).await.is_none() {
                    return;
                }
                let is_busy = move || queues.iter().any(|(_, group)| group.is_busy());
                let dropped = sink.yielding_to(is_busy).run(client, end).await;
                if dropped > 0 {
                    error!(dropped, "events were not written before the end");
                }
            }
        }));
        Self { context: Arc::clone(context), instances, gate, informers, events, events_end }
    }

    /// Works until `stop`, as the leader if leader election is enabled; fails when the lease is lost or an informer ends.
    async fn run(&mut self, elector: Option<Elector>, stop: &CancellationToken) -> Result<(), AppError> {
        let mut informers = std::mem::take(&mut self.informers);
        let mut events = std::mem::take(&mut self.events);
        let _instances = elector.as_ref().and_then(|_| self.context.compare_instances());
        let led = async {
            match elector {
                None => self.work_to_end(&mut events, Leadership::unconditional(), stop).await,
                Some(elector) => {
                    if stop.run_until_cancelled(self.can_work()).await.is_none() {
                        return Ok(());
                    }
                    under_lease(elector, stop, |leadership| self.work_to_end(&mut events, leadership, stop)).await
                }
            }
        };
        unless_one_ends(&mut informers, led).await
    }

    /// Works until `stop`, then writes the pending events while time remains and this process leads. No more events follow.
    async fn work_to_end(
        &self,
        events: &mut JoinSet<()>,
        leadership: Leadership,
        stop: &CancellationToken,
    ) -> Result<(), AppError> {
        let result = finish_in_time(self.work(leadership, stop), stop).await;
        self.events_end.cancel();
        let _ = tokio::time::timeout(LAST_EVENTS, events.join_next()).await;
        result
    }

    fn caches(&self) -> LookAtCaches {
        let instances = self.instances.clone();
        Arc::new(move || Caches::all(instances.iter().flat_map(ControllerInstance::caches)))
    }

    /// Opens the gate for writes and works until `stop`, on the runtime of the workers.
    async fn work(&self, leadership: Leadership, stop: &CancellationToken) -> Result<(), AppError> {
        let takeover = leadership.takeover();
        for instance in &self.instances {
            match takeover {
                Takeover::First => {}
                // Its statuses may not tell of all its Jobs.
                Takeover::Released => instance.controller.take_over(Duration::ZERO),
                Takeover::RanOut(creates_end) => {
                    instance.controller.take_over(creates_end.saturating_duration_since(tokio::time::Instant::now()));
                }
                Takeover::RanOutInSilence => instance.controller.take_over(LONGEST_CREATE),
            }
        }
        let heartbeats: Vec<_> = self.instances.iter().map(|instance| instance.controller.heartbeat()).collect();
        leadership.depends_on(move || heartbeats.iter().map(|heartbeat| heartbeat.last()).min());
        self.gate.open(leadership.clone());
        let created_lease = leadership.is_shared() && takeover == Takeover::First;
        let work = |instance: &ControllerInstance| {
            let work = instance.clone().work(Arc::clone(&self.context), created_lease, stop.clone());
            run_on(&self.context.workers, work)
        };
        join_all(self.instances.iter().map(work)).await;
        let is_pending = |instance: &ControllerInstance| instance.controller.creates_may_be_pending();
        if leadership.is_shared() && self.instances.iter().any(is_pending) {
            return Err(AppError::PendingCreates);
        }
        Ok(())
    }
}

impl ControllerInstance {
    /// Runs the controller once its caches have synced.
    async fn work(self, context: Arc<ControllerContext>, created_lease: bool, stop: CancellationToken) {
        let Self { controller, cron_jobs, jobs, .. } = &self;
        let idle = Arc::clone(controller);
        let _idle = AbortOnDropHandle::new(tokio::spawn(sim::bind(async move { idle.show_idle_workers().await })));
        if stop.run_until_cancelled(self.synced()).await.is_some() {
            info!(cronjobs = cron_jobs.len(), jobs = jobs.len(), "caches are synced");
            for namespace in self.unlisted_namespaces() {
                warn!(%namespace, "no CronJob of this namespace runs, since its CronJobs or its Jobs may not be listed");
            }
            if created_lease {
                controller.doubt_absent_lease();
            }
            let ControllerContext { config, client, clock, .. } = &*context;
            let workers = config.concurrent_cronjob_syncs.get();
            // With a rate limit, those requests would use up the tokens of the slot.
            let _warm = config.kube_api.is_none().then(|| {
                let warm = warm::keep_warm(controller.queue().clone(), Arc::clone(clock), client.clone(), workers);
                AbortOnDropHandle::new(tokio::spawn(sim::bind(warm)))
            });
            controller.run(workers, stop).await;
        }
    }
}

/// Ends the listeners.
async fn end(ends: &CancellationToken, served: Vec<JoinHandle<()>>) {
    ends.cancel();
    let _ = tokio::time::timeout(LAST_CONNECTIONS, join_all(served)).await;
}

/// Works until the end, and fails when one of the informers ends.
async fn unless_one_ends(
    informers: &mut JoinSet<()>,
    work: impl Future<Output = Result<(), AppError>>,
) -> Result<(), AppError> {
    tokio::select! {
        biased;
        result = work => result,
        _ = informers.join_next() => Err(AppError::InformerEnded),
    }
}

/// Waits for `work`, which `stop` ends, for at most [`GRACE`] after that.
async fn finish_in_time(
    work: impl Future<Output = Result<(), AppError>>,
    stop: &CancellationToken,
) -> Result<(), AppError> {
    let overdue = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        biased;
        result = work => result,
        () = overdue => Err(AppError::SlowShutdown),
    }
}

#[cfg(test)]
mod tests;
