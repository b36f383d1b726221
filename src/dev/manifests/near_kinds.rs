//! Kinds that look like one that is served, and do not exist.
//!
//! Guarantees: only groups whose kinds are known are judged. These are the groups of Kubernetes itself, since a custom resource's
//! group has a dot, and those of this program's custom resources. Compared are the kinds that `dev` serves. The version is judged in
//! groups without a dot, as Kubernetes v1.37 serves it. An object of any other group is left alone. Pure.

use std::sync::LazyLock;

use apiserver::{Resource, kinds};

use crate::api::ControllerKind;

/// The kinds that `dev` serves. They take long to make, and a repository has thousands of objects.
static STORED: LazyLock<Vec<Resource>> = LazyLock::new(kinds::all);

/// The group of CronJobs, with its version.
const BATCH: &str = "batch/v1";

/// What is said of a field without a text.
pub(crate) const MISSING: &str = "is missing, or no text; every manifest needs it";

/// The groups without a dot, their versions, and their kinds that are not compared.
const GROUPS: [(&str, &[&str], &[&str]); 5] = [
    (
        "",
        &["v1"],
        &["Binding", "ComponentStatus", "Endpoints", "LimitRange", "Node", "PersistentVolume", "ReplicationController"],
    ),
    ("apps", &["v1"], &["ControllerRevision"]),
    ("autoscaling", &["v1", "v2"], &[]),
    ("batch", &["v1"], &[]),
    ("policy", &["v1"], &[]),
];

/// A kind that an author may have meant.
struct Meant<'a> {
    group: &'a str,
    api_version: String,
    kind: &'a str,
}

/// That an object's kind does not exist in its group and version, and which one is probably meant: the wrong field, and a sentence.
pub(crate) fn judge(api_version: &str, kind: &str) -> Option<(&'static str, String)> {
    judge_as(api_version, kind, "")
}

/// The same of a kind with this ending.
fn judge_as(api_version: &str, kind: &str, ending: &str) -> Option<(&'static str, String)> {
    if is_compared(group_of(api_version), kind) && is_version(api_version) {
        return None;
    }
    if kind == "CronJob" && ["batch/v1beta1", "batch/v2alpha1"].contains(&api_version) {
        let message = format!("{api_version} is not served any more; CronJobs are in batch/v1 since Kubernetes 1.21");
        return Some(("apiVersion", message));
    }
    let Some(meant) = nearest(api_version, kind) else {
        // All kinds of this group are known.
        let is_other = api_version == BATCH && ending.is_empty() && !kind.ends_with("List");
        return is_other
            .then(|| ("kind", format!("there is no {} in {BATCH}, which has CronJob and Job", kind.escape_debug())));
    };
    let field = if meant.kind == kind { "apiVersion" } else { "kind" };
    let meant = format!("{}{ending} of {}", meant.kind, meant.api_version);
    Some((field, there_is_no(api_version, &format!("{kind}{ending}"), &meant)))
}

fn there_is_no(api_version: &str, kind: &str, meant: &str) -> String {
    // Letters that nobody sees are shown.
    format!("there is no {} in {api_version}; did you mean {meant}?", kind.escape_debug())
}

/// The kind that is probably meant, of those that are compared.
fn nearest(api_version: &str, kind: &str) -> Option<Meant<'static>> {
    let group = group_of(api_version);
    let is_built_in = is_built_in(api_version);
    // Of a group with a dot that only sounds like one of Kubernetes, other kinds may be custom resources.
    let is_known = !group.contains('.') || STORED.iter().any(|known| known.group == group);
    let others = STORED.iter().filter(|_| is_known);
    let others = others.map(|of| Meant { group: &of.group, api_version: of.api_version(), kind: &of.kind });
    let is_candidate = |meant: &Meant<'_>| (is_built_in || meant.group == group) && is_near(kind, meant.kind);
    // A kind of the object's own group first, and batch/v1 before the custom resources.
    let distance = |meant: &Meant<'_>| (meant.kind != kind, meant.group != group, distance(kind, meant.kind));
    meant().into_iter().chain(others).filter(is_candidate).min_by_key(distance)
}

/// That kubectl finds no such kind for a list, and which one is probably meant: the wrong field, and a sentence.
pub(crate) fn judge_list(api_version: &str, kind: &str) -> Option<(&'static str, String)> {
    let group = group_of(api_version);
    let (item, ending) = kind.strip_suffix("List").map_or((kind, ""), |item| (item, "List"));
    if item.is_empty() {
        return (!is_version(api_version)).then(|| ("apiVersion", there_is_no(api_version, kind, "List of v1")));
    }
    let is_other = || GROUPS.iter().any(|(of, _, others)| *of == group && others.contains(&item));
    // Any kind that is served goes for a list.
    if group.contains('.') || is_compared(group, item) || is_other() && is_version(api_version) {
        return judge_as(api_version, item, ending);
    }
    let of_items = judge_as(api_version, item, ending).filter(|_| !is_near(kind, "List"));
    Some(of_items.unwrap_or_else(|| ("kind", there_is_no(api_version, kind, "List of v1"))))
}

/// The group of an `apiVersion`.
fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whether an `apiVersion` is of a group of Kubernetes itself.
pub(crate) fn is_built_in(api_version: &str) -> bool {
    let group = group_of(api_version);
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// Whether a kind of the group is compared with others.
fn is_compared(group: &str, kind: &str) -> bool {
    meant().iter().any(|meant| meant.group == group && meant.kind == kind)
        || STORED.iter().any(|known| known.group == group && known.kind == kind)
}

/// Whether Kubernetes serves this version, or may, because the group has a dot.
fn is_version(api_version: &str) -> bool {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    group.contains('.') || GROUPS.iter().any(|(of, versions, _)| *of == group && versions.contains(&version))
}

/// Whether one of the kinds that are compared is probably meant.
pub(crate) fn is_meant(kind: &str) -> bool {
    meant().iter().any(|meant| is_near(kind, meant.kind))
}

/// The kinds with a schedule, and what they start.
fn meant() -> Vec<Meant<'static>> {
    let kinds = ControllerKind::ALL.into_iter().map(|controller_kind| controller_kind.parent);
    let job = ControllerKind::CronJob.child;
    let meant = kinds.chain([job]).map(|of| Meant { group: of.group, api_version: of.api_version(), kind: of.kind });
    meant.collect()
}

/// Whether `kind` is `meant` in other letters, in the plural, or with a typing error.
fn is_near(kind: &str, meant: &str) -> bool {
    // Two changes make a Pod of a Job.
    let allowed = if meant.len() < 5 { 1 } else { 2 };
    if kind.chars().count().abs_diff(meant.len()) > allowed {
        return false;
    }
    distance(kind, meant) <= allowed
}

/// How many letters are missing, wrong, too many, or in the place of their neighbour.
fn distance(kind: &str, meant: &str) -> usize {
    strsim::osa_distance(&kind.to_ascii_lowercase(), &meant.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
