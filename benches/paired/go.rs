//! The Go half, as a child process that answers each line with another.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::json;

use super::Vector;

/// The child exits when this is dropped, because its standard input is closed.
pub struct Half {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Half {
    pub fn start() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/paired/bin/paired");
        let spawned = Command::new(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.unwrap_or_else(|err| panic!("{path}: {err}; `make bench-paired` builds and runs it"));
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, requests, answers }
    }

    /// Nanoseconds for the next instant of each vector, each measured for at least `nanos`.
    pub fn next<'v>(&mut self, vectors: impl Iterator<Item = &'v Vector>, nanos: u64) -> Vec<f64> {
        self.ask(&json!({ "next": vectors.collect::<Vec<_>>(), "nanos": nanos }))
    }

    /// Nanoseconds for a hundred times add, get and done; a queue with a name has metrics.
    pub fn queue(&mut self, times: usize, name: &str) -> f64 {
        self.ask(&json!({ "queue": times, "name": name }))[0]
    }

    fn ask(&mut self, request: &serde_json::Value) -> Vec<f64> {
        writeln!(self.requests.as_mut().unwrap(), "{request}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|err| panic!("the Go half said {line:?}: {err}"))
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        self.requests = None;
        let _ = self.child.wait();
    }
}
