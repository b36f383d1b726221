//! Upstream's own conformance specs of sig-api-machinery, on the embedded API server and on a real one.
//!
//! A spec does not apply where it needs what an API server alone does not have: Pods that run, or a controller other than those for
//! garbage and namespaces ([`NOT_APPLICABLE`]). All others are run, each by upstream's code, unchanged (`machinery/`), in a process and
//! on a server of its own. Those that are known to fail say why ([`UNSERVED`]); one that passes nevertheless is an error, too.
//!
//! `make conformance-apiserver` builds what is needed and runs it. It writes `machinery.tsv`: each spec with its result on the
//! embedded server, from which `tests/crates.rs` makes the table in the README of the crate. With `MACHINERY_REAL=1` and a control
//! plane (`make fixture`) the same specs then run on that, and the file's second line says how many passed. `MACHINERY=Watchers`
//! chooses specs.
#![allow(clippy::unwrap_used)]

mod machinery_report;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::{Clock as _, SystemClock};
use apiserver::ApiServer;
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch, PatchParams};
use machinery_report::{Outcome, Spec};
use serde_json::json;
use testkit::embedded::{Served, server};
use testkit::fixture;
use testkit::fixture::cluster::binary;
use testkit::fixture::control_plane::{ControlPlane, Extras};
use testkit::harness::{block_on, is_required};

const QUOTAS: &str = "needs the controller of quotas";
const ACCOUNTS: &str = "waits for a ServiceAccount's controller";
const REPLICATION: &str = "needs the controller of ReplicationControllers";
const DEPLOYMENTS: &str = "needs the controller of Deployments";

/// Specs that do not apply, by the start of their names, and why.
const NOT_APPLICABLE: [(&str, &str); 16] = [
    ("AdmissionWebhook", "the webhook is a Pod"),
    ("CustomResourceConversionWebhook", "the webhook is a Pod"),
    ("CustomResourceFieldSelectors", "the webhook is a Pod"),
    ("Aggregator", "the aggregated server is a Pod"),
    ("Garbage collector should delete RS created by deployment", DEPLOYMENTS),
    ("Garbage collector should orphan RS created by deployment", DEPLOYMENTS),
    ("Garbage collector should delete pods created by rc", REPLICATION),
    ("Garbage collector should keep the rc around", REPLICATION),
    ("Garbage collector should not delete dependents", REPLICATION),
    ("Garbage collector should orphan pods created by rc", REPLICATION),
    ("Namespaces should ensure that all pods are removed", "needs a Pod that runs"),
    ("Namespaces should ensure that all services are removed", ACCOUNTS),
    ("OrderedNamespaceDeletion", ACCOUNTS),
    ("ResourceQuota should create", QUOTAS),
    ("ResourceQuota should verify", QUOTAS),
    ("ResourceQuota should apply changes to a resourcequota status", QUOTAS),
];

const GROUPS: &str = "not all built-in groups are served, such as `apiregistration.k8s.io` and `storage.k8s.io`";

/// Specs that apply and fail, by the start of their names, and why.
const UNSERVED: [(&str, &str); 6] = [
    ("AggregatedDiscovery should support aggregated discovery interface for CRDs", ""),
    ("AggregatedDiscovery should support aggregated discovery interface", GROUPS),
    ("AggregatedDiscovery should support raw aggregated discovery endpoint", GROUPS),
    ("Discovery should locate", GROUPS),
    ("MutatingAdmissionPolicy should mutate", "policies that mutate are not applied"),
    ("StorageVersionMigration", "StorageVersionMigrations are not served"),
];

/// What the name of the spec that waits for a compaction has.
const COMPACTED: &str = "compacted away";

/// Longer than the pages of a list take that must not be compacted away in between.
const BETWEEN_COMPACTIONS: Duration = Duration::from_secs(25);

/// Seconds for one spec.
const SECONDS: u32 = 150;
/// Seconds for the spec that waits for a compaction, on a real server: it waits for two of etcd's intervals at most.
const SECONDS_TO_COMPACT: u32 = 700;
/// How many run at a time, on servers of their own.
const AT_A_TIME: usize = 3;

fn main() -> ExitCode {
    match block_on(run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("machinery: FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}

/// What a table says of a spec; a row without a reason is an exception from the rows after it.
fn reason(table: &[(&'static str, &'static str)], spec: &Spec) -> Option<&'static str> {
    table.iter().find(|(start, _)| spec.name.starts_with(start)).map(|(_, why)| *why).filter(|why| !why.is_empty())
}

async fn run() -> Result<(), String> {
    let version = std::fs::read_to_string(testkit::repository().join("tests/controlplane/kubernetes-version"));
    let release = version.map_err(|error| error.to_string())?.trim().to_owned();
    let program = binary(&format!("{release}/machinery.test"))?;
    let chosen = std::env::var("MACHINERY").unwrap_or_default();

    let program = program.as_path();
    let specs = list(program)?;
    let applied = |spec: &&Spec| reason(&NOT_APPLICABLE, spec).is_none() && spec.name.contains(&chosen);
    let outcomes: Vec<(&Spec, Outcome)> = stream::iter(specs.iter().filter(applied))
        .map(|spec| async move {
            let server = server(Arc::new(SystemClock));
            let embedded = Served::start(server.clone()).await;
            let flags = ["--e2e-verify-service-account=false"];
            let outcome = run_one(program, embedded.kubeconfig(), &flags, spec, SECONDS);
            let outcome = tokio::select! {
                outcome = outcome => outcome,
                () = compact(&server), if spec.name.contains(COMPACTED) => unreachable!("it never ends"),
            };
            (spec, outcome)
        })
        .buffered(AT_A_TIME)
        .inspect(|(spec, outcome)| println!("{} {outcome}", spec.name))
        .collect()
        .await;
    let passed = outcomes.iter().filter(|(_, outcome)| outcome.has_passed).count();
    println!("machinery: {passed} of {} that apply passed, of {}", outcomes.len(), specs.len());
    let surprises: Vec<String> = outcomes
        .iter()
        .filter(|(spec, outcome)| outcome.has_passed == reason(&UNSERVED, spec).is_some())
        .map(|(spec, outcome)| format!("{}: {outcome}", spec.name))
        .collect();
    let path = testkit::repository().join("tests/conformance/machinery.tsv");
    let write = |real: &str| {
        let text = recorded(&release, real, &specs, &outcomes);
        if chosen.is_empty() { std::fs::write(&path, text).map_err(|error| error.to_string()) } else { Ok(()) }
    };
    let before = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    write(before.lines().nth(1).unwrap_or_default())?;
    if is_required("MACHINERY_REAL") {
        let mut failed = Vec::new();
        let plane = ControlPlane::start_with(&fixture::find()?, Extras::AllControllers).await?;
        // One after the other: they share the server.
        for (spec, _) in &outcomes {
            let seconds = if spec.name.contains(COMPACTED) { SECONDS_TO_COMPACT } else { SECONDS };
            let outcome = run_one(program, &plane.admin_kubeconfig(), &[], spec, seconds).await;
            println!("on the real API server: {} {outcome}", spec.name);
            failed.extend((!outcome.has_passed).then_some(&*spec.name));
        }
        write(&on_the_real_one(outcomes.len(), &failed))?;
    }
    if surprises.is_empty() { Ok(()) } else { Err(format!("not as expected:\n{}", surprises.join("\n"))) }
}

/// The line about the real API server.
fn on_the_real_one(run: usize, failed: &[&str]) -> String {
    let (passed, day) = (run - failed.len(), SystemClock.now().format("%F"));
    let others = if failed.is_empty() { String::new() } else { format!(", and not: {}", failed.join("; ")) };
    format!("# on kube-apiserver, {passed} of {run} passed ({day}){others}")
}

/// The lines of `machinery.tsv`: that about the real API server, and of each spec file, name and result.
fn recorded(release: &str, real: &str, specs: &[Spec], outcomes: &[(&Spec, Outcome)]) -> String {
    let head =
        format!("# {release}: file, spec, result on the embedded API server; by make conformance-apiserver\n{real}\n");
    let lines = specs.iter().map(|spec| {
        let outcome = outcomes.iter().find(|(run, _)| *run == spec);
        let result = match (reason(&NOT_APPLICABLE, spec), outcome) {
            (Some(why), _) => format!("does not apply: {why}"),
            (None, Some((_, outcome))) if outcome.has_passed => "passed".to_owned(),
            _ => format!("failed: {}", reason(&UNSERVED, spec).unwrap_or("not known")),
        };
        format!("{}\t{}\t{result}\n", spec.file, spec.name)
    });
    std::iter::once(head).chain(lines).collect()
}

/// All specs, by file and line.
fn list(program: &Path) -> Result<Vec<Spec>, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let report = directory.path().join("report.json");
    let mut command = Command::new(program);
    command.args(["--ginkgo.dry-run", "--provider=skeleton", "--kubeconfig=/dev/null"]);
    command.arg(format!("--ginkgo.json-report={}", report.display())).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map_err(|error| format!("{}: {error}", program.display()))?;
    machinery_report::specs(&report)
}

/// Forgets the history again and again, after a write: the newest revision is never forgotten. On a real cluster something is
/// always written, and etcd forgets every five minutes.
async fn compact(server: &ApiServer) {
    let namespaces: Api<Namespace> = Api::all(server.client());
    for round in 1.. {
        tokio::time::sleep(BETWEEN_COMPACTIONS).await;
        let change = json!({"metadata": {"annotations": {"example.com/compactions": round.to_string()}}});
        namespaces.patch("default", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
        server.compact();
    }
}

/// Runs one spec in a process of its own, because one that fails in a goroutine ends its process.
async fn run_one(program: &Path, kubeconfig: &Path, flags: &[&str], spec: &Spec, seconds: u32) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let report: PathBuf = directory.path().join("report.json");
    let mut command = Command::new("timeout");
    command
        .arg((seconds + 15).to_string())
        .arg(program)
        .arg(format!("--ginkgo.focus={}", regex::escape(&spec.text)))
        .arg(format!("--ginkgo.timeout={seconds}s"))
        .arg(format!("--ginkgo.json-report={}", report.display()))
        .args(["--ginkgo.no-color", "--provider=skeleton"])
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .args(flags)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // On another thread, since this one may be the server's. The report says what the exit code does not.
    let _ = tokio::task::spawn_blocking(move || command.status()).await;
    machinery_report::outcome(&report, spec)
}
