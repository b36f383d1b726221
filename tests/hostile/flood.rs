//! A thousand CronJobs of one namespace that change in turn, and a minutely CronJob of another namespace.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use testkit::driver::{CRON_JOBS, LEASES, cron_job, eventually, job_name};
use testkit::sightings::Sightings;
use tokio::task::{AbortHandle, JoinSet};

use crate::cluster::{Controller, Dev, HOT, OTHERS, annotate};
use crate::manifests::KINDS;
use crate::table::{Figure, Seen, Unit, float};

/// How many CronJobs change.
const SIZE: usize = 1_000;
/// The time from one update to the next.
const PACE: Duration = Duration::from_millis(50);
/// How many CronJobs are created at a time.
const CREATES: usize = 16;
/// How long after its time the Job of a slot counts as missing.
const LATEST: TimeDelta = TimeDelta::seconds(20);
/// How often the lease is read.
const LOOK: Duration = Duration::from_millis(250);
/// The controller's lease, and its namespace.
const LEASE: (&str, &str) = ("cronjob-controller", "kube-system");
/// The CronJob of the other namespace.
const MINUTELY: &str = "minutely";

/// One such case.
#[derive(Clone, Copy)]
pub struct Flood {
    pub name: &'static str,
    /// The cores of the controller, as `taskset` names them.
    cores: &'static str,
    is_hot: bool,
    /// The most seconds that a Job may be late, but for one in a hundred.
    most_late: f64,
}

pub fn all() -> [Flood; 3] {
    [
        Flood { name: "1,000 hot CronJobs, two cores", cores: "0,1", is_hot: true, most_late: 0.25 },
        Flood { name: "1,000 hot CronJobs, one core", cores: "0", is_hot: true, most_late: 2.0 },
        Flood { name: "1,000 ordinary CronJobs, two cores, to compare", cores: "0,1", is_hot: false, most_late: 0.25 },
    ]
}

impl Flood {
    pub fn run(self) -> BoxFuture<'static, Vec<Figure>> {
        Box::pin(self.measure())
    }

    async fn measure(self) -> Vec<Figure> {
        let minutes = std::env::var("HOSTILE_MINUTES").map_or(10, |minutes| minutes.parse().unwrap());
        let dev = Dev::start_alone().await;
        let sightings = Sightings::watch(dev.client.clone());
        let others = dev.namespace(OTHERS);
        let mut controller = dev.controller(Some(self.cores), &[]);
        let lease = LeaseWatch::start(&dev).await;
        others.create(CRON_JOBS, &cron_job(MINUTELY, "* * * * *", &json!({}))).await;
        let first = whole_minute(Utc::now()) + TimeDelta::minutes(1);

        let before = controller.usage().expect("the controller runs").cpu;
        self.create(&dev).await;
        // Whatever is left of the creates counts as updates if it takes longer.
        let created = controller.rest().await;
        let begin = Utc::now();
        let last = whole_minute(begin) + TimeDelta::minutes(minutes);
        let (sent, refused) = update_until(&dev, &mut controller, last + TimeDelta::seconds(5)).await;
        let updated = controller.usage().map(|usage| usage.cpu);
        let latest = last + LATEST;
        let is_over = || Lateness::of(&sightings, first, last).missing == 0;
        while controller.usage().is_some() && !is_over() && Utc::now() < latest {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let ended = usize::from(controller.usage().is_none());
        if ended > 0 {
            println!("    the controller has ended:\n{}", controller.log_tail());
        }

        let late = Lateness::of(&sightings, first, last);
        let lease = lease.seen();
        let cpu_of_updates = match (created, updated) {
            (Seen::Exactly(created), Some(updated)) => Seen::Exactly((updated - created) / float(sent.max(1))),
            _ => Seen::Nothing,
        };
        vec![
            Figure::count("minutes", slots(first, last).count()),
            Figure::count("slots without a Job", late.missing).at_most(0.0),
            Figure::seconds("Jobs late, p50", late.percentile(0.5).into()),
            Figure::seconds("Jobs late, p99", late.percentile(0.99).into()).at_most(self.most_late),
            Figure::count("ends of the process", ended).at_most(0.0),
            Figure::count("changes of the holder", lease.changes).at_most(0.0),
            // Then the leader ends by itself.
            Figure::seconds("longest time without a renewal", Seen::Exactly(lease.longest)).at_most(10.0),
            Figure::seconds("CPU of the creates", created.map(|cpu| cpu - before)),
            Figure::count("updates", sent),
            Figure::count("updates refused", refused),
            Figure::seconds("CPU of an update", cpu_of_updates),
            Figure::new("resident at the end", controller.usage().map(|usage| usage.resident).into(), Unit::Megabytes),
        ]
    }

    async fn create(self, dev: &Dev) {
        let hot = dev.namespace(HOT);
        let object = |at: usize| {
            let name = name(at);
            if self.is_hot { KINDS[at % KINDS.len()].cron_job(&name) } else { cron_job(&name, "0 0 * * *", &json!({})) }
        };
        let creates = (0..SIZE).map(|at| {
            let (hot, object) = (hot.clone(), object(at));
            async move { hot.create(CRON_JOBS, &object).await }
        });
        futures::stream::iter(creates).buffer_unordered(CREATES).for_each(|_| async {}).await;
    }
}

fn name(at: usize) -> String {
    format!("hot-{at:04}")
}

/// Updates one CronJob after the other at an even pace until `end`, or until the controller has ended. Returns how many updates
/// were sent, and how many of them were not done.
async fn update_until(dev: &Dev, controller: &mut Controller, end: DateTime<Utc>) -> (usize, usize) {
    let mut ticks = tokio::time::interval(PACE);
    let (mut sent, mut refused, mut updates) = (0, 0, JoinSet::new());
    while Utc::now() < end && controller.usage().is_some() {
        ticks.tick().await;
        let (client, turn) = (dev.client.clone(), sent);
        updates.spawn(async move { annotate(&client, &name(turn % SIZE), turn).await });
        sent += 1;
        while let Some(done) = updates.try_join_next() {
            refused += usize::from(!done.unwrap());
        }
    }
    refused += updates.join_all().await.into_iter().filter(|is_done| !is_done).count();
    (sent, refused)
}

/// How late the Jobs of the minutely CronJob were, in seconds and in ascending order.
struct Lateness {
    seconds: Vec<f64>,
    missing: usize,
}

impl Lateness {
    fn of(sightings: &Sightings, first: DateTime<Utc>, last: DateTime<Utc>) -> Self {
        let all = sightings.all().into_iter().filter(|job| job.namespace == OTHERS);
        let seen: HashMap<String, DateTime<Utc>> = all.map(|job| (job.name, job.at)).collect();
        let times = slots(first, last).map(|slot| seen.get(&job_name(MINUTELY, slot)).map(|at| *at - slot));
        let times: Vec<Option<TimeDelta>> = times.collect();
        let mut seconds: Vec<f64> = times.iter().flatten().map(|late| late.as_seconds_f64()).collect();
        seconds.sort_unstable_by(f64::total_cmp);
        Self { missing: times.len() - seconds.len(), seconds }
    }

    /// The smallest time that this share of the Jobs does not exceed.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank within the list")]
    fn percentile(&self, share: f64) -> Option<f64> {
        let rank = (float(self.seconds.len()) * share).ceil() as usize;
        self.seconds.get(rank.max(1) - 1).copied()
    }
}

fn slots(first: DateTime<Utc>, last: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
    std::iter::successors(Some(first), |slot| Some(*slot + TimeDelta::minutes(1))).take_while(move |slot| *slot <= last)
}

fn whole_minute(time: DateTime<Utc>) -> DateTime<Utc> {
    time - TimeDelta::seconds(i64::from(time.second())) - TimeDelta::nanoseconds(i64::from(time.nanosecond()))
}

/// Reads the lease again and again until it is dropped, from when it first has a holder.
struct LeaseWatch {
    renewals: Arc<Mutex<Renewals>>,
    task: AbortHandle,
}

impl LeaseWatch {
    async fn start(dev: &Dev) -> Self {
        let (name, namespace) = LEASE;
        let namespace = dev.namespace(namespace);
        let renewals = Arc::new(Mutex::new(Renewals::default()));
        eventually("the lease", Duration::from_secs(60), || async {
            let lease = namespace.get(LEASES, name).await?;
            renewals.lock().unwrap().see(&lease)
        })
        .await;
        let seen = Arc::clone(&renewals);
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK).await;
                if let Some(lease) = namespace.get(LEASES, name).await {
                    seen.lock().unwrap().see(&lease);
                }
            }
        });
        Self { renewals, task: task.abort_handle() }
    }

    /// What was seen, up to now.
    fn seen(&self) -> Renewals {
        let mut renewals = self.renewals.lock().unwrap().clone();
        renewals.until(Utc::now());
        renewals
    }
}

impl Drop for LeaseWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the lease's versions show.
#[derive(Debug, Clone, Default)]
struct Renewals {
    holder: String,
    /// How often it had another holder than before.
    changes: usize,
    renewed: Option<DateTime<Utc>>,
    /// The longest time from one renewal to the next, in seconds, by the clock of their author.
    longest: f64,
}

impl Renewals {
    fn see(&mut self, lease: &Value) -> Option<()> {
        let spec = &lease["spec"];
        let (holder, renewed) = (spec["holderIdentity"].as_str()?, spec["renewTime"].as_str()?.parse().ok()?);
        self.changes += usize::from(!self.holder.is_empty() && self.holder != holder);
        holder.clone_into(&mut self.holder);
        self.until(renewed);
        self.renewed = Some(renewed);
        Some(())
    }

    fn until(&mut self, time: DateTime<Utc>) {
        let since = self.renewed.map_or(0.0, |last| (time - last).as_seconds_f64());
        self.longest = self.longest.max(since);
    }
}
