//! The cost of a controller by the number of CronJobs: memory, start-up, idling, and firing.
//!
//! `make bench-size` (or `cargo bench --bench size -- 10000` for one size) starts a fake API server in one process and
//! this controller's binary in another. With `--policies` each CronJob has three, and with `--frozen` every second Namespace is
//! frozen. It prints a table in Markdown, and writes the same data to `target/size/size.csv`. `SIZE_CONTROLLER` names another binary to measure. `cargo test` runs a small size, quickly.
#![allow(missing_docs)]

mod objects;
mod process;
mod server;

use std::error::Error;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use objects::World;
use serde_json::Value;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// CronJobs that are due at the measured slot, at every size: the cost of one fire must not depend on the others.
const FIRING: usize = 100;
const JOBS_EACH: usize = 3;
const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];
const HEADER: &str = "cronjobs,jobs,synced_s,cpu_to_idle_s,rss_mb,peak_mb,rss_after_mb,idle_cpu_ms_per_s,fires,skew_p50_ms,skew_p99_ms,cpu_ms_per_fire,settled_ms";

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [serve, cron_jobs, jobs_each, due, policies, frozen] = args.as_slice()
        && serve == "serve"
    {
        let cron_jobs = cron_jobs.parse()?;
        let (firing, jobs_each, due) = (FIRING.min(cron_jobs), jobs_each.parse()?, due.parse()?);
        let (policies, frozen) = (policies.parse()?, frozen.parse()?);
        let world = World { cron_jobs, firing, jobs_each, due, policies, frozen };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        return Ok(runtime.block_on(server::run(world))?);
    }
    if !args.iter().any(|arg| arg == "--bench") {
        let plan = Plan { idle: Duration::from_millis(200), fire: false, policies: true, frozen: true };
        let row = measure(20, &plan)?;
        assert!(row.synced > 0.0 && row.memory.resident > 0.0, "{row:?}");
        return Ok(());
    }
    let asked: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    let [policies, frozen] = ["--policies", "--frozen"].map(|option| args.iter().any(|arg| arg == option));
    let sizes = if asked.is_empty() { &SIZES[..] } else { &asked };
    let mut rows = Vec::new();
    for &size in sizes {
        rows.push(measure(size, &Plan { idle: Duration::from_secs(20), fire: true, policies, frozen })?);
        save(&rows)?;
    }
    print_table(&rows);
    Ok(())
}

struct Plan {
    /// How long to observe an idle controller.
    idle: Duration,
    /// Whether to wait for the slot.
    fire: bool,
    /// Whether the CronJobs have policies.
    policies: bool,
    /// Whether every second Namespace is frozen.
    frozen: bool,
}

#[derive(Debug, Default)]
struct Row {
    cron_jobs: usize,
    jobs: usize,
    /// Seconds from the start of the process to full caches.
    synced: f64,
    /// CPU seconds until the controller was idle.
    cpu_to_idle: f64,
    memory: process::Memory,
    /// Resident memory after the slot, in MB.
    after: f64,
    /// CPU while idle, in thousandths of a core.
    idle_cpu: f64,
    fires: usize,
    p50: f64,
    p99: f64,
    cpu_per_fire: f64,
    /// Milliseconds from the slot to the last status write.
    settled: f64,
}

fn measure(cron_jobs: usize, plan: &Plan) -> Result<Row> {
    let started = Utc::now();
    // Time to start, to become idle and to be observed before the slot.
    let spare = TimeDelta::seconds(45) + TimeDelta::milliseconds(i64::try_from(cron_jobs)?);
    let due = (started + spare).duration_trunc(TimeDelta::minutes(1))? + TimeDelta::minutes(1);
    let (server, port) = start_server(cron_jobs, due, plan)?;
    let (controller, synced) = start_controller(port)?;
    let pid = controller.0.id();
    let mut row = Row { cron_jobs, jobs: cron_jobs * JOBS_EACH, synced, ..Row::default() };
    row.cpu_to_idle = wait_until_idle(pid);
    let before = process::cpu(pid);
    sleep(plan.idle);
    row.idle_cpu = (process::cpu(pid) - before) * 1e3 / plan.idle.as_secs_f64();
    row.memory = process::memory(pid);
    if plan.fire {
        fire(&mut row, pid, port, due)?;
    }
    drop((controller, server));
    Ok(row)
}

fn fire(row: &mut Row, pid: u32, port: u16, due: DateTime<Utc>) -> Result<()> {
    let wait = due - TimeDelta::seconds(1) - Utc::now();
    sleep(wait.to_std().map_err(|_| "the controller was not ready before the slot")?);
    let before = process::cpu(pid);
    let wanted = FIRING.min(row.cron_jobs) as u64;
    let patience = Instant::now() + Duration::from_secs(30);
    let stats = loop {
        sleep(Duration::from_millis(500));
        let stats = stats(port)?;
        if stats["statuses"] == wanted && stats["events"].as_u64() >= Some(wanted) || Instant::now() > patience {
            break stats;
        }
    };
    sleep(Duration::from_secs(2));
    let mut skews: Vec<f64> = stats["skews_us"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    skews.sort_unstable_by(f64::total_cmp);
    let quantile =
        |q: usize| skews.get((skews.len() * q).div_ceil(100).saturating_sub(1)).copied().unwrap_or(f64::NAN) / 1e3;
    row.fires = skews.len();
    (row.p50, row.p99) = (quantile(50), quantile(99));
    row.cpu_per_fire = (process::cpu(pid) - before) * 1e3 / f64::from(u32::try_from(skews.len())?);
    row.settled = stats["last_status_us"].as_f64().unwrap_or(f64::NAN) / 1e3;
    row.after = process::memory(pid).resident;
    Ok(())
}

/// A process that ends when this value is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_server(cron_jobs: usize, due: DateTime<Utc>, plan: &Plan) -> Result<(Killed, u16)> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["serve", &cron_jobs.to_string(), &JOBS_EACH.to_string(), &due.to_rfc3339()]);
    command.args([plan.policies, plan.frozen].map(|variant| variant.to_string()));
    let mut server = Killed(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?);
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
    Ok((server, line.trim().parse()?))
}

/// The controller, and the seconds until its caches were filled.
fn start_controller(port: u16) -> Result<(Killed, f64)> {
    let binary =
        env::var_os("SIZE_CONTROLLER").map_or_else(|| env!("CARGO_BIN_EXE_cronjob-controller").into(), PathBuf::from);
    let started = Instant::now();
    let master = format!("--master=http://127.0.0.1:{port}");
    let mut command = Command::new(binary);
    command.args([&master, "--leader-elect=false", "--secure-port=0"]).env("TZ", "UTC");
    let mut controller = Killed(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?);
    let log = BufReader::new(controller.0.stderr.take().ok_or("no stderr")?);
    let (synced, heard) = mpsc::channel();
    thread::spawn(move || {
        for line in log.lines().map_while(std::io::Result::ok) {
            if line.contains("caches are synced") {
                let _ = synced.send(started.elapsed());
            } else if line.contains("ERROR") || line.contains("WARN") {
                eprintln!("{line}");
            }
        }
    });
    let synced = heard.recv_timeout(Duration::from_secs(120)).map_err(|_| "the caches did not fill")?;
    Ok((controller, synced.as_secs_f64()))
}

/// Waits until the process is almost idle; returns the CPU seconds it has used.
fn wait_until_idle(pid: u32) -> f64 {
    let mut last = process::cpu(pid);
    let mut calm = 0;
    while calm < 3 {
        sleep(Duration::from_millis(200));
        let now = process::cpu(pid);
        calm = if now - last < 0.002 { calm + 1 } else { 0 };
        last = now;
    }
    last
}

fn stats(port: u16) -> Result<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"GET /stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(serde_json::from_str(text.split_once("\r\n\r\n").ok_or("no body")?.1)?)
}

fn save(rows: &[Row]) -> Result<()> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/size");
    fs::create_dir_all(&directory)?;
    let path = directory.join("size.csv");
    // Sizes may be measured separately; the newest row of a size counts.
    let old = fs::read_to_string(&path).unwrap_or_default();
    let size = |line: &str| line.split(',').next().and_then(|size| size.parse::<usize>().ok());
    let kept = old.lines().filter(|line| size(line).is_some_and(|size| rows.iter().all(|row| row.cron_jobs != size)));
    let mut lines: Vec<String> = kept.map(str::to_owned).collect();
    lines.extend(rows.iter().map(|r| {
        format!(
            "{},{},{:.3},{:.3},{:.1},{:.1},{:.1},{:.2},{},{:.2},{:.2},{:.3},{:.1}",
            r.cron_jobs,
            r.jobs,
            r.synced,
            r.cpu_to_idle,
            r.memory.resident,
            r.memory.peak,
            r.after,
            r.idle_cpu,
            r.fires,
            r.p50,
            r.p99,
            r.cpu_per_fire,
            r.settled
        )
    }));
    lines.sort_by_key(|line| size(line));
    Ok(fs::write(path, format!("{HEADER}\n{}\n", lines.join("\n")))?)
}

fn print_table(rows: &[Row]) {
    println!(
        "| CronJobs | Jobs | start to synced | CPU to idle | resident | peak | idle CPU | skew p50 | p99 | CPU per fire |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for r in rows {
        println!(
            "| {} | {} | {:.2} s | {:.2} s | {:.0} MB | {:.0} MB | {:.2} ‰ | {:.1} ms | {:.1} ms | {:.2} ms |",
            r.cron_jobs,
            r.jobs,
            r.synced,
            r.cpu_to_idle,
            r.memory.resident,
            r.memory.peak,
            r.idle_cpu,
            r.p50,
            r.p99,
            r.cpu_per_fire
        );
    }
}
