//! The server as an HTTP service.
//!
//! Guarantees: every request gets an answer. At most the allowed size of a body is held in memory. A rejection is a metav1
//! `Status` wherever the real server sends one, and plain text where the real server sends that.

use std::collections::HashSet;
use std::convert::Infallible;
use std::pin::pin;
use std::task::{Context, Poll};

use apimachinery::quoting::quote;
use apimachinery::status::{self, Result, Status};
use axum::body::Bytes;
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, DATE, ETAG, HeaderName, IF_NONE_MATCH};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use hyper::body::Buf;
use serde_json::Value;

use super::delete::{self, DeleteOptions};
use super::negotiate::Output;
use super::object::{Document, List};
use super::pending_write::PendingWrite;
use super::query::ListOptions;
use super::registry::Resource;
use super::rest::{Call, Route, Target, Verb, route};
use super::store::{Id, Store};
use super::watch::Watch;
use super::{ApiServer, Body, log, patch, read, table, write};

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const WARNING: HeaderName = HeaderName::from_static("warning");
/// The largest body in bytes, as in the real server.
pub const MAX_BODY: usize = 3 * 1024 * 1024;

/// The warning for clients that rely on the oldest default. Matches `WarningsOnDelete` of kubernetes `pkg/registry/batch/job`.
const ORPHANS: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
                       remove them or set propagationPolicy=Orphan to suppress this warning";

/// The server as a tower service.
#[derive(Clone)]
pub struct ApiService {
    server: ApiServer,
}

impl ApiService {
    pub(super) fn new(server: ApiServer) -> Self {
        Self { server }
    }
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, std::result::Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.server.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            Ok(server.handle(Request::from_parts(parts, read(body).await)).await)
        })
    }
}

/// Reads a body, at most as far as shows that it is too large. A body that breaks off is an incomplete document and is rejected
/// as such.
async fn read<B>(body: B) -> Bytes
where
    B: http_body::Body,
    B::Data: Send,
{
    let mut bytes = Vec::new();
    let mut body = pin!(body);
    while bytes.len() <= MAX_BODY
        && let Some(frame) = body.frame().await
    {
        match frame.map(Frame::into_data) {
            Ok(Ok(mut data)) => {
                while data.has_remaining() && bytes.len() <= MAX_BODY {
                    let size = data.chunk().len().min(MAX_BODY + 1 - bytes.len());
                    bytes.extend_from_slice(&data.chunk()[..size]);
                    data.advance(size);
                }
            }
            Ok(Err(_)) => {}
            Err(_) => return Bytes::new(),
        }
    }
    bytes.into()
}

/// An answer before it is serialized.
enum Answer {
    Document(StatusCode, Document, Output),
    Log(Body),
    Watch(Box<Watch>),
}

/// Answers one request.
pub(super) async fn answer(server: &ApiServer, request: Request<Bytes>) -> Response<Body> {
    let mut response = respond_to(server, request).await;
    // The clients of a cluster whose time is not the machine's learn it from here.
    if let Ok(date) = HeaderValue::from_str(&server.now().format("%a, %d %b %Y %H:%M:%S GMT").to_string()) {
        response.headers_mut().insert(DATE, date);
    }
    response
}

async fn respond_to(server: &ApiServer, request: Request<Bytes>) -> Response<Body> {
    server.expire();
    let kinds = server.served();
    let path = request.uri().path();
    let target = match route(path, kinds.iter()) {
        Route::Target(target) => *target,
        Route::Unknown => return refusal(&status::generic(404, ""), &[]),
        Route::Other => return other(server, &request, path, &server.resources()),
    };
    let mut warnings = Vec::new();
    match dispatch(server, target, request, &mut warnings).await {
        Ok(Answer::Document(code, document, output)) => respond(code, document, output, &warnings),
        Ok(Answer::Log(body)) => {
            let mut response = Response::new(body);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
            response
        }
        Ok(Answer::Watch(watch)) => {
            let mut response = Response::new(watch.into_body());
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
            response
        }
        Err(status) => refusal(&status, &warnings),
    }
}

/// Answers health and discovery requests; 404 for anything else.
fn other(server: &ApiServer, request: &Request<Bytes>, path: &str, resources: &[Resource]) -> Response<Body> {
    if matches!(path, "/healthz" | "/livez" | "/readyz") {
        return plain(StatusCode::OK, TEXT, "ok".to_owned());
    }
    if !matches!(request.method().as_str(), "GET" | "HEAD") && path == "/version" {
        return refusal(&status::generic(405, ""), &[]);
    }
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let trimmed = if path.len() > 1 { path.trim_end_matches('/') } else { path };
    if trimmed == "/openapi/v2" && server.discovery().is_some() {
        return openapi_version_2(server, request, accept);
    }
    let document = server.discovery().and_then(|discovery| discovery(trimmed, accept, resources));
    match document {
        Some((content_type, document)) => plain(StatusCode::OK, &content_type, format!("{document}\n")),
        None if is_in_known_group(path, resources) => refusal(&status::generic(404, ""), &[]),
        None if path.starts_with("/openapi/v3/") => {
            let mut response = plain(StatusCode::NOT_FOUND, TEXT, String::new());
            response.headers_mut().remove(CONTENT_TYPE);
            response
        }
        None => plain(StatusCode::NOT_FOUND, TEXT, "404 page not found\n".to_owned()),
    }
}

/// The document of OpenAPI v2, unless the client says that it has it. Matches `ServeHTTPWithETag` of k8s.io/kube-openapi.
fn openapi_version_2(server: &ApiServer, request: &Request<Bytes>, accept: &str) -> Response<Body> {
    let document = server.inner.openapi.document(accept, &server.served());
    let known = request.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_known = known.split(',').any(|tag| tag.trim() == document.etag);
    let (code, body) =
        if is_known { (StatusCode::NOT_MODIFIED, Bytes::new()) } else { (StatusCode::OK, document.body) };
    let mut response = plain(code, document.content_type, body);
    if let Ok(etag) = HeaderValue::from_str(&document.etag) {
        response.headers_mut().insert(ETAG, etag);
    }
    response
}

/// Whether the path is below that of a group; the group's handler then words the error.
fn is_in_known_group(path: &str, resources: &[Resource]) -> bool {
    let mut parts = path.trim_matches('/').split('/');
    match (parts.next(), parts.next()) {
        (Some("api"), Some(_)) => true,
        (Some("apis"), Some(group)) => resources.iter().any(|resource| resource.group == group),
        _ => false,
    }
}

async fn dispatch(
    server: &ApiServer,
    target: Target,
    request: Request<Bytes>,
    warnings: &mut Vec<String>,
) -> Result<Answer> {
    let verb = target.verb(request.method())?;
    let call = Call::new(target, verb, request)?;
    if call.body.len() > MAX_BODY {
        return Err(status::too_large(&format!("limit is {MAX_BODY}")));
    }
    match verb {
        Verb::List => return list_or_watch(server, &call),
        Verb::Log => return log::read(server, &call).map(Answer::Log),
        _ => {}
    }
    let mut pending = PendingWrite::new(server.now());
    let outcome = loop {
        let outcome = attempt(server, verb, &call, &mut pending);
        let Some(question) = pending.take_open() else { break outcome };
        let answer = server.ask(&question).await;
        pending.learn(question, answer);
    };
    *warnings = pending.warnings;
    let (code, document) = outcome?;
    let document = table::transform(&call.target.resource, document, call.output, server.now())?;
    Ok(Answer::Document(code, document, call.output))
}

/// Attempts a verb on the current state, with the webhook answers so far.
fn attempt(server: &ApiServer, verb: Verb, call: &Call, pending: &mut PendingWrite) -> Result<(StatusCode, Document)> {
    pending.begin();
    let mut store = server.store();
    let is_write = !matches!(verb, Verb::Get);
    if is_write {
        record(&mut store)?;
    }
    let outcome = perform(&mut store, verb, call, pending);
    let outcome = outcome.map(|(code, document)| (code, shown(&store, &call.target, document)));
    server.settle(&mut store);
    if is_write {
        record(&mut store)?;
    }
    outcome
}

/// A document of stored objects in the version of the request. What a deletion has just ended is no longer served.
fn shown(store: &Store, target: &Target, document: Document) -> Document {
    match read::collection(store, &target.resource) {
        Ok(collection) => collection.shown_document(&target.resource, document),
        Err(_) => document,
    }
}

/// Records all changes. A write whose changes cannot be recorded may still be recorded later, as after a timeout of etcd.
fn record(store: &mut Store) -> Result<()> {
    let revision = store.revision;
    store.recording.flush(revision).map_err(|error| status::unknown(format!("the change cannot be recorded: {error}")))
}

/// The verbs that answer with one document.
fn perform(store: &mut Store, verb: Verb, call: &Call, pending: &mut PendingWrite) -> Result<(StatusCode, Document)> {
    let made = |written: write::Written| {
        let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
        (code, written.object)
    };
    match verb {
        Verb::Create => write::create(store, call, pending).map(made),
        Verb::Update => write::update(store, call, pending).map(made),
        Verb::Patch => patch::patch(store, call, pending).map(made),
        Verb::Delete => delete_one(store, call, &mut pending.warnings),
        Verb::DeleteCollection => delete_many(store, call).map(|list| (StatusCode::OK, Document::List(list))),
        Verb::Get | Verb::List | Verb::Log => {
            read::get(store, &call.target, &call.query).map(|object| (StatusCode::OK, Document::Object(object)))
        }
    }
}

fn delete_options(call: &Call) -> Result<DeleteOptions> {
    if call.body.is_empty() {
        return DeleteOptions::read(None, &call.query);
    }
    let parsed = match call.format()? {
        super::body::Format::Json => {
            super::body::parse_json(&call.body).map_err(|e| format!("couldn't get version/kind; json parse error: {e}"))
        }
        super::body::Format::Yaml => super::body::parse_yaml(&call.body),
        super::body::Format::Protobuf => super::body::parse_protobuf(&call.body),
    };
    let document = parsed.map_err(status::bad_request)?;
    DeleteOptions::read(Some(&document.value), &call.query)
}

fn delete_one(store: &mut Store, call: &Call, warnings: &mut Vec<String>) -> Result<(StatusCode, Document)> {
    let options = delete_options(call)?;
    let deleted = delete::delete(store, &read::id(&call.target), &options)?;
    let silent = options.propagation_policy.is_none() && options.orphan_dependents.is_none();
    if silent && call.target.resource.kind == "Job" && call.target.resource.group == "batch" {
        warnings.push(ORPHANS.to_owned());
    }
    // Only clients that use the old form get 202 while the object stays for now.
    let accepted = !deleted.gone && options.orphan_dependents == Some(false);
    Ok((if accepted { StatusCode::ACCEPTED } else { StatusCode::OK }, deleted.answer))
}

fn delete_many(store: &mut Store, call: &Call) -> Result<List> {
    let list_options = ListOptions::read(&call.query, &call.target.resource, None)?;
    let options = delete_options(call)?;
    let list = read::list(store, &call.target, &list_options)?;
    let collection = call.target.resource.qualified_name();
    for item in &list.items {
        let id = Id { collection: collection.clone(), key: super::store::key_of(&item.object()) };
        match delete::delete(store, &id, &options) {
            Err(status) if status.code != 404 => return Err(status),
            _ => {}
        }
    }
    Ok(list)
}

fn list_or_watch(server: &ApiServer, call: &Call) -> Result<Answer> {
    let target = &call.target;
    let name = Some(target.name.as_str()).filter(|name| !name.is_empty());
    let mut options = ListOptions::read(&call.query, &target.resource, name)?;
    options.watch |= target.watch_prefix;
    if options.watch {
        let watch = Watch::start(server, &target.resource, &target.namespace, options, call.output)?;
        return Ok(Answer::Watch(Box::new(watch)));
    }
    let store = server.store();
    let document = shown(&store, target, Document::List(read::list(&store, target, &options)?));
    drop(store);
    let document = table::transform(&target.resource, document, call.output, server.now())?;
    Ok(Answer::Document(StatusCode::OK, document, call.output))
}

fn plain(code: StatusCode, content_type: &str, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(text.into()).boxed_unsync());
    *response.status_mut() = code;
    let content_type = HeaderValue::from_str(content_type).unwrap_or(HeaderValue::from_static(JSON));
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn refusal(status: &Status, warnings: &[String]) -> Response<Body> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = respond(code, status.to_value().into(), Output::JSON, warnings);
    let retry = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry > 0 {
        response.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from(retry));
    }
    response
}

fn respond(code: StatusCode, document: Document, output: Output, warnings: &[String]) -> Response<Body> {
    let (content_type, text) = if output.yaml {
        ("application/yaml", yaml(&document.into_tree()).into())
    } else if output.pretty {
        (JSON, format!("{:#}", document.into_tree()).into())
    } else {
        (JSON, document.line())
    };
    let mut response = plain(code, content_type, text);
    for warning in sent(warnings) {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {}", quote(&warning))) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}

/// The longest warnings together, and of one of them where they are longer, in characters.
const ALL_WARNINGS: usize = 4096;
const ONE_WARNING: usize = 256;

/// The warnings as they are sent: each once, and cut off where they are too long together. Matches `recorder.AddWarning` of
/// k8s.io/apiserver `pkg/endpoints/filters/warning.go`.
fn sent(warnings: &[String]) -> Vec<String> {
    let cut = |warning: &String| warning.chars().take(ONE_WARNING).collect::<String>();
    let mut seen = HashSet::new();
    let distinct: Vec<&String> =
        warnings.iter().filter(|warning| !warning.is_empty() && seen.insert(*warning)).collect();
    let length = |warning: &str| warning.chars().count();
    let fits = |written: &mut usize, warning: &&&String| {
        *written += length(warning);
        *written <= ALL_WARNINGS
    };
    let whole = distinct.iter().scan(0, |written, warning| fits(written, &warning).then_some(())).count();
    if whole == distinct.len() {
        return distinct.into_iter().cloned().collect();
    }
    // All up to the one that did not fit are shortened, and then others are added until the limit is passed.
    let (first, others) = distinct.split_at(whole + 1);
    let mut sent: Vec<String> = first.iter().map(|warning| cut(warning)).collect();
    let mut written: usize = sent.iter().map(|warning| length(warning)).sum();
    for warning in others {
        if written >= ALL_WARNINGS {
            break;
        }
        let short = cut(warning);
        written += length(&short);
        sent.push(short);
    }
    sent
}

fn yaml(document: &Value) -> String {
    serde_yaml_ng::to_string(document).unwrap_or_else(|_| document.to_string())
}
