//! Loading and applying manifests.
//!
//! Guarantees: every error is one sentence with the file, the document in it (counted from 1) and, if there is one, the field.
//! Files are read as kubectl reads them, except that bytes that are not text are errors. What kubectl loses without a word is told.
//! Nothing is applied unless all manifests are valid. Changes by other clients stay, unless the manifest sets the same fields.

mod documents;
mod json;
mod lists;
pub(crate) mod near_kinds;
mod scalars;
mod text;
mod yaml;

use std::collections::HashSet;
use std::fmt;
use std::fs::DirEntry;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use apiserver::{ApiServer, Resource};
use http::Method;
use kube::Client;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tracing::{info, warn};

use super::requests::{JSON, MANAGER, MERGE_PATCH, Refusal, send, send_and_tell};
use crate::api::{ControllerKind, crd};
use crate::terminal::path_text;
pub(crate) use documents::{Content, Document, Place, documents};
pub(crate) use yaml::{TWICE, YamlError};

/// The annotation in which `kubectl apply` stores what it applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The samples that are applied if the user names no file, each for one controller.
const SAMPLES: [(ControllerKind, &str, &str); 5] = [
    (ControllerKind::CronJob, "hello.yaml", include_str!("../../manifests/samples/hello.yaml")),
    (ControllerKind::CronJob, "nightly_report.yaml", include_str!("../../manifests/samples/nightly_report.yaml")),
    (ControllerKind::CronJob, "replace_slow_sync.yaml", include_str!("../../manifests/samples/replace_slow_sync.yaml")),
    (
        ControllerKind::Tutorial,
        "tutorial/batch_v1_cronjob.yaml",
        include_str!("../../manifests/samples/tutorial/batch_v1_cronjob.yaml"),
    ),
    (
        ControllerKind::ApiExample,
        "tutorial/myapp_v1alpha1_apiexample.yaml",
        include_str!("../../manifests/samples/tutorial/myapp_v1alpha1_apiexample.yaml"),
    ),
];

/// The position of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The file.
    pub file: String,
    /// The document in the file, counted from 1.
    pub document: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", self.file, self.document)
    }
}

/// One object to apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Its position.
    pub place: Position,
    /// The object; `apiVersion`, `kind` and `metadata.name` are strings.
    pub object: Value,
}

/// Why manifests cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// A file or directory cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A directory contains no manifest.
    #[error("{}: {EMPTY}", .0.display())]
    Empty(PathBuf),
    /// No file that was read is a manifest by itself.
    #[error("{}: {NO_MANIFEST}", .0.display())]
    NoManifest(PathBuf),
    /// A document is not YAML.
    #[error("{place}: not YAML: {cause}")]
    Yaml {
        /// Its position.
        place: Position,
        /// The error, with its line in the file.
        cause: String,
    },
    /// A document is not a Kubernetes object.
    #[error("{place}: {field}: {problem}")]
    Field {
        /// Its position.
        place: Position,
        /// The field.
        field: &'static str,
        /// What is wrong with the field.
        problem: String,
    },
    /// An object cannot be read.
    #[error("{place}, {problem}")]
    Object {
        /// Its position.
        place: Position,
        /// The line, the field, and what is wrong with it.
        problem: String,
    },
    /// The API server rejects the object.
    #[error("{place}: {refusal}")]
    Refused {
        /// Its position.
        place: Position,
        /// The server's error.
        refusal: Refusal,
    },
}

impl ManifestError {
    /// The file or directory that the error is about.
    pub(crate) fn file(&self) -> String {
        match self {
            Self::Read { path, .. } | Self::Empty(path) | Self::NoManifest(path) => path_text(path),
            Self::Yaml { place, .. }
            | Self::Field { place, .. }
            | Self::Object { place, .. }
            | Self::Refused { place, .. } => place.file.clone(),
        }
    }

    /// The error without the file.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Read { source, .. } => format!("cannot be read: {source}"),
            Self::Empty(_) => EMPTY.to_owned(),
            Self::NoManifest(_) => NO_MANIFEST.to_owned(),
            Self::Yaml { cause, .. } => format!("not YAML: {cause}"),
            Self::Field { field, problem, .. } => format!("{field}: {problem}"),
            Self::Object { problem, .. } => problem.clone(),
            Self::Refused { refusal, .. } => refusal.to_string(),
        }
    }
}

/// What is wrong with files that are no manifests by themselves.
const NO_MANIFEST: &str = "no file here is a manifest with a CronJob by itself";

/// What is wrong with a directory without manifests.
const EMPTY: &str = "there is no .yaml, .yml or .json file in this directory";

/// The definitions of these controllers' custom resources.
pub fn definitions(controllers: &[ControllerKind]) -> Vec<Manifest> {
    let is_on = |definition: &Value| {
        let (group, kind) = (&definition["spec"]["group"], &definition["spec"]["names"]["kind"]);
        controllers
            .iter()
            .any(|controller_kind| *group == controller_kind.parent.group && *kind == controller_kind.parent.kind)
    };
    let place = |index| Position { file: "the definitions that are built in".to_owned(), document: index + 1 };
    let definitions = crd::all().into_iter().enumerate().filter(|(_, definition)| is_on(definition));
    definitions.map(|(index, object)| Manifest { place: place(index), object }).collect()
}

/// The embedded samples for these controllers.
///
/// # Errors
/// Only if the program was built with invalid samples.
pub fn samples(controllers: &[ControllerKind]) -> Result<Vec<Manifest>, ManifestError> {
    let mut manifests = Vec::new();
    for (_, file, text) in SAMPLES.into_iter().filter(|(controller_kind, ..)| controllers.contains(controller_kind)) {
        manifests.extend(parse(&format!("manifests/samples/{file}"), text)?);
    }
    Ok(manifests)
}

/// Loads files, stdin for `-`, and the manifests in directories in name order, as `kubectl apply -f` does.
///
/// # Errors
/// The first file that cannot be read or is not a manifest; that there is no object in any.
pub fn load(paths: &[PathBuf]) -> Result<Vec<Manifest>, ManifestError> {
    let mut manifests = Vec::new();
    for path in paths {
        for file in files(path, false)?.files {
            manifests.extend(parse(&name_of(&file), &text_of(&file)?)?);
        }
    }
    match paths.first() {
        Some(first) if manifests.is_empty() => {
            let place = Position { file: name_of(first), document: 1 };
            Err(ManifestError::Field { place, field: "kind", problem: "there is no object".to_owned() })
        }
        _ => Ok(manifests),
    }
}

/// Whether a path is that of stdin.
fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The name of a file in messages.
pub(crate) fn name_of(path: &Path) -> String {
    if is_stdin(path) { "stdin".to_owned() } else { path_text(path) }
}

/// The text of a file, or of stdin for `-`.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn text_of(path: &Path) -> Result<String, ManifestError> {
    let mut bytes = Vec::new();
    let read = if is_stdin(path) {
        std::io::stdin().read_to_end(&mut bytes).map(drop)
    } else {
        std::fs::read(path).map(|read| bytes = read)
    };
    read.map(|()| text::decode(bytes)).map_err(|source| ManifestError::Read { path: path.to_owned(), source })
}

/// What a path names.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The files in name order.
    pub files: Vec<PathBuf>,
    /// The directories that they were looked for in.
    pub directories: Vec<PathBuf>,
    /// Those of these that cannot be read, but for the first.
    pub unreadable: Vec<ManifestError>,
}

/// The file itself or stdin, or the manifests in a directory; those in the directories below it too if `recursive`.
///
/// # Errors
/// When the path cannot be read, or the directory contains no manifest.
pub(crate) fn files(path: &Path, recursive: bool) -> Result<Found, ManifestError> {
    let error = |source| ManifestError::Read { path: path.to_owned(), source };
    let mut found = Found::default();
    if is_stdin(path) || !std::fs::metadata(path).map_err(error)?.is_dir() {
        found.files.push(path.to_owned());
        return Ok(found);
    }
    let mut below = Vec::new();
    read_directory(path, &mut found.files, &mut below)?;
    found.directories.push(path.to_owned());
    while let Some(directory) = below.pop().filter(|_| recursive) {
        found.unreadable.extend(read_directory(&directory, &mut found.files, &mut below).err());
        found.directories.push(directory);
    }
    found.files.sort();
    let is_empty = found.files.is_empty() && found.unreadable.is_empty();
    if is_empty { Err(ManifestError::Empty(path.to_owned())) } else { Ok(found) }
}

/// Whether a path is a file, or a link to nothing, which is an error when it is read. A pipe would never end.
fn is_read(path: &Path) -> bool {
    path.is_file() || std::fs::metadata(path).is_err()
}

/// Whether manifests are looked for in an entry of a directory: a directory that is not hidden, as `.git` is, and not of other programs'
/// packages. Links to directories are not followed, so that there is an end.
fn is_descended(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let is_left_out = name == "node_modules" || name.as_encoded_bytes().starts_with(b".");
    !is_left_out && entry.file_type().is_ok_and(|kind| kind.is_dir())
}

/// Adds the manifests in a directory to `files`, and the directories in it where more are looked for to `directories`.
fn read_directory(path: &Path, files: &mut Vec<PathBuf>, directories: &mut Vec<PathBuf>) -> Result<(), ManifestError> {
    let error = |source| ManifestError::Read { path: path.to_owned(), source };
    for entry in std::fs::read_dir(path).map_err(error)? {
        let entry = entry.map_err(error)?;
        let file = entry.path();
        if is_descended(&entry) {
            directories.push(file);
            continue;
        }
        let is_manifest = file.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json");
        // A kustomization is not an object.
        if is_manifest && file.file_stem().is_none_or(|stem| stem != "kustomization") && is_read(&file) {
            files.push(file);
        }
    }
    Ok(())
}

/// Parses the documents of one file. Empty documents are skipped; a List yields its items.
///
/// # Errors
/// The first document that is not a manifest.
pub fn parse(file: &str, text: &str) -> Result<Vec<Manifest>, ManifestError> {
    let mut manifests = Vec::new();
    for (index, document) in documents(text).into_iter().enumerate() {
        let place = Position { file: file.to_owned(), document: index + 1 };
        let content = document.content().map_err(|error| error.of(&place))?;
        for lost in content.lost {
            warn!(%place, problem = %lost, "kubectl loses a part of this document without a word, and so it is lost here");
        }
        if let Some((field, problem)) = content.list_fault {
            return Err(ManifestError::Field { place, field, problem });
        }
        for (_, object) in content.objects {
            judge(&place, &object)?;
            manifests.push(Manifest { place: place.clone(), object });
        }
    }
    Ok(manifests)
}

impl YamlError {
    /// The error of a document at this position.
    pub(crate) fn of(&self, place: &Position) -> ManifestError {
        ManifestError::Yaml { place: place.clone(), cause: self.to_string() }
    }
}

/// Sets in a new object what the API server would set, as far as a policy depends on it. Only batch/v1 has such defaults.
pub(crate) fn set_defaults(controller_kind: ControllerKind, object: &mut Value) {
    if controller_kind != ControllerKind::CronJob {
        return;
    }
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for (field, default) in [
        ("concurrencyPolicy", json!("Allow")),
        ("successfulJobsHistoryLimit", json!(3)),
        ("failedJobsHistoryLimit", json!(1)),
    ] {
        let value = spec.entry(field).or_insert(Value::Null);
        if value.is_null() {
            *value = default;
        }
    }
}

fn judge(place: &Position, object: &Value) -> Result<(), ManifestError> {
    let fault =
        |field, problem: &str| Err(ManifestError::Field { place: place.clone(), field, problem: problem.to_owned() });
    let field = |pointer| object.pointer(pointer).filter(|value| !value.is_null());
    for (name, pointer) in [("apiVersion", "/apiVersion"), ("kind", "/kind"), ("metadata.name", "/metadata/name")] {
        match field(pointer) {
            None => return fault(name, "is missing; every manifest needs it"),
            Some(value) if value.as_str().is_none_or(str::is_empty) => {
                return fault(name, &format!("{value} is not a text; put it in quotes"));
            }
            Some(_) => {}
        }
    }
    match field("/metadata/namespace") {
        Some(value) if !value.is_string() => {
            fault("metadata.namespace", &format!("{value} is not a text; put it in quotes"))
        }
        _ => Ok(()),
    }
}

/// Applies manifests: namespaces first, then definitions of kinds, then everything else. A namespace that objects are in and that
/// does not exist is made. Existing objects are updated if `overwrite`, and otherwise kept. Objects of kinds that the server does not serve, and definitions of kinds
/// that it cannot serve, are skipped, each with a warning.
///
/// # Errors
/// The first manifest that the server rejects, or whose kind is nearly one that it serves.
pub async fn apply(server: &ApiServer, mut manifests: Vec<Manifest>, overwrite: bool) -> Result<(), ManifestError> {
    let first = ["Namespace", "CustomResourceDefinition"];
    let rank = |kind: &Value| first.iter().position(|first| kind == first).unwrap_or(first.len());
    manifests.sort_by_key(|manifest| rank(&manifest.object["kind"]));
    let client = server.client();
    let mut known = HashSet::from(["default".to_owned()]);
    for manifest in manifests {
        let Some(target) = Target::new(&server.resources(), &manifest.object) else {
            if let Some((field, problem)) = meant(&manifest.object) {
                return Err(ManifestError::Field { place: manifest.place, field, problem });
            }
            let (kind, api_version) = (&manifest.object["kind"], &manifest.object["apiVersion"]);
            warn!(place = %manifest.place, %kind, %api_version, "skipped an object of a kind that this cluster does not serve");
            continue;
        };
        let is_definition = manifest.object["kind"] == "CustomResourceDefinition";
        if let Some(namespace) = target.namespace.clone().filter(|namespace| known.insert(namespace.clone())) {
            make_namespace(&client, &namespace, &manifest.place).await;
        }
        match apply_one(&client, &target, &manifest.place, manifest.object, overwrite).await {
            Ok(()) => {}
            // Then the objects of its kind are skipped, too.
            Err(refusal) if is_definition && refusal.reason == "Invalid" => {
                warn!(place = %manifest.place, %refusal, "skipped a definition that this cluster cannot serve");
            }
            Err(refusal) => return Err(ManifestError::Refused { place: manifest.place, refusal }),
        }
    }
    Ok(())
}

/// Which kind is probably meant by that of an object, as `check` says it, with the wrong field.
fn meant(object: &Value) -> Option<(&'static str, String)> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    near_kinds::judge(text("apiVersion"), text("kind"))
}

/// Makes a namespace that no manifest defines. A refusal is told with the object that is in it.
async fn make_namespace(client: &Client, name: &str, place: &Position) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let path = format!("/api/v1/namespaces?fieldManager={MANAGER}");
    if send::<IgnoredAny>(client, Method::POST, &path, JSON, &object).await.is_ok() {
        info!(%place, namespace = name, "made a namespace that no manifest defines");
    }
}

/// The API path of an object.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    collection: String,
    namespace: Option<String>,
    name: String,
}

impl Target {
    /// The path, if the kind is served.
    fn new(resources: &[Resource], object: &Value) -> Option<Self> {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        let resource = resources.iter().find(|r| r.api_version() == api_version && r.kind == kind)?;
        let root = if resource.group.is_empty() { "/api" } else { "/apis" };
        let scope = match (resource.namespaced, text("/metadata/namespace")) {
            (false, _) => String::new(),
            (true, "") => "/namespaces/default".to_owned(),
            (true, namespace) => format!("/namespaces/{namespace}"),
        };
        Some(Self {
            collection: format!("{root}/{api_version}{scope}/{}", resource.plural),
            namespace: resource
                .namespaced
                .then(|| text("/metadata/namespace").to_owned())
                .filter(|name| !name.is_empty()),
            name: text("/metadata/name").to_owned(),
        })
    }
}

async fn apply_one(
    client: &Client,
    target: &Target,
    place: &Position,
    mut object: Value,
    overwrite: bool,
) -> Result<(), Refusal> {
    if !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = json!({});
    }
    let applied = format!("{object}\n");
    // A dump has them, and this is another object like it.
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("uid");
    }
    object["metadata"]["annotations"][LAST_APPLIED] = applied.into();
    // Strict: a misspelt field is an error; otherwise it would be dropped silently.
    let query = format!("fieldValidation=Strict&fieldManager={MANAGER}");
    let path = format!("{}?{query}", target.collection);
    let mut tell = |warning: &str| warn!(%place, warning, "the API server warns");
    let create = send_and_tell::<IgnoredAny>(client, Method::POST, &path, JSON, &object, &mut tell).await;
    match create {
        Err(refusal) if refusal.reason == "AlreadyExists" && overwrite => {
            let path = format!("{}/{}?{query}", target.collection, target.name);
            send_and_tell::<IgnoredAny>(client, Method::PATCH, &path, MERGE_PATCH, &object, &mut tell).await.map(drop)
        }
        Err(refusal) if refusal.reason == "AlreadyExists" => Ok(()),
        other => other.map(drop),
    }
}

#[cfg(test)]
mod tests;
