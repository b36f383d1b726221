//! Whether what the informers show is what the API server has.
//!
//! Guarantees: an API server that does not answer, or refuses, is noticed within four seconds, and so is a watch that breaks and does not
//! come back. From then on nothing is computed that depends on the time, until CronJobs and Jobs are known to be complete again. That
//! a run is late is said only of what is known to be complete ([`Watches`]): a watch may be silent while the API server answers. The
//! only requests beside those of the informers are for the server's version, once a second, and what completes a silent watch.

use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::SharedClock;
use chrono::{DateTime, TimeDelta, Utc};
use futures::future::{BoxFuture, FutureExt as _, join};
use kube::Client;
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::source::Source;
use crate::cache::{Cause, ReflectorError};
use crate::cli::explain::read::{get, words};

/// How often the API server is asked.
const PERIOD: Duration = Duration::from_secs(1);
/// How long it has to answer, and the informers to show everything after a break.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long something may be in doubt, in which a watch that is not silent says more.
const DOUBT: TimeDelta = TimeDelta::seconds(2);
/// Servers send a bookmark every minute, with a quarter of it as jitter. Without one, the watch is asked whether it shows everything.
const LATE: Duration = Duration::from_secs(80);

/// Since when what is shown is old.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outage {
    /// When it was last known to be what the API server has.
    pub since: DateTime<Utc>,
    /// Why, in a sentence.
    pub why: String,
}

/// Until when the watches of CronJobs and Jobs have told every change, and since when something is in doubt without it.
#[derive(Debug, Default)]
pub struct Watches {
    until: Option<DateTime<Utc>>,
    doubt: Option<DateTime<Utc>>,
}

impl Source {
    /// Whether every change before that time is known. Otherwise it is asked for.
    pub fn knows(&self, at: DateTime<Utc>) -> bool {
        let mut watches = self.watches.write();
        let knows = watches.until.is_some_and(|until| until >= at);
        if !knows {
            watches.doubt.get_or_insert(at);
        }
        knows
    }

    fn heard(&self, at: DateTime<Utc>) {
        let mut watches = self.watches.write();
        watches.until = watches.until.max(Some(at));
        if watches.doubt.is_some_and(|doubt| doubt <= at) {
            watches.doubt = None;
            self.changes.notify.notify_one();
        }
    }

    /// Whether something has been in doubt for so long that the watches will not end it by themselves.
    fn is_in_doubt(&self, now: DateTime<Utc>) -> bool {
        self.watches.read().doubt.is_some_and(|since| now - since >= DOUBT)
    }

    /// The time as of which everything is shown: now, or since when it is old.
    pub fn as_of(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        self.outage().map_or(now, |outage| outage.since.min(now))
    }

    /// Asks the API server again and again, and notes an outage.
    pub(super) async fn watch_connection(
        self: &Arc<Self>,
        client: &Client,
        clock: &SharedClock,
        cancel: &CancellationToken,
    ) {
        let mut confirmed = clock.now();
        let mut catching_up: Option<(DateTime<Utc>, BoxFuture<'_, ()>)> = None;
        let mut before = (Instant::now(), clock.now());
        while !cancel.is_cancelled() {
            let (asked, was_broken) = (clock.now(), self.take_broken());
            // A watch tells changes in their order.
            if self.silence() < before.0.elapsed() && self.has_synced() {
                self.heard(before.1);
            }
            before = (Instant::now(), asked);
            let failure = self.fault(client).await;
            if failure.is_none()
                && (was_broken || self.outage().is_some() || self.silence() > LATE || self.is_in_doubt(asked))
                && self.has_synced()
            {
                // A watch that was cut off shows the past until it is told what it missed.
                let complete = join(self.cron_jobs.catch_up(), self.jobs.catch_up());
                catching_up.get_or_insert_with(|| (asked, complete.map(|_| ()).boxed()));
            }
            let is_behind = match &mut catching_up {
                Some((_, complete)) if failure.is_none() => timeout(PATIENCE, complete).await.is_err(),
                _ => false,
            };
            let why = failure.or_else(|| {
                is_behind.then(|| "A watch has broken off, and what it missed is not read yet.".to_owned())
            });
            if why.is_none() {
                if let Some((since, _)) = catching_up.take() {
                    self.heard(since);
                }
                confirmed = asked;
            }
            let silent = TimeDelta::from_std(self.silence()).unwrap_or_default();
            let since =
                if is_behind && silent > TimeDelta::seconds(5) { confirmed.min(asked - silent) } else { confirmed };
            self.set_outage(why.map(|why| Outage { since, why }));
            tokio::select! {
                () = cancel.cancelled() => {}
                () = sleep(PERIOD) => {}
                () = self.broken() => {}
            }
        }
    }

    /// What keeps the API server from being read.
    async fn fault(&self, client: &Client) -> Option<String> {
        match timeout(PATIENCE, get(client, "/version")).await {
            Err(_) => Some(format!("The API server does not answer within {} s.", PATIENCE.as_secs())),
            Ok(Err(kube::Error::Api(status))) if status.code == 401 => Some(unauthorized(&status.message)),
            // It answers, and the version is not everybody's to read.
            Ok(Err(kube::Error::Api(status))) if status.code < 500 => self.unreadable(),
            Ok(Err(error)) => {
                Some(format!("The API server cannot be reached: {}.", words(&error).trim_end_matches('.')))
            }
            Ok(Ok(_)) => self.unreadable(),
        }
    }
}

fn unauthorized(message: &str) -> String {
    format!(
        "The API server does not know these credentials (401): {message}. Log in again, and start this program anew."
    )
}

/// Why a kind cannot be listed, in a sentence.
pub(super) fn sentence(plural: &str, error: &ReflectorError) -> String {
    match &error.cause {
        Cause::Status(status) if status.code == 401 => unauthorized(&status.message),
        Cause::Status(status) if status.code == 403 => {
            format!("The {plural} may not be read with these rights (403): {}.", status.message.trim_end_matches('.'))
        }
        Cause::Status(status) => format!("The {plural} cannot be read: the API server answered {status}."),
        Cause::Send(_) | Cause::Timeout(_) => {
            format!("The {plural} cannot be read, because the API server cannot be reached: {}.", error.cause)
        }
        cause => format!("The {plural} cannot be read: {cause}."),
    }
}

#[cfg(test)]
mod tests;
