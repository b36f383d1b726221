//! Discovery: API groups, resources and the server's version.
//!
//! Guarantees: the documents have the real server's form, plain and aggregated, and list exactly what is served.
//! Matches k8s.io/apiserver `pkg/endpoints/discovery` and `pkg/endpoints/discovery/aggregated`.

use serde_json::{Value, json};

use super::kinds::version_order;
use super::openapi;
use super::registry::Resource;

/// The aggregated form that kubectl asks for.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const JSON: &str = "application/json";
/// The groups in the real server's priority order.
const GROUP_ORDER: [&str; 12] = [
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "coordination.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

/// Answers /api, /apis, /version, /openapi/v3 and the paths below them with content type and document. Returns `None` if there
/// is no such document.
pub fn respond(path: &str, accept: &str, resources: &[Resource]) -> Option<(String, Value)> {
    let json = |document| Some((JSON.to_owned(), document));
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts[..] {
        ["version"] => json(version()),
        ["api" | "apis"] if wants_aggregated(accept) => {
            Some((AGGREGATED.to_owned(), aggregated(resources, parts == ["api"])))
        }
        ["api"] => json(json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
        })),
        ["apis"] => {
            let groups: Vec<Value> = groups(resources).into_iter().map(|name| group(name, resources)).collect();
            json(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] => {
            let mut document = groups(resources).contains(&name).then(|| group(name, resources))?;
            document["kind"] = "APIGroup".into();
            document["apiVersion"] = "v1".into();
            json(document)
        }
        ["api", version] => resource_list("", version, resources).and_then(json),
        ["apis", group, version] => resource_list(group, version, resources).and_then(json),
        ["openapi", "v3"] => {
            // The real server serves its index as plain text.
            openapi::respond(&parts[2..], resources).map(|index| ("text/plain; charset=utf-8".to_owned(), index))
        }
        ["openapi", "v3", ..] => openapi::respond(&parts[2..], resources).and_then(json),
        _ => None,
    }
}

/// Whether an `Accept` header prefers the aggregated form to plain JSON.
fn wants_aggregated(accept: &str) -> bool {
    let fits = |kind: &str| {
        let mut parameters: Vec<&str> = kind.split(';').map(str::trim).filter(|p| !p.starts_with("q=")).collect();
        parameters.sort_unstable();
        parameters == ["application/json", "as=APIGroupDiscoveryList", "g=apidiscovery.k8s.io", "v=v2"]
    };
    let plain = |kind: &str| matches!(kind.split(';').next().map(str::trim), Some("application/json" | "*/*"));
    accept.split(',').find(|kind| fits(kind) || (plain(kind) && !kind.contains("as="))).is_some_and(fits)
}

/// The version document. The suffix distinguishes the embedded server from a real one.
fn version() -> Value {
    json!({
        "major": "1",
        "minor": "37",
        "emulationMajor": "1",
        "emulationMinor": "37",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "36",
        "gitVersion": "v1.37.2+embedded",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// The named groups (not the core group), in order.
fn groups(resources: &[Resource]) -> Vec<&str> {
    let mut groups: Vec<&str> = resources.iter().map(|r| r.group.as_str()).filter(|group| !group.is_empty()).collect();
    groups.sort_by_key(|group| {
        (GROUP_ORDER.iter().position(|known| known == group).unwrap_or(GROUP_ORDER.len()), *group)
    });
    groups.dedup();
    groups
}

/// The versions of a group, the preferred one first.
fn versions<'a>(group: &str, resources: &'a [Resource]) -> Vec<&'a str> {
    let mut versions: Vec<&str> = Vec::new();
    for resource in resources.iter().filter(|resource| resource.group == group) {
        if !versions.contains(&resource.version.as_str()) {
            versions.push(&resource.version);
        }
    }
    versions.sort_by(|one, other| version_order(one, other));
    versions
}

fn group(name: &str, resources: &[Resource]) -> Value {
    let versions: Vec<Value> = versions(name, resources)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

/// The resources of a group and version by name.
fn of_version<'a>(group: &str, version: &str, resources: &'a [Resource]) -> Vec<&'a Resource> {
    let mut found: Vec<&Resource> = resources.iter().filter(|r| r.group == group && r.version == version).collect();
    found.sort_by(|a, b| a.plural.cmp(&b.plural));
    found
}

fn verbs(resource: &Resource) -> &'static [&'static str] {
    const ALL: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    // Namespaces have no `deletecollection`.
    const ONE_BY_ONE: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];
    if resource.strategy.is_virtual() {
        &ALL[..1]
    } else if resource.group.is_empty() && resource.plural == "namespaces" {
        &ONE_BY_ONE
    } else {
        &ALL
    }
}

/// Subresources by name, with their verbs.
fn subresources(resource: &Resource) -> Vec<(&'static str, &'static [&'static str])> {
    let mut found: Vec<(&str, &[&str])> = Vec::new();
    if resource.group.is_empty() && resource.plural == "pods" {
        found.push(("log", &["get"]));
    }
    if resource.group.is_empty() && resource.plural == "namespaces" {
        found.push(("finalize", &["update"]));
    }
    if resource.has_status {
        found.push(("status", &["get", "patch", "update"]));
    }
    found
}

/// Adds short names and categories.
fn add_names(document: &mut Value, resource: &Resource) {
    if !resource.short_names.is_empty() {
        document["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        document["categories"] = resource.categories.clone().into();
    }
}

fn resource_list(group: &str, version: &str, resources: &[Resource]) -> Option<Value> {
    let mut documents = Vec::new();
    let found = of_version(group, version, resources);
    let group_version = found.first()?.api_version();
    for resource in found {
        let mut document = json!({
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": verbs(resource),
        });
        add_names(&mut document, resource);
        if !resource.strategy.is_virtual() {
            document["storageVersionHash"] = storage_version_hash(resource).into();
        }
        documents.push(document);
        for (name, verbs) in subresources(resource) {
            documents.push(json!({
                "name": format!("{}/{name}", resource.plural),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": verbs,
            }));
        }
    }
    let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": documents});
    // The real server omits it for the core group.
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}

/// The storage version hash of group, version and kind. For built-in kinds it is the real server's.
fn storage_version_hash(resource: &Resource) -> &'static str {
    match resource.qualified_name().as_str() {
        "events" => "r2yiGXH7wu8=",
        "namespaces" => "Q3oi5N2YM8M=",
        "pods" => "xPOwRZ+Yhw8=",
        "cronjobs.batch" => "sd5LIXh4Fjs=",
        "jobs.batch" => "mudhfqk/qZY=",
        "leases.coordination.k8s.io" => "gqkMMb/YqFM=",
        _ => "",
    }
}

fn aggregated(resources: &[Resource], core: bool) -> Value {
    let names = if core { vec![""] } else { groups(resources) };
    let items: Vec<Value> = names.into_iter().map(|name| aggregated_group(name, resources)).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn aggregated_group(name: &str, resources: &[Resource]) -> Value {
    let versions: Vec<Value> = versions(name, resources)
        .into_iter()
        .map(|version| {
            let found: Vec<Value> = of_version(name, version, resources).into_iter().map(aggregated_resource).collect();
            json!({"version": version, "resources": found, "freshness": "Current"})
        })
        .collect();
    let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(resource: &Resource) -> Value {
    // The real server leaves group and version empty if they equal the list's.
    let kind = json!({"group": "", "version": "", "kind": resource.kind});
    let mut document = json!({
        "resource": resource.plural,
        "responseKind": kind,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": verbs(resource),
    });
    add_names(&mut document, resource);
    let subresources: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|(name, verbs)| json!({"subresource": name, "responseKind": kind, "verbs": verbs}))
        .collect();
    if !subresources.is_empty() {
        document["subresources"] = subresources.into();
    }
    document
}

#[cfg(test)]
mod tests;
