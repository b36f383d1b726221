//! The shared environment of the scenarios: the control plane, the observer of all Jobs, and controllers to start.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::driver::{DEPLOYMENTS, Namespace};
use crate::fixture::account::{NAME, SYSTEM_NAMESPACE, apply_manifests};
use crate::fixture::control_plane::{ControlPlane, Extras};
use crate::fixture::controller::{Controller, Running};
use crate::sightings::Sightings;

pub struct World {
    pub plane: ControlPlane,
    pub controller: Controller,
    pub sightings: Sightings,
    /// The kubeconfig of the ServiceAccount in the manifests.
    pub account: PathBuf,
    /// The kubeconfig of the controllers.
    kubeconfig: PathBuf,
    /// The arguments of the Deployment in the manifests.
    args: Vec<String>,
    shared: Mutex<Option<Arc<Running>>>,
}

impl World {
    /// Starts the control plane and applies `manifests/default` to it.
    pub async fn start(binary: &Path, controller: Controller) -> Result<Self, String> {
        Self::start_with(binary, controller, Extras::Judged).await
    }

    /// Like [`Self::start`], with other extras.
    pub async fn start_with(binary: &Path, controller: Controller, extras: Extras) -> Result<Self, String> {
        let plane = ControlPlane::start_with(binary, extras).await?;
        let client = plane.admin();
        let account = apply_manifests(&plane).await?;
        let kubeconfig = match controller {
            Controller::Ours => account.clone(),
            // Upstream's controller has its own RBAC rules, not those of this repository's manifests.
            Controller::InTree => plane.admin_kubeconfig(),
        };
        let system = Namespace::existing(client.clone(), SYSTEM_NAMESPACE);
        let deployment = system.get(DEPLOYMENTS, NAME).await.ok_or("the manifests have no Deployment")?;
        let args = match controller {
            Controller::Ours => deployment_args(&deployment, SYSTEM_NAMESPACE),
            Controller::InTree => vec!["-v=1".to_owned()],
        };
        Ok(Self {
            sightings: Sightings::watch(client),
            plane,
            controller,
            account,
            kubeconfig,
            args,
            shared: Mutex::new(None),
        })
    }

    /// Creates a namespace for one scenario.
    pub async fn namespace(&self, name: &str) -> Namespace {
        Namespace::create_new(self.plane.admin(), name).await
    }

    /// The controller's own namespace.
    pub fn system(&self) -> Namespace {
        Namespace::existing(self.plane.admin(), SYSTEM_NAMESPACE)
    }

    /// Starts a separate controller with the Deployment's arguments, and waits until it is ready.
    pub async fn start_controller(&self, name: &str, args: &[&str]) -> Result<Running, String> {
        self.start_controller_as(name, &self.kubeconfig, args, &[]).await
    }

    /// Like [`Self::start_controller`], with another kubeconfig and further environment variables.
    pub async fn start_controller_as(
        &self,
        name: &str,
        kubeconfig: &Path,
        args: &[&str],
        environment: &[(&str, String)],
    ) -> Result<Running, String> {
        self.controller.start(&self.plane, name, kubeconfig, &self.args_with(args), environment).await
    }

    /// Like [`Self::start_controller`], with another build of this controller.
    pub async fn start_binary(&self, binary: &Path, name: &str, args: &[&str]) -> Result<Running, String> {
        let mut command = Command::new(binary);
        command.args(self.args_with(args));
        Running::start(&self.plane, name, &self.kubeconfig, command, "/readyz").await
    }

    /// The Deployment's arguments without leader election, and `args`, which override them.
    fn args_with(&self, args: &[&str]) -> Vec<String> {
        let own = args.iter().map(|arg| (*arg).to_owned());
        self.args.iter().cloned().chain(["--leader-elect=false".to_owned()]).chain(own).collect()
    }

    /// Starts the shared controller of the first group's scenarios.
    pub async fn start_shared(&self) -> Result<(), String> {
        let running = self.start_controller("shared", &[]).await?;
        *self.shared.lock().unwrap() = Some(Arc::new(running));
        Ok(())
    }

    /// The shared controller of the first group's scenarios.
    pub fn shared(&self) -> Arc<Running> {
        self.shared.lock().unwrap().clone().expect("the first group has its controller")
    }

    /// Stops the shared controller; fails if it had ended by itself.
    pub fn stop_shared(&self) -> Result<(), String> {
        self.shared.lock().unwrap().take().map_or(Ok(()), |running| running.check_running())
    }

    /// Checks the conditions on the whole run.
    pub async fn verify(&self) -> Result<(), String> {
        let twice = self.sightings.created_twice();
        if !twice.is_empty() {
            return Err(format!("these Jobs were created twice: {twice:?}"));
        }
        // The audit log is written after the answer.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let account = format!("system:serviceaccount:{SYSTEM_NAMESPACE}:{NAME}");
        let requests = self.plane.audit(&account);
        let refused = refused(&requests);
        match (self.controller, requests.len()) {
            (Controller::Ours, 0) => Err(format!("no request of {account} was seen")),
            _ if !refused.is_empty() => Err(format!("the account's rights do not cover {refused:?}")),
            _ => Ok(()),
        }
    }
}

/// The requests of an audit log that RBAC denied.
pub fn refused(requests: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let refusals = requests.iter().filter(|event| event["responseStatus"]["code"] == 403 && !is_terminating(event));
    let word = |event: &Value| {
        let why = text(&event["responseStatus"]["message"]);
        format!("{} {}: {why}", text(&event["verb"]), text(&event["requestURI"]))
    };
    refusals.map(word).collect()
}

/// A create in a terminating namespace is forbidden too, whatever the account's permissions.
fn is_terminating(event: &Value) -> bool {
    event["responseStatus"]["message"].as_str().is_some_and(|message| message.contains("being terminated"))
}

/// The arguments of a Deployment's container, as the kubelet would pass them in this namespace, but for two: the port of the
/// probes, and the audience of readers' tokens. The plane's own tokens are for the API server.
pub fn deployment_args(deployment: &Value, namespace: &str) -> Vec<String> {
    let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    args.as_array()
        .into_iter()
        .flatten()
        .filter_map(|arg| arg.as_str())
        .map(|arg| arg.replace("$(POD_NAMESPACE)", namespace))
        // Replicas on one machine cannot share a port.
        .map(|arg| arg.replace("--health-probe-bind-address=:8081", "--health-probe-bind-address=0"))
        .filter(|arg| !arg.starts_with("--authentication-token-audiences="))
        .collect()
}
