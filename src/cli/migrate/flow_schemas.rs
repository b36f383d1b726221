//! The priority level at which the API server serves the controller's requests.
//!
//! Guarantee: a `FlowSchema` is chosen as by the API server: of those that match the request, the one with the lowest
//! precedence, then by name. Matches `matchesFlowSchema` in k8s.io/apiserver
//! `pkg/util/flowcontrol/rule.go`. Pure.

use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PolicyRulesWithSubjects, ResourcePolicyRule, Subject};

use super::{Account, Cluster, Code, Finding, Object};

/// The priority levels that every account shares.
const SHARED: [&str; 3] = ["workload-low", "global-default", "catch-all"];

/// The API server's precedence for a `FlowSchema` without one.
const DEFAULT_PRECEDENCE: i32 = 1000;

/// A request that must not wait for other clients.
struct Request {
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    what: &'static str,
    effect: &'static str,
}

const REQUESTS: [Request; 2] = [
    Request {
        verb: "create",
        group: "batch",
        resource: "jobs",
        what: "requests that start Jobs",
        effect: "a flood of other clients' requests can delay Jobs",
    },
    Request {
        verb: "update",
        group: "coordination.k8s.io",
        resource: "leases",
        what: "renewals of its Lease",
        effect: "a flood of other clients' requests can cost it the leadership",
    },
];

pub(super) fn find(cluster: &Cluster) -> Vec<Finding> {
    let schemas = cluster.flow_schemas.as_deref().unwrap_or_default();
    // Where API Priority and Fairness is on, catch-all always exists.
    if schemas.is_empty() {
        return Vec::new();
    }
    REQUESTS.iter().filter_map(|request| judge(request, schemas, &cluster.account)).collect()
}

fn judge(request: &Request, schemas: &[FlowSchema], account: &Account) -> Option<Finding> {
    let matching = schemas.iter().filter(|schema| {
        let rules = schema.spec.iter().filter_map(|spec| spec.rules.as_ref()).flatten();
        rules.into_iter().any(|rule| matches(rule, request, account))
    });
    let precedence = |schema: &FlowSchema| {
        let spec = schema.spec.as_ref();
        (spec.and_then(|spec| spec.matching_precedence).unwrap_or(DEFAULT_PRECEDENCE), schema.metadata.name.clone())
    };
    let chosen = matching.min_by_key(|schema| precedence(schema));
    let level = chosen.and_then(|schema| schema.spec.as_ref()).map(|spec| &*spec.priority_level_configuration.name);
    let level = level.unwrap_or("catch-all");
    if !SHARED.contains(&level) {
        return None;
    }
    let name = chosen.and_then(|schema| schema.metadata.name.clone()).unwrap_or_else(|| "catch-all".to_owned());
    let Request { what, effect, .. } = request;
    let message = format!(
        "FlowSchema {name} puts the {what} of ServiceAccount {account} at the priority level {level}, which other accounts \
         share: {effect}. manifests/flowcontrol gives them a level of their own."
    );
    Some(Finding::new(Code::FlowSchema, Object { kind: "FlowSchema", namespace: None, name }, message))
}

fn matches(rule: &PolicyRulesWithSubjects, request: &Request, account: &Account) -> bool {
    rule.subjects.iter().any(|subject| is_account(subject, account))
        && rule.resource_rules.iter().flatten().any(|rule| is_about(rule, request, account))
}

fn is_account(subject: &Subject, account: &Account) -> bool {
    let is = |pattern: &str, value: &str| pattern == "*" || pattern == value;
    let user = subject.user.as_ref().is_some_and(|user| is(&user.name, &account.user()));
    let group = subject.group.as_ref();
    let group = group.is_some_and(|group| group.name == "*" || account.groups().contains(&group.name));
    let of_service = subject.service_account.as_ref();
    let of_service = of_service.is_some_and(|one| one.namespace == account.namespace && is(&one.name, &account.name));
    match subject.kind.as_str() {
        "User" => user,
        "Group" => group,
        "ServiceAccount" => of_service,
        _ => false,
    }
}

fn is_about(rule: &ResourcePolicyRule, request: &Request, account: &Account) -> bool {
    let has = |values: &[String], value: &str| values.iter().any(|known| known == "*" || known == value);
    // Jobs are in any namespace: only a rule for all of them counts.
    let namespace = if request.resource == "jobs" { "*" } else { &*account.namespace };
    has(&rule.verbs, request.verb)
        && has(&rule.api_groups, request.group)
        && has(&rule.resources, request.resource)
        && rule.namespaces.as_ref().is_some_and(|namespaces| has(namespaces, namespace))
}
