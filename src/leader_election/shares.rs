//! How the replicas of one program distribute its shards. There is one lease for each shard and one for each replica. Every
//! replica makes this decision by itself from the leases that it observes. Pure.
//!
//! Guarantees: the shard's elector alone decides who holds a shard, so this decision can never give a shard two holders.
//! Among replicas that observe the same leases, no two contend for the same shard, and each gives up at most one shard at a
//! time. Once every shard is held and no two shares differ by more than one, no shard moves. A replica whose own lease has
//! expired has no share; one that releases its lease on shutdown has none at once. A new replica gets free shards at once.
//! Other replicas give up shards for it only after it has lived for a while, so a replica that crashes repeatedly does not
//! disturb them.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::decision::Observed;
use crate::sharding;

/// After this many of its durations without a renewal, the lease of a replica is removed: the replica does not return.
const REMEMBERED: u32 = 6;

/// The names of the leases of replicas that distribute a given number of shards.
#[derive(Clone, Debug)]
pub struct Names {
    base: String,
    count: NonZeroU32,
}

/// What a lease means to replicas with these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Shard(u32),
    Replica,
    /// A replica that distributes another number of shards.
    Stranger,
    /// The lease of a single leader, or of a shard among another number of shards.
    Foreign,
    Unrelated,
}

impl Names {
    /// The leases of `count` shards under the name `base`.
    pub fn new(base: &str, count: NonZeroU32) -> Self {
        Self { base: base.to_owned(), count }
    }

    /// How many shards there are.
    pub fn count(&self) -> NonZeroU32 {
        self.count
    }

    /// The name of the lease of the shard of that number.
    pub fn shard(&self, index: u32) -> String {
        format!("{}-shard-{index}-of-{}", self.base, self.count)
    }

    /// The name of a replica's lease. Not every identity can be part of a name.
    pub fn replica(&self, identity: &str) -> String {
        format!("{}-replica-{:016x}-of-{}", self.base, sharding::hash(identity), self.count)
    }

    fn role(&self, lease: &str) -> Role {
        let Some(rest) = lease.strip_prefix(&self.base) else { return Role::Unrelated };
        if rest.is_empty() {
            return Role::Foreign;
        }
        if let Some((_, count)) = rest.strip_prefix("-replica-").and_then(|rest| rest.split_once("-of-")) {
            return if count.parse() == Ok(self.count) { Role::Replica } else { Role::Stranger };
        }
        let numbers = rest.strip_prefix("-shard-").and_then(|numbers| numbers.split_once("-of-"));
        match numbers.map(|(index, count)| (index.parse::<u32>(), count.parse::<NonZeroU32>())) {
            Some((Ok(index), Ok(count))) if count == self.count && index < count.get() => Role::Shard(index),
            Some((Ok(_), Ok(_))) => Role::Foreign,
            _ => Role::Unrelated,
        }
    }
}

/// What a replica has observed of the leases, and since when each has been unchanged.
#[derive(Clone, Debug, Default)]
pub struct LeaseObservations(BTreeMap<String, LeaseObservation>);

#[derive(Clone, Debug)]
struct LeaseObservation {
    role: Role,
    last: Observed,
    /// When the lease was first observed, in whatever state.
    first: Instant,
}

impl LeaseObservation {
    /// When the lease expires unless it is renewed.
    fn end(&self) -> Instant {
        self.last.at + self.duration()
    }

    fn duration(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.last.record.lease_duration_seconds).unwrap_or(0))
    }

    /// Who holds the lease at `now`.
    fn holder(&self, now: Instant) -> Option<&str> {
        let holder = &*self.last.record.holder_identity;
        (!holder.is_empty() && now < self.end()).then_some(holder)
    }
}

impl LeaseObservations {
    /// Records a list of all leases, by name.
    pub fn see(&mut self, names: &Names, leases: impl IntoIterator<Item = (String, Observed)>) {
        let mut before = std::mem::take(&mut self.0);
        for (name, last) in leases {
            let role = names.role(&name);
            let seen = match before.remove(&name) {
                _ if role == Role::Unrelated => continue,
                Some(LeaseObservation { last: old, first, .. }) => {
                    LeaseObservation { role, last: old.followed_by(last), first }
                }
                None => LeaseObservation { role, first: last.at, last },
            };
            self.0.insert(name, seen);
        }
    }

    /// The last observation of the lease of a shard.
    pub fn shard(&self, index: u32) -> Option<&Observed> {
        self.of(Role::Shard(index)).next().map(|seen| &seen.last)
    }

    /// The next moment after `now` at which a lease expires unless it is renewed: the leases should be listed again then.
    pub fn next_end(&self, now: Instant) -> Option<Instant> {
        self.0.values().filter(|seen| seen.holder(now).is_some()).map(LeaseObservation::end).min()
    }

    fn of(&self, role: Role) -> impl Iterator<Item = &LeaseObservation> {
        self.0.values().filter(move |seen| seen.role == role)
    }

    /// Who holds the leases of that role at `now`.
    fn holders(&self, role: Role, now: Instant) -> impl Iterator<Item = &str> {
        self.of(role).filter_map(move |seen| seen.holder(now))
    }

    /// The replicas that have lived for longer than the lease of one that crashed at once.
    fn settled(&self, now: Instant) -> impl Iterator<Item = &str> {
        let old = self.of(Role::Replica).filter(move |seen| now >= seen.first + seen.duration());
        old.filter_map(move |seen| seen.holder(now))
    }

    /// The leases of replicas other than `me` that have not been renewed for a long time.
    fn gone(&self, me: &str, now: Instant) -> impl Iterator<Item = &String> {
        let replicas = self.0.iter().filter(|(_, seen)| matches!(seen.role, Role::Replica | Role::Stranger));
        let others = replicas.filter(move |(_, seen)| seen.last.record.holder_identity != me);
        let gone = others.filter(move |(_, seen)| now >= seen.last.at + seen.duration() * REMEMBERED);
        gone.map(|(name, _)| name)
    }
}

/// This replica's state for one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardState {
    /// It contends for the lease.
    Contending,
    /// It holds the lease.
    Holding,
    /// It is about to release the lease.
    Leaving,
}

/// The next action of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Contend for the lease of a free shard.
    Take(u32),
    /// End the work on a shard and release its lease; or stop contending for it.
    GiveUp(u32),
    /// Remove the lease of this name, of a replica that is long gone.
    Remove(String),
}

/// Chooses the moves of the replica `me`, whose state for its shards is `mine`.
pub fn decide(
    me: &str,
    names: &Names,
    mine: &BTreeMap<u32, ShardState>,
    seen: &LeaseObservations,
    now: Instant,
) -> Vec<Move> {
    let mut holders: BTreeMap<u32, &str> = BTreeMap::new();
    let mut moves = Vec::new();
    for index in 0..names.count.get() {
        match (mine.get(&index), seen.holders(Role::Shard(index), now).next()) {
            (Some(ShardState::Contending), Some(other)) if other != me => {
                moves.push(Move::GiveUp(index));
                holders.insert(index, other);
            }
            (Some(_), _) => drop(holders.insert(index, me)),
            (None, Some(holder)) => drop(holders.insert(index, holder)),
            (None, None) => {}
        }
    }
    // Replicas with another number of shards, or a single leader, came first: their leases have to come free.
    if seen.holders(Role::Foreign, now).next().is_none() {
        let live = seen.holders(Role::Replica, now).chain([me]).collect();
        moves.extend(taken(&shares(live, names.count, &holders), me, names.count, &holders));
        let settled = seen.settled(now).chain([me]).collect();
        moves.extend(given_up(&shares(settled, names.count, &holders), me, mine));
    }
    moves.extend(seen.gone(me, now).map(|name| Move::Remove(name.clone())));
    moves
}

/// The current and the intended number of shards of one replica.
struct Share<'a> {
    replica: &'a str,
    held: u32,
    fair: u32,
}

/// The shares of the live replicas: as equal as possible. The larger shares go to the replicas with most shards, so that they
/// keep them.
fn shares<'a>(live: BTreeSet<&'a str>, count: NonZeroU32, holders: &BTreeMap<u32, &str>) -> Vec<Share<'a>> {
    let held = |replica: &str| u32::try_from(holders.values().filter(|holder| **holder == replica).count());
    let mut shares: Vec<Share<'a>> =
        live.into_iter().map(|replica| Share { replica, held: held(replica).unwrap_or(u32::MAX), fair: 0 }).collect();
    shares.sort_by(|a, b| b.held.cmp(&a.held).then_with(|| a.replica.cmp(b.replica)));
    let replicas = u32::try_from(shares.len()).unwrap_or(u32::MAX).max(1);
    let (each, over) = (count.get() / replicas, count.get() % replicas);
    for (place, share) in (0..).zip(&mut shares) {
        share.fair = each + u32::from(place < over);
    }
    shares
}

/// The free shards that `me` takes to reach its share.
fn taken(shares: &[Share<'_>], me: &str, count: NonZeroU32, holders: &BTreeMap<u32, &str>) -> Vec<Move> {
    // All replicas see the shares in the same order, so no two take the same shard.
    let takers = shares.iter().flat_map(|share| {
        let wanted = share.fair.saturating_sub(share.held);
        std::iter::repeat_n(share.replica, usize::try_from(wanted).unwrap_or(usize::MAX))
    });
    let free = (0..count.get()).filter(|index| !holders.contains_key(index));
    free.zip(takers).filter(|(_, taker)| *taker == me).map(|(index, _)| Move::Take(index)).collect()
}

/// The shard that `me` gives up to reach its share: one at a time, so that few shards are without a controller.
fn given_up(shares: &[Share<'_>], me: &str, mine: &BTreeMap<u32, ShardState>) -> Option<Move> {
    let has_too_many = shares.iter().any(|share| share.replica == me && share.held > share.fair);
    let is_leaving = mine.values().any(|tenure| *tenure == ShardState::Leaving);
    mine.keys().next_back().filter(|_| has_too_many && !is_leaving).map(|index| Move::GiveUp(*index))
}

#[cfg(test)]
mod tests;
