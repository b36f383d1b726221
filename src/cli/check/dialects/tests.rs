#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn schedule_that_another_reader_takes_otherwise_is_found() {
    let refused = "kube-state-metrics from 2.19 on refuses";
    let rows: [(&str, &str, &[&str]); 31] = [
        ("hourly", "0 * * * *", &[]),
        ("days alone", "0 0 13 * *", &[]),
        ("weekdays alone", "0 0 * * 5", &[]),
        (
            "a day and a weekday",
            "0 0 13 * 5",
            &[
                "kube-state-metrics from 2.19 on takes only days that the third field (13) and the fifth (5) both name, so its \
               kube_cronjob_next_schedule_time is later than the next run",
            ],
        ),
        (
            "a step on the days, and a weekday",
            "0 0 */2 * 1",
            &[
                "Vixie cron and cronie, and kube-state-metrics from 2.19 on, take only days that the third and the fifth field \
               both name, because the third (*/2) begins with a star; Kubernetes takes the days that one of them names",
            ],
        ),
        ("a day, and a step on the weekdays", "0 0 1 * */2", &["because the fifth (*/2) begins with a star"]),
        ("a step of 1 is a star for all", "0 0 */1 * 1", &[]),
        (
            "a step as long as the hour",
            "*/60 * * * *",
            &[
                "kube-state-metrics from 2.19 on refuses */60, whose step is not less than the 60 numbers of its range: 2.19.0 \
               crashes, and later ones may have no kube_cronjob_next_schedule_time; it matches 0 alone, so write 0",
            ],
        ),
        ("a step as long as the day", "0 */24 * * *", &["it matches 0 alone, so write 0"]),
        ("the longest step that is taken", "*/59 */23 */30 */11 *", &[]),
        ("a step as long as the month", "0 0 */31 * *", &["refuses */31"]),
        ("a step as long as the year", "0 0 1 */12 *", &["refuses */12"]),
        ("a step as long as the week is taken", "0 0 * * */7", &[]),
        ("in a list", "5,*/60 * * * *", &[refused]),
        ("from a number on", "5/55 * * * *", &["the 55 numbers of its range"]),
        (
            "from a number on, twice",
            "5/54 * * * *",
            &["Vixie cron takes 5/54 for 5 alone, because a step belongs to a range there; 5-59/54 is"],
        ),
        ("from the first minute on", "0/5 * * * *", &["Vixie cron takes 0/5 for 0 alone"]),
        (
            "from a month on, by its name",
            "0 0 1 1,MAR/3 *",
            &["Vixie cron takes mar/3 for mar alone, because a step belongs to a range there; mar-12/3 is"],
        ),
        ("from the last number on", "59/5 * * * *", &[refused]),
        ("in a range of names", "0 0 1 JAN-MAR/3 *", &["refuses jan-mar/3"]),
        ("both", "*/60 0 13 * 5", &["both name", refused]),
        ("a step from a weekday on", "0 9 * * 2/5", &["takes Sunday, too, for 2/5 in the fifth field"]),
        ("a step of one from a weekday on", "0 9 * * FRI/1", &["takes Sunday, too, for fri/1", "fri-6/1 is"]),
        ("a step from a weekday on that ends with Saturday", "0 9 * * 2/2", &["2-6/2 is"]),
        ("a step in a range of weekdays", "0 9 * * 2-6/4", &[]),
        ("a step from Sunday on", "0 9 * * 0/7", &[]),
        ("a step that reaches 7, and Sunday", "0 9 * * 0,2/5", &[]),
        ("a step from a weekday on, and a star", "0 9 * * */2,1/6", &[]),
        ("a descriptor", "@daily", &[]),
        ("a second", "@every 1s", &[]),
        (
            "less than a second",
            "@every 500ms",
            &["kube-state-metrics from 2.19 on refuses @every 500ms; for Kubernetes it is a second"],
        ),
    ];
    for (sentence, text, want) in rows {
        let found = judge(text);
        let same =
            found.len() == want.len() && found.iter().zip(want).all(|(fault, part)| fault.message.contains(part));
        assert!(same, "{sentence}: {found:#?}");
        assert!(found.iter().all(|fault| fault.code == Code::OtherDialect && fault.field == "spec.schedule"));
    }
}

/// A schedule of the vectors that Kubernetes runs, and an instant.
#[derive(serde::Deserialize)]
struct Vector {
    schedule: String,
    from: String,
    next: Option<serde_json::Value>,
}

/// What both libraries say of a schedule.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answers {
    robfig: String,
    go_cron: String,
}

/// The answers of the libraries of Kubernetes and of kube-state-metrics; `None` without Go.
fn answers(vectors: &[Vector]) -> Option<Vec<Answers>> {
    if !testkit::tools::has("dialects", "go", &["version"]) {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let row = |vector: &Vector| serde_json::json!({"schedule": vector.schedule, "from": vector.from}).to_string();
    let rows: Vec<String> = vectors.iter().map(row).collect();
    std::fs::write(directory.path().join("rows"), rows.join("\n")).unwrap();
    let go = std::process::Command::new("go")
        .args(["run", "./dialects"])
        .current_dir(testkit::repository().join("tests/neighbours"))
        .env("CGO_ENABLED", "0")
        .env("TZ", "UTC")
        .stdin(std::fs::File::open(directory.path().join("rows")).unwrap())
        .output()
        .unwrap();
    if !go.status.success() {
        let why = format!("both libraries are not built: {}", String::from_utf8_lossy(&go.stderr));
        testkit::tools::without("dialects", &why, "REQUIRE_TOOLS");
        return None;
    }
    let lines = String::from_utf8(go.stdout).unwrap();
    let answers: Vec<Answers> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), vectors.len());
    Some(answers)
}

#[test]
fn every_vector_that_kube_state_metrics_takes_otherwise_is_found() {
    let file = std::fs::read_to_string(testkit::repository().join("tests/vectors/schedule.jsonl")).unwrap();
    let mut vectors: Vec<Vector> = file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    vectors.retain(|vector| vector.next.is_some());
    let Some(answers) = answers(&vectors) else { return };
    let (mut refused, mut others, mut clocks, mut wrong) = (0, 0, 0, Vec::new());
    for (vector, Answers { robfig, go_cron }) in vectors.iter().zip(&answers) {
        let found: Vec<String> = judge(&vector.schedule).into_iter().map(|fault| fault.message).collect();
        let says = |part: &str| found.iter().any(|message| message.contains(part));
        let is_refused = go_cron.starts_with("error: ");
        // An `@every` of less than a second, and an empty zone, are none of a CronJob's schedules that others write.
        if fields(&vector.schedule).is_some() && !vector.schedule.starts_with("TZ= ") && is_refused != says("refuses") {
            wrong.push(format!("{}: {go_cron}: {found:?}", vector.schedule));
        }
        refused += usize::from(is_refused);
        if is_refused || robfig == go_cron {
            continue;
        }
        others += 1;
        if !says("both name") && !says("takes Sunday") {
            // go-cron runs a time that the clocks skip an hour later, and Kubernetes not on that day.
            assert!(robfig > go_cron && vector.schedule.starts_with("TZ="), "{}: {robfig}, {go_cron}", vector.schedule);
            clocks += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // docs/observability.md has these numbers.
    assert_eq!((vectors.len(), refused, others, clocks), (3108, 525, 84, 12));
}
