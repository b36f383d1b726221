//! Tables after client-go's `default_rate_limiters_test.go`.

use super::*;

fn milliseconds(limiter: &mut ItemExponentialFailure<&'static str>, key: &'static str, times: usize) -> Vec<u128> {
    (0..times).map(|_| limiter.when(&key).as_millis()).collect()
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
            assert_eq!(limiter.when(&"x"), expected, "{name}");
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
