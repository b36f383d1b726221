//! `--controllers` and `--manage`: which controllers of this binary run, and which objects they manage.
//!
//! Guarantee: the list is interpreted as in kube-controller-manager. The first entry that names a controller decides
//! about it, and `*` decides about those that no entry names.

use super::flags::RawFlags;
use super::resolve::Faults;
use crate::api::{ControllerKind, Manage};

/// The controller of that name. Upstream has two names for the batch/v1 one: the canonical name and an older alias.
fn from_name(name: &str) -> Option<ControllerKind> {
    match name {
        "cronjob-controller" => Some(ControllerKind::CronJob),
        _ => ControllerKind::ALL.into_iter().find(|controller_kind| controller_kind.name == name),
    }
}

const USE_INSTEAD: &str = "cronjob, tutorial, apiexample, any of them after '-', or * for all";

/// The meaning of one entry of the list.
#[derive(Clone, Copy, PartialEq)]
enum Entry {
    Others,
    On(ControllerKind),
    Off(ControllerKind),
}

/// The controllers that are on, in order. Matches `IsControllerEnabled` in k8s.io/controller-manager `app/helper.go`
/// and the check of unknown names in `options/generic.go`. Unlike upstream, a list that leaves no controller on is
/// refused.
pub(crate) fn resolve(lists: &[String], faults: &mut Faults) -> Vec<ControllerKind> {
    let names = lists.iter().flat_map(|list| list.split(','));
    let entries: Vec<Option<Entry>> = names
        .map(|name| {
            faults.read("controllers", name, USE_INSTEAD, |name| match name.strip_prefix('-') {
                Some(name) => from_name(name).map(Entry::Off),
                None if name == "*" => Some(Entry::Others),
                None => from_name(name).map(Entry::On),
            })
        })
        .collect();
    let is_on = |controller_kind: &ControllerKind| {
        let first = entries
            .iter()
            .flatten()
            .find(|entry| [Entry::On(*controller_kind), Entry::Off(*controller_kind)].contains(entry));
        first.map_or(entries.contains(&Some(Entry::Others)), |entry| *entry == Entry::On(*controller_kind))
    };
    let on: Vec<ControllerKind> = ControllerKind::ALL.into_iter().filter(is_on).collect();
    if on.is_empty() && entries.iter().all(Option::is_some) {
        faults.add("controllers", &lists.join(","), "a list that leaves a controller on");
    }
    on
}

/// Which batch/v1 CronJobs the controller manages. Refused when no controller for them runs.
pub(super) fn manage(raw: &RawFlags, controllers: &[ControllerKind], faults: &mut Faults) -> Option<Manage> {
    let by_name = |name: &str| Manage::BOTH.into_iter().find(|manage| manage.name() == name);
    let manage = faults.read("manage", &raw.manage, "all or annotated", by_name)?;
    if manage != Manage::All
        && !controllers.is_empty()
        && !controllers.iter().any(|controller_kind| controller_kind.is_in_tree)
    {
        faults.add(
            "manage",
            &raw.manage,
            "all where --controllers leaves cronjob out: the other kinds have no other controller",
        );
    }
    Some(manage)
}
