#![allow(clippy::unwrap_used)]

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, Config, merge_patch};
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::*;
use crate::api::ControllerKind;
use crate::cli::explain::lease::Leases;
use crate::cli::explain::tests::{facts, instant, lease, post};
use crate::cli::trigger::{Outlet, Request, trigger_with};
use crate::leader_election::Coverage;

const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";

struct World {
    client: Client,
    clock: std::sync::Arc<TestClock>,
}

impl World {
    /// A cluster with the CronJob `nightly`, `moved`, which is handed over, and `reverted`, which is
    /// annotated and runs in-tree.
    async fn new() -> Self {
        let clock = TestClock::new(instant("2026-11-19T03:00:00Z"));
        let client = ApiServer::new(Config::builtin(clock.clone())).client();
        let template = json!({
            "metadata": {"labels": {"app": "report"}, "annotations": {"team": "shop"}},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
        });
        let object = |name: &str, suspend: bool, annotations: Value| {
            json!({
                "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name, "annotations": annotations},
                "spec": {
                    "schedule": "0 2 * * *", "timeZone": "UTC", "suspend": suspend, "concurrencyPolicy": "Forbid",
                    "jobTemplate": template,
                },
                "status": {"lastScheduleTime": "2026-11-19T02:00:00Z"},
            })
        };
        post(&client, CRON_JOBS, &object("nightly", false, json!({}))).await;
        post(&client, CRON_JOBS, &object("reverted", false, json!({"cronjob-controller.dev/managed": "true"}))).await;
        post(&client, CRON_JOBS, &object("moved", true, json!({"cronjob-controller.dev/managed": "true"}))).await;
        Self { client, clock }
    }

    async fn get(&self, path: &str) -> Value {
        serde_json::from_str(&cluster::read_text(&self.client, path).await.unwrap()).unwrap()
    }

    async fn trigger(&self, name: &str, job: &str) -> Result<Answer, CliError> {
        let request = Request { name: Some(job.to_owned()), ..Request::default() };
        let mut outlet = Outlet { print: &mut |_| true, note: &mut |_| {} };
        trigger_with(&self.client, ControllerKind::CronJob, ("default", name), &request, &*self.clock, &mut outlet)
            .await
    }

    /// What is said after the controller. There is no Lease, which each resume says.
    async fn set(&self, name: &str, suspend: bool) -> String {
        let (_, rest) = self.set_and_say_who(name, suspend).await;
        let leaderless = " No Lease shows that a controller runs.\n";
        assert!(
            !rest.contains(" is resumed") || rest.contains(" is resumed. ") || rest.ends_with(leaderless),
            "{rest}"
        );
        rest.replace(leaderless, "\n")
    }

    async fn set_and_say_who(&self, name: &str, suspend: bool) -> (String, String) {
        let target = Target {
            controller_kind: ControllerKind::CronJob,
            namespace: None,
            name: name.to_owned(),
            kubeconfig: None,
            context: None,
        };
        let now = apimachinery::clock::Clock::now(&*self.clock);
        let flags = ControllerFlags::default();
        let answer = set_suspended_with(&self.client, &target, "default", suspend, &flags, now).await.unwrap();
        let (who, rest) = answer.text.split_once('\n').unwrap();
        (who.to_owned(), rest.to_owned())
    }
}

/// Its status tells that this controller runs it, although it is annotated and spec.suspend is false: with `--manage=all`.
#[tokio::test(start_paused = true)]
async fn annotated_cron_job_that_a_controller_of_all_runs_is_not_handed_over_to_nobody() {
    let world = World::new().await;
    world.clock.step(TimeDelta::days(1));
    let path = format!("{CRON_JOBS}/reverted");
    let status = json!({"status": {"lastScheduleTime": "2026-11-20T02:00:00Z"}});
    cluster::try_patch(&world.client, &format!("{path}/status?fieldManager=cronjob-controller"), &status)
        .await
        .unwrap();
    let before = world.get(&path).await;
    let text = world.set("reverted", true).await;
    assert!(text.contains("is not changed: a controller with --manage=all runs it"), "{text}");
    assert_eq!(world.get(&path).await, before);
}

/// It was edited since the last write of its status, and kube-controller-manager holds its Lease whether or not its CronJob controller is
/// on.
#[tokio::test(start_paused = true)]
async fn annotated_cron_job_is_not_suspended_where_no_controller_would_run_what_is_handed_over() {
    let all = Some(Manage::All);
    // (a sentence, the `--manage` on the Lease, who wrote the status after the edit, why it is not suspended)
    let rows = [
        ("nothing says who runs it", all, None, Some("cronjob-controller runs with --manage=all")),
        (
            "the in-tree controller does",
            all,
            Some("kube-controller-manager"),
            Some("cronjob-controller runs with --manage=all"),
        ),
        ("this one does", all, Some("cronjob-controller"), Some("a controller with --manage=all runs it")),
        ("this one runs what is handed over", Some(Manage::Annotated), None, None),
        ("the same, and in-tree ran it", Some(Manage::Annotated), Some("kube-controller-manager"), None),
    ];
    for (sentence, manage, wrote, why) in rows {
        let world = World::new().await;
        world.clock.step(TimeDelta::days(1));
        let now = apimachinery::clock::Clock::now(&*world.clock);
        let coverage = Coverage::new(["cronjob"], &[]);
        let annotations = manage.map_or(coverage.clone(), |manage| coverage.managing(manage)).annotations();
        let spec = json!({
            "holderIdentity": "pod-a", "leaseDurationSeconds": 15, "renewTime": now.format("%FT%T%.6fZ").to_string(),
        });
        for (name, annotations) in [("cronjob-controller", json!(annotations)), ("kube-controller-manager", json!({}))]
        {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": name, "annotations": annotations}, "spec": spec,
            });
            post(&world.client, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", &lease).await;
        }
        let path = format!("{CRON_JOBS}/reverted");
        if let Some(manager) = wrote {
            let status = json!({"status": {"lastScheduleTime": "2026-11-20T02:00:00Z"}});
            cluster::try_patch(&world.client, &format!("{path}/status?fieldManager={manager}"), &status).await.unwrap();
        }
        let before = world.get(&path).await;
        let resumed = world.set_and_say_who("reverted", false).await.1;
        assert_eq!(resumed.contains("so the in-tree controller runs it"), why.is_none(), "{sentence}: {resumed}");
        assert_eq!(world.get(&path).await, before, "{sentence}: it is not suspended");
        let (_, text) = world.set_and_say_who("reverted", true).await;
        assert_eq!(world.get(&path).await == before, why.is_some(), "{sentence}: {text}");
        let want = why.map_or("is suspended by cronjob-controller.dev/suspend".to_owned(), |why| {
            format!("is not changed: {why}")
        });
        assert!(text.contains(&want), "{sentence}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_holds_a_resumed_cron_job_is_said() {
    let world = World::new().await;
    let held = |name: &str, annotations: Value, spec: Value| {
        let template = json!({"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}}});
        let mut object = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name, "annotations": annotations},
            "spec": {"schedule": "0 2 * * *", "timeZone": "UTC", "suspend": true, "jobTemplate": template},
        });
        merge_patch(&mut object["spec"], &spec);
        object
    };
    let broken = held("broken", json!({"cronjob-controller.dev/exclude": "nonsense"}), json!({}));
    let never = held("never", json!({}), json!({"startingDeadlineSeconds": 0}));
    for (object, said) in [(broken, "is resumed. It does not run: "), (never, "is resumed. It never runs: ")] {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        post(&world.client, CRON_JOBS, &object).await;
        let text = world.set(&name, false).await;
        assert!(text.contains(said), "{name}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn suspended_cron_job_is_resumed_with_what_was_missed() {
    let world = World::new().await;
    let of = async |name: &str| world.get(&format!("{CRON_JOBS}/{name}")).await;
    assert_eq!(world.set("nightly", false).await, "CronJob default/nightly is not suspended.\n");
    assert_eq!(
        world.set("nightly", true).await,
        "CronJob default/nightly is suspended by spec.suspend: no further run starts.\n"
    );
    assert_eq!(of("nightly").await["spec"]["suspend"], true);
    assert_eq!(world.set("nightly", true).await, "CronJob default/nightly is suspended already (spec.suspend).\n");
    assert_eq!(
        world.set("nightly", false).await,
        "CronJob default/nightly is resumed: it runs at Fri 2026-11-20 02:00:00 +00:00.\n"
    );
    world.set("nightly", true).await;
    world.clock.step(TimeDelta::days(3));
    assert_eq!(
        world.set("nightly", false).await,
        "CronJob default/nightly is resumed: the run of Sun 2026-11-22 02:00:00 +00:00, suspended until now, starts as soon as a \
         controller runs. 2 suspended runs are passed over.\n"
    );
    assert_eq!(of("nightly").await["spec"]["suspend"], false);
}

#[test]
fn resumption_says_whether_a_controller_runs_that_starts_the_run() {
    let (now, old) = ("2026-11-22T09:59:59.000000Z", "2026-11-22T08:00:00.000000Z");
    let [at_once, later] = ["at once", "as soon as a controller runs"];
    let gone = " No run starts until a controller is running: pod-a, which holds the lease kube-system/cronjob-controller, last renewed \
                it 2h00m ago: no controller is running.";
    // (a sentence, when the Lease was renewed, whether Leases are read, when the run starts, what is said of the controller)
    let rows = [
        ("it runs", Some(now), true, at_once, ""),
        ("its Lease has expired", Some(old), true, later, gone),
        ("there is no Lease", None, true, later, " No Lease shows that a controller runs."),
        ("Leases cannot be read", None, false, at_once, ""),
    ];
    for (sentence, renewed, are_read, when, rest) in rows {
        let leases: Vec<_> = renewed.map(|renewed| lease("cronjob-controller", "pod-a", renewed)).into_iter().collect();
        let lease = Leases::of(&leases).controller(ControllerKind::CronJob, "shop", false);
        let leases_unread = (!are_read).then(|| "forbidden".to_owned());
        for (last, then) in [
            (21, format!("the run of Sun 2026-11-22 02:00:00 +00:00, suspended until now, starts {when}")),
            (22, "it runs at Mon 2026-11-23 02:00:00 +00:00".to_owned()),
        ] {
            let change =
                json!({"spec": {"suspend": true}, "status": {"lastScheduleTime": format!("2026-11-{last}T02:00:00Z")}});
            let facts = Facts { lease: lease.clone(), leases_unread: leases_unread.clone(), ..facts(&change, vec![]) };
            let text = resumption(&facts, Zone::UTC, instant("2026-11-22T10:00:00Z"));
            assert_eq!(text, format!("is resumed: {then}.{rest}"), "{sentence}");
        }
    }
}

#[test]
fn resumption_where_no_instance_works_starts_nothing_at_once() {
    let leases = [lease("kube-controller-manager", "kcm", "2026-11-22T09:59:59.000000Z")];
    let lease = Leases::of(&leases).in_tree();
    let change = json!({"spec": {"suspend": true}, "status": {"lastScheduleTime": "2026-11-21T02:00:00Z"}});
    let facts = Facts { lease, in_charge: InCharge::NoInstance, ..facts(&change, vec![]) };
    let text = resumption(&facts, Zone::UTC, instant("2026-11-22T10:00:00Z"));
    let want = "is resumed: the run of Sun 2026-11-22 02:00:00 +00:00, suspended until now, starts as soon as a controller runs. No \
                instance of cronjob-controller works in its namespace.";
    assert_eq!(text, want);
}

#[tokio::test(start_paused = true)]
async fn handed_over_cron_job_is_suspended_by_its_annotation() {
    let world = World::new().await;
    let path = format!("{CRON_JOBS}/moved");
    let already = "CronJob default/moved is not suspended: it is handed over (cronjob-controller.dev/managed).\n";
    assert_eq!(world.set("moved", false).await, already);
    let text = "CronJob default/moved is suspended by cronjob-controller.dev/suspend, because it is handed over: no further run \
                starts.\n";
    assert_eq!(world.set("moved", true).await, text);
    let object = world.get(&path).await;
    assert_eq!(object["spec"]["suspend"], true);
    assert_eq!(object["metadata"]["annotations"]["cronjob-controller.dev/suspend"], "true");
    let text = "CronJob default/moved is resumed for the controller that it is handed over to: it runs at Fri 2026-11-20 \
                02:00:00 +00:00.\n";
    assert_eq!(world.set("moved", false).await, text);
    let object = world.get(&path).await;
    assert_eq!(object["spec"]["suspend"], true, "else the in-tree controller would start its Jobs, too");
    assert_eq!(object["metadata"]["annotations"], json!({"cronjob-controller.dev/managed": "true"}));
}

#[tokio::test(start_paused = true)]
async fn annotated_cron_job_whose_suspension_was_reverted_is_suspended_and_not_started() {
    let world = World::new().await;
    let path = format!("{CRON_JOBS}/reverted");
    let text = "CronJob default/reverted is not suspended: cronjob-controller.dev/managed is \"true\" and spec.suspend is false, so \
                the in-tree controller runs it. cronjob-controller migrate handover hands it over.\n";
    assert_eq!(world.set("reverted", false).await, text);
    let object = world.get(&path).await;
    assert_eq!(object["spec"]["suspend"], false, "nothing is changed");

    let text = world.set("reverted", true).await;
    let start = "CronJob default/reverted is suspended by cronjob-controller.dev/suspend: no further run starts. ";
    assert!(
        text.starts_with(start) && text.contains("the in-tree controller ran it; now it is handed over."),
        "{text}"
    );
    let object = world.get(&path).await;
    assert_eq!(object["spec"]["suspend"], true, "the in-tree controller starts nothing");
    assert_eq!(object["metadata"]["annotations"]["cronjob-controller.dev/suspend"], "true", "nor does this one");
    world.set("reverted", false).await;
    let object = world.get(&path).await;
    assert_eq!(object["spec"]["suspend"], true, "it stays handed over");
    assert_eq!(object["metadata"]["annotations"], json!({"cronjob-controller.dev/managed": "true"}));
}

#[tokio::test(start_paused = true)]
async fn standing_of_a_cron_job_that_has_changed_since_is_left_alone() {
    let world = World::new().await;
    let facts = read(&world.client, ControllerKind::CronJob, "default", "reverted", &ControllerFlags::default()).await;
    let facts = facts.unwrap();
    world.set("reverted", true).await;
    let before = facts.standing();
    let change = before.patch(before.taken_back());
    assert!(!cluster::patch_as_read(&world.client, &facts.cron_job, change, "take it back").await.unwrap());
    assert_eq!(world.get(&format!("{CRON_JOBS}/reverted")).await["spec"]["suspend"], true);
}

#[tokio::test(start_paused = true)]
async fn commands_say_first_which_controller_runs_the_cron_job() {
    let world = World::new().await;
    world.clock.step(TimeDelta::days(1));
    for (name, manager) in [("ran-here", "cronjob-controller"), ("ran-in-tree", "kube-controller-manager")] {
        let mut object = world.get(&format!("{CRON_JOBS}/nightly")).await;
        object["metadata"] = json!({"name": name});
        post(&world.client, CRON_JOBS, &object).await;
        world.clock.step(TimeDelta::days(1));
        let status = json!({"status": {"lastScheduleTime": "2026-11-20T02:00:00Z"}});
        let path = format!("{CRON_JOBS}/{name}/status?fieldManager={manager}");
        cluster::try_patch(&world.client, &path, &status).await.unwrap();
    }
    let rows = [
        ("nightly", "It is not known which controller runs it. What follows holds if cronjob-controller does."),
        ("moved", "It is handed over to cronjob-controller, and no lease shows that it runs."),
        (
            "reverted",
            "The in-tree controller runs it: cronjob-controller.dev/managed is \"true\", but spec.suspend is false.",
        ),
        ("ran-here", "cronjob-controller runs it."),
        ("ran-in-tree", "The in-tree controller runs it."),
    ];
    for (name, want) in rows {
        let answer = world.trigger(name, &format!("of-{name}")).await.unwrap();
        let want = format!("CronJob default/{name}: {want}");
        assert_eq!(answer.text.lines().next(), Some(&*want));
        assert_eq!(world.set_and_say_who(name, true).await.0, want);
    }
}

#[tokio::test(start_paused = true)]
async fn triggered_job_is_the_one_that_kubectl_creates() {
    let world = World::new().await;
    let trigger = async |name: &str, job: &str| world.trigger(name, job).await;
    let answer = trigger("nightly", "once").await.unwrap();
    let (_, rest) = answer.text.split_once('\n').unwrap();
    assert_eq!(rest, "Job default/once was created.\nkubectl logs -n default -f job/once prints its log.\n");
    let job = world.get("/apis/batch/v1/namespaces/default/jobs/once").await;
    let uid = &world.get(&format!("{CRON_JOBS}/nightly")).await["metadata"]["uid"];
    let metadata = &job["metadata"];
    assert_eq!(metadata["labels"]["app"], "report");
    assert_eq!(metadata["annotations"], json!({"cronjob.kubernetes.io/instantiate": "manual", "team": "shop"}));
    assert_eq!(
        metadata["ownerReferences"],
        json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": uid, "controller": true}])
    );
    assert_eq!(job["spec"]["template"]["spec"]["containers"][0]["image"], "i");
    let error = trigger("nightly", "once").await.unwrap_err().to_string();
    assert_eq!(error, "start a Job of CronJob default/nightly: jobs.batch \"once\" already exists");
    let error = trigger("weekly", "twice").await.unwrap_err().to_string();
    assert!(error.starts_with("there is no CronJob weekly in namespace default"), "{error}");
}
