//! Validation of claims: the template of an ephemeral volume's PersistentVolumeClaim, and the Pod's ResourceClaims.
//!
//! Guarantees: see [`super`]. Matches `validateEphemeralVolumeSource`, `ValidatePersistentVolumeClaimSpec` and
//! `validatePodResourceClaims` of k8s.io/kubernetes `pkg/apis/core/validation/validation.go`.

use std::collections::BTreeSet;

use apimachinery::field::FieldError;
use serde_json::Value;

use super::{annotations, selectors, validate_labels};
use crate::kinds::fields::{
    at, dns_label_errors, duplicate, each_message, forbidden, go_struct, invalid, invalid_as, list, not_supported,
    one_of_if_set, require, required, subdomain_errors, text,
};
use crate::kinds::quantity;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
/// The fields that the metadata of a template may not have, with upstream's names in its errors.
const OTHER_METADATA: [(&str, &str); 13] = [
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];

pub(super) fn ephemeral(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let at = format!("{at}.volumeClaimTemplate");
    let template = &source["volumeClaimTemplate"];
    if template.is_null() {
        errors.push(required(at, ""));
        return;
    }
    let metadata = &template["metadata"];
    annotations::keys(&metadata["annotations"], &format!("{at}.metadata.annotations"), errors);
    errors.extend(validate_labels(&metadata["labels"], &format!("{at}.metadata.labels")));
    for (name, shown) in OTHER_METADATA {
        if !metadata[name].is_null() {
            errors.push(forbidden(format!("{at}.metadata.{shown}"), "cannot be set"));
        }
    }
    validate_spec(&template["spec"], &format!("{at}.spec"), errors);
}

fn validate_spec(spec: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let field = format!("{at}.accessModes");
    let modes: Vec<&str> = list(spec, "accessModes").iter().filter_map(Value::as_str).collect();
    if modes.is_empty() {
        errors.push(required(field.as_str(), "at least 1 access mode is required"));
    }
    selectors::validate(&spec["selector"], &format!("{at}.selector"), errors);
    for mode in modes.iter().filter(|mode| !ACCESS_MODES.contains(mode)) {
        errors.push(not_supported(field.as_str(), *mode, &ACCESS_MODES));
    }
    let is_alone = |mode: &&&str| **mode == "ReadWriteOncePod";
    let known = modes.iter().filter(|mode| ACCESS_MODES.contains(mode));
    if known.clone().any(|mode| is_alone(&mode)) && known.clone().any(|mode| !is_alone(&mode)) {
        errors.push(forbidden(field, "may not use ReadWriteOncePod with other access modes"));
    }
    let field = format!("{at}.resources[storage]");
    match spec["resources"]["requests"]["storage"].as_str() {
        None => errors.push(required(field, "")),
        Some(storage) if quantity::parse(storage).is_some_and(|storage| storage.sign().is_le()) => {
            errors.push(invalid(field, storage, "must be greater than zero"));
        }
        Some(_) => {}
    }
    for name in ["storageClassName", "volumeAttributesClassName"] {
        let class = text(spec, name);
        if !class.is_empty() {
            errors.extend(each_message(&format!("{at}.{name}"), class, subdomain_errors(class)));
        }
    }
    one_of_if_set(errors, spec, at, "volumeMode", &["Block", "Filesystem"]);
    validate_data_sources(spec, at, errors);
}

fn validate_data_sources(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["dataSource", "dataSourceRef"] {
        let source = &spec[name];
        if source.is_null() {
            continue;
        }
        let field = format!("{path}.{name}");
        require(errors, source, &field, "name");
        require(errors, source, &field, "kind");
        let kind = text(source, "kind");
        if text(source, "apiGroup").is_empty() && kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(invalid(field.as_str(), kind, detail));
        }
        let group = text(source, "apiGroup");
        if !group.is_empty() {
            errors.extend(each_message(&format!("{field}.apiGroup"), group, subdomain_errors(group)));
        }
    }
    let (source, reference) = (&spec["dataSource"], &spec["dataSourceRef"]);
    let namespace = text(reference, "namespace");
    if !namespace.is_empty() {
        let field = format!("{path}.dataSourceRef.namespace");
        errors.extend(each_message(&field, namespace, dns_label_errors(namespace)));
    }
    if source.is_null() || reference.is_null() {
        return;
    }
    // Upstream shows a path where it means a value.
    if !namespace.is_empty() {
        errors.push(invalid_as(path, "{}", "may not be specified when dataSourceRef.namespace is specified"));
    } else if ["apiGroup", "kind", "name"].iter().any(|name| source[*name] != reference[*name]) {
        errors.push(invalid_as(path, "{}", "must match dataSourceRef"));
    }
}

/// Validates the Pod's ResourceClaims.
pub(super) fn resource_claims(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const CLAIM: [(&str, &str); 3] = [
        ("Name", "name"),
        ("ResourceClaimName", "resourceClaimName"),
        ("ResourceClaimTemplateName", "resourceClaimTemplateName"),
    ];
    let mut names = BTreeSet::new();
    for (index, claim) in list(spec, "resourceClaims").iter().enumerate() {
        let at = format!("{path}[{index}]");
        let (name, field) = (text(claim, "name"), format!("{at}.name"));
        if name.is_empty() {
            errors.push(required(field, ""));
        } else if !names.insert(name) {
            errors.push(duplicate(field, name));
        } else {
            errors.extend(each_message(&field, name, dns_label_errors(name)));
        }
        let references = ["resourceClaimName", "resourceClaimTemplateName"];
        let given = references.iter().filter(|name| !claim[**name].is_null()).count();
        if given == 2 {
            let detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
            errors.push(invalid_as(at.as_str(), &go_struct(claim, &CLAIM), detail));
        } else if given == 0 {
            let detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
            errors.push(invalid_as(at.as_str(), &go_struct(claim, &CLAIM), detail));
        }
        for name in references {
            if let Some(referred) = claim[name].as_str() {
                errors.extend(each_message(&format!("{at}.{name}"), referred, subdomain_errors(referred)));
            }
        }
    }
}

/// The names of the Pod's ResourceClaims.
pub(super) fn resource_claim_names(spec: &Value) -> BTreeSet<&str> {
    at(spec, "resourceClaims")
        .as_array()
        .into_iter()
        .flatten()
        .map(|claim| text(claim, "name"))
        .filter(|name| !name.is_empty())
        .collect()
}
