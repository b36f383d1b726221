//! The manifests: generated ones match the code, kubectl builds each directory if it is installed, the embedded API
//! server accepts them, and a real one admits them if the fixture is built.
//!
//! A missing tool is reported in the output; with `REQUIRE_FIXTURE=1` it is a failure. `make fixture` builds the
//! fixture.
#![allow(clippy::unwrap_used, clippy::explicit_write, missing_docs)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use apimachinery::clock::SystemClock;
use cronjob_controller::api::crd;
use cronjob_controller::options::{self, Environment};
use http::Method;
use serde_json::{Value, json};
use testkit::driver;
use testkit::embedded::{self, Served};
use testkit::fixture;
use testkit::fixture::control_plane::{ControlPlane, Extras};
use testkit::tools;

/// All overlays to deploy.
const OVERLAYS: [&str; 7] =
    ["default", "instead", "sharded", "single-namespace", "tutorial", "tutorial-certmanager", "annotated"];

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests")
}

fn kubectl(kubeconfig: &Path, args: &[&str]) -> Output {
    Command::new("kubectl").args(args).env("KUBECONFIG", kubeconfig).output().unwrap()
}

/// The objects that kustomize builds from a directory.
fn built(directory: &Path) -> Vec<Value> {
    let built = kubectl(Path::new("/dev/null"), &["kustomize", directory.to_str().unwrap()]);
    assert!(built.status.success(), "{}: {}", directory.display(), String::from_utf8_lossy(&built.stderr));
    documents(&String::from_utf8(built.stdout).unwrap())
}

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

#[test]
fn definitions_are_what_make_manifests_writes() {
    let bases = manifests().join("crd/bases");
    let files = crd::files().unwrap();
    for (name, yaml) in &files {
        let stored = fs::read_to_string(bases.join(name)).unwrap_or_default();
        assert!(stored == *yaml, "manifests/crd/bases/{name} is stale; run make manifests");
    }
    assert_eq!(fs::read_dir(&bases).unwrap().count(), files.len(), "a file too many in {}", bases.display());
}

#[test]
fn the_file_to_install_from_is_what_make_manifests_renders() {
    if !tools::has_kubectl("manifests") {
        return;
    }
    let stored = documents(&fs::read_to_string(manifests().join("install.yaml")).unwrap());
    assert!(stored == built(&manifests().join("instead")), "manifests/install.yaml is stale; run make manifests");
}

/// Every directory with a kustomization.
fn kustomizations(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            kustomizations(&path, found);
        } else if path.ends_with("kustomization.yaml") {
            found.push(directory.to_owned());
        }
    }
    found.sort();
}

#[test]
fn every_directory_of_the_manifests_can_be_built() {
    if !tools::has_kubectl("manifests") {
        return;
    }
    let mut directories = Vec::new();
    kustomizations(&manifests(), &mut directories);
    for overlay in OVERLAYS {
        assert!(directories.contains(&manifests().join(overlay)), "{overlay} is missing");
    }
    for directory in directories {
        for object in built(&directory) {
            assert!(object["kind"].is_string(), "{}: {object}", directory.display());
        }
    }
}

#[test]
fn every_manifest_is_part_of_a_kustomization() {
    let mut directories = Vec::new();
    kustomizations(&manifests(), &mut directories);
    for directory in directories {
        let kustomization = fs::read_to_string(directory.join("kustomization.yaml")).unwrap();
        let files = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        for file in files.filter(|file| !file.ends_with("kustomization.yaml")) {
            let name = file.file_name().unwrap().to_str().unwrap();
            assert!(kustomization.contains(&format!(" {name}")), "{} is forgotten", file.display());
        }
    }
}

/// The environment of a Pod in the Deployments.
struct InPod;

impl Environment for InPod {
    fn pod_namespace(&self) -> Option<String> {
        Some("somewhere".to_owned())
    }
}

#[test]
fn every_deployment_has_arguments_that_the_program_takes() {
    if !tools::has_kubectl("manifests") {
        return;
    }
    for overlay in OVERLAYS {
        let objects = built(&manifests().join(overlay));
        let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let args = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
        let args = args.iter().map(|arg| arg.as_str().unwrap().replace("$(POD_NAMESPACE)", "somewhere"));
        let parsed = options::parse(std::iter::once("cronjob-controller".to_owned()).chain(args), &InPod);
        assert!(parsed.is_ok(), "{overlay}: {parsed:?}");
    }
}

/// A directory for the Prometheus operator, and the overlay whose Deployment is scraped.
const SCRAPED: [(&str, &str); 2] = [("prometheus", "default"), ("tutorial/prometheus", "tutorial")];

#[test]
fn scrape_configuration_matches_the_deployments_ports() {
    if !tools::has_kubectl("manifests") {
        return;
    }
    let the = |objects: &[Value], kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap().clone();
    let named = |list: &Value, name: &Value| {
        let found = list.as_array().unwrap().iter().find(|item| item["name"] == *name);
        found.unwrap_or_else(|| panic!("no {name} in {list}")).clone()
    };
    let selects = |selector: &Value, labels: &Value| {
        let selector = selector.as_object().unwrap();
        assert!(selector.iter().all(|(key, value)| labels[key] == *value), "{selector:?} misses {labels}");
    };
    for (scraped, overlay) in SCRAPED {
        let (scraped, deployed) = (built(&manifests().join(scraped)), built(&manifests().join(overlay)));
        let (monitor, service) = (the(&scraped, "ServiceMonitor"), the(&scraped, "Service"));
        let (deployment, policy) = (the(&deployed, "Deployment"), the(&deployed, "NetworkPolicy"));
        for object in [&monitor, &service] {
            assert_eq!(object["metadata"]["namespace"], deployment["metadata"]["namespace"], "{object}");
        }
        let template = &deployment["spec"]["template"];
        selects(&monitor["spec"]["selector"]["matchLabels"], &service["metadata"]["labels"]);
        selects(&service["spec"]["selector"], &template["metadata"]["labels"]);

        let endpoint = &monitor["spec"]["endpoints"][0];
        let target = &named(&service["spec"]["ports"], &endpoint["port"])["targetPort"];
        let container = &template["spec"]["containers"][0];
        let port = &named(&container["ports"], target)["containerPort"];
        let admitted = policy["spec"]["ingress"][0]["ports"].as_array().unwrap();
        assert!(admitted.iter().any(|admitted| admitted["port"] == *target), "the NetworkPolicy keeps {target} closed");

        let token = &endpoint["authorization"]["credentials"]["name"];
        let flag = if endpoint["scheme"] == "https" {
            assert_eq!(the(&scraped, "Secret")["metadata"]["name"], *token);
            format!("--secure-port={port}")
        } else {
            assert!(token.is_null(), "plain HTTP would show {token} to everybody");
            format!("--metrics-bind-address=:{port}")
        };
        assert!(container["args"].as_array().unwrap().contains(&flag.as_str().into()), "{overlay} has no {flag}");
    }
}

#[test]
fn probes_of_every_overlay_ask_a_port_of_their_own_that_the_network_policy_admits() {
    if !tools::has_kubectl("manifests") {
        return;
    }
    for overlay in OVERLAYS {
        let objects = built(&manifests().join(overlay));
        let the = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap();
        let container = &the("Deployment")["spec"]["template"]["spec"]["containers"][0];
        for (probe, path) in [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
            let asked = &container[probe]["httpGet"];
            assert_eq!((&asked["path"], &asked["port"]), (&json!(path), &json!("health")), "{overlay}: {probe}");
            assert!(asked["scheme"].is_null() || asked["scheme"] == "HTTP", "{overlay}: {probe}");
        }
        let ports = container["ports"].as_array().unwrap();
        let port = &ports.iter().find(|port| port["name"] == "health").unwrap()["containerPort"];
        let flag = json!(format!("--health-probe-bind-address=:{port}"));
        assert!(container["args"].as_array().unwrap().contains(&flag), "{overlay} has no {flag}");
        let admitted = the("NetworkPolicy")["spec"]["ingress"][0]["ports"].as_array().unwrap();
        assert!(admitted.iter().any(|admitted| admitted["port"] == "health"), "{overlay}: the NetworkPolicy");
        let shared = format!("--metrics-bind-address=:{port}");
        assert!(!container["args"].as_array().unwrap().contains(&shared.into()), "{overlay}: probes share a port");
    }
}

/// The API server's own strict validation checks every field, better than a copy of its schemas could. For kinds other
/// than its own it accepts any field.
#[tokio::test]
async fn every_directory_is_admitted_by_a_real_api_server() {
    let binary = match fixture::find() {
        Ok(binary) => binary,
        Err(why) => return tools::without_fixture("manifests", &why),
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let plane = ControlPlane::start_with(&binary, Extras::Bare).await.unwrap();
    let kubeconfig = plane.admin_kubeconfig();
    let run = |args: &[&str]| {
        let output = kubectl(&kubeconfig, args);
        assert!(output.status.success(), "kubectl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let foreign = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/foreign_kinds.yaml");
    run(&["apply", "--server-side", "-f", foreign]);
    run(&["apply", "--server-side", "-k", manifests().join("crd").to_str().unwrap()]);
    run(&["wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinitions", "--all"]);

    let mut directories = Vec::new();
    kustomizations(&manifests(), &mut directories);
    let mut namespaces = BTreeSet::from(["default".to_owned(), "kube-system".to_owned()]);
    for directory in &directories {
        for object in built(directory) {
            // An object of a dry run does not exist for later ones in the same run.
            if let Some(namespace) = object["metadata"]["namespace"].as_str()
                && namespaces.insert(namespace.to_owned())
            {
                let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
                    "name": namespace, "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
                }});
                driver::request(&plane.admin(), Method::POST, "/api/v1/namespaces", Some(&body)).await.unwrap();
            }
            if object["kind"] == "Deployment" {
                fits_the_namespace(&plane, &object).await;
            }
        }
        let path = directory.to_str().unwrap();
        run(&["apply", "--server-side", "--dry-run=server", "--validate=strict", "-k", path]);
    }
}

/// Those with cert-manager's or Prometheus's kinds cannot be applied: the embedded server has no definitions of them.
#[tokio::test(flavor = "multi_thread")]
async fn every_overlay_without_foreign_kinds_can_be_applied_and_deleted_on_the_embedded_server() {
    if !tools::has_kubectl("manifests") {
        return;
    }
    for overlay in ["default", "instead", "sharded", "single-namespace", "annotated", "samples", "crd", "tutorial"] {
        let served = Served::start(embedded::server(Arc::new(SystemClock))).await;
        let directory = format!("manifests/{overlay}");
        let objects = built(&manifests().join(overlay));
        if overlay == "single-namespace" {
            let namespace = objects[0]["metadata"]["namespace"].as_str().unwrap();
            served.each(&["create", "namespace", namespace]).await;
        }
        let all_are = |said: Vec<String>, holds: fn(&str) -> bool| {
            assert_eq!(said.iter().filter(|line| holds(line)).count(), objects.len(), "{overlay}: {said:#?}");
            assert_eq!(said.len(), objects.len(), "{overlay}: a word too many: {said:#?}");
        };
        all_are(served.each(&["apply", "-k", &directory]).await, |line| line.ends_with(" created"));
        all_are(served.each(&["apply", "-k", &directory]).await, embedded::is_unchanged);
        let shown = served.each(&["get", "-k", &directory, "-o", "wide"]).await;
        assert!(shown.len() > objects.len(), "{shown:#?}");
        all_are(served.each(&["delete", "-k", &directory]).await, |line| line.contains(" deleted"));
        if matches!(overlay, "default" | "tutorial") {
            let server_side = ["apply", "--server-side", "--validate=strict", "-k", &directory];
            all_are(served.each(&server_side).await, |line| line.ends_with(" serverside-applied"));
            all_are(served.each(&server_side).await, |line| line.ends_with(" serverside-applied"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_manifest_is_refused_with_the_name_of_the_field() {
    if !tools::has_kubectl("manifests") {
        return;
    }
    let served = Served::start(embedded::server(Arc::new(SystemClock))).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wrong.yaml");
    let rows = [
        ("{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {prots: []}}", "unknown field \"spec.prots\""),
        (
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: two}}",
            "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct \
             field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {}}",
            "The Deployment \"x\" is invalid: \n* spec.selector: Required value\n\
             * spec.template.spec.containers: Required value",
        ),
        (
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: X}}",
            "The ConfigMap \"X\" is invalid: metadata.name: Invalid value: \"X\"",
        ),
        ("{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: nowhere}}", "namespaces \"nowhere\" not found"),
        (
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: 'a:b'}}",
            "roleRef.name: Required value",
        ),
    ];
    for (manifest, want) in rows {
        // A text that begins with a brace would be JSON.
        fs::write(&path, format!("# wrong\n{manifest}")).unwrap();
        let (taken, said) = served.kubectl(&["apply", "-f", path.to_str().unwrap()]).await;
        assert!(!taken && said.contains(want), "{manifest}: {said}");
    }
}

/// A Pod as the Deployment's ReplicaSet would create it, but without the priority, which needs a quota and its
/// controller.
async fn fits_the_namespace(plane: &ControlPlane, deployment: &Value) {
    let template = &deployment["spec"]["template"];
    let mut spec = template["spec"].clone();
    spec.as_object_mut().unwrap().remove("priorityClassName");
    let metadata = json!({"name": "asked-for", "labels": template["metadata"]["labels"]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    let namespace = deployment["metadata"]["namespace"].as_str().unwrap();
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
    driver::request(&plane.admin(), Method::POST, &path, Some(&pod)).await.unwrap();
}
