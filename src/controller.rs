//! The CronJob controller: event handlers fill the workqueue, workers drain it.
//!
//! Guarantees:
//! - Event handlers never call the API server and never block.
//! - Two workers never sync the same key at the same time.
//! - A sync that fails or panics is retried with backoff and does not affect other keys.
//! - Every CronJob with a next slot has a timer or an entry in the workqueue.
//!
//! Fire first, settle after: the sync that starts a Job neither writes the status nor prunes the history. The next sync
//! of the key does both. It runs after all keys with a due slot, but within the queue's starvation limit. Events are
//! sent last. When a thousand CronJobs are due at once, each waits only for the creates before it. One status write
//! covers a Job that starts and another that ends. When the API server reports overload, settling pauses; firing
//! continues at the rate that the server accepts. CronJobs shared with kube-controller-manager's controller are settled
//! in the sync that fires.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use apimachinery::clock::SharedClock;
use chrono::{DateTime, Utc};
use futures::FutureExt;
use futures::future::join_all;
use parking_lot::Mutex;
use schedule::Zone;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, debug_span, info, warn};

use crate::api::batch_v1::{CronJob, Job};
use crate::api::{ControllerKind, EventType, Manage, NameConflict, ObjectName, Publish, ResourceKind, Uid};
use crate::cache::Store;
use crate::events::{EventRecorder, ObjectReference};
use crate::metrics::ControllerMetrics;
use crate::shutdown::{LAST_PAUSES, LAST_SETTLING};
use crate::sim;
use crate::workqueue::{Priority, WorkQueue};

mod concurrency_limiter;
mod conditions;
pub mod control;
pub mod cron_job_metrics;
pub(crate) mod cron_job_stats;
mod decision_log;
pub mod effects;
mod external_jobs;
mod handlers;
pub mod heartbeat;
mod history;
mod memory;
mod messages;
mod mutation_cache;
pub mod namespaces;
pub mod observation;
mod pending_status;
pub mod plan;
pub mod reconcile;
pub mod retained;
mod retry;
mod start_delays;
pub mod status;
mod sync;
mod takeover;
pub mod template_budget;
mod warnings;

use concurrency_limiter::{ConcurrencyLimiter, Signal};
use control::{CronJobControl, JobControl, Patience};
use cron_job_metrics::CronJobStatsSet;
use external_jobs::ExternalJobs;
use heartbeat::Heartbeat;
use memory::Memories;
use namespaces::Namespaces;
use observation::{Observation, Ownership, Recalled};
pub use pending_status::LONGEST_CREATE;
use plan::{Failure, Outcome};
pub use retry::{LONGEST_RETRY_AFTER, NAMESPACE_BACKOFF, OVERLOAD_PAUSE, UNAVAILABLE_BACKOFF};
use start_delays::StartDelays;
use takeover::Takeover;
use template_budget::TemplateBudget;

/// The first failures of a key that only mean that the server is busy record no Warning. client-go's REST client
/// repeats such a request up to ten times before it returns the error.
const HIDDEN_FAILURES: u32 = 10;

/// How soon a failed deletion from the history is retried. Nothing depends on it, and the next slot may be far away.
pub const PRUNE_RETRY: Duration = Duration::from_secs(60);

/// The parts of a controller. Informers of which it is the handler fill the stores.
pub struct Parts<C> {
    /// The kind of objects that the controller reconciles.
    pub controller_kind: ControllerKind,
    /// Which of these objects the stores hold; `control` must use the same setting.
    pub manage: Manage,
    /// The queue of CronJob keys.
    pub queue: WorkQueue<ObjectName>,
    /// CronJobs from the watch.
    pub cron_jobs: Arc<Store<CronJob>>,
    /// Jobs from the watch, indexed by the UID of their controller.
    pub jobs: Arc<Store<Job>>,
    /// batch/v1 CronJobs, where kube-controller-manager's controller could confuse their children with those of this
    /// controller.
    pub name_conflicts: Option<Arc<Store<NameConflict>>>,
    /// The Namespaces, whose annotations restrict the CronJobs in them; `None` if they do not count.
    pub namespaces: Option<Arc<Namespaces>>,
    /// Access to the API server.
    pub control: C,
    /// Records Events.
    pub recorder: Arc<dyn EventRecorder>,
    /// The wall clock.
    pub clock: SharedClock,
    /// Counters and histograms.
    pub metrics: ControllerMetrics,
    /// The statistics of each CronJob, if enabled.
    pub stats_set: Option<Arc<CronJobStatsSet>>,
    /// The time zone of schedules that do not set one.
    pub local_zone: Zone,
    /// Which annotations are written about each CronJob.
    pub publish: Publish,
}

/// The CronJob controller. Matches upstream `ControllerV2` (`pkg/controller/cronjob/cronjob_controllerv2.go`).
pub struct Controller<C> {
    parts: Parts<C>,
    /// Locked also while its changes are applied to the queue.
    limiter: Mutex<ConcurrencyLimiter>,
    memories: Memories,
    start_delays: StartDelays,
    template_budget: Arc<TemplateBudget>,
    heartbeat: Arc<Heartbeat>,
    /// Whether this is a standby: no worker takes keys from the queue yet.
    standing_by: AtomicBool,
    /// The deadline for pending statuses, set when shutdown begins.
    settles_until: OnceLock<Instant>,
    takeover: Takeover,
    external_jobs: ExternalJobs,
    /// Incremented whenever the caches may be stale. Each key then reads its CronJob once before it creates a Job.
    epoch: AtomicU64,
}

impl<C: JobControl + CronJobControl> Controller<C> {
    /// A controller that does nothing until [`Self::run`].
    pub fn new(parts: Parts<C>) -> Arc<Self> {
        Arc::new(Self {
            template_budget: TemplateBudget::new(parts.queue.clone()),
            parts,
            limiter: Mutex::new(ConcurrencyLimiter::new()),
            memories: Memories::default(),
            start_delays: StartDelays::default(),
            heartbeat: Arc::default(),
            standing_by: AtomicBool::new(false),
            settles_until: OnceLock::new(),
            takeover: Takeover::default(),
            external_jobs: ExternalJobs::default(),
            epoch: AtomicU64::new(0),
        })
    }

    /// The kind of objects that it reconciles.
    pub fn controller_kind(&self) -> ControllerKind {
        self.parts.controller_kind
    }

    /// The workqueue, for inspection.
    pub fn queue(&self) -> &WorkQueue<ObjectName> {
        &self.parts.queue
    }

    /// The CronJobs with a next slot but without a timer or an entry in the queue. The controller guarantees that there
    /// are none. For a standby the result is empty.
    pub fn unattended(&self) -> Vec<ObjectName> {
        if self.stands_by() {
            return Vec::new();
        }
        let queue = &self.parts.queue;
        let waits = |key: &ObjectName| queue.is_dirty(key) || queue.is_processing(key);
        let cron_jobs = self.parts.cron_jobs.list();
        let has_next_slot = |cron_job: &CronJob| {
            let is_on = !cron_job.deleting && !cron_job.spec.suspend;
            let zone = &cron_job.timing(self.parts.local_zone).time_zone;
            is_on && zone.is_ok() && self.next_scheduled_time(cron_job).is_some()
        };
        let is_unattended = |cron_job: &Arc<CronJob>| {
            let key = &cron_job.name;
            !waits(key) && queue.scheduled_for(key).is_none() && has_next_slot(cron_job)
        };
        // A version that was read live or written counts, although the watch has yet to show it.
        let newest = cron_jobs.into_iter().map(|cron_job| self.in_its_namespace(self.memories.newest(cron_job)));
        newest.filter(|cron_job| is_unattended(cron_job)).map(|cron_job| cron_job.name.clone()).collect()
    }

    /// Keeps the queue empty until [`run`](Self::run), which then adds every CronJob in the store. No worker drains the
    /// queue of a standby, so keys of deleted CronJobs would stay in it.
    pub fn stand_by(&self) {
        self.standing_by.store(true, Ordering::Release);
    }

    fn stands_by(&self) -> bool {
        self.standing_by.load(Ordering::Acquire)
    }

    /// Marks the caches as possibly stale: after a relist with a gap, or when this process has just become the leader.
    pub fn doubt_caches(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
        if let Some(namespaces) = &self.parts.namespaces {
            namespaces.doubt();
        }
    }

    /// Records that another process led before, whose creates may be committed for `pending` from now. Until then, and until the
    /// store shows what was committed, no Job is deleted, because its name prevents a second start of its slot; and under Forbid
    /// and Replace, no slot starts while that leader may have started an earlier one.
    pub fn take_over(&self, pending: Duration) {
        self.doubt_caches();
        self.takeover.begin(pending);
    }

    /// Records that the lease did not exist. One that was deleted looks like one that never was; but if any CronJob has a status,
    /// some controller ran, and it is doubted like a leader whose lease ran out. The caches must be synced.
    pub fn doubt_absent_lease(&self) {
        if self.parts.cron_jobs.list().iter().any(|cron_job| cron_job.status.last_schedule_time.is_some()) {
            self.take_over(LONGEST_CREATE);
        }
    }

    /// Whether a create with an unknown result may still be committed, sent by this process or by an earlier leader.
    /// The lease must not be released then, because the next leader would not wait for such creates.
    pub fn creates_may_be_pending(&self) -> bool {
        let is_pending = |end: Instant| Instant::now() < end;
        self.takeover.creates_may_be_pending() || self.memories.last_commit().is_some_and(is_pending)
    }

    /// Waits until all Jobs of an earlier leader are known, and enqueues the CronJobs of each namespace as soon as its are.
    async fn end_of_takeover(&self) {
        let asked = self.takeover.ask(&self.parts.jobs).await;
        let each = asked.iter().map(|asked| async {
            asked.wait().await;
            let cron_jobs = self.parts.cron_jobs.list();
            for cron_job in cron_jobs.iter().filter(|cron_job| asked.covers(&cron_job.name.namespace)) {
                self.enqueue(cron_job.name.clone(), "end of a takeover");
            }
        });
        join_all(each).await;
    }

    /// Runs `workers` workers until `cancel`. Shutdown finishes the syncs in flight and writes pending statuses for at
    /// most [`LAST_SETTLING`]. The caches must be synced before the call.
    ///
    /// Matches upstream `Run`.
    pub async fn run(self: &Arc<Self>, workers: usize, cancel: CancellationToken) {
        info!(workers, controller = self.parts.controller_kind.name, "Starting cronjob controller");
        self.set_workers(workers);
        self.external_jobs.begin(self.parts.clock.now());
        // From here on, informer events are queued. Earlier events are already in the stores.
        if self.standing_by.swap(false, Ordering::AcqRel) {
            let mut cron_jobs = self.parts.cron_jobs.list();
            // What ran last runs often, and is the most likely to be due.
            cron_jobs.sort_by_key(|cron_job| std::cmp::Reverse(cron_job.status.last_schedule_time));
            for cron_job in cron_jobs {
                self.parts.queue.add_with(cron_job.name.clone(), Priority::High);
            }
        }
        let mut tasks = JoinSet::new();
        for _ in 0..workers {
            let controller = Arc::clone(self);
            let work = async move {
                let steps = async { while controller.process_next_work_item().await {} };
                controller.heartbeat.watch(steps).await;
            };
            tasks.spawn(sim::bind(work));
        }
        if cancel.run_until_cancelled(self.end_of_takeover()).await.is_some() {
            cancel.cancelled().await;
        }
        info!(controller = self.parts.controller_kind.name, "Shutting down cronjob controller");
        // Shutdown drops the queue's timers, including those of pending statuses, so these keys are enqueued.
        for key in self.memories.open() {
            self.enqueue(key, "shutdown");
        }
        let _ = self.settles_until.set(Instant::now() + LAST_SETTLING);
        self.parts.queue.shut_down();
        while tasks.join_next().await.is_some() {}
    }

    /// When a worker last showed a sign of life.
    pub fn heartbeat(&self) -> Arc<Heartbeat> {
        Arc::clone(&self.heartbeat)
    }

    /// Shows a sign of life for idle workers, for ever. Must run on the workers' runtime.
    pub async fn show_idle_workers(&self) {
        self.heartbeat.show_idle(|| self.parts.queue.processing()).await;
    }

    /// Takes one key and syncs it. Returns false when the queue has shut down and is empty. During shutdown it syncs
    /// only keys with a pending status. Matches upstream `processNextWorkItem`.
    pub async fn process_next_work_item(&self) -> bool {
        let Some(key) = self.parts.queue.get().await else { return false };
        let work = async {
            if !self.parts.queue.shutting_down() || self.has_last_status(&key) {
                self.process(&key).await;
            }
            self.write_last_status(&key).await;
        };
        let span = debug_span!("sync", cronjob = %key);
        if AssertUnwindSafe(work.instrument(span)).catch_unwind().await.is_err() {
            self.back_off_after_panic(&key);
        }
        self.parts.queue.done(&key);
        true
    }

    /// Writes the key's pending status during shutdown, when the queue no longer accepts the key. After a few failed
    /// attempts the status is left to the next leader.
    async fn write_last_status(&self, key: &ObjectName) {
        for pause in LAST_PAUSES {
            let Some(end) = self.settles_until.get().filter(|_| self.has_last_status(key)) else { return };
            let attempt = async {
                sleep(pause).await;
                self.process(key).await;
            };
            if timeout_at(*end, attempt).await.is_err() {
                return;
            }
        }
    }

    /// Whether the process is shutting down, this key has a pending status, and the shutdown deadline has not passed.
    fn has_last_status(&self, key: &ObjectName) -> bool {
        let is_too_late = || self.settles_until.get().is_some_and(|until| *until <= Instant::now());
        self.parts.queue.shutting_down() && self.memories.is_open(key) && !is_too_late()
    }

    async fn process(&self, key: &ObjectName) {
        decision_log::started();
        let began = self.parts.clock.now();
        let start = Instant::now();
        let attempt = self.limiter.lock().begin(&key.namespace, start.into_std());
        let outcome = AssertUnwindSafe(self.sync(key)).catch_unwind().await;
        let signal = outcome.as_ref().map_or(Signal::Neutral, |outcome| retry::signal(outcome, start.elapsed()));
        self.adjust_limits(key, attempt, signal);
        match outcome {
            // The template budget enqueues the key again.
            Ok(Outcome::AwaitTemplate) => {}
            Ok(Outcome::Failed(failure)) => self.retry(key, &failure),
            Ok(outcome) => self.requeue(key, &outcome),
            Err(_) => {
                self.back_off_after_panic(key);
                self.keep_next_slot(key);
            }
        }
        // The clock was set back during the sync. A decision made at a time still in the future is made again.
        if self.parts.clock.now() < began {
            decision_log::requeued("clock set back");
            self.parts.queue.add(key.clone());
        }
    }

    /// Reconciles one CronJob. Matches upstream `sync`.
    pub async fn sync(&self, key: &ObjectName) -> Outcome {
        let Some(cached) = self.parts.cron_jobs.get(key) else {
            debug!(cronjob = %key, "CronJob not found, may be it is deleted");
            return self.sync_deleted(key).await;
        };
        if !self.parts.jobs.has_listed(&key.namespace) {
            return Outcome::Failed(Failure::JobsNotListed(key.clone()));
        }
        self.warn_of_name_conflict(&cached);
        self.warn_of_unknown_policies(&cached);
        let epoch = self.epoch.load(Ordering::Relaxed);
        // Once is enough for a decision: whatever is in doubt is read before a Job is created.
        let restriction = match self.look_at_namespace(key, false).await {
            Ok(restriction) => restriction,
            Err(error) => return Outcome::Failed(error.into()),
        };
        // Before the Jobs are looked at: once the wait is over, the store shows what it waited for.
        let takeover_wait = self.takeover.wait(&key.namespace);
        let mut observation = self.look(&cached, epoch);
        observation.cron_job = observation.cron_job.in_its_namespace(restriction.as_ref());
        observation.publish = self.parts.publish;
        let is_shared = self.is_shared();
        observation.ownership = if is_shared { Ownership::Shared } else { Ownership::Exclusive };
        // kube-controller-manager's controller reports a Job as unexpected until the status names it.
        observation.settle_later = !is_shared && !self.parts.queue.shutting_down();
        let repeated = observation.recalled.pending_create.and_then(|pending| pending.repeated_wait());
        let open_creates_wait = observation.open_creates_wait.max(repeated);
        observation.open_creates_wait = takeover_wait.max(observation.open_creates_wait);
        observation.hides_transient = self.parts.queue.num_requeues(key) < HIDDEN_FAILURES;
        let had_timed_out = observation.patience == Patience::Longest;
        let outcome = self.sync_cron_job(observation, epoch, self.parts.clock.now()).await;
        if let Some(wait) = open_creates_wait.filter(|_| !matches!(outcome, Outcome::Failed(_))) {
            // Its history is pruned then. A failure is retried anyway.
            let wait = wait.to_std().unwrap_or_default();
            decision_log::requeued_after(wait, "open creates");
            self.parts.queue.add_after(key.clone(), wait);
        }
        self.remember_patience(key, &outcome, had_timed_out);
        outcome
    }

    /// What is known of a CronJob and of its Jobs: by the caches, and by what this process has written.
    fn look(&self, cached: &Arc<CronJob>, epoch: u64) -> Observation {
        let shown = || self.parts.jobs.last_resource_version(&cached.name.namespace).unwrap_or_default();
        let mut observation = self.memories.recall(cached, self.parts.local_zone, epoch, shown);
        observation.jobs = self.get_jobs_to_be_reconciled(&observation);
        observation
    }

    /// After a request timed out, the next attempt gets more time.
    fn remember_patience(&self, key: &ObjectName, outcome: &Outcome, had_timed_out: bool) {
        let failed = match outcome {
            Outcome::AwaitTemplate => return,
            Outcome::Failed(failure) => failure.api_error(),
            _ => None,
        };
        // Another failure says nothing about the time that a request needs.
        let timed_out = failed.is_some_and(|error| had_timed_out || error.timed_out());
        if timed_out != had_timed_out {
            self.memories.of_name(key, |memory| memory.timed_out = timed_out);
        }
    }

    /// The last sync of a CronJob that left the store. If it may have been released to kube-controller-manager, its
    /// pending status is still written: no other process knows of the Jobs started here.
    async fn sync_deleted(&self, key: &ObjectName) -> Outcome {
        if self.is_shared()
            && let Some(uid) = self.memories.pending(key)
        {
            match self.settle_released(key, &uid).await {
                Outcome::Done if self.parts.cron_jobs.get(key).is_none() => {}
                // The CronJob is in the store again, or the write must be retried.
                outcome => return outcome,
            }
        }
        self.forget(key);
        Outcome::Done
    }

    /// Writes the pending status of a released CronJob, unless the CronJob was deleted.
    async fn settle_released(&self, key: &ObjectName, uid: &Uid) -> Outcome {
        let live = match self.parts.control.get_cron_job_of_any_controller(key).await {
            Ok(live) if live.uid == *uid => live,
            Ok(_) => return Outcome::Done,
            Err(error) if error.is_not_found() => return Outcome::Done,
            Err(error) => return Outcome::Failed(error.into()),
        };
        if self.parts.manage.takes(&mut CronJob::clone(&live)) {
            return Outcome::Failed(Failure::HandedOverAgain(key.clone()));
        }
        let (epoch, now) = (self.epoch.load(Ordering::Relaxed), self.parts.clock.now());
        let known = self.look(&live, epoch);
        let mut observation = Observation::new(known.cron_job, known.jobs, self.parts.local_zone);
        observation.ownership = Ownership::Released { begun: known.recalled.begun };
        observation.recalled.carried = known.recalled.carried;
        let unanswered = known.recalled.pending_create.and_then(|pending| pending.wait);
        let outcome = self.sync_cron_job(observation, epoch, now).await;
        match unanswered.max(known.open_creates_wait) {
            // Its Job may still come.
            Some(wait) if matches!(outcome, Outcome::Done) => Outcome::Requeue(now + wait),
            _ => outcome,
        }
    }

    /// The children of the CronJob, by controller UID, in a stable order. The list includes Jobs created here
    /// that the cache does not show yet, and omits Jobs deleted here. The memory is read before the cache: a Job that
    /// the watch shows in between would otherwise be in neither.
    ///
    /// Matches upstream `getCronJobJobsByIndexer`, which has no order.
    fn get_jobs_to_be_reconciled(&self, observation: &Observation) -> Vec<Arc<Job>> {
        let Observation { cron_job, recalled: Recalled { created, deleted, .. }, .. } = observation;
        let mut jobs = self.parts.jobs.by_controller(&cron_job.uid);
        for created in created {
            if !jobs.iter().any(|job| job.uid == created.uid) {
                jobs.push(Arc::clone(created));
            }
        }
        // Where a Job waits for others to be gone, one that was deleted here counts until then. One that ends while it lingers
        // may have succeeded.
        let waits = cron_job.limits().replace_waits;
        let is_hidden = |job: &Job| deleted.contains(&job.uid) && !(job.deleting && (waits || job.finished.is_some()));
        jobs.retain(|job| job.is_child_of(cron_job) && !is_hidden(job));
        jobs.sort_unstable_by(|a, b| a.name.name.cmp(&b.name.name));
        jobs
    }

    /// Whether another controller reconciles the CronJobs too, so that one may be released while its Job is being created.
    fn is_shared(&self) -> bool {
        self.parts.manage == Manage::Annotated
    }

    fn enqueue(&self, key: ObjectName, why: &'static str) {
        if !self.stands_by() {
            decision_log::queued(&key, why);
            self.parts.queue.add(key);
        }
    }

    /// Requeues a key whose sync succeeded.
    fn requeue(&self, key: &ObjectName, outcome: &Outcome) {
        self.parts.queue.forget(key);
        let at_once = match outcome {
            Outcome::Again => Some("more Jobs to look for"),
            Outcome::SettleLater { .. } => Some("status to write"),
            _ => None,
        };
        if let Some(why) = at_once {
            decision_log::requeued(why);
            self.parts.queue.add(key.clone());
        }
        if let Some(slot) = outcome.requeue_at() {
            decision_log::requeued_at(slot, "next slot");
            self.parts.queue.add_at(key.clone(), slot);
        } else if at_once.is_none() {
            self.wait_for_the_past(key);
            decision_log::done();
        }
    }

    /// Sets a timer that is due only if the wall clock is set back: a policy may have ended the schedule, and a clock that
    /// ran ahead does not show whether it has. Without policies, no schedule ends.
    fn wait_for_the_past(&self, key: &ObjectName) {
        let may_return = |cron_job: &CronJob| cron_job.policies.is_some() && !cron_job.spec.suspend;
        if self.parts.cron_jobs.get(key).is_some_and(|cron_job| may_return(&self.in_its_namespace(cron_job))) {
            self.parts.queue.add_at(key.clone(), DateTime::<Utc>::MAX_UTC);
        }
    }

    /// Drops everything about a deleted CronJob.
    fn forget(&self, key: &ObjectName) {
        self.parts.queue.remove_timers(key);
        self.memories.forget(key);
        if let Some(stats_set) = &self.parts.stats_set {
            stats_set.forget(key);
        }
    }

    /// The CronJob that a Job's controller reference names, if the cache has it with that name and UID.
    ///
    /// Matches upstream `resolveControllerRef`.
    fn resolve_controller_ref(&self, job: &Job) -> Option<Arc<CronJob>> {
        let owner = job.controller.as_ref()?;
        let name = ObjectName { namespace: Arc::clone(&job.name.namespace), name: Arc::clone(&owner.name) };
        self.parts.cron_jobs.get(&name).filter(|cron_job| job.is_child_of(cron_job))
    }

    /// Another controller reconciles the same CronJobs and started the Job of a slot. This is harmless but doubles the
    /// requests.
    fn warn_of_external_job(&self, cron_job: &CronJob, slot: DateTime<Utc>) {
        // It may be the last leader's, whose watch or clock was another; or the next one's, if this process hung and leads no more.
        if self.takeover.wait(&cron_job.name.namespace).is_some() || !self.parts.control.may_write() {
            return;
        }
        self.parts.metrics.external_jobs_total.inc();
        if let Some(jobs) = self.external_jobs.tell() {
            let job = cron_job.controller_kind.child_name(&cron_job.name.name, slot);
            warn!(cronjob = %cron_job.name, job, jobs, "another controller starts Jobs of the same CronJobs");
        }
    }

    fn enqueue_owner(&self, job: &Job, why: &'static str) {
        if let Some(cron_job) = self.resolve_controller_ref(job) {
            self.enqueue(cron_job.name.clone(), why);
        }
    }

    fn record(&self, cron_job: &CronJob, type_: EventType, reason: &'static str, message: String) {
        let regarding = reference(
            cron_job.controller_kind.parent,
            &cron_job.name,
            &cron_job.uid.to_string(),
            &cron_job.resource_version,
        );
        self.parts.recorder.event(&regarding, type_, reason, message);
    }

    /// When the next slot is due.
    fn next_scheduled_time(&self, cron_job: &CronJob) -> Option<DateTime<Utc>> {
        cron_job.next_due(self.parts.local_zone, self.parts.clock.now())
    }
}

fn reference(kind: ResourceKind, name: &ObjectName, uid: &str, resource_version: &str) -> ObjectReference {
    ObjectReference {
        api_version: kind.api_version().into(),
        kind: kind.kind.into(),
        namespace: Arc::clone(&name.namespace),
        name: Arc::clone(&name.name),
        uid: uid.into(),
        resource_version: resource_version.into(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
