//! Several instances of the controller, each with a lease and namespaces of its own: which of them work on the same CronJobs.
//!
//! Guarantees: an instance says on its lease what it works on. A lease that does not say so, or that no process renews, conflicts
//! with none; whether it is renewed follows from two observations, so that no clock counts. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use k8s_openapi::api::coordination::v1::Lease;

use super::LeaderElectionRecord;

/// The namespaces in which the holder of a lease works, with commas between them; `*` for all.
pub const NAMESPACES_ANNOTATION: &str = "cronjob-controller.dev/namespaces";
/// The controllers that the holder of a lease runs, with commas between them.
pub const CONTROLLERS_ANNOTATION: &str = "cronjob-controller.dev/controllers";
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
        Self { controllers: controllers.into_iter().map(str::to_owned).collect(), namespaces }
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
        Some(Self { controllers, namespaces })
    }

    /// The annotations that say it.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let list = |names: &BTreeSet<String>| names.iter().map(|name| &**name).collect::<Vec<_>>().join(",");
        let namespaces = match &self.namespaces {
            Namespaces::All => ALL.to_owned(),
            Namespaces::These(these) => Some(list(these)).filter(|list| list.len() <= LONGEST).unwrap_or_default(),
        };
        [(CONTROLLERS_ANNOTATION, list(&self.controllers)), (NAMESPACES_ANNOTATION, namespaces)]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    /// Whether it works on the objects of this controller in this namespace.
    pub fn includes(&self, controller: &str, namespace: &str) -> bool {
        self.controllers.contains(controller)
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
                return (coverage != *own).then_some(Conflict::Lease { namespaces: coverage.namespaces });
            }
            Some(Conflict::Namespaces { shared: own.shared_with(&coverage)?, lease: other })
        };
        leases.iter().filter_map(conflict).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn namespaces(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn coverage(controllers: &[&str], names: &[&str]) -> Coverage {
        Coverage::new(controllers.iter().copied(), &namespaces(names))
    }

    fn lease(name: &str, holder: &str, renewed: u32, annotations: &BTreeMap<String, String>) -> Lease {
        serde_json::from_value(json!({
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"holderIdentity": holder, "renewTime": format!("2026-11-22T10:00:{renewed:02}.000000Z")},
        }))
        .unwrap()
    }

    #[test]
    fn namespaces_in_which_two_instances_work_are_shared() {
        const CRON_JOB: &[&str] = &["cronjob"];
        let both: &[&str] = &["cronjob", "tutorial"];
        let rows = [
            ("all and all", coverage(CRON_JOB, &[]), coverage(CRON_JOB, &[]), Some("all namespaces")),
            ("all and one", coverage(CRON_JOB, &[]), coverage(CRON_JOB, &["a"]), Some("namespace a")),
            (
                "two with one in common",
                coverage(CRON_JOB, &["a", "b"]),
                coverage(both, &["b", "c"]),
                Some("namespace b"),
            ),
            ("none in common", coverage(CRON_JOB, &["a", "b"]), coverage(CRON_JOB, &["c"]), None),
            ("a name that begins like another", coverage(CRON_JOB, &["a"]), coverage(CRON_JOB, &["ab"]), None),
            ("other controllers", coverage(CRON_JOB, &["a"]), coverage(&["tutorial", "apiexample"], &["a"]), None),
            ("other controllers everywhere", coverage(CRON_JOB, &[]), coverage(&["tutorial"], &[]), None),
            (
                "more than a message names",
                coverage(CRON_JOB, &[]),
                coverage(CRON_JOB, &["g", "f", "e", "d", "c", "b", "a"]),
                Some("namespaces a, b, c, d, e and 2 more"),
            ),
        ];
        for (sentence, one, other, want) in rows {
            for (own, other) in [(&one, &other), (&other, &one)] {
                let shared = own.shared_with(other).map(|shared| shared.to_string());
                assert_eq!(shared.as_deref(), want, "{sentence}");
            }
        }
    }

    #[test]
    fn lease_says_what_its_holder_works_on() {
        let many: Vec<String> = (0..20_000).map(|number| format!("namespace-{number}")).collect();
        let rows = [
            ("all", coverage(&["cronjob"], &[]), true),
            ("two", coverage(&["cronjob", "tutorial"], &["a", "b"]), true),
            ("too many to say", Coverage::new(["cronjob"], &many), false),
        ];
        for (sentence, own, is_said) in rows {
            let annotations = own.annotations();
            let length: usize = annotations.iter().map(|(name, value)| name.len() + value.len()).sum();
            assert!(length < 256 * 1024, "{sentence}: {length} bytes");
            let read = Coverage::of(&lease("a", "me", 0, &annotations));
            assert_eq!(read, is_said.then_some(own), "{sentence}");
        }
        let annotated = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Coverage::of(&lease("a", "me", 0, &pairs.collect()))
        };
        assert_eq!(annotated(&[]), None);
        assert_eq!(annotated(&[(NAMESPACES_ANNOTATION, "a")]), None, "which controllers, it does not say");
        assert_eq!(annotated(&[(NAMESPACES_ANNOTATION, ","), (CONTROLLERS_ANNOTATION, "cronjob")]), None);
        let spaced = annotated(&[(NAMESPACES_ANNOTATION, "b, a,"), (CONTROLLERS_ANNOTATION, "cronjob")]);
        assert_eq!(spaced, Some(coverage(&["cronjob"], &["a", "b"])), "as a user may write it");
    }

    #[test]
    fn coverage_includes_the_objects_of_its_controllers_in_its_namespaces() {
        let (some, all) = (coverage(&["cronjob"], &["a", "b"]), coverage(&["tutorial"], &[]));
        let rows = [
            (&some, "cronjob", "a", true),
            (&some, "cronjob", "c", false),
            (&some, "tutorial", "a", false),
            (&all, "tutorial", "c", true),
            (&all, "cronjob", "c", false),
        ];
        for (coverage, controller, namespace, want) in rows {
            assert_eq!(coverage.includes(controller, namespace), want, "{coverage:?}: {controller} in {namespace}");
        }
    }

    /// What it is; a lease as it was observed twice; the conflict of the instance `own` for namespaces a and b.
    type Row = (&'static str, [Option<Lease>; 2], Option<Conflict>);

    #[test]
    fn instance_conflicts_with_one_that_renews_its_lease_and_works_on_the_same() {
        let own = coverage(&["cronjob"], &["a", "b"]);
        let (same, disjoint) = (own.annotations(), coverage(&["cronjob"], &["c"]).annotations());
        let shares = |name: &str| Conflict::Namespaces { lease: name.to_owned(), shared: own.namespaces.clone() };
        let held = |renewed: u32| Some(lease("other", "them", renewed, &same));
        let rows: Vec<Row> = vec![
            ("it is renewed", [held(0), held(2)], Some(shares("other"))),
            ("it was renewed by a clock that went back", [held(2), held(0)], Some(shares("other"))),
            ("it was taken over", [Some(lease("other", "us", 0, &same)), held(2)], Some(shares("other"))),
            ("it is not renewed", [held(0), held(0)], None),
            ("it is observed once", [None, held(2)], None),
            ("it is gone", [held(0), None], None),
            ("it was released", [held(0), Some(lease("other", "", 2, &same))], None),
            ("it is another program's", [held(0), Some(lease("other", "them", 2, &BTreeMap::new()))], None),
            ("other namespaces", [held(0), Some(lease("other", "them", 2, &disjoint))], None),
            ("its own", [held(0), held(2)].map(|seen| seen.map(|seen| named(seen, "own"))), None),
            (
                "its own, held by an instance for others",
                [held(0), Some(lease("other", "them", 2, &disjoint))].map(|seen| seen.map(|seen| named(seen, "own"))),
                Some(Conflict::Lease { namespaces: Namespaces::These(["c".to_owned()].into()) }),
            ),
        ];
        for (sentence, observed, want) in rows {
            let mut observations = LeaseObservations::default();
            let [first, second] = observed.map(|lease| lease.into_iter().collect::<Vec<_>>());
            assert_eq!(observations.conflicts(("own", &own), &first), [], "{sentence}: nothing is known at first");
            let found = observations.conflicts(("own", &own), &second);
            assert_eq!(found, want.into_iter().collect::<Vec<_>>(), "{sentence}");
        }
    }

    fn named(mut lease: Lease, name: &str) -> Lease {
        lease.metadata.name = Some(name.to_owned());
        lease
    }
}
