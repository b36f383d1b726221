//! Log lines on stderr, as configured by klog's `-v` and `--logging-format`.
//!
//! Guarantees: nothing is written to stdout. An event is one line, without characters that control a terminal or reorder text,
//! whatever its fields contain. A JSON line is one object with the keys of Kubernetes' own JSON logs. Below
//! verbosity 6, no dependency logs response bodies, or logs as an error a failed request that this crate reports itself. If
//! `RUST_LOG` is set and not empty, it alone decides what is logged.

use std::fmt;
use std::io::IsTerminal as _;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{DefaultFields, JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::{LookupSpan, Scope};
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

use crate::options::LogFormat;
use crate::terminal::{plain, plain_json};

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// `RUST_LOG` is invalid.
    #[error("RUST_LOG: {value:?} is not allowed; use directives such as info,cronjob_controller=debug ({cause})")]
    Directives {
        /// The variable's value.
        value: String,
        /// The parser's error.
        cause: tracing_subscriber::filter::ParseError,
    },
    /// Logging was set up before.
    #[error("setting up logging: {0}")]
    Installed(#[from] TryInitError),
}

/// Sends the process's log lines to stderr from now on; coloured on a terminal. Call once.
///
/// # Errors
/// [`LoggingError::Directives`] if `RUST_LOG` is invalid, [`LoggingError::Installed`] on a second call.
#[allow(clippy::disallowed_methods, reason = "both formats are plain text")]
pub fn init(verbosity: u8, format: LogFormat) -> Result<(), LoggingError> {
    init_on(verbosity, format, std::io::stderr, std::io::stderr().is_terminal())
}

/// As [`init`], with the lines going to `writer`; coloured if `ansi`.
///
/// # Errors
/// As [`init`].
pub fn init_on<W>(verbosity: u8, format: LogFormat, writer: W, ansi: bool) -> Result<(), LoggingError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let directives = std::env::var("RUST_LOG").ok().filter(|value| !value.is_empty());
    let filter = match directives {
        Some(value) => EnvFilter::try_new(&value).map_err(|cause| LoggingError::Directives { value, cause })?,
        None => EnvFilter::new(directives_for(verbosity)),
    };
    let registry = tracing_subscriber::registry().with(filter);
    // A log line that cannot be written (the terminal was closed) is lost; reporting that on stderr would panic.
    let layer = tracing_subscriber::fmt::layer().with_writer(writer).log_internal_errors(false);
    match format {
        LogFormat::Text => registry.with(layer.fmt_fields(PlainFields).compact().with_ansi(ansi)).try_init()?,
        LogFormat::Json => registry.with(layer.fmt_fields(JsonFields::new()).event_format(KlogJson)).try_init()?,
    }
    Ok(())
}

/// The filter for `-v`. 0 and 1 log what an operator needs; 2 and 3 each decision of the controller; 4 and 5 all debug output
/// of this crate; 6 and above every request and all output of the libraries. Follows the conventions of Kubernetes' logging
/// (`docs/devel/sig-instrumentation/logging.md`), where requests appear from 6 on.
fn directives_for(verbosity: u8) -> &'static str {
    // kube's client logs a body that does not parse, completely, at WARN. This crate gets it as an error, which it logs with
    // the object's name, counts and retries.
    match verbosity {
        0..=1 => "warn,cronjob_controller=info,kube_client::client=off",
        // Steps of queue, cache and client far outnumber the controller's decisions.
        2..=3 => {
            "warn,cronjob_controller=debug,cronjob_controller::workqueue=info,cronjob_controller::cache=info,\
             cronjob_controller::client=info,kube_client::client=off"
        }
        4..=5 => "info,cronjob_controller=debug,kube_client::client=off",
        6.. => "trace",
    }
}

/// The fields of a text line. Its other parts, such as the colour of the level, are the program's own.
struct PlainFields;

impl<'writer> FormatFields<'writer> for PlainFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut text = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut text), fields)?;
        writer.write_str(&plain(&text))
    }
}

/// One JSON object per line: `ts` (milliseconds since 1970), `caller`, `level`, `v` (unless it is an error), `msg`, the
/// fields of the surrounding spans and its own. Matches component-base's `logs/json`, whose lines have no `level`; it is
/// added because WARN and INFO would otherwise look the same.
struct KlogJson;

impl<S> FormatEvent<S, JsonFields> for KlogJson
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    #[allow(clippy::disallowed_methods, reason = "a line has the machine's time")]
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let mut line = Map::new();
        line.insert("ts".to_owned(), millis(SystemTime::now()).into());
        line.insert("caller".to_owned(), caller(metadata.file(), metadata.line()).into());
        line.insert("level".to_owned(), metadata.level().as_str().to_ascii_lowercase().into());
        if *metadata.level() != Level::ERROR {
            line.insert("v".to_owned(), klog_verbosity(*metadata.level(), metadata.target()).into());
        }
        // From the outermost span inwards, so that the innermost value of a key wins.
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<JsonFields>>();
            if let Some(Ok(Value::Object(fields))) = fields.map(|fields| serde_json::from_str(fields)) {
                line.extend(fields);
            }
        }
        event.record(&mut JsonVisitor(&mut line));
        writeln!(writer, "{}", plain_json(&Value::Object(line).to_string()))
    }
}

fn millis(now: SystemTime) -> f64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs_f64() * 1000.0
}

/// The last directory, the file and the line, like zap's short caller.
fn caller(file: Option<&str>, line: Option<u32>) -> String {
    let file = file.unwrap_or("unknown");
    let short = file.rmatch_indices('/').nth(1).map_or(file, |(slash, _)| &file[slash + 1..]);
    format!("{short}:{}", line.unwrap_or_default())
}

/// The lowest `-v` at which a line of this level and from this module appears, as [`directives_for`] says it.
fn klog_verbosity(level: Level, target: &str) -> u8 {
    let module = target.strip_prefix("cronjob_controller").map(|path| path.trim_start_matches("::"));
    let is_decision =
        module.is_some_and(|path| !["workqueue", "cache", "client"].iter().any(|of| path.starts_with(of)));
    match level {
        Level::ERROR | Level::WARN | Level::INFO => 0,
        Level::DEBUG if is_decision => 2,
        Level::DEBUG => 4,
        Level::TRACE => 6,
    }
}

/// Adds an event's fields to the line, under the names that Kubernetes' logs use.
struct JsonVisitor<'a>(&'a mut Map<String, Value>);

impl JsonVisitor<'_> {
    fn put(&mut self, field: &Field, value: Value) {
        let key = match field.name() {
            "message" => "msg",
            "error" => "err",
            name => name,
        };
        self.0.insert(key.to_owned(), value);
    }
}

impl Visit for JsonVisitor<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, value.to_string().into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }
}

#[cfg(test)]
pub(crate) mod tests;
