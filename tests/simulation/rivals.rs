//! What is reported about another controller is true: there is one.
//!
//! Guarantee: no process counts more Jobs of another controller than third parties made for slots while it ran. Replicas are
//! not each other's rivals, whatever their clocks say.
//!
//! The Job that a Warning names was started by one, too.
//!
//! A finished Job that is reported as unexpected was not started by the reporter.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use crate::invariants::Invariants;
use crate::model::{Author, Job, Model};
use crate::scenario::Millis;

/// A process: its replica and incarnation.
pub type Who = (usize, u32);

/// What was reported so far.
#[derive(Debug, Default)]
pub struct Rivals {
    /// How many Jobs of another controller each process has counted, and since when it runs.
    counted: BTreeMap<Who, (Millis, u64)>,
}

/// A Warning that another controller works: the CronJob, as namespace/name, and the Job that the other one started.
#[derive(Debug, Default)]
pub struct Warning {
    message: String,
    cron_job: String,
    job: String,
}

thread_local! {
    /// What the world that runs in this thread has warned of since the last look.
    static WARNINGS: RefCell<Vec<Warning>> = const { RefCell::new(Vec::new()) };
}

/// Collects the Warnings in the logs of all processes.
struct Warnings;

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut warning = Warning::default();
        event.record(&mut warning);
        if warning.message == "another controller starts Jobs of the same CronJobs" {
            WARNINGS.with_borrow_mut(|all| all.push(warning));
        }
    }
}

impl Visit for Warning {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = match field.name() {
            "message" => &mut self.message,
            "cronjob" => &mut self.cron_job,
            "job" => &mut self.job,
            _ => return,
        };
        *text = format!("{value:?}");
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

/// Listens to Warnings from now on.
pub fn listen() {
    let subscriber = tracing_subscriber::registry().with(LevelFilter::WARN).with(Warnings);
    tracing::subscriber::set_global_default(subscriber).expect("nothing else listens");
}

/// The Warnings of this thread's world since the last call.
pub fn warnings() -> Vec<Warning> {
    WARNINGS.take()
}

impl Invariants {
    /// A process warns of a Job, which another controller has started.
    pub fn warned(&mut self, model: &Model, warning: &Warning, at: Millis) {
        self.coverage.count("judged", "Warning about another controller");
        let jobs = model.jobs.values().filter(|job| job.name == warning.job && job.is_made_by_controller());
        let authors: Vec<Author> = jobs
            .filter(|job| warning.cron_job.split('/').next() == Some(&*job.namespace))
            .map(|job| job.author)
            .collect();
        if authors.contains(&Author::World) {
            return;
        }
        let Warning { cron_job, job, .. } = warning;
        self.violated(
            "22",
            at,
            format!("a Warning says that another controller started {job} of {cron_job}: {authors:?}"),
        );
    }

    /// A process has counted this many Jobs of another controller.
    pub fn external_jobs(&mut self, model: &Model, who: Who, found: u64, at: Millis) {
        let (since, known) = self.rivals.counted.entry(who).or_insert((at, 0));
        if found == *known {
            return;
        }
        *known = found;
        let since = *since;
        let is_foreign =
            |job: &&Job| job.author == Author::World && job.is_made_by_controller() && job.created >= since;
        let true_number = model.jobs.values().filter(is_foreign).count() as u64;
        self.coverage.count("judged", "Jobs counted as another controller's");
        if found > true_number {
            let text =
                format!("r{}.{} counts {found} Jobs of another controller, which started {true_number}", who.0, who.1);
            self.violated("22", at, text);
        }
    }

    /// A replica reports a Job that it did not create, or forgot.
    pub fn unexpected(&mut self, model: &Model, uid: &str, message: &str, by: Author, at: Millis) {
        let Some(name) = message.rsplit(' ').next() else { return };
        let is_own = |job: &&Job| job.name == name && job.author == by && job.answered;
        if let Some(job) = model.all_jobs_of(uid).find(is_own) {
            self.violated("22", at, format!("{by} reports {} as unexpected, which it started", job.name));
        }
    }
}
