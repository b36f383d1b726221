//! Where a process learns of the Namespaces of its CronJobs.
//!
//! Guarantee: one informer for all controllers of the process, or with `--namespaces` one read of each every five seconds, since
//! the rights in a namespace do not include a watch of it. A process that may not list Namespaces goes on asking.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::ControllerContext;
use crate::api::Namespace;
use crate::cache::{Informer, ResourceEventHandler};
use crate::controller::control::RealControl;
use crate::controller::namespaces::Namespaces;
use crate::leader_election::Gate;
use crate::options::ControllerKind;
use crate::sim;

/// How long after a change a process with `--namespaces` knows of it, at most.
const POLL: Duration = Duration::from_secs(5);

/// How soon it asks again before it knows them all.
const FIRST_POLL: Duration = Duration::from_secs(1);

/// The Namespaces, and what keeps them once it is [started](Self::start).
pub(super) struct NamespaceSource {
    pub(super) namespaces: Arc<Namespaces>,
    handlers: Vec<Arc<dyn ResourceEventHandler<Namespace>>>,
    informer: Option<Informer<Namespace>>,
}

impl NamespaceSource {
    /// For the controllers of a process; `None` where no policies count.
    pub(super) fn new(context: &ControllerContext) -> Option<Self> {
        let ControllerContext { config, client, seed, .. } = context;
        if !config.policies.enabled {
            return None;
        }
        let (namespaces, informer) = if config.namespaces.is_empty() {
            let informer = Informer::<Namespace>::new(client.clone(), &[], seed.rotate_left(16));
            (Namespaces::watched(informer.store()), Some(informer))
        } else {
            (Namespaces::polled(config.namespaces.iter().map(|name| name.as_str().into())), None)
        };
        let first: Arc<dyn ResourceEventHandler<Namespace>> = Arc::clone(&namespaces) as _;
        Some(Self { handlers: vec![first], namespaces, informer })
    }

    /// Adds a handler.
    pub(super) fn add_event_handler(&mut self, handler: Arc<dyn ResourceEventHandler<Namespace>>) {
        self.handlers.push(handler);
    }

    /// Starts what keeps the Namespaces, until the context ends.
    pub(super) fn start(self, context: &ControllerContext, gate: &Arc<Gate>, informers: &mut JoinSet<()>) {
        let Self { namespaces, handlers, informer } = self;
        let ends = context.ends.clone();
        let Some(mut informer) = informer else {
            let control = RealControl::new(ControllerKind::CronJob, context.client.clone(), Arc::clone(gate));
            informers.spawn(sim::bind(async move { poll(&namespaces, &control, &handlers, &ends).await }));
            return;
        };
        for handler in handlers {
            informer.add_event_handler(handler);
        }
        informer.set_observer(Arc::clone(&namespaces) as _);
        informers.spawn(sim::bind(informer.run(ends)));
    }
}

async fn poll(
    namespaces: &Namespaces,
    control: &RealControl,
    handlers: &[Arc<dyn ResourceEventHandler<Namespace>>],
    ends: &CancellationToken,
) {
    let polling = async {
        loop {
            namespaces.poll(control, handlers).await;
            sleep(if namespaces.have_synced() { POLL } else { FIRST_POLL }).await;
        }
    };
    ends.run_until_cancelled(polling).await;
}
