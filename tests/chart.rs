//! The Helm chart: it renders the objects of the kustomize overlays, its values change what they name and nothing else, and a
//! real API server admits, upgrades and rolls back a release.
//!
//! helm is `target/tools/bin/helm` (`make target/tools/bin/helm`) or that of `PATH`. A missing tool is reported in the output;
//! with `REQUIRE_TOOLS=1` it is a failure. `tests/install/run` installs the chart as README says, and runs it under load.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use testkit::fixture;
use testkit::fixture::control_plane::{ControlPlane, Extras};
use testkit::tools;

/// A mode of the chart, which is an overlay, and the namespace that the overlay names.
const MODES: [(&str, &str); 6] = [
    ("instead", "cronjob-controller-system"),
    ("annotated", "cronjob-controller-system"),
    ("single-namespace", "team-a"),
    ("instance", "cronjob-controller-system"),
    ("tutorial", "cronjob-tutorial-system"),
    ("tutorial-self-signed", "cronjob-tutorial-system"),
];

/// helm from the Go module proxy takes an old release for the cluster's where it asks no cluster.
const RELEASE: &str = "--kube-version=1.37";

/// What the overlays do and the chart does not by default: the namespace, definitions without Helm's annotation, and the tag.
const AS_OVERLAY: [&str; 2] = ["--set=namespace.create=true,crds.keep=false", "--set=image.tag=latest"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn chart() -> String {
    root().join("charts/cronjob-controller").display().to_string()
}

/// helm, if it exists and so does kubectl.
fn helm() -> Option<PathBuf> {
    let built = root().join("target/tools/bin/helm");
    let helm = if built.exists() { built } else { PathBuf::from("helm") };
    (tools::has_kubectl("chart") && tools::has("chart", helm.to_str().unwrap(), &["version"])).then_some(helm)
}

fn run(program: impl AsRef<Path>, args: &[&str], kubeconfig: &Path) -> Output {
    Command::new(program.as_ref()).args(args).env("KUBECONFIG", kubeconfig).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

fn succeeded(program: impl AsRef<Path>, args: &[&str], kubeconfig: &Path) -> String {
    let output = run(program.as_ref(), args, kubeconfig);
    assert!(output.status.success(), "{} {args:?}: {}", program.as_ref().display(), said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Objects by kind, namespace and name.
type Objects = BTreeMap<(String, String, String), Value>;

fn objects(yaml: &str) -> Objects {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let named = documents.into_iter().filter(|object| !object.is_null()).map(|object| {
        let metadata = &object["metadata"];
        ((text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"])), object)
    });
    let mut objects = Objects::new();
    for (key, object) in named {
        assert!(objects.insert(key.clone(), object).is_none(), "twice: {key:?}");
    }
    objects
}

/// The value of a mode, with those that it needs and that its overlay has.
fn set(mode: &str) -> String {
    let needed = if mode == "instance" { ",instance=teams,namespaces={shop,bank}" } else { "" };
    format!("--set=mode={mode}{needed}")
}

/// What the chart renders without its tests.
fn rendered(helm: &Path, mode: &str, namespace: &str, values: &[&str]) -> Objects {
    let chart = chart();
    let (mode, namespace) = (set(mode), format!("--namespace={namespace}"));
    let args =
        [&["template", "--skip-tests", RELEASE, "cronjob-controller", &chart, &mode, &namespace], values].concat();
    objects(&succeeded(helm, &args, Path::new("/dev/null")))
}

fn built(directories: &[&str]) -> Objects {
    let mut all = Objects::new();
    for directory in directories {
        let directory = root().join("manifests").join(directory);
        all.extend(objects(&succeeded("kubectl", &["kustomize", directory.to_str().unwrap()], Path::new("/dev/null"))));
    }
    all
}

fn assert_equal(what: &str, chart: &Objects, overlay: &Objects) {
    let (of_chart, of_overlay): (Vec<_>, Vec<_>) = (chart.keys().collect(), overlay.keys().collect());
    assert_eq!(of_chart, of_overlay, "{what}: the objects");
    for (key, object) in chart {
        assert_eq!(object, &overlay[key], "{what}: {key:?}");
    }
}

#[test]
fn chart_files_are_what_make_chart_writes() {
    if !tools::has_kubectl("chart") {
        return;
    }
    let output = Command::new(root().join("hack/chart")).arg("--check").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn chart_and_overlay_render_the_same_objects() {
    let Some(helm) = helm() else { return };
    for (mode, namespace) in MODES {
        assert_equal(mode, &rendered(&helm, mode, namespace, &AS_OVERLAY), &built(&[mode]));
    }
    let parts = "--set=policies=true,policiesAction=Deny,guard=true,prometheus.create=true";
    let whole = [AS_OVERLAY.as_slice(), &[parts]].concat();
    assert_equal(
        "with all parts",
        &rendered(&helm, "instead", "cronjob-controller-system", &whole),
        &built(&["instead", "policies", "guard", "prometheus"]),
    );
    let scraped = [AS_OVERLAY.as_slice(), &["--set=prometheus.create=true"]].concat();
    assert_equal(
        "the tutorial, scraped",
        &rendered(&helm, "tutorial", "cronjob-tutorial-system", &scraped),
        &built(&["tutorial", "tutorial/prometheus"]),
    );
}

#[test]
fn namespace_of_the_release_replaces_the_overlays_everywhere() {
    let Some(helm) = helm() else { return };
    for (mode, namespace) in MODES {
        let objects = rendered(&helm, mode, "elsewhere", &["--set=policies=true"]);
        let text = serde_json::to_string(&objects.values().collect::<Vec<_>>()).unwrap();
        assert!(!text.contains(namespace), "{mode}: {namespace}");
    }
}

#[test]
fn releases_for_one_namespace_each_share_no_object() {
    let Some(helm) = helm() else { return };
    let of = |team| rendered(&helm, "single-namespace", team, &["--set=guard=true,prometheus.create=true"]);
    let (first, second) = (of("team-a"), of("team-b"));
    let shared: Vec<_> = first.keys().filter(|key| second.contains_key(*key)).collect();
    assert!(shared.is_empty(), "{shared:?}");
    for policy in ["cronjob-controller-jobs", "cronjob-controller-status"] {
        for kind in ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"] {
            let key = |team: &str| (kind.to_owned(), String::new(), format!("{policy}-{team}"));
            let (first, second) = (&first[&key("team-a")], &second[&key("team-b")]);
            assert!(first.to_string().contains("team-a") && !first.to_string().contains("team-b"), "{first}");
            assert!(second.to_string().contains("team-b") && !second.to_string().contains("team-a"), "{second}");
        }
        let binding = ("ValidatingAdmissionPolicyBinding".into(), String::new(), format!("{policy}-team-a"));
        assert_eq!(first[&binding]["spec"]["policyName"], format!("{policy}-team-a"));
    }
}

/// The values, the object, the field as a JSON pointer, and its value.
type Row = (&'static [&'static str], (&'static str, &'static str), &'static str, Value);

fn rows() -> Vec<Row> {
    let deployment = ("Deployment", "cronjob-controller");
    let policy = ("NetworkPolicy", "cronjob-controller");
    let container = "/spec/template/spec/containers/0";
    let pointer = |field: &str| -> &'static str { format!("{container}/{field}").leak() };
    vec![
        (&["--set=replicas=5"], deployment, "/spec/replicas", json!(5)),
        (&["--set=image.repository=r/c,image.tag=v9"], deployment, pointer("image"), json!("r/c:v9")),
        (
            &["--set=image.digest=sha256:0000000000000000000000000000000000000000000000000000000000000000"],
            deployment,
            pointer("image"),
            json!(format!("cronjob-controller@sha256:{}", "0".repeat(64))),
        ),
        (
            &["--set=resources.limits.memory=1Gi"],
            deployment,
            pointer("resources"),
            json!({"limits": {"memory": "1Gi"}}),
        ),
        (&["--set=timeZone=Europe/Berlin"], deployment, pointer("env/1/value"), json!("Europe/Berlin")),
        (&["--set=verbosity=4"], deployment, pointer("args/6"), json!("-v=4")),
        (&["--set=namespaces={a,b}"], deployment, pointer("args/7"), json!("--namespace=a,b")),
        (&["--set=cronjobMetrics=5000"], deployment, pointer("args/7"), json!("--cronjob-metrics=5000")),
        (&["--set=extraArgs={--policies=false}"], deployment, pointer("args/7"), json!("--policies=false")),
        (&["--set=priorityClassName=high"], deployment, "/spec/template/spec/priorityClassName", json!("high")),
        (&["--set=priorityClassName="], deployment, "/spec/template/spec/priorityClassName", Value::Null),
        (&["--set=nodeSelector.disk=ssd"], deployment, "/spec/template/spec/nodeSelector", json!({"disk": "ssd"})),
        (&["--set=podAnnotations.a=b"], deployment, "/spec/template/metadata/annotations/a", json!("b")),
        (&["--set=commonLabels.team=x"], ("ServiceAccount", "cronjob-controller"), "/metadata/labels/team", json!("x")),
        (
            &["--set=networkPolicy.apiServerCIDRs={10.0.0.1/32},networkPolicy.apiServerPorts={443}"],
            policy,
            "/spec/egress",
            json!([{"ports": [{"port": 443, "protocol": "TCP"}], "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}]}]),
        ),
        (
            &["--set-json=networkPolicy.metricsFrom=[{\"podSelector\":{}}]"],
            policy,
            "/spec/ingress",
            json!([
                {"ports": [{"port": "https", "protocol": "TCP"}], "from": [{"podSelector": {}}]},
                {"ports": [{"port": "health", "protocol": "TCP"}]},
            ]),
        ),
        (
            &["--set=mode=tutorial"],
            ("CustomResourceDefinition", "cronjobs.batch.tutorial.kubebuilder.io"),
            "/metadata/annotations/helm.sh~1resource-policy",
            json!("keep"),
        ),
        (
            &[
                "--set=prometheus.create=true,prometheus.serviceAccount.name=scraper,prometheus.serviceAccount.namespace=m",
            ],
            ("ClusterRoleBinding", "cronjob-controller-metrics-reader"),
            "/subjects",
            json!([{"kind": "ServiceAccount", "name": "scraper", "namespace": "m"}]),
        ),
        (
            &["--set=prometheus.create=true,prometheus.runbookURL=https://wiki/runbooks"],
            ("PrometheusRule", "cronjob-controller"),
            "/spec/groups/0/rules/0/annotations/runbook_url",
            json!("https://wiki/runbooks#cronjobcontrollerabsent"),
        ),
    ]
}

#[test]
fn releases_for_several_instances_share_no_object() {
    let Some(helm) = helm() else { return };
    let of = |name: &str, namespaces: &str| {
        let values = format!("--set=guard=true,instance={name},namespaces={{{namespaces}}}");
        rendered(&helm, "instance", "cronjob-controller-system", &[&values])
    };
    let (first, second) = (of("one", "a,b"), of("two", "c"));
    let shared: Vec<_> = first.keys().filter(|key| second.contains_key(*key)).collect();
    assert!(shared.is_empty(), "{shared:?}");
    let bound = |objects: &Objects| {
        let bindings = objects.iter().filter(|((kind, _, _), _)| kind == "RoleBinding");
        let bound = bindings.filter(|(_, binding)| binding["roleRef"]["kind"] == "ClusterRole");
        bound.map(|((_, namespace, name), _)| format!("{namespace}/{name}")).collect::<Vec<_>>()
    };
    assert_eq!(bound(&first), ["a/cronjob-controller-one", "b/cronjob-controller-one"]);
    assert_eq!(bound(&second), ["c/cronjob-controller-two"]);
    let key = |kind: &str, namespace: &str, name: &str| (kind.to_owned(), namespace.to_owned(), name.to_owned());
    let deployment = &first[&key("Deployment", "cronjob-controller-system", "cronjob-controller-one")].to_string();
    let args = ["\"--namespace=a,b\"", "\"--leader-elect-resource-name=cronjob-controller-one\""];
    assert!(args.iter().all(|arg| deployment.contains(arg)), "{deployment}");
    let guard = first[&key("ValidatingAdmissionPolicy", "", "cronjob-controller-jobs-one")].to_string();
    assert!(guard.contains("cronjob-controller-system:cronjob-controller-one'"), "{guard}");
    let binding = &first[&key("ValidatingAdmissionPolicyBinding", "", "cronjob-controller-jobs-one")];
    assert_eq!(binding["spec"]["policyName"], "cronjob-controller-jobs-one");
}

#[test]
fn value_changes_the_field_that_it_names() {
    let Some(helm) = helm() else { return };
    for (values, (kind, name), pointer, want) in rows() {
        let objects = rendered(&helm, "instead", "cronjob-controller-system", values);
        let object = objects.iter().find(|((of, _, called), _)| of == kind && called == name);
        let (_, object) = object.unwrap_or_else(|| panic!("{values:?}: no {kind} {name}"));
        assert_eq!(object.pointer(pointer).cloned().unwrap_or_default(), want, "{values:?}: {pointer}");
    }
}

#[test]
fn object_that_a_value_turns_off_is_not_rendered() {
    let Some(helm) = helm() else { return };
    for (value, kind) in [
        ("namespace.create=false", "Namespace"),
        ("resourceQuota=false", "ResourceQuota"),
        ("podDisruptionBudget=false", "PodDisruptionBudget"),
        ("networkPolicy.create=false", "NetworkPolicy"),
        ("flowControl=false", "FlowSchema"),
        ("dashboard=false", "ConfigMap"),
    ] {
        let off = format!("--set={value}");
        let on = ["--set=prometheus.create=true,namespace.create=true"];
        let count = |values: &[&str]| {
            let objects = rendered(&helm, "instead", "cronjob-controller-system", values);
            objects.keys().filter(|(of, _, _)| of == kind).count()
        };
        assert!(count(&on) > 0, "{kind}");
        assert_eq!(count(&[on[0], &off]), 0, "{value}");
    }
}

/// The guard is in force, and the policies warn, where the cluster has such policies and only one release has these names.
#[test]
fn policies_and_guard_follow_the_cluster_unless_a_value_says_whether() {
    let Some(helm) = helm() else { return };
    let has = "--api-versions=admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy";
    let warn = "cronjob-controller-annotation-names Warn, cronjob-controller-annotation-values Warn";
    let deny = "cronjob-controller-annotation-names Warn, cronjob-controller-annotation-values Deny";
    let guard = "cronjob-controller-jobs Deny, cronjob-controller-status Deny";
    let (both, denying) = (format!("{warn}, {guard}"), format!("{deny}, {guard}"));
    let rows: [(&str, &str, &[&str], &str); 12] = [
        ("a cluster with such policies", "instead", &[has], &both),
        ("the same, beside the in-tree controller", "annotated", &[has], &both),
        ("nothing cluster-scoped", "single-namespace", &[has], ""),
        ("its guard would be for another kind", "tutorial", &[has], ""),
        ("a cluster without, or none", "instead", &[], ""),
        ("auto, in words", "instead", &[has, "--set=guard=auto,policies=auto"], &both),
        ("without asking the cluster", "instead", &["--set=guard=true,policies=true"], &both),
        ("not wanted", "instead", &[has, "--set=guard=false,policies=false"], ""),
        ("one of them", "instead", &[has, "--set=policies=false"], guard),
        ("refused values", "instead", &[has, "--set=policiesAction=Deny"], &denying),
        ("one namespace's, where asked for", "single-namespace", &["--set=policies=true"], warn),
        ("the tutorial's, where asked for", "tutorial", &["--set=policies=true"], warn),
    ];
    for (sentence, mode, values, want) in rows {
        let objects = rendered(&helm, mode, "cronjob-controller-system", values);
        let of = |wanted: &str| objects.iter().filter(|((kind, _, _), _)| kind == wanted).collect::<Vec<_>>();
        let bindings = of("ValidatingAdmissionPolicyBinding");
        let found: Vec<String> = bindings
            .iter()
            .map(|((_, _, name), object)| {
                format!("{name} {}", object["spec"]["validationActions"][0].as_str().unwrap())
            })
            .collect();
        assert_eq!(found.join(", "), want, "{sentence}");
        assert_eq!(of("ValidatingAdmissionPolicy").len(), bindings.len(), "{sentence}");
    }
}

/// It needs no image but the one that is tested, which has a digest where the Deployment has.
#[test]
fn test_pod_runs_the_controllers_image_with_arguments_that_it_takes() {
    let Some(helm) = helm() else { return };
    for (mode, namespace) in MODES {
        let args = [
            "template",
            RELEASE,
            "release",
            &chart(),
            &set(mode),
            &format!("--namespace={namespace}"),
            &format!("--set=image.digest=sha256:{}", "0".repeat(64)),
        ];
        let objects = objects(&succeeded(&helm, &args, Path::new("/dev/null")));
        let the = |kind: &str| objects.iter().find(|((of, _, _), _)| of == kind).unwrap().1;
        let (pod, deployment) = (&the("Pod")["spec"]["containers"][0], the("Deployment"));
        let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
        assert!(image.as_str().unwrap().contains("@sha256:0000"), "{mode}: {image}");
        let template = the("CronJob").pointer("/spec/jobTemplate/spec/template/spec/containers/0/image");
        assert_eq!((&pod["image"], template), (image, Some(image)), "{mode}");
        let args = pod["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
        let command = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"))
            .args(args)
            .env("KUBECONFIG", "/nowhere")
            .env_remove("KUBERNETES_SERVICE_HOST")
            .output()
            .unwrap();
        // 2 for a wrong command line.
        assert_eq!(command.status.code(), Some(1), "{mode}: {}", said(&command));
    }
}

#[test]
fn wrong_value_is_refused_with_its_name() {
    let Some(helm) = helm() else { return };
    for (value, want) in [
        ("mode=default", "mode"),
        ("mode=instance", "namespaces"),
        ("mode=instance,namespaces={shop},prometheus.create=true", "prometheus"),
        ("instance=Teams", "instance"),
        ("replicas=-1", "replicas"),
        ("image.digest=sha256:1", "image"),
        ("imagee=x", "imagee"),
        ("networkPolicy.apiServerCIDRs={10.0.0.1}", "apiServerCIDRs"),
        ("extraArgs={policies}", "extraArgs"),
        ("mode=tutorial,guard=true", "guard"),
        ("guard=yes", "guard"),
        ("policiesAction=Audit", "policiesAction"),
        ("test.image=kubectl", "test"),
    ] {
        let output = run(&helm, &["template", RELEASE, &chart(), &format!("--set={value}")], Path::new("/dev/null"));
        assert!(!output.status.success(), "{value} is taken");
        assert!(said(&output).contains(want), "{value}: {}", said(&output));
    }
}

#[test]
fn chart_passes_lint() {
    let Some(helm) = helm() else { return };
    for (mode, _) in MODES {
        succeeded(&helm, &["lint", "--strict", "--quiet", RELEASE, &chart(), &set(mode)], Path::new("/dev/null"));
    }
}

#[tokio::test]
async fn real_api_server_admits_every_mode_and_a_release_is_upgraded_and_rolled_back() {
    let Some(helm) = helm() else { return };
    let binary = match fixture::find() {
        Ok(binary) => binary,
        Err(why) => return tools::without_fixture("chart", &why),
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let plane = ControlPlane::start_with(&binary, Extras::Bare).await.unwrap();
    let kubeconfig = plane.admin_kubeconfig();
    let helm = |args: &[&str]| succeeded(&helm, args, &kubeconfig);
    let kubectl = |args: &[&str]| succeeded("kubectl", args, &kubeconfig);
    let (chart, foreign) = (chart(), root().join("tests/e2e/foreign_kinds.yaml"));
    kubectl(&["apply", "--server-side", "-f", foreign.to_str().unwrap()]);
    kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinitions", "--all"]);

    // In which the instance works.
    kubectl(&["create", "namespace", "shop"]);
    kubectl(&["create", "namespace", "bank"]);
    for (mode, namespace) in MODES {
        if kubectl(&["get", "namespace", namespace, "--ignore-not-found", "-o", "name"]).is_empty() {
            kubectl(&["create", "namespace", namespace]);
        }
        let (mode, namespace) = (set(mode), format!("--namespace={namespace}"));
        helm(&["install", "tried", &chart, "--dry-run=server", &mode, &namespace]);
        // helm's dry run asks the server only for lookups; kubectl's asks it to validate each object.
        let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
        std::fs::write(file.path(), helm(&["template", RELEASE, "tried", &chart, "--skip-tests", &mode, &namespace]))
            .unwrap();
        let path = file.path().to_str().unwrap();
        kubectl(&["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", path]);
    }

    let system = "--namespace=cronjob-controller-system";
    helm(&["install", "cronjob-controller", &chart, system]);
    let args =
        ["get", "deployment", "cronjob-controller", system, "-o", "jsonpath={.spec.template.spec.containers[0].args}"];
    let before = kubectl(&args);
    let policies = || kubectl(&["get", "validatingadmissionpolicies", "-o", "name"]).lines().count();
    assert_eq!(policies(), 4, "this server has such policies");
    let parts = "--set=verbosity=4,mode=annotated,policies=false,guard=false,prometheus.create=true";
    helm(&["upgrade", "cronjob-controller", &chart, system, parts]);
    assert!(kubectl(&args).contains("--manage=annotated") && kubectl(&args).contains("-v=4"), "{}", kubectl(&args));
    assert_eq!(policies(), 0, "turned off");
    helm(&["rollback", "cronjob-controller", "1", system]);
    assert_eq!(policies(), 4);
    assert_eq!(kubectl(&args), before);
    helm(&["uninstall", "cronjob-controller", system]);
    assert_eq!(policies(), 0, "left over");
    for kinds in [
        "deployments,roles,rolebindings,serviceaccounts,networkpolicies",
        "clusterroles,clusterrolebindings,flowschemas",
    ] {
        let left = kubectl(&["get", kinds, system, "-o", "name", "-l", "app.kubernetes.io/part-of=cronjob-controller"]);
        assert_eq!(left, "", "left over");
    }
}
