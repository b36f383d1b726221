//! This replica's share of the shards.
//!
//! Guarantees: for every shard there is one lease and one elector, and a controller of its own that is built once the
//! lease is won and is gone when it is lost or given up, so that nothing known of one shard gets into another; its caches
//! are listed after the lease was won. Losing one shard harms no other. What is given up is first brought to an end: the
//! work in flight, then what was fired and is not settled, then the lease. When the process is told to end, the others
//! hear of it at once, so that they take over what is given up as it is given up.
//!
//! Which shards those are is decided by [`shares`](crate::leader_election::shares), once in a retry period and at the
//! moment at which somebody's lease runs out.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use rand::RngExt;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::election::{Candidate, HEALTH_TIMEOUT};
use super::{AppError, Caches, ControllerContext, ElectionHealth, LookAtCaches, ShardControllers, under_lease};
use crate::leader_election::decision::{Candidate as Presence, Observed, presence};
use crate::leader_election::shares::{LeaseObservations, Move, Names, ShardState, decide};
use crate::leader_election::{HealthzAdaptor, KubeLeaseLock, LeaderElectionRecord, LeaseLock, Leases, LockError};
use crate::sharding::Shard;
use crate::task;

/// Holds shards, as many as are its share.
pub struct ShardManager {
    context: Arc<ControllerContext>,
    candidate: Candidate,
    names: Names,
    shards: Vec<Shard>,
    leases: Leases,
    /// The lease by which this replica says that it is there.
    own: KubeLeaseLock,
    /// Its last known version.
    presence: Option<Lease>,
    /// Whether the others can know of this replica: until then it takes nothing, lest it be taken back.
    introduced: bool,
    seen: LeaseObservations,
    held: BTreeMap<u32, Held>,
    /// When the leases were last seen.
    looked_at: Arc<Mutex<Option<Instant>>>,
    tasks: JoinSet<(u32, Result<(), AppError>)>,
    statuses: ShardStatuses,
}

/// A shard that this replica has or wants.
struct Held {
    status: Arc<ShardStatus>,
    stop: CancellationToken,
}

/// What a shard shows to whoever looks, by its number.
type ShardStatuses = Arc<Mutex<BTreeMap<u32, Arc<ShardStatus>>>>;

struct ShardStatus {
    health: HealthzAdaptor,
    /// There once the lease is won.
    caches: OnceLock<LookAtCaches>,
}

impl Held {
    fn state(&self) -> ShardState {
        match self.status.caches.get() {
            _ if self.stop.is_cancelled() => ShardState::Leaving,
            None => ShardState::Contending,
            Some(_) => ShardState::Holding,
        }
    }
}

impl ShardManager {
    /// One that does nothing until [`Self::run`].
    pub fn new(context: &Arc<ControllerContext>, candidate: Candidate) -> Self {
        let (settings, client) = (&candidate.settings, &candidate.client);
        let names = Names::new(&settings.name, context.config.shards);
        let shards: Vec<Shard> = Shard::all(context.config.shards).collect();
        for shard in &shards {
            candidate.metrics.off(&names.shard(shard.index()));
        }
        Self {
            leases: Leases::new(client.clone(), &settings.namespace, settings.renew_deadline / 2),
            own: KubeLeaseLock::new(client.clone(), &settings.namespace, &names.replica(&candidate.identity)),
            context: Arc::clone(context),
            candidate,
            names,
            shards,
            presence: None,
            introduced: false,
            seen: LeaseObservations::default(),
            held: BTreeMap::new(),
            looked_at: Arc::default(),
            tasks: JoinSet::new(),
            statuses: ShardStatuses::default(),
        }
    }

    /// How the caches are of all shards that are held, and the view of the leases, which says what those are.
    pub fn caches(&self) -> LookAtCaches {
        let (statuses, looked_at) = (Arc::clone(&self.statuses), Arc::clone(&self.looked_at));
        Arc::new(move || {
            let looked_at = *looked_at.lock();
            let age = looked_at.map(|at| at.elapsed()).unwrap_or_default();
            let leases = Caches { synced: looked_at.is_some(), age };
            let statuses = statuses.lock();
            Caches::all(statuses.values().filter_map(|status| status.caches.get()).map(|look| look()).chain([leases]))
        })
    }

    /// Healthy while every lease that is held is renewed in time.
    pub fn health(&self) -> ElectionHealth {
        let statuses = Arc::clone(&self.statuses);
        Arc::new(move || statuses.lock().values().try_for_each(|status| status.health.check()))
    }

    /// Takes part until `stop`, then gives everything up.
    pub async fn run(mut self, stop: &CancellationToken) -> Result<(), AppError> {
        let count = self.names.count();
        info!(identity = self.candidate.identity, shards = count, "taking part in the work on the shards");
        let period = self.candidate.settings.retry_period;
        let mut next = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = self.tasks.join_next() => self.ended(ended)?,
                () = sleep_until(next) => {
                    let began = Instant::now();
                    match stop.run_until_cancelled(self.look()).await {
                        None => break,
                        Some(Ok(())) => {}
                        Some(Err(error)) => warn!(%error, "failed to look at the leases"),
                    }
                    let now = Instant::now();
                    let end = self.seen.next_end(now.into_std()).map(Instant::from);
                    next = end.map_or(began + period, |end| end.min(began + period)).max(now);
                }
            }
        }
        self.leave().await
    }

    /// Says that this replica is there, looks who else is, and does what follows.
    async fn look(&mut self) -> Result<(), LockError> {
        let introduced = self.introduced;
        if let Err(error) = self.say_present().await {
            // Somebody may have changed or removed it; the list tells.
            self.presence = None;
            warn!(%error, "failed to renew the lease of this replica");
        }
        let leases = self.leases.list().await?;
        *self.looked_at.lock() = Some(Instant::now());
        if self.presence.is_none() {
            self.presence = leases.get(&self.names.replica(&self.candidate.identity)).cloned();
        }
        let now = Instant::now().into_std();
        self.seen.see(&self.names, leases.iter().map(|(name, lease)| (name.clone(), Observed::new(lease, now))));
        if !introduced {
            return Ok(());
        }
        let mine = self.held.iter().map(|(index, held)| (*index, held.state())).collect();
        for what in decide(&self.candidate.identity, &self.names, &mine, &self.seen, now) {
            match what {
                Move::Take(index) => self.take(index),
                Move::GiveUp(index) => {
                    info!(shard = index, "giving the shard up");
                    self.held[&index].stop.cancel();
                }
                Move::Remove(name) => {
                    if let Err(error) = self.leases.remove(&leases[&name]).await {
                        debug!(%error, "a lease of a replica that is gone was not removed");
                    }
                }
            }
        }
        Ok(())
    }

    /// Renews this replica's own lease. It lives as long as a leader that cannot renew goes on writing, so that nobody
    /// counts on a replica whose shards will be free.
    async fn say_present(&mut self) -> Result<(), LockError> {
        let old = self.presence.as_ref().map(LeaderElectionRecord::from_lease);
        let lease_duration = self.candidate.settings.renew_deadline;
        let me = Presence { identity: &self.candidate.identity, lease_duration };
        let spec = Some(presence(old.as_ref(), me, self.context.clock.now()).to_lease_spec());
        let limit = lease_duration / 2;
        let name = self.names.replica(&self.candidate.identity);
        let written = if let Some(lease) = &self.presence {
            let lease = Lease { metadata: lease.metadata.clone(), spec };
            timeout(limit, self.own.update(&lease)).await
        } else {
            let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
            timeout(limit, self.own.create(&Lease { metadata, spec })).await
        };
        let seconds = limit.as_secs_f64();
        let unanswered = || LockError::Timeout { operation: "renew", lease: name, seconds };
        self.presence = Some(written.unwrap_or_else(|_| Err(unanswered()))?);
        self.introduced = true;
        Ok(())
    }

    /// Contends for the lease of a shard and works under it, in a task of its own.
    fn take(&mut self, index: u32) {
        let Some(shard) = usize::try_from(index).ok().and_then(|place| self.shards.get(place)).copied() else { return };
        let (context, seed) = (Arc::clone(&self.context), self.candidate.rng.random());
        let event_output = context.recorder(seed);
        let recorder = Arc::clone(&event_output.0);
        let elector = match self.candidate.elector(&self.names.shard(index), recorder) {
            Ok(elector) => elector,
            Err(error) => {
                self.tasks.spawn(async move { (index, Err(AppError::LeaderElection(error))) });
                return;
            }
        };
        let elector = match self.seen.shard(index) {
            Some(observed) => elector.having_observed(observed.clone()),
            None => elector,
        };
        let health = elector.healthz_adaptor(HEALTH_TIMEOUT);
        let status = Arc::new(ShardStatus { health, caches: OnceLock::new() });
        let stop = CancellationToken::new();
        self.statuses.lock().insert(index, Arc::clone(&status));
        self.held.insert(index, Held { status: Arc::clone(&status), stop: stop.clone() });
        self.tasks.spawn(task::owned(async move {
            let work = async |leadership| {
                info!(shard = index, "working on the shard");
                let mut parts = ShardControllers::new(&context, shard, seed, event_output);
                let _ = status.caches.set(parts.caches());
                parts.run_led(leadership, &stop).await
            };
            (index, under_lease(elector, &stop, work).await)
        }));
    }

    /// Takes note that the work on a shard has ended.
    fn ended(&mut self, ended: Result<(u32, Result<(), AppError>), tokio::task::JoinError>) -> Result<(), AppError> {
        let (index, result) = match ended {
            Ok(ended) => ended,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => return Ok(()),
            },
        };
        self.held.remove(&index);
        self.statuses.lock().remove(&index);
        match result {
            Err(error @ (AppError::LostLease | AppError::SlowShutdown | AppError::PendingCreates)) => {
                // Its lease runs out, and then it is anybody's.
                warn!(shard = index, %error, "no longer working on the shard");
                Ok(())
            }
            result => result,
        }
    }

    /// Ends the work on all shards.
    async fn leave(mut self) -> Result<(), AppError> {
        self.held.values().for_each(|held| held.stop.cancel());
        if let Some(mut lease) = self.presence.take() {
            // In whatever version: the answer to the last renewal may have been waited for just now.
            lease.metadata.resource_version = None;
            if let Err(error) = self.leases.remove(&lease).await {
                warn!(%error, "failed to remove the lease of this replica");
            }
        }
        let mut result = Ok(());
        while let Some(ended) = self.tasks.join_next().await {
            result = result.and(self.ended(ended));
        }
        result
    }
}
