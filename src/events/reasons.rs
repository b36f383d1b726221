//! The reasons of all Events.
//!
//! Guarantee: each reason in the sources is here, and no other; `docs/reference/events.md` is made of this table, and a test
//! compares both with the sources.

use super::EventType::{self, Normal, Warning};

/// A reason, and what it tells the owner of the object.
#[derive(Debug)]
pub struct Reason {
    /// As in the Event.
    pub name: &'static str,
    /// Normal or Warning.
    pub type_: EventType,
    /// Whether kube-controller-manager's controller records it, too.
    pub is_upstream: bool,
    /// When it is recorded.
    pub meaning: &'static str,
    /// What can be done about it; empty if nothing has to be.
    pub remedy: &'static str,
}

const fn upstream(name: &'static str, type_: EventType, meaning: &'static str, remedy: &'static str) -> Reason {
    Reason { name, type_, is_upstream: true, meaning, remedy }
}

const fn own(name: &'static str, type_: EventType, meaning: &'static str, remedy: &'static str) -> Reason {
    Reason { name, type_, is_upstream: false, meaning, remedy }
}

/// Whether kube-controller-manager's controller does not record this reason.
pub fn is_own(reason: &str) -> bool {
    ALL.iter().any(|known| known.name == reason && !known.is_upstream)
}

/// Every reason, in the order of a run: what starts, what waits, what was left out, what is wrong.
pub const ALL: [Reason; 27] = [
    upstream("SuccessfulCreate", Normal, "The Job of a slot was created.", ""),
    upstream("SawCompletedJob", Normal, "An active Job has ended; the message says how.", ""),
    upstream("SuccessfulDelete", Normal, "A Job was deleted, by a history limit, by Replace or as stuck.", ""),
    upstream("MissingJob", Normal, "A Job in `status.active` no longer exists, and was not seen to end.", ""),
    upstream(
        "UnexpectedJob",
        Warning,
        "A running Job belongs to the CronJob and is not in `status.active`.",
        "Nothing, if `kubectl create job --from` made it.",
    ),
    upstream(
        "JobAlreadyActive",
        Normal,
        "A slot waits for other Jobs: `concurrencyPolicy`, `max-concurrent` or `replace-waits` say so.",
        "If it waits too long, look why the Job does not end.",
    ),
    upstream(
        "MissSchedule",
        Warning,
        "The `startingDeadlineSeconds` of a slot passed before its Job could start; it will not start.",
        "Look what kept it: an earlier Job, a refusal, or no running controller.",
    ),
    upstream(
        "TooManyMissedTimes",
        Warning,
        "More than a hundred slots were missed; the newest of them starts.",
        "Set `startingDeadlineSeconds`, if a late run is worse than none.",
    ),
    own("PassedOver", Normal, "A slot will not start, because of a change or of `backlog`; the message says why.", ""),
    own(
        "Paused",
        Warning,
        "`pause-after-failures`: so many Jobs failed in a row that nothing starts.",
        "Mend the Job, then start one with `kubectl create job --from`, or delete the failed Jobs.",
    ),
    own(
        "Frozen",
        Normal,
        "The Namespace is [frozen](../policies.md#a-freeze-of-a-namespace): no slot before the time in the message starts.",
        "`cronjob-controller thaw -n NAMESPACE` ends it early.",
    ),
    own(
        "RunStuck",
        Warning,
        "`stuck-after`: a Job that has run for too long blocks a slot.",
        "Look at the Job's Pods and at their nodes.",
    ),
    own(
        "StuckRunsLinger",
        Warning,
        "Three Jobs that were deleted as stuck still exist, so no other is deleted.",
        "Look at their finalizers, and at the nodes of their Pods.",
    ),
    upstream(
        "FailedCreate",
        Warning,
        "The API server refused the Job, or a Job of another owner has its name.",
        "The message has the API server's reason: a quota, an admission policy, a wrong template.",
    ),
    upstream(
        "FailedDelete",
        Warning,
        "A Job could not be deleted.",
        "The message has the API server's reason. It is tried again.",
    ),
    upstream(
        "FailedGet",
        Warning,
        "A Job that is to be replaced could not be read.",
        "The message has the API server's reason. It is tried again.",
    ),
    upstream(
        "UnknownTimeZone",
        Warning,
        "No time zone has the name in `spec.timeZone`. Nothing starts.",
        "Correct it.",
    ),
    upstream(
        "UnparseableSchedule",
        Warning,
        "A slot cannot be found, because `spec.schedule` cannot be read. Nothing starts.",
        "Correct it.",
    ),
    upstream("UnParseableCronJobSchedule", Warning, "An edit has made `spec.schedule` unreadable.", "Correct it."),
    upstream(
        "UnsupportedSchedule",
        Warning,
        "`spec.schedule` contains `TZ=` or `CRON_TZ=`. It runs; a new CronJob with it is refused.",
        "Use `spec.timeZone`.",
    ),
    upstream("InvalidSchedule", Warning, "The schedule, with its policies, has no slot at all.", "Correct it."),
    own(
        "InvalidPolicy",
        Warning,
        "A policy annotation cannot be read, or not together with another setting. Nothing starts.",
        "The message names the annotation, the value and what is allowed.",
    ),
    own(
        "UnknownPolicy",
        Warning,
        "No policy has this annotation below `cronjob-controller.dev/`. It has no effect.",
        "Correct its name, or remove it.",
    ),
    own(
        "HandedOver",
        Warning,
        "The CronJob is handed over, but the controller runs with `--manage=all`, so `spec.suspend` counts. Nothing starts.",
        "`cronjob-controller migrate takeback`, or run the controller with `--manage=annotated`.",
    ),
    own(
        "AmbiguousName",
        Warning,
        "A batch/v1 CronJob has the name of one of another kind. Its controller takes their Jobs for its own.",
        "Rename one of the two.",
    ),
    own(
        "MalformedObject",
        Warning,
        "The object cannot be read, and is ignored.",
        "The message says why; correct the object.",
    ),
    own("LeaderElection", Normal, "On the Lease: a replica has become the leader, or no longer is.", ""),
];
