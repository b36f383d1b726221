//! Request bodies.
//!
//! Guarantees: a body is parsed once, as JSON or YAML. Duplicate members are found. A body that cannot be parsed is rejected
//! with the real server's message; the JSON errors are Go's. The work grows with the length of the body, whatever is in it: a
//! body that is nested too deeply is rejected before it is parsed.
//!
//! Matches k8s.io/apimachinery `pkg/runtime/serializer/json` and `transformDecodeError` of k8s.io/apiserver
//! `pkg/endpoints/handlers/rest.go`.

use std::cell::{Cell, RefCell};
use std::fmt;

use apimachinery::quoting::quote;
use apimachinery::status::{self, Result};
use apimachinery::steps;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, json};

use super::flow_depth::flow_depth;
use super::kinds;
use super::registry::Resource;

/// How the server treats unknown and duplicate members (`fieldValidation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Accepts them.
    Ignore,
    /// Accepts them with a warning.
    Warn,
    /// Rejects them.
    Strict,
}

/// The media type of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`, which typed Go clients send.
    Protobuf,
}

impl Format {
    /// Parses the `Content-Type` header; an empty one means JSON.
    pub fn from_content_type(content_type: &str) -> Result<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "" | "application/json" => Ok(Self::Json),
            "application/yaml" => Ok(Self::Yaml),
            "application/vnd.kubernetes.protobuf" => Ok(Self::Protobuf),
            _ => Err(status::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json, \
                 application/yaml, application/vnd.kubernetes.protobuf",
            )),
        }
    }
}

/// A document and the paths of its duplicate members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The document; of duplicate members the last one counts.
    pub value: Value,
    /// Paths such as `spec.schedule`; those of YAML are not noted here.
    pub duplicates: Vec<String>,
    /// Whether a YAML document has any, which [`yaml_duplicates`] then finds again.
    has_repeated: bool,
}

/// Parses a JSON document.
///
/// # Errors
/// A syntax error in the words of Go's encoding/json.
pub fn parse_json(bytes: &[u8]) -> std::result::Result<Document, String> {
    let found = Found::new(usize::MAX);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let seed = Node { place: Place::Root, found: &found };
    let value = seed.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    match value {
        Ok(value) => Ok(Document { value, duplicates: found.duplicates.into_inner(), has_repeated: false }),
        Err(error) => Err(go_error(bytes, &error)),
    }
}

/// What a YAML document may hold beyond four times its length, see [`Found::room`]. This limits the expansion of aliases.
const ALIASED: usize = 32 * 1024;

/// The deepest nesting of a document that is read. go-yaml and Go's encoding/json read 10,000 levels.
const DEEPEST: usize = 128;
/// A YAML document whose flow collections may be nested more deeply than this is not parsed. It is more than [`DEEPEST`], because
/// text in a document may look like such collections.
const DEEPEST_FLOW: usize = 1_000;

/// Parses a YAML document.
///
/// # Errors
/// A syntax error in the YAML library's words. Excessive aliasing and nesting have go-yaml's messages, whose limits are higher.
pub fn parse_yaml(bytes: &[u8]) -> std::result::Result<Document, String> {
    let too_deep = |most: usize| Err(format!("yaml: exceeded max depth of {most}"));
    if flow_depth(bytes) > DEEPEST_FLOW {
        return too_deep(DEEPEST_FLOW);
    }
    let found = Found::new(room(bytes));
    let seed = Node { place: Place::Root, found: &found };
    match seed.deserialize(serde_yaml_ng::Deserializer::from_slice(bytes)) {
        Ok(value) => Ok(Document { value, duplicates: Vec::new(), has_repeated: found.repeated.get() > 0 }),
        Err(_) if found.room.get().is_none() => Err(format!("yaml: {EXCESSIVE}")),
        Err(error) if error.to_string().starts_with("recursion limit exceeded") => too_deep(DEEPEST),
        Err(error) => Err(yaml_error(&error.to_string())),
    }
}

fn room(bytes: &[u8]) -> usize {
    bytes.len().saturating_mul(4).saturating_add(ALIASED)
}

/// So many duplicate members of a YAML document are named. Each takes a reading of its own; go-yaml names all.
const MOST_REPEATED: usize = 5;

/// The duplicate members of a YAML document that was parsed, in go-yaml's words.
pub fn yaml_duplicates(bytes: &[u8], document: &Document) -> Vec<String> {
    let most = if document.has_repeated { MOST_REPEATED } else { 0 };
    let problem = |wanted| {
        let found = Found { wanted, ..Found::new(room(bytes)) };
        let seed = Node { place: Place::Root, found: &found };
        let error = seed.deserialize(serde_yaml_ng::Deserializer::from_slice(bytes)).err()?;
        let key = quote(found.key.borrow().as_deref()?);
        Some(format!("line {}: key {key} already set in map", error.location()?.line()))
    };
    (1..=most).map_while(problem).collect()
}

/// So many duplicate members are noted.
const MOST_DUPLICATES: usize = 100;

/// go-yaml's message.
const EXCESSIVE: &str = "document contains excessive aliasing";

/// What a parser has found so far.
struct Found {
    /// The paths of the duplicate members.
    duplicates: RefCell<Vec<String>>,
    /// How many more values, member names and bytes of text the document may hold; `None` once it has exceeded the limit.
    room: Cell<Option<usize>>,
    /// How many duplicate members there are.
    repeated: Cell<usize>,
    /// The number of the one at whose value the parser is to stop, from 1; and its key, once it has.
    wanted: usize,
    key: RefCell<Option<String>>,
}

impl Found {
    fn new(room: usize) -> Self {
        let room = Cell::new(Some(room));
        Self { duplicates: RefCell::default(), room, repeated: Cell::new(0), wanted: 0, key: RefCell::default() }
    }

    /// Notes a duplicate member. Matches `saveStrictError` of sigs.k8s.io/json, which also notes each once and not more than 100.
    fn tell_duplicate(&self, place: Place<'_>) {
        let mut duplicates = self.duplicates.borrow_mut();
        if duplicates.len() < MOST_DUPLICATES {
            let path = place.path();
            if !duplicates.contains(&path) {
                duplicates.push(path);
            }
        }
    }

    /// Counts a duplicate member, and says whether the parser is to stop.
    fn stops_at(&self, key: &str) -> bool {
        self.repeated.set(self.repeated.get() + 1);
        let stops = self.repeated.get() == self.wanted;
        if stops {
            *self.key.borrow_mut() = Some(key.to_owned());
        }
        stops
    }

    fn take<E: Error>(&self, size: usize) -> std::result::Result<(), E> {
        let rest = self.room.get().and_then(|room| room.checked_sub(size));
        self.room.set(rest);
        rest.map(drop).ok_or_else(|| E::custom(EXCESSIVE))
    }
}

/// The position of the parser. It is formatted only for duplicate members.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root,
    Member(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    fn path(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Member(Place::Root, name) => (*name).to_owned(),
            Self::Member(parent, name) => format!("{}.{name}", parent.path()),
            Self::Item(parent, index) => format!("{}[{index}]", parent.path()),
        }
    }
}

struct Node<'a> {
    place: Place<'a>,
    found: &'a Found,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Value, D::Error> {
        steps::add(1);
        self.found.take(1)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> std::result::Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> std::result::Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> std::result::Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> std::result::Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> std::result::Result<Value, E> {
        self.found.take(value.len())?;
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> std::result::Result<Value, E> {
        self.found.take(value.len())?;
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> std::result::Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let place = Place::Item(&self.place, items.len());
            match access.next_element_seed(Node { place, found: self.found })? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> std::result::Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.found.take(1 + key.len())?;
            let place = Place::Member(&self.place, &key);
            let is_duplicate = map.contains_key(&key);
            if is_duplicate && self.found.stops_at(&key) {
                access.next_value_seed(Stop)?;
            }
            let value = access.next_value_seed(Node { place, found: self.found })?;
            if is_duplicate {
                self.found.tell_duplicate(place);
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// Takes no value, so the parser ends with an error that has the position of the value.
struct Stop;

impl<'de> DeserializeSeed<'de> for Stop {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Stop {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no second value")
    }
}

/// A syntax error in the words of Go's scanner.
fn go_error(bytes: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() || bytes.is_empty() {
        return "unexpected end of JSON input".to_owned();
    }
    let text = error.to_string();
    if text.starts_with("recursion limit exceeded") {
        return "exceeded max depth".to_owned();
    }
    // Go's scanner counts bytes.
    let line = bytes.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let text_line: String = line.iter().map(|byte| char::from(*byte)).collect();
    let column = error.column().saturating_sub(1);
    if text.contains("expected ident") {
        return literal_error(&text_line, column);
    }
    let context = if text.contains("key must be a string") {
        "looking for beginning of object key string"
    } else if text.contains("expected `,` or `}`") {
        "after object key:value pair"
    } else if text.contains("expected `,` or `]`") {
        "after array element"
    } else if text.contains("expected `:`") {
        "after object key"
    } else if text.contains("trailing characters") {
        "after top-level value"
    } else {
        "looking for beginning of value"
    };
    match text_line.chars().nth(column) {
        Some(c) => format!("invalid character '{}' {context}", quote(&c.to_string()).trim_matches('"')),
        None => "unexpected end of JSON input".to_owned(),
    }
}

/// The error for a word that begins like `null`, `true` or `false` and continues differently.
fn literal_error(line: &str, column: usize) -> String {
    let chars: Vec<char> = line.chars().collect();
    let start = (0..=column.min(chars.len().saturating_sub(1)))
        .rev()
        .take_while(|i| chars[*i].is_ascii_alphabetic())
        .last()
        .unwrap_or(column);
    let word = ["null", "true", "false"].into_iter().find(|word| chars.get(start) == word.chars().next().as_ref());
    let found = word.and_then(|word| {
        let wrong = word.chars().enumerate().find(|(i, c)| chars.get(start + i) != Some(c))?;
        Some(match chars.get(start + wrong.0) {
            Some(c) => format!("invalid character '{c}' in literal {word} (expecting '{}')", wrong.1),
            None => "unexpected end of JSON input".to_owned(),
        })
    });
    found.unwrap_or_else(|| match chars.get(column) {
        Some(c) => format!("invalid character '{c}' looking for beginning of value"),
        None => "unexpected end of JSON input".to_owned(),
    })
}

/// Converts an error of the YAML library into the words of go-yaml, which uses the same parser. go-yaml counts lines from 0 and
/// omits line 0.
fn yaml_error(error: &str) -> String {
    let (problem, place) = error.split_once(" at line ").unwrap_or((error, ""));
    let line = |text: &str| text.split([' ', ',']).next().and_then(|n| n.parse::<u32>().ok()).map_or(0, |n| n - 1);
    let context = place.split_once(" at line ").map_or(0, |(_, rest)| line(rest));
    match if context > 0 { context } else { line(place) } {
        0 => format!("yaml: {problem}"),
        line => format!("yaml: line {line}: {problem}"),
    }
}

/// The beginning of a body, for error messages. Matches `summarizeData`.
fn summary(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(30)];
    let dots = if bytes.len() > 30 { " ..." } else { "" };
    match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{dots}", String::from_utf8_lossy(cut)),
        Some(_) => {
            let hex = cut.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
            format!("{hex}{dots}")
        }
    }
}

/// Parses a document in Kubernetes' protobuf encoding.
///
/// # Errors
/// When it is malformed, or its kind is not built in.
pub fn parse_protobuf(bytes: &[u8]) -> std::result::Result<Document, String> {
    kinds::decode_protobuf(bytes).map(|value| Document { value, ..Document::default() })
}

/// A decoded object with its warnings.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// Normalized, with defaults.
    pub object: Value,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// Decodes an object that a client creates or updates.
pub fn decode_object(
    resource: &Resource,
    bytes: &[u8],
    format: Format,
    validation: FieldValidation,
) -> Result<Decoded> {
    let kind = &resource.kind;
    let unrecognized = |error: String| {
        let message =
            format!("the object provided is unrecognized (must be of type {kind}): {error} ({})", summary(bytes));
        status::bad_request(message)
    };
    let parsed = match format {
        Format::Json => parse_json(bytes).map_err(|e| format!("couldn't get version/kind; json parse error: {e}")),
        Format::Yaml => parse_yaml(bytes),
        Format::Protobuf => parse_protobuf(bytes),
    };
    let document = parsed.map_err(unrecognized)?;
    let repeated = match validation {
        FieldValidation::Ignore => Vec::new(),
        FieldValidation::Warn | FieldValidation::Strict => yaml_duplicates(bytes, &document),
    };
    let Document { mut value, duplicates, .. } = document;
    if value.is_null() {
        value = json!({});
    }
    if !value.is_object() {
        let form = if value.is_array() { "array" } else { "value" };
        let target =
            r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        let error = format!("json: cannot unmarshal {form} into Go value of type {target}");
        return Err(unrecognized(format!("couldn't get version/kind; json parse error: {error}")));
    }
    let given = given_kind(resource, &value, bytes)?;
    let refuse = |error: &str| {
        let GivenKind { kind: given_kind, version } = &given;
        let message = format!("{given_kind} in version {} cannot be handled as a {kind}: {error}", quote(version));
        status::bad_request(message)
    };
    let unknown = normalize(resource, &mut value).map_err(|error| refuse(&error))?;
    let mut problems = strict_problems(unknown, duplicates);
    if validation == FieldValidation::Strict && !(problems.is_empty() && repeated.is_empty()) {
        problems.splice(0..0, yaml_problem(&repeated));
        return Err(refuse(&format!("strict decoding error: {}", problems.join(", "))));
    }
    set_kind(resource, &mut value);
    resource.strategy.set_defaults(&mut value);
    problems.splice(0..0, repeated);
    let warnings = if validation == FieldValidation::Warn { problems } else { Vec::new() };
    Ok(Decoded { object: value, warnings })
}

/// Normalizes an object but keeps an empty `managedFields`, by which a client asks that no manager own any field.
pub fn normalize(resource: &Resource, object: &mut Value) -> std::result::Result<Vec<String>, String> {
    let given = &object["metadata"]["managedFields"];
    let reset = given.as_array().is_some_and(|list| list.is_empty() || *list == [json!({})]);
    let unknown = resource.strategy.normalize(object)?;
    if reset {
        super::meta::set(object, "managedFields", json!([]));
    }
    Ok(unknown)
}

/// The error of go-yaml with these problems, if there are any.
pub fn yaml_problem(repeated: &[String]) -> Option<String> {
    (!repeated.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {}", repeated.join("\n  ")))
}

/// Unknown and duplicate members in the words of strict decoding.
pub fn strict_problems(unknown: Vec<String>, duplicates: Vec<String>) -> Vec<String> {
    let unknown = unknown.into_iter().map(|path| format!("unknown field {}", quote(&path)));
    let duplicates = duplicates.into_iter().map(|path| format!("duplicate field {}", quote(&path)));
    unknown.chain(duplicates).collect()
}

/// Sets `kind` and `apiVersion`.
pub fn set_kind(resource: &Resource, object: &mut Value) {
    let api_version = resource.api_version();
    if object["kind"] != resource.kind {
        object["kind"] = resource.kind.as_str().into();
    }
    if object["apiVersion"] != api_version {
        object["apiVersion"] = api_version.into();
    }
}

struct GivenKind {
    kind: String,
    version: String,
}

/// The kind in the body, which must be the kind that the path serves.
fn given_kind(resource: &Resource, value: &Value, bytes: &[u8]) -> Result<GivenKind> {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    let kind = if kind.is_empty() { resource.kind.clone() } else { kind };
    let api_version = if api_version.is_empty() { resource.api_version() } else { api_version };
    let version = api_version.rsplit('/').next().unwrap_or_default().to_owned();
    if kind == resource.kind && api_version == resource.api_version() {
        return Ok(GivenKind { kind, version });
    }
    if api_version.matches('/').count() > 1 {
        let error = format!("unexpected GroupVersion string: {api_version} ({})", summary(bytes));
        let what = format!("the object provided is unrecognized (must be of type {})", resource.kind);
        return Err(status::bad_request(format!("{what}: {error}")));
    }
    let error = other_kind(resource, &api_version, &kind);
    let message = format!("{kind} in version {} cannot be handled as a {}: {error}", quote(&version), resource.kind);
    Err(status::bad_request(message))
}

/// The error for an object of a kind other than the one served.
pub fn other_kind(resource: &Resource, api_version: &str, kind: &str) -> String {
    if is_builtin(api_version, kind) {
        let group = if resource.group.is_empty() { "core" } else { resource.group.as_str() };
        return format!("converting (v1.{kind}) to ({group}.{}): unknown conversion", resource.kind);
    }
    let (kind, version) = (quote(kind), quote(api_version));
    format!("no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\"")
}

/// Whether the real server has the kind. The list is limited to kinds that are common beside CronJobs.
fn is_builtin(api_version: &str, kind: &str) -> bool {
    let kinds: &[&str] = match api_version {
        "v1" => &["ConfigMap", "Event", "Namespace", "Node", "Pod", "Secret", "Service", "ServiceAccount"],
        "batch/v1" => &["CronJob", "Job"],
        "apps/v1" => &["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"],
        "coordination.k8s.io/v1" => &["Lease"],
        "events.k8s.io/v1" => &["Event"],
        _ => &[],
    };
    kinds.contains(&kind)
}
