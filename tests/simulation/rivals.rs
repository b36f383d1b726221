//! What is reported about another controller is true: there is one.
//!
//! Guarantee: no process counts more Jobs of another controller than third parties made for slots while it ran. Replicas are
//! not each other's rivals, whatever their clocks say.
//!
//! One case is excused, and counted: a leader that hung until another one took over counts the Jobs of that one before it finds
//! that it leads no longer, and ends.
//!
//! A finished Job that is reported as unexpected was not started by the reporter.

use std::collections::BTreeMap;

use crate::invariants::Invariants;
use crate::model::{Author, Job, Model};
use crate::scenario::Millis;

/// A process: its replica and incarnation.
pub type Who = (usize, u32);

/// What was reported so far.
#[derive(Debug, Default)]
pub struct Rivals {
    /// How many Jobs of another controller each process has counted, and since when it runs.
    counted: BTreeMap<Who, (Millis, u64)>,
}

impl Invariants {
    /// A process has counted this many Jobs of another controller.
    pub fn external_jobs(&mut self, model: &Model, who: Who, found: u64, at: Millis) {
        let (since, known) = self.rivals.counted.entry(who).or_insert((at, 0));
        if found == *known {
            return;
        }
        *known = found;
        let since = *since;
        let is_foreign =
            |job: &&Job| job.author == Author::World && job.is_made_by_controller() && job.created >= since;
        let true_number = model.jobs.values().filter(is_foreign).count() as u64;
        self.coverage.count("judged", "Jobs counted as another controller's");
        let identity = format!("r{}.{}", who.0, who.1);
        let is_of_a_successor = |job: &&Job| {
            let is_others = matches!(job.author, Author::Replica(number, starts) if (number, starts) != who);
            is_others && job.created >= since && !model.holder.is_empty() && model.holder != identity
        };
        let of_successors = model.jobs.values().filter(is_of_a_successor).count() as u64;
        if found > true_number && found <= true_number + of_successors {
            self.coverage.count("excused", "Jobs of its successor counted by a leader that hung");
        } else if found > true_number {
            let text =
                format!("r{}.{} counts {found} Jobs of another controller, which started {true_number}", who.0, who.1);
            self.violated("22", at, text);
        }
    }

    /// A replica reports a Job that it did not create, or forgot.
    pub fn unexpected(&mut self, model: &Model, uid: &str, message: &str, by: Author, at: Millis) {
        let Some(name) = message.rsplit(' ').next() else { return };
        let is_own = |job: &&Job| job.name == name && job.author == by && job.answered;
        if let Some(job) = model.all_jobs_of(uid).find(is_own) {
            self.violated("22", at, format!("{by} reports {} as unexpected, which it started", job.name));
        }
    }
}
