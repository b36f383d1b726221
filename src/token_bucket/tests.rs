#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use futures::future::join_all;
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::time::{advance, timeout};

use super::{Duration, Instant, NonZeroU32, Rate, TokenBucket, sleep};

fn rate(per_second: f64, burst: u32) -> Rate {
    Rate { per_second, burst: NonZeroU32::new(burst).unwrap() }
}

#[tokio::test(start_paused = true)]
async fn token_bucket_admits_its_burst_and_then_its_rate() {
    let bucket = TokenBucket::new(rate(2.0, 3));
    for (passes, want) in [(0.0, 3), (0.5, 1), (0.5, 1), (9.0, 3), (0.2, 0)] {
        advance(Duration::from_secs_f64(passes)).await;
        assert_eq!((0..10).filter(|_| bucket.take().is_ok()).count(), want, "after {passes} s more");
    }
    assert_eq!(bucket.take(), Err(Duration::from_millis(300)));
}

#[tokio::test(start_paused = true)]
async fn callers_get_tokens_in_order_of_arrival() {
    let bucket = Arc::new(TokenBucket::new(rate(100.0, 3)));
    let order = Arc::new(Mutex::new(Vec::new()));
    let callers = (0..20).map(|n| {
        let (bucket, order) = (Arc::clone(&bucket), Arc::clone(&order));
        async move {
            bucket.acquire().await;
            order.lock().push(n);
        }
    });
    join_all(callers).await;
    assert_eq!(*order.lock(), (0..20).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn cancelled_caller_takes_no_token() {
    let bucket = Arc::new(TokenBucket::new(rate(1.0, 1)));
    bucket.acquire().await;
    for _ in 0..10 {
        let gone = timeout(Duration::from_millis(10), bucket.acquire()).await;
        assert!(gone.is_err());
    }
    // A hundred milliseconds have passed; the one token is due at one second and is still free.
    assert_eq!(bucket.acquire().await, Duration::from_millis(900));
}

#[tokio::test(start_paused = true)]
async fn an_idle_bucket_fills_to_its_burst_and_no_further() {
    let bucket = TokenBucket::new(rate(10.0, 5));
    advance(Duration::from_secs(3600)).await;
    let started = Instant::now();
    for _ in 0..6 {
        bucket.acquire().await;
    }
    assert_eq!(started.elapsed(), Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn extreme_rates_cause_no_overflow() {
    for per_second in [f64::MIN_POSITIVE, 1e-12, 1e-9, 1e9, 1e12, f64::MAX] {
        for burst in [1, u32::MAX] {
            let bucket = TokenBucket::new(rate(per_second, burst));
            assert_eq!(bucket.acquire().await, Duration::ZERO, "{per_second} {burst}");
            let _ = timeout(Duration::from_secs(1), bucket.acquire()).await;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The bucket's guarantee, for every pair of departures: between them at most `burst + per_second * time` requests left.
    #[test]
    fn rate_limit_is_never_exceeded(
        per_second in 1_u32..400,
        burst in 1_u32..20,
        pauses in prop::collection::vec(0_u64..200, 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let departures = runtime.block_on(async {
            let bucket = Arc::new(TokenBucket::new(rate(f64::from(per_second), burst)));
            let started = Instant::now();
            let mut callers = Vec::new();
            for pause in &pauses {
                sleep(Duration::from_millis(*pause)).await;
                let bucket = Arc::clone(&bucket);
                callers.push(tokio::spawn(async move {
                    bucket.acquire().await;
                    started.elapsed().as_secs_f64()
                }));
            }
            join_all(callers).await.into_iter().map(Result::unwrap).collect::<Vec<_>>()
        });
        prop_assert_eq!(departures.len(), pauses.len(), "every caller gets a token");
        for (i, first) in departures.iter().enumerate() {
            for (j, last) in departures.iter().enumerate().skip(i) {
                prop_assert!(last >= first, "in order");
                let left = f64::from(u32::try_from(j - i + 1).unwrap());
                prop_assert!(left <= f64::from(burst) + f64::from(per_second) * (last - first) + 1e-6, "{departures:?}");
            }
        }
    }
}
