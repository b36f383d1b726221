//! The rights that the controller's account needs and does not have.
//!
//! Guarantee: the rights are those of manifests/rbac, which are built into the program. Pure.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Cluster, Code, Finding, Object};

/// The manifests with the rights.
const ROLES: [&str; 2] = [
    include_str!("../../../manifests/rbac/role.yaml"),
    include_str!("../../../manifests/rbac/leader_election_role.yaml"),
];

/// The ServiceAccount of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Account {
    /// The account of the manifests.
    pub const DEFAULT: &str = "cronjob-controller-system/cronjob-controller";

    /// Reads a namespace and a name with a slash between them.
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('/')?;
        let is_good = apimachinery::names::dns_label_errors(namespace).is_empty()
            && apimachinery::names::subdomain_errors(name).is_empty();
        is_good.then(|| Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// Its user name in a request.
    pub(super) fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// The groups of the user.
    pub(super) fn groups(&self) -> [String; 3] {
        let of_namespace = format!("system:serviceaccounts:{}", self.namespace);
        ["system:serviceaccounts".to_owned(), of_namespace, "system:authenticated".to_owned()]
    }
}

impl Default for Account {
    fn default() -> Self {
        let (namespace, name) = Self::DEFAULT.split_once('/').unwrap_or_default();
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A verb on a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Right {
    verb: String,
    group: String,
    /// With its subresource, as in `cronjobs/status`.
    resource: String,
    /// The object's name, if the right is for one alone.
    name: Option<String>,
    /// Whether it is needed in the controller's own namespace only.
    in_own_namespace: bool,
}

/// Whether the account has a right.
#[derive(Debug)]
pub(super) struct Review {
    pub right: Right,
    pub allowed: bool,
}

#[derive(Deserialize)]
struct Role {
    kind: String,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    api_groups: Vec<String>,
    resources: Vec<String>,
    verbs: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
}

/// The rights that a controller needs.
pub(super) fn needed() -> Result<Vec<Right>, String> {
    let mut rights = Vec::new();
    for text in ROLES {
        let role: Role = serde_saphyr::from_str(text).map_err(|cause| format!("read manifests/rbac: {cause}"))?;
        let in_own_namespace = role.kind == "Role";
        for Rule { api_groups, resources, verbs, resource_names } in role.rules {
            let names: Vec<Option<String>> =
                if resource_names.is_empty() { vec![None] } else { resource_names.into_iter().map(Some).collect() };
            for (group, resource) in api_groups.iter().flat_map(|group| resources.iter().map(move |one| (group, one))) {
                for (verb, name) in verbs.iter().flat_map(|verb| names.iter().map(move |name| (verb, name))) {
                    let (verb, group, resource) = (verb.clone(), group.clone(), resource.clone());
                    rights.push(Right { verb, group, resource, name: name.clone(), in_own_namespace });
                }
            }
        }
    }
    Ok(rights)
}

impl Right {
    /// The review that asks whether `account` has it in `namespace`, or in all.
    pub(super) fn review(&self, account: &Account, namespace: Option<&str>) -> Value {
        let namespace = if self.in_own_namespace { Some(&*account.namespace) } else { namespace };
        let (resource, subresource) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": account.user(), "groups": account.groups(),
                "resourceAttributes": {
                    "verb": self.verb, "group": self.group, "resource": resource, "subresource": subresource,
                    "namespace": namespace.unwrap_or_default(), "name": self.name.as_deref().unwrap_or_default(),
                },
            },
        })
    }

    /// Whether it is to list or watch Namespaces.
    pub(super) fn is_list_of_namespaces(&self) -> bool {
        self.resource == "namespaces" && self.verb != "get"
    }

    /// Whether no Job starts without it. Without Events only the reports are missing, without Namespaces only their freezes; the right
    /// to update finalizers is needed with one admission plugin only, the list of leases shows other instances, and a watch of the own
    /// one only saves seconds.
    fn is_vital(&self) -> bool {
        !["events", "namespaces", "cronjobs/finalizers"].contains(&&*self.resource)
            && !matches!((&*self.resource, &*self.verb), ("leases", "list" | "watch"))
    }
}

pub(super) fn find(cluster: &Cluster) -> Vec<Finding> {
    let (account, reviews) = (&cluster.account, cluster.reviews.as_deref().unwrap_or_default());
    let object = Object::named("ServiceAccount", &account.namespace, &account.name);
    let missing = || reviews.iter().filter(|review| !review.allowed).map(|review| &review.right);
    if !reviews.is_empty() && missing().count() == reviews.len() {
        let message = format!(
            "{object} has none of the rights of manifests/rbac: this controller is not installed under this account, or it is \
             not bound to its roles. Without these rights it starts nothing."
        );
        return vec![Finding::new(Code::MissingRight, object, message).changing_runs()];
    }
    let mut by_resource: BTreeMap<(&str, &str), Vec<&Right>> = BTreeMap::new();
    for right in missing() {
        by_resource.entry((&right.group, &right.resource)).or_default().push(right);
    }
    let finding = |((group, resource), rights): ((&str, &str), Vec<&Right>)| {
        let verbs: Vec<&str> = rights.iter().map(|right| &*right.verb).collect();
        let group = if group.is_empty() { "the core group" } else { group };
        let is_vital = rights.iter().any(|right| right.is_vital());
        let effect = match resource {
            _ if is_vital => "Without it, Jobs do not start",
            "namespaces" => "Jobs start without it, in a frozen Namespace too",
            _ => "Jobs start without it",
        };
        let message = format!(
            "{object} may not {} {resource} of {group}, as manifests/rbac allows it. {effect}.",
            verbs.join(" or ")
        );
        let finding = Finding::new(Code::MissingRight, object.clone(), message);
        if is_vital { finding.changing_runs() } else { finding }
    };
    by_resource.into_iter().map(finding).collect()
}
