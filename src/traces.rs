//! An OpenTelemetry trace of each fire, from the slot to the status that names the Job.
//!
//! Guarantees: nothing is recorded or sent unless the environment names a collector ([`Traces::from_environment`]). Tracing
//! never delays a fire: a background thread exports spans, and a span that cannot be sent is dropped. The number of requests
//! that wait for a status write is bounded.
//!
//! A trace has a span `fire` that begins at the slot. It contains `create` and `status`, the durations of these two requests.
//! The time between them went to more urgent work. A refused create is a trace of its own. A failed status write is in the
//! trace of the one that succeeded. What the Pods are told of a trace ([`Traces::announce`]) is the context of its `fire`.

mod collector;
mod environment;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;
use std::time::SystemTime;

use apimachinery::clock::SharedClock;
use chrono::{DateTime, Utc};
use dashmap::DashMap;
use opentelemetry::trace::{Span as _, SpanBuilder, Status, TraceContextExt, Tracer as _, TracerProvider as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, TracerProviderBuilder};
use tracing::{info, warn};

use self::collector::Collector;
use self::environment::Wanted;
use crate::api::batch_v1::Job;
use crate::api::{ObjectName, Uid};
use crate::options::PROGRAM;
use crate::shutdown::LAST_TRACES;

/// How many requests for one CronJob may wait for a status write. With more Jobs at a time than that, the oldest requests are
/// left out of the trace.
const WAITING: usize = 16;

/// The maximum number of CronJobs with waiting requests. Beyond it no more are recorded: a CronJob that is deleted before its
/// status is written leaves its requests here.
const CRON_JOBS: usize = 65_536;

/// The maximum number of fires that are announced and not begun. A create follows without a pause, so that more are left of
/// templates from which no Job could be made.
const ANNOUNCED: usize = 64;

/// Why tracing that the environment asks for is not possible.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// A variable has an unsupported value.
    #[error("{variable}: {value} is not allowed; use {remedy}")]
    Variable {
        /// The variable's name.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        remedy: &'static str,
    },
    /// The collector's CA file is unusable.
    #[error("OTEL_EXPORTER_OTLP_CERTIFICATE: the file {file} cannot be used: {cause}")]
    Certificate {
        /// The file.
        file: String,
        /// What is wrong with the file.
        cause: String,
    },
    /// No client for the collector could be built.
    #[error("making a client for the collector {endpoint}: {cause}")]
    Client {
        /// The collector's URL, without what may not be logged.
        endpoint: String,
        /// The error.
        cause: String,
    },
}

/// Records the traces of fires.
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    clock: SharedClock,
    /// The requests for each CronJob whose status is not written yet.
    waiting: DashMap<Uid, VecDeque<Done>>,
    /// The fires that were announced, by the Job whose create is about to be sent.
    announced: DashMap<ObjectName, Context>,
}

/// A completed request.
#[derive(Debug, Clone)]
struct Done {
    span: &'static str,
    /// The Job that was created, and its slot if it has one.
    job: Option<(ObjectName, Option<DateTime<Utc>>)>,
    began: SystemTime,
    ended: SystemTime,
    error: Option<String>,
    /// Its `fire`, if that was announced.
    fire: Option<Context>,
}

impl Traces {
    /// Configured by the environment variables of
    /// <https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables>. `None`, unless
    /// `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector or `OTEL_TRACES_EXPORTER` is
    /// `otlp`. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When a variable asks for an unsupported feature, or the collector's CA is unusable.
    pub fn from_environment(clock: &SharedClock) -> Result<Option<Arc<Self>>, TracesError> {
        let Some(wanted) = environment::wanted(&|name| std::env::var(name).ok())? else { return Ok(None) };
        Self::to_collector(&wanted, clock).map(Some)
    }

    fn to_collector(wanted: &Wanted, clock: &SharedClock) -> Result<Arc<Self>, TracesError> {
        info!(endpoint = %wanted.endpoint, "sending a trace of each fire");
        if wanted.endpoint.has_user {
            warn!("the collector's URL has a user, which is not sent; OTEL_EXPORTER_OTLP_HEADERS can authenticate");
        }
        let collector = Collector::new(wanted)?;
        // The exporter reads headers, timeout and compression from the environment itself, and the provider reads the
        // sampler.
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&wanted.endpoint.url)
            .with_http_client(collector)
            .build()
            .map_err(|cause| TracesError::Client { endpoint: wanted.endpoint.to_string(), cause: cause.to_string() })?;
        let mut resource = Resource::builder();
        if !wanted.is_named {
            resource = resource.with_service_name(PROGRAM);
        }
        let resource = resource.with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))).build();
        let provider = SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter);
        Ok(Self::new(provider, clock))
    }

    fn new(provider: TracerProviderBuilder, clock: &SharedClock) -> Arc<Self> {
        let provider = provider.build();
        let tracer = provider.tracer(PROGRAM);
        Arc::new(Self {
            provider,
            tracer,
            clock: Arc::clone(clock),
            waiting: DashMap::new(),
            announced: DashMap::new(),
        })
    }

    fn now(&self) -> SystemTime {
        self.clock.now().into()
    }

    fn wait(&self, cron_job: &Uid, done: Done) {
        if self.waiting.len() >= CRON_JOBS && !self.waiting.contains_key(cron_job) {
            return;
        }
        let mut waiting = self.waiting.entry(cron_job.clone()).or_default();
        if waiting.len() >= WAITING {
            waiting.pop_front();
        }
        waiting.push_back(done);
    }

    /// Begins the trace of a fire whose Pods are told of it, before the Job is created. Returns its context as W3C Trace Context
    /// has it; `None` at the end of the process.
    pub fn announce(&self, cron_job: &ObjectName, job: &ObjectName, slot: DateTime<Utc>) -> Option<String> {
        if self.announced.len() >= ANNOUNCED {
            self.announced.clear();
        }
        let fire = self.fire(cron_job, Some(job), SystemTime::from(slot).min(self.now()));
        let context = fire.span().span_context().clone();
        self.announced.insert(job.clone(), fire);
        let flags = context.trace_flags().to_u8();
        context.is_valid().then(|| format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id()))
    }

    fn fire(&self, cron_job: &ObjectName, job: Option<&ObjectName>, began: SystemTime) -> Context {
        let mut attributes = vec![
            KeyValue::new("k8s.namespace.name", cron_job.namespace.to_string()),
            KeyValue::new("k8s.cronjob.name", cron_job.name.to_string()),
        ];
        attributes.extend(job.map(|job| KeyValue::new("k8s.job.name", job.name.to_string())));
        let fire = SpanBuilder::from_name("fire").with_start_time(began).with_attributes(attributes);
        Context::new().with_span(self.tracer.build_with_context(fire, &Context::new()))
    }

    /// Exports the trace of `cron_job` with these requests. One whose fire was announced has a trace of its own, and the others
    /// are in the first of these.
    fn tell(&self, cron_job: &ObjectName, done: &[Done]) {
        let (Some(first), Some(last)) = (done.first(), done.last()) else { return };
        let (job, slot) = match done.iter().find_map(|done| done.job.clone()) {
            Some((job, slot)) => (Some(job), slot),
            None => (None, None),
        };
        let announced = || done.iter().filter_map(|done| done.fire.as_ref());
        let fire = announced().next().cloned().unwrap_or_else(|| {
            let began = slot.map_or(first.began, |slot| SystemTime::from(slot).min(first.began));
            self.fire(cron_job, job.as_ref(), began)
        });
        for done in done {
            let fire = done.fire.as_ref().unwrap_or(&fire);
            let span = SpanBuilder::from_name(done.span).with_start_time(done.began);
            let mut span = self.tracer.build_with_context(span, fire);
            if let Some(error) = &done.error {
                span.set_status(Status::error(error.clone()));
                fire.span().set_status(Status::error(error.clone()));
            }
            span.end_with_timestamp(done.ended);
        }
        // The second end of a span is none.
        for fire in announced().chain([&fire]) {
            fire.span().end_with_timestamp(last.ended);
        }
    }

    /// Sends the remaining spans, as far as time permits.
    pub async fn shut_down(self: Arc<Self>) {
        let ended = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(LAST_TRACES)).await;
        if let Ok(Err(error)) = ended {
            warn!(%error, "the last traces were not sent");
        }
    }
}

/// Measures one request, if tracing is on.
#[derive(Clone)]
pub struct Stopwatch {
    running: Option<(Arc<Traces>, SystemTime)>,
    fire: Option<Context>,
}

impl Stopwatch {
    /// Starts the measurement.
    pub fn start(traces: Option<&Arc<Traces>>) -> Self {
        Self { running: traces.map(|traces| (Arc::clone(traces), traces.now())), fire: None }
    }

    /// Starts the measurement of a create, in the trace that was [announced](Traces::announce) for this Job, if one was.
    pub fn of_create(traces: Option<&Arc<Traces>>, job: &ObjectName) -> Self {
        let fire = traces.and_then(|traces| traces.announced.remove(job)).map(|(_, fire)| fire);
        Self { fire, ..Self::start(traces) }
    }

    /// Records a request to create the Job `name`.
    pub fn created<E: Display>(self, name: &ObjectName, reply: &Result<Arc<Job>, E>) {
        let Some((traces, began)) = self.running else { return };
        let slot = reply.as_ref().ok().and_then(|job| job.scheduled_timestamp);
        let error = reply.as_ref().err().map(ToString::to_string);
        let job = Some((name.clone(), slot));
        let done = Done { span: "create", job, began, ended: traces.now(), error, fire: self.fire };
        match reply.as_ref().ok().and_then(|job| job.controller.as_ref()) {
            Some(cron_job) => traces.wait(&cron_job.uid, done),
            // No status write follows: the next try has a trace of its own.
            None => traces.tell(name, &[done]),
        }
    }

    /// Records a request to write the status of a CronJob.
    pub fn settled<T, E: Display>(self, cron_job: &ObjectName, uid: &Uid, reply: &Result<T, E>) {
        let Some((traces, began)) = self.running else { return };
        // A status that only reports the end of a Job belongs to no fire.
        if !traces.waiting.contains_key(uid) {
            return;
        }
        let error = reply.as_ref().err().map(ToString::to_string);
        traces.wait(uid, Done { span: "status", job: None, began, ended: traces.now(), error, fire: None });
        if reply.is_ok()
            && let Some((_, done)) = traces.waiting.remove(uid)
        {
            traces.tell(cron_job, &Vec::from(done));
        }
    }
}
