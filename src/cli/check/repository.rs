//! Files of a directory that are no manifests by themselves: patches of kustomize, templates of Helm, and files of other tools.
//!
//! Guarantees: only files that were found in a directory are left out; a file that the command line names is always checked. A
//! file with an `apiVersion` or a `kind` is left out only if a kustomization names it as a patch, or if it is a template. Each file
//! is left out once, whatever refers to it. Reads the kustomizations beside and above the files.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::Source;
use crate::cli::output::count;
use crate::dev::manifests::{self, Document, documents};
use crate::options::PROGRAM;
use crate::terminal::path_text;

/// The names that kustomize knows.
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
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
    /// The command that renders them.
    command: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tool {
    Kustomize,
    Helm,
}

impl LeftOut {
    /// A line for each command.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.unrendered.iter().map(|Unrendered { tool, files, command }| {
            let what = match (tool, files.len()) {
                (Tool::Kustomize, 1) => "a patch of kustomize is".to_owned(),
                (Tool::Helm, 1) => "a template of Helm is".to_owned(),
                (Tool::Kustomize, number) => format!("{number} patches of kustomize are"),
                (Tool::Helm, number) => format!("{number} templates of Helm are"),
            };
            let first = files.first().map_or("", String::as_str);
            format!("{first}: {what} not checked alone; to check the result: {command} | {PROGRAM} check -f -")
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

/// Parts the files that are checked from those that are not. `paths` are those of the command line.
pub fn part(paths: &[PathBuf], sources: Vec<Source>) -> (Vec<Source>, LeftOut) {
    let is_named = |path: &&PathBuf| !path.is_dir();
    let text = |path: &PathBuf| if path.as_os_str() == "-" { "stdin".to_owned() } else { path_text(path) };
    let named: HashSet<String> = paths.iter().filter(is_named).map(text).collect();
    let mut directories = Directories::default();
    let (mut checked, mut files) = (Vec::new(), 0);
    let mut unrendered: BTreeMap<(Tool, String), Vec<String>> = BTreeMap::new();
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
    /// A part of manifests that this command renders.
    Unrendered(Tool, String),
}

/// A directory as kustomize and Helm see it.
#[derive(Default)]
struct Directory {
    patches: HashSet<PathBuf>,
    is_chart: bool,
}

/// The directories that were read.
#[derive(Default)]
struct Directories(HashMap<PathBuf, Directory>);

impl Directories {
    fn role_of(&mut self, source: &Source) -> Role {
        let file = plain(Path::new(&source.file));
        // From the nearest one on.
        let mut charts: Vec<&Path> = Vec::new();
        for above in file.ancestors().skip(1) {
            let directory = self.0.entry(above.to_owned()).or_insert_with(|| Directory::read(above));
            if directory.patches.contains(&file) {
                return Role::Unrendered(Tool::Kustomize, format!("kubectl kustomize {}", argument(above)));
            }
            if directory.is_chart {
                charts.push(above);
            }
        }
        let is_in_templates = |chart: &&Path| file.strip_prefix(chart).is_ok_and(|path| path.starts_with("templates"));
        let is_template = source.text.contains("{{") && charts.first().is_some_and(is_in_templates);
        if is_template || is_template_alone(&source.text) {
            // A chart among the dependencies of another one is rendered with that.
            let chart = charts.last().map_or_else(|| "CHART".to_owned(), |chart| argument(chart));
            return Role::Unrendered(Tool::Helm, format!("helm template {chart}"));
        }
        let is_description = charts.first().is_some_and(|chart| chart.join(CHART) == file);
        if is_description || is_no_manifest(&source.text) { Role::Other } else { Role::Manifest }
    }
}

impl Directory {
    fn read(path: &Path) -> Self {
        let read = |name: &&str| manifests::text_of(&path.join(name)).ok();
        let kustomization = KUSTOMIZATIONS.iter().find_map(read);
        let patches = kustomization.iter().flat_map(|text| patches(text)).map(|patch| plain(&path.join(patch)));
        Self { patches: patches.collect(), is_chart: path.join(CHART).is_file() }
    }
}

/// The files that a kustomization names as patches.
fn patches(kustomization: &str) -> Vec<String> {
    let objects = Document::yaml(1, kustomization.to_owned()).objects().unwrap_or_default();
    let listed = |object: &Value, field: &str| object[field].as_array().cloned().unwrap_or_default();
    let of = |object: &Value| {
        let with_path = ["patches", "patchesJson6902"].map(|field| listed(object, field)).concat();
        let paths = with_path.into_iter().map(|patch| patch.get("path").cloned().unwrap_or_default());
        paths.chain(listed(object, "patchesStrategicMerge")).collect::<Vec<_>>()
    };
    let texts = objects.iter().filter(|object| object.is_object()).flat_map(of);
    texts.filter_map(|path| path.as_str().map(str::to_owned)).collect()
}

/// Whether a text is not YAML because it is a template.
fn is_template_alone(text: &str) -> bool {
    let has_action = text.lines().any(|line| {
        let value = line.rsplit_once(": {{").map(|(key, _)| key);
        line.trim_start().trim_start_matches("- ").starts_with("{{")
            || value.is_some_and(|key| !key.contains(['"', '\'']))
    });
    has_action && documents(text).iter().any(|document| document.objects().is_err())
}

/// Whether a text is YAML, and has neither `apiVersion` nor `kind`.
fn is_no_manifest(text: &str) -> bool {
    if text.lines().any(|line| line.starts_with("apiVersion:") || line.starts_with("kind:")) {
        return false;
    }
    let objects: Result<Vec<Vec<Value>>, _> = documents(text).iter().map(Document::objects).collect();
    let objects = objects.unwrap_or_default().concat();
    let is_other = |object: &Value| object.get("apiVersion").is_none() && object.get("kind").is_none();
    !objects.is_empty() && objects.iter().all(is_other)
}

/// A path without `.` and `..`, as far as that can be told from its text.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
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

/// A directory as an argument of a shell's command.
fn argument(path: &Path) -> String {
    let text = path_text(path);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%=:,".contains(c);
    match text.as_str() {
        "" => ".".to_owned(),
        text if text.chars().all(is_plain) && !text.starts_with('-') => text.to_owned(),
        text => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests;
