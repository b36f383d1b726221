//! The commands in the documents.
//!
//! An HTML comment above a block of commands says how the block is tested:
//!
//! - `test: console`: this test runs the lines after `$`, and their output must equal the lines below them;
//! - `test: dev`: this test runs the page's blocks in sequence against one `cronjob-controller dev`. What follows `#> ` on a line is a
//!   line of the answer, where `…` stands for any text; these lines occur in it in this order;
//! - `test: FILE TEXT`: that file runs the block, and contains that text;
//! - `excerpt: …`: not run, for the given reason or from the given command.
//!
//! A block of Rust is `from: FILE`: its lines occur in that file, except for a function's name, which may differ.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use regex::Regex;
use testkit::tools;

use crate::markdown::{Block, Page, pages, root};
use crate::report;

const BINARY: &str = env!("CARGO_BIN_EXE_cronjob-controller");

/// Pages whose commands are tested. The other Markdown files have no commands for users.
pub fn held() -> Vec<Page> {
    let mut pages = pages();
    pages.retain(|page| {
        let path = &page.path;
        path.starts_with("docs") || path.starts_with("charts") || path.parent() == Some(Path::new(""))
    });
    pages
}

fn is_commands(block: &Block) -> bool {
    ["sh", "bash", "console"].contains(&&*block.language)
}

/// The error in a block's mark, if there is one.
fn fault(block: &Block) -> Option<String> {
    let Some(mark) = &block.mark else { return Some("no mark".to_owned()) };
    if let Some(reason) = mark.strip_prefix("excerpt:") {
        return reason.trim().is_empty().then(|| "an excerpt without a reason".to_owned());
    }
    let Some(holder) = mark.strip_prefix("test: ") else { return Some(format!("unknown mark: {mark}")) };
    if ["console", "dev"].contains(&holder) {
        return None;
    }
    let (file, text) = holder.split_once(' ').unwrap_or((holder, ""));
    match fs::read_to_string(root().join(file)) {
        Ok(code) if !text.is_empty() && code.contains(text) => None,
        Ok(_) => Some(format!("{file} does not have: {text}")),
        Err(_) => Some(format!("no such test: {holder}")),
    }
}

#[test]
fn every_block_of_commands_is_run_by_a_test_or_marked_as_an_excerpt() {
    let mut violations = Vec::new();
    for page in held() {
        for block in page.blocks().iter().filter(|block| is_commands(block)) {
            violations.extend(fault(block).map(|fault| format!("{}:{}: {fault}", page.path.display(), block.line)));
        }
    }
    report("blocks of commands", &violations);
}

#[test]
fn rust_blocks_are_excerpts_of_the_code() {
    let mut violations = Vec::new();
    for page in held() {
        for block in page.blocks().iter().filter(|block| block.language == "rust") {
            let place = format!("{}:{}", page.path.display(), block.line);
            let file = block.mark.as_deref().and_then(|mark| mark.strip_prefix("from: "));
            let Some(Ok(code)) = file.map(|file| fs::read_to_string(root().join(file))) else {
                violations.push(format!("{place}: no mark with a file"));
                continue;
            };
            let known: Vec<&str> = code.lines().map(str::trim).collect();
            let lines = block.body.lines().map(str::trim).filter(|line| !line.contains("fn "));
            violations.extend(lines.filter(|line| !known.contains(line)).map(|line| format!("{place}: {line}")));
        }
    }
    report("lines that are no longer in the code", &violations);
}

/// A directory with the programs that the documents call, by name, and a search path that includes it.
struct Programs {
    directory: tempfile::TempDir,
    path: OsString,
}

impl Programs {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["cronjob-controller", "kubectl-cronjob", "kubectl_complete-cronjob"] {
            symlink(BINARY, directory.path().join(name)).unwrap();
        }
        let mut path = directory.path().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        Self { directory, path }
    }

    /// Runs a script as a reader does, in the repository's root.
    fn run(&self, script: &str, kubeconfig: &Path) -> Output {
        let mut command = Command::new("timeout");
        command.args(["120", "bash", "-euo", "pipefail", "-c", script]).current_dir(root()).stdin(Stdio::null());
        command
            .env("PATH", &self.path)
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", self.directory.path())
            .env("TZ", "UTC");
        for variable in ["POD_NAMESPACE", "RUST_LOG", "MAKEFLAGS", "MAKELEVEL"] {
            command.env_remove(variable);
        }
        command.output().unwrap()
    }
}

/// The first line after `#> ` that the answer does not have behind the ones before it.
fn missing_line<'a>(script: &'a str, answer: &str) -> Option<&'a str> {
    let mut lines = answer.lines();
    script.lines().filter_map(|line| line.strip_prefix("#> ")).find(|wanted| {
        let parts: Vec<String> = wanted.split('…').map(regex::escape).collect();
        let pattern = Regex::new(&format!("^{}$", parts.join(".*"))).unwrap();
        !lines.any(|line| pattern.is_match(line.trim_end()))
    })
}

#[test]
fn lines_of_an_answer_are_found_in_their_order() {
    let answer = "SLOT   DUE\nMon 02:30   Mon 02:41  \nTue 02:30   -\n";
    for (script, want) in [
        ("next report\n#> Mon 02:30   Mon 02:41\n#> Tue…-\n", None),
        ("next report", None),
        ("#> Tue…", None),
        ("#> Tue…\n#> Mon…", Some("Mon…")),
        ("#> 02:30", Some("02:30")),
        ("#> Wed…", Some("Wed…")),
    ] {
        assert_eq!(missing_line(script, answer), want, "{script}");
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

#[test]
fn console_blocks_show_the_programs_output() {
    if !tools::has_program("docs", "timeout") {
        return;
    }
    let programs = Programs::new();
    let mut seen = 0;
    for page in held() {
        for block in page.blocks().iter().filter(|block| block.mark.as_deref() == Some("test: console")) {
            let mut rest = &*block.body;
            while let Some((command, after)) = rest.strip_prefix("$ ").and_then(|rest| rest.split_once('\n')) {
                let end = after.find("\n$ ").map_or(after.len(), |at| at + 1);
                let answer = said(&programs.run(command, Path::new("/nowhere")));
                assert_eq!(answer, after[..end], "{}:{}: {command}", page.path.display(), block.line);
                rest = &after[end..];
                seen += 1;
            }
            assert_eq!(rest, "", "{}:{}: lines without a command", page.path.display(), block.line);
        }
    }
    assert!(seen > 0, "no console block");
}

/// A running `dev`, which ends when this value is dropped.
struct Dev {
    child: Child,
    kubeconfig: PathBuf,
}

impl Dev {
    fn start(directory: &Path) -> Self {
        let mut command = Command::new(BINARY);
        command
            .args(["dev", "--controllers=*", "--job-duration=0"])
            .env("XDG_RUNTIME_DIR", directory)
            .env_remove("RUST_LOG");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let kubeconfig = lines.find_map(|line| {
            let line = line.unwrap();
            line.trim().strip_prefix("export KUBECONFIG=").map(|rest| PathBuf::from(rest.split(';').next().unwrap()))
        });
        // Further output does not matter here, but must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, kubeconfig: kubeconfig.unwrap() }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn blocks_for_a_cluster_run_against_dev() {
    if !tools::has_kubectl("docs") || !tools::has_program("docs", "jq") || !tools::has_program("docs", "make") {
        return;
    }
    let mut seen = 0;
    for page in held() {
        let mut blocks = page.blocks();
        blocks.retain(|block| block.mark.as_deref() == Some("test: dev"));
        if blocks.is_empty() {
            continue;
        }
        let programs = Programs::new();
        let dev = Dev::start(programs.directory.path());
        for block in blocks {
            let output = programs.run(&block.body, &dev.kubeconfig);
            let place = format!("{}:{}", page.path.display(), block.line);
            let answer = said(&output);
            assert!(output.status.success(), "{place}: {}\n{answer}", output.status);
            assert_eq!(missing_line(&block.body, &answer), None, "{place}: {answer}");
            seen += 1;
        }
    }
    assert!(seen > 0, "no block for dev");
}
