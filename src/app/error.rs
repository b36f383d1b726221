//! Errors that end the process.
//!
//! Guarantee: each is one sentence that says enough as the last line of the log.

use crate::client::ConnectError;
use crate::leader_election::ConfigError;
use crate::leader_election::decision::LONGEST_SILENCE;
use crate::metrics::MetricsError;
use crate::server::ServerError;
use crate::server::delegation::ClientCaError;
use crate::shutdown::GRACE;
use crate::traces::TracesError;

/// Why the process could not run, or ended before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// A listener could not be opened.
    #[error(transparent)]
    Serve(#[from] ServerError),
    /// No client for the API server could be built.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A metric was registered twice.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The environment asks for a kind of tracing that is not supported.
    #[error(transparent)]
    Traces(#[from] TracesError),
    /// The CA of client certificates is unusable.
    #[error(transparent)]
    ClientCa(#[from] ClientCaError),
    /// The settings of the election contradict each other.
    #[error(transparent)]
    LeaderElection(#[from] ConfigError),
    /// The system has no threads or files for a runtime.
    #[error("starting the runtime {name}: {source}")]
    Runtime {
        /// The runtime's name.
        name: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// Another process leads now.
    #[error("leader election lost")]
    LostLease,
    /// This process cannot do its work any more, and another one leads soon.
    #[error("no worker has shown a sign of life for {} s: the lease was not renewed, and another process takes over", LONGEST_SILENCE.as_secs())]
    Hung,
    /// An informer ended: the controller would work on stale caches.
    #[error("an informer ended")]
    InformerEnded,
    /// The work in flight did not end in time.
    #[error("shutdown took longer than {} s", GRACE.as_secs())]
    SlowShutdown,
    /// The result of a create is unknown. The next leader must wait for it; it does so because the lease is left to expire.
    #[error("a create that was sent may still be committed: the lease is left to run out")]
    PendingCreates,
}

impl AppError {
    /// Leaving the lease to expire is not a failure of the process; it is logged.
    pub(super) fn unless_pending(self) -> Result<(), Self> {
        if !matches!(self, Self::PendingCreates) {
            return Err(self);
        }
        tracing::info!("{self}");
        Ok(())
    }
}
