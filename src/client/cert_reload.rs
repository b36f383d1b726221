//! A connection whose client certificate is a file that changes.
//!
//! Guarantees: when the files that a kubeconfig names have changed and fit together, new requests use connections with
//! the new contents within a minute. Requests in flight on older connections finish normally; later requests do not use
//! those. Files that cannot be read or used change nothing; they are logged and checked again. The files are checked
//! when a request is sent, so an idle client costs nothing.
//!
//! Matches client-go `transport/cert_rotation.go`, which checks every five minutes.

use std::fs;
use std::path::PathBuf;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;
use tower::Service;
use tracing::{info, warn};

/// The longest time before a change is noticed.
const LOOK: Duration = Duration::from_secs(60);

/// A service that `make` rebuilds when one of the files has changed.
pub(super) struct Rereading<S, M> {
    service: S,
    make: M,
    files: Vec<PathBuf>,
    /// The files' contents when the service was made; `None` for a file that could not be read.
    seen: Vec<Option<Vec<u8>>>,
    next_look: Instant,
}

/// The files in which `kube` has its client certificate and key.
pub(super) fn files(kube: &kube::Config) -> Vec<PathBuf> {
    let user = &kube.auth_info;
    [&user.client_certificate, &user.client_key].into_iter().flatten().map(PathBuf::from).collect()
}

impl<S, M, E> Rereading<S, M>
where
    M: FnMut() -> Result<S, E>,
    E: std::fmt::Display,
{
    /// The service that `make` builds from `files`.
    pub(super) fn new(files: Vec<PathBuf>, mut make: M) -> Result<Self, E> {
        let seen = read(&files);
        Ok(Self { service: make()?, make, files, seen, next_look: Instant::now() + LOOK })
    }

    fn look(&mut self) {
        let now = Instant::now();
        if self.files.is_empty() || now < self.next_look {
            return;
        }
        self.next_look = now + LOOK;
        let found = read(&self.files);
        if found == self.seen {
            return;
        }
        match (self.make)() {
            Ok(service) => {
                info!(files = ?self.files, "the client certificate has changed; new connections use it");
                (self.service, self.seen) = (service, found);
            }
            Err(error) => {
                warn!(files = ?self.files, %error, "the client certificate has changed and cannot be used yet");
            }
        }
    }
}

fn read(files: &[PathBuf]) -> Vec<Option<Vec<u8>>> {
    files.iter().map(|file| fs::read(file).ok()).collect()
}

impl<S, M, E, R> Service<R> for Rereading<S, M>
where
    S: Service<R>,
    M: FnMut() -> Result<S, E>,
    E: std::fmt::Display,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.look();
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.service.call(request)
    }
}

#[cfg(test)]
mod tests;
