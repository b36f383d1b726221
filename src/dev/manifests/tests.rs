#![allow(clippy::unwrap_used)]

use apimachinery::clock::TestClock;

use super::*;
use crate::dev::cluster;

fn names(text: &str) -> Vec<(usize, String)> {
    let manifests = parse("f.yaml", text).unwrap();
    manifests.iter().map(|m| (m.place.document, m.object["metadata"]["name"].as_str().unwrap().to_owned())).collect()
}

fn object(name: &str) -> String {
    format!("apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: {name}\n")
}

#[test]
#[allow(clippy::type_complexity)]
fn documents_are_numbered_from_1_and_empty_ones_are_skipped() {
    let (a, b) = (object("a"), object("b"));
    let list = "kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: one}}\n\
                - {apiVersion: v1, kind: Namespace, metadata: {name: two}}\n";
    let rows: [(&str, String, &[(usize, &str)]); 7] = [
        ("one", a.clone(), &[(1, "a")]),
        ("two", format!("{a}---\n{b}"), &[(1, "a"), (2, "b")]),
        ("a marker and a comment at the top", format!("# hello\n---\n{a}--- # next\n{b}"), &[(1, "a"), (2, "b")]),
        ("an empty one between", format!("{a}---\n# nothing\n{b}"), &[(1, "a"), (2, "b")]),
        ("a list", list.to_owned(), &[(1, "one"), (1, "two")]),
        ("JSON", r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"j"}}"#.to_owned(), &[(1, "j")]),
        ("nothing at all", "# only words\n".to_owned(), &[]),
    ];
    for (sentence, text, want) in rows {
        let got = names(&text);
        let got: Vec<(usize, &str)> = got.iter().map(|(document, name)| (*document, name.as_str())).collect();
        assert_eq!(got, want, "{sentence}");
    }
}

#[test]
fn a_bad_manifest_is_named_by_file_document_and_field() {
    let a = object("a");
    let rows = [
        (
            "no kind",
            format!("{a}---\napiVersion: v1\n"),
            "f.yaml, document 2: kind: is missing; every manifest needs it",
        ),
        (
            "a number for a name",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: 12}\n".to_owned(),
            "f.yaml, document 1: metadata.name: 12 is not a text; put it in quotes",
        ),
        ("a text", "just words\n".to_owned(), "f.yaml, document 1: apiVersion: is missing; every manifest needs it"),
        (
            "a list that there is not",
            format!("apiVersion: v1\nkind: list\nitems:\n- {}", a.replace('\n', "\n  ")),
            "f.yaml, document 1: kind: there is no list in v1; did you mean List of v1?",
        ),
        (
            "a tab",
            format!("{a}---\n{a}spec:\n\tschedule: x\n"),
            "f.yaml, document 2: not YAML: line 11 column 1: a tab is used for indentation; use spaces",
        ),
        (
            "a value behind the marker",
            format!("{a}--- {{a: 1}}\n"),
            "f.yaml, document 2: not YAML: line 5: after --- only a comment may follow on the same line",
        ),
        (
            "a schedule without quotes",
            format!("{a}spec:\n  schedule: */5 * * * * # often\n"),
            "f.yaml, document 1: not YAML: line 6: a value that begins with * needs quotes: schedule: \"*/5 * * * *\"",
        ),
        (
            "a descriptor without quotes",
            format!("{a}spec:\n  schedule: @daily\n"),
            "f.yaml, document 1: not YAML: line 6: a value that begins with @ needs quotes: schedule: \"@daily\"",
        ),
        (
            "an error before a text with such a line",
            format!("{a}a: *gone\nb: |\n  c: *.x\n"),
            "f.yaml, document 1: not YAML: line 5 column",
        ),
    ];
    for (sentence, text, want) in rows {
        let error = parse("f.yaml", &text).unwrap_err().to_string();
        assert!(error.starts_with(want) && !error.contains('\n'), "{sentence}: {error}");
    }
}

#[test]
fn of_a_field_that_occurs_twice_the_last_value_counts() {
    let manifests = parse("f.yaml", &format!("{}kind: Job\n", object("a"))).unwrap();
    assert_eq!((manifests.len(), &manifests[0].object["kind"]), (1, &json!("Job")));
}

#[test]
fn a_directory_is_read_in_the_order_of_names_without_its_kustomization() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(directory.path().join(name), text).unwrap();
    let path = vec![directory.path().to_owned()];
    let error = load(&path).unwrap_err().to_string();
    assert!(error.ends_with("there is no .yaml, .yml or .json file in this directory"), "{error}");
    write("b.yml", object("b"));
    write("a.yaml", object("a"));
    write("kustomization.yaml", "resources: [a.yaml]\n".to_owned());
    write("README.md", "words".to_owned());
    let manifests = load(&path).unwrap();
    let names: Vec<&Value> = manifests.iter().map(|manifest| &manifest.object["metadata"]["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    let missing = load(&[directory.path().join("none.yaml")]).unwrap_err().to_string();
    assert!(missing.contains("none.yaml: cannot be read: No such file"), "{missing}");
}

#[test]
fn directories_below_are_read_only_if_asked_for_and_links_are_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(path("below/it")).unwrap();
    std::os::unix::fs::symlink(directory.path(), path("below/link")).unwrap();
    for name in ["z.yaml", "below/it/a.yaml"] {
        std::fs::write(path(name), object("a")).unwrap();
    }
    assert_eq!(files(directory.path(), false).unwrap().files, [path("z.yaml")]);
    assert_eq!(files(directory.path(), true).unwrap().files, [path("below/it/a.yaml"), path("z.yaml")]);
    assert!(matches!(files(&path("below"), false), Err(ManifestError::Empty(_))));
}

#[tokio::test(start_paused = true)]
async fn objects_and_definitions_that_cannot_be_served_are_skipped_and_other_refusals_are_errors() {
    let clock = TestClock::new(chrono::DateTime::UNIX_EPOCH);
    let server = cluster::api_server(clock, 1);
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n";
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: \
                      widgets.example.com}\nspec: {group: example.com}\n";
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    let text = [widget, definition, namespace].join("---\n");
    apply(&server, parse("f.yaml", &text).unwrap(), true).await.unwrap();
    let shop = send::<Value>(&server.client(), Method::GET, "/api/v1/namespaces/shop", JSON, &Value::Null).await;
    assert_eq!(shop.unwrap()["metadata"]["name"], "shop");
    let error = apply(&server, parse("f.yaml", &object("a")).unwrap(), true).await.unwrap_err();
    assert!(matches!(error, ManifestError::Refused { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn namespace_that_no_manifest_defines_is_made() {
    let server = cluster::api_server(TestClock::new(chrono::DateTime::UNIX_EPOCH), 1);
    let map =
        |namespace: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m, namespace: {namespace}}}\n");
    let defined = "apiVersion: v1\nkind: Namespace\nmetadata: {name: own, labels: {a: b}}\n".to_owned();
    let text = [map("shop"), map("own"), map("shop"), map("default"), defined].join("---\n");
    apply(&server, parse("f.yaml", &text).unwrap(), true).await.unwrap();
    let get = async |path: &str| send::<Value>(&server.client(), Method::GET, path, JSON, &Value::Null).await.unwrap();
    assert_eq!(get("/api/v1/namespaces/shop").await["metadata"]["name"], "shop");
    assert_eq!(get("/api/v1/namespaces/own").await["metadata"]["labels"]["a"], "b");
    assert_eq!(get("/api/v1/namespaces/shop/configmaps/m").await["metadata"]["namespace"], "shop");
}

#[tokio::test(start_paused = true)]
async fn kind_that_is_mistyped_is_an_error_with_the_one_that_is_meant() {
    let rows = [
        (
            "batch/v1",
            "Cronjob",
            Some("f.yaml, document 1: kind: there is no Cronjob in batch/v1; did you mean CronJob of batch/v1?"),
        ),
        (
            "apps/v1",
            "CronJob",
            Some("f.yaml, document 1: apiVersion: there is no CronJob in apps/v1; did you mean CronJob of batch/v1?"),
        ),
        ("example.com/v1", "Widget", None),
    ];
    for (api_version, kind, want) in rows {
        let server = cluster::api_server(TestClock::new(chrono::DateTime::UNIX_EPOCH), 1);
        let text = format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n");
        let error = apply(&server, parse("f.yaml", &text).unwrap(), true).await.err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), want, "{api_version} {kind}");
    }
}

/// As `kubectl apply` creates them from what `kubectl get -o yaml` printed.
#[tokio::test(start_paused = true)]
async fn dump_of_objects_is_applied() {
    let server = cluster::api_server(TestClock::new(chrono::DateTime::UNIX_EPOCH), 1);
    let object = |name: &str| {
        let metadata = format!(
            "{{name: {name}, namespace: shop, resourceVersion: \"17\", uid: u, generation: 3, creationTimestamp: \"2026-01-01T00:00:00Z\"}}"
        );
        format!("- apiVersion: v1\n  kind: ConfigMap\n  metadata: {metadata}\n")
    };
    let text = format!("apiVersion: v1\nkind: List\nitems:\n{}{}", object("a"), object("b"));
    for _ in 0..2 {
        apply(&server, parse("dump.yaml", &text).unwrap(), true).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn warnings_of_the_server_are_told() {
    let server = cluster::api_server(TestClock::new(chrono::DateTime::UNIX_EPOCH), 1);
    let container = json!({
        "name": "c", "image": "i", "env": [{"name": "A\"B", "value": "1"}, {"name": "A\"B", "value": "2"}],
    });
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
    let body = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": pod}}},
    });
    let mut told = Vec::new();
    let mut tell = |warning: &str| told.push(warning.to_owned());
    let path = "/apis/batch/v1/namespaces/default/cronjobs";
    let sent = send_and_tell::<Value>(&server.client(), Method::POST, path, JSON, &body, &mut tell).await;
    assert_eq!(sent.unwrap()["metadata"]["name"], "c");
    assert!(
        told.len() == 1 && told[0].contains("hides previous definition") && told[0].contains(r#"of "A\"B","#),
        "{told:?}"
    );
}

#[test]
fn every_kind_of_the_manifests_is_served_but_for_those_of_operators() {
    let served = apiserver::kinds::all();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
    let mut unserved = Vec::new();
    for file in files(&directory, true).unwrap().files {
        for manifest in parse(&path_text(&file), &text_of(&file).unwrap()).unwrap_or_default() {
            let api_version = manifest.object["apiVersion"].as_str().unwrap().to_owned();
            let is_own = ControllerKind::ALL.into_iter().any(|kind| kind.parent.api_version() == api_version);
            let of_operators = ["cert-manager.io/", "kyverno.io/", "monitoring.coreos.com/"]
                .iter()
                .any(|group| api_version.starts_with(group));
            if !is_own && !of_operators && Target::new(&served, &manifest.object).is_none() {
                unserved.push(format!("{}: {api_version} {}", manifest.place, manifest.object["kind"]));
            }
        }
    }
    assert!(unserved.is_empty(), "{unserved:#?}");
}

/// docs/dev-cluster.md promises it. Patches of kustomize and the files of k9s are no objects.
#[tokio::test(start_paused = true)]
async fn everything_below_manifests_is_applied_twice_and_nothing_is_refused() {
    let server = cluster::api_server(TestClock::new(chrono::DateTime::UNIX_EPOCH), 1);
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
    let files = files(&directory, true).unwrap().files;
    let files = files.iter().filter(|file| !path_text(file).ends_with("_patch.yaml"));
    let parsed = files.map(|file| parse(&path_text(file), &text_of(file).unwrap()).unwrap_or_default());
    // Here nothing carries a request to a webhook.
    let is_applied = |manifest: &Manifest| {
        !manifest.object["kind"].as_str().is_some_and(|kind| kind.ends_with("WebhookConfiguration"))
    };
    let all: Vec<Manifest> = parsed.flatten().filter(is_applied).collect();
    let policies = all
        .iter()
        .filter(|manifest| manifest.object["kind"].as_str().is_some_and(|kind| kind.ends_with("AdmissionPolicy")));
    assert!(policies.count() >= 6 && all.len() > 60, "{}", all.len());
    for _ in 0..2 {
        apply(&server, all.clone(), true).await.unwrap();
    }
}

#[test]
fn the_samples_that_are_built_in_are_good() {
    let names: Vec<String> =
        samples(&[ControllerKind::CronJob]).unwrap().iter().map(|m| m.object["metadata"]["name"].to_string()).collect();
    assert_eq!(names, ["\"hello\"", "\"nightly-report\"", "\"slow-sync\""]);
}

#[test]
fn files_without_any_object_are_an_error_as_for_kubectl_apply() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("f.yaml");
    for (sentence, text) in [
        ("nothing", ""),
        ("words in comments", "# nothing\n---\n"),
        ("an empty list", "kind: List\napiVersion: v1\nitems: []\n"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = load(std::slice::from_ref(&file)).unwrap_err().to_string();
        assert!(error.ends_with("f.yaml, document 1: kind: there is no object"), "{sentence}: {error}");
    }
}
