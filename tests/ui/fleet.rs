//! A shop's fleet after a night of failures: the questions of an operator, in the browser and in a terminal.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use apimachinery::clock::TestClock;
use serde_json::json;
use testkit::embedded::{Served, server};
use testkit::night::{NOW, play};

use crate::browser::{self, Browser};
use crate::site::Site;

/// How long the machine may take for an answer, of the ten seconds that an operator has; an unoptimised build is ten times slower.
const LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 30 } else { 3 });

/// The fleet on an API server that listens.
async fn served() -> Served {
    let clock = TestClock::new(NOW.parse().unwrap());
    let server = server(Arc::clone(&clock) as _);
    play(&server.client(), &clock).await;
    Served::start(server).await
}

fn page(kubeconfig: &Path) -> Site {
    Site::ui(&["-A", "--kubeconfig", kubeconfig.to_str().unwrap()])
}

fn terminal(kubeconfig: &Path, args: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"));
    let output =
        command.args(args.split(' ')).arg("--kubeconfig").arg(kubeconfig).env_remove("RUST_LOG").output().unwrap();
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_questions_are_answered_in_the_browser_and_in_a_terminal() {
    if !browser::exists() {
        return;
    }
    let served = served().await;
    let kubeconfig = served.kubeconfig().to_owned();
    tokio::task::spawn_blocking(move || {
        let site = page(&kubeconfig);
        let browser = Browser::open();
        browser.goto(&site.link);
        browser.wait_for_text("40 CronJobs");
        browser.wait_for_text("The webhook guard.payments.example refuses the Jobs of namespace payments: 2 CronJobs did not start.");
        // A question, the page that answers it, where on it, the command that answers it, and the words of both.
        let rows: [(&str, &str, &str, &str, &[&str]); 8] = [
            ("what is broken now", "", ".rows", "list -A", &["invoices", "payouts", "rotate-certs", "send-reminders", "charge-cards", "export-orders"]),
            ("since when", "?q=charge-cards", ".rows .cell.state", "explain -n payments charge-cards", &["No success for 10h1", "at least 12 failed runs"]),
            ("why", "?cj=data/export-orders", ".why", "explain -n data export-orders", &["OOMKilled", "137"]),
            ("what ran last night", "?view=night", ".last-night", "list -A --night --times-in Europe/Berlin", &["charge-cards", "4m00s late", "took 1h35m", "no controller started it before a later run"]),
            ("what runs in the next hour", "?view=night", ".next-hour", "list -A --next-hour --times-in Europe/Berlin", &["dunning-letters", "by the median of 1h10m", "it is paused until a run succeeds"]),
            ("which minute is too full", "?view=night&zone=Europe/Berlin", ".next-hour", "list -A --next-hour --times-in Europe/Berlin", &["The fullest minutes: 04:00"]),
            ("what does this policy change", "?cj=shop/nightly-report", ".detail", "next -n shop nightly-report --all", &["cronjob-controller.dev/exclude"]),
            ("what do I run", "?cj=payments/charge-cards", ".why", "explain -n payments charge-cards", &["kubectl create job -n payments charge-cards-manual --from=cronjob/charge-cards"]),
        ];
        for (question, query, place, command, words) in rows {
            let asked = Instant::now();
            browser.goto(&site.at(query));
            let all = json!(words);
            browser.wait_for(question, &format!("(() => {{ const text = document.querySelector('{place}').innerText; return {all}.every((word) => text.includes(word)); }})()"));
            let shown = asked.elapsed();
            let asked = Instant::now();
            let text = terminal(&kubeconfig, command);
            let printed = asked.elapsed();
            for word in words {
                assert!(text.contains(word), "{question}: {command} does not say {word:?}: {text}");
            }
            println!("{question}: {shown:.1?} on the page, {printed:.1?} in a terminal ({command})");
            assert!(shown < LIMIT && printed < LIMIT, "{question}: {shown:?} and {printed:?}");
        }
        browser.assert_quiet(&site.link);
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_lanes_and_running_jobs_are_shown_and_their_links_lead_there() {
    if !browser::exists() {
        return;
    }
    let served = served().await;
    let kubeconfig = served.kubeconfig().to_owned();
    tokio::task::spawn_blocking(move || {
        let site = page(&kubeconfig);
        let browser = Browser::open();
        browser.goto(&site.link);
        browser.wait_for_text("40 CronJobs");
        browser.goto(&site.at("?group=label:team"));
        let group = |text: &str| format!("[...document.querySelectorAll('.groups button')].find((one) => one.innerText.includes('{text}'))");
        browser.wait_for("the groups", &format!("document.querySelectorAll('.groups button').length === 4 && {}", group("checkout")));
        browser.eval(&format!("{}.click()", group("checkout")));
        browser.wait_for("its CronJobs alone", "document.querySelector('.scroller').ariaRowCount === '9' && document.querySelector('.tile.total').innerText.includes('8 CronJobs')");
        assert!(browser.url().contains("group=label%3Ateam&") && browser.url().contains("label=team%3Dcheckout"), "{}", browser.url());
        browser.goto(&site.at("?group=label:tame&label=team%3Dnone&image=x:1&namespace=nowhere"));
        for sentence in ["No CronJob has a label tame.", "No CronJob has the label team=none.", "No CronJob has a container with the image x:1.", "No CronJob is in the namespace nowhere."] {
            browser.wait_for_text(sentence);
        }
        browser.goto(&site.at("?cj=shop/nightly-report"));
        browser.wait_for("the lanes", "document.querySelectorAll('.lane-mark.moved').length > 10 && document.querySelector('.lane-mark.dropped')");
        browser.wait_for("their words", "/\\d+ moved/.test(document.querySelector('.changes').innerText) && /\\d+ dropped/.test(document.querySelector('.changes').innerText)");
        browser.goto(&site.at("?view=heat&zone=Europe/Berlin&day=2026-11-28&q=etl-sessions"));
        browser.wait_for("one start", "document.querySelectorAll('.heat .c.l1').length === 1");
        browser.goto(&site.at("?view=heat&zone=Europe/Berlin&day=2026-11-28&q=etl-sessions&show=jobs&minute=2026-11-28T01:00:00.000Z"));
        browser.wait_for("95 minutes", "document.querySelectorAll('.heat .c.l1').length === 95");
        browser.wait_for("the list of a minute beside it", "document.querySelector('.minute-list').getBoundingClientRect().left >= document.querySelector('.heat').getBoundingClientRect().right - 1");
        browser.goto(&site.at("?view=heat&zone=Europe/Berlin&day=2026-10-05&q=heartbeat"));
        browser.wait_for("nothing before it existed", "document.querySelector('[data-cell=\"10:59\"]')?.dataset.starts === '0' && document.querySelector('[data-cell=\"11:1\"]')?.dataset.starts === '1'");
        browser.press(&["4"]);
        browser.wait_for("the night by its key", "document.querySelector('.view-night')");
        browser.assert_quiet(&site.link);
    })
    .await
    .unwrap();
}
