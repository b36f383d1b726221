#![allow(clippy::unwrap_used)]
use super::*;

const ME: ElectorIdentity<'static> = ElectorIdentity { identity: "me", lease_duration: Duration::from_millis(14_100) };

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
    let seen = |version: &str, at| ObservedLease {
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
        let observed = row.seen.as_ref().map(|(record, _)| ObservedLease {
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
    let observed =
        ObservedLease { record: old.clone(), resource_version: None, at: Instant::now(), open_creates: None };
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
