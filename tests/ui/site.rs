//! Processes that serve the page, and what they show.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

use crate::browser::PATIENCE;

use serde_json::{Value, json};

/// A process that has printed its link.
pub struct Site {
    child: Child,
    /// The first link, with its token.
    pub link: String,
    /// The links that followed it.
    links: Receiver<String>,
}

impl Site {
    /// `ui` with these arguments.
    pub fn ui(args: &[&str]) -> Self {
        Self::ui_in(args, &[])
    }

    /// `ui` with these arguments and variables.
    pub fn ui_in(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"));
        command.arg("ui").args(args).envs(variables.iter().copied());
        Self::start(command, "")
    }

    /// `dev` with these arguments.
    pub fn dev(directory: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronjob-controller"));
        command.arg("dev").args(args).env("XDG_RUNTIME_DIR", directory);
        Self::start(command, "In a browser: ")
    }

    fn start(mut command: Command, before: &'static str) -> Self {
        command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut found = lines.filter_map(move |line| Some(line.ok()?.strip_prefix(before)?.to_owned()));
        let link = found.next().expect("a link");
        assert!(link.starts_with("http://127.0.0.1:") && link.contains("/#token="), "{link}");
        let (sender, receiver) = mpsc::channel();
        // A full pipe would stop the process.
        std::thread::spawn(move || {
            found.filter(|line| line.contains("/#token=")).for_each(|link| drop(sender.send(link)));
        });
        Self { child, link, links: receiver }
    }

    /// Waits for the next link.
    pub fn next_link(&self) -> String {
        self.links.recv_timeout(PATIENCE).expect("another link")
    }

    /// Asserts that no further link was printed.
    pub fn assert_no_link(&self) {
        assert!(self.links.try_recv().is_err(), "another link was printed");
    }

    /// The address of its server.
    pub fn address(&self) -> &str {
        self.link.strip_prefix("http://").unwrap().split('/').next().unwrap()
    }

    /// The process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, and waits until it has.
    pub fn end(mut self) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }

    /// The link without its token, with this query.
    pub fn at(&self, query: &str) -> String {
        format!("{}{query}", self.link.split("#token=").next().unwrap())
    }

    /// The most memory that the process has used, in MiB; 0 where the system does not tell.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.map_or(0, |text| text.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024)
    }

    /// Sends a request without a body; returns the status, the head and the body of the answer.
    pub fn send(&self, line: &str, headers: &[(&str, &str)]) -> (u16, String, String) {
        let address = self.address();
        let host = if headers.iter().any(|(name, _)| *name == "host") { vec![] } else { vec![("host", address)] };
        let headers =
            host.iter().chain(headers).fold(String::new(), |text, (name, value)| format!("{text}{name}: {value}\r\n"));
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{line} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: 0\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
    }

    /// Exchanges a link's token; returns the status, and the session if there is one.
    pub fn exchange(&self, link: &str) -> (u16, Option<String>) {
        let token = link.split_once("#token=").unwrap().1;
        let (status, head, body) = self.send("POST /session", &[("authorization", &format!("Bearer {token}"))]);
        assert!(!head.contains("set-cookie"), "{head}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        (status, answer["session"].as_str().map(ToOwned::to_owned))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A CronJob as an object.
pub fn cron_job(name: &str, spec: &Value, annotations: &Value) -> Value {
    let template = json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example/job:1"}],
    }}}});
    let mut object = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"schedule": "0 2 * * *", "timeZone": "Etc/UTC", "jobTemplate": template},
    });
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

/// Writes manifests into a file of a directory; JSON is YAML, too.
pub fn write(directory: &Path, objects: &[Value]) -> String {
    let file = directory.join("all.yaml");
    let text = objects.iter().fold(String::new(), |text, object| format!("{text}---\n{object}\n"));
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}
