//! Validation of projected volumes and of the downward API.
//!
//! Guarantees: see [`super`]. Matches `validateProjectedVolumeSource`, `validateDownwardAPIVolumeSource` and what they call in
//! k8s.io/kubernetes `pkg/apis/core/validation/validation.go` and `names.go`.

use std::collections::BTreeSet;

use apimachinery::field::FieldError;
use apimachinery::names::label_key_errors;
use apimachinery::quoting::quote;
use serde_json::Value;

use super::env;
use super::paths::{file_mode, file_user, key_to_path, local_unreserved};
use super::selectors;
use crate::kinds::fields::{
    dns_label_errors, each_message, forbidden, go_json, invalid, invalid_as, list, not_supported_text, number, require,
    required, selector_json, subdomain_errors, text, too_long,
};

const DOWNWARD_PATHS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
/// The longest annotations, in bytes. Matches `TotalAnnotationSizeLimitB`.
pub(super) const ANNOTATION_BYTES: usize = 256 << 10;

pub(super) fn downward_api(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    file_mode(errors, source, at, "defaultMode");
    file_user(errors, source, at, "defaultUser");
    for file in list(source, "items") {
        downward_file(file, at, errors);
    }
}

/// Upstream's errors do not say which file of the list is meant.
fn downward_file(file: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, file, at, "path");
    local_unreserved(errors, text(file, "path"), &format!("{at}.path"));
    let (field, resource) = (&file["fieldRef"], &file["resourceFieldRef"]);
    if !field.is_null() {
        env::field_ref(field, &DOWNWARD_PATHS, &format!("{at}.fieldRef"), errors);
        if !resource.is_null() {
            errors.push(invalid(at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"));
        }
    } else if resource.is_null() {
        errors.push(required(at, "one of fieldRef and resourceFieldRef is required"));
    } else {
        env::resource_ref(resource, true, &format!("{at}.resourceFieldRef"), errors);
    }
    file_mode(errors, file, at, "mode");
    file_user(errors, file, at, "user");
}

/// The paths of the files of one volume, each of which may occur once.
struct Paths<'a> {
    seen: BTreeSet<&'a str>,
    /// The path of the volume.
    at: &'a str,
}

impl<'a> Paths<'a> {
    fn insert(&mut self, path: &'a str, shown: &str, errors: &mut Vec<FieldError>) {
        if !self.seen.insert(path) {
            errors.push(invalid(self.at, shown, "conflicting duplicate paths"));
        }
    }
}

pub(super) fn validate(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    file_mode(errors, source, at, "defaultMode");
    file_user(errors, source, at, "defaultUser");
    let mut paths = Paths { seen: BTreeSet::new(), at };
    for (index, one) in list(source, "sources").iter().enumerate() {
        let path = format!("{at}.sources[{index}]");
        for name in ["secret", "configMap"] {
            if !one[name].is_null() {
                items(&one[name], &format!("{path}.{name}"), &mut paths, errors);
            }
        }
        for file in list(one, "downwardAPI.items") {
            downward_file(file, &format!("{path}.downwardAPI"), errors);
            let path = text(file, "path");
            if !path.is_empty() {
                paths.insert(path, path, errors);
            }
        }
        service_account_token(&one["serviceAccountToken"], &path, at, errors);
        cluster_trust_bundle(&one["clusterTrustBundle"], &format!("{path}.clusterTrustBundle"), &mut paths, errors);
        pod_certificate(&one["podCertificate"], &format!("{path}.podCertificate"), &mut paths, errors);
        if one.as_object().is_some_and(|sources| sources.values().filter(|source| !source.is_null()).count() > 1) {
            errors.push(forbidden(path, "may not specify more than 1 volume type per source"));
        }
    }
}

fn items<'a>(source: &'a Value, at: &str, paths: &mut Paths<'a>, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "name");
    for (index, item) in list(source, "items").iter().enumerate() {
        key_to_path(errors, item, &format!("{at}.items[{index}]"));
        let path = text(item, "path");
        if !path.is_empty() {
            paths.insert(path, text(source, "name"), errors);
        }
    }
}

fn service_account_token(token: &Value, path: &str, volume: &str, errors: &mut Vec<FieldError>) {
    if token.is_null() {
        return;
    }
    let field = format!("{path}.serviceAccountToken.expirationSeconds");
    match number(token, "expirationSeconds") {
        None => errors.push(required(field, "")),
        Some(seconds) if seconds < 600 => {
            errors.push(invalid(field, seconds, "may not specify a duration less than 10 minutes"));
        }
        Some(seconds) if seconds > 1 << 32 => {
            errors.push(invalid(field, seconds, "may not specify a duration larger than 2^32 seconds"));
        }
        Some(_) => {}
    }
    require(errors, token, volume, "path");
    local_unreserved(errors, text(token, "path"), &format!("{volume}.path"));
    file_user(errors, token, &format!("{path}.serviceAccountToken"), "user");
}

fn cluster_trust_bundle<'a>(bundle: &'a Value, at: &str, paths: &mut Paths<'a>, errors: &mut Vec<FieldError>) {
    if bundle.is_null() {
        return;
    }
    let selector = &bundle["labelSelector"];
    match (bundle["name"].as_str(), bundle["signerName"].as_str()) {
        (Some(name), Some(signer)) => {
            let shown = format!(
                "{{\"Name\":{},\"SignerName\":{},\"LabelSelector\":{},\"Optional\":{},\"Path\":{},\"User\":{}}}",
                go_json(&name.into()),
                go_json(&signer.into()),
                selector_json(selector),
                bundle["optional"],
                go_json(&bundle["path"]),
                bundle["user"],
            );
            errors.push(invalid_as(at, &shown, "only one of name and signerName may be used"));
        }
        (Some(name), None) => {
            let field = format!("{at}.name");
            if name.is_empty() {
                errors.push(required(field.as_str(), "must be a valid object name"));
            }
            let wrong = bundle_name_errors(name).into_iter();
            let wrong = wrong.map(|message| format!("not a valid clustertrustbundlename: {message}"));
            errors.extend(wrong.map(|detail| invalid(field.as_str(), name, &detail)));
            if !selector.is_null() {
                let detail = "labelSelector must be unset if name is specified";
                errors.push(invalid_as(format!("{at}.labelSelector"), &selector_json(selector), detail));
            }
        }
        (None, Some(signer)) => {
            let field = format!("{at}.signerName");
            if signer.is_empty() {
                errors.push(required(field.as_str(), "must be a valid signer name"));
            }
            signer_name(signer, &field, errors);
            selectors::validate(selector, &format!("{at}.labelSelector"), errors);
        }
        (None, None) => errors.push(required(at, "either name or signerName must be specified")),
    }
    require(errors, bundle, at, "path");
    file_user(errors, bundle, at, "user");
    let path = text(bundle, "path");
    local_unreserved(errors, path, &format!("{at}.path"));
    paths.insert(path, path, errors);
}

/// Matches `ValidateClusterTrustBundleName` with the signer that the name contains.
fn bundle_name_errors(name: &str) -> Vec<String> {
    let Some((signer, rest)) = name.rsplit_once(':') else { return subdomain_errors(name) };
    // A name that names its signer begins with it.
    if signer.is_empty() {
        return vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()];
    }
    subdomain_errors(rest)
}

/// Matches `ValidateSignerName`.
fn signer_name(name: &str, field: &str, errors: &mut Vec<FieldError>) {
    const LONGEST: usize = 253 + 1 + 253 + 63 + 1;
    if name.is_empty() {
        errors.push(required(field, ""));
        return;
    }
    let [domain, path] = name.split('/').collect::<Vec<_>>()[..] else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.push(invalid(field, name, detail));
        return;
    };
    if domain.len() > 253 {
        errors.push(too_long(field, 253));
    }
    let mut first_wrong = |text: &str, rule: fn(&str) -> Vec<String>| {
        let wrong = text.split('.').map(|label| (label, rule(label))).find(|(_, wrong)| !wrong.is_empty());
        for (label, wrong) in wrong.into_iter().flat_map(|(label, wrong)| wrong.into_iter().map(move |w| (label, w))) {
            errors.push(invalid(field, text, &format!("validating label {}: {wrong}", quote(label))));
        }
    };
    first_wrong(domain, dns_label_errors);
    first_wrong(path, subdomain_errors);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(invalid(field, domain, detail));
    }
    if name.len() > LONGEST {
        errors.push(too_long(field, LONGEST));
    }
}

fn pod_certificate<'a>(certificate: &'a Value, at: &str, paths: &mut Paths<'a>, errors: &mut Vec<FieldError>) {
    if certificate.is_null() {
        return;
    }
    let signer = text(certificate, "signerName");
    signer_name(signer, &format!("{at}.signerName"), errors);
    user_annotations(&certificate["userAnnotations"], &format!("{at}.userAnnotations"), errors);
    file_user(errors, certificate, at, "user");
    let key_type = text(certificate, "keyType");
    if !KEY_TYPES.contains(&key_type) {
        errors.push(not_supported_text(format!("{at}.keyType"), key_type, &KEY_TYPES));
    }
    if let Some(seconds) = number(certificate, "maxExpirationSeconds") {
        let field = format!("{at}.maxExpirationSeconds");
        let host = signer.split('/').next().unwrap_or_default();
        let is_internal = host == "kubernetes.io" || host.ends_with(".kubernetes.io");
        let most = if is_internal { 24 * 60 * 60 } else { 91 * 24 * 60 * 60 };
        if seconds < 3600 {
            errors.push(invalid(field.as_str(), seconds, "if provided, maxExpirationSeconds must be >= 3600"));
        }
        if seconds > most {
            let detail = format!("if provided, maxExpirationSeconds must be <= {most}");
            errors.push(invalid(field, seconds, &detail));
        }
    }
    let mut given = false;
    for name in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let path = text(certificate, name);
        if path.is_empty() {
            continue;
        }
        given = true;
        local_unreserved(errors, path, &format!("{at}.{name}"));
        paths.insert(path, path, errors);
    }
    if !given {
        let detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.push(required(at, detail));
    }
}

/// Matches `ValidateUserAnnotations`.
fn user_annotations(annotations: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let mut bytes = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        let key = key.to_lowercase();
        if key.is_empty() {
            errors.push(required(at, ""));
            continue;
        }
        let wrong = label_key_errors(&key);
        if wrong.is_empty() && !key.contains('/') {
            let detail = "must be a domain-prefixed key (such as \"acme.io/foo\")";
            errors.push(invalid(at, key.as_str(), detail));
        }
        errors.extend(each_message(at, &key, wrong));
    }
    if bytes > ANNOTATION_BYTES {
        errors.push(too_long(at, ANNOTATION_BYTES));
    }
}
