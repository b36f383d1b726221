//! Runs the container image: unpacks what `make image-offline` built into an empty directory, and starts its entrypoint
//! there, in a chroot, as the image's user, against a real control plane.
//!
//! The directory holds only the image's files and what a kubelet adds to name the API server. There is no
//! /etc/nsswitch.conf, no certificates, no time zones, no /tmp, no /proc, and only the random devices in /dev. Each
//! case starts the controller in a root of its own, waits for the Job of a CronJob, and stops it.
//!
//! `make image-test` builds the image and names it in `IMAGE_ARCHIVE`. Without the variable the test is skipped with a
//! message. chroot needs root. Without root or the fixture the test is skipped with a message, and with
//! `REQUIRE_TOOLS=1` that is a failure.
#![allow(clippy::unwrap_used)]

mod archive;
mod dns;
mod pod;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::UdpSocket;

use archive::Image;
use pod::{Account, Pod, Way};
use testkit::driver::{CRON_JOBS, JOBS, Namespace, cron_job, eventually};
use testkit::fixture;
use testkit::fixture::account::apply_manifests;
use testkit::fixture::control_plane::{ControlPlane, admin_client, free_port};
use testkit::harness::{block_on, is_required};
use testkit::verdict::{Verdict, judge};

/// The time limit of a case.
const LIMIT: Duration = Duration::from_secs(90);

/// How the controller connects to the API server, and what that tests.
const CASES: [(&str, Way); 3] = [
    ("by the address and the files that every Pod is given", Way::ServiceAccount),
    ("by a name in /etc/hosts, from a kubeconfig", Way::Hosts),
    ("by a name that only DNS knows, from a kubeconfig", Way::Dns),
];

fn main() -> ExitCode {
    let Some(archive) = std::env::var_os("IMAGE_ARCHIVE").map(PathBuf::from) else {
        println!("image: skipped: IMAGE_ARCHIVE names no image (make image-test builds one)");
        return ExitCode::SUCCESS;
    };
    let control_plane = match fixture::find() {
        Ok(_) if !rustix::process::geteuid().is_root() => Err("only root may chroot".to_owned()),
        found => found,
    };
    let binary = match control_plane {
        Ok(binary) => binary,
        Err(why) if is_required("REQUIRE_TOOLS") => {
            println!("image: FAILED: {why}");
            return ExitCode::FAILURE;
        }
        Err(why) => {
            println!("image: skipped: {why}");
            return ExitCode::SUCCESS;
        }
    };
    if block_on(run(&archive, &binary)) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether the image is correct and every case passed; prints the first failure with its log.
async fn run(archive: &Path, binary: &Path) -> bool {
    let image = Image::read(archive);
    image.holds_the_binary_and_its_licences();
    println!("image: {}", image.sizes());

    let plane = ControlPlane::start(binary).await.unwrap();
    let account = Account::read(&apply_manifests(&plane).await.unwrap());
    let socket = UdpSocket::bind(dns::ADDRESS).await.unwrap();
    tokio::spawn(dns::serve(socket, pod::SERVER));
    for (number, (sentence, way)) in CASES.into_iter().enumerate() {
        let pod = Pod::new(&image, &account, way);
        match judge(fires(&plane, &pod, format!("image-{number}")), LIMIT).await {
            Verdict::Passed(note) => println!("image: {sentence} ... ok ({note})"),
            Verdict::Failed(why) => {
                println!("image: {sentence} ... FAILED: {why}\n{}", plane.keep_logs(15));
                return false;
            }
        }
    }
    true
}

/// The controller becomes ready, starts a Job, and stops without errors; returns when the Job was there.
async fn fires(plane: &ControlPlane, pod: &Pod, name: String) -> String {
    let started = Instant::now();
    let port = free_port();
    let mut process = plane.spawn(&name, &mut pod.command(port)).unwrap();
    let server = admin_client(port).unwrap();
    let ready = || {
        process.check_running().unwrap();
        let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
        let answer = server.request_text(request);
        async { answer.await.ok() }
    };
    eventually("the controller ready", Duration::from_secs(30), ready).await;

    let namespace = Namespace::create_new(plane.admin(), &name).await;
    namespace.create(CRON_JOBS, &cron_job("hello", "@every 1s", &json!({}))).await;
    let jobs = || async { (!namespace.list(JOBS).await.is_empty()).then_some(()) };
    eventually("a Job", Duration::from_secs(30), jobs).await;
    let note = format!("a Job after {:.1} s", started.elapsed().as_secs_f64());
    let ended = process.terminate(Duration::from_secs(20)).await.unwrap();
    assert!(ended.success(), "{ended}:\n{}", process.log_tail(30));
    note
}
