#![allow(clippy::unwrap_used)]

use chrono::DateTime;

use super::*;
use crate::cli::check::{Finding, Rules, Source, check_by};

const CRON_JOB: &str = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a, namespace: shop}\nspec:\n  schedule: \"0 3 * * *\"\n  timeZone: Etc/UTC\n  \
                        concurrencyPolicy: Forbid\n  startingDeadlineSeconds: 60\n  jobTemplate: {spec: {activeDeadlineSeconds: 9, template: {spec: \
                        {restartPolicy: Never, containers: [{name: c, image: \"i:latest\"}]}}}}\n";

fn policy(kind: &str, expression: &str, binding: Option<&str>) -> String {
    let binding = binding.map(|action| {
        format!(
            "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: b}}\nspec: \
             {{policyName: p, validationActions: [{action}]}}\n"
        )
    });
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: p}}\nspec:\n  matchConstraints:\n    \
         resourceRules:\n    - {{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: [{kind}]}}\n  validations:\n  - \
         expression: \"{expression}\"\n    message: why\n{}",
        binding.unwrap_or_default()
    )
}

fn lines(policies: &str, manifests: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.yaml");
    std::fs::write(&path, policies).unwrap();
    let policies = read(&[path]).unwrap();
    let source = Source { file: "a.yaml".to_owned(), text: manifests.to_owned() };
    let rules = Rules { max_per_minute: 9, ..Rules::default() };
    check_by(&[source], &policies, &rules, DateTime::UNIX_EPOCH).findings.iter().map(Finding::line).collect()
}

#[test]
fn policies_have_findings_of_their_own() {
    let no_latest = "object.spec.jobTemplate.spec.template.spec.containers.all(c, !c.image.endsWith(':latest'))";
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n";
    let rows: [(&str, String, String, &[&str]); 7] = [
        ("it holds", policy("cronjobs", "object.spec.schedule != ''", None), CRON_JOB.to_owned(), &[]),
        (
            "without a binding",
            policy("cronjobs", no_latest, None),
            CRON_JOB.to_owned(),
            &["a.yaml:1: error: CronJob shop/a: ValidatingAdmissionPolicy p denied request: why [denied-by-policy]"],
        ),
        (
            "with a binding that denies",
            policy("cronjobs", no_latest, Some("Deny")),
            CRON_JOB.to_owned(),
            &[
                "a.yaml:1: error: CronJob shop/a: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: why [denied-by-policy]",
            ],
        ),
        (
            "with a binding that warns",
            policy("cronjobs", no_latest, Some("Warn")),
            CRON_JOB.to_owned(),
            &[
                "a.yaml:1: warning: CronJob shop/a: Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': why [denied-by-policy]",
            ],
        ),
        (
            "not judged",
            policy("cronjobs", "object.zz", None),
            CRON_JOB.to_owned(),
            &[
                "a.yaml:1: warning: CronJob shop/a: ValidatingAdmissionPolicy p: object.zz: it has no result here: No such key: zz [policy-not-judged]",
            ],
        ),
        (
            "an object of another kind, and its default",
            policy("secrets", "object.type != 'Opaque'", None),
            format!("{CRON_JOB}---\n{secret}"),
            &["a.yaml:15: error: Secret s: ValidatingAdmissionPolicy p denied request: why [denied-by-policy]"],
        ),
        ("an object of an unknown kind", policy("'*'", "false", None), "apiVersion: a.b/v1\nkind: C\n".to_owned(), &[]),
    ];
    for (name, policies, manifests, want) in rows {
        let lines = lines(&policies, &manifests);
        let same = lines.len() == want.len()
            && lines
                .iter()
                .zip(want)
                .all(|(line, want)| line.split_once(": ").map(|l| l.1) == want.split_once(": ").map(|w| w.1));
        assert!(same, "{name}: {lines:#?}");
    }
}

/// Why policies in a file are refused.
fn refusal(policies: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.yaml");
    std::fs::write(&path, policies).unwrap();
    read(&[path]).unwrap_err().to_string()
}

#[test]
fn file_without_a_policy_is_an_error() {
    let error = refusal(CRON_JOB);
    assert!(error.ends_with("p.yaml, document 1: kind: there is no ValidatingAdmissionPolicy"), "{error}");
}

#[test]
fn policy_that_an_api_server_refuses_judges_nothing() {
    let good = policy("cronjobs", "true", None);
    let rows = [
        (
            "a policy in small letters",
            good.replace("  validations:", "  failurePolicy: fail\n  validations:"),
            "spec.failurePolicy: Unsupported value: \"fail\"",
        ),
        (
            "no expression",
            policy("cronjobs", "", None),
            "spec.validations[0].expression: Required value: expression is not specified",
        ),
        (
            "nothing to match",
            good.replace("matchConstraints", "matchConditons"),
            "spec.matchConditons: there is no such field",
        ),
    ];
    for (sentence, text, want) in rows {
        let error = refusal(&text);
        assert!(error.contains(&format!("p.yaml, document 1, {want}")), "{sentence}: {error}");
    }
}

#[test]
fn what_no_server_takes_judges_nothing() {
    let good = policy("cronjobs", "false", Some("Audit"));
    let rows = [
        ("a small letter", good.replace("[Audit]", "[deny]"), "spec.validationActions[0]: Unsupported value: \"deny\""),
        ("no action", good.replace("[Audit]", "[]"), "spec.validationActions: Required value"),
        (
            "a near miss",
            good.replace("validationActions", "validationAction"),
            "spec.validationAction: there is no such field",
        ),
        (
            "both",
            good.replace("[Audit]", "[Deny, Warn]"),
            "spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not",
        ),
        (
            "a rule without operations",
            good.replace("operations: ['*'], ", ""),
            "resourceRules[0].operations: Required value",
        ),
        (
            "the binding of another policy",
            good.replace("policyName: p", "policyName: q"),
            "spec.policyName: ValidatingAdmissionPolicyBinding \"b\" is of \"q\", and there is no such",
        ),
    ];
    for (sentence, text, want) in rows {
        let error = refusal(&text);
        assert!(error.contains(want), "{sentence}: {error}");
    }
}

#[test]
fn binding_and_its_policy_may_be_in_two_files() {
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = ["a", "b"].map(|name| directory.path().join(format!("{name}.yaml")));
    let of_q = policy("cronjobs", "true", None).replace("name: p", "name: q");
    let both = policy("cronjobs", "true", Some("Deny")).replace("policyName: p", "policyName: q");
    std::fs::write(&first, both).unwrap();
    std::fs::write(&second, of_q).unwrap();
    assert!(read(&[first.clone(), second]).is_ok());
    let error = read(&[first]).unwrap_err().to_string();
    assert!(error.contains("a.yaml, document 1: spec.policyName: "), "{error}");
}
