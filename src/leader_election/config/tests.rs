use super::*;

fn times(lease: u64, renew: u64, retry: u64) -> Config {
    Config {
        lease_duration: Duration::from_millis(lease),
        renew_deadline: Duration::from_millis(renew),
        retry_period: Duration::from_millis(retry),
        ..Config::new("kube-system", "cronjob-controller", "me")
    }
}

#[test]
fn validity() {
    let rows: [(&str, Config, Option<&str>); 10] = [
        ("client-go's times are valid", times(15_000, 10_000, 2_000), None),
        ("a lease as long as the renew deadline leaves no room", times(10_000, 10_000, 2_000), Some("lease duration")),
        ("a lease whose fraction makes the room has it", times(10_900, 10_500, 2_000), None),
        ("a lease under a second is written as one", times(900, 500, 100), None),
        ("a lease of one second can", times(1_000, 900, 100), None),
        ("a lease beyond what the field holds", times(u64::from(u32::MAX) * 1_000, 10_000, 2_000), Some("too long")),
        (
            "a renew deadline of 1.2 retry periods gives one attempt",
            times(15_000, 2_400, 2_000),
            Some("renew deadline"),
        ),
        ("a retry period of zero spins", times(15_000, 10_000, 0), Some("retry period")),
        ("an empty identity", Config { identity: String::new(), ..times(15_000, 10_000, 2_000) }, Some("identity")),
        ("an empty name", Config { name: String::new(), ..times(15_000, 10_000, 2_000) }, Some("name")),
    ];
    for (name, config, want) in rows {
        match (config.validate(), want) {
            (Ok(()), None) => {}
            (Err(error), Some(part)) => assert!(error.to_string().contains(part), "{name}: {error}"),
            (got, want) => panic!("{name}: got {got:?}, want {want:?}"),
        }
    }
}

#[test]
fn an_identity_is_the_host_name_and_a_random_uuid() {
    let identity = default_identity();
    let (host, uuid) = identity.rsplit_once('_').expect("an underscore");
    assert!(!host.is_empty());
    assert_eq!(uuid.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
    assert_ne!(identity, default_identity());
}

#[test]
fn a_uuid_carries_version_and_variant() {
    assert_eq!(uuid_v4(0), "00000000-0000-4000-8000-000000000000");
    assert_eq!(uuid_v4(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
}
