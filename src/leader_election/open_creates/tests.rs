use super::*;

#[test]
fn only_what_the_holder_wrote_in_this_term_is_read() {
    let record = LeaderElectionRecord {
        holder_identity: "pod a_1".to_owned(),
        leader_transitions: 3,
        ..LeaderElectionRecord::default()
    };
    let rows = [
        ("nothing beyond the lease", Some("0 3 pod a_1"), Some(0)),
        ("a create of a slot that timed out", Some("42 3 pod a_1"), Some(42)),
        ("of a program that does not know of it", None, None),
        ("of an earlier holder", Some("0 3 pod b_1"), None),
        ("of an earlier term of this holder", Some("0 2 pod a_1"), None),
        ("without a holder", Some("0 3"), None),
        ("less than nothing", Some("-1 3 pod a_1"), None),
        ("no number", Some("soon 3 pod a_1"), None),
        ("an age of the world", Some("18446744073709551615 3 pod a_1"), None),
        ("empty", Some(""), None),
    ];
    for (sentence, text, want) in rows {
        let annotations = text.map(|text| [(OPEN_CREATES.to_owned(), text.to_owned())].into());
        let lease = Lease { metadata: ObjectMeta { annotations, ..ObjectMeta::default() }, spec: None };
        assert_eq!(read(&lease, &record), want.map(Duration::from_secs), "{sentence}");
    }
    let mut lease = Lease::default();
    write(&mut lease.metadata, &record, Duration::from_millis(41_001));
    assert_eq!(read(&lease, &record), Some(Duration::from_secs(42)), "rounded up");
}
