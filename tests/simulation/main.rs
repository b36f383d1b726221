//! The whole controller under faults, in virtual time, from one seed.
//!
//! Two or three replicas (informers, workqueue, workers, leader election, recorder) run against the in-memory API server
//! in one thread on paused time, in every second world with the cluster cut into shards, on batch/v1's CronJobs, on the
//! tutorial's, or on ApiExamples, for whose Pods everything holds that is said of Jobs here. In some of the first every CronJob
//! is handed over to them by annotation (`--manage=annotated`), some are taken back while a Job of theirs is being started, and
//! beside them works what stands for the controller in kube-controller-manager. A seed decides the world: its CronJobs, what people do to them, what becomes of Jobs, and what
//! goes wrong. The same seed gives the same history.
//!
//! What is judged, by its number in a failure:
//! 1. At most one Job for a slot, over all history.
//! 2. Forbid and Replace leave no two Jobs of controllers running.
//! 3. A Job has the name, owner and slot that its CronJob gives it, not early and not after its starting deadline.
//! 4. No Job is started or replaced for a CronJob after its suspension or end was shown to the author.
//! 5. Only own Jobs are deleted, and running ones only for Replace.
//! 6. Statuses are written with a version; lastScheduleTime never goes back, and specs are never touched.
//! 7. No write without the lease of the namespace's shard, nor after its deadline. A create of a Job is judged when it is
//!    sent: in slow admission it may be committed up to its `?timeout=` later.
//! 8. Five minutes after the last fault all is settled: active, history, and every due slot started or explained.
//! 9. Nothing due, nothing written: no write that changes nothing, ever; once all is settled, none without a cause. While
//!    things go wrong a write can be a late or repeated answer to anything, so that no more can be asked of it then.
//! 10. At every step, each CronJob with a next slot has a timer or a place in the queue of every controller of its shard.
//! 11. The end does not depend on what went wrong; see [`calm`] for what that means.
//! 12. Where nothing goes wrong but the admission of Jobs in some namespaces, every slot of another namespace is started
//!     within two seconds, from two minutes after the trouble began on.
//! 13. Once all is settled, no controller keeps anything for a CronJob that is gone.
//!
//! Of 1 and 2 is excused, and counted, a Job whose slot had one before that others removed (a TTL, a user) while another
//! create of it was on its way: then no name keeps the second from being committed.
//!
//! `SIM_SEED` is the first seed, `SIM_RUNS` how many follow, `SIM_THREADS` how many run at a time. A failure prints the
//! seed, shrinks the scenario, and prints its history; with `SIM_STOP=1` it ends the run, and nothing is explained. `SIM_NEW=1`
//! adds slow admission and noisy namespaces to the worlds, `SIM_NEW=0` leaves them out.
#![allow(clippy::unwrap_used, clippy::pedantic, clippy::explicit_auto_deref)]

mod agenda;
mod call;
mod calm;
mod coverage;
mod disguise;
mod faults;
mod feed;
mod in_tree;
mod invariants;
mod job_world;
mod journal;
mod model;
mod network;
mod people;
mod rng;
mod run;
mod scenario;
mod shrink;
mod sim;
mod view;

use std::process::ExitCode;

fn main() -> ExitCode {
    run::main()
}
