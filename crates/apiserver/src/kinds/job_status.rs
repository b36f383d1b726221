//! Validation of changes of a Job's status.
//!
//! Guarantees: only transitions that kube-apiserver allows are accepted. Counters do not decrease. Finished Jobs stay finished,
//! have no active Pods and have their times. Completion requires its criteria. A rule applies if the field that it concerns has
//! changed.
//! Matches k8s.io/kubernetes `pkg/registry/batch/job/strategy.go`, `getStatusValidationOptions`, and
//! `pkg/apis/batch/validation/validation.go`, `ValidateJobStatusUpdate`.

use std::collections::BTreeSet;

use apimachinery::field::FieldError;
use serde_json::Value;

use super::fields::{duplicate, invalid, invalid_as, invalid_unshown, list, nonnegative, number, required, text};
use super::policies::count_indexes;
use super::time;

fn is_true(job: &Value, condition: &str) -> bool {
    list(job, "status.conditions").iter().any(|c| c["type"] == condition && c["status"] == "True")
}

fn is_finished(job: &Value) -> bool {
    is_true(job, "Complete") || is_true(job, "Failed")
}

/// A change from `old` to `job`.
struct Change<'a> {
    job: &'a Value,
    old: &'a Value,
    errors: Vec<FieldError>,
}

/// Validates a change of the status.
pub(super) fn validate(job: &Value, old: &Value) -> Vec<FieldError> {
    let mut change = Change { job, old, errors: Vec::new() };
    change.counts();
    change.conditions_and_times();
    change.finished();
    change.indexes();
    change.late_rules();
    change.transitions();
    change.errors
}

impl<'a> Change<'a> {
    fn field(&self, name: &str) -> &'a Value {
        &self.job["status"][name]
    }

    fn changed(&self, name: &str) -> bool {
        self.job["status"][name] != self.old["status"][name]
    }

    /// Whether a condition has become true or ceased to be true.
    fn turned(&self, condition: &str) -> bool {
        is_true(self.job, condition) != is_true(self.old, condition)
    }

    fn finished_turned(&self) -> bool {
        is_finished(self.job) != is_finished(self.old)
    }

    fn refuse(&mut self, name: &str, detail: &str) {
        let value = self.field(name).clone();
        self.errors.push(invalid(format!("status.{name}"), value, detail));
    }

    fn refuse_conditions(&mut self, detail: &str) {
        self.errors.push(invalid_unshown("status.conditions", detail));
    }

    fn counts(&mut self) {
        let status = &self.job["status"];
        for name in ["active", "succeeded", "failed", "ready", "terminating"] {
            nonnegative(&mut self.errors, status, "status", name);
        }
        let mut seen = BTreeSet::new();
        for name in ["succeeded", "failed"] {
            let uids = list(&status["uncountedTerminatedPods"], name);
            for (index, uid) in uids.iter().filter_map(Value::as_str).enumerate() {
                let field = format!("status.uncountedTerminatedPods.{name}[{index}]");
                if uid.is_empty() {
                    self.errors.push(invalid(field, uid, "must not be empty"));
                } else if !seen.insert(uid) {
                    self.errors.push(duplicate(field, uid));
                }
            }
        }
    }

    fn conditions_and_times(&mut self) {
        let (complete, failed) = (is_true(self.job, "Complete"), is_true(self.job, "Failed"));
        let complete_turned = self.turned("Complete");
        if (complete_turned || self.turned("Failed")) && complete && failed {
            self.refuse_conditions("cannot set Complete=True and Failed=true conditions");
        }
        if (complete_turned || self.turned("FailureTarget")) && complete && is_true(self.job, "FailureTarget") {
            self.refuse_conditions("cannot set Complete=True and FailureTarget=true conditions");
        }
        let completion_changed = self.changed("completionTime");
        if complete_turned || completion_changed {
            if !self.field("completionTime").is_null() && !complete {
                self.refuse("completionTime", "cannot set completionTime when there is no Complete=True condition");
            }
            if self.field("completionTime").is_null() && complete {
                self.errors.push(required("status.completionTime", "completionTime is required for Complete jobs"));
            }
        }
        if self.changed("startTime") || completion_changed {
            let read = |name: &str| time::read(text(&self.job["status"], name));
            if read("completionTime").zip(read("startTime")).is_some_and(|(completion, start)| completion < start) {
                self.refuse("completionTime", "must be equal to or after `startTime`");
            }
        }
        if (self.turned("Failed") || self.changed("failedIndexes")) && failed && !is_true(self.job, "FailureTarget") {
            self.refuse_conditions("cannot set Failed=True condition without the FailureTarget=true condition");
        }
        let met = is_true(self.job, "SuccessCriteriaMet");
        if (complete_turned || self.turned("SuccessCriteriaMet")) && complete && !met {
            self.refuse_conditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
        }
    }

    fn finished(&mut self) {
        if !is_finished(self.job) {
            return;
        }
        let turned = self.finished_turned();
        if (turned || self.changed("active")) && self.field("active").as_i64().unwrap_or(0) > 0 {
            self.refuse("active", "active>0 is invalid for finished job");
        }
        let spec = &self.job["spec"];
        let suspended_at_zero = spec["suspend"] == true && spec["completions"] == 0;
        if (turned || self.changed("startTime")) && !suspended_at_zero && self.field("startTime").is_null() {
            self.errors.push(required("status.startTime", "startTime is required for finished job"));
        }
        let uncounted = self.field("uncountedTerminatedPods");
        let some = !list(uncounted, "succeeded").is_empty() || !list(uncounted, "failed").is_empty();
        if (turned || self.changed("uncountedTerminatedPods")) && some {
            let shown = format!(r#"{{"Succeeded":{},"Failed":{}}}"#, uncounted["succeeded"], uncounted["failed"]);
            self.errors.push(invalid_as("status.uncountedTerminatedPods", &shown, "must be empty for finished job"));
        }
    }

    fn indexes(&mut self) {
        let spec = &self.job["spec"];
        let (completed, failed) = (self.field("completedIndexes"), self.field("failedIndexes"));
        let (completed, failed) = (completed.as_str().unwrap_or_default(), failed.as_str());
        let per_index = !spec["backoffLimitPerIndex"].is_null();
        let completions = number(spec, "completions");
        let bad = |indexes: &str| completions.and_then(|n| count_indexes(indexes, n).err());
        let completed_changed = self.changed("completedIndexes");
        if let Some(error) = bad(completed).filter(|_| completed_changed) {
            self.refuse("completedIndexes", &format!("error parsing completedIndexes: {error}"));
        }
        let failed_changed = self.changed("failedIndexes");
        if let Some(error) = failed.and_then(bad).filter(|_| failed_changed && per_index) {
            self.refuse("failedIndexes", &format!("error parsing failedIndexes: {error}"));
        }
        if completed_changed && !completed.is_empty() && text(spec, "completionMode") != "Indexed" {
            self.refuse("completedIndexes", "cannot set non-empty completedIndexes when non-indexed completion mode");
        }
        if failed_changed && !per_index && failed.is_some() {
            self.refuse("failedIndexes", "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
        }
        let overlap = failed.and_then(|failed| overlap(completed, failed, completions?));
        if let Some(index) = overlap.filter(|_| failed_changed || completed_changed) {
            self.refuse("failedIndexes", &format!("failedIndexes and completedIndexes overlap at index: {index}"));
        }
    }

    fn late_rules(&mut self) {
        let terminating = self.field("terminating").as_i64().unwrap_or(0) > 0;
        if (self.finished_turned() || self.changed("terminating")) && terminating && is_finished(self.job) {
            self.refuse("terminating", "terminating>0 is invalid for finished job");
        }
        let (ready, active) = (self.field("ready").as_i64(), self.field("active").as_i64().unwrap_or(0));
        if (self.changed("ready") || self.changed("active")) && ready.is_some_and(|ready| ready > active) {
            self.refuse("ready", "cannot set more ready pods than active");
        }
        let met = is_true(self.job, "SuccessCriteriaMet");
        if met && is_true(self.job, "Failed") {
            self.refuse_conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions");
        }
        if met && is_true(self.job, "FailureTarget") {
            self.refuse_conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
        }
        if !met && !self.job["spec"]["successPolicy"].is_null() && is_true(self.job, "Complete") {
            let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
            self.refuse_conditions(detail);
        }
    }

    fn transitions(&mut self) {
        for condition in ["Failed", "Complete", "FailureTarget"] {
            if is_true(self.old, condition) && !is_true(self.job, condition) {
                self.refuse_conditions(&format!("cannot disable the terminal {condition}=True condition"));
            }
        }
        let spec = &self.job["spec"];
        // Scaling an indexed Job down removes completed indexes.
        let elastic = text(spec, "completionMode") == "Indexed" && spec["completions"] == spec["parallelism"];
        for (name, fixed) in [("failed", true), ("succeeded", !elastic)] {
            let (new, old) = (self.field(name).as_i64().unwrap_or(0), number(&self.old["status"], name).unwrap_or(0));
            if fixed && new < old {
                let detail = format!("cannot decrease the {name} counter");
                self.errors.push(invalid(format!("status.{name}"), new, &detail));
            }
        }
        let both = |name: &str| !self.field(name).is_null() && !self.old["status"][name].is_null();
        if both("completionTime") && self.changed("completionTime") {
            self.refuse("completionTime", "field is immutable");
        }
        let suspended = |job: &Value, status: &str| {
            list(job, "status.conditions").iter().any(|c| c["type"] == "Suspended" && c["status"] == status)
        };
        let resuming = suspended(self.old, "True") && suspended(self.job, "False");
        let was_started = !self.old["status"]["startTime"].is_null();
        if self.changed("startTime") && was_started && !resuming && spec["suspend"] != true {
            self.refuse("startTime", "field is immutable for unsuspended job once set");
        }
        let (was_met, met) = (is_true(self.old, "SuccessCriteriaMet"), is_true(self.job, "SuccessCriteriaMet"));
        if was_met && !met {
            self.refuse_conditions("cannot disable the SuccessCriteriaMet=True condition");
        }
        if is_true(self.old, "Complete") && !was_met && met {
            let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
            self.refuse_conditions(detail);
        }
    }
}

/// The first index that both texts contain.
fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let intervals = |text: &str| -> Vec<(i64, i64)> {
        let parse = |interval: &str| {
            let (first, end) = interval.split_once('-').unwrap_or((interval, interval));
            Some((first.parse().ok()?, end.parse().ok()?)).filter(|(_, end)| *end < completions)
        };
        text.split(',').filter_map(parse).collect()
    };
    let failed = intervals(failed);
    intervals(completed)
        .iter()
        .flat_map(|c| failed.iter().filter(|f| c.0 <= f.1 && f.0 <= c.1).map(|f| c.0.max(f.0)))
        .min()
}
