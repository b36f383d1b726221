use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

/// When a failure comes after the last wait and what the server asks for, in seconds; how long it must wait, in milliseconds, at
/// least and less than.
type Row = (u64, Option<u64>, u64, u64);

fn assert_delays(failures: &[Row]) {
    let all: Vec<_> = failures.iter().map(|failure| (Failure::Other, *failure)).collect();
    assert_mixed_delays(&all);
}

fn assert_mixed_delays(failures: &[(Failure, Row)]) {
    for seed in 0..100 {
        let (mut backoff, mut rng, start) = (Backoff::new(), StdRng::seed_from_u64(seed), Instant::now());
        let mut now = start;
        for &(failure, (after, retry_after, least, less_than)) in failures {
            now += Duration::from_secs(after);
            let delay = backoff.delay(now, failure, retry_after.map(Duration::from_secs), &mut rng);
            now += delay;
            assert!(
                (least..less_than).contains(&u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
                "seed {seed}: {delay:?} is not in {least}..{less_than}"
            );
        }
    }
}

#[test]
fn the_wait_doubles_up_to_its_limit() {
    assert_delays(&[
        (0, None, 800, 1_600),
        (0, None, 1_600, 3_200),
        (0, None, 3_200, 6_400),
        (0, None, 6_400, 12_800),
        (0, None, 12_800, 25_600),
        (0, None, 25_600, 51_200),
        (0, None, 30_000, 60_000),
        (0, None, 30_000, 60_000),
    ]);
}

#[test]
fn a_server_that_is_away_is_asked_again_soon_however_long_it_was() {
    use Failure::{Away, Other};
    let mut failures = vec![(Away, (0, None, 400, 800)); 50];
    failures.extend([(Other, (0, None, 800, 1_600)), (Other, (0, None, 1_600, 3_200)), (Away, (0, None, 400, 800))]);
    failures.extend([(Away, (0, Some(5), 5_000, 5_001)), (Other, (0, None, 3_200, 6_400))]);
    assert_mixed_delays(&failures);
}

#[test]
fn what_may_pass_at_any_moment_is_tried_again_within_eight_seconds() {
    use Failure::{Other, Passing};
    let waits = [(800, 1_600), (1_600, 3_200), (3_200, 6_400), (4_000, 8_000), (4_000, 8_000)];
    let mut failures: Vec<_> =
        waits.iter().map(|(least, less_than)| (Passing, (0, None, *least, *less_than))).collect();
    failures.extend([(Other, (0, None, 4_000, 8_000)), (Passing, (0, None, 4_000, 8_000))]);
    assert_mixed_delays(&failures);
}

#[test]
fn backoff_starts_over_after_two_minutes_without_a_failure() {
    assert_delays(&[
        (0, None, 800, 1_600),
        (0, None, 1_600, 3_200),
        (119, None, 3_200, 6_400),
        (121, None, 800, 1_600),
    ]);
}

#[test]
fn retry_after_makes_the_wait_longer_and_never_shorter_and_has_a_limit() {
    assert_delays(&[
        (0, Some(7), 7_000, 7_001),
        (0, Some(0), 1_600, 3_200),
        (0, Some(60), 10_000, 10_001),
        (0, Some(86_400), 10_000, 12_800),
    ]);
}
