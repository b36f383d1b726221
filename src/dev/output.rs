//! The lines that `dev` prints: one owner of stdout, so that lines and the live view do not mix.
//!
//! Guarantees: writing never blocks the controllers. The first failure to write is kept, except that of a closed pipe. Lines
//! are plain text and appear in the order in which they were written. While the live view has the terminal, lines wait: the view shows the
//! newest, and the last thousand are written when it ends.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::fmt::MakeWriter;

use crate::terminal::plain;

/// How many lines wait for the end of the live view; older ones are dropped.
const MAX_WAITING: usize = 1000;

/// The destination of lines. Clones share it.
#[derive(Clone)]
pub struct Output(Arc<Mutex<State>>);

struct State {
    out: Box<dyn Write + Send>,
    /// Whether the live view has the terminal.
    live: bool,
    waiting: VecDeque<String>,
    /// Why the first failed write failed, until it is taken.
    failure: Option<io::Error>,
    /// Cancelled by the first failed write.
    failed: CancellationToken,
}

impl Output {
    /// An output to `out`.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        let (waiting, failed) = (VecDeque::new(), CancellationToken::new());
        let state = State { out: Box::new(out), live: false, waiting, failure: None, failed };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Writes a line.
    pub fn say(&self, line: &str) {
        self.0.lock().say(line);
    }

    /// Writes each new value of `lines`, after `before`, until `cancel`. The present one counts as new only if it was not seen.
    pub async fn say_changes(&self, before: &str, mut lines: watch::Receiver<String>, cancel: &CancellationToken) {
        while let Some(Ok(())) = cancel.run_until_cancelled(lines.changed()).await {
            let line = format!("{before}{}", *lines.borrow_and_update());
            self.say(&line);
        }
    }

    /// Waits until a write has failed.
    pub async fn failed(&self) {
        let failed = self.0.lock().failed.clone();
        failed.cancelled().await;
    }

    /// Records that the live view could not be written.
    pub fn fail(&self, error: io::Error) {
        self.0.lock().fail(error);
    }

    /// Why the first failed write failed; `None` after the first call.
    pub fn take_failure(&self) -> Option<io::Error> {
        self.0.lock().failure.take()
    }

    /// Keeps lines from now on, because the live view has the terminal.
    pub fn begin_view(&self) {
        self.0.lock().live = true;
    }

    /// The newest lines that wait, at most so many, the newest last.
    pub fn newest(&self, number: usize) -> Vec<String> {
        let state = self.0.lock();
        state.waiting.iter().skip(state.waiting.len().saturating_sub(number)).cloned().collect()
    }

    /// Writes the lines that wait, and further ones at once.
    pub fn end_view(&self) {
        let mut state = self.0.lock();
        state.live = false;
        let waiting = std::mem::take(&mut state.waiting);
        state.write(&waiting.into_iter().map(|line| line + "\n").collect::<String>());
    }
}

impl State {
    fn say(&mut self, line: &str) {
        let line = plain(line);
        if !self.live {
            self.write(&format!("{line}\n"));
            return;
        }
        if self.waiting.len() == MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(line);
    }

    fn write(&mut self, text: &str) {
        if let Err(error) = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: io::Error) {
        // A closed pipe is no failure: its reader has seen enough.
        if error.kind() != io::ErrorKind::BrokenPipe && !self.failed.is_cancelled() {
            self.failure = Some(error);
            self.failed.cancel();
        }
    }
}

/// Log lines go where all lines go.
impl<'a> MakeWriter<'a> for Output {
    type Writer = LogLine<'a>;

    fn make_writer(&'a self) -> LogLine<'a> {
        LogLine(self)
    }
}

/// One log line; tracing writes it in one piece.
pub struct LogLine<'a>(&'a Output);

impl Write for LogLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        for line in text.lines() {
            self.0.say(line);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
