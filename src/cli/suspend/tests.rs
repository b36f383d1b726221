#![allow(clippy::unwrap_used)]

use apimachinery::clock::TestClock;
use apiserver::{ApiServer, Config};
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::*;
use crate::api::ControllerKind;
use crate::cli::explain::tests::{instant, post};
use crate::cli::trigger::trigger_with;

const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";

struct World {
    client: Client,
    clock: std::sync::Arc<TestClock>,
}

impl World {
    /// A cluster with the CronJob `nightly`, and `moved`, which is handed over.
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
        post(&client, CRON_JOBS, &object("moved", true, json!({"cronjob-controller.dev/managed": "true"}))).await;
        Self { client, clock }
    }

    async fn get(&self, path: &str) -> Value {
        serde_json::from_str(&cluster::read_text(&self.client, path).await.unwrap()).unwrap()
    }

    async fn set(&self, name: &str, suspend: bool) -> String {
        let target = Target {
            controller_kind: ControllerKind::CronJob,
            namespace: None,
            name: name.to_owned(),
            kubeconfig: None,
            context: None,
        };
        let now = apimachinery::clock::Clock::now(&*self.clock);
        set_suspended_with(&self.client, &target, "default", suspend, &ControllerFlags::default(), now)
            .await
            .unwrap()
            .text
            .to_string()
    }
}

#[tokio::test(start_paused = true)]
async fn suspended_cron_job_is_resumed_with_what_was_missed() {
    let world = World::new().await;
    let of = async |name: &str| world.get(&format!("{CRON_JOBS}/{name}")).await;
    assert_eq!(world.set("nightly", false).await, "CronJob default/nightly is not suspended.\n");
    assert_eq!(world.set("nightly", true).await, "CronJob default/nightly is suspended: no further run starts.\n");
    assert_eq!(of("nightly").await["spec"]["suspend"], true);
    assert_eq!(world.set("nightly", true).await, "CronJob default/nightly is suspended already.\n");
    assert_eq!(
        world.set("nightly", false).await,
        "CronJob default/nightly is resumed: it runs at Fri 2026-11-20 02:00:00 +00:00.\n"
    );
    world.set("nightly", true).await;
    world.clock.step(TimeDelta::days(3));
    assert_eq!(
        world.set("nightly", false).await,
        "CronJob default/nightly is resumed: the missed run of Sun 2026-11-22 02:00:00 +00:00 starts at once. 2 missed runs \
         are passed over.\n"
    );
    assert_eq!(of("nightly").await["spec"]["suspend"], false);
}

#[tokio::test(start_paused = true)]
async fn handed_over_cron_job_is_suspended_by_its_annotation() {
    let world = World::new().await;
    let path = format!("{CRON_JOBS}/moved");
    world.set("moved", true).await;
    let object = world.get(&path).await;
    assert_eq!(object["spec"]["suspend"], true);
    assert_eq!(object["metadata"]["annotations"]["cronjob-controller.dev/suspend"], "true");
    world.set("moved", false).await;
    let object = world.get(&path).await;
    assert_eq!(object["spec"]["suspend"], true, "else the in-tree controller would start its Jobs, too");
    assert_eq!(object["metadata"]["annotations"], json!({"cronjob-controller.dev/managed": "true"}));
}

#[tokio::test(start_paused = true)]
async fn triggered_job_is_the_one_that_kubectl_creates() {
    let world = World::new().await;
    let trigger = async |name: &str, job: &str| {
        trigger_with(&world.client, ControllerKind::CronJob, "default", name, job.to_owned()).await
    };
    let answer = trigger("nightly", "once").await.unwrap();
    assert_eq!(&*answer.text, "Job default/once was created.\nkubectl logs -n default -f job/once prints its log.\n");
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
    assert!(error.contains("cronjobs.batch \"weekly\" not found"), "{error}");
}
