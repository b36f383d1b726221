//! When the watch shows that a Job was started, and that its first Pod is ready.
//!
//! Guarantees: no I/O, no clock. Each is found once. A ready Pod is found only of a Job whose start this process has seen: after
//! a restart nothing tells a first Pod from a restarted one. A Pod that ends before its Job's status counts it is not found.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;

use crate::api::Uid;
use crate::api::batch_v1::Job;

/// The Jobs that were started and of which no Pod was ready yet.
#[derive(Debug, Default)]
pub struct StartDelays {
    await_pods: Mutex<HashSet<Uid>>,
}

/// What a version of a Job shows first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Started {
    /// When its controller started it.
    pub job: Option<DateTime<Utc>>,
    /// When its first Pod was ready: the time at which that was seen.
    pub pod: Option<DateTime<Utc>>,
}

impl StartDelays {
    /// What `job` shows at `now` that the version `before` did not; `None` if it is new.
    pub fn observe(&self, before: Option<&Job>, job: &Job, now: DateTime<Utc>) -> Started {
        let is_first = before.is_none_or(|before| before.start_time.is_none());
        let started = job.started(now).filter(|_| is_first);
        let mut await_pods = self.await_pods.lock();
        if started.is_some() {
            await_pods.insert(job.uid.clone());
        }
        let is_over = job.has_ready_pod || job.finished.is_some();
        let is_awaited = is_over && await_pods.remove(&job.uid);
        Started { job: started, pod: (is_awaited && job.has_ready_pod).then_some(now) }
    }

    /// A Job is gone.
    pub fn forget(&self, job: &Job) {
        self.await_pods.lock().remove(&job.uid);
    }

    /// How many Jobs were started and await a Pod.
    #[cfg(test)]
    fn awaited(&self) -> usize {
        self.await_pods.lock().len()
    }
}

#[cfg(test)]
mod tests;
