//! The live view, or single lines in its place.
//!
//! Guarantees: handlers only record what they see. The commands for
//! kubectl are printed before the view begins, so they are on the terminal after it, too.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::SharedClock;
use chrono::TimeDelta;
use futures::future::join_all;
use parking_lot::Mutex;
use ratatui::crossterm::event::Event;
use schedule::{Zone, local_zone};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::live_terminal::LiveTerminal;
use super::objects::Job;
use super::output::Output;
use super::view::keys::{Action, Viewport};
use super::view::screen::{MAX_MESSAGES, Screen};
use super::view::{self, Judge, Row};
use crate::api::batch_v1::{self, CronJob};
use crate::api::{Namespace, ObjectName, Uid};
use crate::cache::{Informer, ResourceEventHandler, Store};
use crate::terminal::plain;

/// How often the view is redrawn without a key.
const REDRAW: Duration = Duration::from_secs(1);
/// What comes before a link of the page.
const LINK: &str = "In a browser: ";

/// A handler of Job events: writes lines, or records skews for the live view.
pub struct News {
    clock: SharedClock,
    output: Output,
    live: bool,
    zone: Zone,
    /// The CronJobs of each kind that starts Jobs.
    cron_jobs: Vec<Arc<Store<CronJob>>>,
    /// The skew of the latest Job of each CronJob.
    skews: Mutex<HashMap<Uid, TimeDelta>>,
}

impl News {
    /// A handler that has seen no event yet.
    pub fn new(clock: SharedClock, output: Output, live: bool, cron_jobs: Vec<Arc<Store<CronJob>>>) -> Self {
        Self { clock, output, live, zone: local_zone().0, cron_jobs, skews: Mutex::default() }
    }

    /// The delay of the `spread` of a Job's CronJob.
    fn offset(&self, job: &Job) -> TimeDelta {
        let found = job.identity.owner().and_then(|owner| self.cron_jobs.iter().find_map(|store| store.get(&owner)));
        found.map_or_else(TimeDelta::zero, |cron_job| cron_job.offset())
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
        let slot = job.slot().filter(|_| !job.identity.of_backfill);
        if let Some(((_, owner), slot)) = job.identity.controller.as_ref().zip(slot) {
            self.skews.lock().insert(owner.clone(), now - slot);
        }
        self.say(&view::line_of_start(job, self.offset(job), now));
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
    /// CronJobs of each kind that starts Jobs.
    pub cron_jobs: Vec<Informer<CronJob>>,
    /// Jobs as a controller sees them, for the live view.
    pub jobs: Informer<batch_v1::Job>,
    /// The Namespaces, which may hold their CronJobs, for the live view.
    pub namespaces: Informer<Namespace>,
    /// What says the state of a CronJob.
    pub judge: Judge,
    /// The recorded skews.
    pub news: Arc<News>,
    /// The wall clock.
    pub clock: SharedClock,
    /// The destination of lines.
    pub output: Output,
    /// Where the cluster is, and how to use it.
    pub header: Header,
    /// The newest link of the page in a browser, if there is one.
    pub links: Option<watch::Receiver<String>>,
}

/// What is said about the cluster.
pub struct Header {
    /// The address of its API server.
    pub title: String,
    /// The controllers that run.
    pub controllers: String,
    /// Commands to paste into another terminal.
    pub commands: [String; 2],
}

impl Show {
    /// Updates the view until `cancel`; a user who quits cancels `stop`.
    pub async fn run(mut self, live: bool, cancel: CancellationToken, stop: CancellationToken) {
        self.output.say(&format!("{}; {}. In another terminal:", self.header.title, self.header.controllers));
        self.output.say(&format!("  {}", self.header.commands.join("; ")));
        let (output, mut links) = (self.output.clone(), self.links.clone());
        if let Some(links) = &mut links {
            output.say(&format!("{LINK}{}", *links.borrow_and_update()));
        }
        let informers = std::mem::take(&mut self.cron_jobs);
        let cron_jobs = join_all(informers.into_iter().map(|informer| informer.run(cancel.clone())));
        if live {
            tokio::select! {
                _ = cron_jobs => {}
                ended = self.run_live(&cancel, &stop) => if let Err(error) = ended {
                    output.fail(error);
                },
            }
        } else if let Some(links) = links {
            // The view shows the newest one itself.
            tokio::join!(cron_jobs, output.say_changes(LINK, links, &cancel));
        } else {
            cron_jobs.await;
        }
    }

    async fn run_live(self, cancel: &CancellationToken, stop: &CancellationToken) -> io::Result<()> {
        let Self { jobs, namespaces, judge, news, clock, output, header, links, .. } = self;
        let (stored, restricting) = (jobs.store(), namespaces.store());
        let view = View { jobs: stored, namespaces: restricting, judge, news, clock, output, header, links };
        let mut terminal = LiveTerminal::open(&view.output)?;
        let redraw = async {
            join_all(view.news.cron_jobs.iter().map(|store| store.wait_for_cache_sync())).await;
            tokio::join!(view.jobs.wait_for_cache_sync(), view.namespaces.wait_for_cache_sync());
            let mut place = Viewport::default();
            let mut ticks = tokio::time::interval(REDRAW);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                let action = tokio::select! {
                    _ = ticks.tick() => Action::Redraw,
                    event = terminal.next_event() => match event {
                        Some(Event::Key(key)) => place.press(key),
                        Some(Event::Resize(..)) => Action::Redraw,
                        Some(_) => Action::Ignore,
                        // Without a keyboard, raw mode would leave no way to end it.
                        None => Action::Quit,
                    },
                };
                match action {
                    Action::Ignore => {}
                    Action::Redraw => view.draw(&mut terminal, &mut place)?,
                    Action::Quit => {
                        stop.cancel();
                        return io::Result::Ok(());
                    }
                }
            }
        };
        tokio::select! {
            () = cancel.cancelled() => Ok(()),
            () = jobs.run(cancel.clone()) => Ok(()),
            () = namespaces.run(cancel.clone()) => Ok(()),
            ended = redraw => ended,
        }
    }
}

/// What the live view is drawn from.
struct View {
    jobs: Arc<Store<batch_v1::Job>>,
    namespaces: Arc<Store<Namespace>>,
    judge: Judge,
    news: Arc<News>,
    clock: SharedClock,
    output: Output,
    header: Header,
    links: Option<watch::Receiver<String>>,
}

impl View {
    fn draw(&self, terminal: &mut LiveTerminal, place: &mut Viewport) -> io::Result<()> {
        let (now, zone) = (self.clock.now(), self.news.zone);
        let row = |cron_job: Arc<CronJob>| {
            let namespace = self.namespaces.get(&ObjectName::new("", &*cron_job.name.namespace));
            let restriction = namespace.as_ref().and_then(|namespace| namespace.restriction.as_ref());
            let cron_job = cron_job.in_its_namespace(restriction);
            let skew = self.news.skews.lock().get(&cron_job.uid).copied();
            let jobs = self.jobs.by_controller(&cron_job.uid);
            let condition = (self.judge)(&cron_job, jobs.clone(), zone, now);
            Row::new(&cron_job, &jobs, condition, skew, now, zone)
        };
        let mut rows: Vec<Row> = self.news.cron_jobs.iter().flat_map(|store| store.list()).map(row).collect();
        place.order.sort(&mut rows);
        let messages = self.output.newest(MAX_MESSAGES);
        let link = self.links.as_ref().map(|links| links.borrow().clone());
        let commands: Vec<String> = self.header.commands.iter().chain(&link).map(|command| plain(command)).collect();
        let screen = Screen {
            title: &self.header.title,
            commands: &commands,
            rows: &rows,
            messages: &messages,
            now,
            local: zone,
            colour: terminal.colour,
        };
        terminal.draw(|frame| screen.draw(frame, place))
    }
}
