//! A headless Chromium, through chromedriver and the WebDriver protocol alone.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::tools;

/// Longer than any wait should take, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Whether both programs exist.
pub fn exists() -> bool {
    tools::has_program("ui", "chromium") && tools::has_program("ui", "chromedriver")
}

/// A browser with one window. Dropping it ends its processes.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    profile: TempDir,
}

impl Browser {
    /// A window of 1280 × 720.
    pub fn open() -> Self {
        let mut driver = Command::new("chromedriver")
            .args(["--port=0", "--allowed-ips=127.0.0.1"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok()
        });
        let profile = tempfile::tempdir().unwrap();
        let mut browser = Self { driver, port: port.unwrap(), session: String::new(), profile };
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            // Coloured edges of letters make pictures large.
            "--disable-lcd-text",
            "--disable-extensions",
            "--disable-component-update",
            "--disable-background-networking",
            "--no-first-run",
            "--window-size=1280,720",
            &format!("--user-data-dir={}", browser.profile.path().display()),
        ];
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "timeouts": {"script": PATIENCE.as_millis(), "pageLoad": PATIENCE.as_millis()},
        }}});
        let session = browser.send("POST", "", &capabilities);
        browser.session = format!("/{}", session["sessionId"].as_str().unwrap());
        browser.size(1280, 720);
        browser
    }

    /// Sends a command of the session; returns its value.
    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(2 * PATIENCE)).unwrap();
        let body = if method == "GET" { String::new() } else { body.to_string() };
        write!(
            stream,
            "{method} /session{}{path} HTTP/1.1\r\nhost: localhost:{}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.session,
            self.port,
            body.len()
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            length = line.strip_prefix("content-length:").map_or(length, |text| text.trim().parse().unwrap());
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let value = &answer["value"];
        assert!(value["error"].is_null(), "{method} {path}: {} {}", value["error"], value["message"]);
        value.clone()
    }

    pub fn goto(&self, url: &str) {
        self.send("POST", "/url", &json!({ "url": url }));
    }

    /// Opens another tab, without a page, and goes on in it; the first one stays open.
    pub fn new_tab(&self) -> String {
        let tab = self.send("POST", "/window/new", &json!({"type": "tab"}))["handle"].as_str().unwrap().to_owned();
        self.switch(&tab);
        tab
    }

    /// The tab that is shown.
    pub fn tab(&self) -> String {
        self.send("GET", "/window", &Value::Null).as_str().unwrap().to_owned()
    }

    /// All tabs.
    pub fn tabs(&self) -> Vec<String> {
        serde_json::from_value(self.send("GET", "/window/handles", &Value::Null)).unwrap()
    }

    pub fn switch(&self, tab: &str) {
        self.send("POST", "/window", &json!({ "handle": tab }));
    }

    /// Closes the tab that is shown.
    pub fn close_tab(&self) {
        self.send("DELETE", "/window", &json!({}));
    }

    pub fn reload(&self) {
        self.send("POST", "/refresh", &json!({}));
    }

    pub fn url(&self) -> String {
        self.send("GET", "/url", &Value::Null).as_str().unwrap().to_owned()
    }

    /// The value of an expression.
    pub fn eval(&self, expression: &str) -> Value {
        let script = format!("return ({expression});");
        self.send("POST", "/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Runs a script that gives its result to `done`.
    pub fn run(&self, script: &str) -> Value {
        let script = format!("const done = arguments[arguments.length - 1]; {script}");
        self.send("POST", "/execute/async", &json!({"script": script, "args": []}))
    }

    /// The text of the page.
    pub fn text(&self) -> String {
        self.eval("document.body.innerText").as_str().unwrap().to_owned()
    }

    /// Waits until an expression is true; the browser looks each time that it draws.
    pub fn wait_for(&self, what: &str, expression: &str) {
        let limit = PATIENCE.as_millis() * 3 / 4;
        let found = self.run(&format!(
            "const start = Date.now(); const look = () => {{ let found = false; try {{ found = !!({expression}); }} catch {{}} \
             if (found) done(true); else if (Date.now() - start > {limit}) done(false); else setTimeout(look, 30); }}; look();"
        ));
        assert_eq!(found, true, "waited for {what} at {}: {}", self.url(), self.text());
    }

    /// Waits until the page has this text.
    pub fn wait_for_text(&self, text: &str) {
        self.wait_for(text, &format!("document.body.innerText.includes({})", json!(text)));
    }

    /// Clicks the first element that a CSS selector finds.
    pub fn click(&self, selector: &str) {
        self.wait_for(selector, &format!("document.querySelector({})", json!(selector)));
        let element = self.send("POST", "/element", &json!({"using": "css selector", "value": selector}));
        let id = element.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned();
        self.send("POST", &format!("/element/{id}/click"), &json!({}));
    }

    /// Presses keys one after the other; names are those of the `key` property.
    pub fn press(&self, keys: &[&str]) {
        let code = |key: &str| match key {
            "Escape" => "\u{e00c}".to_owned(),
            "Enter" => "\u{e007}".to_owned(),
            "ArrowDown" => "\u{e015}".to_owned(),
            "ArrowRight" => "\u{e014}".to_owned(),
            "ArrowLeft" => "\u{e012}".to_owned(),
            "Tab" => "\u{e004}".to_owned(),
            other => other.to_owned(),
        };
        let steps: Vec<Value> = keys
            .iter()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": code(key)})))
            .collect();
        self.send("POST", "/actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": steps}]}));
    }

    /// A command of the browser's own protocol.
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.send("POST", "/goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    /// The size of the window's inside; a phone's is narrower than a window can be.
    pub fn size(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
    }

    pub fn scheme(&self, scheme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", &features);
    }

    /// The window as a small PNG.
    pub fn picture(&self) -> Vec<u8> {
        let picture = self.send("GET", "/screenshot", &Value::Null);
        let small = self.run(&format!("const picture = {picture}; {}", include_str!("palette.js")));
        base64::engine::general_purpose::STANDARD.decode(small.as_str().unwrap()).unwrap()
    }

    /// What the console and the network have logged since the last call: errors, and the addresses of all requests.
    pub fn logs(&self) -> (Vec<String>, Vec<String>) {
        let entries = |kind: &str| {
            let log = self.send("POST", "/se/log", &json!({ "type": kind }));
            log.as_array()
                .unwrap()
                .iter()
                .map(|entry| (entry["level"].clone(), entry["message"].clone()))
                .collect::<Vec<_>>()
        };
        let is_bad = |level: &Value| level == "SEVERE" || level == "WARNING";
        let console = entries("browser").into_iter().filter(|(level, _)| is_bad(level));
        let console = console.map(|(_, message)| message.as_str().unwrap().to_owned()).collect();
        let requests = entries("performance").into_iter().filter_map(|(_, message)| {
            let event: Value = serde_json::from_str(message.as_str()?).ok()?;
            let event = &event["message"];
            let is_request = event["method"] == "Network.requestWillBeSent";
            is_request.then(|| event["params"]["request"]["url"].as_str().unwrap_or_default().to_owned())
        });
        (console, requests.collect())
    }

    /// Asserts that the page has logged no error and has asked no other host.
    pub fn assert_quiet(&self, link: &str) {
        let (console, requests) = self.logs();
        assert!(console.is_empty(), "{console:#?}");
        let origin = link.split("/#").next().unwrap();
        let known = ["data:", "about:", "chrome:", "blob:"];
        let is_foreign = |url: &&String| {
            url.strip_prefix(origin).is_none_or(|rest| !rest.starts_with('/'))
                && !known.iter().any(|scheme| url.starts_with(scheme))
        };
        let foreign: Vec<_> = requests.iter().filter(is_foreign).collect();
        assert!(foreign.is_empty(), "{foreign:?}");
        assert!(!requests.is_empty());
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            // A browser outlives its driver, also after a failed test.
            let _ = catch_unwind(AssertUnwindSafe(|| self.send("DELETE", "", &json!({}))));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
