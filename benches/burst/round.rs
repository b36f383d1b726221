//! One round of one contender: load, wait for the due instant, watch, verify, clear.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Timelike, Utc};
use testkit::driver::{job_name, sleep_until};
use testkit::fixture::controller::{Controller, Running};
use testkit::fixture::process::Process;
use testkit::usage::{self, Usage};

use crate::cases::{Case, Contender, Due};
use crate::floor;
use crate::load::{self, Slot};
use crate::options::At;
use crate::report::Sample;
use crate::stage::Stage;
use crate::tap::{Key, Seen, Taps};

/// Runs the case once and cleans up.
pub async fn run(stage: &Stage, case: &Case, at: At, round: usize) -> Result<Sample, String> {
    let admin = stage.plane.admin();
    let namespaces = stage.new_namespaces(case.namespaces);
    load::create_namespaces(&admin, &namespaces).await?;
    let sample = match &case.contender {
        Contender::Floor { in_flight } => floor_round(stage, case, at, &namespaces, *in_flight).await,
        Contender::Process { .. } | Contender::Polling { .. } => controller_round(stage, case, at, &namespaces).await,
    };
    load::clear(&admin, &namespaces).await?;
    sample.map(|sample| Sample { round, ..sample })
}

async fn floor_round(
    stage: &Stage,
    case: &Case,
    at: At,
    namespaces: &[String],
    in_flight: usize,
) -> Result<Sample, String> {
    let admin = stage.plane.admin();
    let began = choose_due(case, at);
    // Due in a day: only names and times are used.
    let slot = Utc::now().trunc_subsecs(0) + TimeDelta::hours(24);
    let slots = load::slots(case, namespaces, slot);
    let together = Case { timing: Due::Together, ..case.clone() };
    load::create(&admin, &slots, At::Minute, &together).await?;
    let client = floor::client(&stage.ours, &[]).await?;
    let writes = floor::writes(&client, namespaces, &slots, slot).await?;
    let taps = Taps::open(&admin).await?;
    floor::warm(&client, in_flight).await?;
    sleep_until(began, TimeDelta::milliseconds(-500)).await;
    let (served, stolen) = (stage.server_cpu()?, usage::stolen()?);
    sleep_until(began, TimeDelta::zero()).await;
    for part in writes.by_offset(&slots) {
        sleep_until(began, part.offset).await;
        floor::burst(&client, part.jobs, in_flight).await?;
        floor::settle(&client, &part.statuses, in_flight).await?;
    }
    taps.quiet(began + limit(case)).await;
    let (served, stolen) = (stage.server_cpu()? - served, usage::stolen()? - stolen);
    let jobs = taps.jobs.seen()?;
    let mut skews = Vec::with_capacity(slots.len());
    for one in &slots {
        let key = (one.namespace.clone(), job_name(&one.name, slot));
        let added = jobs.get(&key).and_then(|seen| seen.added).ok_or_else(|| format!("Job {} was not seen", key.1))?;
        skews.push(seconds(added - began - one.offset));
    }
    let fires: Vec<Slot> = slots.into_iter().map(|slot| Slot { due: Some(began + slot.offset), ..slot }).collect();
    let (settled, written) = latest(&fires, &taps.cron_jobs.seen()?);
    if written < fires.len() {
        return Err(format!("of {} statuses, {written} were seen", fires.len()));
    }
    Ok(Sample { settled: Some(settled), served, stolen, ..Sample::new(case, skews) })
}

async fn controller_round(stage: &Stage, case: &Case, at: At, namespaces: &[String]) -> Result<Sample, String> {
    let admin = stage.plane.admin();
    let due = choose_due(case, at);
    let slots = load::slots(case, namespaces, due);
    load::create(&admin, &slots, at, case).await?;
    let contestant = Contestant::start(stage, case).await?;
    let spare = due - TimeDelta::milliseconds(1_500) - Utc::now();
    if spare < TimeDelta::zero() {
        return Err(format!("loading took {:.1} s longer than was planned; the machine is busy", -seconds(spare)));
    }
    sleep_until(due, TimeDelta::milliseconds(-1_500)).await;
    let taps = Taps::open(&admin).await?;
    sleep_until(due, TimeDelta::milliseconds(-500)).await;
    let (before, served, stolen) = (usage::of(contestant.id())?, stage.server_cpu()?, usage::stolen()?);
    let queued = queued(&admin).await?;
    sleep_until(due, TimeDelta::zero()).await;

    let fires: Vec<Slot> = slots.into_iter().filter(|slot| slot.due.is_some()).collect();
    let last_due = fires.iter().filter_map(|slot| slot.due).max().unwrap_or(due);
    let (after, served_after) = watch(stage, &taps, &contestant, namespaces, &fires, last_due + limit(case)).await?;
    let stolen = usage::stolen()? - stolen;
    let queued = self::queued(&admin).await? - queued;
    println!("burst: {}: {queued:.0} requests waited 5 ms or longer in the API server's queues", case.name);
    contestant.stop().await;

    let sample = Sample::new(case, skews(&taps, &fires)?);
    let (settled, _) = latest(&fires, &taps.cron_jobs.seen()?);
    let (events, events_written) = latest(&fires, &events_by_cron_job(&taps)?);
    Ok(Sample {
        settled: Some(settled),
        events: Some(events),
        events_written,
        cpu: Some(after.cpu - before.cpu),
        resident: Some(after.resident),
        served: served_after - served,
        stolen,
        ..sample
    })
}

/// The first due instant: late enough that the load exists and the controller has synced.
fn choose_due(case: &Case, at: At) -> DateTime<Utc> {
    let lead = 12 + i64::try_from((case.due + case.idle) / 400).unwrap_or(i64::MAX);
    let earliest = Utc::now().trunc_subsecs(0) + TimeDelta::seconds(1 + lead);
    if at == At::Second || case.timing == Due::Alone {
        return earliest;
    }
    earliest + TimeDelta::seconds((60 - i64::from(earliest.second())) % 60)
}

/// Waits until all work for the CronJobs is done, or until no more Events arrive; returns the resources that the
/// contender and the servers had used by then.
async fn watch(
    stage: &Stage,
    taps: &Taps,
    contestant: &Contestant,
    namespaces: &[String],
    fires: &[Slot],
    deadline: DateTime<Utc>,
) -> Result<(Usage, f64), String> {
    let wanted = fires.len();
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        contestant.check_running()?;
        let is_late = Utc::now() > deadline || taps.blind();
        let has_lines = taps.jobs.lines() >= wanted && taps.cron_jobs.lines() >= wanted;
        if !is_late && (!has_lines || !taps.quiet(deadline).await) {
            continue;
        }
        let used = (usage::of(contestant.id())?, stage.server_cpu()?);
        let jobs = taps.jobs.seen()?.values().filter(|seen| seen.added.is_some()).count();
        let settled = load::settled(&stage.plane.admin(), namespaces, fires).await?;
        if jobs >= wanted && settled == wanted {
            return Ok(used);
        }
        if is_late {
            return Err(format!(
                "not done in time: of {wanted} due, {jobs} Jobs were created and {settled} statuses written"
            ));
        }
    }
}

/// The number of requests that waited 5 ms or longer in the queues of the API server (API Priority and Fairness).
async fn queued(client: &kube::Client) -> Result<f64, String> {
    let request = http::Request::get("/metrics").body(Vec::new()).map_err(|why| why.to_string())?;
    let text = client.request_text(request).await.map_err(|why| format!("GET /metrics: {why}"))?;
    let total = |start: &str, label: &str| -> f64 {
        let start = format!("apiserver_flowcontrol_request_wait_duration_seconds_{start}{{");
        let lines = text.lines().filter(|line| line.starts_with(&start) && line.contains(label));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    };
    Ok(total("count", "") - total("bucket", "le=\"0.005\""))
}

/// The time from each due instant to the arrival of its Job's ADDED event, in seconds.
fn skews(taps: &Taps, fires: &[Slot]) -> Result<Vec<f64>, String> {
    let jobs = taps.jobs.seen()?;
    let skew = |slot: &Slot| {
        let due = slot.due?;
        let seen = jobs.get(&(slot.namespace.clone(), job_name(&slot.name, slot.nominal()?)))?;
        Some(seconds(seen.added? - due))
    };
    fires.iter().map(|slot| skew(slot).ok_or_else(|| format!("the Job of {} was not seen", slot.name))).collect()
}

/// The events' arrivals by CronJob name: an Event's name is `<object>.<unique suffix>`.
fn events_by_cron_job(taps: &Taps) -> Result<HashMap<Key, Seen>, String> {
    let events = taps.events.seen()?.into_iter();
    Ok(events
        .filter_map(|((namespace, name), seen)| {
            let (cron_job, _) = name.rsplit_once('.')?;
            Some(((namespace, cron_job.to_owned()), seen))
        })
        .collect())
}

/// The longest time from a due instant to the last event about its object, in seconds, and the number of objects with
/// one.
fn latest(fires: &[Slot], seen: &HashMap<Key, Seen>) -> (f64, usize) {
    let times = fires.iter().filter_map(|slot| {
        let found = seen.get(&(slot.namespace.clone(), slot.name.clone()))?;
        Some(seconds(found.last - slot.due?))
    });
    times.fold((0.0, 0), |(longest, count), time| (time.max(longest), count + 1))
}

fn limit(case: &Case) -> TimeDelta {
    TimeDelta::from_std(case.limit).unwrap_or(TimeDelta::MAX)
}

fn seconds(delta: TimeDelta) -> f64 {
    delta.as_seconds_f64()
}

/// The process under test.
enum Contestant {
    Controller(Running),
    Polling(std::sync::Mutex<Process>),
}

impl Contestant {
    async fn start(stage: &Stage, case: &Case) -> Result<Self, String> {
        let name = case.name.replace('/', "-");
        match &case.contender {
            Contender::Process { controller, args } => {
                let kubeconfig = if *controller == Controller::Ours { &stage.ours } else { &stage.in_tree };
                let args: Vec<String> = args.iter().cloned().chain(["--leader-elect=false".to_owned()]).collect();
                Ok(Self::Controller(controller.start(&stage.plane, &name, kubeconfig, &args, &[]).await?))
            }
            Contender::Polling { qps, burst } => {
                let program: PathBuf = std::env::current_exe().map_err(|why| format!("find this program: {why}"))?;
                let mut command = Command::new(program);
                command.arg("--polling-controller").arg(&stage.ours);
                command.args([format!("--kube-api-qps={qps}"), format!("--kube-api-burst={burst}")]);
                Ok(Self::Polling(std::sync::Mutex::new(stage.plane.spawn(&name, &mut command)?)))
            }
            Contender::Floor { .. } => Err("the floor has no process".to_owned()),
        }
    }

    fn id(&self) -> u32 {
        match self {
            Self::Controller(running) => running.id(),
            Self::Polling(process) => process.lock().unwrap().id(),
        }
    }

    fn check_running(&self) -> Result<(), String> {
        match self {
            Self::Controller(running) => running.check_running(),
            Self::Polling(process) => process.lock().unwrap().check_running(),
        }
    }

    /// Ends the process, first with SIGTERM.
    async fn stop(self) {
        match self {
            Self::Controller(running) => drop(running.terminate(Duration::from_secs(10)).await),
            Self::Polling(process) => drop(process),
        }
    }
}
