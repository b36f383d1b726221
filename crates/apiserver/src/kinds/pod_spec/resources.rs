//! Validation of resources: of containers, of Pods, and the overhead of a Pod.
//!
//! Guarantees: see [`super`]. Matches `validateResourceRequirements`, `validatePodResources` and `validateResizePolicy` of
//! k8s.io/kubernetes `pkg/apis/core/validation/validation.go`, and `AggregateContainerRequests` of k8s.io/component-helpers.

use std::collections::{BTreeMap, BTreeSet};

use apimachinery::field::FieldError;
use apimachinery::names::label_key_errors;
use serde_json::Value;

use crate::kinds::fields::{
    dns_label_errors, duplicate, each_message, forbidden, invalid, invalid_json, list, not_found, not_supported,
    required, text,
};
use crate::kinds::quantity::{self, Quantity};

const HUGE: &str = "hugepages-";
/// The standard resources that are measured.
const MEASURED: [&str; 11] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "storage",
    "requests.storage",
];
/// Those that are counted: whole numbers only.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// After so many errors, the names that are known are not listed any more: both may be tens of thousands.
const LISTED: usize = 1000;

/// How the names of resources are judged.
type Rule = fn(&str, &str, &mut Vec<FieldError>);

/// Validates the resources of a container, whose claims are among `claims`.
pub(super) fn of_container(resources: &Value, claims: &BTreeSet<&str>, path: &str, errors: &mut Vec<FieldError>) {
    validate(resources, container_name, claims, path, errors);
}

/// Validates the overhead of a Pod, as upstream does: as limits.
pub(super) fn overhead(overhead: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if !overhead.is_null() {
        of_container(&serde_json::json!({"limits": overhead}), &BTreeSet::new(), path, errors);
    }
}

fn entries<'a>(resources: &'a Value, list: &str) -> impl Iterator<Item = (&'a String, &'a str, Quantity)> {
    let entries = resources[list].as_object().into_iter().flatten();
    entries.filter_map(|(name, value)| Some((name, value.as_str()?, quantity::parse(value.as_str()?)?)))
}

fn validate(resources: &Value, rule: Rule, claims: &BTreeSet<&str>, path: &str, errors: &mut Vec<FieldError>) {
    let (mut has_cpu_or_memory, mut has_huge) = (false, false);
    for list in ["limits", "requests"] {
        for (name, shown, mut amount) in entries(resources, list) {
            let field = format!("{path}.{list}[{name}]");
            rule(name, &field, errors);
            if amount.sign().is_lt() {
                errors.push(invalid(field.as_str(), shown, "must be greater than or equal to 0"));
            }
            if (COUNTED.contains(&name.as_str()) || is_extended(name)) && !amount.is_whole() {
                errors.push(invalid(field.as_str(), shown, "must be an integer"));
            }
            if list == "requests" {
                request_of(resources, name, shown, &mut amount, path, errors);
            }
            if let Some(size) = name.strip_prefix(HUGE) {
                has_huge = true;
                if !is_multiple(&amount, size) {
                    let detail = format!("{shown} is not positive integer multiple of {name}");
                    errors.push(invalid(field, shown, &detail));
                }
            }
            has_cpu_or_memory |= matches!(name.as_str(), "cpu" | "memory");
        }
    }
    if has_huge && !has_cpu_or_memory {
        errors.push(forbidden(path, "HugePages require cpu or memory"));
    }
    claim_names(list(resources, "claims"), claims, &format!("{path}.claims"), errors);
}

/// Compares a request with its limit. The comparison with a long number makes it one.
fn request_of(
    resources: &Value,
    name: &str,
    shown: &str,
    amount: &mut Quantity,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let limit = resources["limits"][name].as_str().and_then(|limit| Some((limit, quantity::parse(limit)?)));
    if let Some((_, most)) = &limit {
        amount.lengthen_beside(most);
    }
    let may_exceed = is_native(name) && !name.starts_with(HUGE);
    match limit {
        Some((limit, most)) if amount.compare(&most).is_ne() && !may_exceed => {
            let detail = format!("must be equal to {name} limit of {limit}");
            errors.push(invalid(format!("{path}.requests"), shown, &detail));
        }
        Some((limit, most)) if amount.exceeds(&most) => {
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            errors.push(invalid(format!("{path}.requests"), shown, &detail));
        }
        None if !may_exceed => {
            errors.push(required(format!("{path}.limits"), "Limit must be set for non overcommitable resources"));
        }
        _ => {}
    }
}

/// Whether an amount is a multiple of the size of a page.
fn is_multiple(amount: &Quantity, size: &str) -> bool {
    quantity::parse(size).is_some_and(|size| amount.is_multiple_of(&size))
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Matches `IsExtendedResourceName`.
fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && label_key_errors(&format!("requests.{name}")).is_empty()
}

/// Matches `validateResourceName`; whether the name may be used is left to the caller.
fn resource_name(name: &str, field: &str, errors: &mut Vec<FieldError>) {
    let messages = label_key_errors(name);
    let is_standard = MEASURED.contains(&name)
        || COUNTED.contains(&name)
        || name.starts_with(HUGE)
        || name.starts_with("requests.hugepages-");
    if messages.is_empty() && !name.contains('/') && !is_standard {
        errors.push(invalid_json(field, name, "must be a standard resource type or fully qualified"));
    }
    errors.extend(messages.iter().map(|message| invalid_json(field, name, message)));
}

/// Matches `ValidateContainerResourceName`.
fn container_name(name: &str, field: &str, errors: &mut Vec<FieldError>) {
    resource_name(name, field, errors);
    if !name.contains('/') {
        let is_known = ["cpu", "memory", "ephemeral-storage"].contains(&name) || name.starts_with(HUGE);
        if !is_known {
            errors.push(invalid_json(field, name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(invalid_json(field, name, "doesn't follow extended resource name standard"));
    }
}

/// Matches `validatePodResourceName`.
fn pod_name(name: &str, field: &str, errors: &mut Vec<FieldError>) {
    let before = errors.len();
    resource_name(name, field, errors);
    let is_known = ["cpu", "memory"].contains(&name) || name.starts_with(HUGE);
    if errors.len() == before && !is_known {
        errors.push(not_supported(field, name, &["cpu", HUGE, "memory"]));
    }
}

/// Matches `validateResourceClaimNames`.
fn claim_names(claims: &[Value], known: &BTreeSet<&str>, path: &str, errors: &mut Vec<FieldError>) {
    let (mut whole, mut parts) = (BTreeSet::new(), BTreeSet::new());
    for (index, claim) in claims.iter().enumerate() {
        let (name, request, at) = (text(claim, "name"), text(claim, "request"), format!("{path}[{index}]"));
        if name.is_empty() {
            errors.push(required(at, ""));
            continue;
        }
        if whole.contains(name) {
            errors.push(duplicate(at.as_str(), name));
        } else if request.is_empty() {
            // Each part that was claimed before is one overlap.
            let overlaps = parts.range((name, "")..).take_while(|(of, _)| *of == name).count();
            errors.extend((0..overlaps).map(|_| duplicate(at.as_str(), name)));
            whole.insert(name);
        } else {
            errors.extend(each_message(&format!("{at}.request"), request, dns_label_errors(request)));
            if !parts.insert((name, request)) {
                errors.push(duplicate(at.as_str(), format!("{name}/{request}")));
            }
        }
        if !known.contains(name) {
            let mut error = not_found(at, name);
            error.body += ": must be one of the names in pod.spec.resourceClaims";
            if known.is_empty() {
                error.body += " which is empty";
            } else if errors.len() < LISTED {
                error.body += ": ";
                error.body += &known.iter().copied().collect::<Vec<_>>().join(", ");
            }
            errors.push(error);
        }
    }
}

/// Validates the resources of a Pod.
pub(super) fn of_pod(spec: &Value, claims: &BTreeSet<&str>, path: &str, errors: &mut Vec<FieldError>) {
    let resources = &spec["resources"];
    if resources.is_null() {
        return;
    }
    let path = format!("{path}.resources");
    if text(spec, "os.name") == "windows" {
        errors.push(forbidden(path, "may not be set for a windows pod"));
        return;
    }
    if !resources["claims"].is_null() {
        errors.push(forbidden(format!("{path}.claims"), "claims may not be set for Resources at pod-level"));
    }
    validate(resources, pod_name, claims, &path, errors);
    for list in ["requests", "limits"] {
        for (name, sum) in aggregate(spec, list) {
            let Some(shown) = resources[list][name].as_str() else { continue };
            let is_judged = list == "requests" || name.starts_with(HUGE);
            if is_judged && quantity::parse(shown).is_some_and(|of_pod| sum.exceeds(&of_pod)) {
                let detail = format!("must be greater than or equal to aggregate container {list} of {}", sum.text());
                errors.push(invalid(format!("{path}.{list}[{name}]"), shown, &detail));
            }
        }
    }
    for (index, container) in list(spec, "containers").iter().enumerate() {
        for (name, shown, limit) in entries(&container["resources"], "limits") {
            let Some(most) = resources["limits"][name].as_str() else { continue };
            if quantity::parse(most).is_some_and(|most| limit.exceeds(&most)) {
                let field = format!("{path}.containers[{index}][{name}].limits");
                errors.push(invalid(field, shown, &format!("must be less than or equal to pod limits of {most}")));
            }
        }
    }
}

/// What the containers of a Pod need at most at one time: all that run, or an init container with the sidecars before it.
fn aggregate<'a>(spec: &'a Value, list: &str) -> BTreeMap<&'a str, Quantity> {
    type Sum<'a> = BTreeMap<&'a str, Quantity>;
    fn add<'a>(sum: &mut Sum<'a>, more: &Sum<'a>) {
        for (name, amount) in more {
            sum.entry(*name).and_modify(|sum| *sum = sum.plus(amount)).or_insert_with(|| amount.clone());
        }
    }
    fn raise<'a>(most: &mut Sum<'a>, other: &Sum<'a>) {
        for (name, amount) in other {
            let known = most.entry(*name).or_insert_with(|| amount.clone());
            if amount.exceeds(known) {
                known.clone_from(amount);
            }
        }
    }
    let of = |container: &'a Value| -> Sum<'a> {
        entries(&container["resources"], list).map(|(name, _, amount)| (name.as_str(), amount)).collect()
    };
    let (mut sum, mut sidecars, mut starting) = (Sum::new(), Sum::new(), Sum::new());
    for container in crate::kinds::fields::list(spec, "containers") {
        add(&mut sum, &of(container));
    }
    for container in crate::kinds::fields::list(spec, "initContainers") {
        let own = of(container);
        if text(container, "restartPolicy") == "Always" {
            add(&mut sum, &own);
            add(&mut sidecars, &own);
            raise(&mut starting, &sidecars);
        } else {
            let mut together = own;
            add(&mut together, &sidecars);
            raise(&mut starting, &together);
        }
    }
    raise(&mut sum, &starting);
    sum
}

/// Validates `resizePolicy`. Upstream names the list and not the entry in most errors.
pub(super) fn resize_policy(policies: &[Value], restart_policy: &str, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, policy) in policies.iter().enumerate() {
        let (name, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if !seen.insert(name) {
            errors.push(duplicate(format!("{path}[{index}]"), name));
        }
        for (value, supported) in [(name, ["cpu", "memory"]), (restart, ["NotRequired", "RestartContainer"])] {
            if value.is_empty() {
                errors.push(required(path, ""));
            } else if !supported.contains(&value) {
                errors.push(not_supported(path, value, &supported));
            }
        }
        if restart_policy == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(invalid_json(path, restart, detail));
        }
    }
}
