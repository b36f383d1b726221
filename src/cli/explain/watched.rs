//! A CronJob as an informer keeps it, for commands that watch a cluster.
//!
//! Guarantees: it is decoded by the controller's own decoder. Which controller runs it follows from its text and from the leases at
//! the time of the question, and so does what that controller sees.

use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};

use super::InCharge;
use super::in_charge::without_policies;
use super::lease::Leases;
use crate::api::batch_v1::{CronJob, SlotsEdited, slots_edited};
use crate::api::policy::PolicyOptions;
use crate::api::{DecodeError, Interner, Manage, Object, ResourceKind, identity_at};
use crate::cli::backfill::covered;
use crate::cli::migrate::in_tree_wrote;

/// A CronJob.
#[derive(Debug)]
pub struct Watched {
    /// As this controller sees it.
    pub cron_job: Arc<CronJob>,
    /// As the in-tree controller sees it, once that was asked for.
    in_tree: OnceLock<Arc<CronJob>>,
    handed_over: bool,
    /// Whose its status is.
    in_tree_wrote: Option<bool>,
    /// When its schedule, zone or suspension was written last; the page asks for it.
    #[cfg_attr(not(feature = "ui"), allow(dead_code))]
    pub edited: SlotsEdited,
    /// The times of slots that backfills covered; the page asks for them.
    #[cfg_attr(not(feature = "ui"), allow(dead_code))]
    pub backfilled: Box<[(DateTime<Utc>, DateTime<Utc>)]>,
}

impl Watched {
    /// The CronJob with what is known of its controller.
    pub fn new(cron_job: CronJob, handed_over: bool, in_tree_wrote: Option<bool>) -> Self {
        let (cron_job, edited) = (Arc::new(cron_job), SlotsEdited::default());
        Self { cron_job, in_tree: OnceLock::new(), handed_over, in_tree_wrote, edited, backfilled: Box::default() }
    }

    /// The CronJob that was just decoded from `json`.
    pub fn decoded(mut cron_job: CronJob, json: &str) -> Self {
        let handed_over = Manage::Annotated.takes(&mut cron_job);
        let backfilled = covered(json, &cron_job.uid).into();
        Self { edited: slots_edited(json), backfilled, ..Self::new(cron_job, handed_over, in_tree_wrote(json)) }
    }

    /// Gives it the policies that it has in the controller. Only an object that is not shared yet is changed.
    pub fn apply(&mut self, policies: &PolicyOptions) {
        if let Some(cron_job) = Arc::get_mut(&mut self.cron_job) {
            policies.apply(cron_job);
        }
    }

    /// Which controller runs it, and what that controller sees.
    pub fn seen(&self, leases: &Leases) -> (InCharge, Arc<CronJob>) {
        let in_charge = InCharge::of(&self.cron_job, self.handed_over, self.in_tree_wrote, leases);
        let in_tree = || {
            let mut cron_job = CronJob::clone(&self.cron_job);
            without_policies(&mut cron_job);
            Arc::new(cron_job)
        };
        let is_in_tree = in_charge == InCharge::InTree && self.cron_job.policies.is_some();
        let cron_job = if is_in_tree { self.in_tree.get_or_init(in_tree) } else { &self.cron_job };
        (in_charge, Arc::clone(cron_job))
    }
}

impl Object for Watched {
    const RESOURCE: ResourceKind = CronJob::RESOURCE;

    identity_at!(self.cron_job);

    fn decode(json: &str, interner: &Interner) -> Result<Self, DecodeError> {
        Ok(Self::decoded(CronJob::decode(json, interner)?, json))
    }

    fn decode_for_cache(json: &str, interner: &Interner) -> Result<Self, DecodeError> {
        Ok(Self::decoded(CronJob::decode_for_cache(json, interner)?, json))
    }

    fn succeed(&mut self, previous: &Self) {
        if let Some(cron_job) = Arc::get_mut(&mut self.cron_job) {
            cron_job.succeed(&previous.cron_job);
        }
    }
}

#[cfg(test)]
mod tests;
