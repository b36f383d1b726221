#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use apimachinery::clock::SystemClock;
use http::Method;
use serde_json::json;

use super::*;
use crate::dev::cluster::api_server;
use crate::dev::requests::{JSON, send};

const PATH: &str = "/api/v1/namespaces/default/configmaps";

fn server() -> ApiServer {
    api_server(Arc::new(SystemClock), 1)
}

async fn create(server: &ApiServer, name: &str) -> Value {
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    send(&server.client(), Method::POST, PATH, JSON, &object).await.unwrap()
}

async fn read(server: &ApiServer, name: &str) -> Value {
    send(&server.client(), Method::GET, &format!("{PATH}/{name}"), JSON, &Value::Null).await.unwrap()
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn state_survives_and_versions_continue() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b");
    let data_dir = DataDir::open(&path).unwrap();
    let first = server();
    assert!(!data_dir.restore(&first).unwrap(), "a new directory has no state");
    data_dir.record(&first).unwrap();
    let one = create(&first, "one").await;
    drop(data_dir);
    let data_dir = DataDir::open(&path).unwrap();
    let second = server();
    assert!(data_dir.restore(&second).unwrap());
    assert_eq!(read(&second, "one").await, one);
    assert_eq!(version(&create(&second, "two").await), version(&one) + 1);
}

#[tokio::test]
async fn document_of_an_earlier_version_is_replaced_by_a_log() {
    let directory = tempfile::tempdir().unwrap();
    let first = server();
    let one = create(&first, "one").await;
    let document = directory.path().join("state.json");
    fs::write(&document, first.snapshot().to_string()).unwrap();
    for _ in 0..2 {
        let data_dir = DataDir::open(directory.path()).unwrap();
        let second = server();
        assert!(data_dir.restore(&second).unwrap());
        data_dir.record(&second).unwrap();
        assert_eq!(read(&second, "one").await, one);
        assert!(!document.exists() && data_dir.log_path().exists());
    }
}

#[test]
fn unusable_data_directory_is_reported_in_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("d");
    let data_dir = DataDir::open(&path).unwrap();
    let in_use = DataDir::open(&path).unwrap_err().to_string();
    assert!(in_use.starts_with("--data-dir: ") && in_use.ends_with("is in use by another process"), "{in_use}");
    let rows = [
        ("state.json", "{", "state.json is not a state of this program: EOF"),
        ("state.json", "{}", "state.json: cannot restore the API server's state: it is not of version 1"),
        ("state.log", "{}", "state.log: it is not a state of this program"),
    ];
    for (name, text, want) in rows {
        fs::write(path.join(name), text).unwrap();
        let error = data_dir.restore(&server()).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
        assert_eq!(fs::read_to_string(path.join(name)).unwrap(), text, "a state that cannot be read stays");
    }
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let no_directory = DataDir::open(&file.join("x")).unwrap_err().to_string();
    assert!(no_directory.contains("cannot create the directory"), "{no_directory}");
}
