//! The annotations below `cronjob-controller.dev/`.
//!
//! Guarantee: an annotation below the prefix that is not in [`ANNOTATIONS`] or reserved is unknown, and is reported. The
//! reference in docs/reference is generated from the table, so an annotation cannot be read without being documented.

use crate::api::manage::{MANAGED_ANNOTATION, SUSPEND_ANNOTATION};

/// What the names of all annotations of this controller begin with.
pub const PREFIX: &str = "cronjob-controller.dev/";

/// Delays the slots of a CronJob by a constant part of a window.
pub const SPREAD: &str = "cronjob-controller.dev/spread";
/// What a change of the clocks does to slots.
pub const DST: &str = "cronjob-controller.dev/dst";
/// Dates without slots.
pub const EXCLUDE: &str = "cronjob-controller.dev/exclude";
/// The first time that may be a slot.
pub const NOT_BEFORE: &str = "cronjob-controller.dev/not-before";
/// The last time that may be a slot.
pub const NOT_AFTER: &str = "cronjob-controller.dev/not-after";
/// Cron lines in the place of `spec.schedule`.
pub const SCHEDULE: &str = "cronjob-controller.dev/schedule";
/// How many Jobs of a CronJob may be unfinished when another starts.
pub const MAX_CONCURRENT: &str = "cronjob-controller.dev/max-concurrent";
/// How many slots wait that could not start.
pub const BACKLOG: &str = "cronjob-controller.dev/backlog";
/// Whether Replace waits until the replaced Job is gone.
pub const REPLACE_WAITS: &str = "cronjob-controller.dev/replace-waits";
/// What an edit or a resume does to the slots before it.
pub const AFTER_CHANGE: &str = "cronjob-controller.dev/after-change";
/// When a Job that blocks a slot counts as stuck.
pub const STUCK_AFTER: &str = "cronjob-controller.dev/stuck-after";
/// After how many failures in a row nothing starts.
pub const PAUSE_AFTER_FAILURES: &str = "cronjob-controller.dev/pause-after-failures";
/// Whether the Pods of a Job get its slot in annotations.
pub const SLOT_IN_POD: &str = "cronjob-controller.dev/slot-in-pod";
/// The newest slot that is decided; see [`CountedFrom`](super::CountedFrom).
pub const COUNTED_FROM: &str = "cronjob-controller.dev/counted-from";
/// On a CronJob, the progress of a backfill; as a label, the mark of a backfill's Jobs. See
/// [`Record`](crate::api::backfill::Record).
pub const BACKFILL: &str = "cronjob-controller.dev/backfill";

/// When the next Job is due; see [`Published`](crate::api::Published).
pub const NEXT_RUN: &str = "cronjob-controller.dev/next-run";
/// When a Job last failed; the same.
pub const LAST_FAILURE: &str = "cronjob-controller.dev/last-failure";

/// On a Pod, when its slot was due, with [`SLOT_IN_POD`]. A CronJob has no such annotation.
pub const DUE_TIME: &str = "cronjob-controller.dev/due-time";
/// On a Pod, the W3C trace context of its start; the same.
pub const TRACEPARENT: &str = "cronjob-controller.dev/traceparent";
/// On a Namespace, why its CronJobs are frozen.
pub const REASON: &str = "cronjob-controller.dev/reason";

/// Keys below [`PREFIX`] that are no mistake on a CronJob: `dev` reads them from a Job.
pub const RESERVED: [&str; 2] = ["duration", "outcome"];

/// Who writes an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenBy {
    /// The user.
    User,
    /// This controller.
    Controller,
}

/// An annotation below [`PREFIX`].
#[derive(Clone, Copy, Debug)]
pub struct Annotation {
    /// The whole name.
    pub name: &'static str,
    /// The objects that have it.
    pub on: &'static str,
    /// Who writes it.
    pub written_by: WrittenBy,
    /// An RE2 pattern that allowed values match as a whole, for a check by other programs. Other values may match it, too.
    pub form: &'static str,
    /// The allowed values, as the object of a sentence.
    pub allowed: &'static str,
    /// What it does, as a sentence in Markdown.
    pub meaning: &'static str,
}

const A_CRON_JOB: &str = "a CronJob of batch/v1 or of the tutorial";
const A_CRON_JOB_OR_NAMESPACE: &str =
    "a CronJob of batch/v1 or of the tutorial, or a Namespace, for all CronJobs in it";
const TIME: &str = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})";
const A_TIME: &str = "a time in RFC 3339, such as 2027-03-01T09:00:00+01:00";

/// The pattern of one item of `exclude`.
macro_rules! excluded_days {
    () => {
        "((?i:sun|mon|tue|wed|thu|fri|sat)|([0-9]{4}-)?[0-9]{2}-[0-9]{2}(/([0-9]{4}-)?[0-9]{2}-[0-9]{2})?)"
    };
}

/// All annotations below [`PREFIX`] but the reserved ones.
pub const ANNOTATIONS: [Annotation; 20] = [
    Annotation {
        name: MANAGED_ANNOTATION,
        on: "a batch/v1 CronJob",
        written_by: WrittenBy::User,
        form: "true|false",
        allowed: "true or false",
        meaning: "`\"true\"`, with `spec.suspend: true`: this controller runs the CronJob. Read with \
                  `--manage=annotated` only. See [Migration](../migration.md#beside-the-in-tree-controller).",
    },
    Annotation {
        name: SUSPEND_ANNOTATION,
        on: "a batch/v1 CronJob that was handed over",
        written_by: WrittenBy::User,
        form: "true|false",
        allowed: "true or false",
        meaning: "`\"true\"`: suspends the CronJob. Its `spec.suspend` is always true, which hides it from the in-tree \
                  controller. Read with `--manage=annotated` only.",
    },
    Annotation {
        name: SCHEDULE,
        on: A_CRON_JOB,
        written_by: WrittenBy::User,
        form: r"[-0-9A-Za-z*?/,#@+:;\s\v\x{85}\pZ]+",
        allowed: "cron lines, separated by line ends or semicolons, without TZ= and @every, at most 64 of them with \
                  five fields",
        meaning: "Replaces `spec.schedule`: the CronJob runs at each time that a line chooses. Besides cron's items, \
                  the day of month may be `L` (the last), `L-3`, `15W` (the Monday to Friday nearest to the 15th in \
                  its month) and `LW`, the day of week `5L` (the last Friday) and `FRI#3` (the third). \
                  `@at 2027-03-01T09:00` is one slot, in the zone of the CronJob or with an offset.",
    },
    Annotation {
        name: SPREAD,
        on: A_CRON_JOB,
        written_by: WrittenBy::User,
        form: "[+]?(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+",
        allowed: "a duration from 1s to 24h, such as 15m",
        meaning: "Delays every slot by the same part of this window, which depends on namespace and name, so that \
                  CronJobs with one schedule do not start at once. Names, `lastScheduleTime` and the time between \
                  runs stay as they are.",
    },
    Annotation {
        name: DST,
        on: A_CRON_JOB,
        written_by: WrittenBy::User,
        form: "once|upstream",
        allowed: "once or upstream",
        meaning: "`once`: each wall-clock time of the schedule runs exactly once on its date. If the clocks skip it, \
                  it runs at the first instant after the gap; if they repeat it, the first time. A schedule of all 24 \
                  hours runs as it does without the annotation.",
    },
    Annotation {
        name: EXCLUDE,
        on: A_CRON_JOB_OR_NAMESPACE,
        written_by: WrittenBy::User,
        form: concat!("[ ]*", excluded_days!(), "[ ]*(,[ ]*", excluded_days!(), "[ ]*)*"),
        allowed: "a list, separated by commas, of weekdays (Sat), days of every year (12-25), dates (2026-12-24), \
                  and ranges of either kind of day (12-24/01-06)",
        meaning: "The local dates on which there are no slots.",
    },
    Annotation {
        name: NOT_BEFORE,
        on: A_CRON_JOB_OR_NAMESPACE,
        written_by: WrittenBy::User,
        form: TIME,
        allowed: A_TIME,
        meaning: "No slot is before this time; one at it runs.",
    },
    Annotation {
        name: REASON,
        on: "a Namespace, or an object with `not-before` or `exclude`",
        written_by: WrittenBy::User,
        form: r"(?s:.*)",
        allowed: "any text",
        meaning: "Why nothing starts, in the author's words. Of a [frozen Namespace](../policies.md#a-freeze-of-a-namespace), \
                  commands, the page and an Event show it.",
    },
    Annotation {
        name: NOT_AFTER,
        on: A_CRON_JOB,
        written_by: WrittenBy::User,
        form: TIME,
        allowed: A_TIME,
        meaning: "No slot is after this time; one at it runs.",
    },
    Annotation {
        name: MAX_CONCURRENT,
        on: A_CRON_JOB,
        written_by: WrittenBy::User,
        form: "[1-9][0-9]{0,2}|1000",
        allowed: "a whole number from 1 to 1000",
        meaning: "A Job starts while fewer than this many Jobs of the CronJob are unfinished, whether \
                  `concurrencyPolicy` is Allow or Forbid. Every Job of the CronJob counts, also one made with `kubectl \
                  create job --from`, a suspended one and one that is being deleted. Not with Replace.",
    },
    Annotation {
        name: BACKLOG,
        on: A_CRON_JOB,
        written_by: WrittenBy::User,
        form: "0|[1-9][0-9]?|100",
        allowed: "a whole number from 0 to 100",
        meaning: "Of the slots that could not start, this many of the newest wait and start later, the oldest first. \
                  `0`: a slot that runs keep from starting for 60 seconds is passed over. From 1, it needs Forbid or \
                  `max-concurrent`, and a schedule of at most 16 lines.",
    },
    Annotation {
        name: REPLACE_WAITS,
        on: A_CRON_JOB,
        written_by: WrittenBy::User,
        form: "true",
        allowed: "true",
        meaning: "With Replace: the new Job starts when the replaced one and its Pods are gone.",
    },
    Annotation {
        name: AFTER_CHANGE,
        on: A_CRON_JOB,
        written_by: WrittenBy::User,
        form: "fire|wait",
        allowed: "wait or fire",
        meaning: "`wait`: an edit of the schedule or the zone, or a resume, starts no slot that was due before it. \
                  `fire`, the default: the newest one starts.",
    },
    Annotation {
        name: STUCK_AFTER,
        on: A_CRON_JOB,
        written_by: WrittenBy::User,
        form: "[ ]*[+]?(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+[ ]*(,[ ]*delete[ ]*)?",
        allowed: "a duration from 1s to 8760h, such as 2h, and then `, delete` if the Job is to be deleted",
        meaning: "A Warning names a Job that blocks a slot and has run for longer than this. With `, delete` the Job is \
                  deleted and the slot starts, although its Pods may still run on a node that cannot be reached.",
    },
    Annotation {
        name: PAUSE_AFTER_FAILURES,
        on: A_CRON_JOB,
        written_by: WrittenBy::User,
        form: "[1-9][0-9]?|100",
        allowed: "a whole number from 1 to 100",
        meaning: "Nothing starts after this many failed Jobs in a row, until one succeeds (one made by hand, too) or the \
                  failed ones are deleted. `failedJobsHistoryLimit` must keep as many.",
    },
    Annotation {
        name: SLOT_IN_POD,
        on: A_CRON_JOB,
        written_by: WrittenBy::User,
        form: "true|false",
        allowed: "true or false",
        meaning: "The Pods of each Job get annotations with its scheduled time, under the key that the Job has, its \
                  `due-time` and its `traceparent`.",
    },
    Annotation {
        name: COUNTED_FROM,
        on: "a batch/v1 CronJob with a policy",
        written_by: WrittenBy::Controller,
        form: ".+",
        allowed: "what the controller wrote",
        meaning: "The slots up to this time are decided, and under which schedule and policies. Edits and copies are \
                  recognised.",
    },
    Annotation {
        name: BACKFILL,
        on: A_CRON_JOB,
        written_by: WrittenBy::Controller,
        form: ".+",
        allowed: "what the command `backfill` wrote",
        meaning: "The progress of a [backfill](../backfill.md), whose Jobs are not pruned until it ends, and the times of \
                  earlier ones. The Jobs have a label of the same name.",
    },
    Annotation {
        name: NEXT_RUN,
        on: "a batch/v1 CronJob",
        written_by: WrittenBy::Controller,
        form: ".+",
        allowed: "what the controller wrote",
        meaning: "When the next Job is due, with `--publish=next-run`. A time in the past: the run is held, and `explain` \
                  says by what. Absent while the CronJob is suspended or cannot run.",
    },
    Annotation {
        name: LAST_FAILURE,
        on: "a batch/v1 CronJob",
        written_by: WrittenBy::Controller,
        form: ".+",
        allowed: "what the controller wrote",
        meaning: "When a Job of the CronJob last failed, with `--publish=last-failure`. It stays when the Job is deleted.",
    },
];

/// Whether an annotation below [`PREFIX`] is none of the user's mistakes.
pub(super) fn is_known(name: &str) -> bool {
    ANNOTATIONS.iter().any(|known| known.name == name)
        || name.strip_prefix(PREFIX).is_some_and(|key| RESERVED.contains(&key))
}

/// What is allowed as a value.
pub(super) fn allowed(name: &str) -> &'static str {
    ANNOTATIONS.iter().find(|known| known.name == name).map_or("", |known| known.allowed)
}
