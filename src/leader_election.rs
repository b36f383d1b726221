//! Leader election on a coordination.k8s.io/v1 Lease: client-go's algorithm with stricter guarantees.
//!
//! Guarantees: of all processes that contend for one lease by this protocol, at most one holds a valid [`Leadership`] at any
//! moment. This holds whatever the network does to requests and answers and however their wall clocks are set. It requires
//! that their monotonic clocks run at about the same rate and that no user edits or deletes the lease. A leader that cannot
//! renew loses its right to write one renew deadline after the start of its last successful renewal. Other candidates take
//! over one lease duration after it at the earliest. Releasing the lease never takes it from another holder. A leader whose work
//! has shown no sign of life for [`LONGEST_SILENCE`](decision::LONGEST_SILENCE) does not renew any more, so that another
//! process takes over. A candidate tries when the lease expires or is released, of which a watch tells it; it reads the lease as
//! often as client-go's whenever the watch is silent, so that nothing depends on one.
//!
//! [`next_action`] is the pure decision; [`LeaderElector`] is the loop around it; [`LeaseLock`] is the port to the API server.

mod config;
pub mod decision;
mod instances;
mod leadership;
mod lease_lock;
mod open_creates;
mod record;

use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::SharedClock;
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use self::decision::{Action, ElectorIdentity, Knowledge, ObservedLease, may_renew, next_action, released};
use self::leadership::Term;

pub use self::config::{Config, ConfigError, JITTER_FACTOR, default_identity, whole_seconds};
pub use self::instances::{
    CONTROLLERS_ANNOTATION, Conflict, Coverage, LeaseObservations, MANAGE_ANNOTATION, NAMESPACES_ANNOTATION,
};
pub use self::leadership::{Gate, HealthzAdaptor, Leadership, Takeover, TimeLeft};
pub use self::lease_lock::{KubeLeaseLock, LeaseLock, LockError};
pub use self::open_creates::{LONGEST_CREATE, OPEN_CREATES};
pub use self::record::LeaderElectionRecord;

/// How often a release is tried: an answer may be lost, or a renewal still in flight may win the race.
const RELEASE_ATTEMPTS: u32 = 3;

/// How long a create may at least stay open, if it begins just before this process must stop to write. A lease that ends sooner says
/// so.
const SHORTEST_CREATE: Duration = Duration::from_secs(5);

/// How long after a watch of the lease was opened the next one is: it may be forbidden.
const BETWEEN_WATCHES: Duration = Duration::from_secs(10);

/// Receives the note of an Event and the metadata of the lease it is about.
pub type EventHook = Box<dyn Fn(&ObjectMeta, &str) + Send + Sync>;

/// Receives an identity.
pub type NameHook = Box<dyn Fn(&str) + Send + Sync>;

/// The elector's reports to the rest of the program. Every hook is optional and must not block.
#[derive(Default)]
pub struct Hooks {
    /// Whether this process leads: for `leader_election_master_status`. Called with `false` once at the start.
    pub on_master_status: Option<Box<dyn Fn(bool) + Send + Sync>>,
    /// A leader had to read the lease before it could renew: for `leader_election_slowpath_total`.
    pub on_slowpath: Option<Box<dyn Fn() + Send + Sync>>,
    /// The note of an Event with reason `LeaderElection` about the lease with this metadata.
    pub on_event: Option<EventHook>,
    /// A new holder, this process included; empty when the lease was released.
    pub on_new_leader: Option<NameHook>,
}

/// Why leadership was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// No renewal succeeded within the renew deadline; holds the last error.
    RenewDeadline(String),
    /// The lease names another holder.
    TakenBy(String),
    /// The work under the lease showed no sign of life for [`LONGEST_SILENCE`](decision::LONGEST_SILENCE).
    NoSignOfLife,
}

/// How an election ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// This process led and lost the lease. It should exit at once.
    Lost(Loss),
    /// Cancelled while leading, and the lease was released: another candidate takes over at its next attempt.
    Released,
    /// Cancelled without a release: this process held no lease, or was configured to keep it, or the API server did not
    /// answer.
    Cancelled,
}

/// Why an attempt to acquire or renew did not succeed.
#[derive(Debug, thiserror::Error)]
enum AttemptError {
    #[error("the lease is held by {0}")]
    HeldBy(String),
    #[error(transparent)]
    Lock(#[from] LockError),
}

/// A candidate for one lease. Matches `LeaderElector` in client-go's tools/leaderelection/leaderelection.go.
pub struct LeaderElector<L> {
    config: Config,
    lock: L,
    clock: SharedClock,
    rng: StdRng,
    hooks: Hooks,
    leadership: Leadership,
    /// The newest version of the lease this process has read or written; its resourceVersion fences every update.
    lease: Option<Lease>,
    observed: Option<ObservedLease>,
    reported_leader: String,
    /// Whether this process has sent a write that would make it the holder, with whatever result.
    may_hold: bool,
    /// Until when creates of earlier holders may stay open. Whoever follows this process has to know it, too.
    inherited: Option<Instant>,
}

impl<L: LeaseLock> LeaderElector<L> {
    /// A candidate that does nothing until [`LeaderElector::run`]. `rng` spreads the attempts of candidates.
    ///
    /// # Errors
    /// When the settings are not valid.
    pub fn new(config: Config, lock: L, clock: SharedClock, hooks: Hooks, rng: StdRng) -> Result<Self, ConfigError> {
        config.validate()?;
        let leadership = Leadership::none(Arc::clone(&clock));
        let elector = Self {
            config,
            lock,
            clock,
            rng,
            hooks,
            leadership,
            lease: None,
            observed: None,
            reported_leader: String::new(),
            may_hold: false,
            inherited: None,
        };
        elector.master_status(false);
        Ok(elector)
    }

    /// The health check of this elector; `timeout` is tolerated beyond the end of the lease (upstream: 20 s).
    pub fn healthz_adaptor(&self, timeout: Duration) -> HealthzAdaptor {
        HealthzAdaptor::new(self.leadership.clone(), &self.config.name, timeout)
    }

    /// Contends for the lease until this process holds it, calls `on_started_leading` once, and renews until the lease is
    /// lost or `cancel` fires. The work under the lease must have ended before `cancel` fires. Matches `Run` in client-go's
    /// tools/leaderelection/leaderelection.go.
    pub async fn run<F>(mut self, cancel: CancellationToken, on_started_leading: F) -> Outcome
    where
        F: FnOnce(Leadership) + Send,
    {
        info!(lease = self.config.lease(), identity = self.config.identity, "attempting to acquire the leader lease");
        if cancel.run_until_cancelled(self.acquire()).await.is_none() {
            return self.stop().await;
        }
        info!(lease = self.config.lease(), "successfully acquired the lease");
        self.master_status(true);
        self.event("became leader");
        on_started_leading(self.leadership.clone());

        match cancel.run_until_cancelled(self.renew()).await {
            Some(loss) => {
                // The lease is not released here: the work under it may still be ending, and has until the lease expires to
                // do so.
                self.leadership.revoke(!matches!(loss, Loss::TakenBy(_)));
                self.master_status(false);
                warn!(lease = self.config.lease(), ?loss, "lost the lease");
                Outcome::Lost(loss)
            }
            None => self.stop().await,
        }
    }

    async fn acquire(&mut self) {
        let (mut changes, mut watch_again) = (None, Instant::now());
        loop {
            let (shown, attempt) = (self.version(), Instant::now());
            let result = self.try_acquire_or_renew().await;
            self.report_transition();
            let mut pause = self.config.retry_period;
            match result {
                Ok(()) => return,
                Err(AttemptError::HeldBy(holder)) => {
                    debug!(lease = self.config.lease(), holder, "the lease is held");
                    self.leadership.taken_by_another();
                }
                Err(AttemptError::Lock(error)) => {
                    warn!(%error, "failed to acquire the lease");
                    pause /= 2;
                }
            }
            let version = self.version();
            if shown != version {
                // The watch had not shown it.
                changes = None;
            }
            if let Some(version) = version.filter(|_| changes.is_none() && watch_again <= Instant::now()) {
                changes = Some(self.lock.changes(&version));
                watch_again = Instant::now() + BETWEEN_WATCHES;
            }
            self.wait_to_attempt((&mut changes, watch_again), pause, attempt + self.config.lease_duration).await;
        }
    }

    /// The version of the lease that was seen last.
    fn version(&self) -> Option<String> {
        self.observed.as_ref()?.resource_version.clone()
    }

    /// Waits until the lease expires or is released, or until nothing was heard of it for a pause, but not beyond `latest`. What
    /// `changes` shows counts as heard, although it may be late. When they end, and may begin anew, the lease is read at once.
    async fn wait_to_attempt(
        &mut self,
        (changes, watch_again): (&mut Option<BoxStream<'static, Lease>>, Instant),
        pause: Duration,
        latest: Instant,
    ) {
        loop {
            let now = Instant::now();
            let silence = (now + pause.mul_f64(1.0 + JITTER_FACTOR * self.rng.random::<f64>())).min(latest);
            let expiry = self.observed.as_ref().map(|seen| seen.expires().into()).filter(|expiry| *expiry > now);
            let change = async {
                match changes {
                    Some(changes) => changes.next().await,
                    None => std::future::pending().await,
                }
            };
            match timeout_at(expiry.map_or(silence, |expiry| silence.min(expiry)), change).await {
                Err(_) => return,
                Ok(None) => {
                    *changes = None;
                    if watch_again <= now {
                        return;
                    }
                }
                Ok(Some(lease)) => {
                    self.observe(lease);
                    self.report_transition();
                    if self.reported_leader.is_empty() {
                        return;
                    }
                }
            }
        }
    }

    async fn renew(&mut self) -> Loss {
        let mut last_error = "no attempt to renew was answered in time".to_owned();
        let leads_since = Instant::now();
        let (mut next, mut has_failed) = (leads_since + self.config.retry_period, false);
        loop {
            let until = next.min(self.leadership.deadline());
            if has_failed {
                sleep_until(until).await;
            } else {
                let _ = timeout_at(until, self.leadership.wants()).await;
            }
            // Read after the sleep, during which the machine may have been suspended.
            let (started, fence) = (Instant::now(), self.leadership.deadline());
            if started >= fence {
                return Loss::RenewDeadline(last_error);
            }
            let last_sign = self.leadership.last_sign().map(Instant::into_std);
            if !may_renew(leads_since.into_std(), last_sign, started.into_std()) {
                return Loss::NoSignOfLife;
            }
            let result = timeout_at(fence, self.try_acquire_or_renew()).await;
            self.report_transition();
            // Counted from the start of the attempt, as the fence is: with slow answers the next renewal follows at once.
            next = started + self.config.retry_period;
            has_failed = !matches!(result, Ok(Ok(())));
            match result {
                Ok(Ok(())) => {}
                Ok(Err(AttemptError::HeldBy(holder))) => return Loss::TakenBy(holder),
                Ok(Err(AttemptError::Lock(error))) => {
                    warn!(%error, "failed to renew the lease");
                    last_error = error.to_string();
                }
                Err(_) => return Loss::RenewDeadline(last_error),
            }
        }
    }

    /// One attempt. Matches `tryAcquireOrRenew` in client-go's tools/leaderelection/leaderelection.go.
    async fn try_acquire_or_renew(&mut self) -> Result<(), AttemptError> {
        if let Action::Update(record) = self.next_action(Knowledge::Remembered(self.observed.as_ref())) {
            match self.update(record).await {
                Ok(()) => return Ok(()),
                Err(error) => debug!(%error, "optimistic renewal failed, reading the lease"),
            }
        }
        let action = match self.call("get", self.lock.get()).await? {
            Some(lease) => {
                self.observe(lease);
                self.observed.as_ref().map_or(Action::Read, |seen| self.next_action(Knowledge::Fresh(seen)))
            }
            None => self.next_action(Knowledge::Absent),
        };
        match action {
            Action::Wait(holder) => Err(AttemptError::HeldBy(holder)),
            Action::Create(record) => Ok(self.create(record).await?),
            Action::Update(record) => {
                let Some(seen) = &self.observed else { return Ok(self.update(record).await?) };
                if seen.record.holder_identity == self.config.identity {
                    self.hooks.on_slowpath.iter().for_each(|hook| hook());
                } else {
                    let takeover = seen.takeover();
                    self.inherit(takeover);
                }
                Ok(self.update(record).await?)
            }
            Action::Read => unreachable!("what was just read is not read again"),
        }
    }

    /// Keeps how earlier holders left the lease.
    fn inherit(&mut self, takeover: Takeover) {
        let end = match takeover {
            Takeover::First | Takeover::Released => None,
            Takeover::RanOut(end) => Some(end),
            Takeover::RanOutInSilence => Some(Instant::now() + LONGEST_CREATE),
        };
        self.inherited = self.inherited.max(end);
        self.inherited.into_iter().for_each(|end| self.leadership.wants_open(end));
        self.leadership.taken_over(takeover);
    }

    fn next_action(&self, knowledge: Knowledge<'_>) -> Action {
        let me = ElectorIdentity { identity: &self.config.identity, lease_duration: self.config.lease_duration };
        next_action(knowledge, me, Instant::now().into_std(), self.clock.now())
    }

    /// Stores the lease that was read. The time of observation moves only when the lease has changed.
    fn observe(&mut self, lease: Lease) {
        let seen = ObservedLease::new(&lease, Instant::now().into_std());
        self.observed = Some(match self.observed.take() {
            Some(before) => before.followed_by(seen),
            None => seen,
        });
        self.lease = Some(lease);
    }

    async fn create(&mut self, record: LeaderElectionRecord) -> Result<(), LockError> {
        let metadata = ObjectMeta {
            name: Some(self.config.name.clone()),
            namespace: Some(self.config.namespace.clone()),
            annotations: Some(self.config.annotations.clone()),
            ..ObjectMeta::default()
        };
        let mut lease = Lease { metadata, spec: Some(record.to_lease_spec()) };
        // It may have been deleted, as one that was seen before certainly was.
        match &self.observed {
            Some(seen) if seen.record.holder_identity != self.config.identity => {
                self.inherit(Takeover::RanOutInSilence);
            }
            Some(_) => self.leadership.taken_over(Takeover::RanOutInSilence),
            None => {}
        }
        self.leadership.wants_open(Instant::now() + LONGEST_CREATE);
        let term = self.announce(&mut lease, &record);
        let written = self.call("create", self.lock.create(&lease)).await?;
        self.holds(written, record, term);
        Ok(())
    }

    async fn update(&mut self, record: LeaderElectionRecord) -> Result<(), LockError> {
        let mut lease = self.replacement(&record);
        let term = self.announce(&mut lease, &record);
        let written = self.call("update", self.lock.update(&lease)).await?;
        self.holds(written, record, term);
        Ok(())
    }

    /// Notes in a lease that is about to be written until when creates may stay open.
    fn announce(&mut self, lease: &mut Lease, record: &LeaderElectionRecord) -> Term {
        self.may_hold = true;
        let (started, suspended) = (Instant::now(), self.clock.suspended());
        let lease_end = started + self.config.lease_duration;
        let usual = lease_end.max(started + self.config.renew_deadline + SHORTEST_CREATE);
        let announced = self.leadership.wanted().map_or(usual, |wanted| wanted.max(usual));
        let length = if announced > lease_end { announced - started } else { Duration::ZERO };
        open_creates::write(&mut lease.metadata, record, length);
        Term { started, suspended, usual, announced }
    }

    /// The lease as last seen, with its metadata, the annotations of this process and a new record.
    fn replacement(&self, record: &LeaderElectionRecord) -> Lease {
        let mut metadata = self.lease.as_ref().map(|lease| lease.metadata.clone()).unwrap_or_default();
        metadata.annotations.get_or_insert_default().extend(self.config.annotations.clone());
        Lease { metadata, spec: Some(record.to_lease_spec()) }
    }

    /// Handles a successful write that names this process the holder. The leadership counts from the moment the call *began*:
    /// other candidates can have counted the lease's duration from that moment at the earliest.
    fn holds(&mut self, written: Lease, record: LeaderElectionRecord, term: Term) {
        self.observed = Some(ObservedLease { record, ..ObservedLease::new(&written, Instant::now().into_std()) });
        self.lease = Some(written);
        let [fence, lease_end] =
            [self.config.renew_deadline, self.config.lease_duration].map(|length| term.started + length);
        self.leadership.extend(fence, lease_end, term);
    }

    async fn call<T>(
        &self,
        operation: &'static str,
        future: impl Future<Output = Result<T, LockError>>,
    ) -> Result<T, LockError> {
        let limit = self.config.call_timeout();
        timeout(limit, future).await.unwrap_or_else(|_| {
            Err(LockError::Timeout { operation, lease: self.config.lease(), seconds: limit.as_secs_f64() })
        })
    }

    /// Ends the right to write, then releases the lease if configured. Bounded by the renew deadline.
    async fn stop(&mut self) -> Outcome {
        self.leadership.revoke(false);
        self.master_status(false);
        let is_heir = self.inherited.is_some_and(|end| Instant::now() < end);
        if !self.config.release_on_cancel || !self.may_hold || is_heir {
            return Outcome::Cancelled;
        }
        let limit = Instant::now() + self.config.renew_deadline;
        for _ in 0..RELEASE_ATTEMPTS {
            match timeout_at(limit, self.try_release()).await {
                Ok(Ok(true)) => return Outcome::Released,
                Ok(Ok(false)) => return Outcome::Cancelled,
                Ok(Err(error)) => warn!(%error, "failed to release the lease"),
                Err(_) => break,
            }
        }
        Outcome::Cancelled
    }

    /// Releases the lease only if the server still names this process the holder. `Ok(false)`: another process holds it, or
    /// it does not exist. Matches `release` in client-go's tools/leaderelection/leaderelection.go.
    async fn try_release(&mut self) -> Result<bool, LockError> {
        let Some(lease) = self.call("get", self.lock.get()).await? else { return Ok(false) };
        self.observe(lease);
        let Some(seen) = &self.observed else { return Ok(false) };
        if seen.record.holder_identity.is_empty() {
            // An earlier attempt succeeded and its answer was lost.
            return Ok(true);
        }
        if seen.record.holder_identity != self.config.identity {
            return Ok(false);
        }
        let lease = self.replacement(&released(&seen.record, self.clock.now()));
        self.call("update", self.lock.update(&lease)).await?;
        info!(lease = self.config.lease(), "released the lease");
        Ok(true)
    }

    /// Matches `maybeReportTransition` in client-go's tools/leaderelection/leaderelection.go.
    fn report_transition(&mut self) {
        let Some(seen) = &self.observed else { return };
        if seen.record.holder_identity == self.reported_leader {
            return;
        }
        self.reported_leader.clone_from(&seen.record.holder_identity);
        info!(lease = self.config.lease(), leader = self.reported_leader, "new leader");
        self.hooks.on_new_leader.iter().for_each(|hook| hook(&self.reported_leader));
    }

    fn master_status(&self, leads: bool) {
        self.hooks.on_master_status.iter().for_each(|hook| hook(leads));
    }

    fn event(&self, what: &str) {
        if let (Some(hook), Some(lease)) = (&self.hooks.on_event, &self.lease) {
            hook(&lease.metadata, &format!("{} {what}", self.config.identity));
        }
    }
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;
