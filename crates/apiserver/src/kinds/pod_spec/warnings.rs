//! The warnings about a Pod or a Pod template that is accepted.
//!
//! Guarantees: those of kube-apiserver, in its words. Matches k8s.io/kubernetes `pkg/api/pod/warnings.go`. Ports and files are
//! compared with each other, so of each Pod and each volume only the first [`COMPARED`] are; a server cuts such a number of warnings
//! off anyway.

use std::collections::{BTreeMap, BTreeSet};

use apimachinery::names::label_value_errors;
use apimachinery::quoting::quote;
use serde_json::Value;

use super::annotations::{APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD};
use super::containers_with_paths;
use super::overlaps;
use super::paths::canonical_ip;
use crate::kinds::fields::{at, list, number, text};
use crate::kinds::quantity;

/// How many ports of a Pod, and how many files of a volume, are compared with each other.
pub(super) const COMPARED: usize = 500;
const NODE_LABELS: [(&str, &str); 7] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
];
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];
const VOLUMES: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];
const NO_POD: &str = "a null labelSelector results in matching no pod";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// The warnings about a Pod template at `path`, or about a Pod, whose path is empty.
pub(in crate::kinds) fn warnings(pod: &Value, path: &str) -> Vec<String> {
    let at = if path.is_empty() { "spec".to_owned() } else { format!("{path}.spec") };
    let metadata = if path.is_empty() { "metadata".to_owned() } else { format!("{path}.metadata") };
    let mut told = Told(Vec::new());
    let spec = &pod["spec"];
    of_nodes(spec, &at, &mut told);
    of_volumes(spec, &at, &mut told);
    overlaps::of_volumes(spec, &mut told.0);
    of_names(spec, &at, &mut told);
    fractions(&spec["overhead"], &["memory", "ephemeral-storage"], &format!("{at}.overhead"), &mut told);
    of_annotations(pod, !path.is_empty(), &format!("{metadata}.annotations"), &mut told);
    for (container, at) in containers_with_paths(spec, &at) {
        for list in ["limits", "requests"] {
            let at = format!("{at}.resources.{list}");
            fractions(&container["resources"][list], &["memory", "ephemeral-storage"], &at, &mut told);
        }
        of_env(container, &format!("{at}.env"), &mut told);
    }
    of_ports(spec, &at, &mut told);
    if number(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        let warning = "must be >= 0; negative values are invalid and will be treated as 1";
        told.about(&format!("{at}.terminationGracePeriodSeconds"), warning);
    }
    of_affinity(spec, &at, &mut told);
    of_addresses(spec, &at, &mut told);
    told.0
}

/// What was found so far.
struct Told(Vec<String>);

impl Told {
    fn about(&mut self, field: &str, warning: &str) {
        self.0.push(format!("{field}: {warning}"));
    }
}

fn deprecated(label: &str) -> Option<&'static str> {
    NODE_LABELS.iter().find(|(known, _)| *known == label).map(|(_, message)| *message)
}

fn of_nodes(spec: &Value, path: &str, told: &mut Told) {
    for (key, _) in spec["nodeSelector"].as_object().into_iter().flatten() {
        if let Some(message) = deprecated(key) {
            told.about(&format!("{path}.nodeSelector[{key}]"), message);
        }
    }
    let nodes = &spec["affinity"]["nodeAffinity"];
    let at = format!("{path}.affinity.nodeAffinity");
    for (index, term) in list(&nodes[REQUIRED], "nodeSelectorTerms").iter().enumerate() {
        of_term(term, false, &format!("{at}.{REQUIRED}.nodeSelectorTerms[{index}]"), told);
    }
    for (index, term) in list(nodes, PREFERRED).iter().enumerate() {
        of_term(&term["preference"], true, &format!("{at}.{PREFERRED}[{index}].preference"), told);
    }
    for (index, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let at = format!("{path}.topologySpreadConstraints[{index}]");
        let key = text(constraint, "topologyKey");
        if let Some(message) = deprecated(key) {
            told.about(&format!("{at}.topologyKey"), &format!("{key} is {message}"));
        }
        if constraint["labelSelector"].is_null() {
            told.about(&format!("{at}.labelSelector"), NO_POD);
        }
    }
}

fn of_term(term: &Value, judges_values: bool, path: &str, told: &mut Told) {
    for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
        let at = format!("{path}.matchExpressions[{index}]");
        let key = text(expression, "key");
        if let Some(message) = deprecated(key) {
            told.about(&format!("{at}.key"), &format!("{key} is {message}"));
        }
        let values = list(expression, "values").iter().filter_map(Value::as_str).enumerate();
        for (n, value) in values.filter(|_| judges_values) {
            for wrong in label_value_errors(value) {
                told.about(&format!("{at}.values[{n}]"), &format!("{value} is invalid, {wrong}"));
            }
        }
    }
}

fn of_volumes(spec: &Value, path: &str, told: &mut Told) {
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let at = format!("{path}.volumes[{index}]");
        for (name, shown, message) in VOLUMES {
            if !volume[name].is_null() {
                told.about(&format!("{at}.{shown}"), message);
            }
        }
        let resources = &volume["ephemeral"]["volumeClaimTemplate"]["spec"]["resources"];
        for list in ["requests", "limits"] {
            let at = format!("{at}.ephemeral.volumeClaimTemplate.spec.resources.{list}");
            fractions(&resources[list], &["storage"], &at, told);
        }
    }
}

/// Amounts of bytes that are no whole number.
fn fractions(amounts: &Value, names: &[&str], path: &str, told: &mut Told) {
    for name in names {
        let Some(shown) = amounts[*name].as_str() else { continue };
        if quantity::parse(shown).is_some_and(|amount| !amount.is_whole()) {
            let message = format!("fractional byte value {} is invalid, must be an integer", quote(shown));
            told.about(&format!("{path}[{name}]"), &message);
        }
    }
}

fn of_names(spec: &Value, path: &str, told: &mut Told) {
    for (name, key, noun) in [("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")] {
        let mut seen = BTreeSet::new();
        for (index, item) in list(spec, name).iter().enumerate() {
            let value = text(item, key);
            if !seen.insert(value) {
                told.about(&format!("{path}.{name}[{index}].{key}"), &format!("duplicate {noun} {}", quote(value)));
            }
        }
    }
    for (index, _) in list(spec, "imagePullSecrets").iter().enumerate().filter(|(_, one)| text(one, "name").is_empty())
    {
        told.about(&format!("{path}.imagePullSecrets[{index}].name"), "invalid empty name \"\"");
    }
}

fn of_annotations(pod: &Value, is_template: bool, path: &str, told: &mut Told) {
    let (annotations, spec) = (at(pod, "metadata.annotations"), &pod["spec"]);
    let seccomp = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
    for (key, message) in ANNOTATIONS {
        if annotations[key].is_string() {
            told.about(&format!("{path}[{key}]"), message);
        }
    }
    if at(spec, "securityContext.seccompProfile").is_null() && annotations[SECCOMP_POD].is_string() {
        told.about(&format!("{path}[{SECCOMP_POD}]"), seccomp);
    }
    for (container, _) in containers_with_paths(spec, "") {
        let (name, context) = (text(container, "name"), &container["securityContext"]);
        let key = format!("{SECCOMP_CONTAINER}{name}");
        if context["seccompProfile"].is_null() && annotations[&key].is_string() {
            told.about(&format!("{path}[{key}]"), seccomp);
        }
        let key = format!("{APP_ARMOR}{name}");
        let Some(value) = annotations[&key].as_str().filter(|_| is_template) else { continue };
        let of_pod = at(spec, "securityContext.appArmorProfile");
        if context["appArmorProfile"].is_null() && !is_profile(of_pod, value) {
            told.about(&format!("{path}[{key}]"), "deprecated since v1.30; use the \"appArmorProfile\" field instead");
        }
    }
}

/// Whether a field says what an annotation says. Matches `ApparmorFieldForAnnotation`.
fn is_profile(profile: &Value, annotation: &str) -> bool {
    let file = profile["localhostProfile"].as_str();
    match text(profile, "type") {
        "Unconfined" => annotation == "unconfined" && file.is_none(),
        "RuntimeDefault" => annotation == "runtime/default" && file.is_none(),
        "Localhost" => annotation.strip_prefix("localhost/").is_some_and(|path| !path.is_empty() && file == Some(path)),
        _ => false,
    }
}

/// A variable that is set twice, unless the second value contains the first.
fn of_env(container: &Value, path: &str, told: &mut Told) {
    let mut seen = BTreeSet::new();
    for (index, var) in list(container, "env").iter().enumerate() {
        let (name, value) = (text(var, "name"), text(var, "value"));
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        if !var["valueFrom"].is_null() || value == reference || !value.contains(&reference) {
            let message =
                format!("hides previous definition of {}, which may be dropped when using apply", quote(name));
            told.about(&format!("{path}[{index}]"), &message);
        }
    }
}

fn of_ports(spec: &Value, path: &str, told: &mut Told) {
    struct Known<'a> {
        at: String,
        host: (i64, &'a str),
    }
    let mut ports: BTreeMap<(i64, &str), Vec<Known>> = BTreeMap::new();
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    let mut of_names = Vec::new();
    let all = containers_with_paths(spec, path).flat_map(|(container, at)| {
        list(container, "ports").iter().enumerate().map(move |(n, port)| (format!("{at}.ports[{n}]"), port))
    });
    for (at, port) in all.take(COMPARED) {
        let of = |name: &str| number(port, name).unwrap_or(0);
        let (name, host_ip, protocol) = (text(port, "name"), text(port, "hostIP"), text(port, "protocol"));
        let (own, host) = (of("containerPort"), of("hostPort"));
        if !host_ip.is_empty() && host == 0 {
            let shown = format!("{{Name:{name} HostPort:0 ContainerPort:{own} Protocol:{protocol} HostIP:{host_ip}}}");
            told.about(&at, &format!("hostIP set without hostPort: {shown}"));
        }
        let others = ports.entry((own, protocol)).or_default();
        for Known { at: other, host: (other_host, other_ip) } in others.iter() {
            if (host, host_ip) == (*other_host, *other_ip) {
                told.about(&at, &format!("duplicate port definition with {other}"));
            } else if host == 0 || *other_host == 0 {
                told.about(&at, &format!("overlapping port definition with {other}"));
            } else if host == *other_host && host_ip.is_empty() != other_ip.is_empty() {
                told.about(&at, &format!("dangerously ambiguous port definition with {other}"));
            }
        }
        others.push(Known { at: at.clone(), host: (host, host_ip) });
        if name.is_empty() {
            continue;
        }
        match names.get(name) {
            Some(other) => of_names.push(format!(
                "{at}: duplicate port name {} with {other}, services and probes that select ports by name will use {other}",
                quote(name)
            )),
            None => drop(names.insert(name, at)),
        }
    }
    told.0.extend(of_names);
}

fn of_affinity(spec: &Value, path: &str, told: &mut Told) {
    for name in ["podAffinity", "podAntiAffinity"] {
        let (pods, at) = (&spec["affinity"][name], format!("{path}.affinity.{name}"));
        for (index, term) in list(pods, REQUIRED).iter().enumerate() {
            if term["labelSelector"].is_null() {
                told.about(&format!("{at}.{REQUIRED}[{index}].labelSelector"), NO_POD);
            }
        }
        for (index, term) in list(pods, PREFERRED).iter().enumerate() {
            if term["podAffinityTerm"]["labelSelector"].is_null() {
                told.about(&format!("{at}.{PREFERRED}[{index}].podAffinityTerm.labelSelector"), NO_POD);
            }
        }
    }
}

fn of_addresses(spec: &Value, path: &str, told: &mut Told) {
    let mut judge = |field: String, value: &str| {
        if let Some(canonical) = canonical_ip(value) {
            let message =
                format!("IPv6 address {} should be in RFC 5952 canonical format ({})", quote(value), quote(&canonical));
            told.about(&field, &message);
        }
    };
    for (index, server) in list(spec, "dnsConfig.nameservers").iter().filter_map(Value::as_str).enumerate() {
        judge(format!("{path}.dnsConfig.nameservers[{index}]"), server);
    }
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        judge(format!("{path}.hostAliases[{index}].ip"), text(alias, "ip"));
    }
}
