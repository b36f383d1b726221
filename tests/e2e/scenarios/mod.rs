//! The table of scenarios.

mod annotations;
mod certificates;
mod failures;
mod limits;
mod minute;
mod operations;
mod past;
mod policy;
mod rights;
mod secure;
mod takeover;
mod tutorial;
mod upgrade;

use super::runner::{Group, Scenario};

macro_rules! scenario {
    ($group:ident, $module:ident :: $function:ident, $name:literal) => {
        scenario!($group, $module::$function, $name, None)
    };
    ($group:ident, $module:ident :: $function:ident, $name:literal, $differs:expr) => {
        Scenario {
            name: $name,
            group: Group::$group,
            differs_in_tree: $differs,
            run: |world| Box::pin($module::$function(world)),
        }
    };
}

pub fn all() -> Vec<Scenario> {
    let mut all = vec![
        scenario!(Together, minute::fires, "a minutely CronJob fires within a second of the minute"),
        scenario!(Together, minute::suspends, "a suspended CronJob stays quiet and fires the missed slot when resumed"),
        scenario!(Together, minute::edits, "an edited schedule is followed from the next slot on"),
        scenario!(Together, minute::deletes, "a deleted CronJob fires no more and its Jobs are collected"),
        scenario!(Together, policy::forbid, "Forbid skips while the last Job runs and catches up after it"),
        scenario!(Together, policy::replace, "Replace deletes the running Job and creates the new one"),
        scenario!(Together, policy::allow, "Allow lets Jobs overlap and the active list follows them"),
        scenario!(Together, policy::deadline, "startingDeadlineSeconds decides whether a late slot still fires"),
        scenario!(Together, policy::history, "finished Jobs beyond the history limits are deleted, the oldest first"),
        scenario!(Together, policy::time_zone, "spec.timeZone decides when a schedule is due"),
        scenario!(
            Together,
            policy::many_missed,
            "after a day of missed minutes only the last one fires, with a warning"
        ),
        scenario!(Together, policy::missing, "a Job that a user deletes leaves the active list"),
        scenario!(Together, policy::template, "the Job has every field of the jobTemplate, known to us or not"),
        scenario!(
            Together,
            annotations::timing,
            "each timing policy decides which slots start, and its change starts nothing older",
            Some("it knows no policies")
        ),
        scenario!(
            Together,
            annotations::refused,
            "kubectl is told of a wrong annotation, and without the policy objects an Event and explain tell",
            Some("it knows no policies")
        ),
        scenario!(
            Together,
            annotations::terminating,
            "a Job stuck in Terminating is told and then does not block, and under Replace the next one waits for it",
            Some("it knows no policies")
        ),
        scenario!(
            Together,
            limits::at_once,
            "a Job made by hand counts for max-concurrent, and what backlog: \"0\" passed over does not start",
            Some("it knows no policies")
        ),
        scenario!(
            Together,
            limits::paused,
            "failed Jobs pause a CronJob until one is deleted or another succeeds",
            Some("it knows no policies")
        ),
        scenario!(Together, annotations::spread_namespace, "the sample spreads the CronJobs of a labelled namespace"),
        scenario!(
            Together,
            past::killed_backfill,
            "a backfill that is killed three times starts each slot once, and Forbid does not count its Jobs",
            Some("it prunes the Jobs of a backfill")
        ),
        scenario!(
            Together,
            past::after_change,
            "an edit and a resume after two hours of suspension start nothing old with after-change: wait",
            Some("it knows no policies")
        ),
        scenario!(Together, operations::priority, "the account's reads and fires queue apart from everyone else's"),
        scenario!(Together, operations::observes, "the controller can be probed and scraped"),
        scenario!(Together, operations::rights, "the account in the manifests holds no more rights than it needs"),
        scenario!(Together, operations::size_policy, "the policy sample refuses large CronJobs and no others"),
        scenario!(Together, operations::manifests, "the manifests are admitted, their Pods as restricted ones"),
        scenario!(Together, secure::asks, "the metrics require authentication and authorization"),
        scenario!(
            Together,
            secure::holds,
            "no client can hold the secure port, and a new certificate drops no connection",
            Some("its limits are others")
        ),
        scenario!(
            Together,
            tutorial::admission,
            "the tutorial's CronJobs get their defaults, and what cannot be run is refused with its field"
        ),
        scenario!(
            Together,
            certificates::files,
            "no admission fails while the files of the webhooks' certificate are replaced"
        ),
        scenario!(
            Together,
            certificates::self_signed,
            "no admission fails while the controller makes the webhooks' certificate anew"
        ),
        scenario!(
            Alone,
            tutorial::side_by_side,
            "the tutorial's CronJobs and ApiExamples run beside the in-tree controller, and neither touches the other's Jobs",
            Some("the tutorial's kind has its own")
        ),
        scenario!(Alone, rights::compared, "every right in the manifests is used, and none is missing"),
        scenario!(
            Alone,
            failures::controller_restart,
            "kill -9 of the controller in a burst loses nothing and fires nothing twice",
            Some("before v1.37, a crash between create and status leaves CronJobs without active and lastScheduleTime")
        ),
        scenario!(
            Alone,
            failures::api_server_restart,
            "kill -9 of the API server in a burst loses nothing and fires nothing twice",
            Some("before v1.37, a create whose answer is lost leaves the CronJob without active and lastScheduleTime")
        ),
        scenario!(
            Alone,
            failures::failover,
            "of two replicas one leads, and the other takes over when it is killed or told to stop",
            Some("it dies of SIGTERM and keeps its lease")
        ),
        scenario!(
            Alone,
            takeover::three_ways,
            "the in-tree controller is taken over from and given back to in a burst, and worked beside, and no slot fires twice or never",
            Some("it is about both")
        ),
        scenario!(
            Alone,
            annotations::published,
            "with --publish, kubectl shows when each CronJob runs next and when it last failed",
            Some("it has no such flag")
        ),
        scenario!(
            Alone,
            past::killed_backlog,
            "a backlog starts oldest first and once each, though the controller is killed between two of its Jobs",
            Some("it knows no policies")
        ),
        scenario!(
            Alone,
            past::handover,
            "migrate check names the CronJobs for which the in-tree controller starts an old slot, and no others",
            Some("it is about both")
        ),
    ];
    // Needs a second build, which `make upgrade-test` makes.
    if upgrade::previous().is_some() {
        all.push(scenario!(
            Alone,
            upgrade::there_and_back,
            "a release is rolled out in a burst, rolled back and rolled out again, and no slot fires twice or never",
            Some("it has no other release")
        ));
    }
    all
}
