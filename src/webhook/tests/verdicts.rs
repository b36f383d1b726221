//! Defaulting, validation and the form of the answers, as tables.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::defaulting::default_cron_job;
use super::super::review::{self, Verdict, answer, read};
use super::super::validation::validate_cron_job;
use super::{cron_job, review};

fn ask(judge: fn(&review::Request) -> Verdict, operation: &str, object: &Value) -> Value {
    let question = read(review(operation, object).to_string().as_bytes()).unwrap();
    answer(&question.uid, &judge(&question))["response"].clone()
}

/// The object with the answer's patch applied, and the number of operations.
fn patched(response: &Value, object: &Value) -> (Value, usize) {
    let Some(patch) = response["patch"].as_str() else { return (object.clone(), 0) };
    assert_eq!(response["patchType"], "JSONPatch");
    let operations: Vec<Value> = serde_json::from_slice(&STANDARD.decode(patch).unwrap()).unwrap();
    let mut object = object.clone();
    for operation in &operations {
        assert_eq!(operation["op"], "add");
        let field = operation["path"].as_str().unwrap().strip_prefix("/spec/").unwrap();
        object["spec"][field] = operation["value"].clone();
    }
    (object, operations.len())
}

#[test]
fn missing_fields_get_the_tutorials_defaults() {
    let rows = [
        (
            "nothing but a schedule",
            json!({ "schedule": "@daily" }),
            json!({
                "schedule": "@daily", "concurrencyPolicy": "Allow", "suspend": false,
                "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
            }),
        ),
        (
            "an empty policy and nulls are as good as nothing",
            json!({ "concurrencyPolicy": "", "suspend": null, "successfulJobsHistoryLimit": null }),
            json!({
                "concurrencyPolicy": "Allow", "suspend": false,
                "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
            }),
        ),
        (
            "what is set stays, zeros too",
            json!({ "concurrencyPolicy": "Forbid", "suspend": true, "successfulJobsHistoryLimit": 0 }),
            json!({
                "concurrencyPolicy": "Forbid", "suspend": true,
                "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 1,
            }),
        ),
        (
            "what is wrong is left to those who judge",
            json!({ "concurrencyPolicy": "Sometimes", "suspend": "", "successfulJobsHistoryLimit": -1,
                    "failedJobsHistoryLimit": "x" }),
            json!({ "concurrencyPolicy": "Sometimes", "suspend": "", "successfulJobsHistoryLimit": -1,
                    "failedJobsHistoryLimit": "x" }),
        ),
    ];
    for (sentence, spec, want) in rows {
        for operation in ["CREATE", "UPDATE"] {
            let object = cron_job("report", &spec);
            let response = ask(default_cron_job, operation, &object);
            assert_eq!(response["allowed"], true, "{sentence}");
            assert_eq!(patched(&response, &object).0["spec"], want, "{sentence}: {operation}");
        }
    }
}

#[test]
fn deletion_and_object_without_a_spec_get_no_defaults() {
    let rows = [
        ("a deletion", "DELETE", Value::Null),
        ("an object without a spec", "CREATE", json!({ "metadata": { "name": "a" } })),
        ("a spec that is none", "CREATE", json!({ "spec": "daily" })),
    ];
    for (sentence, operation, object) in rows {
        assert_eq!(ask(default_cron_job, operation, &object)["patch"], Value::Null, "{sentence}");
    }
}

#[test]
fn invalid_field_is_reported_with_kubernetes_error_texts() {
    let long = "n".repeat(53);
    let rows = [
        (
            "a schedule with too few fields",
            cron_job("report", &json!({ "schedule": "* *" })),
            "CronJob.batch.tutorial.kubebuilder.io \"report\" is invalid: spec.schedule: Invalid value: \"* *\": \
             expected exactly 5 fields, found 2: [* *]"
                .to_owned(),
            vec!["spec.schedule"],
        ),
        (
            "a schedule with quotes in it",
            cron_job("report", &json!({ "schedule": "\"x\" * * * *" })),
            "CronJob.batch.tutorial.kubebuilder.io \"report\" is invalid: spec.schedule: Invalid value: \
             \"\\\"x\\\" * * * *\": failed to parse int from \"x\": strconv.Atoi: parsing \"\\\"x\\\"\": invalid syntax"
                .to_owned(),
            vec!["spec.schedule"],
        ),
        (
            "an empty schedule",
            cron_job("report", &json!({ "schedule": "" })),
            "CronJob.batch.tutorial.kubebuilder.io \"report\" is invalid: spec.schedule: Invalid value: \"\": \
             empty spec string"
                .to_owned(),
            vec!["spec.schedule"],
        ),
        (
            "no schedule",
            cron_job("report", &json!({})),
            "CronJob.batch.tutorial.kubebuilder.io \"report\" is invalid: spec.schedule: Required value".to_owned(),
            vec!["spec.schedule"],
        ),
        (
            "a name that leaves no room for a Job's suffix",
            cron_job(&long, &json!({ "schedule": "@hourly" })),
            format!(
                "CronJob.batch.tutorial.kubebuilder.io \"{long}\" is invalid: metadata.name: Invalid value: \"{long}\": \
                 must be no more than 52 characters"
            ),
            vec!["metadata.name"],
        ),
        (
            "a history limit that the API server takes before v1.36",
            cron_job("report", &json!({ "schedule": "@hourly", "failedJobsHistoryLimit": 1_i64 << 31 })),
            "CronJob.batch.tutorial.kubebuilder.io \"report\" is invalid: spec.failedJobsHistoryLimit: Invalid value: \
             2147483648: must be of type integer with format int32"
                .to_owned(),
            vec!["spec.failedJobsHistoryLimit"],
        ),
        (
            "two faults at once",
            cron_job(&long, &json!({ "schedule": "@often" })),
            format!(
                "CronJob.batch.tutorial.kubebuilder.io \"{long}\" is invalid: [metadata.name: Invalid value: \"{long}\": \
                 must be no more than 52 characters, spec.schedule: Invalid value: \"@often\": \
                 unrecognized descriptor: @often]"
            ),
            vec!["metadata.name", "spec.schedule"],
        ),
    ];
    for (sentence, object, message, fields) in rows {
        for operation in ["CREATE", "UPDATE"] {
            let response = ask(validate_cron_job, operation, &object);
            assert_eq!(response["allowed"], false, "{sentence}");
            let status = &response["status"];
            assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")), "{sentence}");
            assert_eq!(status["message"], message, "{sentence}");
            let causes = status["details"]["causes"].as_array().unwrap();
            assert_eq!(causes.iter().map(|cause| &cause["field"]).collect::<Vec<_>>(), fields, "{sentence}");
            assert_eq!(status["details"]["kind"], "CronJob", "{sentence}");
        }
    }
}

#[test]
fn object_that_the_controller_can_run_is_allowed() {
    let name = "n".repeat(52);
    let leaving = json!({
        "metadata": { "name": name, "deletionTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "schedule": "never" },
    });
    let rows = [
        ("five fields", "CREATE", cron_job(&name, &json!({ "schedule": "*/5 9-17 * * MON-FRI" }))),
        ("a descriptor", "UPDATE", cron_job("a", &json!({ "schedule": "@every 90s" }))),
        ("a zone", "CREATE", cron_job("a", &json!({ "schedule": "TZ=Asia/Tokyo 0 9 * * *" }))),
        ("a deletion, whatever is deleted", "DELETE", Value::Null),
        ("the last change of an object that is being deleted", "UPDATE", leaving),
    ];
    for (sentence, operation, object) in rows {
        let response = ask(validate_cron_job, operation, &object);
        assert_eq!(response, json!({ "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "allowed": true }), "{sentence}");
    }
}

#[test]
fn body_that_is_no_admission_review_is_refused() {
    let rows = [
        ("no JSON", "hello", "the body is no AdmissionReview: expected value at line 1 column 1"),
        (
            "an older version",
            r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":null}"#,
            "the body is a \"AdmissionReview\" of \"admission.k8s.io/v1beta1\"; \
             this webhook answers an AdmissionReview of admission.k8s.io/v1",
        ),
        (
            "another object",
            "{}",
            "the body is a \"\" of \"\"; this webhook answers an AdmissionReview of admission.k8s.io/v1",
        ),
        (
            "an answer",
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{}}"#,
            "the AdmissionReview has no request",
        ),
        (
            "an operation that does not exist",
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"EAT"}}"#,
            "the body is no AdmissionReview: unknown variant `EAT`",
        ),
    ];
    for (sentence, body, want) in rows {
        let error = read(body.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(want), "{sentence}: {error}");
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..5_i64).prop_map(Value::from),
        prop_oneof![Just(""), Just("Allow"), Just("* * * * *")].prop_map(Value::from),
        Just(json!([])),
    ]
}

proptest! {
    #[test]
    fn defaulting_a_second_time_changes_nothing(
        fields in prop::collection::hash_map(
            prop::sample::select(vec![
                "schedule", "suspend", "concurrencyPolicy", "successfulJobsHistoryLimit", "failedJobsHistoryLimit",
            ]),
            any_value(),
            0..5,
        ),
    ) {
        let spec: serde_json::Map<_, _> = fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let object = cron_job("a", &Value::Object(spec));
        let (defaulted, _) = patched(&ask(default_cron_job, "CREATE", &object), &object);
        prop_assert_eq!(patched(&ask(default_cron_job, "CREATE", &defaulted), &defaulted), (defaulted, 0));
    }

    #[test]
    fn no_body_makes_the_webhooks_panic(body in "\\PC{0,64}", object in any_value()) {
        let _ = read(body.as_bytes());
        for judge in [default_cron_job, validate_cron_job] {
            ask(judge, "UPDATE", &object);
            ask(judge, "CREATE", &json!({ "metadata": object, "spec": object }));
        }
    }
}
