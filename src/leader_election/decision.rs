//! The next step of a candidate or a leader, decided without a clock, a client or a lock.
//!
//! Guarantees: a candidate takes another holder's lease only after observing the same record for the whole duration that the
//! record names, on its own monotonic clock. It never compares the wall-clock times in the record with its own, so skewed
//! clocks of other processes cannot make it leader too early. Every written record differs from the one it replaces, so a
//! renewal is always visible to the other candidates.

use std::time::{Duration, Instant};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use k8s_openapi::api::coordination::v1::Lease;

use super::config::whole_seconds;
use super::leadership::Takeover;
use super::open_creates;
use super::record::LeaderElectionRecord;

/// What a lease contained, and the monotonic time at which this process first saw that.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedLease {
    /// The record in the lease.
    pub record: LeaderElectionRecord,
    /// The lease's version. A lease was renewed if this has changed: a holder whose clock was set back may write exactly the
    /// record that was seen last.
    pub resource_version: Option<String>,
    /// When the answer with that record had arrived.
    pub at: Instant,
    /// How long from then the holder's creates may stay open, if the lease says so.
    pub open_creates: Option<Duration>,
}

impl ObservedLease {
    /// A lease from an answer that had arrived `at`.
    pub fn new(lease: &Lease, at: Instant) -> Self {
        let record = LeaderElectionRecord::from_lease(lease);
        let open_creates = open_creates::read(lease, &record);
        Self { record, resource_version: lease.metadata.resource_version.clone(), at, open_creates }
    }

    /// The observation after `newer` was seen: an unchanged lease counts from when it was first seen.
    #[must_use]
    pub fn followed_by(self, newer: Self) -> Self {
        if newer.resource_version == self.resource_version { self } else { newer }
    }

    /// Whether the lease, by the record's own duration, has not yet expired at `now`. Matches `isLeaseValid` in client-go's
    /// tools/leaderelection/leaderelection.go.
    pub fn is_lease_valid(&self, now: Instant) -> bool {
        now < self.expires()
    }

    /// When the lease expires, by the record's own duration.
    pub fn expires(&self) -> Instant {
        self.at + Duration::from_secs(u64::try_from(self.record.lease_duration_seconds).unwrap_or(0))
    }

    /// How the holder left the lease to whoever takes it now.
    pub fn takeover(&self) -> Takeover {
        match self.open_creates {
            // Whoever releases a lease writes when, and a second. One without a holder that does not say so was created so, or
            // its holder was taken out by hand.
            _ if is_released(&self.record) => Takeover::Released,
            Some(length) => Takeover::RanOut((self.at + length).into()),
            None => Takeover::RanOutInSilence,
        }
    }
}

/// What is known about the lease before a step.
#[derive(Debug, Clone, Copy)]
pub enum Knowledge<'a> {
    /// Only earlier observations, if any; the lease was not read in this attempt.
    Remembered(Option<&'a ObservedLease>),
    /// The lease was read in this attempt.
    Fresh(&'a ObservedLease),
    /// The lease was read in this attempt and does not exist.
    Absent,
}

/// The next step of an attempt to acquire or renew.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Read the lease, then decide again.
    Read,
    /// Create the lease with this record.
    Create(LeaderElectionRecord),
    /// Replace the record, in the version of the lease that was seen last.
    Update(LeaderElectionRecord),
    /// Another identity holds the lease, and it has not expired.
    Wait(String),
}

/// How long the work under a lease may show no sign of life before its leader stops renewing. Longer than any request may take.
pub const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// Whether a leader since `leads_since` may renew at `now`. `last_sign` is when the work under the lease last showed a sign of
/// life; `None` if it shows none at all, and then it is not judged by them.
pub fn may_renew(leads_since: Instant, last_sign: Option<Instant>, now: Instant) -> bool {
    last_sign.is_none_or(|sign| now.saturating_duration_since(sign.max(leads_since)) < LONGEST_SILENCE)
}

/// The duration in the record of a released lease.
const RELEASED_SECONDS: i32 = 1;

/// What an elector writes into a lease about itself.
#[derive(Debug, Clone, Copy)]
pub struct ElectorIdentity<'a> {
    /// The holder identity.
    pub identity: &'a str,
    /// The lease duration; it is written in whole seconds, rounded up.
    pub lease_duration: Duration,
}

/// Chooses the next step. `now` is monotonic; `wall` is only written, never compared.
///
/// Matches `tryAcquireOrRenew` in client-go's tools/leaderelection/leaderelection.go.
pub fn next_action(knowledge: Knowledge<'_>, me: ElectorIdentity<'_>, now: Instant, wall: DateTime<Utc>) -> Action {
    let wall = wall.trunc_subsecs(6);
    match knowledge {
        // The fast path: a presumed holder renews the version it saw last, without reading.
        Knowledge::Remembered(Some(observed))
            if observed.record.holder_identity == me.identity && observed.is_lease_valid(now) =>
        {
            Action::Update(renewal(&observed.record, me, wall))
        }
        Knowledge::Remembered(_) => Action::Read,
        Knowledge::Absent => Action::Create(fresh_record(me, wall)),
        Knowledge::Fresh(observed) => {
            let holder = &observed.record.holder_identity;
            if holder == me.identity {
                Action::Update(renewal(&observed.record, me, wall))
            } else if !holder.is_empty() && observed.is_lease_valid(now) {
                Action::Wait(holder.clone())
            } else {
                let leader_transitions = observed.record.leader_transitions.saturating_add(1);
                Action::Update(LeaderElectionRecord { leader_transitions, ..fresh_record(me, wall) })
            }
        }
    }
}

/// The record of a released lease: no holder, and a duration of one second. Matches `release` in client-go's
/// tools/leaderelection/leaderelection.go.
pub fn released(old: &LeaderElectionRecord, wall: DateTime<Utc>) -> LeaderElectionRecord {
    let wall = wall.trunc_subsecs(6);
    LeaderElectionRecord {
        holder_identity: String::new(),
        lease_duration_seconds: RELEASED_SECONDS,
        acquire_time: Some(wall),
        renew_time: Some(wall),
        leader_transitions: old.leader_transitions,
    }
}

fn is_released(record: &LeaderElectionRecord) -> bool {
    record.holder_identity.is_empty()
        && record.lease_duration_seconds == RELEASED_SECONDS
        && record.acquire_time.is_some()
}

fn fresh_record(me: ElectorIdentity<'_>, wall: DateTime<Utc>) -> LeaderElectionRecord {
    LeaderElectionRecord {
        holder_identity: me.identity.to_owned(),
        lease_duration_seconds: i32::try_from(whole_seconds(me.lease_duration)).unwrap_or(i32::MAX),
        acquire_time: Some(wall),
        renew_time: Some(wall),
        leader_transitions: 0,
    }
}

fn renewal(old: &LeaderElectionRecord, me: ElectorIdentity<'_>, wall: DateTime<Utc>) -> LeaderElectionRecord {
    // A wall clock that was stepped back may show exactly the time of the last renewal. Other candidates would then see an
    // unchanged record and take it for silence.
    let renew_time = if old.renew_time == Some(wall) { wall + TimeDelta::microseconds(1) } else { wall };
    LeaderElectionRecord {
        acquire_time: old.acquire_time,
        renew_time: Some(renew_time),
        leader_transitions: old.leader_transitions,
        ..fresh_record(me, wall)
    }
}

#[cfg(test)]
mod tests;
