//! Resource usage of a process, from /proc, and a check that the tested binary is up to date.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// CPU time and memory of a process at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// User and system time since its start, in seconds.
    pub cpu: f64,
    /// Resident memory in MB (10^6 bytes).
    pub resident: f64,
}

/// Reads `/proc/<pid>`.
pub fn of(pid: u32) -> Result<Usage, String> {
    let read = |file: &str| {
        fs::read_to_string(format!("/proc/{pid}/{file}")).map_err(|why| format!("read /proc/{pid}/{file}: {why}"))
    };
    let stat = read("stat")?;
    // The second field, the command in parentheses, may contain blanks.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<f64>().ok());
    let (Some(user), Some(system)) = (ticks(11), ticks(12)) else {
        return Err(format!("/proc/{pid}/stat has no CPU times"));
    };
    let status = read("status")?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok())
        .ok_or_else(|| format!("/proc/{pid}/status has no VmRSS"))?;
    Ok(Usage { cpu: (user + system) / ticks_per_second(), resident: kib * 1024.0 / 1e6 })
}

/// The peak resident memory of a process since its start, in MB (10^6 bytes).
pub fn peak(pid: u32) -> Result<f64, String> {
    let file = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&file).map_err(|why| format!("read {file}: {why}"))?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    line.map(|kib| kib * 1024.0 / 1e6).ok_or_else(|| format!("{file} has no VmHWM"))
}

/// The CPU time since boot, in seconds of one core, that other virtual machines on the same host took from this one.
pub fn stolen() -> Result<f64, String> {
    let stat = fs::read_to_string("/proc/stat").map_err(|why| format!("read /proc/stat: {why}"))?;
    let ticks = stat.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse::<f64>().ok());
    ticks.map(|ticks| ticks / ticks_per_second()).ok_or_else(|| "/proc/stat says nothing of stolen time".to_owned())
}

#[allow(clippy::cast_precision_loss)]
fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

/// Fails if the binary is missing or older than one of its sources, as cargo's dep-info lists them.
pub fn check_fresh(binary: &Path) -> Result<(), String> {
    let modified = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified());
    let remedy = "run `cargo build --profile bench`, or `make bench-burst`, which does";
    let built = modified(binary).map_err(|why| format!("{}: {why}: {remedy}", binary.display()))?;
    let dep_info = binary.with_extension("d");
    let text = fs::read_to_string(&dep_info).map_err(|why| format!("{}: {why}: {remedy}", dep_info.display()))?;
    let sources = text.split_once(':').map_or("", |(_, sources)| sources).split_whitespace().map(Path::new);
    let newer = |path: &&Path| modified(path).unwrap_or(SystemTime::UNIX_EPOCH) > built;
    match sources.into_iter().find(newer) {
        Some(source) => Err(format!("{} is older than {}: {remedy}", binary.display(), source.display())),
        None => Ok(()),
    }
}
