//! One command of the program: how long it takes, and how much CPU time and memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::usage;

use crate::table::{Figure, Seen, Unit};

/// When a command or a write is given up.
pub const LIMIT: Duration = Duration::from_secs(30);

/// The program that is measured: `HOSTILE_BINARY`, else the one that cargo has built for this test.
pub fn binary() -> PathBuf {
    std::env::var_os("HOSTILE_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_cronjob-controller").into(), PathBuf::from)
}

/// What a command took.
pub struct Took {
    pub elapsed: Seen,
    pub cpu: Seen,
    /// Resident memory at its peak, in MB (10^6 bytes).
    pub peak: f64,
}

impl Took {
    /// The figures of a command: its elapsed time, at most `seconds`, and its memory, at most `megabytes`.
    pub fn figures(&self, what: &str, seconds: f64, megabytes: f64) -> Vec<Figure> {
        vec![
            Figure::seconds(what, self.elapsed).at_most(seconds),
            Figure::seconds(format!("{what}, CPU"), self.cpu),
            Figure::new(format!("{what}, memory"), Seen::Exactly(self.peak), Unit::Megabytes).at_most(megabytes),
        ]
    }
}

/// Runs the program until it ends, or kills it after [`LIMIT`]. Its findings do not count.
///
/// # Panics
/// When it cannot do its work, or another command runs at the same time: the CPU time is that of all children that ended.
pub fn run(args: &[&str], file: Option<&Path>) -> Took {
    let (before, started) = (cpu_of_children(), Instant::now());
    let mut child = Command::new(binary())
        .args(args)
        .args(file)
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak: f64 = 0.0;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if started.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        peak = usage::peak(child.id()).unwrap_or_default().max(peak);
        std::thread::sleep(Duration::from_millis(2));
    };
    let (elapsed, cpu) = (started.elapsed().as_secs_f64(), cpu_of_children() - before);
    let seen = |value| if status.is_some() { Seen::Exactly(value) } else { Seen::MoreThan(value) };
    if let Some(status) = status {
        assert!(matches!(status.code(), Some(0 | 1)), "{args:?} ended with {status}");
    }
    Took { elapsed: seen(elapsed), cpu: seen(cpu), peak }
}

/// The CPU time of this process's children that have ended, in seconds. Its steps are of ten milliseconds.
fn cpu_of_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u32 = [13, 14].map(|at: usize| fields[at].parse::<u32>().unwrap()).iter().sum();
    #[allow(clippy::cast_precision_loss, reason = "some hundred")]
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    f64::from(ticks) / per_second
}
