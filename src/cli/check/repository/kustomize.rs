//! Kustomizations: which files are their patches, and which command renders these.
//!
//! Guarantees: a command is one that kustomize runs: a Component is rendered with a kustomization that uses it, and files outside of a
//! kustomization's directory are allowed where it names some. Each kustomization is read once. Reads them beside and above the files.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::located;
use crate::dev::manifests::{self, Document};

/// The names that kustomize knows.
const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// What a kustomization names.
struct Kustomization {
    is_component: bool,
    /// The files and directories.
    named: Vec<PathBuf>,
}

/// How a patch is rendered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rendering {
    /// The directory of the kustomization; of a component that nothing uses, it is not known.
    directory: Option<PathBuf>,
    /// Whether it names files outside of its directory.
    is_unrestricted: bool,
}

impl Rendering {
    /// The command, where `argument` writes the directory.
    pub fn command(&self, argument: impl Fn(&Path) -> String) -> Option<String> {
        let flag = if self.is_unrestricted { " --load-restrictor LoadRestrictionsNone" } else { "" };
        self.directory.as_deref().map(|directory| format!("kubectl kustomize{flag} {}", argument(directory)))
    }
}

/// The kustomizations that were read.
#[derive(Default)]
pub(super) struct Kustomizations {
    known: HashMap<PathBuf, Option<Kustomization>>,
    /// The directories whose kustomizations name a patch.
    owners: HashMap<PathBuf, BTreeSet<PathBuf>>,
    /// The directories whose kustomizations use a component.
    users: HashMap<PathBuf, BTreeSet<PathBuf>>,
}

impl Kustomizations {
    /// Reads that in a directory, if there is one.
    pub fn read(&mut self, directory: &Path) {
        if self.known.contains_key(directory) {
            return;
        }
        let text = NAMES.iter().find_map(|name| manifests::text_of(&directory.join(name)).ok());
        // One that is a template cannot be read; each file that it names may be a patch.
        if let Some(text) = text.as_ref().filter(|text| text.contains("{{")) {
            let words = text.split(|c: char| c.is_whitespace() || "\"',[]{}".contains(c));
            let files = words.filter(|word| {
                let extension = Path::new(word).extension();
                extension.is_some_and(|extension| extension == "yaml" || extension == "yml")
            });
            for file in files {
                self.owners.entry(located(&directory.join(file))).or_default().insert(directory.to_owned());
            }
        }
        let objects = text.map(|text| Document::yaml(1, text).objects().unwrap_or_default());
        let Some(object) = objects.and_then(|objects| objects.into_iter().find(Value::is_object)) else {
            self.known.insert(directory.to_owned(), None);
            return;
        };
        let patches = [patches(&object), transformed(directory, &object)].concat();
        let below = |names: &[String]| names.iter().map(|name| located(&directory.join(name))).collect::<Vec<_>>();
        for patch in below(&patches) {
            self.owners.entry(patch).or_default().insert(directory.to_owned());
        }
        for component in below(&texts(&object["components"])) {
            self.users.entry(component).or_default().insert(directory.to_owned());
        }
        let named = below(&[patches, named(&object)].concat());
        let kustomization = Kustomization { is_component: object["kind"] == "Component", named };
        self.known.insert(directory.to_owned(), Some(kustomization));
    }

    /// How a file is rendered if it is a patch.
    pub fn rendering(&mut self, file: &Path) -> Option<Rendering> {
        let owners = self.owners.get(file)?;
        // The nearest one around the file, or else the first.
        let around =
            owners.iter().filter(|owner| file.starts_with(owner)).max_by_key(|owner| owner.components().count());
        let directory = self.user(around.or_else(|| owners.first())?.clone());
        let is_unrestricted = directory.as_ref().is_some_and(|directory| self.names_outside(directory));
        Some(Rendering { directory, is_unrestricted })
    }

    /// The directory itself if its kustomization is no component, or else one that uses it.
    fn user(&self, directory: PathBuf) -> Option<PathBuf> {
        let (mut seen, mut next) = (HashSet::new(), vec![directory]);
        while let Some(directory) = next.pop() {
            let kustomization = self.known.get(&directory).and_then(Option::as_ref);
            if kustomization.is_some_and(|kustomization| !kustomization.is_component) {
                return Some(directory);
            }
            if seen.insert(directory.clone()) {
                // The first one is looked at first.
                next.extend(self.users.get(&directory).into_iter().flatten().rev().cloned());
            }
        }
        None
    }

    /// Whether a kustomization, or one that it uses, names a file outside of its own directory.
    fn names_outside(&mut self, directory: &Path) -> bool {
        let (mut seen, mut next) = (HashSet::new(), vec![directory.to_owned()]);
        while let Some(directory) = next.pop() {
            if !seen.insert(directory.clone()) {
                continue;
            }
            self.read(&directory);
            let named = self.known.get(&directory).and_then(Option::as_ref).map(|own| own.named.clone());
            for path in named.into_iter().flatten() {
                if path.is_dir() {
                    next.push(path);
                } else if !path.starts_with(&directory) {
                    return true;
                }
            }
        }
        false
    }
}

/// The texts in a list.
fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// The files that a kustomization names as patches.
fn patches(object: &Value) -> Vec<String> {
    let with_path = ["patches", "patchesJson6902"].into_iter().filter_map(|field| object[field].as_array()).flatten();
    let paths = with_path.filter_map(|patch| patch["path"].as_str().map(str::to_owned));
    paths.chain(texts(&object["patchesStrategicMerge"])).collect()
}

/// The patches that the files of its transformers name, from the directory on.
fn transformed(directory: &Path, object: &Value) -> Vec<String> {
    let files = texts(&object["transformers"]).into_iter();
    let patches = files.flat_map(|file| {
        let text = manifests::text_of(&directory.join(&file)).unwrap_or_default();
        let objects = manifests::documents(&text);
        let objects = objects.iter().flat_map(|document| document.objects().unwrap_or_default());
        let path = move |object: Value| {
            let path = object["path"].as_str().filter(|_| object["kind"] == "PatchTransformer")?;
            Path::new(&file).parent().map(|above| above.join(path).to_string_lossy().into_owned())
        };
        objects.filter_map(path).collect::<Vec<_>>()
    });
    patches.collect()
}

/// The other files and the directories that it names.
fn named(object: &Value) -> Vec<String> {
    let generators =
        ["configMapGenerator", "secretGenerator"].into_iter().filter_map(|field| object[field].as_array()).flatten();
    let sources = generators.flat_map(|generator| [texts(&generator["files"]), texts(&generator["envs"])].concat());
    // A key may be before the path.
    let sources = sources.map(|source| source.split_once('=').map_or(source.clone(), |(_, path)| path.to_owned()));
    let lists =
        ["resources", "bases", "components", "crds", "configurations"].map(|field| texts(&object[field])).concat();
    lists.into_iter().filter(|name| !name.contains("://")).chain(sources).collect()
}
