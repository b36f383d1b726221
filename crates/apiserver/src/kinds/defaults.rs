//! The defaults of core/v1, batch/v1 and of the groups whose kinds are stored only.
//!
//! Guarantees: after [`set`] an object has the values that upstream's generated `SetObjectDefaults_…` would set. Most defaults
//! belong to a Go type wherever it occurs (containers, probes, volumes). One walk over the object along the table of types sets
//! these; a kind's strategy sets the defaults of that kind alone.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use super::fields::{at, child, default};
use super::types::{self, Type};

/// Sets the defaults of every struct below `root`, parents before children.
pub(super) fn set(object: &mut Value, root: &str) {
    of_type(object, root);
    let shape = types::lookup(root);
    for (name, value) in object.as_object_mut().into_iter().flatten() {
        if (value.is_object() || value.is_array())
            && let Some(field) = shape.fields.get(name)
        {
            descend(value, &field.type_);
        }
    }
}

fn descend(value: &mut Value, type_: &Type) {
    match (type_, value) {
        (Type::Struct(name), value @ Value::Object(_)) => set(value, name),
        (Type::Pointer(inner), value) => descend(value, inner),
        (Type::List(inner), Value::Array(items)) => items.iter_mut().for_each(|item| descend(item, inner)),
        (Type::Map(inner), Value::Object(entries)) => entries.values_mut().for_each(|item| descend(item, inner)),
        _ => {}
    }
}

/// Matches k8s.io/kubernetes `pkg/apis/core/v1/defaults.go` and `pkg/apis/batch/v1/defaults.go`.
fn of_type(object: &mut Value, name: &str) {
    match name {
        "core.v1.PodSpec" => {
            default(object, "dnsPolicy", "ClusterFirst");
            default(object, "restartPolicy", "Always");
            default(object, "securityContext", json!({}));
            default(object, "terminationGracePeriodSeconds", 30);
            default(object, "schedulerName", "default-scheduler");
            twin(object, "serviceAccountName", "serviceAccount");
        }
        "core.v1.Container" | "core.v1.EphemeralContainer" => {
            let policy = pull_policy(object["image"].as_str().unwrap_or_default());
            default(object, "imagePullPolicy", policy);
            default(object, "terminationMessagePath", "/dev/termination-log");
            default(object, "terminationMessagePolicy", "File");
        }
        "core.v1.ContainerPort" => default(object, "protocol", "TCP"),
        "core.v1.ImageVolumeSource" => {
            let policy = pull_policy(object["reference"].as_str().unwrap_or_default());
            default(object, "pullPolicy", policy);
        }
        "core.v1.Probe" => {
            for (field, value) in
                [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
            {
                default(object, field, value);
            }
        }
        "core.v1.HTTPGetAction" => {
            default(object, "path", "/");
            default(object, "scheme", "HTTP");
        }
        "core.v1.GRPCAction" => default(object, "service", ""),
        "core.v1.ObjectFieldSelector" => default(object, "apiVersion", "v1"),
        "core.v1.FileKeySelector" => default(object, "optional", false),
        "core.v1.Volume" if object.as_object().is_some_and(|fields| fields.keys().all(|key| key == "name")) => {
            object["emptyDir"] = json!({});
        }
        "core.v1.ServiceAccountTokenProjection" => default(object, "expirationSeconds", 3600),
        "core.v1.PersistentVolumeClaimSpec" => default(object, "volumeMode", "Filesystem"),
        "batch.v1.PodFailurePolicyOnPodConditionsPattern" if object["status"] == "" => object["status"] = "True".into(),
        "batch.v1.CronJobSpec" => {
            default(object, "concurrencyPolicy", "Allow");
            default(object, "suspend", false);
            default(object, "successfulJobsHistoryLimit", 3);
            default(object, "failedJobsHistoryLimit", 1);
        }
        _ if name.ends_with("VolumeSource") => of_volume_source(object, name),
        _ => of_stored_type(object, name),
    }
}

/// The defaults of where a volume's files come from.
fn of_volume_source(object: &mut Value, name: &str) {
    match name {
        "core.v1.SecretVolumeSource"
        | "core.v1.ConfigMapVolumeSource"
        | "core.v1.DownwardAPIVolumeSource"
        | "core.v1.ProjectedVolumeSource" => default(object, "defaultMode", 0o644),
        "core.v1.HostPathVolumeSource" => default(object, "type", ""),
        "core.v1.ISCSIVolumeSource" => default(object, "iscsiInterface", "default"),
        "core.v1.RBDVolumeSource" => {
            default(object, "pool", "rbd");
            default(object, "user", "admin");
            default(object, "keyring", "/etc/ceph/keyring");
        }
        "core.v1.AzureDiskVolumeSource" => {
            default(object, "cachingMode", "ReadWrite");
            default(object, "fsType", "ext4");
            default(object, "readOnly", false);
            default(object, "kind", "Shared");
        }
        "core.v1.ScaleIOVolumeSource" => {
            default(object, "storageMode", "ThinProvisioned");
            default(object, "fsType", "xfs");
        }
        _ => of_stored_type(object, name),
    }
}

/// The defaults of kinds that are stored only, without those of rare fields. Matches `defaults.go` of k8s.io/kubernetes
/// `pkg/apis/{core,networking,rbac,flowcontrol,admissionregistration}/v1`.
fn of_stored_type(object: &mut Value, name: &str) {
    const RBAC: &str = "rbac.authorization.k8s.io";
    match name {
        "core.v1.Secret" => default(object, "type", "Opaque"),
        "core.v1.ServiceSpec" => {
            default(object, "sessionAffinity", "None");
            default(object, "type", "ClusterIP");
            if object["type"] != "ExternalName" {
                default(object, "internalTrafficPolicy", "Cluster");
            }
        }
        "core.v1.ServicePort" => {
            default(object, "protocol", "TCP");
            if matches!(&object["targetPort"], target if *target == 0 || *target == "") {
                object["targetPort"] = object["port"].clone();
            }
        }
        "networking.v1.NetworkPolicyPort" => default(object, "protocol", "TCP"),
        "networking.v1.NetworkPolicySpec" => {
            let both = object["egress"].is_array();
            default(object, "policyTypes", if both { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
        }
        "rbac.v1.RoleRef" => default_text(object, "apiGroup", RBAC),
        "rbac.v1.Subject" if object["kind"] != "ServiceAccount" => default_text(object, "apiGroup", RBAC),
        "flowcontrol.v1.FlowSchemaSpec" if object["matchingPrecedence"] == 0 => {
            object["matchingPrecedence"] = 1000.into();
        }
        "flowcontrol.v1.LimitedPriorityLevelConfiguration" => {
            default(object, "nominalConcurrencyShares", 30);
            default(object, "lendablePercent", 0);
        }
        "admissionregistration.v1.MutatingWebhook" | "admissionregistration.v1.ValidatingWebhook" => {
            default(object, "failurePolicy", "Fail");
            default(object, "matchPolicy", "Equivalent");
            default(object, "namespaceSelector", json!({}));
            default(object, "objectSelector", json!({}));
            default(object, "timeoutSeconds", 10);
            if name.ends_with("MutatingWebhook") {
                default(object, "reinvocationPolicy", "Never");
            }
        }
        "admissionregistration.v1.ValidatingAdmissionPolicySpec"
        | "admissionregistration.v1.MutatingAdmissionPolicySpec" => default(object, "failurePolicy", "Fail"),
        "admissionregistration.v1.MatchResources" => {
            default(object, "matchPolicy", "Equivalent");
            default(object, "namespaceSelector", json!({}));
            default(object, "objectSelector", json!({}));
        }
        "admissionregistration.v1.RuleWithOperations" | "admissionregistration.v1.NamedRuleWithOperations" => {
            default(object, "scope", "*");
        }
        "admissionregistration.v1.ServiceReference" => default(object, "port", 443),
        _ => of_workload(object, name),
    }
}

/// The defaults of what runs Pods, in a cluster. Matches `defaults.go` of k8s.io/kubernetes `pkg/apis/{apps,autoscaling}`.
fn of_workload(object: &mut Value, name: &str) {
    match name {
        "apps.v1.DeploymentSpec" => {
            default(object, "replicas", 1);
            default(object, "revisionHistoryLimit", 10);
            default(object, "progressDeadlineSeconds", 600);
            default(child(object, "strategy"), "type", "RollingUpdate");
            if object["strategy"]["type"] == "RollingUpdate" {
                let update = child(child(object, "strategy"), "rollingUpdate");
                default(update, "maxSurge", "25%");
                default(update, "maxUnavailable", "25%");
            }
        }
        "apps.v1.ReplicaSetSpec" => default(object, "replicas", 1),
        "apps.v1.DaemonSetSpec" => {
            default(object, "revisionHistoryLimit", 10);
            default(child(object, "updateStrategy"), "type", "RollingUpdate");
            if object["updateStrategy"]["type"] == "RollingUpdate" {
                let update = child(child(object, "updateStrategy"), "rollingUpdate");
                default(update, "maxUnavailable", 1);
                default(update, "maxSurge", 0);
            }
        }
        "apps.v1.StatefulSetSpec" => {
            default(object, "replicas", 1);
            default(object, "revisionHistoryLimit", 10);
            default(object, "podManagementPolicy", "OrderedReady");
            default(child(object, "updateStrategy"), "type", "RollingUpdate");
            if object["updateStrategy"]["type"] == "RollingUpdate" {
                default(child(child(object, "updateStrategy"), "rollingUpdate"), "partition", 0);
            }
            let retention = child(object, "persistentVolumeClaimRetentionPolicy");
            default(retention, "whenDeleted", "Retain");
            default(retention, "whenScaled", "Retain");
        }
        "autoscaling.v2.HorizontalPodAutoscalerSpec" => default(object, "minReplicas", 1),
        _ => {}
    }
}

/// Sets a string field that Go writes empty if it is absent.
fn default_text(object: &mut Value, name: &str, value: &str) {
    if object[name] == "" {
        object[name] = value.into();
    }
}

/// The service account has two names on the wire; upstream's conversion sets both.
fn twin(object: &mut Value, name: &str, deprecated: &str) {
    match (object[name].as_str().map(str::to_owned), object[deprecated].as_str().map(str::to_owned)) {
        (Some(value), _) => object[deprecated] = value.into(),
        (None, Some(value)) => object[name] = value.into(),
        (None, None) => {}
    }
}

/// The form of an image's reference, by the grammar of github.com/distribution/reference: domain, path, tag and digest.
static REFERENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let label = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
    let domain = format!(r"(?:{label}(?:\.{label})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?");
    let part = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
    let digest = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
    let tag = r"[0-9A-Za-z_][0-9A-Za-z_.\-]{0,127}";
    Regex::new(&format!("^(?:{domain}/)?({part}(?:/{part})*)(?::({tag}))?(?:@({digest}))?$")).ok()
});

/// The longest path of an image, in bytes.
const IMAGE_PATH: usize = 255;

/// `Always` for the tag `latest`, which is also the tag of an image without one; `IfNotPresent` for an invalid image. Matches
/// `SetDefaults_Container`.
fn pull_policy(image: &str) -> &'static str {
    if tag_of(image) == Some("latest") { "Always" } else { "IfNotPresent" }
}

/// The tag of a valid image. Matches `ParseImageName`.
fn tag_of(image: &str) -> Option<&str> {
    let is_identifier = image.len() == 64 && image.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let (first, rest) = image.split_once('/').unwrap_or(("", image));
    let has_domain = first.contains(['.', ':']) || first == "localhost" || first != first.to_lowercase();
    // Without a domain, what looks like one is a part of the path.
    let (normalized, rest) = if has_domain { (image.to_owned(), rest) } else { (format!("docker.io/{image}"), image) };
    let captures = REFERENCE.as_ref()?.captures(&normalized).filter(|_| !is_identifier)?;
    // A repository of docker.io alone is in its library.
    let library = if !has_domain && !rest.contains('/') { "library/".len() } else { 0 };
    let is_known = |digest: &str| {
        let (algorithm, hex) = digest.split_once(':').unwrap_or_default();
        let length = match algorithm {
            "sha256" => 64,
            "sha384" => 96,
            "sha512" => 128,
            _ => return false,
        };
        hex.len() == length && !hex.contains(|c: char| c.is_ascii_uppercase())
    };
    let digest = captures.get(3).map(|digest| digest.as_str());
    if captures.get(1)?.len() + library > IMAGE_PATH || digest.is_some_and(|digest| !is_known(digest)) {
        return None;
    }
    let tag = captures.get(2).map(|tag| tag.len());
    let before_digest = image.split_once('@').map_or(image, |(image, _)| image);
    match (tag, digest) {
        (Some(length), _) => before_digest.get(before_digest.len() - length..),
        (None, None) => Some("latest"),
        (None, Some(_)) => None,
    }
}

/// The defaults of a Job that do not apply to a Job template. Matches `SetDefaults_Job`.
pub(super) fn set_job(job: &mut Value) {
    if at(job, "spec.completions").is_null() && at(job, "spec.parallelism").is_null() {
        child(job, "spec")["completions"] = 1.into();
    }
    let spec = child(job, "spec");
    default(spec, "parallelism", 1);
    let per_index = !at(spec, "backoffLimitPerIndex").is_null();
    default(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
    default(spec, "completionMode", "NonIndexed");
    default(spec, "suspend", false);
    default(spec, "manualSelector", false);
    let with_policy = !at(spec, "podFailurePolicy").is_null();
    default(spec, "podReplacementPolicy", if with_policy { "Failed" } else { "TerminatingOrFailed" });
    labels_from_template(job);
}

/// Gives a Job without labels those of its template.
pub(super) fn labels_from_template(job: &mut Value) {
    let labels = at(job, "spec.template.metadata.labels").clone();
    let own = at(job, "metadata.labels").as_object().is_some_and(|labels| !labels.is_empty());
    if labels.as_object().is_some_and(|labels| !labels.is_empty()) && !own {
        child(job, "metadata")["labels"] = labels;
    }
}

/// The defaults of a Pod that do not apply to a Pod template. Matches `SetDefaults_Pod`.
pub(super) fn set_pod(pod: &mut Value) {
    let spec = child(pod, "spec");
    default(spec, "enableServiceLinks", true);
    let host_network = at(spec, "hostNetwork") == &Value::Bool(true);
    for list in ["containers", "initContainers"] {
        let Some(containers) = spec.get_mut(list).and_then(Value::as_array_mut) else { continue };
        for container in containers {
            let limits = at(container, "resources.limits").as_object().cloned().unwrap_or_default();
            for (name, value) in limits {
                let requests = child(child(container, "resources"), "requests");
                default(requests, &name, value);
            }
            let Some(ports) = container.get_mut("ports").and_then(Value::as_array_mut) else { continue };
            for port in ports.iter_mut().filter(|_| host_network) {
                let number = at(port, "containerPort").clone();
                default(port, "hostPort", number);
            }
        }
    }
}
