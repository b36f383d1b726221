//! The contenders, and how each is started: with the rights of its own ServiceAccount and with leader election.

use std::path::{Path, PathBuf};

use http::Method;
use serde_json::json;

use testkit::driver::request;
use testkit::fixture::account::account_kubeconfig;
use testkit::fixture::control_plane::Extras;
use testkit::fixture::controller::{Controller, Running};
use testkit::world::World;
use tokio::sync::OnceCell;

/// One column of the table.
#[derive(Debug)]
pub struct Contender {
    pub name: &'static str,
    pub controller: Controller,
    args: &'static [&'static str],
}

pub const OURS: Contender = Contender { name: "ours", controller: Controller::Ours, args: &[] };
pub const IN_TREE: Contender = Contender { name: "in-tree", controller: Controller::InTree, args: &[] };
/// The same with as many workers as this controller has requests in flight.
pub const IN_TREE_64: Contender = Contender {
    name: "in-tree (64 workers)",
    controller: Controller::InTree,
    args: &["--concurrent-cron-job-syncs=64"],
};

/// The columns of the table, in its order.
pub const ALL: [&Contender; 3] = [&OURS, &IN_TREE, &IN_TREE_64];

/// A new control plane for one case and one contender, and how to start that contender.
pub struct Arena {
    pub world: World,
    pub contender: &'static Contender,
    /// The kubeconfig of the in-tree controller, once there is one.
    in_tree_account: OnceCell<PathBuf>,
}

impl Arena {
    /// Starts a control plane that has no other controllers.
    pub async fn start(binary: &Path, contender: &'static Contender) -> Result<Self, String> {
        let world = World::start_with(binary, contender.controller, Extras::Bare).await?;
        Ok(Self { world, contender, in_tree_account: OnceCell::new() })
    }

    /// Starts the contender with leader election and more arguments.
    pub async fn start_controller(&self, args: &[&str]) -> Running {
        self.start_replica(if self.is_ours() { "ours" } else { "in-tree" }, args).await
    }

    /// The same, as one more process with this name.
    pub async fn start_replica(&self, name: &str, args: &[&str]) -> Running {
        let mut all = vec!["--leader-elect=true"];
        all.extend(self.contender.args);
        all.extend(args);
        let started = match self.contender.controller {
            Controller::Ours => self.world.start_controller(name, &all).await,
            Controller::InTree => {
                let account = || async { self.create_in_tree_account().await.unwrap() };
                let kubeconfig = self.in_tree_account.get_or_init(account).await;
                self.world.start_controller_as(name, kubeconfig, &all, &[]).await
            }
        };
        started.unwrap_or_else(|why| panic!("{why}"))
    }

    pub fn is_ours(&self) -> bool {
        self.contender.controller == Controller::Ours
    }

    /// The ServiceAccount that upstream gives its CronJob controller, which may also hold kube-controller-manager's
    /// Lease.
    async fn create_in_tree_account(&self) -> Result<PathBuf, String> {
        let admin = self.world.plane.admin();
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "cronjob-controller"}});
        request(&admin, Method::POST, "/api/v1/namespaces/kube-system/serviceaccounts", Some(&account)).await?;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "in-tree"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kube-controller-manager",
            },
            "subjects": [{"kind": "ServiceAccount", "namespace": "kube-system", "name": "cronjob-controller"}],
        });
        let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        request(&admin, Method::POST, bindings, Some(&binding)).await?;
        account_kubeconfig(&self.world.plane, "kube-system", "cronjob-controller", "in-tree").await
    }
}

/// Panics with the end of its log if the controller has exited.
pub fn still_runs(controller: &Running) {
    controller.check_running().unwrap_or_else(|why| panic!("{why}"));
}
