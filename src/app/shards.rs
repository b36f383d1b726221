//! This replica's share of the shards.
//!
//! Guarantees: every shard has one lease and one elector. Its controller is built once the lease is won and dropped when
//! the lease is lost or released, so no state passes from one shard to another. Its caches are listed after the lease was
//! won. Losing one shard does not affect the others. A release is orderly: first the work in flight ends, then pending
//! statuses are written, then the lease is released. On shutdown, the replica announces its end to the other replicas at
//! once, so that they take over each shard as it is released.
//!
//! The module [`shares`](crate::leader_election::shares) decides which shards this replica holds, once in a retry period and
//! whenever the lease of another replica runs out.

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

use super::election::{Candidate, HEALTH_TIMEOUT, under_lease};
use super::{AppError, Caches, ControllerContext, ElectionHealth, LookAtCaches, ShardControllers};
use crate::leader_election::decision::{ElectorIdentity, Observed, presence};
use crate::leader_election::shares::{LeaseObservations, Move, Names, ShardState, decide};
use crate::leader_election::{HealthzAdaptor, KubeLeaseLock, LeaderElectionRecord, LeaseLock, Leases, LockError};
use crate::sharding::Shard;
use crate::sim;

/// Holds this replica's share of the shards.
pub struct ShardManager {
    context: Arc<ControllerContext>,
    candidate: Candidate,
    names: Names,
    shards: Vec<Shard>,
    leases: Leases,
    /// The lease by which this replica announces itself.
    own: KubeLeaseLock,
    /// The last known version of that lease.
    presence: Option<Lease>,
    /// Whether the other replicas can know of this one. Until then it takes no shard, because it would have to give it
    /// back.
    introduced: bool,
    seen: LeaseObservations,
    held: BTreeMap<u32, Held>,
    /// When the leases were last listed.
    looked_at: Arc<Mutex<Option<Instant>>>,
    tasks: JoinSet<(u32, Result<(), AppError>)>,
    statuses: ShardStatuses,
}

/// A shard that this replica holds or contends for.
struct Held {
    status: Arc<ShardStatus>,
    stop: CancellationToken,
}

/// The status of each shard, by its number.
type ShardStatuses = Arc<Mutex<BTreeMap<u32, Arc<ShardStatus>>>>;

struct ShardStatus {
    health: HealthzAdaptor,
    /// Set once the lease is won.
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
    /// A manager that does nothing until [`Self::run`].
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

    /// The state of the caches of all held shards, and of the list of leases, which decides what those shards are.
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

    /// Healthy while every held lease is renewed in time.
    pub fn health(&self) -> ElectionHealth {
        let statuses = Arc::clone(&self.statuses);
        Arc::new(move || statuses.lock().values().try_for_each(|status| status.health.check()))
    }

    /// Takes part until `stop`, then releases every shard.
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

    /// Renews this replica's own lease, lists all leases, and carries out the moves that follow.
    async fn look(&mut self) -> Result<(), LockError> {
        let introduced = self.introduced;
        if let Err(error) = self.say_present().await {
            // Another process may have changed or removed the lease; the list shows it.
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

    /// Renews this replica's own lease. It lasts as long as a leader that cannot renew goes on writing, so that other
    /// replicas do not count on a replica whose shards are about to come free.
    async fn say_present(&mut self) -> Result<(), LockError> {
        let old = self.presence.as_ref().map(LeaderElectionRecord::from_lease);
        let lease_duration = self.candidate.settings.renew_deadline;
        let me = ElectorIdentity { identity: &self.candidate.identity, lease_duration };
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
        let (recorder, sink) = context.recorder(seed);
        let elector = match self.candidate.elector(&self.names.shard(index), Arc::clone(&recorder)) {
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
        self.tasks.spawn(sim::bind(async move {
            let work = async |leadership| {
                info!(shard = index, "working on the shard");
                let mut controllers = ShardControllers::new(&context, shard, seed, &recorder, sink);
                let _ = status.caches.set(controllers.caches());
                controllers.run_led(leadership, &stop).await
            };
            (index, under_lease(elector, &stop, work).await)
        }));
    }

    /// Handles the end of the work on a shard.
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
                // Its lease expires; then any replica may take the shard.
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
            // Without a resourceVersion: the answer to the last renewal may have been dropped just now.
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
