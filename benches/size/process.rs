//! A process's resources according to the kernel.

use std::fs;

/// Current and peak resident memory, in MB of a million bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    pub resident: f64,
    pub peak: f64,
}

/// `VmRSS` and `VmHWM`.
pub fn memory(pid: u32) -> Memory {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        kib.unwrap_or_default() * 1024.0 / 1e6
    };
    Memory { resident: field("VmRSS:"), peak: field("VmHWM:") }
}

/// CPU time of all live threads, in seconds; finer than the clock ticks of `/proc/PID/stat`.
pub fn cpu(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let nanos = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanos.sum::<f64>() / 1e9
}
