#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use futures::FutureExt as _;
use tokio::time::advance;

use super::*;

fn access() -> (Access, watch::Receiver<String>) {
    let access = Access::new("127.0.0.1:9000".parse().unwrap());
    let links = access.links();
    (access, links)
}

fn token(links: &mut watch::Receiver<String>) -> String {
    links.borrow_and_update().strip_prefix("http://127.0.0.1:9000/#token=").unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn token_is_exchanged_once() {
    let (access, mut links) = access();
    let first = token(&mut links);
    let session = access.exchange(&first).unwrap();
    assert!(access.is_session(&session) && session != first);
    assert_eq!(access.exchange(&first), None, "again");
    assert!(access.is_session(&session), "the session stays");
    // The second attempt has opened another link.
    let second = token(&mut links);
    assert_ne!(second, first);
    let other = access.exchange(&second).unwrap();
    assert!(access.is_session(&session) && access.is_session(&other) && session != other);
}

#[tokio::test(start_paused = true)]
async fn token_is_exchanged_for_five_minutes() {
    let (access, mut links) = access();
    let first = token(&mut links);
    advance(LIFETIME).await;
    assert_eq!(access.exchange(&first), None);
    let second = token(&mut links);
    advance(LIFETIME.saturating_sub(Duration::from_millis(1))).await;
    assert!(access.exchange(&second).is_some());
}

#[tokio::test(start_paused = true)]
async fn stranger_opens_a_link_each_five_minutes_and_closes_none() {
    let (access, mut links) = access();
    let mut token = token(&mut links);
    for minute in 0..60 {
        for sent in ["", "x", &token[1..], &format!("{token}0"), &token.replace(|c: char| c.is_ascii_digit(), "g")] {
            assert_eq!(access.exchange(sent), None, "{sent}");
        }
        assert_eq!(links.has_changed().unwrap(), minute > 0 && minute % 5 == 0, "minute {minute}");
        token = self::token(&mut links);
        advance(Duration::from_secs(60)).await;
    }
    assert!(access.exchange(&token).is_none(), "the 60th minute is the end of the last link");
    assert!(access.exchange(&self::token(&mut links)).is_some());
}

#[tokio::test(start_paused = true)]
async fn sessions_are_bounded_and_the_one_that_is_used_stays() {
    let (access, mut links) = access();
    let mut open = || {
        let session = access.exchange(&token(&mut links));
        access.exchange("");
        session.unwrap()
    };
    let (used, unused) = (open(), open());
    let mut all = HashSet::from([used.clone(), unused.clone()]);
    for number in 2..=MOST_SESSIONS {
        assert!(access.is_session(&used) && all.insert(open()), "{number}");
    }
    assert!(access.is_session(&used) && !access.is_session(&unused));
    assert_eq!(all.iter().filter(|session| access.is_session(session)).count(), MOST_SESSIONS);
    assert!(!access.is_session("") && !access.is_session(&used[1..]));
}

#[tokio::test(start_paused = true)]
async fn link_is_closed_by_its_use_or_by_time() {
    let (access, mut links) = access();
    assert!(access.closed().now_or_never().is_none());
    access.exchange(&token(&mut links));
    assert!(access.closed().now_or_never().is_some(), "used");
    access.exchange("");
    let (start, ()) = (Instant::now(), access.closed().await);
    assert_eq!(start.elapsed(), LIFETIME);
}
