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
pub struct Observed {
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

impl Observed {
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
            // Whoever releases a lease writes when. One without a holder that does not say so was created so.
            _ if self.record.holder_identity.is_empty() && self.record.acquire_time.is_some() => Takeover::Released,
            Some(length) => Takeover::RanOut((self.at + length).into()),
            None => Takeover::RanOutInSilence,
        }
    }
}

/// What is known about the lease before a step.
#[derive(Debug, Clone, Copy)]
pub enum Knowledge<'a> {
    /// Only earlier observations, if any; the lease was not read in this attempt.
    Remembered(Option<&'a Observed>),
    /// The lease was read in this attempt.
    Fresh(&'a Observed),
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
        lease_duration_seconds: 1,
        acquire_time: Some(wall),
        renew_time: Some(wall),
        leader_transitions: old.leader_transitions,
    }
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ME: ElectorIdentity<'static> =
        ElectorIdentity { identity: "me", lease_duration: Duration::from_millis(14_100) };

    fn wall(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    fn record(holder: &str, transitions: i32) -> LeaderElectionRecord {
        LeaderElectionRecord {
            holder_identity: holder.to_owned(),
            lease_duration_seconds: 15,
            acquire_time: Some(wall(-100)),
            renew_time: Some(wall(-1)),
            leader_transitions: transitions,
        }
    }

    fn mine(acquired: i64, renewed: i64, transitions: i32) -> LeaderElectionRecord {
        LeaderElectionRecord {
            holder_identity: "me".to_owned(),
            lease_duration_seconds: 15,
            acquire_time: Some(wall(acquired)),
            renew_time: Some(wall(renewed)),
            leader_transitions: transitions,
        }
    }

    /// A holder whose clock was set back may write the record again that was seen last.
    #[test]
    fn renewal_with_an_earlier_record_in_a_new_version_is_recognised() {
        let at = Instant::now();
        let seen = |version: &str, at| Observed {
            record: record("other", 0),
            resource_version: Some(version.to_owned()),
            at,
            open_creates: None,
        };
        let later = at + Duration::from_secs(14);
        for (version, since) in [("1", at), ("2", later)] {
            let observed = seen("1", at).followed_by(seen(version, later));
            assert_eq!(observed.at, since);
            assert_eq!(observed.is_lease_valid(at + Duration::from_secs(15)), since == later);
        }
    }

    #[test]
    fn decisions() {
        struct Row {
            name: &'static str,
            seen: Option<(LeaderElectionRecord, u64)>,
            fresh: bool,
            want: Action,
        }
        let rows = [
            Row { name: "nothing seen yet: read", seen: None, fresh: false, want: Action::Read },
            Row { name: "no lease: create it", seen: None, fresh: true, want: Action::Create(mine(0, 0, 0)) },
            Row {
                name: "our own valid lease is renewed without reading",
                seen: Some((record("me", 3), 14)),
                fresh: false,
                want: Action::Update(mine(-100, 0, 3)),
            },
            Row {
                name: "our own lease that ran out is read first",
                seen: Some((record("me", 3), 15)),
                fresh: false,
                want: Action::Read,
            },
            Row {
                name: "a lease of another is never renewed unread",
                seen: Some((record("other", 3), 0)),
                fresh: false,
                want: Action::Read,
            },
            Row {
                name: "our own lease, read again, keeps acquireTime and transitions",
                seen: Some((record("me", 3), 0)),
                fresh: true,
                want: Action::Update(mine(-100, 0, 3)),
            },
            Row {
                name: "our own expired lease that no other candidate took is renewed",
                seen: Some((record("me", 3), 60)),
                fresh: true,
                want: Action::Update(mine(-100, 0, 3)),
            },
            Row {
                name: "another's lease that was just seen is waited for",
                seen: Some((record("other", 3), 0)),
                fresh: true,
                want: Action::Wait("other".to_owned()),
            },
            Row {
                name: "another's lease is waited for until its last second",
                seen: Some((record("other", 3), 14)),
                fresh: true,
                want: Action::Wait("other".to_owned()),
            },
            Row {
                name: "another's lease that stayed unchanged for its duration is taken",
                seen: Some((record("other", 3), 15)),
                fresh: true,
                want: Action::Update(mine(0, 0, 4)),
            },
            Row {
                name: "a released lease is taken at once",
                seen: Some((LeaderElectionRecord { lease_duration_seconds: 1, ..record("", 3) }, 0)),
                fresh: true,
                want: Action::Update(mine(0, 0, 4)),
            },
            Row {
                name: "another's lease with a longer duration than ours is given that long",
                seen: Some((LeaderElectionRecord { lease_duration_seconds: 60, ..record("other", 0) }, 59)),
                fresh: true,
                want: Action::Wait("other".to_owned()),
            },
            Row {
                name: "a lease with a negative duration has run out",
                seen: Some((LeaderElectionRecord { lease_duration_seconds: -5, ..record("other", 0) }, 0)),
                fresh: true,
                want: Action::Update(mine(0, 0, 1)),
            },
            Row {
                name: "a record from a clock a year ahead is waited for no longer than any other",
                seen: Some((LeaderElectionRecord { renew_time: Some(wall(31_536_000)), ..record("other", 0) }, 15)),
                fresh: true,
                want: Action::Update(mine(0, 0, 1)),
            },
            Row {
                name: "a record from a clock a year behind is not taken early",
                seen: Some((LeaderElectionRecord { renew_time: Some(wall(-31_536_000)), ..record("other", 0) }, 14)),
                fresh: true,
                want: Action::Wait("other".to_owned()),
            },
            Row {
                name: "the count of transitions does not overflow",
                seen: Some((record("", i32::MAX), 0)),
                fresh: true,
                want: Action::Update(mine(0, 0, i32::MAX)),
            },
        ];
        let started = Instant::now();
        for row in rows {
            let observed = row.seen.as_ref().map(|(record, _)| Observed {
                record: record.clone(),
                resource_version: None,
                at: started,
                open_creates: None,
            });
            let age = row.seen.as_ref().map_or(0, |(_, age)| *age);
            let knowledge = match (row.fresh, observed.as_ref()) {
                (false, seen) => Knowledge::Remembered(seen),
                (true, None) => Knowledge::Absent,
                (true, Some(seen)) => Knowledge::Fresh(seen),
            };
            let got = next_action(knowledge, ME, started + Duration::from_secs(age), wall(0));
            assert_eq!(got, row.want, "{}", row.name);
        }
    }

    #[test]
    fn a_renewal_differs_from_the_last_even_when_the_wall_clock_shows_the_same_time() {
        let old = record("me", 0);
        let observed = Observed { record: old.clone(), resource_version: None, at: Instant::now(), open_creates: None };
        let Action::Update(new) = next_action(Knowledge::Remembered(Some(&observed)), ME, observed.at, wall(-1)) else {
            panic!("a holder renews")
        };
        assert_ne!(new, old);
    }

    #[test]
    fn a_released_record_has_no_holder_and_one_second_to_run() {
        let got = released(&record("me", 7), wall(5));
        let want = LeaderElectionRecord {
            lease_duration_seconds: 1,
            acquire_time: Some(wall(5)),
            renew_time: Some(wall(5)),
            ..record("", 7)
        };
        assert_eq!(got, want);
    }

    #[test]
    fn renewal_needs_a_sign_of_life_within_the_last_minute() {
        let rows = [
            ("work that is not judged by signs", 600, None, true),
            ("work that shows them", 600, Some(0), true),
            ("work that was silent for just less than a minute", 600, Some(59), true),
            ("work that was silent for a minute", 600, Some(60), false),
            ("work that was silent since the leadership began", 60, Some(600), false),
            ("a leader since just now, after a long silence as a standby", 5, Some(600), true),
        ];
        let start = Instant::now();
        let now = start + Duration::from_secs(1_000);
        let ago = |seconds: u64| start + Duration::from_secs(1_000 - seconds);
        for (sentence, leads_since, last_sign, want) in rows {
            assert_eq!(may_renew(ago(leads_since), last_sign.map(ago), now), want, "{sentence}");
        }
    }
}
