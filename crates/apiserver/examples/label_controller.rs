//! A controller of another kind, written with kube-runtime, and its test: it keeps a ConfigMap `team` in each namespace that has
//! the label `team`. `cargo run -p memory-apiserver --example label_controller` runs the test's steps; `cargo test` does, too.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use kube_runtime::controller::{Action, Controller};
use kube_runtime::wait::await_condition;
use kube_runtime::watcher;
use memory_apiserver::ApiServer;
use serde_json::json;

// The controller. Nothing in it knows of the test.

async fn reconcile(namespace: Arc<Namespace>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let (Some(team), None) = (namespace.labels().get("team"), namespace.meta().deletion_timestamp.as_ref()) else {
        return Ok(Action::await_change());
    };
    let config_map = ConfigMap {
        metadata: ObjectMeta {
            name: Some("team".to_owned()),
            owner_references: namespace.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("team".to_owned(), team.clone())])),
        ..ConfigMap::default()
    };
    let config_maps: Api<ConfigMap> = Api::namespaced(client.as_ref().clone(), &namespace.name_any());
    let params = PatchParams::apply("label-controller").force();
    config_maps.patch("team", &params, &Patch::Apply(&config_map)).await?;
    Ok(Action::await_change())
}

async fn run(client: Client) {
    let again = |_, _: &kube::Error, _| Action::requeue(Duration::from_secs(1));
    Controller::<Namespace>::new(Api::all(client.clone()), watcher::Config::default())
        .owns(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
        .run(reconcile, again, Arc::new(client))
        .for_each(|_| async {})
        .await;
}

// Its test.

async fn has_team(config_maps: &Api<ConfigMap>, team: Option<&str>) -> Result<(), Box<dyn Error>> {
    let seen = |config_map: Option<&ConfigMap>| {
        config_map.and_then(|config_map| config_map.data.as_ref()?.get("team")).map(String::as_str) == team
    };
    let seen = await_condition(config_maps.clone(), "team", seen);
    tokio::time::timeout(Duration::from_secs(30), seen).await??;
    Ok(())
}

async fn team_of_a_namespace_follows_its_label() -> Result<(), Box<dyn Error>> {
    let server = ApiServer::default();
    let client = server.client();
    let controller = tokio::spawn(run(client.clone()));
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let config_maps: Api<ConfigMap> = Api::namespaced(client, "shop");

    let shop = serde_json::from_value(json!({"metadata": {"name": "shop", "labels": {"team": "blue"}}}))?;
    namespaces.create(&PostParams::default(), &shop).await?;
    has_team(&config_maps, Some("blue")).await?;

    let labels = json!({"metadata": {"labels": {"team": "green"}}});
    namespaces.patch("shop", &PatchParams::default(), &Patch::Merge(labels)).await?;
    has_team(&config_maps, Some("green")).await?;

    // What the controller owns comes back.
    let uid = config_maps.get("team").await?.metadata.uid;
    config_maps.delete("team", &DeleteParams::default()).await?;
    has_team(&config_maps, Some("green")).await?;
    assert_ne!(config_maps.get("team").await?.metadata.uid, uid);

    // With the namespace goes what is in it.
    namespaces.delete("shop", &DeleteParams::default()).await?;
    has_team(&config_maps, None).await?;
    assert!(!controller.is_finished());
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    team_of_a_namespace_follows_its_label().await?;
    println!("the ConfigMap followed the label, came back when it was deleted, and went with its namespace");
    Ok(())
}

#[test]
fn the_controller_does_what_it_should() -> Result<(), Box<dyn Error>> {
    main()
}
