//! Process metrics with the names that Go programs use, read from /proc at scrape time.
//!
//! Guarantees: names, types and help texts are those of client_golang's process collector
//! (`prometheus/process_collector.go`). Nothing is read between scrapes. A number that cannot be read is left out of that
//! scrape; the others are not affected. Systems without /proc have no such metrics.

use std::collections::HashMap;
use std::fs;

use prometheus::Registry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use super::MetricsError;
use super::family::{count, counter, gauge};

/// Collects the `process_*` families.
#[derive(Debug)]
pub struct ProcessCollector {
    ticks_per_second: f64,
    page_size: f64,
    /// Seconds since the epoch. Read once: a stepped wall clock changes `btime`, but the process did not restart.
    start_time: Option<f64>,
    descs: Descs,
}

#[derive(Debug)]
struct Descs {
    cpu: Desc,
    resident: Desc,
    virtual_now: Desc,
    virtual_max: Desc,
    open_fds: Desc,
    max_fds: Desc,
    start_time: Desc,
    received: Desc,
    transmitted: Desc,
}

impl ProcessCollector {
    /// Makes the collector and registers it with `registry`. Does nothing on a system without /proc.
    ///
    /// # Errors
    /// When one of the names is taken in `registry`.
    pub fn register(registry: &Registry) -> Result<(), MetricsError> {
        if !cfg!(target_os = "linux") {
            return Ok(());
        }
        let (ticks_per_second, page_size) = units();
        let start_time = read("/proc/self/stat").as_deref().and_then(parse_stat).and_then(|stat| {
            let boot = parse_boot_time(&read("/proc/stat")?)?;
            Some(boot + stat.start_ticks / ticks_per_second)
        });
        let collector = Self { ticks_per_second, page_size, start_time, descs: Descs::new()? };
        registry.register(Box::new(collector)).map_err(|source| MetricsError::new("process_*", source))
    }
}

impl Descs {
    fn new() -> Result<Self, MetricsError> {
        let desc = |name: &str, help: &str| {
            Desc::new(name.to_owned(), help.to_owned(), Vec::new(), HashMap::new())
                .map_err(|source| MetricsError::new(name, source))
        };
        Ok(Self {
            cpu: desc("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.")?,
            resident: desc("process_resident_memory_bytes", "Resident memory size in bytes.")?,
            virtual_now: desc("process_virtual_memory_bytes", "Virtual memory size in bytes.")?,
            virtual_max: desc(
                "process_virtual_memory_max_bytes",
                "Maximum amount of virtual memory available in bytes.",
            )?,
            open_fds: desc("process_open_fds", "Number of open file descriptors.")?,
            max_fds: desc("process_max_fds", "Maximum number of open file descriptors.")?,
            start_time: desc("process_start_time_seconds", "Start time of the process since unix epoch in seconds.")?,
            received: desc(
                "process_network_receive_bytes_total",
                "Number of bytes received by the process over the network.",
            )?,
            transmitted: desc(
                "process_network_transmit_bytes_total",
                "Number of bytes sent by the process over the network.",
            )?,
        })
    }
}

impl Collector for ProcessCollector {
    fn desc(&self) -> Vec<&Desc> {
        let Descs { cpu, resident, virtual_now, virtual_max, open_fds, max_fds, start_time, received, transmitted } =
            &self.descs;
        vec![cpu, resident, virtual_now, virtual_max, open_fds, max_fds, start_time, received, transmitted]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = Vec::with_capacity(9);
        let descs = &self.descs;
        if let Some(stat) = read("/proc/self/stat").as_deref().and_then(parse_stat) {
            families.push(counter(&descs.cpu, stat.cpu_ticks / self.ticks_per_second));
            families.push(gauge(&descs.virtual_now, stat.virtual_bytes));
            families.push(gauge(&descs.resident, stat.resident_pages * self.page_size));
        }
        families.extend(self.start_time.map(|seconds| gauge(&descs.start_time, seconds)));
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            families.push(gauge(&descs.open_fds, count(open.count() as u64)));
        }
        if let Some(limits) = read("/proc/self/limits") {
            families.extend(parse_limit(&limits, "Max open files").map(|limit| gauge(&descs.max_fds, limit)));
            families.extend(parse_limit(&limits, "Max address space").map(|limit| gauge(&descs.virtual_max, limit)));
        }
        if let Some(netstat) = read("/proc/self/net/netstat") {
            families.push(counter(&descs.received, parse_ip_ext(&netstat, "InOctets").unwrap_or(0.0)));
            families.push(counter(&descs.transmitted, parse_ip_ext(&netstat, "OutOctets").unwrap_or(0.0)));
        }
        families
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Clock ticks per second and bytes per page.
#[cfg(unix)]
fn units() -> (f64, f64) {
    (count(rustix::param::clock_ticks_per_second()), count(rustix::param::page_size() as u64))
}

/// Never called: there is no /proc.
#[cfg(not(unix))]
fn units() -> (f64, f64) {
    (1.0, 1.0)
}

/// The used fields of /proc/PID/stat.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_ticks: f64,
    start_ticks: f64,
    virtual_bytes: f64,
    resident_pages: f64,
}

/// Reads /proc/PID/stat. The command in parentheses may contain spaces and parentheses, so fields are counted from the last
/// closing one (proc(5): the state is field 3).
fn parse_stat(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    Some(Stat {
        cpu_ticks: field(14)? + field(15)?,
        start_ticks: field(22)?,
        virtual_bytes: field(23)?,
        resident_pages: field(24)?,
    })
}

/// The boot time in /proc/stat, in seconds since the epoch.
fn parse_boot_time(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
}

/// The soft limit in the line of /proc/PID/limits that starts with `name`; `unlimited` is the greatest u64, as in
/// Go's procfs.
fn parse_limit(text: &str, name: &str) -> Option<f64> {
    let soft = text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?;
    if soft == "unlimited" { Some(count(u64::MAX)) } else { soft.parse().ok() }
}

/// The column `name` of the IpExt pair of lines (names, then values) in /proc/PID/net/netstat.
fn parse_ip_ext(text: &str, name: &str) -> Option<f64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("IpExt:"));
    let column = lines.next()?.split_whitespace().position(|column| column == name)?;
    lines.next()?.split_whitespace().nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests;
