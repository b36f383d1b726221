//! Warnings about a CronJob on which no decision depends.
//!
//! Guarantees: a process records each finding once for each CronJob.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use tracing::warn;

use super::control::{CronJobControl, JobControl};
use super::memory::Known;
use super::{Controller, messages};
use crate::api::batch_v1::CronJob;
use crate::api::{EventType, NameConflict};
use crate::cache::Store;

const AMBIGUOUS_NAME: &str = "A batch/v1 CronJob has the same name, and kube-controller-manager takes the Jobs of both for \
                              that one's: give one of them another name";

impl<C: JobControl + CronJobControl> Controller<C> {
    /// kube-controller-manager's controller finds the Jobs of a CronJob by the CronJob's name, whatever its API group.
    /// It would prune the Jobs of this one. A Warning reports this once for each CronJob.
    pub(super) fn warn_of_name_conflict(&self, cron_job: &CronJob) {
        let is_there = |name_conflicts: &Arc<Store<NameConflict>>| name_conflicts.get(&cron_job.name).is_some();
        if !self.parts.name_conflicts.as_ref().is_some_and(is_there) {
            return;
        }
        let is_news = |known: &mut Known| !std::mem::replace(&mut known.name_conflict_reported, true);
        if self.memories.change(cron_job, is_news) == Some(true) {
            warn!(cronjob = %cron_job.name, "a batch/v1 CronJob has the same name");
            self.record(cron_job, EventType::Warning, "AmbiguousName", AMBIGUOUS_NAME.to_owned());
        }
    }

    /// A Warning names the annotations that no policy has, once for each CronJob and list.
    pub(super) fn warn_of_unknown_policies(&self, cron_job: &CronJob) {
        let Some(policies) = cron_job.policies.as_ref().filter(|policies| !policies.unknown.is_empty()) else { return };
        let list = BuildHasherDefault::<DefaultHasher>::default().hash_one(&policies.unknown);
        let is_news = |known: &mut Known| known.unknown_policies.replace(list) != Some(list);
        if self.memories.change(cron_job, is_news) == Some(true) {
            let text = messages::unknown_policies(&policies.unknown);
            self.record(cron_job, EventType::Warning, "UnknownPolicy", text);
        }
    }
}
