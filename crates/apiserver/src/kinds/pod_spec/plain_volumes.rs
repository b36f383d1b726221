//! Validation of volumes of storage systems, most of which no cluster serves any more.
//!
//! Guarantees: see [`super`]. Matches `validateGCEPersistentDiskVolumeSource` and its neighbours in k8s.io/kubernetes
//! `pkg/apis/core/validation/validation.go`.

use apimachinery::field::FieldError;
use serde_json::Value;

use super::paths::is_host_port;
use crate::kinds::fields::{
    dns_label_errors, each_message, in_range, invalid, list, not_supported_text, number, one_of_if_set, require,
    required, text,
};

/// Requires texts.
fn require_all(errors: &mut Vec<FieldError>, source: &Value, at: &str, names: &[&str]) {
    for name in names {
        require(errors, source, at, name);
    }
}

pub(super) fn gce_persistent_disk(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "pdName");
    partition(errors, source, at);
}

pub(super) fn aws_elastic_block_store(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "volumeID");
    partition(errors, source, at);
}

/// Zero, which is Go's value of an absent partition, is allowed although the message excludes it.
fn partition(errors: &mut Vec<FieldError>, source: &Value, at: &str) {
    if let Some(partition) = number(source, "partition").filter(|partition| !(0..=255).contains(partition)) {
        errors.push(invalid(format!("{at}.partition"), partition, "must be between 1 and 255, inclusive"));
    }
}

pub(super) fn persistent_volume_claim(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "claimName");
}

pub(super) fn glusterfs(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require_all(errors, source, at, &["endpoints", "path"]);
}

pub(super) fn flocker(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let (name, uuid) = (text(source, "datasetName"), text(source, "datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        errors.push(required(at, "one of datasetName and datasetUUID is required"));
    }
    if !name.is_empty() && !uuid.is_empty() {
        errors.push(invalid(at, "resource", "datasetName and datasetUUID can not be specified simultaneously"));
    }
    if name.contains('/') {
        errors.push(invalid(format!("{at}.datasetName"), name, "must not contain '/'"));
    }
}

pub(super) fn rbd(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require_list(errors, source, at, "monitors");
    require(errors, source, at, "image");
}

fn require_list(errors: &mut Vec<FieldError>, source: &Value, at: &str, name: &str) {
    if list(source, name).is_empty() {
        errors.push(required(format!("{at}.{name}"), ""));
    }
}

pub(super) fn cinder(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "volumeID");
    secret_of(source, at, errors);
}

/// A reference to a Secret needs its name.
fn secret_of(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if !source["secretRef"].is_null() {
        require(errors, &source["secretRef"], &format!("{at}.secretRef"), "name");
    }
}

pub(super) fn cephfs(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require_list(errors, source, at, "monitors");
}

pub(super) fn quobyte(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let detail = "must be a host:port pair or multiple pairs separated by commas";
    let registry = text(source, "registry");
    if registry.is_empty() {
        errors.push(required(format!("{at}.registry"), detail));
    } else if text(source, "tenant").len() >= 65 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(required(format!("{at}.tenant"), detail));
    } else if registry.split(',').any(|pair| !is_host_port(pair)) {
        // The server merges the equal errors of several pairs.
        errors.push(invalid(format!("{at}.registry"), registry, detail));
    }
    require(errors, source, at, "volume");
}

pub(super) fn fc(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let (names, ids) = (list(source, "targetWWNs"), list(source, "wwids"));
    let field = format!("{at}.targetWWNs");
    if names.is_empty() && ids.is_empty() {
        errors.push(required(field.as_str(), "must specify either targetWWNs or wwids, but not both"));
    }
    if !names.is_empty() && !ids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(invalid(field, names.to_vec(), detail));
    }
    if !names.is_empty() {
        if source["lun"].is_null() {
            errors.push(required(format!("{at}.lun"), "lun is required if targetWWNs is specified"));
        }
        in_range(errors, source, at, "lun", 0..=255);
    }
}

pub(super) fn flex_volume(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "driver");
    for key in source["options"].as_object().into_iter().flatten().map(|(key, _)| key) {
        let domain = key.split_once('/').map_or(key.as_str(), |(domain, _)| domain).to_lowercase();
        let domain = format!(".{domain}");
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(invalid(format!("{at}.options[{key}]"), key.as_str(), detail));
        }
    }
}

pub(super) fn azure_file(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require_all(errors, source, at, &["secretName", "shareName"]);
}

pub(super) fn azure_disk(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require_all(errors, source, at, &["diskName", "diskURI"]);
    one_of_if_set(errors, source, at, "cachingMode", &["None", "ReadOnly", "ReadWrite"]);
    one_of_if_set(errors, source, at, "kind", &["Dedicated", "Managed", "Shared"]);
    let (uri, field) = (text(source, "diskURI"), format!("{at}.diskURI"));
    match source["kind"].as_str() {
        Some("Managed") if !uri.starts_with("/subscriptions/") => {
            let form =
                "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
            errors.push(not_supported_text(field, uri, &[form]));
        }
        Some(kind) if kind != "Managed" && !uri.starts_with("https://") => {
            let form = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
            errors.push(not_supported_text(field, uri, &[form]));
        }
        Some(_) | None => {}
    }
}

pub(super) fn vsphere_volume(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "volumePath");
}

pub(super) fn photon_persistent_disk(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "pdID");
}

pub(super) fn portworx_volume(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "volumeID");
}

pub(super) fn scale_io(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require_all(errors, source, at, &["gateway", "system", "volumeName"]);
}

pub(super) fn storageos(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "volumeName");
    for name in ["volumeName", "volumeNamespace"] {
        let value = text(source, name);
        if !value.is_empty() {
            errors.extend(each_message(&format!("{at}.{name}"), value, dns_label_errors(value)));
        }
    }
    secret_of(source, at, errors);
}
