//! CronJobs: defaults, and invalid values of every field.

use serde_json::{Value, json};

use super::scenario;
use crate::dsl::*;

pub fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("cronjob-schedules", schedules()),
        scenario("cronjob-fields", fields()),
        scenario("cronjob-templates", templates()),
        scenario("cronjob-updates", updates()),
    ]
}

fn schedules() -> Vec<Step> {
    let texts = [
        "",
        " ",
        "bad",
        "* * * *",
        "* * * * * *",
        "* * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * 0 *",
        "* * * * 7",
        "* * * * 8",
        "-1 * * * *",
        "1-0 * * * *",
        "5-1 * * * *",
        "*/0 * * * *",
        "*/-1 * * * *",
        "1/2/3 * * * *",
        "1-2-3 * * * *",
        "a * * * *",
        "* * * foo *",
        "* * * jan *",
        "* * * * MON",
        "* * * * mon-fri",
        "*/61 * * * *",
        "1,2,3 * * * *",
        ", * * * *",
        "? ? ? ? ?",
        "@daily",
        "@every 5m",
        "@every 1",
        "@every",
        "@reboot",
        "@yearly",
        "@Daily",
        "@every -5m",
        "@every 500ms",
        "59 23 31 2 *",
        "TZ=UTC * * * * *",
        "TZ=America/New_York 0 * * * *",
        "CRON_TZ=UTC * * * * *",
        "TZ=Nowhere/City * * * * *",
        "TZ=",
        "0 0 L * *",
        "0 0 1W * *",
        "0 0 * * 5#3",
        " 0 0 * * * ",
        "0  0 * * *",
        "0\t0 * * *",
        "9999999999999999999999 * * * *",
        "1.5 * * * *",
        "+5 * * * *",
        "é * * * *",
    ];
    let mut steps: Vec<Step> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            post(format!("{CRONJOBS}?dryRun=All"), &cronjob(&format!("s{index}")).with("/spec/schedule", json!(text)))
                .part(essence)
                .named(format!("the schedule {text:?}"))
        })
        .collect();
    steps.push(post(CRONJOBS, &cronjob("none").without("/spec/schedule")).named("no schedule"));
    steps.push(post(CRONJOBS, &cronjob("null").with("/spec/schedule", Value::Null)).named("a schedule that is null"));
    steps
}

/// The spec of an object without the template; a Status as a whole.
fn essence(value: Value) -> Value {
    if value["kind"] == "Status" {
        return value;
    }
    value["spec"].clone().without("/jobTemplate")
}

fn fields() -> Vec<Step> {
    let dry = |sentence: &str, pointer: &str, value: Value| {
        post(format!("{CRONJOBS}?dryRun=All"), &cronjob("a").with(pointer, value)).part(essence).named(sentence)
    };
    vec![
        dry("the time zone UTC", "/spec/timeZone", json!("UTC")),
        dry("a time zone", "/spec/timeZone", json!("Europe/Berlin")),
        dry("an empty time zone", "/spec/timeZone", json!("")),
        dry("the time zone Local", "/spec/timeZone", json!("Local")),
        dry("the time zone local", "/spec/timeZone", json!("local")),
        dry("a time zone that does not exist", "/spec/timeZone", json!("Mars/Base")),
        dry("a time zone in other case", "/spec/timeZone", json!("europe/berlin")),
        dry("a time zone with a space", "/spec/timeZone", json!(" UTC")),
        dry("a time zone that leads out", "/spec/timeZone", json!("../etc/passwd")),
        dry("a time zone by offset", "/spec/timeZone", json!("+01:00")),
        dry("a time zone with a bad character", "/spec/timeZone", json!("Europe/Ber;lin")),
        dry("a time zone with a dash in front", "/spec/timeZone", json!("-UTC")),
        dry("a time zone that is null", "/spec/timeZone", json!(null)),
        post(
            format!("{CRONJOBS}?dryRun=All"),
            &cronjob("a").with("/spec/timeZone", json!("UTC")).with("/spec/schedule", json!("TZ=UTC * * * * *")),
        )
        .part(essence)
        .named("a time zone in both places"),
        dry("the policy Allow", "/spec/concurrencyPolicy", json!("Allow")),
        dry("the policy Forbid", "/spec/concurrencyPolicy", json!("Forbid")),
        dry("the policy Replace", "/spec/concurrencyPolicy", json!("Replace")),
        dry("an empty policy", "/spec/concurrencyPolicy", json!("")),
        dry("a policy in other case", "/spec/concurrencyPolicy", json!("forbid")),
        dry("a policy that does not exist", "/spec/concurrencyPolicy", json!("Queue")),
        dry("a deadline of zero", "/spec/startingDeadlineSeconds", json!(0)),
        dry("a negative deadline", "/spec/startingDeadlineSeconds", json!(-1)),
        dry("a deadline", "/spec/startingDeadlineSeconds", json!(100)),
        dry("a huge deadline", "/spec/startingDeadlineSeconds", json!(9_223_372_036_854_775_807_i64)),
        dry("a negative limit of successes", "/spec/successfulJobsHistoryLimit", json!(-1)),
        dry("a limit of no successes", "/spec/successfulJobsHistoryLimit", json!(0)),
        dry("a negative limit of failures", "/spec/failedJobsHistoryLimit", json!(-7)),
        dry("a limit of no failures", "/spec/failedJobsHistoryLimit", json!(0)),
        dry("a suspend that is null", "/spec/suspend", json!(null)),
        post(CRONJOBS, &cronjob("bad").with("/spec", json!({}))).named("an empty spec"),
        post(CRONJOBS, &cronjob("bad").without("/spec")).named("no spec"),
        post(CRONJOBS, &cronjob("bad").with("/spec/jobTemplate", json!({}))).named("an empty template"),
        post(
            CRONJOBS,
            &cronjob("bad")
                .with("/spec/schedule", json!("x"))
                .with("/spec/concurrencyPolicy", json!("y"))
                .with("/spec/startingDeadlineSeconds", json!(-1))
                .with("/spec/successfulJobsHistoryLimit", json!(-1))
                .with("/spec/failedJobsHistoryLimit", json!(-1))
                .with("/spec/timeZone", json!("z")),
        )
        .named("everything wrong at once"),
        post(
            CRONJOBS,
            &cronjob("full")
                .with("/metadata/labels", json!({"l": "1"}))
                .with("/metadata/annotations", json!({"a": "1"}))
                .with("/spec/timeZone", json!("Europe/Berlin"))
                .with("/spec/concurrencyPolicy", json!("Forbid"))
                .with("/spec/startingDeadlineSeconds", json!(30))
                .with("/spec/successfulJobsHistoryLimit", json!(10))
                .with("/spec/failedJobsHistoryLimit", json!(0))
                .with("/spec/suspend", json!(true))
                .with("/spec/jobTemplate/metadata", json!({"labels": {"jl": "1"}, "annotations": {"ja": "1"}})),
        )
        .named("everything set"),
    ]
}

fn templates() -> Vec<Step> {
    let at = |sentence: &str, pointer: &str, value: Value| {
        let pointer = format!("/spec/jobTemplate{pointer}");
        post(format!("{CRONJOBS}?dryRun=All"), &cronjob("a").with(&pointer, value)).named(sentence)
    };
    let pod =
        |sentence: &str, pointer: &str, value: Value| at(sentence, &format!("/spec/template/spec{pointer}"), value);
    vec![
        pod("the restart policy Always", "/restartPolicy", json!("Always")),
        pod("the restart policy Never", "/restartPolicy", json!("Never")),
        pod("an empty restart policy", "/restartPolicy", json!("")),
        pod("a restart policy that does not exist", "/restartPolicy", json!("Sometimes")),
        post(CRONJOBS, &cronjob("a").without("/spec/jobTemplate/spec/template/spec/restartPolicy"))
            .named("no restart policy"),
        pod("no containers", "/containers", json!([])),
        pod("containers that are null", "/containers", json!(null)),
        pod("a container without a name", "/containers/0", json!({"image": "busybox"})),
        pod("a container without an image", "/containers/0", json!({"name": "c"})),
        pod("an image with a space in front", "/containers/0/image", json!(" busybox")),
        pod(
            "an image with a digest",
            "/containers/0/image",
            json!("busybox@sha256:0123456789012345678901234567890123456789012345678901234567890123"),
        ),
        pod("an image with a tag", "/containers/0/image", json!("registry.example.com:5000/busybox:1.36")),
        pod("an image with the tag latest", "/containers/0/image", json!("busybox:latest")),
        pod("a container's name in capitals", "/containers/0/name", json!("C")),
        pod(
            "two containers of one name",
            "/containers",
            json!([{"name": "c", "image": "x"}, {"name": "c", "image": "y"}]),
        ),
        pod("a pull policy that does not exist", "/containers/0/imagePullPolicy", json!("Maybe")),
        pod("an environment variable without a name", "/containers/0/env", json!([{"value": "x"}])),
        pod(
            "an environment variable",
            "/containers/0/env",
            json!([{"name": "A", "value": "b"}, {"name": "P", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        ),
        pod(
            "an environment variable with value and source",
            "/containers/0/env",
            json!([{"name": "P", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        ),
        pod(
            "resources",
            "/containers/0/resources",
            json!({"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "0.5", "memory": "128Mi"}}),
        ),
        pod("limits alone", "/containers/0/resources", json!({"limits": {"cpu": "1", "memory": "1024Mi"}})),
        pod(
            "a request above its limit",
            "/containers/0/resources",
            json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        ),
        pod("a quantity that is none", "/containers/0/resources", json!({"requests": {"cpu": "much"}})),
        pod("a negative quantity", "/containers/0/resources", json!({"requests": {"cpu": "-1"}})),
        pod("a port", "/containers/0/ports", json!([{"containerPort": 80}])),
        pod("a port out of range", "/containers/0/ports", json!([{"containerPort": 70000}])),
        pod("a probe", "/containers/0/livenessProbe", json!({"httpGet": {"path": "/", "port": 80}})),
        pod(
            "a volume",
            "/volumes",
            json!([{"name": "v", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "x"}}, {"name": "m", "configMap": {"name": "y"}}]),
        ),
        pod("a volume without a name", "/volumes", json!([{"emptyDir": {}}])),
        pod("a volume without a source", "/volumes", json!([{"name": "v"}])),
        pod("a mount of no volume", "/containers/0/volumeMounts", json!([{"name": "nothing", "mountPath": "/x"}])),
        pod("an init container", "/initContainers", json!([{"name": "i", "image": "busybox"}])),
        pod("a service account", "/serviceAccountName", json!("runner")),
        pod("a grace period", "/terminationGracePeriodSeconds", json!(5)),
        pod("a negative grace period", "/terminationGracePeriodSeconds", json!(-5)),
        pod("a deadline of the Pod", "/activeDeadlineSeconds", json!(5)),
        pod("a deadline of zero of the Pod", "/activeDeadlineSeconds", json!(0)),
        pod("a node selector", "/nodeSelector", json!({"a": "b"})),
        pod("a DNS policy that does not exist", "/dnsPolicy", json!("Own")),
        pod("a security context", "/securityContext", json!({"runAsUser": 1000, "runAsNonRoot": true})),
        at("a negative backoff limit", "/spec/backoffLimit", json!(-1)),
        at("a backoff limit of zero", "/spec/backoffLimit", json!(0)),
        at("a negative parallelism", "/spec/parallelism", json!(-1)),
        at("a parallelism of two", "/spec/parallelism", json!(2)),
        at("negative completions", "/spec/completions", json!(-1)),
        at("completions of five", "/spec/completions", json!(5)),
        at("a negative deadline", "/spec/activeDeadlineSeconds", json!(-1)),
        at("a negative time to live", "/spec/ttlSecondsAfterFinished", json!(-1)),
        at("a time to live", "/spec/ttlSecondsAfterFinished", json!(60)),
        at("a completion mode that does not exist", "/spec/completionMode", json!("Some")),
        at("indexed without completions", "/spec/completionMode", json!("Indexed")),
        at("a manual selector", "/spec/manualSelector", json!(true)),
        at("a manual selector said not to be", "/spec/manualSelector", json!(false)),
        at("a selector", "/spec/selector", json!({"matchLabels": {"a": "b"}})),
        at("a suspended template", "/spec/suspend", json!(true)),
        at("a scheduling configuration is dropped", "/spec/scheduling", gang()),
        at(
            "a pod failure policy",
            "/spec/podFailurePolicy",
            json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}),
        ),
        at("labels of the Job in error", "/metadata/labels", json!({"a b": "c"})),
        at("annotations of the Job in error", "/metadata/annotations", json!({"a b": "c"})),
        at("a name in the Job's template", "/metadata", json!({"name": "kept"})),
        at("labels of the Pod in error", "/spec/template/metadata", json!({"labels": {"a b": "c"}})),
        at("labels of the Pod", "/spec/template/metadata", json!({"labels": {"a": "b"}, "annotations": {"c": "d"}})),
        at(
            "a reserved label of the Pod",
            "/spec/template/metadata",
            json!({"labels": {"job-name": "x", "batch.kubernetes.io/controller-uid": "y"}}),
        ),
    ]
}

/// A value of a Job's `spec.scheduling`, whose feature gate is off by default.
fn gang() -> Value {
    json!({"schedulingPolicy": {"gang": {"minCount": 2}}})
}

fn updates() -> Vec<Step> {
    let a = format!("{CRONJOBS}/a");
    let set = |sentence: &str, spec: Value| {
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"spec": spec})).part(essence).named(sentence)
    };
    vec![
        post(CRONJOBS, &cronjob("a")).named("a CronJob"),
        set("a schedule in error", json!({"schedule": "bad"})),
        set("a schedule with a zone is refused", json!({"schedule": "TZ=UTC 1 1 1 1 1"})),
        set("a new schedule", json!({"schedule": "1 1 1 1 1"})),
        set("no schedule", json!({"schedule": null})),
        set("a policy that does not exist", json!({"concurrencyPolicy": "Never"})),
        set("no policy is the default again", json!({"concurrencyPolicy": null})),
        set("a time zone that does not exist", json!({"timeZone": "Mars/Base"})),
        set("a time zone", json!({"timeZone": "Asia/Tokyo"})),
        set("a schedule with a zone beside the time zone", json!({"schedule": "TZ=UTC 1 1 1 1 1"})),
        set("no time zone", json!({"timeZone": null})),
        set("a negative deadline", json!({"startingDeadlineSeconds": -3})),
        set("a negative limit", json!({"failedJobsHistoryLimit": -3})),
        set(
            "no limits are the defaults again",
            json!({"failedJobsHistoryLimit": null, "successfulJobsHistoryLimit": null}),
        ),
        set("suspended", json!({"suspend": true})),
        set("not suspended", json!({"suspend": null})),
        set(
            "the restart policy Always",
            json!({"jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Always"}}}}}),
        ),
        set(
            "the template can change",
            json!({"jobTemplate": {"spec": {"backoffLimit": 2, "template": {"spec": {"restartPolicy": "Never"}}}}}),
        ),
        patch(MERGE, a.as_str(), &json!({"spec": {"jobTemplate": {"spec": {"scheduling": gang()}}}}))
            .named("a scheduling configuration is dropped"),
        set("no template", json!({"jobTemplate": null})),
        get(a.as_str()).named("what came of it"),
        put(a.as_str(), &cronjob("a").with("/spec/schedule", json!("x"))).named("an update in error"),
        put(a.as_str(), &cronjob("a").without("/spec")).named("an update without a spec"),
    ]
}
