//! `migrate handover` and `migrate takeback` on the embedded API server.

use apimachinery::clock::{Clock as _, TestClock};
use apiserver::{ApiServer, Config};
use kube::Client;

use super::super::handover::{Direction, Request, hand_over_with};
use super::*;
use crate::api::Manage;
use crate::api::manage::Standing;
use crate::cli::CliError;
use crate::cli::cluster::{read_text, try_patch};
use crate::cli::explain::InCharge;
use crate::cli::explain::tests::post;
use crate::client;
use crate::controller::tests::wire::{Fate, Wire};
use crate::leader_election::Coverage;

pub(super) const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";
pub(super) const MANAGED: &str = "cronjob-controller.dev/managed";
const SUSPEND: &str = "cronjob-controller.dev/suspend";

pub(super) struct World {
    pub client: Client,
    server: ApiServer,
    pub clock: Arc<TestClock>,
}

impl World {
    /// A day after the last run of each of these CronJobs: name, annotations, `spec.suspend`.
    pub async fn new(cron_jobs: &[(&str, Value, bool)]) -> Self {
        let clock = TestClock::new(instant("2026-11-19T03:00:00Z"));
        let server = ApiServer::new(Config::builtin(clock.clone()));
        let client = server.client();
        for (name, annotations, suspend) in cron_jobs {
            let labels = json!({"name": name});
            let template = json!({"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
            }}}});
            let object = json!({
                "apiVersion": "batch/v1", "kind": "CronJob",
                "metadata": {"name": name, "annotations": annotations, "labels": labels},
                "spec": {"schedule": "0 2 * * *", "timeZone": "UTC", "suspend": suspend, "jobTemplate": template},
            });
            post(&client, CRON_JOBS, &object).await;
        }
        clock.step(TimeDelta::days(1));
        Self { client, server, clock }
    }

    async fn try_move(
        &self,
        direction: Direction,
        names: &[&str],
        selector: &str,
        dry_run: bool,
    ) -> Result<Changes, CliError> {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let which = Selection { names, selector: selector.to_owned() };
        let request = Request { direction, which, dry_run };
        hand_over_with(&self.client, Some("default"), &request, &ControllerFlags::default(), self.clock.now()).await
    }

    async fn text(&self, direction: Direction, names: &[&str], selector: &str, dry_run: bool) -> String {
        render(&self.try_move(direction, names, selector, dry_run).await.unwrap(), Format::Table).to_string()
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    pub async fn get(&self, name: &str) -> Value {
        serde_json::from_str(&read_text(&self.client, &format!("{CRON_JOBS}/{name}")).await.unwrap()).unwrap()
    }

    /// `spec.suspend` and the annotations.
    pub async fn standing(&self, name: &str) -> (bool, Value) {
        let mut object = self.get(name).await;
        let annotations = object["metadata"]["annotations"].take();
        (object["spec"]["suspend"] == true, if annotations.is_null() { json!({}) } else { annotations })
    }
}

/// The name, annotations and suspension at first, handed over, and taken back; then what is said of each.
type Row<'a> = (&'a str, (bool, Value), (bool, Value), (bool, Value), &'a str, &'a str);

#[tokio::test(start_paused = true)]
async fn each_cron_job_moves_with_its_suspension_and_back() {
    let managed = || json!({MANAGED: "true"});
    let held = || json!({MANAGED: "true", SUSPEND: "true"});
    let rows: Vec<Row<'_>> = vec![
        (
            "runs",
            (false, json!({"team": "shop"})),
            (true, json!({"team": "shop", MANAGED: "true"})),
            (false, json!({"team": "shop"})),
            "is handed over: a controller with --manage=annotated runs it, and not the in-tree one.",
            "is taken back: the in-tree controller runs it.",
        ),
        (
            "suspended",
            (true, json!({})),
            (true, held()),
            (true, json!({})),
            "is handed over, and stays suspended, by cronjob-controller.dev/suspend.",
            "is taken back, and stays suspended, by spec.suspend.",
        ),
        (
            "left-over",
            (false, json!({SUSPEND: "true"})),
            (true, managed()),
            (false, json!({})),
            "is handed over, and not suspended: its annotation cronjob-controller.dev/suspend, which had no effect, is removed.",
            "is taken back: the in-tree",
        ),
        (
            "reverted",
            (false, held()),
            (true, managed()),
            (false, json!({})),
            "is handed over, and not suspended: its",
            "is taken back: the",
        ),
        (
            "held",
            (true, held()),
            (true, held()),
            (true, json!({})),
            "is handed over already, and suspended",
            "is taken back, and stays",
        ),
        (
            "another-value",
            (true, json!({MANAGED: "true", SUSPEND: "yes"})),
            (true, json!({MANAGED: "true", SUSPEND: "yes"})),
            (false, json!({})),
            "is handed over already.",
            "is taken back: the in-tree",
        ),
    ];
    for (name, first, over, back, said_over, said_back) in rows {
        let world = World::new(&[(name, first.1.clone(), first.0)]).await;
        for (direction, want, said) in [(Direction::Handover, over, said_over), (Direction::Takeback, back, said_back)]
        {
            let before = world.standing(name).await;
            let text = world.text(direction, &[name], "", true).await;
            assert!(text.contains("would be") || text.contains("already"), "{name}: {text}");
            assert_eq!(world.standing(name).await, before, "{name}: a dry run writes nothing");
            let text = world.text(direction, &[name], "", false).await;
            assert!(text.contains(&format!("  CronJob default/{name} {said}")), "{name}: {text}");
            assert_eq!(world.standing(name).await, want, "{name}: {direction:?}");
            let version = world.get(name).await["metadata"]["resourceVersion"].clone();
            world.text(direction, &[name], "", false).await;
            assert_eq!(
                world.get(name).await["metadata"]["resourceVersion"],
                version,
                "{name}: the second time, no write"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn freeze_of_the_namespace_decides_what_a_move_starts() {
    let job = "Job nightly-";
    let at_once = format!("cronjob-controller starts {job}");
    let in_tree = format!("Under the in-tree controller, CronJob default/nightly would start {job}");
    let left_out = "cronjob-controller.dev/not-before of the Namespace leaves this slot out.";
    let rows = [
        ("no freeze", Value::Null, Some(&at_once), false),
        ("a freeze", json!("2026-11-22T00:00:00Z"), None, true),
        ("a thaw after the slot", json!("2026-11-20T02:30:00Z"), None, true),
        ("a thaw before the slot", json!("2026-11-20T01:00:00Z"), Some(&at_once), false),
    ];
    for (sentence, not_before, over, back) in rows {
        let world = World::new(&[("nightly", json!({}), false)]).await;
        let annotations = json!({"metadata": {"annotations": {"cronjob-controller.dev/not-before": not_before}}});
        try_patch(&world.client, "/api/v1/namespaces/default", &annotations).await.unwrap();
        let text = world.text(Direction::Handover, &["nightly"], "", false).await;
        match over {
            Some(starts) => assert!(text.contains(starts), "{sentence}: {text}"),
            None => assert!(!text.contains(job), "{sentence}: {text}"),
        }
        let text = world.text(Direction::Takeback, &["nightly"], "", false).await;
        assert_eq!(text.contains(&in_tree) && text.contains(left_out), back, "{sentence}: {text}");
    }
}

/// (a sentence, the suspension, annotations of the CronJob and of its Namespace, `spec` merged in, what is said of the move and of the
/// second one)
type Held<'a> = (&'a str, bool, Value, Value, Value, &'a str, &'a str);

#[tokio::test(start_paused = true)]
async fn what_keeps_a_moved_cron_job_from_running_is_said() {
    let over = "is handed over, and the in-tree controller starts no more of its runs. It does not run: ";
    let bad = json!({"cronjob-controller.dev/exclude": "garbage"});
    let freeze = json!({"cronjob-controller.dev/not-before": "2026-11-22T00:00:00Z"});
    let none = || json!({});
    let rows: [Held<'_>; 5] = [
        ("nothing", false, none(), none(), none(), "is handed over: a controller with", "is handed over already.\n"),
        (
            "a policy that cannot be read",
            false,
            bad.clone(),
            none(),
            none(),
            over,
            "is handed over already. It does not run: cronjob-controller.dev/exclude",
        ),
        (
            "the same, and suspended",
            true,
            bad,
            none(),
            none(),
            "by cronjob-controller.dev/suspend. If it were resumed then, it would not start either. It does not run: ",
            "would not start either. It does not run: ",
        ),
        (
            "a freeze",
            false,
            none(),
            freeze,
            none(),
            "starts no more of its runs. It does not run: its Namespace is frozen until Sun 2026-11-22 00:00:00 +00:00",
            "is handed over already. It does not run: its Namespace is frozen",
        ),
        (
            "no slot",
            false,
            none(),
            none(),
            json!({"schedule": "0 0 31 2 *"}),
            "starts no more of its runs. It never runs: the schedule matches no time in the next five years.",
            "is handed over already. It never runs",
        ),
    ];
    for (sentence, suspend, own, of_namespace, spec, said, again) in rows {
        let world = World::new(&[("nightly", own, suspend)]).await;
        let annotations = json!({"metadata": {"annotations": of_namespace}});
        try_patch(&world.client, "/api/v1/namespaces/default", &annotations).await.unwrap();
        try_patch(&world.client, &format!("{CRON_JOBS}/nightly"), &json!({"spec": spec})).await.unwrap();
        for (dry_run, said) in
            [(true, said.replace("is handed over", "would be handed over")), (false, said.to_owned())]
        {
            let text = world.text(Direction::Handover, &["nightly"], "", dry_run).await;
            assert!(text.contains(&said), "{sentence}: {text}");
        }
        let text = world.text(Direction::Handover, &["nightly"], "", false).await;
        assert!(text.contains(again), "{sentence}, again: {text}");
    }
}

/// The API server of these tests would refuse the zone, and nothing is written.
#[tokio::test(start_paused = true)]
async fn cron_job_in_a_zone_that_is_not_known_here_stays_where_it_is() {
    let refusal = "CronJob default/nightly is not handed over: cronjob-controller does not know its spec.timeZone \"right/UTC\", and \
                   would never run it.";
    let already = "CronJob default/nightly is handed over already. It does not run: spec.timeZone \"right/UTC\" is not a time zone.";
    let back = "CronJob default/nightly would be taken back: the in-tree controller runs it.";
    let rows = [
        ("it runs", false, json!({}), Direction::Handover, "failed", refusal),
        ("suspended", true, json!({}), Direction::Handover, "failed", refusal),
        ("half handed over", false, json!({MANAGED: "true"}), Direction::Handover, "failed", refusal),
        ("handed over before", true, json!({MANAGED: "true"}), Direction::Handover, "unchanged", already),
        ("taken back", true, json!({MANAGED: "true"}), Direction::Takeback, "changed", back),
    ];
    for (sentence, suspend, annotations, direction, outcome, said) in rows {
        let world = World::new(&[("nightly", annotations, suspend)]).await;
        let mut object = world.get("nightly").await;
        object["spec"]["timeZone"] = json!("right/UTC");
        for dry_run in [true, false] {
            if direction == Direction::Takeback && !dry_run {
                continue;
            }
            let (flags, restrictions) = (ControllerFlags::default(), crate::cli::restrictions::Restrictions::default());
            let text = object.to_string();
            let seen = super::super::read::seen([&*text].into_iter(), &[], &flags, &restrictions).0.remove(0);
            let next = super::super::handover::Next { others: InCharge::InTree, leads: true };
            let change = super::super::handover::change;
            let changed = change(&world.client, seen, (direction, dry_run), next, &flags, world.now()).await;
            let json = serde_json::to_value(&changed).unwrap();
            assert_eq!((&json["outcome"], &json["message"]), (&json!(outcome), &json!(said)), "{sentence}: {json}");
            assert_eq!(world.standing("nightly").await.0, suspend, "{sentence}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn move_says_that_namespaces_cannot_be_read() {
    let world = World::new(&[("nightly", json!({}), false)]).await;
    let wire = Wire::new();
    wire.judge(|ask| match &*ask.resource {
        "namespaces" => Fate::Denied(403, "Forbidden", "namespaces is forbidden"),
        _ => Fate::Pass,
    });
    let client = client::on_service(wire.around(world.server.into_service()));
    let world = World { client, ..world };
    for direction in [Direction::Handover, Direction::Takeback] {
        let text = world.text(direction, &["nightly"], "", true).await;
        let unread = "Namespaces cannot be read, so freezes of them do not show: namespaces is forbidden";
        assert!(text.contains(unread), "{direction:?}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn annotations_of_another_value_are_removed_and_nothing_else_changes() {
    let world = World::new(&[
        ("runs", json!({MANAGED: "yes", "team": "shop"}), false),
        ("held", json!({MANAGED: "True", SUSPEND: "false"}), true),
    ])
    .await;
    for (name, suspend, annotations, said) in [
        ("runs", false, json!({"team": "shop"}), "it is not handed over."),
        ("held", true, json!({}), "it stays suspended."),
    ] {
        let text = world.text(Direction::Takeback, &[name], "", false).await;
        let freed = "is freed of cronjob-controller.dev/managed and cronjob-controller.dev/suspend; ";
        assert!(text.contains(&format!("{freed}{said}")) && !text.contains("starts Job"), "{name}: {text}");
        assert_eq!(world.standing(name).await, (suspend, annotations), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn those_that_are_named_or_selected_move_and_no_others() {
    let all: Vec<(&str, Value, bool)> = ["a", "b", "c"].map(|name| (name, json!({}), false)).into();
    let world = World::new(&all).await;
    let moved = async || {
        let mut moved = String::new();
        for name in ["a", "b", "c"] {
            moved.push_str(if world.standing(name).await.0 { name } else { "" });
        }
        moved
    };
    let text = world.text(Direction::Handover, &[], "name in (a,b)", false).await;
    assert!(text.starts_with("2 CronJobs handed over.\n  CronJob default/a is handed over"), "{text}");
    let nothing_runs = "Nothing runs what is handed over until a controller with --manage=annotated runs: cronjob-controller has no \
                        Lease.\n";
    assert!(text.ends_with(nothing_runs), "{text}");
    assert_eq!(moved().await, "ab");
    world.text(Direction::Takeback, &["b"], "", false).await;
    assert_eq!(moved().await, "a");
    let error = world.try_move(Direction::Takeback, &["a", "x"], "", false).await.unwrap_err().to_string();
    assert!(error.starts_with("there is no CronJob x in namespace default"), "{error}");
    assert_eq!(moved().await, "a", "nothing is done where a name is unknown");
    let text = world.text(Direction::Takeback, &[], "", false).await;
    assert!(text.starts_with("1 CronJob taken back. Nothing changes for 2 CronJobs.\n"), "{text}");
    assert_eq!(moved().await, "");
}

#[tokio::test(start_paused = true)]
async fn taking_back_removes_the_time_of_the_next_run() {
    const NEXT: &str = "cronjob-controller.dev/next-run";
    let published = json!({MANAGED: "true", NEXT: "2026-11-19T02:00:00Z", "team": "shop"});
    let world = World::new(&[("a", published, true), ("b", json!({MANAGED: "true"}), true)]).await;
    world.text(Direction::Takeback, &[], "", false).await;
    for (name, want) in [("a", json!({"team": "shop"})), ("b", Value::Null)] {
        let text = read_text(&world.client, &format!("{CRON_JOBS}/{name}")).await.unwrap();
        let object: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(object["metadata"]["annotations"], want, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn taking_back_says_which_old_slot_starts() {
    let excluded = json!({MANAGED: "true", "cronjob-controller.dev/exclude": "Fri"});
    let world = World::new(&[("a", excluded, true)]).await;
    let text = world.text(Direction::Takeback, &["a"], "", true).await;
    let starts = "\n    Under the in-tree controller, CronJob default/a would start Job a-";
    assert!(text.contains(starts) && text.contains("cronjob-controller.dev/exclude leaves this slot out."), "{text}");
    let text = world.text(Direction::Handover, &["a"], "", true).await;
    assert!(!text.contains("would start"), "{text}");
}

/// Each has been due for an hour: what takes it over starts it, whichever controller that is, once it runs.
#[tokio::test(start_paused = true)]
async fn what_starts_at_once_is_said_either_way() {
    let world = World::new(&[
        ("runs", json!({}), false),
        ("held", json!({}), true),
        ("over", json!({MANAGED: "true"}), true),
        ("over-held", json!({MANAGED: "true", SUSPEND: "true"}), true),
    ])
    .await;
    let rows = [
        (
            Direction::Handover,
            "runs",
            "\n    cronjob-controller starts Job runs-29919000 of Fri 2026-11-20 02:00:00 +00:00 {here}.",
        ),
        (Direction::Handover, "held", ""),
        (
            Direction::Takeback,
            "over",
            "\n    The in-tree controller starts Job over-29919000 of Fri 2026-11-20 02:00:00 +00:00, 1h00m late{there}: no controller has",
        ),
        (Direction::Takeback, "over-held", ""),
    ];
    // Whether nothing is written, and how many minutes ago the Leases were renewed.
    for (dry_run, minutes) in [(true, None), (true, Some(0)), (true, Some(10)), (false, Some(0))] {
        for lease in minutes.iter().flat_map(|_| ["cronjob-controller", "kube-controller-manager"]) {
            let renewed = world.now() - TimeDelta::minutes(minutes.unwrap_or_default());
            let spec = json!({
                "holderIdentity": "pod-a", "leaseDurationSeconds": 15, "renewTime": renewed.format("%FT%T%.6fZ").to_string(),
            });
            let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
            let object = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": lease}, "spec": spec});
            if try_patch(&world.client, &format!("{path}/{lease}"), &json!({"spec": spec})).await.is_err() {
                post(&world.client, path, &object).await;
            }
        }
        for (direction, name, said) in rows {
            let text = world.text(direction, &[name], "", dry_run).await;
            assert_eq!(text.contains(" starts Job"), !said.is_empty(), "{name}: {text}");
            let [here, there] =
                if minutes == Some(0) { ["at once", ""] } else { ["as soon as it runs", ", as soon as it runs"] };
            let said = said.replace("{here}", here).replace("{there}", there);
            assert!(text.contains(&said), "{name}, Leases of {minutes:?}: {text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn cron_job_that_changed_meanwhile_is_judged_again() {
    let world = World::new(&[("a", json!({}), false)]).await;
    let read = read_text(&world.client, &format!("{CRON_JOBS}/a")).await.unwrap();
    let flags = ControllerFlags::default();
    let seen =
        super::super::read::seen([&*read].into_iter(), &[], &flags, &crate::cli::restrictions::Restrictions::default())
            .0
            .remove(0);
    assert_eq!(seen.standing(), Standing::default());
    try_patch(&world.client, &format!("{CRON_JOBS}/a"), &json!({"spec": {"suspend": true}})).await.unwrap();
    let direction = Direction::Handover;
    let changed = super::super::handover::change(
        &world.client,
        seen,
        (direction, false),
        super::super::handover::Next { others: InCharge::InTree, leads: true },
        &flags,
        world.clock.now(),
    )
    .await;
    let json = serde_json::to_value(&changed).unwrap();
    assert_eq!((&json["outcome"], &json["suspended"]), (&json!("changed"), &json!(true)), "{json}");
    assert_eq!(world.standing("a").await, (true, json!({MANAGED: "true", SUSPEND: "true"})), "it stays suspended");
}

/// When the Lease was acquired, when the status was written, by which manager; and whether the controller has `--manage=all`.
type Evidence<'a> = (&'a str, Option<&'a str>, Option<(&'a str, &'a str)>, bool);

#[tokio::test(start_paused = true)]
async fn controller_of_all_is_handed_nothing_that_it_would_not_run() {
    const OWN: &str = "cronjob-controller";
    let rows: [Evidence<'_>; 6] = [
        ("it has written a status", Some("2026-11-19T12:00:00Z"), Some((OWN, "2026-11-19T14:00:00Z")), true),
        ("another process has", Some("2026-11-20T02:59:00Z"), Some((OWN, "2026-11-20T02:58:00Z")), false),
        ("long ago, and no lease says by which process", None, Some((OWN, "2026-11-19T14:00:00Z")), false),
        ("lately, and no lease says by which process", None, Some((OWN, "2026-11-20T02:30:00Z")), true),
        (
            "the in-tree controller has",
            Some("2026-11-19T12:00:00Z"),
            Some(("kube-controller-manager", "2026-11-19T14:00:00Z")),
            false,
        ),
        ("none has", Some("2026-11-19T12:00:00Z"), None, false),
    ];
    for (sentence, acquired, written, manages_all) in rows {
        // `over` is handed over, and runs nowhere if the controller has --manage=all.
        let other = |name| (name, json!({}), false);
        let world = World::new(&[other("ran"), other("new"), ("over", json!({MANAGED: "true"}), true)]).await;
        let now = world.clock.now();
        if let Some((manager, time)) = written {
            world.clock.step(instant(time) - now);
            let path = format!("{CRON_JOBS}/ran/status?fieldManager={manager}");
            let status = json!({"status": {"lastScheduleTime": "2026-11-19T02:00:00Z"}});
            try_patch(&world.client, &path, &status).await.unwrap();
            world.clock.step(now - world.clock.now());
        }
        if let Some(acquired) = acquired {
            let micros = |time: &str| time.replace('Z', ".000000Z");
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": OWN},
                "spec": {
                    "holderIdentity": "pod-a", "leaseDurationSeconds": 15, "acquireTime": micros(acquired),
                    "renewTime": micros("2026-11-20T02:59:59Z"),
                },
            });
            post(&world.client, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", &lease).await;
        }
        for dry_run in [true, false] {
            for (names, selector) in [(&["new"] as &[&str], ""), (&[], "name=new")] {
                let answer = world.try_move(Direction::Handover, names, selector, dry_run).await;
                let said = answer.err().map(|error| error.to_string()).unwrap_or_default();
                let why = "hand CronJobs over: cronjob-controller runs with --manage=all, since it wrote the status of CronJob \
                           default/ran ";
                assert_eq!(said.starts_with(why), manages_all, "{sentence}: {said}");
                assert_eq!(said.is_empty(), !manages_all, "{sentence}: {said}");
            }
        }
        assert_eq!(world.standing("new").await.0, !manages_all, "{sentence}");
        let text = world.text(Direction::Takeback, &["over"], "", false).await;
        let whose = if manages_all { OWN } else { "the in-tree controller" };
        assert!(text.contains(&format!("CronJob default/over is taken back: {whose} runs it.")), "{sentence}: {text}");
    }
}

/// An instance of `bank` manages all there, and one of `default` what is handed over.
#[tokio::test(start_paused = true)]
async fn each_namespace_moves_by_the_instance_that_works_there() {
    let world = World::new(&[("nightly", json!({}), false), ("over", json!({MANAGED: "true"}), true)]).await;
    let bank = "/apis/batch/v1/namespaces/bank/cronjobs";
    post(
        &world.client,
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bank"}}),
    )
    .await;
    for name in ["nightly", "over"] {
        let mut object = world.get(name).await;
        object["metadata"] = json!({"name": name, "annotations": object["metadata"]["annotations"]});
        post(&world.client, bank, &object).await;
    }
    for (namespace, manage) in [("bank", Manage::All), ("default", Manage::Annotated)] {
        let annotations = Coverage::new(["cronjob"], &[namespace.to_owned()]).managing(manage).annotations();
        let renewed = world.now().format("%FT%T%.6fZ").to_string();
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": namespace, "annotations": annotations},
            "spec": {"holderIdentity": "pod-a", "leaseDurationSeconds": 15, "renewTime": renewed},
        });
        post(&world.client, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", &lease).await;
    }
    let refused = "CronJob bank/nightly is not handed over: cronjob-controller runs with --manage=all, as its Lease kube-system/bank \
                   says: no controller would run what is handed over.";
    let rows = [
        (Direction::Handover, true, refused, "CronJob default/nightly would be handed over: a controller with"),
        (Direction::Handover, false, refused, "CronJob default/nightly is handed over: a controller with"),
        (
            Direction::Takeback,
            true,
            "CronJob bank/over would be taken back: cronjob-controller runs it.",
            "CronJob default/over would be taken back: the in-tree controller runs it.",
        ),
    ];
    for (direction, dry_run, of_bank, of_default) in rows {
        let request = Request { direction, which: Selection::default(), dry_run };
        let flags = ControllerFlags::default();
        let answer = hand_over_with(&world.client, None, &request, &flags, world.now()).await.unwrap();
        let text = render(&answer, Format::Table).to_string();
        assert!(text.contains(of_bank) && text.contains(of_default), "{direction:?}: {text}");
        assert_eq!(answer.is_good(), direction == Direction::Takeback, "{direction:?}: its exit code");
        let path = format!("{bank}/nightly");
        let object: Value = serde_json::from_str(&read_text(&world.client, &path).await.unwrap()).unwrap();
        assert_eq!(object["spec"]["suspend"], false, "{direction:?}: {path}");
    }
    let request = Request { direction: Direction::Handover, which: Selection::default(), dry_run: false };
    let flags = ControllerFlags::default();
    let error =
        hand_over_with(&world.client, Some("bank"), &request, &flags, world.now()).await.unwrap_err().to_string();
    assert!(error.starts_with("hand CronJobs over: cronjob-controller runs with --manage=all"), "{error}");
}
