//! Validation of a Pod's names and addresses.
//!
//! Guarantees: see [`super`]. Matches `validatePodDNSConfig`, `validatePodHostName`, `ValidateHostAliases` and
//! `validatePodHostNetworkDeps` of k8s.io/kubernetes `pkg/apis/core/validation/validation.go`.

use apimachinery::field::FieldError;
use serde_json::Value;

use super::paths::ip;
use crate::kinds::fields::{
    each_message, forbidden, invalid, is_true, list, number, required, subdomain_errors, text, too_long,
};

const NAME_SERVERS: usize = 3;
const SEARCH_PATHS: usize = 32;
const SEARCH_CHARACTERS: usize = 2048;

/// In the host's network, a port of the host is that of the container. A Pod's ports are set; those of a template may be absent.
pub(super) fn ports(spec: &Value, is_pod: bool, path: &str, errors: &mut Vec<FieldError>) {
    if !is_true(spec, "hostNetwork") {
        return;
    }
    for (index, container) in list(spec, "containers").iter().enumerate() {
        for (n, port) in list(container, "ports").iter().enumerate() {
            let of = |name: &str| number(port, name).unwrap_or(0);
            let (host, own) = (of("hostPort"), of("containerPort"));
            if (is_pod || host != 0) && host != own {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(invalid(format!("{path}.containers[{index}].ports[{n}].hostPort"), host, detail));
            }
        }
    }
}

/// Validates `dnsConfig`, which one policy requires.
pub(super) fn dns_config(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (config, path) = (&spec["dnsConfig"], format!("{path}.dnsConfig"));
    let servers = list(config, "nameservers");
    if text(spec, "dnsPolicy") == "None" {
        if config.is_null() {
            errors.push(required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(required(format!("{path}.nameservers"), detail));
            return;
        }
    }
    if servers.len() > NAME_SERVERS {
        let detail = format!("must not have more than {NAME_SERVERS} nameservers");
        errors.push(invalid(format!("{path}.nameservers"), servers.to_vec(), &detail));
    }
    for (index, server) in servers.iter().filter_map(Value::as_str).enumerate() {
        ip(errors, server, &format!("{path}.nameservers[{index}]"));
    }
    let searches: Vec<&str> = list(config, "searches").iter().filter_map(Value::as_str).collect();
    let mut refuse = |detail: String| {
        errors.push(invalid(format!("{path}.searches"), list(config, "searches").to_vec(), &detail));
    };
    if searches.len() > SEARCH_PATHS {
        refuse(format!("must not have more than {SEARCH_PATHS} search paths"));
    }
    let characters = searches.iter().map(|search| search.len()).sum::<usize>() + searches.len().saturating_sub(1);
    if characters > SEARCH_CHARACTERS {
        refuse(format!("must not have more than {SEARCH_CHARACTERS} characters (including spaces) in the search list"));
    }
    for (index, search) in searches.into_iter().enumerate().filter(|(_, search)| *search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        errors.extend(each_message(&format!("{path}.searches[{index}]"), search, search_errors(search)));
    }
    for (index, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errors.push(required(format!("{path}.options[{index}]"), "must not be empty"));
        }
    }
}

/// Matches `validation.IsDNS1123SubdomainWithUnderscore`.
fn search_errors(search: &str) -> Vec<String> {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label);
        label.starts_with(is_end)
            && label.ends_with(is_end)
            && label.chars().all(|c| is_end(c) || matches!(c, '-' | '_'))
    };
    let mut errors = Vec::new();
    if search.len() > 253 {
        errors.push("must be no more than 253 characters".to_owned());
    }
    if !search.split('.').all(is_label) {
        let message = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and \
                       must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                       '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
        errors.push(message.to_owned());
    }
    errors
}

/// Validates `hostnameOverride`.
pub(super) fn name(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(name) = spec["hostnameOverride"].as_str() else { return };
    let field = format!("{path}.hostnameOverride");
    for other in ["setHostnameAsFQDN", "hostNetwork"] {
        if is_true(spec, other) {
            errors.push(forbidden(field.as_str(), &format!("may not be specified when {other} is true")));
        }
    }
    if name.len() > 64 {
        errors.push(too_long(field.as_str(), 64));
    }
    errors.extend(each_message(&field, name, subdomain_errors(name)));
}

/// Validates `hostAliases`.
pub(super) fn aliases(aliases: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    for (index, alias) in aliases.iter().enumerate() {
        ip(errors, text(alias, "ip"), &format!("{path}[{index}].ip"));
        for (n, host) in list(alias, "hostnames").iter().filter_map(Value::as_str).enumerate() {
            let at = format!("{path}[{index}].hostnames[{n}]");
            errors.extend(each_message(&at, host, subdomain_errors(host)));
        }
    }
}
