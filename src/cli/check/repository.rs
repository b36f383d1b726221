//! Files of a directory that are no manifests by themselves: patches of kustomize, templates, and files of other tools.
//!
//! Guarantees: only files that were found in a directory are left out; a file that the command line names is always checked. A
//! file with a whole manifest is left out only if a kustomization names it as a patch, if it is a template, or if a kind with a
//! schedule has variables for Flux. One with half a manifest is left out if no other field is a manifest's. Each file
//! is left out once, whatever refers to it. Reads the kustomizations beside and above the files.

mod kustomize;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use self::kustomize::Kustomizations;
use super::Source;
use crate::api::ControllerKind;
use crate::cli::output::count;
use crate::dev::manifests::{Document, documents, near_kinds};
use crate::options::PROGRAM;
use crate::terminal::path_text;

const CHART: &str = "Chart.yaml";

/// What was left out of the check of a directory.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// The number of files without any manifest.
    #[serde(rename = "otherFiles", skip_serializing_if = "is_zero")]
    pub(super) files: usize,
    /// What has to be rendered first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unrendered: Vec<Unrendered>,
}

/// Files that one command renders.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Unrendered {
    #[serde(skip)]
    tool: Tool,
    files: Vec<String>,
    /// The command that renders them, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tool {
    Kustomize,
    Helm,
    Flux,
    Sops,
    Helmfile,
    Jinja,
    Ytt,
    /// A template of which it does not show what renders it.
    Unknown,
}

impl Tool {
    /// What one of its files is, and what several are.
    fn noun(self) -> (&'static str, &'static str) {
        match self {
            Self::Kustomize => ("a patch of kustomize", "patches of kustomize"),
            Self::Helm => ("a template of Helm", "templates of Helm"),
            Self::Flux => ("a manifest with variables of Flux", "manifests with variables of Flux"),
            Self::Sops => ("a manifest encrypted by SOPS", "manifests encrypted by SOPS"),
            Self::Helmfile => ("a template of helmfile", "templates of helmfile"),
            Self::Jinja => ("a template of Jinja", "templates of Jinja"),
            Self::Ytt => ("a template of ytt", "templates of ytt"),
            Self::Unknown => ("a template", "templates"),
        }
    }
}

impl LeftOut {
    /// Whether nothing has to be rendered first.
    pub(super) fn is_rendered(&self) -> bool {
        self.unrendered.is_empty()
    }

    /// A line for each command that renders something for `reader`, a subcommand.
    pub(crate) fn lines(&self, reader: &str) -> impl Iterator<Item = String> {
        let verb = if reader == "check" { "check" } else { "read" };
        self.unrendered.iter().map(move |Unrendered { tool, files, command }| {
            let (one, several) = tool.noun();
            let what = match files.len() {
                1 => format!("{one} is"),
                number => format!("{number} {several} are"),
            };
            let first = files.first().map_or("", String::as_str);
            match command {
                Some(command) => {
                    format!("{first}: {what} not read alone; to {verb} the result: {command} | {PROGRAM} {reader} -f -")
                }
                None => {
                    format!("{first}: {what} not read alone; render it, and {verb} the result: {PROGRAM} {reader} -f -")
                }
            }
        })
    }

    /// The files without manifests, for the last line.
    pub(super) fn other_files(&self) -> Option<String> {
        (self.files > 0).then(|| count(self.files, "other file"))
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Parts the files that are checked from those that are not. `paths` are those of the command line, and `read` the directories whose
/// files these are.
pub fn part(paths: &[PathBuf], read: &[PathBuf], sources: Vec<Source>) -> (Vec<Source>, LeftOut) {
    let is_named = |path: &&PathBuf| !path.is_dir();
    let text = |path: &PathBuf| if path.as_os_str() == "-" { "stdin".to_owned() } else { path_text(path) };
    let named: HashSet<String> = paths.iter().filter(is_named).map(text).collect();
    let mut directories = Directories::default();
    for directory in read {
        directories.kustomizations.read(&located(directory));
    }
    let (mut checked, mut files) = (Vec::new(), 0);
    let mut unrendered: BTreeMap<(Tool, Option<String>), Vec<String>> = BTreeMap::new();
    for source in sources {
        let role = if named.contains(&source.file) { Role::Manifest } else { directories.role_of(&source) };
        match role {
            Role::Manifest => checked.push(source),
            Role::Other => files += 1,
            Role::Unrendered(tool, command) => unrendered.entry((tool, command)).or_default().push(source.file),
        }
    }
    let of = |((tool, command), files)| Unrendered { tool, files, command };
    (checked, LeftOut { files, unrendered: unrendered.into_iter().map(of).collect() })
}

/// What a file of a directory is.
enum Role {
    Manifest,
    /// Neither a manifest nor a part of one.
    Other,
    /// A part of manifests that this command renders, if it is known.
    Unrendered(Tool, Option<String>),
}

/// The directories that were read.
#[derive(Default)]
struct Directories {
    kustomizations: Kustomizations,
    /// Whether a chart is in one.
    charts: HashMap<PathBuf, bool>,
}

impl Directories {
    fn role_of(&mut self, source: &Source) -> Role {
        let file = located(Path::new(&source.file));
        let argument = |directory: &Path| argument(directory, Path::new(&source.file).is_absolute());
        // From the nearest one on.
        let mut charts: Vec<&Path> = Vec::new();
        for above in file.ancestors().skip(1) {
            self.kustomizations.read(above);
            if *self.charts.entry(above.to_owned()).or_insert_with(|| above.join(CHART).is_file()) {
                charts.push(above);
            }
        }
        if let Some(rendering) = self.kustomizations.rendering(&file) {
            return Role::Unrendered(Tool::Kustomize, rendering.command(argument));
        }
        let is_in_templates = |chart: &&Path| file.strip_prefix(chart).is_ok_and(|path| path.starts_with("templates"));
        let is_template = source.text.contains("{{") && charts.first().is_some_and(is_in_templates);
        if is_template || is_template_alone(&source.text) {
            let tool = if is_template { Tool::Helm } else { tool_of(&file, &source.text) };
            // A chart among the dependencies of another one is rendered with that.
            let chart = || charts.last().map_or_else(|| "CHART".to_owned(), |chart| argument(chart));
            let command = match tool {
                Tool::Helm => Some(format!("helm template {}", chart())),
                Tool::Helmfile => Some(format!("helmfile -f {} template", argument(&file))),
                _ => None,
            };
            return Role::Unrendered(tool, command);
        }
        let is_description = charts.first().is_some_and(|chart| chart.join(CHART) == file);
        let is_of_chart = is_description || charts.first().is_some_and(|chart| is_values(&file, chart));
        if is_of_chart || is_assertion(&file) || is_no_manifest(&source.text) {
            Role::Other
        } else if is_encrypted(&source.text) {
            Role::Unrendered(Tool::Sops, Some("sops -d FILE".to_owned()))
        } else if has_variables(&source.text) {
            Role::Unrendered(Tool::Flux, Some("flux envsubst < FILE".to_owned()))
        } else if is_of_ytt(&source.text) {
            Role::Unrendered(Tool::Ytt, None)
        } else if is_patch(&source.text) {
            Role::Unrendered(Tool::Kustomize, None)
        } else if has_placeholder(&source.text) {
            let tool = tool_of(&file, &source.text);
            let command = (tool == Tool::Helm).then(|| "helm template CHART".to_owned());
            Role::Unrendered(tool, command)
        } else {
            Role::Manifest
        }
    }
}

/// What only Helm's templates name.
const OF_HELM: [&str; 7] = [".Values", ".Release.", ".Chart.", ".Capabilities.", ".Files.", "include \"", "define \""];

/// What a file is that is not YAML because it is a template.
pub(crate) fn template(source: &Source) -> Option<&'static str> {
    let has_begin = source.text.contains("{{") || source.text.contains("{%");
    (has_begin && is_template_alone(&source.text)).then(|| tool_of(Path::new(&source.file), &source.text).noun().0)
}

/// The tool that renders a template that is in no chart's directory of templates.
fn tool_of(file: &Path, text: &str) -> Tool {
    let is_helmfile = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("helmfile."))
        || file.extension().is_some_and(|extension| extension == "gotmpl")
        || file.parent().is_some_and(|above| above.ends_with("helmfile.d"));
    if is_helmfile || text.lines().any(|line| line == "releases:" || line == "helmfiles:") {
        Tool::Helmfile
    } else if OF_HELM.iter().any(|word| text.contains(word)) {
        Tool::Helm
    } else if is_of_jinja(text) {
        Tool::Jinja
    } else {
        Tool::Unknown
    }
}

/// Whether a text has a statement or a comment of Jinja.
fn is_of_jinja(text: &str) -> bool {
    ["{% ", "{%- ", "{# "].iter().any(|begin| text.contains(begin))
}

/// Whether a text is not YAML because it is a template.
fn is_template_alone(text: &str) -> bool {
    let has_action = text.lines().any(|line| {
        let value = line.rsplit_once(": {{").map(|(key, _)| key);
        let line = line.trim_start().trim_start_matches("- ");
        line.starts_with("{{") || is_of_jinja(line) || value.is_some_and(|key| !key.contains(['"', '\'']))
    });
    // An alias that was meant as a schedule is an error after rendering, too.
    let is_wrong = |line: &str| line.trim_start().starts_with("schedule: *");
    has_action && !text.lines().any(is_wrong) && documents(text).iter().any(|document| document.objects().is_err())
}

/// Whether a text has no manifest: neither a whole one nor one that was meant.
fn is_no_manifest(text: &str) -> bool {
    let has_line = |key: &str| text.lines().any(|line| line.starts_with(key));
    let number =
        |line: &str| line.strip_prefix("apiVersion:").and_then(|rest| rest.trim().parse::<f64>().ok()).is_some();
    if has_line("apiVersion:") && has_line("kind:") && !has_line("---") && !text.lines().any(number) {
        return false;
    }
    let objects: Result<Vec<Vec<Value>>, _> = documents(text).iter().map(Document::objects).collect();
    match objects.map(|objects| objects.concat()) {
        // A file in which one of several documents is another tool's is that tool's, unless a document is about a schedule.
        Ok(objects) => {
            let is_unrelated =
                |object: &Value| is_other(object) || !object["kind"].as_str().is_some_and(near_kinds::is_meant);
            objects.iter().any(is_other) && objects.iter().all(is_unrelated)
        }
        // Other tools have YAML of their own, with tags, and JSON with comments.
        Err(_) => !is_named(text, "apiVersion") && !is_named(text, "kind"),
    }
}

/// Whether an object is of another tool. With `apiVersion` or `kind` alone it is one, unless it looks like half a manifest: the values of
/// a chart may have a `kind`, too. A kind of Kubernetes begins with a capital letter.
fn is_other(object: &Value) -> bool {
    let is_own = |version: &str| ControllerKind::ALL.into_iter().any(|kind| kind.parent.api_version() == version);
    let is_foreign = |version: &str| !near_kinds::is_built_in(version) && !is_own(version);
    let is_small = |kind: &str| kind.starts_with(char::is_lowercase) && !near_kinds::is_meant(kind);
    let (version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
    if object["apiVersion"].is_number() && !kind.is_some_and(near_kinds::is_meant) {
        return true;
    }
    // A schema describes both.
    if object["apiVersion"].is_object() && object["kind"].is_object() {
        return true;
    }
    if kind.is_none() && version.is_some_and(is_foreign) || version.is_none() && kind.is_some_and(is_small) {
        return true;
    }
    let has = |field: &str| object.get(field).is_some_and(|value| !value.is_null());
    let is_whole = has("apiVersion") && has("kind");
    let is_half = has("apiVersion") || has("kind");
    let fields = ["apiVersion", "kind", "metadata", "spec", "status"];
    let is_bare = || object.as_object().is_some_and(|all| all.keys().all(|field| fields.contains(&field.as_str())));
    let is_kind = || object["kind"].as_str().is_some_and(near_kinds::is_meant) && is_bare();
    !(is_whole || is_half && (has("metadata") || has("spec") || is_kind()))
}

/// Whether a text has a key of this name anywhere.
fn is_named(text: &str, key: &str) -> bool {
    let is_key = |rest: &str| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':');
    text.match_indices(key).any(|(at, _)| is_key(&text[at + key.len()..]))
}

/// Whether SOPS has encrypted an object with a schedule, or its kind.
fn is_encrypted(text: &str) -> bool {
    let is_meant = |object: &Value| {
        let kind = object["kind"].as_str().unwrap_or_default();
        object["sops"].is_object() && (kind.starts_with(ENCRYPTED) || near_kinds::is_meant(kind))
    };
    text.contains(ENCRYPTED)
        && documents(text).iter().flat_map(|document| document.objects().unwrap_or_default()).any(|o| is_meant(&o))
}

/// How values begin that SOPS has encrypted.
const ENCRYPTED: &str = "ENC[";

/// Whether a file is of kuttl or Chainsaw, whose assertions are parts of objects: `00-assert.yaml`, `chainsaw-assert-1.yaml`.
fn is_assertion(file: &Path) -> bool {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let is_what = |word: &str| ["assert", "error", "errors"].contains(&word);
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_digit());
    let words: Vec<&str> = name.split('-').collect();
    match words[..] {
        ["chainsaw", what, ..] => is_what(what),
        [number, what, ..] if is_number(number) => is_what(what),
        [.., "assert"] => true,
        _ => false,
    }
}

/// Whether a file has the values of a chart: they may look like a part of a manifest.
fn is_values(file: &Path, chart: &Path) -> bool {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let directory = file.parent().and_then(|directory| directory.strip_prefix(chart).ok());
    let is_beside = directory.is_some_and(|directory| directory == Path::new("") || directory == Path::new("ci"));
    is_beside && (name.starts_with("values") || name.ends_with("values"))
}

/// Whether an object is a patch of kustomize by its own words.
fn is_patch(text: &str) -> bool {
    text.contains("$patch:") && scheduled(text).iter().any(|object| object.get("$patch").is_some())
}

/// Whether a text has code of ytt, which YAML takes for comments: the same in a script is none.
fn is_of_ytt(text: &str) -> bool {
    let code = |line: &str| {
        let at =
            if line.trim_start().starts_with("#@") { line.find("#@") } else { line.find(": #@ ").map(|at| at + 2) };
        at.map(|at| line[at..].trim_end().to_owned())
    };
    let mut codes = text.lines().filter_map(code).peekable();
    if codes.peek().is_none() {
        return false;
    }
    let objects: Vec<Value> =
        documents(text).iter().flat_map(|document| document.objects().unwrap_or_default()).collect();
    codes.any(|code| !objects.iter().any(|object| has_text(object, &code)))
}

/// Whether a text of an object has this one.
fn has_text(value: &Value, part: &str) -> bool {
    match value {
        Value::String(text) => text.contains(part),
        Value::Array(items) => items.iter().any(|item| has_text(item, part)),
        Value::Object(map) => map.values().any(|value| has_text(value, part)),
        _ => false,
    }
}

/// Whether another tool replaces something in the name, the namespace or the schedule of a kind with a schedule. Either the whole text is
/// one word such as `$NAME`, `#{NAME}#`, `__NAME__`, `<NAME>` or `((name))`, or it has `{{`, `${`, `[[` or `<%` anywhere. None of them may.
/// Without quotes, `#{NAME}#` is a comment for YAML.
fn has_placeholder(text: &str) -> bool {
    const BEGINS: [&str; 8] = ["$", "#{", "__", "((", "<", "[[", "%", "@@"];
    const ANYWHERE: [&str; 5] = ["{{", "${", "[[", "<%", "{%"];
    // `@@NAME@@` is one, and `@@daily` is not.
    let is_descriptor = |text: &str| text.starts_with("@@") && !text[2..].ends_with("@@");
    let is_word = |text: &str| {
        (text.starts_with('{') || BEGINS.iter().any(|begin| text.starts_with(begin)))
            && !is_descriptor(text)
            && text.contains(|c: char| c.is_ascii_alphabetic())
            && !text.contains(|c: char| c.is_whitespace() || c == '*' || c == ',')
    };
    let is_text = |text: &str| is_word(text) || ANYWHERE.iter().any(|begin| text.contains(begin));
    let is_replaced = |object: &Value| {
        let fields = [&object["metadata"]["name"], &object["metadata"]["namespace"], &object["spec"]["schedule"]];
        fields.into_iter().any(|value| value.as_str().is_some_and(is_text))
    };
    // Most texts have none, and are not parsed for this. A text that begins with a brace is in quotes.
    let may_have = || BEGINS.iter().chain(&["{{", "\"{", "'{"]).any(|begin| text.contains(begin));
    let is_comment = |line: &str| {
        let key = line.split_once(": #{").map(|(key, _)| key.trim_start().trim_start_matches("- "));
        key.is_some_and(|key| ["name", "namespace", "schedule"].contains(&key))
    };
    let has_comment = || text.lines().any(is_comment);
    may_have() && scheduled(text).iter().any(|object| is_replaced(object) || has_comment())
}

/// The objects of a kind with a schedule.
fn scheduled(text: &str) -> Vec<Value> {
    let is_scheduled = |object: &Value| {
        ControllerKind::ALL.into_iter().any(|controller_kind| object["kind"] == controller_kind.parent.kind)
    };
    let objects = documents(text);
    let objects = objects.iter().flat_map(|document| document.objects().unwrap_or_default());
    objects.filter(is_scheduled).collect()
}

/// Whether a kind with a schedule has variables such as `${NAME}`, which Flux replaces, in other places than those of a shell. In
/// braces they are no YAML before that.
fn has_variables(text: &str) -> bool {
    let is_broken = || documents(text).iter().any(|document| document.objects().is_err());
    text.contains("${")
        && (scheduled(text).iter().any(|object| !is_never_replaced(object) && has_variable(object))
            || is_broken() && !scheduled(&replaced(text)).is_empty())
}

/// Whether an object says that Flux replaces nothing in it.
fn is_never_replaced(object: &Value) -> bool {
    const SUBSTITUTE: &str = "kustomize.toolkit.fluxcd.io/substitute";
    let metadata = &object["metadata"];
    [&metadata["annotations"], &metadata["labels"]].iter().any(|all| all[SUBSTITUTE] == "disabled")
}

/// A text with a word in the place of each variable.
fn replaced(text: &str) -> String {
    let mut parts = text.split("${");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "x" + part.split_once('}').map_or(part, |(_, rest)| rest))
}

/// What a shell or another program in the container reads.
const FOR_CONTAINERS: [&str; 3] = ["command", "args", "env"];

fn has_variable(value: &Value) -> bool {
    match value {
        // `$${NAME}` stays `${NAME}`.
        Value::String(text) => text.match_indices("${").filter(|(at, _)| !text[..*at].ends_with('$')).any(|(at, _)| {
            let name = &text[at + 2..];
            let rest = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
            rest.len() < name.len() && rest.starts_with(['}', ':', '-', '=', '+', '?'])
        }),
        Value::Array(items) => items.iter().any(has_variable),
        Value::Object(map) => {
            map.iter().any(|(key, value)| !FOR_CONTAINERS.contains(&key.as_str()) && has_variable(value))
        }
        _ => false,
    }
}

/// An absolute path without `.` and `..`, as far as that can be told from its text: what is above the working directory counts, too.
fn located(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(plain.components().next_back(), Some(Component::Normal(_))) => {
                plain.pop();
            }
            component => plain.push(component),
        }
    }
    plain
}

/// A directory as an argument of a shell's command; from the working directory, if it is below that and not to be absolute.
fn argument(path: &Path, is_absolute: bool) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let below = path.strip_prefix(&here).ok().filter(|_| !is_absolute);
    let text = path_text(below.unwrap_or(path));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%=:,".contains(c);
    match text.as_str() {
        "" => ".".to_owned(),
        text if text.chars().all(is_plain) && !text.starts_with('-') => text.to_owned(),
        text => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests;
