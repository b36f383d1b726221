//! Who gets to the page: links, sessions, tabs, other ports, a forwarded port, and `--open`.

use std::fs;
use std::io::{Read as _, Write as _, copy};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use serde_json::{Value, json};
use testkit::driver::eventually;

use crate::browser::{self, Browser, PATIENCE};
use crate::site::{Site, cron_job, write};

/// `ui` with one CronJob, and the directory of its manifest.
fn site(args: &[&str]) -> (Site, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), &[cron_job("nightly", &json!({}), &json!({}))]);
    (Site::ui(&[&["-f", &*file], args].concat()), directory)
}

#[test]
fn answers_are_closed_to_strangers_and_foreign_hosts() {
    let (site, _directory) = site(&[]);
    for (path, want) in
        [("/", 200), ("/assets/app.js", 200), ("/api/summary", 401), ("/api/events", 401), ("/session", 404)]
    {
        let (status, head, body) = site.send(&format!("GET {path}"), &[]);
        assert!(status == want && !body.contains("nightly") && !head.contains("set-cookie"), "{path}: {head}");
    }
    let (status, session) = site.exchange(&site.link);
    let session = session.expect("a session");
    assert_eq!(status, 200);
    assert!(!site.link.contains(&session));
    assert_eq!(site.exchange(&site.link), (401, None), "a token is exchanged once");
    let authorization = format!("Bearer {session}");
    let (status, head, body) = site.send("GET /api/summary", &[("authorization", &authorization)]);
    assert!(status == 200 && head.contains("content-security-policy: default-src 'self'"), "{head}");
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["cronJobs"], 1);
    let cookie = format!("session={session}");
    for (headers, want) in [
        (&[("cookie", &*cookie)][..], 401),
        (&[("authorization", &authorization), ("host", "evil.example")], 403),
        (&[("authorization", &authorization), ("origin", "http://evil.example")], 403),
        (&[("authorization", &authorization), ("origin", "http://127.0.0.1:1")], 403),
    ] {
        assert_eq!(site.send("GET /api/summary", headers).0, want, "{headers:?}");
    }
}

#[test]
fn stranger_without_a_token_causes_one_link_and_the_owner_can_use_it() {
    let (site, _directory) = site(&[]);
    for _ in 0..3 {
        assert_eq!(site.send("POST /session", &[]).0, 401);
    }
    assert_eq!(site.exchange(&site.link).0, 200, "the link is still open");
    site.assert_no_link();
    for _ in 0..3 {
        assert_eq!(site.send("POST /session", &[]).0, 401);
    }
    assert_eq!(site.exchange(&site.next_link()).0, 200);
    site.assert_no_link();
}

#[test]
fn page_of_dev_needs_a_session_and_prints_its_new_links_too() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), &[cron_job("nightly", &json!({}), &json!({}))]);
    let site = Site::dev(directory.path(), &["-f", &file]);
    assert_eq!(site.send("GET /api/summary", &[]).0, 401);
    assert_eq!(site.exchange(&site.link).0, 200);
    assert_eq!(site.exchange(&site.link).0, 401);
    let (status, session) = site.exchange(&site.next_link());
    assert_eq!(status, 200);
    let authorization = format!("Bearer {}", session.expect("a session"));
    assert_eq!(site.send("GET /api/summary", &[("authorization", &authorization)]).0, 200);
}

/// A directory with an `xdg-open` that writes its arguments into a FIFO, and the FIFO.
fn desktop(directory: &Path) -> (String, PathBuf) {
    let (bin, record) = (directory.join("bin"), directory.join("record"));
    fs::create_dir(&bin).unwrap();
    for program in ["xdg-open", "open"] {
        let script = format!("#!/bin/sh\nprintf '%s\\n' \"$0\" \"$@\" >'{}'\n", record.display());
        fs::write(bin.join(program), script).unwrap();
        fs::set_permissions(bin.join(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert!(Command::new("mkfifo").arg(&record).status().unwrap().success());
    (format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()), record)
}

/// `ui --open` in a directory, and the file that it has opened.
fn opened(directory: &Path) -> (Site, PathBuf) {
    let (path, record) = desktop(directory);
    let runtime = directory.join("runtime");
    fs::create_dir(&runtime).unwrap();
    let file = write(directory, &[cron_job("nightly", &json!({}), &json!({}))]);
    let variables = [("PATH", &*path), ("XDG_RUNTIME_DIR", runtime.to_str().unwrap())];
    let site = Site::ui_in(&["-f", &file, "--open"], &variables);
    let (sender, words) = mpsc::channel();
    std::thread::spawn(move || sender.send(fs::read_to_string(record).unwrap()));
    let words = words.recv_timeout(PATIENCE).expect("xdg-open was started");
    let token = site.link.split_once("#token=").unwrap().1;
    assert!(!words.contains(token), "the token is in the arguments: {words}");
    let words: Vec<&str> = words.lines().collect();
    let [_, html] = *words else { panic!("{words:?}") };
    assert!(html.starts_with(runtime.to_str().unwrap()), "{html}");
    (site, html.into())
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn open_shows_the_token_to_the_user_alone_and_removes_its_file_after_use() {
    let directory = tempfile::tempdir().unwrap();
    let (site, file) = opened(directory.path());
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    assert!(fs::read_to_string(&file).unwrap().contains(&site.link));
    let arguments = fs::read_to_string(format!("/proc/{}/cmdline", site.process())).unwrap_or_default();
    assert!(!arguments.contains("token"), "{arguments}");
    assert_eq!(site.exchange(&site.link).0, 200);
    let gone = async || (!file.parent().unwrap().exists()).then_some(());
    eventually("the file is removed", PATIENCE, gone).await;
    site.end();
}

#[test]
fn file_of_open_is_removed_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let (site, file) = opened(directory.path());
    assert!(file.exists());
    site.end();
    assert_eq!(fs::read_dir(directory.path().join("runtime")).unwrap().count(), 0);
}

#[test]
fn file_of_open_leads_a_browser_to_the_page() {
    if !browser::exists() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (site, file) = opened(directory.path());
    let browser = Browser::open();
    browser.goto(&format!("file://{}", file.display()));
    browser.wait_for_text("1 CronJob");
    assert!(browser.url().starts_with(&site.at("?zone=")), "{}", browser.url());
}

const SESSION: &str = "sessionStorage.getItem('session')";

#[test]
fn session_lasts_over_a_reload_and_a_new_link_opens_another() {
    if !browser::exists() {
        return;
    }
    let (site, _directory) = site(&[]);
    let browser = Browser::open();
    browser.goto(&site.link);
    browser.wait_for_text("nightly");
    let url = browser.url();
    assert!(
        url.starts_with(&site.at("?zone=")) && !url.contains("token"),
        "the token does not stay in the address: {url}"
    );
    let (first, session) = (browser.tab(), browser.eval(SESSION));
    assert_eq!(session.as_str().unwrap().len(), 64);
    assert_eq!(browser.eval("[document.cookie, localStorage.length]"), json!(["", 0]));
    browser.reload();
    browser.wait_for_text("nightly");
    // A tab that was opened from the page has its session.
    browser.new_tab();
    browser.goto(&site.at("?cj=default/nightly"));
    browser.wait_for_text("jobTemplate:");
    assert_eq!(browser.eval(SESSION), session);
    browser.assert_quiet(&site.link);
    site.assert_no_link();
    // Another browser has none. It causes a link, which works in the tab that asked for it.
    let other = Browser::open();
    other.goto(&site.at("?view=timeline"));
    other.wait_for_text("No session");
    other.wait_for_text("printed last");
    assert!(!other.text().contains("nightly"));
    let second = site.next_link();
    other.goto(&second);
    other.wait_for_text("nightly");
    assert!(other.url().starts_with(&site.at("?zone=")), "{}", other.url());
    assert_ne!(other.eval(SESSION), session);
    other.goto(&site.at("?view=timeline"));
    other.wait_for("the timeline", "document.querySelector('.marks')");
    // A used link is of no use elsewhere, and a new one opens a second tab beside the first.
    let third = Browser::open();
    third.goto(&second);
    third.wait_for_text("No session");
    let next = site.next_link();
    browser.goto(&next);
    browser.wait_for_text("nightly");
    assert_ne!(browser.eval(SESSION), session);
    browser.switch(&first);
    browser.reload();
    browser.wait_for_text("nightly");
    assert_eq!(browser.eval(SESSION), session);
    site.assert_no_link();
}

#[test]
fn page_of_a_server_that_was_started_anew_has_no_session_until_its_link_is_opened() {
    if !browser::exists() {
        return;
    }
    let (before, _directory) = site(&[]);
    let browser = Browser::open();
    browser.goto(&before.link);
    browser.wait_for_text("nightly");
    let port = before.address().split_once(':').unwrap().1.to_owned();
    before.end();
    browser.wait_for_text("does not answer any more");
    let (after, _directory) = site(&["--port", &port]);
    browser.wait_for_text("No session");
    assert_eq!(browser.eval(SESSION), Value::Null);
    after.assert_no_link();
    browser.goto(&after.link);
    browser.wait_for_text("nightly");
}

#[test]
fn other_port_of_this_machine_gets_neither_session_nor_answers() {
    if !browser::exists() {
        return;
    }
    let (site, _directory) = site(&[]);
    let browser = Browser::open();
    browser.goto(&site.link);
    browser.wait_for_text("nightly");
    let session = browser.eval(SESSION).as_str().unwrap().to_owned();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in other.incoming() {
            let (mut stream, mut head) = (stream.unwrap(), [0; 8192]);
            let length = stream.read(&mut head).unwrap();
            let _ = sender.send(String::from_utf8_lossy(&head[..length]).to_ascii_lowercase());
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<!doctype html><p>another page",
            );
        }
    });
    // In a tab beside that of the page, which would give its session to a tab of its own, and then in the page's own tab.
    let leave = |how: &str| {
        browser.goto(&format!("http://{address}/"));
        browser.wait_for_text("another page");
        assert_eq!(browser.eval("[document.cookie, sessionStorage.length]"), json!(["", 0]), "{how}");
    };
    browser.new_tab();
    leave("another tab");
    let heard = browser.run(
        "const tabs = new BroadcastChannel('session'); tabs.onmessage = ({ data }) => done(data.session ?? null); \
         tabs.postMessage({ asks: true }); setTimeout(() => done('nothing'), 700);",
    );
    assert_eq!(heard, "nothing");
    let asked = browser.run(&format!(
        "fetch('http://{}/api/summary', {{ credentials: 'include' }}).then(() => done('an answer'), () => done('none'));",
        site.address()
    ));
    assert_eq!(asked, "none");
    browser.close_tab();
    browser.switch(&browser.tabs()[0]);
    leave("the page's tab");
    let requests: Vec<String> = requests.try_iter().collect();
    assert!(requests.len() >= 2);
    for request in requests {
        let is_told = ["cookie:", "authorization:", "token", &session].iter().any(|word| request.contains(word));
        assert!(!is_told, "{request}");
    }
}

/// A port that leads to a server's, as that of `ssh -L` does.
struct Forwarded {
    port: u16,
    is_up: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    accepted: Arc<AtomicUsize>,
}

impl Forwarded {
    fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let forwarded = Self {
            port: listener.local_addr().unwrap().port(),
            is_up: Arc::new(AtomicBool::new(true)),
            streams: Arc::default(),
            accepted: Arc::default(),
        };
        let (address, is_up) = (address.to_owned(), Arc::clone(&forwarded.is_up));
        let (streams, accepted) = (Arc::clone(&forwarded.streams), Arc::clone(&forwarded.accepted));
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.unwrap();
                if !is_up.load(Ordering::SeqCst) {
                    continue;
                }
                accepted.fetch_add(1, Ordering::SeqCst);
                let far = TcpStream::connect(&address).unwrap();
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    streams.lock().unwrap().push(from.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
            }
        });
        forwarded
    }

    /// Ends all connections, and each new one if the port is to be down.
    fn cut(&self, is_up: bool) {
        self.is_up.store(is_up, Ordering::SeqCst);
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn page_over_a_forwarded_port_is_live_and_connects_again() {
    if !browser::exists() {
        return;
    }
    let (site, _directory) = site(&[]);
    let forwarded = Forwarded::to(site.address());
    let port = site.address().split_once(':').unwrap().1;
    let link = site.link.replace(&format!(":{port}/"), &format!(":{}/", forwarded.port));
    let browser = Browser::open();
    browser.goto(&link);
    browser.wait_for_text("nightly");
    let live = "document.querySelector('.live.on')";
    browser.wait_for("events", live);
    browser.reload();
    browser.wait_for("events after a reload", live);
    assert!(browser.url().starts_with(&format!("http://127.0.0.1:{}/", forwarded.port)));
    // A connection that ends is opened again, without a word.
    browser.eval("window.alerts = 0, new MutationObserver(() => { window.alerts += !!document.querySelector('[role=alert]'); }).observe(document.body, { childList: true, subtree: true })");
    let before = forwarded.accepted.load(Ordering::SeqCst);
    forwarded.cut(true);
    let again = async || (forwarded.accepted.load(Ordering::SeqCst) > before).then_some(());
    eventually("another connection", PATIENCE, again).await;
    assert_eq!(browser.eval(&format!("[window.alerts, !!{live}]")), json!([0, true]));
    forwarded.cut(false);
    browser.wait_for_text("does not answer any more");
    forwarded.cut(true);
    browser.wait_for("events again", &format!("{live} && !document.querySelector('[role=alert]')"));
    site.assert_no_link();
}
