//! Paths inside volumes, and other texts with a form of their own.
//!
//! Guarantees: see [`super`]. Matches k8s.io/kubernetes `pkg/apis/core/validation/validation.go` and k8s.io/apimachinery
//! `pkg/util/validation`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use apimachinery::field::FieldError;
use serde_json::Value;

use crate::kinds::fields::{in_range, invalid, number, require, text};

const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// Rejects `..` as a part of a path. Matches `validatePathNoBacksteps`.
pub(super) fn no_backsteps(errors: &mut Vec<FieldError>, path: &str, field: &str) {
    if path.split('/').any(|part| part == "..") {
        errors.push(invalid(field, path, "must not contain '..'"));
    }
}

/// Matches `validateLocalDescendingPath`.
pub(super) fn local_descending(errors: &mut Vec<FieldError>, path: &str, field: &str) {
    if path.starts_with('/') {
        errors.push(invalid(field, path, "must be a relative path"));
    }
    no_backsteps(errors, path, field);
}

/// Matches `ValidateLocalNonReservedPath`.
pub(super) fn local_unreserved(errors: &mut Vec<FieldError>, path: &str, field: &str) {
    local_descending(errors, path, field);
    if path.starts_with("..") && !path.starts_with("../") {
        errors.push(invalid(field, path, "must not start with '..'"));
    }
}

/// Rejects a mode that is none of a file.
pub(super) fn file_mode(errors: &mut Vec<FieldError>, object: &Value, parent: &str, name: &str) {
    if let Some(mode) = number(object, name).filter(|mode| !(0..=0o777).contains(mode)) {
        errors.push(invalid(format!("{parent}.{name}"), mode, FILE_MODE));
    }
}

/// The user who owns a file. Matches `validateUserField`.
pub(super) fn file_user(errors: &mut Vec<FieldError>, object: &Value, parent: &str, name: &str) {
    in_range(errors, object, parent, name, 0..=i64::from(i32::MAX));
}

/// Matches `validateKeyToPath`.
pub(super) fn key_to_path(errors: &mut Vec<FieldError>, item: &Value, at: &str) {
    require(errors, item, at, "key");
    require(errors, item, at, "path");
    local_unreserved(errors, text(item, "path"), &format!("{at}.path"));
    file_mode(errors, item, at, "mode");
    file_user(errors, item, at, "user");
}

/// Matches `validation.IsConfigMapKey`.
pub(super) fn config_key_errors(key: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if key.len() > 253 {
        errors.push("must be no more than 253 characters".to_owned());
    }
    let is_sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if key.is_empty() || !key.chars().all(is_sound) {
        let message = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
                       'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
        errors.push(message.to_owned());
    }
    match key {
        "." => errors.push("must not be '.'".to_owned()),
        ".." => errors.push("must not be '..'".to_owned()),
        key if key.starts_with("..") => errors.push("must not start with '..'".to_owned()),
        _ => {}
    }
    errors
}

/// Matches `validation.IsRelaxedEnvVarName`.
pub(super) fn env_name_error(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("environment variable name must be non-empty");
    }
    let is_sound = |c: char| (' '..='~').contains(&c) && c != '=';
    let detail = "a valid environment variable name must consist only of printable ASCII characters other than '='";
    (!name.chars().all(is_sound)).then_some(detail)
}

/// Matches `validation.IsHTTPHeaderName`.
pub(super) fn header_name_error(name: &str) -> Option<&'static str> {
    let is_sound = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let detail = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for \
                  validation is '[-A-Za-z0-9]+')";
    (!is_sound).then_some(detail)
}

/// Rejects what is no IP address. Matches `IsValidIPForLegacyField` with strict validation.
pub(super) fn ip(errors: &mut Vec<FieldError>, value: &str, field: &str) {
    let detail = match value.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => "must not be an IPv4-mapped IPv6 address",
        Ok(_) => return,
        Err(_) if without_leading_zeros(value).is_some() => "must not have leading 0s",
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    errors.push(invalid(field, value, detail));
}

/// An address whose IPv4 part has leading zeros, which Go's sloppy parser takes.
fn without_leading_zeros(value: &str) -> Option<IpAddr> {
    let (head, tail) = value.rfind(':').map_or(("", value), |colon| value.split_at(colon + 1));
    let parts: Option<Vec<u8>> = tail
        .split('.')
        .map(|part| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten())
        .collect();
    let [a, b, c, d] = parts?[..] else { return None };
    let address = Ipv4Addr::new(a, b, c, d);
    if head.is_empty() {
        return Some(address.into());
    }
    format!("{head}{address}").parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

/// The text of an IPv6 address in RFC 5952's form, if the given one differs. Matches `GetWarningsForIP`.
pub(super) fn canonical_ip(value: &str) -> Option<String> {
    let canonical = value.parse::<Ipv6Addr>().ok()?.to_string();
    (canonical != value).then_some(canonical)
}

/// Whether a text is `host:port`. Matches Go's `net.SplitHostPort`.
pub(super) fn is_host_port(text: &str) -> bool {
    let Some(colon) = text.rfind(':') else { return false };
    let (inner, rest) = match text.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            // The bracket must stand right before the last colon.
            Some((inner, rest)) if inner.len() + 2 == colon => (inner, rest),
            _ => return false,
        },
        None if text[..colon].contains(':') => return false,
        None => (text, text),
    };
    !inner.contains('[') && !rest.contains(['[', ']'])
}
