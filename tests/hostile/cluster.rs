//! `dev` in one process and the controller in another, and their use of CPU and memory.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use http::{Method, Request};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::driver::{CRON_JOBS, Namespace, eventually, request};
use testkit::fixture::process::{Process, Watchdog};
use testkit::usage::{self, Usage};
use tokio::time::Instant;

use crate::command::{LIMIT, binary};
use crate::manifests::{manifest, namespace};
use crate::table::Seen;

/// The namespace of the CronJobs that cost much.
pub const HOT: &str = "hot";
/// The namespace of the others.
pub const OTHERS: &str = "others";

/// How long a process has to start.
const START: Duration = Duration::from_secs(60);

/// A running `dev`.
pub struct Dev {
    pub client: kube::Client,
    pub kubeconfig: PathBuf,
    pub directory: TempDir,
    process: Process,
    watchdog: Watchdog,
}

impl Dev {
    /// Starts it with the two namespaces and these objects.
    pub async fn start(objects: &[Value], args: &[&str]) -> Self {
        let (directory, watchdog) = (tempfile::tempdir().unwrap(), Watchdog::start().unwrap());
        let (kubeconfig, file) = (directory.path().join("kubeconfig"), directory.path().join("objects.yaml"));
        let namespaces = [HOT, OTHERS].map(namespace);
        fs::write(&file, manifest(&namespaces) + &manifest(objects)).unwrap();
        let mut command = Command::new(binary());
        command.arg("dev").arg("--kubeconfig").arg(&kubeconfig).arg("-f").arg(&file).args(args);
        command.env("TZ", "UTC").env("XDG_RUNTIME_DIR", directory.path()).env_remove("RUST_LOG");
        let process = Process::spawn(&watchdog, directory.path(), "dev", &mut command).unwrap();
        let client = eventually("dev's kubeconfig", START, || async {
            let kubeconfig = Kubeconfig::read_from(&kubeconfig).ok()?;
            let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.ok()?;
            let client = kube::Client::try_from(config).ok()?;
            // The objects are there before the first request is answered.
            request(&client, Method::GET, "/version", None).await.ok()?;
            Some(client)
        })
        .await;
        Self { client, kubeconfig, directory, process, watchdog }
    }

    /// Only the API server and the simulated Jobs.
    pub async fn start_alone() -> Self {
        Self::start(&[], &["--controller=false"]).await
    }

    pub fn namespace(&self, name: &str) -> Namespace {
        Namespace::existing(self.client.clone(), name)
    }

    pub fn usage(&self) -> Usage {
        usage::of(self.process.id()).unwrap()
    }

    /// Starts a controller. With `cores` it runs on these only, as `taskset` names them.
    pub fn controller(&self, cores: Option<&str>, args: &[&str]) -> Controller {
        let mut command = match cores {
            Some(cores) => {
                let mut command = Command::new("taskset");
                command.args(["--cpu-list", cores]).arg(binary());
                command
            }
            None => Command::new(binary()),
        };
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(["--secure-port=0"]).args(args);
        command.env("TZ", "UTC").env_remove("RUST_LOG");
        let name = format!("controller-{}", cores.unwrap_or("all"));
        Controller(Process::spawn(&self.watchdog, self.directory.path(), &name, &mut command).unwrap())
    }

    /// Sends a YAML document; returns the status of the answer, or `None` without one in [`LIMIT`].
    pub async fn post_yaml(&self, path: &str, document: String) -> Option<u16> {
        let message = Request::post(path).header("content-type", "application/yaml").body(document.into_bytes().into());
        let answer = tokio::time::timeout(LIMIT, self.client.send(message.unwrap())).await.ok()?;
        answer.ok().map(|answer| answer.status().as_u16())
    }
}

/// Changes an annotation that means nothing of a CronJob in [`HOT`], as `kubectl annotate` does. Returns whether the server
/// did it.
pub async fn annotate(client: &kube::Client, name: &str, turn: usize) -> bool {
    let path = Namespace::existing(client.clone(), HOT).path(CRON_JOBS, name);
    let body = json!({"metadata": {"annotations": {"example.com/turn": turn.to_string()}}});
    request(client, Method::PATCH, &path, Some(&body)).await.is_ok()
}

/// A running controller.
pub struct Controller(Process);

impl Controller {
    /// CPU time in seconds since the start, and resident memory; `None` if the process has ended.
    pub fn usage(&mut self) -> Option<Usage> {
        self.0.check_running().ok()?;
        usage::of(self.0.id()).ok()
    }

    /// The end of its log.
    pub fn log_tail(&self) -> String {
        self.0.log_tail(5)
    }

    /// Waits until every thread sleeps for a quarter of a second. Returns the CPU time since the start, of which there would have
    /// been more if that took longer than [`LIMIT`].
    pub async fn rest(&mut self) -> Seen {
        let (deadline, mut quiet) = (Instant::now() + LIMIT, 0);
        while quiet < 10 {
            let Some(usage) = self.usage() else { return Seen::Nothing };
            if Instant::now() > deadline {
                return Seen::MoreThan(usage.cpu);
            }
            quiet = if self.sleeps() { quiet + 1 } else { 0 };
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        self.usage().map(|usage| usage.cpu).into()
    }

    /// Whether no thread runs or waits for a core.
    fn sleeps(&self) -> bool {
        let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", self.0.id())) else { return true };
        let stats = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
        let mut letters = stats.filter_map(|stat| stat.rsplit(") ").next()?.chars().next());
        letters.all(|state| state != 'R')
    }
}
