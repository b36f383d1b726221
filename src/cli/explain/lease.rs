//! What the lease of the controller says about it.
//!
//! Guarantees: the lease is the one under which the controller works, the newest if there are several. A holder
//! counts as gone only well after its lease has expired, so that a clock that differs by some seconds changes no answer. Pure.

use std::collections::HashMap;

use apimachinery::steps;
use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::coordination::v1::Lease;

use crate::api::ControllerKind;
use crate::cli::output::stretch;
use crate::leader_election::LeaderElectionRecord;
use crate::options::PROGRAM;

/// The lease that `manifests/tutorial` names, as the kubebuilder book does.
const TUTORIAL: &str = "80807133.tutorial.kubebuilder.io";
/// The lease of the controllers in kube-controller-manager.
pub(in crate::cli) const IN_TREE: &str = "kube-controller-manager";
/// How much the clocks of the holder and of this process may differ.
pub(in crate::cli) const SKEW: TimeDelta = TimeDelta::seconds(30);

/// The lease of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerLease {
    /// Its namespace and name.
    pub name: String,
    /// What it says.
    pub record: LeaderElectionRecord,
    /// When kube-controller-manager renewed its lease, if it may be the one that starts the Jobs.
    in_tree_renewed: Option<DateTime<Utc>>,
}

/// The leases of a cluster that may be those of controllers, by name; of several with one name, the newest.
#[derive(Clone, Debug, Default)]
pub struct Leases(HashMap<String, ControllerLease>);

impl Leases {
    /// Picks them from all leases of a cluster.
    pub fn of(leases: &[Lease]) -> Self {
        let mut found = Self::default();
        for lease in steps::each(leases.iter()) {
            let name = lease.metadata.name.clone().unwrap_or_default();
            if ![PROGRAM, TUTORIAL, IN_TREE].contains(&&*name) {
                continue;
            }
            let lease = ControllerLease::read(lease);
            let is_newest = found.0.get(&name).is_none_or(|known| known.record.renew_time <= lease.record.renew_time);
            if is_newest {
                found.0.insert(name, lease);
            }
        }
        found
    }

    /// Whether there is a lease of this controller, and one of kube-controller-manager.
    pub fn are_there(&self) -> [bool; 2] {
        [PROGRAM, IN_TREE].map(|name| self.0.contains_key(name))
    }

    /// The lease of kube-controller-manager.
    pub fn in_tree(&self) -> Option<ControllerLease> {
        self.0.get(IN_TREE).cloned()
    }

    /// The lease under which CronJobs of that kind are worked on. A handed-over CronJob is not kube-controller-manager's.
    pub fn controller(&self, controller_kind: ControllerKind, handed_over: bool) -> Option<ControllerLease> {
        let own = [PROGRAM, TUTORIAL].iter().filter_map(|name| self.0.get(*name));
        let own = own.max_by_key(|lease| lease.record.renew_time).cloned();
        let in_tree = self.0.get(IN_TREE).filter(|_| controller_kind.is_in_tree && !handed_over);
        match own {
            Some(own) => {
                Some(ControllerLease { in_tree_renewed: in_tree.and_then(|lease| lease.record.renew_time), ..own })
            }
            None => in_tree.cloned(),
        }
    }
}

impl ControllerLease {
    fn read(lease: &Lease) -> Self {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let name = format!("{}/{}", text(&lease.metadata.namespace), text(&lease.metadata.name));
        Self { name, record: LeaderElectionRecord::from_lease(lease), in_tree_renewed: None }
    }

    /// Whether no process has held the lease for some time.
    pub fn is_expired(&self, now: DateTime<Utc>) -> bool {
        let lasts = TimeDelta::seconds(self.record.lease_duration_seconds.into());
        self.record.renew_time.is_none_or(|renewed| now - renewed > lasts + SKEW)
    }

    /// Whether it has expired, and kube-controller-manager does not run instead.
    pub fn is_abandoned(&self, now: DateTime<Utc>) -> bool {
        self.is_expired(now) && self.in_tree_renewed.is_none_or(|renewed| now - renewed > SKEW)
    }

    /// Its state at `now`, as part of a sentence.
    pub fn state(&self, now: DateTime<Utc>) -> String {
        let (name, holder) = (&self.name, &self.record.holder_identity);
        let ago = self.record.renew_time.map(|renewed| stretch((now - renewed).max(TimeDelta::zero())));
        let ago = ago.map_or("never".to_owned(), |ago| format!("{ago} ago"));
        if !self.is_expired(now) {
            return match holder.as_str() {
                "" => format!("the lease {name} was released {ago} and waits for the next controller"),
                holder => format!("{holder} holds the lease {name} and renewed it {ago}"),
            };
        }
        let state = match holder.as_str() {
            "" => format!("no controller holds the lease {name}, which was released {ago}"),
            holder => format!("{holder}, which holds the lease {name}, last renewed it {ago}"),
        };
        let rest =
            if self.is_abandoned(now) { "no controller is running" } else { "only kube-controller-manager is running" };
        format!("{state}: {rest}")
    }
}
