//! The terminal output of `dev`: one owner of stdout, so that lines and the live view do not mix.
//!
//! Guarantees: writing never blocks the controllers. The first failure to write is kept, except that of a closed pipe. Lines
//! appear in the order in which they were written. The live view is redrawn at most once a second, in place, and lines scroll by
//! above it. The cursor stays visible at the start of the line below, so the terminal needs no restoring on exit.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::fmt::MakeWriter;

/// How many bytes of lines may wait for the next redraw; further lines are dropped.
const MAX_WAITING: usize = 256 * 1024;

/// The destination of lines and the live view. Clones share it.
#[derive(Clone)]
pub struct Output(Arc<Mutex<State>>);

struct State {
    out: Box<dyn Write + Send>,
    /// Whether there is a live view; lines then wait for its next redraw.
    live: bool,
    /// The number of lines in the view.
    drawn: usize,
    waiting: String,
    /// Why the first failed write failed, until it is taken.
    failure: Option<io::Error>,
    /// Cancelled by the first failed write.
    failed: CancellationToken,
}

impl Output {
    /// An output to `out`; `live` if that is a terminal with a live view.
    pub fn new(out: impl Write + Send + 'static, live: bool) -> Self {
        let (waiting, failed) = (String::new(), CancellationToken::new());
        let state = State { out: Box::new(out), live, drawn: 0, waiting, failure: None, failed };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Writes a line.
    pub fn say(&self, line: &str) {
        self.0.lock().say(line);
    }

    /// Waits until a write has failed.
    pub async fn failed(&self) {
        let failed = self.0.lock().failed.clone();
        failed.cancelled().await;
    }

    /// Why the first failed write failed; `None` after the first call.
    pub fn take_failure(&self) -> Option<io::Error> {
        self.0.lock().failure.take()
    }

    /// Redraws the view below the lines written since.
    pub fn draw(&self, lines: &[String]) {
        let mut state = self.0.lock();
        let mut text = String::new();
        // Writing to a String cannot fail. The synchronized update keeps a slow terminal from showing half a frame.
        text.push_str("\x1b[?2026h");
        if state.drawn > 0 {
            let _ = write!(text, "\x1b[{}A", state.drawn);
        }
        for line in state.waiting.lines().chain(lines.iter().map(String::as_str)) {
            let _ = writeln!(text, "\r{line}\x1b[K");
        }
        text.push_str("\x1b[J\x1b[?2026l");
        state.waiting.clear();
        state.drawn = lines.len();
        state.write(&text);
    }

    /// Leaves the view as it is; further lines are written below it.
    pub fn end_view(&self) {
        let mut state = self.0.lock();
        let waiting = std::mem::take(&mut state.waiting);
        state.live = false;
        state.write(&waiting);
    }
}

impl State {
    fn say(&mut self, line: &str) {
        if !self.live {
            self.write(&format!("{line}\n"));
        } else if self.waiting.len() + line.len() < MAX_WAITING {
            self.waiting.push_str(line);
            self.waiting.push('\n');
        }
    }

    fn write(&mut self, text: &str) {
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        // A closed pipe is no failure: its reader has seen enough.
        let failure = written.err().filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
        if let Some(error) = failure
            && !self.failed.is_cancelled()
        {
            self.failure = Some(error);
            self.failed.cancel();
        }
    }
}

/// Log lines scroll by above the live view.
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
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The screen of a terminal after these bytes.
    fn terminal(bytes: &[u8]) -> Vec<String> {
        let text = std::str::from_utf8(bytes).unwrap().replace("\x1b[?2026h", "").replace("\x1b[?2026l", "");
        let (mut lines, mut row) = (vec![String::new()], 0);
        let mut rest = text.as_str();
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '\n' => {
                    row += 1;
                    if row == lines.len() {
                        lines.push(String::new());
                    }
                }
                '\r' => lines[row].clear(),
                '\x1b' => {
                    let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                    match &rest[..=end] {
                        "[K" => {}
                        "[J" => {
                            lines.truncate(row + 1);
                            lines[row].clear();
                        }
                        up => row -= up[1..up.len() - 1].parse::<usize>().unwrap(),
                    }
                    rest = &rest[end + 1..];
                }
                c => lines[row].push(c),
            }
        }
        lines
    }

    #[test]
    fn view_stays_in_place_and_lines_scroll_above_it() {
        let page = Page::default();
        let output = Output::new(page.clone(), true);
        let draw = |lines: &[&str]| output.draw(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        draw(&["head", "a 1", "b 1"]);
        output.say("first");
        output.make_writer().write_all(b"second\nthird\n").unwrap();
        assert_eq!(terminal(&page.0.lock()), ["head", "a 1", "b 1", ""], "lines wait for the next redraw");
        draw(&["head", "a 2"]);
        assert_eq!(terminal(&page.0.lock()), ["first", "second", "third", "head", "a 2", ""]);
        output.say("last");
        output.end_view();
        output.say("bye");
        assert_eq!(terminal(&page.0.lock()), ["first", "second", "third", "head", "a 2", "last", "bye", ""]);
    }

    #[test]
    fn without_a_view_lines_are_written_at_once() {
        let page = Page::default();
        let output = Output::new(page.clone(), false);
        output.say("one");
        assert_eq!(page.0.lock().as_slice(), b"one\n");
    }
}
