//! The runtimes of the process: which work cannot delay which.
//!
//! Guarantees: tokio does not preempt, so a task that computes for a minute has its thread for a minute. The election, the plain
//! health checks, and the order in which the process starts and ends run on the runtime of [`run`](super::run)'s caller, on a
//! thread that does nothing else. The workers, and all that feeds them, have a runtime of their own, with a thread for each
//! core. TLS and metrics have one with one thread: a flood of handshakes or a long answer delays neither a renewal nor a Job. A
//! client belongs to the runtime on which it is built, and so do its connections.
//!
//! A simulation, `dev` and the tests have one runtime for all: the code is the same, and only the [`Handle`] differs.

use std::future::pending;
use std::panic::resume_unwind;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::task::AbortOnDropHandle;

use super::AppError;
use crate::sim;

/// A runtime beside the caller's. Dropping it does not wait for its tasks, which may never end.
pub struct Background {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl Background {
    /// The runtime of the workers.
    ///
    /// # Errors
    /// When the system has no threads or files for it.
    pub fn for_workers() -> Result<Self, AppError> {
        Self::start("workers", &mut Builder::new_multi_thread())
    }

    /// The runtime of TLS and metrics.
    ///
    /// # Errors
    /// When the system has no thread or files for it.
    pub fn for_serving() -> Result<Self, AppError> {
        Self::start("serving", Builder::new_multi_thread().worker_threads(1))
    }

    fn start(name: &'static str, builder: &mut Builder) -> Result<Self, AppError> {
        let runtime = builder.thread_name(name).enable_all().build();
        let runtime = runtime.map_err(|source| AppError::Runtime { name, source })?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// For [`run_on`].
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs `work` on `runtime`, and ends it when the result is dropped. A panic of `work` continues here.
pub async fn run_on<T: Send + 'static>(runtime: &Handle, work: impl Future<Output = T> + Send + 'static) -> T {
    match AbortOnDropHandle::new(runtime.spawn(sim::bind(work))).await {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime has ended, and the process with it.
            Err(_) => pending().await,
        },
    }
}
