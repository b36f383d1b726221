//! Tables after client-go's `default_rate_limiters_test.go`.

use super::*;

fn milliseconds(limiter: &mut ItemExponentialFailure<&'static str>, key: &'static str, times: usize) -> Vec<u128> {
    (0..times).map(|_| limiter.when(&key, Duration::MAX).as_millis()).collect()
}

#[test]
fn failure_of_a_key_doubles_only_its_own_delay() {
    let mut limiter = ItemExponentialFailure::new(Duration::from_millis(1), Duration::from_secs(1));
    assert_eq!(milliseconds(&mut limiter, "one", 5), [1, 2, 4, 8, 16]);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(milliseconds(&mut limiter, "two", 2), [1, 2]);
    assert_eq!(limiter.num_requeues(&"two"), 2);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
    assert_eq!(milliseconds(&mut limiter, "one", 1), [1]);
    assert_eq!(limiter.num_requeues(&"two"), 2);
}

#[test]
fn delay_grows_to_the_maximum_and_stays_there() {
    let rows = [
        ("the controller's", Duration::from_millis(5), Duration::from_secs(1000)),
        ("a nanosecond and a century", Duration::from_nanos(1), Duration::from_secs(100 * 366 * 86_400)),
        ("the longest duration", Duration::from_nanos(1), Duration::MAX),
        ("a base above the maximum", Duration::from_secs(5), Duration::from_secs(1)),
        ("no delay", Duration::ZERO, Duration::ZERO),
    ];
    for (name, base, max) in rows {
        let mut limiter = ItemExponentialFailure::new(base, max);
        let mut expected = base.min(max);
        for _ in 0..200 {
            assert_eq!(limiter.when(&"x", Duration::MAX), expected, "{name}");
            expected = expected.saturating_mul(2).min(max);
        }
        assert_eq!(limiter.num_requeues(&"x"), 200, "{name}");
    }
}

#[test]
fn the_controllers_backoff_is_five_milliseconds_doubled_to_a_thousand_seconds() {
    let delays = milliseconds(&mut ItemExponentialFailure::default(), "x", 20);
    assert_eq!(delays[..4], [5, 10, 20, 40]);
    assert_eq!(delays[16..], [327_680, 655_360, 1_000_000, 1_000_000]);
}

/// A user who mends a quota waits no longer than an eighth of the time that it was wrong, and about two seconds.
#[test]
fn a_cause_that_others_mend_is_tried_again_within_an_eighth_of_the_time_that_it_has_lasted() {
    for at_most in [2, 4, 30, 600].map(Duration::from_secs) {
        let (mut limiter, mut lasted) = (ItemExponentialFailure::default(), Duration::ZERO);
        for number in 0..100 {
            let delay = limiter.when(&"x", at_most);
            assert!(delay <= lasted / 8 + Duration::from_millis(2_300), "{at_most:?}: {delay:?} after {lasted:?}");
            assert!(delay >= at_most.min(lasted / 8), "{at_most:?}: {delay:?} after {lasted:?}");
            assert!(number < 60 || delay == at_most, "{at_most:?}: {delay:?} after {number} failures");
            lasted += delay;
        }
    }
}

/// Each failure by its maximum delay in milliseconds, and how long the key waits then.
#[test]
fn failures_with_different_maximum_delays_are_counted_apart_and_forgotten_together() {
    let mut limiter = ItemExponentialFailure::default();
    let mut waits = |at_most: u64| limiter.when(&"x", Duration::from_millis(at_most)).as_millis();
    let many: Vec<_> = (0..20).map(|_| waits(2_000)).collect();
    assert_eq!((many[..3].to_vec(), many[19]), (vec![5, 10, 20], 2_000));
    assert_eq!([waits(u64::MAX), waits(30_000), waits(2_000), waits(u64::MAX)], [5, 5, 2_000, 10]);
    let alternating: Vec<_> = (0..40).map(|_| (waits(2_000), waits(30_000))).collect();
    assert_eq!(alternating[39], (2_000, 30_000), "they wait ever longer");
    assert_eq!(limiter.num_requeues(&"x"), 20 + 4 + 80);
    assert_eq!(limiter.failures["x"].len(), 3);
    limiter.forget(&"x");
    assert!(limiter.failures.is_empty());
    assert_eq!(limiter.when(&"x", Duration::from_secs(2)), Duration::from_millis(5));
}
