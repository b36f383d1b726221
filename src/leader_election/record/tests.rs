#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn a_record_survives_the_wire_to_the_microsecond() {
    let record = LeaderElectionRecord {
        holder_identity: "me".to_owned(),
        lease_duration_seconds: 15,
        acquire_time: DateTime::from_timestamp_micros(1_800_000_000_000_001),
        renew_time: DateTime::from_timestamp_micros(1_800_000_002_500_000),
        leader_transitions: 4,
    };
    let lease = Lease { spec: Some(record.to_lease_spec()), ..Lease::default() };
    let json = serde_json::to_value(&lease).unwrap();
    let want = serde_json::json!({
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2027-01-15T08:00:00.000001Z",
        "renewTime": "2027-01-15T08:00:02.500000Z",
        "leaseTransitions": 4,
    });
    assert_eq!(json["spec"], want, "client-go parses exactly six digits");
    let back: Lease = serde_json::from_value(json).unwrap();
    assert_eq!(LeaderElectionRecord::from_lease(&back), record);
}

#[test]
fn lease_without_a_spec_has_no_holder() {
    assert_eq!(LeaderElectionRecord::from_lease(&Lease::default()), LeaderElectionRecord::default());
}
