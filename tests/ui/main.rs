//! The page of `ui` and of `dev` in a real browser, and its server as an attacker sees it. Without chromium and chromedriver
//! the tests of the browser are skipped.
//!
//! `UI_CRON_JOBS=10000 cargo test --profile bench --test ui many` measures the sizes of docs/ui.md; `make ui-pictures` makes its
//! pictures.
#![allow(clippy::unwrap_used, clippy::explicit_write, missing_docs)]

mod access;
mod browser;
mod fleet;
mod night;
mod site;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use apimachinery::clock::SystemClock;
use browser::Browser;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use futures::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use site::{Site, cron_job, write};
use testkit::embedded::{Served, server};
use testkit::{fixture, tools};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// CronJobs of `dev` in several states.
fn lively() -> Vec<Value> {
    let of_job = |key: &str, value: &str| {
        let template = json!({"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example/job:1"}],
        }});
        // A failed Job is not tried again, which would take minutes.
        json!({
            "metadata": {"annotations": {format!("cronjob-controller.dev/{key}"): value}},
            "spec": {"backoffLimit": 0, "template": template},
        })
    };
    vec![
        cron_job(
            "rebuild-search-index",
            &json!({"schedule": "*/4 * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": of_job("duration", "25m")}),
            &json!({}),
        ),
        cron_job(
            "send-reminders",
            &json!({"schedule": "*/2 * * * *", "jobTemplate": of_job("outcome", "fail"), "failedJobsHistoryLimit": 5}),
            &json!({}),
        ),
        cron_job(
            "sync-orders",
            &json!({"schedule": "* * * * *", "jobTemplate": of_job("duration", "20s"), "successfulJobsHistoryLimit": 10}),
            &json!({}),
        ),
        cron_job(
            "refresh-prices",
            &json!({"schedule": "*/5 * * * *", "concurrencyPolicy": "Replace", "startingDeadlineSeconds": 600}),
            &json!({}),
        ),
        cron_job(
            "nightly-report",
            &json!({"schedule": "30 2 * * *", "timeZone": "Europe/Berlin"}),
            &json!({"cronjob-controller.dev/spread": "30m", "cronjob-controller.dev/dst": "once"}),
        ),
        cron_job(
            "billing-export",
            &json!({"schedule": "0 6 * * 1-5", "timeZone": "America/New_York"}),
            &json!({"cronjob-controller.dev/exclude": "12-25,Sat"}),
        ),
        cron_job("retired-export", &json!({"schedule": "0 * * * *", "suspend": true}), &json!({})),
        cron_job("never-at-all", &json!({"schedule": "0 0 31 2 *"}), &json!({})),
    ]
}

/// A browser on the page of a `dev` in which a minute lasts a second.
fn shown(directory: &Path) -> (Site, Browser) {
    let file = write(directory, &lively());
    let site = Site::dev(directory, &["-f", &file, "--at=2027-03-01T08:55:30Z", "--speed=60"]);
    let browser = Browser::open();
    browser.goto(&site.link);
    browser.wait_for_text("8 CronJobs");
    browser.wait_for_text("rebuild-search-index");
    (site, browser)
}

const NAMES: &str = "[...document.querySelectorAll('.rows .cell.name bdi')].map((name) => name.textContent)";

#[test]
fn every_part_of_the_page_works_with_dev() {
    if !browser::exists() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (site, browser) = shown(directory.path());
    assert!(!browser.url().contains("token"), "{}", browser.url());
    // Strip and table, live.
    browser.wait_for(
        "a blocked CronJob",
        "document.querySelector('.rows .row.blocked')?.innerText.includes('It is blocked: Job rebuild-search-index-')",
    );
    browser
        .wait_for("a failing one", "document.querySelector('.rows .row.failed')?.innerText.includes('send-reminders')");
    browser.wait_for("a run that succeeded", "document.querySelector('.result.succeeded')");
    browser.wait_for(
        "its lateness",
        "[...document.querySelectorAll('.cell.late')].some((cell) => /s \\//.test(cell.innerText))",
    );
    browser.wait_for(
        "passed slots",
        "[...document.querySelectorAll('.cell.passed .chip')].some((chip) => chip.innerText.startsWith('blocked'))",
    );
    browser.wait_for_text("hottest minute");
    // The time is the cluster's.
    browser.wait_for_text("Mon 1 Mar ");
    let names = browser.eval(NAMES);
    let last = names.as_array().unwrap().last().unwrap();
    assert_eq!(last, "retired-export", "suspended ones are last: {names}");
    let text = browser.text();
    for word in
        ["Forbid", "Replace", "spread 30m", "dst once", "exclude 12-25,Sat", "deadline 10m00s", "never succeeded"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    // Keys, search, filter and sort are in the address.
    browser.press(&["/"]);
    browser.press(&["n", "i", "g", "h", "t"]);
    browser.wait_for("one row", &format!("{NAMES}.join() === 'nightly-report'"));
    assert!(browser.url().contains("q=night"), "{}", browser.url());
    browser.goto(&site.at("?sort=name&namespace=default&state=stopped"));
    browser.wait_for("suspended ones", &format!("{NAMES}.join() === 'retired-export'"));
    // One CronJob.
    browser.goto(&site.at("?cj=default/nightly-report"));
    browser.wait_for_text("dst");
    browser.wait_for("ten runs", "document.querySelectorAll('.next-runs tr.due').length === 10");
    browser.wait_for("what the spread changes", "document.querySelector('.next-runs').innerText.includes('spread: ')");
    for word in [
        "nightly-report-manual-",
        "kubectl patch cronjob -n default nightly-report",
        "cronjob-controller backfill -n default nightly-report",
        "--dry-run --kubeconfig=/",
        "jobTemplate:",
    ] {
        browser.wait_for_text(word);
    }
    browser.goto(&site.at("?cj=default/send-reminders"));
    browser.wait_for("its Jobs and Events", "document.querySelector('.detail').innerText.includes('SuccessfulCreate') && document.querySelector('.detail .result.failed')");
    browser.press(&["Escape"]);
    browser.wait_for("the end of the panel", "!document.querySelector('.detail')");
    heat_map_works(&site, &browser);
    // Timeline.
    browser.goto(&site.at("?view=timeline&span=1h"));
    browser.wait_for("bars of each kind", "document.querySelector('.run.succeeded') && document.querySelector('.run.failed') && document.querySelector('.run.running')");
    browser.wait_for(
        "a skipped slot with its reason",
        "document.querySelector('.slot.skipped title')?.textContent.includes('blocked')",
    );
    browser.wait_for("expected runs", "document.querySelector('.expected')");
    browser.press(&["3", "2"]);
    browser.wait_for("the heat map by its key", "document.querySelector('.heat')");
    browser.assert_quiet(&site.link);
}

fn heat_map_works(site: &Site, browser: &Browser) {
    browser.goto(&site.at("?view=heat&day=2027-03-28&zone=Europe/Berlin&q=report"));
    browser.wait_for("a day of 23 hours", "document.querySelectorAll('.heat .hour:not(.scale)').length === 23");
    browser.goto(&site.at("?view=heat&day=2026-10-25&zone=Europe/Berlin"));
    browser.wait_for("a day of 25 hours", "document.querySelectorAll('.heat .hour:not(.scale)').length === 25");
    browser.goto(&site.at("?view=heat&day=2027-05-03&zone=Etc/UTC"));
    browser.wait_for("a start at ten", "document.querySelector('[data-cell=\"10:0\"]')?.dataset.starts > 1");
    browser.click("[data-cell='10:0']");
    browser.wait_for("who starts then", "document.querySelector('.minute-list')?.innerText.includes('billing-export')");
    assert!(browser.url().contains("minute=2027-05-03T10"), "{}", browser.url());
    browser.eval("(() => { const slider = document.querySelector('input[type=range]'); slider.value = 5; slider.dispatchEvent(new Event('input', {bubbles: true})); })()");
    browser.wait_for_text("spread: 30m");
    browser.wait_for(
        "the patch",
        "document.querySelector('.what-if pre')?.textContent.includes('cronjob-controller.dev/spread: 30m')",
    );
    browser.wait_for(
        "the command",
        "document.querySelector('.what-if').innerText.includes('kubectl annotate cronjob -n default')",
    );
    assert!(browser.url().contains("spread=30m"), "{}", browser.url());
}

#[test]
fn hostile_texts_are_shown_and_do_nothing() {
    if !browser::exists() {
        return;
    }
    let hostile = "<img src=x onerror=window.pwned=1>";
    let script = "</script><script>window.pwned=1</script>";
    let directory = tempfile::tempdir().unwrap();
    let objects = [
        cron_job(hostile, &json!({}), &json!({"cronjob-controller.dev/spread": hostile})),
        cron_job("b", &json!({"schedule": script}), &json!({"cronjob-controller.dev/exclude": script})),
        cron_job("javascript:alert(1)", &json!({"timeZone": "{{7*7}}${7*7}"}), &json!({})),
    ];
    let file = write(directory.path(), &objects);
    let site = Site::ui(&["-f", &file]);
    let browser = Browser::open();
    browser.goto(&site.link);
    browser.wait_for_text("3 CronJobs");
    browser.wait_for_text(hostile);
    browser.wait_for_text(script);
    for view in ["heat", "timeline"] {
        browser
            .goto(&site.at(&format!("?view={view}&q=%3Cimg%20src%3Dx%20onerror%3Dwindow.pwned%3D1%3E&zone=Etc/UTC")));
        browser.wait_for("the view", "document.querySelector('.heat, .view-timeline')");
    }
    for name in [hostile, "b", "javascript:alert(1)"] {
        let cj = name.replace('<', "%3C").replace('>', "%3E").replace(' ', "%20").replace('=', "%3D");
        browser.goto(&site.at(&format!("?cj=default/{cj}")));
        browser.wait_for("the panel", "document.querySelector('.detail .code pre')");
        assert!(browser.text().contains(name), "{name}");
    }
    assert_eq!(
        browser.eval("[window.pwned ?? null, document.images.length, document.querySelectorAll('script').length]"),
        json!([null, 0, 1])
    );
    browser.assert_quiet(&site.link);
}

/// The number of CronJobs; each has three Jobs.
fn many() -> usize {
    std::env::var("UI_CRON_JOBS").ok().map_or(2_000, |number| number.parse().unwrap())
}

/// Scrolls through the table as a wheel does, and looks in each frame at what is in view: the frames, those with a place where no row is,
/// and those with a row that is not known yet.
const SCROLL: &str = "const view = document.querySelector('.scroller'); let [frames, blank, waiting] = [0, 0, 0]; \
    const look = () => { \
        const { left, top, bottom } = view.getBoundingClientRect(); \
        const rows = [top + 60, (top + bottom) / 2, bottom - 20].map((y) => document.elementFromPoint(left + 30, y)?.closest('.rows > .row')); \
        if (frames > 0) { blank += rows.some((row) => !row); waiting += rows.some((row) => row?.matches('.waiting')); } \
        frames += 1; \
        if (frames > 60) return done([frames, blank, waiting]); \
        view.scrollTop += 120; requestAnimationFrame(() => requestAnimationFrame(look)); \
    }; look();";

/// An API server with many CronJobs and three times as many Jobs.
async fn large(number: usize) -> Served {
    let server = server(Arc::new(SystemClock));
    let client = server.client();
    let now = Utc::now();
    let time = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
    let post = |path: &'static str, object: Value| {
        let client = client.clone();
        async move {
            let request = http::Request::post(path).header("content-type", "application/json");
            client.request::<Value>(request.body(object.to_string().into_bytes()).unwrap()).await.unwrap()
        }
    };
    let one = |number: usize| {
        let post = &post;
        async move {
            let name = format!("report-{number:05}");
            let spec = match number % 10 {
                0 => json!({"schedule": "0 * * * *"}),
                1 => json!({"schedule": "*/5 * * * *", "suspend": true}),
                2 => json!({"schedule": "* * * * *", "concurrencyPolicy": "Forbid"}),
                _ => json!({"schedule": format!("{} {} * * *", number % 60, number / 60 % 24)}),
            };
            let created = post("/apis/batch/v1/namespaces/default/cronjobs", cron_job(&name, &spec, &json!({}))).await;
            for back in 1..=3_i64 {
                let slot = now - TimeDelta::hours(back);
                let job = json!({
                    "apiVersion": "batch/v1", "kind": "Job",
                    "metadata": {
                        "name": format!("{name}-{}", slot.timestamp() / 60),
                        "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": time(slot)},
                        "ownerReferences": [{
                            "apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": created["metadata"]["uid"],
                            "controller": true, "blockOwnerDeletion": true,
                        }],
                    },
                    "spec": created["spec"]["jobTemplate"]["spec"],
                });
                post("/apis/batch/v1/namespaces/default/jobs", job).await;
            }
        }
    };
    stream::iter(0..number).map(one).buffer_unordered(64).collect::<Vec<()>>().await;
    Served::start(server).await
}

#[tokio::test(flavor = "multi_thread")]
async fn many_cron_jobs_are_shown_quickly() {
    if !browser::exists() {
        return;
    }
    let number = many();
    let served = large(number).await;
    let site = Site::ui(&["--kubeconfig", served.kubeconfig().to_str().unwrap(), "-n", "default"]);
    let link = site.link.clone();
    let times = tokio::task::spawn_blocking(move || {
        let browser = Browser::open();
        browser.goto(&link);
        let grouped =
            if number >= 1_000 { format!("{},{:03}", number / 1_000, number % 1_000) } else { number.to_string() };
        browser.wait_for_text(&format!("{grouped} CronJobs"));
        browser.wait_for("rows", "document.querySelectorAll('.rows .row').length > 5");
        // Everything is in the cache now: the page alone, once more.
        browser.goto(&site.at("?sort=name"));
        browser.wait_for("rows", "document.querySelectorAll('.rows .row').length > 5");
        let painted = browser.eval("performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/api/cronjobs')).at(-1).responseEnd");
        let drawn = browser.eval("document.querySelectorAll('.rows .row').length").as_u64().unwrap();
        assert!(drawn < 100, "{drawn} rows are drawn");
        let scrolled = browser.run(SCROLL);
        println!(
            "scrolled by 120 pixels in each of {} frames: {} had a place without a row, {} one whose row was not known yet",
            scrolled[0], scrolled[1], scrolled[2]
        );
        assert_eq!(scrolled[1], 0, "a blank row");
        if !cfg!(debug_assertions) {
            assert_eq!(scrolled[2], 0, "a row that was not known in time");
        }
        browser.eval("document.querySelector('.scroller').scrollTo(0, 1e9)");
        let last = format!("report-{:05}", number - 1);
        browser.wait_for("the last row", &format!("{NAMES}.includes('{last}')"));
        let timed = "const start = performance.now(); fetch('/api/heat?zone=Etc/UTC&spread=30m', { headers: { authorization: `Bearer ${sessionStorage.getItem('session')}` } }).then((answer) => answer.json()).then((day) => done([performance.now() - start, day.starts]))";
        let heat = browser.run(timed);
        assert!(heat[1].as_u64().unwrap() > 0);
        browser.assert_quiet(&site.link);
        (painted.as_f64().unwrap(), heat[0].as_f64().unwrap(), site.memory())
    });
    let started = Instant::now();
    let (painted, heat, memory) = times.await.unwrap();
    println!(
        "{number} CronJobs: first rows after {painted:.0} ms, what-if of a day in {heat:.0} ms, {memory} MiB, all in {:?}",
        started.elapsed()
    );
    // An unoptimised build is ten times slower, and other tests run beside this one.
    if !cfg!(debug_assertions) {
        assert!(painted < 500.0 && heat < 400.0 && memory < 200, "{painted} ms, {heat} ms, {memory} MiB");
    }
}

/// The accessibility checker, if it was downloaded.
fn axe() -> Option<String> {
    let file = repository().join("target/tools/axe.min.js");
    let found = std::fs::read_to_string(&file).ok();
    if found.is_none() {
        tools::without("ui", "there is no target/tools/axe.min.js: make target/tools/axe.min.js", "REQUIRE_TOOLS");
    }
    found
}

/// The serious findings of the checker on what is shown.
fn barriers(browser: &Browser, axe: &str, place: &str) -> Vec<String> {
    browser.run(&format!("{axe}; done(true)"));
    let found = browser.run(
        "axe.run(document, {resultTypes: ['violations']}).then((all) => done(all.violations.map((one) => \
         [one.impact, one.id, one.nodes[0].html.slice(0, 200), one.nodes[0].failureSummary])))",
    );
    let serious = found.as_array().unwrap().iter().filter(|one| one[0] == "serious" || one[0] == "critical");
    serious.map(|one| format!("{place}: {one}")).collect()
}

/// What is shown of a cluster without a controller: the banner, and the report of a shadow.
#[tokio::test(flavor = "multi_thread")]
async fn page_of_a_cluster_without_a_controller_has_no_serious_barriers() {
    let Some(axe) = browser::exists().then(axe).flatten() else { return };
    let served = large(3).await;
    let violations = tokio::task::spawn_blocking(move || {
        let directory = tempfile::tempdir().unwrap();
        let report = directory.path().join("report.json");
        let (report, kubeconfig) = (report.to_str().unwrap(), served.kubeconfig());
        let mut shadow = std::process::Command::new(env!("CARGO_BIN_EXE_cronjob-controller"));
        let args = ["shadow", "--for=1s", "--report", report, "-A", "--kubeconfig", kubeconfig.to_str().unwrap()];
        assert!(shadow.args(args).output().unwrap().status.code().is_some_and(|code| code < 2));
        let site = Site::ui(&["--kubeconfig", kubeconfig.to_str().unwrap(), "-A", "--shadow", report]);
        let browser = Browser::open();
        browser.goto(&site.link);
        browser.wait_for_text("No controller has a Lease");
        let mut violations = barriers(&browser, &axe, "no Lease");
        browser.goto(&site.at("?view=shadow"));
        browser.wait_for("the shadow", "document.querySelector('.view-shadow, .last-night')");
        violations.extend(barriers(&browser, &axe, "shadow"));
        violations
    });
    let violations = violations.await.unwrap();
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn page_has_no_serious_barriers() {
    let Some(axe) = browser::exists().then(axe).flatten() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (site, browser) = shown(directory.path());
    browser.wait_for("a blocked CronJob", "document.querySelector('.rows .row.blocked')");
    let views = [
        ("", ".rows .row"),
        ("?view=heat&zone=Etc/UTC&day=2027-05-03&spread=30m", ".what-if"),
        ("?view=timeline&span=1h", ".marks"),
        ("?view=night", ".minutes li"),
        ("?group=image", ".groups button"),
        ("?cj=default/nightly-report", ".detail .code"),
        ("?view=heat&zone=Etc/UTC&day=2027-05-03&minute=2027-05-03T09:00:00Z", ".minute-list"),
        ("?q=zzz", ".empty"),
        ("?view=timeline&q=zzz", ".empty"),
        ("?zone=%2B01:00", ".error"),
    ];
    let sizes = [("light", 1280, 720), ("dark", 1280, 720), ("light", 390, 844), ("dark", 390, 844)];
    let mut violations = Vec::new();
    for (scheme, width, height) in sizes {
        browser.scheme(scheme);
        browser.size(width, height);
        for (query, part) in views {
            browser.goto(&site.at(query));
            browser.wait_for(part, &format!("document.querySelector('{part}')"));
            violations.extend(barriers(&browser, &axe, &format!("{scheme} {width} {query}")));
            // Nothing is wider than the window but what scrolls by itself.
            let overflow = browser.eval("document.documentElement.scrollWidth - innerWidth");
            assert!(overflow.as_i64().unwrap() <= 0, "{scheme} {width} {query}: {overflow} pixels too wide");
        }
        browser.goto(&site.at(""));
        browser.wait_for("rows", "document.querySelector('.rows .row')");
        browser.press(&["?"]);
        browser.wait_for("the help", "document.querySelector('.help')");
        violations.extend(barriers(&browser, &axe, &format!("{scheme} {width} help")));
    }
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn page_shows_a_real_cluster() {
    let binary = match fixture::find() {
        Ok(binary) if browser::exists() => binary,
        Ok(_) => return,
        Err(why) => return tools::without_fixture("ui", &why),
    };
    testkit::harness::block_on(async {
        let plane = fixture::control_plane::ControlPlane::start(&binary).await.unwrap();
        let client = plane.admin();
        for (name, spec) in [("nightly", json!({})), ("held", json!({"suspend": true}))] {
            let request = http::Request::post("/apis/batch/v1/namespaces/default/cronjobs")
                .header("content-type", "application/json");
            let body = cron_job(name, &spec, &json!({})).to_string().into_bytes();
            client.request::<Value>(request.body(body).unwrap()).await.unwrap();
        }
        let kubeconfig: PathBuf = plane.admin_kubeconfig();
        tokio::task::spawn_blocking(move || {
            let site = Site::ui(&["--kubeconfig", kubeconfig.to_str().unwrap(), "-A"]);
            let browser = Browser::open();
            browser.goto(&site.link);
            browser.wait_for_text("2 CronJobs");
            browser.wait_for("both", &format!("{NAMES}.join() === 'nightly,held'"));
            browser.goto(&site.at("?cj=default/nightly"));
            browser.wait_for_text("jobTemplate:");
            browser.assert_quiet(&site.link);
        })
        .await
        .unwrap();
    });
}
