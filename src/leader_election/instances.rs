//! Several instances of the controller, each with a lease and namespaces of its own: which of them work on the same CronJobs.
//!
//! Guarantees: an instance says on its lease what it works on. A lease that does not say so, or that no process renews, conflicts
//! with none; whether it is renewed follows from two observations, so that no clock counts. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use k8s_openapi::api::coordination::v1::Lease;

use super::LeaderElectionRecord;
use crate::api::Manage;

/// The namespaces in which the holder of a lease works, with commas between them; `*` for all.
pub const NAMESPACES_ANNOTATION: &str = "cronjob-controller.dev/namespaces";
/// The controllers that the holder of a lease runs, with commas between them.
pub const CONTROLLERS_ANNOTATION: &str = "cronjob-controller.dev/controllers";
/// Which CronJobs the holder of a lease manages: the value of its `--manage`.
pub const MANAGE_ANNOTATION: &str = "cronjob-controller.dev/manage";
/// Stands for all namespaces.
const ALL: &str = "*";
/// The longest list of namespaces that is written, in bytes: half of what an object's annotations may have. An instance with more
/// does not say in which it works.
const LONGEST: usize = 128 * 1024;
/// How many namespaces a message names.
const NAMED: usize = 5;

/// What an instance works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// The names of its controllers.
    controllers: BTreeSet<String>,
    namespaces: Namespaces,
    /// Which batch/v1 CronJobs are its own, if it says so.
    manage: Option<Manage>,
}

/// Namespaces in which an instance works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// All.
    All,
    /// These.
    These(BTreeSet<String>),
}

impl Coverage {
    /// These controllers in these namespaces; none are all.
    pub fn new<'a>(controllers: impl IntoIterator<Item = &'a str>, namespaces: &[String]) -> Self {
        let namespaces = match namespaces {
            [] => Namespaces::All,
            these => Namespaces::These(these.iter().cloned().collect()),
        };
        Self { controllers: controllers.into_iter().map(str::to_owned).collect(), namespaces, manage: None }
    }

    /// The same, with this `--manage`.
    #[must_use]
    pub fn managing(self, manage: Manage) -> Self {
        Self { manage: Some(manage), ..self }
    }

    /// Its `--manage`. An older version does not say it.
    pub fn manage(&self) -> Option<Manage> {
        self.manage
    }

    /// What a lease says; `None` if it says nothing.
    pub fn of(lease: &Lease) -> Option<Self> {
        let annotations = lease.metadata.annotations.as_ref()?;
        let list = |name: &str| {
            let names = annotations.get(name)?.split(',').map(str::trim).filter(|name| !name.is_empty());
            Some(names.map(str::to_owned).collect::<BTreeSet<String>>()).filter(|names| !names.is_empty())
        };
        let (controllers, these) = (list(CONTROLLERS_ANNOTATION)?, list(NAMESPACES_ANNOTATION)?);
        let namespaces = if these.contains(ALL) { Namespaces::All } else { Namespaces::These(these) };
        let manage = annotations.get(MANAGE_ANNOTATION);
        let manage = manage.and_then(|text| Manage::BOTH.into_iter().find(|manage| manage.name() == text));
        Some(Self { controllers, namespaces, manage })
    }

    /// The annotations that say it.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let list = |names: &BTreeSet<String>| names.iter().map(|name| &**name).collect::<Vec<_>>().join(",");
        let namespaces = match &self.namespaces {
            Namespaces::All => ALL.to_owned(),
            Namespaces::These(these) => Some(list(these)).filter(|list| list.len() <= LONGEST).unwrap_or_default(),
        };
        let manage = self.manage.map(|manage| (MANAGE_ANNOTATION, manage.name().to_owned()));
        [(CONTROLLERS_ANNOTATION, list(&self.controllers)), (NAMESPACES_ANNOTATION, namespaces)]
            .into_iter()
            .chain(manage)
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// Whether it runs this controller.
    pub fn runs(&self, controller: &str) -> bool {
        self.controllers.contains(controller)
    }

    /// Whether it works on the objects of this controller in this namespace.
    pub fn includes(&self, controller: &str, namespace: &str) -> bool {
        self.runs(controller)
            && match &self.namespaces {
                Namespaces::All => true,
                Namespaces::These(these) => these.contains(namespace),
            }
    }

    /// In which namespaces both work on the same objects, if there are any.
    pub fn shared_with(&self, other: &Self) -> Option<Namespaces> {
        if self.controllers.is_disjoint(&other.controllers) {
            return None;
        }
        match (&self.namespaces, &other.namespaces) {
            (Namespaces::All, shared) | (shared, Namespaces::All) => Some(shared.clone()),
            (Namespaces::These(own), Namespaces::These(others)) => {
                let shared: BTreeSet<String> = own.intersection(others).cloned().collect();
                (!shared.is_empty()).then_some(Namespaces::These(shared))
            }
        }
    }
}

/// As part of a sentence, after "in".
impl fmt::Display for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::These(these) = self else { return f.write_str("all namespaces") };
        let named = these.iter().take(NAMED).map(|name| &**name).collect::<Vec<_>>().join(", ");
        let more = these.len().saturating_sub(NAMED);
        let what = if these.len() == 1 { "namespace" } else { "namespaces" };
        write!(f, "{what} {named}")?;
        if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
    }
}

/// An instance that this one should not have beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Under another lease it works on the same objects.
    Namespaces {
        /// The name of its lease.
        lease: String,
        /// Where.
        shared: Namespaces,
    },
    /// It holds the lease of this one, and works on others.
    Lease {
        /// Where it works.
        namespaces: Namespaces,
    },
}

/// The leases of one namespace as they were observed last.
#[derive(Debug, Default)]
pub struct LeaseObservations(HashMap<String, LeaderElectionRecord>);

impl LeaseObservations {
    /// Replaces the observation, and returns the conflicts of the instance `own`, which has the lease of that name. A lease counts
    /// if it has a holder and was renewed since the observation before.
    pub fn conflicts(&mut self, (name, own): (&str, &Coverage), leases: &[Lease]) -> Vec<Conflict> {
        let of =
            |lease: &Lease| (lease.metadata.name.clone().unwrap_or_default(), LeaderElectionRecord::from_lease(lease));
        let before = std::mem::replace(&mut self.0, leases.iter().map(of).collect());
        let conflict = |lease: &Lease| {
            let (other, record) = of(lease);
            let is_renewed = before.get(&other).is_some_and(|before| before.renew_time != record.renew_time);
            let coverage = Coverage::of(lease).filter(|_| is_renewed && !record.holder_identity.is_empty())?;
            if other == name {
                // With another `--manage` it is a replica that a rollout is about to replace.
                let is_of_others = coverage.controllers != own.controllers || coverage.namespaces != own.namespaces;
                return is_of_others.then_some(Conflict::Lease { namespaces: coverage.namespaces });
            }
            Some(Conflict::Namespaces { shared: own.shared_with(&coverage)?, lease: other })
        };
        leases.iter().filter_map(conflict).collect()
    }
}

#[cfg(test)]
mod tests;
