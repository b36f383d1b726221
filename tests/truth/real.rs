//! The real control plane as a target.

use std::path::Path;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use futures::FutureExt;
use futures::future::BoxFuture;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use testkit::fixture::control_plane::ControlPlane;
use testkit::fixture::process::Process;

use super::drive::Target;

/// kube-apiserver on etcd, with the garbage collector and the namespace controller.
pub struct Real {
    plane: ControlPlane,
    _namespaces: Process,
}

impl Real {
    pub async fn start(binary: &Path) -> Result<Self, String> {
        let plane = ControlPlane::start(binary).await?;
        let mut command: Command = plane.component("kube-controller-manager");
        command.arg(format!("--kubeconfig={}", plane.admin_kubeconfig().display())).args([
            "--controllers=namespace-controller",
            "--leader-elect=false",
            "--secure-port=0",
        ]);
        let namespaces = plane.spawn("namespace-controller", &mut command)?;
        Ok(Self { plane, _namespaces: namespaces })
    }

    /// Compacts etcd at its newest revision, and restarts the API server: its watch caches begin there.
    async fn forget(&self) -> Result<(), String> {
        let url = self.plane.etcd_url().parse().map_err(|why| format!("etcd's URL: {why}"))?;
        let etcd = kube::Client::try_from(kube::Config::new(url)).map_err(|why| why.to_string())?;
        let key = STANDARD.encode(b"compact_rev_key");
        let range = call(&etcd, "/v3/kv/range", json!({"key": key})).await?;
        let revision = range["header"]["revision"].as_str().ok_or("etcd names no revision")?.to_owned();
        call(&etcd, "/v3/kv/compaction", json!({"revision": revision, "physical": true})).await?;
        self.plane.kill_api_server();
        self.plane.start_api_server().await
    }
}

async fn call(client: &kube::Client, path: &str, body: Value) -> Result<Value, String> {
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(kube::client::Body::from(body.to_string().into_bytes())).expect("a good request");
    let response = client.send(request).await.map_err(|why| format!("etcd {path}: {why}"))?;
    let status = response.status();
    let bytes = response.into_body().collect().await.map_err(|why| format!("etcd {path}: {why}"))?.to_bytes();
    if !status.is_success() {
        return Err(format!("etcd {path}: {status} {}", String::from_utf8_lossy(&bytes)));
    }
    serde_json::from_slice(&bytes).map_err(|why| format!("etcd {path}: {why}"))
}

impl Target for Real {
    fn client(&self) -> kube::Client {
        self.plane.admin()
    }

    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn compact(&self) -> BoxFuture<'_, Result<(), String>> {
        self.forget().boxed()
    }
}
