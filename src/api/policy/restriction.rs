//! What a Namespace's annotations leave out of the slots of all CronJobs in it.
//!
//! Guarantees: a slot starts only if both the CronJob's own policies and the restriction allow it. A restriction that cannot be
//! read holds every CronJob. A CronJob's record of decided slots does not depend on it: the end of a restriction is like a resume.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use schedule::{Calendar, Exclusions};

use super::{
    Collected, EXCLUDE, MOST_QUOTED, NOT_BEFORE, Policy, PolicyError, PolicyReading, TIMING, excerpt, is_interval,
    on_one_line, read, time,
};
use crate::api::batch_v1::CronJob;
use crate::api::shortened;

/// The most bytes of a reason that are kept.
pub const LONGEST_REASON: usize = 256;

/// A bound that was written so short a time before it, or after it, is that of a thaw.
const THAW: TimeDelta = TimeDelta::minutes(1);

/// What the annotations of one version of a Namespace say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restriction {
    /// The slots that are left, or why that cannot be read.
    rule: Result<Rule, PolicyError>,
    /// Why, in its author's words, shortened.
    pub reason: Option<Box<str>>,
    /// When the bound was written, as far as the Namespace says it.
    pub written: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    not_before: Option<DateTime<Utc>>,
    exclude: Exclusions,
    /// `exclude` as it was written, shortened.
    excluded: Box<str>,
}

impl Restriction {
    /// Reads a Namespace's annotations, and when its bound was `written`, if it has one. `None` if they leave all slots.
    pub fn read(collected: &Collected<'_>, written: impl FnOnce() -> Option<DateTime<Utc>>) -> Option<Self> {
        let value = |annotation| {
            TIMING
                .iter()
                .zip(&collected.timing)
                .find(|(name, _)| **name == annotation)
                .and_then(|(_, text)| text.as_deref())
        };
        let (not_before, exclude) = (value(NOT_BEFORE), value(EXCLUDE));
        not_before.or(exclude)?;
        let rule = || {
            Ok(Rule {
                not_before: read(NOT_BEFORE, not_before, time)?,
                exclude: read(EXCLUDE, exclude, Exclusions::parse)?.unwrap_or_default(),
                excluded: excerpt(&on_one_line(exclude.unwrap_or_default()), MOST_QUOTED).into(),
            })
        };
        let reason = collected.reason.as_deref().map(|reason| excerpt(&plain(reason), LONGEST_REASON).into());
        Some(Self { rule: rule(), reason, written: not_before.and_then(|_| written()) })
    }

    /// Why it cannot be read; then it holds every CronJob.
    pub fn error(&self) -> Option<&PolicyError> {
        self.rule.as_ref().err()
    }

    /// Whether two restrictions leave the same slots, or cannot be read for the same cause. Their reasons may differ.
    pub fn is_same(one: Option<&Self>, other: Option<&Self>) -> bool {
        one.map(|one| &one.rule) == other.map(|other| &other.rule)
    }

    /// The first time that may be a slot.
    pub fn not_before(&self) -> Option<DateTime<Utc>> {
        self.rule.as_ref().ok()?.not_before
    }

    /// The dates without slots, as they were written, shortened; empty if there are none.
    pub fn excluded(&self) -> &str {
        self.rule.as_ref().map_or("", |rule| &rule.excluded)
    }

    /// The end of a freeze that is not over at `now`.
    pub fn frozen_until(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.not_before().filter(|end| *end > now)
    }

    /// When the freeze began whose end this is, as far as is known. A thaw also writes the bound, and then that is not known. Of two
    /// freezes one after the other, only the second is.
    pub fn frozen_since(&self) -> Option<DateTime<Utc>> {
        let end = self.not_before()?;
        self.written.filter(|written| end - *written > THAW)
    }

    /// The policy of a CronJob with `spec.schedule`, in the place of its own.
    fn of_policy(&self, own: Option<&Policy>, schedule: &str) -> Result<Policy, PolicyError> {
        let Rule { not_before, exclude, excluded } = self.rule.as_ref().map_err(|error| of_namespace(error.clone()))?;
        if !exclude.is_empty() && is_interval(schedule) {
            let with = "@every in spec.schedule, which has no calendar";
            return Err(of_namespace(PolicyError::Combination { annotation: EXCLUDE, value: excluded.clone(), with }));
        }
        let default = Policy::default();
        let own = own.unwrap_or(&default);
        let calendar = Calendar {
            not_before: own.calendar.not_before.max(*not_before),
            exclude: own.calendar.exclude.or(exclude),
            ..own.calendar.clone()
        };
        Ok(Policy { calendar, lines: own.lines.clone(), spread: own.spread, limits: own.limits, ..Policy::default() })
    }
}

/// The words of a text on one line, without control characters; of a long text, its beginning.
fn plain(text: &str) -> String {
    let text = shortened(text, 4 * LONGEST_REASON).replace(char::is_control, " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn of_namespace(error: PolicyError) -> PolicyError {
    PolicyError::Namespace(Box::new(error))
}

impl PolicyReading {
    /// What the annotations of an object with `spec.schedule` say in a Namespace with this restriction.
    pub fn restricted(own: Option<&Arc<Self>>, restriction: &Arc<Restriction>, schedule: &str) -> Self {
        let policy = match own.map(|own| &own.policy) {
            Some(Err(error)) => Err(error.clone()),
            Some(Ok(policy)) => restriction.of_policy(Some(policy), schedule),
            None => restriction.of_policy(None, schedule),
        };
        Self {
            policy,
            unknown: own.map(|own| own.unknown.clone()).unwrap_or_default(),
            timing: own.and_then(|own| own.timing),
            edits: own.map(|own| own.edits).unwrap_or_default(),
            offset: own.map(|own| Self::offset(own)).unwrap_or_default(),
            restricted: Some(Restricted { restriction: Arc::clone(restriction), own: own.cloned() }),
        }
    }
}

/// What was read in a Namespace with a restriction.
#[derive(Debug)]
pub(super) struct Restricted {
    restriction: Arc<Restriction>,
    /// What the CronJob itself says.
    own: Option<Arc<PolicyReading>>,
}

impl CronJob {
    /// What its own annotations say.
    pub(in crate::api) fn own_policies(&self) -> Option<&Arc<PolicyReading>> {
        let reading = self.policies.as_ref()?;
        match &reading.restricted {
            Some(restricted) => restricted.own.as_ref(),
            None => Some(reading),
        }
    }

    /// The same CronJob in a Namespace with this restriction, and no other.
    #[must_use]
    pub fn restricted(&self, restriction: &Arc<Restriction>) -> Self {
        let schedule = self.spec.recurrence.schedule();
        let reading = PolicyReading::restricted(self.own_policies(), restriction, schedule);
        Self { policies: Some(Arc::new(reading)), ..self.clone() }
    }

    /// The same CronJob as it runs in its Namespace, which may have a restriction.
    #[must_use]
    pub fn in_its_namespace(self: Arc<Self>, restriction: Option<&Arc<Restriction>>) -> Arc<Self> {
        match restriction {
            Some(restriction) => Arc::new(self.restricted(restriction)),
            None if self.restriction().is_some() => {
                Arc::new(Self { policies: self.own_policies().cloned(), ..Self::clone(&self) })
            }
            None => self,
        }
    }

    /// The restriction of its Namespace, if it is [restricted](Self::restricted).
    pub fn restriction(&self) -> Option<&Arc<Restriction>> {
        Some(&self.policies.as_ref()?.restricted.as_ref()?.restriction)
    }
}

#[cfg(test)]
mod tests;
