//! Runs scenarios against a server and returns its answers in a comparable form.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::dsl::{Compare, NAMESPACES, Request, Scenario, Step, Until, namespace, post};
use super::normalize::Normalizer;

/// A server that the script can run against.
pub trait Target: Sync {
    fn client(&self) -> kube::Client;
    /// The server's wall clock.
    fn now(&self) -> DateTime<Utc>;
    /// Discards history, so that older watches are refused.
    fn compact(&self) -> BoxFuture<'_, Result<(), String>>;
}

/// Answers by sentence, in the script's order.
pub type Answers = Vec<(String, Value)>;

/// The time limit of an answer, watches with their timeout included.
const LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);
/// The headers that are compared.
const HEADERS: [&str; 4] = ["content-type", "warning", "retry-after", "allow"];

struct Raw {
    status: u16,
    headers: BTreeMap<&'static str, Vec<String>>,
    body: String,
}

/// A request with a continuing answer.
type Opened = (JoinHandle<Result<Raw, String>>, Compare);

struct Run<'a> {
    target: &'a dyn Target,
    namespace: String,
    saved: HashMap<&'static str, Value>,
    opened: HashMap<&'static str, Opened>,
    normalizer: Normalizer,
    answers: Answers,
}

/// Runs one scenario in a namespace created for it.
pub async fn run(target: &dyn Target, scenario: &Scenario) -> Result<Answers, String> {
    let mut run = Run {
        target,
        namespace: format!("t-{}", scenario.name),
        saved: HashMap::new(),
        opened: HashMap::new(),
        normalizer: Normalizer::new(target.now()),
        answers: Vec::new(),
    };
    let made = send(&target.client(), &post(NAMESPACES, &namespace(&run.namespace)), None).await?;
    if made.status != 201 {
        return Err(format!("{}: making the namespace: {} {}", scenario.name, made.status, made.body));
    }
    for (index, step) in scenario.steps.iter().enumerate() {
        run.step(index, step).await.map_err(|why| format!("{}: step {index}: {why}", scenario.name))?;
    }
    Ok(run.answers)
}

impl Run<'_> {
    async fn step(&mut self, index: usize, step: &Step) -> Result<(), String> {
        match step {
            Step::Ask(sentence, request) => {
                let raw = self.ask(request).await.map_err(|why| format!("{sentence}: {why}"))?;
                let body = parse(&raw.body);
                if let Some(id) = request.id {
                    self.saved.insert(id, body.clone());
                }
                let sent: Value = request.body.as_deref().map(parse).unwrap_or_default();
                let base = sent.pointer("/metadata/generateName").and_then(Value::as_str);
                self.record(index, sentence, &raw, body, (request.compare, base));
            }
            Step::Open(name, request) => {
                let (client, request) = (self.target.client(), self.fill(request)?);
                let (sender, headers) = tokio::sync::oneshot::channel();
                let compare = request.compare;
                let handle = tokio::spawn(async move { send(&client, &request, Some(sender)).await });
                // A failure before the headers is reported at the close.
                let _ = headers.await;
                self.opened.insert(name, (handle, compare));
            }
            Step::Close(sentence, name) => {
                let (handle, compare) = self.opened.remove(name).ok_or("was not opened")?;
                let raw = handle.await.map_err(|why| why.to_string())??;
                let body = parse(&raw.body);
                self.record(index, sentence, &raw, body, (compare, None));
            }
            Step::Race(sentence, requests) => self.race(index, sentence, requests).await?,
            Step::Compact => self.target.compact().await?,
        }
        Ok(())
    }

    async fn race(&mut self, index: usize, sentence: &str, requests: &[Request]) -> Result<(), String> {
        let answers = futures::future::join_all(requests.iter().map(|request| self.ask(request))).await;
        let mut outcomes = Vec::new();
        for raw in answers {
            let raw = raw.map_err(|why| format!("{sentence}: {why}"))?;
            let body = parse(&raw.body);
            // The winner's object depends on which request won.
            let body = if raw.status < 300 { Value::Null } else { body };
            outcomes.push(json!({"status": raw.status, "body": self.normalizer.answer(index, None, body)}));
        }
        outcomes.sort_by_key(Value::to_string);
        self.answers.push((sentence.to_owned(), Value::Array(outcomes)));
        Ok(())
    }

    fn record(
        &mut self,
        index: usize,
        sentence: &str,
        raw: &Raw,
        body: Value,
        (compare, base): (Compare, Option<&str>),
    ) {
        // Reduced first: removed parts must not take part in the numbering.
        let body = match compare {
            Compare::All => body,
            Compare::Part(part) => part(body),
        };
        let body = self.normalizer.answer(index, base, body);
        let mut answer = json!({"status": raw.status, "body": body});
        for (name, values) in &raw.headers {
            answer[*name] = values.iter().map(|value| self.normalizer.header(value)).collect();
        }
        self.answers.push((sentence.to_owned(), answer));
    }

    async fn ask(&self, request: &Request) -> Result<Raw, String> {
        let (client, request) = (self.target.client(), self.fill(request)?);
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            let raw = send(&client, &request, None).await?;
            let is_done = match &request.until {
                None => true,
                Some(Until::Status(status)) => raw.status == *status,
                Some(Until::Is(pointer, wanted)) => parse(&raw.body).pointer(pointer).unwrap_or(&Value::Null) == wanted,
            };
            // A condition that was not met in time shows as a difference.
            if is_done || tokio::time::Instant::now() > deadline {
                return Ok(raw);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The request with its `${…}` placeholders replaced.
    fn fill(&self, request: &Request) -> Result<Request, String> {
        let mut filled = request.clone();
        filled.path = self.fill_text(&request.path)?;
        filled.body = request.body.as_deref().map(|body| self.fill_text(body)).transpose()?;
        Ok(filled)
    }

    fn fill_text(&self, text: &str) -> Result<String, String> {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let (name, tail) = after.split_once('}').ok_or("an open ${")?;
            out.push_str(before);
            match name.split_once(':') {
                None => out.push_str(&self.namespace),
                Some((id, pointer)) => {
                    let saved = self.saved.get(id).ok_or_else(|| format!("no answer is named {id}"))?;
                    match saved.pointer(pointer) {
                        Some(Value::String(text)) => out.push_str(text),
                        Some(other) => out.push_str(&other.to_string()),
                        // A wrong answer is reported at its step; the script continues.
                        None => out.push_str("missing"),
                    }
                }
            }
            rest = tail;
        }
        Ok(out + rest)
    }
}

/// One JSON value, or a list of lines of JSON (a watch), or text.
fn parse(body: &str) -> Value {
    if let Ok(value) = serde_json::from_str(body) {
        // A watch of one event: the shape must not depend on the number.
        let is_watch_event = |value: &Value| {
            value
                .as_object()
                .is_some_and(|map| map.len() == 2 && map.contains_key("type") && map.contains_key("object"))
        };
        return if is_watch_event(&value) { json!([value]) } else { value };
    }
    let lines: Result<Vec<Value>, _> = body.lines().map(serde_json::from_str).collect();
    lines.ok().filter(|lines| !lines.is_empty()).map_or_else(|| json!(body), Value::Array)
}

/// Sends one request. Returns the status, the warnings and the body.
pub async fn exchange(client: &kube::Client, request: &Request) -> Result<(u16, Vec<String>, String), String> {
    let raw = send(client, request, None).await?;
    let quoted = |warning: &String| {
        let (_, quoted) = warning.split_once('"')?;
        Some(quoted.strip_suffix('"')?.replace("\\\"", "\"").replace("\\\\", "\\"))
    };
    let warnings = raw.headers.get("warning").into_iter().flatten().filter_map(quoted).collect();
    Ok((raw.status, warnings, raw.body))
}

async fn send(
    client: &kube::Client,
    request: &Request,
    answered: Option<tokio::sync::oneshot::Sender<()>>,
) -> Result<Raw, String> {
    let mut builder = http::Request::builder().method(request.method).uri(&request.path);
    for (name, value) in [("user-agent", "truth/1.0"), ("accept", "application/json")] {
        if !request.headers.iter().any(|(existing, _)| *existing == name) {
            builder = builder.header(name, value);
        }
    }
    // An empty value omits the header.
    for (name, value) in request.headers.iter().filter(|(_, value)| !value.is_empty()) {
        builder = builder.header(*name, value);
    }
    let body = kube::client::Body::from(request.body.clone().unwrap_or_default().into_bytes());
    collect(client.send(builder.body(body).map_err(|why| why.to_string())?), answered).await
}

async fn collect(
    sending: impl Future<Output = kube::Result<http::Response<kube::client::Body>>>,
    answered: Option<tokio::sync::oneshot::Sender<()>>,
) -> Result<Raw, String> {
    let work = async {
        let response = sending.await.map_err(|why| why.to_string())?;
        if let Some(answered) = answered {
            let _ = answered.send(());
        }
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(|why| why.to_string())?.to_bytes();
        let mut headers: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for name in HEADERS {
            let values: Vec<String> = parts
                .headers
                .get_all(name)
                .iter()
                .map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
                .collect();
            if !values.is_empty() {
                headers.insert(name, values);
            }
        }
        Ok(Raw { status: parts.status.as_u16(), headers, body: String::from_utf8_lossy(&bytes).into_owned() })
    };
    tokio::time::timeout(LIMIT, work).await.unwrap_or_else(|_| Err(format!("no answer in {LIMIT:?}")))
}
