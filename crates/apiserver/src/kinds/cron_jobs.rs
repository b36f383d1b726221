//! CronJobs of batch/v1.
//!
//! Guarantees: this crate's own parser validates schedules, with robfig/cron's messages; time zones follow Go's rules.
//! Matches k8s.io/kubernetes `pkg/registry/batch/cronjob/strategy.go` and `pkg/apis/batch/validation/validation.go`,
//! `ValidateCronJobCreate` and `ValidateCronJobUpdate`.

use apimachinery::field::FieldError;
use chrono::{DateTime, Utc};
use schedule::{ParseError, Schedule, Zone};
use serde_json::{Value, json};

use super::fields::{at, child, invalid, invalid_json, list, nonnegative, not_supported, required, text};
use super::{
    Kind, POD_NAMES, age, columns, container_cells, is_new, is_new_spec, job_spec, keep_status_and_count, name_warning,
    selector_cell, time,
};
use crate::registry::Column;

/// The longest CronJob name: a Job's name adds a hyphen and ten digits, within 63 characters.
const LONGEST_NAME: usize = 52;

pub(super) struct CronJobs;

impl Kind for CronJobs {
    const ROOT: &'static str = "batch.v1.CronJob";
    const COLUMNS: &'static [Column] = &columns::CRONJOBS;

    fn prepare_for_create(&self, object: &mut Value) {
        object["status"] = json!({});
        child(object, "metadata")["generation"] = 1.into();
        job_spec::drop_disabled(child(child(child(object, "spec"), "jobTemplate"), "spec"));
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = validate_spec(&object["spec"], None);
        let name = text(object, "metadata.name");
        if name.len() > LONGEST_NAME {
            let detail = format!("must be no more than {LONGEST_NAME} characters");
            errors.push(invalid("metadata.name", name, &detail));
        }
        errors.extend(missing_schedule(&object["spec"]));
        errors
    }

    fn prepare_for_update(&self, object: &mut Value, old: &Value) {
        job_spec::drop_disabled(child(child(child(object, "spec"), "jobTemplate"), "spec"));
        keep_status_and_count(object, old);
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = validate_spec(&object["spec"], Some(&old["spec"]));
        errors.extend(missing_schedule(&object["spec"]));
        errors
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let mut warnings: Vec<String> = name_warning(object, POD_NAMES).into_iter().collect();
        if !is_new(object) && text(object, "spec.schedule").contains("TZ") {
            warnings.push(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                    .to_owned(),
            );
        }
        if is_new_spec(object, old) {
            warnings.extend(job_spec::warnings(at(object, "spec.jobTemplate.spec"), "spec.jobTemplate.spec"));
        }
        warnings
    }

    fn cells(&self, object: &Value, now: DateTime<Utc>) -> Vec<Value> {
        let spec = &object["spec"];
        let job = at(spec, "jobTemplate.spec");
        let last = at(object, "status.lastScheduleTime").as_str();
        let suspend = spec["suspend"].as_bool().map_or("<unset>", |suspend| if suspend { "True" } else { "False" });
        let [containers, images] = container_cells(list(job, "template.spec.containers"));
        vec![
            object["metadata"]["name"].clone(),
            text(spec, "schedule").into(),
            spec["timeZone"].as_str().unwrap_or("<none>").into(),
            suspend.into(),
            list(object, "status.active").len().into(),
            last.map_or_else(|| "<none>".to_owned(), |last| time::since(Some(last), now)).into(),
            age(object, now),
            containers,
            images,
            selector_cell(&job["selector"]),
        ]
    }
}

/// Declarative validation reports this, after all other rules. Matches `Validate_CronJobSpec`.
fn missing_schedule(spec: &Value) -> Option<FieldError> {
    text(spec, "schedule").is_empty().then(|| required("spec.schedule", ""))
}

fn validate_spec(spec: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let schedule = text(spec, "schedule");
    if !schedule.is_empty() {
        let zone_allowed = old.is_some_and(|old| text(old, "schedule").contains("TZ"));
        validate_schedule(schedule, zone_allowed, !spec["timeZone"].is_null(), &mut errors);
    }
    nonnegative(&mut errors, spec, "spec", "startingDeadlineSeconds");
    if old.is_none_or(|old| old["timeZone"] != spec["timeZone"])
        && let Some(zone) = spec["timeZone"].as_str()
    {
        validate_time_zone(zone, &mut errors);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    match text(spec, "concurrencyPolicy") {
        "" => errors.push(required("spec.concurrencyPolicy", "")),
        policy if policies.contains(&policy) => {}
        policy => errors.push(not_supported("spec.concurrencyPolicy", policy, &policies)),
    }
    errors.extend(job_spec::validate_job_template(&spec["jobTemplate"], "spec.jobTemplate"));
    nonnegative(&mut errors, spec, "spec", "successfulJobsHistoryLimit");
    nonnegative(&mut errors, spec, "spec", "failedJobsHistoryLimit");
    errors
}

/// Matches `validateScheduleFormat`. The zone of a schedule that names none makes no difference here.
fn validate_schedule(schedule: &str, zone_allowed: bool, has_time_zone: bool, errors: &mut Vec<FieldError>) {
    if let Err(error) = Schedule::parse_standard(schedule, Zone::UTC) {
        let detail = match error {
            // Upstream's parser panics, and upstream reports the panic.
            ParseError::ZoneOnly(_) => {
                "invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned()
            }
            error => error.to_string(),
        };
        errors.push(invalid("spec.schedule", schedule, &detail));
    }
    if !schedule.contains("TZ") {
        return;
    }
    if !zone_allowed {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(invalid("spec.schedule", schedule, detail));
    } else if has_time_zone {
        let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        errors.push(invalid("spec.schedule", schedule, detail));
    }
}

/// Matches `validateTimeZone`.
fn validate_time_zone(zone: &str, errors: &mut Vec<FieldError>) {
    let mut refuse = |detail: &str| errors.push(invalid_json("spec.timeZone", zone, detail));
    if zone.is_empty() {
        return refuse("timeZone must be nil or non-empty string");
    }
    let unknown = format!("unknown time zone {zone}");
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
    let bad_part = |part: &str| {
        matches!(part, "." | "..")
            || part.starts_with('-')
            || !(1..=14).contains(&part.len())
            || !part.chars().all(good)
    };
    if zone.split('/').any(bad_part) {
        return refuse(&unknown);
    }
    if zone.eq_ignore_ascii_case("Local") {
        refuse("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
    }
    // Go knows `Local` in exactly this spelling.
    if zone != "Local"
        && let Err(error) = Zone::load(zone, Zone::UTC)
    {
        refuse(&error.to_string());
    }
}
