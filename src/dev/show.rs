//! The live view, or single lines in its place.
//!
//! Guarantees: handlers only record what they see. Without a terminal, only what the lines need is watched. The commands for
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
use super::view::{self, Row};
use crate::api::Uid;
use crate::api::batch_v1::CronJob;
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
    pub async fn run(self, live: bool, cancel: CancellationToken, stop: CancellationToken) {
        self.output.say(&format!("{}; {}. In another terminal:", self.header.title, self.header.controllers));
        self.output.say(&format!("  {}", self.header.commands.join("; ")));
        let (output, mut links) = (self.output.clone(), self.links.clone());
        if let Some(links) = &mut links {
            output.say(&format!("{LINK}{}", *links.borrow_and_update()));
        }
        if live {
            if let Err(error) = self.run_live(&cancel, &stop).await {
                output.fail(error);
            }
        } else if let Some(links) = links {
            // The view shows the newest one itself.
            output.say_changes(LINK, links, &cancel).await;
        }
    }

    async fn run_live(mut self, cancel: &CancellationToken, stop: &CancellationToken) -> io::Result<()> {
        let informers = std::mem::take(&mut self.cron_jobs);
        let stores: Vec<Arc<Store<CronJob>>> = informers.iter().map(Informer::store).collect();
        let mut terminal = LiveTerminal::open(&self.output)?;
        let informers = join_all(informers.into_iter().map(|informer| informer.run(cancel.clone())));
        let redraw = async {
            join_all(stores.iter().map(|store| store.wait_for_cache_sync())).await;
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
                    Action::Redraw => self.draw(&mut terminal, &mut place, &stores)?,
                    Action::Quit => {
                        stop.cancel();
                        return io::Result::Ok(());
                    }
                }
            }
        };
        tokio::select! {
            () = cancel.cancelled() => Ok(()),
            _ = informers => Ok(()),
            ended = redraw => ended,
        }
    }

    fn draw(
        &self,
        terminal: &mut LiveTerminal,
        place: &mut Viewport,
        stores: &[Arc<Store<CronJob>>],
    ) -> io::Result<()> {
        let (now, zone) = (self.clock.now(), self.news.zone);
        let row = |cron_job: Arc<CronJob>| {
            let skew = self.news.skews.lock().get(&cron_job.uid).copied();
            Row::new(&cron_job, &self.jobs.by_controller(&cron_job.uid), skew, now, zone)
        };
        let mut rows: Vec<Row> = stores.iter().flat_map(|store| store.list()).map(row).collect();
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
