//! The election record and its representation as a coordination.k8s.io/v1 Lease.
//!
//! Guarantees: a record that is written to a Lease and read back is unchanged, to the microsecond. A Lease with missing or
//! unreadable fields reads as empty values, not as an error. A new record never changes the metadata of the Lease (labels,
//! annotations, resourceVersion).

use chrono::{DateTime, Utc};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// Who leads and since when. Matches `LeaderElectionRecord` in client-go's
/// tools/leaderelection/resourcelock/interface.go, without the fields of coordinated leader election.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaderElectionRecord {
    /// The holder; empty while the lease has none.
    pub holder_identity: String,
    /// How many seconds without a change other candidates wait before they take the lease.
    pub lease_duration_seconds: i32,
    /// The holder's wall clock when it became leader.
    pub acquire_time: Option<DateTime<Utc>>,
    /// The holder's wall clock at its last renewal.
    pub renew_time: Option<DateTime<Utc>>,
    /// How often the lease has passed from one holder to another.
    pub leader_transitions: i32,
}

impl LeaderElectionRecord {
    /// Reads the record out of a lease. Matches `LeaseSpecToLeaderElectionRecord` in client-go's
    /// tools/leaderelection/resourcelock/leaselock.go.
    pub fn from_lease(lease: &Lease) -> Self {
        let Some(spec) = &lease.spec else { return Self::default() };
        Self {
            holder_identity: spec.holder_identity.clone().unwrap_or_default(),
            lease_duration_seconds: spec.lease_duration_seconds.unwrap_or_default(),
            acquire_time: spec.acquire_time.as_ref().and_then(from_micro_time),
            renew_time: spec.renew_time.as_ref().and_then(from_micro_time),
            leader_transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }

    /// The lease spec of this record. Matches `LeaderElectionRecordToLeaseSpec` in client-go's
    /// tools/leaderelection/resourcelock/leaselock.go.
    pub fn to_lease_spec(&self) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.holder_identity.clone()),
            lease_duration_seconds: Some(self.lease_duration_seconds),
            acquire_time: self.acquire_time.and_then(to_micro_time),
            renew_time: self.renew_time.and_then(to_micro_time),
            lease_transitions: Some(self.leader_transitions),
            preferred_holder: None,
            strategy: None,
        }
    }
}

fn from_micro_time(time: &MicroTime) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(time.0.as_microsecond())
}

fn to_micro_time(time: DateTime<Utc>) -> Option<MicroTime> {
    jiff::Timestamp::from_microsecond(time.timestamp_micros()).ok().map(MicroTime)
}

#[cfg(test)]
mod tests;
