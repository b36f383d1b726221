//! The environment's settings for traces. Pure: the variables are arguments.
//!
//! Guarantee: a request for an unsupported feature is an error that names the variable; it is never ignored.

use super::TracesError;

/// The requested tracing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The URL to which batches are posted.
    pub(super) endpoint: String,
    /// The collector's CA file, PEM.
    pub(super) certificate: Option<String>,
    /// Whether the environment sets the service name.
    pub(super) is_named: bool,
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
    let endpoint = own.unwrap_or_else(|| {
        format!("{}/v1/traces", shared.as_deref().unwrap_or(DEFAULT_ENDPOINT).trim_end_matches('/'))
    });
    if !(endpoint.starts_with("http://") || endpoint.starts_with("https://")) {
        return not_allowed("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint, "a URL such as http://collector:4318");
    }
    let certificate = get("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE").or_else(|| get("OTEL_EXPORTER_OTLP_CERTIFICATE"));
    let is_named = get("OTEL_SERVICE_NAME").is_some()
        || get("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|value| value.contains("service.name="));
    Ok(Some(Wanted { endpoint, certificate, is_named }))
}
