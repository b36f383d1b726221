//! The view of `dev` on a terminal, which tmux is: what it shows, keys, and how it leaves the terminal. Skipped without tmux.
//!
//! `cargo test --test dev_view picture -- --ignored` makes the picture of README.
#![allow(clippy::unwrap_used, missing_docs)]

mod picture;
mod tmux;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use regex::Regex;
use testkit::tools;
use tmux::Tmux;

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (120, 40);

fn has_tmux() -> bool {
    tools::has_tmux("dev_view")
}

fn cron_job(name: &str, schedule: &str, spec: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: {name}}}\nspec:\n  schedule: \"{schedule}\"\n  {spec}\n  \
         jobTemplate: {{spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}}}}}}}\n---\n"
    )
}

/// CronJobs that do not run during a test.
fn quiet(number: usize) -> String {
    (0..number).fold(String::new(), |mut all, number| {
        let spec = if number % 3 == 1 { "suspend: true" } else { "timeZone: Etc/UTC" };
        write!(all, "{}", cron_job(&format!("report-{number:03}"), &format!("{} 0 29 2 *", number % 60), spec))
            .unwrap();
        all
    })
}

/// A terminal on which `dev` shows these CronJobs.
fn shown(directory: &Path, manifests: &str, size: (u16, u16)) -> Tmux {
    shown_with("", directory, manifests, size)
}

fn shown_with(flags: &str, directory: &Path, manifests: &str, size: (u16, u16)) -> Tmux {
    let file = directory.join("cronjobs.yaml");
    std::fs::write(&file, manifests).unwrap();
    let kubeconfig = directory.join("kubeconfig");
    let dev = format!(
        "{} dev -f {} --kubeconfig {} {flags}; echo exit code $?; stty -a",
        env!("CARGO_BIN_EXE_cronjob-controller"),
        file.display(),
        kubeconfig.display()
    );
    let tmux = Tmux::run(directory, &dev, size);
    tmux.wait_for("the view", |text| text.contains("q: quit") && text.contains("next start in"));
    tmux
}

/// The screen without what differs between two runs.
fn golden(tmux: &Tmux, directory: &Path) -> String {
    // A command may continue on the next line.
    let text = tmux.screen().replace(&directory.display().to_string(), "DIRECTORY");
    let rules = [
        (r"\d\d:\d\d:\d\d", "hh:mm:ss"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"token=[0-9a-f]+", "token=TOKEN"),
        (r"in \d+d\d\dh", "in ...d..h"),
    ];
    let text =
        rules.iter().fold(text, |text, (pattern, with)| Regex::new(pattern).unwrap().replace_all(&text, *with).into());
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn view_shows_few_and_many_cron_jobs_on_terminals_of_both_sizes() {
    if !has_tmux() {
        return;
    }
    for (name, number, size) in
        [("few_80x24", 3, SMALL), ("few_120x40", 3, LARGE), ("many_80x24", 200, SMALL), ("many_120x40", 200, LARGE)]
    {
        let directory = tempfile::Builder::new().prefix("dev").rand_bytes(6).tempdir_in("/tmp").unwrap();
        let tmux = shown(directory.path(), &quiet(number), size);
        tmux.wait_for("all CronJobs", |text| text.contains(&format!("{number} CronJobs")));
        insta::assert_snapshot!(name, golden(&tmux, directory.path()));
    }
}

#[test]
fn keys_scroll_and_sort_and_a_new_size_leaves_no_ghosts() {
    if !has_tmux() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let tmux = shown(directory.path(), &quiet(200), LARGE);
    tmux.wait_for("all CronJobs", |text| text.contains("200 CronJobs"));
    tmux.keys(&["s", "s", "s"]);
    tmux.wait_for("sorting by name", |text| text.contains("by name") && text.contains("report-000"));
    tmux.keys(&["End"]);
    tmux.wait_for("the last row", |text| text.contains("200 of 200") && text.contains("report-199"));
    tmux.resize((60, 15));
    tmux.wait_for("the new size", |text| text.contains("CRONJOB") && !text.contains("SCHEDULE"));
    tmux.keys(&["End"]);
    tmux.wait_for("the last row again", |text| text.contains("200 of 200") && text.contains("report-199"));
    let text = tmux.screen();
    for what in ["CRONJOB", "200 CronJobs", "report-199"] {
        assert_eq!(text.matches(what).count(), 1, "{what}: {text}");
    }
}

/// A way to end dev, and its name.
type End = (&'static str, fn(&Tmux));

#[test]
fn terminal_is_given_back_however_dev_ends() {
    if !has_tmux() {
        return;
    }
    let ends: [End; 4] = [
        ("q", |tmux| tmux.keys(&["q"])),
        ("Ctrl-C", |tmux| tmux.keys(&["C-c"])),
        ("SIGTERM", |tmux| tmux.signal("-TERM")),
        ("SIGHUP", |tmux| tmux.signal("-HUP")),
    ];
    for (name, end) in ends {
        let directory = tempfile::tempdir().unwrap();
        let tmux = shown(directory.path(), &quiet(3), SMALL);
        end(&tmux);
        tmux.wait_for(name, |text| text.contains("exit code 0") && text.contains("icanon"));
        let text = tmux.screen();
        let joined = text.replace('\n', "");
        assert!(joined.contains("export KUBECONFIG="), "{name}: the command is still there: {text}");
        for mode in ["icanon", "echo", "isig", "opost"] {
            assert!(!text.contains(&format!("-{mode} ")), "{name}: {mode} is off: {text}");
        }
        assert!(!text.contains("CRONJOB"), "{name}: the view is gone: {text}");
        assert!(tmux.has_cursor(), "{name}");
        assert!(!directory.path().join("kubeconfig").exists(), "{name}");
    }
}

#[test]
fn closed_terminal_ends_dev() {
    if !has_tmux() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let tmux = shown(directory.path(), &quiet(3), SMALL);
    let process = format!("/proc/{}/cmdline", tmux.child());
    tmux.close();
    let start = Instant::now();
    // A process that has ended is still listed until its parent asks, with an empty command line.
    while !std::fs::read(&process).unwrap_or_default().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(30), "dev still runs");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!directory.path().join("kubeconfig").exists(), "its kubeconfig is still there");
}

/// Makes docs/dev.svg.
#[test]
#[ignore = "makes a picture, in half a minute: make dev-picture"]
fn picture() {
    if !has_tmux() {
        return;
    }
    let directory = tempfile::Builder::new().prefix("dev").tempdir_in("/tmp").unwrap();
    let annotated = |key: &str, value: &str| {
        format!("jobTemplate: {{metadata: {{annotations: {{cronjob-controller.dev/{key}: \"{value}\"}}}}, spec: ")
    };
    let lively = |name: &str, schedule: &str, key: &str, value: &str| {
        // A failed Job is not tried again, which would take minutes.
        cron_job(name, schedule, "").replace("jobTemplate: {spec: {", &(annotated(key, value) + "{backoffLimit: 0, "))
    };
    let manifests = [
        lively("sync-orders", "* * * * *", "outcome", "succeed"),
        lively("send-reminders", "*/2 * * * *", "outcome", "fail"),
        lively("rebuild-search-index", "*/4 * * * *", "duration", "6m"),
        cron_job("nightly-report", "30 2 * * *", "timeZone: Europe/Berlin"),
        cron_job("retired-export", "0 * * * *", "suspend: true"),
        cron_job("leap-day-party", "0 0 29 2 *", "timeZone: Etc/UTC"),
        cron_job("never-at-all", "0 0 31 2 *", "timeZone: Etc/UTC"),
    ]
    .concat();
    let tmux = shown_with("--at=2027-03-01T08:55:30Z --speed=60", directory.path(), &manifests, SMALL);
    // One of each is in the legend.
    tmux.wait_for("some runs", |text| text.matches('✓').count() > 3 && text.contains("●●"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/dev.svg");
    std::fs::write(&file, picture::svg(&tmux.coloured(), SMALL)).unwrap();
    println!("wrote {}", file.display());
}
