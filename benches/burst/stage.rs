//! The parts that all rounds share: the control plane and the contenders' accounts.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use serde_json::json;

use testkit::driver::request;
use testkit::fixture::account::{account_kubeconfig, apply_manifests};
use testkit::fixture::control_plane::{ControlPlane, Extras};
use testkit::usage;

pub struct Stage {
    pub plane: ControlPlane,
    /// The manifests' account, for this controller, the floor and the polling controller.
    pub ours: PathBuf,
    /// The account that upstream gives its CronJob controller, with upstream's own rights.
    pub in_tree: PathBuf,
    namespaces: AtomicUsize,
}

impl Stage {
    pub async fn start(binary: &Path) -> Result<Self, String> {
        let plane = ControlPlane::start_with(binary, Extras::Bare).await?;
        let ours = apply_manifests(&plane).await?;
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "cronjob-controller"}});
        let path = "/api/v1/namespaces/kube-system/serviceaccounts";
        request(&plane.admin(), Method::POST, path, Some(&account)).await?;
        let in_tree = account_kubeconfig(&plane, "kube-system", "cronjob-controller", "in-tree").await?;
        Ok(Self { plane, ours, in_tree, namespaces: AtomicUsize::new(0) })
    }

    /// The CPU time of the API server and etcd since their start, in seconds.
    pub fn server_cpu(&self) -> Result<f64, String> {
        self.plane.servers().map(|id| usage::of(id).map(|usage| usage.cpu)).sum()
    }

    /// Names of unused namespaces.
    pub fn new_namespaces(&self, count: usize) -> Vec<String> {
        let first = self.namespaces.fetch_add(count, Ordering::Relaxed);
        (first..first + count).map(|index| format!("burst-{index:04}")).collect()
    }

    /// Ends the control plane and returns the ends of its logs.
    pub fn keep_logs(self) -> String {
        self.plane.keep_logs(8)
    }
}
