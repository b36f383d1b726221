#![allow(clippy::unwrap_used)]

use super::*;
use crate::cli::output::{Format, render};

const NOW: &str = "2026-11-22T10:00:30.5Z";

fn rules() -> Rules {
    Rules { zone: Zone::UTC, max_per_minute: 2, histogram: true, ..Rules::default() }
}

fn judged(text: &str) -> CheckReport {
    check(&[Source { file: "a.yaml".to_owned(), text: text.to_owned() }], &rules(), NOW.parse().unwrap())
}

/// The findings in `text`, each with its document in place of its line.
fn found(text: &str) -> Vec<String> {
    let told = |finding: &Finding| {
        let place = format!("{}, document {}", finding.file, finding.document);
        let parts = [&place, &finding.object, &finding.severity.to_string(), &finding.field, &finding.message];
        parts.into_iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(": ")
    };
    judged(text).findings.iter().map(told).collect()
}

/// A complete manifest with these fields in its spec.
fn cron_job(api_version: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: {api_version}\nkind: CronJob\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n  {spec}\n  jobTemplate:\n    \
         spec:\n      template:\n        spec:\n          restartPolicy: Never\n          containers: [{{name: c, image: i}}]\n---\n"
    )
}

const BATCH: &str = "batch/v1";
const TUTORIAL: &str = "batch.tutorial.kubebuilder.io/v1";

#[test]
fn error_names_document_object_and_field() {
    let whole = |spec: &str| cron_job(BATCH, "a", spec);
    let twice = "env: [{name: A, value: b}, {name: A, value: c}]";
    let rows: [(&str, String, &[&str]); 34] = [
        (
            "managed fields that the server does not understand, which it drops",
            whole("schedule: '0 3 * * *'").replace("namespace: shop", "namespace: shop, managedFields: [{operation: Bogus, fieldsType: x}]"),
            &[],
        ),
        (
            "a manager of fields that nobody can read",
            whole("schedule: '0 3 * * *'").replace(
                "namespace: shop",
                "namespace: shop, managedFields: [{manager: \"a\\nb\", operation: Update, apiVersion: batch/v1, fieldsType: FieldsV1, fieldsV1: {f:metadata: {}}}]",
            ),
            &["a.yaml, document 1: CronJob shop/a: error: metadata.managedFields[0].manager: Invalid value: \"a\\nb\": invalid character"],
        ),
        (
            "an empty list where none may be",
            whole("schedule: '0 3 * * *'").replace("restartPolicy: Never", "restartPolicy: Never\n          resources: {claims: []}"),
            &["a.yaml, document 1: CronJob shop/a: error: spec.jobTemplate.spec.template.spec.resources.claims: Forbidden"],
        ),
        (
            "a request above its limit in other units",
            whole("schedule: '0 3 * * *'")
                .replace("image: i", "image: i, resources: {limits: {memory: 1.5Gi, cpu: 010}, requests: {memory: 1536.001Mi, cpu: 8000m}}"),
            &["a.yaml, document 1: CronJob shop/a: error: spec.jobTemplate.spec.template.spec.containers[0].resources.requests: Invalid value: \"1610613784576m\": must be less than"],
        ),
        (
            "a whole number that is none",
            whole("schedule: '0 3 * * *'\n  startingDeadlineSeconds: 18446744073709551616"),
            &["a.yaml, document 1: CronJob shop/a: error: spec.startingDeadlineSeconds: json: cannot unmarshal number 18446744073709552000 into Go"],
        ),
        (
            "a number with an exponent",
            whole("schedule: '0 3 * * *'\n  startingDeadlineSeconds: 1e21"),
            &["a.yaml, document 1: CronJob shop/a: error: spec.startingDeadlineSeconds: json: cannot unmarshal number 1e+21 into Go"],
        ),
        (
            "a zone that leads out of the database",
            whole("schedule: '0 3 * * *'\n  timeZone: ..a"),
            &["a.yaml, document 1: CronJob shop/a: error: spec.timeZone: Invalid value: \"..a\": time: invalid location name"],
        ),
        (
            "what is refused has no warnings of the server",
            whole("schedule: '61 * * * *'").replace("image: i", &format!("image: i, {twice}")),
            &["a.yaml, document 1: CronJob shop/a: error: spec.schedule: Invalid value: \"61 * * * *\""],
        ),
        (
            "nor has one with a field that there is not",
            whole("schedule: '0 3 * * *'\n  often: yes").replace("image: i", &format!("image: i, {twice}")),
            &["a.yaml, document 1: CronJob shop/a: error: spec.often: there is no such field"],
        ),
        ("nothing", String::new(), &[]),
        (
            "a deadline below 0, which is refused and no warning",
            whole("schedule: '0 3 * * *'\n  startingDeadlineSeconds: -1"),
            &["a.yaml, document 1: CronJob shop/a: error: spec.startingDeadlineSeconds: Invalid value: -1"],
        ),
        (
            "a list of another name",
            format!("apiVersion: v1\nkind: list\nitems:\n- {}", whole("schedule: '61 * * * *'").replace("---\n", "").replace('\n', "\n  ")),
            &[
                "a.yaml, document 1: error: kind: there is no list in v1; did you mean List of v1?",
                "a.yaml, document 1: CronJob shop/a: error: spec.schedule: Invalid value",
            ],
        ),
        (
            "a list without items",
            "apiVersion: v1\nkind: List\n".to_owned(),
            &["a.yaml, document 1: error: items: is missing, or no list; kubectl refuses a list without it"],
        ),
        ("a good one", whole("schedule: '0 3 * * *'"), &[]),
        (
            "a bad schedule in the second document",
            format!("{}{}", cron_job(BATCH, "b", "schedule: '@daily'"), whole("schedule: '61 * * * *'")),
            &["a.yaml, document 2: CronJob shop/a: error: spec.schedule: Invalid value: \"61 * * * *\": end of range (61) above maximum (59): 61"],
        ),
        (
            "a zone that there is not",
            whole("schedule: '0 3 * * *'\n  timeZone: Europe/Berln"),
            &["a.yaml, document 1: CronJob shop/a: error: spec.timeZone: Invalid value: \"Europe/Berln\": unknown time zone Europe/Berln"],
        ),
        (
            "a misspelt field",
            whole("schedule: '0 3 * * *'\n  concurencyPolicy: Forbid"),
            &["a.yaml, document 1: CronJob shop/a: error: spec.concurencyPolicy: there is no such field"],
        ),
        (
            "a wrong type",
            whole("schedule: '0 3 * * *'\n  startingDeadlineSeconds: soon"),
            &["a.yaml, document 1: CronJob shop/a: error: spec.startingDeadlineSeconds: json: cannot unmarshal string into Go struct field CronJobSpec.spec.startingDeadlineSeconds of type int64"],
        ),
        (
            "a policy that there is not",
            whole("schedule: '0 3 * * *'\n  concurrencyPolicy: Never"),
            &["a.yaml, document 1: CronJob shop/a: error: spec.concurrencyPolicy: Unsupported value: \"Never\": supported values: \"Allow\", \"Forbid\", \"Replace\""],
        ),
        (
            "a name without room for a Job's",
            cron_job(BATCH, &"n".repeat(53), "schedule: '0 3 * * *'"),
            &[&format!("a.yaml, document 1: CronJob shop/{0}: error: metadata.name: Invalid value: \"{0}\": must be no more than 52 characters", "n".repeat(53))],
        ),
        (
            "not YAML at all, and a good document behind it",
            format!("a: [\n---\n{}", whole("schedule: '61 * * * *'")),
            &[
                "a.yaml, document 1: error: not YAML: ",
                "a.yaml, document 2: CronJob shop/a: error: spec.schedule: Invalid value: \"61 * * * *\": end of range (61) above maximum (59): 61",
            ],
        ),
        ("no kind", "apiVersion: v1\nmetadata: {name: x}\n".to_owned(), &["a.yaml, document 1: x: error: kind: is missing, or no text; every manifest needs it"]),
        (
            "an old version",
            cron_job("batch/v1beta1", "a", "schedule: '@daily'"),
            &["a.yaml, document 1: CronJob shop/a: error: apiVersion: batch/v1beta1 is not served any more; CronJobs are in batch/v1 since Kubernetes 1.21"],
        ),
        (
            "a version that never was",
            cron_job("batch/v2", "a", "schedule: '@daily'"),
            &["a.yaml, document 1: CronJob shop/a: error: apiVersion: there is no CronJob in batch/v2; did you mean CronJob of batch/v1?"],
        ),
        (
            "a kind in small letters",
            "apiVersion: batch/v1\nkind: Cronjob\nmetadata: {name: x}\n".to_owned(),
            &["a.yaml, document 1: Cronjob x: error: kind: there is no Cronjob in batch/v1; did you mean CronJob of batch/v1?"],
        ),
        (
            "the group of Deployments",
            cron_job("apps/v1", "a", "schedule: '@daily'"),
            &["a.yaml, document 1: CronJob shop/a: error: apiVersion: there is no CronJob in apps/v1; did you mean CronJob of batch/v1?"],
        ),
        (
            "a Job with a schedule",
            "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {schedule: '@daily'}\n".to_owned(),
            &["a.yaml, document 1: Job x: error: kind: a Job of batch/v1 has no schedule; did you mean CronJob of batch/v1?"],
        ),
        ("a Job without one", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {suspend: true}\n".to_owned(), &[]),
        ("another kind is ignored", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n".to_owned(), &[]),
        (
            "JSON, and a List",
            r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"generateName":"a-"},"spec":{"schedule":"@daily"}}]}"#.to_owned(),
            &[
                "a.yaml, document 1: CronJob a-: error: spec.jobTemplate.spec.template.spec.containers: Required value",
                "a.yaml, document 1: CronJob a-: error: spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
            ],
        ),
        ("a good one of the tutorial's", cron_job(TUTORIAL, "a", "schedule: '0 3 * * *'\n  successfulJobsHistoryLimit: 1"), &[]),
        (
            "the tutorial's has no time zone",
            cron_job(TUTORIAL, "a", "schedule: '0 3 * * *'\n  timeZone: UTC"),
            &["a.yaml, document 1: CronJob shop/a: error: spec.timeZone: there is no such field"],
        ),
        (
            "all that a schema can say",
            cron_job(TUTORIAL, "a", "schedule: 5\n  concurrencyPolicy: Never\n  suspend: maybe\n  failedJobsHistoryLimit: -1"),
            &[
                "a.yaml, document 1: CronJob shop/a: error: spec.concurrencyPolicy: Unsupported value: \"Never\"",
                "a.yaml, document 1: CronJob shop/a: error: spec.failedJobsHistoryLimit: Invalid value: -1",
                "a.yaml, document 1: CronJob shop/a: error: spec.schedule: Invalid value: ",
                "a.yaml, document 1: CronJob shop/a: error: spec.suspend: Invalid value: ",
            ],
        ),
        (
            "its schedule",
            cron_job(TUTORIAL, "a", "schedule: '@never'"),
            &["a.yaml, document 1: CronJob shop/a: error: spec.schedule: Invalid value: \"@never\": unrecognized descriptor: @never"],
        ),
    ];
    for (sentence, text, want) in rows {
        let found = found(&text);
        let same = found.len() == want.len() && found.iter().zip(want).all(|(found, want)| found.starts_with(want));
        assert!(same, "{sentence}:\n{found:#?}");
    }
}

#[test]
fn on_a_terminal_no_line_is_longer_than_it() {
    let report = judged(&cron_job(BATCH, "a", "schedule: '*/7 * * * *'"));
    let table = CheckFormat::Report(Format::Table);
    let screen = Some(Screen { width: 80, colour: false });
    let (whole, folded) = (report.render(table, None), report.render(table, screen));
    assert!(
        whole.lines().any(|line| line.len() > 200) && folded.lines().all(|line| line.chars().count() <= 80),
        "{folded:?}"
    );
    let json = CheckFormat::Report(Format::Json);
    assert_eq!(report.render(json, screen), report.render(json, None));
}

#[test]
fn suspicious_schedule_is_a_warning() {
    let timed = |schedule: &str, zone: &str| {
        cron_job(BATCH, "a", &format!("schedule: '{schedule}'\n  timeZone: {zone}\n  concurrencyPolicy: Replace"))
    };
    let every = |deadline: i64| {
        cron_job(
            BATCH,
            "a",
            &format!("schedule: '@every 1h'\n  concurrencyPolicy: Replace\n  startingDeadlineSeconds: {deadline}"),
        )
    };
    let at_once = cron_job(BATCH, "a", "schedule: '0 3 * * *'\n  startingDeadlineSeconds: 0");
    let rows: [(&str, String, &[&str]); 13] = [
        (
            "a deadline of 0",
            at_once,
            &["spec.startingDeadlineSeconds: it never fires: this deadline has passed whenever a run is due"],
        ),
        (
            "a deadline shorter than the interval",
            every(100),
            &[
                "spec.startingDeadlineSeconds: it never fires: it is shorter than the interval of @every, whose runs then always count from the deadline",
            ],
        ),
        ("a deadline as long as the interval", every(3_600), &[]),
        (
            "31 February",
            timed("0 0 31 2 *", "UTC"),
            &[
                "spec.schedule: it never fires: it matches no time in the next five years (to suspend a CronJob, use spec.suspend)",
            ],
        ),
        ("three in the morning", timed("0 3 * * *", "Europe/Berlin"), &[]),
        (
            "in the hour that is skipped and repeated",
            timed("30 2 * * *", "Europe/Berlin"),
            &[
                "spec.schedule: the run of Sun 2027-03-28 02:30 is skipped: the clocks of Europe/Berlin go from 02:00 to 03:00 (2 such days within two years)",
                "spec.schedule: the run of Sun 2027-10-31 02:30 runs twice: the clocks of Europe/Berlin go back from 03:00 to 02:00 (2 such days within two years)",
            ],
        ),
        (
            "several runs of it",
            timed("*/15 2 * * *", "America/New_York"),
            &[
                "spec.schedule: 4 runs from Sun 2027-03-14 02:00 to 02:45 are skipped: the clocks of America/New_York go from 02:00 to 03:00 (2 such days within two years)",
            ],
        ),
        (
            "on Sundays in March only",
            timed("30 2 * 3 0", "Europe/Berlin"),
            &[
                "spec.schedule: the run of Sun 2027-03-28 02:30 is skipped: the clocks of Europe/Berlin go from 02:00 to 03:00 (2 such days within two years)",
            ],
        ),
        ("never on a Sunday", timed("30 2 * * 1-6", "Europe/Berlin"), &[]),
        ("every hour goes on every hour", timed("30 * * * *", "Europe/Berlin"), &[]),
        ("no changes in UTC", timed("30 2 * * *", "UTC"), &[]),
        (
            "twice a minute",
            cron_job(BATCH, "a", "schedule: '@every 30s'\n  concurrencyPolicy: Replace"),
            &["spec.schedule: runs within 60 seconds share a Job's name: only the first of them starts"],
        ),
        (
            "which the tutorial's do not",
            cron_job(TUTORIAL, "a", "schedule: '@every 30s'\n  concurrencyPolicy: Replace"),
            &[],
        ),
    ];
    for (sentence, text, want) in rows {
        let want: Vec<_> =
            want.iter().map(|want| format!("a.yaml, document 1: CronJob shop/a: warning: {want}")).collect();
        assert_eq!(found(&text), want, "{sentence}");
    }
}

/// A daily CronJob with this annotation.
fn annotated(name: &str, annotation: &str, value: &str) -> String {
    let plain = cron_job(BATCH, name, "schedule: '0 3 * * *'");
    let metadata = format!("annotations: {{cronjob-controller.dev/{annotation}: '{value}'}}, namespace: shop}}");
    plain.replace("namespace: shop}", &metadata)
}

#[test]
fn policies_are_read_as_the_controller_reads_them() {
    let rows = [
        ("good", "exclude", "Sat,12-24/01-06", None),
        ("unreadable", "spread", "soon", Some(("error", "cronjob-controller.dev/spread: \"soon\" is not allowed ("))),
        ("unknown", "splay", "1h", Some(("warning", "is no annotation of this controller, and has no effect"))),
        (
            "at other times",
            "schedule",
            "0 4 * * *",
            Some(("warning", "replaces spec.schedule, which also names Mon 2026-11-23 03:00: without this")),
        ),
        ("at more times", "schedule", "0 3,4 * * *", None),
        (
            "dates of this year",
            "exclude",
            "2026-12-24/2026-12-26",
            Some(("warning", "excludes nothing after 2026-12-26; add")),
        ),
        ("dates of the next year", "exclude", "2026-12-24/2027-01-01", None),
        (
            "no time is left",
            "not-after",
            "2026-01-01T00:00:00Z",
            Some((
                "warning",
                "metadata.annotations[cronjob-controller.dev/not-after]: it never fires: no time is left",
            )),
        ),
        (
            "no day is left",
            "exclude",
            "Sun,Mon,Tue,Wed,Thu,Fri,Sat",
            Some(("warning", "metadata.annotations[cronjob-controller.dev/exclude]: it never fires: no time is left")),
        ),
    ];
    for (sentence, annotation, value, want) in rows {
        let found = found(&annotated("a", annotation, value));
        let Some((severity, message)) = want else {
            assert_eq!(found, [""; 0], "{sentence}");
            continue;
        };
        assert_eq!(found.len(), 1, "{sentence}: {found:?}");
        let place = format!("a.yaml, document 1: CronJob shop/a: {severity}: ");
        assert!(found[0].starts_with(&place) && found[0].contains(message), "{sentence}: {found:?}");
    }
    let skipped = cron_job(BATCH, "a", "schedule: '30 2 * * *'\n  timeZone: Europe/Berlin");
    assert_eq!(found(&skipped).len(), 2, "a run is skipped, and one is repeated");
    let metadata = "annotations: {cronjob-controller.dev/dst: once}, namespace: shop}";
    assert_eq!(found(&skipped.replace("namespace: shop}", metadata)), [""; 0]);
}

#[test]
fn load_is_shown_with_and_without_spread() {
    let names = ["a", "b", "c", "d"];
    let spread: String = names.iter().map(|name| annotated(name, "spread", "1h")).collect();
    let report = judged(&spread);
    assert_eq!(report.findings.len(), 0, "no minute has three");
    let json: serde_json::Value = serde_json::from_str(&render(&report, Format::Json)).unwrap();
    assert_eq!(json["loadWithoutSpread"]["hours"][3]["most"], 4);
    assert!(json["load"]["hours"][3]["most"].as_u64().unwrap() < 3, "{json}");
    let lines = report.lines();
    let heading = "HOUR    RUNS A DAY   MOST IN A MINUTE   WITHOUT SPREAD";
    assert_eq!(lines.iter().filter(|line| line.starts_with("HOUR")).collect::<Vec<_>>(), [heading], "one histogram");
    assert!(lines.iter().any(|line| line.starts_with("03:00") && line.contains("   4 at 03:00   ")), "{lines:#?}");

    let plain: String = names.iter().map(|name| cron_job(BATCH, name, "schedule: '0 3 * * *'")).collect();
    let source = Source { file: "a.yaml".to_owned(), text: plain.clone() };
    let what_if_spread = Some(Spread::new(3_600_000_000_000).unwrap());
    let what_if = check(&[source], &Rules { what_if_spread, ..rules() }, NOW.parse().unwrap());
    let what_if: serde_json::Value = serde_json::from_str(&render(&what_if, Format::Json)).unwrap();
    assert_eq!(what_if["load"], json["load"]);

    let seeded = |text: &str, what_if_spread| {
        let source = Source { file: "a.yaml".to_owned(), text: text.to_owned() };
        let rules = Rules { what_if_spread, seed: "blue".into(), ..rules() };
        let report = check(&[source], &rules, NOW.parse().unwrap());
        serde_json::from_str::<serde_json::Value>(&render(&report, Format::Json)).unwrap()["load"].clone()
    };
    let each_minute = seeded(&spread.replace("0 3 * * *", "* * * * *"), None);
    for hour in each_minute["hours"].as_array().unwrap() {
        assert_eq!(hour["runsADay"], 240.0, "also at both ends of the week: {hour}");
    }
    assert_ne!(seeded(&spread, None), json["load"], "another seed gives other delays");
    assert_eq!(seeded(&spread, None), seeded(&plain, what_if_spread));
}

#[test]
fn minutes_above_the_maximum_are_reported_and_the_load_of_the_day_is_drawn() {
    let each = |name: &str, schedule: &str| cron_job(BATCH, name, &format!("schedule: '{schedule}'"));
    let suspended = cron_job(BATCH, "idle", "schedule: '0 0 * * *'\n  suspend: true");
    let interval = cron_job(BATCH, "i", "schedule: '@every 1h'\n  concurrencyPolicy: Replace");
    let daily: String = ["a", "b", "c", "d"].iter().map(|name| each(name, "0 0 * * *")).collect();
    let weekly: String = ["e", "f", "g"].iter().map(|name| each(name, "30 6 * * 1")).collect();
    let text = [daily, weekly, each("h", "0 */6 * * *"), interval, suspended].concat();
    let report = judged(&text);
    let lines: Vec<String> = report.findings.iter().map(Finding::line).collect();
    assert_eq!(
        lines,
        [
            "a.yaml:5: warning: 5 CronJobs start in one minute, at 00:00 UTC every day: CronJob shop/a, CronJob shop/b, CronJob \
             shop/c and 2 more; none starts at 00:01 [busy-minute]",
            "a.yaml:53: warning: 3 CronJobs start in one minute, at 06:30 UTC on 1 day of the week: CronJob shop/e, CronJob shop/f, CronJob shop/g; none starts at 06:31 [busy-minute]",
        ]
    );
    let drawn = report.lines();
    let at = |start: &str| drawn.iter().find(|line| line.starts_with(start)).unwrap().as_str();
    assert_eq!(
        at("Seven days"),
        "Seven days from today, UTC: 8 CronJobs, without suspended ones and @every schedules."
    );
    assert_eq!(at("HOUR"), "HOUR    RUNS A DAY   MOST IN A MINUTE");
    assert_eq!(at("00:00"), format!("00:00   5.0          5 at 00:00         {}", "█".repeat(40)));
    assert_eq!(at("05:00"), "05:00   0.0          -");
    assert_eq!(at("06:00"), format!("06:00   1.4          3 at 06:30         {}", "█".repeat(12)));
    let busiest = drawn.iter().position(|line| line.starts_with("BUSIEST")).unwrap();
    assert_eq!(
        drawn[busiest..busiest + 3],
        [
            "BUSIEST   RUNS   ON          CRONJOBS",
            "00:00     5      every day   CronJob shop/a, CronJob shop/b, CronJob shop/c and 2 more",
            "06:30     3      1 day       CronJob shop/e, CronJob shop/f, CronJob shop/g",
        ]
    );
    assert_eq!(drawn.last().unwrap(), "10 CronJobs: 0 errors, 2 warnings.");
    let json: serde_json::Value = serde_json::from_str(&render(&report, Format::Json)).unwrap();
    assert_eq!(json["load"]["hours"].as_array().unwrap().len(), 24);
    assert_eq!(json["load"]["hours"][6], serde_json::json!({"hour": 6, "runsADay": 1.4, "most": 3, "mostAt": "06:30"}));
}

#[test]
fn midnight_at_which_most_start_is_reported_below_the_maximum_too() {
    let each = |name: &str, schedule: &str| cron_job(BATCH, name, &format!("schedule: '{schedule}'"));
    let nightly: String = ["a", "b", "c"].iter().map(|name| each(name, "0 0 * * *")).collect();
    let found = |text: String| {
        let sources = [Source { file: "a.yaml".to_owned(), text }];
        let report = check(&sources, &Rules { max_per_minute: 20, ..rules() }, NOW.parse().unwrap());
        report.findings.iter().map(Finding::line).collect::<Vec<_>>()
    };
    let others = each("d", "1 0 * * *") + &each("e", "0 5 * * *");
    assert_eq!(
        found(nightly.clone() + &others),
        [
            "a.yaml:5: warning: 3 CronJobs start in one minute, at 00:00 UTC every day: CronJob shop/a, CronJob shop/b, CronJob \
             shop/c; none starts at 00:02 [busy-minute]"
        ]
    );
    assert_eq!(found(nightly + &others + &each("f", "0 6 * * *")), [""; 0], "half of them");
}

#[test]
fn common_mistakes_are_found_where_they_are() {
    let text =
        cron_job(BATCH, "a", "schedule: '* */2 * * *'\n  concurrencyPolicy: Forbid\n  failedJobsHistoryLimit: 0");
    let lines: Vec<String> = judged(&text).findings.iter().map(Finding::line).collect();
    let places = lines.iter().map(|line| (line.split(" warning").next().unwrap(), line.rsplit(' ').next().unwrap()));
    assert_eq!(
        places.collect::<Vec<_>>(),
        [
            ("a.yaml:5:", "[every-minute]"),
            ("a.yaml:6:", "[forbid-without-deadline]"),
            ("a.yaml:9:", "[no-active-deadline]"),
            ("a.yaml:7:", "[no-history]"),
        ]
    );
}

#[test]
fn job_that_hangs_blocks_a_forbid_only_until_it_is_deleted() {
    let forbid = "schedule: '0 3 * * *'\n  concurrencyPolicy: Forbid\n  startingDeadlineSeconds: 60";
    let rows = [
        ("nothing ends it", None, true),
        ("a Warning does not end it", Some("1h"), true),
        ("it is deleted", Some("1h, delete"), false),
        ("a value that cannot be read deletes nothing", Some("1h, kill"), true),
    ];
    for (sentence, value, want) in rows {
        let annotations =
            value.map(|value| format!("annotations: {{cronjob-controller.dev/stuck-after: '{value}'}}, "));
        let plain = cron_job(BATCH, "a", forbid);
        let text = plain.replace("namespace: shop}", &format!("{}namespace: shop}}", annotations.unwrap_or_default()));
        let lines: Vec<String> = judged(&text).findings.iter().map(Finding::line).collect();
        assert_eq!(lines.iter().any(|line| line.ends_with("[no-active-deadline]")), want, "{sentence}: {lines:?}");
    }
}

#[test]
fn every_value_of_a_wrong_type_is_found_at_its_line() {
    let text = cron_job(BATCH, "a", "schedule: '0 3 * * *'\n  suspend: 'no'");
    let env = "\n            env:\n            - {name: A, value: x}\n            - {name: B, value: true}\n            - name: C\n              \
               value: 8080";
    let text = text.replace("[{name: c, image: i}]", &format!("\n          - name: c{env}"));
    let lines: Vec<String> = judged(&text).findings.iter().map(Finding::line).collect();
    let value = "spec.jobTemplate.spec.template.spec.containers";
    let wrong = |line: usize, index: usize, what: &str| {
        format!(
            "a.yaml:{line}: error: CronJob shop/a: {value}[0].env[{index}].value: json: cannot unmarshal {what} into Go struct field \
             EnvVar.{value}.env.value of type string [invalid]"
        )
    };
    let suspend = "a.yaml:6: error: CronJob shop/a: spec.suspend: json: cannot unmarshal string into Go struct field \
                   CronJobSpec.spec.suspend of type bool [invalid]";
    assert_eq!(lines[..3], [wrong(16, 1, "bool"), wrong(18, 2, "number"), suspend.to_owned()]);
}

#[test]
fn answer_is_the_same_at_any_time_of_the_day() {
    let each = |name: &str, schedule: &str| cron_job(BATCH, name, &format!("schedule: '{schedule}'"));
    let text = [each("a", "30 9 * * *"), each("b", "0 11 * * 0"), each("c", "0 0 * * *")].concat();
    let sources = [Source { file: "a.yaml".to_owned(), text }];
    let at = |time: &str| check(&sources, &rules(), time.parse().unwrap()).lines();
    let morning = at("2026-11-22T00:00:00Z");
    assert!(morning.iter().any(|line| line.starts_with("00:00   1.0          1 at 00:00")), "{morning:#?}");
    for time in [NOW, "2026-11-22T23:59:59Z"] {
        assert_eq!(at(time), morning, "{time}");
    }
}

#[test]
fn second_object_of_a_name_is_an_error_at_its_line() {
    let one = |namespace: &str| {
        let text = cron_job(BATCH, "a", "schedule: '0 3 * * *'");
        Source { file: format!("{namespace}.yaml"), text: text.replace("shop", namespace) }
    };
    let twice = Source { file: "twice.yaml".to_owned(), text: one("x").text + &one("x").text };
    let other_kind = Source { file: "t.yaml".to_owned(), text: cron_job(TUTORIAL, "a", "schedule: '0 3 * * *'") };
    let sources =
        [one("shop"), one("other"), other_kind, twice, Source { file: "again.yaml".to_owned(), ..one("shop") }];
    let lines: Vec<String> =
        check(&sources, &rules(), NOW.parse().unwrap()).findings.iter().map(Finding::line).collect();
    let want = [
        "twice.yaml:15: error: CronJob x/a: metadata.name: is defined at twice.yaml:3 already, and would replace that object \
         [duplicate]",
        "again.yaml:3: error: CronJob shop/a: metadata.name: is defined at shop.yaml:3 already, and would replace that object \
         [duplicate]",
    ];
    assert_eq!(lines[..2], want);
    let elsewhere = Source { file: "prod/a.yaml".to_owned(), ..one("shop") };
    let report = check(&[one("shop"), elsewhere], &rules(), NOW.parse().unwrap());
    let want = "prod/a.yaml:3: warning: CronJob shop/a: metadata.name: is defined at shop.yaml:3 too; in one cluster, one of them \
                would replace the other [duplicate]";
    assert_eq!(report.findings[0].line(), want);
}

#[test]
fn findings_have_lines_and_codes_in_every_format() {
    let text = "# a comment\n\na: [\n---\n".to_owned()
        + &cron_job(BATCH, "a", "schedule: '61 * * * *'\n  concurencyPolicy: Forbid")
        + &cron_job(BATCH, "b", "schedule: '0 0 31 2 *'");
    let report = judged(&text);
    let lines: Vec<String> = report.findings.iter().map(Finding::line).collect();
    assert!(lines[0].starts_with("a.yaml:3: error: not YAML: ") && lines[0].ends_with(" [not-yaml]"), "{lines:#?}");
    let schedule =
        "CronJob shop/a: spec.schedule: Invalid value: \"61 * * * *\": end of range (61) above maximum (59): 61";
    let never = "CronJob shop/b: spec.schedule: it never fires: it matches no time in the next five years (to suspend a \
                 CronJob, use spec.suspend)";
    assert_eq!(
        lines[1..],
        [
            "a.yaml:10: error: CronJob shop/a: spec.concurencyPolicy: there is no such field [unknown-field]"
                .to_owned(),
            format!("a.yaml:9: error: {schedule} [invalid]"),
            format!("a.yaml:22: warning: {never} [never-fires]"),
        ]
    );
    let github = report.render(CheckFormat::Github, None);
    assert_eq!(
        github.lines().last().unwrap(),
        format!("::warning file=a.yaml,line=22,title=cronjob-controller check%3A never-fires::{never}")
    );
    let sarif: serde_json::Value = serde_json::from_str(&report.render(CheckFormat::Sarif, None)).unwrap();
    let run = &sarif["runs"][0];
    assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), Code::ALL.len());
    assert_eq!(
        run["results"][2],
        serde_json::json!({
            "ruleId": "invalid", "level": "error", "message": {"text": schedule},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a.yaml"}, "region": {"startLine": 9}}}],
        })
    );
    let json: serde_json::Value = serde_json::from_str(&render(&report, Format::Json)).unwrap();
    assert_eq!((&json["findings"][3]["code"], &json["findings"][3]["line"]), (&"never-fires".into(), &22.into()));
    let bare = check(&[], &Rules { histogram: false, ..rules() }, NOW.parse().unwrap());
    assert_eq!(bare.lines(), ["0 CronJobs: 0 errors, 0 warnings."]);
}

#[test]
fn files_that_were_left_out_are_counted_in_the_last_line() {
    let left_out = |files| LeftOut { files, unrendered: vec![] };
    let config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
    for (sentence, text, files, want) in [
        ("files", "", 2, "0 CronJobs, 2 other files ignored: 0 errors, 0 warnings."),
        ("an object", config_map, 0, "0 CronJobs, 1 other object ignored: 0 errors, 0 warnings."),
        ("both", config_map, 1, "0 CronJobs, 1 other object and 1 other file ignored: 0 errors, 0 warnings."),
    ] {
        assert_eq!(judged(text).leaving_out(left_out(files)).lines().last().unwrap(), want, "{sentence}");
    }
}

#[test]
fn check_fails_from_the_configured_severity_on() {
    let warned = judged(&cron_job(BATCH, "a", "schedule: '0 0 31 2 *'"));
    let refused = judged(&cron_job(BATCH, "a", "schedule: '0 0 31 13 *'"));
    let strict = Rules { fail_on: Severity::Warning, ..rules() };
    let verdicts = [&warned, &refused].map(|report| (report.fails(&rules()), report.fails(&strict)));
    assert_eq!(verdicts, [(false, true), (true, true)]);
}

#[test]
fn the_manifests_of_this_repository_are_good() {
    for (file, text) in [
        ("hello", include_str!("../../../manifests/samples/hello.yaml")),
        ("nightly_report", include_str!("../../../manifests/samples/nightly_report.yaml")),
        ("replace_slow_sync", include_str!("../../../manifests/samples/replace_slow_sync.yaml")),
        ("tutorial", include_str!("../../../manifests/samples/tutorial/batch_v1_cronjob.yaml")),
        ("apiexample", include_str!("../../../manifests/samples/tutorial/myapp_v1alpha1_apiexample.yaml")),
    ] {
        let report = judged(text);
        assert!(!report.fails(&rules()) && report.cron_jobs == 1, "{file}: {:?}", report.findings);
    }
}

/// The steps of a check, and the lines of its findings.
fn counted(text: &str) -> (u64, Vec<usize>) {
    let (steps, report) = apimachinery::steps::of(|| judged(text));
    (steps, report.findings.iter().map(|finding| finding.line).collect())
}

#[test]
fn steps_of_a_check_grow_with_the_length_of_its_input() {
    let list = |number: usize| {
        let item = |name: usize| {
            format!(
                "- apiVersion: batch/v1\n  kind: CronJob\n  metadata:\n    name: cj-{name}\n  spec:\n    schedule: '{} 3 * * *'\n    \
                 jobTemplate:\n      spec:\n        template:\n          spec:\n            containers: []\n",
                name % 60
            )
        };
        format!("apiVersion: v1\nkind: List\nitems:\n{}", (0..number).map(item).collect::<String>())
    };
    let documents = |number: usize| {
        (0..number).map(|name| cron_job(BATCH, &format!("cj-{name}"), "schedule: '0 3 * * *'")).collect::<String>()
    };
    let with = |field: &str, item: &dyn Fn(usize) -> String, number: usize| {
        let items: Vec<String> = (0..number).map(|number| format!("    {}", item(number))).collect();
        let items = items.join("\n");
        format!(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: a\n  {field}:\n{items}\nspec: {{schedule: '0 3 * * *'}}\n"
        )
    };
    let annotations = |number| with("annotations", &|item| format!("cronjob-controller.dev/a{item:04}: b"), number);
    let labels = |number| with("labels", &|item| format!("-a{item}: -b"), number);
    let owners = |number| {
        with(
            "ownerReferences",
            &|item| format!("- {{uid: u{item}, name: a, kind: K, apiVersion: v1, controller: true}}"),
            number,
        )
    };
    let dashes = |number: usize| format!("kind: a\nb: |\n  {}\n", "- ".repeat(number));
    let rows: [(&str, &dyn Fn(usize) -> String); 6] = [
        ("a List", &list),
        ("documents", &documents),
        ("unknown annotations", &annotations),
        ("refused labels", &labels),
        ("owners", &owners),
        ("a line of dashes", &dashes),
    ];
    for (sentence, text) in rows {
        let (once, twice) = (counted(&text(200)).0, counted(&text(400)).0);
        assert!(once > 200 && twice <= once * 2 + once / 4, "{sentence}: {once} steps, and {twice} for twice as much");
    }
    let lines = counted(&annotations(40)).1;
    assert!((6..14).all(|line| lines.contains(&line)), "{lines:?}");
}

#[test]
fn variable_that_is_a_slot_needs_the_policy_that_tells_pods_their_slot() {
    let manifest = |annotations: &str, of_pod: &str, key: &str| {
        format!(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: a, namespace: shop, annotations: {{{annotations}}}}}\nspec:\n  \
             schedule: '0 3 * * *'\n  jobTemplate:\n    spec:\n      template:\n        metadata: {{annotations: {{{of_pod}}}}}\n        \
             spec:\n          restartPolicy: Never\n          containers:\n          - name: c\n            image: i\n            env:\n            \
             - {{name: PLAIN, value: x}}\n            - name: SLOT\n              valueFrom: {{fieldRef: {{fieldPath: \"{key}\"}}}}\n"
        )
    };
    let (slot, own) =
        ("metadata.annotations['batch.kubernetes.io/cronjob-scheduled-timestamp']", "metadata.annotations['mine']");
    let policy = "cronjob-controller.dev/slot-in-pod: 'true'";
    let table = [
        ("a slot that is not told", manifest("", "", slot), true),
        ("its due time", manifest("", "", "metadata.annotations['cronjob-controller.dev/due-time']"), true),
        ("a slot that is told", manifest(policy, "", slot), false),
        ("one of the template", manifest("", "batch.kubernetes.io/cronjob-scheduled-timestamp: x", slot), false),
        ("another annotation", manifest("", "", own), false),
        ("another field", manifest("", "", "metadata.name"), false),
    ];
    for (sentence, text, want) in table {
        let findings = judged(&text).findings;
        assert_eq!(findings.iter().any(|finding| finding.code == Code::SlotNotTold), want, "{sentence}: {findings:?}");
    }
}

/// A CronJob whose Pod has these fields, and whose container has those.
fn with_pod(pod: &str, container: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: a}}\nspec:\n  schedule: '0 3 * * *'\n  concurrencyPolicy: Forbid\n  \
         startingDeadlineSeconds: 600\n  jobTemplate:\n    spec:\n      activeDeadlineSeconds: 600\n      template:\n        spec:\n          \
         restartPolicy: Never\n          {pod}\n          containers:\n          - name: main\n            image: busybox:1\n            {container}\n"
    )
}

#[test]
fn pod_is_judged_as_the_api_server_judges_it() {
    const POD: &str = "spec.jobTemplate.spec.template.spec";
    let rows = [
        (
            "a mode in decimal",
            "volumes: [{name: d, configMap: {name: c, defaultMode: 755}}]",
            "",
            &[
                "error: POD.volumes[0].configMap.defaultMode: Invalid value: 755: must be a number between 0 and 0777 (octal), both inclusive",
            ][..],
        ),
        (
            "a claim without a name",
            "volumes: [{name: d, persistentVolumeClaim: {}}]",
            "",
            &["error: POD.volumes[0].persistentVolumeClaim.claimName: Required value"],
        ),
        (
            "a sub-path that leaves the volume",
            "volumes: [{name: d, emptyDir: {}}]",
            "volumeMounts: [{name: d, mountPath: /x, subPath: ../y}]",
            &["error: POD.containers[0].volumeMounts.subPath: Invalid value: \"../y\": must not contain '..'"],
        ),
        (
            "users that there are not, and unknown profiles",
            "securityContext: {runAsUser: -1, seccompProfile: {type: Foo}}",
            "",
            &[
                "error: POD.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
                "error: POD.securityContext.seccompProfile.type: Unsupported value: \"Foo\": supported values: \"Localhost\", \"RuntimeDefault\", \"Unconfined\"",
            ],
        ),
        (
            "an operator of no selector",
            "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Equals, values: [b]}]}]}}}",
            "",
            &[
                "error: POD.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: \"Equals\": not a valid selector operator",
            ],
        ),
        (
            "no name servers",
            "dnsPolicy: None",
            "",
            &["error: POD.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
        ),
        (
            "a field that a variable cannot have",
            "",
            "env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.foo}}}]",
            &[
                "error: POD.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.foo\": error converting fieldPath: field label not supported: spec.foo",
            ],
        ),
        (
            "what is accepted with a warning",
            "nodeSelector: {beta.kubernetes.io/os: linux}",
            "env: [{name: A, value: a}, {name: A, value: b}]\n            resources: {limits: {memory: 128m}}",
            &[
                "warning: POD.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
                "warning: POD.containers[0].resources.limits[memory]: fractional byte value \"128m\" is invalid, must be an integer",
                "warning: POD.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
            ],
        ),
    ];
    for (sentence, pod, container, want) in rows {
        let want: Vec<String> =
            want.iter().map(|one| format!("a.yaml, document 1: CronJob a: {}", one.replace("POD", POD))).collect();
        assert_eq!(found(&with_pod(pod, container)), want, "{sentence}");
    }
}

/// A Namespace of which the bound cannot be read holds its CronJobs.
#[test]
fn cron_job_that_does_not_start_is_not_in_the_load() {
    let namespace = |not_before: &str| {
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, annotations: {{cronjob-controller.dev/not-before: {not_before}}}}}\n\
             ---\n"
        )
    };
    let daily = cron_job(BATCH, "a", "schedule: '0 3 * * *'");
    let spread = daily.replace("name: a, ", "name: a, annotations: {cronjob-controller.dev/spread: soon}, ");
    for (sentence, text, want) in [
        ("no bound", daily.clone(), 1),
        ("a bound", format!("{}{daily}", namespace("'2026-11-01T00:00:00Z'")), 1),
        ("a bound that cannot be read", format!("{}{daily}", namespace("tomorrow")), 0),
        ("a policy of its own that cannot be read", spread, 0),
    ] {
        let report: serde_json::Value = serde_json::from_str(&render(&judged(&text), Format::Json)).unwrap();
        assert_eq!(report["load"]["cronJobs"], want, "{sentence}: {report}");
    }
}

#[test]
fn annotation_that_a_namespace_does_not_have_is_found() {
    let namespace = |annotation: &str| {
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, annotations: {{{annotation}: '2026-12-28'}}}}\n"
        )
    };
    for (annotation, is_found) in [
        ("cronjob-controller.dev/not-befor", true),
        ("cronjob-controller.dev/spread", true),
        ("cronjob-controller.dev/exclude", false),
        ("cronjob-controller.dev/reason", false),
        ("example.com/not-befor", false),
    ] {
        let text: Vec<String> = judged(&namespace(annotation)).findings.iter().map(Finding::line).collect();
        assert_eq!(text.iter().any(|line| line.contains("unknown-policy")), is_found, "{annotation}: {text:?}");
    }
}

/// As `kubectl apply -f`, which fails only where there is no object.
#[test]
fn report_without_cron_jobs_has_a_remark() {
    let daily = cron_job(BATCH, "a", "schedule: '0 3 * * *'");
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    for (sentence, text, want) in [
        ("a CronJob", daily.as_str(), None),
        ("another object", other, Some(("no CronJob was found to check", false))),
        ("nothing", "# nothing\n", Some(("no object was found to check", true))),
        ("what is no object", "kind: 1\n", None),
    ] {
        let found = judged(text).nothing();
        assert_eq!(found.as_ref().map(|(text, is_empty)| (text.as_str(), *is_empty)), want, "{sentence}");
    }
}

#[test]
fn configurations_of_webhooks_are_judged_and_other_kinds_are_not() {
    let webhooks = |more: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: w}}\nwebhooks:\n- \
             name: a.example.com\n  {more}\n"
        )
    };
    let rows: [(&str, String, &[&str]); 4] = [
        ("a good one", webhooks("matchConditions: [{name: a, expression: \"true\"}]"), &[]),
        (
            "a bad selector",
            webhooks("namespaceSelector: {matchExpressions: [{key: a, operator: Is}]}"),
            &[
                "ValidatingWebhookConfiguration w: error: webhooks[0].namespaceSelector.matchExpressions[0].operator: Invalid value: \
               \"Is\": not a valid selector operator",
            ],
        ),
        (
            "a condition that is not judged",
            webhooks("matchConditions: [{name: a, expression: \"authorizer.path('/x').check('get').allowed()\"}]"),
            &[
                "ValidatingWebhookConfiguration w: warning: webhook \"a.example.com\": the condition \"a\" is not judged",
            ],
        ),
        ("another kind", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: 1}\n".to_owned(), &[]),
    ];
    for (sentence, text, want) in rows {
        let found = found(&text);
        let same = found.len() == want.len() && found.iter().zip(want).all(|(found, want)| found.contains(want));
        assert!(same, "{sentence}: {found:#?}");
    }
}

#[test]
fn freeze_of_a_namespace_is_said_beside_the_load() {
    let manifests = |until: &str| {
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  annotations:\n    \
             cronjob-controller.dev/not-before: '{until}'\n    cronjob-controller.dev/reason: release week\n---\n{}",
            cron_job(BATCH, "a", "schedule: '0 2 * * *'\n  timeZone: UTC")
        )
    };
    let frozen = "Namespace shop is frozen until {} (cronjob-controller.dev/not-before): \"release week\". Until then it has no run.";
    for (sentence, until, moment, last) in [
        (
            "all week",
            "2026-12-24T00:00:00Z",
            Some("Thu 2026-12-24 00:00:00 +00:00"),
            "None starts in these seven days.",
        ),
        (
            "until tomorrow",
            "2026-11-23T00:00:00Z",
            Some("Mon 2026-11-23 00:00:00 +00:00"),
            "No two start in the same minute.",
        ),
        ("over", "2026-11-01T00:00:00Z", None, "No two start in the same minute."),
    ] {
        let lines = judged(&manifests(until)).lines();
        let said = moment.map(|moment| frozen.replace("{}", moment));
        assert_eq!(
            lines.iter().find(|line| line.starts_with("Namespace shop")),
            said.as_ref(),
            "{sentence}: {lines:#?}"
        );
        assert!(lines.contains(&last.to_owned()), "{sentence}: {lines:#?}");
    }
}
