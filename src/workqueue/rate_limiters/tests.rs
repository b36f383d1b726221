//! Tables after client-go's `default_rate_limiters_test.go`, and Go's token bucket.

use super::*;

fn milliseconds(
    limiter: &mut dyn RateLimiter<&'static str>,
    key: &'static str,
    now: Instant,
    times: usize,
) -> Vec<u128> {
    (0..times).map(|_| limiter.when(&key, now).as_millis()).collect()
}

#[test]
fn failure_of_a_key_doubles_the_delay_of_that_key_only() {
    let now = Instant::now();
    let mut limiter = ItemExponentialFailure::new(Duration::from_millis(1), Duration::from_secs(1));
    assert_eq!(milliseconds(&mut limiter, "one", now, 5), [1, 2, 4, 8, 16]);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(milliseconds(&mut limiter, "two", now, 2), [1, 2]);
    assert_eq!(limiter.num_requeues(&"two"), 2);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
    assert_eq!(milliseconds(&mut limiter, "one", now, 1), [1]);
    assert_eq!(limiter.num_requeues(&"two"), 2);
}

#[test]
fn delay_grows_to_its_maximum() {
    let now = Instant::now();
    let rows = [
        ("the controller's", Duration::from_millis(5), Duration::from_secs(1000)),
        ("a nanosecond and a century", Duration::from_nanos(1), Duration::from_secs(100 * 366 * 86_400)),
        ("everything", Duration::from_nanos(1), Duration::MAX),
        ("the base above the greatest", Duration::from_secs(5), Duration::from_secs(1)),
        ("no delay at all", Duration::ZERO, Duration::ZERO),
    ];
    for (name, base, max) in rows {
        let mut limiter = ItemExponentialFailure::new(base, max);
        let mut expected = base.min(max);
        for _ in 0..200 {
            assert_eq!(limiter.when(&"x", now), expected, "{name}");
            expected = expected.saturating_mul(2).min(max);
        }
        assert_eq!(limiter.num_requeues(&"x"), 200, "{name}");
    }
}

#[test]
fn the_controllers_backoff_is_five_milliseconds_doubled_to_a_thousand_seconds() {
    let delays = milliseconds(&mut ItemExponentialFailure::default(), "x", Instant::now(), 20);
    assert_eq!(delays[..4], [5, 10, 20, 40]);
    assert_eq!(delays[16..], [327_680, 655_360, 1_000_000, 1_000_000]);
}

#[test]
fn bucket_gives_its_burst_at_once_then_tokens_at_its_rate() {
    let now = Instant::now();
    let mut bucket = Bucket::new(10.0, 3);
    let waits = |bucket: &mut Bucket, now, times: usize| -> Vec<u128> {
        (0..times).map(|_| bucket.reserve(now).as_millis()).collect()
    };
    assert_eq!(waits(&mut bucket, now, 6), [0, 0, 0, 100, 200, 300]);
    // Half a second refills five tokens, three of which were reserved already.
    let later = now + Duration::from_millis(500);
    assert_eq!(waits(&mut bucket, later, 4), [0, 0, 100, 200]);
    // However long it is idle, it holds no more than its burst.
    assert_eq!(waits(&mut bucket, later + Duration::from_secs(3600), 4), [0, 0, 0, 100]);
    // Time that seems to run backwards changes nothing.
    assert_eq!(waits(&mut bucket, now, 1), [200]);
}

#[test]
fn bucket_without_burst_or_rate_returns_never() {
    let now = Instant::now();
    assert_eq!(Bucket::new(10.0, 0).reserve(now), NEVER);
    let mut dry = Bucket::new(0.0, 1);
    assert_eq!((dry.reserve(now), dry.reserve(now)), (Duration::ZERO, NEVER));
    let mut slow = Bucket::new(f64::MIN_POSITIVE, 1);
    assert_eq!((slow.reserve(now), slow.reserve(now)), (Duration::ZERO, NEVER));
}

#[test]
fn the_strictest_of_several_wins_and_all_of_them_count() {
    let now = Instant::now();
    let mut both = MaxOf::new(vec![
        Box::new(ItemExponentialFailure::new(Duration::from_millis(5), Duration::from_secs(3))),
        Box::new(Bucket::new(10.0, 2)),
    ]);
    assert_eq!(milliseconds(&mut both, "one", now, 5), [5, 10, 100, 200, 300]);
    assert_eq!(milliseconds(&mut both, "two", now, 1), [400]);
    assert_eq!((both.num_requeues(&"one"), both.num_requeues(&"two")), (5, 1));
    both.forget(&"one");
    assert_eq!(both.num_requeues(&"one"), 0);
    assert_eq!(MaxOf::<&str>::new(Vec::new()).when(&"x", now), Duration::ZERO);
}

#[test]
fn two_thousand_failures_at_once_come_back_within_seconds_by_key_but_within_minutes_by_bucket() {
    let now = Instant::now();
    let longest = |limiter: &mut dyn RateLimiter<u32>| (0..2000).map(|key| limiter.when(&key, now)).max();
    assert_eq!(longest(&mut ItemExponentialFailure::default()), Some(Duration::from_millis(5)));
    assert_eq!(longest(&mut default_controller_rate_limiter()), Some(Duration::from_secs(190)));
}
