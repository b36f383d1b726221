//! Conformance: upstream's own end-to-end specs of CronJob pass with this controller in place of the in-tree one.
//!
//! The cluster is the end-to-end tests' fixture with everything that a CronJob's Pods need to run: all of
//! kube-controller-manager's controllers except the one for CronJobs, kube-scheduler, and kwok, which simulates the
//! kubelet of one node by `stages.yaml`. The controller runs as in its Deployment, with only the rights of the
//! manifests. The specs are upstream's code, unchanged (`conformance_test.go`). Each runs in a process and a namespace
//! of its own, all in parallel, since most of their time is waiting for the clock.
//!
//! `make conformance` builds what is needed and runs it. It prints a table, and the exit code is 0 when every spec
//! passed and no request of the controller was refused. `CONFORMANCE_CONTROLLER=in-tree` runs the same specs against
//! the controller inside kube-controller-manager. `cargo test` does not run them.
#![allow(clippy::unwrap_used)]

mod report;

use std::process::{Command, ExitCode};
use std::time::Duration;

use chrono::Utc;

use report::Report;
use testkit::fixture;
use testkit::fixture::cluster::{Cluster, binary};
use testkit::fixture::control_plane::Extras;
use testkit::fixture::controller::Controller;
use testkit::harness::block_on;
use testkit::world::World;

/// The number of specs; each gets a process.
const SPECS: usize = 12;

/// The longest spec watches for five minutes, and none waits longer than five minutes twice.
const LIMIT: Duration = Duration::from_secs(20 * 60);

fn main() -> ExitCode {
    match block_on(run(Controller::from_env("CONFORMANCE_CONTROLLER"))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("conformance: FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Starts everything, runs the specs and checks the results; keeps the logs unless all pass.
async fn run(controller: Controller) -> Result<(), String> {
    let plane = fixture::find()?;
    let release = fixture::binary::release(&plane)?;
    let world = World::start_with(&plane, controller, Extras::AllControllers).await?;
    let verdict = judge(&world, &release).await;
    verdict.map_err(|why| format!("{why}\n{}", world.plane.keep_logs(15)))
}

async fn judge(world: &World, release: &str) -> Result<(), String> {
    let cluster = Cluster::start(&world.plane).await?;
    let controller = world.start_controller("controller", &["--leader-elect=true"]).await?;
    println!("conformance: {:?}, {}, {}", world.controller, Utc::now().date_naive(), cluster.versions().await?);

    let report = run_specs(world, release).await?;
    print!("{report}");
    controller.check_running()?;
    report.verdict(SPECS)?;
    world.verify().await
}

/// Runs all specs of the control plane's release; the report says whether they passed.
async fn run_specs(world: &World, release: &str) -> Result<Report, String> {
    let kubeconfig = world.plane.admin_kubeconfig();
    let report = kubeconfig.with_file_name("report.json");
    let mut ginkgo = world.plane.spawn(
        "ginkgo",
        Command::new(binary(&format!("{release}/ginkgo"))?)
            .arg(format!("--procs={SPECS}"))
            .arg(format!("--timeout={}s", LIMIT.as_secs()))
            .arg(format!("--focus={}", regex_of(report::SUITE)))
            .arg(format!("--output-dir={}", report.with_file_name("").display()))
            .args(["--json-report=report.json", "--no-color"])
            .arg(binary(&format!("{release}/conformance.test"))?)
            .arg("--")
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg("--provider=skeleton"),
    )?;
    // Ginkgo enforces the limit itself, and then reports where each spec was.
    ginkgo.ended(LIMIT + Duration::from_secs(120)).await?;
    Report::read(&report).map_err(|why| format!("{why}\n{}", ginkgo.log_tail(60)))
}

/// The text as a regular expression that matches it and, behind it, a spec's own text.
fn regex_of(suite: &str) -> String {
    format!("{} ", suite.replace('[', r"\[").replace(']', r"\]"))
}
