//! Style rules that the compiler and clippy do not check.
//!
//! Rules for `src/` and the crates, in each file up to its own tests: at most 600 lines; a `//!` contract at the top;
//! no function over 70 lines; no habitual panics; the wall clock only in `clock.rs`. Within the controller, imports
//! point in one direction (api ← reconcile ← sync ← controller), and the pure modules use neither tokio nor the API
//! client. A crate's manifest lists its dependencies, and cargo enforces it. The scanner is simple on purpose: it
//! blanks comments and literals and then searches the text.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MAX_FILE_LINES: usize = 600;
const MAX_FUNCTION_LINES: usize = 70;

/// Forbidden outside tests: each has a better form that reports the error.
const FORBIDDEN: [&str; 6] = [".unwrap()", "todo!(", "unimplemented!(", "dbg!(", "Utc::now(", "SystemTime::now("];

/// Exceptions whose purpose is the forbidden call: the clock itself, and the time of a log line.
const EXEMPT: [(&str, &str); 2] =
    [("crates/apimachinery/src/clock.rs", "Utc::now("), ("src/logging.rs", "SystemTime::now(")];

/// A module of `src` (a file and the directory of the same name) and the forbidden names in it.
const IMPORTS: [(&str, &[&str]); 17] = [
    ("controller/reconcile", &["tokio", "tokio_util", "kube", "crate::cache", "crate::workqueue", "super::sync"]),
    ("controller/reconcile", &["crate::controller::sync", "crate::controller::control", "apimachinery::clock"]),
    ("controller/plan", &["tokio", "tokio_util", "kube", "crate::cache", "crate::workqueue", "apimachinery::clock"]),
    (
        "controller/conditions",
        &["tokio", "tokio_util", "kube", "crate::cache", "crate::workqueue", "apimachinery::clock"],
    ),
    (
        "controller/cron_job_stats",
        &["tokio", "tokio_util", "kube", "crate::cache", "crate::workqueue", "apimachinery::clock"],
    ),
    ("controller/status", &["tokio", "tokio_util", "kube", "crate::cache", "crate::workqueue", "apimachinery::clock"]),
    (
        "controller/observation",
        &["tokio", "tokio_util", "kube", "crate::cache", "crate::workqueue", "apimachinery::clock"],
    ),
    ("api", &["tokio", "crate::cache", "crate::controller", "crate::workqueue"]),
    ("workqueue", &["kube", "k8s_openapi", "crate::api", "crate::cache", "crate::controller", "schedule"]),
    ("cache", &["crate::controller", "crate::workqueue", "kube_runtime"]),
    ("cli/check", &["tokio", "kube", "crate::client", "apimachinery::clock"]),
    ("cli/clock_changes", &["tokio", "kube", "crate::client", "apimachinery::clock"]),
    ("cli/explain/rehearsal", &["tokio", "kube", "crate::client", "apimachinery::clock", "crate::cache"]),
    ("cli/explain/text", &["tokio", "kube", "crate::client", "apimachinery::clock"]),
    ("cli/next", &["tokio", "kube", "crate::client", "apimachinery::clock"]),
    ("cli/options", &["tokio", "kube", "crate::client", "apimachinery::clock"]),
    ("cli/pages", &["tokio", "kube", "crate::client", "apimachinery::clock"]),
];

/// What no tracked file may contain: paths of the development machine.
const FORBIDDEN_WORDS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/tm", "p/k")];

struct Source {
    /// Relative to the repository.
    path: String,
    text: String,
    /// The text up to its tests, with comments and literals blanked and all line breaks kept.
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
            let code = before_tests(&blank(&text));
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
        part == "tests" || part == "tests.rs" || part.ends_with("_tests.rs")
    })
}

/// The part before the first `#[cfg(test)]` that opens a module.
fn before_tests(code: &str) -> String {
    let lines: Vec<&str> = code.lines().collect();
    let end = (0..lines.len())
        .find(|&index| {
            lines[index].trim() == "#[cfg(test)]"
                && lines[index + 1..].iter().find(|line| !line.trim().starts_with("#[")).is_some_and(|line| {
                    let line = line.trim();
                    (line.starts_with("mod ") || line.starts_with("pub(crate) mod ")) && line.ends_with('{')
                })
        })
        .unwrap_or(lines.len());
    lines[..end].join("\n")
}

/// The text with comments, strings and character literals blanked; every line break stays.
fn blank(text: &str) -> String {
    let bytes: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(&bytes, at);
        if end > at {
            out.extend(bytes[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    out
}

/// The end of the comment or literal that starts at `at`; `at` if none starts there.
fn literal_end(text: &[char], at: usize) -> usize {
    let next = text.get(at + 1).copied().unwrap_or(' ');
    let starts_word = at == 0 || !(text[at - 1].is_alphanumeric() || text[at - 1] == '_');
    match text[at] {
        '/' if next == '/' => (at..text.len()).find(|&i| text[i] == '\n').unwrap_or(text.len()),
        '/' if next == '*' => find(text, at + 2, &['*', '/']).map_or(text.len(), |i| i + 2),
        '"' => quoted_end(text, at + 1, '"'),
        'r' if starts_word && (next == '"' || next == '#') => raw_end(text, at + 1).unwrap_or(at),
        'b' if starts_word && next == 'r' => raw_end(text, at + 2).unwrap_or(at),
        // A character, and not a lifetime: 'x' or '\…'.
        '\'' if next == '\\' => quoted_end(text, at + 1, '\''),
        '\'' if text.get(at + 2) == Some(&'\'') => at + 3,
        _ => at,
    }
}

fn quoted_end(text: &[char], mut at: usize, quote: char) -> usize {
    while at < text.len() && text[at] != quote {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

/// The end of a raw string whose hashes or quote start at `at`; `None` for a raw identifier.
fn raw_end(text: &[char], at: usize) -> Option<usize> {
    let hashes = text[at..].iter().take_while(|c| **c == '#').count();
    if text.get(at + hashes) != Some(&'"') {
        return None;
    }
    let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    Some(find(text, at + hashes + 1, &close).map_or(text.len(), |i| i + close.len()))
}

fn find(text: &[char], from: usize, what: &[char]) -> Option<usize> {
    (from..text.len()).find(|&i| text[i..].starts_with(what))
}

/// Names, first lines and lengths in lines of the functions with a body in blanked code.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let text: Vec<char> = code.chars().collect();
    let mut found = Vec::new();
    for at in 0..text.len().saturating_sub(3) {
        let starts_word = at == 0 || !(text[at - 1].is_alphanumeric() || text[at - 1] == '_');
        if !starts_word || !text[at..].starts_with(&['f', 'n', ' ']) {
            continue;
        }
        let name: String = text[at + 3..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
        if let Some(end) = body_end(&text, at) {
            let line = |index: usize| text[..index].iter().filter(|c| **c == '\n').count() + 1;
            found.push((name, line(at), line(end) - line(at) + 1));
        }
    }
    found
}

/// The closing brace of the function that starts at `at`; `None` when it ends in a semicolon.
fn body_end(text: &[char], at: usize) -> Option<usize> {
    let (mut brackets, mut braces) = (0, 0);
    for (index, c) in text.iter().enumerate().skip(at) {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            ';' if brackets == 0 && braces == 0 => return None,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether `path` occurs in the code as a path, or as the start of one.
fn mentions(code: &str, path: &str) -> bool {
    code.match_indices(path).any(|(at, _)| {
        let before = code[..at].chars().next_back().unwrap_or(' ');
        let after = &code[at + path.len()..];
        let whole = !(before.is_alphanumeric() || before == '_' || before == ':');
        // A bare crate name counts only where it can be nothing else.
        let used = if path.contains("::") {
            !after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        } else {
            after.starts_with("::") || code[..at].trim_end().ends_with("use") && after.starts_with([';', ' '])
        };
        whole && used
    })
}

/// `crate::{a, b::c}` spelled out, so that `mentions` sees every path of a grouped import from the crate.
fn ungroup(code: &str) -> String {
    let mut out = code.to_owned();
    for root in ["crate", "super", "apimachinery"] {
        let group = format!("{root}::{{");
        for (at, _) in code.match_indices(&group) {
            let (mut depth, mut item) = (1, String::new());
            for c in code[at + group.len()..].chars() {
                depth += match c {
                    '{' => 1,
                    '}' => -1,
                    _ => 0,
                };
                if depth == 0 || (depth == 1 && c == ',') {
                    out += &["\n", root, "::", item.trim()].concat();
                    item.clear();
                } else {
                    item.push(c);
                }
                if depth == 0 {
                    break;
                }
            }
        }
    }
    out
}

fn report(rule: &str, violations: &[String]) {
    assert!(violations.is_empty(), "{rule}:\n  {}", violations.join("\n  "));
}

#[test]
fn no_file_is_longer_than_600_lines_before_its_tests() {
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
fn no_function_is_longer_than_70_lines() {
    let mut violations = Vec::new();
    for source in sources() {
        for (name, line, lines) in functions(&source.code) {
            if lines > MAX_FUNCTION_LINES {
                violations.push(format!("{}:{line}: {name} has {lines} lines", source.path));
            }
        }
    }
    report("functions that want to be two", &violations);
}

#[test]
fn forbidden_calls_occur_in_tests_only() {
    let mut violations = Vec::new();
    for source in sources() {
        for (index, line) in source.code.lines().enumerate() {
            for word in FORBIDDEN.iter().filter(|word| line.contains(*word)) {
                if !EXEMPT.contains(&(source.path.as_str(), word)) {
                    violations.push(format!("{}:{}: {word}", source.path, index + 1));
                }
            }
        }
    }
    report("not outside tests", &violations);
}

#[test]
fn modules_import_in_the_allowed_direction_only() {
    let mut violations = Vec::new();
    for source in sources() {
        let code = ungroup(&source.code);
        for (module, forbidden) in IMPORTS {
            if source.path != format!("src/{module}.rs") && !source.path.starts_with(&format!("src/{module}/")) {
                continue;
            }
            for path in forbidden.iter().filter(|path| mentions(&code, path)) {
                violations.push(format!("{} uses {path}", source.path));
            }
        }
    }
    report("imports against the stream", &violations);
}

/// Module or crate → the modules and crates that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The imports of the controller's top-level modules and of the crates, without those of tests.
fn imports() -> Imports {
    let crates: BTreeSet<String> = source_directories()
        .iter()
        .filter_map(|directory| {
            directory.strip_prefix(root().join("crates")).ok()?.parent()?.to_str().map(str::to_owned)
        })
        .collect();
    let mut imports = Imports::new();
    for source in sources() {
        let path = source.path.strip_prefix("src/").or_else(|| source.path.strip_prefix("crates/")).unwrap();
        let module: String = path.chars().take_while(|c| !matches!(c, '/' | '.')).collect();
        let code = ungroup(&source.code.replace("cronjob_controller::", "crate::"));
        let found = imports.entry(module.clone()).or_default();
        found.extend(crates.iter().filter(|name| **name != module && mentions(&code, name)).cloned());
        if source.path.starts_with("src/") {
            let name = |at: usize| code[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let names = code.match_indices("crate::").map(|(at, path)| name(at + path.len()));
            found.extend(names.filter(|name: &String| !name.is_empty() && *name != module));
        }
    }
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

#[test]
fn every_patch_of_the_mutants_applies() {
    let patches = fs::read_dir(root().join("tests/mutants")).unwrap().map(|entry| entry.unwrap().path());
    let stale = patches.filter(|path| path.extension().is_some_and(|end| end == "patch")).filter(|patch| {
        let check =
            Command::new("git").current_dir(root()).args(["apply", "--check", "-C1"]).arg(patch).output().unwrap();
        !check.status.success()
    });
    let names = stale.map(|patch| patch.display().to_string()).collect::<Vec<_>>();
    report("patches that do not apply to the code as it is", &names);
}

#[test]
fn scanner_blanks_literals_and_finds_functions_and_paths() {
    let code = blank("let a = \"fn x() {\"; // .unwrap()\nlet b = r#\"}\"#; let c = '{'; let d: &'a str = b'\\'';\n");
    assert!(!code.contains("fn x") && !code.contains(".unwrap()") && !code.contains(['{', '}']), "{code}");
    assert_eq!(code.lines().count(), 2);
    let found = functions("fn a(x: [u8; 4]) -> u8 {\n  if x { 1 }\n}\ntrait T { fn b(); }\ntype F = fn(u8);\n");
    assert_eq!(found, [("a".to_owned(), 1, 3)]);
    assert!(
        mentions("use tokio::time;", "tokio") && mentions("x(kube::Error)", "kube") && mentions("use kube;", "kube")
    );
    assert!(!mentions("use tokio_util::x;", "tokio") && !mentions("let kube = 1;", "kube"));
    assert!(mentions(&ungroup("use crate::{api::Job, cache::{A, B}};"), "crate::cache"));
    assert!(!mentions("crate::cached::x", "crate::cache"));
    assert_eq!(before_tests("a\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n"), "a");
    assert_eq!(before_tests("#[cfg(test)]\nmod tests;\nb"), "#[cfg(test)]\nmod tests;\nb");
}

#[test]
fn every_divergence_names_tests_that_exist() {
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
        let named = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
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
    report("no such test", &violations);
}
