#![allow(clippy::unwrap_used)]

use std::convert::Infallible;

use futures::stream;
use tokio::time::advance;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn log_limit_lets_one_line_a_second_through_and_counts_the_others() {
    let limit = LogLimit::default();
    let admit = || limit.admit(Instant::now());
    assert_eq!([admit(), admit(), admit()], [Some(0), None, None]);
    advance(SECOND).await;
    assert_eq!([admit(), admit()], [Some(2), None]);
    advance(SECOND).await;
    assert_eq!(admit(), Some(1));
}

fn chunks(count: usize, size: usize) -> Body {
    Body::from_stream(stream::iter((0..count).map(move |_| Ok::<_, Infallible>(vec![b'x'; size]))))
}

#[tokio::test(start_paused = true)]
async fn bodies_together_hold_no_more_than_the_budget() {
    let budget = BodyBudget::new(100);
    let read = async |body| budget.read(body, 60, SECOND).await;
    let first = read(chunks(6, 10)).await.unwrap();
    assert_eq!(first.bytes.len(), 60);
    assert!(matches!(read(chunks(5, 10)).await, Err(ReadError::Busy)));
    let second = read(chunks(4, 10)).await.unwrap();
    assert!(matches!(read(chunks(1, 1)).await, Err(ReadError::Busy)));
    drop(first);
    assert!(read(chunks(6, 10)).await.is_ok(), "what was refused holds nothing");
    assert!(matches!(read(chunks(7, 10)).await, Err(ReadError::TooLarge)));
    drop(second);
    assert!(matches!(
        read(Body::from_stream(stream::pending::<Result<Bytes, Infallible>>())).await,
        Err(ReadError::TooSlow)
    ));
    assert!(read(Body::empty()).await.is_ok());
    assert_eq!(budget.0.available_permits(), 100);
}

#[tokio::test(start_paused = true)]
async fn body_that_never_ends_is_refused_after_four_times_its_limit() {
    let (read, counted) = (Arc::new(Mutex::new(0)), BodyBudget::new(1 << 20));
    let chunks = Arc::clone(&read);
    let endless = stream::repeat_with(move || {
        *chunks.lock() += 1;
        Ok::<_, Infallible>(vec![0; 10])
    });
    let refused = counted.read(Body::from_stream(endless), 100, SECOND).await;
    assert!(matches!(refused, Err(ReadError::TooLarge)));
    assert!(*read.lock() <= 60, "{} chunks of 10 bytes were read", read.lock());
}
