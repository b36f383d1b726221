//! Waits for the end of a Job, and prints the logs of its Pods meanwhile.
//!
//! Guarantees: the result is what a watch shows, so that it is known even if the Job is deleted at its end. The log of each
//! container that a list shows is printed once, and as a whole if the connection breaks. What keeps the Job from ending for ten
//! seconds is told. What a log contains stays text, and a line of it has a bounded length.

mod logs;

use std::time::Duration;

use kube::Client;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use self::logs::Logs;
use super::Until;
use crate::api::batch_v1::Job;
use crate::api::{ControllerKind, Uid};
use crate::cli::backfill::watch::{Change, End, JobWatch};
use crate::cli::cluster::WriteError;
use crate::cli::failure::Failure;
use crate::cli::unfinished::{self, Unfinished};
use crate::cli::{Answer, CliError};
use crate::terminal::PlainText;

/// How often the Pods are listed for new logs.
const LOOK: Duration = Duration::from_secs(1);
/// How often the command looks why the Job has not ended.
const ASK: Duration = Duration::from_secs(10);
/// How long logs may be silent after the end of their Job: a node that is gone ends none.
const LAST_LINES: Duration = Duration::from_secs(15);

/// Where the command says something.
pub(in crate::cli) struct Outlet<'a> {
    /// To stdout; returns false if that cannot be written.
    pub print: &'a mut dyn FnMut(&PlainText) -> bool,
    /// To stderr.
    pub note: &'a mut dyn FnMut(&PlainText),
}

impl Outlet<'_> {
    /// Says something beside the output.
    pub fn note(&mut self, lines: impl IntoIterator<Item = String>) {
        let text = PlainText::lines(lines);
        if !text.is_empty() {
            (self.note)(&text);
        }
    }

    /// Says something where it is not in the way of a log.
    pub fn say(&mut self, until: Until, lines: Vec<String>) {
        if until == Until::Logged {
            self.note(lines);
        } else {
            (self.print)(&PlainText::lines(lines));
        }
    }
}

/// What keeps the Job from ending.
type Reason = Option<Unfinished>;

/// A Job whose end is awaited.
pub(super) struct Followed<'a> {
    pub client: &'a Client,
    pub controller_kind: ControllerKind,
    pub namespace: &'a str,
    pub job: &'a Job,
    /// The container whose logs are printed, if they are.
    pub container: Option<String>,
}

impl Followed<'_> {
    /// Waits for the end. The answer is good if the Job has succeeded.
    pub async fn to_the_end(&self, outlet: &mut Outlet<'_>) -> Result<Answer, CliError> {
        let until = if self.container.is_some() { Until::Logged } else { Until::Ended };
        let Some(end) = self.wait(outlet).await? else {
            return Ok(Answer { text: PlainText::default(), is_good: false });
        };
        let name = &self.job.name;
        let (result, why) = match end {
            End::Succeeded => ("succeeded", Vec::new()),
            End::Gone => ("was deleted before it ended", Vec::new()),
            End::Failed => {
                let failure = Failure::read(self.client, self.controller_kind, &name.namespace, &name.name).await;
                ("failed", failure.map(|failure| failure.lines("")).unwrap_or_default())
            }
        };
        let lines = [vec![format!("Job {name} {result}.")], why].concat();
        outlet.say(until, lines);
        Ok(Answer { text: PlainText::default(), is_good: end == End::Succeeded })
    }

    /// How the Job ended; `None` if the output was closed first.
    async fn wait(&self, outlet: &mut Outlet<'_>) -> Result<Option<End>, CliError> {
        let Self { client, controller_kind, namespace, job, .. } = self;
        let uid = job.uid.clone();
        let is_it = move |one: &mut Job| one.uid == uid;
        let mut watch = JobWatch::start(client, controller_kind.child, namespace, is_it);
        let mut logs = self.container.as_ref().map(|container| Logs::new(client, namespace, &job.name.name, container));
        let (mut look, mut ask) = (interval(LOOK), interval(ASK));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ask.reset();
        let (mut end, mut last_line) = (None, Instant::now());
        // Whether the Pods were listed since the end.
        let mut is_listed = false;
        let (mut seen, mut told) = (None, None);
        loop {
            if let Some(end) = end
                && logs.as_ref().is_none_or(|logs| is_listed && logs.are_read())
            {
                return Ok(Some(end));
            }
            tokio::select! {
                // Lines that are there are printed before the wait for more is given up.
                biased;
                change = watch.next(), if end.is_none() => {
                    end = self.end(change, &watch)?;
                    if let (Some(_), Some(logs)) = (end, &mut logs) {
                        // The last Pods may not have been seen yet.
                        is_listed = logs.look(outlet).await;
                        last_line = Instant::now();
                    }
                }
                _ = look.tick(), if logs.is_some() => {
                    if let Some(logs) = &mut logs {
                        is_listed |= logs.look(outlet).await && end.is_some();
                    }
                }
                _ = ask.tick(), if end.is_none() => self.say_why(&mut seen, &mut told, outlet).await,
                piece = Logs::next(logs.as_mut()) => {
                    if !logs.as_mut().is_none_or(|logs| logs.take(piece, outlet)) {
                        return Ok(None);
                    }
                    // The output may have waited for its reader.
                    last_line = Instant::now();
                }
                () = sleep_until(last_line + LAST_LINES), if end.is_some() => {
                    outlet.note(["The rest of the log cannot be read.".to_owned()]);
                    return Ok(end);
                }
            }
        }
    }

    /// The end that a change of the watch shows.
    fn end(&self, change: Change, watch: &JobWatch) -> Result<Option<End>, CliError> {
        let uid: &Uid = &self.job.uid;
        match change {
            Change::Ended(ended, end) if ended == *uid => Ok(Some(end)),
            Change::Relisted if !watch.has(uid) => Ok(Some(watch.end_of(uid).unwrap_or(End::Gone))),
            Change::Refused(cause) => {
                Err(WriteError { what: format!("wait for Job {}, which was created", self.job.name), cause }.into())
            }
            Change::Added | Change::Ended(..) | Change::Relisted => Ok(None),
        }
    }

    /// Says what keeps the Job from ending, if that was `seen` before and was not told last.
    async fn say_why(&self, seen: &mut Reason, told: &mut Reason, outlet: &mut Outlet<'_>) {
        let why = unfinished::read(self.client, self.controller_kind, self.namespace, &self.job.name.name, None).await;
        if why == *seen && why != *told {
            outlet.note(why.iter().flat_map(Unfinished::lines));
            told.clone_from(&why);
        }
        *seen = why;
    }
}
