//! Rules for names, label keys and label values.
//!
//! Guarantee: each function rejects what the function of the same name in k8s.io/apimachinery `pkg/api/validate/content`
//! rejects, with the same messages. An empty list means that the name is valid.

const DNS_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

fn regex_error(message: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

fn is_dns_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    !text.is_empty() && text.chars().all(|c| inner(c) || c == '-') && text.starts_with(inner) && text.ends_with(inner)
}

fn is_dns_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

/// Whether an object can have this name: [`subdomain_errors`] without the messages.
pub fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && is_dns_subdomain(name)
}

/// Matches `content.IsDNS1123Subdomain`.
pub fn subdomain_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > 253 {
        errors.push(too_long(253));
    }
    if !is_dns_subdomain(name) {
        let message = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                       and must start and end with an alphanumeric character";
        errors.push(regex_error(message, DNS_SUBDOMAIN, &["example.com"]));
    }
    errors
}

/// Matches `content.IsDNS1123Label`.
pub fn dns_label_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name.len() > 63 {
        errors.push(too_long(63));
    }
    if !is_dns_label(name) {
        if is_dns_subdomain(name) {
            errors.push("must not contain dots".to_owned());
        } else {
            let message = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
                           must start and end with an alphanumeric character";
            errors.push(regex_error(message, DNS_LABEL, &["my-name", "123-abc"]));
        }
    }
    errors
}

/// Matches `content.IsPathSegmentName`.
pub fn path_segment_errors(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    let illegal = ["/", "%"].into_iter().filter(|part| name.contains(part));
    illegal.map(|part| format!("may not contain '{part}'")).collect()
}

fn is_label_word(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    !text.is_empty()
        && text.chars().all(|c| edge(c) || matches!(c, '-' | '_' | '.'))
        && text.starts_with(edge)
        && text.ends_with(edge)
}

/// Matches `content.IsLabelKey`, which is also `IsQualifiedName`.
pub fn label_key_errors(key: &str) -> Vec<String> {
    const MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                           alphanumeric character";
    let word_error = || regex_error(MESSAGE, LABEL_KEY, &["MyName", "my.name", "123-abc"]);
    let mut errors = Vec::new();
    let parts: Vec<&str> = key.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors.extend(subdomain_errors(prefix).into_iter().map(|e| format!("prefix part {e}")));
            }
            name
        }
        _ => {
            let suffix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {} {suffix}", word_error())];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push(format!("name part {}", too_long(63)));
    }
    if !is_label_word(name) {
        errors.push(format!("name part {}", word_error()));
    }
    errors
}

/// Matches `content.IsLabelValue`.
pub fn label_value_errors(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push(too_long(63));
    }
    if !value.is_empty() && !is_label_word(value) {
        let message = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                       and must start and end with an alphanumeric character";
        errors.push(regex_error(message, &format!("({LABEL_KEY})?"), &["MyValue", "my_value", "12345"]));
    }
    errors
}

/// Rewords the errors to count characters: object names use older validation code than labels (`util/validation`), whose
/// messages say so.
pub fn in_characters(errors: Vec<String>) -> Vec<String> {
    errors.into_iter().map(|error| error.replace(" bytes", " characters")).collect()
}

#[cfg(test)]
mod tests;
