//! Kinds that look like one that is served, and do not exist.
//!
//! Guarantees: only groups whose kinds are known are judged. These are the groups of Kubernetes itself, since a custom resource's
//! group has a dot, and those of this program's custom resources. Compared are the kinds that `dev` serves. An object of any other
//! group is left alone. Pure.

use std::sync::LazyLock;

use apiserver::{Resource, kinds};

use crate::api::ControllerKind;

/// The kinds that `dev` serves. They take long to make, and a repository has thousands of objects.
static STORED: LazyLock<Vec<Resource>> = LazyLock::new(kinds::all);

/// A kind that an author may have meant.
struct Meant<'a> {
    group: &'a str,
    api_version: String,
    kind: &'a str,
}

/// That an object's kind does not exist in its group, and which one is probably meant: the wrong field, and a sentence.
pub(crate) fn judge(api_version: &str, kind: &str) -> Option<(&'static str, String)> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_built_in = !group.contains('.') || group.ends_with(".k8s.io");
    let scheduled = meant();
    let stored = &*STORED;
    if scheduled.iter().any(|meant| meant.group == group && meant.kind == kind)
        || stored.iter().any(|known| known.group == group && known.kind == kind)
    {
        return None;
    }
    // Of a group with a dot that only sounds like one of Kubernetes, other kinds may be custom resources.
    let is_known = !group.contains('.') || stored.iter().any(|known| known.group == group);
    let others = stored.iter().filter(|_| is_known);
    let others = others.map(|of| Meant { group: &of.group, api_version: of.api_version(), kind: &of.kind });
    let known: Vec<Meant<'_>> = scheduled.into_iter().chain(others).collect();
    let is_candidate = |meant: &&Meant<'_>| (is_built_in || meant.group == group) && is_near(kind, meant.kind);
    // A kind of the object's own group first, and batch/v1 before the custom resources.
    let distance = |meant: &&Meant<'_>| (meant.kind != kind, meant.group != group, distance(kind, meant.kind));
    let meant = known.iter().filter(is_candidate).min_by_key(distance)?;
    let field = if meant.kind == kind { "apiVersion" } else { "kind" };
    // Letters that nobody sees are shown.
    let kind = kind.escape_debug();
    let message = format!("there is no {kind} in {api_version}; did you mean {} of {}?", meant.kind, meant.api_version);
    Some((field, message))
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
