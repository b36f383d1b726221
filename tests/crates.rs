//! The crates for others: what their packages hold, and that their READMEs say what is so.
//!
//! `make crates` writes the tables of memory-apiserver's README anew. `hack/public-api` compares the public API of each crate with
//! its list, and `hack/crates` compiles each from its package.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use apiserver::{Resource, kinds};

/// The directory of each crate, and the package's name.
const CRATES: [(&str, &str); 3] =
    [("apimachinery", "memory-apiserver-core"), ("apiserver", "memory-apiserver"), ("schedule", "k8s-cron")];

/// The longest first test in a README, in lines.
const FIRST_TEST: usize = 15;

fn directory(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("crates").join(name)
}

fn read(name: &str, file: &str) -> String {
    fs::read_to_string(directory(name).join(file)).unwrap()
}

/// The files of a package, one a line.
fn listed(name: &str, package: &str) -> String {
    let listed = Command::new(env!("CARGO"))
        .args(["package", "--list", "--offline", "--locked", "--allow-dirty", "--package", package])
        .current_dir(directory(name))
        .output()
        .unwrap();
    assert!(listed.status.success(), "{package}: {}", String::from_utf8_lossy(&listed.stderr));
    String::from_utf8(listed.stdout).unwrap()
}

#[test]
fn packages_hold_sources_examples_readme_and_licence_and_nothing_else() {
    for (name, package) in CRATES {
        let listed = listed(name, package);
        let own = ["Cargo.toml", "Cargo.toml.orig", "Cargo.lock", ".cargo_vcs_info.json", "README.md", "LICENSE"];
        let odd: Vec<&str> = listed
            .lines()
            .filter(|file| !own.contains(file) && !file.starts_with("src/") && !file.starts_with("examples/"))
            .collect();
        assert!(odd.is_empty(), "{package}: {odd:?}");
        for file in ["README.md", "LICENSE", "src/lib.rs"] {
            assert!(listed.lines().any(|line| line == file), "{package} without {file}");
        }
    }
}

/// A package's own tests are compiled from what is in it.
#[test]
fn files_that_sources_include_are_in_the_package() {
    let include = regex::Regex::new(r#"\binclude(?:_str|_bytes)?!\s*\(\s*"([^"]+)"|#\[path = "([^"]+)"\]"#).unwrap();
    for (name, package) in CRATES {
        let listed: BTreeSet<PathBuf> = listed(name, package).lines().map(PathBuf::from).collect();
        for file in listed.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
            for found in include.captures_iter(&read(name, file.to_str().unwrap())) {
                let included = found.get(1).or(found.get(2)).unwrap().as_str();
                let mut path = file.parent().unwrap().to_owned();
                for part in Path::new(included) {
                    if part != ".." {
                        path.push(part);
                    } else if !path.pop() {
                        panic!("{package}: {} includes {included}, which is outside", file.display());
                    }
                }
                assert!(listed.contains(&path), "{package}: {} includes {included}", file.display());
            }
        }
    }
}

#[test]
fn only_the_crates_for_others_are_published_and_each_says_what_a_registry_shows() {
    let entries = fs::read_dir(directory("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    for name in entries {
        let manifest = read(&name, "Cargo.toml");
        let is_published = CRATES.iter().any(|(directory, _)| *directory == name);
        assert_eq!(manifest.contains("publish.workspace = true"), !is_published, "{name}");
        if !is_published {
            continue;
        }
        for key in ["description", "keywords", "categories", "license.workspace", "repository.workspace", "readme"] {
            assert!(manifest.contains(&format!("\n{key} = ")), "{name} without {key}");
        }
        assert!(read(&name, "src/lib.rs").contains("include_str!(\"../README.md\")"), "{name}: its README is not run");
    }
}

#[test]
fn crates_with_a_placeholder_for_an_address_are_not_published() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    if !fs::read_to_string(root.join("Cargo.toml")).unwrap().contains("https://git.example/") {
        return;
    }
    let output =
        Command::new(root.join("hack/crates")).arg("--publish").env_remove("CARGO_REGISTRY_TOKEN").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("write the repository's address"), "{said}");
}

#[test]
fn first_test_of_a_readme_has_at_most_fifteen_lines() {
    for (name, package) in CRATES {
        let readme = read(name, "README.md");
        let (_, code) = readme.split_once("```rust\n").unwrap_or_else(|| panic!("{package}: no code"));
        let (code, _) = code.split_once("\n```").unwrap();
        // As a reader sees it: rustdoc hides the lines that begin with #.
        let lines = code.lines().filter(|line| !line.starts_with("# ")).count();
        assert!(lines <= FIRST_TEST, "{package}: {lines} lines");
    }
}

/// Kinds by group, as a row.
fn row(group: &str, kinds: &[&Resource], how: &str) -> String {
    let names: Vec<&str> = kinds.iter().map(|resource| resource.kind.as_str()).collect();
    let group = if group.is_empty() { "core" } else { group };
    format!("| {group} | {} | {how} |\n", names.join(", "))
}

/// What the server serves from the start.
fn kinds_table() -> String {
    let parts = [
        (kinds::builtin(), "judged, defaulted and shown as kube-apiserver does"),
        (kinds::extensions(), "have their effect"),
        (kinds::stored(), "stored, without effect"),
    ];
    let mut text = "| group | kinds | how |\n| --- | --- | --- |\n".to_owned();
    for (resources, how) in parts {
        let mut groups: BTreeMap<&str, Vec<&Resource>> = BTreeMap::new();
        for resource in &resources {
            groups.entry(&resource.group).or_default().push(resource);
        }
        for (group, kinds) in groups {
            text.push_str(&row(group, &kinds, how));
        }
    }
    text + "\nKinds of CustomResourceDefinitions are served as soon as a definition is there.\n"
}

/// Upstream's conformance specs of sig-api-machinery by file, from the results that `make conformance-apiserver` recorded.
fn conformance_table() -> String {
    let recorded = fs::read_to_string(directory("../tests/conformance/machinery.tsv")).unwrap();
    let release = recorded.split(':').next().unwrap().trim_start_matches("# ");
    let real = recorded.lines().find_map(|line| line.strip_prefix("# on kube-apiserver, ")).unwrap();
    let specs: Vec<[&str; 3]> = recorded
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').collect::<Vec<_>>().try_into().unwrap())
        .collect();
    let applies = |result: &str| !result.starts_with("does not apply");
    let mut files: BTreeMap<&str, Vec<[&str; 3]>> = BTreeMap::new();
    for spec in &specs {
        files.entry(spec[0]).or_default().push(*spec);
    }
    let apply = specs.iter().filter(|[.., result]| applies(result)).count();
    let passed = specs.iter().filter(|[.., result]| *result == "passed").count();
    let mut text = format!(
        "Kubernetes {release} has {} conformance specs of sig-api-machinery. {apply} apply to an API server without nodes and \
         without kube-controller-manager, and {passed} of these pass ({} %). The specs are upstream's code, unchanged. On \
         kube-apiserver, {real}.\n\n| file | specs | apply | pass | why not |\n| --- | ---: | ---: | ---: | --- |\n",
        specs.len(),
        100 * passed / apply.max(1),
    );
    for (file, specs) in files {
        let apply = specs.iter().filter(|[.., result]| applies(result)).count();
        let passed = specs.iter().filter(|[.., result]| *result == "passed").count();
        let mut why: Vec<&str> = Vec::new();
        for [_, _, result] in &specs {
            let reason = result.split_once(": ").map(|(_, reason)| reason);
            if let Some(reason) = reason.filter(|reason| !why.contains(reason)) {
                why.push(reason);
            }
        }
        let _ = writeln!(text, "| {file} | {} | {apply} | {passed} | {} |", specs.len(), why.join("; "));
    }
    text
}

#[test]
fn tables_of_the_readme_are_those_of_the_code() {
    let path = directory("apiserver").join("README.md");
    let mut readme = fs::read_to_string(&path).unwrap();
    let is_update = std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1");
    for (name, table) in [("kinds", kinds_table()), ("conformance", conformance_table())] {
        let (before, rest) = readme.split_once(&format!("<!-- {name}: ")).unwrap();
        let (mark, rest) = rest.split_once(" -->\n").unwrap();
        let (written, after) = rest.split_once("<!-- end -->").unwrap();
        assert!(is_update || written == table, "`make crates` writes the table of {name} anew:\n{table}");
        readme = [before, "<!-- ", name, ": ", mark, " -->\n", &table, "<!-- end -->", after].concat();
    }
    if is_update {
        fs::write(path, readme).unwrap();
    }
}
