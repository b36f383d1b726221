//! The live view, or single lines in its place.
//!
//! Guarantees: handlers only record what they see. Without a terminal, only what the lines need is watched.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::SharedClock;
use chrono::TimeDelta;
use futures::future::join_all;
use parking_lot::Mutex;
use schedule::{Zone, local_zone};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::objects::Job;
use super::output::Output;
use super::view::{self, Row};
use crate::api::Uid;
use crate::api::batch_v1::CronJob;
use crate::cache::{Informer, ResourceEventHandler, Store};

/// How often the view is redrawn.
const REDRAW: Duration = Duration::from_secs(1);
/// The size of a terminal that does not report its own.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

/// A handler of Job events: writes lines, or records skews for the live view.
pub struct News {
    clock: SharedClock,
    output: Output,
    live: bool,
    zone: Zone,
    /// The skew of the latest Job of each CronJob.
    skews: Mutex<HashMap<Uid, TimeDelta>>,
}

impl News {
    /// A handler that has seen no event yet.
    pub fn new(clock: SharedClock, output: Output, live: bool) -> Self {
        Self { clock, output, live, zone: local_zone().0, skews: Mutex::default() }
    }

    fn say(&self, line: &str) {
        if !self.live {
            self.output.say(&format!("{} {line}", self.zone.at(self.clock.now()).format("%H:%M:%S")));
        }
    }
}

impl ResourceEventHandler<Job> for News {
    fn on_add(&self, job: &Arc<Job>, is_in_initial_list: bool) {
        if is_in_initial_list {
            return;
        }
        let now = self.clock.now();
        if let Some(((_, owner), slot)) = job.identity.controller.as_ref().zip(job.slot()) {
            self.skews.lock().insert(owner.clone(), now - slot);
        }
        self.say(&view::line_of_start(job, now));
    }

    fn on_update(&self, old: &Arc<Job>, new: &Arc<Job>) {
        if let Some(line) = view::line_of_end(old, new) {
            self.say(&line);
        }
    }

    fn on_delete(&self, _last: &Arc<Job>, _final_state_unknown: bool) {}
}

/// The parts of the view.
pub struct Show {
    /// CronJobs of each kind that starts Jobs, for the live view.
    pub cron_jobs: Vec<Informer<CronJob>>,
    /// The store of Jobs.
    pub jobs: Arc<Store<Job>>,
    /// The recorded skews.
    pub news: Arc<News>,
    /// The wall clock.
    pub clock: SharedClock,
    /// The destination.
    pub output: Output,
    /// The lines above the table.
    pub header: [String; 2],
}

impl Show {
    /// Updates the view until `cancel`.
    pub async fn run(self, live: bool, cancel: CancellationToken) {
        if !live {
            self.header.iter().for_each(|line| self.output.say(line));
            return;
        }
        let Self { cron_jobs: informers, jobs, news, clock, output, header } = self;
        let cron_jobs: Vec<_> = informers.iter().map(Informer::store).collect();
        let draw = || {
            let now = clock.now();
            let row = |cron_job: &Arc<CronJob>| {
                let skew = news.skews.lock().get(&cron_job.uid).copied();
                Row::new(cron_job, &jobs.by_controller(&cron_job.uid), skew, now, news.zone)
            };
            let rows: Vec<Row> =
                cron_jobs.iter().flat_map(|store| store.list()).map(|cron_job| row(&cron_job)).collect();
            let (width, height) = terminal_size();
            let clock = format!("{} {}. Ctrl-C stops it.", news.zone.at(now).format("%H:%M:%S"), news.zone.name());
            let header = [header[0].clone(), header[1].clone(), clock];
            // The cursor uses the last line of the terminal.
            output.draw(&view::screen(&header, &rows, now, news.zone, width, height.saturating_sub(1)));
        };
        let redraw = async {
            join_all(cron_jobs.iter().map(|store| store.wait_for_cache_sync())).await;
            let mut ticks = tokio::time::interval(REDRAW);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                draw();
            }
        };
        let informers = join_all(informers.into_iter().map(|informer| informer.run(cancel.clone())));
        tokio::select! {
            () = cancel.cancelled() => {}
            _ = informers => {}
            () = redraw => {}
        }
        draw();
        output.end_view();
    }
}

/// Columns and rows of the terminal on stdout.
fn terminal_size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => DEFAULT_SIZE,
    }
}
