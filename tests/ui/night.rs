//! What an operator sees at night: a lost connection, links with mistakes, counts, the keyboard, and the runs of each CronJob.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::browser::{self, Browser};
use crate::site::{Site, cron_job, write};
use crate::{NAMES, shown};

/// CronJobs of a `dev` whose kubeconfig is in the directory, and a page on it that is another process.
fn cluster_and_page(directory: &Path) -> (Site, Site) {
    let file = write(directory, &[cron_job("minutely", &json!({"schedule": "* * * * *"}), &json!({}))]);
    let kubeconfig = kubeconfig(directory);
    let cluster = Site::dev(directory, &["-f", &file, "--kubeconfig", &kubeconfig]);
    let page = Site::ui(&["-A", "--kubeconfig", &kubeconfig]);
    (cluster, page)
}

fn kubeconfig(directory: &Path) -> String {
    directory.join("kubeconfig").display().to_string()
}

fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status().unwrap().success());
}

#[test]
fn page_stands_still_and_says_so_within_five_seconds_of_a_lost_connection() {
    if !browser::exists() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (cluster, page) = cluster_and_page(directory.path());
    let browser = Browser::open();
    browser.goto(&page.link);
    browser.wait_for("a live page", "document.querySelector('.live.on') && document.querySelector('.rows .row.fine')");
    signal(cluster.process(), "STOP");
    let lost = Instant::now();
    browser.wait_for("the outage", "document.querySelector('.error .lost')?.innerText.includes('Not live since')");
    let took = lost.elapsed();
    // A busy machine draws late.
    assert!(took < Duration::from_secs(8), "{took:?}");
    println!("the lost connection was said after {took:?}");
    assert_eq!(browser.eval("document.querySelector('.live').innerText"), "not live");
    let violations = crate::axe().map(|axe| crate::barriers(&browser, &axe, "outage")).unwrap_or_default();
    assert!(violations.is_empty(), "{violations:#?}");
    let frozen = "document.querySelector('.rows .cell.next').innerText";
    let before = browser.eval(frozen);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(browser.eval(frozen), before, "times stand still");
    signal(cluster.process(), "CONT");
    browser
        .wait_for("a live page again", "document.querySelector('.live.on') && !document.querySelector('.error .lost')");
}

#[test]
fn cluster_that_cannot_be_read_is_not_shown_as_an_empty_one() {
    if !browser::exists() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (cluster, page) = cluster_and_page(directory.path());
    let text = fs::read_to_string(kubeconfig(directory.path())).unwrap();
    drop(page);
    let token = text.lines().find_map(|line| line.trim().strip_prefix("token: ")).unwrap().to_owned();
    let denied = directory.path().join("denied");
    fs::write(&denied, text.replace(&token, "another")).unwrap();
    let gone = directory.path().join("gone");
    let server = text.lines().find_map(|line| line.trim().trim_start_matches("- ").strip_prefix("server: ")).unwrap();
    fs::write(&gone, text.replace(server, "https://127.0.0.1:9")).unwrap();
    let browser = Browser::open();
    for (file, word) in [(denied, "(401)"), (gone, "cannot be reached")] {
        let page = Site::ui(&["-A", "--kubeconfig", file.to_str().unwrap()]);
        browser.goto(&page.link);
        browser.wait_for_text("CronJobs are not known yet.");
        browser.wait_for_text(word);
        browser.wait_for_text("No CronJob is shown, because none can be read.");
        let found = browser.eval(
            "[document.querySelectorAll('.tile').length, document.body.innerText.includes('No CronJob matches')]",
        );
        assert_eq!(found, json!([0, false]), "{word}");
        let violations = crate::axe().map(|axe| crate::barriers(&browser, &axe, word)).unwrap_or_default();
        assert!(violations.is_empty(), "{violations:#?}");
    }
    drop(cluster);
}

#[test]
fn mistakes_in_a_link_or_in_a_field_leave_the_page() {
    if !browser::exists() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), &[cron_job("nightly", &json!({}), &json!({}))]);
    let site = Site::ui(&["-f", &file]);
    let browser = Browser::open();
    browser.goto(&site.link);
    browser.wait_for("the row", &format!("{NAMES}.join() === 'nightly'"));
    for query in [
        "zone=Europe/Berlnn",
        "state=foo",
        "sort=foo",
        "view=foo",
        "span=foo&view=timeline",
        "at=foo&view=timeline",
        "day=foo&view=heat",
        "minute=foo&view=heat",
    ] {
        browser.goto(&site.at(&format!("?{query}")));
        let mistake = query.split('&').next().unwrap();
        browser.wait_for_text(&format!("The link has {mistake}"));
        browser.wait_for("the view and its controls", "document.querySelector('.filters select') && document.querySelector('.views button') && document.querySelector('.rows .row, .heat')");
    }
    browser.goto(&site.at("?view=heat&zone=Europe/Berlin"));
    browser.wait_for("the heat map", "document.querySelector('.heat')");
    browser.eval("(() => { const field = document.querySelector('.zone-field input'); field.value = 'Europe/Berli'; field.dispatchEvent(new Event('input', {bubbles: true})); field.dispatchEvent(new Event('change', {bubbles: true})); })()");
    browser.wait_for_text("not a time zone; times stay in Europe/Berlin");
    browser.eval("(() => { const field = document.querySelector('.zone-field input'); field.value = 'Asia/Tokyo'; field.dispatchEvent(new Event('input', {bubbles: true})); field.dispatchEvent(new Event('change', {bubbles: true})); })()");
    browser.wait_for("the other zone", "location.search.includes('zone=Asia%2FTokyo') && document.querySelector('.heat')?.ariaLabel.includes('Asia/Tokyo')");
    browser.goto(&site.at(""));
    browser.wait_for("a link that names its zone", "location.search.includes('zone=')");
    browser.assert_quiet(&site.link);
}

#[test]
fn tiles_filters_and_menu_count_the_same_and_what_they_select() {
    if !browser::exists() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (site, browser) = shown(directory.path());
    browser.wait_for(
        "failing and blocked ones",
        "document.querySelector('.rows .row.blocked') && document.querySelector('.rows .row.failed')",
    );
    for state in ["growing", "frozen"] {
        browser.goto(&site.at(&format!("?state={state}")));
        browser.wait_for(
            "its tile, which is pressed",
            &format!("document.querySelector('.tile[data-state={state}]')?.ariaPressed === 'true'"),
        );
        assert!(!browser.text().contains("The link has"), "{state} is left out");
    }
    for state in ["stuck", "blocked", "failed", "never"] {
        browser.goto(&site.at(&format!("?state={state}")));
        let same = format!(
            "(() => {{ const tile = Number(document.querySelector('.tile[data-state={state}] b').innerText); \
             const menu = Number(/\\((\\d+)\\)/.exec(document.querySelector('option[value={state}]').innerText)[1]); \
             return tile === menu && tile === Number(document.querySelector('.scroller').ariaRowCount) - 1; }})()"
        );
        browser.wait_for(&format!("one count of {state}"), &same);
    }
    browser.goto(&site.at(""));
    browser.click(".tile[data-state=stuck]");
    browser.wait_for("what cannot run", &format!("{NAMES}.join() === 'never-at-all'"));
    assert!(browser.url().contains("state=stuck"), "{}", browser.url());
}

/// Of a Namespace that is frozen, in files.
#[test]
fn frozen_namespace_is_named_counted_and_marked() {
    if !browser::exists() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "annotations": {
            "cronjob-controller.dev/not-before": "2099-12-24T00:00:00Z", "cronjob-controller.dev/reason": "release week",
        }},
    });
    let mut held = [cron_job("orders", &json!({}), &json!({})), cron_job("stock", &json!({}), &json!({}))];
    for cron_job in &mut held {
        cron_job["metadata"]["namespace"] = "shop".into();
    }
    let stopped = cron_job("stopped", &json!({"suspend": true}), &json!({}));
    let free = cron_job("free", &json!({}), &json!({"cronjob-controller.dev/spread": "30m"}));
    let [orders, stock] = held;
    let file = write(directory.path(), &[namespace, orders, stock, stopped, free]);
    let site = Site::ui(&["-f", &file]);
    let browser = Browser::open();
    browser.goto(&site.link);
    browser.wait_for("the freeze", "/Namespace shop is frozen, \"release week\", until Thu 2099-12-24 .*It holds 2 CronJobs\\./.test(document.querySelector('.freezes')?.innerText)");
    browser.click(".freezes button");
    browser.wait_for("those that are frozen", &format!("{NAMES}.join() === 'orders,stock'"));
    assert!(browser.url().contains("state=frozen"), "{}", browser.url());
    let counts = "['frozen', 'stopped'].map((state) => /\\((\\d+)\\)/.exec(document.querySelector(`option[value=${state}]`).innerText)[1]).join()";
    browser.goto(&site.at("?group=namespace"));
    browser.wait_for("a mark in its group", "[...document.querySelectorAll('.groups button')].some((one) => one.innerText.includes('shop') && one.querySelector('.state.frozen'))");
    browser.wait_for("the tile", "document.querySelector('.tile[data-state=frozen] b')?.innerText === '2'");
    assert_eq!(browser.eval(counts), "2,1");
    // The next run of one with a timing policy starts, though a file does not say when it was edited.
    browser.wait_for("what the next run does", "[...document.querySelectorAll('.rows .row')].some((row) => row.innerText.includes('free') && row.querySelector('.cell.next span[title^=\"starts Job free-\"]'))");
    browser.assert_quiet(&site.link);
}

#[test]
fn keys_work_from_the_first_moment_and_runs_are_in_every_row() {
    if !browser::exists() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (site, browser) = shown(directory.path());
    browser.goto(&site.at("?sort=name"));
    browser.wait_for("rows", "document.querySelectorAll('.rows .row').length === 8");
    browser.press(&["j", "j", "k"]);
    let active = "document.getElementById(document.querySelector('.scroller').getAttribute('aria-activedescendant'))";
    browser.wait_for("the second row", &format!("{active}?.innerText.includes('never-at-all')"));
    browser.press(&["Enter"]);
    browser.wait_for("the CronJob", "document.querySelector('.detail .why')?.innerText.includes('It never runs')");
    browser.wait_for(
        "what ends it",
        "document.querySelector('.why .ends')?.innerText.includes('kubectl edit cronjob -n default never-at-all')",
    );
    browser.press(&["Escape"]);
    browser.wait_for("the row again", &format!("!document.querySelector('.detail') && document.activeElement.matches('.scroller') && {active}?.innerText.includes('never-at-all')"));
    // The runs of the one that fails: what failed, its log, and what ends it.
    browser.wait_for("failed runs", "document.querySelectorAll('.cell-of.failed.job').length > 1");
    browser
        .eval("document.querySelector('.cell-of.failed.job').dispatchEvent(new MouseEvent('click', {bubbles: true}))");
    browser.wait_for("the Job", "document.querySelector('.detail tr.chosen')?.innerText.includes('send-reminders-')");
    browser.wait_for("since when", "/No success (for|since its creation)/.test(document.querySelector('.why')?.innerText) && document.querySelector('.why').innerText.includes('exit code')");
    browser.wait_for("its log", "document.querySelector('.why .logs')?.innerText.includes('kubectl logs -n default')");
    browser.press(&["l"]);
    browser.wait_for(
        "what was copied",
        "/(Copied: kubectl logs|Not copied)/.test(document.querySelector('.said')?.innerText)",
    );
    browser.goto(&site.at("?q=rebuild"));
    browser.wait_for("a held run", "document.querySelector('.row.blocked .cell.next')?.innerText.startsWith('held')");
    browser.goto(&site.at("?q=rebuild&view=timeline&span=1h"));
    browser.wait_for("its line", "document.querySelector('.marks .run')");
    assert_eq!(
        browser.eval("document.querySelectorAll('.marks .expected').length"),
        0,
        "nothing is expected while it is held"
    );
    // The same number of starts has the same colour, whatever the spread.
    let colours = "Object.entries(Object.fromEntries([...document.querySelectorAll('.heat .c')].map((cell) => [cell.dataset.starts, cell.className.match(/l\\d/)[0]]))).sort().join(' ')";
    browser.goto(&site.at("?view=heat&zone=Etc/UTC&day=2027-05-03"));
    browser.wait_for("the map", "document.querySelector('.heat .c.l2')");
    let without = browser.eval(colours).as_str().unwrap().to_owned();
    browser.goto(&site.at("?view=heat&zone=Etc/UTC&day=2027-05-03&spread=30m"));
    browser.wait_for("the what-if", "document.querySelector('.what-if')");
    let with = browser.eval(colours).as_str().unwrap().to_owned();
    assert!(with.split(' ').all(|one| without.split(' ').any(|other| one == other)), "{without} and {with}");
}
