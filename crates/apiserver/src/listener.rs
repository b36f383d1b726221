//! The server on a socket: plain HTTP/1.1, for test clients. It authenticates no client. `dev` has its own listener and checks
//! requests first (`dev::guard`).

use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::ApiServer;

/// The limit for a request's header, including the idle time before it.
const HEADER_TIMEOUT: Duration = Duration::from_secs(300);
/// The time for requests in flight after a cancel. Watches never end by themselves and are closed then.
const DRAIN: Duration = Duration::from_millis(500);
/// The pause after the system has run out of file descriptors for new connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until cancelled, then waits for them to end and closes the rest.
pub(super) async fn serve(server: ApiServer, listener: TcpListener, cancel: CancellationToken) {
    let connections = TaskTracker::new();
    while let Some(accepted) = cancel.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(connection(server.clone(), stream, cancel.clone()));
            }
            Err(error) => {
                warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

async fn connection(server: ApiServer, stream: TcpStream, cancel: CancellationToken) {
    // Watch events are small and must be sent at once.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "cannot set TCP_NODELAY");
    }
    let mut builder = auto::Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(server.into_service()));
    tokio::pin!(connection);
    tokio::select! {
        result = connection.as_mut() => {
            if let Err(error) = result {
                debug!(%error, "a connection ended");
            }
            return;
        }
        () = cancel.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    // Closes the connections of open watches.
    let _ = timeout(DRAIN, connection).await;
}
