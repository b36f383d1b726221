//! A terminal without a screen.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Longer than any wait should take, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A tmux server of its own with one window. Dropping it ends all in it.
pub struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    /// A terminal of this size in which a shell runs the command, and then waits.
    pub fn run(directory: &Path, command: &str, (width, height): (u16, u16)) -> Self {
        let configuration = directory.join("tmux.conf");
        std::fs::write(&configuration, "set -g status off\nset -g default-terminal tmux-256color\n").unwrap();
        let tmux = Self { socket: directory.join("tmux.socket") };
        let (width, height) = (width.to_string(), height.to_string());
        // `cat` keeps the terminal until the test has looked at it.
        let script = format!("{command}; cat");
        let output = Command::new("tmux")
            .arg("-u")
            .arg("-S")
            .arg(&tmux.socket)
            .arg("-f")
            .arg(&configuration)
            .args(["new-session", "-d", "-x", &width, "-y", &height, "sh", "-c", &script])
            .env("TZ", "Europe/Berlin")
            .env_remove("NO_COLOR")
            .env_remove("TMUX")
            .env("RUST_LOG", "error")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        tmux
    }

    fn tmux(&self, args: &[&str]) -> Output {
        Command::new("tmux").arg("-S").arg(&self.socket).args(args).output().unwrap()
    }

    /// The lines of the screen.
    pub fn screen(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p"]).stdout).unwrap()
    }

    /// The lines of the screen, with the sequences that colour them.
    pub fn coloured(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p", "-e"]).stdout).unwrap()
    }

    /// Waits until the screen is as wanted.
    pub fn wait_for(&self, what: &str, is_there: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while !is_there(&self.screen()) {
            assert!(start.elapsed() < PATIENCE, "waited for {what}: {}", self.screen());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses keys.
    pub fn keys(&self, keys: &[&str]) {
        assert!(self.tmux(&[&["send-keys"], keys].concat()).status.success());
    }

    /// Changes the size of the terminal.
    pub fn resize(&self, (width, height): (u16, u16)) {
        let (width, height) = (width.to_string(), height.to_string());
        assert!(self.tmux(&["resize-window", "-x", &width, "-y", &height]).status.success());
    }

    /// The process that the shell runs.
    pub fn child(&self) -> String {
        let shell = String::from_utf8(self.tmux(&["display-message", "-p", "#{pane_pid}"]).stdout).unwrap();
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        std::fs::read_to_string(children).unwrap().trim().to_owned()
    }

    /// Sends a signal to the process that the shell runs.
    pub fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child()]).status().unwrap().success());
    }

    /// Closes the terminal.
    pub fn close(&self) {
        self.tmux(&["kill-server"]);
    }

    /// Whether the cursor is visible.
    pub fn has_cursor(&self) -> bool {
        self.tmux(&["display-message", "-p", "#{cursor_flag}"]).stdout.starts_with(b"1")
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.close();
    }
}
