//! A lease server in memory and a lock on it whose network loses, delays and refuses.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt as _, pending, unfold};
use k8s_openapi::api::coordination::v1::Lease;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::sleep;

use super::{LeaderElectionRecord, LeaseLock, LockError};

/// The server's half: one lease under optimistic concurrency.
#[derive(Debug, Clone)]
pub struct FakeServer(Arc<Mutex<(Option<Lease>, u64)>>, watch::Sender<Option<Lease>>);

impl Default for FakeServer {
    fn default() -> Self {
        Self(Arc::default(), watch::Sender::new(None))
    }
}

impl FakeServer {
    pub fn get(&self) -> Option<Lease> {
        self.0.lock().0.clone()
    }

    /// The lease after each change; a slow reader misses some.
    pub fn changes(&self) -> BoxStream<'static, Lease> {
        let next = |mut changes: watch::Receiver<Option<Lease>>| async move {
            changes.changed().await.ok()?;
            let lease = changes.borrow_and_update().clone();
            Some((lease, changes))
        };
        unfold(self.1.subscribe(), next).filter_map(async |lease| lease).boxed()
    }

    pub fn record(&self) -> Option<LeaderElectionRecord> {
        self.get().as_ref().map(LeaderElectionRecord::from_lease)
    }

    pub fn holder(&self) -> Option<String> {
        self.record().map(|record| record.holder_identity)
    }

    pub fn create(&self, mut lease: Lease) -> Result<Lease, String> {
        let mut state = self.0.lock();
        if state.0.is_some() {
            return Err("AlreadyExists".to_owned());
        }
        state.1 += 1;
        lease.metadata.resource_version = Some(state.1.to_string());
        state.0 = Some(lease.clone());
        self.1.send_replace(Some(lease.clone()));
        Ok(lease)
    }

    pub fn update(&self, mut lease: Lease) -> Result<Lease, String> {
        let mut state = self.0.lock();
        let Some(current) = &state.0 else { return Err("NotFound".to_owned()) };
        if lease.metadata.resource_version != current.metadata.resource_version {
            return Err("Conflict".to_owned());
        }
        state.1 += 1;
        lease.metadata.resource_version = Some(state.1.to_string());
        state.0 = Some(lease.clone());
        self.1.send_replace(Some(lease.clone()));
        Ok(lease)
    }

    /// Writes a record without any checks, as a user with kubectl could.
    pub fn force(&self, record: Option<&LeaderElectionRecord>) {
        let mut state = self.0.lock();
        state.1 += 1;
        let version = state.1.to_string();
        state.0 = record.map(|record| {
            let mut lease = Lease { spec: Some(record.to_lease_spec()), ..Lease::default() };
            lease.metadata.resource_version = Some(version);
            lease
        });
        self.1.send_replace(state.0.clone());
    }
}

/// What the network does to one call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fault {
    /// How long the request is in flight; it arrives even when the caller has stopped waiting.
    pub before: Duration,
    /// How long the answer is in flight.
    pub after: Duration,
    pub lost: Lost,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lost {
    #[default]
    Nothing,
    /// The request is refused at once.
    Refused,
    /// The request never arrives and no answer comes.
    Request,
    /// The request takes effect and the connection breaks.
    Reply,
    /// The request takes effect and no answer comes.
    ReplyInSilence,
}

pub type Network = Box<dyn FnMut(&'static str) -> Fault + Send>;

/// A candidate's half.
#[derive(Clone)]
pub struct FakeLock {
    pub server: FakeServer,
    network: Arc<Mutex<Network>>,
}

impl FakeLock {
    pub fn new(server: &FakeServer, network: Network) -> Self {
        Self { server: server.clone(), network: Arc::new(Mutex::new(network)) }
    }

    async fn send<T: Send + 'static>(
        &self,
        operation: &'static str,
        apply: impl FnOnce(&FakeServer) -> Result<T, String> + Send + 'static,
    ) -> Result<T, LockError> {
        let fault = (self.network.lock())(operation);
        let server = self.server.clone();
        // A task of its own: a request that was sent goes on without its sender.
        let answer = tokio::spawn(async move {
            sleep(fault.before).await;
            match fault.lost {
                Lost::Refused => return Err("connection refused".to_owned()),
                Lost::Request => std::future::pending().await,
                _ => {}
            }
            let result = apply(&server);
            sleep(fault.after).await;
            match fault.lost {
                Lost::Reply => Err("connection reset".to_owned()),
                Lost::ReplyInSilence => std::future::pending().await,
                _ => result,
            }
        });
        let lease = "kube-system/cronjob-controller".to_owned();
        answer.await.expect("the fake network never panics").map_err(|message| LockError::Call {
            operation,
            lease,
            source: message.into(),
        })
    }
}

impl LeaseLock for FakeLock {
    async fn get(&self) -> Result<Option<Lease>, LockError> {
        self.send("get", |server| Ok(server.get())).await
    }

    async fn create(&self, lease: &Lease) -> Result<Lease, LockError> {
        let lease = lease.clone();
        self.send("create", move |server| server.create(lease)).await
    }

    async fn update(&self, lease: &Lease) -> Result<Lease, LockError> {
        let lease = lease.clone();
        self.send("update", move |server| server.update(lease)).await
    }

    fn changes(&self, _version: &str) -> BoxStream<'static, Lease> {
        let fault = (self.network.lock())("watch");
        match fault.lost {
            Lost::Nothing => self.server.changes(),
            // It ends, as every watch does, but soon.
            Lost::Refused => self.server.changes().take_until(sleep(Duration::from_secs(20))).boxed(),
            _ => pending().boxed(),
        }
    }
}
