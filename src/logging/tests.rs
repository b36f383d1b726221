#![allow(clippy::unwrap_used)]

use std::io;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tracing::Dispatch;
use tracing::level_filters::LevelFilter;

use super::*;
use crate::terminal::tests::{HOSTILE, harmful};

/// Keeps the written bytes.
#[derive(Clone, Default)]
pub struct Page(Arc<Mutex<Vec<u8>>>);

impl Page {
    /// The lines so far.
    pub fn lines(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Page {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// A second subscriber, for the whole process. With only one, tracing caches a callsite as disabled if another test's
/// thread, without a subscriber, reaches it first.
static SECOND: LazyLock<Dispatch> =
    LazyLock::new(|| Dispatch::new(tracing_subscriber::registry().with(LevelFilter::OFF)));

/// Writes JSON to `page`, with the filter for `verbosity`.
pub fn subscriber(verbosity: u8, page: &Page) -> impl Subscriber + Send + Sync + 'static {
    LazyLock::force(&SECOND);
    let layer =
        tracing_subscriber::fmt::layer().with_writer(page.clone()).fmt_fields(JsonFields::new()).event_format(KlogJson);
    tracing_subscriber::registry().with(EnvFilter::new(directives_for(verbosity))).with(layer)
}

/// The lines that `work` logs as JSON with the filter for `verbosity`.
fn lines(verbosity: u8, work: impl FnOnce()) -> Vec<Value> {
    let page = Page::default();
    tracing::subscriber::with_default(subscriber(verbosity, &page), work);
    page.lines()
}

#[test]
fn a_line_has_the_keys_of_kubernetes_json_logs() {
    let lines = lines(4, || {
        let _span = tracing::info_span!("sync", cronjob = "ns/a", attempt = 1).entered();
        let error = io::Error::other("no \"route\"\nto host");
        tracing::error!(error = &error as &dyn std::error::Error, attempt = 2, "Failed\tto sync");
        tracing::debug!(jobs = 3_u64, late = true, skew = 0.5, "Synced");
    });
    let [failed, synced] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(failed["msg"], "Failed\tto sync");
    assert_eq!(failed["err"], "no \"route\"\nto host");
    assert_eq!(failed["level"], "error");
    assert_eq!(failed.get("v"), None, "an error has no verbosity");
    assert_eq!(failed["cronjob"], "ns/a", "a span's fields are the line's");
    assert_eq!(failed["attempt"], 2, "an event's own field wins over its span's");
    assert!(failed["caller"].as_str().unwrap().starts_with("logging/tests.rs:"), "{failed}");
    assert!(failed["ts"].as_f64().unwrap() > 1.6e12, "milliseconds since 1970");
    assert_eq!(synced["v"], 2);
    assert_eq!((&synced["jobs"], &synced["late"], &synced["skew"]), (&3.into(), &true.into(), &0.5.into()));
    assert_eq!(synced["attempt"], 1);
}

#[test]
fn each_verbosity_shows_the_lines_of_the_lower_ones_too() {
    let say_everything = || {
        tracing::warn!("warn");
        tracing::info!("info");
        tracing::debug!("debug");
        tracing::debug!(target: "cronjob_controller::workqueue::delaying", "queue");
        tracing::trace!("trace");
        tracing::error!(target: "kube_client::client::builder", "kube error");
        tracing::warn!(target: "kube_client::client", "kube body");
        tracing::info!(target: "hyper_util", "hyper info");
        tracing::trace!(target: "hyper_util", "hyper trace");
    };
    let rows: [(&str, &[u8], &[&str]); 4] = [
        ("an operator sees what matters", &[0, 1], &["warn", "info"]),
        ("then the decisions", &[2, 3], &["warn", "info", "debug"]),
        ("then the machinery", &[4, 5], &["warn", "info", "debug", "queue", "hyper info"]),
        (
            "then everything",
            &[6, 10],
            &["warn", "info", "debug", "queue", "trace", "kube error", "kube body", "hyper info", "hyper trace"],
        ),
    ];
    for (sentence, verbosities, want) in rows {
        for verbosity in verbosities {
            let got = lines(*verbosity, say_everything);
            let shown = |line: &Value| line["v"].as_u64().is_none_or(|v| v <= u64::from(*verbosity));
            assert!(got.iter().all(shown), "{sentence}, -v={verbosity}: {got:?}");
            let got: Vec<&str> = got.iter().map(|line| line["msg"].as_str().unwrap()).collect();
            assert_eq!(got, want, "{sentence}, -v={verbosity}");
        }
    }
}

#[test]
fn event_is_one_plain_line_whatever_its_fields_contain() {
    let colour = regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    for (name, words) in HOSTILE {
        let log = || {
            let span = tracing::info_span!("sync", %words, late = tracing::field::Empty);
            span.record("late", words);
            let _span = span.entered();
            let (error, cause) = (io::Error::other(words), String::from_utf8(vec![0xff]));
            tracing::error!(error = &error as &dyn std::error::Error, ?cause, words, "{words}");
        };
        LazyLock::force(&SECOND);
        let json = Page::default();
        tracing::subscriber::with_default(subscriber(4, &json), log);
        assert_eq!(json.lines()[0]["msg"], words, "{name}");
        for ansi in [false, true] {
            let text = Page::default();
            let layer = tracing_subscriber::fmt::layer().with_writer(text.clone());
            let layer = layer.fmt_fields(PlainFields).compact().with_ansi(ansi);
            tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
            for page in [&json, &text] {
                let line = String::from_utf8(page.0.lock().clone()).unwrap();
                // The program's own colours. No hostile words have one.
                let line = colour.replace_all(&line, "");
                assert_eq!((harmful(&line), line.lines().count()), (vec![], 1), "{name}: {line}");
            }
        }
    }
}

#[test]
fn a_caller_is_the_last_directory_file_and_line() {
    assert_eq!(caller(Some("src/controller/sync.rs"), Some(7)), "controller/sync.rs:7");
    assert_eq!(caller(Some("main.rs"), Some(7)), "main.rs:7");
    assert_eq!(caller(None, None), "unknown:0");
}
