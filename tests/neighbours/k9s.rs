//! `manifests/k9s`: the files have k9s' form, and their commands are commands of this program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use testkit::{controller, repository};

/// A file of plugins, with every field that k9s' own schema allows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plugins {
    plugins: BTreeMap<String, Plugin>,
}

#[allow(clippy::struct_excessive_bools, reason = "k9s' own")]
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Plugin {
    short_cut: String,
    #[serde(rename = "override", default)]
    overrides: bool,
    description: String,
    confirm: Option<bool>,
    #[serde(default)]
    dangerous: bool,
    scopes: Vec<String>,
    command: String,
    #[serde(default)]
    background: bool,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    inputs: Vec<Input>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
    label: String,
    #[serde(rename = "type")]
    kind: String,
    required: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct HotKeys {
    hot_keys: BTreeMap<String, HotKey>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct HotKey {
    short_cut: String,
    description: String,
    command: String,
    #[serde(default)]
    keep_history: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Views {
    views: BTreeMap<String, View>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct View {
    columns: Vec<String>,
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    let text = std::fs::read_to_string(repository().join("manifests/k9s").join(name)).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What k9s fills in.
fn filled(argument: &str) -> String {
    let values = [
        ("$INPUT_FROM", "2026-03-01"),
        ("$INPUT_TO", "2026-03-02"),
        ("$NAMESPACE", "shop"),
        ("${NAMESPACE}", "shop"),
        ("$CONTEXT", "staging"),
        ("$KUBECONFIG", "/nowhere"),
        ("$NAME", "report"),
        ("${NAME}", "report"),
    ];
    values.iter().fold(argument.to_owned(), |text, (variable, value)| text.replace(variable, value))
}

#[test]
fn plugins_of_k9s_call_commands_of_the_kubectl_plugin() {
    let Plugins { plugins } = read("plugins.yaml");
    let mut keys = BTreeSet::new();
    for (name, plugin) in &plugins {
        assert!(keys.insert(&plugin.short_cut), "{name}: the key is used twice");
        // Keys that k9s has in the list of CronJobs, also in that of all namespaces.
        let own = ["t", "s", "Shift-A", "Shift-J", "Shift-N", "Shift-O", "Shift-P", "Shift-S"];
        assert_eq!(plugin.overrides, own.contains(&&*plugin.short_cut), "{name}");
        assert_eq!(plugin.scopes, ["cronjobs"], "{name}");
        assert!(!plugin.description.is_empty() && plugin.inputs.len() <= 5, "{name}");
        for input in &plugin.inputs {
            assert!(input.kind == "string" && input.required && !input.label.is_empty(), "{name}: {}", input.name);
        }
        let args: Vec<String> = plugin.args.iter().map(|argument| filled(argument)).collect();
        if plugin.command == "xdg-open" {
            assert!(plugin.background);
            assert_eq!(args, ["http://127.0.0.1:41733/?cj=shop/report"], "the link of docs/ui.md");
            continue;
        }
        let [flag, pager, label, env, file, kubectl, cronjob, rest @ ..] = args.as_slice() else {
            panic!("{name}: {args:?}")
        };
        assert_eq!([&*plugin.command, flag, pager], ["bash", "-c", "\"$@\" 2>&1 | less -R"], "{name}");
        assert_eq!([&**env, file], ["env", "KUBECONFIG=/nowhere"], "{name}");
        assert_eq!([&**kubectl, cronjob], ["kubectl", "cronjob"], "{name} {label}");
        let writes = !["explain", "plan"].contains(&&**label);
        // k9s asks whether to run what has inputs, unless told otherwise.
        let is_confirmed = plugin.confirm.unwrap_or(!plugin.inputs.is_empty());
        assert!(is_confirmed == writes && plugin.dangerous == writes && !plugin.background, "{name}");
        // A command line that is understood fails for want of a cluster.
        let output = Command::new(controller()).args(rest).env("KUBECONFIG", Path::new("/nowhere")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("/nowhere") || said.contains("staging"), "{name}: {rest:?}: {said}");
    }
    assert_eq!(plugins.len(), 6);
}

#[test]
fn hotkeys_and_columns_of_k9s_have_its_form() {
    let HotKeys { hot_keys } = read("hotkeys.yaml");
    assert_eq!(hot_keys.len(), 2);
    for (name, key) in &hot_keys {
        assert!(
            key.short_cut.starts_with("Shift-") && !key.description.is_empty() && !key.command.is_empty(),
            "{name}"
        );
        assert!(key.keep_history || key.command == "cronjobs", "{name}: Escape goes back");
        assert!(!key.command.contains('$'), "{name}: filled in from the row that is selected as the list opens");
    }
    let Views { views } = read("views.yaml");
    let columns = &views["batch/v1/cronjobs"].columns;
    let read: Vec<&str> =
        columns.iter().filter_map(|column| Some(column.split_once(":.metadata.annotations.")?.1)).collect();
    let annotations =
        ["managed", "suspend", "next-run", "last-failure"].map(|name| format!("cronjob-controller\\.dev/{name}"));
    assert_eq!(read, annotations);
}
