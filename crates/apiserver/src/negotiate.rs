//! Content negotiation.
//!
//! Matches k8s.io/apiserver `pkg/endpoints/handlers/negotiation` and the `Accept` check of go-restful, except that this server
//! writes neither protobuf nor CBOR.

use apimachinery::quoting::quote;
use apimachinery::status::{self, Result};

use super::query::Query;

/// The real server's list of media types in messages.
const TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The media types that it adds for watches.
const STREAMS: &str = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// The transformation of an object before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// The object as it is.
    None,
    /// A table.
    Table,
    /// `PartialObjectMetadata`.
    Metadata,
    /// `PartialObjectMetadataList`.
    MetadataList,
}

/// What a table row holds of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Whether the answer is YAML; otherwise it is JSON.
    pub yaml: bool,
    /// Whether JSON is indented.
    pub pretty: bool,
    /// The transformation of the object.
    pub transform: Transform,
    /// Whether the transformed kind has version `v1beta1`; otherwise it has `v1`.
    pub beta: bool,
    /// What table rows hold.
    pub include: IncludeObject,
}

impl Output {
    /// Plain JSON.
    pub const JSON: Self =
        Self { yaml: false, pretty: false, transform: Transform::None, beta: false, include: IncludeObject::Metadata };

    /// The API version of the transformed kinds.
    pub fn api_version(self) -> &'static str {
        if self.beta { "meta.k8s.io/v1beta1" } else { "meta.k8s.io/v1" }
    }

    /// The answer to a form that the kind does not have.
    pub fn not_acceptable() -> Box<status::Status> {
        status::not_acceptable(format!("only the following media types are accepted: {TYPES}"))
    }

    /// Chooses the form from the `Accept` header.
    pub fn negotiate(accept: &str, query: &Query, user_agent: &str, streams: bool) -> Result<Self> {
        let clauses = clauses(accept);
        let knows = |clause: &Clause| media(clause).is_some() || clause.media.contains("protobuf");
        if !accept.is_empty() && !clauses.iter().any(knows) {
            let streams = if streams { STREAMS } else { "" };
            let message = format!("406: Not Acceptable\n\nAvailable representations: {TYPES}{streams}");
            return Err(status::generic(406, &message));
        }
        let found = if accept.is_empty() { Some(Self::JSON) } else { clauses.iter().find_map(form) };
        let Some(mut output) = found else {
            return Err(Self::not_acceptable());
        };
        output.pretty = output.pretty || pretty(query, user_agent);
        output.include = match query.get("includeObject") {
            None | Some("Metadata") => IncludeObject::Metadata,
            Some("Object") => IncludeObject::Object,
            Some("None") => IncludeObject::None,
            Some(other) if output.transform == Transform::Table => {
                let quoted = quote(other);
                return Err(status::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {quoted}: must be \
                     'Metadata', 'Object', 'None', or empty"
                )));
            }
            Some(_) => IncludeObject::Metadata,
        };
        Ok(output)
    }
}

struct Clause<'a> {
    media: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

/// The clauses of an `Accept` header, most preferred first.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<(f32, Clause<'_>)> = Vec::new();
    for text in accept.split(',') {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let quality = parameters.iter().find(|(key, _)| *key == "q").and_then(|(_, q)| q.parse().ok()).unwrap_or(1.0);
        if !media.is_empty() {
            clauses.push((quality, Clause { media, parameters }));
        }
    }
    clauses.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    clauses.into_iter().map(|(_, clause)| clause).collect()
}

/// Whether the media type is YAML; `None` if it is neither JSON nor YAML.
fn media(clause: &Clause<'_>) -> Option<bool> {
    match clause.media {
        "application/json" | "*/*" | "application/*" => Some(false),
        "application/yaml" => Some(true),
        _ => None,
    }
}

fn form(clause: &Clause<'_>) -> Option<Output> {
    let yaml = media(clause)?;
    let parameter = |key: &str| clause.parameters.iter().find(|(k, _)| *k == key).map(|(_, value)| *value);
    let transform = match parameter("as") {
        None => Transform::None,
        Some(kind) => {
            let known = parameter("g") == Some("meta.k8s.io") && matches!(parameter("v"), Some("v1" | "v1beta1"));
            match kind {
                _ if !known => return None,
                "Table" => Transform::Table,
                "PartialObjectMetadata" => Transform::Metadata,
                "PartialObjectMetadataList" => Transform::MetadataList,
                _ => return None,
            }
        }
    };
    if parameter("stream").is_some_and(|stream| stream != "watch") {
        return None;
    }
    let pretty = parameter("pretty") == Some("1");
    Some(Output { yaml, pretty, transform, beta: parameter("v") == Some("v1beta1"), ..Output::JSON })
}

fn pretty(query: &Query, user_agent: &str) -> bool {
    match query.get("pretty") {
        Some(text) => ["1", "t", "T", "true", "TRUE", "True"].contains(&text),
        None => ["curl", "Wget", "Mozilla/5.0"].iter().any(|known| user_agent.starts_with(known)),
    }
}
