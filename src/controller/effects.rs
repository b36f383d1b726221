//! How an attempt is carried out: by the controller, or by a command or a test that only pretends.
//!
//! Guarantees:
//! - There is one order: the deletions, one after the other until one fails, then the create, then a read of the Job that has
//!   the name if another create took it.
//! - Nothing is sent for a slot after the CronJob was changed, suspended or handed back while an answer was awaited.

use std::future::{Future, ready};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::observation::{CreateReply, DeleteReply};
use super::plan::{Attempt, Attempted, Then, Victim};
use crate::api::batch_v1::{CronJob, Job};
use crate::api::{ApiError, ObjectName};

/// What an attempt does.
pub trait Effects: Send {
    /// Whether the Job of `slot` may still be created, and others deleted for it; `has_deleted` if one was.
    fn is_current(&self, _cron_job: &CronJob, _slot: DateTime<Utc>, _has_deleted: bool) -> bool {
        true
    }
    /// The same right before the create.
    fn may_create(
        &mut self,
        cron_job: &Arc<CronJob>,
        slot: DateTime<Utc>,
        has_deleted: bool,
    ) -> impl Future<Output = Result<bool, ApiError>> + Send {
        ready(Ok(self.is_current(cron_job, slot, has_deleted)))
    }
    /// Deletes a running Job.
    fn delete(&mut self, cron_job: &CronJob, victim: &Victim) -> impl Future<Output = DeleteReply> + Send;
    /// Creates the Job of that name for the slot.
    fn create(
        &mut self,
        cron_job: &Arc<CronJob>,
        name: &ObjectName,
        slot: DateTime<Utc>,
    ) -> impl Future<Output = CreateReply> + Send;
    /// Reads a Job.
    fn get_job(&mut self, name: &ObjectName) -> impl Future<Output = Result<Arc<Job>, ApiError>> + Send;
}

/// Carries out an attempt that was decided on this version of the CronJob, until something fails.
pub async fn act(effects: &mut impl Effects, attempt: &Attempt, cron_job: &Arc<CronJob>) -> Attempted {
    let Attempt { slot, victims, then, .. } = attempt;
    let (mut attempted, mut has_deleted) = (Attempted::default(), false);
    for victim in victims {
        if !effects.is_current(cron_job, *slot, has_deleted) {
            attempted.is_overtaken = true;
            return attempted;
        }
        let reply = effects.delete(cron_job, victim).await;
        let is_refused = reply.as_ref().is_err_and(|error| !error.is_not_found());
        has_deleted |= reply.is_ok();
        attempted.deletions.push(reply);
        if is_refused {
            return attempted;
        }
    }
    let Then::Create { name, .. } = then else { return attempted };
    let may_create = effects.may_create(cron_job, *slot, has_deleted).await;
    if !matches!(may_create, Ok(true)) {
        (attempted.is_overtaken, attempted.failure) = (true, may_create.err());
        return attempted;
    }
    attempted.create = Some(match effects.create(cron_job, name, *slot).await {
        CreateReply::Refused(error) if error.is_already_exists() => CreateReply::Exists(effects.get_job(name).await),
        reply => reply,
    });
    attempted
}
