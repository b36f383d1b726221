//! Warnings about files of one volume that take each other's place.
//!
//! Guarantees: see the module [`warnings`](mod@super::warnings). Matches `warningsForOverlappingVirtualPaths` of k8s.io/kubernetes
//! `pkg/api/pod/warnings.go`.

use apimachinery::quoting::quote;
use serde_json::Value;

use super::warnings::COMPARED;
use crate::kinds::fields::{list, text};

/// A file and what it comes from; the latter is empty where a volume has one source.
#[derive(Clone, PartialEq)]
struct File<'a> {
    path: &'a str,
    source: String,
}

impl File<'_> {
    fn shown(&self) -> String {
        if self.source.is_empty() { quote(self.path) } else { format!("{} ({})", quote(self.path), self.source) }
    }

    /// Whether one is the other, or a directory that contains it.
    fn overlaps(&self, other: &Self) -> bool {
        let contains = |outer: &str, inner: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        !self.path.is_empty()
            && !other.path.is_empty()
            && (contains(self.path, other.path) || contains(other.path, self.path))
    }
}

/// Adds the warnings about the volumes of a Pod.
pub(super) fn of_volumes(spec: &Value, warnings: &mut Vec<String>) {
    for volume in list(spec, "volumes") {
        let name = quote(text(volume, "name"));
        let described = [
            ("configMap", format!("ConfigMap {}", quote(text(volume, "configMap.name")))),
            ("secret", format!("Secret {}", quote(text(volume, "secret.secretName")))),
            ("downwardAPI", "DownwardAPI".to_owned()),
        ];
        for (kind, description) in described {
            let files = files(&volume[kind], "");
            warn(&name, &description, files, warnings);
        }
        let mut all = Vec::new();
        for source in list(volume, "projected.sources") {
            if source.as_object().is_none_or(|kinds| kinds.values().all(Value::is_null)) {
                warnings.push(format!("volume {name} (Projected) has no sources provided"));
            }
            all.extend(projected(source));
        }
        warn(&name, "Projected", all, warnings);
    }
}

fn files<'a>(source: &'a Value, shown: &str) -> Vec<File<'a>> {
    list(source, "items").iter().map(|item| File { path: text(item, "path"), source: shown.to_owned() }).collect()
}

/// The files of a source: of the first kind that it has.
fn projected(source: &Value) -> Vec<File<'_>> {
    let has = |kind: &str, field: &str| !source[kind].is_null() && !source[kind][field].is_null();
    let one = |path, source| vec![File { path, source }];
    if has("configMap", "items") {
        let shown = format!("ConfigMap {}", quote(text(source, "configMap.name")));
        return files(&source["configMap"], &shown);
    }
    if has("secret", "items") {
        return files(&source["secret"], &format!("Secret {}", quote(text(source, "secret.name"))));
    }
    if has("downwardAPI", "items") {
        return files(&source["downwardAPI"], "DownwardAPI");
    }
    if !source["serviceAccountToken"].is_null() {
        return one(text(source, "serviceAccountToken.path"), "ServiceAccountToken".to_owned());
    }
    let bundle = &source["clusterTrustBundle"];
    if !bundle.is_null() {
        let name = bundle["name"].as_str().or_else(|| bundle["signerName"].as_str()).unwrap_or_default();
        return one(text(bundle, "path"), format!("ClusterTrustBundle {}", quote(name)));
    }
    let certificate = &source["podCertificate"];
    let parts = [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ];
    let given = parts.into_iter().map(|(name, shown)| File { path: text(certificate, name), source: shown.to_owned() });
    given.filter(|file| !file.path.is_empty()).collect()
}

fn warn(volume: &str, description: &str, files: Vec<File>, warnings: &mut Vec<String>) {
    let mut known: Vec<File> = Vec::new();
    for mut file in files.into_iter().take(COMPARED) {
        file.path = file.path.trim_end_matches('/');
        for other in known.iter().filter(|other| file.overlaps(other)) {
            let overlap = format!("{} with {}", file.shown(), other.shown());
            warnings.push(format!("volume {volume} ({description}): overlapping paths: {overlap}"));
        }
        known.push(file);
    }
}
