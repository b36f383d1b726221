//! The components that run Pods: kube-scheduler, and kwok with one node.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use testkit::driver::{eventually, request};
use testkit::fixture::control_plane::ControlPlane;
use testkit::fixture::process::Process;

const NODE: &str = "/api/v1/nodes/kwok";

/// The scheduler and the node; both end with it.
pub struct Cluster {
    client: kube::Client,
    _scheduler: Process,
    _kwok: Process,
}

impl Cluster {
    /// Starts both and waits until the node takes Pods.
    pub async fn start(plane: &ControlPlane) -> Result<Self, String> {
        let client = plane.admin();
        let kubeconfig = format!("--kubeconfig={}", plane.admin_kubeconfig().display());
        let scheduler = plane.spawn(
            "kube-scheduler",
            plane.component("kube-scheduler").arg(&kubeconfig).args(["--leader-elect=false", "--secure-port=0"]),
        )?;
        let kwok = plane.spawn(
            "kwok",
            Command::new(binary("kwok")?)
                .arg(&kubeconfig)
                .arg(concat!("--config=", env!("CARGO_MANIFEST_DIR"), "/tests/conformance/stages.yaml"))
                .args(["--manage-all-nodes", "--node-lease-duration-seconds=40"]),
        )?;
        let node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "kwok", "labels": {"kubernetes.io/hostname": "kwok", "kubernetes.io/os": "linux"}},
        });
        request(&client, Method::POST, "/api/v1/nodes", Some(&node)).await?;
        eventually("a node without taints", Duration::from_secs(120), || async {
            let node = request(&client, Method::GET, NODE, None).await.ok()?;
            takes_pods(&node).then_some(())
        })
        .await;
        Ok(Self { client, _scheduler: scheduler, _kwok: kwok })
    }

    /// The versions of Kubernetes and kwok.
    pub async fn versions(&self) -> Result<String, String> {
        let server = request(&self.client, Method::GET, "/version", None).await?;
        let kwok = Command::new(binary("kwok")?).arg("--version").output().map_err(|error| format!("kwok: {error}"))?;
        let kwok = String::from_utf8_lossy(&kwok.stdout).trim().to_owned();
        Ok(format!("Kubernetes {}, {kwok}", server["gitVersion"].as_str().unwrap_or("?")))
    }
}

/// The node lifecycle controller removes the last taint when the node is ready.
fn takes_pods(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True");
    ready && node["spec"]["taints"].is_null()
}

/// One of the binaries that `make conformance` builds.
pub fn binary(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/bin")).join(name);
    if path.is_file() { Ok(path) } else { Err(format!("{} is not built (make conformance; needs Go)", path.display())) }
}
