//! The ends of Jobs, as a watch shows them.
//!
//! Guarantees: every Job that ends or is deleted while it is watched is reported. A list's Jobs are, too, and then that they were
//! listed: at the beginning, and after a gap in the watch. A watch that is forbidden is reported, and all other failures are
//! repeated.

use std::collections::HashMap;
use std::sync::Arc;

use kube::Client;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::api::batch_v1::{FinishedCondition, Job};
use crate::api::{ResourceKind, Uid};
use crate::cache::{Informer, Observer, ReflectorError, ResourceEventHandler, Store};

/// How a Job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum End {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It was deleted while it ran.
    Gone,
}

impl From<FinishedCondition> for End {
    fn from(condition: FinishedCondition) -> Self {
        match condition {
            FinishedCondition::Complete => Self::Succeeded,
            FinishedCondition::Failed => Self::Failed,
        }
    }
}

/// What the watch shows.
#[derive(Debug)]
pub(in crate::cli) enum Change {
    /// There is another Job, which has not ended.
    Added,
    /// A Job has ended, or was deleted.
    Ended(Uid, End),
    /// Deletions may have been missed.
    Relisted,
    /// The watch is not allowed.
    Refused(String),
}

/// A watch of some Jobs of a namespace. It ends when this value is dropped.
pub(in crate::cli) struct JobWatch {
    changes: UnboundedReceiver<Change>,
    ended: HashMap<Uid, End>,
    has_list: bool,
    store: Arc<Store<Job>>,
    _stop: DropGuard,
}

impl JobWatch {
    /// Lists the Jobs of a namespace that are `selected`, and watches them. Must be called inside a tokio runtime.
    pub fn start(
        client: &Client,
        resource: ResourceKind,
        namespace: &str,
        selected: impl Fn(&mut Job) -> bool + Send + Sync + 'static,
    ) -> Self {
        // Of commands there are few at a time, whose waits need not differ.
        let mut informer =
            Informer::<Job>::new(client.clone(), &[namespace.to_owned()], 0).of_resource(resource).selecting(selected);
        let (sender, changes) = unbounded_channel();
        informer.add_event_handler(Arc::new(Sender(sender.clone())));
        informer.set_observer(Arc::new(Sender(sender)));
        let (store, stop) = (informer.store(), CancellationToken::new());
        tokio::spawn(informer.run(stop.clone()));
        Self { changes, ended: HashMap::new(), has_list: false, store, _stop: stop.drop_guard() }
    }

    /// Waits for the next change. None is lost if the wait is given up.
    pub async fn next(&mut self) -> Change {
        // The sender lives as long as the task, which ends with this value.
        let Some(change) = self.changes.recv().await else { return Change::Refused("the watch has ended".to_owned()) };
        if let Change::Ended(uid, end) = &change {
            self.ended.insert(uid.clone(), *end);
        }
        self.has_list |= matches!(change, Change::Relisted);
        change
    }

    /// How a Job ended, if [`Self::next`] has returned that.
    pub fn end_of(&self, uid: &Uid) -> Option<End> {
        self.ended.get(uid).copied()
    }

    /// Whether [`Self::next`] has returned that the Jobs were listed.
    pub fn has_list(&self) -> bool {
        self.has_list
    }

    /// The Jobs that the watch shows.
    pub fn jobs(&self) -> Vec<Arc<Job>> {
        self.store.list()
    }

    /// Whether the watch shows the Job.
    pub fn has(&self, uid: &Uid) -> bool {
        self.store.list().iter().any(|job| job.uid == *uid)
    }
}

struct Sender(UnboundedSender<Change>);

impl Sender {
    fn send(&self, change: Change) {
        // The backfill may have ended.
        let _ = self.0.send(change);
    }

    fn look_at(&self, job: &Job) {
        if let Some(finished) = job.finished {
            self.send(Change::Ended(job.uid.clone(), finished.into()));
        }
    }
}

impl ResourceEventHandler<Job> for Sender {
    fn on_add(&self, job: &Arc<Job>, _is_in_initial_list: bool) {
        if job.finished.is_none() {
            self.send(Change::Added);
        }
        self.look_at(job);
    }

    fn on_update(&self, _old: &Arc<Job>, new: &Arc<Job>) {
        self.look_at(new);
    }

    fn on_delete(&self, last: &Arc<Job>, _final_state_unknown: bool) {
        let end = last.finished.map_or(End::Gone, End::from);
        self.send(Change::Ended(last.uid.clone(), end));
    }
}

impl Observer for Sender {
    fn listed(&self, _: ResourceKind) {
        self.send(Change::Relisted);
    }

    fn failed(&self, _: ResourceKind, error: &ReflectorError) {
        if error.is_refused() {
            self.send(Change::Refused(error.to_string()));
        }
    }
}
