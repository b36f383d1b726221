//! What the lease of the controller says about it.
//!
//! Guarantees: the lease is the one under which the controller works; of several instances, that of the instance which works in
//! the CronJob's namespace, and the newest of those. A holder counts as gone only well after its lease has expired, so that a clock
//! that differs by some seconds changes no answer. Pure.

use apimachinery::steps;
use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::coordination::v1::Lease;

use crate::api::{ControllerKind, Manage};
use crate::cli::output::stretch;
use crate::leader_election::{Coverage, LeaderElectionRecord};
use crate::options::PROGRAM;

/// The lease that `manifests/tutorial` names, as the kubebuilder book does.
const TUTORIAL: &str = "80807133.tutorial.kubebuilder.io";
/// The lease of the controllers in kube-controller-manager.
pub(crate) const IN_TREE: &str = "kube-controller-manager";
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

/// The leases of a cluster that may be those of controllers.
#[derive(Clone, Debug, Default)]
pub struct Leases {
    /// Of the instances of this controller, with what each works on; an older version does not say it.
    own: Vec<(ControllerLease, Option<Coverage>)>,
    /// Of kube-controller-manager; the newest.
    in_tree: Option<ControllerLease>,
}

impl Leases {
    /// Picks them from all leases of a cluster.
    pub fn of(leases: &[Lease]) -> Self {
        let mut found = Self::default();
        for lease in steps::each(leases.iter()) {
            let (name, coverage) = (lease.metadata.name.as_deref().unwrap_or_default(), Coverage::of(lease));
            let lease = ControllerLease::read(lease);
            if name == IN_TREE {
                let is_newest =
                    found.in_tree.as_ref().is_none_or(|known| known.record.renew_time <= lease.record.renew_time);
                if is_newest {
                    found.in_tree = Some(lease);
                }
            } else if coverage.is_some() || [PROGRAM, TUTORIAL].contains(&name) {
                found.own.push((lease, coverage));
            }
        }
        found
    }

    /// Whether an instance of this controller that works in the namespace holds a lease, and kube-controller-manager. The lease of a
    /// controller that is gone may still exist, but is not renewed while the other one is.
    pub fn are_held(&self, controller_kind: ControllerKind, namespace: &str) -> [bool; 2] {
        let both = [self.own(controller_kind, namespace), self.in_tree.as_ref()];
        let newest = both.iter().flatten().filter_map(|lease| lease.record.renew_time).max();
        both.map(|lease| lease.is_some_and(|lease| newest.is_none_or(|newest| !lease.is_expired(newest))))
    }

    /// The `--manage` of the instance of this controller that works in the namespace, as its lease says.
    pub fn manage(&self, controller_kind: ControllerKind, namespace: &str) -> Option<Manage> {
        self.own_with_coverage(controller_kind, namespace)?.1.as_ref()?.manage()
    }

    /// The `--manage` of an instance that holds its lease in other namespaces, where no instance works in this one; of several, that
    /// which manages all. `None` if one does, or may do so, or none says its namespaces and `--manage`.
    pub fn work_elsewhere(&self, controller_kind: ControllerKind, namespace: &str) -> Option<Manage> {
        if self.own(controller_kind, namespace).is_some() {
            return None;
        }
        let all = self.own.iter().map(|(lease, _)| lease).chain(&self.in_tree);
        let newest = all.filter_map(|lease| lease.record.renew_time).max();
        let is_held = |lease: &ControllerLease| newest.is_none_or(|newest| !lease.is_expired(newest));
        let said = self.own.iter().filter(|(lease, _)| is_held(lease)).filter_map(|(_, coverage)| coverage.as_ref());
        let manages = said.filter(|coverage| coverage.runs(controller_kind.name)).filter_map(Coverage::manage);
        let manages: Vec<Manage> = manages.collect();
        manages.iter().copied().find(|manage| *manage == Manage::All).or(manages.first().copied())
    }

    /// The lease of kube-controller-manager.
    pub fn in_tree(&self) -> Option<ControllerLease> {
        self.in_tree.clone()
    }

    /// The lease under which CronJobs of that kind are worked on in the namespace. A handed-over CronJob is not
    /// kube-controller-manager's.
    pub fn controller(
        &self,
        controller_kind: ControllerKind,
        namespace: &str,
        handed_over: bool,
    ) -> Option<ControllerLease> {
        let in_tree = self.in_tree.as_ref().filter(|_| controller_kind.is_in_tree && !handed_over);
        match self.own(controller_kind, namespace).cloned() {
            Some(own) => {
                Some(ControllerLease { in_tree_renewed: in_tree.and_then(|lease| lease.record.renew_time), ..own })
            }
            None => in_tree.cloned(),
        }
    }

    /// That no instance of this controller works in the namespace, as a part of a sentence.
    pub fn absence(&self, namespace: &str) -> String {
        if self.own.is_empty() {
            return format!("{PROGRAM} has no Lease");
        }
        format!("no instance of {PROGRAM} works in namespace {namespace}, as their Leases say")
    }

    /// The leases that are held at `now`, with what the instance of each works on.
    pub fn instances(&self, now: DateTime<Utc>) -> Vec<(&ControllerLease, &Coverage)> {
        let own = self.own.iter().filter_map(|(lease, coverage)| Some((lease, coverage.as_ref()?)));
        own.filter(|(lease, _)| !lease.record.holder_identity.is_empty() && !lease.is_expired(now)).collect()
    }

    /// The newest lease of an instance that works on that kind in the namespace, or may do so; one that is held before those that
    /// were released, whatever the clocks.
    fn own(&self, controller_kind: ControllerKind, namespace: &str) -> Option<&ControllerLease> {
        self.own_with_coverage(controller_kind, namespace).map(|(lease, _)| lease)
    }

    fn own_with_coverage(
        &self,
        controller_kind: ControllerKind,
        namespace: &str,
    ) -> Option<&(ControllerLease, Option<Coverage>)> {
        let is_meant = |coverage: &Option<Coverage>| {
            coverage.as_ref().is_none_or(|coverage| coverage.includes(controller_kind.name, namespace))
        };
        let meant = self.own.iter().filter(|(_, coverage)| is_meant(coverage));
        let rank = |(lease, coverage): &&(ControllerLease, Option<Coverage>)| {
            (!lease.record.holder_identity.is_empty(), coverage.is_some(), lease.record.renew_time)
        };
        meant.max_by_key(rank)
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

    /// Whether it is that of kube-controller-manager.
    pub fn is_in_tree(&self) -> bool {
        self.name.rsplit_once('/').is_some_and(|(_, name)| name == IN_TREE)
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
