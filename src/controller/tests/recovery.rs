//! Tests of how soon a Job starts after the end of what kept it from starting, whatever failed before.

use parking_lot::Mutex;
use tokio::time::Instant;

use super::*;

/// A quota is used up.
const QUOTA: Fate =
    Fate::Denied(403, "Forbidden", "jobs.batch \"c\" is forbidden: exceeded quota: q, requested: count/jobs.batch=1");
/// Others have changed the quota's usage at the same time, four times in a row.
const QUOTA_CONFLICT: Fate = Fate::Denied(
    409,
    "Conflict",
    "Operation cannot be fulfilled on resourcequotas \"q\": the object has been modified; please apply your changes to the \
     latest version and try again",
);
const MISSING_RIGHT: Fate =
    Fate::Denied(403, "Forbidden", "jobs.batch is forbidden: User \"u\" cannot create resource \"jobs\"");
const WEBHOOK: Fate = Fate::Denied(
    500,
    "InternalError",
    "Internal error occurred: failed calling webhook \"a.b.c\": failed to call webhook: connection refused",
);
const DENIED: Fate = Fate::Denied(422, "Invalid", "admission webhook \"a.b.c\" denied the request: no");
const AWAY: Fate = Fate::Refused(503, "ServiceUnavailable");
const TIMEOUT: Fate = Fate::Refused(504, "Timeout");
const INVALID: Fate = Fate::Refused(422, "Invalid");

/// What creates of Jobs meet in turn, for so many minutes; for none, one create meets it.
type Trouble<'a> = (u64, &'a [Fate]);

/// Orders troubles, one after the other, for all creates of Jobs. Returns the end of the last that has begun.
fn order(world: &World, troubles: &[Trouble<'_>]) -> Arc<Mutex<Instant>> {
    let mut troubles: std::collections::VecDeque<_> =
        troubles.iter().map(|(minutes, fates)| (seconds(60 * minutes), fates.to_vec())).collect();
    let ends = Arc::new(Mutex::new(Instant::now()));
    let (ending, mut met) = (Arc::clone(&ends), 0);
    world.wire.judge(move |ask| {
        while ask.is(Verb::Create, "jobs")
            && let Some((time, fates)) = troubles.front()
        {
            if met == 0 {
                *ending.lock() = ask.at + *time;
            }
            if met == 0 || ask.at < *ending.lock() {
                met += 1;
                return fates[(met - 1) % fates.len()];
            }
            troubles.pop_front();
            met = 0;
        }
        Fate::Pass
    });
    ends
}

/// A CronJob that runs once a day, so that no later slot brings it back.
#[tokio::test(start_paused = true)]
async fn job_starts_as_soon_after_the_last_trouble_as_its_class_allows_whatever_failed_before() {
    // The longest backoff of each class, and 10 ms for the first failure of a class.
    let [server, webhook, namespace, key] = [2_000, 4_000, 30_000, 1_000_000];
    let first = 10;
    let rows: &[(&str, &[Trouble<'_>], u64)] = &[
        ("an outage", &[(5, &[AWAY])], server),
        ("timeouts", &[(5, &[TIMEOUT])], server),
        ("no answer in time, from a proxy", &[(5, &[Fate::Refused(408, "")])], server),
        ("no connection", &[(5, &[Fate::Unreachable])], server),
        ("a webhook that cannot be called", &[(5, &[WEBHOOK])], webhook),
        ("a webhook's denial", &[(20, &[DENIED])], namespace),
        ("a quota", &[(20, &[QUOTA])], namespace),
        ("a quota that is changed all the time", &[(20, &[QUOTA_CONFLICT])], namespace),
        ("a missing right", &[(20, &[MISSING_RIGHT])], namespace),
        ("what only an edit can mend", &[(20, &[INVALID])], key),
        ("a quota, and at last its conflict", &[(9, &[QUOTA]), (0, &[QUOTA_CONFLICT])], namespace),
        ("an outage, and at last a missing right", &[(1, &[AWAY]), (0, &[MISSING_RIGHT])], first),
        ("an outage, and at last a quota", &[(10, &[AWAY]), (0, &[QUOTA])], first),
        ("an outage, and at last an invalid Job", &[(10, &[AWAY]), (0, &[INVALID])], first),
        ("a quota, and at last an invalid Job", &[(30, &[QUOTA]), (0, &[INVALID])], first),
        ("a webhook away, and at last its denial", &[(10, &[WEBHOOK]), (0, &[DENIED])], first),
        ("no answer, and at last a missing right", &[(10, &[Fate::Swallowed]), (0, &[MISSING_RIGHT])], first),
        ("an invalid Job, and at last an outage", &[(10, &[INVALID]), (5, &[AWAY])], server),
        ("a quota and its conflicts in turn", &[(20, &[QUOTA, QUOTA_CONFLICT])], namespace),
        ("an outage and a quota in turn", &[(20, &[AWAY, QUOTA])], namespace),
        ("all but the key's own in turn", &[(20, &[AWAY, QUOTA, WEBHOOK, QUOTA_CONFLICT, MISSING_RIGHT])], namespace),
        ("a long outage between two quotas", &[(9, &[QUOTA]), (10, &[AWAY]), (9, &[QUOTA])], namespace),
    ];
    for (sentence, troubles, longest) in rows {
        let world = World::new("2026-03-02T09:59:30Z").await;
        world.create_cron_job("c", json!({ "schedule": "0 10 * * *" })).await;
        let ends = order(&world, troubles);
        let stop = world.work(2);
        for _ in 0..90 {
            world.pass(seconds(60)).await;
            if !world.seen().is_empty() {
                break;
            }
        }
        stop.cancel();
        assert_eq!(world.seen().len(), 1, "{sentence}");
        let last = world.wire.asked(Verb::Create, "jobs").last().unwrap().at;
        let late = last.duration_since(*ends.lock());
        assert!(late <= Duration::from_millis(*longest), "{sentence}: {late:?}");
    }
}

/// A count that starts anew with each change of class would try every few milliseconds.
#[tokio::test(start_paused = true)]
async fn failures_of_alternating_classes_are_retried_less_and_less_often() {
    let rows: &[(&str, &[Fate], usize)] = &[
        ("server and namespace", &[AWAY, QUOTA], 125),
        ("server and key", &[AWAY, INVALID], 40),
        ("namespace and key", &[MISSING_RIGHT, INVALID], 40),
        ("all", &[AWAY, INVALID, QUOTA, WEBHOOK], 80),
    ];
    for (sentence, fates, most) in rows {
        let world = World::new("2026-03-02T09:59:30Z").await;
        world.create_cron_job("c", json!({ "schedule": "0 10 * * *" })).await;
        order(&world, &[(20, fates)]);
        let stop = world.work(2);
        let tries = || world.wire.count(Verb::Create, "jobs");
        for _ten_seconds in 0..117 {
            world.pass(seconds(10)).await;
            assert!(tries() <= *most, "{sentence}: {} creates", tries());
        }
        stop.cancel();
        let requeues = usize::try_from(world.controller.queue().num_requeues(&key("c"))).unwrap();
        assert!(tries() - requeues <= 1, "{sentence}: each failure counts, {requeues} of {}", tries());
    }
}
