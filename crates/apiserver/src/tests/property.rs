//! Invariants under random sequences of verbs.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{MERGE, Server, WIDGETS, owned, widget};

/// One request.
#[derive(Clone, Debug)]
enum Step {
    Create(u8),
    CreateOwned(u8, u8),
    Resize(u8, i64),
    Label(u8, bool),
    Hold(u8, bool),
    Delete(u8, &'static str),
    DeleteLabelled,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0u8..6;
    let policy = prop_oneof![Just("Background"), Just("Foreground"), Just("Orphan")];
    let step = prop_oneof![
        4 => name.clone().prop_map(Step::Create),
        3 => (name.clone(), name.clone()).prop_map(|(child, owner)| Step::CreateOwned(child, owner)),
        3 => (name.clone(), -1i64..4).prop_map(|(name, size)| Step::Resize(name, size)),
        2 => (name.clone(), any::<bool>()).prop_map(|(name, on)| Step::Label(name, on)),
        2 => (name.clone(), any::<bool>()).prop_map(|(name, on)| Step::Hold(name, on)),
        3 => (name, policy).prop_map(|(name, policy)| Step::Delete(name, policy)),
        1 => Just(Step::DeleteLabelled),
    ];
    proptest::collection::vec(step, 1..60)
}

async fn run(server: &Server, step: &Step) {
    let at = |name: u8| format!("{WIDGETS}/w{name}");
    match step {
        Step::Create(name) => drop(server.post(WIDGETS, &widget(&format!("w{name}"))).await),
        Step::CreateOwned(child, owner) => {
            let owner = server.get(&at(*owner)).await.body;
            drop(server.post(WIDGETS, &owned(&format!("w{child}"), &owner, true)).await);
        }
        Step::Resize(name, size) => drop(server.patch(&at(*name), MERGE, &json!({"spec": {"size": size}})).await),
        Step::Label(name, on) => {
            let value = if *on { json!("x") } else { Value::Null };
            drop(server.patch(&at(*name), MERGE, &json!({"metadata": {"labels": {"tier": value}}})).await);
        }
        Step::Hold(name, on) => {
            let finalizers = if *on { json!(["x/y"]) } else { Value::Null };
            drop(server.patch(&at(*name), MERGE, &json!({"metadata": {"finalizers": finalizers}})).await);
        }
        Step::Delete(name, policy) => {
            drop(server.delete(&format!("{}?propagationPolicy={policy}", at(*name))).await);
        }
        Step::DeleteLabelled => drop(server.delete(&format!("{WIDGETS}?labelSelector=tier")).await),
    }
}

fn names(list: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| (text(&item["metadata"]["name"]), text(&item["metadata"]["resourceVersion"]))).collect()
}

/// The objects that exist according to these events.
fn fold(events: &[Value]) -> BTreeMap<String, String> {
    let mut view = BTreeMap::new();
    let mut last = 0;
    for event in events.iter().filter(|event| event["type"] != "BOOKMARK") {
        let metadata = &event["object"]["metadata"];
        let name = metadata["name"].as_str().unwrap().to_owned();
        let version = metadata["resourceVersion"].as_str().unwrap().to_owned();
        let revision: u64 = version.parse().unwrap();
        assert!(revision > last, "revisions grow strictly");
        last = revision;
        let known = match event["type"].as_str().unwrap() {
            "ADDED" => view.insert(name, version).is_none(),
            "MODIFIED" => view.insert(name, version).is_some(),
            "DELETED" => view.remove(&name).is_some(),
            other => panic!("an event of type {other}"),
        };
        assert!(known, "added once, then modified, then deleted: {event}");
    }
    view
}

async fn paged(server: &Server, query: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut token = String::new();
    loop {
        let page = server.get(&format!("{WIDGETS}?limit=2&{query}&continue={token}")).await.expect(200);
        all.extend(names(&page));
        match page["metadata"]["continue"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => return all,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn watches_lists_and_pages_agree(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let server = Server::new();
            for step in &steps {
                run(&server, step).await;
            }
            tokio::time::sleep(std::time::Duration::from_secs(3)).await;
            for query in ["", "labelSelector=tier", "labelSelector=!tier"] {
                let list = names(&server.get(&format!("{WIDGETS}?{query}")).await.expect(200));
                let path = format!("{WIDGETS}?watch=1&resourceVersion=5&timeoutSeconds=1&{query}");
                assert_eq!(fold(&server.watch(&path).await), list, "the watch against the list: {query}");
                assert_eq!(paged(&server, query).await, list, "the pages against the list: {query}");
            }
            // No object is left whose only owner is gone.
            let all = server.get(WIDGETS).await.expect(200);
            let items = all["items"].as_array().unwrap();
            for item in items {
                for owner in item["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
                    let there = items.iter().any(|other| other["metadata"]["uid"] == owner["uid"]);
                    let held = item["metadata"]["deletionTimestamp"].is_string();
                    assert!(there || held, "{item}");
                }
            }
        });
    }
}
