//! The clock of a cluster.
//!
//! Guarantees: where the API server's time is that of this machine, to two seconds, it is the machine's clock. Otherwise it follows
//! what the API server says, to some milliseconds, also where that time runs faster, as in a cluster of `dev`.

use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::{Clock, SharedClock, Sleep};
use chrono::{DateTime, TimeDelta, Utc};
use http::Request;
use http::header::DATE;
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::SAME_TIME;
use crate::cli::explain::read::{ReadError, words};

/// How long the rate of a clock is measured.
const MEASURED: Duration = Duration::from_secs(1);
/// How often the API server is asked while its clock is measured, which says whole seconds only.
const POLL: Duration = Duration::from_millis(4);
/// How often a clock with another rate is compared with the API server's.
const PERIOD: Duration = Duration::from_secs(2);

/// The clock of the cluster of `client`; `own` is the machine's. Takes a second, or a few where the two differ.
///
/// # Errors
/// When the API server does not answer.
pub async fn clock_of(client: &Client, own: SharedClock) -> Result<SharedClock, ReadError> {
    let is_same = |date: Option<DateTime<Utc>>| date.is_none_or(|date| (date - own.now()).abs() <= SAME_TIME);
    let first = date(client).await?;
    if is_same(first) {
        sleep(MEASURED).await;
        if is_same(date(client).await?) {
            return Ok(own);
        }
    }
    let Some((from, began)) = next_second(client).await? else { return Ok(own) };
    sleep_until(began + MEASURED).await;
    let Some((to, ended)) = next_second(client).await? else { return Ok(own) };
    let rate = (to - from).as_seconds_f64() / (ended - began).as_secs_f64();
    let clock = Arc::new(ClusterClock {
        base: Mutex::new((ended, to)),
        // `dev` runs at a whole number.
        rate: rate.round().max(1.0),
        steps: watch::Sender::new(()),
    });
    tokio::spawn(follow(client.clone(), Arc::downgrade(&clock)));
    Ok(clock)
}

/// What time the API server says it is.
pub(super) async fn date(client: &Client) -> Result<Option<DateTime<Utc>>, ReadError> {
    const VERSION: &str = "/version";
    let failed = |cause: &kube::Error| ReadError::Request { what: VERSION.to_owned(), cause: words(cause) };
    let request = Request::get(VERSION).body(kube::client::Body::empty());
    let request = request.map_err(|error| failed(&kube::Error::HttpError(error)))?;
    let answer = client.send(request).await.map_err(|error| failed(&error))?;
    let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok());
    Ok(date.and_then(|date| DateTime::parse_from_rfc2822(date).ok()).map(|date| date.to_utc()))
}

/// The next second that begins on the API server, and when. `None` if it says no time, or if its time stands still.
async fn next_second(client: &Client) -> Result<Option<(DateTime<Utc>, Instant)>, ReadError> {
    let first = date(client).await?;
    let until = Instant::now() + 2 * MEASURED;
    while Instant::now() < until {
        let sent = Instant::now();
        let now = date(client).await?;
        if now != first {
            return Ok(now.map(|now| (now, sent + sent.elapsed() / 2)));
        }
        sleep(POLL).await;
    }
    Ok(None)
}

/// Corrects a clock for as long as it is used: a cluster that has much to do may be slower than its rate.
async fn follow(client: Client, clock: std::sync::Weak<ClusterClock>) {
    loop {
        sleep(PERIOD).await;
        let found = next_second(&client).await;
        let Some(clock) = clock.upgrade() else { return };
        let Ok(Some((date, at))) = found else { continue };
        let before = clock.now();
        *clock.base.lock() = (at, date);
        if (clock.now() - before).abs() > SAME_TIME {
            clock.steps.send_replace(());
        }
    }
}

/// A clock that shows a time at an instant, and runs at a rate from there.
#[derive(Debug)]
struct ClusterClock {
    base: Mutex<(Instant, DateTime<Utc>)>,
    rate: f64,
    steps: watch::Sender<()>,
}

impl Clock for ClusterClock {
    fn now(&self) -> DateTime<Utc> {
        let (at, base) = *self.base.lock();
        let passed = TimeDelta::from_std(at.elapsed().mul_f64(self.rate)).unwrap_or(TimeDelta::MAX);
        base.checked_add_signed(passed).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    fn steps(&self) -> Option<watch::Receiver<()>> {
        Some(self.steps.subscribe())
    }

    fn sleep_until(&self, deadline: Instant) -> Sleep {
        // A deadline is as far away as this clock's time to it, which passes faster than tokio's.
        let now = Instant::now();
        Box::pin(sleep_until(now + deadline.saturating_duration_since(now).div_f64(self.rate)))
    }
}

#[cfg(test)]
mod tests;
