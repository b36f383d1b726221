//! The environment's settings for traces. Pure: the variables are arguments.
//!
//! Guarantees: a request for an unsupported feature is an error that names the variable; it is never ignored. User, password and
//! query of the collector's URL are in no error, and in no log line of this crate.

use std::fmt;

use super::TracesError;

/// The requested tracing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The URL to which batches are posted.
    pub(super) endpoint: Endpoint,
    /// The collector's CA file, PEM.
    pub(super) certificate: Option<String>,
    /// Whether the environment sets the service name.
    pub(super) is_named: bool,
}

/// A collector's URL, in the parts that may be logged and those that may not. [`fmt::Display`] writes the former.
#[derive(PartialEq, Eq)]
pub(super) struct Endpoint {
    /// The URL without user, password and query.
    pub(super) url: String,
    /// What follows the question mark.
    pub(super) query: Option<String>,
    /// Whether it has a user or a password. They are not sent.
    pub(super) has_user: bool,
    /// Whether a user and a password may be in the wrong place, so that not even the host is known.
    is_ambiguous: bool,
}

impl Endpoint {
    fn new(text: &str, path: &str) -> Self {
        let (scheme, rest) = text.split_at(text.find("://").map_or(0, |end| end + "://".len()));
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        let (location, query) = tail.split_once('?').map_or((tail, None), |(location, query)| (location, Some(query)));
        let location = if path.is_empty() { location } else { location.trim_end_matches('/') };
        Self {
            url: format!("{scheme}{host}{location}{path}"),
            query: query.map(str::to_owned),
            has_user: user.is_some(),
            // As in http://user:pass/word@collector.
            is_ambiguous: tail.contains('@'),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_ambiguous { "(hidden: an @ after its host)" } else { &self.url })
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The default address of a collector.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";

/// The settings in `variable`; `None` where traces are off. An empty variable counts as unset.
pub(super) fn wanted(variable: &dyn Fn(&'static str) -> Option<String>) -> Result<Option<Wanted>, TracesError> {
    let get = |name| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let not_allowed = |variable, value, remedy| Err(TracesError::Variable { variable, value, remedy });
    if get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let own = get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let shared = get("OTEL_EXPORTER_OTLP_ENDPOINT");
    match get("OTEL_TRACES_EXPORTER").as_deref() {
        Some("none") => return Ok(None),
        None if own.is_none() && shared.is_none() => return Ok(None),
        None | Some("otlp") => {}
        Some(other) => return not_allowed("OTEL_TRACES_EXPORTER", other.to_owned(), "otlp or none"),
    }
    for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
        match get(name) {
            Some(value) if value != "http/protobuf" => return not_allowed(name, value, "http/protobuf"),
            Some(_) => break,
            None => {}
        }
    }
    let shared = shared.as_deref().unwrap_or(DEFAULT_ENDPOINT);
    let (name, endpoint) = own.map_or_else(
        || ("OTEL_EXPORTER_OTLP_ENDPOINT", Endpoint::new(shared, "/v1/traces")),
        |own| ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", Endpoint::new(&own, "")),
    );
    if !(endpoint.url.starts_with("http://") || endpoint.url.starts_with("https://")) {
        return not_allowed(name, endpoint.to_string(), "a URL such as http://collector:4318");
    }
    let certificate = get("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE").or_else(|| get("OTEL_EXPORTER_OTLP_CERTIFICATE"));
    let is_named = get("OTEL_SERVICE_NAME").is_some()
        || get("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|value| value.contains("service.name="));
    Ok(Some(Wanted { endpoint, certificate, is_named }))
}
