//! The connection between a client and the embedded API server, with faults on demand.
//!
//! Guarantees: without a judge, a [`Wire`] passes every request unchanged. Every request is recorded ([`Ask`]) and
//! judged once, when it is sent; the judge alone decides what happens to it ([`Orders`]). Time is tokio's, and only the
//! judge may use randomness, so a run can be repeated. Streams of open watches are not requests: a test holds, releases
//! and cuts them, for one wire at a time. Holding loses no event.
//!
//! One wire models one client's network; two controllers in one test have a wire each.

use std::future::pending;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use futures::future::BoxFuture;
use futures::stream;
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tower::{BoxError, Service, ServiceExt};

/// The body of a response.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// The verb of a request, as authorization names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
}

/// A request, as described by its method and URL. The name of an object to create is in the body, so it is missing
/// here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// When it was sent.
    pub at: Instant,
    pub verb: Verb,
    /// Plural, with the subresource: `jobs`, `cronjobs/status`.
    pub resource: String,
    /// Empty for all.
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
}

impl Ask {
    fn read(method: &Method, uri: &Uri) -> Self {
        let mut parts = uri.path().split('/').skip(1);
        // The version, after the group if there is one.
        let skip = if parts.next() == Some("apis") { 2 } else { 1 };
        let mut parts: Vec<&str> = parts.skip(skip).collect();
        let mut namespace = "";
        if parts.len() > 2 && parts[0] == "namespaces" {
            namespace = parts[1];
            parts.drain(..2);
        }
        let mut parts = parts.into_iter();
        let (mut resource, name) = (parts.next().unwrap_or_default().to_owned(), parts.next().unwrap_or_default());
        for subresource in parts {
            resource = format!("{resource}/{subresource}");
        }
        let is_watch = uri.query().unwrap_or_default().split('&').any(|pair| matches!(pair, "watch=1" | "watch=true"));
        let verb = match method.as_str() {
            "POST" => Verb::Create,
            "PUT" => Verb::Update,
            "PATCH" => Verb::Patch,
            "DELETE" => Verb::Delete,
            _ if is_watch => Verb::Watch,
            _ if name.is_empty() => Verb::List,
            _ => Verb::Get,
        };
        Self { at: Instant::now(), verb, resource, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub fn is(&self, verb: Verb, resource: &str) -> bool {
        self.verb == verb && self.resource == resource
    }
}

/// How a request ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// The server answers it.
    #[default]
    Pass,
    /// The connection breaks before the request reaches the server.
    Unreachable,
    /// The server processes the request, and the connection breaks before the answer.
    AnswerLost,
    /// The connection breaks at once, and the request reaches the server all the same, after its latency.
    ArrivesLate,
    /// The request is lost, and the client gets neither answer nor error.
    Swallowed,
    /// A proxy before the server refuses it, with this code and reason.
    Refused(u16, &'static str),
    /// The server refuses it with this code, reason and message.
    Denied(u16, &'static str, &'static str),
    /// A proxy before the server is overloaded and answers 429 with this Retry-After in seconds.
    Overloaded(u32),
    /// The sender panics.
    Panic,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// The latency of the request.
    pub there: Duration,
    /// The latency of the answer.
    pub back: Duration,
    pub fate: Fate,
}

impl From<Fate> for Orders {
    fn from(fate: Fate) -> Self {
        Self { fate, ..Self::default() }
    }
}

/// Decides on requests in the order in which they are sent.
type Judge = Box<dyn FnMut(&Ask) -> Orders + Send>;

/// A handle on a connection to the server; clones share it.
#[derive(Clone)]
pub struct Wire {
    state: Arc<Mutex<State>>,
    streams: Arc<watch::Sender<Streams>>,
}

struct State {
    judge: Judge,
    asked: Vec<Ask>,
}

/// The state that open watches observe.
#[derive(Clone, Copy, Default)]
struct Streams {
    held: bool,
    /// How many times the watches were cut.
    cuts: u64,
    /// How many times watches were silenced, and of which resource at last.
    silences: u64,
    silent: &'static str,
}

impl Wire {
    pub fn new() -> Self {
        let state = State { judge: Box::new(|_| Orders::default()), asked: Vec::new() };
        Self { state: Arc::new(Mutex::new(state)), streams: Arc::new(watch::Sender::new(Streams::default())) }
    }

    /// `service` behind this wire.
    pub fn around<S>(&self, service: S) -> Wired<S> {
        Wired { wire: self.clone(), service }
    }

    /// Lets `judge` decide from now on.
    pub fn judge<O: Into<Orders>>(&self, mut judge: impl FnMut(&Ask) -> O + Send + 'static) {
        self.state.lock().judge = Box::new(move |ask| judge(ask).into());
    }

    /// Delays every answer to such a request from now on, and nothing else.
    pub fn answer_late(&self, verb: Verb, resource: &'static str, back: Duration) {
        self.judge(move |ask| Orders {
            back: if ask.is(verb, resource) { back } else { Duration::ZERO },
            ..Orders::default()
        });
    }

    /// Lets every request pass from now on.
    pub fn calm(&self) {
        self.judge(|_| Orders::default());
    }

    /// The requests of that kind so far, oldest first, whatever happened to them.
    pub fn asked(&self, verb: Verb, resource: &str) -> Vec<Ask> {
        self.state.lock().asked.iter().filter(|ask| ask.is(verb, resource)).cloned().collect()
    }

    /// All requests so far, oldest first.
    pub fn asked_for_anything(&self) -> Vec<Ask> {
        self.state.lock().asked.clone()
    }

    /// How many requests of that kind there were.
    pub fn count(&self, verb: Verb, resource: &str) -> usize {
        self.asked(verb, resource).len()
    }

    /// Breaks the open watches.
    pub fn cut_watches(&self) {
        self.streams.send_modify(|streams| streams.cuts += 1);
    }

    /// Holds back the watches' events, or releases them.
    pub fn hold_watches(&self, held: bool) {
        self.streams.send_modify(|streams| streams.held = held);
    }

    /// Lets the open watches of that resource deliver nothing more, without an end. Later ones are not affected.
    pub fn silence(&self, resource: &'static str) {
        self.streams.send_modify(|streams| {
            streams.silences += 1;
            streams.silent = resource;
        });
    }

    fn admit(&self, ask: Ask) -> Orders {
        let mut state = self.state.lock();
        let orders = (state.judge)(&ask);
        state.asked.push(ask);
        orders
    }
}

/// A service behind a [`Wire`].
#[derive(Clone)]
pub struct Wired<S> {
    wire: Wire,
    service: S,
}

impl<S, A, B> Service<Request<A>> for Wired<S>
where
    S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    A: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let ask = Ask::read(request.method(), request.uri());
        let watched_resource = (ask.verb == Verb::Watch).then(|| ask.resource.clone());
        let orders = self.wire.admit(ask);
        let (service, streams) = (self.service.clone(), self.wire.streams.subscribe());
        Box::pin(async move {
            if orders.fate == Fate::ArrivesLate {
                tokio::spawn(async move {
                    travel(orders.there).await;
                    drop(service.oneshot(request).await);
                });
                return Err("connection reset by peer".into());
            }
            travel(orders.there).await;
            match orders.fate {
                Fate::Unreachable => return Err("connection refused".into()),
                Fate::Swallowed => pending().await,
                Fate::Refused(code, reason) => return Ok(refusal(code, reason, "as ordered")),
                Fate::Denied(code, reason, message) => return Ok(refusal(code, reason, message)),
                Fate::Overloaded(seconds) => {
                    let mut refusal = refusal(429, "TooManyRequests", "as ordered");
                    refusal.headers_mut().insert(header::RETRY_AFTER, seconds.into());
                    return Ok(refusal);
                }
                Fate::Panic => panic!("as ordered"),
                Fate::Pass | Fate::AnswerLost | Fate::ArrivesLate => {}
            }
            let answer = service.oneshot(request).await.map_err(Into::into)?;
            travel(orders.back).await;
            if orders.fate == Fate::AnswerLost {
                return Err("connection reset by peer".into());
            }
            let whole = |body: B| body.map_err(Into::into).boxed_unsync();
            Ok(answer.map(|body| match watched_resource {
                Some(resource) => watched(body, resource, streams),
                None => whole(body),
            }))
        })
    }
}

/// A timer of zero duration still waits for the next millisecond.
async fn travel(time: Duration) {
    if !time.is_zero() {
        sleep(time).await;
    }
}

fn refusal(code: u16, reason: &str, message: &str) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code,
    });
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

/// A watch's body that can be held, silenced and cut.
fn watched<B>(body: B, resource: String, mut streams: watch::Receiver<Streams>) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let Streams { cuts, silences, .. } = *streams.borrow_and_update();
    let frames = stream::unfold(Some((body, resource, streams)), move |watch| async move {
        let (mut body, resource, mut streams) = watch?;
        loop {
            let now = *streams.borrow_and_update();
            if now.cuts != cuts {
                return Some((Err("connection reset by peer".into()), None));
            }
            tokio::select! {
                biased;
                changed = streams.changed() => changed.ok()?,
                frame = body.frame(), if !now.held && (now.silences == silences || now.silent != resource) => {
                    let frame: Result<Frame<Bytes>, BoxError> = frame?.map_err(Into::into);
                    return Some((frame, Some((body, resource, streams))));
                }
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

#[test]
fn a_request_is_read_from_its_method_and_its_url() {
    let rows = [
        ("POST", "/apis/batch/v1/namespaces/ns/jobs", (Verb::Create, "jobs", "ns", "")),
        ("GET", "/apis/batch/v1/namespaces/ns/jobs/x", (Verb::Get, "jobs", "ns", "x")),
        ("GET", "/apis/batch/v1/jobs?limit=5", (Verb::List, "jobs", "", "")),
        ("GET", "/apis/batch/v1/cronjobs?allowWatchBookmarks=true&watch=1", (Verb::Watch, "cronjobs", "", "")),
        ("PATCH", "/apis/batch/v1/namespaces/ns/cronjobs/x/status", (Verb::Patch, "cronjobs/status", "ns", "x")),
        ("DELETE", "/api/v1/namespaces/ns", (Verb::Delete, "namespaces", "", "ns")),
        ("PUT", "/api/v1/namespaces/ns/events/x", (Verb::Update, "events", "ns", "x")),
    ];
    for (method, url, want) in rows {
        let ask = Ask::read(&method.parse().unwrap(), &url.parse().unwrap());
        assert_eq!((ask.verb, &*ask.resource, &*ask.namespace, &*ask.name), want, "{method} {url}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_request_meets_the_fate_that_was_ordered() {
    let carried_out = Arc::new(Mutex::new(0));
    let service = {
        let carried_out = Arc::clone(&carried_out);
        tower::service_fn(move |_: Request<()>| {
            *carried_out.lock() += 1;
            async { Ok::<_, BoxError>(Response::new(Full::new(Bytes::from_static(b"done")))) }
        })
    };
    let wire = Wire::new();
    let rows = [
        (Fate::Pass, Ok((200, "done")), 1),
        (Fate::Refused(503, "ServiceUnavailable"), Ok((503, "ServiceUnavailable")), 0),
        (Fate::Unreachable, Err("connection refused"), 0),
        (Fate::AnswerLost, Err("connection reset by peer"), 1),
        (Fate::Swallowed, Err("no answer"), 0),
    ];
    for (fate, want, reaches_the_server) in rows {
        let (there, back) = (Duration::from_secs(1), Duration::from_secs(2));
        wire.judge(move |_| Orders { there, back, fate });
        let (started, before) = (Instant::now(), *carried_out.lock());
        let request = Request::get("/api/v1/namespaces/ns/events/x").body(()).unwrap();
        let answer = async {
            let answer = wire.around(service.clone()).oneshot(request).await.map_err(|error| error.to_string())?;
            let code = answer.status().as_u16();
            let text = answer.into_body().collect().await.unwrap().to_bytes();
            Ok((code, String::from_utf8_lossy(&text).into_owned()))
        };
        let answer = tokio::time::timeout(Duration::from_secs(60), answer).await;
        match (answer.unwrap_or(Err("no answer".to_owned())), want) {
            (Ok((code, text)), Ok((wanted, part))) => {
                assert!(code == wanted && text.contains(part), "{fate:?}: {text}");
            }
            (answer, want) => assert_eq!(answer.err().as_deref(), want.err(), "{fate:?}"),
        }
        assert_eq!(*carried_out.lock() - before, reaches_the_server, "{fate:?}");
        let travelled = if reaches_the_server == 1 { there + back } else { there };
        assert!(fate == Fate::Swallowed || started.elapsed() == travelled, "{fate:?}: {:?}", started.elapsed());
    }
    assert_eq!(wire.count(Verb::Get, "events"), rows.len(), "all are noted");
}

#[tokio::test(start_paused = true)]
async fn a_held_watch_loses_nothing_and_a_cut_one_breaks() {
    let (say, words) = tokio::sync::mpsc::unbounded_channel::<&str>();
    let wire = Wire::new();
    let frames = stream::unfold(words, |mut words| async {
        let word = words.recv().await?;
        Some((Ok::<_, BoxError>(Frame::data(Bytes::from(word))), words))
    });
    let mut body = watched(Box::pin(StreamBody::new(frames)), "jobs".to_owned(), wire.streams.subscribe());
    let mut next = async || {
        let frame = tokio::time::timeout(Duration::from_secs(1), body.frame()).await.ok()?;
        Some(frame.unwrap().map(|frame| frame.into_data().unwrap()).map_err(|error| error.to_string()))
    };
    say.send("one").unwrap();
    assert_eq!(next().await, Some(Ok("one".into())));
    wire.hold_watches(true);
    say.send("two").unwrap();
    assert_eq!(next().await, None, "held");
    wire.hold_watches(false);
    assert_eq!(next().await, Some(Ok("two".into())));
    wire.silence("cronjobs");
    say.send("two and a half").unwrap();
    assert_eq!(next().await, Some(Ok("two and a half".into())));
    wire.silence("jobs");
    say.send("silent").unwrap();
    assert_eq!(next().await, None, "silent");
    wire.cut_watches();
    say.send("three").unwrap();
    assert_eq!(next().await, Some(Err("connection reset by peer".to_owned())));
}
