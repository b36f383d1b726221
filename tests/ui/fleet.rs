//! The night of a shop's fleet in a browser: what an operator asks, and the parts of the page that answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use apimachinery::clock::TestClock;
use http::Method;
use serde_json::json;
use testkit::driver::request;
use testkit::embedded::{Served, server};
use testkit::night::{NOW, play};

use crate::browser::{self, Browser};
use crate::site::{Site, cron_job, write};
use crate::{NAMES, repository};

/// The text of the row of a CronJob.
fn row(name: &str) -> String {
    format!(
        "[...document.querySelectorAll('.rows .row')].find((row) => row.querySelector('.name bdi')?.textContent === '{name}').innerText"
    )
}

const ACTIVE: &str = "document.getElementById(document.querySelector('.scroller').getAttribute('aria-activedescendant'))?.querySelector('bdi').textContent";

/// The page of the fleet, and its cluster.
struct Fleet {
    site: Site,
    browser: Browser,
    client: kube::Client,
    runtime: tokio::runtime::Handle,
    served: Option<Served>,
}

impl Fleet {
    fn delete(&self, path: &str) {
        self.runtime.block_on(request(&self.client, Method::DELETE, path, None)).unwrap();
    }

    /// The API server answers no more.
    fn stop(&mut self) {
        self.served = None;
    }
}

/// Runs a test on the page of the fleet, if there is a browser.
fn with_fleet(work: impl FnOnce(Fleet) + Send + 'static) {
    if !browser::exists() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    runtime.block_on(async {
        let clock = TestClock::new(NOW.parse().unwrap());
        let api = server(Arc::<TestClock>::clone(&clock));
        let client = api.client();
        play(&client, &clock).await;
        let served = Served::start(api).await;
        let kubeconfig = served.kubeconfig().to_str().unwrap().to_owned();
        let work = move || {
            let site = Site::ui(&["-A", "--kubeconfig", &kubeconfig]);
            let browser = Browser::open();
            browser.goto(&site.link);
            browser.wait_for("the fleet", "document.querySelectorAll('.rows .row').length > 5");
            work(Fleet { site, browser, client, runtime: handle, served: Some(served) });
        };
        tokio::task::spawn_blocking(work).await.unwrap();
    });
}

#[test]
fn night_of_the_fleet_answers_an_operator() {
    with_fleet(|fleet| {
        let Fleet { site, browser, .. } = &fleet;
        let begun = Instant::now();
        let mut before = Duration::ZERO;
        let mut answered = |question: &str| {
            println!("{question}: {:.1} s", begun.elapsed().saturating_sub(before).as_secs_f64());
            before = begun.elapsed();
        };
        browser.goto(&site.at("?zone=Europe/Berlin"));
        browser.wait_for("the rows", &format!("{NAMES}.includes('charge-cards')"));
        // What is broken, the worst first; and what concerns several at once.
        let names = browser.eval(NAMES);
        let broken: Vec<&str> = names.as_array().unwrap().iter().take(9).map(|name| name.as_str().unwrap()).collect();
        let mut sorted = broken.clone();
        sorted.sort_unstable();
        let expected = [
            "charge-cards",
            "export-orders",
            "import-catalog",
            "invoices",
            "payouts",
            "rebuild-search-index",
            "refresh-prices",
            "rotate-certs",
            "send-reminders",
        ];
        assert_eq!((&broken[..3], &sorted[..]), (&["invoices", "payouts", "import-catalog"][..], &expected[..]));
        browser.wait_for_text(
            "The API server refuses the Jobs of 2 CronJobs of namespace payments: admission webhook \"guard.payments.example\" denied the \
             request: quota service unreachable.",
        );
        browser.click(".error .fleet button");
        browser.wait_for("those that are refused", &format!("{NAMES}.join() === 'invoices,payouts'"));
        assert!(browser.url().contains("namespace=payments") && browser.url().contains("state=overdue"));
        answered("what is broken now");
        // The menu counts what its entries would select.
        browser.goto(&site.at("?q=orders"));
        browser.wait_for("the counts of the search", "[...document.querySelectorAll('.filters option')].map((one) => one.textContent).join().includes('data (2),ops (0),payments (0),shop (0)')");
        answered("how many of a search are in each namespace");
        // Since when, why, and what to run.
        browser.goto(&site.at("?zone=Europe/Berlin"));
        for (name, words) in [
            ("charge-cards", &["Failing", "No success for 10h"][..]),
            ("export-orders", &["Failing", "No success for 1d"]),
            ("invoices", &["Overdue", "2h1"]),
            ("import-catalog", &["Missed", "The last 2 runs were missed"]),
            ("rebuild-search-index", &["Blocked", "has been running for 4h1"]),
            ("rotate-certs", &["Never runs"]),
        ] {
            for word in words {
                browser.wait_for(word, &format!("{}.includes({})", row(name), json!(word)));
            }
        }
        answered("since when");
        browser.goto(&site.at("?cj=data/export-orders"));
        browser.wait_for(
            "the failed container",
            "/run of Pod export-orders-.*OOMKilled, exit code 137/.test(document.querySelector('.why')?.innerText)",
        );
        answered("why");
        browser.wait_for(
            "its log",
            "document.querySelector('.why .logs')?.innerText.includes('kubectl logs -n data export-orders-')",
        );
        browser.wait_for(
            "what ends it",
            "document.querySelector('.why .ends')?.innerText.includes(' trigger -n data export-orders')",
        );
        answered("what do I run");
        // What ran last night, what comes, and which minute is too full.
        browser.goto(&site.at("?view=night&zone=Europe/Berlin"));
        for (list, name) in [
            ("failed", "charge-cards"),
            ("missed", "settle"),
            ("late", "aggregate-clicks"),
            ("longest", "etl-sessions"),
        ] {
            browser.wait_for(list, &format!("document.querySelector('.list.{list}')?.innerText.includes('{name}')"));
        }
        answered("what ran last night");
        browser.wait_for(
            "the fullest minute",
            "/The fullest minutes: 04:00 with \\d+/.test(document.querySelector('.next-hour')?.innerText)",
        );
        answered("which minute is too full");
        browser.wait_for(
            "what is held",
            "document.querySelector('.next-hour').innerText.includes('it is paused until a run succeeds')",
        );
        answered("what runs in the next hour");
        // What a policy changes.
        browser.goto(&site.at("?cj=shop/nightly-report"));
        browser.wait_for(
            "its lanes",
            "document.querySelector('.lanes') && document.querySelector('.changes').innerText.includes('moved')",
        );
        answered("what does this policy change");
        browser.assert_quiet(&site.link);
    });
}

#[test]
fn keys_act_on_the_cron_job_that_was_chosen_wherever_the_focus_is() {
    with_fleet(|fleet| {
        let Fleet { site, browser, .. } = &fleet;
        browser.goto(&site.at("?state=overdue"));
        browser.wait_for(
            "three rows",
            &format!("{NAMES}.join() === 'invoices,payouts,import-catalog' && {ACTIVE} === 'invoices'"),
        );
        browser.press(&["j"]);
        browser.wait_for("the second", &format!("{ACTIVE} === 'payouts'"));
        fleet.delete("/apis/batch/v1/namespaces/payments/cronjobs/invoices");
        browser.wait_for("two rows", &format!("{NAMES}.join() === 'payouts,import-catalog' && {ACTIVE} === 'payouts'"));
        browser.press(&["Enter"]);
        browser.wait_for(
            "the one that was chosen",
            "document.querySelector('.detail h2')?.innerText === 'payments/payouts'",
        );
        browser.press(&["Escape"]);
        browser.wait_for("the row", &format!("!document.querySelector('.detail') && {ACTIVE} === 'payouts'"));
        // After a click on a tile the keys move in its rows, and Enter does not undo it.
        browser.click(".tile[data-state=failed]");
        browser.wait_for("the failing ones", &format!("{NAMES}.length === 3 && {ACTIVE} === 'charge-cards'"));
        browser.press(&["j", "Enter"]);
        browser
            .wait_for("the second of them", "document.querySelector('.detail h2')?.innerText === 'data/export-orders'");
        assert!(browser.url().contains("state=failed"), "{}", browser.url());
        // With a panel open, j moves in the table beside it.
        browser.press(&["j"]);
        browser.wait_for("the third", &format!("{ACTIVE} === 'refresh-prices'"));
        browser.press(&["Escape"]);
        // By Tab a button is reached, where Enter presses it.
        browser.eval("document.querySelector('.tile.total').focus()");
        browser.press(&["Enter"]);
        browser.wait_for("all", &format!("{NAMES}.length > 5 && !location.search.includes('state=')"));
        browser.press(&["k"]);
        browser.wait_for("the list", "document.activeElement.matches('.scroller')");
        // In a text field, letters are text.
        browser.press(&["/", "j"]);
        browser.wait_for("a search", "location.search.includes('q=j') && document.activeElement.type === 'search'");
        // One that vanishes leaves its place to the next one.
        browser.goto(&site.at("?sort=name&namespace=ops"));
        browser.wait_for("rows", &format!("{NAMES}[0] === 'backup-db' && {ACTIVE} === 'backup-db'"));
        fleet.delete("/apis/batch/v1/namespaces/ops/cronjobs/backup-db");
        browser.wait_for("the rest", &format!("{NAMES}[0] === 'check-dns' && {ACTIVE} === undefined"));
        browser.press(&["j"]);
        browser.wait_for("the next one", &format!("{ACTIVE} === 'check-dns'"));
    });
}

#[test]
fn zones_have_the_names_of_the_server_and_offsets_are_refused() {
    if !browser::exists() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let site = Site::ui(&["-f", &write(directory.path(), &[cron_job("nightly", &json!({}), &json!({}))])]);
    let browser = Browser::open();
    browser.goto(&site.link);
    browser.wait_for("the field", "document.querySelector('.zone-field input')");
    browser.goto(&site.at("?view=heat&zone=Asia/Tokyo"));
    browser.wait_for("the map", "document.querySelector('.heat')?.ariaLabel.includes('Asia/Tokyo')");
    let events = "for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, {bubbles: true}))";
    let set = |text: &str| {
        browser.eval(&format!("(() => {{ const field = document.querySelector('.zone-field input'); field.value = '{text}'; {events}; }})()"))
    };
    for (text, zone) in [("europe/berlin", "Europe/Berlin"), ("utc", "UTC"), (" America/new_york ", "America/New_York")]
    {
        set(text);
        browser.wait_for(text, &format!("document.querySelector('.heat')?.ariaLabel.endsWith(', {zone}') && new URLSearchParams(location.search).get('zone') === '{zone}'"));
        browser.wait_for(
            "its name",
            &format!(
                "document.querySelector('.zone-field input').value === '{zone}' && !document.querySelector('.error')"
            ),
        );
        browser.goto(&site.at(&format!("?view=heat&zone={}", text.trim())));
        browser.wait_for(
            "the link",
            &format!(
                "document.querySelector('.heat')?.ariaLabel.endsWith(', {zone}') && !document.querySelector('.error')"
            ),
        );
    }
    for text in ["+01:00", "-05:30", "01:00"] {
        set(text);
        browser.wait_for("the mark", "document.querySelector('.zone-field [aria-invalid=true]') && document.querySelector('.zone-field').innerText.includes('an offset is not a time zone')");
        assert!(browser.url().contains("zone=America%2FNew_York"), "{}", browser.url());
    }
    browser.goto(&site.at("?view=heat&zone=%2B01:00"));
    browser.wait_for_text("The link has zone=+01:00");
    browser.wait_for_text("a time zone has a name such as Europe/Berlin");
    browser.wait_for("the map all the same", "document.querySelector('.heat')");
    browser.assert_quiet(&site.link);
}

#[test]
fn slots_tell_their_reasons_to_the_keyboard_and_the_map_marks_now() {
    with_fleet(|fleet| {
        let Fleet { site, browser, .. } = &fleet;
        browser.goto(&site.at("?zone=Europe/Berlin&cj=shop/sync-stock"));
        browser.wait_for("the cells", "document.querySelectorAll('.cells button').length === 20");
        let stops = "document.querySelectorAll('.cells button[tabindex=\"0\"]').length";
        assert_eq!(browser.eval(stops), 1, "one stop for Tab");
        browser.eval("document.querySelector('.cells button[tabindex=\"0\"]').focus()");
        let told = "document.activeElement.getAttribute('aria-label')";
        browser.wait_for("the newest", &format!("{told}.includes('running')"));
        browser.press(&["ArrowLeft"]);
        browser.wait_for(
            "why it was skipped",
            &format!("/^Sat 2026-11-28 01:30:00 .01:00: .*concurrencyPolicy is Forbid/.test({told})"),
        );
        assert_eq!(browser.eval("document.querySelector('.slot-told').innerText"), browser.eval(told));
        assert_eq!(browser.eval(stops), 1);
        // A pointer shows the same, and takes no focus.
        browser.eval("document.querySelectorAll('.cells button')[19].dispatchEvent(new MouseEvent('mouseenter'))");
        browser.wait_for("the running one", "document.querySelector('.slot-told').innerText.includes('running')");
        browser.press(&["ArrowRight", "Enter"]);
        browser.wait_for("its Job", "document.querySelector('.detail tr.chosen')?.innerText.includes('sync-stock-')");
        browser.goto(&site.at("?zone=Europe/Berlin&q=sync-stock"));
        browser.wait_for("words for the strip", "/the newest, Sat 2026-11-28 02:30:00 .01:00: running/.test(document.querySelector('.strip-of')?.ariaLabel)");
        browser.goto(&site.at("?view=heat&zone=Europe/Berlin"));
        browser.wait_for("now", "document.querySelector('.heat .c.now')?.ariaLabel.startsWith('03:1') && document.querySelector('.heat .c.now').ariaLabel.includes(', now, ')");
        browser.wait_for_text("Saturday 28 November 2026, today:");
        browser.goto(&site.at("?view=heat&zone=Europe/Berlin&day=2026-11-29"));
        browser.wait_for_text("Sunday 29 November 2026:");
        assert_eq!(browser.eval("document.querySelectorAll('.c.now').length"), 0);
    });
}

/// Makes the pictures of docs/ui.md, and in target/pictures those of every view, for a look.
/// Each state in the table and each kind of slot in it, with what shows it beside its colour: a sign and a word, and a shape. A slot that
/// is due and one that waits have the same shape, in the same colour.
const WITHOUT_COLOUR: &str = "(() => {
  const states = [...document.querySelectorAll('.rows .row')].map((row) => [row.querySelector('.state .state').className, row.querySelector('.state .state').innerText.replace(/\\s+/g, ' ')]);
  const shape = (cell) => [...cell.children].filter((part) => part.tagName !== 'title' && !part.matches('.hit')).map((part) => {
    const style = getComputedStyle(part);
    const fill = style.fill === 'none' || style.fill === 'transparent' ? 'none' : style.fill.startsWith('url') ? 'hatch' : 'full';
    const low = part.tagName === 'rect' && Number(part.getAttribute('height')) <= 3;
    return [part.tagName, (part.getAttribute('d') ?? '').replace(/M[\\d.\\s-]+/g, 'M'), part.getAttribute('r') ?? '', fill, low].join();
  }).join(' ');
  const kind = (cell) => [...cell.classList].filter((one) => one !== 'cell-of' && one !== 'job').join().replace('due', 'waits');
  const cells = [...document.querySelectorAll('.rows .cell-of')].map((cell) => [kind(cell), shape(cell)]);
  const unique = (pairs) => [...new Map(pairs.map((pair) => [pair.join('|'), pair])).values()];
  return [unique(states), unique(cells)];
})()";

#[test]
fn states_and_slots_differ_without_their_colours() {
    with_fleet(|Fleet { site, browser, .. }| {
        browser.size(1400, 2600);
        browser.goto(&site.at("?zone=Europe/Berlin"));
        browser.wait_for("the strips", "document.querySelectorAll('.rows .cell-of').length > 200");
        let found = browser.eval(WITHOUT_COLOUR);
        let pairs = |at: usize| -> Vec<(String, String)> {
            let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            found[at].as_array().unwrap().iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
        };
        // A sign belongs to one urgency, and a word to one sign.
        let states = pairs(0);
        let sign = |text: &str| text.split(' ').next().unwrap().to_owned();
        for (urgency, text) in &states {
            for (other, of_other) in &states {
                assert_eq!(urgency == other, sign(text) == sign(of_other), "{text} and {of_other}: {states:?}");
            }
        }
        // A shape belongs to one kind of slot.
        let cells = pairs(1);
        for (kind, shape) in &cells {
            let others: Vec<_> = cells.iter().filter(|(other, of_other)| other != kind && of_other == shape).collect();
            assert!(!shape.is_empty() && others.is_empty(), "{kind}: {shape}, and {others:?}");
        }
        let kinds: std::collections::BTreeSet<&String> = cells.iter().map(|(kind, _)| kind).collect();
        assert!(states.len() >= 7 && kinds.len() >= 6, "{states:?} {kinds:?}");
        println!("{} states and {} kinds of slots differ without colour", states.len(), kinds.len());
    });
}

#[test]
#[ignore = "makes pictures, in a minute: make ui-pictures"]
fn pictures() {
    with_fleet(|mut fleet| {
        views(&fleet);
        // What is wrong with the cluster as a whole.
        let directory = repository().join("target/pictures");
        let save = |fleet: &Fleet, name: &str| std::fs::write(directory.join(name), fleet.browser.picture()).unwrap();
        fleet.browser.scheme("light");
        fleet.browser.size(1280, 720);
        fleet.browser.goto(&fleet.site.at("?zone=Europe/Berlin"));
        fleet.delete("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cronjob-controller");
        fleet.browser.wait_for_text("No controller has a Lease");
        save(&fleet, "no-lease.png");
        fleet.stop();
        fleet.browser.wait_for_text("Not live since");
        save(&fleet, "outage.png");
        fleet.browser.size(390, 844);
        save(&fleet, "outage-390.png");
    });
}

fn views(Fleet { site, browser, .. }: &Fleet) {
    let directory = repository().join("target/pictures");
    std::fs::create_dir_all(&directory).unwrap();
    let views = [
        ("table", "", ".rows .row", "ui"),
        ("overdue", "state=overdue", ".rows .row", ""),
        ("groups", "group=namespace", ".groups button", ""),
        ("heat", "view=heat&minute=2026-11-28T03:00:00.000Z", ".minute-list li", "ui-heat"),
        ("what-if", "view=heat&spread=30m", ".what-if", ""),
        ("timeline", "view=timeline&span=6h", ".marks .run", "ui-timeline"),
        ("night", "view=night", ".minutes li", "ui-night"),
        ("detail", "cj=data/export-orders", ".detail .code.ends", "ui-detail"),
        ("policy", "cj=shop/nightly-report", ".lanes", ""),
        ("none", "q=zzz", ".empty", ""),
        ("wrong", "zone=%2B01:00&state=odd", ".error", ""),
    ];
    for (scheme, width, height) in [("light", 1280, 720), ("dark", 1280, 720), ("light", 390, 844), ("dark", 390, 844)]
    {
        browser.scheme(scheme);
        browser.size(width, height);
        for (name, query, part, page) in views {
            let zone = if name == "wrong" { "" } else { "&zone=Europe/Berlin" };
            browser.goto(&site.at(&format!("?{query}{zone}")));
            browser.wait_for(part, &format!("document.querySelector('{part}')"));
            browser.wait_for("quiet", "!document.querySelector('[aria-busy=true], .row.waiting')");
            if name == "policy" {
                browser.eval("document.querySelector('.lanes').scrollIntoView()");
            }
            let picture = browser.picture();
            std::fs::write(directory.join(format!("{name}-{scheme}-{width}.png")), &picture).unwrap();
            if !page.is_empty() && width == 1280 && (scheme == "dark") == (page == "ui-detail") {
                std::fs::write(repository().join(format!("docs/{page}.png")), &picture).unwrap();
                println!("docs/{page}.png: {} bytes", picture.len());
                assert!(picture.len() <= 150_000, "{page}");
            }
        }
    }
}
