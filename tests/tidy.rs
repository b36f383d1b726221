//! Style rules that the compiler and clippy do not check.
//!
//! Rules for `src/` and the crates, in each file up to its own tests: at most 600 lines; a `//!` contract at the top. Within the
//! controller, imports point in one direction (api ← reconcile ← sync ← controller), and the pure modules use neither tokio nor
//! the API client. A crate's manifest lists its dependencies, and cargo enforces it. clippy.toml has the rules for functions.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

const MAX_FILE_LINES: usize = 600;

/// Modules of `src` (a file and the directory of the same name) and the forbidden names in them.
const IMPORTS: [(&[&str], &[&str]); 7] = [
    (
        &[
            "controller/conditions",
            "controller/cron_job_stats",
            "controller/observation",
            "controller/plan",
            "controller/reconcile",
            "controller/status",
        ],
        &["tokio", "tokio_util", "kube", "crate::cache", "crate::workqueue", "apimachinery::clock"],
    ),
    (&["controller/reconcile"], &["super::sync", "crate::controller::sync", "crate::controller::control"]),
    (&["api"], &["tokio", "crate::cache", "crate::controller", "crate::workqueue"]),
    (&["workqueue"], &["kube", "k8s_openapi", "crate::api", "crate::cache", "crate::controller", "schedule"]),
    (&["cache"], &["crate::controller", "crate::workqueue", "kube_runtime"]),
    (
        &[
            "cli/check",
            "cli/clock_changes",
            "cli/explain/rehearsal",
            "cli/explain/text",
            "cli/next",
            "cli/options",
            "cli/pages",
            "cli/words",
        ],
        &["tokio", "kube", "crate::client", "apimachinery::clock"],
    ),
    (&["cli/explain/rehearsal"], &["crate::cache"]),
];

/// What no tracked file may contain: paths of the development machine.
const FORBIDDEN_WORDS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/tm", "p/k")];

/// Modules that treat each reason of `Skip` in its own way without a `match` on all of them, and the reasons that they leave to their
/// general case. Without a look at these, a new one is nameless.
const REASONS: [(&str, &[&str]); 3] = [
    ("cli/slots", &[]),
    // The policies' reasons only.
    ("cli/migrate/old_slots", &["Forbid", "Deadline", "NameTaken", "Suspended", "Invalid"]),
    // Once for each slot.
    ("controller/cron_job_stats", &["Deadline", "Replacing", "Paused"]),
];

/// Modules that look at single fields of `Limits`, and the fields that mean nothing to them. The compiler asks for the others.
const LIMITS: [(&str, &[&str]); 4] = [
    // How many Jobs run beside each other, and what waits for them.
    ("cli/forecast", &["replace_waits", "waits_after_change", "stuck_after", "slot_in_pod"]),
    ("cli/explain/due", &["replace_waits", "waits_after_change", "stuck_after", "pause_after_failures", "slot_in_pod"]),
    // The Jobs that are deleted without a trace.
    (
        "cli/backfill/plan",
        &["max_concurrent", "backlog", "replace_waits", "waits_after_change", "stuck_after", "slot_in_pod"],
    ),
    // What holds slots. `running` has the Jobs that block one.
    ("controller/reconcile", &["slot_in_pod"]),
];

struct Source {
    /// Relative to the repository.
    path: String,
    text: String,
    /// The lines before the file's own tests, without their comments.
    code: String,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The sources of the controller and of each crate; testkit's sources are test code themselves.
fn source_directories() -> Vec<PathBuf> {
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let crates = crates.filter(|directory| !directory.starts_with(root().join("crates/testkit")));
    let mut directories: Vec<PathBuf> = crates.chain([root().join("src")]).collect();
    directories.sort();
    directories
}

fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    for directory in source_directories() {
        walk(&directory, &mut files);
    }
    let sources: Vec<Source> = files
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter(|path| !is_test_file(path))
        .map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let code = code_of(&text);
            Source { path: path.strip_prefix(root()).unwrap().display().to_string(), text, code }
        })
        .collect();
    assert!(!sources.is_empty(), "no sources in {}", root().display());
    sources
}

fn walk(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
    files.sort();
}

fn is_test_file(path: &Path) -> bool {
    path.components().any(|part| {
        let part = part.as_os_str().to_string_lossy();
        part == "tests" || part == "tests.rs"
    })
}

fn code_of(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// Finds uses of a path in code, also in a grouped import: `crate::cache` in `use crate::{api::Job, cache::Store};`.
fn uses_of(path: &str) -> Regex {
    let pattern = if path.contains("::") {
        format!(r"\b{}\b", path.replace("::", r"::(\{([^;]*[^\w:])?)?"))
    } else {
        // A bare crate name counts only where it can be nothing else.
        format!(r"\b(use {path}[; ]|{path}::)")
    };
    Regex::new(&pattern).unwrap()
}

fn report(rule: &str, violations: &[String]) {
    assert!(violations.is_empty(), "{rule}:\n  {}", violations.join("\n  "));
}

#[test]
fn tests_are_in_a_file_beside_their_module() {
    let own_tests = Regex::new(r"(?m)^#\[cfg\(test\)\]\n(#\[.*\]\n)*(pub\(crate\) )?mod \w+ \{").unwrap();
    let within = sources().into_iter().filter(|source| own_tests.is_match(&source.text));
    report("tests that belong into tests.rs", &within.map(|source| source.path).collect::<Vec<_>>());
}

#[test]
fn no_file_is_longer_than_600_lines() {
    let violations: Vec<String> = sources()
        .iter()
        .map(|source| (source, source.code.lines().count()))
        .filter(|(_, lines)| *lines > MAX_FILE_LINES)
        .map(|(source, lines)| format!("{}: {lines} lines", source.path))
        .collect();
    report("files that want to be two", &violations);
}

#[test]
fn every_module_starts_with_a_doc_comment() {
    let violations: Vec<String> =
        sources().iter().filter(|source| !source.text.starts_with("//! ")).map(|source| source.path.clone()).collect();
    report("modules without //! at the top", &violations);
}

#[test]
fn modules_import_in_the_allowed_direction_only() {
    let sources = sources();
    let mut violations = Vec::new();
    for (modules, forbidden) in IMPORTS {
        let holds = |path: &str, module: &str| {
            path == format!("src/{module}.rs") || path.starts_with(&format!("src/{module}/"))
        };
        for path in forbidden {
            let uses = uses_of(path);
            let found = sources.iter().filter(|source| modules.iter().any(|module| holds(&source.path, module)));
            let found = found.filter(|source| uses.is_match(&source.code));
            violations.extend(found.map(|source| format!("{} uses {path}", source.path)));
        }
    }
    report("imports against the stream", &violations);
}

/// Module or crate → the modules and crates that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The imports of the controller's top-level modules and of the crates, without those of tests.
fn imports() -> Imports {
    let mut code: BTreeMap<String, String> = BTreeMap::new();
    let (mut modules, mut crates) = (BTreeSet::new(), BTreeSet::new());
    for source in sources() {
        let (names, path) = match source.path.strip_prefix("src/") {
            Some(path) => (&mut modules, path),
            None => (&mut crates, source.path.strip_prefix("crates/").unwrap()),
        };
        let name: String = path.chars().take_while(|c| !matches!(c, '/' | '.')).collect();
        names.insert(name.clone());
        // The program's own file names the library from outside.
        let code_here =
            if name == "main" { source.code.replace("cronjob_controller::", "crate::") } else { source.code };
        code.entry(name).or_default().push_str(&code_here);
    }
    let of_modules = modules.iter().map(|name| (name, uses_of(&format!("crate::{name}")), &modules));
    let all = &(&modules | &crates);
    let of_crates = crates.iter().map(|name| (name, uses_of(name), all));
    let uses: Vec<_> = of_modules.chain(of_crates).collect();
    let imports = code.iter().map(|(importer, code)| {
        let found = uses
            .iter()
            .filter(|(name, uses, importers)| *name != importer && importers.contains(importer) && uses.is_match(code));
        (importer.clone(), found.map(|(name, ..)| (*name).clone()).collect())
    });
    let mut imports: Imports = imports.collect();
    imports.remove("lib");
    imports
}

/// What these modules import, directly or through others.
fn reachable(imports: &Imports, from: &BTreeSet<String>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&String> = from.iter().collect();
    while let Some(name) = open.pop() {
        open.extend(imports.get(name).into_iter().flatten().filter(|next| seen.insert((*next).clone())));
    }
    seen
}

#[test]
fn imports_between_top_level_modules_have_no_cycle() {
    let imports = imports();
    let in_a_cycle = imports.iter().filter(|(name, direct)| reachable(&imports, direct).contains(*name));
    report("in a cycle", &in_a_cycle.map(|(name, _)| name.clone()).collect::<Vec<_>>());
}

/// The imports as lines of a mermaid flowchart, importers first. An import that others imply is left out.
fn picture(imports: &Imports) -> Vec<String> {
    let all = imports.iter().filter(|(_, direct)| !direct.is_empty());
    let mut modules: Vec<_> = all.map(|(name, direct)| (name, direct, reachable(imports, direct))).collect();
    modules.sort_by_key(|(_, direct, implied)| std::cmp::Reverse((*direct | implied).len()));
    let arrows = |direct: &BTreeSet<String>, implied| Vec::from_iter(direct - implied).join(" & ");
    modules.iter().map(|(name, direct, implied)| format!("    {name} --> {}", arrows(direct, implied))).collect()
}

#[test]
fn picture_of_the_modules_shows_their_imports() {
    const START: &str = "```mermaid\nflowchart TD\n";
    let path = root().join("ARCHITECTURE.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(START).expect("a picture");
    let (drawn, after) = rest.split_once("\n```").unwrap();
    let want = picture(&imports());
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        fs::write(path, [before, START, &want.join("\n"), "\n```", after].concat()).unwrap();
        return;
    }
    let stale: Vec<String> = drawn.lines().map(str::to_owned).filter(|line| !want.contains(line)).collect();
    let missing = want.iter().filter(|line| drawn.lines().all(|have| have != *line)).cloned();
    report("`make module-graph` draws ARCHITECTURE.md anew", &stale.into_iter().chain(missing).collect::<Vec<_>>());
}

#[test]
fn no_tracked_file_mentions_the_machine_it_was_written_on() {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let Some(listed) = listed.ok().filter(|output| output.status.success()) else {
        println!("not a git checkout: nothing is tracked");
        return;
    };
    let mut violations = Vec::new();
    for name in String::from_utf8(listed.stdout).unwrap().split('\0').filter(|name| !name.is_empty()) {
        // A deleted or binary file has no text to check.
        let Ok(text) = fs::read_to_string(root().join(name)) else { continue };
        for word in FORBIDDEN_WORDS.iter().filter(|word| text.contains(*word)) {
            violations.push(format!("{name}: {word}"));
        }
    }
    report("paths of one machine", &violations);
}

/// The commands that kubebuilder users know.
const KUBEBUILDER_TARGETS: &str = "all help manifests generate fmt vet test build run docker-build docker-push docker-buildx \
                                   install uninstall deploy undeploy";

#[test]
fn every_target_of_the_makefile_is_listed_by_make_help() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let targets = makefile.lines().filter_map(|line| line.strip_prefix(".PHONY: ")).flat_map(str::split_whitespace);
    let targets: Vec<&str> = targets.collect();
    let missing = KUBEBUILDER_TARGETS.split_whitespace().filter(|target| !targets.contains(target));
    report("kubebuilder's targets that are not there", &missing.map(ToOwned::to_owned).collect::<Vec<_>>());
    let listed =
        |target: &&&str| makefile.lines().any(|line| line.starts_with(&format!("{target}:")) && line.contains(" ## "));
    // A target without a recipe of its own is an alias.
    let silent = targets.iter().filter(|target| **target != "all" && !listed(target));
    report("targets without a word behind ##", &silent.map(|target| (*target).to_owned()).collect::<Vec<_>>());
}

/// `make matrix` is the workflow `upstream`, a job for each release.
#[test]
fn every_suite_by_hand_is_an_option_of_the_manual_workflow() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (guide, workflow, makefile) = (read("CONTRIBUTING.md"), read(".github/workflows/manual.yml"), read("Makefile"));
    let (_, options) = workflow.split_once("        options:\n").unwrap();
    let options: BTreeSet<&str> = options.lines().map_while(|line| line.strip_prefix("        - ")).collect();
    let name = Regex::new("`(?:make )?([a-z][a-z0-9-]+)[^`]*`").unwrap();
    let suites: BTreeSet<&str> = guide
        .lines()
        .filter(|line| line.starts_with("| `make ") && line.contains("by hand"))
        .flat_map(|line| name.captures_iter(line.split(" | ").next().unwrap()))
        .map(|found| found.get(1).unwrap().as_str())
        .filter(|suite| *suite != "matrix")
        .collect();
    assert_eq!(options, suites, "the options of manual.yml, and the suites that CONTRIBUTING.md says are run by hand");
    for option in options {
        assert!(makefile.contains(&format!("\n{option}:")), "manual.yml: no target {option}");
    }
}

#[test]
fn every_patch_of_the_mutants_applies() {
    let directories = ["tests/mutants", "tests/shadow/defects"];
    let patches = directories.into_iter().flat_map(|directory| fs::read_dir(root().join(directory)).unwrap());
    let stale = patches
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "patch"))
        .filter(|patch| {
            let check =
                Command::new("git").current_dir(root()).args(["apply", "--check", "-C1"]).arg(patch).output().unwrap();
            !check.status.success()
        });
    let names = stale.map(|patch| patch.display().to_string()).collect::<Vec<_>>();
    report("patches that do not apply to the code as it is", &names);
}

#[test]
fn scanner_sees_what_it_should() {
    assert_eq!(code_of("use a;\n// use b::c;\n"), "use a;\n\n");
    let rows = [
        ("tokio", "use tokio::time;", true),
        ("kube", "x(kube::Error)", true),
        ("kube", "use kube;", true),
        ("tokio", "use tokio_util::x;", false),
        ("kube", "let kube = 1;", false),
        ("crate::cache", "use crate::{api::Job, cache::{A, B}};", true),
        ("crate::cache", "use crate::cache;", true),
        ("crate::cache", "use crate::api::{self, cache};", false),
        ("crate::cache", "crate::cached::x", false),
    ];
    for (path, code, want) in rows {
        assert_eq!(uses_of(path).is_match(code), want, "{path} in {code}");
    }
}

#[test]
fn every_divergence_has_a_reason_and_tests_that_exist() {
    let divergences = fs::read_to_string(root().join("docs/divergences.md")).unwrap();
    let mut files = Vec::new();
    for directory in source_directories().into_iter().chain([root().join("crates/testkit/src"), root().join("tests")]) {
        walk(&directory, &mut files);
    }
    let code: String = files
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let (mut violations, mut rows) = (Vec::new(), 0);
    for row in divergences.lines().filter(|line| line.starts_with("| ") && !line.contains("| --- |")) {
        rows += 1;
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        if cells.len() < 4 || cells.contains(&"") {
            violations.push(format!("an empty cell in {row}"));
        }
        let named = cells.last().unwrap();
        for test in named.split('`').skip(1).step_by(2) {
            let exists = match test.strip_suffix('*') {
                _ if test.contains('/') => root().join(test).exists(),
                Some(prefix) => code.contains(&format!("fn {prefix}")),
                None => code.contains(&format!("fn {test}(")),
            };
            if !exists {
                violations.push(test.to_owned());
            }
        }
    }
    assert!(rows > 100, "{rows} rows");
    report("no such test, or no reason", &violations);
}

/// The code of a module with its submodules.
fn module(name: &str) -> String {
    let (file, directory) = (format!("src/{name}.rs"), format!("src/{name}/"));
    sources()
        .into_iter()
        .filter(|source| source.path == file || source.path.starts_with(&directory))
        .map(|source| source.code)
        .collect()
}

/// The names that a pattern finds behind `start`, up to the end of that item.
fn names_in(name: &str, start: &str, pattern: &str) -> Vec<String> {
    let code = module(name);
    let item = code.split(start).nth(1).unwrap().split("\n}").next().unwrap().to_owned();
    let names = Regex::new(pattern).unwrap();
    names.captures_iter(&item).map(|found| found[1].to_owned()).collect()
}

/// What each place has to look at, and does not, though it does not list it as its general case; and what it lists although it does.
fn overlooked(places: &[(&str, &[&str])], names: &[String], pattern: impl Fn(&str) -> String) -> Vec<String> {
    let mut violations = Vec::new();
    for (place, general) in places {
        let code = module(place);
        assert!(!code.is_empty(), "no module {place}");
        for name in names {
            let is_treated = Regex::new(&pattern(name)).unwrap().is_match(&code);
            if is_treated == general.contains(&name.as_str()) {
                violations.push(format!("{name}: src/{place}"));
            }
        }
    }
    violations
}

#[test]
fn every_reason_and_every_limit_is_treated_where_it_matters() {
    let reasons = names_in("controller/plan", "pub enum Skip {", r"(?m)^    (\w+)[(,]");
    let limits = names_in("api/policy/limits", "pub struct Limits {", r"(?m)^    pub (\w+):");
    assert!(reasons.len() > 8 && limits.len() > 6, "{reasons:?} {limits:?}");
    let mut violations = overlooked(&REASONS, &reasons, |name| format!(r"\bSkip::{name}\b"));
    violations.extend(overlooked(&LIMITS, &limits, |name| format!(r"\b{name}\b")));
    // The words of the page.
    let page = fs::read_to_string(root().join("src/ui/assets/words.js")).unwrap();
    let words = page.split("export const REASONS = {").nth(1).unwrap().split("};").next().unwrap();
    let own = names_in("controller/plan", "pub fn as_str(self)", r#"=> "(\w+)""#);
    assert_eq!(own.len(), reasons.len(), "{own:?}");
    violations.extend(
        own.into_iter().filter(|word| !words.contains(&format!("{word}:"))).map(|word| format!("{word}: words.js")),
    );
    report("reasons and limits to look at (or to add to the general ones in tests/tidy.rs)", &violations);
}
