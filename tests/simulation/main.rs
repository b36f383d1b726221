//! The whole controller under faults, in virtual time, from one seed.
//!
//! Two or three replicas (informers, workqueue, workers, leader election, recorder) run against the in-memory API
//! server in one thread on paused time. A world has
//! batch/v1's CronJobs, the tutorial's, or ApiExamples; for the latter, every rule about Jobs applies to their Pods. In
//! some batch/v1 worlds every CronJob is handed over by annotation (`--manage=annotated`). Some are released while one
//! of their Jobs is being started, and a model of the controller in kube-controller-manager runs beside the replicas. A
//! seed determines the world: its CronJobs, the users' edits, the course of Jobs, and the faults. The same seed gives
//! the same history, which is checked of one seed in ten. In some worlds the CronJobs have policies, and users edit these. In few,
//! etcd is restored from a backup.
//!
//! The invariants, by their number in a failure:
//! 1. At most one Job for a slot, over all history.
//! 2. Forbid and Replace leave no two Jobs of controllers running.
//! 3. A Job has the name, owner, template and slot that its CronJob gives it, not before it is due and not after its starting
//!    deadline. No slot is excluded or out of bounds.
//! 4. No Job is started or replaced for a CronJob after its suspension or deletion was shown to the author.
//! 5. A controller deletes only its own Jobs, and running ones only for Replace.
//! 6. Statuses are written with a version; lastScheduleTime never decreases. Specs are never changed, and of the
//!    annotations only the record of decided slots.
//! 7. No write without the lease, nor after its deadline. A create of a Job is checked when it
//!    is sent: in slow admission it may be committed up to its `?timeout=` and two seconds in a socket later, and while another holds the
//!    lease only as long as its sender's lease has announced.
//! 8. Five minutes after the last fault the final state is reached: active, history, and every due slot started or
//!    explained.
//! 9. No write without effect, ever; and in the final state none without a cause. During faults a write can be a late
//!    or repeated answer to anything, so its cause is not checked then.
//! 10. At every step, each CronJob with a next slot has a timer or a place in the queue of every controller.
//! 11. The final state does not depend on the faults; see [`calm`] for the definition.
//! 12. Where the only faults concern the admission of Jobs in some namespaces, every slot of another namespace starts
//!     within two seconds, beginning two minutes after the first fault.
//! 13. In the final state, no controller keeps state for a deleted CronJob.
//! 14. After a change of its timing policies was shown to the author, no slot of a CronJob starts that was due before
//!     the change; with `after-change: wait`, after any change of its schedule and after a resume. Worlds whose clocks
//!     differ by a minute are left out: there a record of decided slots may count as absent.
//! 15. No Job is created for a slot that the record of decided slots has decided, as the author knew it. A new leader
//!     knows what there was when it got its lease.
//! 16. With `max-concurrent`, a replica creates no Job beside as many unfinished ones.
//! 17. With `replace-waits`, no Job is created before the earlier ones are gone.
//! 18. With `pause-after-failures`, no Job is created after as many failures without a success.
//! 19. Slots start in order, also over changes of leader: none that is not after lastScheduleTime, as the author knew it.
//!     With `backlog`, none starts before an older one that waits; with `backlog: 0`, none starts late.
//! 20. A Job is deleted by its UID, and in the foreground once. No stuck one is deleted beside three that linger.
//! 21. In the final state, a slot that no policy holds any more starts within a few seconds.
//! 22. What is reported about another controller is true: see [`rivals`].
//! 23. In the calm, each slot that nothing holds starts within a few seconds, and before its deadline: see [`punctual`].
//! 24. After an outage of the server, each due slot that nothing holds starts soon: see [`outage`].
//! 25. With `backlog: 0`, a slot is passed over for a run that lasted, and not after a deletion for it: see [`passing`].
//! 26. After a refusal, a due slot is tried again within what is promised: see [`recovery`].
//! 27. A backfill starts only past slots that did not run, each once, and as many at a time as it may: see [`backfilled`].
//! 28. What `explain --since` says of slots that did not run is true: see [`told`].
//! 29. After etcd was restored from a backup, at most the newest slot starts again, and none with `not-before`: see [`restore`].
//! 30. No slot starts that the Namespace leaves out, as the author knew it: none in a freeze, and none after a thaw that is older
//!     than it: see [`freezes`].
//!
//! One exception to 1, 2 and 16 to 19 is allowed, and counted: a second Job of a slot whose first Job a third party removed (a
//! TTL, a user) while another create of it was on its way. Then no name conflict prevents the second one.
//!
//! `SIM_SEED` is the first seed, `SIM_RUNS` the number of seeds, `SIM_THREADS` the number of parallel runs. A failure
//! prints the seed, shrinks the scenario, and prints its history; with `SIM_STOP=1` it ends the run without an
//! explanation. `SIM_NEW=1` adds slow admission and noisy namespaces to the worlds, `SIM_NEW=0` leaves them out;
//! `SIM_TAKEOVER=1` gives each world a takeover; [`faults::is_everywhere`] has more of these.
#![allow(clippy::unwrap_used, clippy::pedantic, clippy::explicit_auto_deref)]

mod agenda;
mod backfill;
mod backfilled;
mod call;
mod calm;
mod coverage;
mod disguise;
mod faults;
mod feed;
mod freezes;
mod in_tree;
mod invariants;
mod job_world;
mod journal;
mod limits;
mod model;
mod network;
mod order;
mod outage;
mod pairs;
mod passing;
mod people;
mod policies;
mod punctual;
mod recovery;
mod restore;
mod rivals;
mod rng;
mod run;
mod scenario;
mod sequences;
mod shrink;
mod sim;
mod standstill;
mod told;
mod view;
mod waiting;

use std::process::ExitCode;

fn main() -> ExitCode {
    run::main()
}
