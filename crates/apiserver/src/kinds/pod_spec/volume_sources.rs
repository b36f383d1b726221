//! Validation of the kinds of volumes that most Pods use.
//!
//! Guarantees: see [`super`]. Matches `validateSecretVolumeSource` and its neighbours in k8s.io/kubernetes
//! `pkg/apis/core/validation/validation.go`.

use std::sync::LazyLock;

use apimachinery::field::FieldError;
use regex::Regex;
use serde_json::Value;

use super::containers::pull_policy;
use super::paths::{file_mode, file_user, key_to_path, local_descending, no_backsteps};
use crate::kinds::fields::{
    each_message, forbidden, in_range, invalid, is_true, list, one_of_if_set, require, required, subdomain_errors,
    text, too_long,
};
use crate::kinds::quantity;

/// `iqn`, `eui` and `naa` names. Upstream anchors the first at its end only.
static QUALIFIED_NAMES: LazyLock<[(&str, Option<Regex>); 3]> = LazyLock::new(|| {
    [
        ("iqn", Regex::new(r"iqn\.[0-9]{4}-[0-9]{2}\.([0-9A-Za-z\-.]+)(:[^,;*&$|\t\n\x0C\r ]+)$").ok()),
        ("eui", Regex::new(r"^eui.[0-9A-Za-z]{16}$").ok()),
        ("naa", Regex::new(r"^naa.[0-9A-Za-z]{32}$").ok()),
    ]
});

pub(super) fn empty_dir(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let limit = source["sizeLimit"].as_str().and_then(quantity::parse);
    if limit.is_some_and(|limit| limit.sign().is_lt()) {
        errors.push(forbidden(format!("{at}.sizeLimit"), "SizeLimit field must be a valid resource quantity"));
    }
}

pub(super) fn host_path(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let path = text(source, "path");
    if path.is_empty() {
        errors.push(required(format!("{at}.path"), ""));
        return;
    }
    no_backsteps(errors, path, &format!("{at}.path"));
    one_of_if_set(errors, source, at, "type", &TYPES);
}

pub(super) fn git_repo(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "repository");
    local_descending(errors, text(source, "directory"), &format!("{at}.directory"));
}

pub(super) fn secret(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "secretName");
    files(source, at, errors);
}

pub(super) fn config_map(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "name");
    files(source, at, errors);
}

fn files(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    file_mode(errors, source, at, "defaultMode");
    file_user(errors, source, at, "defaultUser");
    for (index, item) in list(source, "items").iter().enumerate() {
        key_to_path(errors, item, &format!("{at}.items[{index}]"));
    }
}

pub(super) fn nfs(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "server");
    require(errors, source, at, "path");
    let path = text(source, "path");
    if !path.starts_with('/') {
        errors.push(invalid(format!("{at}.path"), path, "must be an absolute path"));
    }
}

pub(super) fn iscsi(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "targetPortal");
    require(errors, source, at, "iqn");
    let iqn = text(source, "iqn");
    if !iqn.is_empty() {
        errors.extend(qualified_name_error(iqn).map(|detail| invalid(format!("{at}.iqn"), iqn, detail)));
    }
    in_range(errors, source, at, "lun", 0..=255);
    let authenticates = is_true(source, "chapAuthDiscovery") || is_true(source, "chapAuthSession");
    if authenticates && source["secretRef"].is_null() {
        errors.push(required(format!("{at}.secretRef"), ""));
    }
    if let Some(name) = source["initiatorName"].as_str() {
        let wrong = qualified_name_error(name);
        errors.extend(wrong.map(|detail| invalid(format!("{at}.initiatorname"), name, detail)));
    }
}

fn qualified_name_error(name: &str) -> Option<&'static str> {
    let Some((_, form)) = QUALIFIED_NAMES.iter().find(|(prefix, _)| name.starts_with(prefix)) else {
        return Some("must be valid format starting with iqn, eui, or naa");
    };
    let is_sound = form.as_ref().is_none_or(|form| form.is_match(name));
    (!is_sound).then_some("must be valid format")
}

pub(super) fn csi(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let driver = text(source, "driver");
    let field = format!("{at}.driver");
    if driver.is_empty() {
        errors.push(required(field.as_str(), ""));
    } else {
        if driver.len() > 63 {
            errors.push(too_long(field.as_str(), 63));
        }
        errors.extend(each_message(&field, driver, subdomain_errors(&driver.to_lowercase())));
    }
    if source["nodePublishSecretRef"].is_null() {
        return;
    }
    let name = text(source, "nodePublishSecretRef.name");
    if name.is_empty() {
        errors.push(required(format!("{at}.nodePublishSecretRef.name"), ""));
    } else {
        errors.extend(each_message(&format!("{at}.name"), name, subdomain_errors(name)));
    }
}

pub(super) fn image(source: &Value, at: &str, errors: &mut Vec<FieldError>) {
    require(errors, source, at, "reference");
    pull_policy(errors, source, at, "pullPolicy");
}
