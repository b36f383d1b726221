//! ARCHITECTURE's table of upstream's functions: each name is in upstream's sources, and its counterpart in these.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use testkit::tools;

use crate::markdown::{Page, root};
use crate::report;

/// The rows: upstream's names, and those here.
fn rows() -> Vec<[Vec<String>; 2]> {
    let page = Page::open(Path::new("ARCHITECTURE.md"));
    let (_, table) = page.text.split_once("\n| upstream | here").unwrap();
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect();
    let rows =
        table.lines().skip(2).take_while(|line| line.starts_with("| ")).filter_map(|line| line.split_once(" | "));
    rows.map(|(upstream, here)| [names(upstream), names(here)]).collect()
}

/// All code below a directory, with these endings of files.
fn code(directory: &Path, ending: &str) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            text += &code(&path, ending);
        } else if name.ends_with(ending) && !name.ends_with("_test.go") && name != "tests.rs" {
            text += &fs::read_to_string(path).unwrap();
        }
    }
    text
}

/// Upstream's package, if Go's module cache has it in the version that the fixture is built from.
fn upstream() -> Option<PathBuf> {
    let version = fs::read_to_string(root().join("tests/controlplane/kubernetes-version")).unwrap();
    let cache = Command::new("go").args(["env", "GOMODCACHE"]).current_dir("/").output().ok()?;
    let cache = PathBuf::from(String::from_utf8(cache.stdout).unwrap().trim());
    let package = cache.join(format!("k8s.io/kubernetes@{}/pkg/controller/cronjob", version.trim()));
    package.is_dir().then_some(package)
}

#[test]
fn functions_of_upstream_have_the_names_that_the_architecture_gives_here() {
    let rows = rows();
    assert!(rows.len() > 5, "{rows:?}");
    let own = ["src", "crates"].map(|directory| code(&root().join(directory), ".rs")).concat();
    let mut violations = Vec::new();
    // "The same in snake case" names none.
    let same = rows.iter().filter(|[_, here]| here.is_empty()).flat_map(|[upstream, _]| upstream);
    let same: Vec<String> = same.map(|name| snake_case(name)).collect();
    for name in rows.iter().flat_map(|[_, here]| here).chain(&same) {
        let (path, function) = name.rsplit_once("::").unwrap_or(("", name));
        let is_function = Regex::new(&format!(r"\bfn {function}\b")).unwrap().is_match(&own);
        let module = [name.as_str(), path].map(|module| module.replace("::", "/"));
        let is_module = module.iter().any(|module| !module.is_empty() && exists(module));
        if !(is_module || path.is_empty()) || !(is_function || exists(&name.replace("::", "/"))) {
            violations.push(format!("{name}: not here"));
        }
    }
    if let Some(package) = upstream() {
        let theirs = code(&package, ".go");
        for name in rows.iter().flat_map(|[upstream, _]| upstream) {
            if !Regex::new(&format!(r"(?m)^func (\(\w+ \*ControllerV2\) )?{name}\(")).unwrap().is_match(&theirs) {
                violations.push(format!("{name}: not upstream"));
            }
        }
    } else {
        tools::without("docs", "upstream's sources are not in Go's module cache: make fixture", "REQUIRE_FIXTURE");
    }
    report("functions in ARCHITECTURE.md", &violations);
}

fn snake_case(name: &str) -> String {
    let parts = name.chars().map(|c| if c.is_uppercase() { format!("_{}", c.to_lowercase()) } else { c.to_string() });
    parts.collect()
}

/// Whether a module of the controller, of its directory `controller`, or of a crate has this path.
fn exists(module: &str) -> bool {
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    crates
        .chain(["src", "src/controller"].map(|directory| root().join(directory)))
        .any(|directory| directory.join(module).is_dir() || directory.join(format!("{module}.rs")).exists())
}
