//! The terminal of the live view: raw mode, the second screen, and the keyboard.
//!
//! Guarantee: the terminal is as it was before when the value is dropped and before a panic is reported. So that holds at every
//! end of the process but SIGKILL, since signals end the view as other causes do.

use std::convert::Infallible;
use std::io::{self, IsTerminal as _, stdout};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::{DefaultTerminal, Frame};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::output::Output;

/// How long the thread of the keyboard waits before it looks whether the view has ended.
const POLL: Duration = Duration::from_millis(50);

/// Whether stdout can show a live view: a terminal that can move the cursor and belongs to this process, which the shell
/// has not put into the background.
#[allow(clippy::disallowed_methods, reason = "nothing is written")]
pub fn can_show() -> bool {
    let is_foreground = rustix::termios::tcgetpgrp(stdout()).is_ok_and(|group| group == rustix::process::getpgrp());
    stdout().is_terminal() && is_foreground && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The terminal while the live view has it.
pub(super) struct LiveTerminal {
    /// Never dropped: that would print an error, which panics when the terminal is gone. [`restore`] shows the cursor.
    terminal: ManuallyDrop<DefaultTerminal>,
    /// Whether to use colours: not if the user set `NO_COLOR`.
    pub colour: bool,
    events: UnboundedReceiver<Event>,
    /// Disconnected once the keyboard is not read any more.
    keyboard: Receiver<Infallible>,
    ends: Arc<AtomicBool>,
    output: Output,
}

impl LiveTerminal {
    /// Takes the terminal; lines of `output` wait until it is given back.
    ///
    /// # Errors
    /// When the terminal cannot be configured; it is then as before.
    pub fn open(output: &Output) -> io::Result<Self> {
        let terminal = ManuallyDrop::new(ratatui::try_init().inspect_err(|_| restore())?);
        output.begin_view();
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let (sender, events) = unbounded_channel();
        let ends = Arc::new(AtomicBool::new(false));
        let (reads, keyboard) = channel();
        let view = Self { terminal, colour, events, keyboard, ends: Arc::clone(&ends), output: output.clone() };
        std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
            read_events(&sender, &ends);
            drop::<Sender<Infallible>>(reads);
        })?;
        Ok(view)
    }

    /// The next key or change of size; `None` if the keyboard cannot be read any more.
    pub async fn next_event(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Draws a frame, as large as the terminal is now.
    ///
    /// # Errors
    /// When the terminal cannot be written to.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }
}

impl Drop for LiveTerminal {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // What is typed from now on is the shell's. A terminal that was closed can hold its reader for ever.
        let _ = self.keyboard.recv_timeout(4 * POLL);
        restore();
        self.output.end_view();
    }
}

/// Gives the terminal back. Failures have no remedy: the terminal may be gone.
#[allow(clippy::disallowed_methods, reason = "it shows the cursor")]
fn restore() {
    let _ = ratatui::try_restore();
    let _ = execute!(stdout(), Show);
}

/// Sends what happens on the terminal until the view ends or the terminal cannot be read.
fn read_events(events: &UnboundedSender<Event>, ends: &AtomicBool) {
    while !ends.load(Ordering::Relaxed) {
        let sent = match event::poll(POLL) {
            Ok(true) => event::read().is_ok_and(|event| events.send(event).is_ok()),
            Ok(false) => true,
            Err(_) => false,
        };
        if !sent {
            return;
        }
    }
}
