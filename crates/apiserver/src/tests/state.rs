//! Journals, and Events that expire.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::support::{MERGE, Server};
use crate::{Changes, Journal, ObjectChange};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const EVENTS: &str = "/api/v1/namespaces/default/events";

/// A journal in memory: the state so far.
#[derive(Clone, Default)]
struct Memory {
    objects: Arc<Mutex<BTreeMap<(String, String), Bytes>>>,
    revision: Arc<Mutex<u64>>,
    is_broken: Arc<Mutex<bool>>,
}

impl Memory {
    fn of(server: &Server) -> Self {
        let memory = Self::default();
        let begin = |state: &Changes| -> Result<Box<dyn Journal>, io::Error> {
            memory.clone().append(state)?;
            Ok(Box::new(memory.clone()))
        };
        server.api.record(begin).unwrap();
        memory
    }

    fn state(&self) -> Changes {
        let objects = self.objects.lock().clone().into_iter().map(|((collection, key), json)| ObjectChange {
            collection,
            key,
            object: Some(json),
        });
        Changes { revision: *self.revision.lock(), objects: objects.collect() }
    }
}

impl Journal for Memory {
    fn append(&mut self, changes: &Changes) -> io::Result<()> {
        if *self.is_broken.lock() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        assert!(changes.revision > *self.revision.lock());
        *self.revision.lock() = changes.revision;
        for ObjectChange { collection, key, object } in changes.objects.clone() {
            match object {
                Some(json) => drop(self.objects.lock().insert((collection, key), json)),
                None => drop(self.objects.lock().remove(&(collection, key))),
            }
        }
        Ok(())
    }
}

fn config_map(name: &str, owner: Option<&Value>) -> Value {
    let owners: Vec<Value> = owner
        .map(|owner| {
            let metadata = &owner["metadata"];
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]})
        })
        .into_iter()
        .collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owners}})
}

#[tokio::test(start_paused = true)]
async fn journal_has_every_change_when_its_request_is_answered() {
    let server = Server::with_kinds().await;
    server.post(CONFIG_MAPS, &config_map("before", None)).await.expect(201);
    let memory = Memory::of(&server);
    let is_same = || assert_eq!(memory.state(), server.api.state());
    is_same();
    let owner = server.post(CONFIG_MAPS, &config_map("owner", None)).await.expect(201);
    is_same();
    server.post(CONFIG_MAPS, &config_map("owned", Some(&owner))).await.expect(201);
    server.patch(&format!("{CONFIG_MAPS}/before"), MERGE, &json!({"data": {"a": "b"}})).await.expect(200);
    is_same();
    server.delete(&format!("{CONFIG_MAPS}/owner")).await.expect(200);
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/owned")).await.code, 404);
    is_same();
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await.expect(201);
    server.post("/api/v1/namespaces/n/configmaps", &config_map("inside", None)).await.expect(201);
    server.delete("/api/v1/namespaces/n").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(server.get("/api/v1/namespaces/n").await.code, 404, "what is collected later is recorded, too");
    is_same();

    let other = Server::with_kinds().await;
    other.api.load(memory.state()).unwrap();
    assert_eq!(other.api.state(), server.api.state());
    let next = other.post(CONFIG_MAPS, &config_map("next", None)).await.expect(201);
    assert_eq!(next["metadata"]["resourceVersion"], (server.api.revision() + 1).to_string());
}

#[tokio::test(start_paused = true)]
async fn write_that_cannot_be_recorded_fails_and_is_recorded_later() {
    let server = Server::with_kinds().await;
    let memory = Memory::of(&server);
    *memory.is_broken.lock() = true;
    let refused = server.post(CONFIG_MAPS, &config_map("a", None)).await;
    assert_eq!(refused.code, 500);
    assert_eq!(refused.message(), "the change cannot be recorded: no storage space");
    assert_eq!(server.post(CONFIG_MAPS, &config_map("b", None)).await.code, 500, "and nothing more is changed");
    assert_eq!(server.get("/api/v1/namespaces/default").await.code, 200, "reads are answered");
    *memory.is_broken.lock() = false;
    server.post(CONFIG_MAPS, &config_map("c", None)).await.expect(201);
    assert_eq!(memory.state(), server.api.state());
    let names = ["a", "b", "c"]
        .map(|name| memory.objects.lock().contains_key(&("configmaps".to_owned(), format!("default/{name}"))));
    assert_eq!(names, [true, false, true]);
}

fn event(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "reason": "R",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    })
}

#[tokio::test(start_paused = true)]
async fn events_expire_an_hour_after_their_last_write() {
    let server = Server::with_kinds().await;
    for name in ["once", "twice"] {
        server.post(EVENTS, &event(name)).await.expect(201);
    }
    let from = server.api.revision();
    tokio::time::sleep(Duration::from_secs(1800)).await;
    server.patch(&format!("{EVENTS}/twice"), MERGE, &json!({"count": 2})).await.expect(200);
    let codes = async |server: &Server| {
        [server.get(&format!("{EVENTS}/once")).await.code, server.get(&format!("{EVENTS}/twice")).await.code]
    };
    tokio::time::sleep(Duration::from_secs(1799)).await;
    assert_eq!(codes(&server).await, [200, 200]);
    let saved = server.api.state();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(codes(&server).await, [404, 200]);
    let seen = server.watch(&format!("{EVENTS}?watch=1&resourceVersion={from}&timeoutSeconds=1")).await;
    let seen: Vec<_> = seen.iter().map(|event| (&event["type"], &event["object"]["metadata"]["name"])).collect();
    assert_eq!(seen, [(&json!("MODIFIED"), &json!("twice")), (&json!("DELETED"), &json!("once"))]);

    // A server that restores the state counts from the writes, too. Its clock starts when the events were made.
    let other = Server::with_kinds().await;
    other.api.load(saved).unwrap();
    tokio::time::sleep(Duration::from_secs(3599)).await;
    assert_eq!(codes(&other).await, [200, 200]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(codes(&other).await, [404, 200]);
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(codes(&other).await, [404, 404]);
}
