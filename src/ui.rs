//! `ui`: a page in a browser that shows CronJobs.
//!
//! Guarantees: the page reads and never writes, with the user's own rights to list and watch; a Prometheus is asked only where the user
//! names one. It is served on loopback only,
//! to tabs that have opened a printed link (`access`, `guard`). It needs nothing from another host. Every answer comes from the
//! parser, the rehearsal and the statistics of the controller; the page only draws. Text of objects is never HTML.
//!
//! Modules: `source` keeps the facts, `connection` knows since when they are old, `model` computes the rows. `query` selects; `groups`,
//! `heat`, `timeline`, `detail`, `effect` and `history` answer, as do `list`'s modules; `api` serves the answers. `open` sends a browser to the page. `assets` has the page; its library is vendored by version and digest
//! (assets/vendor/README.md).

mod access;
mod api;
mod connection;
mod detail;
mod effect;
mod groups;
mod guard;
mod heat;
mod history;
mod model;
mod objects;
mod open;
mod query;
mod shadow;
mod source;
mod timeline;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::{SharedClock, SystemClock};
use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use schedule::Zone;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::access::Access;
use self::history::Prometheus;
use self::model::{Board, Shell};
use self::open::{OpenError, Redirect};
use self::shadow::ShadowFile;
use self::source::Source;
use crate::cli::CliError;
use crate::cli::cluster::{self, SAME_TIME};
use crate::cli::explain::cluster_flags;
use crate::cli::options::ui::{Origin, UiConfig};
use crate::dev::Page;
use crate::dev::manifests::ManifestError;
use crate::dev::output::Output;
use crate::options::PROGRAM;
use crate::server::{Bound, ServerError, bind, not_found};

/// How long the API server may take to say what time it is.
const CLOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Why the page cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum UiError {
    /// A manifest cannot be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// There is no such cluster.
    #[error(transparent)]
    Cli(#[from] CliError),
    /// The port cannot be used.
    #[error("--port: {0}")]
    Listen(#[from] ServerError),
    /// No client for Prometheus could be made.
    #[error("--prometheus: {0}")]
    Prometheus(String),
    /// The link cannot be printed.
    #[error("the output cannot be written: {0}")]
    Output(#[source] io::Error),
}

/// Serves the page until `stop`, and prints its links. `program` is what starts this program, for the commands on the page.
///
/// # Errors
/// One sentence with the cause.
pub fn run(
    config: UiConfig,
    program: &'static str,
    output: Output,
    stop: CancellationToken,
) -> BoxFuture<'static, Result<(), UiError>> {
    // Boxed, so that it is compiled here, once, and not again in the binary.
    serve(config, program, output, stop).boxed()
}

async fn serve(
    config: UiConfig,
    program: &'static str,
    output: Output,
    stop: CancellationToken,
) -> Result<(), UiError> {
    let mut clock: SharedClock = Arc::new(SystemClock);
    let UiConfig { origin, port, open, zone, seed, prometheus, shadow } = config;
    let prometheus = prometheus.as_ref().map(Prometheus::new).transpose().map_err(UiError::Prometheus)?;
    let bound = bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)).await?.for_dev();
    let (source, informers, flags) = match origin {
        Origin::Files { paths, recursive, namespace } => {
            (Source::of_files(&paths, recursive, &namespace, &seed, &clock)?, None, String::new())
        }
        Origin::Cluster(scope) => {
            let (client, namespace) = scope.connect().await?;
            clock = clock_of(&client, clock).await;
            let (source, informers) = Source::of_cluster(client, namespace.as_deref(), &seed);
            (source, Some(informers), cluster_flags(scope.kubeconfig.as_deref(), scope.context.as_deref()))
        }
    };
    let board = Board::new(Arc::clone(&source), zone, seed, Arc::clone(&clock), Shell { program, flags });
    if source.is_files() {
        board.refresh();
    }
    let (access, router) = page(&bound, Arc::clone(&board), prometheus, shadow.map(ShadowFile::new));
    let mut links = access.links();
    let first = links.borrow_and_update().clone();
    output.say(&first);
    if let Some(error) = output.take_failure() {
        return Err(UiError::Output(error));
    }
    let tasks = TaskTracker::new();
    if open {
        match open_browser(&first) {
            Ok(redirect) => drop(tasks.spawn(remove_when_closed(redirect, access, stop.clone()))),
            // The link is printed.
            Err(error) => tracing::warn!(%error, "the browser cannot be opened; open the link"),
        }
    }
    let ends = stop.clone();
    tasks.spawn(async move { output.say_changes("", links, &ends).await });
    tasks.spawn(board.run(stop.clone()));
    if let Some(informers) = informers {
        tasks.spawn(informers.run(source, clock, stop.clone()));
    }
    bound.serve_http(router, stop).await;
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// The time of a cluster, by which a run is late or not. Where that is this machine's, or the API server does not answer at once, it is
/// the machine's clock.
async fn clock_of(client: &Client, own: SharedClock) -> SharedClock {
    let theirs = timeout(CLOCK_TIMEOUT, cluster::now(client, &*own)).await;
    if theirs.is_ok_and(|theirs| (theirs - own.now()).abs() > SAME_TIME) {
        return cluster::clock::clock_of(client, Arc::clone(&own)).await.unwrap_or(own);
    }
    own
}

fn open_browser(link: &str) -> Result<Redirect, OpenError> {
    let redirect = Redirect::write(&open::parent(), link)?;
    redirect.open();
    Ok(redirect)
}

/// Removes the file when its link is of no use any more, or at the end.
async fn remove_when_closed(redirect: Redirect, access: Arc<Access>, stop: CancellationToken) {
    let _ = stop.run_until_cancelled(access.closed()).await;
    drop(redirect);
}

/// Serves the page of all CronJobs of an API server until `cancel`. Nothing is read before someone opens the page.
///
/// # Errors
/// When no port can be bound.
pub fn beside(
    client: Client,
    kubeconfig: PathBuf,
    clock: SharedClock,
    cancel: CancellationToken,
) -> BoxFuture<'static, Result<Page, ServerError>> {
    start_beside(client, kubeconfig, clock, cancel).boxed()
}

async fn start_beside(
    client: Client,
    kubeconfig: PathBuf,
    clock: SharedClock,
    cancel: CancellationToken,
) -> Result<Page, ServerError> {
    let bound = bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).await?.for_dev();
    let seed = "".into();
    let (source, informers) = Source::of_cluster(client, None, &seed);
    let shell = Shell { program: PROGRAM, flags: cluster_flags(Some(&kubeconfig), None) };
    let board = Board::new(Arc::clone(&source), Zone::UTC, seed, Arc::clone(&clock), shell);
    let (access, router) = page(&bound, Arc::clone(&board), None, None);
    let work = async move {
        let opened = cancel.clone();
        let shown = async move {
            if opened.run_until_cancelled(board.opened.cancelled()).await.is_some() {
                tokio::join!(Arc::clone(&board).run(opened.clone()), informers.run(source, clock, opened));
            }
        };
        tokio::join!(shown, bound.serve_http(router, cancel));
    };
    Ok((access.links(), work.boxed()))
}

/// The access to a page, and what serves it.
fn page(
    bound: &Bound,
    board: Arc<Board>,
    prometheus: Option<Prometheus>,
    shadow: Option<ShadowFile>,
) -> (Arc<Access>, Router) {
    let access = Arc::new(Access::new(bound.local_addr()));
    let router = Router::new()
        .route("/", get(async || with_type("text/html; charset=utf-8", INDEX)))
        .route("/assets/{*path}", get(async |Path(path): Path<String>| asset(&path)))
        .merge(api::router(board, prometheus, shadow))
        .fallback(async || not_found());
    (Arc::clone(&access), guard::guarded(router, access))
}

const INDEX: &str = include_str!("ui/assets/index.html");
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The files of the page.
const ASSETS: [(&str, &str, &str); 18] = [
    ("style.css", "text/css; charset=utf-8", include_str!("ui/assets/style.css")),
    ("icon.svg", "image/svg+xml", include_str!("ui/assets/icon.svg")),
    ("app.js", SCRIPT, include_str!("ui/assets/app.js")),
    ("session.js", SCRIPT, include_str!("ui/assets/session.js")),
    ("state.js", SCRIPT, include_str!("ui/assets/state.js")),
    ("words.js", SCRIPT, include_str!("ui/assets/words.js")),
    ("table.js", SCRIPT, include_str!("ui/assets/table.js")),
    ("strip.js", SCRIPT, include_str!("ui/assets/strip.js")),
    ("night.js", SCRIPT, include_str!("ui/assets/night.js")),
    ("shadow.js", SCRIPT, include_str!("ui/assets/shadow.js")),
    ("groups.js", SCRIPT, include_str!("ui/assets/groups.js")),
    ("lanes.js", SCRIPT, include_str!("ui/assets/lanes.js")),
    ("logs.js", SCRIPT, include_str!("ui/assets/logs.js")),
    ("heat.js", SCRIPT, include_str!("ui/assets/heat.js")),
    ("timeline.js", SCRIPT, include_str!("ui/assets/timeline.js")),
    ("detail.js", SCRIPT, include_str!("ui/assets/detail.js")),
    ("virtual.js", SCRIPT, include_str!("ui/assets/virtual.js")),
    ("vendor/htm-preact-3.1.1.js", SCRIPT, include_str!("ui/assets/vendor/htm-preact-3.1.1.js")),
];

fn asset(path: &str) -> Response {
    let found = ASSETS.iter().find(|(name, ..)| *name == path);
    found.map_or_else(not_found, |(_, content_type, text)| with_type(content_type, text))
}

fn with_type(content_type: &'static str, text: &'static str) -> Response {
    ([(http::header::CONTENT_TYPE, content_type)], text).into_response()
}

#[cfg(test)]
mod tests;
