use std::time::Duration;

use super::*;

#[tokio::test]
async fn it_never_ends_before_its_deadline() {
    let lengths = [0, 1, 999, 1_000_000, 1_500_001];
    for length in lengths.map(Duration::from_nanos) {
        let deadline = Instant::now() + length;
        sleep_until(deadline).await;
        assert!(Instant::now() >= deadline, "{length:?}");
    }
}
