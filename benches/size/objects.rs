//! The objects of the fake server, as text, generated from their numbers: serving them needs no memory.
//!
//! Each has the fields that kube-apiserver sends for a small CronJob and its finished Jobs: defaults, managedFields,
//! and kubectl's annotation.

use std::fmt::Write as _;

use chrono::{DateTime, Datelike, Days, Months, NaiveTime, SecondsFormat, TimeDelta, Timelike, Utc};
use cronjob_controller::api::batch_v1::CronJob;
use cronjob_controller::api::{Interner, Object};

/// The number of namespaces with CronJobs.
pub const NAMESPACES: usize = 50;

/// How long after its slot a Job has completed.
const RUN: TimeDelta = TimeDelta::seconds(49);

/// The server's initial objects.
#[derive(Clone)]
pub struct World {
    /// The number of CronJobs.
    pub cron_jobs: usize,
    /// The number of them that are due at `due`.
    pub firing: usize,
    /// Finished Jobs of each CronJob.
    pub jobs_each: usize,
    /// The measured slot; a whole minute.
    pub due: DateTime<Utc>,
    /// Whether each CronJob has three policies, with the record of decided slots.
    pub policies: bool,
    /// Whether every second Namespace is frozen, and with it half of the CronJobs. None of those is due at `due`.
    pub frozen: bool,
}

impl World {
    /// The number of Jobs.
    pub fn jobs(&self) -> usize {
        self.cron_jobs * self.jobs_each
    }

    /// Whether the CronJob is due at the measured slot. Those are spread over all CronJobs, from 10,000 on in the first Namespace.
    pub fn fires(&self, cron_job: usize) -> bool {
        let step = (self.cron_jobs / self.firing).max(1);
        cron_job.is_multiple_of(step) && cron_job / step < self.firing
    }

    /// `(namespace, name)`.
    pub fn name(cron_job: usize) -> (String, String) {
        (format!("team-{:02}", cron_job % NAMESPACES), format!("nightly-report-{cron_job:06}"))
    }

    /// The number of the CronJob of that name.
    pub fn number(&self, name: &str) -> Option<usize> {
        name.rsplit_once('-')?.1.parse().ok().filter(|number| *number < self.cron_jobs)
    }

    /// A Namespace, as a client reads it that asks for the metadata alone.
    pub fn namespace(&self, number: usize) -> String {
        let freeze = r#","annotations":{"cronjob-controller.dev/not-before":"2100-01-01T00:00:00Z","cronjob-controller.dev/reason":"release week"}"#;
        let annotations = if self.frozen && number % 2 == 1 { freeze } else { "" };
        let (uid, version) = (uid(4, number), 100 + number);
        format!(
            r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{{"name":"team-{number:02}","uid":"{uid}","resourceVersion":"{version}","creationTimestamp":"2026-01-05T09:12:31Z"{annotations}}}}}"#
        )
    }

    /// Hourly at the measured minute, or monthly and never due during the measurement.
    fn schedule(&self, cron_job: usize) -> (String, DateTime<Utc>, TimeDelta) {
        if self.fires(cron_job) {
            let hour = TimeDelta::hours(1);
            return (format!("{} * * * *", self.due.minute()), self.due - hour, hour);
        }
        let (minute, hour) = (cron_job % 60, cron_job / 60 % 24);
        let mut day = self.due.date_naive() + Days::new(2);
        while day.day() > 28 {
            day = day + Days::new(1);
        }
        // The slot before the next one, which months of different lengths separate.
        let last = day - Months::new(1);
        let time = TimeDelta::minutes(i64::try_from(hour * 60 + minute).unwrap_or_default());
        let last = last.and_time(NaiveTime::MIN).and_utc() + time;
        (format!("{minute} {hour} {} * *", day.day()), last.max(self.due - TimeDelta::days(29)), TimeDelta::days(30))
    }

    /// A CronJob with this resource version; `status` replaces its initial status.
    pub fn cron_job(&self, number: usize, resource_version: u64, status: Option<&str>) -> String {
        if !self.policies {
            return self.annotated(number, resource_version, status, "");
        }
        let policies = r#","cronjob-controller.dev/exclude":"12-24/01-06","cronjob-controller.dev/dst":"once","cronjob-controller.dev/max-concurrent":"3""#;
        let plain = self.annotated(number, resource_version, status, policies);
        let (_, last, _) = self.schedule(number);
        let counted = CronJob::decode(&plain, &Interner::default()).expect("a CronJob").counted_at(last);
        let all = format!(r#"{policies},"cronjob-controller.dev/counted-from":"{counted}""#);
        self.annotated(number, resource_version, status, &all)
    }

    /// The same with further annotations, as JSON.
    fn annotated(&self, number: usize, resource_version: u64, status: Option<&str>, more: &str) -> String {
        let (namespace, name) = Self::name(number);
        let (schedule, last, _) = self.schedule(number);
        let uid = uid(1, number);
        let (last, finished) = (time(last), time(last + RUN));
        let fallback = format!(r#"{{"lastScheduleTime":"{last}","lastSuccessfulTime":"{finished}"}}"#);
        let status = status.unwrap_or(&fallback);
        let spec = pod_template(number);
        let job_template =
            format!(r#"{{"metadata":{{"labels":{{"app":"{name}","team":"{namespace}"}}}},"spec":{spec}}}"#);
        let applied = json_text(&format!(
            r#"{{"apiVersion":"batch/v1","kind":"CronJob","metadata":{{"annotations":{{}},"name":"{name}","namespace":"{namespace}"}},"spec":{{"jobTemplate":{job_template},"schedule":"{schedule}"}}}}"#
        ));
        format!(
            r#"{{"kind":"CronJob","apiVersion":"batch/v1","metadata":{{"name":"{name}","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{resource_version}","generation":1,"creationTimestamp":"2026-01-05T09:12:31Z","labels":{{"app":"{name}"}},"annotations":{{"kubectl.kubernetes.io/last-applied-configuration":{applied}{more}}},"managedFields":[{SPEC_FIELDS},{STATUS_FIELDS}]}},"spec":{{"schedule":"{schedule}","concurrencyPolicy":"Forbid","suspend":false,"jobTemplate":{job_template},"successfulJobsHistoryLimit":3,"failedJobsHistoryLimit":1}},"status":{status}}}"#
        )
    }

    /// A finished Job.
    pub fn job(&self, number: usize, resource_version: u64) -> String {
        let (cron_job, age) = (number / self.jobs_each, number % self.jobs_each);
        let (_, last, interval) = self.schedule(cron_job);
        let slot = last - interval * i32::try_from(age).unwrap_or_default();
        let (namespace, owner) = Self::name(cron_job);
        let name = format!("{owner}-{}", slot.timestamp() / 60);
        let (start, end) = (time(slot + TimeDelta::seconds(1)), time(slot + RUN));
        let metadata = Metadata {
            name: &name,
            namespace: &namespace,
            uid: &uid(2, number),
            resource_version,
            created: &time(slot),
            annotations: &format!(r#"{{"batch.kubernetes.io/cronjob-scheduled-timestamp":"{}"}}"#, time(slot)),
            labels: &format!(r#"{{"app":"{owner}","team":"{namespace}"}}"#),
            owners: &format!(
                r#"[{{"apiVersion":"batch/v1","kind":"CronJob","name":"{owner}","uid":"{}","controller":true,"blockOwnerDeletion":true}}]"#,
                uid(1, cron_job)
            ),
        };
        let status = format!(
            r#"{{"conditions":[{{"type":"SuccessCriteriaMet","status":"True","lastProbeTime":"{end}","lastTransitionTime":"{end}","reason":"CompletionsReached","message":"Reached expected number of succeeded pods"}},{{"type":"Complete","status":"True","lastProbeTime":"{end}","lastTransitionTime":"{end}","reason":"CompletionsReached","message":"Reached expected number of succeeded pods"}}],"startTime":"{start}","completionTime":"{end}","succeeded":1,"uncountedTerminatedPods":{{}},"ready":0,"terminating":0}}"#
        );
        job(&metadata, &pod_template(cron_job), &status)
    }
}

/// The fields that differ between Jobs.
pub struct Metadata<'a> {
    /// `metadata.name`.
    pub name: &'a str,
    /// `metadata.namespace`.
    pub namespace: &'a str,
    /// `metadata.uid`.
    pub uid: &'a str,
    /// `metadata.resourceVersion`.
    pub resource_version: u64,
    /// `metadata.creationTimestamp`.
    pub created: &'a str,
    /// As JSON.
    pub annotations: &'a str,
    /// As JSON.
    pub labels: &'a str,
    /// As JSON.
    pub owners: &'a str,
}

/// A Job as the server sends it.
pub fn job(metadata: &Metadata<'_>, spec: &str, status: &str) -> String {
    let Metadata { name, namespace, uid, resource_version, created, annotations, labels, owners } = metadata;
    format!(
        r#"{{"kind":"Job","apiVersion":"batch/v1","metadata":{{"name":"{name}","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{resource_version}","generation":1,"creationTimestamp":"{created}","labels":{labels},"annotations":{annotations},"ownerReferences":{owners},"managedFields":[{JOB_FIELDS},{JOB_STATUS_FIELDS}]}},"spec":{spec},"status":{status}}}"#
    )
}

/// A UID in the form of a random UUID.
pub fn uid(kind: u64, number: usize) -> String {
    // SplitMix64's finalizer: well distributed and deterministic.
    let mut z = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ kind;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    let (high, low) = (z >> 32, z & 0xFFFF_FFFF);
    format!("{high:08x}-{:04x}-4{kind:03x}-8{:03x}-{number:012x}", low >> 16, low & 0xFFF)
}

/// metav1.Time.
pub fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The Job's `spec` with the server's defaults. No two CronJobs have the same.
fn pod_template(cron_job: usize) -> String {
    let mut text = String::with_capacity(800);
    let _ = write!(
        text,
        r#"{{"backoffLimit":2,"template":{{"metadata":{{"labels":{{"app":"nightly-report-{cron_job:06}"}}}},"spec":{{"containers":[{{"name":"report","image":"registry.example.com/reports/runner:v2.14.{}","args":["--report","{cron_job:06}","--window","24h"],"env":[{{"name":"BUCKET","value":"reports-eu-{}"}}],"resources":{{"limits":{{"memory":"256Mi"}},"requests":{{"cpu":"50m","memory":"128Mi"}}}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}}],"restartPolicy":"Never","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{{}},"schedulerName":"default-scheduler"}}}}}}"#,
        cron_job % 7,
        cron_job % 12,
    );
    text
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

const SPEC_FIELDS: &str = r#"{"manager":"kubectl-client-side-apply","operation":"Update","apiVersion":"batch/v1","time":"2026-01-05T09:12:31Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}},"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:concurrencyPolicy":{},"f:failedJobsHistoryLimit":{},"f:jobTemplate":{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:team":{}}},"f:spec":{"f:backoffLimit":{},"f:template":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"report\"}":{".":{},"f:args":{},"f:env":{".":{},"k:{\"name\":\"BUCKET\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}}},"f:schedule":{},"f:successfulJobsHistoryLimit":{},"f:suspend":{}}}}"#;
const STATUS_FIELDS: &str = r#"{"manager":"cronjob-controller","operation":"Update","apiVersion":"batch/v1","time":"2026-11-20T01:00:49Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:lastScheduleTime":{},"f:lastSuccessfulTime":{}}},"subresource":"status"}"#;
const JOB_FIELDS: &str = r#"{"manager":"cronjob-controller","operation":"Update","apiVersion":"batch/v1","time":"2026-11-20T01:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:batch.kubernetes.io/cronjob-scheduled-timestamp":{}},"f:labels":{".":{},"f:app":{},"f:team":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"3d1b6dd9-1a2c-4c55-9f6b-9d7c7a1d6b01\"}":{}}},"f:spec":{"f:backoffLimit":{},"f:completionMode":{},"f:completions":{},"f:manualSelector":{},"f:parallelism":{},"f:podReplacementPolicy":{},"f:suspend":{},"f:template":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"report\"}":{".":{},"f:args":{},"f:env":{".":{},"k:{\"name\":\"BUCKET\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}}}}"#;
const JOB_STATUS_FIELDS: &str = r#"{"manager":"kube-controller-manager","operation":"Update","apiVersion":"batch/v1","time":"2026-11-20T01:00:49Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:completionTime":{},"f:conditions":{},"f:ready":{},"f:startTime":{},"f:succeeded":{},"f:terminating":{},"f:uncountedTerminatedPods":{}}},"subresource":"status"}"#;
