//! `migrate handover` and `migrate takeback` on the embedded API server.

use apimachinery::clock::{Clock as _, TestClock};
use apiserver::{ApiServer, Config};
use kube::Client;

use super::super::handover::{Direction, Handovers, Request, hand_over_with};
use super::*;
use crate::api::manage::Standing;
use crate::cli::CliError;
use crate::cli::cluster::{read_text, try_patch};
use crate::cli::explain::tests::post;

const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";
const MANAGED: &str = "cronjob-controller.dev/managed";
const SUSPEND: &str = "cronjob-controller.dev/suspend";

struct World {
    client: Client,
    clock: Arc<TestClock>,
}

impl World {
    /// A day after the last run of each of these CronJobs: name, annotations, `spec.suspend`.
    async fn new(cron_jobs: &[(&str, Value, bool)]) -> Self {
        let clock = TestClock::new(instant("2026-11-19T03:00:00Z"));
        let client = ApiServer::new(Config::builtin(clock.clone())).client();
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
        Self { client, clock }
    }

    async fn try_move(
        &self,
        direction: Direction,
        names: &[&str],
        selector: &str,
        dry_run: bool,
    ) -> Result<Handovers, CliError> {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let request = Request { direction, names, selector: selector.to_owned(), dry_run };
        hand_over_with(&self.client, Some("default"), &request, &ControllerFlags::default(), self.clock.now()).await
    }

    async fn text(&self, direction: Direction, names: &[&str], selector: &str, dry_run: bool) -> String {
        render(&self.try_move(direction, names, selector, dry_run).await.unwrap(), Format::Table).to_string()
    }

    async fn get(&self, name: &str) -> Value {
        serde_json::from_str(&read_text(&self.client, &format!("{CRON_JOBS}/{name}")).await.unwrap()).unwrap()
    }

    /// `spec.suspend` and the annotations.
    async fn standing(&self, name: &str) -> (bool, Value) {
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
            "is handed over: a controller with",
            "is taken back: the in-tree",
        ),
        ("reverted", (false, held()), (true, managed()), (false, json!({})), "is handed over: a", "is taken back: the"),
        (
            "held",
            (true, held()),
            (true, held()),
            (true, json!({})),
            "is handed over already, and suspended",
            "is taken back, and stays",
        ),
    ];
    for (name, first, over, back, said_over, said_back) in rows {
        let world = World::new(&[(name, first.1.clone(), first.0)]).await;
        for (direction, want, said) in [(Direction::Handover, over, said_over), (Direction::Takeback, back, said_back)]
        {
            let before = world.standing(name).await;
            let text = world.text(direction, &[name], "", true).await;
            assert!(text.contains("would be"), "{name}: {text}");
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
async fn taking_back_says_which_old_slot_starts() {
    let excluded = json!({MANAGED: "true", "cronjob-controller.dev/exclude": "Fri"});
    let world = World::new(&[("a", excluded, true)]).await;
    let text = world.text(Direction::Takeback, &["a"], "", true).await;
    let starts = "\n    Under the in-tree controller, CronJob default/a would start Job a-";
    assert!(text.contains(starts) && text.contains("cronjob-controller.dev/exclude leaves this slot out."), "{text}");
    let text = world.text(Direction::Handover, &["a"], "", true).await;
    assert!(!text.contains("would start"), "{text}");
}

/// Each has been due for an hour: what takes it over starts it, whichever controller that is.
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
            "\n    cronjob-controller starts Job runs-29919000 of Fri 2026-11-20 02:00:00 +00:00 at once.",
        ),
        (Direction::Handover, "held", ""),
        (
            Direction::Takeback,
            "over",
            "\n    The in-tree controller starts Job over-29919000 of Fri 2026-11-20 02:00:00 +00:00, 1h00m late: no controller has",
        ),
        (Direction::Takeback, "over-held", ""),
    ];
    for (direction, name, said) in rows {
        for dry_run in [true, false] {
            let text = world.text(direction, &[name], "", dry_run).await;
            assert_eq!(text.contains(" starts Job"), !said.is_empty(), "{name}: {text}");
            assert!(text.contains(said), "{name}: {text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn cron_job_that_changed_meanwhile_is_judged_again() {
    let world = World::new(&[("a", json!({}), false)]).await;
    let read = read_text(&world.client, &format!("{CRON_JOBS}/a")).await.unwrap();
    let flags = ControllerFlags::default();
    let seen = super::super::read::seen([&*read].into_iter(), &[], &flags).0.remove(0);
    assert_eq!(seen.standing(), Standing::default());
    try_patch(&world.client, &format!("{CRON_JOBS}/a"), &json!({"spec": {"suspend": true}})).await.unwrap();
    let direction = Direction::Handover;
    let changed =
        super::super::handover::change(&world.client, seen, direction, false, &flags, world.clock.now()).await;
    let json = serde_json::to_value(&changed).unwrap();
    assert_eq!((&json["outcome"], &json["suspended"]), (&json!("changed"), &json!(true)), "{json}");
    assert_eq!(world.standing("a").await, (true, json!({MANAGED: "true", SUSPEND: "true"})), "it stays suspended");
}
