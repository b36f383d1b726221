use super::*;

fn check(synced: bool, age: Duration) -> [Result<(), String>; 2] {
    let look: LookAtCaches = Arc::new(move || Caches { synced, age });
    health_checks(look).map(|check| (check.check)())
}

#[test]
fn a_process_is_ready_once_its_caches_are_synced_and_while_its_watches_are_alive() {
    assert_eq!(check(true, Duration::from_secs(299)), [Ok(()), Ok(())]);
    assert!(check(false, Duration::ZERO)[0].is_err());
    let stale = "the API server has not said for 300 s how its objects are".to_owned();
    assert_eq!(check(true, STALE_AFTER), [Ok(()), Err(stale)]);
}

#[test]
fn of_several_caches_the_worst_counts() {
    let seconds = Duration::from_secs;
    let one = |synced, age| Caches { synced, age: seconds(age) };
    let rows = [
        ("none", vec![], one(true, 0)),
        ("one that is not synced", vec![one(true, 0), one(false, 0), one(true, 0)], one(false, 0)),
        ("one that is old", vec![one(true, 1), one(true, 9), one(true, 2)], one(true, 9)),
    ];
    for (sentence, caches, want) in rows {
        assert_eq!(Caches::all(caches), want, "{sentence}");
    }
}
