//! Validation of a Pod's volumes.
//!
//! Guarantees: see [`super`]. Sources are judged in the order of Go's struct. Matches `ValidateVolumes` and
//! `validateVolumeSource` of k8s.io/kubernetes `pkg/apis/core/validation/validation.go`.

use std::collections::{BTreeMap, BTreeSet};

use apimachinery::field::FieldError;
use serde_json::Value;

use super::{claims, plain_volumes, projected, volume_sources as of};
use crate::kinds::fields::{
    dns_label_errors, duplicate, each_message, forbidden, invalid, list, require, required, subdomain_errors, text,
};

/// How a source is judged: itself, its path, and the errors.
type Judge = fn(&Value, &str, &mut Vec<FieldError>);

/// A kind of volume.
struct Source {
    name: &'static str,
    /// Upstream's name of it in the paths of its own errors.
    shown: &'static str,
    /// Upstream's name of it in the error about a second source.
    second: &'static str,
    judge: Judge,
}

const fn source(name: &'static str, judge: Judge) -> Source {
    Source { name, shown: name, second: name, judge }
}

const SOURCES: [Source; 30] = [
    source("emptyDir", of::empty_dir),
    source("hostPath", of::host_path),
    source("gitRepo", of::git_repo),
    Source { shown: "persistentDisk", ..source("gcePersistentDisk", plain_volumes::gce_persistent_disk) },
    source("awsElasticBlockStore", plain_volumes::aws_elastic_block_store),
    source("secret", of::secret),
    source("nfs", of::nfs),
    source("iscsi", of::iscsi),
    source("glusterfs", plain_volumes::glusterfs),
    source("flocker", plain_volumes::flocker),
    source("persistentVolumeClaim", plain_volumes::persistent_volume_claim),
    source("rbd", plain_volumes::rbd),
    source("cinder", plain_volumes::cinder),
    Source { second: "cephFS", ..source("cephfs", plain_volumes::cephfs) },
    source("quobyte", plain_volumes::quobyte),
    Source { second: "downwarAPI", ..source("downwardAPI", projected::downward_api) },
    source("fc", plain_volumes::fc),
    source("flexVolume", plain_volumes::flex_volume),
    source("configMap", of::config_map),
    source("azureFile", plain_volumes::azure_file),
    source("vsphereVolume", plain_volumes::vsphere_volume),
    source("photonPersistentDisk", plain_volumes::photon_persistent_disk),
    source("portworxVolume", plain_volumes::portworx_volume),
    source("azureDisk", plain_volumes::azure_disk),
    source("storageos", plain_volumes::storageos),
    source("projected", projected::validate),
    source("scaleIO", plain_volumes::scale_io),
    source("csi", of::csi),
    source("ephemeral", claims::ephemeral),
    source("image", of::image),
];

/// Validates the volumes at `path`, and returns those that can be mounted, by name. A Pod's name decides those of its claims.
pub(super) fn validate<'a>(
    spec: &'a Value,
    pod_name: Option<&str>,
    path: &str,
    errors: &mut Vec<FieldError>,
) -> BTreeMap<&'a str, &'a Value> {
    let volumes = list(spec, "volumes");
    let pod_name = pod_name.filter(|name| !name.is_empty());
    let created: BTreeSet<String> = match pod_name {
        Some(pod) => {
            let ephemeral = volumes.iter().filter(|volume| !volume["ephemeral"].is_null());
            ephemeral.map(|volume| format!("{pod}-{}", text(volume, "name"))).collect()
        }
        None => BTreeSet::new(),
    };
    let mut sound = BTreeMap::new();
    for (index, volume) in volumes.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let before = errors.len();
        validate_source(volume, &at, errors);
        let name = text(volume, "name");
        if let Some(pod) = pod_name.filter(|_| !volume["ephemeral"].is_null() && !name.is_empty()) {
            let claim = format!("{pod}-{name}");
            let wrong = subdomain_errors(&claim);
            let wrong = wrong.iter().map(|message| format!("PVC name \"{claim}\": {message}"));
            errors.extend(wrong.map(|detail| invalid(format!("{at}.name"), name, &detail)));
        }
        let field = format!("{at}.name");
        if name.is_empty() {
            require(errors, volume, &at, "name");
        } else {
            errors.extend(each_message(&field, name, dns_label_errors(name)));
        }
        if sound.contains_key(name) {
            errors.push(duplicate(field, name));
        }
        // Only valid volumes can be mounted.
        if errors.len() == before {
            sound.insert(name, volume);
        }
        let claim = text(volume, "persistentVolumeClaim.claimName");
        if created.contains(claim) {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(invalid(format!("{at}.persistentVolumeClaim.claimName"), claim, detail));
        }
    }
    sound
}

fn validate_source(volume: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let mut is_first = true;
    for source in SOURCES.iter().filter(|source| !volume[source.name].is_null()) {
        if is_first {
            (source.judge)(&volume[source.name], &format!("{at}.{}", source.shown), errors);
        } else {
            errors.push(forbidden(format!("{at}.{}", source.second), "may not specify more than 1 volume type"));
        }
        is_first = false;
        if source.name == "iscsi" {
            iscsi_name(volume, at, errors);
        }
    }
    if is_first {
        errors.push(required(at, "must specify a volume type"));
    }
}

/// An initiator's name limits the length of two others.
fn iscsi_name(volume: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let (name, portal) = (text(volume, "name"), text(volume, "iscsi.targetPortal"));
    if volume["iscsi"]["initiatorName"].is_string() && name.len() + 1 + portal.len() > 64 {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is \
                      specified.";
        errors.push(invalid(format!("{at}.name"), name, detail));
    }
}
