//! The children of a CronJob beside its `active` references.
//!
//! Guarantees: the end of each Job that was active is reported once; a reference to a Job that is gone is dropped. A status may hold
//! any number of references, and any number of Jobs may name the CronJob as their controller: one sync looks for few, and reports few.

use std::sync::Arc;

use super::{Decided, Sync, ends, failed, needs};
use crate::api::batch_v1::{FinishedCondition, Job};
use crate::controller::history::history_victims;
use crate::controller::observation::LiveJob;
use crate::controller::plan::{Lookup, Outcome};

/// How many Jobs one sync looks for of which only a reference is known. Any number may be written into a status.
pub(super) const MOST_LOOKED_UP: usize = 64;

/// How many Jobs one sync reports as unexpected: as many Events as are written of one object at once.
pub(super) const MOST_UNEXPECTED: usize = 25;

impl Sync<'_> {
    /// Leaves the Jobs that are to be pruned out of `active`: for what follows it is as if they were gone. Their success is
    /// recorded at once, since they go even if the sync fails later.
    pub(super) fn leave_out_pruned_jobs(&mut self) {
        self.beyond_history = history_victims(self.observation, self.draft.base, false);
        for job in &self.beyond_history {
            if job.succeeded {
                self.draft.succeeded_at(job.completion_time);
            }
            if self.draft.leave_out(&job.uid) {
                self.left_out.insert(job.uid.clone());
            }
        }
    }

    /// Records the end of Jobs that were deleted before a sync saw them finished.
    pub(super) fn take_note_of_vanished_jobs(&mut self) {
        for job in &self.observation.recalled.vanished {
            if self.draft.status.in_active_list(&job.uid)
                && let Some(condition) = job.finished
            {
                self.saw_completed(job, condition);
            }
            if job.succeeded {
                self.draft.succeeded_at(job.completion_time);
            }
        }
    }

    pub(super) fn saw_completed(&mut self, job: &Arc<Job>, condition: FinishedCondition) {
        self.draft.ended(job);
        let text = format!("Saw completed {}: {}, condition: {}", self.noun(), job.name.name, condition.as_str());
        self.draft.normal("SawCompletedJob", text);
    }

    /// Compares the children with `active`. A failed read ends the walk; the decisions made so far are kept.
    pub(super) fn walk_children(&mut self) -> Decided<()> {
        let mut unexpected = 0;
        for job in self.observation.children() {
            let found = self.draft.status.in_active_list(&job.uid);
            match job.finished {
                None if !found && self.draft.base.controller_kind.every_child_is_active => self.draft.join(job),
                // kube-controller-manager's controller reports it. One of a backfill is never active.
                None if self.is_taken_back() || job.of_backfill => {}
                None if !found => match &self.observation.live.cron_job {
                    None => return needs(vec![Lookup::CronJob]),
                    Some(Err(error)) => return failed(error.clone()),
                    // An earlier sync removed it.
                    Some(Ok(live)) if live.status.in_active_list(&job.uid) => {}
                    Some(Ok(_)) if unexpected == MOST_UNEXPECTED => {}
                    Some(Ok(_)) => {
                        unexpected += 1;
                        let text = format!("Saw a job that the controller did not create or forgot: {}", job.name.name);
                        self.draft.warning("UnexpectedJob", text);
                    }
                },
                None => {}
                Some(condition) => {
                    if found {
                        self.saw_completed(job, condition);
                    }
                    if job.succeeded {
                        self.draft.succeeded_at(job.completion_time);
                    }
                }
            }
        }
        Ok(())
    }

    /// Drops references to Jobs that the API server no longer has: of many, those of the first [`MOST_LOOKED_UP`]. If most of these
    /// are gone, ends the sync: one that follows at once looks for the next. References to Jobs that are gone must not hold a slot.
    pub(super) fn drop_missing_jobs(&mut self) -> Decided<()> {
        let (active, children) = (self.draft.status.active.iter(), self.blockers());
        let mut unknown: Vec<_> = active
            .filter(|reference| children.child(&reference.uid).is_none())
            .map(|reference| (reference.uid.clone(), self.name_of(&reference.name)))
            .collect();
        let (more, before) = (unknown.len() > MOST_LOOKED_UP, self.draft.status.active.len());
        unknown.truncate(MOST_LOOKED_UP);
        self.ask_for_jobs(unknown.iter().map(|(_, name)| name))?;
        for (uid, name) in unknown {
            match self.observation.live_job_of(&name, &uid) {
                Ok(LiveJob::Found(_) | LiveJob::Unreadable) => {}
                Err(error) => return failed(error.clone()),
                // It may have been deleted in the foreground, to be replaced or as stuck.
                Ok(LiveJob::Gone) if self.limits.deletes_in_foreground() => self.draft.remove_active(&uid),
                // The Job is gone, or another Job has its name; both are handled alike.
                Ok(LiveJob::Gone) => {
                    self.draft.normal("MissingJob", format!("Active {} went missing: {}", self.noun(), name.name));
                    self.draft.remove_active(&uid);
                }
            }
        }
        // Otherwise those that are found would be looked for again and again.
        let most_are_gone = 2 * (before - self.draft.status.active.len()) >= MOST_LOOKED_UP;
        if more && most_are_gone { ends(Outcome::Again) } else { Ok(()) }
    }
}
