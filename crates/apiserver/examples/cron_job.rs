//! Creates a CronJob on an API server in this process, and watches it, with an ordinary client.

use std::error::Error;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::batch::v1::CronJob;
use kube::api::{Api, PostParams, WatchEvent, WatchParams};
use memory_apiserver::ApiServer;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = ApiServer::default();
    let cron_jobs: Api<CronJob> = Api::default_namespaced(server.client());

    let container = json!({"name": "hello", "image": "busybox"});
    let template = json!({"spec": {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}});
    let cron_job = json!({"metadata": {"name": "hello"}, "spec": {"schedule": "* * * * *", "jobTemplate": template}});
    cron_jobs.create(&PostParams::default(), &serde_json::from_value(cron_job)?).await?;

    let mut events = cron_jobs.watch(&WatchParams::default(), "0").await?.boxed();
    if let Some(WatchEvent::Added(cron_job)) = events.try_next().await? {
        let name = cron_job.metadata.name.unwrap_or_default();
        println!("{name}: {}", serde_json::to_string_pretty(&cron_job.spec)?);
    }
    Ok(())
}

#[test]
fn a_cron_job_is_created_and_watched() -> Result<(), Box<dyn Error>> {
    main()
}
