//! Kinds that are stored without effect, so that every manifest for a cluster can be applied here.
//!
//! Guarantees: objects are decoded, defaulted, merged and printed as kube-apiserver does, and their generation counts changes.
//! Missing required fields are errors. Nothing else is validated, and no controller acts on the objects: a Deployment starts no
//! Pod, a Service has no address, a Role grants nothing, a quota is not enforced.
//!
//! Tables match k8s.io/kubernetes `pkg/printers/internalversion/printers.go`.

use std::sync::Arc;

use apimachinery::field::FieldError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::fields::{at, child, copy, list, required, text};
use super::{age, columns, container_cells, count, defaults, names, normalize, resource, selector_cell, types};
use crate::openapi;
use crate::registry::{Column, NameRule, Resource, Strategy};

/// The stored kinds; a server serves them if its configuration includes them.
pub fn stored() -> Vec<Resource> {
    let core = |kind, plural| resource("", kind, plural);
    let flow = |kind, plural| resource("flowcontrol.apiserver.k8s.io", kind, plural).cluster();
    let rbac = |kind, plural| resource("rbac.authorization.k8s.io", kind, plural);
    let role = Stored { names: NameRule::PathSegment, columns: &ROLES, ..PLAIN };
    let binding =
        Stored { names: NameRule::PathSegment, columns: &BINDINGS, needs: &["roleRef.kind", "roleRef.name"], ..PLAIN };
    let flow_schema =
        Stored { counted: "spec", columns: &FLOW_SCHEMAS, needs: &["spec.priorityLevelConfiguration.name"], ..PLAIN };
    let priority_level = Stored { counted: "spec", columns: &PRIORITY_LEVELS, needs: &["spec.type"], ..PLAIN };
    let kinds = vec![
        called(&["cm"], Stored { columns: &CONFIG_MAPS, ..PLAIN }.of(core("ConfigMap", "configmaps"))),
        called(&["quota"], Stored { columns: &QUOTAS, ..PLAIN }.of(core("ResourceQuota", "resourcequotas"))),
        Stored { columns: &SECRETS, fold: encode_string_data, selectable: &["type"], ..PLAIN }
            .of(core("Secret", "secrets")),
        called(&["sa"], PLAIN.of(core("ServiceAccount", "serviceaccounts"))),
        Resource {
            categories: names(&["all"]),
            ..called(
                &["svc"],
                Stored { columns: &SERVICES, selectable: &["spec.clusterIP", "spec.type"], ..PLAIN }
                    .of(core("Service", "services")),
            )
        },
        flow_schema.of(flow("FlowSchema", "flowschemas")),
        priority_level.of(flow("PriorityLevelConfiguration", "prioritylevelconfigurations")),
        called(
            &["netpol"],
            Stored { counted: "spec", columns: &NETWORK_POLICIES, ..PLAIN }.of(resource(
                "networking.k8s.io",
                "NetworkPolicy",
                "networkpolicies",
            )),
        ),
        called(
            &["pdb"],
            Stored { counted: "spec", columns: &DISRUPTION_BUDGETS, ..PLAIN }.of(resource(
                "policy",
                "PodDisruptionBudget",
                "poddisruptionbudgets",
            )),
        ),
        role.of(rbac("ClusterRole", "clusterroles").cluster()),
        binding.of(rbac("ClusterRoleBinding", "clusterrolebindings").cluster()),
        role.of(rbac("Role", "roles")),
        binding.of(rbac("RoleBinding", "rolebindings")),
    ];
    [kinds, applications(), mutating_policies()].concat()
}

const POLICY: Stored = Stored { counted: "spec", ..PLAIN };
const BINDING: Stored = Stored { columns: &POLICY_BINDINGS, needs: &["spec.policyName"], ..POLICY };

/// A kind of admission policies.
fn admission(kind: Stored, name: &'static str, plural: &'static str) -> Resource {
    let resource = kind.of(resource("admissionregistration.k8s.io", name, plural).cluster());
    Resource { categories: names(&["api-extensions"]), ..resource }
}

/// Policies that have no effect, which a warning says.
fn mutating_policies() -> Vec<Resource> {
    let policy = Stored { columns: &MUTATING, warnings: |_| vec![NO_EFFECT.to_owned()], ..POLICY };
    vec![
        admission(policy, "MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
        admission(BINDING, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
    ]
}

/// Policies that `policies` applies.
pub(super) fn validating_policies() -> Vec<Resource> {
    let policy = Stored {
        columns: &VALIDATING,
        warnings: crate::policies::faults,
        errors: super::validating_policies::errors,
        ..POLICY
    };
    let binding = Stored { errors: super::validating_policies::binding_errors, ..BINDING };
    vec![
        admission(policy, "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        admission(binding, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    ]
}

const NO_EFFECT: &str = "this server applies no MutatingAdmissionPolicy: it is stored and has no effect";

/// What an application has beside its Pods, Services and configuration.
fn applications() -> Vec<Resource> {
    let deployment = Stored {
        counted: "spec",
        columns: &DEPLOYMENTS,
        needs: &["spec.selector", "spec.template.spec.containers"],
        ..PLAIN
    };
    let apps = |kind, plural| resource("apps", kind, plural);
    let workload = |columns| Stored { columns, ..deployment };
    let autoscaling = |kind, plural| resource("autoscaling", kind, plural).version("v2");
    let autoscaler =
        Stored { columns: &AUTOSCALERS, needs: &["spec.scaleTargetRef.kind", "spec.scaleTargetRef.name"], ..PLAIN };
    let claim = Stored { columns: &CLAIMS, needs: &["spec.accessModes", "spec.resources.requests.storage"], ..PLAIN };
    let template = Stored { columns: &POD_TEMPLATES, needs: &["template.spec.containers"], ..PLAIN };
    let ingress = Stored { counted: "spec", columns: &INGRESSES, ..PLAIN };
    vec![
        in_all(&["deploy"], deployment.of(apps("Deployment", "deployments"))),
        in_all(&["ds"], workload(&DAEMON_SETS).of(apps("DaemonSet", "daemonsets"))),
        in_all(&["rs"], workload(&REPLICA_SETS).of(apps("ReplicaSet", "replicasets"))),
        in_all(&["sts"], workload(&STATEFUL_SETS).of(apps("StatefulSet", "statefulsets"))),
        in_all(&["hpa"], autoscaler.of(autoscaling("HorizontalPodAutoscaler", "horizontalpodautoscalers"))),
        called(&["pvc"], claim.of(resource("", "PersistentVolumeClaim", "persistentvolumeclaims"))),
        template.of(resource("", "PodTemplate", "podtemplates")),
        called(&["ing"], ingress.of(resource("networking.k8s.io", "Ingress", "ingresses"))),
    ]
}

/// Merges a Secret's `stringData` into `data`. Matches `Convert_v1_Secret_To_core_Secret` of k8s.io/kubernetes
/// `pkg/apis/core/v1/conversion.go`.
fn encode_string_data(secret: &mut Value) {
    let texts = secret.as_object_mut().and_then(|secret| secret.remove("stringData"));
    for (name, text) in texts.as_ref().and_then(Value::as_object).into_iter().flatten() {
        child(secret, "data")[name] = STANDARD.encode(text.as_str().unwrap_or_default()).into();
    }
}

/// A kind that `kubectl get all` lists.
fn in_all(short_names: &[&str], resource: Resource) -> Resource {
    Resource { categories: names(&["all"]), ..called(short_names, resource) }
}

fn called(short_names: &[&str], resource: Resource) -> Resource {
    Resource { short_names: names(short_names), ..resource }
}

/// The description of a stored kind.
#[derive(Clone, Copy)]
pub(super) struct Stored {
    /// The field whose changes increment the generation; empty for kinds without a generation.
    pub(super) counted: &'static str,
    /// The required fields.
    pub(super) needs: &'static [&'static str],
    /// Converts write-only fields.
    pub(super) fold: fn(&mut Value),
    /// The fields that field selectors accept.
    pub(super) selectable: &'static [&'static str],
    /// The rule for names.
    pub(super) names: NameRule,
    /// The columns after the name.
    pub(super) columns: &'static [Shown],
    /// What a client is told when it writes an object.
    pub(super) warnings: fn(&Value) -> Vec<String>,
    /// Further errors.
    pub(super) errors: fn(&Value) -> Vec<FieldError>,
}

/// A kind without special rules.
pub(super) const PLAIN: Stored = Stored {
    counted: "",
    needs: &[],
    fold: |_| {},
    selectable: &[],
    names: NameRule::Subdomain,
    columns: &[shown("Age", age)],
    warnings: |_| Vec::new(),
    errors: |_| Vec::new(),
};

impl Stored {
    /// The resource; it has a status if its Go type has one.
    pub(super) fn of(self, resource: super::Unserved) -> Resource {
        let root = format!("{}.{}.{}", types::package(resource.group), resource.version, resource.kind);
        let has_status = types::lookup(&root).fields.contains_key("status");
        Resource { has_status, ..resource.with(Arc::new(Kept { root, kind: self })) }
    }
}

/// Implements the strategy of a [`Stored`] kind.
struct Kept {
    root: String,
    kind: Stored,
}

impl Kept {
    fn errors(&self, object: &Value) -> Vec<FieldError> {
        let is_missing = |path: &&&str| match at(object, path) {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        let missing = self.kind.needs.iter().filter(is_missing).map(|path| required(*path, ""));
        missing.chain((self.kind.errors)(object)).collect()
    }

    /// The status that Go writes if there is none.
    fn empty_status(&self) -> Option<Value> {
        let mut empty = json!({});
        normalize::normalize(&mut empty, &self.root).ok()?;
        empty.as_object_mut()?.remove("status")
    }
}

impl Strategy for Kept {
    fn normalize(&self, object: &mut Value) -> Result<Vec<String>, String> {
        let unknown = normalize::normalize(object, &self.root)?;
        (self.kind.fold)(object);
        Ok(unknown)
    }

    fn set_defaults(&self, object: &mut Value) {
        defaults::set(object, &self.root);
    }

    fn prepare_for_create(&self, object: &mut Value) {
        if let Some(status) = self.empty_status() {
            object["status"] = status;
        }
        if !self.kind.counted.is_empty() {
            child(object, "metadata")["generation"] = 1.into();
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        self.errors(object)
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        copy(object, old, "status");
        if !self.kind.counted.is_empty() {
            count(object, old, self.kind.counted);
        }
    }

    fn validate_update(&self, object: &Value, _old: &Value) -> Vec<FieldError> {
        self.errors(object)
    }

    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        (self.kind.warnings)(object)
    }

    fn prepare_for_status_update(&self, object: &mut Value, old: &Value) {
        copy(object, old, "spec");
    }

    fn columns(&self) -> Vec<Column> {
        [columns::name_column(0)].into_iter().chain(self.kind.columns.iter().map(Shown::column)).collect()
    }

    fn cells(&self, object: &Value, now: DateTime<Utc>) -> Vec<Value> {
        let name = object["metadata"]["name"].clone();
        [name].into_iter().chain(self.kind.columns.iter().map(|shown| (shown.cell)(object, now))).collect()
    }

    fn selectable_fields(&self, object: &Value) -> Vec<(&'static str, String)> {
        self.kind.selectable.iter().map(|field| (*field, text(object, field).to_owned())).collect()
    }

    fn patch_merge_key(&self, path: &[&str]) -> Option<&'static str> {
        types::merge_key(&self.root, path)
    }

    fn name_rule(&self) -> NameRule {
        self.kind.names
    }

    fn schema(&self) -> Value {
        openapi::builtin_schema(&self.root)
    }
}

/// A column and its cell.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    heading: &'static str,
    type_: &'static str,
    priority: i32,
    cell: fn(&Value, DateTime<Utc>) -> Value,
}

impl Shown {
    /// Descriptions are empty: kubectl does not print them.
    fn column(&self) -> Column {
        Column {
            name: self.heading.into(),
            type_: self.type_.into(),
            format: "".into(),
            priority: self.priority,
            description: "".into(),
        }
    }
}

const fn shown(heading: &'static str, cell: fn(&Value, DateTime<Utc>) -> Value) -> Shown {
    Shown { heading, type_: "string", priority: 0, cell }
}

/// Labels as `key=value`, with commas.
fn labels_cell(labels: &Value) -> Value {
    let labels = labels.as_object().into_iter().flatten();
    or_none(&joined(labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())), ","))
}

/// A column of wide output only.
const fn wide(heading: &'static str, cell: fn(&Value, DateTime<Utc>) -> Value) -> Shown {
    Shown { priority: 1, ..shown(heading, cell) }
}

const CREATED: Shown =
    Shown { type_: "date", ..shown("Created At", |object, _| object["metadata"]["creationTimestamp"].clone()) };
const AGE: Shown = shown("Age", age);
const CONTAINERS: Shown = wide("Containers", |object, _| containers(object)[0].clone());
const IMAGES: Shown = wide("Images", |object, _| containers(object)[1].clone());
const SELECTOR: Shown = wide("Selector", |object, _| selector_cell(at(object, "spec.selector")));

const CONFIG_MAPS: [Shown; 2] =
    [shown("Data", |object, _| (entries(object, "data") + entries(object, "binaryData")).into()), AGE];

const SECRETS: [Shown; 3] = [
    shown("Type", |object, _| text(object, "type").into()),
    shown("Data", |object, _| entries(object, "data").into()),
    AGE,
];

/// No quota controller runs, so neither requests nor limits are known.
const QUOTAS: [Shown; 3] = [shown("Request", |_, _| "".into()), shown("Limit", |_, _| "".into()), AGE];

const SERVICES: [Shown; 6] = [
    shown("Type", |object, _| text(object, "spec.type").into()),
    shown("Cluster-IP", |object, _| or_none(&at(object, "spec.clusterIPs")[0])),
    shown("External-IP", |object, _| match text(object, "spec.type") {
        "ExternalName" => text(object, "spec.externalName").into(),
        "LoadBalancer" => "<pending>".into(),
        _ => "<none>".into(),
    }),
    shown("Port(s)", |object, _| {
        let ports =
            list(object, "spec.ports").iter().map(|port| format!("{}/{}", port["port"], text(port, "protocol")));
        or_none(&joined(ports, ","))
    }),
    AGE,
    wide("Selector", |object, _| labels_cell(at(object, "spec.selector"))),
];

const DEPLOYMENTS: [Shown; 7] = [
    shown("Ready", |object, _| {
        let number = |path| at(object, path).as_i64().unwrap_or_default();
        format!("{}/{}", number("status.readyReplicas"), number("spec.replicas")).into()
    }),
    shown("Up-to-date", |object, _| or(at(object, "status.updatedReplicas"), 0)),
    shown("Available", |object, _| or(at(object, "status.availableReplicas"), 0)),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const STATEFUL_SETS: [Shown; 4] = [DEPLOYMENTS[0], AGE, CONTAINERS, IMAGES];

const REPLICA_SETS: [Shown; 7] = [
    shown("Desired", |object, _| or(at(object, "spec.replicas"), 0)),
    shown("Current", |object, _| or(at(object, "status.replicas"), 0)),
    shown("Ready", |object, _| or(at(object, "status.readyReplicas"), 0)),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const DAEMON_SETS: [Shown; 10] = [
    shown("Desired", |object, _| or(at(object, "status.desiredNumberScheduled"), 0)),
    shown("Current", |object, _| or(at(object, "status.currentNumberScheduled"), 0)),
    shown("Ready", |object, _| or(at(object, "status.numberReady"), 0)),
    shown("Up-to-date", |object, _| or(at(object, "status.updatedNumberScheduled"), 0)),
    shown("Available", |object, _| or(at(object, "status.numberAvailable"), 0)),
    shown("Node Selector", |object, _| labels_cell(at(object, "spec.template.spec.nodeSelector"))),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// No controller measures anything, so the targets are not shown.
const AUTOSCALERS: [Shown; 6] = [
    shown("Reference", |object, _| {
        let target = at(object, "spec.scaleTargetRef");
        format!("{}/{}", text(target, "kind"), text(target, "name")).into()
    }),
    shown("Targets", |_, _| "<unknown>".into()),
    shown("MinPods", |object, _| or(at(object, "spec.minReplicas"), "<unset>")),
    shown("MaxPods", |object, _| at(object, "spec.maxReplicas").clone()),
    shown("Replicas", |object, _| or(at(object, "status.currentReplicas"), 0)),
    AGE,
];

const CLAIMS: [Shown; 7] = [
    shown("Status", |object, _| or(at(object, "status.phase"), "Pending")),
    shown("Volume", |object, _| text(object, "spec.volumeName").into()),
    shown("Capacity", |_, _| "".into()),
    shown("Access Modes", |_, _| "".into()),
    shown("StorageClass", |object, _| text(object, "spec.storageClassName").into()),
    AGE,
    wide("VolumeMode", |object, _| or(at(object, "spec.volumeMode"), "<unset>")),
];

const POD_TEMPLATES: [Shown; 3] = [
    shown("Containers", |object, _| container_cells(list(object, "template.spec.containers"))[0].clone()),
    shown("Images", |object, _| container_cells(list(object, "template.spec.containers"))[1].clone()),
    shown("Pod Labels", |object, _| labels_cell(at(object, "template.metadata.labels"))),
];

const INGRESSES: [Shown; 5] = [
    shown("Class", |object, _| or_none(at(object, "spec.ingressClassName"))),
    shown("Hosts", |object, _| {
        let hosts = list(object, "spec.rules").iter().map(|rule| text(rule, "host").to_owned());
        or(&joined(hosts.filter(|host| !host.is_empty()), ","), "*")
    }),
    shown("Address", |_, _| "".into()),
    shown("Ports", |object, _| if list(object, "spec.tls").is_empty() { "80" } else { "80, 443" }.into()),
    AGE,
];

const DISRUPTION_BUDGETS: [Shown; 4] = [
    shown("Min Available", |object, _| number_or_percentage(at(object, "spec.minAvailable"))),
    shown("Max Unavailable", |object, _| number_or_percentage(at(object, "spec.maxUnavailable"))),
    Shown {
        type_: "integer",
        ..shown("Allowed Disruptions", |object, _| or(at(object, "status.disruptionsAllowed"), 0))
    },
    AGE,
];

const NETWORK_POLICIES: [Shown; 2] =
    [shown("Pod-Selector", |object, _| selector_cell(at(object, "spec.podSelector"))), AGE];

/// The kind of a policy's parameters.
const PARAM_KIND: Shown = shown("ParamKind", |object, _| {
    let kind = at(object, "spec.paramKind");
    if kind.is_null() {
        "<unset>".into()
    } else {
        format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")).into()
    }
});
const VALIDATING: [Shown; 3] = [
    Shown { type_: "integer", ..shown("Validations", |object, _| list(object, "spec.validations").len().into()) },
    PARAM_KIND,
    AGE,
];
const MUTATING: [Shown; 3] = [
    Shown { type_: "integer", ..shown("Mutations", |object, _| list(object, "spec.mutations").len().into()) },
    PARAM_KIND,
    AGE,
];
const POLICY_BINDINGS: [Shown; 3] = [
    shown("PolicyName", |object, _| at(object, "spec.policyName").clone()),
    shown("ParamRef", |object, _| {
        let (namespace, name) = (text(object, "spec.paramRef.namespace"), text(object, "spec.paramRef.name"));
        let namespace = if namespace.is_empty() { "*" } else { namespace };
        if name.is_empty() { "<unset>".into() } else { format!("{namespace}/{name}").into() }
    }),
    AGE,
];

const FLOW_SCHEMAS: [Shown; 5] = [
    shown("PriorityLevel", |object, _| at(object, "spec.priorityLevelConfiguration.name").clone()),
    shown("MatchingPrecedence", |object, _| at(object, "spec.matchingPrecedence").clone()),
    shown("DistinguisherMethod", |object, _| or_none(at(object, "spec.distinguisherMethod.type"))),
    AGE,
    // The server does not check whether such a priority level exists.
    shown("MissingPL", |_, _| "?".into()),
];

const PRIORITY_LEVELS: [Shown; 6] = [
    shown("Type", |object, _| text(object, "spec.type").into()),
    shown("NominalConcurrencyShares", |object, _| or_none(at(object, "spec.limited.nominalConcurrencyShares"))),
    shown("Queues", |object, _| or_none(at(object, "spec.limited.limitResponse.queuing.queues"))),
    shown("HandSize", |object, _| or_none(at(object, "spec.limited.limitResponse.queuing.handSize"))),
    shown("QueueLengthLimit", |object, _| or_none(at(object, "spec.limited.limitResponse.queuing.queueLengthLimit"))),
    AGE,
];

const ROLES: [Shown; 1] = [CREATED];

const BINDINGS: [Shown; 5] = [
    shown("Role", |object, _| format!("{}/{}", text(object, "roleRef.kind"), text(object, "roleRef.name")).into()),
    AGE,
    wide("Users", |object, _| subjects(object, "User")),
    wide("Groups", |object, _| subjects(object, "Group")),
    wide("ServiceAccounts", |object, _| subjects(object, "ServiceAccount")),
];

/// The columns of admission webhook configurations.
pub(super) const WEBHOOKS: [Shown; 2] =
    [Shown { type_: "integer", ..shown("Webhooks", |object, _| list(object, "webhooks").len().into()) }, AGE];

fn entries(object: &Value, field: &str) -> usize {
    object[field].as_object().map_or(0, serde_json::Map::len)
}

fn or(value: &Value, other: impl Into<Value>) -> Value {
    if value.is_null() || value == "" { other.into() } else { value.clone() }
}

fn or_none(value: &Value) -> Value {
    or(value, "<none>")
}

fn joined(parts: impl Iterator<Item = String>, separator: &str) -> Value {
    parts.collect::<Vec<_>>().join(separator).into()
}

fn number_or_percentage(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.to_string().into(),
        other => or(other, "N/A"),
    }
}

fn containers(object: &Value) -> [Value; 2] {
    container_cells(list(object, "spec.template.spec.containers"))
}

/// Matches `SubjectsStrings`.
fn subjects(object: &Value, kind: &str) -> Value {
    let of_kind = list(object, "subjects").iter().filter(|subject| subject["kind"] == kind);
    let called = of_kind.map(|subject| match text(subject, "namespace") {
        "" => text(subject, "name").to_owned(),
        namespace => format!("{namespace}/{}", text(subject, "name")),
    });
    joined(called, ", ")
}

#[cfg(test)]
mod tests;
