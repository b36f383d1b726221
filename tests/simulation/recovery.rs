//! How soon after a refusal, or a request without an answer, a slot starts, beside what docs/reliability.md promises.
//!
//! Guarantee: the time between the last failure of a request about a CronJob and the next attempt to start its due slot is at most
//! what is promised for that failure, whatever failed before, how often, and for which reasons. After a refusal of the object
//! itself (409 of a status, 404, 422) this doubles with each of its kind, and after one for a reason of the namespace it grows by an
//! eighth, from two seconds on. Two seconds more are allowed, and half a minute where reads or
//! the lease are refused, too: what an informer waits for then, and with it a takeover, counts.
//!
//! Not judged: while faults other than these are about, where a policy may hold the slot, each `@every`, whose slots of one minute share
//! a name, where another Job has its name, and where
//! the schedule was changed since the slot.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use crate::call::Call;
use crate::faults::FaultKind as F;
use crate::freezes::FREEZING;
use crate::invariants::{Invariants, Sent};
use crate::model::{Model, slot_of};
use crate::scenario::{Millis, SECOND, Scenario};
use crate::sim::LEASE;
use crate::waiting::is_name_used;

/// How long after another fault its consequences last: a request without an answer, a lease that runs out, a takeover.
const AFTERMATH: Millis = 60 * SECOND;

/// A connection that is silent is found after three minutes.
const SILENCE: Millis = 200 * SECOND;

/// Stands in the place of a status code where no answer came.
pub const UNANSWERED: u16 = 599;

/// How long after its `?timeout=` a client gives a request up.
pub const GIVEN_UP_WITHIN: Millis = 5 * SECOND;

/// The wait after the first refusal of an object, and the longest one.
const OF_OBJECT: (TimeDelta, TimeDelta) = (TimeDelta::milliseconds(5), TimeDelta::seconds(1000));

/// After refusals for a reason of the namespace: from when on the wait grows by an eighth, and the longest one.
const OF_NAMESPACE: (TimeDelta, TimeDelta) = (TimeDelta::seconds(2), TimeDelta::seconds(30));

/// How much longer than promised an attempt may take.
const SLACK: TimeDelta = TimeDelta::seconds(2);

/// How much longer, where what an informer or a candidate asks may be refused, too.
const ALLOWANCE: TimeDelta = TimeDelta::seconds(30);

/// What was refused.
#[derive(Debug, Default)]
pub struct Recovery {
    /// When a request about each CronJob was last refused, by its place in the scenario, and the wait that is promised then.
    refused: BTreeMap<usize, (Millis, TimeDelta)>,
    /// How long it may take after the next refusal for a reason of the namespace.
    next_of_namespace: BTreeMap<usize, TimeDelta>,
    /// How long it may take after the next refusal of the object itself.
    next_of_object: BTreeMap<usize, TimeDelta>,
}

/// Whether what was refused is a quota's, a denial or a missing right; or a conflict of the quota.
fn is_of_namespace(call: &Call, code: u16) -> bool {
    code == 403 || code == 409 && call.is_create_of_job()
}

impl Recovery {
    /// The server refuses a request.
    pub fn refused(&mut self, scenario: &Scenario, call: &Call, code: u16, is_webhook_away: bool, at: Millis) {
        let is_of = |(_, cron_job): &(usize, &crate::scenario::CronJob)| {
            cron_job.namespace == call.namespace && call.concerns(&cron_job.name)
        };
        for (place, _) in scenario.cron_jobs.iter().enumerate().filter(is_of) {
            let longest = match code {
                500.. if is_webhook_away => TimeDelta::seconds(4),
                429 | 500.. => TimeDelta::seconds(2),
                _ if is_of_namespace(call, code) => {
                    let next = self.next_of_namespace.entry(place).or_insert(OF_OBJECT.0);
                    let longer = if *next < OF_NAMESPACE.0 { *next * 2 } else { *next + *next / 8 };
                    std::mem::replace(next, longer.min(OF_NAMESPACE.1))
                }
                _ => {
                    let next = self.next_of_object.entry(place).or_insert(OF_OBJECT.0);
                    std::mem::replace(next, (*next * 2).min(OF_OBJECT.1))
                }
            };
            self.refused.insert(place, (at, longest));
        }
    }
}

impl Recovery {
    /// Whether, at that time, the wait after the last refusal of a request about the CronJob at `place` may last.
    pub fn waits(&self, place: usize, at: Millis) -> bool {
        let waits = |(refused, longest): &(Millis, TimeDelta)| {
            i64::try_from(at.saturating_sub(*refused)).unwrap() <= (*longest + ALLOWANCE).num_milliseconds()
        };
        self.refused.get(&place).is_some_and(waits)
    }
}

impl F {
    /// Whether it only refuses requests.
    pub fn is_refusal(self) -> bool {
        matches!(
            self,
            Self::Conflict
                | Self::TooMany
                | Self::TooManyRetryAfter
                | Self::Internal
                | Self::Unavailable
                | Self::Forbidden
                | Self::Invalid
                | Self::AdmissionDenies
                | Self::StatusRefused
                | Self::CreateRefused
                | Self::DeleteRefused
                | Self::ReadRefused
        )
    }
}

impl F {
    /// Whether requests have no answer.
    fn is_unanswered(self) -> bool {
        matches!(
            self,
            Self::DropRequest | Self::DropReply | Self::Timeout | Self::TimeoutCommitted | Self::ConnectionError
        )
    }
}

impl Scenario {
    /// Whether reads, or writes of the lease, are refused at that time or were shortly before.
    fn refuses_reads(&self, at: Millis) -> bool {
        let refuses = |kind: F| {
            let is_of_one_verb =
                matches!(kind, F::StatusRefused | F::CreateRefused | F::DeleteRefused | F::AdmissionDenies);
            (kind.is_refusal() || kind.is_unanswered()) && !is_of_one_verb || kind == F::LeaseRefused
        };
        self.faults.iter().any(|f| refuses(f.kind) && f.at <= at && at < f.until + AFTERMATH)
    }

    /// Whether another fault than a refusal or a lost answer may matter at that time.
    pub fn is_disturbed(&self, at: Millis) -> bool {
        let lasts = |kind| if matches!(kind, F::WatchSilent) { SILENCE } else { AFTERMATH };
        let disturbs = |kind: F| !kind.is_refusal() && !kind.is_unanswered();
        let stands_still = self.standstill.is_some_and(|still| still.at <= at && at < still.at + AFTERMATH);
        stands_still || self.faults.iter().any(|f| disturbs(f.kind) && f.at <= at && at < f.until + lasts(f.kind))
    }
}

impl Invariants {
    /// A replica sends the create of a Job of that CronJob.
    pub fn tries(&mut self, model: &Model, scenario: &Scenario, call: &Call, uid: &str, sent: &Sent) {
        let (Some(cron), Some(slot)) = (model.crons.get(uid), slot_of(&call.json())) else { return };
        let version = cron.newest();
        if cron.namespace == FREEZING
            || version.is_every()
            || is_name_used(model, cron, slot)
            || version.has_limits()
            || scenario.clocks_differ().is_none()
            || scenario.is_disturbed(sent.at)
        {
            return;
        }
        let place = scenario.cron_jobs.iter().position(|known| known.name == cron.name);
        let Some((refused, longest)) = place.and_then(|place| self.recovery.refused.get(&place)).copied() else {
            return;
        };
        let led = model.held_since.unwrap_or_default() + (LEASE.0 + 40) * SECOND;
        // By the author's clock.
        let ago = |then: Millis| TimeDelta::milliseconds(i64::try_from(sent.at.saturating_sub(then)).unwrap());
        let due: DateTime<Utc> = version.due(slot);
        // A slot of a new schedule that was due before the change waits for the next timer, as upstream.
        if ago(cron.scheduled_since()) < sent.clock - due {
            return;
        }
        // In the calm, clocks were set right.
        let is_set_right = sent.at >= scenario.active && scenario.skews.iter().any(|skew| *skew != 0);
        let set_right = if is_set_right { scenario.active } else { 0 };
        let since = [refused, cron.stirred, cron.edited(), led, set_right].into_iter().max().unwrap_or_default();
        let waited = (sent.clock - due).min(ago(since));
        self.coverage.count("measured", "attempt after a refusal");
        self.coverage.max("greatest", "wait after a refusal, s", u64::try_from(waited.num_seconds()).unwrap_or(0));
        let allowed = longest + if scenario.refuses_reads(sent.at) { ALLOWANCE } else { SLACK };
        let over = (waited - longest).num_seconds();
        self.coverage.max(
            "greatest",
            "wait after a refusal beyond what is promised, s",
            u64::try_from(over).unwrap_or(0),
        );
        if waited > allowed {
            let (name, waited, allowed) = (&cron.name, waited.num_seconds(), allowed.num_seconds());
            let text = format!(
                "{} tries {slot} of {name} {waited} s after a refusal, and not within {allowed} s",
                sent.author
            );
            self.violated("26", sent.at, text);
        }
    }
}
