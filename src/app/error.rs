//! What can be wrong with a process as a whole.
//!
//! Guarantee: each is one sentence for whoever reads the last line of the log.

use super::GRACE;
use crate::client::ConnectError;
use crate::leader_election::ConfigError;
use crate::metrics::MetricsError;
use crate::server::ServerError;
use crate::server::delegation::ClientCaError;
use crate::traces::TracesError;

/// Why the process could not run, or ended otherwise than it was told to.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// A listener could not be opened.
    #[error(transparent)]
    Serve(#[from] ServerError),
    /// No client for the API server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A metric of that name was registered twice.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// Traces are asked for in a way that is not there.
    #[error(transparent)]
    Traces(#[from] TracesError),
    /// The CA of client certificates cannot be used.
    #[error(transparent)]
    ClientCa(#[from] ClientCaError),
    /// The settings of the election contradict each other.
    #[error(transparent)]
    LeaderElection(#[from] ConfigError),
    /// Another process leads now.
    #[error("leader election lost")]
    LostLease,
    /// The caches are no longer kept: to work on would be to work on the past.
    #[error("an informer ended")]
    InformerEnded,
    /// The work in flight did not end.
    #[error("shutdown took longer than {} s", GRACE.as_secs())]
    SlowShutdown,
    /// A create was sent whose result is not known: the next leader must wait for it, which it does when the lease runs out.
    #[error("a create that was sent may still be committed: the lease is left to run out")]
    PendingCreates,
}

impl AppError {
    /// That the lease is left to run out is no failure of the process; it is logged.
    pub(super) fn unless_pending(self) -> Result<(), Self> {
        if !matches!(self, Self::PendingCreates) {
            return Err(self);
        }
        tracing::info!("{self}");
        Ok(())
    }
}
